"""The semidefinite programme of :mod:`.lmi`: its data term, its CVXPY formulation, and checks of the solution."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, check_shape
from ..linalg import Array, solve_triangular, thin_svd
from ..parallel.messages import SentOnce
from .cones import Cones, Feasible


@dataclass(frozen=True, eq=False)
class DataTerm(SentOnce):
    """The data term ``‖s·(V x − a)‖² + constant`` in whitened coordinates.

    Attributes:
        s: Singular values of the data factor, shape (b,): precision of each direction relative to the prior.
        V: Orthonormal rows, the directions, shape (b, p).
        a: Least-squares estimate along them, shape (b,), in prior standard deviations.
        constant: Squared residual that no x can explain.
    """

    s: Array
    V: Array
    a: Array
    constant: float

    def value(self, x: Array) -> float:
        """The data term at a point.

        Args:
            x: Shape (p,).

        Returns:
            Squared whitened residual.
        """
        return float(np.sum(np.square(self.s * (self.V @ x - self.a)))) + self.constant

    def gradient(self, x: Array) -> Array:
        """Gradient of :meth:`value`, shape (p,).

        Args:
            x: Shape (p,).
        """
        return np.asarray(2.0 * self.V.T @ (self.s**2 * (self.V @ x - self.a)))


@dataclass(frozen=True, eq=False)
class Point:
    """A solver's solution: x (p,), the dual variables of cones (c, 4, 4), rows (m,), equalities (r,), seconds [s]."""

    x: Array
    cones: Array
    rows: Array
    equalities: Array
    seconds: float


def whiten_data(feasible: Feasible, R: ArrayLike, rho: ArrayLike, residual: float) -> DataTerm:
    """Transforms a data factor to the whitened unknowns x and compresses it to its rank.

    Args:
        R: Shape (k, p), whitened by the noise.
        rho: Shape (k,).
        residual: Squared residual that R no longer contains, ≥ 0.

    Returns:
        The data term, of the factor's numerical rank.

    Raises:
        ShapeError: Shapes do not fit.
        EstimationError: A value is not finite.
    """
    factor, target = np.asarray(R, dtype=float), np.asarray(rho, dtype=float)
    check_shape("R", factor.shape, ("k", feasible.p))
    check_shape("rho", target.shape, (len(factor),))
    if not (np.isfinite(factor).all() and np.isfinite(target).all() and np.isfinite(residual)):
        raise EstimationError("the data factor is not finite", where="LMI")
    # Subtracting the prior's torque first avoids cancellation.
    right = target - factor @ feasible.theta0
    u, s, V = thin_svd(factor @ feasible.back)
    keep = s > max(factor.shape) * np.finfo(float).eps * s.max(initial=0.0)
    a = u[:, keep].T @ right / s[keep]
    outside = right - u[:, keep] @ (s[keep] * a)
    return DataTerm(s[keep], V[keep], a, float(residual) + float(outside @ outside))


