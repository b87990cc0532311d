"""The certificate against a far denser grid, with everything that moves: prismatic joints, ramps, motions that stop."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.errors import LimitError
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.robot import Robot
from urdf_ident.motion.collision.clearance import MEASURED, Clearance, ClearanceReport, SpeedBounds, check_clearance
from urdf_ident.motion.collision.collisions import Collisions
from urdf_ident.motion.collision.find import find_collisions
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.motion.compose import ramped
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.motion.point_to_point import trapezoidal
from urdf_ident.motion.trajectory import Trajectory

WORLD = parse_world(
    {"objects": {"wall": {"plane": [-1, 0, 0], "offset": -0.9}, "block": {"box": [0.4, 0.4, 0.4], "xyz": [0.9, 0, 0.2]}}}
)


def motions(robot: Robot) -> list[Trajectory]:
    limits = Limits.from_robot(robot)
    quick = random_fourier(limits, 3.0, 4, seed=1, fill=0.95)
    moved = ramped(random_fourier(limits, 4.0, 3, seed=2, fill=0.6), np.full(robot.n, 0.05), 0.8)
    points = np.random.default_rng(3).uniform(-0.4, 0.4, (5, robot.n))
    stops = trapezoidal(robot.joints, points, limits.velocity, 3 * limits.velocity, 40 * limits.velocity, dwell=0.1)
    return [quick, moved, stops]


def by_pair(report: ClearanceReport, collisions: Collisions) -> dict[tuple[str, str], list[float]]:
    out: dict[tuple[str, str], list[float]] = {}
    for entry in report.pairs:
        out.setdefault((entry.first, entry.second), []).append(entry.least)
    return {names: sorted(values) for names, values in out.items()}


@pytest.mark.parametrize("case", ["ur10e", "prismatic", "mixed"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_nothing_falls_below_the_certificate(case: str, which: int) -> None:
    if case == "ur10e":
        robot = Robot.from_urdf(robot_path("ur10e"))
    else:
        text = arm_urdf("zyxzy", kind="prismatic").replace('lower="-2.6" upper="2.6"', 'lower="-0.3" upper="0.3"')
        robot = Robot.from_urdf(text if case == "prismatic" else text.replace("prismatic", "revolute", 3))
    collisions = find_collisions(robot, WORLD)
    motion = motions(robot)[which]
    report = check_clearance(motion, collisions)
    dense = collisions.distances(motion.evaluate(np.linspace(0.0, motion.duration, 6000))[0]).min(axis=0)
    seen: dict[tuple[str, str], list[float]] = {}
    for p, pair in enumerate(collisions.pairs):
        seen.setdefault(pair.names, []).append(float(dense[p]))
    gaps = []
    for names, least in by_pair(report, collisions).items():
        gap = np.array(sorted(seen[names])) - np.array(least)
        assert gap.min() > -MEASURED, names
        gaps.extend(gap)
    assert np.median(gaps) < 0.1  # and it is not just careful: a few millimetres at full speed


def test_speed_bounds_hold_on_random_states() -> None:
    """Distances and points by differences, never faster than the bound."""
    robot = Robot.from_urdf(robot_path("generic_6axis"))
    collisions = find_collisions(robot, WORLD)
    bounds = SpeedBounds.of(collisions, np.zeros(robot.n))
    rng, h = np.random.default_rng(0), 1e-3
    q, v, a = rng.uniform(-1.5, 1.5, (60, 6)), rng.uniform(-2, 2, (60, 6)), rng.uniform(-5, 5, (60, 6))
    before, here, after = (collisions.distances(q + s * h * v + 0.5 * h**2 * a) for s in (-1, 0, 1))
    apart = here > 0.02
    speed, acceleration = bounds.rates(np.abs(v), np.abs(a))
    assert (np.abs(after - before)[apart] / (2 * h) <= speed[apart] * 1.001 + 2e-3).all()
    assert (np.abs(after - before)[apart] / (2 * h) / speed[apart]).max() > 0.2  # the bound is not idle
    poses = [collisions.kinematics.evaluate(q + s * h * v + 0.5 * h**2 * a) for s in (-1, 0, 1)]
    for p, pair in enumerate(collisions.pairs):
        if not collisions.solids[pair.second].of_world:
            continue
        thing = collisions.solids[pair.first]
        point = thing.placement[:3, 3] * 0.99  # inside the solid; the world stands still
        track = [pose.points(thing.body, point[None])[:, 0] for pose in poses]
        felt = np.linalg.norm(track[0] - 2 * track[1] + track[2], axis=1) / h**2
        assert (felt <= acceleration[:, p] * 1.001 + 1e-3).all(), pair.names


def test_a_fly_past_between_instants_is_found() -> None:
    """A rod's tip passes a ball at 10 m/s: far away 20 ms before and after, the chord's case."""
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    motion = random_fourier(Limits.from_robot(robot, velocity=np.full(2, 20.0), acceleration=np.full(2, 200.0)), 1.0, 3, seed=5)
    time = np.linspace(0.0, motion.duration, 2001)
    poses = find_collisions(robot).kinematics.evaluate(motion.evaluate(time)[0])
    tip = poses.points(2, np.array([[0.5, 0.0, 0.0]]))[:, 0]
    speed = np.linalg.norm(np.gradient(tip, time, axis=0), axis=1)
    fastest = int(np.argmax(speed))
    assert speed[fastest] > 5.0
    ball = {"sphere": 0.01, "xyz": (tip[fastest] + 0.08 * poses.axes[fastest, 1]).tolist()}
    world = parse_world({"objects": {"ball": ball}})

    def entries(clearance: float) -> list[Clearance]:
        return [
            x for x in check_clearance(motion, find_collisions(robot, world, clearance=clearance)).pairs if x.second == "ball"
        ]

    collisions = find_collisions(robot, world)
    watched = [p for p, pair in enumerate(collisions.pairs) if pair.names[1] == "ball"]
    deepest = float(collisions.distances(motion.evaluate(np.linspace(0.0, motion.duration, 10_001))[0])[:, watched].min())
    beside = collisions.distances(motion.evaluate(time[fastest] + np.array([-0.01, 0.01]))[0])[:, watched].min()
    assert deepest > 0.005
    assert beside > deepest + 0.01
    assert min(x.margin for x in entries(deepest - 5e-5)) >= 0
    assert min(x.margin for x in entries(deepest + 5e-5)) < 0


def test_the_report_says_what_collides() -> None:
    robot = Robot.from_urdf(robot_path("ur10e"))
    collisions = find_collisions(robot, WORLD)
    motion = random_fourier(Limits.from_robot(robot), 10.0, 4, seed=4, fill=0.9, span=3.0)
    report = check_clearance(motion, collisions)
    assert not report.feasible
    with pytest.raises(LimitError, match=r"and .* at t = .*: the motion (collides|comes too close).*expected at least 0.01 m"):
        report.require()
    with pytest.raises(LimitError, match="different joints"):
        check_clearance(random_fourier(Limits.from_robot(Robot.from_urdf(robot_path("tx40"))), 5.0), collisions)


def test_two_things_that_slide_along_each_other_are_no_endless_work() -> None:
    """The wrist turns at a constant 33.15 mm from the forearm: nothing to prove at 33.1 mm, hopeless at 33.15."""
    robot = Robot.from_urdf(robot_path("ur10e"))
    motion = random_fourier(Limits.from_robot(robot), 10.0, 4, seed=4, fill=0.6, span=1.0)
    for clearance, kept in ((0.0331, True), (0.03315 - 1e-7, False)):
        report = check_clearance(motion, find_collisions(robot, clearance=clearance, prune=False))
        slide = [x for x in report.pairs if (x.first, x.second) == ("forearm_link", "wrist_2_link") and x.distance < 0.034]
        assert len(slide) == 1
        assert (slide[0].margin >= 0) == kept
        assert slide[0].margin > -1e-3
