"""Measures how well one rigid robot with free inertias explains the torques of all joints at once.

The effect of a fault in the log is measured on held-out blocks of time. The fit uses one Gram matrix per block and row
(:mod:`grams`), solved by :mod:`gram_fit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..linalg import Array, positive
from ..samples import TESTING_REVERSALS
from .gram_fit import solved
from .grams import DISSIPATES, EXACT, VISCOUS, Grams

#: Relative residual that unmodelled friction usually leaves, and that another interpretation may explain by chance.
MATERIAL = 0.05
#: Usual error of the calibration of torques, a fraction: torque constants and sensors are calibrated to a few per cent.
CALIBRATED = 0.03


class RigidEvidence(Grams):
    """Gram matrices of one interpretation of the motion, with weights for their rows."""

    @cached_property
    def usual(self) -> Array:
        """Relative residuals of the rows with the efforts as logged, for weights, shape (n,).

        Clipped to 0.03 to 0.3, so that neither a noise-free nor a faulty row dominates the others.
        """
        as_logged = np.eye(self.n).reshape(-1, 1)
        squares = held_out(self, as_logged, 1.0 / self.size**2).squares
        return np.asarray(np.clip(unexplained(self, squares, as_logged)[:, 0], 0.03, 0.3))


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of interpretations of the efforts on held-out blocks.

    Attributes:
        squares: Sums of squared errors, shape (B, n, H) [N²·m² or N²].
        power: Mean friction torque times velocity over the product of their RMS, of every fold, shape (F, n, H), including
            motors coupled to the joint; negative if friction would drive the joint.
        rotor: Mean torque of the rotor inertia in the direction of the acceleration, over the RMS torque, of every fold, shape
            (F, n, H), including motors coupled to the joint.
        theta: Inertial parameters of every fold, scaled columns, shape (F, m, H).
    """

    squares: Array
    power: Array
    rotor: Array
    theta: Array


def held_out(found: Grams, effort_map: Array, weights: Array) -> Errors:
    """Computes the errors on held-out blocks.

    Args:
        effort_map: Factor of each logged effort in each row, of H interpretations, shape (n², H).
        weights: One over the variance of each row, shape (n,).
    """
    n, m, total, rows = found.n, found.inertial, found.total, float(found.count.sum())
    fold, learnt, counts = found.folds
    efforts = effort_map.reshape(n, n, -1)
    x = solved(learnt, counts, m, efforts, weights)
    squares = np.sum(x[fold] * (found.gram @ x[fold]), axis=2)
    size = found.size_of(effort_map)
    power, rotor = np.zeros_like(x[:, :, 0]), np.zeros_like(x[:, :, 0])
    for k in found.friction_starts:  # only the sum of the friction of a joint and its motor is identifiable
        own = slice(k + DISSIPATES.start, k + DISSIPATES.stop)
        power -= np.sum(x[:, :, own] * (total[:, k + VISCOUS, own] / rows)[None, :, :, None], axis=2)
        rotor -= x[:, :, k] * (total[:, k, k] / rows)[None, :, None]
    return Errors(np.maximum(squares, 0.0), power / size, rotor / size, -x[:, 0, :m])


def in_sample(found: Grams, effort_map: Array, weights: Array) -> Array:
    """Computes the in-sample errors: what the model cannot explain, even with little excitation.

    Args:
        effort_map: Factor of each logged effort in each row, of H interpretations, shape (n², H).
        weights: One over the variance of each row, shape (n,).

    Returns:
        Sums of squares, shape (B, n, H) [N²·m² or N²].
    """
    total = found.total[None]
    x = solved(total, np.array([found.count.sum()]), found.inertial, effort_map.reshape(found.n, found.n, -1), weights)
    return np.asarray(np.maximum(np.sum(x * (found.gram @ x), axis=2), 0.0))


def unexplained(found: Grams, squares: Array, effort_map: Array) -> Array:
    """Computes the relative residual of each row.

    Args:
        squares: Sums of squares, shape (B, n, H).
        effort_map: As for :func:`held_out`, shape (n², H).

    Returns:
        RMS error over the RMS of the row's effort about its mean, at least :data:`EXACT`, shape (n, H).
    """
    left = np.sqrt(squares.sum(axis=0) / found.count.sum())
    return np.asarray(np.maximum(left, found.exact_of(effort_map)) / found.size_of(effort_map))


def material(before: Array, after: Array) -> bool:
    """Whether a row's residual is reduced by more than the effect of unmodelled friction and imperfect filters.

    Args:
        before, after: Relative residuals of the rows, shape (n,).

    Returns:
        True if some row is reduced by more than :data:`MATERIAL`.
    """
    return bool((before**2 - after**2).max() > MATERIAL**2)


def scarcity(turns: float) -> float:
    """Factor by which few reversals overstate significance: those needed over those there are, 1 if there are enough.

    Each leg between two reversals shows friction and gravity once, however many blocks of time it is cut into.

    Args:
        turns: Reversals of a joint (median).
    """
    return max(1.0, TESTING_REVERSALS / max(turns, 1.0))


def significance(before: Array, after: Array) -> float:
    """Gain of one explanation over another, relative to its standard error between blocks of time.

    Args:
        before, after: Mean squared errors over the efforts' squares, shape (B, n).

    Returns:
        Mean over blocks of the difference of summed logarithms, over the standard error of that mean.
    """
    gains = 0.5 * np.log((before + EXACT**2) / (after + EXACT**2)).sum(axis=1)
    return float(gains.mean() / positive(gains.std(ddof=1) / np.sqrt(len(gains))))
