"""The fit of base parameters from factors, against statsmodels on the raw rows."""

import numpy as np
import pytest
import statsmodels.api as sm
from motion_samples import make_segment, raw_rows, truth
from scipy import stats

from urdf_ident import BaseParameters, DynamicModel, Segment
from urdf_ident.errors import EstimationError
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import StatisticSet

SIGMA = np.array([0.5, 0.01, 0.002])  # per row group: joint 1, actuators 2 and 3


@pytest.fixture(scope="module")
def segment(model: DynamicModel) -> Segment:
    return make_segment(model, 300, rate=40.0, sigma=SIGMA, seed=4)


@pytest.fixture(scope="module")
def statistics(model: DynamicModel, segment: Segment) -> StatisticSet:
    return accumulate(model, "log", [segment], RowFilter(1))


def rows_of(model: DynamicModel, base: BaseParameters, segment: Segment) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rows = raw_rows(model, segment)
    return [x[:, base.independent] for x in rows], [x[:, -1] for x in rows]


def check(fit: Fit, reference: object) -> None:
    np.testing.assert_allclose(fit.params, reference.params, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(fit.bse, reference.bse, rtol=1e-7)
    np.testing.assert_allclose(fit.conf_int(0.1), reference.conf_int(0.1), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fit.cov_params(), reference.cov_params(), rtol=1e-5, atol=1e-6 * np.abs(fit.cov_params()).max())
    assert fit.dof == reference.df_resid


def test_wls_is_statsmodels_with_the_weights_on_both_sides(
    model: DynamicModel, base: BaseParameters, segment: Segment, statistics: StatisticSet
) -> None:
    """Trap 13: the weights go on W and tau."""
    X, y = rows_of(model, base, segment)
    weights = np.ones(900)
    for _ in range(5):
        reference = sm.WLS(np.concatenate(y), np.vstack(X), weights=weights).fit(method="qr")
        hat = np.sum(np.linalg.qr(np.sqrt(weights)[:, None] * np.vstack(X))[0] ** 2, axis=1).reshape(3, -1).sum(axis=1)
        residual = np.split(reference.resid, 3)
        sigma = np.sqrt([np.sum(part**2) / (300 - h) for part, h in zip(residual, hat, strict=True)])
        weights = np.repeat(1 / sigma**2, 300)
    fit = fit_base(statistics, base)
    np.testing.assert_allclose(list(fit.sigma.values()), sigma, rtol=2e-4)
    np.testing.assert_allclose(fit.params, reference.params, rtol=1e-3, atol=1e-3 * np.min(reference.bse))
    assert fit.method == "wls"
    own = dict(zip(statistics.groups, 1 / sigma, strict=True))
    check(fit_base(statistics, base, weights=own), sm.WLS(np.concatenate(y), np.vstack(X), weights=weights).fit(method="qr"))


def test_a_joint_that_never_moves_is_reported_as_unseen(model: DynamicModel, base: BaseParameters) -> None:
    moving = make_segment(model, 900, sigma=SIGMA)
    q, v, a = (np.array(x) for x in (moving.q, moving.v, moving.a))
    q[:, 0], v[:, 0], a[:, 0] = 0.3, 0.0, 0.0
    tau = model.torque(truth(model), q, v, a) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    part = accumulate(model, "log", [Segment("log", 0.0, 100.0, q, v, a, tau)], RowFilter(1))
    fit = fit_base(part, base)
    at = {base.names[k]: i for i, k in enumerate(base.independent)}
    for name in ("Fv_j1", "Fc_j1"):
        assert np.isinf(fit.bse[at[name]])
        assert fit.params[at[name]] == 0.0
        assert fit.relative_percent[at[name]] == np.inf
        np.testing.assert_array_equal(fit.conf_int()[at[name]], [-np.inf, np.inf])
    for name in ("Fv_j3", "Iam_j3", "Fc_j2"):
        error = fit.params[at[name]] - base.of(truth(model))[at[name]]
        assert abs(error) < 5 * fit.bse[at[name]] < np.inf
    reference = np.full(len(base), 7.0)
    held = fit_base(part, base, reference=reference)
    assert held.params[at["Fv_j1"]] == 7.0
    np.testing.assert_allclose(held.params[fit.seen], fit.params[fit.seen], rtol=1e-5, atol=1e-7)


def test_wrong_use_is_refused(model: DynamicModel, statistics: StatisticSet, base: BaseParameters) -> None:
    with pytest.raises(EstimationError, match="did you mean 'wls'"):
        fit_base(statistics, base, method="wlss")
    few = accumulate(model, "log", [make_segment(model, 8)], RowFilter(1))
    with pytest.raises(EstimationError, match=f"fewer rows than parameters, got 24 rows, expected > {len(base)}"):
        fit_base(few, base)


def test_intervals_are_students(statistics: StatisticSet, base: BaseParameters) -> None:
    fit = fit_base(statistics, base)
    low, high = fit.conf_int().T
    np.testing.assert_allclose((high - low) / (2 * fit.bse), stats.t.ppf(0.975, fit.dof), rtol=1e-9)
    np.testing.assert_allclose(fit.relative_percent, 100 * fit.bse / np.abs(fit.params))
    text = fit.summary()
    assert text.splitlines()[0].startswith(f"WLS, {len(base)} base parameters, 900 rows")
    assert len(text.splitlines()) == len(base) + 2
    assert f"[{low[0]:.5g}, {high[0]:.5g}]" in text
    assert len(repr(fit)) < 200
