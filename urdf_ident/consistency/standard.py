"""From base to standard parameters: which of all parameter vectors that fit the data is the robot's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, nearest
from ..linalg import Array
from ..model.parameters import Parameter
from ..model.prior import USUAL_WEIGHT, Prior, least_weight, with_joint_terms
from ..statistics.fit import Fit
from ..statistics.folds import folds_of
from ..statistics.statistic import StatisticSet
from .first_fit import first_fit
from .limits import fit_squares, limit_notes
from .lmi import LmiProblem
from .nearest import essential, frozen, minimum_norm
from .options import HalfSpaces, LmiOptions

METHODS = ("lmi", "minimum_norm", "frozen", "essential")
#: Weights of the prior that may be chosen.
WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: One standard deviation of a joint's parameter, in units of the value with which it would explain what the URDF leaves.
SPREAD = 0.3
#: Standard errors by which a held-out error must be worse than the best before it counts.
_SIGNIFICANT = 2.0
#: Nominal standard errors below zero that nobody can explain by noise (they are about four times too small).
_CERTAIN = 12.0


@dataclass(frozen=True, eq=False)
class Standard:
    """Chosen standard parameters, shape (p,), and how they were chosen."""

    theta: Array
    solver: dict[str, Any] = field(default_factory=dict)


def prior_with_first_fit(
    prior: Prior,
    parameters: tuple[Parameter, ...],
    statistics: StatisticSet,
    weights: Mapping[str, float],
    physics: HalfSpaces | None = None,
    ordinary: Array | None = None,
    unasked: Collection[str] = (),
    reversals: float = np.inf,
) -> Prior:
    """Completes the inertial prior with friction and rotor inertia, which a URDF lacks, from a first fit (Gautier 2013 §V.B).

    The inertials are held at the prior meanwhile: a rotor inertia adds to a link's, and only so it is seen. The fit is
    bounded (:mod:`.first_fit`), and one standard deviation of each parameter is :data:`SPREAD` of the value with which it
    alone would be as large as what the bodies leave of the torque: in proportion to what the robot does, whatever came out.

    Args:
        prior: Of the inertial parameters.
        parameters: All of theta's entries.
        weights: Row group → weight on its rows [1/unit of torque].
        physics: What friction must satisfy beside the signs of its parameters, or None.
        ordinary: RMS of all parameters' columns in ordinary motion, shape (p,), or None.
        unasked: Joints whose bias the data do not ask for.
        reversals: How often the joints that move turn back, mean.

    Returns:
        The prior of all parameters.
    """
    n, p = len(prior.theta0), len(parameters)
    fixed = np.concatenate([prior.theta0, np.zeros(p - n)])
    first = first_fit(statistics, parameters, range(n, p), fixed, weights, physics, prior, ordinary, unasked, reversals)
    return with_joint_terms(prior, parameters, first.values, std=SPREAD * first.size)


def nearest_to_prior(method: str, fit: Fit, prior: Prior, distance: str = "euclid") -> Standard:
    """Standard parameters with exactly the fit's base parameters (Gautier 2013, eqs. 27-30); bodies may come out impossible.

    Args:
        method: "minimum_norm": the least change of the prior; "frozen": the dependent parameters stay at the prior, as in
            Gautier 2013, Table II.
        fit: The base parameters.
        prior: The prior of all parameters.
        distance: What minimum_norm makes small: "euclid" in the prior's standard deviations, "plain" in SI units
            (Gautier 2013, eq. 30).

    Returns:
        The choice.

    Raises:
        EstimationError: Unknown method or distance.
    """
    base = fit.base
    arguments = (prior.theta0, base.independent, base.dependent, base.K, fit.params)
    if method == "frozen":
        return Standard(frozen(*arguments), {"method": method, "status": "exact"})
    if method != "minimum_norm":
        raise EstimationError("unknown consistency.method", got=repr(method), remedy=nearest(method, METHODS))
    if distance not in ("euclid", "plain"):
        raise EstimationError("unknown distance for minimum_norm", got=repr(distance), expected="euclid | plain")
    metric = prior.root if distance == "euclid" else None
    return Standard(minimum_norm(*arguments, metric_root=metric), {"method": method, "distance": distance, "status": "exact"})


def essential_to_prior(statistics: StatisticSet, fit: Fit, prior: Prior, kept: ArrayLike) -> Standard:
    """Standard parameters of which only the essential ones leave the prior (Gautier 2013, eqs. 31-33).

    The essential parameters are fitted anew to what the prior does not explain, so that the torque error is a little
    larger than the base parameters'. What the data hardly show stays possible, because it stays at the prior.

    Args:
        fit: The full estimate, for its weights and its reduction.
        prior: The prior of all parameters.
        kept: Positions of the essential base parameters, shape (e,).

    Returns:
        The choice.

    Raises:
        EstimationError: The essential columns are linearly dependent.
    """
    base, chosen = fit.base, np.asarray(kept, dtype=np.intp)
    factor = statistics.stacked(fit.weights, base.independent)
    arguments = (prior.theta0, base.independent, base.dependent, base.K, factor[:, :-1], factor[:, -1], chosen)
    moved = [base.names[k] for k in base.independent[chosen]]
    words = f"{len(chosen)} essential of {len(base)} base parameters fitted, all others at the prior"
    return Standard(essential(*arguments), {"method": "essential", "status": "least squares", "moved": moved, "notes": [words]})


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
) -> Standard:
    """The most plausible physically consistent robot: LMI with the prior's weight chosen by held-out error.

    Logs are left out one by one, or parts in time when there is one log. A few folds compare weights only
    roughly, so that the smallest held-out error alone is mostly chance: of all weights between the best one and
    :data:`USUAL_WEIGHT` that are not significantly worse than the best, the nearest to the usual one is taken. It is at least
    :func:`least_weight`: held-out parts of a motion that hardly turns back miss what the model lacks as little as the rest.

    Args:
        fit: The fit, for the weights of the row groups.
        prior: The prior of all parameters.
        parameters: All of theta's entries.
        options: What is demanded of the bodies.
        weight: Of the prior; chosen from :data:`WEIGHTS` if None.
        slack: Point-to-set instead of a weight: the robot closest to the prior whose squared residual is at most
            this fraction above the least possible one, or None.
        notes: What to say beside the solver's own notes.
        reversals: How often the joints that move turn back, mean.

    Returns:
        The choice.

    Raises:
        SolverError: No robot satisfies the constraints, or no solver finds it.
    """
    problem = LmiProblem(prior, parameters, options)
    factor = _data(statistics, fit)
    record: dict[str, Any] = {}
    if slack is not None:
        solution = problem.point_to_set(*factor, slack)
        record = {"weight_choice": f"point-to-set: squared residual at most {100 * slack:g} % above the least possible"}
    elif weight is not None:
        solution = problem.solve(*factor, weight)
    elif choice := held_out_weights(problem, statistics, fit):
        floor = least_weight(reversals)
        solution, record = problem.solve(*factor, max(choice.chosen, floor)), choice.as_dict(floor)
    else:
        solution = problem.solve(*factor, USUAL_WEIGHT)
        record = {"weight_choice": "the default: the data are too short for held-out errors"}
    kept = {**solution.as_dict(), **record}
    least = fit_squares(factor, fit.base.independent, fit.params)
    held = limit_notes(problem, solution, factor, solution.weight, least) if np.isfinite(solution.weight) else []
    kept["notes"] = [*notes, *kept["notes"], *_held_at_zero(fit, parameters, solution.active), *held]
    return Standard(solution.theta, {"method": "lmi", **kept})


def _data(statistics: StatisticSet, fit: Fit) -> tuple[Array, Array]:
    factor = statistics.stacked(fit.weights)
    return factor[:, :-1], factor[:, -1]


@dataclass(frozen=True, eq=False)
class HeldOutWeights:
    """Weights of the prior and what they make of data that took no part.

    Attributes:
        squares: Whitened held-out squares of a weight, shape (folds,): all joints count alike.
        errors: The same of those that were tried.
    """

    squares: Callable[[float], Array]
    errors: dict[float, Array]

    @property
    def best(self) -> float:
        """The weight with the least held-out error."""
        return min(self.errors, key=lambda weight: float(self.errors[weight].mean()))

    @property
    def chosen(self) -> float:
        """Of the weights between the best and the usual one that are not significantly worse, the nearest to the usual one."""
        between = [weight for weight in self.errors if min(self.best, USUAL_WEIGHT) <= weight <= max(self.best, USUAL_WEIGHT)]
        near = [weight for weight in between if not _worse(self.errors[weight] - self.errors[self.best])]
        return min(near, key=lambda weight: abs(np.log(weight / USUAL_WEIGHT)))

    def as_dict(self, floor: float = 0.0) -> dict[str, Any]:
        """How a weight was chosen, for the result; ``floor``: the least one that the motion asks for."""
        word = f"held-out error over {len(self.errors[self.best])} folds"
        doubtful = f": smallest at {self.best:g}, {self.chosen:g} is not significantly worse"
        word += " is smallest" if self.chosen == self.best else doubtful
        if floor > self.chosen:
            word += f"; raised to {floor:g}, because the joints hardly reverse"
        table = [{"weight": tried, "held_out": float(np.sqrt(self.errors[tried].mean()))} for tried in sorted(self.errors)]
        return {"weight_choice": word, "weights_tried": table}


def held_out_weights(problem: LmiProblem, statistics: StatisticSet, fit: Fit) -> HeldOutWeights | None:
    """Cross-validation over logs, or parts in time.

    Args:
        problem: Constraints and prior.
        fit: For the weights of the row groups.

    Returns:
        The weights tried; None where the data are too short to hold anything out.

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

    def squares(weight: float) -> Array:
        return np.array([np.sum((S @ x - y) ** 2) / rows for (S, y, rows), x in zip(tests, roughly(weight), strict=True)])

    return HeldOutWeights(squares, _descend(squares))


