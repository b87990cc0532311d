"""Friction around reversals that the checks of delays and small faults leave free: of the whole motion, low-passed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident.faults.friction import reversal_columns
from urdf_ident.faults.interpretation import Interpretation
from urdf_ident.faults.log_group import LogGroup
from urdf_ident.faults.motion_samples import MotionSamples, sampler
from urdf_ident.faults.thinned_logs import Logs
from urdf_ident.faults.trials import Trials
from urdf_ident.linalg import Array, lstsq, rms
from urdf_ident.logs.recording import Recording
from urdf_ident.model.robot import Robot
from urdf_ident.parallel import workers
from urdf_ident.samples import Segment
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


def test_columns_follow_the_interpretation_of_the_positions() -> None:
    logs = conditioned(log_with_bristles(0, 1, 1.0))
    case = LogGroup(ARM, logs).case()
    assert case is not None
    logged = case.samples
    at = Interpretation.as_logged(ARM.n)
    trials = Trials(case)
    moved = trials._moved(
        replace(at, position_order=(0, 2, 1, 3), position_factor=(1.0, 1.0, -0.5, 1.0), zero=(0.3, 0.0, 0.0, 0.0))
    )
    for j, (i, sign) in enumerate(((0, 1.0), (2, 1.0), (1, -1.0), (3, 1.0))):
        assert reversal_columns(moved, [j])[0] == pytest.approx(sign * reversal_columns(logged, [i])[0])
    counted = trials._moved(replace(at, counted=((2, 1, 1.0),)))
    (part,) = logs[0][0]
    apart = part.slice(0, len(part))
    apart = replace(
        apart, q=apart.q - np.outer(apart.q[:, 1], np.eye(ARM.n)[2]), v=apart.v - np.outer(apart.v[:, 1], np.eye(ARM.n)[2])
    )
    assert reversal_columns(counted, [2])[0] == pytest.approx(reversal_columns(samples_of([([apart], logs[0][1])]), [2])[0])
    assert counted.signs[:, 2] == pytest.approx(samples_of([([apart], logs[0][1])]).signs[:, 2], abs=1e-3)


def test_a_motor_of_two_joints_has_columns_of_its_own_motion() -> None:
    A = np.eye(ARM.n)
    A[3, 2] = -1.0
    logs = conditioned(log_with_bristles(0, 1, 1.0))
    motion, (part,) = samples_of(logs, A), logs[0][0]
    turned = replace(part, q=part.q @ A.T, v=part.v @ A.T)
    alone = reversal_columns(samples_of([([turned], logs[0][1])]), [3])[0]
    own = alone.shape[1]
    assert reversal_columns(motion, [3])[0][:, own:] == pytest.approx(alone)
    assert reversal_columns(motion, [2])[0][:, own:] == pytest.approx(-alone)
    assert not reversal_columns(motion, [0])[0][:, own:].any()


def test_the_state_of_presliding_remains_in_a_rest_that_was_cut_out_and_is_new_after_a_gap() -> None:
    (part,), cutoff = conditioned(log_with_bristles(1, 1, 1.0))[0]
    turns = np.flatnonzero(np.diff(np.sign(part.v[:, 1])))
    turn = int(turns[np.argmin(np.abs(turns - len(part) // 2))])

    def states(parts: list[Segment]) -> Array:
        sampled = sampler([(parts, cutoff)], samples=10**6)
        assert sampled is not None
        return reversal_columns(sampled(0.0), [1])[0][:, -4:]

    whole, soon, late = states([part]), turn + 3, turn + 60
    assert np.abs(whole[soon]).min() < 0.5  # on the way from one direction to the other
    rest = states([part.slice(0, soon), part.slice(soon, len(part))])
    assert rest[soon:] == pytest.approx(whole[soon:], abs=0.3)
    gap = states([part.slice(0, turn - 60), part.slice(late, len(part))])
    assert gap[turn - 60 :] == pytest.approx(whole[late:], abs=0.3)


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
