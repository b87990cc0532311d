"""Sound logs whose friction the laws of the checks do not describe: neither contact nor drift nor a fault of resting joints."""

from __future__ import annotations

import numpy as np
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import Drive, Recording, Robot
from urdf_ident.faults.interpretation import Interpretation
from urdf_ident.faults.trials import LogGroup
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.signals.condition import condition
from urdf_ident.signals.config import SignalConfig

ARM = Robot.from_urdf(arm_urdf("zyyx"))


def moves_with_sticking_friction(seed: int, moving: int = ARM.n) -> Recording:
    """Six moves between poses; each friction reverses over 0.05 rad of travel (Dahl 1968) and is as large as the effort.

    Args:
        moving: Number of joints that move; the others rest.
    """
    rng, step = np.random.default_rng(seed), 0.005
    q = rng.uniform(-1, 1, ARM.n)[None]
    for _ in range(6):
        new, seconds = rng.uniform(-1, 1, ARM.n), float(rng.uniform(1.2, 2.5))
        new[moving:] = q[-1, moving:]
        x = (np.arange(0, seconds, step) / seconds)[:, None]
        rest = np.tile(new, (60, 1))
        q = np.vstack([q, q[-1] + (new - q[-1]) * x**3 * (10 - 15 * x + 6 * x**2), rest])
    q = q[1:]
    v = np.gradient(q, step, axis=0)
    tau = torques(ARM, Truth.of(ARM.n), q, v, np.gradient(v, step, axis=0))
    size, state, sticking = tau.std(axis=0), np.zeros(ARM.n), np.empty_like(q)
    for k, way in enumerate(np.diff(q, axis=0, prepend=q[:1])):
        state = np.sign(way) + (state - np.sign(way)) * np.exp(-np.abs(way) / 0.05)
        sticking[k] = state
    noise = rng.standard_normal((2, *q.shape))
    return Recording(
        "log", ARM.joints, np.arange(len(q)) * step, q + 1e-5 * noise[0], effort=tau + size * (sticking + 0.01 * noise[1])
    )


def test_friction_that_reverses_over_some_travel_is_neither_contact_nor_drift() -> None:
    (report,) = examine_logs([moves_with_sticking_friction(0)], ARM, Drive.build(ARM.n), SignalConfig())
    assert [item.id for item in report.findings if item.severity != "info" and item.id in ("contact", "effort-drift")] == []


def test_a_joint_that_creeps_within_its_friction_is_no_evidence() -> None:
    """In the second log the last joint moves by 5 mrad, and holds whatever torque its friction lets it."""
    logs = []
    for k, travel in enumerate((1.0, 0.005)):
        t, q, v, a = fourier(ARM.n, 12.0, 100.0, k)
        q[:, 3], v[:, 3], a[:, 3] = travel * np.sin(2 * t), 2 * travel * np.cos(2 * t), -4 * travel * np.sin(2 * t)
        tau = torques(ARM, Truth.of(ARM.n), q, v, a)
        made = condition(Recording(f"log{k}", ARM.joints, t, q, effort=tau), ARM)
        logs.append((made.segments, made.cutoff))
    both, alone = LogGroup(ARM, logs).trials(), LogGroup(ARM, logs[1:]).trials()
    assert both is not None
    assert alone is not None
    samples = both.samples
    assert samples.moves.all()
    assert samples.glides[samples.log == 0, 3].mean() > 0.9
    assert not samples.glides[samples.log == 1, 3].any()
    assert samples.glides[samples.log == 1, :3].mean() > 0.9
    assert alone.moves.tolist() == [True, True, True, False]
    assert not alone.evidence(Interpretation.as_logged(ARM.n)).regression.gram[:, 3].any()
