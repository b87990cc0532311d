"""Physically consistent parameters by a semidefinite programme on the data's triangular factor.

    minimise  ‖R theta − rho‖²  +  weight · distance(theta, prior)      subject to theta being physically consistent

R is whitened by the noise, so the first term is −2 log-likelihood, the second −2 log-prior, and weight 1 gives the
maximum a posteriori estimate. Without the second term unidentifiable directions are unbounded, and the constraints alone
allow links of tonnes; the prior is therefore mandatory.

The solver's status is not trusted: constraint violations and the duality gap are recomputed from the plain arrays of
:class:`.Feasible`. A point that violates a constraint is moved towards one inside until it does not, and one without a
small gap is reported as not proven optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, SolverError
from ..linalg import Array, lstsq
from ..model.inertia import pseudo_inertia
from ..model.parameters import Parameter
from ..model.prior import Prior
from ..samples import ReadOnly
from .conic import mass_range, minimise, widest
from .constraints import LmiOptions
from .feasible import Feasible, at_zero, feasible_set
from .objective import LmiObjective, prior_alone, with_data

#: Largest violation, in prior standard deviations, and largest relative duality gap of an accepted solution.
PRIMAL_TOLERANCE, GAP_TOLERANCE = 1e-7, 1e-5
#: Moves of a body's parameter from the prior below this many of its standard deviations are the solver's: they change the
#: prior distance by 1e-8, which is less than the duality gap proves.
_UNMOVED = 1e-4


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
        gap: Upper bound of objective − optimum, recomputed from the dual variables.
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
        parameters: The p entries of theta.
        options: Constraints on the bodies.
        solver: Name of a solver of CVXPY; None: Clarabel's own interface, without CVXPY.

    Raises:
        ShapeError: Prior, parameters and options do not fit together.
    """

    def __init__(
        self,
        prior: Prior,
        parameters: Sequence[Parameter],
        options: LmiOptions | None = None,
        solver: str | None = None,
    ) -> None:
        self.prior, self.solver = prior, solver
        self.parameters = tuple(parameters)
        self.options = options or LmiOptions()
        self.feasible = feasible_set(prior, self.parameters, self.options)

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
        from scipy.linalg import eigvalsh

        feasible = self.feasible
        objective = replace(with_data(feasible, self.options.distance, R, rho), weight=weight)
        point, status = minimise(objective, self.solver)
        if point is None:  # data of a large scale cause false certificates of infeasibility
            free = np.vstack([objective.A, np.sqrt(weight) * np.eye(feasible.p)])
            x = self._inside(lstsq(free, np.append(objective.b, np.zeros(feasible.p)))[0], objective)
        else:
            x = self._inside(point.x, objective)
        active = feasible.active(x)
        held = [at_zero(parameter) in active for parameter in self.parameters]
        theta = feasible.theta0 + feasible.back @ x
        unmoved = (np.abs(theta - feasible.theta0) < _UNMOVED * self.prior.std) & (np.arange(feasible.p) < 10 * feasible.n)
        # solvers stop beside the prior and beside zero; a URDF keeps what it states
        exact = np.where(held, 0.0, np.where(unmoved, feasible.theta0, theta))
        moved = self.prior.root @ (exact - feasible.theta0)
        if self._allows(moved, objective):
            x, theta = moved, exact
        gap = float(np.inf) if point is None else objective.duality_gap(replace(point, x=x))
        bodies, reference = (pseudo_inertia(feasible.per_body(some)) for some in (theta, feasible.theta0))
        solution = LmiSolution(
            theta=theta,
            status="optimal",
            distance=self.options.distance,
            weight=weight,
            data_term=objective.data(x),
            prior_term=objective.prior(x),
            violation=feasible.violation(x),
            gap=gap,
            psd_margins=np.array([eigvalsh(P, P0)[0] for P, P0 in zip(bodies, reference, strict=True)]),
            solver=self.solver or "Clarabel",
            active=active,
        )
        if gap <= GAP_TOLERANCE * (1.0 + solution.objective):
            return solution
        note = f"{solution.solver}: {status}, gap {gap:.1e}: not proven optimal"
        return replace(solution, status="fallback", notes=(note,))

    def _inside(self, x: Array, objective: LmiObjective) -> Array:
        """The point, moved towards one inside all constraints until it violates none by more than the tolerance."""
        if self._allows(x, objective):
            return x
        if self._centre is None:
            raise _infeasible(self)
        goal, low, high = self._balanced(x), 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            inside = self._allows(self._centre + middle * (goal - self._centre), objective)
            low, high = (middle, high) if inside else (low, middle)
        return np.asarray(self._centre + low * (goal - self._centre), dtype=float)

    def _allows(self, x: Array, objective: LmiObjective) -> bool:
        """Whether a point violates no constraint by more than the tolerance, and has a prior distance."""
        return self.feasible.violation(x) <= PRIMAL_TOLERANCE and bool(np.isfinite(objective.prior(x)))

    @cached_property
    def _centre(self) -> Array | None:
        """The point farthest inside all constraints, or on some that leave no inside; None if nothing satisfies them."""
        x = widest(self.feasible)
        x = None if x is None else self._balanced(x)
        return x if x is not None and self.feasible.violation(x) <= PRIMAL_TOLERANCE else None

    def _balanced(self, x: Array) -> Array:
        """The nearest point that meets the equalities."""
        E, e = self.feasible.E, self.feasible.e
        return x + lstsq(E, e - E @ x)[0] if len(e) else x


def _infeasible(problem: LmiProblem) -> SolverError:
    """Error that names the conflicting constraints: total mass with its feasible range, or those whose removal helps."""
    what, options = "no possible robot satisfies the constraints", problem.options

    def relaxed(**change: Any) -> Feasible:
        return feasible_set(problem.prior, problem.parameters, replace(options, **change))

    if options.total_mass is not None:
        least, most = mass_range(relaxed(total_mass=None))
        if np.isfinite(least):
            return SolverError(
                "the total mass is impossible",
                where="consistency.total_mass",
                status="infeasible",
                got=f"{options.total_mass} kg",
                expected=f"between {least:.4g} and {most:.4g} kg",
                remedy="correct or drop the total mass",
            )
    constraints: dict[str, dict[str, Any]] = {
        "the boxes of the centres of mass": {"com_lower": None, "com_upper": None},
        "the ellipsoids": {"ellipsoids": None},
        "the fixed children": {"children": None},
        "the total mass": {"total_mass": None},
    }
    asked = {word: change for word, change in constraints.items() if any(getattr(options, key) is not None for key in change)}
    helps = [word for word, change in asked.items() if minimise(prior_alone(relaxed(**change), "euclid"))[0] is not None]
    remedy = f"drop {' or '.join(helps)}" if helps else f"drop {' and '.join(asked)}" if asked else "check the prior"
    return SolverError(what, where="LMI", status="infeasible", remedy=remedy)
