"""Weighted ridge regression on Gram matrices (:mod:`grams`): eliminates each row's friction, then solves for the inertials.

Ridges far above the digits that a Gram matrix loses (1e-16 of a column's square) keep unobserved coefficients near zero.
That of the inertials is small: with short offsets between axes, columns nearly coincide, and the difference of their large
coefficients matters.
"""

from __future__ import annotations

import numpy as np

from ..linalg import Array, positive

#: Ridge of the friction's and of the inertials' columns, as a fraction of each column's square: large against rounding
#: (1e-16), and for the inertials small against the columns of short offsets.
_RIDGE, _RIDGE_OF_INERTIALS = 1e-7, 1e-9
#: Fraction of the largest column's square below which a column counts as unobserved.
_UNSEEN = 1e-4


def solved(gram: Array, counts: Array, m: int, efforts: Array, weights: Array) -> Array:
    """Returns coefficients of all columns that give the residual of each row, by weighted ridge regression for every fold.

    Args:
        gram: Training data of each fold, columns [inertial | friction | efforts], shape (F, n, p, p).
        counts: Number of samples of each fold, shape (F,).
        efforts: Coefficients of the efforts by row, shape (n, efforts, H).
        weights: One over the variance of each row, shape (n,).

    Returns:
        Shape (F, n, p, H).
    """
    n = gram.shape[1]
    p = gram.shape[2] - efforts.shape[1]
    cross, own = gram[:, :, :m, p:] @ efforts, gram[:, :, m:p, p:] @ efforts
    inner = np.linalg.solve(_friction(gram, counts, m, p), np.concatenate([gram[:, :, m:p, :m], own], axis=3))
    reduced = np.concatenate([gram[:, :, :m, :m], cross], axis=3) - gram[:, :, :m, m:p] @ inner
    summed = np.tensordot(weights, reduced, axes=(0, 1))
    theta = np.linalg.solve(summed[:, :, :m] + _inertial_ridge(gram, m, weights), summed[:, :, m:])
    friction = inner[..., m:] - inner[..., :m] @ theta[:, None]
    shape = (len(gram), n, *theta.shape[1:])
    return np.concatenate(
        [np.broadcast_to(-theta[:, None], shape), -friction, np.broadcast_to(efforts, (len(gram), *efforts.shape))], axis=2
    )


def _friction(gram: Array, counts: Array, m: int, p: int) -> Array:
    """Normal equations of each row's own columns, shape (F, n, p - m, p - m)."""
    return np.asarray(gram[:, :, m:p, m:p] + (_RIDGE * counts)[:, None, None, None] * np.eye(p - m))


def _inertial_ridge(gram: Array, m: int, weights: Array) -> Array:
    """Ridge on the inertial columns, shape (F, m, m)."""
    acts = np.einsum("i,fikk->fk", weights, gram[:, :, :m, :m])
    # the coefficient of a column that a fold does not observe stays near zero
    acts = np.maximum(acts, positive(_UNSEEN * acts.max(initial=0.0)))
    return np.asarray(_RIDGE_OF_INERTIALS * acts[:, :, None] * np.eye(m))
