"""Changes along logs: what a few motions of one joint cannot show, and oscillations of one effort in time."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, found_in, fourier, recorded, torques

from urdf_ident import Judgement, Recording, Robot
from urdf_ident.linalg import Array

ARM, SIX = Robot.from_urdf(arm_urdf("zyyx")), Robot.from_urdf(arm_urdf("zyyxyx"))
Motion = tuple[Array, Array, Array, Array]


def log_of(motion: Motion, error: Array | float = 0.0, robot: Robot = ARM) -> Recording:
    """A log with an error of the efforts, relative to their standard deviations, shape (N, n)."""
    t, q, v, a = motion
    tau = torques(robot, Truth.of(robot.n), q, v, a)
    return recorded(robot, t, q, tau + tau.std(axis=0) * error, noise=0.01, seed=1)


def three_logs() -> list[Recording]:
    return [replace(log_of(fourier(SIX.n, 20.0, 100.0, k), robot=SIX), name=f"log{k}") for k in range(3)]


def doubts(logs: list[Recording]) -> list[list[Judgement]]:
    return found_in(*logs, robot=SIX)


def test_a_scale_of_all_efforts_that_grows_from_log_to_log_is_a_drift() -> None:
    """It was told as a saturation of one log: no log differs from the others by 5 %, the last from the first by 5.6 %."""
    sound = three_logs()
    assert doubts(sound) == [[], [], []]
    for first, *_ in doubts([replace(log, effort=(1 - 0.028 * k) * log.effort) for k, log in enumerate(sound)]):
        assert first.id == "effort-drift"
        assert "from the first log to the last" in first.message


def test_a_clock_of_one_log_that_runs_at_another_rate_is_named_with_it() -> None:
    """4 % in one of three logs left a GOOD model with 1.7 times the error."""
    first, second, third = three_logs()
    found = doubts([first, replace(second, time=0.96 * second.time), third])
    assert [[item.id for item in own] for own in found] == [[], ["time-scale"], []]
    assert found[1][0].size == pytest.approx(1 / 0.96, abs=0.01)


def test_a_log_that_cannot_be_conditioned_is_told_and_the_others_are_examined_without_it() -> None:
    logs = [replace(log, velocity=np.gradient(log.position, log.time, axis=0)) for log in three_logs()]
    first, (refused,), third = found_in(logs[0], replace(logs[1], velocity=None), logs[2], robot=SIX, velocity="logged")
    assert (refused.id, refused.severity, refused.message) == ("not-usable", "refused", "the log has no velocities")
    assert [first, third] == found_in(logs[0], logs[2], robot=SIX, velocity="logged")


# ---- oscillations: what a model leaves unexplained of an effort is at one frequency, and no motion is ----


def wave(t: Array, hertz: float, size: float = 0.5, phase: float = 0.0) -> Array:
    """An oscillation of the third effort, shape (N, 4)."""
    return np.outer(size * np.sin(2 * np.pi * hertz * t + phase), np.arange(ARM.n) == 2)


def ids(*logs: Recording) -> list[list[str]]:
    return [[item.id for item in own] for own in found_in(*logs, robot=ARM)]


def test_an_effort_that_oscillates_in_all_logs_is_named_and_nothing_else() -> None:
    """As slow as the motion it left a good model with 1.6 times the error, or looked like drift, contact or a payload."""
    motions = {seed: fourier(ARM.n, 10.0, 100.0, seed) for seed in (1, 2)}
    for (found,) in found_in(*(log_of(some, wave(some[0], 0.53, phase=k)) for k, some in motions.items()), robot=ARM):
        assert (found.id, found.joint, found.size) == ("effort-periodic", ARM.joints[2], pytest.approx(0.53, abs=0.01))


def test_an_oscillation_that_the_low_pass_weakens_is_named_once() -> None:
    """As weak as the low-pass leaves it, it was taken out in several steps, each with a finding of its own."""
    t, q, v, a = fourier(ARM.n, 8.0, 60.0, 3)
    ((found,),) = found_in(log_of((3 * t, q, v / 3, a / 9), wave(3 * t, 1.5, 3.0)), robot=ARM)
    assert (found.id, found.size) == ("effort-periodic", pytest.approx(1.5, abs=0.01))


def test_an_oscillation_is_named_in_the_logs_that_contain_it() -> None:
    """A log without it was accused as well."""
    first, second = (fourier(ARM.n, 10.0, 100.0, seed) for seed in (1, 2))
    assert ids(log_of(first, wave(first[0], 0.73)), log_of(second)) == [["effort-periodic"], []]


def test_a_log_whose_joints_follow_one_curve_does_not_hide_an_oscillation() -> None:
    """Such a log cannot be examined, and no other log was searched for oscillations beside it."""
    motion, w = fourier(ARM.n, 10.0, 100.0, 1), 2 * np.pi * 0.3
    t = motion[0]
    line = np.outer(np.sin(w * t), [0.8, 0.5, -0.6, 0.4])
    curve = t, line, np.gradient(line, t, axis=0), -(w**2) * line
    assert ids(log_of(motion, wave(t, 0.73)), log_of(curve, wave(t, 0.73))) == [["effort-periodic"], []]


def test_friction_that_the_model_lacks_is_no_oscillation_even_where_every_joint_moves_at_one_frequency() -> None:
    """It has lines at odd multiples of that frequency, at which no joint moves."""
    t, w = np.arange(0, 20.0, 0.01), 2 * np.pi * np.array([0.31, 0.43, 0.57, 0.71])
    q, v = np.sin(w * t[:, None]), w * np.cos(w * t[:, None])
    stribeck = np.tanh(10 * v) * np.exp(-((v / 0.5) ** 2))
    assert "effort-periodic" not in ids(log_of((t, q, v, -(w**2) * q), stribeck))[0]
