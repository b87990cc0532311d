"""GLS, generalized least squares: the full covariance of one sample's rows (Liu 2023, §III.C; Aitken 1936).

The joints' residuals are not independent: a model error at one joint affects its neighbours at the same instant. With Ω (n × n)
the covariance of one sample's rows and Ω = L Lᵀ, the rows ``L⁻¹ [W | tau]`` have independent residuals of variance 1; Ω follows
from the residuals and the estimate from the whitened rows, in turn until both converge. One triangular factor of the rows of
all groups side by side contains all second moments within a sample, and serves for the iteration. A row of the whitened problem
mixes all joints, which requires a last pass over the rows; its factors are then used like those of unweighted rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, solve_triangular, triangle
from ...model.dynamic_model import DynamicModel
from ...samples import Segment
from ...statistics.accumulate import Rows, build_statistics
from ...statistics.least_squares import MOST_ROUNDS
from ...statistics.rows import RowFilter, filtered_rows, row_pieces
from ...statistics.statistic import Layout, Statistic, StatisticSet
from .estimator import Estimated, EstimatorInput

#: Converged if no parameter changes by more than this share of its standard error.
CONVERGED = 1e-3
#: Condition number of Ω's correlations above which the residuals of joints count as identical.
SINGULAR = 1e10


def generalized_least_squares(problem: EstimatorInput) -> Estimated:
    """Least squares with the full covariance of a sample's rows.

    Its standard errors are scaled by the whitened residual. The statistics are the whitened rows, times the marginal standard
    deviation of their group, so that units are unchanged.

    Raises:
        EstimationError: Fewer rows than parameters, a singular covariance of the residuals, or no convergence.
    """
    model, logs, fit = problem.model, problem.logs, problem.least_squares
    widths = [len(group.columns) + 1 for group in model.groups]
    R, count = np.zeros((0, sum(widths))), 0  # one factor of the rows of all groups side by side, [columns | tau] of each group
    for piece in row_pieces(model, logs):
        R, count = triangle(np.vstack([R, np.hstack(piece.rows)])), count + len(piece)
    beside = np.split(R, np.cumsum(widths)[:-1], axis=1)
    wide, layouts = _wide(model, beside), tuple(Layout(g.name, g.joint, np.arange(len(model.names))) for g in model.groups)
    for turn in range(1, MOST_ROUNDS + 1):
        theta, parts = fit.base.embedded(fit.params), zip(model.groups, beside, strict=True)
        error = np.column_stack([part[:, -1] - part[:, :-1] @ theta[group.columns] for group, part in parts])
        # the parameters are counted in equal shares for all row groups
        covariance = np.asarray(error.T @ error / max(count - fit.seen.sum() / len(model.groups), 1.0))
        std = np.sqrt(np.diag(covariance))
        if not (std > 0).all():
            raise EstimationError(
                "a residual is exactly zero", where=model.groups[int(np.argmin(std))].name, remedy="use method wls"
            )
        if np.linalg.cond(covariance / np.outer(std, std)) > SINGULAR:
            raise EstimationError("the residuals of some joints are copies of each other", remedy="use method wls")
        weights = {group.name: 1.0 / s for group, s in zip(model.groups, std, strict=True)}
        entries = tuple(
            Statistic("all", 0, group.name, triangle(np.tensordot(row, wide, axes=1)), count)
            for group, row in zip(model.groups, _mixing(covariance), strict=True)
        )
        whitened = StatisticSet(model.names, layouts, entries, f"{model.fingerprint} whitened")
        before, fit = fit, problem.refit(weights)(whitened)
        if fit.distance(before.params) < CONVERGED:
            kind = "model-based (full covariance of a sample's rows, samples independent)"
            rows = Rows("whitened", layouts, partial(_whitened_rows, _mixing(covariance)))
            statistics = build_statistics(model, logs, rows=rows)
            return Estimated(
                replace(fit, method="gls", covariance_kind=kind),
                statistics,
                logs=(),
                details={"rounds": turn, "correlation": (covariance / np.outer(std, std)).tolist()},
                refit=problem.refit(fit.row_weights),
            )
    raise EstimationError("covariance and estimate do not converge", got=f"{MOST_ROUNDS} rounds", remedy="use method wls")


def _mixing(covariance: Array) -> Array:
    """``diag(Ω)^½ L⁻¹``, lower triangular."""
    from scipy.linalg import cholesky

    inverse = solve_triangular(cholesky(covariance), np.eye(len(covariance)), transposed=True)
    return np.asarray(np.sqrt(np.diag(covariance))[:, None] * inverse)


def _whitened_rows(
    mixing: Array, model: DynamicModel, segment: Segment, row_filter: RowFilter
) -> Iterator[tuple[int, list[Array]]]:
    """Yields the rows ``diag(Ω)^½ L⁻¹ [W | tau]``; every group has all columns."""
    for first, rows in filtered_rows(model, segment, row_filter):
        wide = _wide(model, rows)
        yield first, [np.tensordot(row[: g + 1], wide[: g + 1], axes=1) for g, row in enumerate(mixing)]


def _wide(model: DynamicModel, parts: Sequence[Array]) -> Array:
    """Expands the rows of all groups to all columns, shape (groups, N, p + 1)."""
    wide = np.zeros((len(model.groups), len(parts[0]), len(model.names) + 1))
    for g, (group, rows) in enumerate(zip(model.groups, parts, strict=True)):
        wide[g][:, group.columns] = rows[:, :-1]
        wide[g][:, -1] = rows[:, -1]
    return wide
