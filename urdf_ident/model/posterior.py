"""Posterior of the parameters: uncertainty, and the shares of data and prior.

What exports show of it is solved by NumPy, as importing SciPy would be most of their time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError
from ..linalg import Array, shaped, solve_triangular
from .prior import Prior


def from_data(R: ArrayLike, prior: Prior, weight: float = 1.0) -> Array:
    """Returns the share of every parameter's value that comes from the data; the rest is prior, shape (p,), clipped to 0..1.

    ``diag((RᵀR + w Λ)⁻¹ RᵀR)`` from the QR factorisation of ``[R/√w; Λ^½]`` in scaled columns; RᵀR is not formed.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0.

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    data, scale, orthogonal, factor = _posterior(R, prior, weight)
    projected = orthogonal[: len(data)].T @ (data * scale)
    return np.asarray(np.clip(np.diag(np.linalg.solve(factor, projected)), 0.0, 1.0))


def posterior_std(R: ArrayLike, prior: Prior, weight: float = 1.0) -> Array:
    """Returns the posterior standard deviation of every parameter, shape (p,).

    ``diag((RᵀR/w + Λ)⁻¹)^½``: at most the prior's, and finite also for parameters that the data do not identify. The
    further reduction by physical consistency is neglected.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0: factor by which the data's nominal precision is overestimated.

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    _, scale, _, factor = _posterior(R, prior, weight)
    return np.asarray(scale * np.linalg.norm(np.linalg.solve(factor, np.eye(len(scale))), axis=1))


def posterior_covariance(R: ArrayLike, prior: Prior, weight: float = 1.0) -> Array:
    """Returns the posterior covariance of all parameters, ``(RᵀR/w + Λ)⁻¹``, shape (p, p).

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0.

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    _, scale, _, factor = _posterior(R, prior, weight)
    root = scale[:, None] * solve_triangular(factor, np.eye(len(scale)))
    return np.asarray(root @ root.T)


def posterior_variance(R: ArrayLike, prior: Prior, weight: float, rows: ArrayLike) -> Array:
    """Returns the posterior variance of linear functions of the parameters, shape (…).

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0: factor by which the data's nominal precision is overestimated.
        rows: Coefficients of the functions, shape (…, p).

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    _, scale, _, factor = _posterior(R, prior, weight)
    wide = np.asarray(rows, dtype=float) * scale
    white = solve_triangular(factor, wide.reshape(-1, wide.shape[-1]).T, transposed=True)
    return np.asarray(np.sum(white**2, axis=0).reshape(wide.shape[:-1]))


def posterior_mean(factor: ArrayLike, prior: Prior, weight: float) -> Array:
    """Returns the parameters at which data and prior together are most probable, without constraints, shape (p,).

    Args:
        factor: Data factor ``[R | rho]``, whitened by the noise, shape (k, p + 1) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0.

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    data = shaped("factor", factor, ("k", len(prior.theta0) + 1))
    _, scale, orthogonal, triangular = _posterior(data[:, :-1], prior, weight)
    right = np.concatenate([data[:, -1] / np.sqrt(weight), prior.root @ prior.theta0])
    return np.asarray(scale * solve_triangular(triangular, orthogonal.T @ right))


def _posterior(R: ArrayLike, prior: Prior, weight: float) -> tuple[Array, Array, Array, Array]:
    """Returns weighted data, column scale, and the QR factors of the stacked data and prior in scaled columns."""
    data = shaped("R", R, ("k", len(prior.theta0)))
    data = data / np.sqrt(weight)
    scale = 1.0 / np.linalg.norm(prior.root, axis=0)  # the results do not depend on the column scaling
    stacked = np.vstack([data, prior.root]) * scale
    if not np.isfinite(stacked).all():
        raise EstimationError("the data factor is not finite", where="posterior")
    orthogonal, factor = np.linalg.qr(stacked)
    return data, scale, orthogonal, factor
