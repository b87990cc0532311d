"""Standard parameters: physically consistent ones, with a weight of the prior that the data do not contradict, or those closest
to the prior that explain the data as the base parameters do (Gautier 2013, 27-33).

The data determine ``B theta = beta``, ``B = [1 K]`` on the independent and dependent columns, and nothing else. Without
constraints there are three choices: the least change of all parameters (minimum norm: Gautier 2013's SVD solution), no change
of the dependent parameters (frozen: Table II of Gautier 2013), or a change of the essential ones only. None of them ensures
physical consistency: :func:`.repair.check_consistency` tests it and :mod:`.lmi` imposes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, SolverError
from ..linalg import Array, lstsq, scaled_lstsq, shaped, solve_triangular
from ..model.base import BaseParameters
from ..model.prior import USUAL_WEIGHT, Posterior, Prior, least_weight, metric_root
from ..model.terms import Parameter
from ..statistics.fit import Fit, usual_weight
from ..statistics.folds import folds_of, worse
from ..statistics.statistic import StatisticSet
from .constraints import BOX, FRICTION, MASS, Constraint, at_zero
from .lmi import LmiProblem, LmiSolution

#: Candidate weights of the prior, in proportion to the usual one if that is larger than :data:`.prior.USUAL_WEIGHT`.
WEIGHTS = USUAL_WEIGHT * 10.0 ** (0.5 * np.arange(-6, 5))


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
    constraints: Sequence[Constraint] | None = None,
    weight: float | None = None,
    notes: tuple[str, ...] = (),
    reversals: float = np.inf,
    distance: str = "entropic",
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
        constraints, distance, solver: Of :class:`.LmiProblem`.
        weight: Weight of the prior; chosen as described if None.
        notes: Notes to add to the solver's own.
        reversals: Mean number of velocity reversals of the moving joints.

    Raises:
        SolverError: No robot satisfies the constraints, or the solver is not installed or cannot solve it.
    """
    problem = LmiProblem(prior, parameters, constraints, distance, solver)
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
        self._tests = [split.only(fold) for fold in split.logs]
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
    candidates = (WEIGHTS / USUAL_WEIGHT * usual).tolist() if free else [max(usual, floor)]
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


#: Relative increase of the residual over the unconstrained fit's that is reported.
COSTLY = 0.05
#: Relative standard deviation of a body whose prior is made uninformative.
_LOOSE = 3.0
#: Smallest missing mass that is reported, as a fraction of the body's mass.
_MISSING = 0.3
#: Nominal standard errors below zero that noise cannot explain (nominal ones are about four times too small).
_CERTAIN = 12.0
#: What is at its limit and what to do, by the setting of the limit.
_REMEDIES = {
    MASS: ("mass", "correct that of the URDF, or raise consistency.mass_factor"),
    BOX: ("centre of mass", "add what is mounted there to the URDF, or set consistency.com_in_box: false"),
    FRICTION: ("friction", "the data alone give negative friction at some speed; list fewer laws, or record faster logs"),
}


