"""The semidefinite programme of :mod:`.lmi`: its data term, how CVXPY is told, and how the answer is audited."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, check_shape
from ..linalg import Array, solve_triangular
from ..sending import SentOnce
from .cones import Cones, Feasible


@dataclass(frozen=True, eq=False)
class DataTerm(SentOnce):
    """The data term ``‖s·(V x − a)‖² + constant`` in whitened coordinates.

    Attributes:
        s: Singular values of the data factor, shape (b,): how much better than the prior each direction is seen.
        V: Orthonormal rows, the directions, shape (b, p).
        a: Where the data want them, shape (b,), in prior standard deviations.
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
        """Gradient of :meth:`value`.

        Args:
            x: Shape (p,).

        Returns:
            Shape (p,).
        """
        return np.asarray(2.0 * self.V.T @ (self.s**2 * (self.V @ x - self.a)))


@dataclass(frozen=True, eq=False)
class Point:
    """What a solver returned: x (p,), the dual variables of cones (c, 4, 4), rows (m,), equalities (r,), seconds [s]."""

    x: Array
    cones: Array
    rows: Array
    equalities: Array
    seconds: float


def whiten_data(feasible: Feasible, R: ArrayLike, rho: ArrayLike, residual: float) -> DataTerm:
    """Compresses a data factor to what it says about x.

    Args:
        feasible: The robot.
        R: Shape (k, p), whitened by the noise.
        rho: Shape (k,).
        residual: Squared residual that is not in R any more, ≥ 0.

    Returns:
        The data term, of the factor's numerical rank.

    Raises:
        ShapeError: Shapes do not fit.
        EstimationError: Something is not finite.
    """
    from scipy.linalg import svd

    factor, target = np.asarray(R, dtype=float), np.asarray(rho, dtype=float)
    check_shape("R", factor.shape, ("k", feasible.p))
    check_shape("rho", target.shape, (len(factor),))
    if not (np.isfinite(factor).all() and np.isfinite(target).all() and np.isfinite(residual)):
        raise EstimationError("the data factor is not finite", where="LMI")
    # Subtracting the prior's torque first keeps the digits of what has to be explained.
    right = target - factor @ feasible.theta0
    u, s, V = svd(factor @ feasible.back, full_matrices=False, lapack_driver="gesvd")
    keep = s > max(factor.shape) * np.finfo(float).eps * s.max(initial=0.0)
    a = u[:, keep].T @ right / s[keep]
    outside = right - u[:, keep] @ (s[keep] * a)
    return DataTerm(s[keep], V[keep], a, float(residual) + float(outside @ outside))


def least_squares_rows(feasible: Feasible, data: DataTerm, weight: float, distance: str) -> tuple[Array, Array]:
    """Data term and quadratic prior, divided by the weight, as one sum of squares, compressed where that makes it smaller.

    Args:
        feasible: The robot.
        weight: Of the prior distance, > 0.
        distance: ``"entropic"``: only the prior of the joint terms is quadratic; ``"euclid"``: all of it.

    Returns:
        Rows of shape (k, p) and right-hand sides of shape (k,): the sum of squares of ``rows x − right``, but for a constant.
    """
    p = feasible.p
    quadratic = np.eye(p)[10 * feasible.n if distance == "entropic" else 0 :]
    s = data.s / np.sqrt(weight)
    rows, right = np.vstack([s[:, None] * data.V, quadratic]), np.concatenate([s * data.a, np.zeros(len(quadratic))])
    if len(rows) <= p:
        return rows, right
    both = np.asarray(np.linalg.qr(np.column_stack([rows, right]), mode="r"))[:p]
    return both[:, :p], both[:, p]


def prior_only(feasible: Feasible) -> DataTerm:
    """The data term of no data at all.

    Args:
        feasible: The robot.

    Returns:
        A data term of rank 0.
    """
    return DataTerm(np.zeros(0), np.zeros((0, feasible.p)), np.zeros(0), 0.0)


