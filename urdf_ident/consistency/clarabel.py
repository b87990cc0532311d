"""Solutions by Clarabel through CVXPY: the programme of :mod:`.lmi`, other objectives over its constraints, the mass range."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..linalg import Array
from .cones import Cones, Feasible
from .programme import Point, Programme


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
