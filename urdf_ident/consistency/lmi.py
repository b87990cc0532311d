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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, SolverError, check_positive
from ..linalg import Array, lstsq, positive
from ..model.parameters import Parameter
from ..model.prior import Prior
from ..samples import ReadOnly
from .cones import Feasible, feasible_set
from .conic import ROUGH, mass_range, minimise, widest
from .constraints import LmiOptions
from .programme import DataTerm, Point, Programme, prior_only, whiten_data

#: Largest violation, in prior standard deviations, and largest relative duality gap of an accepted solution.
PRIMAL_TOLERANCE, GAP_TOLERANCE = 1e-6, 1e-5
#: Least slack of the prior as a point inside.
_INSIDE = 1e-6


@dataclass(frozen=True, eq=False)
class LmiSolution(ReadOnly):
    """Physically consistent parameters with the checks of the solution.

    Attributes:
        theta: Shape (p,).
        status: ``"optimal"``: recomputed gap and violations are within tolerance; ``"fallback"``: a feasible
            point that is not the proven optimum, see ``notes``.
        weight: Weight of the prior distance.
        data_term: ``‖R theta − rho‖²`` plus the residual not contained in R.
        prior_term: The unweighted prior distance.
        violation: Largest constraint violation, recomputed, in prior standard deviations.
        gap: Upper bound of objective − optimum, recomputed from the dual variables (zero ones for a projection).
        psd_margins: Smallest eigenvalue of every body's P relative to the prior's, shape (n,); ≥ ε.
        seconds: Time in the solver [s].
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
    seconds: float
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
        self.feasible: Feasible = feasible_set(prior, self.parameters, self.options)

    def solve(self, R: ArrayLike, rho: ArrayLike, weight: float = 1.0, *, residual: float = 0.0) -> LmiSolution:
        """Solves for one data factor and weight.

        Args:
            R: Data factor, whitened by the noise, shape (k, p); triangular or not, of any rank.
            rho: Its right-hand side, shape (k,).
            weight: Weight of the prior distance, > 0; 1 gives the maximum a posteriori estimate.
            residual: Squared residual that a reduction of the data left out of R, ≥ 0.

        Raises:
            ShapeError: Shapes do not fit.
            EstimationError: The data are not finite, or the weight is not positive.
            SolverError: Nothing satisfies the constraints (the message names the conflicting ones), or every attempt
                failed.
        """
        return self._solve(whiten_data(self.feasible, R, rho, residual), weight)

    def point_to_set(self, R: ArrayLike, rho: ArrayLike, slack: float = 0.01) -> LmiSolution:
        """Physically consistent parameters closest to the prior among those that fit the data almost as well as the best.

        Minimises the prior distance subject to ``residual² ≤ (1 + slack)·minimum``; by duality this equals
        :meth:`solve` at one particular weight, which is found by root bracketing and returned in the solution.

        Args:
            R: Data factor, shape (k, p).
            rho: Shape (k,).
            slack: Allowed relative increase of the squared residual above the feasible minimum, > 0.

        Returns:
            The solution; its ``weight`` is ``inf`` if the prior itself fits well enough.

        Raises:
            ShapeError: Shapes do not fit.
            EstimationError: The data are not finite, or the slack is not positive.
            SolverError: As for :meth:`solve`.
        """
        check_positive("the slack of point_to_set", slack, EstimationError)
        data = whiten_data(self.feasible, R, rho, 0.0)
        closest = self._closest(data)
        least, low = self._least_residual(data, slack)
        target = (1.0 + slack) * least.data_term
        if closest.data_term <= target:
            return closest
        solutions = {low: least}

        def excess(log_weight: float) -> float:
            if log_weight not in solutions:
                solutions[log_weight] = self._solve(data, float(np.exp(log_weight)))
            return float(np.log(positive(solutions[log_weight].data_term) / positive(target)))

        high = low + np.log(100.0)
        while excess(high) <= 0 and high < low + np.log(1e16):
            high += np.log(100.0)
        if excess(high) > 0 and excess(low) < 0:
            from scipy.optimize import brentq

            brentq(excess, low, high, xtol=0.01, maxiter=40)
        return solutions[max(weight for weight in solutions if excess(weight) <= 1e-9)]

    def rough_solver(self, factors: Sequence[tuple[ArrayLike, ArrayLike]]) -> Callable[[float], list[Array]]:
        """Returns a solver to a few digits without a certificate, to compare weights on many folds.

        Args:
            factors: ``(R, rho)`` of each fold, as for :meth:`solve`.

        Returns:
            A function of a weight > 0 that returns theta of every fold, shape (p,) each.

        Raises:
            ShapeError: Shapes do not fit.
            EstimationError: The data are not finite.
            SolverError: Nothing satisfies the constraints.
        """
        terms = [whiten_data(self.feasible, R, rho, 0.0) for R, rho in factors]

        def solve(weight: float) -> list[Array]:
            points = [minimise(Programme(self.feasible, term, weight, self.options.distance), gap=ROUGH)[0] for term in terms]
            return [
                self._solve(term, weight).theta if point is None else self.feasible.theta(point.x)
                for term, point in zip(terms, points, strict=True)
            ]

        return solve

    def _closest(self, data: DataTerm) -> LmiSolution:
        """The physically consistent parameters closest to the prior, regardless of the data."""
        inside = self._solve(prior_only(self.feasible), 1.0)
        x = np.asarray(np.linalg.solve(self.feasible.back, inside.theta - self.feasible.theta0), dtype=float)
        return replace(inside, weight=np.inf, data_term=data.value(x))

    def _least_residual(self, data: DataTerm, slack: float) -> tuple[LmiSolution, float]:
        """Feasible minimum of the data term to a tenth of the slack, by decreasing the weight; returns its logarithm too."""
        weight = float(np.median(np.square(data.s))) if len(data.s) else 1.0
        solution = self._solve(data, weight)
        for _ in range(6):
            weight /= 100.0
            before, solution = solution, self._solve(data, weight)
            if solution.data_term >= before.data_term * (1.0 - 0.1 * slack):
                break
        return solution, float(np.log(weight))

    def _solve(self, data: DataTerm, weight: float) -> LmiSolution:
        if not (weight > 0 and np.isfinite(weight)):
            raise EstimationError(
                "the prior's weight must be positive and finite",
                got=weight,
                remedy="without a prior the null space is unbounded",
            )
        programme = Programme(self.feasible, data, weight, self.options.distance)
        point, status = minimise(programme, self.solver)
        if (status == "infeasible" or self._centre is None) and not self._possible():
            raise _infeasible(self)
        if point is None:
            point = self._regularised(data, weight)
        x = self._inside(point.x, programme, status)
        if x is not point.x:
            point = replace(point, x=x)
        solution = self._judge(point, programme)
        if solution.gap <= GAP_TOLERANCE * (1.0 + solution.objective):
            return replace(solution, status="optimal")
        note = f"{solution.solver}: {status}, gap {solution.gap:.1e}: not proven optimal"
        return replace(solution, status="fallback", notes=(note,))

    def _possible(self) -> bool:
        """Whether the constraints are feasible; data of a large scale cause false certificates, so none take part."""
        if self.feasible.violation(np.zeros(self.feasible.p)) == 0:
            return True
        point, _ = minimise(_nearest(self.feasible))
        return point is not None and self.feasible.violation(point.x) <= PRIMAL_TOLERANCE

    def _judge(self, point: Point, programme: Programme) -> LmiSolution:
        x, feasible = point.x, self.feasible
        active = feasible.active(x)
        at_zero = [f"{parameter.name} ≥ 0" in active for parameter in self.parameters]
        theta = np.where(at_zero, 0.0, feasible.theta(x))  # solvers stop slightly above or below zero
        return LmiSolution(
            theta=theta,
            status="",
            distance=programme.distance,
            weight=programme.weight,
            data_term=programme.data.value(x),
            prior_term=programme.prior(x)[0],
            violation=feasible.violation(x),
            gap=programme.duality_gap(point),
            psd_margins=feasible.margins(theta),
            solver=self.solver or "Clarabel",
            seconds=point.seconds,
            active=active,
        )

    def _inside(self, x: Array, programme: Programme, status: str) -> Array:
        """The point, moved towards one inside all constraints until it violates none by more than the tolerance."""
        feasible = self.feasible

        def allowed(point: Array) -> bool:
            return feasible.violation(point) <= 0.1 * PRIMAL_TOLERANCE and bool(np.isfinite(programme.prior_value(point)))

        if allowed(x):
            return x
        centre = self._centre
        if centre is None:
            raise SolverError(
                "no solver could handle the physical-consistency problem",
                status=status,
                where="LMI",
                remedy="relax total mass, boxes or children, or use consistency.method: minimum_norm",
            )
        goal = x + lstsq(feasible.E, feasible.e - feasible.E @ x, rcond=None)[0]
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if allowed(centre + middle * (goal - centre)) else (low, middle)
        return np.asarray(centre + low * (goal - centre), dtype=float)

    @cached_property
    def _centre(self) -> Array | None:
        """A point inside all constraints: the prior, or the point with the largest slack; None if there is none."""
        feasible = self.feasible
        x: Array | None = np.zeros(feasible.p)
        if len(feasible.e) or slack(feasible, np.zeros(feasible.p)) <= _INSIDE:
            x = widest(feasible)
        if x is not None and len(feasible.e):
            x = x + lstsq(feasible.E, feasible.e - feasible.E @ x, rcond=None)[0]
        return x if x is not None and slack(feasible, x) > 0 else None

    def _regularised(self, data: DataTerm, weight: float) -> Point:
        """The solution without constraints, for a solver without an answer."""
        x = data.V.T @ (data.s**2 / (data.s**2 + weight) * data.a)
        feasible = self.feasible
        return Point(x, np.zeros((len(feasible.cones.body), 4, 4)), np.zeros(len(feasible.h)), np.zeros(len(feasible.e)), 0.0)


def slack(feasible: Feasible, x: Array) -> float:
    """Least eigenvalue of all cones and least value of all half-spaces at a point.

    Args:
        x: Shape (p,).
    """
    eigenvalues = np.linalg.eigvalsh(feasible.cones.at(x))
    return float(min(eigenvalues.min(initial=np.inf), (feasible.G @ x + feasible.h).min(initial=np.inf)))


def _nearest(feasible: Feasible) -> Programme:
    """The point closest to the prior: a programme without data, whose scale may cause false certificates."""
    return Programme(feasible, prior_only(feasible), 1.0, "euclid")


def _infeasible(problem: LmiProblem) -> SolverError:
    """Error that names the conflicting constraints: total mass with its feasible range, or those whose removal helps."""
    what, options = "no possible robot satisfies the constraints", problem.options
    if options.total_mass is not None:
        unweighed = feasible_set(problem.prior, problem.parameters, replace(options, total_mass=None))
        least, most = mass_range(unweighed)
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
    helps = []
    for word, change in asked.items():
        relaxed = feasible_set(problem.prior, problem.parameters, replace(options, **change))
        if minimise(_nearest(relaxed))[0] is not None:
            helps.append(word)
    remedy = f"drop {' or '.join(helps)}" if helps else f"drop {' and '.join(asked)}" if asked else "check the prior"
    return SolverError(what, where="LMI", status="infeasible", remedy=remedy)
