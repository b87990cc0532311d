"""Standard parameters closest to a prior that explain the data exactly as the base parameters do (Gautier 2013, 27-33).

The data determine ``B theta = beta``, ``B = [1 K]`` on the independent and dependent columns, and nothing else.
There are three choices: the least change of all parameters (minimum norm: Gautier 2013's SVD solution), no change of the
dependent parameters (frozen: Table II of Gautier 2013), or a change of the essential ones only. None of them ensures
physical consistency: :mod:`.cholesky` tests it and :mod:`.lmi` imposes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, ShapeError, check_shape
from ..linalg import Array, lstsq, shaped, solve_triangular


def base_matrix(p: int, independent: ArrayLike, dependent: ArrayLike, K: ArrayLike) -> Array:
    """The linear map from standard to base parameters.

    Args:
        p: Number of standard parameters.
        independent: Indices of the independent ones, shape (b,).
        dependent: Indices of the dependent ones, which only appear in combinations, shape (d,).
        K: Regrouping coefficients, shape (b, d).

    Returns:
        B of shape (b, p) with ``beta = B theta = theta[independent] + K theta[dependent]``; the columns of
        unidentifiable parameters are zero.

    Raises:
        ShapeError: The shapes do not fit, or an index is out of range or named twice.
    """
    first, second, coefficients = _indices(independent), _indices(dependent), np.asarray(K, dtype=float)
    check_shape("K", coefficients.shape, (len(first), len(second)))
    both = np.concatenate([first, second])
    if len(np.unique(both)) != len(both) or (len(both) and not (both.min() >= 0 and both.max() < p)):
        raise ShapeError(
            "independent and dependent indices overlap or leave theta", got=both.tolist(), expected=f"0..{p - 1}, each once"
        )
    B = np.zeros((len(first), p))
    B[np.arange(len(first)), first] = 1.0
    B[:, second] = coefficients
    return B


def minimum_norm(
    theta_ref: ArrayLike,
    independent: ArrayLike,
    dependent: ArrayLike,
    K: ArrayLike,
    beta: ArrayLike,
    *,
    metric_root: ArrayLike | None = None,
) -> Array:
    """The parameters closest to the prior among all that have these base parameters (Gautier 2013, 27-31).

    Without a metric it equals ``theta_ref + V1 Σ1⁻¹ U1ᵀ (Y − W theta_ref)`` with the SVD of W cut at rank b, when
    ``beta`` is the least-squares estimate: both are the smallest change that satisfies ``B theta = beta``. It is
    computed from a QR factorisation of Bᵀ, which does not need W.

    Args:
        theta_ref: Prior, shape (p,).
        independent: Indices, shape (b,).
        dependent: Indices, shape (d,).
        K: Shape (b, d).
        beta: Base parameters to meet, shape (b,).
        metric_root: Upper-triangular M of shape (p, p): the distance is ``‖M (theta − theta_ref)‖``. None: plain
            Euclidean norm, which mixes units. Unidentifiable parameters stay at the prior either way.

    Returns:
        Shape (p,), with ``B theta = beta`` to rounding.

    Raises:
        ShapeError: Shapes or indices do not fit.
        EstimationError: The metric is singular.
    """
    reference, target, B = _equations(theta_ref, independent, dependent, K, beta)
    free = np.flatnonzero(np.any(B != 0, axis=0))
    white = B[:, free]
    root = None
    if metric_root is not None:
        full = shaped("metric_root", metric_root, (len(reference), len(reference)))
        # With unidentifiable parameters fixed only the metric's other columns remain; QR makes them triangular again.
        root = np.asarray(np.linalg.qr(full[:, free], mode="r"))
        if np.abs(np.diag(root)).min(initial=np.inf) <= np.finfo(float).eps * np.abs(root).max(initial=0.0):
            raise EstimationError("the metric is singular", remedy="give every parameter a finite prior standard deviation")
        white = solve_triangular(root, white.T, transposed=True).T
    orthogonal, factor = np.linalg.qr(white.T)
    step = orthogonal @ solve_triangular(factor, target - B @ reference, transposed=True)
    theta = reference.copy()
    theta[free] += step if root is None else solve_triangular(root, step)
    return _meet(theta, B, _indices(independent), target)


def frozen(theta_ref: ArrayLike, independent: ArrayLike, dependent: ArrayLike, K: ArrayLike, beta: ArrayLike) -> Array:
    """Keeps the dependent parameters at the prior; the independent ones meet ``B theta = beta`` (Gautier 2013, Table II).

    Args:
        theta_ref: Prior, shape (p,).
        independent: Indices, shape (b,).
        dependent: Indices, shape (d,).
        K: Shape (b, d).
        beta: Base parameters to meet, shape (b,).

    Returns:
        Shape (p,), with ``B theta = beta``.

    Raises:
        ShapeError: Shapes or indices do not fit.
    """
    reference, target, B = _equations(theta_ref, independent, dependent, K, beta)
    return _meet(reference.copy(), B, _indices(independent), target)


def essential(
    theta_ref: ArrayLike,
    independent: ArrayLike,
    dependent: ArrayLike,
    K: ArrayLike,
    R: ArrayLike,
    rho: ArrayLike,
    keep: ArrayLike,
) -> Array:
    """Parameters of which only the essential ones differ from the prior (Gautier 2013, 32-33).

    diag(theta_e) cancels in (32) of Gautier 2013, which is the least squares of ``Y − W theta_ref`` on the essential columns.

    Args:
        theta_ref: Prior, shape (p,).
        independent: Indices, shape (b,).
        dependent: Indices, shape (d,).
        K: Shape (b, d).
        R: Triangular (or any) factor of the weighted base problem ``min ‖R beta − rho‖``, shape (k, b).
        rho: Shape (k,).
        keep: The essential base parameters: positions in 0..b−1, or a boolean mask of shape (b,).

    Returns:
        Shape (p,): equal to the prior except for ``independent[keep]``.

    Raises:
        ShapeError: Shapes or indices do not fit.
        EstimationError: The essential columns are linearly dependent.
    """
    reference = np.asarray(theta_ref, dtype=float)
    B = base_matrix(len(reference), independent, dependent, K)
    factor, target = np.asarray(R, dtype=float), np.asarray(rho, dtype=float)
    check_shape("R", factor.shape, ("k", len(B)))
    check_shape("rho", target.shape, (len(factor),))
    chosen = np.arange(len(B))[np.asarray(keep)]
    change, rank = lstsq(factor[:, chosen], target - factor @ (B @ reference), rcond=None)
    if rank < len(chosen):
        raise EstimationError(
            "the essential columns are linearly dependent", got=f"rank {rank}", expected=f"rank {len(chosen)}"
        )
    theta = reference.copy()
    theta[_indices(independent)[chosen]] += change
    return theta


def _equations(
    theta_ref: ArrayLike, independent: ArrayLike, dependent: ArrayLike, K: ArrayLike, beta: ArrayLike
) -> tuple[Array, Array, Array]:
    """The prior, shape (p,), and the equations ``B theta = beta``: beta, shape (b,), and B, shape (b, p)."""
    reference, target = np.asarray(theta_ref, dtype=float), np.asarray(beta, dtype=float)
    B = base_matrix(len(reference), independent, dependent, K)
    check_shape("beta", target.shape, (len(B),))
    return reference, target, B


def _indices(values: ArrayLike) -> Any:
    return np.asarray(values, dtype=np.intp).reshape(-1)


def _meet(theta: Array, B: Array, independent: Any, beta: Array) -> Array:
    """Corrects the independent parameters so that ``B theta = beta`` holds despite earlier rounding."""
    theta[independent] += beta - B @ theta
    return theta