@dataclass(frozen=True, eq=False)
class Programme:
    """Minimisation of ``data + weight · distance`` over a feasible set.

    Attributes:
        weight: Weight of the prior distance, > 0.
        distance: ``"entropic"``: ``(tr Q − log det Q − 4)/(2 s²)`` per body, ``2 (r − log r − 1)/s²`` per mass, squares for
            the joint terms; ``"euclid"``: ``‖x‖²``. Both agree to second order at the prior.
    """

    feasible: Feasible
    data: DataTerm
    weight: float
    distance: str

    def rows(self) -> tuple[Array, Array]:
        """Data term and quadratic prior, divided by the weight, as one sum of squares, compressed if that makes it smaller.

        Returns:
            Rows of shape (k, p) and right-hand sides of shape (k,): the sum of squares of ``rows x − right``, up to a constant.
        """
        p, data = self.feasible.p, self.data
        quadratic = np.eye(p)[10 * self.feasible.n if self.distance == "entropic" else 0 :]
        s = data.s / np.sqrt(self.weight)
        rows, right = np.vstack([s[:, None] * data.V, quadratic]), np.concatenate([s * data.a, np.zeros(len(quadratic))])
        if len(rows) <= p:
            return rows, right
        both = np.asarray(np.linalg.qr(np.column_stack([rows, right]), mode="r"))[:p]
        return both[:, :p], both[:, p]

    def prior_value(self, x: Array) -> float:
        """The prior distance, infinite outside the entropic distance's domain.

        Args:
            x: Shape (p,).
        """
        feasible = self.feasible
        if self.distance == "euclid":
            return float(x @ x)
        eigenvalues = np.linalg.eigvalsh(feasible.relative.at(x))
        if eigenvalues.min() <= 0:
            return float(np.inf)
        divergence = (eigenvalues - np.log(eigenvalues) - 1.0).sum(axis=1)
        relative = feasible.relative_mass(x)
        masses = feasible.mass_scale @ (relative - np.log(relative) - 1.0)
        return float(feasible.entropy_scale @ divergence + masses + np.sum(x[10 * feasible.n :] ** 2))

    def prior(self, x: Array) -> tuple[float, Array, Array]:
        """The prior distance with its derivatives.

        Args:
            x: Shape (p,).

        Returns:
            Value, gradient (p,) and a root of the Hessian, shape (·, p), whose Gram matrix is the Hessian; infinite and NaN
            outside the entropic distance's domain.
        """
        feasible = self.feasible
        p, bodies, value = feasible.p, 10 * feasible.n, self.prior_value(x)
        if self.distance == "euclid":
            return value, 2.0 * x, np.sqrt(2.0) * np.eye(p)
        if not np.isfinite(value):
            return value, np.full(p, np.nan), np.full((p, p), np.nan)
        scale, relative = feasible.entropy_scale, feasible.relative_mass(x)
        slope = np.asarray(scale[:, None, None] * (np.eye(4) - np.linalg.inv(feasible.relative.at(x))), dtype=float)
        gradient = feasible.relative.adjoint(slope, p)
        gradient[:bodies] += ((feasible.mass_scale * (1.0 - 1.0 / relative))[:, None] * feasible.mass).ravel()
        gradient[bodies:] = 2.0 * x[bodies:]
        masses = np.zeros((feasible.n, p))
        own = np.arange(feasible.n)[:, None], 10 * np.arange(feasible.n)[:, None] + np.arange(10)
        masses[own] = (np.sqrt(feasible.mass_scale) / relative)[:, None] * feasible.mass
        root = np.vstack([feasible.relative.log_det_root(x, scale), masses, np.sqrt(2.0) * np.eye(p)[bodies:]])
        return value, gradient, root

    def duality_gap(self, point: Point) -> float:
        """Upper bound of objective − optimum: complementarity plus the possible decrease of the Lagrangian from this point.

        For the quadratic objective the second part, ``½ rᵀ H⁻¹ r`` with the Lagrangian's gradient r, is exact; for the
        entropic one it is the Newton decrement. Dual variables are first projected onto their cone, so they need not be
        feasible.

        Returns:
            The bound, ≥ 0; inf outside the domain.
        """
        feasible, data, x = self.feasible, self.data, point.x
        _, gradient, root = self.prior(x)
        if not np.isfinite(gradient).all():
            return float(np.inf)
        values, vectors = np.linalg.eigh(0.5 * (point.cones + point.cones.transpose(0, 2, 1)))
        dual = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        rows = np.maximum(point.rows, 0.0)
        stationarity = data.gradient(x) + self.weight * gradient + feasible.E.T @ point.equalities
        stationarity -= feasible.cones.adjoint(dual, feasible.p) + feasible.G.T @ rows
        complementarity = float(np.einsum("cij,cij->", dual, feasible.cones.at(x)) + rows @ (feasible.G @ x + feasible.h))
        curvature = np.vstack([np.sqrt(2.0) * data.s[:, None] * data.V, np.sqrt(self.weight) * root])
        # squaring it would lose the prior's digits next to well-identified directions
        triangular = np.asarray(np.linalg.qr(curvature, mode="r"))
        gain = 0.5 * float(np.sum(np.square(solve_triangular(triangular, stationarity, transposed=True))))
        return abs(complementarity) + gain


def prior_only(feasible: Feasible) -> DataTerm:
    """The data term without data.

    Returns:
        A data term of rank 0.
    """
    return DataTerm(np.zeros(0), np.zeros((0, feasible.p)), np.zeros(0), 0.0)


def attempt(programme: Programme, settings: dict[str, Any]) -> tuple[Point | None, str]:
    """Solves a programme by Clarabel through CVXPY.

    Returns:
        The point, or None if the solver has none, and the solver's status; ``"infeasible"`` if the solver found a
        certificate of infeasibility.
    """
    import cvxpy as cp

    x = cp.Variable(programme.feasible.p)
    cones, rows, equalities = _constraints(cp, programme.feasible, x)
    # Divided by the weight, the objective has the scale of the prior distance, for which absolute tolerances are set.
    problem = cp.Problem(cp.Minimize(_objective(cp, programme, x)), [*cones, *rows, *equalities])
    begin = time.perf_counter()
    status = _run(cp, problem, settings)
    if status.startswith("infeasible"):
        return None, "infeasible"
    if x.value is None or not np.isfinite(x.value).all():
        return None, status
    seconds = problem.solver_stats.solve_time or time.perf_counter() - begin
    matrices = np.array([np.asarray(item.dual_value, dtype=float) for item in cones]).reshape(-1, 4, 4)
    half_spaces, equal = (
        np.concatenate([np.zeros(0), *(np.ravel(item.dual_value) for item in kind)]) for kind in (rows, equalities)
    )
    weight = programme.weight
    return Point(np.asarray(x.value), weight * matrices, weight * half_spaces, weight * equal, float(seconds)), status


