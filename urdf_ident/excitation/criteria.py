"""Criteria of a motion: functions of the singular values of the weighted regressor W of base parameters.

Every value is a logarithm, so that gradients do not depend on units, and smaller is better:

========== ============================================ ===================================================
name       value                                        in words
========== ============================================ ===================================================
cond       log σ_max/σ_min                              condition number (Wu 2012, and most of the literature)
frobenius  log ‖WᵀW‖_F ‖(WᵀW)⁻¹‖_F                      smooth condition number of WᵀW (Szabó 2021, eq. 20)
D          −mean log σ                                  geometric mean of the standard errors' ellipsoid
A          ½ log mean σ⁻²                               root mean square standard error
E          −log σ_min                                   worst standard error of any combination
block      log of the weighted sum of four conditions   W, and its parts of acceleration, velocity, gravity (Liu 2023, 15-16)
========== ============================================ ===================================================

cond and E are not smooth where singular values cross. The optimiser replaces the extremes of the singular values by
p-norms (``sharpness`` p: an upper bound, too large by at most ``b^(2/p)``) with p increasing during the search.

Only D is invariant to the columns' units. The others depend on the scaling: unscaled columns (SI), as in the literature, or
columns normalised by their size on random motion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..linalg import Array, IntArray, triangle

CRITERIA = ("D", "A", "E", "cond", "frobenius", "block")
#: Criteria of a single matrix; "block" is made of several "cond".
SPECTRAL = CRITERIA[:-1]
#: Singular values below this fraction of the largest are rounding errors.
_RANK = 1e-13


def singular_criterion(name: str, sigma: Array, sharpness: float = np.inf) -> tuple[float, Array]:
    """Returns a criterion and its derivative with respect to the singular values.

    Args:
        name: One of :data:`SPECTRAL`.
        sigma: Singular values, shape (b,), descending, positive.
        sharpness: Order p of the norm that replaces the extreme singular values; inf is exact.

    Returns:
        The value and its gradient, shape (b,).
    """
    if name == "D":
        return -float(np.log(sigma).mean()), -1.0 / (len(sigma) * sigma)
    if name == "A":
        share = sigma**-2 / np.sum(sigma**-2)
        return 0.5 * float(np.log(np.mean(sigma**-2))), -share / sigma
    if name == "frobenius":
        high, low = sigma**4 / np.sum(sigma**4), (sigma[-1] / sigma) ** 4
        value = 0.5 * np.log(np.sum((sigma / sigma[0]) ** 4)) + 0.5 * np.log(low.sum()) + 2 * np.log(sigma[0] / sigma[-1])
        return float(value), 2.0 * (high - low / low.sum()) / sigma
    if name == "E":
        value, slope = _extreme(1.0 / sigma, sharpness)
        return value, -slope / sigma
    top, bottom = _extreme(sigma, sharpness), _extreme(1.0 / sigma, sharpness)
    return top[0] + bottom[0], (top[1] - bottom[1]) / sigma


def _extreme(x: Array, sharpness: float) -> tuple[float, Array]:
    """Returns the log of the p-norm of x, and its derivative with respect to log x."""
    largest = float(x.max())
    if np.isinf(sharpness):
        return float(np.log(largest)), (np.arange(len(x)) == int(np.argmax(x))).astype(float)
    powers = (x / largest) ** sharpness
    return float(np.log(largest) + np.log(powers.sum()) / sharpness), powers / powers.sum()


def _matrix_criterion(name: str, W: Array, sharpness: float = np.inf) -> tuple[float, Array]:
    """A criterion of a regressor, shape (m, b), inf if it is numerically rank deficient; its gradient by every entry."""
    _, sigma, right = np.linalg.svd(triangle(W))
    if len(sigma) < W.shape[1] or not sigma[-1] > _RANK * sigma[0]:
        return np.inf, np.zeros_like(W)
    value, slope = singular_criterion(name, sigma, sharpness)
    return value, W @ ((right.T * (slope / sigma)) @ right)


def criterion_value(name: str, W: Array) -> float:
    """Returns the exact value of a criterion in :data:`SPECTRAL`.

    Args:
        W: Weighted, scaled regressor, shape (m, b).

    Returns:
        The value, a logarithm; inf for a motion that does not excite every parameter.
    """
    return _matrix_criterion(name, W)[0]


def condition_number(W: Array) -> float:
    """Returns the condition number σ_max/σ_min; W of shape (m, b)."""
    return float(np.exp(criterion_value("cond", W)))


def format_criterion(value: float) -> str:
    """Formats a criterion: the exponential of its value as text; value: a logarithm."""
    return f"{np.exp(value):.4g}" if np.isfinite(value) else "none yet"


class Criterion(ABC):
    """A criterion of the rows of a motion, which may also need those of motions derived from it."""

    @abstractmethod
    def value(self, W: Array, sharpness: float) -> tuple[float, Array]:
        """Returns the value and its gradient for rows W of :meth:`motions`, shape (k·N, n, b)."""

    def motions(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Returns the motions whose rows are needed, shapes (k·N, n), for a motion of N instants: by default the motion."""
        return q, v, a

    def fold(self, by_q: Array, by_v: Array, by_a: Array) -> tuple[Array, Array, Array]:
        """Returns gradients with respect to the motion, shapes (N, n), from those with respect to :meth:`motions`."""
        return by_q, by_v, by_a


