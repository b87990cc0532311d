"""A payload that comes and goes between logs is found as a mass, not swallowed as friction."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, rnea
from logs import fourier

from urdf_ident.logs.recording import Recording
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.log_effects.changes import FrictionChanges
from urdf_ident.statistics.log_effects.mixed_model import changes_between_logs, friction_changes

FRICTION = np.array([[3.0, 2.0], [4.0, 2.0], [0.5, 0.6]])  # viscous, Coulomb


def between(masses: list[float], warming: float) -> tuple[FrictionChanges, FrictionChanges]:
    """With and without a look at bodies: logs of an arm that carries these masses, friction less from log to log."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    logs = []
    for k, mass in enumerate(masses):
        loaded = robot.model.copy()
        body = pin.Inertia.FromSphere(max(mass, 1e-9), 0.05).se3Action(pin.SE3(np.eye(3), np.array([0.05, 0.0, 0.1])))
        loaded.inertias[3] = loaded.inertias[3] + body
        t, q, v, a = fourier(3, 15.0, 100.0, k)
        tau = rnea(loaded, q, v, a)
        share = 1.0 - warming * k / len(masses)
        tau += share * (FRICTION[:, 0] * v + FRICTION[:, 1] * np.tanh(v / 0.02))
        tau += 0.02 * tau.std(axis=0) * np.random.default_rng(k).standard_normal(tau.shape)
        logs.append(Recording(f"run{k}", robot.joints, t, q, effort=tau, sha256=f"run{k}"))
    model = DynamicModel(robot, friction=["viscous", "coulomb"])
    statistics = build_statistics(model, prepare_logs(logs, robot, model.drive, SignalConfig()))
    fit = fit_base(statistics, model.base())
    return changes_between_logs(model, statistics, fit), friction_changes(model, statistics, fit)


@pytest.fixture(scope="module")
def loaded() -> tuple[FrictionChanges, FrictionChanges]:
    return between([0.0, 2.0, 0.0, 2.0], 0.2)


def test_the_body_is_found_with_its_mass_and_its_logs(loaded: tuple[FrictionChanges, FrictionChanges]) -> None:
    found, _ = loaded
    assert found.carried is not None
    mass = found.carried[:, found.carriers.index("m_l3")]
    assert mass[[1, 3]].mean() - mass[[0, 2]].mean() == pytest.approx(2.0, rel=0.1)
    (note,) = [note for note in found.notes(np.ones(3), np.zeros(3)) if "comes and goes" in note]
    assert note.startswith("run1, run3: about 2 kg more on 'l3' than in run0, run2")


def test_friction_keeps_what_warming_did(loaded: tuple[FrictionChanges, FrictionChanges]) -> None:
    found, swallowed = loaded
    truth = np.outer(0.2 * (1.5 - np.arange(4)) / 4, FRICTION.ravel())  # about the mean of the four logs
    error, without = (np.sqrt(np.mean((x.deviation - truth) ** 2)) for x in (found, swallowed))
    assert error < 0.05
    assert error < 0.6 * without


def test_no_body_is_invented() -> None:
    found, plain = between([0.0, 0.0, 0.0], 0.3)
    assert found.carried is None
    np.testing.assert_array_equal(found.spread, plain.spread)
