"""Physically consistent standard parameters, with a weight of the prior that the data do not contradict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, scaled_lstsq
from ..model.parameters import Parameter
from ..model.posterior import Posterior
from ..model.prior import USUAL_WEIGHT, Prior, least_weight
from ..statistics.fit import Fit, usual_weight
from ..statistics.folds import folds_of, worse
from ..statistics.statistic import StatisticSet
from .active_constraints import limit_notes
from .constraints import LmiOptions
from .lmi import LmiProblem

#: Candidate weights of the prior, in proportion to the usual one if that is larger than :data:`.prior.USUAL_WEIGHT`.
WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Standard:
    """Chosen standard parameters.

    Attributes:
        theta: Shape (p,).
        without_folds: Function that returns, for every fold of the data, the parameters that would be chosen without it, shape
            (p,) each; empty where nothing can be left out. None for methods other than the LMI with a weight.
    """

    theta: Array
    solver: dict[str, Any] = field(default_factory=dict)
    without_folds: Callable[[], Mapping[str, Array]] | None = None


def consistent_parameters(
    statistics: StatisticSet,
    fit: Fit,
    prior: Prior,
    parameters: tuple[Parameter, ...],
    options: LmiOptions | None = None,
    weight: float | None = None,
    notes: tuple[str, ...] = (),
    reversals: float = np.inf,
    solver: str | None = None,
) -> Standard:
    """Physically consistent parameters by an LMI; the prior has the usual weight unless the data contradict it.

    They do where the parameters under the usual weight are farther from the prior than it expects, as with a tool that the URDF
    lacks, or where held-out motion is predicted worse than by least squares without prior and constraints, beyond the error of
    the paired difference. Then the weight is chosen by held-out error over logs, or over parts in time of a single log. With
    few folds the smallest held-out error is mostly chance: of all weights between the best one and the usual one that are not
    worse than the best beyond that error, the nearest to the usual one is taken.

    Elsewhere, and where joints hardly reverse, so that unmodelled friction looks like another body, held-out errors do not
    choose: parts of one motion share the errors of the model and do not reveal what parameters farther from, or nearer to, the
    prior cost in another motion. Where joints hardly reverse, a fit follows the few motions closely in spite of the
    model's errors, so that its residuals, to which the usual weight (:func:`.usual_weight`) refers, are too small. There
    the weight is raised in proportion to the held-out mean square over that expected from these residuals. It is at least
    :func:`least_weight`.

    Args:
        weight: Weight of the prior; chosen as described if None.
        notes: Notes to add to the solver's own.
        reversals: Mean number of velocity reversals of the moving joints.
        solver: Name of a solver of CVXPY; None: Clarabel's own interface.

    Raises:
        SolverError: No robot satisfies the constraints, or the solver is not installed or cannot solve it.
    """
    problem = LmiProblem(prior, parameters, options, solver)
    factor = statistics.stacked(fit.weights)
    solve, record = cache(lambda weight: problem.solve(factor[:, :-1], factor[:, -1], weight)), dict[str, Any]()
    held_out = cache(lambda: _held_out(problem, statistics, fit))
    if weight is None:
        floor, raised = least_weight(reversals), cache(partial(usual_weight, statistics, fit))
        weight, record = raised(1.0), {"weight_choice": "the default: the data are too short for held-out errors"}
        contradicted = floor == 0 and prior.distance(solve(weight).theta) ** 2 > fit.seen.sum()
        if (held := held_out()) is not None:
            weight, record = _chosen_weight(held, raised, floor, contradicted)
    solution = solve(weight)
    entries = {**solution.as_dict(), **record}
    entries["notes"] = [*notes, *entries["notes"], *limit_notes(problem, solution, factor, fit)]

    def without_folds() -> Mapping[str, Array]:
        held = held_out()
        return {} if held is None else dict(zip(held.folds, held.estimates(solution.weight), strict=True))

    return Standard(solution.theta, {"method": "lmi", **entries}, without_folds)


class HeldOut:
    """Physically consistent parameters without each fold of the data, and their errors on it.

    Args:
        problem: Constraints and prior.
        split: Statistics whose "logs" are the folds.
        fit: For the weights of the row groups, and its reduction.
    """

    def __init__(self, problem: LmiProblem, split: StatisticSet, fit: Fit) -> None:
        self.folds, self.problem, self._weights = split.logs, problem, fit.weights
        self._train = [split.left_out(fold).stacked(fit.weights) for fold in split.logs]
        self._tests = [split.only([fold]) for fold in split.logs]
        self._independent, self._known = fit.base.independent, dict[float, list[Array]]()

    def estimates(self, weight: float) -> list[Array]:
        """Parameters without each fold, shape (p,) each; weight: of the prior."""
        if weight not in self._known:
            self._known[weight] = [self.problem.solve(R[:, :-1], R[:, -1], weight).theta for R in self._train]
        return self._known[weight]

    def squares(self, estimates: Iterable[Array]) -> Array:
        """Whitened squared held-out errors of parameters for each fold, shape (folds, groups)."""
        pairs = zip(self._tests, estimates, strict=True)
        return np.array([[w**2 * test.residual_squares(x, g) for g, w in self._weights.items()] for test, x in pairs])

    def errors(self, weight: float) -> Array:
        """Mean whitened squared held-out error of each fold, shape (folds,); weight: of the prior."""
        return self._means(self.estimates(weight))

    def least_squares(self) -> Array:
        """The same of least squares without prior and constraints."""
        alone, use = [np.zeros(R.shape[1] - 1) for R in self._train], self._independent
        for x, R in zip(alone, self._train, strict=True):
            x[use] = scaled_lstsq(R[:, use], R[:, -1])
        return self._means(alone)

    def variance(self) -> float:
        """Mean whitened variance of the held-out torque due to the parameters."""
        posterior = partial(Posterior, prior=self.problem.prior, weight=USUAL_WEIGHT)
        tests = [test.stacked(self._weights)[:, :-1] for test in self._tests]
        variances = [np.sum(posterior(R[:, :-1]).variance(S)) for R, S in zip(self._train, tests, strict=True)]
        return float(np.mean(variances / self._rows))

    def _means(self, estimates: Iterable[Array]) -> Array:
        return np.asarray(self.squares(estimates).sum(axis=1) / self._rows)

    @property
    def _rows(self) -> Array:
        return np.array([sum(test.rows.values()) for test in self._tests])


def _held_out(problem: LmiProblem, statistics: StatisticSet, fit: Fit) -> HeldOut | None:
    """The folds of a set of logs; None if the data are too short to hold any out."""
    try:
        return HeldOut(problem, folds_of(statistics), fit)
    except EstimationError:
        return None


def _chosen_weight(
    held: HeldOut, raised: Callable[[float], float], floor: float, contradicted: bool
) -> tuple[float, dict[str, Any]]:
    """Chooses the weight as :func:`consistent_parameters` describes.

    Args:
        raised: The usual weight where squared errors of the model are so many times as large as the residuals show.
        floor: The least weight that the motion requires; 0 where joints reverse.
        contradicted: Whether the data contradict the prior.

    Returns:
        The weight, and the entries about it in ``solver`` of identification.json.
    """
    usual, least_squares, variance = raised(1.0), held.least_squares(), held.variance()
    free = contradicted or (floor == 0 and worse(least_squares, held.errors(usual)))
    misfit = max(1.0, held.errors(usual).mean() / (1.0 + variance)) if floor > 0 else 1.0
    usual = raised(misfit)
    # candidates on both sides of the usual weight, until their errors stop decreasing
    candidates = [w / USUAL_WEIGHT * usual for w in WEIGHTS] if free else [max(usual, floor)]
    errors = {usual: held.errors(usual)}
    for side in ([w for w in candidates if w < usual][::-1], [w for w in candidates if w > usual]):
        before = errors[usual].mean()
        for weight in side:
            errors[weight] = held.errors(weight)
            if errors[weight].mean() >= before:
                break
            before = errors[weight].mean()
    best, favoured = min(errors, key=lambda weight: float(errors[weight].mean())), usual
    if free:
        between = [weight for weight in errors if min(best, usual) <= weight <= max(best, usual)]
        near = [weight for weight in between if not worse(errors[best], errors[weight])]
        favoured = min(near, key=lambda weight: abs(np.log(weight / usual)))
        doubt = f": smallest at {best:.3g}, {favoured:.3g} is not significantly worse"
        words = [f"held-out error over {len(held.folds)} folds{' is smallest' if favoured == best else doubt}"]
    else:
        why = "the joints hardly reverse" if floor else "the data do not contradict the prior"
        words = [f"the usual one, because {why}"]
    chosen = max(favoured, floor)
    reasons = {
        f"that is {usual:.3g}, because residuals are not independent: variances are so many times the nominal": (
            usual > USUAL_WEIGHT
        ),
        f"held-out errors squared, {misfit:.3g} times as large as expected, are counted in it": misfit > 1.0,
        f"raised to {floor:g}, because the joints hardly reverse": floor > favoured,
        "least squares without prior and constraints predicts held-out motion better": (
            worse(least_squares, errors.get(chosen, errors[best]))
        ),
    }
    words += [reason for reason, holds in reasons.items() if holds]
    tried = [{"weight": weight, "held_out": float(np.sqrt(errors[weight].mean()))} for weight in sorted(errors)]
    folds = {"count": len(held.folds), "variance": variance, "least_squares": float(np.sqrt(least_squares.mean()))}
    return chosen, {"weight_choice": "; ".join(words), "weights_tried": tried, "folds": folds}
