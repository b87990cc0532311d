"""Essential parameters: the smallest set that explains the data (Pham and Gautier 1991; Gautier 2013, §III.B).

The parameter with the largest relative standard error is eliminated, the others are fitted again, and so on. The published
stopping rule, a ratio of largest to smallest relative error, was harmful on real data, as it ignores the torque. Here an
F-test detects a significant increase of the residual, and cross-validation then selects the smallest model whose held-out error
exceeds that of the full model by at most :data:`ALLOWED`. A simpler rule is available too: parameters are eliminated until the
largest relative standard error is at most a limit. It keeps what is known well, whether or not the torque needs the rest,
which suits the choice of consistent standard parameters (Gautier 2013, §IV.C).

Rows of one log are not independent. The F statistic uses their effective number: the number of rows divided by the ratio of
the variance of the estimates to that for independent rows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ...errors import EstimationError, check_known
from ...linalg import Array, IntArray, positive
from ...model.base import BaseParameters
from ...statistics.fit import Fit
from ...statistics.folds import cross_validate
from ...statistics.least_squares import LEVEL, Solution, solve
from ...statistics.statistic import StatisticSet
from ...units import percent
from .covariance import with_covariance

#: Relative increase of the held-out error that is accepted for a smaller model.
ALLOWED = 0.005
#: Default limits of the published rules: largest relative standard error [%], and largest over smallest (Pham 1991).
LIMITS = {"relative_std": 6.0, "ratio": 10.0}


@dataclass(frozen=True, eq=False)
class Removal:
    """Elimination of one parameter.

    Attributes:
        relative_percent: Its relative standard error before the elimination [%].
        ratio: Largest over smallest relative error before the elimination.
        p_value: P value of the F-test of the reduced model against the full model.
        held_out: Held-out error of the reduced model over that of the full model.
    """

    removed: str
    relative_percent: float
    ratio: float
    p_value: float
    held_out: float


@dataclass(frozen=True)
class Essential:
    """The essential base parameters.

    Attributes:
        rule: Description of the stopping rule.
        names: Their names.
        held_out: Held-out error with these alone over that with all.
        removed: The eliminations of the others, in order.
    """

    rule: str
    names: tuple[str, ...]
    held_out: float
    removed: tuple[Removal, ...]

    def rows(self, base: BaseParameters) -> IntArray:
        """Returns the indices of the essential base parameters, ascending."""
        return np.flatnonzero(np.isin(base.labels, self.names))


def essential_parameters(
    statistics: StatisticSet,
    base: BaseParameters,
    fit: Fit,
    *,
    rule: str = "f-test",
    limit: float | None = None,
) -> Essential:
    """Finds the essential parameters.

    Args:
        statistics: Factors of the data, with at least two folds (logs or blocks).
        fit: The full estimate; its weights are kept.
        rule: "f-test" (decided with cross-validation), or one of the published rules, whose steps cross-validation only
            accompanies: "relative_std", by the fit's standard errors, or "ratio".
        limit: Limit of the published rules; see :data:`LIMITS` if None.

    Raises:
        EstimationError: Unknown rule, too few data for cross-validation, or none is essential by the rule relative_std.
    """
    check_known("rule for essential parameters", rule, ("f-test", *LIMITS), EstimationError)
    bound = LIMITS.get(rule, 0.0) if limit is None else limit
    kept = np.flatnonzero(fit.seen)
    removed = _eliminated(_SubModels(statistics, base, fit, kept), rule, bound)
    asked = "ratio of relative errors" if rule == "ratio" else "relative standard errors"
    words = f"{asked} at most {bound:g}{' %' if rule == 'relative_std' else ''}"
    if rule == "f-test":  # the smallest that predicts as well as the full one
        last = max((k for k, step in enumerate(removed, 1) if step.held_out <= 1 + ALLOWED), default=0)
        words = "F-test" if last == len(removed) else f"held-out error may grow by {percent(100 * ALLOWED)} %"
        removed = removed[:last]
    gone = {step.removed for step in removed}
    names = tuple(base.labels[k] for k in kept if base.labels[k] not in gone)
    return Essential(words, names, removed[-1].held_out if removed else 1.0, tuple(removed))


class _SubModels:
    """Least squares with some of the base parameters, by the weights of a fit.

    Attributes:
        every: Indices of the identifiable base parameters.
        enlarged: Ratio of the fit's errors to those for independent rows, shape (b,).
    """

    def __init__(self, statistics: StatisticSet, base: BaseParameters, fit: Fit, every: IntArray) -> None:
        self.statistics, self.base, self.weights, self.every = statistics, base, fit.row_weights, every
        self._factors: dict[StatisticSet, Array] = {}  # of all data and of each training set
        self.full = self.solved(self.every)
        self.enlarged = np.ones(len(base))
        self.enlarged[self.every] = np.where(self.full.std_error > 0, fit.bse[self.every] / positive(self.full.std_error), 1.0)
        inflation = self.enlarged  # the same of the jackknife, if the fit's errors are for independent rows
        if fit.covariance_kind.startswith("model-based"):
            inflation = np.ones(len(base))
            with suppress(EstimationError):
                jackknife = with_covariance(fit, statistics, "jackknife").bse
                inflation = np.where(fit.seen, jackknife / positive(fit.bse), 1.0)
        self._effective = sum(statistics.rows.values()) / max(float(np.median(inflation[self.every] ** 2)), 1.0)

    def solved(self, kept: IntArray, part: StatisticSet | None = None) -> Solution:
        """Least squares with some of the base parameters, from all data or a training set."""
        part = part or self.statistics
        if part not in self._factors:
            self._factors[part] = part.stacked(self.weights, self.base.independent)
        return solve(self._factors[part][:, np.append(kept, len(self.base))], sum(part.rows.values()))

    def held_out(self, kept: IntArray) -> float:
        """Held-out error in units of the noise, mean over row groups."""

        def estimate(part: StatisticSet) -> Array:
            theta = np.zeros(part.p)
            theta[self.base.independent[kept]] = self.solved(kept, part).estimate
            return theta

        validation = cross_validate(self.statistics, estimate)
        return float(np.mean(validation.group_rmse * np.array([self.weights[group] for group in validation.groups])))

    def f_test(self, fewer: Solution) -> float:
        """P value of the increase of the residual, with the effective number of rows."""
        from scipy.special import fdtrc

        removed, free = max(self.full.rank - fewer.rank, 1), max(self._effective - self.full.rank, 1.0)
        growth = (fewer.residual_squares - self.full.residual_squares) / positive(self.full.residual_squares)
        return float(fdtrc(removed, free, max(growth, 0.0) * free / removed))


def _eliminated(models: _SubModels, rule: str, bound: float) -> list[Removal]:
    """Eliminates one parameter after the other until a rule stops.

    Raises:
        EstimationError: None is essential by the rule relative_std.
    """
    removed, kept, solution, reference = list[Removal](), models.every, models.full, positive(models.held_out(models.every))
    while True:
        relative = 100 * solution.std_error / positive(np.abs(solution.estimate))
        relative *= models.enlarged[kept] if rule == "relative_std" else 1.0
        ratio, worst = float(relative.max() / positive(relative.min())), int(np.argmax(relative))
        label = models.base.labels[kept[worst]]
        if (rule == "ratio" and ratio <= bound) or (rule == "relative_std" and relative.max() <= bound):
            return removed
        if len(kept) <= 1:
            if rule == "relative_std":
                raise EstimationError(
                    "no parameter is essential",
                    got=f"{label} alone has a relative standard error of {relative.max():.2g} %",
                    expected=f"at most {bound:g} %",
                    remedy="raise estimation.essential.limit, or record motion that shows more",
                )
            return removed
        kept = np.delete(kept, worst)
        solution = models.solved(kept)
        p_value = models.f_test(solution)
        if rule == "f-test" and p_value < LEVEL:
            return removed
        removed.append(Removal(label, float(relative[worst]), ratio, p_value, models.held_out(kept) / reference))
