"""From base to standard parameters: the choice among all parameter vectors that fit the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError
from ..linalg import Array, scaled_lstsq
from ..model.parameters import Parameter
from ..model.posterior import posterior_variance
from ..model.prior import USUAL_WEIGHT, Prior, least_weight
from ..statistics.choice import worse
from ..statistics.fit import Fit, usual_weight
from ..statistics.folds import folds_of
from ..statistics.statistic import StatisticSet
from .active_constraints import limit_notes
from .constraints import LmiOptions
from .lmi import LmiProblem, LmiSolution
from .nearest import essential, frozen, minimum_norm

#: Parameters without each fold, for a weight of the prior.
_Refit = Callable[[float], Mapping[str, Array]]

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


def nearest_to_prior(method: str, fit: Fit, prior: Prior, distance: str = "euclid") -> Standard:
    """Standard parameters with exactly the fit's base parameters (Gautier 2013, eqs. 27-30); may be physically inconsistent.

    Args:
        method: "minimum_norm": the least change of the prior; "frozen": the dependent parameters stay at the prior, as in
            Gautier 2013, Table II.
        distance: Norm for minimum_norm: "euclid" in the prior's standard deviations, "plain" in SI units
            (Gautier 2013, eq. 30).

    Returns:
        The parameters and how they were chosen.
    """
    if method == "frozen":
        return Standard(frozen(fit.base, prior.theta0, fit.params), {"method": method, "status": "exact"})
    theta = minimum_norm(fit.base, prior.theta0, fit.params, prior.root if distance == "euclid" else None)
    return Standard(theta, {"method": method, "distance": distance, "status": "exact"})


def essential_to_prior(statistics: StatisticSet, fit: Fit, prior: Prior, positions: ArrayLike) -> Standard:
    """Standard parameters of which only the essential ones differ from the prior (Gautier 2013, eqs. 31-33).

    The essential parameters are refitted to the residual of the prior, so the torque error is slightly larger than that
    of the base parameters. Poorly identified parameters stay physically consistent, because they stay at the prior.

    Args:
        fit: The full estimate, for its weights and its reduction.
        positions: Positions of the essential base parameters, shape (e,).

    Returns:
        The parameters and how they were chosen.

    Raises:
        EstimationError: The essential columns are linearly dependent.
    """
    base, chosen = fit.base, np.asarray(positions, dtype=np.intp)
    factor = statistics.stacked(fit.weights, base.independent)
    theta = essential(base, prior.theta0, factor[:, :-1], factor[:, -1], chosen)
    moved = [base.names[k] for k in base.independent[chosen]]
    note = f"{len(chosen)} essential of {len(base)} base parameters fitted, all others at the prior"
    return Standard(theta, {"method": "essential", "status": "least squares", "moved": moved, "notes": [note]})


def consistent_parameters(
    statistics: StatisticSet,
    fit: Fit,
    prior: Prior,
    parameters: tuple[Parameter, ...],
    options: LmiOptions | None = None,
    weight: float | None = None,
    slack: float | None = None,
    notes: tuple[str, ...] = (),
    reversals: float = np.inf,
    solver: str | None = None,
) -> Standard:
    """Physically consistent parameters by an LMI; the prior has the usual weight unless the data contradict it.

    Where they do (:func:`contradicted`), or where held-out motion is predicted worse than by least squares without prior and
    constraints, beyond the error of the paired difference, the weight is chosen by held-out error over logs, or over parts in
    time of a single log. With few folds the smallest held-out error is mostly chance: of all weights between the best one and
    the usual one that are not worse than the best beyond that error, the nearest to the usual one is taken.

    Elsewhere, and where joints hardly reverse, so that unmodelled friction looks like another body, held-out errors do not
    choose: parts of one motion share the errors of the model and do not reveal what parameters farther from, or nearer to, the
    prior cost in another motion. Where joints hardly reverse, a fit follows the few motions closely in spite of the
    model's errors, so that its residuals, to which the usual weight (:func:`.usual_weight`) refers, are too small. There
    the weight is raised in proportion to the held-out mean square over that expected from these residuals. It is at least
    :func:`least_weight`.

    Args:
        fit: The fit, for the weights of the row groups.
        parameters: All of theta's entries.
        weight: Weight of the prior; chosen as described if None.
        slack: Point-to-set instead of a weight: the robot closest to the prior whose squared residual is at most
            this fraction above the feasible minimum, or None.
        notes: Notes to add to the solver's own.
        reversals: Mean number of velocity reversals of the moving joints.
        solver: Name of a solver of CVXPY; None: Clarabel's own interface.

    Returns:
        The parameters and how they were chosen.

    Raises:
        SolverError: No robot satisfies the constraints, or the solver is not installed or cannot solve it.
    """
    problem = LmiProblem(prior, parameters, options, solver)
    factor = _data(statistics, fit)
    record: Mapping[str, Any] = {}
    refit: _Refit = partial(_without_folds, problem, statistics, fit)
    if slack is not None:
        solution = problem.point_to_set(*factor, slack)
        record = {"weight_choice": f"point-to-set: squared residual at most {100 * slack:g} % above the least possible"}
    elif weight is not None:
        solution = problem.solve(*factor, weight)
    else:
        solution, record, refit = _chosen_by_data(problem, factor, statistics, fit, least_weight(reversals))
    entries = {**solution.as_dict(), **record}
    least = float(np.sum((factor[0][:, fit.base.independent] @ fit.params - factor[1]) ** 2))
    held = limit_notes(problem, solution, factor, solution.weight, least) if np.isfinite(solution.weight) else []
    entries["notes"] = [*notes, *entries["notes"], *_held_at_zero(fit, parameters, solution.active), *held]
    without_folds = None if slack is not None else partial(refit, solution.weight)
    return Standard(solution.theta, {"method": "lmi", **entries}, without_folds)


def _chosen_by_data(
    problem: LmiProblem, factor: tuple[Array, Array], statistics: StatisticSet, fit: Fit, floor: float
) -> tuple[LmiSolution, Mapping[str, Any], _Refit]:
    """The solution with the weight of :func:`consistent_parameters`, the reason for it, and the estimates without each fold."""
    solve = cache(partial(problem.solve, *factor))
    usual = usual_weight(statistics, fit)
    free = floor == 0 and contradicted(problem.prior, solve(usual).theta, fit)
    if choice := held_out_weights(problem, statistics, fit, floor, usual, free=free):
        return solve(choice.chosen), choice.as_dict(), choice.without_folds
    why = {"weight_choice": "the default: the data are too short for held-out errors"}
    return solve(usual), why, partial(_without_folds, problem, statistics, fit)


def contradicted(prior: Prior, theta: Array, fit: Fit) -> bool:
    """Returns whether parameters under the usual weight are farther from the prior than it expects.

    Another weight states a wider or narrower prior, for which there is no reason otherwise. A tool that the URDF lacks is one.

    Args:
        theta: The parameters, shape (p,).
        fit: The fit; the squared distance is expected to be at most the number of directions that the data show.
    """
    return bool(prior.distance(theta) ** 2 > fit.seen.sum())


def _without_folds(problem: LmiProblem, statistics: StatisticSet, fit: Fit, weight: float) -> dict[str, Array]:
    """Parameters under the same constraints, without each fold; see :attr:`Standard.without_folds`."""
    try:
        split = folds_of(statistics)
    except EstimationError:
        return {}
    solver = problem.rough_solver([_data(split.left_out(fold), fit) for fold in split.logs])
    return dict(zip(split.logs, solver(weight), strict=True))


def _data(statistics: StatisticSet, fit: Fit) -> tuple[Array, Array]:
    factor = statistics.stacked(fit.weights)
    return factor[:, :-1], factor[:, -1]


@dataclass(frozen=True, eq=False)
class HeldOutWeights:
    """Weights of the prior and their held-out errors.

    Attributes:
        without_folds: Function of a weight: the parameters without each fold, to a few digits, shape (p,) each.
        errors: Weight that was tried → mean whitened squared held-out error of each fold, shape (folds,).
        expected: Mean whitened variance of the held-out torque due to the parameters, at :data:`.prior.USUAL_WEIGHT`; 0 if
            unknown.
        floor: The least weight that the motion requires.
        usual: The usual weight (:func:`.usual_weight`) with ``misfit``.
        free: Whether held-out errors choose the weight, because the data contradict the prior, or because least squares is
            better with the usual one; otherwise it is that one.
        alone: As an entry of ``errors``: of least squares without prior and constraints.
        misfit: If joints hardly reverse, mean squared held-out error over the one expected from the residuals; at least 1.
    """

    without_folds: Callable[[float], Mapping[str, Array]]
    errors: dict[float, Array]
    expected: float = 0.0
    floor: float = 0.0
    usual: float = USUAL_WEIGHT
    free: bool = True
    misfit: float = 1.0
    alone: Array | None = None

    @property
    def best(self) -> float:
        """The weight with the least held-out error."""
        return min(self.errors, key=lambda weight: float(self.errors[weight].mean()))

    @property
    def chosen(self) -> float:
        """The weight to use."""
        return max(self._favoured, self.floor)

    @property
    def _favoured(self) -> float:
        """The weight nearest to the usual one among those between it and the best that are not significantly worse."""
        if not self.free:
            return self.usual
        between = [weight for weight in self.errors if min(self.best, self.usual) <= weight <= max(self.best, self.usual)]
        near = [weight for weight in between if not worse(self.errors[self.best], self.errors[weight])]
        return min(near, key=lambda weight: abs(np.log(weight / self.usual)))

    def as_dict(self) -> dict[str, Any]:
        """How the weight was chosen, for the result."""
        word, favoured = f"held-out error over {len(self.errors[self.best])} folds", self._favoured
        doubtful = f": smallest at {self.best:.3g}, {favoured:.3g} is not significantly worse"
        word += " is smallest" if favoured == self.best else doubtful
        if not self.free:
            reason = "the joints hardly reverse" if self.floor else "the data do not contradict the prior"
            word = f"the usual one, because {reason}"
        if self.usual > USUAL_WEIGHT:
            word += (
                f"; that is {self.usual:.3g}, because residuals are not independent: variances are so many times the nominal"
            )
        if self.misfit > 1.0 and self.usual > USUAL_WEIGHT:
            word += f"; held-out errors squared, {self.misfit:.3g} times as large as expected, are counted in it"
        if self.floor > favoured:
            word += f"; raised to {self.floor:g}, because the joints hardly reverse"
        table = [{"weight": tried, "held_out": float(np.sqrt(self.errors[tried].mean()))} for tried in sorted(self.errors)]
        folds = {"count": len(self.errors[self.best]), "variance": self.expected}
        if self.alone is not None:
            folds["least_squares"] = float(np.sqrt(self.alone.mean()))
            if worse(self.alone, self.errors.get(self.chosen, self.errors[self.best])):
                word += "; least squares without prior and constraints predicts held-out motion better"
        return {"weight_choice": word, "weights_tried": table, "folds": folds}


def held_out_weights(
    problem: LmiProblem,
    statistics: StatisticSet,
    fit: Fit,
    floor: float = 0.0,
    usual: float = USUAL_WEIGHT,
    *,
    free: bool = True,
) -> HeldOutWeights | None:
    """Cross-validates the prior's weight over logs, or parts in time of a single log.

    Args:
        fit: The fit, for the weights of the row groups.
        floor: As for :class:`HeldOutWeights`.
        free: Whether the data contradict the prior. All :data:`WEIGHTS` are candidates then, and where least squares is better;
            else only the usual one and the floor.
        usual: The usual weight (:func:`.usual_weight`).

    Returns:
        The weights tried; None if the data are too short for cross-validation.

    Raises:
        SolverError: No robot satisfies the constraints.
    """
    try:
        split = folds_of(statistics)
    except EstimationError:
        return None
    folds = [(_data(split.left_out(fold), fit), split.only([fold])) for fold in split.logs]
    tests = [(*_data(test, fit), sum(test.rows.values())) for _, test in folds]
    roughly = problem.rough_solver([data for data, _ in folds])

    @lru_cache
    def without_folds(weight: float) -> Mapping[str, Array]:
        return dict(zip(split.logs, roughly(weight), strict=True))

    def squares(weight: float) -> Array:
        estimates = without_folds(weight).values()
        return np.array([np.sum((S @ x - y) ** 2) / rows for (S, y, rows), x in zip(tests, estimates, strict=True)])

    def tried(usual: float) -> dict[float, Array]:
        every = [weight / USUAL_WEIGHT * usual for weight in WEIGHTS]
        return _descend(squares, every if free else sorted({usual, max(usual, floor)}), usual)

    independent = fit.base.independent
    fitted = [scaled_lstsq(R[:, independent], rho) for (R, rho), _ in folds]
    tests_alone = zip(tests, fitted, strict=True)
    alone = np.array([np.sum((S[:, independent] @ x - y) ** 2) / rows for (S, y, rows), x in tests_alone])
    free = free or (floor == 0 and worse(alone, squares(usual)))
    variances = [
        np.sum(posterior_variance(R, problem.prior, USUAL_WEIGHT, S)) / rows
        for ((R, _), _), (S, _, rows) in zip(folds, tests, strict=True)
    ]
    expected, errors = float(np.mean(variances)), tried(usual)
    misfit = max(1.0, errors[usual].mean() / (1.0 + expected)) if floor > 0 else 1.0
    if misfit > 1.0 and (raised := usual_weight(statistics, fit, misfit)) > usual:
        usual, errors = raised, tried(raised)
    return HeldOutWeights(without_folds, errors, expected, floor, usual, free, misfit, alone)


def _descend(squares: Callable[[float], Array], candidates: Sequence[float], usual: float = USUAL_WEIGHT) -> dict[float, Array]:
    """Held-out errors of the usual weight and, on both sides of it, until they stop decreasing."""
    errors = {usual: squares(usual)}
    middle = candidates.index(usual)
    for side in (candidates[:middle][::-1], candidates[middle + 1 :]):
        before = errors[usual].mean()
        for weight in side:
            errors[weight] = squares(weight)
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
