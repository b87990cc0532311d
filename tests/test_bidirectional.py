"""Friction from runs both ways: torques made by RNEA and friction by hand, so that the truth is known."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from conftest import rnea

from urdf_ident import Robot, Segment, bidirectional_experiment, read_trajectory
from urdf_ident.compensation.friction_curve import fit_friction
from urdf_ident.compensation.friction_points import FrictionPoints, friction_points
from urdf_ident.errors import EstimationError, LimitError, LogError
from urdf_ident.motion.limits import Limits, check_limits, prior_torque

RATE = 100.0


def friction(v: np.ndarray) -> np.ndarray:
    """Asymmetric, thinning, with a peak at standstill; not of Liu 2023's class."""
    dry = 3.0 * (1 + 0.2 * np.exp(-np.abs(v) / 0.05)) * np.tanh(v / 1e-3)
    return dry + 2.0 * np.arcsinh(v / 0.6) + np.where(v > 0, 0.5, -0.2) * np.abs(np.tanh(v / 1e-3))


def driven(robot: Robot, trajectory, noise: float = 0.05, law=friction) -> Segment:
    t = trajectory.times(RATE)
    q, v, a = trajectory.evaluate(t)
    rigid = rnea(robot.model, robot.configuration(q), v, a)
    tau = rigid + law(v) + noise * np.random.default_rng(0).standard_normal(q.shape)
    return Segment("sweeps", 0.0, RATE, q, v, a, tau)


@pytest.fixture(scope="module")
def limits(robot: Robot) -> Limits:
    return Limits.from_robot(robot, acceleration=4.0)


@pytest.fixture(scope="module")
def sweeps(robot: Robot, limits: Limits) -> Segment:
    return driven(robot, bidirectional_experiment(limits, count=8, cruise=1.5).trajectory)


def test_the_experiment_stays_inside_its_limits_and_is_written(robot, limits, tmp_path) -> None:
    found = bidirectional_experiment(limits, torque=prior_torque(robot))
    assert check_limits(found.trajectory, limits).feasible
    q, v, _ = found.trajectory.evaluate(found.trajectory.times(200.0))
    for j, joint in enumerate(robot.joints):
        assert len(found.speeds[joint]) == 5
        for speed in found.speeds[joint]:  # each held for a while, both ways, the others still
            for sign in (1, -1):
                held = (np.abs(v[:, j] - sign * speed) < 1e-6 * speed) & (np.abs(np.delete(v, j, axis=1)).max(axis=1) < 1e-12)
                assert held.sum() > 60
                assert np.ptp(q[held, j]) > 0.3 * speed
    path = found.trajectory.write(tmp_path / "sweeps.csv", rate=50.0)
    again = read_trajectory(path, robot)
    assert again.joints == robot.joints
    assert again.duration == pytest.approx(found.trajectory.duration, abs=0.03)


def test_the_curve_is_the_truth(robot: Robot, sweeps: Segment) -> None:
    for joint in robot.joints:
        curve = fit_friction(friction_points([sweeps], robot, joint))
        assert curve.points.odd == pytest.approx((friction(curve.points.speed) - friction(-curve.points.speed)) / 2, rel=0.015)
        assert curve.points.even == pytest.approx((friction(curve.points.speed) + friction(-curve.points.speed)) / 2, abs=0.1)
        v = np.linspace(curve.points.speed[0], curve.points.speed[-1], 200)
        for side in (v, -v):
            assert np.abs(curve.torque(side) - friction(side)).max() < 0.25  # of some 6 N·m: the class is another one
        assert curve.rmse < 0.12


def test_gravity_is_that_of_the_robot(robot: Robot, sweeps: Segment) -> None:
    points = friction_points([sweeps], robot, "j2")
    q = np.zeros((50, 3))
    q[:, 1] = np.linspace(-2, 2, 50)
    data = robot.model.createData()
    truth = [pin.computeGeneralizedGravity(robot.model, data, row)[1] for row in q]
    found = points.gravity[0] * np.sin(q[:, 1]) + points.gravity[1] * np.cos(q[:, 1])
    assert found == pytest.approx(np.array(truth), abs=0.1)


def test_no_reversals(robot: Robot, sweeps: Segment) -> None:
    forwards = sweeps.v[:, 0] >= -1e-9
    edges = np.flatnonzero(np.diff(np.concatenate([[False], forwards, [False]]).astype(int)))
    pieces = [sweeps.slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if end - begin > 20]
    with pytest.raises(LogError, match=r"joint 'j1': no reversals.*forwards only.*drive the same path back"):
        friction_points(pieces, robot, "j1")


def test_other_motions_are_no_runs(robot: Robot) -> None:
    t = np.arange(1000) / RATE
    q = np.column_stack([np.sin(t), np.sin(1.1 * t), np.cos(0.9 * t)])
    v = np.gradient(q, t, axis=0)
    with pytest.raises(LogError, match="no runs at constant speed"):
        friction_points([Segment("log", 0.0, RATE, q, v, v, v)], robot, "j1")
    with pytest.raises(LogError, match="no torque"):
        friction_points([Segment("log", 0.0, RATE, q, v, v)], robot, "j1")


def test_a_short_way_cannot_tell_asymmetry_from_gravity(robot: Robot, limits: Limits) -> None:
    tight = replace(limits, lower=np.full(3, -0.06), upper=np.full(3, 0.06))
    points = friction_points([driven(robot, bidirectional_experiment(tight, count=4).trajectory)], robot, "j2")
    assert "too short" in points.notes[0]
    assert not points.even.any()


def test_too_few_speeds() -> None:
    speed = np.array([0.1, 0.2, 0.4])
    points = FrictionPoints("j1", speed, speed, 0 * speed, 0 * speed, (0.0, 0.0))
    with pytest.raises(EstimationError, match=r"joint 'j1': too few speeds.*got 3"):
        fit_friction(points)


def test_impossible_experiments(limits: Limits) -> None:
    with pytest.raises(LimitError, match="too few speeds"):
        bidirectional_experiment(limits, count=2)
    with pytest.raises(LimitError, match="no joint is called 'j9'"):
        bidirectional_experiment(limits, joints=["j9"])
    with pytest.raises(LimitError, match="home pose is outside the position limits"):
        bidirectional_experiment(limits, home=np.array([9.0, 0.0, 0.0]))
    with pytest.raises(LimitError, match="velocity limit is unknown"):
        bidirectional_experiment(replace(limits, velocity=np.full(3, np.inf)))


def test_the_threshold_is_found_where_there_is_one() -> None:
    """Friction that is constant up to a speed and steep beyond; noise-free points of Liu 2023's own law."""
    speed = np.geomspace(0.03, 1.5, 10)
    odd = 4.0 + np.where(speed > 0.25, 3.0 * speed - 0.8 * speed**2 + 0.9 * speed**3, 0.0)
    curve = fit_friction(FrictionPoints("j1", speed, odd, 0.1 * odd, 0 * odd, (0.0, 0.0)))
    below, above = speed[speed < 0.25][-1], speed[speed > 0.25][0]
    assert below < curve.law.threshold < above
    assert curve.torque(np.array([0.1, 1.0])) == pytest.approx(1.1 * np.array([4.0, 7.1]), rel=0.01)
