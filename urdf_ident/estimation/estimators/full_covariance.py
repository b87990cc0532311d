"""Weighted least squares with the full covariance of one sample's rows, iterated (Liu 2023, §III.C; Aitken 1936).

The joints' residuals are not independent: a model error at one joint affects its neighbours at the same instant.
With Ω (n × n) the covariance of one sample's rows and Ω = L Lᵀ, the rows ``L⁻¹ [W | tau]`` have independent residuals of
variance 1; Ω follows from the residuals and the estimate from the whitened rows, in turn until both converge.

A row of the whitened problem mixes all joints, which requires a second pass over the rows; its factors are then used like
those of unweighted rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, solve_triangular, triangle
from ...model.dynamic_model import DynamicModel
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import BlockFactors
from ...statistics.entries import Layout, Statistic, blocks_of
from ...statistics.fit import Fit
from ...statistics.pieces import row_pieces
from ...statistics.rows import RowFilter
from ...statistics.statistic import StatisticSet
from .estimator import Estimated, EstimatorInput

#: Converged if no parameter changes by more than this share of its standard error; maximum number of iterations.
CONVERGED, ROUNDS = 1e-3, 100
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
    cross = cross_factor(model, logs)
    for turn in range(1, ROUNDS + 1):
        covariance = cross.covariance(fit)
        std = np.sqrt(np.diag(covariance))
        weights = {group.name: 1.0 / s for group, s in zip(model.groups, std, strict=True)}
        before, fit = fit, problem.refit(weights)(cross.whitened(covariance))
        if fit.distance(before.params) < CONVERGED:
            kind = "model-based (full covariance of a sample's rows, samples independent)"
            statistics = _whitened_statistics(model, logs, covariance)
            return Estimated(
                replace(fit, method="gls", covariance_kind=kind),
                statistics,
                logs=(),
                details={"rounds": turn, "correlation": (covariance / np.outer(std, std)).tolist()},
                refit=problem.refit(fit.row_weights),
                solved=statistics,
            )
    raise EstimationError("covariance and estimate do not converge", got=f"{ROUNDS} rounds", remedy="use method wls")


@dataclass(frozen=True, eq=False)
class CrossFactor:
    """One triangular factor of the rows of all groups side by side, which contains all second moments within a sample.

    Attributes:
        R: Factor of ``[columns | tau]`` of all groups, side by side.
    """

    model: DynamicModel
    R: Array
    rows: int

    def covariance(self, fit: Fit) -> Array:
        """Returns the covariance of the residuals of one sample's rows.

        Returns:
            Ω, shape (groups, groups) [unit of torque squared], divided by the degrees of freedom.

        Raises:
            EstimationError: The residuals of groups are linearly dependent, or one is zero.
        """
        theta = fit.base.embedded(fit.params)
        parts = zip(self.model.groups, self._parts(), strict=True)
        error = np.column_stack([part[:, -1] - part[:, :-1] @ theta[group.columns] for group, part in parts])
        # the parameters are counted in equal shares for all row groups
        covariance = np.asarray(error.T @ error / max(self.rows - fit.seen.sum() / len(self.model.groups), 1.0))
        std = np.sqrt(np.diag(covariance))
        if not (std > 0).all():
            raise EstimationError(
                "a residual is exactly zero", where=self.model.groups[int(np.argmin(std))].name, remedy="use method wls"
            )
        if np.linalg.cond(covariance / np.outer(std, std)) > SINGULAR:
            raise EstimationError("the residuals of some joints are copies of each other", remedy="use method wls")
        return covariance

    def whitened(self, covariance: Array) -> StatisticSet:
        """Returns all whitened rows as one log with one block.

        Args:
            covariance: Ω, shape (groups, groups) [unit of torque squared].

        Returns:
            Statistics as from :func:`_whitened_statistics`.
        """
        wide = _wide(self.model, self._parts())
        entries = tuple(
            Statistic("all", 0, group.name, triangle(np.tensordot(row, wide, axes=1)), self.rows)
            for group, row in zip(self.model.groups, _mixing(covariance), strict=True)
        )
        return StatisticSet(self.model.names, _layouts(self.model), entries, f"{self.model.fingerprint} whitened")

    def _parts(self) -> list[Array]:
        return np.split(self.R, np.cumsum([len(group.columns) + 1 for group in self.model.groups])[:-1], axis=1)


def cross_factor(model: DynamicModel, logs: Sequence[PreparedLog]) -> CrossFactor:
    """Accumulates the rows of all groups side by side.

    Raises:
        EstimationError: No log.
        LogError: A log without torque.
    """
    R, rows = np.zeros((0, sum(len(group.columns) + 1 for group in model.groups))), 0
    for piece in row_pieces(model, logs):
        R = triangle(np.vstack([R, np.hstack(piece.rows)]))
        rows += len(piece)
    return CrossFactor(model, R, rows)


def _whitened_statistics(model: DynamicModel, logs: Sequence[PreparedLog], covariance: Array) -> StatisticSet:
    """Computes factors of the rows ``diag(Ω)^½ L⁻¹ [W | tau]``.

    Args:
        covariance: Ω, shape (groups, groups) [unit of torque squared].

    Returns:
        Statistics with the groups and time blocks of the unweighted rows; every group has all columns.
    """
    mixing, layouts = _mixing(covariance), _layouts(model)
    totals = {log.name: sum(_segment_rows(log)) for log in logs}
    begins = {log.name: np.concatenate([[0], np.cumsum(_segment_rows(log))]) for log in logs}
    factors = {log.name: BlockFactors(layouts) for log in logs}
    for piece in row_pieces(model, logs):
        place = begins[piece.log][piece.segment] + piece.first + np.arange(len(piece))
        wide = _wide(model, piece.rows)
        mixed = [np.tensordot(row[: g + 1], wide[: g + 1], axes=1) for g, row in enumerate(mixing)]
        factors[piece.log].add(place * blocks_of(len(logs)) // totals[piece.log], mixed, np.ones((len(place), len(mixed))))
    entries = [entry for log in logs for entry in factors[log.name].entries(log.name, log.segments[0].repeats)]
    return StatisticSet(model.names, layouts, tuple(entries), f"{model.fingerprint} whitened")


def _mixing(covariance: Array) -> Array:
    """``diag(Ω)^½ L⁻¹``, lower triangular."""
    from scipy.linalg import cholesky

    inverse = solve_triangular(cholesky(covariance), np.eye(len(covariance)), transposed=True)
    return np.asarray(np.sqrt(np.diag(covariance))[:, None] * inverse)


def _layouts(model: DynamicModel) -> tuple[Layout, ...]:
    return tuple(Layout(group.name, group.joint, np.arange(len(model.names))) for group in model.groups)


def _wide(model: DynamicModel, parts: Sequence[Array]) -> Array:
    """Expands the rows of all groups to all columns, shape (groups, N, p + 1)."""
    wide = np.zeros((len(model.groups), len(parts[0]), len(model.names) + 1))
    for g, (group, rows) in enumerate(zip(model.groups, parts, strict=True)):
        wide[g][:, group.columns] = rows[:, :-1]
        wide[g][:, -1] = rows[:, -1]
    return wide


def _segment_rows(log: PreparedLog) -> list[int]:
    row_filter = RowFilter(log.conditioned.factor)
    return [row_filter.output_rows(len(segment)) for segment in log.segments]
