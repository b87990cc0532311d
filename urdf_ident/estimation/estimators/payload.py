"""An unknown body on a link, from logs that carry it: ten parameters on what the model of the unloaded robot leaves.

The torque of the loaded robot is ``W β + Y π`` with the unloaded model's base parameters β and the body's ten parameters π,
and friction that grows with the load grows with the body's: its columns are those of the link times ``1 + Fl S(v) sign(τ)``.
That torque is linear in π but for the sign of the load, which is found by iteration. Two estimates are made of the same rows:
β held at the unloaded model's (``held``), or estimated anew from both (``joint``), the unloaded logs being the triangular
factor that a result keeps. Friction of the loaded logs may differ from that of the unloaded ones (a warm robot, an offset):
copies of its columns take that up.

The error of π has three sources, kept apart: noise of the loaded logs, β of the unloaded ones, and the torque constants (a
constant that is 1 % too large makes a mass that is 1 % too large).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...data.prepare import PreparedLog
from ...errors import EstimationError
from ...linalg import Array, lstsq
from ...model.dynamic_model import DynamicModel
from ...samples import ReadOnly
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit, group_sigma
from ...statistics.least_squares import Solution, solve
from ...statistics.statistic import StatisticSet
from ..uncertainty.covariance import Covariance, covariance_at
from .loaded_model import LoadedModel, with_load

METHODS = ("held", "joint")
#: What may be estimated anew for the loaded logs: symbols of the friction terms.
REFIT: Mapping[str, tuple[str, ...]] = {"none": (), "offset": ("offset",), "friction": ("offset", "Fc", "Fv")}
#: The sign of the load has converged when the body changes by less than this fraction, or than this part of its standard error;
#: rounds before that is given up.
_CONVERGED, _SURE, _ROUNDS = 1e-6, 1e-2, 10
#: Share of its load that a gear loses in friction, and how much gears differ in that (an even spread from 0 to 0.25).
_SHARE, _SHARE_ERROR = 0.125, 0.07
#: Weights of the row groups are repeated so often.
_WEIGHTINGS = 3


@dataclass(frozen=True, eq=False)
class PayloadFit(ReadOnly):
    """The unknown body's ten parameters as the data give them, whether such a body is physically consistent or not.

    Attributes:
        method: "held" or "joint".
        params: In the link's frame, about its origin, shape (10,) [kg, kg·m, kg·m²].
        noise: Covariance from the noise of the loaded logs, shape (10, 10).
        unloaded: Covariance from the unloaded robot's parameters, shape (10, 10).
        gains: Covariance from the torque constants, shape (10, 10).
        seen: Shape (10,): False where the motion says nothing.
        noise_dof: Degrees of freedom of the first covariance, shape (10,).
        unloaded_dof: Of the second.
        information: Triangular factor of the rows' information on the ten, all else taken out, shape (≤ 10, 10).
        changes: Copied friction column → how much it differs in the loaded logs, and its standard error.
        sigma: Row group → standard deviation of the residual [unit of torque].
        rows: Number of rows.
        covariance_kind: How the first covariance was found.
        rounds: Rounds until the sign of the load had converged.
        converged: Whether it has.
    """

    method: str
    params: Array
    noise: Array
    unloaded: Array
    gains: Array
    seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
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
        """All three together, shape (10, 10)."""
        return np.asarray(self.noise + self.unloaded + self.gains)

    @property
    def bse(self) -> Array:
        """Standard errors, shape (10,); inf where the motion says nothing."""
        return np.where(self.seen, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    def dof(self, row: Array) -> float:
        """Degrees of freedom of a linear function of the parameters (Satterthwaite 1946).

        Args:
            row: Its coefficients, shape (10,).

        Returns:
            Their number.
        """
        share = row**2 * np.diag(self.noise)
        own = float(share.sum() / max(float((share / self.noise_dof).sum()), 1e-300)) if share.sum() > 0 else np.inf
        parts = [(float(row @ self.noise @ row), own), (float(row @ self.unloaded @ row), self.unloaded_dof)]
        total = sum(v for v, _ in parts) + float(row @ self.gains @ row)
        below = sum(v**2 / dof for v, dof in parts)
        return max(1.0, total**2 / below) if below > 0 else np.inf


@dataclass(frozen=True, eq=False)
class PayloadProblem(ReadOnly):
    """What an unknown body is estimated from.

    Attributes:
        model: The unloaded robot's model.
        fit: Its base parameters with their covariance.
        factor: Its whitened data factor ``[R | rho]``, shape (≤ p + 1, p + 1).
        body: Index of the moving body that carries the unknown one.
        placement: ``theta_body = placement @ theta_link``, shape (10, 10).
        gain_error: Relative standard errors of the torque constants, shape (n,); 0 where they are exact.
    """

    model: DynamicModel
    fit: Fit
    factor: Array
    body: int
    placement: Array
    gain_error: Array

    @cached_property
    def theta(self) -> Array:
        """Standard parameters with the fit's torque, shape (p,)."""
        return self.fit.base.embedded(self.fit.params)

    def loaded(self, params: Array, copies: Sequence[int] = ()) -> LoadedModel:
        """The model with the unknown body's columns, where the gears carry a body.

        Args:
            params: The body that they carry, shape (10,).
            copies: See :class:`LoadedModel`.

        Returns:
            The model.
        """
        model = self.model
        if model.reference_theta is not None:
            reference = np.array(model.reference_theta)
            reference[10 * self.body : 10 * self.body + 10] += self.placement @ params
            model = model.with_reference(reference)
        return LoadedModel(model, self.theta, self.body, self.placement, copies)

    def copied(self, refit: str) -> tuple[int, ...]:
        """Friction columns that are estimated anew.

        Args:
            refit: A key of :data:`REFIT`.

        Returns:
            Indices into theta; only terms that the model has.
        """
        kept = set(self.fit.base.independent.tolist())
        names = self.model.parameters
        return tuple(k for k in range(self.model.n_inertial, len(names)) if names[k].symbol in REFIT[refit] and k in kept)