def _descend(squares: Callable[[float], Array]) -> dict[float, Array]:
    """Held-out squares of the usual weight and, to both sides of it, as far as they get less."""
    errors = {USUAL_WEIGHT: squares(USUAL_WEIGHT)}
    middle = WEIGHTS.index(USUAL_WEIGHT)
    for side in (WEIGHTS[:middle][::-1], WEIGHTS[middle + 1 :]):
        before = errors[USUAL_WEIGHT].mean()
        for weight in side:
            errors[weight] = squares(weight)
            if errors[weight].mean() >= before:
                break
            before = errors[weight].mean()
    return errors


def _worse(differences: Array) -> bool:
    """Whether the mean over folds is positive beyond chance."""
    error = float(differences.std(ddof=1)) / np.sqrt(len(differences))
    return bool(differences.mean() > _SIGNIFICANT * error)


def _held_at_zero(fit: Fit, parameters: tuple[Parameter, ...], active: tuple[str, ...]) -> list[str]:
    """Names what the data alone would make negative beyond doubt: mostly a sign that something else is missing."""
    base = fit.base
    words, rotors = list[str](), list[str]()
    for row, k in enumerate(base.independent):
        parameter = parameters[k]
        alone = np.abs(base.K[row]).max(initial=0.0) < 1e-9
        if not (alone and parameter.nonnegative and fit.params[row] < -_CERTAIN * fit.bse[row]):
            continue
        if f"{parameter.name} ≥ 0" not in active:
            continue
        word = f"{parameter.name} = {fit.params[row]:.3g} ± {fit.bse[row]:.2g} {parameter.unit}"
        (rotors if parameter.symbol == "Ia" else words).append(word)
    notes = [f"constrained to 0, although the data alone give {', '.join(words)}"] if words else []
    if rotors:
        notes.append(
            f"constrained to 0, although the data alone give {', '.join(rotors)}: torque measured behind the gears does "
            "not contain the rotors (in that case set model.rotor_inertia: false)"
        )
    return notes
