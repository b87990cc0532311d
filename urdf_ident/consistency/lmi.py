"""Physically consistent parameters by a semidefinite programme on the data's triangular factor.

    minimise  ‖R theta − rho‖²  +  weight · distance(theta, prior)      subject to theta being physically consistent

R is whitened by the noise, so the first term is −2 log-likelihood, the second −2 log-prior, and weight 1 gives the
maximum a posteriori estimate. Without the second term unidentifiable directions are unbounded, and the constraints alone
allow links of tonnes; the prior is therefore mandatory.

The unknown is ``x = root (theta − theta0)``: the deviation from the prior in standard deviations. This whitening gives
numbers of the same scale for a 50 kg base and a 10 g finger. Distances between bodies and the prior's are

- ``euclid``: ``‖x‖²``;
- ``entropic``: ``(tr Q − log det Q − 4)/(2 s²)`` per body, with its pseudo-inertia Q relative to the prior's, ``2 (r − log r −
  1)/s²`` per relative mass r that has a prior, and squares for the joint terms. Both agree to second order at the prior.

In the conic form the variables after x are the data residual ``r = A x − b``, so that a data factor 1e7 times as precise as the
prior is never squared, and for the entropic distance the lower-triangular Z of each body with ``[[diag Z, Zᵀ], [Z, Q]] ⪰ 0``,
for which ``max Σ log Z_ii = log det Q``, and the logarithms themselves (exponential cones), body by body; at last the
logarithms of the relative masses.

The solver's status is not trusted: constraint violations and the objective are recomputed from plain arrays, and the optimum
has a lower bound from the dual variables. A point that violates a constraint is put on the half-spaces in question, then moved
towards the nearest one to the prior until it does not; one far above the bound is reported as not proven optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, ShapeError, SolverError, check_known, check_shape
from ..linalg import Array, lstsq
from ..model.inertia import PSEUDO_BASIS, pseudo_inertia
from ..model.prior import Prior
from ..model.terms import Parameter
from ..samples import ReadOnly
from .conic import ConicForm, packed, triangle
from .constraints import FRICTION, TOTAL, Constraint, Floor, HalfSpace, at_zero, mass_limits, physics

#: Largest violation, in prior standard deviations, and largest relative duality gap of an accepted solution.
PRIMAL_TOLERANCE, GAP_TOLERANCE = 1e-7, 1e-5
#: In prior standard deviations, a constraint nearer to its limit is active.
_ACCURACY = 1e-5
#: Moves of a body's parameter from the prior below this many of its standard deviations are the solver's: they change the
#: prior distance by 1e-8, which is less than the duality gap proves.
_UNMOVED = 1e-4
#: Accuracy of the solver, which ends below the largest data term over the scale of the objective.
_LARGEST = 1e-8
#: Scales of the objective that are tried one after the other, as multiples of the first.
_SCALES = (1.0, 1e-2, 1e-4)
#: Entries of Z of a body, and their number with the logarithms of its diagonal.
_OF_FACTOR, _OF_BODY = 10, 14


@dataclass(frozen=True, eq=False)
class LmiSolution(ReadOnly):
    """Physically consistent parameters with the checks of the solution.

    Attributes:
        theta: Shape (p,).
        status: ``"optimal"``: recomputed gap and violations are within tolerance; ``"fallback"``: a feasible
            point that is not the proven optimum, see ``notes``.
        weight: Weight of the prior distance.
        data_term: ``‖R theta − rho‖²``.
        prior_term: The unweighted prior distance.
        violation: Largest constraint violation, recomputed, in prior standard deviations.
        gap: Objective less the lower bound of its optimum from the dual variables; inf without one.
        psd_margins: Smallest eigenvalue of every body's P relative to the prior's, shape (n,); ≥ ε.
        active: Descriptions of the active constraints.
        notes: What the solver could not prove.
    """

    theta: Array
    status: str
    distance: str
    weight: float
    data_term: float
    prior_term: float
    violation: float
    gap: float
    psd_margins: Array
    solver: str
    active: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def objective(self) -> float:
        """Data term plus weighted prior term."""
        return self.data_term + self.weight * self.prior_term

    def as_dict(self) -> dict[str, Any]:
        """The ``solver`` part of identification.json."""
        return {
            "status": self.status,
            "name": self.solver,
            "distance": self.distance,
            "weight": self.weight,
            "residuals": {
                "violation": self.violation,
                "gap": self.gap if np.isfinite(self.gap) else "inf",
                "psd_margin": float(self.psd_margins.min()),
            },
            "objective": {"data": self.data_term, "prior": self.prior_term},
            "active": list(self.active),
            "notes": list(self.notes),
        }


class LmiProblem:
    """Constraints and prior of one robot, for solutions with different data factors and weights.

    Args:
        prior: Prior of all p parameters.
        parameters: The p entries of theta; the first 10·n are the bodies of the prior.
        constraints: Besides those of physics; None: limits of the masses.
        distance: To the prior: ``"entropic"`` (log-det divergence) or ``"euclid"`` (its quadratic approximation).
        solver: Name of a solver of CVXPY; None: Clarabel's own interface, without CVXPY.

    Raises:
        ShapeError: Prior, parameters and constraints do not fit together.
    """

    def __init__(
        self,
        prior: Prior,
        parameters: Sequence[Parameter],
        constraints: Sequence[Constraint] | None = None,
        distance: str = "entropic",
        solver: str | None = None,
    ) -> None:
        check_known("prior distance", distance, ("entropic", "euclid"), ShapeError)
        check_shape("parameters", (len(parameters),), prior.theta0.shape)
        self.prior, self.parameters, self.distance, self.solver = prior, tuple(parameters), distance, solver
        self.constraints = tuple(mass_limits(prior, parameters) if constraints is None else constraints)
        self.p, self.n = len(prior.theta0), len(prior.relative_std)
        every: list[Constraint] = [*physics(prior, parameters), *self.constraints]
        floors = [one for one in every if isinstance(one, Floor)]
        half_spaces = [one for one in every if isinstance(one, HalfSpace)]
        self._names = [floor.name for floor in floors] + [wall.name for wall in half_spaces]
        # relative pseudo-inertias Q = 1 + linear · x of the bodies, congruent to the metric's scale, and their relative masses
        # 1 + mass · x, shapes (n, 4, 4, 10) and (n, 10)
        half, theta0 = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(prior.spread))), self._per_body(prior.theta0)
        maps = np.array([prior.deviations[i : i + 10, i : i + 10] for i in range(0, 10 * self.n, 10)])
        self._linear = np.einsum("nab,kbc,ndc,nkl->nadl", half, PSEUDO_BASIS, half, maps, optimize=True)
        self._mass = maps[:, 0] / theta0[:, :1]
        # weights of their divergences; 0 for masses without a prior
        self._entropy_scale, self._mass_scale = 1.0 / (2.0 * np.square(prior.relative_std)), 2.0 / np.square(prior.mass_std)
        # matrices linear · x + constant ⪰ 0 of some bodies, and inequalities G x + h ≥ 0 with unit normals
        self._body, least = np.array([floor.body for floor in floors]), np.array([floor.least for floor in floors])
        above = pseudo_inertia(theta0)[self._body] - least
        self._constant = half[self._body] @ above @ half[self._body].transpose(0, 2, 1)
        rows = np.array([wall.row for wall in half_spaces]).reshape(-1, self.p)
        normals, limits = rows @ prior.deviations, np.array([wall.limit for wall in half_spaces])
        size = np.linalg.norm(normals, axis=1)
        self._G, self._h = normals / size[:, None], (rows @ prior.theta0 + limits) / size

    def solve(self, R: ArrayLike, rho: ArrayLike, weight: float = 1.0) -> LmiSolution:
        """Solves for one data factor and weight.

        Args:
            R: Data factor, whitened by the noise, shape (k, p); triangular or not, of any rank.
            rho: Its right-hand side, shape (k,).
            weight: Weight of the prior distance, > 0; 1 gives the maximum a posteriori estimate.

        Raises:
            ShapeError: Shapes do not fit.
            EstimationError: The data are not finite, or the weight is not positive.
            SolverError: Nothing satisfies the constraints; the message names the conflicting ones.
        """
        if not (weight > 0 and np.isfinite(weight)):
            raise EstimationError(
                "the prior's weight must be positive and finite",
                got=weight,
                remedy="without a prior the null space is unbounded",
            )
        prior = self.prior
        A, b, unexplained = self._data(R, rho)

        def data(x: Array) -> float:
            return float(np.sum(np.square(A @ x - b))) + unexplained

        x, bound, status = self.minimise(A, b, weight)
        x = self._inside(x)
        active = tuple(name for name, slack in zip(self._names, self._slacks(x), strict=True) if slack < _ACCURACY)
        held = [at_zero(parameter) in active for parameter in self.parameters]
        theta = prior.theta0 + prior.deviations @ x
        unmoved = (np.abs(theta - prior.theta0) < _UNMOVED * prior.std) & (np.arange(self.p) < 10 * self.n)
        # solvers stop beside the prior and beside zero; a URDF keeps what it states
        exact = np.where(held, 0.0, np.where(unmoved, prior.theta0, theta))
        moved = prior.root @ (exact - prior.theta0)
        if self._allows(moved):
            x, theta = moved, exact
        bodies, reference = (pseudo_inertia(self._per_body(some)) for some in (theta, prior.theta0))
        half = np.linalg.inv(np.linalg.cholesky(reference))
        solution = LmiSolution(
            theta=theta,
            status="optimal",
            distance=self.distance,
            weight=weight,
            data_term=data(x),
            prior_term=self._distance_to_prior(x),
            violation=self._violation(x),
            gap=max(data(x) + weight * self._distance_to_prior(x) - unexplained - bound, 0.0),
            psd_margins=np.asarray(np.linalg.eigvalsh(half @ bodies @ half.transpose(0, 2, 1))[:, 0], dtype=float),
            solver=self.solver or "Clarabel",
            active=active,
        )
        if solution.gap <= GAP_TOLERANCE * (1.0 + solution.objective):
            return solution
        note = f"{solution.solver}: {status}, gap {solution.gap:.1e}: not proven optimal"
        return replace(solution, status="fallback", notes=(note,))

    def _data(self, R: ArrayLike, rho: ArrayLike) -> tuple[Array, Array, float]:
        """The data term ``‖A x − b‖² + unexplained``, with A reduced to its rank."""
        from scipy.linalg import svd

        factor, target = np.asarray(R, dtype=float), np.asarray(rho, dtype=float)
        check_shape("R", factor.shape, ("k", self.p))
        check_shape("rho", target.shape, (len(factor),))
        if not (np.isfinite(factor).all() and np.isfinite(target).all()):
            raise EstimationError("the data factor is not finite", where="LMI")
        right = target - factor @ self.prior.theta0  # without the prior's torque, to avoid cancellation
        u, s, V = svd(factor @ self.prior.deviations, full_matrices=False, check_finite=False, lapack_driver="gesvd")
        keep = s > max(factor.shape) * np.finfo(float).eps * s.max(initial=0.0)
        b = u[:, keep].T @ right
        outside = right - u[:, keep] @ b
        return s[keep, None] * V[keep], b, float(outside @ outside)

    def minimise(self, A: Array, b: Array, weight: float) -> tuple[Array | None, float, str]:
        """Minimises ``‖A x − b‖² + weight · distance``; A of shape (k, p), b of shape (k,).

        Returns:
            x, shape (p,), or None without one; a lower bound of the minimum; and the status: as of :meth:`ConicForm.solve`.
        """
        # the objective is divided by its scale, that of the prior distance, for which absolute tolerances are set; against
        # these, data of a much larger one would pass for infeasible. No scale suits all data: where the solver makes no more
        # progress, it is tried again with smaller ones.
        for multiple in _SCALES:
            scale = multiple * max(weight, _LARGEST * float(b @ b))
            y, bound, status = self._form(A, b, weight, scale).solve(self.solver)
            if status in ("optimal", "infeasible", "unbounded"):
                break
        return None if y is None else y[: self.p], scale * bound, status

    def _form(self, A: Array, b: Array, weight: float, scale: float) -> ConicForm:
        """The problem of :meth:`minimise`, its objective divided by a scale."""
        p, k, entropic = self.p, len(b), self.distance == "entropic"
        masses = np.flatnonzero(self._mass_scale) if entropic else np.zeros(0, dtype=int)
        form = ConicForm(p + k + (_OF_BODY * self.n if entropic else 0) + len(masses))
        shrunk, share, x, residual = 1.0 / np.sqrt(scale), weight / scale, np.arange(p), np.arange(p, p + k)
        form.add("zero", k, shrunk * b, (-shrunk * A, x), (np.eye(k), residual))
        form.quadratic[residual], form.quadratic[10 * self.n if entropic else 0 : p] = 2.0, 2.0 * share
        self._constrain(form)
        if entropic:
            self._add_entropy(form, share, p + k)
        for logarithm, i in enumerate(masses.tolist(), p + k + _OF_BODY * self.n):
            body = 10 * i + np.arange(10)
            form.add_logarithm(logarithm, 1.0, self._mass[i], body)
            form.linear[logarithm] = -share * self._mass_scale[i]
            form.linear[body] += share * self._mass_scale[i] * self._mass[i]
        return form

    def _constrain(self, form: ConicForm) -> None:
        form.add("nonnegative", len(self._h), self._h, (self._G, np.arange(self.p)))
        for i, constant in zip(self._body, self._constant, strict=True):
            form.add("psd", 4, packed(constant[:, :, None])[:, 0], (packed(self._linear[i]), 10 * i + np.arange(10)))

    def _add_entropy(self, form: ConicForm, share: float, first: int) -> None:
        """Adds a share of ``(tr Q − log det Q)/(2 s²)`` of the bodies, their Z and its logarithms beginning at a place in y."""
        rows, columns, _ = triangle(4)  # of Zᵀ
        arrow, relative, constant = np.zeros((8, 8, 10)), np.zeros((8, 8, 10)), np.zeros((8, 8, 1))
        arrow[4 + columns, rows, np.arange(10)] = arrow[rows, 4 + columns, np.arange(10)] = 1.0
        diagonal = np.flatnonzero(rows == columns)
        arrow[np.arange(4), np.arange(4), diagonal] = 1.0
        constant[4:, 4:, 0] = np.eye(4)
        for i, scale in enumerate(share * self._entropy_scale):
            body, factor = 10 * i + np.arange(10), first + _OF_BODY * i + np.arange(_OF_FACTOR)
            relative[4:, 4:] = self._linear[i]
            form.add("psd", 8, packed(constant)[:, 0], (packed(relative), body), (packed(arrow), factor))
            for logarithm, entry in enumerate(factor[diagonal], factor[-1] + 1):
                form.add_logarithm(logarithm, 0.0, np.ones(1), np.array([entry]))
                form.linear[logarithm] = -scale
            form.linear[body] += scale * np.einsum("aak->k", self._linear[i])

    def _inside(self, x: Array | None) -> Array:
        """The point, put on the half-spaces that it violates, then moved towards the one nearest to the prior until allowed."""
        if x is not None and self._allows(x):
            return x
        if self._nearest is None:
            raise self._infeasible()
        if x is None:
            return self._nearest
        less = np.minimum(self._G @ x + self._h, 0.0)
        step = x - lstsq(self._G[less < 0], less[less < 0])[0] - self._nearest
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._allows(self._nearest + middle * step) else (low, middle)
        return np.asarray(self._nearest + low * step, dtype=float)

    @cached_property
    def _nearest(self) -> Array | None:
        """The nearest point to the prior; None if nothing satisfies the constraints."""
        form = ConicForm(self.p)
        form.quadratic[:] = 2.0
        self._constrain(form)
        x, _, _ = form.solve()
        return x if x is not None and self._allows(x) else None

    def _allows(self, x: Array) -> bool:
        """Whether a point violates no constraint by more than the tolerance, and has a prior distance."""
        return self._violation(x) <= PRIMAL_TOLERANCE and bool(np.isfinite(self._distance_to_prior(x)))

    def _violation(self, x: Array) -> float:
        """Largest violation of any constraint, in prior standard deviations; 0 for a feasible point."""
        return float(max(0.0, -self._slacks(x).min()))

    def _slacks(self, x: Array) -> Array:
        """Least eigenvalue of each matrix, and the value of each inequality."""
        matrices = self._constant + np.einsum("cijk,ck->cij", self._linear[self._body], self._per_body(x)[self._body])
        return np.concatenate([np.linalg.eigvalsh(matrices)[:, 0], self._G @ x + self._h])

    def _distance_to_prior(self, x: Array) -> float:
        """Infinite outside the entropic distance's domain."""
        if self.distance == "euclid":
            return float(x @ x)
        bodies = self._per_body(x)
        eigenvalues = np.linalg.eigvalsh(np.eye(4) + np.einsum("nijk,nk->nij", self._linear, bodies))
        r = 1.0 + np.sum(self._mass * bodies, axis=1)
        if eigenvalues.min() <= 0 or r.min() <= 0:
            return float(np.inf)
        divergence = self._entropy_scale @ (eigenvalues - np.log(eigenvalues) - 1.0).sum(axis=1)
        return float(divergence + self._mass_scale @ (r - np.log(r) - 1.0) + np.sum(x[10 * self.n :] ** 2))

    def _per_body(self, x: Array) -> Array:
        """The entries that belong to the bodies, shape (n, 10)."""
        return x[: 10 * self.n].reshape(-1, 10)

    def without(self, setting: str) -> LmiProblem:
        """The problem without the constraints of a setting."""
        kept = [one for one in self.constraints if one.setting != setting]
        return LmiProblem(self.prior, self.parameters, kept, self.distance, self.solver)

    def mass_range(self) -> tuple[float, float]:
        """Least and largest total mass that the constraints allow [kg]; inf if unbounded, NaN if infeasible."""
        bodies = slice(0, 10 * self.n, 10)
        mass, start = self.prior.deviations[bodies].sum(axis=0), float(self.prior.theta0[bodies].sum())
        ends = []
        for sign in (1.0, -1.0):
            form = ConicForm(self.p)
            form.linear[:] = sign * mass / start
            self._constrain(form)
            y, _, status = form.solve()
            without = -sign * np.inf if status == "unbounded" else np.nan
            ends.append(without if y is None else start + float(mass @ y))
        return ends[0], ends[1]

    def _infeasible(self) -> SolverError:
        """Error that names the conflicting constraints: total mass with its feasible range, or those whose removal helps."""
        asked = dict.fromkeys(one.setting for one in self.constraints if one.setting != FRICTION)
        if TOTAL in asked:
            wanted = [abs(one.limit) for one in self.constraints if one.setting == TOTAL and isinstance(one, HalfSpace)]
            least, most = self.without(TOTAL).mass_range()
            if np.isfinite(least):
                return SolverError(
                    "the total mass is impossible",
                    where=f"consistency.{TOTAL}",
                    status="infeasible",
                    got=" to ".join(f"{kilograms:g}" for kilograms in dict.fromkeys(wanted)) + " kg",
                    expected=f"between {least:.4g} and {most:.4g} kg",
                    remedy="correct or drop the total mass",
                )
        helps = [f"consistency.{setting}" for setting in asked if self.without(setting)._nearest is not None]
        remedy = f"drop {' or '.join(helps or (f'consistency.{setting}' for setting in asked))}" if asked else "check the prior"
        return SolverError("no possible robot satisfies the constraints", where="LMI", status="infeasible", remedy=remedy)
