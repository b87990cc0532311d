"""Least squares with other weights: of samples, of all joints' rows together, by repetitions, or with the prior.

**IRLS**, iteratively re-weighted least squares, where outliers dominate. Outliers occur in single samples of the torque, and
the row filter would spread each over a dozen rows. Residuals are therefore evaluated, and weights assigned, at the log's full
rate; the weighted samples then pass through the row filter together with their columns (:func:`..rows.filtered_rows`), and the
weighted rows are solved again. Without a row filter this is the usual M-estimate (Huber 1964; Beaton and Tukey 1974), with the
median absolute residual as scale.

**GLS** with the full covariance of one sample's rows (Liu 2023, §III.C; Aitken 1936). The joints' residuals are not
independent: a model error at one joint affects its neighbours at the same instant. With Ω (n × n) the covariance of one
sample's rows and Ω = L Lᵀ, the rows ``L⁻¹ [W | tau]`` have independent residuals of variance 1; Ω follows from the residuals
and the estimate from the whitened rows, in turn until both converge. One triangular factor of the rows of all groups side by
side contains all second moments within a sample, and serves for the iteration. A row of the whitened problem mixes all
joints, which requires a last pass over the rows; its factors are then used like those of unweighted rows.

**Maximum likelihood** weights each row group by its noise alone, which is the scatter between the periods of a repeated motion.
**Ridge** adds the prior of the bodies to the rows, as if it had been measured with its standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from statistics import NormalDist

import numpy as np

from ...errors import EstimationError, check_known
from ...linalg import Array, positive, solve_triangular, triangle
from ...model.dynamic_model import DynamicModel
from ...model.row_groups import joint_of
from ...parallel import each
from ...samples import Segment, columns, fast_speed, moving, turns
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import Rows, build_statistics
from ...statistics.fit import SIGMA_FLOOR, Fit, fit_ridge
from ...statistics.rows import RowFilter, filtered_rows, row_pieces
from ...statistics.statistic import Layout, Statistic, StatisticSet
from ...units import percent
from ..uncertainty.noise import repetition_count, scatter_sigma
from .estimator import Estimated, EstimatorInput

#: Tuning constants for an efficiency of 95 % with Gaussian noise.
HUBER, TUKEY = 1.345, 4.685
#: Maximum number of iterations; converged if no parameter changes by more than this share of its standard error. The scale is a
#: median, which a single sample can change: iterations may cycle by less.
ROUNDS, CONVERGED = 50, 1e-2
#: The median absolute residual of Gaussian noise over its standard deviation.
MAD = NormalDist().inv_cdf(0.75)
#: A sample is an outlier if it differs from its neighbours by this many robust standard deviations of the residual.
FAR = 10.0
#: Lower limit of that standard deviation, as a share of the torque's root mean square, since a model may be exact.
LEAST = 1e-3
#: Number of neighbours, the sample itself included, whose median it is compared with.
NEIGHBOURS = 5
#: Outliers matter if they cause more than this share of a row group's squared residual: they alone then increase standard
#: errors by more than a factor of √2.
POWER = 0.5
#: Samples below this share of a joint's fast speed are near a reversal.
_SWIFT = 0.2
#: Maximum number of iterations of generalized least squares; converged if no parameter changes by more than this share of its
#: standard error.
GLS_ROUNDS, GLS_CONVERGED = 100, 1e-3
#: Condition number of Ω's correlations above which the residuals of joints count as identical.
SINGULAR = 1e10


def huber(u: Array) -> Array:
    """Returns Huber's weights: 1 up to :data:`HUBER`, then decreasing as 1/|u|.

    Args:
        u: Residuals over their scale, any shape.
    """
    return np.asarray(HUBER / np.maximum(np.abs(u), HUBER))


def tukey(u: Array) -> Array:
    """Returns Tukey's biweight: smoothly decreasing, 0 beyond :data:`TUKEY`.

    Args:
        u: Residuals over their scale, any shape.
    """
    return np.asarray(np.maximum(1 - (np.asarray(u) / TUKEY) ** 2, 0.0) ** 2)


LOSSES: Mapping[str, Callable[[Array], Array]] = {"huber": huber, "tukey": tukey}


def robust(problem: EstimatorInput, converged: float = CONVERGED) -> Estimated:
    """IRLS on samples, row groups weighted by the robust scale of their residuals.

    Tukey's loss has several minima; its iteration starts from Huber's estimate, which is unique.

    Args:
        converged: See :data:`CONVERGED`.

    Raises:
        EstimationError: Unknown loss, too few rows, or no convergence.
    """
    loss, estimated, rounds = problem.loss, Estimated(problem.least_squares, problem.statistics), 0
    check_known("robust loss", loss, LOSSES, EstimationError)
    for step in dict.fromkeys(("huber", loss)):
        for _ in range(ROUNDS):
            before, estimated, rounds = estimated.fit, _reweighted(problem, estimated.fit, LOSSES[step]), rounds + 1
            moved = estimated.fit.distance(before.params)
            if moved < converged:
                break
        else:
            raise EstimationError(
                f"IRLS with {step} weights does not converge",
                got=f"{moved:.2g} standard errors after {ROUNDS} rounds",
                remedy=("use loss huber, or " if step != "huber" else "") + "look for a log that does not fit the others",
            )
    details = {"loss": loss, "rounds": rounds, **estimated.details}
    return replace(estimated, fit=replace(estimated.fit, method=f"irls ({loss})"), details=details)


def _reweighted(problem: EstimatorInput, fit: Fit, weigh: Callable[[Array], Array]) -> Estimated:
    """One round of IRLS: scale of the residuals of an estimate, weights of the samples, and the estimate with these weights.

    Args:
        weigh: Weights of residuals over their scale, one of :data:`LOSSES`.
    """
    model, logs = problem.model, problem.logs
    residuals = {log.name: sample_residuals(model, fit, log) for log in logs}
    together = np.concatenate([part for parts in residuals.values() for part in parts])
    largest = np.abs(together).max(axis=0)
    without_effort = largest < SIGMA_FLOOR * largest.max()  # has no scale, as in statistics.fit.group_sigma
    scales = np.where(without_effort, 1.0, robust_scale(together))
    if not (scales > 0).all():
        group = model.groups[int(np.argmin(scales))].name
        raise EstimationError("more than half of the residuals are exactly zero", where=group, remedy="use method wls")
    scale = dict(zip((group.name for group in model.groups), scales.tolist(), strict=True))
    weights = {name: [weigh(e / scales) for e in parts] for name, parts in residuals.items()}
    statistics = build_statistics(model, logs, weights=weights)
    fit = problem.refit({group: 1.0 / value for group, value in scale.items()})(statistics)
    low = np.mean(np.concatenate([part for parts in weights.values() for part in parts]) < 0.5, axis=0)
    return Estimated(
        fit,
        statistics,
        logs=(),
        details={"down_weighted": dict(zip(scale, low.tolist(), strict=True)), "scale": scale},
        refit=problem.refit(fit.row_weights),
        weights=weights,
    )


def sample_residuals(model: DynamicModel, fit: Fit, log: PreparedLog) -> list[Array]:
    """Returns the residuals at the log's full rate, before any row filter.

    Returns:
        Per segment, shape (N, groups) [unit of torque], scaled to the noise of a single repetition.
    """
    theta = fit.base.embedded(fit.params)
    out = []
    for segment in log.segments:
        predicted = model.row_targets(model.torque_along(theta, segment))
        out.append(np.sqrt(segment.repeats) * (model.row_targets(segment.measured, segment.external) - predicted))
    return out


def robust_scale(residuals: Array) -> Array:
    """Returns a robust standard deviation of residuals: median absolute residual over :data:`MAD`.

    Args:
        residuals: Shape (N,) or (N, groups).
    """
    return np.asarray(np.median(np.abs(residuals), axis=0) / MAD)


@dataclass(frozen=True)
class Outliers:
    """Outliers of some logs.

    Attributes:
        share: Share of outliers in its samples away from reversals.
        power: Their share of the squared residual there.
    """

    group: str
    share: float
    power: float

    @property
    def dominate(self) -> bool:
        """Whether least squares would be dominated by them."""
        return self.power > POWER

    def describe(self) -> str:
        """Returns the outliers in one sentence."""
        return (
            f"{percent(100 * self.share)} % of the torque samples of {joint_of(self.group)} are outliers, more than {FAR:g} "
            f"times the usual error away, with {100 * self.power:.3g} % of its squared residual"
        )


def find_outliers(model: DynamicModel, fit: Fit, logs: Sequence[PreparedLog]) -> Outliers:
    """Returns the row group whose outliers have the largest share in its squared residual, at the logs' full rate.

    Args:
        fit: Any estimate; least squares is good enough, because outliers differ from their neighbours.

    Raises:
        LogError: A log has no torque.
    """
    residuals_of = [pair for of_log in each(partial(_residuals, model, fit), logs) for pair in of_log]
    parts, apart = ([pair[k] for pair in residuals_of] for k in (0, 1))
    segments = [segment for log in logs for segment in log.segments]
    squares = sum(np.sum(model.row_targets(segment.measured, segment.external) ** 2, axis=0) for segment in segments)
    torques = np.sqrt(squares / sum(map(len, segments)))
    # samples at which no joint reverses within NEIGHBOURS: one that breaks loose shakes the others
    steady = np.ones(sum(map(len, segments)), dtype=bool)
    velocities = [segment.v for segment in segments]  # by column twice, as one of many logs is large
    moves = moving(np.array([fast_speed(speed) for speed in columns(velocities)]), model.robot.prismatic)
    for speed in compress(columns(velocities), moves):
        for before, after in turns(speed).T:
            steady[max(0, before - NEIGHBOURS) : after + NEIGHBOURS + 1] = False
    of_groups = []
    for group, residuals, away, torque in zip(model.groups, columns(parts), columns(apart), torques, strict=True):
        # neither the joint nor a motor that drives it is near a reversal
        drives = np.vstack([np.eye(model.n)[group.joint], model.drive.reduction[model.drive.reduction[:, group.joint] != 0]])
        swift = steady
        for drive in np.unique(drives, axis=0):  # one at a time, as arrays of many logs are large
            rate = np.concatenate([segment.v @ drive for segment in segments])
            np.abs(rate, out=rate)
            swift = swift & (rate >= _SWIFT * fast_speed(rate))
        outlying = np.abs(away[swift]) > FAR * positive(max(float(robust_scale(residuals)), LEAST * torque))
        squares = residuals[swift] ** 2
        power = (squares * outlying).sum() / positive(squares.sum())
        of_groups.append(Outliers(group.name, float(outlying.mean()) if len(outlying) else 0.0, float(power)))
    return max(of_groups, key=lambda outliers: outliers.power)


def _residuals(model: DynamicModel, fit: Fit, log: PreparedLog) -> list[tuple[Array, Array]]:
    """Residuals of each segment of a log, and their differences from the median of their neighbours, shape (N, groups) each."""
    from scipy.ndimage import median_filter

    return [
        (residuals, residuals - median_filter(residuals, (NEIGHBOURS, 1), mode="nearest"))
        for residuals in sample_residuals(model, fit, log)
    ]


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
    for turn in range(1, GLS_ROUNDS + 1):
        theta, parts = fit.base.embedded(fit.params), zip(model.groups, beside, strict=True)
        error = np.column_stack([part[:, -1] - part[:, :-1] @ theta[group.columns] for group, part in parts])
        # the parameters are counted in equal shares for all row groups
        covariance = np.asarray(error.T @ error / max(count - fit.seen.sum() / len(model.groups), 1.0))
        std = np.sqrt(np.diag(covariance))
        if not (std > 0).all():
            where = model.groups[int(np.argmin(std))].name
            raise EstimationError("a residual is exactly zero", where=where, remedy="use method wls")
        if np.linalg.cond(covariance / np.outer(std, std)) > SINGULAR:
            raise EstimationError("the residuals of some joints are copies of each other", remedy="use method wls")
        weights = {group.name: 1.0 / s for group, s in zip(model.groups, std, strict=True)}
        entries = tuple(
            Statistic("all", 0, group.name, triangle(np.tensordot(row, wide, axes=1)), count)
            for group, row in zip(model.groups, _mixing(covariance), strict=True)
        )
        whitened = StatisticSet(model.names, layouts, entries, f"{model.fingerprint} whitened")
        before, fit = fit, problem.refit(weights)(whitened)
        if fit.distance(before.params) < GLS_CONVERGED:
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
    raise EstimationError("covariance and estimate do not converge", got=f"{GLS_ROUNDS} rounds", remedy="use method wls")


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


def maximum_likelihood(problem: EstimatorInput) -> Estimated:
    """Least squares weighted by the noise between repetitions (Wu 2012)."""
    sigma = scatter_sigma(problem.model, problem.logs)
    if min(sigma.values()) <= 0:
        raise EstimationError(
            "the periods do not differ at all: there is no noise to weight by",
            where=min(sigma, key=sigma.__getitem__),
            remedy="use estimation.method: wls",
        )
    weights = {group: 1.0 / value for group, value in sigma.items()}

    def refit(part: StatisticSet) -> Fit:
        return replace(problem.refit(weights)(part), method="ml")

    why = f"rows weighted by the scatter between {repetition_count(problem.logs)} periods"
    return Estimated(refit(problem.statistics), problem.statistics, why, refit=refit)


def ridge(problem: EstimatorInput) -> Estimated:
    """Least squares with the prior of the bodies."""
    if problem.prior is None:
        raise EstimationError("ridge needs a prior", remedy="use method wls")
    refit, statistics = partial(fit_ridge, fit=problem.least_squares, prior=problem.prior), problem.statistics
    fit = refit(statistics)

    def errors(kind: str) -> Fit:
        if kind not in ("auto", "model"):
            raise EstimationError(
                "method ridge has errors of its own", where="estimation.covariance", got=kind, expected="auto"
            )
        return fit

    return Estimated(fit, statistics, errors=errors, refit=refit)
