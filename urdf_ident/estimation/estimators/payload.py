"""Estimation of the ten parameters of an unknown payload on a link, from the residual of the unloaded robot's model.

The torque of the loaded robot is ``W β + Y π`` with the unloaded model's base parameters β and the body's ten parameters π.
Load-dependent friction increases with the body's torque: its columns are those of the link times ``1 + Fl S(v) sign(τ)``. The
torque is linear in π except for the sign of the load, which is found by iteration. There are two estimates from the same rows:
β fixed at that of the unloaded model (``held``), or estimated again from both (``joint``), where the unloaded logs are
represented by the triangular factor stored in a result. Friction in the loaded logs may differ from that in the unloaded ones
(a warm robot, an offset), which is covered by copies of its columns; they are estimated again if any parameter has changed.

The error of π has three sources, kept separate: noise of the loaded logs, β of the unloaded ones, and the torque constants (a
constant that is 1 % too large gives a mass that is 1 % too large).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, BoolArray, IntArray, orthogonal_part, positive
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.inertia import BODY_PARAMETERS
from ...model.rigid_bodies import rigid_torque
from ...model.row_groups import RowGroup
from ...samples import ReadOnly
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit, fit_of, group_sigma
from ...statistics.least_squares import LEVEL, REPORT_LEVEL, Solution, solve
from ..extended_model import LoadSlopes
from ..uncertainty.covariance import FEWEST_STRETCHES, FitData, automatic, jackknife, textbook

METHODS = ("held", "joint")
#: Friction that may be estimated again for the loaded logs: symbols of the terms.
REFIT: Mapping[str, tuple[str, ...]] = {"none": (), "offset": ("offset",), "friction": ("offset", "Fc", "Fv")}
#: The sign of the load has converged if the body changes by less than this fraction, or this share of its standard error;
#: maximum number of iterations.
_CONVERGED, _SURE, _ROUNDS = 1e-6, 1e-2, 10
#: Share of the load that a gear loses in friction, and its standard deviation between gears (uniform from 0 to 0.25).
_SHARE, _SHARE_ERROR = 0.125, 0.07
#: Number of updates of the row groups' weights.
_WEIGHTINGS = 3
#: Logs disagree on the mass if the difference is significant and exceeds this share of the mass.
_DIFFERENT = 0.03
#: The joint estimate is preferred if the standard error of its mass is at most this share of the other's.
_BETTER = 0.9


class LoadedModel(LoadSlopes):
    """A model with additional columns: the ten of an unknown body, and copies of friction columns for the loaded logs.

    Args:
        model: The unloaded robot's model, its load-dependent terms evaluated at the loaded torque.
        theta: Parameters of the unloaded robot, shape (p,), for the increase of friction with the load.
        body: Index of the moving body that carries the unknown one.
        placement: ``theta_body = placement @ theta_link``, shape (10, 10).
        copies: Indices into theta of the copied columns.
    """

    reads_all_columns = True

    def __init__(self, model: DynamicModel, theta: Array, body: int, placement: Array, copies: Sequence[int] = ()) -> None:
        names = [*(f"payload_{name}" for name in BODY_PARAMETERS), *(f"loaded_{model.names[k]}" for k in copies)]
        super().__init__(model, theta, np.arange(10 * body, 10 * body + 10, dtype=np.intp), names)
        self.placement, self.copies = placement, tuple(copies)

    def added_to(self, group: RowGroup) -> IntArray:
        """Returns the indices of the body's columns in the rows of the joints that carry it, and of the copies of others'."""
        copied = [k in group.columns for k in self.copies]
        return np.asarray(self.added[[*[self._carries(group)] * 10, *copied]])

    def beside(self, group: RowGroup, columns: Array, slopes: Array) -> Array:
        """Returns the body's columns, its load on the gears included, and the copies, shape (N, added)."""
        body = [(columns[:, np.searchsorted(group.columns, self.columns)] + slopes) @ self.placement] * self._carries(group)
        return np.hstack([columns[:, :0], *body, *(columns[:, group.columns == k] for k in self.copies)])

    def _carries(self, group: RowGroup) -> bool:
        return bool(np.isin(self.columns, group.columns).all())

    def extended(self, base: BaseParameters) -> BaseParameters:
        """Returns the base parameters of the unloaded robot, and after them the added ones, which are all independent."""
        nothing = np.zeros(0, dtype=np.intp)
        columns = np.concatenate([base.independent, self.added]).astype(np.intp)
        return BaseParameters(self.names, columns, nothing, nothing, np.zeros((len(columns), 0)), base.rank_gap)

    def with_load(self, log: PreparedLog, params: Array) -> PreparedLog:
        """Returns the log with the body's load on its gears, and the friction torque linearized around the current estimate.

        ``S(v)|τ|`` is not linear in the body; with its slope in the columns, the slope's value at the current body is
        subtracted.

        Args:
            params: Current estimate of the body, shape (10,).
        """
        model, segments = self.model, []
        if not model.loaded:
            return log
        body = np.zeros(model.n_inertial)
        body[self.columns] = self.placement @ params
        robot = np.zeros_like(body) if model.reference_theta is None else model.reference_theta
        for segment in log.segments:
            carried, rest = (rigid_torque(model.robot, x, segment.q, segment.v, segment.a) for x in (body, robot))
            external = np.zeros(segment.q.shape) if segment.external is None else segment.external
            heavy = replace(segment, reference_torque=rest - external)
            grown = sum(
                (load.slope * (carried @ load.weights))[:, None] * load.distribution for load in self.load_friction(heavy)
            )
            segments.append(replace(heavy, external=external + grown))
        return log.with_segments(segments)


