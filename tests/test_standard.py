"""The prior's weight: the usual one unless held-out data speak against it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, make_log, torques

from urdf_ident import DynamicModel, Identification, Recording, Robot, identify, read_recording
from urdf_ident.comparison.other_models import compare_simpler_models
from urdf_ident.consistency.first_fit import completed_prior
from urdf_ident.consistency.standard import USUAL_WEIGHT, HeldOut, consistent_parameters
from urdf_ident.model.prior import inertial_prior
from urdf_ident.project import parse_project
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base, usual_weight
from urdf_ident.statistics.folds import chosen, folds_of

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Three logs of a small arm whose URDF is right."""
    folder = tmp_path_factory.mktemp("standard")
    robot = Robot.from_urdf(arm_urdf("zyx"))
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    paths = [make_log(folder / f"log{seed}.csv", robot, seed=seed, seconds=8.0) for seed in range(3)]
    logs = prepare_logs([read_recording(path, robot) for path in paths], robot, model.drive, SignalConfig())
    statistics = build_statistics(model, logs)
    fit = fit_base(statistics, model.base())
    prior = completed_prior(model, inertial_prior(robot), statistics, fit)
    return SimpleNamespace(model=model, statistics=statistics, fit=fit, prior=prior)


@pytest.mark.parametrize(("factor", "reversals", "raised"), [(1.0, 9.0, False), (1.0, 0.0, True), (4.0, 0.0, True)])
def test_large_held_out_errors_raise_the_usual_weight(
    case, monkeypatch: pytest.MonkeyPatch, factor: float, reversals: float, raised: bool
) -> None:
    """Only without reversals, where friction passes for another body and held-out errors do not choose the weight."""
    monkeypatch.setattr(HeldOut, "errors", lambda *_: np.full(5, 1200.0 if reversals == 0 else 0.0))
    theta0 = case.prior.theta0.copy()
    theta0[20:30] *= factor
    prior = replace(case.prior, theta0=theta0)
    found = consistent_parameters(case.statistics, case.fit, prior, case.model.parameters, reversals=reversals).solver
    expected = usual_weight(case.statistics, case.fit, 1200.0 / (1.0 + found["folds"]["variance"]))
    assert expected > 1.2 * usual_weight(case.statistics, case.fit)
    assert found["weight"] == pytest.approx(expected if raised else usual_weight(case.statistics, case.fit))
    assert ("times as large as expected" in found["weight_choice"]) == raised


def test_the_variance_of_held_out_torque_is_that_of_parameters_drawn_from_prior_and_data(case) -> None:
    """Data whose nominal precision is ten times too large, and the estimate of the usual weight, fold by fold."""
    rng, prior = np.random.default_rng(0), case.prior
    entry = consistent_parameters(case.statistics, case.fit, prior, case.model.parameters).solver["folds"]
    split = folds_of(case.statistics)
    drawn = prior.theta0[:, None] + np.linalg.solve(prior.root, rng.standard_normal((len(prior.theta0), 400)))
    squares = []
    for fold in split.logs:
        R = split.left_out(fold).stacked(case.fit.weights)[:, :-1]
        S = split.only(fold).stacked(case.fit.weights)[:, :-1]
        torque = R @ drawn + np.sqrt(USUAL_WEIGHT) * rng.standard_normal((len(R), drawn.shape[1]))
        held = np.sqrt(USUAL_WEIGHT) * prior.root
        stacked = np.vstack([torque, np.repeat((held @ prior.theta0)[:, None], drawn.shape[1], axis=1)])
        estimated = np.linalg.lstsq(np.vstack([R, held]), stacked, rcond=None)[0]
        rows = sum(split.only(fold).rows.values())
        squares.append(np.sum((S @ (estimated - drawn)) ** 2) / rows / drawn.shape[1])
    assert entry["count"] == len(split.logs)
    assert entry["variance"] == pytest.approx(np.mean(squares), rel=0.1)
    squares = []
    use = case.fit.base.independent
    for fold in split.logs:  # least squares without prior and constraints
        R, S = (some.stacked(case.fit.weights) for some in (split.left_out(fold), split.only(fold)))
        x = np.linalg.lstsq(R[:, use], R[:, -1], rcond=None)[0]
        squares.append(np.sum((S[:, use] @ x - S[:, -1]) ** 2) / sum(split.only(fold).rows.values()))
    assert entry["least_squares"] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-6)


def test_the_weight_is_the_factor_by_which_nominal_variances_are_too_small(case) -> None:
    nominal = np.linalg.inv((R := case.statistics.stacked(case.fit.weights, case.fit.base.independent)[:, :-1]).T @ R)
    found = {
        factor: consistent_parameters(
            case.statistics, replace(case.fit, covariance=factor * nominal), case.prior, case.model.parameters
        )
        for factor in (4.0, 400.0)
    }
    assert found[4.0].solver["weight"] == USUAL_WEIGHT
    assert found[400.0].solver["weight"] == pytest.approx(400.0)
    assert "residuals are not independent" in found[400.0].solver["weight_choice"]
    given = consistent_parameters(case.statistics, case.fit, case.prior, case.model.parameters, weight=400.0)
    np.testing.assert_allclose(found[400.0].theta, given.theta, atol=1e-4 * np.abs(given.theta).max())


