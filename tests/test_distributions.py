"""Quantiles and tails beside scipy.stats."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from urdf_ident.statistics import distributions as own

DOF = np.array([1.0, 2.0, 3.5, 6.0, 29.0, 1e3, 1e6, 1e9])


@pytest.mark.parametrize("share", [0.005, 0.5, 0.9, 0.975, 1 - 1e-9])
def test_quantiles(share: float) -> None:
    np.testing.assert_allclose(own.student_quantile(share, DOF), stats.t.ppf(share, DOF), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(own.chi_square_quantile(share, DOF), stats.chi2.ppf(share, DOF), rtol=1e-12)
    assert own.student_quantile(share, np.inf) == pytest.approx(stats.norm.ppf(share), abs=1e-15)


@pytest.mark.parametrize("value", [0.0, 0.3, 2.0, 15.0, 200.0])
def test_tails(value: float) -> None:
    assert own.normal_tail(value) == pytest.approx(stats.norm.sf(value), rel=1e-12)
    for dof in DOF:
        assert own.student_tail(value, dof) == pytest.approx(stats.t.sf(value, dof), rel=1e-9, abs=1e-300)
        assert own.chi_square_tail(value, dof) == pytest.approx(stats.chi2.sf(value, dof), rel=1e-9, abs=1e-300)
        assert own.f_tail(value, 3.0, dof) == pytest.approx(stats.f.sf(value, 3.0, dof), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("share", [0.025, 0.5, 0.975])
def test_a_normal_variable_that_cannot_be_negative(share: float) -> None:
    mean, std = np.array([-20.0, -3.0, 0.0, 0.5, 40.0]), np.array([2.0, 1.5, 3.0, 1.0, 1.0])
    expected = stats.truncnorm.ppf(share, -mean / std, np.inf, mean, std)
    np.testing.assert_allclose(own.truncated_normal_quantile(share, mean, std), expected, rtol=1e-9)
    far = own.truncated_normal_quantile(share, np.array([-1e4]), np.array([1.0]))
    assert 0 <= far < 1e-2


@pytest.mark.parametrize("dof", [1, 4, 6, 200])
def test_one_sigma(dof: int) -> None:
    inside = stats.t.cdf(own.one_sigma(dof), dof) - stats.t.cdf(-own.one_sigma(dof), dof)
    assert inside == pytest.approx(0.6826894921370859, rel=1e-12)


def test_no_degree_of_freedom_is_no_number() -> None:
    assert np.isnan(own.student_quantile(0.975, 0.0))


@pytest.mark.parametrize("count", [1, 3, 6])
def test_gains_of_parameters_that_cannot_be_negative(count: int) -> None:
    """Squares of the positive ones among uncorrelated estimates of zero."""
    estimates = np.random.default_rng(count).standard_normal((200_000, count))
    gains = np.sum(np.maximum(estimates, 0.0) ** 2, axis=1)
    for value in (0.5, 3.0, 8.0):
        assert own.chi_bar_square_tail(value, count) == pytest.approx(np.mean(gains > value), abs=0.004)
