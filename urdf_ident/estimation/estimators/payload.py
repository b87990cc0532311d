"""Estimation of the ten parameters of an unknown payload on a link, from the residual of the unloaded robot's model.

The torque of the loaded robot is ``W β + Y π`` with the unloaded model's base parameters β and the body's ten parameters π.
Load-dependent friction increases with the body's torque: its columns are those of the link times ``1 + Fl S(v) sign(τ)``. The
torque is linear in π except for the sign of the load, which is found by iteration. There are two estimates from the same rows:
β fixed at that of the unloaded model (``held``), or estimated again from both (``joint``), where the unloaded logs are
represented by the triangular factor stored in a result. Friction in the loaded logs may differ from that in the unloaded ones
(a warm robot, an offset), which is covered by copies of its columns.

The error of π has three sources, kept separate: noise of the loaded logs, β of the unloaded ones, and the torque constants (a
constant that is 1 % too large gives a mass that is 1 % too large).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, BoolArray, orthogonal_part, positive
from ...model.dynamic_model import DynamicModel
from ...samples import ReadOnly
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit, group_sigma
from ...statistics.least_squares import Solution, solve
from ...statistics.statistic import StatisticSet
from ..uncertainty.covariance import Covariance, covariance_at
from .loaded_model import LoadedModel, with_load

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
        rounds: Iterations until the sign of the load converged.
        converged: Whether it converged.
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
    rounds: int = 1
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

        Returns:
            Degrees of freedom, at least 1.
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

        Args:
            refit: A key of :data:`REFIT`.

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

    Returns:
        The problem with updated parameters, covariance and factor.
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
    params = np.zeros(10)
    copies = problem.copied(refit)
    for round_ in range(1, _ROUNDS + 1):
        loaded = problem.loaded(params, copies)
        shifted = [with_load(loaded, log, params) for log in logs]
        work = _Solved(problem, loaded, shifted, method)
        before, params = params, work.params
        change = float(np.linalg.norm(work.information @ (params - before)))
        converged = change <= max(_CONVERGED * float(np.linalg.norm(work.information @ params)), _SURE)
        if not loaded.model.loaded or converged:
            return work.finished(round_, True)
    return work.finished(_ROUNDS, False)


class _Solved:
    """Solution of one linear problem, with its errors."""

    def __init__(self, problem: PayloadProblem, loaded: LoadedModel, logs: Sequence[PreparedLog], method: str) -> None:
        self.problem, self.loaded, self.logs, self.method = problem, loaded, logs, method
        self.statistics: StatisticSet = build_statistics(loaded, logs)  # type: ignore[arg-type]
        self.base, self.b = loaded.extended(problem.fit.base), len(problem.fit.base)
        rows = sum(self.statistics.rows.values())
        if rows <= len(self.base) - self.b:
            raise EstimationError(
                "too few rows for an unknown body",
                got=rows,
                expected=f"> {len(self.base) - self.b}",
                remedy="record a longer log",
            )
        self.weights = dict(problem.fit.row_weights or problem.fit.weights)
        for _ in range(_WEIGHTINGS):
            self.solution = self._solve(rows)
            self.sigma = group_sigma(self.statistics, self.base, self.solution, self.weights)
            self.weights = {group: 1.0 / value for group, value in self.sigma.items()}
        self.solution = self._solve(rows)
        if not np.linalg.norm(self._factor()[:, self.b : self.b + 10]) > 0:
            raise EstimationError("no joint torque shows a body on this link", remedy="choose a link that moves")

    def _factor(self) -> Array:
        return self.statistics.stacked(self.weights, self.base.independent)

    def _rows(self) -> Array:
        """Factor of the loaded logs, and below it of the unloaded ones if they are estimated together."""
        factor, fit = self._factor(), self.problem.fit
        if self.method == "held":
            return factor
        known = self.problem.factor[:, fit.base.independent]
        unloaded = np.zeros((len(known), factor.shape[1]))
        unloaded[:, : self.b], unloaded[:, -1] = known, known @ fit.params
        return np.vstack([factor, unloaded])

    def _solve(self, rows: int) -> Solution:
        """Solves for all parameters, those of the unloaded robot fixed or with the information of the unloaded logs."""
        factor, fit = self._rows(), self.problem.fit
        if self.method == "joint":
            return solve(factor, rows + fit.rows, np.concatenate([fit.params, np.zeros(len(self.base) - self.b)]))
        rest = np.column_stack([factor[:, self.b : -1], factor[:, -1] - factor[:, : self.b] @ fit.params])
        solution = solve(rest, rows)
        root = np.vstack([np.zeros((self.b, solution.root.shape[1])), solution.root])
        seen = np.concatenate([np.zeros(self.b, dtype=bool), solution.seen])
        return replace(solution, estimate=np.concatenate([fit.params, solution.estimate]), root=root, seen=seen)

    @property
    def params(self) -> Array:
        """Parameters of the body, shape (10,)."""
        return np.array(self.solution.estimate[self.b : self.b + 10])

    @cached_property
    def information(self) -> Array:
        """Factor of the information on the ten parameters, with all other estimated parameters projected out."""
        robot, body, copies, _ = np.split(self._rows(), [self.b, self.b + 10, len(self.base)], axis=1)
        others = np.hstack([robot, copies]) if self.method == "joint" else copies
        return np.asarray(np.linalg.qr(orthogonal_part(body, others) if others.shape[1] else body, mode="r"))

    def finished(self, rounds: int, converged: bool) -> PayloadFit:
        """Returns the estimate with its errors."""
        noise, model, gains = self._noise(), self._unloaded(), self._gains()
        part = slice(self.b, self.b + 10)
        total = noise.matrix + model + gains
        errors = np.sqrt(np.maximum(np.diag(total), 0.0))
        names = [self.problem.model.names[k] for k in self.loaded.copies]
        at = range(self.b + 10, len(self.base))
        changes = {name: (float(self.solution.estimate[k]), float(errors[k])) for name, k in zip(names, at, strict=True)}
        dof = np.broadcast_to(noise.dof, (len(self.base),))[part]
        unloaded_dof = float(np.min(self.problem.fit.dofs))
        cut = (part, part)
        return PayloadFit(
            self.method,
            self.params,
            noise.matrix[cut],
            model[cut],
            gains[cut],
            self.solution.seen[part],
            np.array(dof),
            unloaded_dof,
            self.information,
            changes,
            self.sigma,
            self.solution.rows,
            noise.kind,
            rounds,
            converged,
        )

    def _noise(self) -> Covariance:
        """Covariance due to the noise of the loaded logs, with autocorrelation."""
        extra: dict[str, Any] = {"covariance_kind": "independent residuals", "row_weights": self.weights}
        fit = Fit(
            self.base,
            self.solution.estimate,
            self.solution.root @ self.solution.root.T,
            self.solution.seen,
            self.sigma,
            self.solution.rows,
            self.solution.dof,
            self.solution.condition,
            "wls",
            **extra,
        )
        held = self.method == "held"
        return covariance_at(fit, self.statistics, self.solution, model=self.loaded, logs=self.logs, complete=held)  # type: ignore[arg-type]

    def _unloaded(self) -> Array:
        """Covariance due to the errors of the unloaded robot's parameters."""
        fit, root = self.problem.fit, self.solution.root
        known = np.flatnonzero(fit.seen)
        covariance = fit.covariance[np.ix_(known, known)]
        if self.method == "joint":
            factor = self.problem.factor[:, fit.base.independent]
            response = root @ (root[: self.b].T @ (factor.T @ factor[:, known]))
        else:
            factor = self._factor()
            response = -root @ (root.T @ (factor[:, :-1].T @ factor[:, known]))
        return np.asarray(response @ covariance @ response.T)

    def _gains(self) -> Array:
        """Covariance due to the errors of the torque constants, which scale the body's torque on their joints."""
        root, out = self.solution.root, np.zeros((len(self.base), len(self.base)))
        body = np.zeros(len(self.base))
        body[self.b : self.b + 10] = self.params
        for group, error in zip(self.loaded.groups, self.problem.gain_error, strict=True):
            if error > 0:
                only = replace(self.statistics, layouts=(self.statistics.layout(group.name),))
                only = only.select(lambda entry, name=group.name: entry.group == name)  # type: ignore[misc]
                rows = only.stacked(self.weights, self.base.independent)[:, :-1]
                move = root @ (root.T @ (rows.T @ (rows @ body)))
                out += error**2 * np.outer(move, move)
        return out
