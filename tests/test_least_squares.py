"""Least squares against NIST's certified values, statsmodels, and data that cannot see everything."""

import json
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import linalg

from urdf_ident.errors import EstimationError, ShapeError
from urdf_ident.linalg import lstsq, triangle, whitening
from urdf_ident.statistics.least_squares import Solution, leave_one_out_changes, ols, solve

DIGITS = {"longley": 10, "pontius": 10, "norris": 10, "noint1": 10, "wampler1": 9, "wampler2": 9, "filip": 7}


def certified(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    entry = json.loads((folder / "nist" / f"{name}.json").read_text())
    x, y = np.array(entry["x"]), np.array(entry["y"])
    return x, y, np.array(entry["certified_estimate"]), np.array(entry["certified_standard_error"])


def correct_digits(got: np.ndarray, wanted: np.ndarray) -> float:
    error = np.where(wanted == 0, np.abs(got), np.abs(got - wanted) / np.where(wanted == 0, 1, np.abs(wanted)))
    return float(-np.log10(np.maximum(error, 1e-16)).min())


@pytest.mark.parametrize("name", DIGITS)
def test_certified_values(data: Path, name: str) -> None:
    """From the rows, and as the estimators go: factors of pieces are merged and solved, the rows are gone."""
    x, y, estimate, error = certified(data, name)
    pieces = [triangle(piece) for piece in np.array_split(np.column_stack([x, y]), 3)]
    whole, merged = ols(x, y), solve(triangle(*pieces), len(x))
    assert correct_digits(whole.estimate, estimate) >= DIGITS[name]
    assert correct_digits(merged.estimate, estimate) >= min(DIGITS[name], 7)
    assert correct_digits(whole.std_error, error) >= 7
    assert correct_digits(merged.std_error, error) >= (7 if np.any(error) else 6)
    assert whole.rank == x.shape[1]
    assert whole.seen.all()


def sample(seed: int = 0, rows: int = 200, columns: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)) * 10.0 ** rng.uniform(-4, 4, columns)
    return X, X @ (rng.normal(size=columns) / np.linalg.norm(X, axis=0)) * np.sqrt(rows) + 0.3 * rng.normal(size=rows)


def with_null_columns(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns 1 and 4 are only seen as a sum, column 5 is zero, the others are seen."""
    X, y = sample(seed, rows=3000)
    X[:, 4] = 3.0 * X[:, 1]
    X[:, 5] = 0.0
    return X, y


@pytest.mark.parametrize("seed", range(2))
def test_unseen_parameters_are_infinite_and_the_others_untouched(seed: int) -> None:
    X, y = with_null_columns(seed)
    reference = sm.OLS(y, X[:, [0, 1, 2, 3]]).fit(method="qr")
    pieces = [triangle(piece) for piece in np.array_split(np.column_stack([X, y]), 40)]
    for found in (ols(X, y), solve(triangle(*pieces), len(X))):
        assert found.rank == 4
        assert found.seen.tolist() == [True, False, True, True, False, False]
        np.testing.assert_array_equal(np.isinf(found.std_error), ~found.seen)
        seen = [0, 2, 3]
        np.testing.assert_allclose(found.estimate[seen], reference.params[seen], rtol=1e-8)
        np.testing.assert_allclose(found.std_error[seen], reference.bse[seen], rtol=1e-8)
        assert found.estimate[1] + 3 * found.estimate[4] == pytest.approx(reference.params[1], rel=1e-8)
        assert found.estimate[5] == 0.0
        assert found.residual_squares == pytest.approx(reference.ssr, rel=1e-9)
        assert np.isfinite(found.condition)


@settings(max_examples=150, deadline=None)
@example(252400, 2, 1)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 4))
def test_rank_of_repeated_columns_survives_rounding(seed: int, columns: int, copies: int) -> None:
    """A direction that is only rounding must not come out as a seen parameter, whatever the number of pieces."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, columns))
    X = np.hstack([X, X @ rng.normal(size=(columns, copies)) / np.sqrt(columns)])
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=600)
    pieces = [triangle(piece) for piece in np.array_split(np.column_stack([X, y]), rng.integers(1, 30))]
    found = solve(triangle(*pieces), 600)
    assert found.rank == columns


