"""Joints that never moved, or only slowly: nothing is invented for them, whatever noise there is."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import fourier
from test_selection import with_torque

from urdf_ident import DynamicModel, Recording, Robot, identify
from urdf_ident.consistency.first_fit import chi_bar_square_tail, completed_prior, reconciled_prior
from urdf_ident.model.prior import inertial_prior
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

pytestmark = pytest.mark.usefixtures("unexamined")

TRUTH = [{"viscous": 3.0, "coulomb": 2.0}, {"viscous": 4.0, "coulomb": 2.0}, {"viscous": 0.05, "coulomb": 0.1}]


def resting(robot: Robot, noise: float) -> list[Recording]:
    """Two logs in which the last joint stands still; its rotor (0.1 kg·m²) is no part of any torque."""
    motions = []
    for seed in range(2):
        t, q, v, a = fourier(3, 12.0, 100.0, seed)
        q[:, 2], v[:, 2], a[:, 2] = 0.4, 0.0, 0.0
        motions.append((t, q, v, a))
    logs = with_torque(robot, motions, TRUTH, 0.03)
    rng = np.random.default_rng(3)
    shaken = [log.position + noise * rng.standard_normal(log.position.shape) * [0, 0, 1] for log in logs]
    return [replace(log, position=q) for log, q in zip(logs, shaken, strict=True)]


@pytest.mark.parametrize(("logs", "resting"), [(1, False), (2, True)])
def test_a_prior_of_a_rotor_that_every_log_contradicts_is_as_wide_as_the_contradiction(logs: int, resting: bool) -> None:
    """Joint 3 moves in one of several logs only: what looks like its rotor may be friction that this log alone has."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    motions = [fourier(3, 12.0, 100.0, seed) for seed in range(logs)]
    if resting:
        _, q, v, a = motions[-1]
        q[:, 2], v[:, 2], a[:, 2] = 0.4, 0.0, 0.0
    prepared = prepare_logs(with_torque(robot, motions, TRUTH, 0.003), robot, model.drive, SignalConfig())
    statistics = build_statistics(model, prepared)
    fit = fit_base(statistics, model.base())
    prior = completed_prior(model, inertial_prior(robot), statistics, fit)
    assert reconciled_prior(model, prior, statistics, fit) is prior
    at = {name: model.names.index(name) for name in ("Ia_j1", "Ia_j2", "Ia_j3", "Fv_j2")}
    theta0, root = prior.theta0.copy(), prior.root.copy()
    for k in at.values():  # far from the data, and sure of it
        theta0[k], root[k, k] = 5.0, 1e4
    told = reconciled_prior(model, replace(prior, theta0=theta0, root=root), statistics, fit)
    value = dict(zip(model.names, fit.theta(prior.theta0), strict=True))
    assert told.std[at["Ia_j2"]] == pytest.approx(5.0 - value["Ia_j2"])
    assert told.std[at["Ia_j3"]] == pytest.approx(1e-4 if resting else 5.0 - value["Ia_j3"])
    assert told.std[at["Fv_j2"]] == pytest.approx(1e-4)  # friction is not concerned
    assert "j2" in told.notes[-1]
    assert ("j3" in told.notes[-1]) == (not resting)