@dataclass(frozen=True, eq=False)
class PayloadFit(ReadOnly):
    """Estimate of the unknown body's ten parameters, without constraints of physical consistency.

    Attributes:
        method: "held" or "joint".
        params: Parameters in the link's frame, about its origin, shape (10,) [kg, kg·m, kg·m²].
        noise: Covariance from the noise of the loaded logs, shape (10, 10).
        unloaded: Covariance from the unloaded robot's parameters, shape (10, 10).
        gains: Covariance from the torque constants, shape (10, 10).
        seen: Shape (10,): False where the motion does not identify the parameter.
        noise_dof: Degrees of freedom of ``noise``, shape (10,).
        unloaded_dof: Degrees of freedom of ``unloaded``.
        information: Triangular factor of the rows' information on the ten, other parameters projected out, shape (≤ 10, 10).
        changes: Copied friction column → its change in the loaded logs, and the standard error.
        sigma: Row group → standard deviation of the residual [unit of torque].
        covariance_kind: How ``noise`` was estimated.
        converged: Whether the sign of the load converged.
    """

    method: str
    params: Array
    noise: Array
    unloaded: Array
    gains: Array
    seen: BoolArray
    noise_dof: Array
    unloaded_dof: float
    information: Array
    changes: Mapping[str, tuple[float, float]]
    sigma: Mapping[str, float]
    rows: int
    covariance_kind: str
    converged: bool = True

    @property
    def covariance(self) -> Array:
        """Sum of the three covariances, shape (10, 10)."""
        return np.asarray(self.noise + self.unloaded + self.gains)

    @property
    def bse(self) -> Array:
        """Standard errors, shape (10,); inf where a parameter is not identifiable."""
        return np.where(self.seen, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @property
    def massive(self) -> bool:
        """Whether the mass is positive by more than two standard errors."""
        return bool(self.params[0] > 2.0 * self.bse[0])

    @property
    def precision(self) -> Array:
        """A factor of the inverse covariance, zero for unobserved parameters, shape (≤ 10, 10)."""
        scale = np.where(self.seen, np.sqrt(positive(np.diag(self.covariance))), 1.0)
        shape = self.covariance / np.outer(scale, scale)
        shape[~self.seen] = shape[:, ~self.seen] = 0.0
        values, vectors = np.linalg.eigh(shape)
        kept = values > 1e-12 * values.max(initial=0.0)
        return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T / scale)

    def dof(self, row: Array) -> float:
        """Returns the degrees of freedom of a linear function of the parameters (Satterthwaite 1946).

        Args:
            row: Its coefficients, shape (10,).
        """
        share = row**2 * np.diag(self.noise)
        noise_dof = float(share.sum() / positive(float((share / self.noise_dof).sum()))) if share.sum() > 0 else np.inf
        parts = [(float(row @ self.noise @ row), noise_dof), (float(row @ self.unloaded @ row), self.unloaded_dof)]
        total = sum(v for v, _ in parts) + float(row @ self.gains @ row)
        below = sum(v**2 / dof for v, dof in parts)
        return max(1.0, total**2 / below) if below > 0 else np.inf