def with_usual_gears(problem: PayloadProblem) -> PayloadProblem:
    """The problem with what is known of all gears: friction takes between nothing and a quarter of the load that they carry.

    A joint that the unloaded robot hardly loads says nothing of that share, and the fit's may be anything (−7 ± 24 on the last
    joint of a real arm); a payload loads just such joints. The usual share is one more observation of each; where the data know
    it better it changes nothing.

    Args:
        problem: The unloaded robot as fitted.

    Returns:
        The same with updated parameters, covariance and factor.
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
        problem: The unloaded robot, and where the body sits.
        logs: Prepared logs that carry it.
        method: "held": the unloaded model as it is; "joint": estimated anew from unloaded and loaded logs together.
        refit: What of friction is estimated anew for the loaded logs, a key of :data:`REFIT`.

    Returns:
        The estimate.

    Raises:
        EstimationError: The body moves no joint's torque, or the rows are too few.
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
    """One linear problem: its solution, and what follows from it."""

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

    def _solve(self, rows: int) -> Solution:
        """All parameters; those of the unloaded robot fixed, or with what the unloaded logs say of them."""
        factor, fit = self._factor(), self.problem.fit
        if self.method == "joint":
            known = self.problem.factor[:, fit.base.independent]
            wide = np.zeros((len(known), factor.shape[1]))
            wide[:, : self.b], wide[:, -1] = known, known @ fit.params
            start = np.concatenate([fit.params, np.zeros(len(self.base) - self.b)])
            return solve(np.vstack([wide, factor]), rows + fit.rows, start)
        rest = np.column_stack([factor[:, self.b : -1], factor[:, -1] - factor[:, : self.b] @ fit.params])
        found = solve(rest, rows)
        root = np.vstack([np.zeros((self.b, found.root.shape[1])), found.root])
        seen = np.concatenate([np.zeros(self.b, dtype=bool), found.seen])
        return replace(found, estimate=np.concatenate([fit.params, found.estimate]), root=root, seen=seen)

    @property
    def params(self) -> Array:
        """The body, shape (10,)."""
        return np.array(self.solution.estimate[self.b : self.b + 10])

    @cached_property
    def information(self) -> Array:
        """Information on the ten with all else that is estimated taken out, as a factor."""
        factor = self._factor()
        if self.method == "joint":
            known = self.problem.factor[:, self.problem.fit.base.independent]
            wide = np.zeros((len(known), factor.shape[1]))
            wide[:, : self.b] = known
            factor = np.vstack([wide, factor])
        others = list(range(self.b)) if self.method == "joint" else []
        others += list(range(self.b + 10, len(self.base)))
        mine = factor[:, self.b : self.b + 10]
        if others:
            rest = factor[:, others]
            scale = np.maximum(np.linalg.norm(rest, axis=0), 1e-300)
            mine = mine - (rest / scale) @ lstsq(rest / scale, mine, rcond=None)[0]
        return np.asarray(np.linalg.qr(mine, mode="r"))

    def finished(self, rounds: int, converged: bool) -> PayloadFit:
        """The estimate with its errors."""
        noise, model, gains = self._noise(), self._unloaded(), self._gains()
        part = slice(self.b, self.b + 10)
        total = noise.matrix + model + gains
        errors = np.sqrt(np.maximum(np.diag(total), 0.0))
        names = [self.problem.model.names[k] for k in self.loaded.copies]
        at = range(self.b + 10, len(self.base))
        changes = {name: (float(self.solution.estimate[k]), float(errors[k])) for name, k in zip(names, at, strict=True)}
        dof = np.broadcast_to(noise.dof, (len(self.base),))[part]
        fit = self.problem.fit
        own = fit.dof if fit.error_dof is None else float(np.min(fit.error_dof))
        cut = (part, part)
        return PayloadFit(
            self.method,
            self.params,
            noise.matrix[cut],
            model[cut],
            gains[cut],
            self.solution.seen[part],
            np.array(dof),
            own,
            self.information,
            changes,
            self.sigma,
            self.solution.rows,
            noise.kind,
            rounds,
            converged,
        )

    def _noise(self) -> Covariance:
        """Of the loaded logs' noise, memory and all."""
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
        """What the unloaded robot's covariance makes of the estimate."""
        fit, root = self.problem.fit, self.solution.root
        known = np.flatnonzero(fit.seen)
        covariance = fit.covariance[np.ix_(known, known)]
        if self.method == "joint":
            data = self.problem.factor[:, fit.base.independent[known]]
            wide = np.zeros((len(data), len(self.base)))
            wide[:, : self.b] = self.problem.factor[:, fit.base.independent]
            response = root @ (root.T @ (wide.T @ data))
        else:
            factor = self._factor()
            response = -root @ (root.T @ (factor[:, :-1].T @ factor[:, known]))
        return np.asarray(response @ covariance @ response.T)

    def _gains(self) -> Array:
        """What the torque constants' errors make of it: where a constant is wrong, so is the body's torque on its joint."""
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