def test_reference_is_kept_where_the_data_say_nothing() -> None:
    X, y = with_null_columns(2)
    reference = np.array([9.0, 1.0, 9, 9, 2.0, 5.0])
    free, held = ols(X, y), solve(triangle(np.column_stack([X, y])), len(X), reference)
    assert held.estimate[5] == 5.0
    np.testing.assert_allclose(held.estimate[[0, 2, 3]], free.estimate[[0, 2, 3]], rtol=1e-8)
    assert held.estimate[1] + 3 * held.estimate[4] == pytest.approx(free.estimate[1] + 3 * free.estimate[4], rel=1e-8)
    assert (held.estimate[1] == 1.0) != (held.estimate[4] == 2.0)  # one of the pair carries the correction
    with pytest.raises(ShapeError, match="reference"):
        solve(triangle(np.column_stack([X, y])), len(X), reference[:-1])


def test_fewer_rows_than_columns_give_what_they_can() -> None:
    X, y = sample(3, rows=4)
    with pytest.raises(EstimationError, match="fewer rows than parameters, got 4 rows, expected >= 6"):
        ols(X, y)
    found = solve(triangle(np.column_stack([X, y])), 4)
    assert found.rank == 4
    np.testing.assert_allclose(X @ found.estimate, y, rtol=1e-7)
    assert not found.seen.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_input_is_refused(bad: float) -> None:
    X, y = sample(0)
    X[3, 2] = bad
    with pytest.raises(EstimationError, match="not finite; check the log"):
        ols(X, y)
    with pytest.raises(EstimationError, match="nothing to estimate"):
        solve(np.zeros((0, 5)), 0)
    with pytest.raises(EstimationError, match="nothing to estimate"):
        solve(np.ones((1, 1)), 5)
    with pytest.raises(ShapeError, match="'y'"):
        ols(np.ones((5, 2)), np.ones(4))
    with pytest.raises(ShapeError, match="'W'"):
        ols(np.ones(5), np.ones(5))


def test_columns_of_any_size_are_whitened_without_overflow() -> None:
    size = np.array([1.0, 1e-155, 1e140])
    moments = np.outer(size, size) * np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.0]])
    with np.errstate(all="raise", under="ignore"):
        W = whitening(moments, 1e-12)
        np.testing.assert_allclose(W.T @ moments @ W, np.eye(3), atol=1e-9)


def test_a_sandwich_has_no_negative_variance_where_the_score_does_not_scatter() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4, 12)) * 10.0 ** rng.uniform(-6, 3, 12)
    blind = linalg.null_space(scores)  # parameters that depend on directions without scatter: their variance is zero
    root = np.vstack([rng.normal(size=(3, 12)), 1e3 * rng.normal(size=(60, 8)) @ blind.T])
    found = Solution(np.zeros(63), root, np.ones(63, dtype=bool), 1.0, 100, 12, np.eye(12)).sandwich(scores.T @ scores)
    assert (np.diag(found) >= 0).all()
    assert np.allclose(found[:3, :3], root[:3] @ scores.T @ scores @ root[:3].T, rtol=1e-9)
    assert (np.diag(root @ (scores.T @ scores) @ root.T) < 0).any()


@pytest.mark.parametrize("parts", [2, 200])
def test_leaving_a_part_out_is_solving_without_it(parts: int) -> None:
    """Few parts, each of which nearly determines some direction, and many, of which none does."""
    rng = np.random.default_rng(parts)
    X, y = np.linalg.qr(rng.normal(size=(parts * 10, 6)))[0], rng.normal(size=parts * 10)
    estimate, rows = X.T @ y, np.arange(len(y)).reshape(parts, -1)
    matrices = np.array([X[own].T @ X[own] for own in rows])
    scores = np.array([X[own].T @ (y[own] - X[own] @ estimate) for own in rows])
    without = [np.linalg.lstsq(np.delete(X, own, axis=0), np.delete(y, own), rcond=None)[0] for own in rows]
    assert leave_one_out_changes(matrices, scores) == pytest.approx(np.array(without) - estimate, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("rcond", [None, 1e-6])
def test_least_squares_are_solved_where_divide_and_conquer_does_not_converge(
    rcond: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9, 3)) @ rng.standard_normal((3, 6))
    b = rng.standard_normal((9, 2))
    usual, rank = lstsq(A, b, rcond)

    def fails(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")

    monkeypatch.setattr(np.linalg, "lstsq", fails)
    other, same = lstsq(A, b, rcond)
    assert rank == same == 3
    assert other == pytest.approx(usual, abs=1e-12)
