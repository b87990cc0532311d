"""The robot against Pinocchio and MuJoCo: order of joints, continuous and prismatic joints, locked and fixed ones."""

import re

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, inertials
from mujoco_oracle import inverse_dynamics as mujoco_torques
from mujoco_oracle import load_urdf

from urdf_ident import DynamicModel, Recording, Robot, identify
from urdf_ident.errors import LimitError, ModelError, UrdfError
from urdf_ident.model import rigid_bodies as engine
from urdf_ident.model.inertia import transform

pytestmark = pytest.mark.usefixtures("unexamined")


def link(name: str, mass: float) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0.1 {mass / 50} -0.05" rpy="0.3 -0.2 0.1"/><mass value="{mass}"/>'
        f'<inertia ixx="{0.02 * mass}" ixy="{0.001 * mass}" ixz="{0.002 * mass}" '
        f'iyy="{0.025 * mass}" iyz="{-0.001 * mass}" izz="{0.015 * mass}"/></inertial></link>'
    )


def joint(name: str, parent: str, child: str, kind: str = "revolute", axis: str = "0 1 0", extra: str = "") -> str:
    limit = "" if kind in ("fixed", "continuous") else '<limit lower="-2" upper="2.5" velocity="0" effort="40"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.1 0.2 0.3" rpy="0.5 0.1 -0.3"/><axis xyz="{axis}"/>{limit}{extra}</joint>'
    )


# Two branches whose document order is not alphabetical, all three joint types, oblique axes, fixed links.
TREE = "\n".join(
    [
        '<robot name="tree">',
        link("world", 9),
        link("trunk", 5),
        link("zoe", 3),
        link("zoe_tip", 1),
        link("adam", 2),
        link("slide", 1.5),
        link("camera", 0.4),
        link("lens", 0.1),
        joint("m_base", "world", "trunk", "continuous", "0 0 1"),
        joint("z_arm", "trunk", "zoe", "revolute", "0.6 0 0.8"),
        joint("y_spin", "zoe", "zoe_tip", "continuous", "1 2 -1"),
        joint("a_arm", "trunk", "adam", "revolute", "0 1 0"),
        joint("b_slide", "adam", "slide", "prismatic", "0 0.8 0.6"),
        joint("mount", "adam", "camera", "fixed"),
        joint("screw", "camera", "lens", "fixed"),
        "</robot>",
    ]
)


def motion(robot: Robot, samples: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-2, 2, (samples, robot.n)), rng.normal(size=(samples, robot.n)), rng.normal(size=(samples, robot.n))


def test_siblings_come_alphabetically_and_the_document_order_is_kept_beside() -> None:
    robot = Robot.from_urdf(TREE)
    assert robot.order == ("m_base", "z_arm", "y_spin", "a_arm", "b_slide")
    assert robot.joints == ("m_base", "a_arm", "b_slide", "z_arm", "y_spin")
    assert [body.name for body in robot.bodies] == ["trunk", "adam", "slide", "zoe", "zoe_tip"]
    assert [body.joint for body in robot.bodies] == list(robot.joints)
    assert robot.prismatic.tolist() == [False, False, True, False, False]
    assert robot.continuous.tolist() == [True, False, False, False, True]
    assert robot.model.nq == robot.n + 2
    assert robot.subtrees == ((0, 1, 2, 3, 4), (1, 2), (2,), (3, 4), (4,))
    assert robot.index("z_arm") == 3


def test_limits_that_leave_no_room_are_refused_before_logs_are_looked_at() -> None:
    robot = Robot.from_urdf(arm_urdf("zy").replace('lower="-2.6" upper="2.6"', 'lower="0.5" upper="0.5"', 1))
    log = Recording("run", robot.joints, np.zeros(0), np.zeros((0, 2)))
    with pytest.raises(LimitError, match="leave no room"):
        identify(DynamicModel(robot), [log])


def test_limits_are_the_urdfs_and_zero_means_not_stated() -> None:
    robot = Robot.from_urdf(TREE)
    np.testing.assert_array_equal(robot.limit("lower"), [-np.inf, -2, -2, -2, -np.inf])
    np.testing.assert_array_equal(robot.limit("upper"), [np.inf, 2.5, 2.5, 2.5, np.inf])
    np.testing.assert_array_equal(robot.limit("velocity"), [np.inf] * 5)
    np.testing.assert_array_equal(robot.limit("effort"), [np.inf, 40, 40, 40, np.inf])


