"""Standard errors: against statsmodels where it has them, against simulated noise of known colour, against real logs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from estimation_samples import as_log, coloured, stacked
from motion_samples import make_segment, robot_3r, truth
from real_ur10e import constants_given, read_logs

from urdf_ident import BaseParameters, DynamicModel, Robot, robot_path
from urdf_ident.errors import EstimationError
from urdf_ident.estimation.uncertainty.covariance import KINDS, with_covariance
from urdf_ident.estimation.uncertainty.noise import BandedRows, banded_rows, fit_noise
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.least_squares import solve
from urdf_ident.statistics.statistic import StatisticSet

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def log(model: DynamicModel) -> PreparedLog:
    return as_log(make_segment(model, 800, rate=40.0, sigma=np.array([0.5, 0.01, 0.002]), seed=4))


@pytest.fixture(scope="module")
def statistics(model: DynamicModel, log: PreparedLog) -> StatisticSet:
    return build_statistics(model, [log])


@pytest.fixture(scope="module")
def fit(statistics: StatisticSet, base: BaseParameters) -> Fit:
    return fit_base(statistics, base)


@pytest.mark.parametrize("method", ["ols", "wls"])
def test_newey_west_is_that_of_statsmodels(model, base, log, statistics, method: str) -> None:
    fit = fit_base(statistics, base, method=method)
    X, y = stacked(model, base, log)
    weights = np.repeat([fit.row_weights[group] ** 2 for group in statistics.groups], 800)
    reference = sm.WLS(y, X, weights=weights).fit(method="qr")
    groups = np.repeat(np.arange(3), 800)
    lags = int(4 * (800 / 100) ** (2 / 9))
    options = {"groups": groups, "maxlags": lags, "use_correction": False}
    expected = reference.get_robustcov_results("hac-panel", **options).cov_params()
    found = with_covariance(fit, statistics, "hac", model=model, logs=[log])
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found.covariance / scale, expected / scale, atol=1e-9, rtol=0)
    np.testing.assert_array_equal(found.params, fit.params)


def in_bands(model, logs, statistics, fit) -> BandedRows:
    return banded_rows(model, logs, fit, solve(statistics.stacked(fit.row_weights, fit.base.independent), fit.rows))


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.98])
def test_noise_model_finds_size_and_memory(model, base, rho: float) -> None:
    clean = make_segment(model, 4000, rate=100.0)
    log = as_log(coloured(clean, 0.1, rho, seed=1))
    statistics = build_statistics(model, [log])
    fit = fit_base(statistics, base)
    rows = in_bands(model, [log], statistics, fit)
    noise = fit_noise(rows)
    level = np.sqrt(np.average(noise.power, axis=1, weights=rows.count))
    mix = np.linalg.norm(model.drive.row_mix, axis=1)
    assert noise.coloured == (rho > 0)
    if rho > 0:
        np.testing.assert_allclose(level / mix, 0.1, rtol=0.35)
        memory = -1 / (100.0 * np.log(rho))
        assert (noise.memory / memory < 2.5).all()
        assert (noise.memory / memory > 0.4).all()
    else:
        np.testing.assert_allclose(level / mix, 0.1, rtol=0.05)


def test_jackknife_is_refitting_without_each_stretch(statistics, base, fit) -> None:
    """The shortcut in the solution's coordinates against plain refits of what is left."""
    given = with_covariance(fit, statistics, "jackknife")
    weights = fit.row_weights
    refits = [
        fit_base(statistics.select(lambda entry, k=k: entry.block // 2 != k), base, weights=weights).params for k in range(16)
    ]
    moves = np.array(refits) - fit.params
    np.testing.assert_allclose(
        given.covariance, 15 / 16 * moves.T @ moves, rtol=1e-6, atol=1e-9 * np.abs(given.covariance).max()
    )
    assert (given.error_dof == 15).all()


def test_errors_between_logs_are_refits_without_each(model, base) -> None:
    logs = [as_log(make_segment(model, 300, rate=40.0, sigma=0.1, seed=k, log=f"log {k}")) for k in range(4)]
    statistics = build_statistics(model, logs)
    fit = fit_base(statistics, base)
    moves = [
        fit_base(statistics.without([name]), base, weights=fit.row_weights).params - fit.params for name in statistics.logs
    ]
    expected = 3 / 4 * np.array(moves).T @ np.array(moves)
    found = with_covariance(fit, statistics, "log")
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    with pytest.raises(EstimationError, match="several logs"):
        with_covariance(fit, statistics.only("log 0"), "log")


def test_logs_that_disagree_enlarge_the_errors(model, base) -> None:
    """Friction that changes from log to log: within a log nobody sees it."""
    logs = []
    for k in range(6):
        part = make_segment(model, 400, rate=40.0, sigma=0.02, seed=k, log=f"log {k}")
        offset = np.random.default_rng(k).normal(size=3) * 5.0 * np.sign(part.v)
        logs.append(as_log(replace(part, tau=part.tau + offset)))
    statistics = build_statistics(model, logs)
    fit = fit_base(statistics, base)
    found = with_covariance(fit, statistics, model=model, logs=logs)
    assert "because 6 logs disagree" in found.covariance_kind
    friction = [k for k, label in enumerate(base.labels) if label.startswith("Fc")]
    error = np.abs(found.params - base.of(truth(model)))[friction]
    assert (error < 4 * found.bse[friction]).all()
    assert (found.bse > fit.bse).all()


def test_scatter_between_periods_needs_periods(model, log, statistics, fit) -> None:
    with pytest.raises(EstimationError, match="does not repeat"):
        with_covariance(fit, statistics, "period", model=model, logs=[log])


def test_unknown_kind_and_missing_rows_say_what_to_do(statistics, fit) -> None:
    with pytest.raises(EstimationError, match="did you mean 'jackknife'"):
        with_covariance(fit, statistics, "jacknife")
    with pytest.raises(EstimationError, match="give model and logs"):
        with_covariance(fit, statistics, "hac")
    assert set(KINDS) >= {"auto", "model", "ar", "jackknife", "log", "period"}


@pytest.fixture(scope="module")
def ur10e(data: Path) -> tuple[DynamicModel, list[PreparedLog]]:
    project = constants_given()
    model, recordings = read_logs(data, project)
    return model, prepare_logs(recordings, model.robot, model.drive, project.signal_config())


def test_errors_predicted_from_one_real_log_are_the_scatter_between_logs(ur10e) -> None:
    model, logs = ur10e
    base, statistics = model.base(), build_statistics(model, logs)
    estimates, predicted, textbook = [], [], []
    for log in logs:
        part = statistics.only(log.name)
        fit = fit_base(part, base)
        found = with_covariance(fit, part, model=model, logs=[log])
        estimates.append(fit.params)
        predicted.append(found.bse)
        textbook.append(fit.bse)
    scatter = np.std(estimates, axis=0, ddof=1)
    ratio, plain = (scatter / np.sqrt(np.mean(np.square(errors), axis=0)) for errors in (predicted, textbook))
    assert 0.5 < np.median(ratio) <= 1.5
    assert np.percentile(ratio, 90) < 2.2
    assert np.median(plain) > 2.0


def dry(model: DynamicModel, seed: int, *, breakaway: float) -> PreparedLog:
    """A motion with friction that rises below 0.05 rad/s by a share of itself: the model knows nothing of that."""
    clean = make_segment(model, 2000, seed=5)
    level = np.array([truth(model)[model.names.index(f"Fc_{joint}")] for joint in model.robot.joints])
    extra = breakaway * level * np.sign(clean.v) * np.exp(-((clean.v / 0.15) ** 2))
    noise = 0.05 * np.random.default_rng(seed).normal(size=clean.q.shape)
    return as_log(replace(clean, tau=clean.tau + extra + noise))


@pytest.mark.parametrize("breakaway", [0.0, 0.3])
def test_friction_that_the_model_lacks_at_reversals_is_counted_as_an_error(breakaway: float) -> None:
    model = DynamicModel(robot_3r(), friction=["viscous", "coulomb", "offset"])
    base = model.base()
    true = base.of(truth(model))
    rows = [k for k, label in enumerate(base.labels) if label[:3] in ("Fc_", "Fv_")]
    held: dict[str, list[np.ndarray]] = {"jackknife": [], "auto": []}
    for seed in range(8):
        log = dry(model, seed, breakaway=breakaway)
        statistics = build_statistics(model, [log])
        fit = fit_base(statistics, base)
        for kind in held:
            found = with_covariance(fit, statistics, kind, model=model, logs=[log])
            low, high = found.conf_int().T
            held[kind].append(((low <= true) & (true <= high))[rows])
        assert ("fails near reversals" in found.covariance_kind) == (breakaway > 0)
        assert np.linalg.eigvalsh(found.covariance).min() > -1e-12 * np.linalg.eigvalsh(found.covariance).max()
    if breakaway:
        assert np.mean(held["jackknife"], axis=0).min() < 0.3  # it never scatters
    assert np.mean(held["auto"], axis=0).min() >= 0.6


def test_the_bootstrap_of_one_parameter_has_the_error_of_least_squares() -> None:
    """A level slide without friction: its mass is all that is seen."""
    model = DynamicModel(Robot.from_urdf(robot_path("emps")), friction=[], rotor_inertia=False)
    statistics = build_statistics(model, [as_log(make_segment(model, 4000, sigma=0.1))])
    fit = fit_base(statistics, model.base())
    assert len(fit.params) == 1
    assert with_covariance(fit, statistics, "bootstrap").bse == pytest.approx(fit.bse, rel=0.5)