def test_a_slow_short_log_does_not_end_in_rotors_that_no_drive_has() -> None:
    """Accelerations two hundred times smaller than the judge's, and noise: least squares would take any rotor inertia."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    (t, *motion), pace, size = fourier(3, 15.0, 100.0, 1), 0.3, 0.05
    s = np.arange(400) / 100
    q, v, a = (np.column_stack([np.interp(pace * s, t, x) for x in every.T]) for every in motion)
    logs = with_torque(robot, [(s, size * q, size * pace * v, size * pace**2 * a)], TRUTH, 0.5)
    found = identify(DynamicModel(robot, friction=["viscous", "coulomb", "offset"]), logs)
    t, q, v, a = fourier(3, 8.0, 100.0, 8)
    (log,) = with_torque(robot, [(t, q, v, a)], TRUTH, 0.0)
    errors = [np.asarray(log.effort) - found.model.torque(theta, q, v, a) for theta in (found.theta, found.urdf_theta)]
    exported, urdf = (np.sqrt(np.mean(error**2, axis=0)) for error in errors)
    assert exported.mean() < urdf.mean()
    assert (exported < 2.0 * urdf).all()
    assert (found.theta[[found.model.names.index(f"Ia_j{k}") for k in (1, 2, 3)]] < 0.3).all()


def test_friction_that_the_model_lacks_in_a_slow_log_is_not_taken_for_a_rotor() -> None:
    """Ripple of Coulomb friction along the path: nominal errors would make a rotor of 0.9 kg·m² certain."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    (t, *motion), pace, size = fourier(3, 20.0, 100.0, 0), 0.25, 0.3
    s = np.arange(6000) / 100
    q, v, a = (np.column_stack([np.interp(pace * s, t, x, period=20.0) for x in every.T]) for every in motion)
    q, v, a = size * q, size * pace * v, size * pace**2 * a
    (log,) = with_torque(robot, [(s, q, v, a)], TRUTH, 0.02)
    ripple = 0.3 * np.array([2.0, 2.0, 0.1]) * np.sin(40 * q) * np.tanh(v / 0.01)
    log = replace(log, effort=np.asarray(log.effort) + ripple)
    found = identify(DynamicModel(robot, friction=["viscous", "coulomb", "offset"]), [log])
    assert found.solver["weight"] > 30.0
    value = dict(zip(found.model.names, found.theta, strict=True))
    assert value["Ia_j1"] == pytest.approx(0.1, abs=0.1)
    assert value["Fv_j1"] == pytest.approx(3.0, abs=0.5)


def test_a_rotor_does_not_make_up_for_a_missing_tool_where_joints_hardly_turn_back() -> None:
    """Gravity of a last link 2.5 times as heavy as in the URDF looks like acceleration in one slow swing."""
    urdf = arm_urdf("zyx")
    last = urdf.rindex('mass value="')
    light = urdf[:last] + urdf[last:].replace('mass value="0.8"', 'mass value="0.32"', 1)
    t, *motion = fourier(3, 30.0, 100.0, 1)
    s, pace = np.arange(800) / 100, 0.2
    q, v, a = (pace**k * np.column_stack([np.interp(pace * s, t, x) for x in every.T]) for k, every in enumerate(motion))
    logs = with_torque(Robot.from_urdf(urdf), [(s, q, v, a)], TRUTH, 0.02)
    told, known = (_prior_of(Robot.from_urdf(given), logs) for given in (light, urdf))
    rotor = told.names.index("Ia_j3")
    assert 0 <= told.theta0[rotor] < 0.01  # as of the right URDF (0.004); in proportion to what this one leaves it was 0.019
    assert told.std[rotor] < 1.6 * known.std[rotor]


def test_a_slider_that_only_goes_down_with_less_weight_than_the_urdf_says_is_not_read_the_other_way() -> None:
    """Weight and dry friction are one constant there: what is missing of the weight is no friction that drives."""
    urdf = arm_urdf("zxy", kind="prismatic")
    heavy = Robot.from_urdf(urdf.replace('mass value="0.8"', 'mass value="5"'))
    t, q, v, a = fourier(3, 8.0, 100.0, 1)
    q[:, 0], v[:, 0], a[:, 0] = 0.1 - 0.02 * t, -0.02, 0.0
    logs = with_torque(Robot.from_urdf(urdf), [(t, q, v, a)], TRUTH, 0.01)
    found = identify(DynamicModel(heavy, friction="auto"), logs)
    assert found.verdict.level == "usable"
    said = {reason.id: reason.message for reason in found.verdict.judgements}
    assert "of j1 only the sum of weight and dry friction is known" in said["one-way"]
    assert found.evidence.one_way == found.evidence.lifting == ("j1",)


@dataclass(frozen=True)
class _Told:
    """The completed prior of a model with simple laws."""

    names: list[str]
    theta0: np.ndarray
    std: np.ndarray


def _prior_of(robot: Robot, logs: list[Recording]) -> _Told:
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    statistics = build_statistics(model, prepare_logs(logs, model.robot, model.drive, SignalConfig()))
    found = completed_prior(model, inertial_prior(robot), statistics, fit_base(statistics, model.base()))
    return _Told(list(model.names), found.theta0, found.std)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_gains_of_parameters_that_cannot_be_negative(count: int) -> None:
    """Squares of the positive ones among uncorrelated estimates of zero."""
    estimates = np.random.default_rng(count).standard_normal((200_000, count))
    gains = np.sum(np.maximum(estimates, 0.0) ** 2, axis=1)
    for value in (0.5, 3.0, 8.0):
        assert chi_bar_square_tail(value, count) == pytest.approx(np.mean(gains > value), abs=0.004)
