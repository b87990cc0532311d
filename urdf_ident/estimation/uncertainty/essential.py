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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import EstimationError, check_known
from ...linalg import Array, IntArray, positive
from ...model.base import BaseParameters
from ...samples import ReadOnly
from ...statistics.fit import Fit
from ...statistics.folds import cross_validate
from ...statistics.least_squares import Solution, solve
from ...statistics.statistic import StatisticSet
from ...units import percent
from .covariance import with_covariance

#: Relative increase of the held-out error that is accepted for a smaller model.
ALLOWED = 0.005
#: Significance level of the F-test for an increase of the residual.
LEVEL = 0.05
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


@dataclass(frozen=True, eq=False)
class EssentialFit(ReadOnly):
    """The essential base parameters.

    Attributes:
        kept: Indices of the essential base parameters, shape (e,), ascending.
        fit: The estimate of all b parameters; eliminated ones are zero and have zero standard error.
        steps: The eliminations in order, including those that were reversed.
        rule: Description of the stopping rule.
    """

    kept: IntArray
    fit: Fit
    steps: tuple[Removal, ...]
    rule: str

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def removed(self) -> tuple[Removal, ...]:
        """The eliminations that were not reversed."""
        return self.steps[: int(self.fit.seen.sum()) - len(self)]

    def as_dict(self) -> dict[str, Any]:
        """The entry in identification.json."""
        return {
            "rule": self.rule,
            "names": [self.fit.base.labels[k] for k in self.kept],
            "held_out": self.removed[-1].held_out if self.removed else 1.0,
            "removed": [vars(step) for step in self.removed],
        }

    def summary(self) -> str:
        """Returns one line, and another for each eliminated parameter."""
        lines = [f"{len(self)} of {len(self.fit.base)} base parameters are essential ({self.rule})"]
        lines += [
            f"  without {step.removed:<28} {step.relative_percent:8.3g} %  held-out × {step.held_out:.4f}"
            for step in self.removed
        ]
        return "\n".join(lines)


def essential_parameters(
    statistics: StatisticSet,
    base: BaseParameters,
    fit: Fit,
    *,
    rule: str = "f-test",
    limit: float | None = None,
) -> EssentialFit:
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
    from scipy.special import fdtrc

    check_known("rule for essential parameters", rule, ("f-test", *LIMITS), EstimationError)
    bound = LIMITS.get(rule, 0.0) if limit is None else limit
    weights, rows, every = fit.row_weights or fit.weights, sum(statistics.rows.values()), np.flatnonzero(fit.seen)
    factors: dict[StatisticSet, Array] = {}  # of all data and of each training set, shared by the sub-models

    def reduced(part: StatisticSet, kept: IntArray) -> Solution:
        """Least squares with some of the base parameters."""
        if part not in factors:
            factors[part] = part.stacked(weights, base.independent)
        return solve(factors[part][:, np.append(kept, len(base))], sum(part.rows.values()))

    def held_out_error(kept: IntArray) -> float:
        """In units of the noise, mean over row groups."""

        def estimate(part: StatisticSet) -> Array:
            theta = np.zeros(part.p)
            theta[base.independent[kept]] = reduced(part, kept).estimate
            return theta

        validation = cross_validate(statistics, estimate)
        return float(np.mean(validation.group_rmse * np.array([weights[group] for group in validation.groups])))

    full, reference = reduced(statistics, every), held_out_error(every)
    enlarged = np.ones(len(base))  # ratio of the fit's errors to those for independent rows
    enlarged[every] = np.where(full.std_error > 0, fit.bse[every] / positive(full.std_error), 1.0)
    inflation = enlarged  # the same of the jackknife, if the fit's errors are for independent rows
    if fit.covariance_kind.startswith("model-based"):
        inflation = np.ones(len(base))
        with suppress(EstimationError):
            jackknife = with_covariance(fit, statistics, "jackknife").bse
            inflation = np.where(fit.seen, jackknife / positive(fit.bse), 1.0)
    effective = rows / max(float(np.median(inflation[every] ** 2)), 1.0)

    def f_test(fewer: Solution) -> float:
        """P value of the increase of the residual, with the effective number of rows."""
        removed, free = max(full.rank - fewer.rank, 1), max(effective - full.rank, 1.0)
        growth = (fewer.residual_squares - full.residual_squares) / positive(full.residual_squares)
        return float(fdtrc(removed, free, max(growth, 0.0) * free / removed))

    solution, steps, models = full, [], [every]
    while len(models[-1]) > 1:
        kept = models[-1]
        relative = 100 * solution.std_error / positive(np.abs(solution.estimate))
        relative *= enlarged[kept] if rule == "relative_std" else 1.0
        ratio = float(relative.max() / positive(relative.min()))
        if (rule == "ratio" and ratio <= bound) or (rule == "relative_std" and relative.max() <= bound):
            break
        worst = int(np.argmax(relative))
        fewer = np.delete(kept, worst)
        solution = reduced(statistics, fewer)
        p_value, held_out = f_test(solution), held_out_error(fewer) / positive(reference)
        steps.append(Removal(base.labels[kept[worst]], float(relative[worst]), ratio, p_value, held_out))
        if rule == "f-test" and p_value < LEVEL:
            break
        models.append(fewer)
    if rule == "relative_std" and len(models[-1]) == 1:
        (only,) = models[-1]
        relative_error = float(100 * enlarged[only] * solution.std_error[0] / positive(np.abs(solution.estimate[0])))
        if relative_error > bound:
            raise EstimationError(
                "no parameter is essential",
                got=f"{base.labels[only]} alone has a relative standard error of {relative_error:.2g} %",
                expected=f"at most {bound:g} %",
                remedy="raise estimation.essential.limit, or record motion that shows more",
            )
    last, asked = len(models) - 1, "ratio of relative errors" if rule == "ratio" else "relative standard errors"
    words = f"{asked} at most {bound:g}{' %' if rule == 'relative_std' else ''}"
    if rule == "f-test":  # the smallest that predicts as well as the full one
        last = max(k for k in range(len(models)) if k == 0 or steps[k - 1].held_out <= 1 + ALLOWED)
        words = "F-test" if last == len(models) - 1 else f"held-out error may grow by {percent(100 * ALLOWED)} %"
    kept, solution = models[last], reduced(statistics, models[last])
    params, covariance = np.zeros(len(base)), np.zeros((len(base), len(base)))
    params[kept] = solution.estimate
    covariance[np.ix_(kept, kept)] = solution.covariance() * np.outer(enlarged[kept], enlarged[kept])
    fewest = replace(fit, params=params, covariance=covariance, method=f"{fit.method}, essential", condition=solution.condition)
    return EssentialFit(kept, fewest, tuple(steps), words)