@dataclass(frozen=True, eq=False)
class PayloadProblem(ReadOnly):
    """The unloaded robot and the placement of an unknown body, from which the body is estimated.

    Attributes:
        model: The unloaded robot's model.
        factor: Its whitened data factor ``[R | rho]``, shape (≤ p + 1, p + 1).
        body: Index of the moving body that carries the unknown one.
        placement: ``theta_body = placement @ theta_link``, shape (10, 10).
        gain_error: Relative standard errors of the torque constants, shape (n,); 0 if exact.
    """

    model: DynamicModel
    fit: Fit
    factor: Array
    body: int
    placement: Array
    gain_error: Array

    @cached_property
    def theta(self) -> Array:
        """Standard parameters that reproduce the torque of the fit, shape (p,)."""
        return self.fit.base.embedded(self.fit.params)

    @property
    def columns(self) -> slice:
        """Places of the body's parameters behind the base parameters."""
        return slice(len(self.fit.base), len(self.fit.base) + 10)

    @cached_property
    def known(self) -> Array:
        """The data of the unloaded robot on its base parameters, shape (≤ p + 1, b)."""
        return self.factor[:, self.fit.base.independent]

    def loaded(self, params: Array, copies: Sequence[int] = ()) -> LoadedModel:
        """Returns the model with the unknown body's columns, and with a given body as load of the gears.

        Args:
            params: Parameters of this body, shape (10,).
            copies: See :class:`LoadedModel`.
        """
        model = self.model
        if model.reference_theta is not None:
            reference = np.array(model.reference_theta)
            reference[10 * self.body : 10 * self.body + 10] += self.placement @ params
            model = model.with_reference(reference)
        return LoadedModel(model, self.theta, self.body, self.placement, copies)

    def copied(self, refit: str) -> tuple[int, ...]:
        """Returns the friction columns that are estimated again.

        Returns:
            Indices into theta; only independent parameters of terms that the model has.
        """
        kept = set(self.fit.base.independent.tolist())
        names = self.model.parameters
        return tuple(k for k in range(self.model.n_inertial, len(names)) if names[k].symbol in REFIT[refit] and k in kept)


def with_usual_gears(problem: PayloadProblem) -> PayloadProblem:
    """Adds prior knowledge of gears: friction takes between zero and a quarter of the transmitted load.

    This share is not identifiable in joints that the unloaded robot hardly loads, and its estimate may be anything (−7 ± 24 on
    the last joint of a real arm); a payload loads just such joints. The usual share is added as an observation of each; it has
    little effect where the data are more accurate.
    """
    model, fit = problem.model, problem.fit
    shares = [k for k in range(model.n_inertial, len(model.names)) if model.term_of(k).loaded]
    rows = [int(r) for r in np.flatnonzero(np.isin(fit.base.independent, shares))]
    params, covariance, seen, factor = fit.params.copy(), fit.covariance.copy(), fit.seen.copy(), problem.factor
    for r in rows:
        line = np.zeros((1, factor.shape[1]))
        line[0, fit.base.independent[r]], line[0, -1] = 1.0 / _SHARE_ERROR, _SHARE / _SHARE_ERROR
        factor = np.vstack([factor, line])
        if not seen[r]:
            params[r], seen[r] = _SHARE, True
            covariance[r], covariance[:, r] = 0.0, 0.0
            covariance[r, r] = _SHARE_ERROR**2
            continue
        gain = covariance[:, r] / (covariance[r, r] + _SHARE_ERROR**2)
        params = params + gain * (_SHARE - params[r])
        covariance = covariance - np.outer(gain, covariance[r])
    return replace(problem, fit=replace(fit, params=params, covariance=covariance, seen=seen), factor=factor)