def test_fixed_links_are_lumped_and_named() -> None:
    adam = Robot.from_urdf(TREE).bodies[1]
    assert adam.links[0].name == "adam"
    assert {item.name for item in adam.links} == {"adam", "camera", "lens"}


@pytest.mark.parametrize(
    "lock",
    [{}, {"a_arm": 0.7}, {"y_spin": 2.0, "b_slide": -0.3}, {"m_base": -1.2}, {"z_arm": 1.0, "y_spin": 0.4, "m_base": 3.0}],
    ids=str,
)
def test_torques_by_joint_name_are_mujocos_and_locked_joints_are_lumped(lock: dict[str, float]) -> None:
    robot, model = Robot.from_urdf(TREE, lock=lock), load_urdf(TREE, fuse=False)
    names = [model.joint(k).name for k in range(model.njnt)]  # MuJoCo follows the document
    assert list(robot.order) == [name for name in names if name not in lock]
    assert dict(robot.locked) == lock
    q, v, a = motion(robot)
    expected = mujoco_torques(model, robot.joints, robot.model.gravity.linear, q, v, a, fixed=lock)
    np.testing.assert_allclose(engine.regressor(robot, q, v, a) @ inertials(robot), expected, atol=1e-9)
    for body, inertia in zip(robot.bodies, list(robot.model.inertias)[1:], strict=True):
        total = sum(transform(robot.description.links[x.name].theta, x.rotation, x.translation) for x in body.links)
        np.testing.assert_allclose(total, inertia.toDynamicParameters(), rtol=1e-10, atol=1e-12)


def test_joints_may_have_the_names_of_links() -> None:
    """The gripper's mount of the Z1 has that of the link behind it: with another joint locked, Pinocchio found two frames."""
    renamed = TREE
    for old, new in (("mount", "camera"), ("z_arm", "zoe"), ("a_arm", "adam")):
        renamed = renamed.replace(f'<joint name="{old}"', f'<joint name="{new}"')
    for lock in ({}, {"b_slide": 0.3}, {"m_base": 0.3}):
        robot, same = Robot.from_urdf(TREE, lock=lock), Robot.from_urdf(renamed, lock=lock)
        q, v, a = motion(robot)
        order = [same.index({"z_arm": "zoe", "a_arm": "adam"}.get(name, name)) for name in robot.joints]
        expected, got = np.empty((2, len(q), robot.n))
        expected[:] = engine.regressor(robot, q, v, a) @ inertials(robot)
        q, v, a = (x[:, np.argsort(order)] for x in (q, v, a))
        got[:] = (engine.regressor(same, q, v, a) @ inertials(same))[:, order]
        np.testing.assert_allclose(got, expected, atol=1e-9)
        for name in ("camera", "zoe"):
            assert same.model.frames[same.model.getFrameId(name)].type == pin.FrameType.BODY
        assert same.model.existFrame("zoe (joint)")


def test_naming_the_joints_locks_the_others_and_sets_the_order() -> None:
    robot = Robot.from_urdf(TREE, joints=["z_arm", "a_arm"], lock={"b_slide": 0.25})
    assert robot.order == ("z_arm", "a_arm")
    assert robot.joints == ("a_arm", "z_arm")
    assert dict(robot.locked) == {"b_slide": 0.25, "m_base": 0.0, "y_spin": 0.0}
    raised = TREE.replace('lower="-2"', 'lower="0.5"')
    assert Robot.from_urdf(raised, joints=["a_arm"]).locked["z_arm"] == 0.5
    with pytest.raises(ModelError, match="joint 'y_spin' is locked"):
        robot.index("y_spin")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"joints": ["z_arn"]}, "did you mean 'z_arm'"),
        ({"lock": {"mount": 0.0}}, r"\(robot\.lock\): no moving joint is called 'mount'"),
        ({"joints": ["z_arm", "z_arm"]}, "named twice"),
        ({"joints": ["z_arm"], "lock": {"z_arm": 0}}, "named twice"),
        ({"lock": dict.fromkeys(["m_base", "z_arm", "y_spin", "a_arm", "b_slide"], 0.0)}, "no joint that moves; unlock one"),
        ({"gravity": [0, 0, np.nan]}, "gravity"),
        ({"gravity": [0, -1e300, 0]}, "gravity is out of proportion"),
        ({"gravity": [0, 0, -981]}, "gravity is out of proportion.*in m/s²"),
        ({"lock": {"z_arm": np.nan}}, "z_arm"),
        ({"lock": {"z_arm": np.inf}}, "z_arm"),
    ],
)
def test_wrong_names_and_values_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Robot.from_urdf(TREE, **options)


