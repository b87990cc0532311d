"""Standard parameters closest to a prior that explain the data as the base parameters do (Gautier 2013, 27-33).

The data determine ``B theta = beta``, ``B = [1 K]`` on the independent and dependent columns, and nothing else.
There are three choices: the least change of all parameters (minimum norm: Gautier 2013's SVD solution), no change of the
dependent parameters (frozen: Table II of Gautier 2013), or a change of the essential ones only. None of them ensures
physical consistency: :mod:`.cholesky` tests it and :mod:`.lmi` imposes it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError
from ..linalg import Array, lstsq, shaped, solve_triangular
from ..model.base import BaseParameters
from ..model.prior import Prior
from ..statistics.fit import Fit
from .standard import Standard


def nearest_to_prior(method: str, fit: Fit, prior: Prior, distance: str = "euclid") -> Standard:
    """Standard parameters with exactly the fit's base parameters (Gautier 2013, eqs. 27-30); may be physically inconsistent.

    Args:
        method: "minimum_norm": the least change of the prior; "frozen": the dependent parameters stay at the prior.
        distance: Norm for minimum_norm: "euclid" in the prior's standard deviations, "plain" in SI units
            (Gautier 2013, eq. 30).
    """
    if method == "frozen":
        return Standard(frozen(fit.base, prior.theta0, fit.params), {"method": method, "status": "exact"})
    theta = minimum_norm(fit.base, prior.theta0, fit.params, prior.root if distance == "euclid" else None)
    return Standard(theta, {"method": method, "distance": distance, "status": "exact"})


def minimum_norm(base: BaseParameters, theta_ref: ArrayLike, beta: ArrayLike, metric_root: ArrayLike | None = None) -> Array:
    """The parameters closest to the prior among all that have these base parameters (Gautier 2013, 27-31).

    Without a metric it equals ``theta_ref + V1 Σ1⁻¹ U1ᵀ (Y − W theta_ref)`` with the SVD of W cut at rank b, when
    ``beta`` is the least-squares estimate: both are the smallest change that satisfies ``B theta = beta``. It is
    computed from a QR factorisation of Bᵀ, which does not need W.

    Args:
        theta_ref: Prior, shape (p,).
        beta: Base parameters to meet, shape (b,).
        metric_root: Upper-triangular M of shape (p, p): the distance is ``‖M (theta − theta_ref)‖``. None: plain
            Euclidean norm, which mixes units. Unidentifiable parameters stay at the prior either way.

    Returns:
        Shape (p,), with ``B theta = beta`` to rounding.

    Raises:
        ShapeError: Shapes do not fit.
        EstimationError: The metric is singular.
    """
    reference, target, B = np.asarray(theta_ref, dtype=float), shaped("beta", beta, (len(base),)), base.projection
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
    step = orthogonal @ solve_triangular(factor, target - base.of(reference), transposed=True)
    theta = reference.copy()
    theta[free] += step if root is None else solve_triangular(root, step)
    return frozen(base, theta, target)  # despite rounding


def frozen(base: BaseParameters, theta_ref: ArrayLike, beta: ArrayLike) -> Array:
    """Keeps the dependent parameters at the prior; the independent ones meet ``B theta = beta`` (Gautier 2013, Table II).

    Args:
        theta_ref: Prior, shape (p,).
        beta: Base parameters to meet, shape (b,).

    Returns:
        Shape (p,), with ``B theta = beta``.

    Raises:
        ShapeError: Shapes do not fit.
    """
    theta = np.array(theta_ref, dtype=float)
    theta[base.independent] += shaped("beta", beta, (len(base),)) - base.of(theta)
    return theta


def essential_to_prior(factor: Array, base: BaseParameters, theta_ref: ArrayLike, keep: ArrayLike) -> Standard:
    """Standard parameters of which only the essential ones differ from the prior (Gautier 2013, 31-33).

    diag(theta_e) cancels in (32) of Gautier 2013, which is the least squares of ``Y − W theta_ref`` on the essential columns.
    The torque error is slightly larger than that of the base parameters. Poorly identified parameters stay physically
    consistent, because they stay at the prior.

    Args:
        factor: ``[R | rho]``, triangular (or any) factor of the weighted base problem ``min ‖R beta − rho‖``, shape (k, b + 1).
        theta_ref: Prior, shape (p,).
        keep: The essential base parameters: positions in 0..b−1, or a boolean mask of shape (b,).

    Returns:
        The parameters, equal to the prior except for ``independent[keep]``, and how they were chosen.

    Raises:
        ShapeError: Shapes do not fit.
        EstimationError: The essential columns are linearly dependent.
    """
    theta, R = np.array(theta_ref, dtype=float), shaped("factor", factor, ("k", len(base) + 1))
    chosen = np.arange(len(base))[np.asarray(keep)]
    change, rank = lstsq(R[:, chosen], R[:, -1] - R[:, :-1] @ base.of(theta), rcond=None)
    if rank < len(chosen):
        raise EstimationError(
            "the essential columns are linearly dependent", got=f"rank {rank}", expected=f"rank {len(chosen)}"
        )
    theta[base.independent[chosen]] += change
    moved = [base.names[k] for k in base.independent[chosen]]
    note = f"{len(chosen)} essential of {len(base)} base parameters fitted, all others at the prior"
    return Standard(theta, {"method": "essential", "status": "least squares", "moved": moved, "notes": [note]})
