"""The choice by folds: what beats the simplest alternative, and what does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from urdf_ident.statistics.choice import chosen, relative_gains, standard_error, worse

SIMPLEST = np.array([[1.2, 30.0], [1.3, 31.0], [1.25, 29.0], [1.2, 30.0]])


def test_a_steady_gain_is_taken_and_one_in_a_single_fold_is_not() -> None:
    once = SIMPLEST.copy()
    once[0] *= 0.1
    assert chosen(np.stack([SIMPLEST, once])) == 0
    assert chosen(np.stack([SIMPLEST, 0.99 * SIMPLEST])) == 1
    assert chosen(np.stack([SIMPLEST, 1.01 * SIMPLEST, 0.9 * SIMPLEST, 0.99 * SIMPLEST])) == 2
    assert chosen(np.stack([0.9 * SIMPLEST, SIMPLEST]), simplest=1) == 0


def test_units_and_sizes_of_groups_do_not_matter() -> None:
    other = SIMPLEST * [0.8, 1.1]
    gains = relative_gains(SIMPLEST, other)
    np.testing.assert_allclose(gains, relative_gains(SIMPLEST * [1e6, 1e-6], other * [1e6, 1e-6]))
    assert gains.mean() == pytest.approx(0.5 * (0.2 - 0.1))


def test_a_group_without_error_decides_nothing() -> None:
    still = SIMPLEST * [1.0, 0.0]
    np.testing.assert_allclose(relative_gains(still, 0.9 * still).mean(), 0.1)
    assert chosen(np.zeros((2, 4, 2))) == 0


def test_the_error_of_a_mean_is_students() -> None:
    gains = np.array([0.1, 0.3, 0.2, 0.05, 0.4])
    factor = t.isf(norm.sf(1.0), df=4)
    assert standard_error(gains) == pytest.approx(factor * gains.std(ddof=1) / np.sqrt(5))
    assert np.isinf(standard_error(gains[:1]))


def test_worse_is_the_paired_difference_beyond_its_error() -> None:
    hard = np.array([1.0, 50.0, 3.0, 20.0, 8.0])  # what makes a fold hard makes it hard for both
    assert worse(hard, hard + [0.5, 0.4, 0.6, 0.5, 0.45])
    assert not worse(hard, hard + [0.5, -0.3, 0.2, -0.4, 0.3])
    assert not worse(hard, hard)
