"""The spliced URDF: nothing but the numbers, in every style; and what engines make of it."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf, rnea
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import fourier
from mujoco_oracle import difference, inverse_dynamics, load_urdf, regressor_torques, states
from urdf_samples import STYLES, changed, random_theta, random_urdf

import urdf_ident as ui
from urdf_ident.errors import EstimationError, ModelError, ShapeError, UrdfError
from urdf_ident.export.split import physical_bodies, split_bodies
from urdf_ident.export.urdf import corrected_urdf, torque_difference, urdf_text
from urdf_ident.files.splice import Splicer
from urdf_ident.model.inertia import from_com, from_pseudo_inertia, margins, transform
from urdf_ident.model.robot import Robot
from urdf_ident.model.urdf import parse_urdf

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def spans(text: str) -> dict[str, tuple[int, int]]:
    """Where each link lies, found without the code under test."""
    found = {}
    for match in re.finditer(r"<link\s[^>]*?name=[\"']([^\"']+)[\"'][^>]*?(/>|>)", text):
        end = match.end() if match[2] == "/>" else text.index("</link>", match.end())
        found[match[1]] = (match.start(), end)
    return found


# ---------------------------------------------------------------------------------------------- splicing


def test_two_changes_of_one_place_are_an_error() -> None:
    splicer = Splicer('<a><b x="1"/></a>')
    (node,) = splicer.root.children
    splicer.set(node, "x", "22")
    splicer.set(node, "x", "33")
    with pytest.raises(ValueError, match="two changes"):
        splicer.text()


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), style=st.sampled_from(STYLES))
def test_unedited_urdf_changes_no_byte(seed: int, style: object) -> None:
    text = random_urdf(np.random.default_rng(seed), style=style)
    links = parse_urdf(text).links
    same = {name: link.theta for name, link in links.items() if link.theta is not None}
    dynamics = {
        n: {"damping": j.damping, "friction": j.friction} for n, j in parse_urdf(text).joints.items() if j.type != "fixed"
    }
    assert corrected_urdf(text, same, dynamics).encode() == text.encode()


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), style=st.sampled_from(STYLES), k=st.integers(1, 4))
def test_changing_k_inertials_changes_only_those_numbers(seed: int, style: object, k: int) -> None:
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, style=style)
    old = {name: link.theta for name, link in parse_urdf(text).links.items() if link.theta is not None}
    # without a written <origin> the centre of mass can only change by an insertion, which another test looks at
    full = [name for name in old if "<origin" in text[slice(*spans(text)[name])] or old[name][1:4].any()]
    chosen = list(rng.permutation(full)[:k])
    wanted = {name: changed(rng, old[name])[0] for name in chosen}
    new = corrected_urdf(text, wanted)
    assert NUMBER.sub("#", new) == NUMBER.sub("#", text)
    where = [spans(text)[name] for name in chosen]
    pairs = list(zip(NUMBER.finditer(text), NUMBER.findall(new), strict=True))
    edited = [place for place, number in pairs if place[0] != number]
    assert all(any(a < place.start() < b for a, b in where) for place in edited)
    assert len(edited) <= 10 * len(chosen)
    back = parse_urdf(new).links
    for name in old:
        np.testing.assert_allclose(back[name].theta, wanted.get(name, old[name]), rtol=1e-11, atol=1e-14)


BODY = from_com(1.5, [0.0, 0.0, 0.25], np.diag([0.03, 0.03, 0.02]))
ATTRIBUTES = 'ixx="0.03" ixy="0.0" ixz="0.0" iyy="0.03" iyz="0.0" izz="0.02"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (  # self-closing link, two spaces
            '<robot name="r">\n  <link name="a"/>\n</robot>\n',
            '<robot name="r">\n  <link name="a">\n    <inertial>\n      <origin xyz="0.0 0.0 0.25" rpy="0 0 0"/>\n'
            f'      <mass value="1.5"/>\n      <inertia {ATTRIBUTES}/>\n    </inertial>\n  </link>\n</robot>\n',
        ),
        (  # tabs, CRLF, single quotes, a comment that stays on its line, space before the slash of another element
            "<robot name='r'>\r\n\t<link name='a'>\r\n\t\t<visual /> <!-- grey -->\r\n\t</link>\r\n</robot>",
            "<robot name='r'>\r\n\t<link name='a'>\r\n\t\t<visual /> <!-- grey -->\r\n\t\t<inertial>\r\n"
            "\t\t\t<origin xyz='0.0 0.0 0.25' rpy='0 0 0'/>\r\n\t\t\t<mass value='1.5'/>\r\n\t\t\t<inertia "
            + ATTRIBUTES.replace('"', "'")
            + "/>\r\n\t\t</inertial>\r\n\t</link>\r\n</robot>",
        ),
        (  # everything on one line
            '<robot name="r"><link name="a" /></robot>',
            '<robot name="r"><link name="a"><inertial><origin xyz="0.0 0.0 0.25" rpy="0 0 0"/><mass value="1.5"/>'
            f"<inertia {ATTRIBUTES}/></inertial></link></robot>",
        ),
        (  # an empty element whose closing tag is on the same line
            '<robot name="r">\n    <link name="a"></link>\n</robot>',
            '<robot name="r">\n    <link name="a">\n        <inertial>\n            <origin xyz="0.0 0.0 0.25" rpy="0 0 0"/>\n'
            f'            <mass value="1.5"/>\n            <inertia {ATTRIBUTES}/>\n        </inertial>\n    </link>\n</robot>',
        ),
        (  # no origin: added before the first child, on its own line
            f'<robot name="r">\n <link name="a">\n  <inertial>\n   <mass value="1.5"/>\n   <inertia {ATTRIBUTES}/>\n'
            "  </inertial>\n </link>\n</robot>",
            '<robot name="r">\n <link name="a">\n  <inertial>\n   <origin xyz="0.0 0.0 0.25" rpy="0 0 0"/>\n'
            f'   <mass value="1.5"/>\n   <inertia {ATTRIBUTES}/>\n  </inertial>\n </link>\n</robot>',
        ),
        (  # an origin without xyz, attributes on their own lines
            '<robot name="r"><link name="a"><inertial><origin\n   rpy="0 0 0"\n  /><mass\n value="1"\n/>'
            f"<inertia {ATTRIBUTES}/></inertial></link></robot>",
            '<robot name="r"><link name="a"><inertial><origin\n   rpy="0 0 0"\n   xyz="0.0 0.0 0.25"\n  /><mass\n'
            ' value="1.5"\n/>'
            f"<inertia {ATTRIBUTES}/></inertial></link></robot>",
        ),
    ],
)
def test_missing_elements_are_inserted_in_the_files_own_style(before: str, after: str) -> None:
    assert corrected_urdf(before, {"a": BODY}) == after


JOINT = '<robot name="r">\n  <link name="a"/>\n  <link name="b"/>\n  {}\n</robot>\n'
OPEN = '<joint name="j" type="continuous">\n    <parent link="a"/>\n    <child link="b"/>\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OPEN + "  </joint>", OPEN + '    <dynamics damping="1.5" friction="0.25"/>\n  </joint>'),
        (OPEN + "    <dynamics/>\n  </joint>", OPEN + '    <dynamics damping="1.5" friction="0.25"/>\n  </joint>'),
        (
            OPEN + '    <dynamics damping="0" K="7" /><!-- c -->\n  </joint>',
            OPEN + '    <dynamics damping="1.5" K="7" friction="0.25" /><!-- c -->\n  </joint>',
        ),
        (
            OPEN + "    <dynamics\n      friction='0.25'\n      damping='0.0'></dynamics>\n  </joint>",
            OPEN + "    <dynamics\n      friction='0.25'\n      damping='1.5'></dynamics>\n  </joint>",
        ),
    ],
)
def test_dynamics(before: str, after: str) -> None:
    text = JOINT.format(before)
    assert corrected_urdf(text, {}, {"j": {"damping": 1.5, "friction": 0.25}}) == JOINT.format(after)
    assert corrected_urdf(text, {}, {"j": {}}) == text


@pytest.mark.parametrize(
    ("text", "inertials", "dynamics", "words"),
    [
        (JOINT.format(OPEN + "  </joint>"), {"nobody": BODY}, {}, "no link is called 'nobody'"),
        (JOINT.format(OPEN + "  </joint>"), {}, {"jj": {"damping": 1.0}}, "no joint is called 'jj'"),
        (JOINT.format(OPEN + "  </joint>"), {}, {"j": {"damping": -1.0}}, "damping cannot be written"),
        (JOINT.format(OPEN + "  </joint>"), {}, {"j": {"friction": np.nan}}, "friction cannot be written"),
        (JOINT.format(OPEN + "<dynamics/><dynamics/></joint>"), {}, {"j": {"damping": 1.0}}, "2 <dynamics> elements"),
        (JOINT.format(OPEN + "  </joint>"), {"a": from_com(-1.0, np.zeros(3), np.eye(3))}, {}, "not physically consistent"),
        (JOINT.format(OPEN + "  </joint>"), {"a": from_com(1.0, np.zeros(3), np.diag([1, 1, 2.1]))}, {}, "not physically"),
        (JOINT.format(OPEN + "  </joint>"), {"a": BODY * np.nan}, {}, "not finite"),
        (
            '<robot name="r"><link name="a">'
            + 2 * f'<inertial><mass value="1"/><inertia {ATTRIBUTES}/></inertial>'
            + "</link></robot>",
            {"a": BODY},
            {},
            "2 <inertial> elements",
        ),
    ],
)
def test_bad_requests(text: str, inertials: dict, dynamics: dict, words: str) -> None:
    with pytest.raises((UrdfError, ModelError), match=words):
        corrected_urdf(text, inertials, dynamics)


def test_a_plate_on_the_boundary_gets_the_margin_that_engines_need() -> None:
    plate = from_com(1.0, [0.1, 0, 0], np.diag([0.1, 0.2, 0.3]))
    text = corrected_urdf('<robot name="r"><link name="a"/></robot>', {"a": plate})
    back = margins(parse_urdf(text).links["a"].theta)
    assert 0.99e-6 <= back.relative <= 1.1e-6


def test_namespaced_urdf_keeps_its_inertials() -> None:
    """A default namespace made every <inertial> invisible to a namespace-aware reader; prefixed tags are no links."""
    text = (
        '<robot xmlns="http://www.ros.org" xmlns:s="urn:s" name="r"><s:link name="q"/><link name="a"><inertial>'
        f'<mass value="1.5"/><inertia {ATTRIBUTES}/></inertial></link></robot>'
    )
    description = parse_urdf(text)
    assert list(description.links) == ["a"]
    assert description.links["a"].theta[0] == 1.5


# ---------------------------------------------------------------------------------------------- splitting


def test_lumped_children_are_subtracted_from_the_link_that_moves() -> None:
    """Trap 2: most of a body's mass may be other links; they keep the URDF's bytes."""
    rng = np.random.default_rng(11)
    hand, cover = random_theta(rng), random_theta(rng)
    text = _chain({"arm": random_theta(rng), "hand": hand, "cover": cover})
    robot = Robot.from_urdf(text)
    body = robot.bodies[0]
    place = {link.name: link for link in body.links}
    own = changed(rng, robot.description.links["arm"].theta, 0.05)[0]
    theta = own + sum(transform(t, place[n].rotation, place[n].translation) for n, t in (("hand", hand), ("cover", cover)))
    links, notes = split_bodies(robot, theta)
    np.testing.assert_allclose(links["arm"], own, rtol=1e-9, atol=1e-12)
    for name in ("hand", "cover"):
        np.testing.assert_array_equal(links[name], robot.description.links[name].theta)
    assert notes == ()


def test_a_body_lighter_than_its_children_is_shared_by_all() -> None:
    rng = np.random.default_rng(12)
    thetas = {"arm": random_theta(rng), "hand": random_theta(rng), "cover": random_theta(rng) * 1e-3}
    robot = Robot.from_urdf(_chain(thetas))
    links, notes = split_bodies(robot, 0.3 * robot.inertials[0])
    assert "shared" in notes[0]
    for name, theta in thetas.items():  # a body that is 0.3 times as heavy has links 0.3 times as heavy
        np.testing.assert_allclose(links[name], 0.3 * theta, rtol=1e-6, atol=1e-9)
    theta = changed(rng, 0.3 * robot.inertials)[0]
    links, _ = split_bodies(robot, theta)
    place = {link.name: link for link in robot.bodies[0].links}
    total = sum(transform(links[n], place[n].rotation, place[n].translation) for n in links)
    np.testing.assert_allclose(total, theta, rtol=1e-12, atol=1e-15)
    assert all(margins(links[n]).relative > 1e-6 for n in links)


def _chain(thetas: dict, hand_joint: str = "fixed") -> str:
    """base —j_arm→ arm —j_hand→ hand —fixed→ cover."""
    text = '<robot name="chain">\n  <link name="base"/>\n' + "".join(f'  <link name="{name}"/>\n' for name in thetas)
    for parent, child, kind in (("base", "arm", "revolute"), ("arm", "hand", hand_joint), ("hand", "cover", "fixed")):
        text += f'  <joint name="j_{child}" type="{kind}">\n    <origin xyz="0.1 0 0.3" rpy="0.2 -0.3 1.0"/>\n'
        text += f'    <parent link="{parent}"/>\n    <child link="{child}"/>\n    <axis xyz="0 1 0"/>\n'
        text += '    <limit lower="-2" upper="2" velocity="1" effort="1"/>\n  </joint>\n'
    return corrected_urdf(text + "</robot>\n", {name: theta for name, theta in thetas.items() if theta is not None})


# ---------------------------------------------------------------------------------------------- whole robots


@pytest.mark.parametrize("seed", range(24))
def test_random_robots_load_everywhere_with_equal_torques(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    thin = [0.0, 1e-3, 3e-6][seed % 3]
    text = random_urdf(rng, links=int(rng.integers(3, 12)), thin=thin).lstrip("\ufeff")
    moving = [name for name, joint in parse_urdf(text).joints.items() if joint.type != "fixed"]
    locked = {name: 0.3 for name in moving[1:] if rng.random() < 0.15}
    robot = Robot.from_urdf(text, lock=locked)
    theta, _ = physical_bodies(robot, changed(rng, robot.inertials).ravel())
    written, _ = urdf_text(robot, theta, damping=dict.fromkeys(robot.joints, 0.5), friction={robot.joints[0]: 0.25})
    again = Robot.from_urdf(written, lock=locked)
    assert torque_difference(robot, theta, again.model) < 1e-9
    assert [again.description.joints[name].damping for name in robot.joints] == [0.5] * robot.n
    q, v, a = states(robot, 20, seed)
    expected = regressor_torques(robot, theta, q, v, a)
    for fuse in (True, False):
        model = load_urdf(written, fuse=fuse)
        tau = inverse_dynamics(model, robot.joints, robot.model.gravity.linear, q, v, a, fixed=locked)
        assert difference(tau, expected) < 1e-6


@pytest.mark.parametrize(
    ("file", "lock"),
    [("ur10e/ur10e.urdf", {}), ("panda/panda.urdf", {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02})],
)
def test_real_robots(data: Path, file: str, lock: dict) -> None:
    robot = Robot.from_urdf(data / file, lock=lock)
    prior = robot.inertials
    assert urdf_text(robot, prior.ravel())[0].encode() == (data / file).read_bytes()
    theta = changed(np.random.default_rng(1), prior, 0.1).ravel()
    written, notes = urdf_text(robot, theta, damping=dict.fromkeys(robot.joints, 3.5))
    assert not any("is not physically consistent" in note for note in notes)
    q, v, a = states(robot, 1000)
    expected = regressor_torques(robot, theta, q, v, a)
    assert torque_difference(robot, theta, Robot.from_urdf(written, lock=lock).model, samples=1000) < 1e-9
    tau = inverse_dynamics(load_urdf(written), robot.joints, robot.model.gravity.linear, q, v, a, fixed=lock)
    assert difference(tau, expected) < 1e-6


def test_what_the_data_cannot_move_is_written_to_the_letter(tmp_path: Path) -> None:
    """The first joint, vertical, stands still but for the noise of its encoder: no torque depends on its body."""
    robot = Robot.from_urdf(arm_urdf("zyx").replace('rpy="0.1 0 0.2"', 'rpy="0 0 0"', 1))
    t, q, v, a = fourier(3, 16.0, 100.0, seed=0)
    q[:, 0], v[:, 0], a[:, 0] = 0.4, 0.0, 0.0
    rng = np.random.default_rng(5)
    tau = rnea(robot.model, q, v, a) + np.tanh(v / 0.02)
    tau += 0.01 * tau.std(axis=0) * rng.standard_normal(tau.shape)
    log = ui.Recording("rest", robot.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau)
    ident = ui.identify(ui.DynamicModel(robot, friction=["coulomb"]), [log], force=True)
    ui.write_urdf(ident, tmp_path / "r.urdf")
    written = (tmp_path / "r.urdf").read_text()
    for link, same in (("l1", True), ("l2", False)):
        assert (written[slice(*spans(written)[link])] == robot.urdf[slice(*spans(robot.urdf)[link])]) == same


def test_impossible_bodies_are_refused_unless_repair_is_asked_for() -> None:
    robot = Robot.from_urdf(_chain({"arm": random_theta(np.random.default_rng(2)), "hand": None, "cover": None}))
    theta = robot.inertials[0].copy()
    theta[0] = -0.1
    with pytest.raises(ModelError, match="'arm' is not physically consistent"):
        urdf_text(robot, theta)
    text, notes = urdf_text(robot, theta, repair=True)
    assert "nearest" in notes[0]
    assert margins(Robot.from_urdf(text).inertials[0]).consistent


def test_impossible_links_that_are_not_identified_are_repaired_and_said() -> None:
    """A child and the base that break the triangle inequality: every engine has to take the result."""
    rng = np.random.default_rng(8)
    text = _chain({"arm": random_theta(rng), "hand": random_theta(rng), "cover": random_theta(rng) * 0.01})
    text = re.sub(r'(<link name="cover">.*?izz=")', r"\g<1>9", text, flags=re.S)
    bad = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="3"/></inertial>'
    robot = Robot.from_urdf(text.replace('<link name="base"/>', f'<link name="base">{bad}</link>'))
    with pytest.raises(ValueError, match=r"A \+ B >= C"):
        load_urdf(robot.urdf, fuse=False)
    theta = changed(rng, Robot.from_urdf(_chain({"arm": random_theta(rng), "hand": None, "cover": None})).inertials)[0]
    written, notes = urdf_text(robot, theta)
    assert {name for name in ("cover", "base") if any(f"link '{name}'" in note for note in notes)} == {"cover", "base"}
    q, v, a = states(robot, 20)
    tau = inverse_dynamics(load_urdf(written, fuse=False), robot.joints, robot.model.gravity.linear, q, v, a)
    assert difference(tau, regressor_torques(robot, theta, q, v, a)) < 1e-9


def test_negative_friction_is_written_as_zero_and_said() -> None:
    robot = Robot.from_urdf(_chain({"arm": random_theta(np.random.default_rng(2)), "hand": None, "cover": None}))
    text, notes = urdf_text(robot, robot.inertials[0], friction={"j_arm": -0.2}, damping={"j_arm": 1.0})
    assert "negative" in notes[0]
    joint = Robot.from_urdf(text).description.joints["j_arm"]
    assert (joint.damping, joint.friction) == (1.0, 0.0)


def test_bad_input_is_refused() -> None:
    robot = Robot.from_urdf(_chain({"arm": random_theta(np.random.default_rng(2)), "hand": None, "cover": None}))
    theta = robot.inertials[0]
    with pytest.raises(ShapeError):
        urdf_text(robot, theta[:9])
    with pytest.raises(ModelError, match="not finite"):
        urdf_text(robot, theta * np.inf)
    with pytest.raises(ModelError, match="'nope'"):
        urdf_text(robot, theta, damping={"nope": 1.0})
    with pytest.raises(EstimationError):
        split_bodies(robot, from_pseudo_inertia(np.diag([1.0, 1.0, -0.1, 1.0])))


def test_a_body_may_lack_a_tenth_of_the_margin() -> None:
    robot = Robot.from_urdf(_chain({"arm": random_theta(np.random.default_rng(2)), "hand": None, "cover": None}))
    thin, thinner = (from_pseudo_inertia(np.diag([1.0, 1.0, share * 1e-6, 1.0])) for share in (0.95, 0.85))
    np.testing.assert_allclose(split_bodies(robot, thin)[0]["arm"], thin, atol=1e-12)
    with pytest.raises(EstimationError, match="not physically consistent"):
        split_bodies(robot, thinner)


def test_character_references_in_a_vector() -> None:
    splicer = Splicer('<a v="1&#32;2 3"/>')
    splicer.set_words(splicer.root, "v", [None, "7", None])
    assert splicer.text() == '<a v="1 7 3"/>'


def test_bare_first_link_leaves_the_mass_to_the_real_one() -> None:
    rng = np.random.default_rng(14)
    robot = Robot.from_urdf(_chain({"arm": None, "hand": random_theta(rng), "cover": None}))
    links, notes = split_bodies(robot, 1.4 * robot.inertials[0])
    assert set(links) == {"hand"}
    assert notes == ()
    alone = Robot.from_urdf(_chain({"arm": None, "hand": None, "cover": None}))
    theta = random_theta(rng)
    links, _ = split_bodies(alone, theta)
    assert set(links) == {"arm"}
    np.testing.assert_allclose(links["arm"], theta, rtol=1e-12, atol=1e-14)


def test_massless_link_behind_a_locked_joint_gets_a_little_mass() -> None:
    rng = np.random.default_rng(15)
    text = _chain({"arm": random_theta(rng), "hand": None, "cover": None}, hand_joint="prismatic")
    robot = Robot.from_urdf(text, lock={"j_hand": 0.1})
    links, notes = split_bodies(robot, robot.inertials[0])
    assert 0 < links["hand"][0] < 0.01 * links["arm"][0]
    assert "'hand' moves in the URDF but has no mass" in notes[0]
    load_urdf(corrected_urdf(text, links))
