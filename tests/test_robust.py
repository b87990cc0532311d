"""Robust estimates: statsmodels' RLM on raw rows, and spoilt samples before any filter."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from conftest import arm_urdf
from estimation_samples import as_log, problem_of, stacked
from motion_samples import coupled_model, make_segment, truth

from urdf_ident import DynamicModel, Robot
from urdf_ident.estimation.estimators import irls
from urdf_ident.estimation.uncertainty.covariance import with_covariance
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import RowFilter, filtered_rows


@pytest.fixture(scope="module")
def single() -> DynamicModel:
    """One joint: statsmodels has one scale for all rows."""
    return DynamicModel(Robot.from_urdf(arm_urdf("y")))


def spoilt(segment, share: float, size: float, seed: int = 0):
    """The same log with some torque samples far off."""
    rng = np.random.default_rng(seed)
    wild = rng.random(segment.tau.shape) < share
    return replace(segment, tau=segment.tau + wild * size * rng.choice([-1.0, 1.0], segment.tau.shape))


@pytest.mark.parametrize(("loss", "norm"), [("huber", sm.robust.norms.HuberT()), ("tukey", sm.robust.norms.TukeyBiweight())])
def test_without_a_row_filter_it_is_the_m_estimate_of_statsmodels(single: DynamicModel, loss: str, norm: object) -> None:
    base = single.base()
    log = as_log(spoilt(make_segment(single, 500, sigma=0.1, seed=3), 0.08, 3.0))
    found = irls.robust(problem_of(single, log, loss=loss), converged=1e-9)
    X, y = stacked(single, base, log)
    start = sm.RLM(y, X, M=sm.robust.norms.HuberT()).fit(tol=1e-10, maxiter=200)
    reference = sm.RLM(y, X, M=norm).fit(start_params=start.params, tol=1e-11, maxiter=500)
    np.testing.assert_allclose(found.fit.params, reference.params, rtol=1e-7, atol=1e-8)
    assert next(iter(found.details["scale"].values())) == pytest.approx(reference.scale, rel=1e-7)


def test_good_data_give_what_least_squares_give_and_say_so() -> None:
    model = coupled_model()
    log = as_log(make_segment(model, 1500, sigma=np.array([0.5, 0.01, 0.002])))
    statistics = build_statistics(model, [log])
    found, plain = irls.robust(problem_of(model, log)), fit_base(statistics, model.base())
    assert (np.abs(found.fit.params - plain.params) < 1.5 * plain.bse).all()
    assert all(share < 0.1 for share in found.details["down_weighted"].values())
    np.testing.assert_allclose(list(found.details["scale"].values()), list(plain.sigma.values()), rtol=0.1)
    assert found.fit.method == "irls (tukey)"
    assert np.isfinite(with_covariance(found.fit, found.statistics, "jackknife").bse).all()


def test_a_weighted_row_keeps_the_equation_and_the_noise() -> None:
    model = coupled_model()
    segment = make_segment(model, 600, sigma=0.0)
    rng, row_filter = np.random.default_rng(0), RowFilter(4)
    weights = (rng.random((600, 3)) > 0.1).astype(float)
    theta = truth(model)
    for first, rows in filtered_rows(model, segment, row_filter, weights):
        for group, part in zip(model.groups, rows, strict=True):
            np.testing.assert_allclose(
                part[:, :-1] @ theta[group.columns], part[:, -1], rtol=1e-9, atol=1e-9, err_msg=str(first)
            )
    white = replace(segment, q=0 * segment.q, v=0 * segment.v, a=0 * segment.a)
    squares = []
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(size=segment.tau.shape)
        model_rows = filtered_rows(DynamicModel(model.robot), replace(white, tau=noise), row_filter, weights)
        squares.append(np.concatenate([rows[0][:, -1] for _, rows in model_rows]) ** 2)
    expected = np.sum(row_filter.taps() ** 2)
    np.testing.assert_allclose(np.mean(squares, axis=0).mean(), expected, rtol=0.05)