def attempt(
    feasible: Feasible, data: DataTerm, weight: float, distance: str, solver: str, settings: dict[str, Any]
) -> tuple[Point | None, str]:
    """Lets one solver try.

    Args:
        weight: Of the prior distance, > 0.
        distance: ``"entropic"`` or ``"euclid"``.
        solver: CVXPY's name of it.
        settings: Its options.

    Returns:
        The point and the solver's status; no point if the solver has none. The status is ``"infeasible"`` if it
        found a certificate that nothing satisfies the constraints.
    """
    import cvxpy as cp

    x = cp.Variable(feasible.p)
    cones, rows, equalities = _constraints(cp, feasible, x)
    # Divided by the weight the objective is of the size of the prior distance, where absolute tolerances fit.
    problem = cp.Problem(cp.Minimize(_objective(cp, feasible, data, weight, distance, x)), [*cones, *rows, *equalities])
    begin = time.perf_counter()
    status = _run(cp, problem, solver, settings)
    if status.startswith("infeasible"):
        return None, "infeasible"
    if x.value is None or not np.isfinite(x.value).all():
        return None, status
    seconds = problem.solver_stats.solve_time or time.perf_counter() - begin
    duals = [np.asarray(item.dual_value, dtype=float) * weight for item in cones]
    row_duals = [np.ravel(item.dual_value) * weight for item in rows]
    equality_duals = [np.ravel(item.dual_value) * weight for item in equalities]
    empty = [np.zeros(0)]
    return (
        Point(
            np.asarray(x.value),
            np.array(duals).reshape(-1, 4, 4),
            np.concatenate(row_duals + empty),
            np.concatenate(equality_duals + empty),
            float(seconds),
        ),
        status,
    )


def solve_conic(feasible: Feasible, objective: Callable[[Any, Any, Any], Any]) -> Array | None:
    """Minimises something else over the constraints, all of them tightened by a common slack ≤ 1.

    Args:
        objective: Called with the cvxpy module, the variable x (p,) and the slack; returns what to minimise.

    Returns:
        x of shape (p,), or None if the solver has no point.
    """
    import cvxpy as cp

    x, slack = cp.Variable(feasible.p), cp.Variable()
    stack = feasible.cones
    demands = [slack <= 1.0, feasible.E @ x == feasible.e] if len(feasible.e) else [slack <= 1.0]
    for i, body in enumerate(stack.body):
        demands.append(_matrix(cp, stack, i, x[10 * body : 10 * body + 10]) - slack * np.eye(4) >> 0)
    if len(feasible.h):
        demands.append(feasible.G @ x + feasible.h >= slack)
    _run(cp, cp.Problem(cp.Minimize(objective(cp, x, slack)), demands), "CLARABEL", {})
    return None if x.value is None or not np.isfinite(x.value).all() else np.asarray(x.value)


def mass_range(feasible: Feasible) -> tuple[float, float]:
    """Least and largest total mass that the constraints allow.

    Args:
        feasible: The constraints, without one on the total mass.

    Returns:
        ``(least, most)`` [kg]; inf where unbounded, NaN where nothing is feasible.
    """
    import cvxpy as cp

    mass = feasible.back[0 : 10 * feasible.n : 10].sum(axis=0)
    start = float(feasible.theta0[0 : 10 * feasible.n : 10].sum())
    found = []
    for sign in (1.0, -1.0):
        x = cp.Variable(feasible.p)
        cones, rows, equalities = _constraints(cp, feasible, x)
        problem = cp.Problem(cp.Minimize(sign * (mass @ x) / start), [*cones, *rows, *equalities])
        status = _run(cp, problem, "CLARABEL", {})
        if status.startswith("unbounded"):
            found.append(-sign * np.inf)
        else:
            found.append(start + float(mass @ x.value) if x.value is not None else np.nan)
    return found[0], found[1]


