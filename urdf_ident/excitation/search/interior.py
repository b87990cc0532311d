"""Primal-dual interior-point method with a quasi-Newton Hessian: every iterate is feasible.

Limits on q, v and a are linear in a family's unknowns, so their barrier has a cheap, exact, block-diagonal Hessian; only the
Hessian of the criterion is approximated (damped BFGS). Because all iterates are feasible, the search can be stopped at any
time (Nocedal and Wright 2006, ch. 19; bounded multipliers as in IPOPT).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...linalg import Array, block_diagonal
from ...motion.limits import Limits, finite_middle
from ..family import Grid

#: Fraction to the boundary: largest step relative to the distance to the nearest limit.
_TO_BOUNDARY = 0.99
#: The same for clearances, which are not linear: a motion that gets close to an obstacle early can hardly move further.
_TO_THINGS = 0.7
_ARMIJO = 1e-4


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """Limits on q, v and a on a grid, as constraints on the unknowns of each joint.

    Attributes:
        bases: Time bases of q, v, a, shape (3, K, d).
        constant: q, v, a of X = 0, shape (3, K, n).
        lower, upper: Shape (3, n); ±inf without a limit.
    """

    bases: Array
    constant: Array
    lower: Array
    upper: Array

    @classmethod
    def build(cls, grid: Grid, limits: Limits, shrink: float) -> LinearLimits:
        """Builds limits on a grid, tightened towards their middle.

        Args:
            shrink: Factor of each limit's half-width, at most 1: allowance between instants plus a margin.
        """
        upper = np.array([limits.upper, limits.velocity, limits.acceleration])
        lower = np.array([limits.lower, -limits.velocity, -limits.acceleration])
        middle = finite_middle(lower, upper)
        return cls(grid.bases, grid.constant, middle + shrink * (lower - middle), middle + shrink * (upper - middle))

    def slack(self, X: Array) -> Array:
        """Returns the slack of every limit, shape (2, 3, K, n): to the upper and lower limits; inf without a limit.

        Args:
            X: Shape (d, n).
        """
        signal = self.bases @ X + self.constant
        return np.stack([self.upper[:, None] - signal, signal - self.lower[:, None]])

    def change(self, step: Array) -> Array:
        """Returns the change of :meth:`slack` along a step, shape (2, 3, K, n).

        Args:
            step: Shape (d, n).
        """
        signal = self.bases @ step
        return np.stack([-signal, signal])

    def reach(self, X: Array, step: Array) -> Array:
        """Returns the largest feasible multiple of a step, for each joint separately, shape (n,); 1 if unlimited.

        Args:
            X: Inside the limits, shape (d, n).
            step: Shape (d, n).
        """
        change, slack = self.change(step), self.slack(X)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(change < 0, slack / -change, np.inf).min(axis=(0, 1, 2))
        return np.asarray(np.where(np.isfinite(most), most, 1.0))

    def gradient(self, weight: Array) -> Array:
        """Returns ``−Σ weight · ∂slack/∂X``, the gradient contribution of the multipliers, shape (d, n).

        Args:
            weight: Shape (2, 3, K, n).
        """
        return np.asarray(np.einsum("skd,skn->dn", self.bases, weight[0] - weight[1], optimize=True))

    def hessian(self, weight: Array) -> Array:
        """Returns ``Σ weight · (∂slack/∂X)²``, one block per joint, shape (n, d, d).

        Args:
            weight: Shape (2, 3, K, n).
        """
        total = weight[0] + weight[1]
        flat = self.bases.reshape(-1, self.bases.shape[2])
        return np.stack([flat.T @ (flat * w[:, None]) for w in total.reshape(-1, total.shape[-1]).T])


@dataclass(frozen=True)
class Options:
    """Options of the search.

    Attributes:
        barriers: Weights of the barrier, from first to last.
        sharpness: Order of the p-norm that replaces extremes, one per barrier weight.
        steps: Largest number of iterations per barrier weight.
        tolerance: Decrease per iteration, relative to the barrier weight, below which the next weight follows.
    """

    barriers: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)
    sharpness: tuple[float, ...] = (8.0, 8.0, 16.0, 16.0, 32.0, 32.0)
    steps: int = 30
    tolerance: float = 0.02


Value = Callable[[Array, float, float], tuple[float, Array]]


@dataclass(frozen=True, eq=False)
class Push:
    """Contribution of the barriers of M contacts to an objective, with known curvature.

    Attributes:
        gradient: Shape (d, n).
        approach: Gradient of each slack with respect to the unknowns, ordered joint by joint, shape (M, n·d).
        curvature: Second derivative of its barrier with respect to the slack, shape (M,).
        slack: Slack of each, shape (M,).
    """

    gradient: Array
    approach: Array
    curvature: Array
    slack: Array

    @property
    def hessian(self) -> Array:
        """Gauss-Newton Hessian, shape (n·d, n·d)."""
        return np.asarray(self.approach.T @ (self.curvature[:, None] * self.approach))


def minimise(
    objective: Value,
    limits: LinearLimits,
    X: Array,
    options: Options,
    on_iterate: Callable[[Array], bool] | None = None,
    push: Callable[[], Push | None] = lambda: None,
) -> Array:
    """Minimises an objective subject to limits.

    Args:
        objective: (X, barrier, sharpness) → value and gradient, shape (d, n); inf outside its own domain.
        X: Strictly feasible start, shape (d, n).
        on_iterate: Called with every iterate, shape (d, n); True stops.
        push: Returns the barrier contribution to the objective's last value, or None; its curvature is used exactly, that
            of the rest is approximated.

    Returns:
        The last iterate, shape (d, n).
    """
    K = limits.bases.shape[1]
    slack = limits.slack(X)
    finite = np.isfinite(slack)
    curvature = limits.hessian(np.where(finite, 1.0 / (K * _width(limits) ** 2), 0.0))
    B: Array | None = None
    multipliers = np.where(finite, options.barriers[0] / K / slack, 0.0)
    for stage, (barrier, sharpness) in enumerate(zip(options.barriers, options.sharpness, strict=True)):
        mu = barrier / K
        value, gradient = objective(X, barrier, sharpness)
        near = push()
        merit = value - mu * _log(slack, finite)
        for _ in range(options.steps):
            smooth = gradient if near is None else gradient - near.gradient
            B = _initial(curvature, smooth) if B is None else B
            step = _direction(B if near is None else B + near.hessian, limits, gradient, slack, multipliers, mu, finite)
            change = limits.change(step)
            descent = float((gradient * step).sum() - mu * (change[finite] / slack[finite]).sum())
            largest = _longest(slack[finite], change[finite])
            if near is not None:
                largest = min(largest, _longest(near.slack, near.approach @ step.T.reshape(-1), _TO_THINGS))
            length, new = _search(objective, limits, X, step, largest, merit, descent, mu, barrier, sharpness, finite)
            if new is None:
                B = None if stage == 0 else B
                break
            moved = length * step
            multipliers = _dual_step(multipliers, slack, change, mu, finite, length)
            near = push()
            _update(B, moved, (new[1] if near is None else new[1] - near.gradient) - smooth)
            X, slack = X + moved, limits.slack(X + moved)
            multipliers = np.where(finite, np.clip(multipliers, 0.1 * mu / slack, 10.0 * mu / slack), 0.0)
            gain = merit - new[2]
            value, gradient, merit = new
            if on_iterate is not None and on_iterate(X):
                return X
            if gain < options.tolerance * barrier:
                break
    return X


def _width(limits: LinearLimits) -> Array:
    width = limits.upper - limits.lower
    return np.where(np.isfinite(width), width / 2, 1.0)[None, :, None, :]


def _log(slack: Array, finite: Array) -> float:
    return float(np.log(slack[finite]).sum())


def _direction(
    B: Array, limits: LinearLimits, gradient: Array, slack: Array, multipliers: Array, mu: float, finite: Array
) -> Array:
    safe = np.where(finite, slack, 1.0)
    matrix = B + block_diagonal(*limits.hessian(np.where(finite, multipliers / safe, 0.0)))
    force = gradient + limits.gradient(np.where(finite, mu / safe, 0.0))
    return np.asarray(-np.linalg.solve(matrix, force.T.reshape(-1)).reshape(gradient.shape[1], gradient.shape[0]).T)


def _longest(slack: Array, change: Array, part: float = _TO_BOUNDARY) -> float:
    toward = change < 0
    return float(min(1.0, part * (slack[toward] / -change[toward]).min())) if toward.any() else 1.0


def _initial(curvature: Array, gradient: Array) -> Array:
    """Initial curvature such that the first step uses about a tenth of the limits' width."""
    whole = block_diagonal(*curvature)  # unknowns ordered joint by joint
    slope = np.sqrt(gradient.T.reshape(-1) @ np.linalg.solve(whole, gradient.T.reshape(-1)))
    return np.asarray(whole * max(float(slope) / 0.3, 1e-3))