def solve_conic(feasible: Feasible, objective: Callable[[Any, Any, Any], Any]) -> Array | None:
    """Minimises another objective over the constraints, all of them tightened by a common slack ≤ 1.

    Args:
        objective: Called with the cvxpy module, the variable x (p,) and the slack; returns the expression to minimise.

    Returns:
        x of shape (p,), or None if the solver found no point.
    """
    import cvxpy as cp

    x, slack = cp.Variable(feasible.p), cp.Variable()
    stack = feasible.cones
    constraints = [slack <= 1.0, feasible.E @ x == feasible.e] if len(feasible.e) else [slack <= 1.0]
    for i, body in enumerate(stack.body):
        constraints.append(_matrix(cp, stack, i, x[10 * body : 10 * body + 10]) - slack * np.eye(4) >> 0)
    if len(feasible.h):
        constraints.append(feasible.G @ x + feasible.h >= slack)
    _run(cp, cp.Problem(cp.Minimize(objective(cp, x, slack)), constraints), {})
    return None if x.value is None or not np.isfinite(x.value).all() else np.asarray(x.value)


def mass_range(feasible: Feasible) -> tuple[float, float]:
    """Least and largest total mass that the constraints allow.

    Args:
        feasible: The constraints, without one on the total mass.

    Returns:
        ``(least, most)`` [kg]; inf if unbounded, NaN if infeasible.
    """
    import cvxpy as cp

    mass = feasible.back[0 : 10 * feasible.n : 10].sum(axis=0)
    start = float(feasible.theta0[0 : 10 * feasible.n : 10].sum())
    found = []
    for sign in (1.0, -1.0):
        x = cp.Variable(feasible.p)
        cones, rows, equalities = _constraints(cp, feasible, x)
        problem = cp.Problem(cp.Minimize(sign * (mass @ x) / start), [*cones, *rows, *equalities])
        status = _run(cp, problem, {})
        if status.startswith("unbounded"):
            found.append(-sign * np.inf)
        else:
            found.append(start + float(mass @ x.value) if x.value is not None else np.nan)
    return found[0], found[1]


def _run(cp: Any, problem: Any, settings: dict[str, Any]) -> str:
    """Solves the problem and returns the status, also if the solver raises an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": accuracy is checked from recomputed residuals
            problem.solve(solver="CLARABEL", **settings)
    except (cp.error.SolverError, ArithmeticError, ValueError) as error:
        return f"failed ({str(error).splitlines()[0][:80]})"
    return str(problem.status)


def _matrix(cp: Any, stack: Cones, i: int, own: Any) -> Any:
    return cp.reshape(stack.linear[i].reshape(16, 10) @ own, (4, 4), order="C") + stack.constant[i]


def _constraints(cp: Any, feasible: Feasible, x: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Cones one by one, all half-spaces, all equalities."""
    stack = feasible.cones
    cones = [_matrix(cp, stack, i, x[10 * body : 10 * body + 10]) >> 0 for i, body in enumerate(stack.body)]
    rows = [feasible.G @ x + feasible.h >= 0] if len(feasible.h) else []
    return cones, rows, [feasible.E @ x == feasible.e] if len(feasible.e) else []


def _objective(cp: Any, programme: Programme, x: Any) -> Any:
    """Data term and quadratic prior as one sum of squares, plus the divergences."""
    feasible, (rows, right) = programme.feasible, programme.rows()
    objective = cp.sum_squares(rows @ x - right) if len(rows) else 0
    if programme.distance == "entropic":
        for i, scale in enumerate(feasible.entropy_scale):
            Q = _matrix(cp, feasible.relative, i, x[10 * i : 10 * i + 10])
            objective = objective + scale * (cp.trace(Q) - cp.log_det(Q) - 4)
        for body in np.flatnonzero(feasible.mass_scale).tolist():
            relative = 1 + feasible.mass[body] @ x[10 * body : 10 * body + 10]
            objective = objective + feasible.mass_scale[body] * (relative - cp.log(relative) - 1)
    return objective
