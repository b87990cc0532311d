"""Oscillations of one effort in time: what a model leaves unexplained of it is at one frequency, and no motion is."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import Drive, Judgement, Recording, Robot
from urdf_ident.linalg import Array
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.signals.config import SignalConfig

ARM = Robot.from_urdf(arm_urdf("zyyx"))
HERTZ = np.array([0.31, 0.43, 0.57, 0.71])


def sines() -> tuple[Array, Array, Array, Array]:
    """Every joint at one frequency of its own, t, q, v and a."""
    t = np.arange(0, 20.0, 0.01)
    w = 2 * np.pi * HERTZ
    q, v = np.sin(w * t[:, None]), w * np.cos(w * t[:, None])
    return t, q, v, -(w**2) * q


def log_of(motion: tuple[Array, Array, Array, Array], error: Array, name: str = "log") -> Recording:
    """A log with an error of the efforts, relative to their standard deviations, shape (N, n)."""
    t, q, v, a = motion
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    rng = np.random.default_rng(1)
    tau += tau.std(axis=0) * (error + 0.01 * rng.standard_normal(tau.shape))
    return Recording(name, ARM.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau)


def warnings(*logs: Recording) -> list[list[Judgement]]:
    reports = examine_logs(logs, ARM, Drive.build(ARM.n), SignalConfig())
    return [[item for item in report.findings if item.severity != "info"] for report in reports]


def test_an_effort_that_oscillates_in_all_logs_is_named_and_nothing_else() -> None:
    """As slow as the motion it left a good model with 1.6 times the error, or looked like drift, contact or a payload."""
    logs, hertz = [], 0.53
    for seed in (1, 2):
        motion = fourier(ARM.n, 10.0, 100.0, seed)
        wave = np.sin(2 * np.pi * hertz * motion[0] + seed)
        logs.append(log_of(motion, 0.5 * np.outer(wave, np.arange(ARM.n) == 2), f"log{seed}"))
    for found in warnings(*logs):
        assert [item.id for item in found] == ["effort-periodic"]
        assert found[0].joint == ARM.joints[2]
        assert found[0].size == pytest.approx(hertz, abs=0.01)


def test_an_oscillation_that_the_low_pass_weakens_is_named_once() -> None:
    """As weak as the low-pass leaves it, it was taken out in several steps, each with a finding of its own."""
    hertz, size = 1.5, 3.0
    t, q, v, a = fourier(ARM.n, 8.0, 60.0, 3)
    motion = 3 * t, q, v / 3, a / 9
    wave = size * np.outer(np.sin(2 * np.pi * hertz * motion[0]), np.arange(ARM.n) == 2)
    (found,) = warnings(log_of(motion, wave))
    assert [item.id for item in found] == ["effort-periodic"]
    assert found[0].size == pytest.approx(hertz, abs=0.01)


def test_a_log_whose_joints_follow_one_curve_does_not_hide_an_oscillation() -> None:
    """Such a log cannot be examined, and no other log was searched for oscillations beside it."""
    motion, w = fourier(ARM.n, 10.0, 100.0, 1), 2 * np.pi * 0.3
    t = motion[0]
    line = np.outer(np.sin(w * t), [0.8, 0.5, -0.6, 0.4])
    curve = t, line, np.gradient(line, t, axis=0), -(w**2) * line
    wave = 0.5 * np.outer(np.sin(2 * np.pi * 0.73 * t), np.arange(ARM.n) == 2)
    found, unknown = warnings(log_of(motion, wave), log_of(curve, wave, "curve"))
    assert [item.id for item in found] == ["effort-periodic"]
    assert not unknown


def test_an_oscillation_is_named_in_the_logs_that_contain_it() -> None:
    """A log without it was accused as well."""
    motions = [fourier(ARM.n, 10.0, 100.0, seed) for seed in (1, 2)]
    wave = 0.5 * np.outer(np.sin(2 * np.pi * 0.73 * motions[0][0]), np.arange(ARM.n) == 2)
    found, clean = warnings(log_of(motions[0], wave), log_of(motions[1], 0 * wave, "clean"))
    assert [item.id for item in found] == ["effort-periodic"]
    assert not clean


def test_friction_that_the_model_lacks_is_no_oscillation_even_where_every_joint_moves_at_one_frequency() -> None:
    """It has lines at odd multiples of that frequency, at which no joint moves."""
    motion = sines()
    stribeck = np.tanh(10 * motion[2]) * np.exp(-((motion[2] / 0.5) ** 2))
    assert "effort-periodic" not in {item.id for item in warnings(log_of(motion, stribeck))[0]}
