"""Friction that grows with the load, as the tests of logs against physics fit it, against that of a simulated arm."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import arm_urdf, rnea
from logs import Truth, fourier, torques

from urdf_ident.faults.load_friction import LoadedFit
from urdf_ident.faults.log_group import LogGroup
from urdf_ident.linalg import rms
from urdf_ident.logs.recording import Recording
from urdf_ident.model.drive import Drive
from urdf_ident.model.robot import Robot
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs

ARM = Robot.from_urdf(arm_urdf("zyyx"))


@pytest.mark.parametrize("seed", [6, 7])
def test_friction_per_load_is_found_with_the_bodies(seed: int) -> None:
    t, q, v, a = fourier(ARM.n, 8.0, 200.0, seed)
    rng = np.random.default_rng(seed)
    drag = 0.3 * np.abs(rnea(ARM.model, ARM.configuration(q), v, a)) * np.tanh(v / 0.01)
    effort = torques(ARM, Truth.of(ARM.n), q, v, a) + drag
    log = Recording("log", ARM.joints, t, q, effort=effort * (1 + 0.005 * rng.standard_normal(q.shape)))
    (ready,) = prepare_logs([log], ARM, Drive.build(ARM.n), SignalConfig(), force=True)
    case = LogGroup(ARM, [(ready.segments, 10.0)]).case()
    assert case is not None
    samples, fit = case.sampled(0.0), LoadedFit.of(case)
    true = 0.3 * np.abs(rnea(ARM.model, ARM.configuration(samples.q), samples.v, samples.a)) * np.tanh(samples.v / 0.01)
    wrong = rms((fit.load_friction - true) * samples.glides, 0) / rms(true * samples.glides, 0)
    assert wrong.max() < 0.25