def _search(
    objective: Value,
    limits: LinearLimits,
    X: Array,
    step: Array,
    length: float,
    merit: float,
    descent: float,
    mu: float,
    barrier: float,
    sharpness: float,
    finite: Array,
) -> tuple[float, tuple[float, Array, float] | None]:
    """Backtracking line search with quadratic interpolation; returns step length and value, gradient and merit."""
    for _ in range(12):
        trial = X + length * step
        value, gradient = objective(trial, barrier, sharpness)
        if np.isfinite(value):
            new = value - mu * _log(limits.slack(trial), finite)
            if new <= merit + _ARMIJO * length * descent:
                return length, (value, gradient, new)
            shorter = -0.5 * descent * length**2 / (new - merit - descent * length)
            length = float(np.clip(shorter, 0.1 * length, 0.5 * length))
        else:
            length *= 0.3
    return 0.0, None


def _dual_step(multipliers: Array, slack: Array, change: Array, mu: float, finite: Array, length: float) -> Array:
    safe = np.where(finite, slack, 1.0)
    delta = np.where(finite, mu / safe - multipliers - multipliers / safe * np.where(finite, change, 0.0), 0.0)
    return np.asarray(np.maximum(multipliers + length * delta, 0.0))


def _update(B: Array, step: Array, difference: Array) -> None:
    """Applies a damped BFGS update (Powell) in place."""
    s, y = step.T.reshape(-1), difference.T.reshape(-1)
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if sBs <= 0.0:
        return
    if sy < 0.2 * sBs:
        share = 0.8 * sBs / (sBs - sy)
        y = share * y + (1.0 - share) * Bs
        sy = float(s @ y)
    B += np.outer(y, y) / sy - np.outer(Bs, Bs) / sBs
