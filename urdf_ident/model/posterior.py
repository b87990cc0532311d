"""What is known after the data: how far every parameter is still the prior's, and how sure it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError
from ..linalg import Array, shaped, solve_triangular
from .prior import Prior


def from_data(R: ArrayLike, prior: Prior, weight: float = 1.0) -> Array:
    """Which share of every parameter's value the data brought, the rest being prior.

    ``diag((RᵀR + w Λ)⁻¹ RᵀR)`` from the QR factorisation of ``[R/√w; Λ^½]`` in scaled columns; RᵀR is
    never formed.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0.

    Returns:
        Shape (p,), clipped to 0..1.

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    data, scale, orthogonal, factor = _posterior(R, prior, weight)
    projected = orthogonal[: len(data)].T @ (data * scale)
    return np.asarray(np.clip(np.diag(solve_triangular(factor, projected)), 0.0, 1.0))


def posterior_std(R: ArrayLike, prior: Prior, weight: float = 1.0) -> Array:
    """One standard deviation of every parameter once data and prior are taken together.

    ``diag((RᵀR/w + Λ)⁻¹)^½``: never more than the prior's, and finite also for what the data cannot see. That bodies
    have to be possible narrows it further, which is left out.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0: by how much the data's nominal precision is overrated.

    Returns:
        Shape (p,).

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    _, scale, _, factor = _posterior(R, prior, weight)
    return np.asarray(scale * np.linalg.norm(solve_triangular(factor, np.eye(len(scale))), axis=1))


def posterior_covariance(R: ArrayLike, prior: Prior, weight: float = 1.0) -> Array:
    """Covariance of all parameters once data and prior are taken together, ``(RᵀR/w + Λ)⁻¹``.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0.

    Returns:
        Shape (p, p).

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    _, scale, _, factor = _posterior(R, prior, weight)
    root = scale[:, None] * solve_triangular(factor, np.eye(len(scale)))
    return np.asarray(root @ root.T)


def posterior_variance(R: ArrayLike, prior: Prior, weight: float, rows: ArrayLike) -> Array:
    """Variance of linear functions of the parameters once data and prior are taken together.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        weight: Of the prior against the data, > 0: by how much the data's nominal precision is overrated.
        rows: Coefficients of the functions, shape (…, p).

    Returns:
        Shape (…).

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """
    _, scale, _, factor = _posterior(R, prior, weight)
    wide = np.asarray(rows, dtype=float) * scale
    white = solve_triangular(factor, wide.reshape(-1, wide.shape[-1]).T, transposed=True)
    return np.asarray(np.sum(white**2, axis=0).reshape(wide.shape[:-1]))


def _posterior(R: ArrayLike, prior: Prior, weight: float) -> tuple[Array, Array, Array, Array]:
    """Weighted data, column scale, and the QR factors of data and prior together in scaled columns."""
    data = shaped("R", R, ("k", len(prior.theta0)))
    data = data / np.sqrt(weight)
    scale = 1.0 / np.linalg.norm(prior.root, axis=0)  # neither diagonal depends on a scaling of columns
    stacked = np.vstack([data, prior.root]) * scale
    if not np.isfinite(stacked).all():
        raise EstimationError("the data factor is not finite", where="posterior")
    orthogonal, factor = np.linalg.qr(stacked)
    return data, scale, orthogonal, factor
