"""Primal-dual interior-point method with a quasi-Newton Hessian, whose iterates are feasible; and the barrier of obstacles.

Limits on q, v and a are linear in a family's unknowns, so their barrier has a cheap, exact, block-diagonal Hessian; only the
Hessian of the criterion is approximated (damped BFGS). Because all iterates are feasible, the search can be stopped at any
time (Nocedal and Wright 2006, ch. 19; bounded multipliers as in IPOPT).

Obstacles are a barrier on distances close to the required ones, with its gradient. Most distances are large most of the
time. Each is stored as a lower bound that every step of the search reduces by the largest possible displacement (lever arms
times joint changes), and is computed again only if the bound gets close. The barrier ``−(1 − s)² log s`` is smooth, zero
from ``s = 1`` on and infinite at ``s = 0`` (Li et al. 2020, incremental potential contact), so that pairs become active
without a jump. Its curvature is passed to the search (:class:`Push`), which would need many steps to approximate it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..linalg import Array, block_diagonal
from ..motion.collision.clearance import Clearance, SpeedBounds, check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.collision.find import CONSTANT
from ..motion.limits import Limits
from .family import Family, Grid

#: Fraction to the boundary: largest step relative to the distance to the nearest limit.
_TO_BOUNDARY = 0.99
#: The same for clearances, which are not linear: a motion that gets close to an obstacle early can hardly move further.
_TO_OBSTACLES = 0.7
#: Sufficient decrease of a step (Armijo), and largest number of shortenings.
_ARMIJO, _SHORTENED = 1e-4, 12


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


class Evaluation(NamedTuple):
    """Value (inf outside the domain) and gradient, shape (d, n), of an objective, and the part whose curvature is known."""

    value: float
    gradient: Array
    push: Push | None = None


class Schedule(NamedTuple):
    """Course of an optimisation.

    Attributes:
        barriers: Weights of the barrier, from first to last.
        sharpness: Order of the p-norm that replaces extremes, one per barrier weight.
        steps: Largest number of iterations per barrier weight.
        tolerance: Decrease per iteration, relative to the barrier weight, below which the next weight follows.
    """

    barriers: tuple[float, ...]
    sharpness: tuple[float, ...]
    steps: int = 40
    tolerance: float = 0.02


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """Finite limits on q, v and a on a grid, as constraints on the unknowns X of each joint, shape (d, n).

    Attributes:
        bases: Time bases of q, v, a, shape (3, K, d).
        constant: q, v, a of X = 0, shape (3, K, n).
        lower, upper: Shape (3, n).
    """

    bases: Array
    constant: Array
    lower: Array
    upper: Array

    @classmethod
    def build(cls, grid: Grid, limits: Limits, shrink: float) -> LinearLimits:
        """Builds limits on a grid, tightened towards their middle.

        Args:
            limits: All known, see :func:`.problem.usable_limits`.
            shrink: Factor of each limit's half-width, at most 1: allowance between instants plus a margin.
        """
        upper = np.array([limits.upper, limits.velocity, limits.acceleration])
        lower = np.array([limits.lower, -limits.velocity, -limits.acceleration])
        middle = (lower + upper) / 2
        return cls(grid.bases, grid.constant, middle + shrink * (lower - middle), middle + shrink * (upper - middle))

    def slack(self, X: Array) -> Array:
        """Returns the slack of every limit, shape (2, 3, K, n): to the upper and lower limits."""
        signal = self.bases @ X + self.constant
        return np.stack([self.upper[:, None] - signal, signal - self.lower[:, None]])

    def change(self, step: Array) -> Array:
        """Returns the change of :meth:`slack` along a step, shape (2, 3, K, n)."""
        signal = self.bases @ step
        return np.stack([-signal, signal])

    def reach(self, X: Array, step: Array) -> Array:
        """Returns the largest feasible multiple of a step from X, for each joint separately, shape (n,)."""
        change, slack = self.change(step), self.slack(X)
        most = np.divide(slack, -change, out=np.full_like(slack, np.inf), where=change < 0)
        return np.asarray(most.min(axis=(0, 1, 2)))

    def gradient(self, weight: Array) -> Array:
        """Returns ``−Σ weight · ∂slack/∂X``, the gradient contribution of the multipliers (2, 3, K, n), shape (d, n)."""
        return np.asarray(np.einsum("skd,skn->dn", self.bases, weight[0] - weight[1], optimize=True))

    def hessian(self, weight: Array) -> Array:
        """Returns ``Σ weight · (∂slack/∂X)²``, one block per joint, shape (n, d, d)."""
        total = weight[0] + weight[1]
        flat = self.bases.reshape(-1, self.bases.shape[2])
        return np.stack([flat.T @ (flat * w[:, None]) for w in total.reshape(-1, total.shape[-1]).T])


def minimise(
    objective: Callable[[Array, float, float], Evaluation],
    limits: LinearLimits,
    X: Array,
    schedule: Schedule,
    on_iterate: Callable[[Array], bool] | None = None,
) -> Array:
    """Minimises an objective subject to limits.

    Args:
        objective: (X of shape (d, n), barrier, sharpness) → value and gradient; the curvature of its push is used exactly,
            that of the rest is approximated; same shape as X.
        X: Strictly feasible start, shape (d, n).
        on_iterate: Called with every iterate, shape (d, n); True stops.

    Returns:
        The last iterate, shape (d, n).
    """
    K = limits.bases.shape[1]
    slack = limits.slack(X)
    half_width = np.broadcast_to((limits.upper - limits.lower)[:, None] / 2, slack.shape)
    curvature = block_diagonal(*limits.hessian(1.0 / (K * half_width**2)))
    B: Array | None = None  # unknowns ordered joint by joint
    multipliers = schedule.barriers[0] / K / slack
    for stage, (barrier, sharpness) in enumerate(zip(schedule.barriers, schedule.sharpness, strict=True)):
        mu = barrier / K
        value, gradient, near = objective(X, barrier, sharpness)
        merit = value - mu * float(np.log(slack).sum())
        for _ in range(schedule.steps):
            smooth = gradient if near is None else gradient - near.gradient
            if B is None:  # such that the first step uses about a tenth of the limits' width
                slope = np.sqrt(smooth.T.reshape(-1) @ np.linalg.solve(curvature, smooth.T.reshape(-1)))
                B = curvature * max(float(slope) / 0.3, 1e-3)
            matrix = (B if near is None else B + near.hessian) + block_diagonal(*limits.hessian(multipliers / slack))
            force = gradient + limits.gradient(mu / slack)
            step: Array = np.asarray(-np.linalg.solve(matrix, force.T.reshape(-1)).reshape(X.shape[::-1]).T)
            change = limits.change(step)
            descent = float((gradient * step).sum() - mu * (change / slack).sum())
            length = _longest(slack, change, _TO_BOUNDARY)
            if near is not None:
                length = min(length, _longest(near.slack, near.approach @ step.T.reshape(-1), _TO_OBSTACLES))
            for _ in range(_SHORTENED):  # line search with quadratic interpolation
                trial = X + length * step
                new = objective(trial, barrier, sharpness)
                if not np.isfinite(new.value):
                    length *= 0.3
                    continue
                reached = new.value - mu * float(np.log(limits.slack(trial)).sum())
                if reached <= merit + _ARMIJO * length * descent:
                    break
                shorter = -0.5 * descent * length**2 / (reached - merit - descent * length)
                length = float(np.clip(shorter, 0.1 * length, 0.5 * length))
            else:
                B = None if stage == 0 else B
                break
            dual = mu / slack - multipliers - multipliers / slack * change
            multipliers = np.maximum(multipliers + length * dual, 0.0)
            moved, near = length * step, new.push
            # damped BFGS update (Powell)
            s = moved.T.reshape(-1)
            y = ((new.gradient if near is None else new.gradient - near.gradient) - smooth).T.reshape(-1)
            Bs = B @ s
            sBs, sy = float(s @ Bs), float(s @ y)
            if sBs > 0.0:
                if sy < 0.2 * sBs:
                    share = 0.8 * sBs / (sBs - sy)
                    y = share * y + (1.0 - share) * Bs
                    sy = float(s @ y)
                B += np.outer(y, y) / sy - np.outer(Bs, Bs) / sBs
            X = X + moved
            slack = limits.slack(X)
            multipliers = np.clip(multipliers, 0.1 * mu / slack, 10.0 * mu / slack)
            gain, merit, gradient = merit - reached, reached, new.gradient
            if on_iterate is not None and on_iterate(X):
                return X
            if gain < schedule.tolerance * barrier:
                break
    return X


def _longest(slack: Array, change: Array, part: float) -> float:
    """Returns the largest step length, at most 1, that uses a part of every slack."""
    toward = change < 0
    return float(min(1.0, part * (slack[toward] / -change[toward]).min())) if toward.any() else 1.0


#: Largest displacement of a link between two instants at the velocity limit of one joint [m].
TRAVEL = 0.5
#: Fewest and most instants per motion.
INSTANTS = (80, 1200)
#: Allowance beyond the required distance for motion between instants [m], and its largest share of a pair's largest margin.
PAD, PAD_SHARE = 0.004, 0.25
#: Number of random poses for the usual distance of a pair.
POSES = 100
#: Number of tries to free a pose, and the part of the position range that they use.
FREEING, FREE_RANGE = 100, 0.9
#: Range of the barrier [m].
RANGE = 0.04
#: Weight relative to the barrier of torque and joint limits, which are always active: a distance is small at few instants
#: only, and a barrier that rises too late lets the search get stuck in corners.
HEAVIER = 10.0
#: Initial spacing of instants for certifying motions during the search [s]; the final motion is checked with a finer one.
CHECKED = 0.06
#: Number of instants added around a violation between instants.
_AROUND = 9


class Obstacles:
    """Barrier on the distances of a family's motions.

    Args:
        collisions: The pairs to keep apart, at least one.
        family: The family of motions.
        limits: Finite limits on positions and velocities.

    Attributes:
        collisions: As given.
        violation: The pair that came too close in the last motion rejected by :meth:`is_clear`.
    """

    def __init__(self, collisions: Collisions, family: Family, limits: Limits) -> None:
        self.collisions = collisions
        # A wrist that turns close to the forearm must not block every motion.
        q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (POSES, len(limits.joints)))
        margin = collisions.distances(q) - collisions.required
        #: Bound of a distance of which nothing is known yet, shape (P,); a constant one need not be computed.
        self._unknown = np.where((np.ptp(margin, axis=0) < CONSTANT) & (margin.min(axis=0) > CONSTANT), np.inf, -np.inf)
        stroke = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
        bounds = SpeedBounds.of(collisions, stroke)
        self._arms = bounds.arms.T
        self.family = single = replace(family, periods=1)
        duration = single.period + 2 * single.lead
        fastest = float((bounds.arms * limits.velocity).max())  # one joint alone at full speed
        even = int(np.clip(np.ceil(duration * fastest / TRAVEL), *INSTANTS))
        self._step = duration / (even - 1)
        self.grid = single.grid(np.linspace(0.0, duration, even))
        self._last = np.zeros((even, len(limits.joints)))
        self._bound = np.tile(self._unknown, (even, 1))
        self._least = collisions.required + np.clip(PAD_SHARE * margin.max(axis=0), 0.0, PAD)
        self._certified: Array | None = None
        self.violation: Clearance | None = None

    def __call__(self, X: Array, weight: float) -> tuple[float, Push | None]:
        """Returns the value of the barrier for unknowns X, shape (d, n), inf if a distance is violated, and its derivatives.

        Args:
            weight: Of the barrier; 0: only check the distances.

        Returns:
            The value, and the contributions of the distances within range; None if there are none.
        """
        q = self.grid.bases[0] @ X + self.grid.constant[0]
        self._bound -= np.abs(q - self._last) @ self._arms
        self._last = q
        reach = RANGE if weight > 0 else 0.0
        rows, pairs = np.nonzero(self._bound < self._least + reach)
        used, where = np.unique(rows, return_inverse=True)
        poses = self.collisions.kinematics.evaluate(q[used])
        rough = self.collisions.rough(poses, where, pairs)
        self._bound[rows, pairs] = rough
        near = np.flatnonzero(rough < self._least[pairs] + reach)
        rows, pairs, where = rows[near], pairs[near], where[near]
        within = float(self._least[pairs].max(initial=0.0)) + reach
        distance, first, second = self.collisions.exact(poses, where, pairs, within)
        self._bound[rows, pairs] = distance
        margin = distance - self._least[pairs]
        if not margin.min(initial=np.inf) > 0:
            return np.inf, None
        close = np.flatnonzero(margin < reach)
        if not len(close):
            return 0.0, None
        by_distance = self.collisions.gradients(poses, where[close], pairs[close], first[close], second[close], distance[close])
        s, basis, share = margin[close] / RANGE, self.grid.bases[0], HEAVIER * weight / len(q)
        slope = share * (2 * (1 - s) * np.log(s) - (1 - s) ** 2 / s) / RANGE
        gradient = np.asarray(basis[rows[close]].T @ (slope[:, None] * by_distance))
        approach = (by_distance[:, :, None] * basis[rows[close]][:, None, :]).reshape(len(s), -1)
        curvature = share * (-2 * np.log(s) + 4 * (1 - s) / s + ((1 - s) / s) ** 2) / RANGE**2
        return -share * float(((1 - s) ** 2 * np.log(s)).sum()), Push(gradient, approach, curvature, margin[close])

    def is_clear(self, X: Array) -> bool:
        """Certifies all distances of a motion, also between instants; adds instants to the grid near violations.

        Args:
            X: The unknowns, shape (d, n).
        """
        if self._certified is not None and np.array_equal(X, self._certified):
            return True
        motion = self.family.trajectory(X)
        report = check_clearance(motion, self.collisions, CHECKED, thorough=False)
        if report.feasible:
            self._certified = X.copy()
            return True
        self.violation = report.worst
        times = np.unique([pair.time for pair in report.pairs if pair.margin < 0])
        around = (times[:, None] + self._step * np.linspace(-1.0, 1.0, _AROUND)).ravel()
        self.grid = self.family.grid(np.concatenate([self.grid.time, np.clip(around, 0.0, motion.duration)]))
        self._last = np.concatenate([self._last, np.zeros((len(around), self._last.shape[1]))])
        self._bound = np.concatenate([self._bound, np.tile(self._unknown, (len(around), 1))])
        return False

    def violated_pair(self, pose: Array) -> str:
        """Returns the names of the pair that is too close at a pose, shape (n,); empty if there is none."""
        margin = self._margin(pose)
        return "" if margin.min() > 0 else " and ".join(self.collisions.pairs[int(np.argmin(margin))].names)

    def freed(self, pose: Array, limits: Limits, rng: np.random.Generator) -> Array:
        """Moves the joints between links that are too close until none are (see :meth:`.Collisions.freed`).

        Args:
            pose: Shape (n,) [rad or m].
        """
        draw = partial(limits.random_pose, rng, FREE_RANGE * limits.half_range)
        return self.collisions.freed(pose, self._margin, draw, FREEING)

    def _margin(self, pose: Array) -> Array:
        """Distances less those that are required, shape (P,) [m]."""
        return np.asarray(self.collisions.distances(pose)[0] - self._least)