def mimicking(text: str, joint: str, other: str, more: str = "") -> str:
    """A URDF in which a joint mimics another."""
    head = text.index(f'<joint name="{joint}"')
    end = text.index(">", head) + 1
    return f'{text[:end]}<mimic joint="{other}"{more}/>{text[end:]}'


def test_coupled_joints_are_locked_at_the_middle_of_their_range_and_said() -> None:
    text = mimicking(TREE, "a_arm", "z_arm", ' multiplier="-2" offset="0.25"')
    robot = Robot.from_urdf(text)
    limits = robot.description.joints["z_arm"].limits
    middle = 0.5 * (limits["lower"] + limits["upper"])
    assert robot.locked == {"z_arm": pytest.approx(middle), "a_arm": pytest.approx(0.25 - 2 * middle)}
    (note,) = robot.notes
    assert re.search(r"mimic\) are locked: .*z_arm at .*--lock", note)
    assert Robot.from_urdf(text, lock={"z_arm": 0.5}).locked == {"z_arm": 0.5, "a_arm": -0.75}


def test_a_joint_that_mimics_is_no_joint_of_the_logs() -> None:
    hand = arm_urdf("zyxzyx")
    for k in range(2, 7):
        hand = mimicking(hand, f"j{k}", "j1")
    with pytest.raises(ModelError, match=r"'j2' mimics 'j1' \(and 4 joints too\); lock them: ") as error:
        Robot.from_urdf(hand, joints=[f"j{k}" for k in range(1, 7)])
    assert "mimic: identify" in str(error.value)
    assert str(error.value).count("j6") == 1  # a hand of ten fingers is one readable line


def test_a_hand_in_which_nothing_else_moves_is_identified_and_said() -> None:
    hand = Robot.from_urdf(mimicking(mimicking(arm_urdf("zyx"), "j2", "j1"), "j3", "j1"))
    assert hand.joints == ("j1",)
    assert list(hand.coupled) == ["j2", "j3"]
    assert "identified" in " ".join(hand.notes)
    assert Robot.from_urdf(mimicking(arm_urdf("zyx"), "j3", "j2"), lock={"j1": 0.2}).joints == ("j2",)


@pytest.mark.parametrize("kind", ["floating", "planar", "spherical"])
def test_other_joint_types_are_refused(kind: str) -> None:
    with pytest.raises(ModelError, match=f"'mount' has an unsupported type, got {kind}"):
        Robot.from_urdf(TREE.replace('name="mount" type="fixed"', f'name="mount" type="{kind}"'))


def test_a_robot_without_joints_and_one_that_is_no_tree() -> None:
    with pytest.raises(ModelError, match="no joint that moves; make joints revolute"):
        Robot.from_urdf('<robot name="brick"><link name="brick"/></robot>')
    looped = TREE.replace("</robot>", joint("loop", "lens", "trunk", "fixed") + "</robot>")
    with pytest.raises(UrdfError, match="kinematic tree") as caught:
        Robot.from_urdf(looped)
    assert "\n" not in str(caught.value)


def test_too_many_joints_are_refused_before_anything_is_built() -> None:
    chain = "".join(joint(f"j{k}", f"l{k // 2}", f"l{k + 1}") + link(f"l{k + 1}", 1.0) for k in range(513))
    with pytest.raises(ModelError, match=r"too many joints move.*got 513, expected at most 512.*lock the others"):
        Robot.from_urdf(f'<robot name="long">{link("l0", 1.0)}{chain}</robot>')
