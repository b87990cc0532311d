"""Objective function: a criterion of the planned rows plus a barrier for the torque limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import Array, IntArray
from ..criteria import matrix_criterion
from ..family import Grid
from ..planned_rows import PlannedRows

Motion = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class SpectralCriterion:
    """A criterion of the rows of the motion itself.

    Attributes:
        name: One of :data:`..criteria.SPECTRAL`.
        known: Information rows of earlier logs, shape (m, b), in the units of the planned rows' mean; may be empty.
    """

    name: str
    rows: PlannedRows
    known: Array

    def motions(self, q: Array, v: Array, a: Array) -> Motion:
        """Returns the motion unchanged, shapes (N, n)."""
        return q, v, a

    def value(self, W: Array, sharpness: float) -> tuple[float, Array]:
        """Value and its gradient from the rows W of :meth:`motions`, both of shape (N, n, b)."""
        root = np.sqrt(len(W))
        stack = W.reshape(-1, W.shape[2]) / root
        value, gradient = matrix_criterion(self.name, np.vstack([stack, self.known]), sharpness)
        return value, gradient[: len(stack)].reshape(W.shape) / root

    def fold(self, by_q: Array, by_v: Array, by_a: Array) -> Motion:
        """Returns the gradients unchanged, shapes (N, n)."""
        return by_q, by_v, by_a


@dataclass(frozen=True, eq=False)
class BlockCriterion:
    """Liu 2023's criterion on the condition of W and of its parts (docs/theory.md §8), as a logarithm.

    ``(ω_α + ω_β + ω_γ) cond(W) + ω_α cond(W_acc) + ω_β cond(W_vel) + ω_γ cond(W_grav)``, each with its independent columns.

    The weights are the variances of the parts' columns, as the paper describes. On a six-axis arm they are 0.011, 0.004 and
    0.985: gravity, with the smallest condition number, has the largest weight, contrary to the paper's "parts with larger
    condition numbers are given heavier weights". This criterion halves the condition numbers of the acceleration and
    velocity parts at the expense of the whole: identified parameters and torques are worse than with plain ``cond`` in most
    of twenty seeds. A pattern search instead of gradients (the paper's optimiser) did not change that, nor did three other
    interpretations of the weights. ``scripts/papers/e_block.py`` prints the comparison.

    Attributes:
        columns: Indices of the base columns of W_acc, W_vel and W_grav that are independent there.
        weights: ω_α, ω_β, ω_γ, shape (3,), sum 1.
    """

    rows: PlannedRows
    columns: tuple[IntArray, IntArray, IntArray]
    weights: Array

    def motions(self, q: Array, v: Array, a: Array) -> Motion:
        """Stacks the motion and its copies with zero v, zero a, and both, shapes (4·N, n)."""
        still = np.zeros_like(v)
        return np.concatenate([q] * 4), np.concatenate([v, still, v, still]), np.concatenate([a, a, still, still])

    def value(self, W: Array, sharpness: float) -> tuple[float, Array]:
        """Value and its gradient from the rows W of :meth:`motions`, both of shape (4·N, n, b)."""
        whole, no_v, no_a, rest = W.reshape(4, -1, W.shape[2])
        parts = (no_v - rest, no_a - rest, rest)
        value, gradient = matrix_criterion("cond", whole, sharpness)
        total = float(self.weights.sum() * np.exp(value))
        bars = [self.weights.sum() * np.exp(value) * gradient, *(np.zeros_like(part) for part in parts)]
        for k, (part, columns, weight) in enumerate(zip(parts, self.columns, self.weights, strict=True), 1):
            value, gradient = matrix_criterion("cond", part[:, columns], sharpness)
            total += float(weight * np.exp(value))
            bars[k][:, columns] = weight * np.exp(value) * gradient
        if not np.isfinite(total):
            return np.inf, np.zeros_like(W)
        stack = np.stack([bars[0], bars[1], bars[2], bars[3] - bars[1] - bars[2]])
        return float(np.log(total)), stack.reshape(W.shape) / total

    def fold(self, by_q: Array, by_v: Array, by_a: Array) -> Motion:
        """Reduces gradients of the stacked motions, shapes (4·N, n), to those of the planned one, shapes (N, n)."""
        q, v, a = (x.reshape(4, -1, x.shape[1]) for x in (by_q, by_v, by_a))
        return q.sum(axis=0), v[0] + v[2], a[0] + a[1]


#: A criterion; it may evaluate further motions derived from the planned one.
Criterion = SpectralCriterion | BlockCriterion


@dataclass(frozen=True, eq=False)
class Objective:
    """Criterion and torque barrier as a function of a family's unknowns.

    Attributes:
        grid: Instants of the criterion, followed by ``extra`` ones where only torque is checked.
        torque: Torque limits, shape (n,) [N·m or N]; inf without a limit.
    """

    criterion: Criterion
    grid: Grid
    extra: int
    torque: Array

    def __call__(self, X: Array, barrier: float, sharpness: float = np.inf) -> tuple[float, Array]:
        """Returns value and gradient.

        Args:
            X: The unknowns, shape (d, n).
            barrier: Weight of ``−log`` of the torque slack.
            sharpness: See :func:`..criteria.singular_criterion`.

        Returns:
            The value, inf if a torque limit is violated, and its gradient, shape (d, n).
        """
        rows, N = self.criterion.rows, len(self.grid.time)
        inside = N - self.extra
        q, v, a = self.grid.motion(X)
        stacked = self.criterion.motions(q[:inside], v[:inside], a[:inside])
        if self.extra:
            stacked = tuple(np.concatenate([x, y[inside:]]) for x, y in zip(stacked, (q, v, a), strict=True))  # type: ignore[assignment]
        W, state = rows.evaluate(*stacked)
        watched = np.r_[0:inside, len(W) - self.extra : len(W)]
        tau = rows.torque(state)[watched]
        slack = np.stack([self.torque - tau, self.torque + tau])
        if not slack.min() > 0:
            return np.inf, np.zeros_like(X)
        value, by_rows = self.criterion.value(W[: len(W) - self.extra], sharpness)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(X)
        weight = np.concatenate([by_rows, np.zeros((self.extra, *W.shape[1:]))])
        by_torque = None
        limited = np.isfinite(self.torque)
        if limited.any():
            share = barrier / N
            value -= share * float(np.log(slack[:, :, limited] / self.torque[limited]).sum())
            by_torque = np.zeros(W.shape[:2])
            by_torque[watched] = share * (1.0 / slack[0] - 1.0 / slack[1])
        bars = rows.gradient(weight, state, by_torque)
        kept = len(W) - self.extra
        folded = self.criterion.fold(*(x[:kept] for x in bars))
        whole = [np.concatenate([x, y[kept:]]) for x, y in zip(folded, bars, strict=True)]
        return value, self.grid.pull_back(whole[0], whole[1], whole[2])
