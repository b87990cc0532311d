"""``estimation.method`` end to end, and the estimators behind it against closed forms."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from commands import done
from conftest import arm_urdf
from estimation_samples import as_log, problem_of, stacked, theta_with, with_sign_of
from logs import Truth, fourier, torques, write_csv
from motion_samples import make_segment, robot_3r
from statsmodels.sandbox.regression.gmm import IV2SLS

from urdf_ident import Drive, DynamicModel, ElasticModel, Identification, Robot, identify, load, read_recording
from urdf_ident.errors import EstimationError
from urdf_ident.estimation.estimators.estimator import Estimated, EstimatorInput
from urdf_ident.estimation.estimators.generalized import generalized_least_squares
from urdf_ident.estimation.estimators.instrumental import fit_instrumental, instrumented
from urdf_ident.estimation.estimators.method import ESTIMATORS, choose_weighting
from urdf_ident.estimation.estimators.outliers import find_outliers
from urdf_ident.linalg import Array
from urdf_ident.model.prior import inertial_prior
from urdf_ident.project import Project, load_project, parse_project
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import base_prior, fit_base, fit_ridge

pytestmark = pytest.mark.usefixtures("unexamined")

LAWS = ["viscous", "coulomb", "offset"]


@pytest.fixture(scope="module")
def plain() -> DynamicModel:
    """Three joints without couplings."""
    return DynamicModel(robot_3r(), friction=LAWS)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One motion, three files: white noise on the torque; the same with outliers; and the URDF.

    Its periods are not averaged: they would tell outliers without any model.
    """
    folder = tmp_path_factory.mktemp("spoilt")
    robot = Robot.from_urdf(arm_urdf("zyx"))
    (folder / "arm.urdf").write_text(robot.urdf)
    laws = "model: {friction: [viscous, {term: coulomb, width: 0.02}, offset]}\nsignals: {periodic: off}\n"
    (folder / "laws.yaml").write_text(laws)
    (folder / "ols.yaml").write_text(laws + "estimation: {method: ols}\n")
    t, q, v, a = fourier(3, 30.0, 100.0, 3)
    rng = np.random.default_rng(7)
    sigma = 0.05 * torques(robot, Truth.of(3), q, v, a).std(axis=0)
    tau = torques(robot, Truth.of(3), q, v, a) + sigma * rng.standard_normal(q.shape)
    write_csv(folder / "good.csv", robot.joints, t, q, tau)
    wild = (rng.random(q.shape) < 0.05) * rng.choice([-45.0, 45.0], q.shape)
    write_csv(folder / "bad.csv", robot.joints, t, q, tau + sigma * wild)
    return folder


def of_library(folder: Path, log: str, project: Project) -> Identification:
    robot = project.build_robot(folder / "arm.urdf")
    return identify(project.build_model(robot), [read_recording(folder / f"{log}.csv", robot)], project=project)


def base_error(ident: Identification) -> Array:
    at = Truth.of(3)
    true = theta_with(ident.model, Ia=at.rotor_inertia, Fv=at.viscous, Fc=at.coulomb, offset=at.offset)
    return ident.fit.params - ident.fit.base.of(true)


def test_outliers_are_found_and_cost_next_to_nothing(spoilt: Path) -> None:
    """From the command line, without being asked for."""
    out = spoilt / "out"
    done("identify", spoilt / "arm.urdf", spoilt / "bad.csv", "-c", spoilt / "laws.yaml", "-o", out)
    ols, _ = load_project(spoilt / "ols.yaml")
    robust, clean, naive = load(out), of_library(spoilt, "good", ols), of_library(spoilt, "bad", ols)
    data = json.loads((out / "identification.json").read_text())
    assert clean.estimation["method"] == "ols"
    assert data["estimation"]["method"] == "irls (tukey)"
    assert "are outliers" in data["estimation"]["why"]
    assert max(abs(share - 0.05) for share in data["estimation"]["down_weighted"].values()) < 0.01
    assert "estimator: IRLS" in robust.summary(verbose=True)
    size = [np.sqrt(np.mean((base_error(ident) / clean.fit.bse) ** 2)) for ident in (clean, robust, naive)]
    assert size[1] <= 1.5 * size[0]
    assert size[2] >= 8.0 * size[0]  # 10.4 in the mean over seeds


def test_friction_that_the_model_lacks_is_no_outlier(plain: DynamicModel) -> None:
    """Dry friction left out: residuals far from Gaussian, large for many samples in a row, and nobody's spikes."""
    log = as_log(make_segment(plain, 1500, sigma=0.05))
    poor = DynamicModel(plain.robot, friction=["viscous"])
    found = find_outliers(poor, fit_base(build_statistics(poor, [log]), poor.base()), [log])
    assert found.power < 0.01
    assert choose_weighting(poor, [log]).weights is None


def test_gls_is_statsmodels_gls(plain: DynamicModel) -> None:
    base, clean = plain.base(), make_segment(plain, 200, seed=4)
    mix = np.array([[0.6, 0, 0], [0.55, 0.1, 0], [0.3, 0.02, 0.05]])
    log = as_log(replace(clean, tau=clean.tau + np.random.default_rng(2).standard_normal(clean.tau.shape) @ mix.T))
    found = generalized_least_squares(problem_of(plain, log))
    X, y = stacked(plain, base, log)
    weight = np.array(list(found.fit.row_weights.values()))
    omega = np.array(found.details["correlation"]) / np.outer(weight, weight)  # of the rows of one sample
    expected = sm.GLS(y, X, sigma=np.kron(omega, np.eye(200))).fit(method="qr")
    np.testing.assert_allclose(found.fit.bse, expected.bse, rtol=1e-8)
    # its covariance is that of the round before, which has converged to a thousandth of a standard error
    assert (np.abs(found.fit.params - expected.params) < 1e-3 * expected.bse).all()


