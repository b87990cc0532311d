"""Robust estimation by iteratively re-weighted least squares (IRLS), with a refit in every iteration.

Outliers occur in single samples of the torque, and the row filter would spread each over a dozen rows. Residuals are therefore
evaluated, and weights assigned, at the log's full rate; the weighted samples then pass through the row filter together with
their columns (:func:`..rows.filtered_rows`), and the weighted rows are solved again. Without a row filter this is the usual
M-estimate (Huber 1964; Beaton and Tukey 1974), with the median absolute residual as scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from ...errors import EstimationError, check_known
from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import SIGMA_FLOOR, Fit
from .estimator import Estimated, EstimatorInput

#: Tuning constants for an efficiency of 95 % with Gaussian noise.
HUBER, TUKEY = 1.345, 4.685
#: Maximum number of iterations; converged if no parameter changes by more than this share of its standard error. The scale is a
#: median, which a single sample can change: iterations may cycle by less.
ROUNDS, CONVERGED = 50, 1e-2
#: The median absolute residual of Gaussian noise over its standard deviation.
MAD = NormalDist().inv_cdf(0.75)


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


def robust(problem: EstimatorInput, converged: float = CONVERGED) -> Estimated:
    """IRLS on samples, row groups weighted by the robust scale of their residuals.

    Tukey's loss has several minima; its iteration starts from Huber's estimate, which is unique.

    Args:
        converged: See :data:`CONVERGED`.

    Raises:
        EstimationError: Unknown loss, too few rows, or no convergence.
    """
    model, logs, loss, fit = problem.model, problem.logs, problem.loss, problem.least_squares
    check_known("robust loss", loss, LOSSES, EstimationError)
    done = 0
    for step in dict.fromkeys(("huber", loss)):
        for _ in range(ROUNDS):
            residuals = {log.name: sample_residuals(model, fit, log) for log in logs}
            scale = _scales(model, residuals)
            scales = np.array(list(scale.values()))
            weights = {name: [LOSSES[step](e / scales) for e in parts] for name, parts in residuals.items()}
            statistics = build_statistics(model, logs, weights=weights)
            before, done = fit, done + 1
            fit = problem.refit({group: 1.0 / value for group, value in scale.items()})(statistics)
            moved = fit.distance(before.params)
            if moved < converged:
                break
        else:
            raise EstimationError(
                f"IRLS with {step} weights does not converge",
                got=f"{moved:.2g} standard errors after {ROUNDS} rounds",
                remedy=("use loss huber, or " if step != "huber" else "") + "look for a log that does not fit the others",
            )
    every = np.concatenate([part for parts in weights.values() for part in parts])
    low = dict(zip(scale, np.mean(every < 0.5, axis=0).tolist(), strict=True))
    return Estimated(
        replace(fit, method=f"irls ({loss})"),
        statistics,
        logs=(),
        details={"loss": loss, "rounds": done, "down_weighted": low, "scale": scale},
        refit=problem.refit(fit.row_weights),
        solved=statistics,
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

    Returns:
        Shape () or (groups,), same unit.
    """
    return np.asarray(np.median(np.abs(residuals), axis=0) / MAD)


def _scales(model: DynamicModel, residuals: Mapping[str, list[Array]]) -> dict[str, float]:
    together = np.concatenate([part for parts in residuals.values() for part in parts])
    largest = np.abs(together).max(axis=0)
    without_effort = largest < SIGMA_FLOOR * largest.max()  # has no scale, as in statistics.fit.group_sigma
    scales = np.where(without_effort, 1.0, robust_scale(together))
    if not (scales > 0).all():
        group = model.groups[int(np.argmin(scales))].name
        raise EstimationError("more than half of the residuals are exactly zero", where=group, remedy="use method wls")
    return {group.name: float(s) for group, s in zip(model.groups, scales, strict=True)}
