"""Friction around reversals that the checks of delays and small faults leave free: of the whole motion, low-passed."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import Recording, Robot
from urdf_ident.faults.friction import reversal_columns
from urdf_ident.faults.motion_samples import MotionSamples, sampler
from urdf_ident.faults.thinned_logs import Logs
from urdf_ident.linalg import Array, lstsq, rms
from urdf_ident.parallel import workers
from urdf_ident.signals.condition import condition
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.filters import lowpass

ARM = Robot.from_urdf(arm_urdf("zyyx"))


def bristles(q: Array, travel: float) -> Array:
    """Dahl's friction (1968) of first order over its limit, of a joint that starts from rest, shape (N,)."""
    state, out = 0.0, np.empty(len(q))
    for k, step in enumerate(np.diff(q, prepend=q[0])):
        out[k] = state = np.sign(step) + (state - np.sign(step)) * np.exp(-abs(step) / travel)
    return out


def log_with_bristles(seed: int, joint: int, travel: float) -> Recording:
    t, q, v, a = fourier(ARM.n, 20.0, 100.0, seed)
    tau, rng = torques(ARM, Truth.of(ARM.n), q, v, a), np.random.default_rng(seed)
    tau[:, joint] += (3.0, 6.0, 2.5, 0.8)[joint] * bristles(q[:, joint], travel)  # about half of its torque
    tau += 0.01 * tau.std(axis=0) * rng.standard_normal(tau.shape)
    return Recording(f"log{seed}", ARM.joints, t, q, effort=tau)


def conditioned(recording: Recording) -> Logs:
    made = condition(recording, ARM, SignalConfig())
    return [(made.segments, made.cutoff)]


def samples_of(logs: Logs, reduction: Array | None = None) -> MotionSamples:
    sampled = sampler(logs, reduction=reduction)
    assert sampled is not None
    return sampled(0.0)


def test_presliding_within_the_steps_of_the_samples_is_among_the_columns() -> None:
    """Samples are 40 ms apart, in which a joint leaves such a travel; the efforts are seen behind the low-pass."""
    logs = conditioned(log_with_bristles(0, 1, 1.0))
    ((part,), cutoff), motion = logs[0], samples_of(logs)
    step = round(float(np.median(np.diff(motion.time))) * part.rate)
    assert step >= 4
    states = lowpass(bristles(part.q[:, 1], 1e-3 * np.ptp(part.q[:, 1])), part.rate, cutoff)
    friction, columns = states[::step], np.column_stack([reversal_columns(motion, [1])[0], motion.v[:, 1]])
    left = friction - columns @ lstsq(columns, friction)[0]
    assert rms(left[5:]) < 0.01  # the first state is not known


def test_workers_compute_the_columns_of_each_log_bitwise_as_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their scales are those of all logs, and the state of presliding begins anew in each log."""
    logs = [log for seed in (1, 2, 3) for log in conditioned(log_with_bristles(seed, 1, 1.0))]
    joints = range(ARM.n)
    alone = reversal_columns(samples_of(logs), joints)
    turned = reversal_columns(samples_of(logs[::-1]), joints)
    log = samples_of(logs).log
    for x, y in zip(alone, turned, strict=True):
        assert x[log == 2] == pytest.approx(y[samples_of(logs[::-1]).log == 0])
    with workers(2):
        motion = samples_of(logs)
        assert all(np.array_equal(x, y) for x, y in zip(reversal_columns(motion, joints), alone, strict=True))
