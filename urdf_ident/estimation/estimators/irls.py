"""IRLS, iteratively re-weighted least squares, for data in which outliers dominate (Huber 1964; Beaton and Tukey 1974).

Residuals are evaluated, and weights assigned, at the log's full rate (:mod:`.outliers`); the weighted samples then pass through
the row filter together with their columns (:func:`..rows.filtered_rows`), and the weighted rows are solved again. Without a row
filter this is the usual M-estimate, with the median absolute residual as scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ...errors import EstimationError, check_known
from ...linalg import Array, robust_std, tukey_weights
from ...statistics.accumulate import build_statistics
from ...statistics.fit import SIGMA_FLOOR, Fit
from ...statistics.least_squares import MOST_ROUNDS
from .estimator import Estimated, EstimatorInput
from .outliers import sample_residuals

#: Tuning constant of Huber's loss for an efficiency of 95 % with Gaussian noise.
HUBER = 1.345
#: Converged if no parameter changes by more than this share of its standard error. The scale is a median, which a single sample
#: can change: iterations may cycle by less.
CONVERGED = 1e-2


def huber(u: Array) -> Array:
    """Returns Huber's weights: 1 up to :data:`HUBER`, then decreasing as 1/|u|.

    Args:
        u: Residuals over their scale, any shape.
    """
    return np.asarray(HUBER / np.maximum(np.abs(u), HUBER))


LOSSES: Mapping[str, Callable[[Array], Array]] = {"huber": huber, "tukey": tukey_weights}


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
        for _ in range(MOST_ROUNDS):
            before, estimated, rounds = estimated.fit, _reweighted(problem, estimated.fit, LOSSES[step]), rounds + 1
            moved = estimated.fit.distance(before.params)
            if moved < converged:
                break
        else:
            raise EstimationError(
                f"IRLS with {step} weights does not converge",
                got=f"{moved:.2g} standard errors after {MOST_ROUNDS} rounds",
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
    scales = np.where(without_effort, 1.0, robust_std(together))
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