def limit_notes(problem: LmiProblem, solution: LmiSolution, factor: Array, fit: Fit) -> list[str]:
    """Describes the active constraints of a solution.

    Args:
        factor: The data ``[R | rho]``, shape (k, p + 1), whitened.
        fit: The unconstrained fit.

    Returns:
        One sentence per kind of limit, and one on the increase of the residual; empty if nothing is active.
    """
    base, prior, notes = fit.base, problem.prior, list[str]()
    # zero, where the data alone give a significantly negative value: usually a model error
    held: dict[bool, list[str]] = {False: [], True: []}
    for row, k in enumerate(base.independent):
        parameter = problem.parameters[k]
        alone = np.abs(base.K[row]).max(initial=0.0) < 1e-9
        certain = parameter.nonnegative and fit.params[row] < -_CERTAIN * fit.bse[row]
        if alone and certain and at_zero(parameter) in solution.active:
            word = f"{parameter.name} = {fit.params[row]:.3g} ± {fit.bse[row]:.2g} {parameter.unit}"
            held[parameter.symbol == "Ia"].append(word)
    behind_gears = (
        ": torque measured behind the gears does not contain the rotors (in that case set model.rotor_inertia: false)"
    )
    for rotors, words in held.items():
        if words:
            why = behind_gears if rotors else ""
            notes.append(f"constrained to 0, although the data alone give {', '.join(words)}{why}")
    at_limit = dict[str, list[str]]()  # by setting, the owners of what is at its limit
    for setting, (what, remedy) in _REMEDIES.items():
        active = (one.name for one in problem.constraints if one.setting == setting and one.name in solution.active)
        if owners := list(dict.fromkeys(name.split(": ")[0] for name in active)):
            at_limit[setting] = owners
            notes.append(f"{what} of {', '.join(owners)} is at its limit: {remedy}")
    if limited := {*at_limit.get(MASS, ()), *at_limit.get(BOX, ())}:
        # mass missing at the end of a chain affects all bodies before it: solved again without prior and limits of the last
        bodies = [parameter.owner for parameter in problem.parameters[: 10 * problem.n : 10]]
        i, body = max((i, body) for i, body in enumerate(bodies) if body in limited)
        root, relative, mass = prior.root.copy(), prior.relative_std.copy(), prior.mass_std.copy()
        relative[i], mass[i] = _LOOSE, np.inf
        root[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = metric_root(prior.spread[i], _LOOSE)
        freed = replace(prior, root=root, relative_std=relative, mass_std=mass)
        of_body = [one.name for one in problem.constraints if one.setting == BOX and one.name.startswith(f"{body}: ")]
        released = [one for one in problem.constraints if one.setting != MASS and one.name not in of_body]
        with suppress(SolverError):
            loose = LmiProblem(freed, problem.parameters, released, problem.distance)
            found = loose.solve(factor[:, :-1], factor[:, -1], solution.weight)
            stated = prior.theta0[10 * i]
            more = found.theta[10 * i] - stated
            if found.data_term <= solution.data_term / (1.0 + COSTLY) and more > _MISSING * stated:
                missing = f"about {more:.2g} kg on {body} (a tool?); add it to the URDF"
                notes.append(f"the data show mass that the URDF lacks: {missing}")
    least = float(np.sum((factor[:, base.independent] @ fit.params - factor[:, -1]) ** 2))
    costs = float(np.sqrt(solution.data_term / least)) - 1.0 if least > 0 else 0.0
    if costs > COSTLY:
        culprit = "the limits above" if at_limit else "the prior (consistency.weight, relative_std, mass_std)"
        notes.append(f"residual of the exported model is {100 * costs:.0f} % above that of the unconstrained fit: {culprit}")
    return notes


def nearest_to_prior(method: str, fit: Fit, prior: Prior, distance: str = "euclid") -> Standard:
    """Standard parameters with exactly the fit's base parameters (Gautier 2013, eqs. 27-31); may be physically inconsistent.

    The least change ``step`` of the prior with ``B step = beta − B theta0``, from a QR factorisation of Bᵀ. In plain units it
    is ``V1 Σ1⁻¹ U1ᵀ (Y − W theta0)`` with the SVD of W cut at rank b, if the fit is the least-squares estimate.

    Args:
        method: "minimum_norm": the least change of all parameters that can be seen; "frozen": the dependent ones stay at the
            prior (Gautier 2013, Table II).
        distance: Norm for minimum_norm: "euclid" in the prior's standard deviations, "plain" in SI units, kg added to kg·m²
            (Gautier 2013, eq. 30).
    """
    base, theta = fit.base, prior.theta0.copy()
    if method == "minimum_norm":
        free = np.flatnonzero(np.any(base.projection != 0, axis=0))
        metric = np.eye(len(theta)) if distance == "plain" else prior.root
        root = np.asarray(np.linalg.qr(metric[:, free], mode="r"))
        directions, factor = np.linalg.qr(solve_triangular(root, base.projection[:, free].T, transposed=True))
        step = directions @ solve_triangular(factor, fit.params - base.of(theta), transposed=True)
        theta[free] += solve_triangular(root, step)
    theta[base.independent] += fit.params - base.of(theta)  # of the least change, rounding errors
    of = {"distance": distance} if method == "minimum_norm" else {}
    return Standard(theta, {"method": method, **of, "status": "exact"})


def essential_to_prior(factor: Array, base: BaseParameters, theta_ref: ArrayLike, keep: ArrayLike) -> Standard:
    """Standard parameters of which only the essential ones differ from the prior (Gautier 2013, 31-33).

    diag(theta_e) cancels in (32) of Gautier 2013, which is the least squares of ``Y − W theta_ref`` on the essential columns.
    The torque error is slightly larger than that of the base parameters. Poorly identified parameters stay physically
    consistent, because they stay at the prior.

    Args:
        factor: ``[R | rho]``, triangular (or any) factor of the weighted base problem ``min ‖R beta − rho‖``, shape (k, b + 1).
        theta_ref: Prior, shape (p,).
        keep: The essential base parameters: positions in 0..b−1, or a boolean mask of shape (b,).

    Returns:
        The parameters, equal to the prior except for ``independent[keep]``, and how they were chosen.

    Raises:
        ShapeError: Shapes do not fit.
        EstimationError: The essential columns are linearly dependent.
    """
    theta, R = np.array(theta_ref, dtype=float), shaped("factor", factor, ("k", len(base) + 1))
    chosen = np.arange(len(base))[np.asarray(keep)]
    change, rank = lstsq(R[:, chosen], R[:, -1] - R[:, :-1] @ base.of(theta), rcond=None)
    if rank < len(chosen):
        raise EstimationError(
            "the essential columns are linearly dependent", got=f"rank {rank}", expected=f"rank {len(chosen)}"
        )
    theta[base.independent[chosen]] += change
    moved = [base.names[k] for k in base.independent[chosen]]
    note = f"{len(chosen)} essential of {len(base)} base parameters fitted, all others at the prior"
    return Standard(theta, {"method": "essential", "status": "least squares", "moved": moved, "notes": [note]})