def test_instruments_are_statsmodels_two_stages(plain: DynamicModel) -> None:
    """And the test of Durbin, Wu and Hausman is the F-test of the columns' unexplained part."""
    base = plain.base()
    clean = make_segment(plain, 400, sigma=0.2, seed=2)
    rng = np.random.default_rng(0)
    noisy = replace(clean, a=clean.a + rng.normal(size=clean.a.shape), simulated=replace(clean, tau=None))
    found = fit_instrumental(build_statistics(plain, [as_log(noisy)], rows=instrumented(plain)), base, method="ols")
    X, y = stacked(plain, base, as_log(noisy))
    Z, _ = stacked(plain, base, as_log(replace(noisy, q=clean.q, v=clean.v, a=clean.a)))
    X = with_sign_of(Z, X, plain, base)
    np.testing.assert_allclose(found.fit.params, IV2SLS(y, X, Z).fit().params, rtol=1e-7, atol=1e-9)
    V = X - Z @ np.linalg.lstsq(Z, X, rcond=None)[0]
    V = V[:, np.linalg.norm(V, axis=0) > 1e-7 * np.linalg.norm(X, axis=0)]
    wide = sm.OLS(y, np.hstack([X, V])).fit(method="qr")
    plain_rss, dof = sm.OLS(y, X).fit(method="qr").ssr, (V.shape[1], len(y) - X.shape[1] - V.shape[1])
    F = (plain_rss - wide.ssr) / dof[0] / (wide.ssr / dof[1])
    assert found.test.dof == dof
    assert found.test.statistic * found.test.inflation == pytest.approx(F, rel=1e-6)


def test_ridge_is_bayes_formula(plain: DynamicModel) -> None:
    base, prior = plain.base(), inertial_prior(plain.robot, 0.3, mass_std=0.3)
    log = as_log(make_segment(plain, 300, sigma=0.5))
    statistics = build_statistics(plain, [log])
    wls = fit_base(statistics, base)
    found = fit_ridge(statistics, wls, prior)
    X, y = stacked(plain, base, log)
    weight = np.repeat([wls.weights[group.name] for group in plain.groups], 300)
    mean, S = base_prior(base, prior)
    A, r = X * weight[:, None], y * weight
    precision = A.T @ A + S.T @ S
    np.testing.assert_allclose(found.params, np.linalg.solve(precision, A.T @ r + S.T @ S @ mean), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(precision), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("method", ["gls", "ridge", "irls"])
def test_every_method_ends_in_a_result(spoilt: Path, method: str, tmp_path: Path) -> None:
    project = parse_project({"model": {"friction": LAWS}, "estimation": {"method": method, "loss": "huber"}})
    ident = of_library(spoilt, "good", project)
    assert ident.fit.method.startswith(method)
    assert ident.estimation["why"] == "as configured"
    assert np.isfinite(ident.fit.bse).all()
    assert 0 < ident.cross_validation.relative < 0.1
    again = load(ident.save(tmp_path / "i.json"))
    assert again.estimation["method"] == ident.fit.method == again.fit.method
    assert ident.fit.method.split()[0].upper() in ident.summary(verbose=True)


def test_an_estimator_of_ones_own_is_one_entry(spoilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of one's own: with errors, cross-validation and standard parameters like any other."""

    def equal_weights(problem: EstimatorInput) -> Estimated:
        refit = problem.refit(dict.fromkeys(problem.statistics.groups, 1.0))
        fit = replace(refit(problem.statistics), method="equal")
        return Estimated(fit, problem.statistics, "of one's own", refit=refit, solved=problem.statistics)

    monkeypatch.setitem(ESTIMATORS, "equal", equal_weights)
    listed = parse_project({"model": {"friction": LAWS}, "estimation": {"method": "ols"}})
    mine = listed.model_copy(update={"estimation": listed.estimation.model_copy(update={"method": "equal"})})
    found, least = (of_library(spoilt, "good", project) for project in (mine, listed))
    assert found.estimation == {"method": "equal", "why": "of one's own"}
    np.testing.assert_allclose(found.fit.params, least.fit.params, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.fit.bse, least.fit.bse, rtol=1e-6)
    assert found.cross_validation.mean_rmse == pytest.approx(least.cross_validation.mean_rmse)


def test_elastic_joints_have_least_squares_and_instruments_only(plain: DynamicModel) -> None:
    elastic = ElasticModel(plain.robot, drive=Drive.build(3, reduction=[50.0, 50.0, 50.0]), friction=LAWS, rows="sum")
    with pytest.raises(EstimationError, match="gls is for rigid joints"):
        choose_weighting(elastic, [], "gls")
    assert [choose_weighting(elastic, [], method).name for method in ("auto", "ols", "wls", "iv")] == [
        "auto",
        "ols",
        "wls",
        "iv",
    ]


@pytest.mark.parametrize(("method", "words"), [("gls", r"factors of method gls.*jackknife"), ("ridge", "errors of its own")])
def test_errors_that_an_estimator_cannot_have_are_refused(spoilt: Path, method: str, words: str) -> None:
    project = parse_project({"model": {"friction": LAWS}, "estimation": {"method": method, "covariance": "hac"}})
    with pytest.raises(EstimationError, match=words):
        of_library(spoilt, "good", project)
