"""What is not physically consistent is named and repaired with the least change, and engines then take it."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mujoco_oracle import load_urdf
from urdf_samples import STYLES, inertial_text, random_theta, random_urdf

from urdf_ident.consistency.repair import MARGIN, assess_bodies, assess_links, repaired_theta
from urdf_ident.errors import UrdfError
from urdf_ident.export.urdf import fix_urdf
from urdf_ident.model.inertia import from_com, margins
from urdf_ident.model.robot import Robot
from urdf_ident.model.urdf import parse_urdf


@settings(max_examples=200, deadline=None)
@given(
    mass=st.floats(-10, 10),
    com=st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    six=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    scale=st.sampled_from([1.0, 1e-3, 1e-6, 0.0]),
)
def test_anything_finite_can_be_repaired(mass: float, com: list[float], six: list[float], scale: float) -> None:
    matrix = scale * np.array([[six[0], six[1], six[3]], [six[1], six[2], six[4]], [six[3], six[4], six[5]]])
    theta = from_com(mass, com, matrix)
    repaired = repaired_theta(theta)
    found = margins(repaired)
    assert found.mass > 0
    assert found.relative >= 0.9 * MARGIN
    np.testing.assert_allclose(repaired_theta(repaired), repaired, rtol=1e-9)
    if mass > 1e-6:  # mass and centre of mass stay
        assert repaired[0] == pytest.approx(mass, rel=1e-12)
        np.testing.assert_allclose(repaired[1:4], theta[1:4], rtol=1e-9, atol=1e-12)


BAD = {
    "negative_mass": from_com(-1.0, [0.1, 0, 0], np.diag([0.02, 0.03, 0.04])),
    "triangle": from_com(1.0, [0.1, 0, 0], np.diag([0.02, 0.03, 0.06])),
    "negative_inertia": from_com(1.0, [0.1, 0, 0], np.diag([-0.01, 0.03, 0.03])),
    "point": from_com(1.0, [0.1, 0, 0], np.zeros((3, 3))),
    "plate": from_com(1.0, [0.1, 0, 0], np.diag([0.01, 0.02, 0.03])),
    "rod": from_com(1.0, [0.1, 0, 0], np.diag([0.0, 0.02, 0.02])),
    "nothing": None,
    "good": from_com(1.0, [0.1, 0, 0], np.diag([0.02, 0.03, 0.04])),
}


def bad_urdf(theta: dict) -> str:
    """A chain of links, moved by revolute joints; a weightless frame is fixed to the last."""
    text = '<robot name="bad">\n\t<link name="base"/>\n'
    parent = "base"
    for name, ten in theta.items():
        text += f'\t<link name="{name}">{"" if ten is None else inertial_text(ten)}</link>\n'
        text += f'\t<joint name="j_{name}" type="continuous">\n\t\t<parent link="{parent}"/>\n'
        text += f'\t\t<child link="{name}"/>\n\t\t<axis xyz="0 1 0"/>\n\t</joint>\n'
        parent = name
    text += '\t<link name="tip"><inertial><mass value="0"/>'
    text += '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>\n'
    return text + f'\t<joint name="w" type="fixed"><parent link="{parent}"/><child link="tip"/></joint>\n</robot>\n'


def test_fix_names_repairs_and_satisfies_the_engines() -> None:
    text = bad_urdf(BAD)
    with pytest.raises(UrdfError, match="--fix"):
        parse_urdf(text)
    with pytest.raises(ValueError, match=r"mass|inertia"):
        load_urdf(text)
    fixed, notes = fix_urdf(text)
    words = {note.split("'")[1]: note for note in notes}
    assert set(words) == set(BAD) - {"good"}
    assert "mass is -1 kg" in words["negative_mass"]
    assert "triangle inequality fails: 0.06 > 0.02 + 0.03, by 0.01" in words["triangle"]
    assert "eigenvalue -0.01 " in words["negative_inertia"]
    assert "no thickness" in words["plate"]
    assert "no thickness" in words["rod"]
    assert "no mass, although a joint moves it" in words["nothing"]
    pin.buildModelFromXML(fixed)
    assert load_urdf(fixed).nv == len(BAD)
    links = parse_urdf(fixed).links
    np.testing.assert_array_equal(links["good"].theta, parse_urdf(text, allow_negative_mass=True).links["good"].theta)
    assert not links["tip"].theta.any()  # a frame fixed to a link weighs nothing, and may
    assert fix_urdf(fixed) == (fixed, ())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), style=st.sampled_from(STYLES))
def test_fix_changes_nothing_in_a_good_file(seed: int, style: object) -> None:
    text = random_urdf(np.random.default_rng(seed), style=style)
    assert fix_urdf(text) == (text, ())


@pytest.mark.parametrize("seed", range(60))
def test_random_non_physical_robots_are_accepted_after_the_fix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, links=8, style=STYLES[seed % len(STYLES)]).lstrip("\ufeff")
    links = {name: link.theta for name, link in parse_urdf(text).links.items() if link.theta is not None}
    broken = text
    for name in links:  # through the text, because corrected_urdf refuses to write such numbers
        if rng.random() < 0.6:
            kind = rng.integers(3)
            start = broken.index("<inertial>", broken.index(f"name={broken[broken.index('name=') + 5]}{name}"))
            end = broken.index("</inertial>", start)
            part = broken[start:end]
            quote = broken[broken.index("name=") + 5]
            if kind == 0:
                part = part.replace(f"value={quote}", f"value={quote}-")
            elif kind == 1:
                part = part.replace(f"izz={quote}", f"izz={quote}2")
            else:
                part = part.replace(f"ixx={quote}", f"ixx={quote}-")
            broken = broken[:start] + part + broken[end:]
    fixed, _ = fix_urdf(broken)
    assert all(
        margins(link.theta).relative > 0.9 * MARGIN for link in parse_urdf(fixed).links.values() if link.theta is not None
    )
    load_urdf(fixed)
    Robot.from_urdf(fixed)


def test_a_bad_link_inside_a_good_body_is_found() -> None:
    """Lumping hides it: the sum is physically consistent, MuJoCo without fusing and Drake still refuse the link."""
    rng = np.random.default_rng(1)
    text = bad_urdf({"good": random_theta(rng)})
    bad = from_com(0.001, np.zeros(3), np.diag([1e-6, 1e-6, 4e-6]))
    numbers = 'ixx="1e-6" ixy="0" ixz="0" iyy="1e-6" iyz="0" izz="4e-6"'
    text = text.replace('value="0"', 'value="0.001"').replace('ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"', numbers)
    robot = Robot.from_urdf(text)
    levels = [
        {name: found.level for name, found in some.items()} for some in (assess_links(robot.description), assess_bodies(robot))
    ]
    assert levels == [{"good": "ok", "tip": "impossible"}, {"good": "ok"}]
    np.testing.assert_allclose(robot.description.links["tip"].theta, bad)
    fixed, notes = fix_urdf(text)
    assert len(notes) == 1
    load_urdf(fixed, fuse=False)


@pytest.mark.parametrize("file", ["ur10e/ur10e.urdf", "panda/panda.urdf"])
def test_real_robots(data: Path, file: str) -> None:
    text = (data / file).read_bytes().decode()
    fixed, notes = fix_urdf(text)
    assert (fixed == text) == (not notes)
    load_urdf(fixed)