@dataclass(frozen=True, eq=False)
class SpectralCriterion(Criterion):
    """A criterion of the rows of the motion itself.

    Attributes:
        name: One of :data:`SPECTRAL`.
        known: Information rows of earlier logs, shape (m, b), in the units of the planned rows' mean; may be empty.
    """

    name: str
    known: Array

    def value(self, W: Array, sharpness: float) -> tuple[float, Array]:
        root = np.sqrt(len(W))
        stack = W.reshape(-1, W.shape[2]) / root
        value, gradient = _matrix_criterion(self.name, np.vstack([stack, self.known]), sharpness)
        return value, gradient[: len(stack)].reshape(W.shape) / root


@dataclass(frozen=True, eq=False)
class BlockCriterion(Criterion):
    """Liu 2023's criterion on the condition of W and of its parts (docs/theory.md §8), as a logarithm.

    ``(ω_α + ω_β + ω_γ) cond(W) + ω_α cond(W_acc) + ω_β cond(W_vel) + ω_γ cond(W_grav)``, each with its independent columns.

    The weights are the variances of the parts' columns, as the paper describes. On a six-axis arm they are 0.011, 0.004 and
    0.985: gravity, with the smallest condition number, has the largest weight, contrary to the paper's "parts with larger
    condition numbers are given heavier weights". The parts improve at the expense of the whole, so that identified parameters
    are worse than with plain ``cond``; ``scripts/papers/e_block.py`` prints the comparison.

    Attributes:
        columns: Indices of the base columns of W_acc, W_vel and W_grav that are independent there.
        weights: ω_α, ω_β, ω_γ, shape (3,), sum 1.
    """

    columns: tuple[IntArray, IntArray, IntArray]
    weights: Array

    def motions(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        return block_motions(q, v, a)

    def value(self, W: Array, sharpness: float) -> tuple[float, Array]:
        whole, parts = block_parts(W)
        value, gradient = _matrix_criterion("cond", whole, sharpness)
        total = float(self.weights.sum() * np.exp(value))
        bars = [self.weights.sum() * np.exp(value) * gradient, *(np.zeros_like(part) for part in parts)]
        for k, (part, columns, weight) in enumerate(zip(parts, self.columns, self.weights, strict=True), 1):
            value, gradient = _matrix_criterion("cond", part[:, columns], sharpness)
            total += float(weight * np.exp(value))
            bars[k][:, columns] = weight * np.exp(value) * gradient
        if not np.isfinite(total):
            return np.inf, np.zeros_like(W)
        stack = np.stack([bars[0], bars[1], bars[2], bars[3] - bars[1] - bars[2]])
        return float(np.log(total)), stack.reshape(W.shape) / total

    def fold(self, by_q: Array, by_v: Array, by_a: Array) -> tuple[Array, Array, Array]:
        q, v, a = (x.reshape(4, -1, x.shape[1]) for x in (by_q, by_v, by_a))
        return q.sum(axis=0), v[0] + v[2], a[0] + a[1]


def block_motions(q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Stacks a motion and its copies with zero v, zero a, and both, shapes (4 N, n).

    Args:
        q, v, a: Shape (N, n) each [rad, rad/s, rad/s² or m, m/s, m/s²].
    """
    still = np.zeros_like(v)
    return np.concatenate([q] * 4), np.concatenate([v, still, v, still]), np.concatenate([a, a, still, still])


def block_parts(W: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    """Rows of a motion, shape (N·n, b), and their parts due to acceleration, velocity and gravity.

    Args:
        W: Rows of its :func:`block_motions`, shape (4 N, n, b).
    """
    whole, no_v, no_a, rest = W.reshape(4, -1, W.shape[2])
    return whole, (no_v - rest, no_a - rest, rest)
