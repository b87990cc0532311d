"""Limits: what is broken is named, also between the samples; unknown limits are asked for."""

import numpy as np
import pytest
from conftest import arm_urdf, rnea

from urdf_ident import Robot, robot_path
from urdf_ident.errors import LimitError
from urdf_ident.motion.fourier import FourierTrajectory
from urdf_ident.motion.limits import Limits, check_limits, prior_torque

ROBOT = Robot.from_urdf(robot_path("generic_6axis"))


def wave(joint: int, amplitude: float, period: float = 4.0) -> FourierTrajectory:
    """One joint on a sine of that position amplitude."""
    a = np.zeros((6, 1))
    a[joint] = amplitude * 2 * np.pi / period
    return FourierTrajectory(ROBOT.joints, period, np.zeros(6), a, np.zeros((6, 1)))


@pytest.mark.parametrize(
    ("joint", "amplitude", "period", "quantity", "time"),
    [(2, 1.2, 20.0, "position", 5.0), (1, 1.0, 4.0, "velocity", 0.0), (0, 0.3, 2.0, "acceleration", 0.5)],
)
def test_the_broken_limit_is_named(joint: int, amplitude: float, period: float, quantity: str, time: float) -> None:
    limits = Limits.from_robot(ROBOT, acceleration=np.deg2rad(120))
    report = check_limits(wave(joint, amplitude, period), limits)
    assert not report.feasible
    worst = report.worst
    assert worst is not None
    assert (worst.joint, worst.quantity) == (ROBOT.joints[joint], quantity)
    assert min(abs(worst.time - time - k * period / 2) for k in range(3)) < 2e-3
    with pytest.raises(LimitError, match=rf"joint_{joint + 1}.*t = .*leaves the {quantity} limit.*got.*expected") as error:
        report.require()
    assert f"{abs(worst.limit):.5g}"[:4] in str(error.value)


def test_margins_are_right_and_hold_between_samples() -> None:
    limits = Limits.from_robot(ROBOT, acceleration=np.deg2rad(120))
    exact = {"position": 0.5, "velocity": 0.5 * np.pi / 2, "acceleration": 0.5 * np.pi**2 / 4}
    for rate in (1000.0, 7.3):  # a coarse grid misses the peak, its allowance must make up for that
        report = check_limits(wave(3, 0.5), limits, rate=rate)
        for quantity, peak in exact.items():
            (margin,) = (m for m in report.margins if (m.joint, m.quantity) == ("joint_4", quantity))
            assert abs(margin.value) + margin.allowance >= peak * (1 - 1e-12)
            assert margin.certified
            assert margin.margin == pytest.approx(abs(margin.limit) - abs(margin.value) - margin.allowance)
        if rate == 1000.0:
            assert report.feasible
            assert margin.margin == pytest.approx(np.deg2rad(120) - peak, abs=1e-4)


def test_torque_is_that_of_the_prior_model() -> None:
    trajectory = wave(1, 0.5)
    limits = Limits.from_robot(ROBOT)
    report = check_limits(trajectory, limits, torque=prior_torque(ROBOT))
    time = np.linspace(0, 4, 4001)
    tau = rnea(ROBOT.model, *trajectory.evaluate(time))
    (margin,) = (m for m in report.margins if (m.joint, m.quantity) == ("joint_2", "torque"))
    assert abs(margin.value) == pytest.approx(np.abs(tau[:, 1]).max())
    assert not margin.certified
    assert margin.unit == "N·m"
    weak = Limits.from_robot(ROBOT, torque=0.9 * np.abs(tau[:, 1]).max())
    with pytest.raises(LimitError, match="leaves the torque limit"):
        check_limits(trajectory, weak, torque=prior_torque(ROBOT)).require()


def test_unknown_limits_are_asked_for() -> None:
    text = ROBOT.urdf.replace('velocity="1.0471975511966"', 'velocity="0"', 1)
    limits = Limits.from_robot(Robot.from_urdf(text))
    limits.require("position")
    with pytest.raises(LimitError, match=r"velocity limit is unknown.*state it in the URDF"):
        limits.require("velocity")
    with pytest.raises(LimitError, match=r"`excitation: \{limits: \{velocity: \{joint_2: …\}\}\}`.*or lock joints"):
        limits.require("velocity")
    with pytest.raises(LimitError, match="acceleration limit is unknown"):
        Limits.from_robot(ROBOT).require("acceleration")
    first, *_, last = (f"'{joint}'" for joint in ROBOT.joints)
    with pytest.raises(LimitError, match=f"velocity of 'joint_2'; acceleration of {first}, .*, {last}: limits are unknown"):
        limits.require("position", "velocity", "acceleration")


def test_a_continuous_joint_needs_no_position_limit() -> None:
    text = ROBOT.urdf.replace('name="joint_6" type="revolute"', 'name="joint_6" type="continuous"')
    limits = Limits.from_robot(Robot.from_urdf(text))
    limits.require("position")
    assert limits.upper[5] == np.inf
    many_turns = wave(5, 40.0, 400.0)
    assert all(m.joint != "joint_6" for m in check_limits(many_turns, limits).margins if m.quantity == "position")


def test_other_joints_are_refused() -> None:
    other = FourierTrajectory(("x",), 1.0, np.zeros(1), np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(LimitError, match="different joints"):
        check_limits(other, Limits.from_robot(ROBOT))


@pytest.mark.parametrize("kind", ["velocity", "acceleration", "torque"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_a_limit_that_allows_nothing_is_refused_by_name(kind: str, value: float) -> None:
    """A torque limit of 0 divided by it, and each ended as "every pose is too close to something" where a world was given."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    given = np.array([1.0, value, 1.0])
    with pytest.raises(LimitError, match=f"joint 'j2': the {kind} limit leaves no room"):
        Limits.from_robot(robot, **{kind: given})
