"""Motions of given shape: circles of a frame and via points, and designs for elastic joints."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from motion_samples import rows_along

from urdf_ident import Drive, DynamicModel, ElasticModel, Limits, Robot, robot_path
from urdf_ident.cli.motion import _of_family
from urdf_ident.errors import LimitError, ModelError, ProjectError
from urdf_ident.excitation.criteria import criterion_value
from urdf_ident.excitation.paths import design_circle, design_points
from urdf_ident.excitation.problem import row_weights, usable_limits
from urdf_ident.project import parse_project

LAWS = ["viscous", "coulomb"]


@pytest.fixture(scope="module")
def arm() -> DynamicModel:
    return DynamicModel(Robot.from_urdf(robot_path("szabo_3r")), friction=LAWS)


def tip(robot: Robot, frame: str, q: np.ndarray) -> np.ndarray:
    data = robot.model.createData()
    places = []
    for row in q:
        pin.framesForwardKinematics(robot.model, data, robot.configuration(row[None])[0])
        places.append(data.oMf[robot.model.getFrameId(frame)].translation.copy())
    return np.array(places)


def test_the_circle_is_a_circle_of_the_last_link(arm: DynamicModel) -> None:
    """By forward kinematics: one plane, one radius, the asked-for speed, rest at both ends, limits kept."""
    found = design_circle(arm, turns=2.0, seed=3)
    motion, frame = found.trajectory, arm.robot.last_link
    assert frame == "tool"
    t = np.linspace(0.0, motion.duration, 2001)
    q, v, a = motion.evaluate(t)
    places = tip(arm.robot, frame, q)
    centre = (places.max(axis=0) + places.min(axis=0)) / 2
    np.testing.assert_allclose(places[:, 2], places[0, 2], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm((places - centre)[:, :2], axis=1), 0.05, atol=1e-4)
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / (t[1] - t[0])
    assert speed.max() == pytest.approx(0.5, rel=1e-3)
    for signal in (v, a):
        assert np.abs(signal[[0, -1]]).max() < 1e-9
    stated = Limits.from_robot(arm.robot)
    assert (q > stated.lower).all()
    assert (np.abs(v) < stated.velocity).all()
    assert "0.5 m/s" in found.summary()
    with pytest.raises(LimitError, match="cannot be driven from here"):
        design_circle(arm, radius=2.0, start=[0.3, 0.5, 0.5])
    with pytest.raises(LimitError, match="no frame is called"):
        design_circle(arm, frame="hand", budget=0.5)


def test_circles_of_arms_that_move_in_one_plane_or_on_one_line() -> None:
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    motion = design_circle(DynamicModel(robot)).trajectory
    places = tip(robot, robot.last_link, motion.evaluate(np.linspace(0.0, motion.duration, 400))[0])
    spread = np.linalg.svd(places - places.mean(axis=0))[1]
    assert spread[2] < 1e-6 * spread[1]
    assert np.ptp(places[:, 2]) == pytest.approx(0.1, rel=1e-3)  # its plane is vertical
    with pytest.raises(LimitError, match=r"another plane.*expected \[0.0, 1.0, 0.0\]; leave excitation.circle.normal out"):
        design_circle(DynamicModel(robot), normal=(0.0, 0.0, 1.0))
    with pytest.raises(LimitError, match=r"frame 'carriage'.*cannot move on a circle.*another family"):
        design_circle(DynamicModel(Robot.from_urdf(robot_path("emps"))))


def test_listed_points_are_visited_at_rest(arm: DynamicModel) -> None:
    points = np.array([[0.0, 0.0, 0.0], [1.0, -0.5, 0.8], [-0.6, 0.4, -1.0]])
    found = design_points(arm, points=points, dwell=0.2)
    assert "3 via points as listed" in found.summary()
    motion = found.trajectory
    q, v, a = motion.evaluate(np.linspace(0.0, motion.duration, 4001))
    stated, _ = usable_limits(Limits.from_robot(arm.robot), None)
    for point in points:
        near = np.abs(q - point).max(axis=1) < 1e-9
        assert near.any()
        assert np.abs(v[near]).max() < 1e-5
    assert (np.abs(v) <= stated.velocity).all()
    assert (np.abs(a) <= stated.acceleration * (1 + 1e-9)).all()
    assert np.abs(v).max(axis=0) == pytest.approx(0.98 * stated.velocity, rel=0.6)
    with pytest.raises(LimitError, match=r"joint 'joint_1': the via point 2 is outside"):
        design_points(arm, points=[[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
    with pytest.raises(LimitError, match="needs two"):
        design_points(arm, points=1)
    with pytest.raises(ModelError, match="via points are not searched by this criterion"):
        design_points(arm, points=4, criterion="block")


def test_searched_points_tell_more_than_random_ones(arm: DynamicModel) -> None:
    found = design_points(arm, points=6, start=np.zeros(3), budget=2.0, seed=1)
    limits, base = found.limits, arm.base()
    noise, _ = row_weights(None, "D", limits, arm)
    ends = found.trajectory.evaluate([0.0, found.trajectory.duration])[0]
    np.testing.assert_allclose(ends, 0.0, atol=1e-12)
    rng, values = np.random.default_rng(0), []
    for _ in range(10):
        points = np.vstack([np.zeros(3), rng.uniform(-2.8, 2.8, (4, 3)), np.zeros(3)])
        motion = design_points(arm, points=points).trajectory
        values.append(criterion_value("D", rows_along(arm, base, motion, noise, 50.0)))
    assert criterion_value("D", rows_along(arm, base, found.trajectory, noise, 50.0)) < min(values)


def test_through_the_project_file_as_design_does(tmp_path: Path) -> None:
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    project = parse_project({"excitation": {"points": [[0, 0, 0], [0.5, 0.2, 0.1]], "circle": {"radius": 0.03, "turns": 1}}})
    for family in ("points", "circle"):
        wanted = _of_family(project, family)
        found = wanted.excitation.design(wanted.build_model(robot), tmp_path)
        assert found.summary().startswith(family)
        assert found.trajectory.write(tmp_path / f"{family}.csv").read_text().startswith("t")
    short = _of_family(parse_project({"excitation": {"points": [[0, 0]]}}), "points")
    with pytest.raises(ProjectError, match=r"excitation.points, point 1"):
        short.excitation.design(short.build_model(robot), tmp_path)


@pytest.mark.parametrize("family", ["spline", "points"])
def test_elastic_joints_are_planned_on_their_rigid_part(family: str, tmp_path: Path) -> None:
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    options = {"family": family, "duration": 6.0, "budget": 1.0, "points": 4}
    project = parse_project({"drive": {"reduction": [100, 100]}, "model": {"elastic": True}, "excitation": options})
    model = project.build_model(robot)
    assert isinstance(model, ElasticModel)
    found = project.excitation.design(model, tmp_path)
    assert found.report.feasible
    assert "planned on the rigid part" in found.summary()
    rigid = DynamicModel(robot, drive=Drive.build(2, reduction=[100, 100]))
    assert f"{len(rigid.base())} base parameters" in found.summary()