def estimate_payload(
    problem: PayloadProblem, logs: Sequence[PreparedLog], *, method: str = "held", refit: str = "none"
) -> PayloadFit:
    """Estimates the unknown body.

    Args:
        method: "held": the unloaded model is fixed; "joint": it is estimated again from unloaded and loaded logs together.
        refit: Friction that is estimated again for the loaded logs, a key of :data:`REFIT`.

    Raises:
        EstimationError: The body affects no joint torque, or there are too few rows.
    """
    held, copies, body = method == "held", problem.copied(refit), problem.columns
    params, converged = np.zeros(10), False
    for _ in range(_ROUNDS):  # the rows are linear in the body for a given sign of the load
        loaded = problem.loaded(params, copies)
        data, factor, information = _solved(problem, loaded, [loaded.with_load(log, params) for log in logs], held)
        before, params = params, np.array(data.solution.estimate[body])
        change = float(np.linalg.norm(information @ (params - before)))
        least = max(_CONVERGED * float(np.linalg.norm(information @ params)), _SURE)
        converged = not loaded.model.loaded or change <= least
        if converged:
            break
    solution, noise_of = data.solution, automatic if held else jackknife if len(data.units) >= FEWEST_STRETCHES else textbook
    noise = noise_of(data)  # of the loaded logs, with autocorrelation
    of_robot = from_robot(problem, solution, factor[:, :-1] if held else None)
    of_gains = from_gains(problem, solution, data.statistics.weighted(data.weights, data.fit.base.independent))
    errors = np.sqrt(np.maximum(np.diag(noise.covariance + of_robot + of_gains), 0.0))
    changed = zip(copies, solution.estimate[body.stop :].tolist(), errors[body.stop :].tolist(), strict=True)
    return PayloadFit(
        method,
        params,
        noise.covariance[body, body],
        of_robot[body, body],
        of_gains[body, body],
        solution.seen[body],
        noise.error_dof[body],
        float(np.min(problem.fit.error_dof)),
        np.asarray(np.linalg.qr(information, mode="r")),
        {problem.model.names[k]: (change, error) for k, change, error in changed},
        data.fit.sigma,
        solution.rows,
        noise.covariance_kind,
        converged,
    )


def _solved(
    problem: PayloadProblem, loaded: LoadedModel, logs: Sequence[PreparedLog], held: bool
) -> tuple[FitData, Array, Array]:
    """Solves the rows with the sign of the load of a given body; row groups are weighted by their residuals.

    Args:
        loaded: The model with this body as load of the gears.
        logs: The loaded logs, with the load in them.

    Returns:
        The estimate of base parameters, body and copied friction, in this order; a factor of its weighted rows, shape
        (k, b + 10 + copies + 1); and the rows of the body, other parameters projected out, shape (k, 10).

    Raises:
        EstimationError: The body affects no joint torque, or there are too few rows.
    """
    fit, known, body = problem.fit, problem.known, problem.columns
    statistics, base = build_statistics(loaded, logs), loaded.extended(fit.base)  # type: ignore[arg-type]
    rows, b = sum(statistics.rows.values()), body.start
    unknown = len(base) - b
    if rows <= unknown:
        raise EstimationError(
            "too few rows for an unknown body", got=rows, expected=f"> {unknown}", remedy="record a longer log"
        )
    unloaded = np.hstack([known, np.zeros((len(known), unknown)), (known @ fit.params)[:, None]])
    start, weights = np.concatenate([fit.params, np.zeros(unknown)]), dict(fit.row_weights)
    for turn in range(_WEIGHTINGS + 1):
        factor = statistics.stacked(weights, base.independent)
        if held:
            rest = factor[:, -1] - factor[:, :b] @ fit.params
            solution = beside(fit.params, solve(np.column_stack([factor[:, b:-1], rest]), rows))
        else:
            solution = solve(np.vstack([factor, unloaded]), rows + fit.rows, start)
        if turn < _WEIGHTINGS:
            sigma = group_sigma(statistics, base, solution, weights)
            weights = {group: 1.0 / value for group, value in sigma.items()}
    if not np.linalg.norm(factor[:, body]) > 0:
        raise EstimationError("no joint torque shows a body on this link", remedy="choose a link that moves")
    columns = factor[:, b:-1] if held else np.vstack([factor, unloaded])[:, :-1]
    own = slice(0, 10) if held else body
    others = np.delete(columns, np.r_[own], axis=1)
    information = orthogonal_part(columns[:, own], others) if others.shape[1] else columns[:, own]
    # the weights are one over the residual's deviation, and the unloaded robot's rows have no residual
    together = replace(fit_of(base, solution, sigma, "wls", weights), covariance=solution.covariance(1.0))
    return FitData(together, statistics, loaded, logs, solution), factor, information  # type: ignore[arg-type]