@pytest.mark.parametrize(("reversals", "least"), [(0.0, 30.0), (1.0, 30.0), (1.5, 0.0)])
def test_joints_that_hardly_turn_back_ask_for_a_larger_weight(case, reversals: float, least: float) -> None:
    """Held-out parts of such a motion miss what the model lacks as little as the rest does."""
    found = consistent_parameters(case.statistics, case.fit, case.prior, case.model.parameters, reversals=reversals)
    assert found.solver["weight"] == max(USUAL_WEIGHT, least)
    assert ("the joints hardly reverse" in found.solver["weight_choice"]) == (least > 0)
    assert {entry["weight"] for entry in found.solver["weights_tried"]} == {USUAL_WEIGHT, max(USUAL_WEIGHT, least)}


def test_rotors_that_the_torque_does_not_contain_are_named(tmp_path: Path) -> None:
    """A log whose torque asks for negative rotor inertia: measured, as it were, behind a gear that lags."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    path = make_log(tmp_path / "log.csv", robot, seconds=12.0, noise=0.01)
    table, header = np.loadtxt(path, delimiter=",", skiprows=1), path.read_text().splitlines()[0]
    q, rate = table[:, 3], 100.0
    table[:, 6] -= 1.5 * np.gradient(np.gradient(q, 1 / rate), 1 / rate)
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.9g")
    logs = prepare_logs([read_recording(path, robot)], robot, model.drive, SignalConfig())
    statistics = build_statistics(model, logs)
    fit = fit_base(statistics, model.base())
    prior = completed_prior(model, inertial_prior(robot), statistics, fit)
    found = consistent_parameters(statistics, fit, prior, model.parameters)
    names = [p.name for p in model.parameters]
    assert found.theta[names.index("Ia_j3")] == pytest.approx(0.0, abs=1e-6)
    assert any("Ia_j3" in note and "rotor_inertia: false" in note for note in found.solver["notes"])


# ---- The choice by folds: what beats the simplest alternative, and what does not ----

SIMPLEST = np.array([[1.2, 30.0], [1.3, 31.0], [1.25, 29.0], [1.2, 30.0]])


def test_a_steady_gain_is_taken_and_one_in_a_single_fold_is_not() -> None:
    once = SIMPLEST.copy()
    once[0] *= 0.1
    assert chosen(np.stack([SIMPLEST, once])) == 0
    assert chosen(np.stack([SIMPLEST, 0.99 * SIMPLEST])) == 1
    assert chosen(np.stack([SIMPLEST, 1.01 * SIMPLEST, 0.9 * SIMPLEST, 0.99 * SIMPLEST])) == 2
    assert chosen(np.stack([0.9 * SIMPLEST, SIMPLEST]), simplest=1) == 0


# ---- Simpler models: their made another way, and what is said where one of them is better ----

SIMPLE = {"model": {"friction": ["viscous", "coulomb", "offset"]}}


def recorded(robot: Robot, seed: int) -> Recording:
    t, q, v, a = fourier(2, 12.0, 100.0, seed)
    tau = torques(robot, Truth.of(2), q, v, a) + 0.05 * np.random.default_rng(seed).standard_normal(q.shape)
    return Recording(f"log{seed}", robot.joints, t, q, effort=tau)


@pytest.fixture(scope="module")
def taken() -> tuple[Identification, tuple]:
    """A result, and the arguments of its comparison."""
    robot = Robot.from_urdf(arm_urdf("zy"))
    project = parse_project(SIMPLE)
    seen = []

    def spy(*arguments: object) -> dict:
        seen.append(arguments)
        return compare_simpler_models(*arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urdf_ident.pipeline.held_out.compare_simpler_models", spy)
        ident = identify(project.build_model(robot), [recorded(robot, k) for k in range(3)], project=project)
    return ident, seen[0]


def test_errors_are_those_of_estimates_without_the_fold(taken: tuple[Identification, tuple]) -> None:
    ident, (_, statistics, exported) = taken
    model, fit, theta0 = ident.model, ident.fit, ident.prior.theta0
    split, errors = folds_of(statistics), ident.simpler_models["rmse"]
    squares: dict[str, list] = {"urdf": [], "least_squares": [], "exported": []}
    for fold in split.logs:
        rest, held = split.left_out(fold), split.only(fold)
        bare = np.where(np.arange(len(theta0)) < model.n_inertial, theta0, 0.0)
        plain = np.zeros(len(theta0))
        used = fit.base.independent
        factor = rest.stacked(fit.weights, used)
        plain[used] = np.linalg.lstsq(factor[:, :-1], factor[:, -1], rcond=None)[0]
        for name, theta in (("urdf", bare), ("least_squares", plain), ("exported", exported[fold])):
            squares[name].append([held.residual_squares(theta, group) / held.weight[group] for group in held.groups])
    for name, values in squares.items():
        np.testing.assert_allclose(errors[name], np.sqrt(np.mean(values, axis=0)), rtol=1e-6)
    assert all(ours < urdf for ours, urdf in zip(errors["exported"], errors["urdf"], strict=True))


def test_a_worse_export_is_told(taken: tuple[Identification, tuple]) -> None:
    ident, (_, statistics, exported) = taken
    bodies = np.arange(len(ident.theta)) < ident.model.n_inertial
    heavy = {fold: theta * np.where(bodies, 1.5, 1.0) for fold, theta in exported.items()}
    limited = replace(ident, solver={**ident.solver, "active": ["l2: mass at its limit"]})
    found = compare_simpler_models(limited, statistics, heavy)
    assert {"least_squares"} <= {entry["model"] for entry in found["worse"]}
    assert "better" in found["text"]
    assert "least squares with simple friction in the mean" in found["text"]
    assert found["text"].endswith("because of the prior or of l2: mass at its limit")
