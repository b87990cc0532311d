"""A plain interior-point method for the programme of :mod:`.lmi`: slower to start than a conic solver, hard to upset.

Data that contradict physics (a wrong sign, a wrong gain) make the objective 1e10 times larger than the distances
that the constraints are about, and conic solvers then stall or claim infeasibility. A barrier method stays inside
from its first step to its last. Newton's matrices are never formed: every term contributes its square root and
one QR factorisation solves them, so that a direction seen 1e7 times better than the prior costs no digits.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.linalg import null_space, solve_triangular

from ..model.inertia import Array
from .cones import Feasible
from .programme import DataTerm, Point, prior_term, solve_conic

#: Reduction of the barrier per round, relative gap at the end, Newton steps a round.
_SHRINK, _GAP, _STEPS = 0.1, 1e-8, 60


def minimise(feasible: Feasible, data: DataTerm, weight: float, distance: str) -> tuple[Point | None, str]:
    """Follows the central path from a point inside to the optimum.

    Args:
        feasible: The constraints.
        data: The data term.
        weight: Of the prior distance, > 0.
        distance: ``"entropic"`` or ``"euclid"``.

    Returns:
        The point with its dual variables, and ``"optimal"``; no point and ``"nothing inside"`` if the constraints
        have no interior.
    """
    begin = time.perf_counter()
    x = interior(feasible)
    if x is None:
        return None, "nothing inside"
    free = null_space(feasible.E) if len(feasible.e) else np.eye(feasible.p)
    order = 4 * len(feasible.cones.body) + len(feasible.h)
    path = _Path(feasible, data, weight, distance)
    mu = max(1.0, path.cost(x)) / order
    for _ in range(200):
        x = path.centre(x, mu, free)
        if order * mu <= _GAP * (1.0 + path.cost(x)):
            break
        mu *= _SHRINK
    x = path.polish(x, mu, free)
    cones = np.asarray(mu * weight * np.linalg.inv(feasible.cones.at(x)), dtype=float)
    rows = mu * weight / (feasible.G @ x + feasible.h)
    gradient = data.gradient(x) + weight * prior_term(feasible, x, distance)[1]
    gradient -= feasible.cones.adjoint(cones, feasible.p) + feasible.G.T @ rows
    equalities = np.linalg.lstsq(feasible.E.T, -gradient, rcond=None)[0]
    return Point(x, cones, rows, np.asarray(equalities, dtype=float), time.perf_counter() - begin), "optimal"


def interior(feasible: Feasible) -> Array | None:
    """A point strictly inside all constraints: the prior if it is, otherwise one with the largest least slack.

    Args:
        feasible: The constraints.

    Returns:
        Shape (p,), or None where there is no such point.
    """
    origin = np.zeros(feasible.p)
    if not len(feasible.e) and _least_slack(feasible, origin) > 1e-6:
        return origin

    def objective(cp: Any, x: Any, slack: Any) -> Any:
        return 1e-6 * cp.sum_squares(x) - slack

    x = solve_conic(feasible, objective)
    if x is not None and len(feasible.e):
        x = x + np.linalg.lstsq(feasible.E, feasible.e - feasible.E @ x, rcond=None)[0]
    return x if x is not None and _least_slack(feasible, x) > 0 else None


def _least_slack(feasible: Feasible, x: Array) -> float:
    eigenvalues = np.linalg.eigvalsh(feasible.cones.at(x))
    return float(min(eigenvalues.min(initial=np.inf), (feasible.G @ x + feasible.h).min(initial=np.inf)))


class _Path:
    """Objective divided by the weight, plus ``mu`` times the logarithmic barrier."""

    def __init__(self, feasible: Feasible, data: DataTerm, weight: float, distance: str) -> None:
        self.feasible, self.data, self.weight, self.distance = feasible, data, weight, distance
        self.seen = np.sqrt(2.0 / weight) * data.s[:, None] * data.V

    def cost(self, x: Array) -> float:
        return (self.data.value(x) - self.data.constant) / self.weight + prior_term(self.feasible, x, self.distance)[0]

    def value(self, x: Array, mu: float) -> float:
        """Infinite outside."""
        rows = self.feasible.G @ x + self.feasible.h
        eigenvalues = np.linalg.eigvalsh(self.feasible.cones.at(x))
        if eigenvalues.min(initial=1.0) <= 0 or rows.min(initial=1.0) <= 0:
            return float(np.inf)
        return self.cost(x) - mu * float(np.log(eigenvalues).sum() + np.log(rows).sum())

    def centre(self, x: Array, mu: float, free: Array) -> Array:
        """Damped Newton steps to the minimum for one ``mu``, inside the space that the equalities leave free."""
        value = self.value(x, mu)
        for _ in range(_STEPS):
            step, decrement = self._step(x, mu, free)
            if decrement < max(0.01 * mu, 1e-14 * abs(value)):  # near enough to follow on, or all that rounding shows
                break
            size, moved = 1.0, np.inf
            while size > 1e-10:
                moved = self.value(x - size * step, mu)
                if moved <= value - 0.1 * size * decrement:
                    break
                size *= 0.5
            else:
                return x  # rounding: no step improves any more
            x, value = x - size * step, moved
        return x

    def polish(self, x: Array, mu: float, free: Array) -> Array:
        """Full Newton steps near the centre, as long as they still halve the decrement: exact dual variables."""
        step, decrement = self._step(x, mu, free)
        for _ in range(8):
            if not np.isfinite(self.value(x - step, mu)):
                break
            ahead, less = self._step(x - step, mu, free)
            if not less < 0.5 * decrement:
                break
            x, step, decrement = x - step, ahead, less
        return x

    def _step(self, x: Array, mu: float, free: Array) -> tuple[Array, float]:
        """Newton's step (to subtract) and the squared decrement."""
        gradient, root = self._newton(x, mu)
        triangular = np.linalg.qr(root @ free, mode="r")
        half = solve_triangular(triangular, free.T @ gradient, trans="T")
        return np.asarray(free @ solve_triangular(triangular, half), dtype=float), float(half @ half)

    def _newton(self, x: Array, mu: float) -> tuple[Array, Array]:
        """Gradient, and a root of the Hessian."""
        feasible = self.feasible
        _, slope, root = prior_term(feasible, x, self.distance)
        S, rows = feasible.cones.at(x), feasible.G @ x + feasible.h
        gradient = self.data.gradient(x) / self.weight + slope - mu * (feasible.G.T @ (1.0 / rows))
        gradient -= feasible.cones.adjoint(np.asarray(mu * np.linalg.inv(S), dtype=float), feasible.p)
        barrier = feasible.cones.log_det_root(x, np.full(len(S), mu))
        return gradient, np.vstack([self.seen, root, np.sqrt(mu) * feasible.G / rows[:, None], barrier])
