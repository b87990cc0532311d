"""Least squares with what is known beforehand: the noise of each row group, or the bodies.

**Maximum likelihood** weights each row group by its noise alone, which is the scatter between the periods of a repeated motion
(Wu 2012). **Ridge** adds the prior of the bodies to the rows, as if it had been measured with its standard deviations.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ...errors import EstimationError
from ...statistics.fit import Fit, fit_ridge
from ...statistics.statistic import StatisticSet
from ..uncertainty.noise import repetition_count, scatter_sigma
from .estimator import Estimated, EstimatorInput


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
