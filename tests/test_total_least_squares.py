"""Total least squares with noise in the regressor: scipy.odr, exact columns, and a simulated robot with coarse encoders."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from estimation_samples import as_log
from motion_samples import make_segment, robot_3r, truth

from urdf_ident.errors import EstimationError
from urdf_ident.estimation.estimators.total_least_squares import fit_total_least_squares, noisy_columns, total_least_squares
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.signals.filters import differentiate, lowpass
from urdf_ident.signals.prepare import PreparedLog
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base


def test_with_correlated_noise_it_is_orthogonal_distance_regression() -> None:
    """ODRPACK minimises the same distance by iteration over every single point."""
    with warnings.catch_warnings():  # scipy hands it over to another package
        warnings.simplefilter("ignore", DeprecationWarning)
        odr = pytest.importorskip("scipy.odr")
    rng = np.random.default_rng(1)
    root = np.array([[0.2, 0.1, 0.0], [0.0, 0.3, -0.1], [0.0, 0.0, 0.15]])
    X = rng.normal(size=(80, 3))
    noisy = X + rng.normal(size=X.shape) @ root
    y = X @ [1.0, -2.0, 0.5] + 0.4 * rng.normal(size=80)
    data = odr.Data(noisy.T, y, wd=np.linalg.inv(root.T @ root), we=1 / 0.4**2)
    run = odr.ODR(data, odr.Model(lambda b, x: b @ x), beta0=[1.0, -2.0, 0.5], maxit=200, sstol=1e-15, partol=1e-12).run()
    noise = np.zeros((4, 4))
    noise[:3, :3], noise[3, 3] = root, 0.4
    found = total_least_squares(np.column_stack([noisy, y]), noise)
    np.testing.assert_allclose(found, run.beta, rtol=1e-5)


def test_columns_without_noise_and_all_noise_in_the_torque() -> None:
    rng = np.random.default_rng(2)
    A = np.column_stack([rng.normal(size=(60, 3)), rng.normal(size=60)])
    some = total_least_squares(A, np.diag([0.0, 0.2, 0.0, 0.5]))
    R = np.linalg.qr(A[:, [0, 2, 1, 3]], mode="r")  # Golub, Hoffman, Stewart 1987: eliminate the exact columns
    noisy = np.linalg.svd(R[2:, 2:] / [0.2, 0.5])[2][-1] / [0.2, 0.5]
    exact = -np.linalg.solve(R[:2, :2], R[:2, 2:] @ noisy)
    np.testing.assert_allclose(some, -np.array([exact[0], noisy[0], exact[1]]) / noisy[1], rtol=1e-9)
    least = np.linalg.lstsq(A[:, :3], A[:, 3], rcond=None)[0]
    np.testing.assert_allclose(total_least_squares(A, np.diag([0.0, 0.0, 0.0, 1.0])), least, rtol=1e-9)
    exact = np.column_stack([A[:, :3], A[:, :3] @ least])  # nothing is left to move
    np.testing.assert_allclose(total_least_squares(exact, np.eye(4)), least, rtol=1e-9)
    with pytest.raises(EstimationError, match="depend on each other"):
        total_least_squares(A[:, [0, 0, 1]], np.eye(3))
    with pytest.raises(EstimationError, match="something noisy"):
        total_least_squares(A, np.zeros((1, 4)))


SIGMA = 2e-3  # [rad]


def shaken(model: DynamicModel, seed: int) -> PreparedLog:
    """A motion whose positions are noisy, with velocities and accelerations by differentiation."""
    clean = make_segment(model, 3000, sigma=0.2, seed=seed)
    measured = clean.q + SIGMA * np.random.default_rng(seed).standard_normal(clean.q.shape)
    q = lowpass(measured, clean.rate, 10.0)
    v = differentiate(q, clean.rate)
    log = as_log(replace(clean, q=q, v=v, a=differentiate(v, clean.rate)))
    seen = replace(log.report.recording, position=measured)
    return replace(log, recording=seen, report=replace(log.report, recording=seen))


def test_least_squares_is_biased_and_total_least_squares_is_not() -> None:
    """Mean over draws of noise, in standard errors of the mean; the errors are those of the draws."""
    model = DynamicModel(robot_3r(), friction=["viscous", "offset"])
    base = model.base()
    exact = base.of(truth(model))
    least, total, spread = [], [], []
    for seed in range(8):
        log = shaken(model, seed)
        statistics = build_statistics(model, [log])
        fit = fit_base(statistics, base)
        position, noise = noisy_columns(model, [log], base)
        np.testing.assert_allclose(position, SIGMA, rtol=0.1)
        found, transform, _ = fit_total_least_squares(statistics, fit, noise)
        least.append(fit.params)
        total.append(found.params)
        spread.append(np.sqrt(np.diag(transform @ fit.covariance @ transform.T)))
    size = np.std(total, axis=0, ddof=1)
    off = [np.abs(np.mean(some, axis=0) - exact) / (size / np.sqrt(len(total))) for some in (least, total)]
    assert np.sqrt(np.mean(off[1] ** 2)) < 0.5 * np.sqrt(np.mean(off[0] ** 2))
    wrong = [np.sqrt(np.mean((np.array(some) - exact) ** 2, axis=0)) / np.abs(exact) for some in (least, total)]
    assert np.median(wrong[1]) < np.median(wrong[0])
    assert 0.4 < np.median(np.mean(spread, axis=0) / size) < 2.5