def prior_term(feasible: Feasible, x: Array, distance: str) -> tuple[float, Array, Array]:
    """The prior distance; both kinds agree to second order at the prior.

    Args:
        feasible: The robot.
        x: Shape (p,).
        distance: ``"entropic"``: ``(tr Q − log det Q − 4)/(2 s²)`` a body, ``2 (r − log r − 1)/s²`` a mass, squares
            for the joint terms; ``"euclid"``: ``‖x‖²``.

    Returns:
        Value, gradient (p,) and a root of the Hessian (its Gram matrix), shape (·, p); infinite and NaN outside the
        entropic distance's domain.
    """
    p, bodies = feasible.p, 10 * feasible.n
    if distance == "euclid":
        return float(x @ x), 2.0 * x, np.sqrt(2.0) * np.eye(p)
    Q = feasible.spread.at(x)
    eigenvalues = np.linalg.eigvalsh(Q)
    if eigenvalues.min() <= 0:
        return float(np.inf), np.full(p, np.nan), np.full((p, p), np.nan)
    scale, relative = feasible.entropy_scale, feasible.relative_mass(x)
    value = float(scale @ (eigenvalues - np.log(eigenvalues) - 1.0).sum(axis=1)) + float(x[bodies:] @ x[bodies:])
    value += float(feasible.mass_scale @ (relative - np.log(relative) - 1.0))
    slope = np.asarray(scale[:, None, None] * (np.eye(4) - np.linalg.inv(Q)), dtype=float)
    gradient = feasible.spread.adjoint(slope, p)
    gradient[:bodies] += ((feasible.mass_scale * (1.0 - 1.0 / relative))[:, None] * feasible.mass).ravel()
    gradient[bodies:] = 2.0 * x[bodies:]
    masses = np.zeros((feasible.n, p))
    own = np.arange(feasible.n)[:, None], 10 * np.arange(feasible.n)[:, None] + np.arange(10)
    masses[own] = (np.sqrt(feasible.mass_scale) / relative)[:, None] * feasible.mass
    root = np.vstack([feasible.spread.log_det_root(x, scale), masses, np.sqrt(2.0) * np.eye(p)[bodies:]])
    return value, gradient, root


def duality_gap(feasible: Feasible, data: DataTerm, weight: float, distance: str, point: Point) -> float:
    """Bound of objective − optimum: complementarity plus what minimising the Lagrangian from here could still gain.

    For the quadratic objective the second part, ``½ rᵀ H⁻¹ r`` with the Lagrangian's gradient r, is exact; for the
    entropic one it is the Newton decrement. Duals are projected onto their cone first, so that they need not be
    feasible either.

    Args:
        weight: Of the prior distance.
        distance: ``"entropic"`` or ``"euclid"``.
        point: The solver's answer.

    Returns:
        The bound, ≥ 0; inf outside the domain.
    """
    x, p = point.x, feasible.p
    _, gradient, root = prior_term(feasible, x, distance)
    if not np.isfinite(gradient).all():
        return float(np.inf)
    values, vectors = np.linalg.eigh(0.5 * (point.cones + point.cones.transpose(0, 2, 1)))
    dual = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    rows = np.maximum(point.rows, 0.0)
    stationarity = data.gradient(x) + weight * gradient + feasible.E.T @ point.equalities
    stationarity -= feasible.cones.adjoint(dual, p) + feasible.G.T @ rows
    complementarity = float(np.einsum("cij,cij->", dual, feasible.cones.at(x)) + rows @ (feasible.G @ x + feasible.h))
    curvature = np.vstack([np.sqrt(2.0) * data.s[:, None] * data.V, np.sqrt(weight) * root])
    # its square would lose the prior's digits next to well-seen directions
    triangular = np.asarray(np.linalg.qr(curvature, mode="r"))
    gain = 0.5 * float(np.sum(np.square(solve_triangular(triangular, stationarity, transposed=True))))
    return abs(complementarity) + gain


def _run(cp: Any, problem: Any, solver: str, settings: dict[str, Any]) -> str:
    """The status; a solver that breaks down is a status too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": judged from our own residuals
            problem.solve(solver=solver, **settings)
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


def _objective(cp: Any, feasible: Feasible, data: DataTerm, weight: float, distance: str, x: Any) -> Any:
    """Data and quadratic prior as one sum of squares, compressed where that makes it smaller, plus divergences."""
    rows, right = least_squares_rows(feasible, data, weight, distance)
    objective = cp.sum_squares(rows @ x - right) if len(rows) else 0
    if distance == "entropic":
        for i, scale in enumerate(feasible.entropy_scale):
            Q = _matrix(cp, feasible.spread, i, x[10 * i : 10 * i + 10])
            objective = objective + scale * (cp.trace(Q) - cp.log_det(Q) - 4)
        for body in np.flatnonzero(feasible.mass_scale).tolist():
            relative = 1 + feasible.mass[body] @ x[10 * body : 10 * body + 10]
            objective = objective + feasible.mass_scale[body] * (relative - cp.log(relative) - 1)
    return objective
