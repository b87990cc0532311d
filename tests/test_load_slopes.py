"""Covariance where friction reads the rigid torque that is itself estimated: against what the converged estimate does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from conftest import arm_urdf, inertials
from logs import fourier
from motion_samples import A, robot_3r

from urdf_ident.estimation.friction_selection.load_slopes import load_response, with_load_slopes
from urdf_ident.estimation.friction_selection.reference_torque import converge
from urdf_ident.logs.recording import Recording
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.prior import inertial_prior
from urdf_ident.model.robot import Robot
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

LAWS = ["viscous", "coulomb", "load_coulomb"]
SIGNALS = SignalConfig(cutoff=5.0, decimate=25.0)


def theta_of(model: DynamicModel) -> np.ndarray:
    inertial = inertials(model.robot)
    at = {"Fv": 2.0, "Fc": 1.0, "Fl": 0.25, "Flm": 0.1, "Ia": 3.0}
    return np.concatenate([inertial, [at[p.symbol] for p in model.parameters[len(inertial) :]]])


def record(model: DynamicModel, seed: int, seconds: float = 12.0) -> Recording:
    theta = theta_of(model)
    t, q, v, a = fourier(model.n, seconds, 100.0, seed)
    tau = model.with_reference(theta[: model.n_inertial]).torque(theta, q, v, a)
    tau = tau + 0.3 * np.random.default_rng(seed).standard_normal(tau.shape)
    return Recording(f"run{seed}", model.robot.joints, t, q, effort=tau, sha256=f"run{seed}")


def prepared(model: DynamicModel, recordings: list[Recording]) -> list[PreparedLog]:
    return prepare_logs(recordings, model.robot, Drive.build(model.n), SIGNALS)


def models() -> dict[str, DynamicModel]:
    motor = {"j3": ["load_coulomb"]}
    coupled = {"drive": Drive.build(3, reduction=A), "motor_friction": motor}
    return {
        "own axes": DynamicModel(Robot.from_urdf(arm_urdf("zyx")), friction=LAWS, rotor_inertia=False),
        "coupled": DynamicModel(robot_3r(), friction=LAWS, rotor_inertia=False, **coupled),
        "rotors": DynamicModel(robot_3r(), friction=LAWS),
    }


def exact(model: DynamicModel, log: PreparedLog, shift: np.ndarray) -> PreparedLog:
    """The log with the model's own torque along its segments, and a little more [N·m]."""
    theta = theta_of(model)
    truth = model.with_reference(theta[: model.n_inertial])
    parts = tuple(replace(s, tau=truth.torque_along(theta, s) + shift[: len(s)]) for s in log.segments)
    return replace(log, conditioned=replace(log.conditioned, segments=parts))


@pytest.mark.parametrize("name", ["own axes", "coupled", "rotors"])
def test_the_settled_estimate_follows_the_data_as_the_response_says(name: str) -> None:
    """Torques are changed a little: what a frozen estimate makes of it, times the response, is what the converged one does."""
    model = models()[name]
    prior = inertial_prior(model.robot) if name == "rotors" else None
    to_the_end = partial(converge, tolerance=1e-11, prior=prior)
    raw = prepared(model, [record(model, seed) for seed in (0, 1)])
    rng = np.random.default_rng(7)
    noise = 1e-4 * rng.standard_normal((1200, model.n))
    logs = [exact(model, log, noise) for log in raw]
    estimate = partial(fit_base, base=model.base(), weights=dict.fromkeys((g.name for g in model.groups), 1e4))
    before = to_the_end(model, partial(build_statistics, logs=logs), estimate)
    response = load_response(before.fit, before.model, logs, prior)
    for _ in range(2):
        shift = noise + 1e-6 * (rng.standard_normal((1, model.n)) + rng.standard_normal((1200, model.n)))
        moved = [exact(model, log, shift) for log in raw]
        frozen = estimate(build_statistics(before.model, moved)).params - before.fit.params
        converged = to_the_end(
            model, partial(build_statistics, logs=moved), estimate, start=before.model.reference_theta
        ).fit.params
        scale = np.sqrt(np.diag(before.fit.covariance))
        follows = converged - before.fit.params
        error = np.abs((follows - response @ frozen) / scale).max()
        little = 1e-3 if prior is None else 5e-3  # second order; the prior weighs each joint by its own noise
        assert error < little * np.abs(frozen / scale).max()
        assert np.abs((follows - frozen) / scale).max() > 100 * error


def test_the_covariance_is_moved_by_the_response() -> None:
    model = models()["own axes"]
    logs = prepared(model, [record(model, 0)])
    found = converge(model, partial(build_statistics, logs=logs), partial(fit_base, base=model.base()))
    fit, response = with_load_slopes(found.fit, found.model, logs), load_response(found.fit, found.model, logs)
    np.testing.assert_allclose(fit.covariance, response @ found.fit.covariance @ response.T)
    assert np.abs(fit.bse / found.fit.bse - 1.0).max() > 0.1
    assert "load of friction" in fit.covariance_kind


def test_nothing_changes_without_load_friction() -> None:
    model = DynamicModel(Robot.from_urdf(arm_urdf("zy")), friction=["viscous"], rotor_inertia=False)
    fit = fit_base(build_statistics(model, logs := prepared(model, [record(model, 0)])), model.base())
    assert with_load_slopes(fit, model, logs) is fit
