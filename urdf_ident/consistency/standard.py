"""Physically consistent standard parameters, with a weight of the prior that the data do not contradict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, scaled_lstsq
from ..model.parameters import Parameter
from ..model.posterior import Posterior
from ..model.prior import USUAL_WEIGHT, Prior, least_weight
from ..statistics.choice import worse
from ..statistics.fit import Fit, usual_weight
from ..statistics.folds import folds_of
from ..statistics.statistic import StatisticSet
from .active_constraints import limit_notes
from .constraints import LmiOptions
from .lmi import LmiProblem

#: Candidate weights of the prior, in proportion to the usual one if that is larger than :data:`.prior.USUAL_WEIGHT`.
WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Nominal standard errors below zero that noise cannot explain (nominal ones are about four times too small).
_CERTAIN = 12.0


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
    R, rho = _data(statistics, fit)
    solve, record = cache(lambda weight: problem.solve(R, rho, weight)), dict[str, Any]()
    folds = cache(lambda: Folds.of(problem, statistics, fit))
    if weight is None:
        floor, raised = least_weight(reversals), cache(partial(usual_weight, statistics, fit))
        weight, record = raised(1.0), {"weight_choice": "the default: the data are too short for held-out errors"}
        contradicted = floor == 0 and prior.distance(solve(weight).theta) ** 2 > fit.seen.sum()
        if (held := folds()) is not None:
            choice = held.choose(raised, floor, contradicted)
            weight, record = choice.weight, choice.as_dict()
    solution = solve(weight)
    entries = {**solution.as_dict(), **record}
    least = float(np.sum((R[:, fit.base.independent] @ fit.params - rho) ** 2))
    held_back = limit_notes(problem, solution, (R, rho), least)
    entries["notes"] = [*notes, *entries["notes"], *_held_at_zero(fit, parameters, solution.active), *held_back]

    def without_folds() -> Mapping[str, Array]:
        held = folds()
        return {} if held is None else held.estimates(solution.weight)

    return Standard(solution.theta, {"method": "lmi", **entries}, without_folds)


def _data(statistics: StatisticSet, fit: Fit) -> tuple[Array, Array]:
    factor = statistics.stacked(fit.weights)
    return factor[:, :-1], factor[:, -1]


@dataclass(frozen=True, eq=False)
class WeightChoice:
    """The weight of the prior by held-out data.

    Attributes:
        usual: The usual weight, raised for ``misfit``.
        best: The weight of the smallest held-out error.
        favoured: The weight nearest to the usual one that is not worse than the best; the usual one unless ``free``.
        floor: The least weight that the motion requires.
        free: Whether held-out errors choose.
        misfit: Held-out errors squared over those expected from the residuals, at least 1.
        errors: Weight → mean whitened squared error of each fold, shape (folds,).
        least_squares: The same without prior and constraints.
        variance: Part of them that is due to the parameters.
    """

    usual: float
    best: float
    favoured: float
    floor: float
    free: bool
    misfit: float
    errors: Mapping[float, Array]
    least_squares: Array
    variance: float

    @property
    def weight(self) -> float:
        """The chosen weight."""
        return max(self.favoured, self.floor)

    def describe(self) -> str:
        """Returns the reason for the weight."""
        if self.free:
            doubt = f": smallest at {self.best:.3g}, {self.favoured:.3g} is not significantly worse"
            how = " is smallest" if self.favoured == self.best else doubt
            words = [f"held-out error over {len(self.least_squares)} folds{how}"]
        else:
            why = "the joints hardly reverse" if self.floor else "the data do not contradict the prior"
            words = [f"the usual one, because {why}"]
        if self.usual > USUAL_WEIGHT:
            times = "residuals are not independent: variances are so many times the nominal"
            words.append(f"that is {self.usual:.3g}, because {times}")
            if self.misfit > 1.0:
                words.append(f"held-out errors squared, {self.misfit:.3g} times as large as expected, are counted in it")
        if self.floor > self.favoured:
            words.append(f"raised to {self.floor:g}, because the joints hardly reverse")
        if worse(self.least_squares, self.errors.get(self.weight, self.errors[self.best])):
            words.append("least squares without prior and constraints predicts held-out motion better")
        return "; ".join(words)

    def as_dict(self) -> dict[str, Any]:
        """Returns its entries in ``solver`` of identification.json."""
        held_out = {weight: float(np.sqrt(self.errors[weight].mean())) for weight in sorted(self.errors)}
        least = float(np.sqrt(self.least_squares.mean()))
        return {
            "weight_choice": self.describe(),
            "weights_tried": [{"weight": weight, "held_out": error} for weight, error in held_out.items()],
            "folds": {"count": len(self.least_squares), "variance": self.variance, "least_squares": least},
        }


class Folds:
    """Physically consistent parameters without each fold of the data, and their errors on it.

    Args:
        problem: Constraints and prior.
        split: Statistics whose "logs" are the folds.
        fit: For the weights of the row groups, and its reduction.
    """

    def __init__(self, problem: LmiProblem, split: StatisticSet, fit: Fit) -> None:
        self.names, self._problem, self._independent = split.logs, problem, fit.base.independent
        self._train = [_data(split.left_out(fold), fit) for fold in split.logs]
        alone = [split.only([fold]) for fold in split.logs]
        self._tests = [(*_data(test, fit), sum(test.rows.values())) for test in alone]
        self._known = dict[float, Mapping[str, Array]]()

    @classmethod
    def of(cls, problem: LmiProblem, statistics: StatisticSet, fit: Fit) -> Folds | None:
        """The folds of a set of logs; None if the data are too short to hold any out."""
        try:
            return cls(problem, folds_of(statistics), fit)
        except EstimationError:
            return None

    def estimates(self, weight: float) -> Mapping[str, Array]:
        """Parameters without each fold, shape (p,) each; weight: of the prior."""
        if weight not in self._known:
            solved = [self._problem.solve(*factor, weight).theta for factor in self._train]
            self._known[weight] = dict(zip(self.names, solved, strict=True))
        return self._known[weight]

    def errors(self, weight: float) -> Array:
        """Mean whitened squared held-out error of each fold, shape (folds,); weight: of the prior."""
        return self._squares(self.estimates(weight).values())

    def _squares(self, estimates: Iterable[Array]) -> Array:
        return np.array([np.sum((S @ x - y) ** 2) / rows for (S, y, rows), x in zip(self._tests, estimates, strict=True)])

    def choose(self, raised: Callable[[float], float], floor: float, contradicted: bool) -> WeightChoice:
        """Chooses the weight as :func:`consistent_parameters` describes.

        Args:
            raised: The usual weight where squared errors of the model are so many times as large as the residuals show.
            floor: The least weight that the motion requires; 0 where joints reverse.
            contradicted: Whether the data contradict the prior.
        """
        usual, use = raised(1.0), self._independent
        alone = [np.zeros(R.shape[1]) for R, _ in self._train]  # least squares without prior and constraints
        for x, (R, rho) in zip(alone, self._train, strict=True):
            x[use] = scaled_lstsq(R[:, use], rho)
        least_squares = self._squares(alone)
        # mean whitened variance of the held-out torque due to the parameters
        posterior = partial(Posterior, prior=self._problem.prior, weight=USUAL_WEIGHT)
        trained = zip(self._train, self._tests, strict=True)
        variance = float(np.mean([np.sum(posterior(R).variance(S)) / m for (R, _), (S, _, m) in trained]))
        free = contradicted or (floor == 0 and worse(least_squares, self.errors(usual)))
        misfit = max(1.0, self.errors(usual).mean() / (1.0 + variance)) if floor > 0 else 1.0
        usual = raised(misfit)
        errors = self._descend(usual, [w / USUAL_WEIGHT * usual for w in WEIGHTS] if free else [usual, max(usual, floor)])
        best = min(errors, key=lambda weight: float(errors[weight].mean()))
        favoured = usual
        if free:
            between = [weight for weight in errors if min(best, usual) <= weight <= max(best, usual)]
            near = [weight for weight in between if not worse(errors[best], errors[weight])]
            favoured = min(near, key=lambda weight: abs(np.log(weight / usual)))
        return WeightChoice(usual, best, favoured, floor, free, misfit, errors, least_squares, variance)

    def _descend(self, usual: float, candidates: Sequence[float]) -> dict[float, Array]:
        """Errors of the usual weight and of candidates, on both sides of it, until they stop decreasing."""
        errors = {usual: self.errors(usual)}
        for side in ([w for w in candidates if w < usual][::-1], [w for w in candidates if w > usual]):
            before = errors[usual].mean()
            for weight in side:
                errors[weight] = self.errors(weight)
                if errors[weight].mean() >= before:
                    break
                before = errors[weight].mean()
        return errors


def _held_at_zero(fit: Fit, parameters: tuple[Parameter, ...], active: tuple[str, ...]) -> list[str]:
    """Notes on parameters held at zero that the data alone make significantly negative: usually a model error."""
    base = fit.base
    parameters_at_zero, rotors = list[str](), list[str]()
    for row, k in enumerate(base.independent):
        parameter = parameters[k]
        alone = np.abs(base.K[row]).max(initial=0.0) < 1e-9
        if not (alone and parameter.nonnegative and fit.params[row] < -_CERTAIN * fit.bse[row]):
            continue
        if f"{parameter.name} ≥ 0" not in active:
            continue
        word = f"{parameter.name} = {fit.params[row]:.3g} ± {fit.bse[row]:.2g} {parameter.unit}"
        (rotors if parameter.symbol == "Ia" else parameters_at_zero).append(word)
    notes = [f"constrained to 0, although the data alone give {', '.join(parameters_at_zero)}"] if parameters_at_zero else []
    if rotors:
        notes.append(
            f"constrained to 0, although the data alone give {', '.join(rotors)}: torque measured behind the gears does "
            "not contain the rotors (in that case set model.rotor_inertia: false)"
        )
    return notes
