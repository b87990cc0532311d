"""Robust estimation by iteratively re-weighted least squares (IRLS), with a refit in every iteration.

Outliers occur in single samples of the torque, and the row filter would spread each over a dozen rows. Residuals are therefore
evaluated, and weights assigned, at the log's full rate; the weighted samples then pass through the row filter together with
their columns (:func:`..rows.filtered_rows`), and the weighted rows are solved again. Without a row filter this is the usual
M-estimate (Huber 1964; Beaton and Tukey 1974), with the median absolute residual as scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist

import numpy as np

from ...errors import EstimationError, check_known
from ...linalg import Array, BoolArray, positive
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.row_groups import joint_of
from ...parallel import each
from ...samples import Segment, columns, fast_speed
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import SIGMA_FLOOR, Fit, fit_base
from ...statistics.statistic import StatisticSet
from ...units import percent
from .estimator import Estimated, EstimatorInput

#: Tuning constants for an efficiency of 95 % with Gaussian noise.
HUBER, TUKEY = 1.345, 4.685
#: Maximum number of iterations; converged if no parameter changes by more than this share of its standard error. The scale is a
#: median, which a single sample can change: iterations may cycle, and a cycle up to the last number is accepted.
ROUNDS, CONVERGED, CIRCLE = 50, 1e-4, 1e-2
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


def huber(u: Array) -> Array:
    """Returns Huber's weights: 1 up to :data:`HUBER`, then decreasing as 1/|u|.

    Args:
        u: Residuals over their scale, any shape.

    Returns:
        Same shape, 0 to 1.
    """
    return np.asarray(HUBER / np.maximum(np.abs(u), HUBER))


def tukey(u: Array) -> Array:
    """Returns Tukey's biweight: smoothly decreasing, 0 beyond :data:`TUKEY`.

    Args:
        u: Residuals over their scale, any shape.

    Returns:
        Same shape, 0 to 1.
    """
    return np.asarray(np.maximum(1 - (np.asarray(u) / TUKEY) ** 2, 0.0) ** 2)


LOSSES: Mapping[str, Callable[[Array], Array]] = {"huber": huber, "tukey": tukey}


@dataclass(frozen=True, eq=False)
class RobustFit:
    """A robust estimate.

    Attributes:
        fit: The estimate; its model-based covariance assumes known weights.
        statistics: The weighted rows, for cross-validation and the jackknife.
        scale: Row group → robust standard deviation of the samples' residuals [unit of torque].
        down_weighted: Share of samples per row group with a weight below one half.
        weights: Log → weights of the samples of its segments, shape (N, groups) each, 0 to 1.
    """

    fit: Fit
    statistics: StatisticSet
    scale: Mapping[str, float]
    down_weighted: Mapping[str, float]
    rounds: int
    weights: Mapping[str, Sequence[Array]] = field(default_factory=dict)


def fit_robust(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    base: BaseParameters,
    *,
    loss: str = "tukey",
    reference: Array | None = None,
    converged: float = CONVERGED,
    start: Fit | None = None,
) -> RobustFit:
    """Estimates the base parameters by IRLS on samples, row groups weighted by their robust scale.

    Tukey's loss has several minima; its iteration starts from Huber's estimate, which is unique.

    Args:
        loss: "huber" or "tukey".
        reference: Base values kept where parameters are not identifiable, shape (b,); 0 if None.
        converged: See :data:`CONVERGED`.
        start: An estimate of the same parameters to start from; least squares if None.

    Raises:
        EstimationError: Unknown loss, too few rows, or no convergence.
    """
    check_known("robust loss", loss, LOSSES, EstimationError)
    fit = fit_base(build_statistics(model, logs), base, reference=reference) if start is None else start
    done = 0
    for step in dict.fromkeys(("huber", loss)):
        for _ in range(ROUNDS):
            residuals = {log.name: _sample_residuals(model, fit, log) for log in logs}
            scale = _scales(model, residuals)
            scales = np.array(list(scale.values()))
            weights = {name: [LOSSES[step](e / scales) for e in parts] for name, parts in residuals.items()}
            statistics = build_statistics(model, logs, weights=weights)
            before, done = fit, done + 1
            fit = fit_base(statistics, base, reference=reference, weights={g: 1.0 / s for g, s in scale.items()})
            moved = fit.distance(before.params)
            if moved < (converged if step == loss else 100 * converged):
                break
        else:
            if moved > CIRCLE:
                raise EstimationError(
                    f"IRLS with {step} weights does not converge",
                    got=f"{moved:.2g} standard errors after {ROUNDS} rounds",
                    remedy=("use loss huber, or " if step != "huber" else "") + "look for a log that does not fit the others",
                )
    low = {
        name: float(np.mean(np.concatenate([w[:, g] for parts in weights.values() for w in parts]) < 0.5))
        for g, name in enumerate(scale)
    }
    return RobustFit(replace(fit, method=f"irls ({loss})"), statistics, scale, low, done, weights)


def robust(problem: EstimatorInput) -> Estimated:
    """IRLS as an estimator."""
    model, logs, first = problem.model, problem.logs, problem.least_squares
    found = fit_robust(model, logs, problem.base, loss=problem.loss, reference=problem.reference, start=first)
    scale, low = dict(found.scale), dict(found.down_weighted)
    return Estimated(
        found.fit,
        found.statistics,
        logs=(),
        details={"loss": problem.loss, "rounds": found.rounds, "down_weighted": low, "scale": scale},
        refit=problem.refit(found.fit.row_weights),
        solved=found.statistics,
    )


def _sample_residuals(model: DynamicModel, fit: Fit, log: PreparedLog) -> list[Array]:
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


def _robust_scale(residuals: Array) -> Array:
    """Returns a robust standard deviation of residuals: median absolute residual over :data:`MAD`.

    Args:
        residuals: Shape (N,) or (N, groups).

    Returns:
        Shape () or (groups,), same unit.
    """
    return np.asarray(np.median(np.abs(residuals), axis=0) / MAD)


def _scales(model: DynamicModel, residuals: Mapping[str, list[Array]]) -> dict[str, float]:
    together = np.concatenate([part for parts in residuals.values() for part in parts])
    largest = np.abs(together).max(axis=0)
    without_effort = largest < SIGMA_FLOOR * largest.max()  # has no scale, as in statistics.fit.group_sigma
    scales = np.where(without_effort, 1.0, _robust_scale(together))
    if not (scales > 0).all():
        group = model.groups[int(np.argmin(scales))].name
        raise EstimationError("more than half of the residuals are exactly zero", where=group, remedy="use method wls")
    return {group.name: float(s) for group, s in zip(model.groups, scales, strict=True)}


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
        joint = joint_of(self.group)
        return (
            f"{percent(100 * self.share)} % of the torque samples of {joint} are outliers, more than {FAR:g} times the usual "
            f"error away, with {100 * self.power:.3g} % of its squared residual"
        )


def find_outliers(model: DynamicModel, fit: Fit, logs: Sequence[PreparedLog]) -> Outliers:
    """Counts outliers at the logs' full rate.

    Args:
        fit: Any estimate; least squares is good enough, because outliers differ from their neighbours.

    Raises:
        LogError: A log has no torque.
    """
    made = [pair for own in each(partial(_residuals, model, fit), logs) for pair in own]
    parts, apart = ([pair[k] for pair in made] for k in (0, 1))
    segments = [segment for log in logs for segment in log.segments]
    torques = np.sqrt(sum(_squares(model, segment) for segment in segments) / sum(map(len, segments)))
    found = []
    for group, residuals, away, torque in zip(model.groups, columns(parts), columns(apart), torques, strict=True):
        swift = _away_from_reversals(model, group.joint, segments)
        outlying = np.abs(away[swift]) > FAR * positive(max(float(_robust_scale(residuals)), LEAST * torque))
        squares = residuals[swift] ** 2
        power = (squares * outlying).sum() / positive(squares.sum())
        found.append(Outliers(group.name, float(outlying.mean()) if len(outlying) else 0.0, float(power)))
    return max(found, key=lambda outliers: outliers.power)


def _squares(model: DynamicModel, segment: Segment) -> Array:
    """Sum of squared torques of each row group, shape (groups,)."""
    return np.asarray(np.sum(model.row_targets(segment.measured, segment.external) ** 2, axis=0))


def _residuals(model: DynamicModel, fit: Fit, log: PreparedLog) -> list[tuple[Array, Array]]:
    """Residuals of each segment of a log, and their differences from the median of their neighbours, shape (N, groups) each."""
    from scipy.ndimage import median_filter

    return [(own, own - median_filter(own, (NEIGHBOURS, 1), mode="nearest")) for own in _sample_residuals(model, fit, log)]


def _away_from_reversals(model: DynamicModel, joint: int, segments: Sequence[Segment]) -> BoolArray:
    """Samples at which neither a joint nor a motor that drives it is near a reversal, shape (N,)."""
    turns = np.vstack([np.eye(model.n)[joint], model.drive.reduction[model.drive.reduction[:, joint] != 0]])
    swift = np.array(True)
    for turn in np.unique(turns, axis=0):  # one at a time, as arrays of many logs are large
        rate = np.concatenate([segment.v @ turn for segment in segments])
        np.abs(rate, out=rate)
        swift = swift & (rate >= _SWIFT * fast_speed(rate))
    return swift
