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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
        rule: "f-test" (with cross-validation), or one of the published rules (without): "relative_std", by the fit's
            standard errors, or "ratio".
        limit: Limit of the published rules; see :data:`LIMITS` if None.

    Raises:
        EstimationError: Unknown rule, or too few data for cross-validation.
    """
    check_known("rule for essential parameters", rule, ("f-test", *LIMITS), EstimationError)
    bound = LIMITS.get(rule, 0.0) if limit is None else limit
    weights = fit.row_weights or fit.weights
    rows = sum(statistics.rows.values())
    factor = statistics.stacked(weights, base.independent)
    every = np.flatnonzero(fit.seen)
    effective = _effective_rows(statistics, fit, rows)
    full = solve(_columns(factor, every), rows)
    factors: dict[StatisticSet, Array] = {}  # factor of each training set, shared by the sub-models
    held_out_error = partial(_held_out, statistics, base, weights, factors)
    reference = held_out_error(every)
    enlarged = _enlarged(fit, solve(factor, rows)) if rule == "relative_std" else np.ones(len(base))
    solution, steps, models = full, [], [every]
    while len(models[-1]) > 1:
        kept, relative = models[-1], enlarged[models[-1]] * _relative(solution)
        ratio = float(relative.max() / positive(relative.min()))
        if (rule == "ratio" and ratio <= bound) or (rule == "relative_std" and relative.max() <= bound):
            break
        worst = int(np.argmax(relative))
        fewer = np.delete(kept, worst)
        solution = solve(_columns(factor, fewer), rows)
        p_value = _f_test(full, solution, effective)
        held_out = held_out_error(fewer) / positive(reference)
        steps.append(Removal(base.labels[kept[worst]], float(relative[worst]), ratio, p_value, held_out))
        if rule == "f-test" and p_value < LEVEL:
            break
        models.append(fewer)
    kept, words = _selected(rule, bound, models, steps)
    return EssentialFit(kept, _embedded(fit, solve(_columns(factor, kept), rows), kept, factor, rows), tuple(steps), words)


def _selected(rule: str, bound: float, models: Sequence[IntArray], steps: Sequence[Removal]) -> tuple[IntArray, str]:
    """The parameters of the selected model, and the rule in words; models[k] is the one after k steps."""
    if rule == "ratio":
        return models[-1], f"ratio of relative errors at most {bound:g}"
    if rule == "relative_std":
        return models[-1], f"relative standard errors at most {bound:g} %"
    # the smallest that predicts as well as the full one
    last = max(k for k in range(len(models)) if k == 0 or steps[k - 1].held_out <= 1 + ALLOWED)
    return models[last], "F-test" if last == len(models) - 1 else f"held-out error may grow by {percent(100 * ALLOWED)} %"


def _columns(factor: Array, kept: IntArray) -> Array:
    return np.asarray(factor[:, np.append(kept, factor.shape[1] - 1)])


def _relative(solution: Solution) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = 100 * solution.std_error / np.abs(solution.estimate)
    return np.where(np.isfinite(relative), relative, 1e300)


def _effective_rows(statistics: StatisticSet, fit: Fit, rows: int) -> float:
    """Effective number of independent rows, from the jackknife variances over the model-based ones."""
    textbook = np.sqrt(np.diag(with_covariance(fit, statistics, "model").covariance))
    if fit.covariance_kind.startswith("model-based"):
        try:
            std_error = with_covariance(fit, statistics, "jackknife").bse
        except EstimationError:
            return float(rows)
    else:
        std_error = fit.bse
        textbook = solve(statistics.stacked(fit.row_weights or fit.weights, fit.base.independent), rows).std_error
    inflation = float(np.median((std_error[fit.seen] / textbook[fit.seen]) ** 2))
    return rows / max(inflation, 1.0)


def _f_test(full: Solution, fewer: Solution, effective: float) -> float:
    """P value of the increase of the residual, with the effective number of rows."""
    from scipy.special import fdtrc

    removed = full.rank - fewer.rank
    free = max(effective - full.rank, 1.0)
    growth = (fewer.residual_squares - full.residual_squares) / positive(full.residual_squares)
    return float(fdtrc(max(removed, 1), free, max(growth, 0.0) * free / max(removed, 1)))


def _held_out(
    statistics: StatisticSet,
    base: BaseParameters,
    weights: Mapping[str, float],
    factors: dict[StatisticSet, Array],
    kept: IntArray,
) -> float:
    """Held-out error in units of the noise, mean over row groups."""

    def estimate(part: StatisticSet) -> Array:
        if part not in factors:
            factors[part] = part.stacked(weights, base.independent)
        theta = np.zeros(part.p)
        theta[base.independent[kept]] = solve(_columns(factors[part], kept), sum(part.rows.values())).estimate
        return theta

    found = cross_validate(statistics, estimate)
    return float(np.mean(found.group_rmse * np.array([weights[group] for group in found.groups])))


def _enlarged(fit: Fit, full: Solution) -> Array:
    """Ratio of the fit's standard errors to those for independent rows, shape (b,)."""
    textbook = full.std_error
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(fit.seen & (textbook > 0), fit.bse / textbook, 1.0))


def _embedded(fit: Fit, solution: Solution, kept: IntArray, factor: Array, rows: int) -> Fit:
    """The reduced estimate with all b parameters; errors are enlarged by the same ratio as those of the full fit."""
    params, covariance = np.zeros(len(fit.base)), np.zeros((len(fit.base), len(fit.base)))
    params[kept] = solution.estimate
    scale = _enlarged(fit, solve(factor, rows))[kept]
    covariance[np.ix_(kept, kept)] = solution.covariance() * np.outer(scale, scale)
    return replace(fit, params=params, covariance=covariance, method=f"{fit.method}, essential", condition=solution.condition)
