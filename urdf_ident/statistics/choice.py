"""The choice among alternatives by their errors on motion that took no part in their estimate.

Every alternative predicts each fold of the data with parameters that were estimated without it. Two alternatives are compared
in pairs, fold by fold, because what makes a fold hard makes it hard for both. The error of each row group counts relative to
that of the simplest alternative, so that neither units nor sizes of torques matter. The simplest alternative is taken unless
another one beats it by more than the standard error of the difference (the one-standard-error rule of Breiman, Friedman, Olshen
and Stone, "Classification and Regression Trees", 1984), which Student's t enlarges for few folds.
"""

from __future__ import annotations

import numpy as np

from ..linalg import Array, positive


def standard_error(gains: Array) -> Array:
    """Returns the standard error of a mean over folds, enlarged for few folds by the ratio of Student's t to the normal.

    A gain in a single fold is exactly one plain standard error above zero, however large it is, and is thus not accepted.

    Args:
        gains: Gain in each fold, shape (folds, ...).

    Returns:
        Shape (...); inf with a single fold.
    """
    if len(gains) < 2:
        return np.full(gains.shape[1:], np.inf)
    from scipy.special import ndtr, stdtrit

    apart, dof = gains - np.add.reduce(gains) / len(gains), len(gains) - 1
    return np.asarray(stdtrit(dof, ndtr(1.0)) * np.sqrt(np.add.reduce(apart**2) / (dof * len(gains))))


def worse(simplest: Array, other: Array) -> bool:
    """Returns whether an alternative predicts held-out data worse than another, beyond the error of the paired difference.

    Args:
        simplest, other: Error in each fold, shape (folds,) [any unit].
    """
    losses = other - simplest
    return bool(losses.mean() > standard_error(losses))


def relative_gains(simplest: Array, others: Array) -> Array:
    """Returns how much alternatives lower the squared held-out error of the simplest one.

    Args:
        simplest: Mean squared error of the simplest alternative, shape (folds, groups) [any unit per group].
        others: The same of others, shape (..., folds, groups).

    Returns:
        Fractions of the group's error over all folds, mean over the groups with an error, shape (..., folds).
    """
    scale = simplest.mean(axis=0)
    seen = scale > 0
    if not seen.any():
        return np.zeros(others.shape[:-1])
    return np.asarray(np.mean((simplest - others)[..., seen] / positive(scale[seen]), axis=-1))


def chosen(squares: Array, simplest: int = 0) -> int:
    """Returns the index of the alternative to use.

    Args:
        squares: Mean squared held-out errors, shape (alternatives, folds, groups).
        simplest: Index of the one that is used unless another beats it.

    Returns:
        The alternative with the largest mean gain over the simplest one if that exceeds its error, else the simplest one.
    """
    gains = relative_gains(squares[simplest], squares)
    best = int(np.argmax(gains.mean(axis=1)))
    return best if gains[best].mean() > standard_error(gains[best]) else simplest
