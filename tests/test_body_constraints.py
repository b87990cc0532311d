"""Boxes and ellipsoids from the URDF's geometry, against points strewn inside the shapes."""

import numpy as np
import pinocchio as pin
import pytest

from urdf_ident.consistency.constraints import body_boxes, body_constraints
from urdf_ident.consistency.lmi import LmiProblem
from urdf_ident.model.bundled import robot_names, robot_path
from urdf_ident.model.inertia import from_com, to_com
from urdf_ident.model.prior import inertial_prior
from urdf_ident.model.robot import Robot
from urdf_ident.model.terms import inertial_parameters

INERTIAL = (
    '<inertial><origin xyz="{xyz}"/><mass value="{mass}"/>'
    '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.008"/></inertial>'
)
ARM = """<robot name="r"><link name="base"/>
<joint name="j1" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/>
<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="2" effort="50"/></joint>
<link name="upper">{first}<{tag}>
<origin xyz="0.02 0 0.15" rpy="0.3 -0.2 0.5"/><geometry><box size="0.1 0.08 0.3"/></geometry></{tag}></link>
<joint name="j2" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.3"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="2" effort="50"/></joint>
<link name="fore">{second}<collision>
<origin xyz="0 0 0.1"/><geometry><cylinder radius="0.03" length="0.2"/></geometry></collision></link>
<joint name="f" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0 0.05 0.25" rpy="0.4 0 0.7"/></joint>
<link name="tool">{third}<visual><origin xyz="0 0 0.04"/><geometry><sphere radius="0.05"/></geometry></visual>{extra}</link>
</robot>"""


TOOL = INERTIAL.format(xyz="0 0 0.04", mass=0.5)


def arm(*, tag="visual", com="0.02 0 0.15", third=TOOL, extra=""):
    first, second = INERTIAL.format(xyz=com, mass=3), INERTIAL.format(xyz="0 0 0.1", mass=1.5)
    return Robot.from_urdf(ARM.format(first=first, second=second, third=third, tag=tag, extra=extra))


def strewn(rng, kind, size, count=4000):
    """Points on the surface's corners and inside."""
    if kind == "box":
        return (
            np.vstack([rng.uniform(-0.5, 0.5, (count, 3)), np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T]) * size
        )
    angle = rng.uniform(0, 2 * np.pi, count)
    if kind == "cylinder":
        ends = rng.choice([-0.5, 0.5], count) * size[1]
        return np.column_stack([size[0] * np.cos(angle), size[0] * np.sin(angle), ends])
    points = rng.normal(size=(count, 3))
    return size[0] * points / np.linalg.norm(points, axis=1)[:, None]


def test_boxes_hold_all_that_is_drawn_of_a_body_and_not_much_more():
    robot, rng = arm(), np.random.default_rng(0)
    lower, upper = body_boxes(robot)
    rotation = pin.rpy.rpyToMatrix(0.3, -0.2, 0.5)
    first = strewn(rng, "box", (0.1, 0.08, 0.3)) @ rotation.T + [0.02, 0, 0.15]
    np.testing.assert_allclose(lower[0], first.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(upper[0], first.max(axis=0), atol=1e-12)
    frame = robot.model.frames[robot.model.getFrameId("tool")].placement
    tool = (strewn(rng, "sphere", (0.05,)) + [0, 0, 0.04]) @ frame.rotation.T + frame.translation
    fore = np.vstack([strewn(rng, "cylinder", (0.03, 0.2)) + [0, 0, 0.1], tool])
    assert np.all(lower[1] <= fore.min(axis=0) + 1e-12)
    assert np.all(upper[1] >= fore.max(axis=0) - 1e-12)
    # a sphere's box turned by an angle is at most √3 times as wide
    assert np.all(upper[1] - lower[1] <= np.ptp(fore, axis=0) + 0.1 * (np.sqrt(3) - 1))


@pytest.mark.parametrize(
    "changes",
    [
        {"third": "", "extra": '<visual><geometry><mesh filename="package://nowhere/tool.stl"/></geometry></visual>'},
        {"extra": '<collision><geometry><box size="0 0 0"/></geometry></collision>'},
    ],
)
def test_a_body_of_which_something_cannot_be_read_has_no_box(changes):
    lower, upper = body_boxes(arm(**changes))
    assert np.isfinite(lower[0]).all()
    assert np.isnan(lower[1]).all()
    assert np.isnan(upper[1]).all()


def test_a_body_with_matter_that_is_not_drawn_has_no_box():
    text = ARM.format(
        first=INERTIAL.format(xyz="0 0 0.1", mass=3),
        second=INERTIAL.format(xyz="0 0 0.1", mass=1),
        tag="visual",
        third=INERTIAL.format(xyz="0 0 0", mass=0.2),
        extra="",
    )
    bare = text.replace('<visual><origin xyz="0 0 0.04"/><geometry><sphere radius="0.05"/></geometry></visual>', "")
    assert np.isnan(body_boxes(Robot.from_urdf(bare))[0][1]).all()
    frame = bare.replace(INERTIAL.format(xyz="0 0 0", mass=0.2), "")  # a frame without mass need not be drawn
    assert np.isfinite(body_boxes(Robot.from_urdf(frame))[0][1]).all()


def test_geometry_that_contradicts_the_urdf_is_not_believed():
    robot = arm(com="0 0 0.9")  # the box ends at about 0.3 m
    constraints, notes = body_constraints(robot, inertial_prior(robot), inertial_parameters(robot), ellipsoids=True)
    assert not [one.name for one in constraints if one.name.startswith("upper: ") and "mass at" not in one.name]
    held = [one.setting for one in constraints if one.name.startswith("fore: ")]
    assert held == ["mass_factor"] * 2 + ["com_in_box"] * 6 + ["ellipsoids"]
    assert len(notes) == 2
    assert "centre of mass is outside its geometry" in notes[0]
    assert "'upper'" in notes[0]


def test_a_centre_of_mass_that_the_data_want_outside_stays_in_the_geometry():
    robot, rng = arm(), np.random.default_rng(2)
    prior, parameters, data = inertial_prior(robot), inertial_parameters(robot), robot.model.createData()
    wrong = prior.theta0.copy()
    wrong[:10] = from_com(3.0, [0.3, 0.0, 0.15], 0.01 * np.eye(3))  # 0.2 m beside the link
    states = rng.normal(size=(60, 3, 2))
    W = np.vstack([pin.computeJointTorqueRegressor(robot.model, data, *state) for state in states]) / 0.05
    _, upper = body_boxes(robot)
    solutions = []
    for com_in_box in (False, True):
        constraints, _ = body_constraints(robot, prior, parameters, com_in_box=com_in_box)
        solutions.append(LmiProblem(prior, parameters, constraints).solve(W, W @ wrong))
    centres = [to_com(solution.theta[:10])[1] for solution in solutions]
    assert centres[0][0] > upper[0, 0] + 0.02
    assert centres[1][0] <= upper[0, 0] + 1e-7
    assert "upper: centre of mass at its upper x limit" in solutions[1].active


@pytest.mark.parametrize("name", robot_names())
def test_bundled_robots_draw_every_body(name):
    robot = Robot.from_urdf(robot_path(name))
    assert np.isfinite(body_boxes(robot)[0]).all()