def beside(held: Array, solution: Solution) -> Solution:
    """Returns a solution with parameters before its own that are held.

    Args:
        held: Their values, shape (k,).
    """
    return replace(
        solution,
        estimate=np.concatenate([held, solution.estimate]),
        root=np.vstack([np.zeros((len(held), solution.root.shape[1])), solution.root]),
        seen=np.concatenate([np.zeros(len(held), dtype=bool), solution.seen]),
    )


def from_robot(problem: PayloadProblem, solution: Solution, rows: Array | None) -> Array:
    """Returns the covariance from the errors of the unloaded robot's parameters, shape (k, k).

    Args:
        solution: Base parameters of the robot, body and others.
        rows: A factor of the weighted rows in which the base parameters are held, shape (m, k); None if they are estimated.
    """
    fit, known, root = problem.fit, problem.known, solution.root
    sure = np.flatnonzero(fit.seen)
    by_rows = known.T @ known[:, sure] if rows is None else -rows.T @ rows[:, sure]
    response = root @ (root[: len(by_rows)].T @ by_rows)
    return np.asarray(response @ fit.covariance[np.ix_(sure, sure)] @ response.T)


def from_gains(problem: PayloadProblem, solution: Solution, groups: Sequence[Array]) -> Array:
    """Returns the covariance from the errors of the torque constants, which scale the body's torque on their joints.

    Args:
        solution: As for :func:`from_robot`.
        groups: A factor of the weighted rows of each row group, a target behind their columns, shape (m, k + 1) each.
    """
    root, body = solution.root, problem.columns
    of_gains = np.zeros((len(root), len(root)))
    for own, error in zip(groups, problem.gain_error, strict=True):
        move = root @ (root.T @ (own[:, :-1].T @ (own[:, body] @ solution.estimate[body])))
        of_gains += error**2 * np.outer(move, move)
    return of_gains


def changed_friction(problem: PayloadProblem, logs: Sequence[PreparedLog]) -> str:
    """Which friction to estimate again: all of it if any parameter has changed significantly (Bonferroni), else "none"."""
    from scipy.special import ndtr

    trial = estimate_payload(problem, logs, refit="friction")
    p_values = [2.0 * ndtr(-abs(change) / positive(error)) for change, error in trial.changes.values()]
    return "friction" if any(p < LEVEL / len(p_values) for p in p_values) else "none"


def preferred_estimate(problem: PayloadProblem, logs: Sequence[PreparedLog], method: str, refit: str) -> PayloadFit:
    """The estimate by one method, or with "auto" the more precise one.

    Args:
        method: A key of :data:`.METHODS`, or "auto".
        refit: A key of :data:`.REFIT`.
    """
    if method != "auto":
        return estimate_payload(problem, logs, method=method, refit=refit)
    held, joint = (estimate_payload(problem, logs, method=name, refit=refit) for name in ("held", "joint"))
    return joint if joint.bse[0] < _BETTER * held.bse[0] else held


def refuse_different_bodies(problem: PayloadProblem, logs: Sequence[PreparedLog], refit: str) -> None:
    """Refuses logs with different payloads.

    Raises:
        EstimationError: The masses differ significantly, and by more than :data:`_DIFFERENT`.
    """
    from scipy.special import chdtrc

    if len(logs) < 2:
        return
    fits = [estimate_payload(problem, [log], refit=refit) for log in logs]
    mass = np.array([fit.params[0] for fit in fits])
    variance = np.array([fit.noise[0, 0] for fit in fits])
    mean = float(np.sum(mass / variance) / np.sum(1.0 / variance))
    chi_square = float(np.sum((mass - mean) ** 2 / variance))
    if chdtrc(len(logs) - 1, chi_square) < REPORT_LEVEL and np.ptp(mass) > _DIFFERENT * abs(mean):
        masses = ", ".join(f"{log.name} {m:.4g} ± {np.sqrt(v):.2g} kg" for log, m, v in zip(logs, mass, variance, strict=True))
        raise EstimationError("these logs do not carry the same body", got=masses, remedy="one call a payload")
