"""Runs at constant speed beside things: both ways, inside the limits, and away from what MuJoCo sees."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from collision_oracle import MujocoScene
from commands import done
from conftest import arm_urdf

from urdf_ident import Collisions, DynamicModel, Robot, Segment, find_collisions, read_trajectory, robot_path
from urdf_ident.compensation.friction_points import friction_points
from urdf_ident.errors import LimitError, ProjectError
from urdf_ident.excitation.sweeps import BidirectionalExperiment, bidirectional_experiment, design_poses
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.motion.limits import Limits, check_limits, prior_torque
from urdf_ident.project import parse_project

OBJECTS = {"table": ("box", [2.4, 2.4, 0.04], [0.0, 0.0, -0.05]), "post": ("cylinder", [0.05, 1.6], [0.45, 0.25, 0.8])}
WORLD = parse_world({"objects": {name: {kind: size, "xyz": xyz} for name, (kind, size, xyz) in OBJECTS.items()}})
CLEARANCE = 0.02


def experiment(name: str, **options: object) -> tuple[Robot, Collisions, BidirectionalExperiment]:
    robot = Robot.from_urdf(robot_path(name))
    collisions = find_collisions(robot, WORLD, clearance=CLEARANCE)
    settings = {"count": 4, "cruise": 0.6, "torque": prior_torque(robot), "collisions": collisions, **options}
    return robot, collisions, bidirectional_experiment(Limits.from_robot(robot), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["szabo_3r", "ur10e"])
def test_sweeps_keep_their_distance_and_go_both_ways(name: str) -> None:
    robot, collisions, found = experiment(name)
    assert check_limits(found.trajectory, found.limits, torque=prior_torque(robot), rate=200.0).feasible
    t = found.trajectory.times(50.0)
    q, v, _ = found.trajectory.evaluate(t)
    pairs = sorted({pair.names for pair in collisions.pairs})
    violated_pair = " ".join(note for note in collisions.notes if "not watched" in note)
    pairs = [names for names in pairs if " and ".join(names) not in violated_pair]
    assert MujocoScene(robot, OBJECTS).distances(q[::2], pairs).min() > CLEARANCE - 3e-4
    np.testing.assert_allclose(q[0], q[-1], atol=1e-9)
    for joint, speeds in found.speeds.items():
        j = robot.index(joint)
        alone = np.abs(np.delete(v, j, axis=1)).max(axis=1) < 1e-12
        for speed in speeds:
            there, back = (np.ptp(q[alone & (np.abs(v[:, j] - sign * speed) < 1e-6 * speed), j]) for sign in (1, -1))
            assert there == pytest.approx(back, abs=2.1 * speed * 0.02)
            assert there > 0.3 * speed
    assert "8 speeds" not in found.summary()
    assert "mm at" in found.summary()


def test_friction_comes_back_from_sweeps_beside_things() -> None:
    robot, _, found = experiment("szabo_3r", cruise=1.0, count=5)
    t = found.trajectory.times(250.0)
    q, v, a = found.trajectory.evaluate(t)
    tau = prior_torque(robot)(q, v, a) + 0.8 * np.sign(v) * (np.abs(v) > 1e-9) + 1.5 * v
    points = friction_points([Segment("sweeps", 0.0, 250.0, q, v, a, tau)], robot, "joint_2")
    np.testing.assert_allclose(points.odd, 0.8 + 1.5 * points.speed, rtol=0.02)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text("objects: {table: {box: [2.4, 2.4, 0.04], xyz: [0, 0, -0.05]}}")
    (tmp_path / "p.yaml").write_text("excitation: {family: sweeps, speeds: 4, cruise: 0.3, world: cell.yaml}")
    out = tmp_path / "sweeps.csv"
    said = done("design", robot_path("szabo_3r"), "-c", tmp_path / "p.yaml", "-o", out)
    assert "4 speeds" in said
    assert "distance" in said
    assert read_trajectory(out, Robot.from_urdf(robot_path("szabo_3r"))).duration > 10


def test_joints_that_turn_without_end_swing_around_their_home() -> None:
    robot = Robot.from_urdf(arm_urdf("zy", kind="continuous"))
    limits = Limits.from_robot(robot, velocity=1.0)
    home = np.array([4.0, -7.0])
    q = bidirectional_experiment(limits, home=home, count=4, cruise=2.0).trajectory.evaluate(np.linspace(0.0, 70.0, 2000))[0]
    assert (np.abs(q - home) < np.pi).all()
    assert (np.ptp(q, axis=0) > 1.0).all()
    sliding = Limits.from_robot(Robot.from_urdf(arm_urdf("z", kind="prismatic")))
    with pytest.raises(LimitError, match=r"joint 'j1'.*position limit is unknown"):
        bidirectional_experiment(replace(sliding, lower=np.full(1, -np.inf)), count=4)


def test_bad_input() -> None:
    with pytest.raises(LimitError, match="the home pose is in collision"):
        experiment("szabo_3r", home=np.array([0.0, 2.6, 0.0]))
    with pytest.raises(ProjectError, match=r"excitation.speeds"):
        parse_project({"excitation": {"family": "sweeps", "speeds": 2}})
    for key in ("budget", "cruise"):
        with pytest.raises(ProjectError, match=rf"excitation.{key}.*finite"):
            parse_project({"excitation": {key: np.inf}})
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    cage = parse_world({"objects": {"cage": {"sphere": 3.0, "xyz": [0, 0, 2.9]}}})
    with pytest.raises(LimitError, match="no pose is free enough"):
        bidirectional_experiment(Limits.from_robot(robot), collisions=find_collisions(robot, cage, prune=False))


def test_poses_and_sweeps_with_little_torque() -> None:
    """Gravity needs up to 100 N·m at the second joint: poses avoid it, sweeps through the whole range cannot."""
    robot = Robot.from_urdf(robot_path("generic_6axis"))
    limits, torque = Limits.from_robot(robot), prior_torque(robot)
    weak = replace(limits, torque=np.where(np.arange(6) == 1, 45.0, limits.torque))
    found = design_poses(DynamicModel(robot), limits=weak)
    still = np.zeros_like(found.poses)
    assert np.abs(torque(found.poses, still, still))[:, 1].max() < 45.0
    assert np.abs(torque(design_poses(DynamicModel(robot), limits=limits).poses, still, still))[:, 1].max() > 45.0
    with pytest.raises(LimitError, match=r"joint_2': the sweeps need too much torque.*excitation\.limits\.position"):
        bidirectional_experiment(weak, torque=torque)


def test_poses_that_cannot_be_held_or_are_too_close_are_named() -> None:
    robot = Robot.from_urdf(robot_path("generic_6axis"))
    limits = Limits.from_robot(robot)
    weak = replace(limits, torque=np.where(np.arange(6) == 1, 1.0, limits.torque))
    with pytest.raises(
        LimitError, match=r"joint 'joint_2': gravity needs too much torque in nearly all poses.*limit of 1 in \d+%"
    ):
        design_poses(DynamicModel(robot), limits=weak)
    cage = parse_world({"objects": {"cage": {"sphere": 3.0, "xyz": [0, 0, 2.9]}}})
    with pytest.raises(
        LimitError, match=r"link_\d and cage: two solids are closer than 0\.01 m.*of 200 poses.*`allow` this pair"
    ):
        design_poses(DynamicModel(robot), collisions=find_collisions(robot, cage, prune=False))
