"""Restricted maximum likelihood (REML: Patterson and Thompson 1971) of the variances of a linear mixed model.

``y = X beta + Z u + e`` with a separate ``u ~ N(0, diag(spread²))`` for each log and white noise of variance one, from the
moments of the logs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import Array, BoolArray, lstsq, positive, solve_triangular

#: Smallest eigenvalue allowed in the normal equations.
_LEAST = 1e-12
#: REML: maximum numbers of steps and of halvings of each; fraction of its error below which a variance may be held at zero;
#: smallest scaled eigenvalue for a full Newton step; rounding of the likelihood; gain of twice its logarithm at which to stop.
_NEWTON_STEPS, _HALVINGS, _AT_ZERO, _CONVEX, _ROUNDING, _FLAT = 100, 30, 1e-3, 1e-3, 1e-13, 1e-9


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of whitened rows per log (or part, first axis): X in the solution's coordinates, Z and y."""

    xx: Array
    xz: Array
    zz: Array
    xy: Array
    zy: Array
    yy: Array

    @classmethod
    def of(cls, squares: Array, r: int) -> Moments:
        """Creates the moments from the Gram matrices of the rows.

        Args:
            squares: Gram matrix of the rows ``[X | Z | y]`` of each log, shape (logs, r + q + 1, r + q + 1).
        """
        z = slice(r, -1)
        return cls(
            squares[:, :r, :r], squares[:, :r, z], squares[:, z, z], squares[:, :r, -1], squares[:, z, -1], squares[:, -1, -1]
        )

    def __len__(self) -> int:
        return len(self.yy)


def marginal(logs: Moments, spread: Array) -> tuple[Array, Array, Array]:
    """Returns the normal equations of the mean, by Woodbury's identity.

    Args:
        spread: Standard deviations of the deviations, shape (q,).

    Returns:
        ``XᵀV⁻¹X``, shape (r, r), ``XᵀV⁻¹y``, shape (r,), and per log ``M = (spread⁻² + ZᵀZ)⁻¹``, shape (logs, q, q).
    """
    middle = spread[:, None] * np.linalg.solve(inner(logs.zz, spread), np.broadcast_to(np.diag(spread), logs.zz.shape))
    half = logs.xz @ middle
    normal = logs.xx.sum(axis=0) - _side_by_side(half) @ _side_by_side(logs.xz).T
    score = logs.xy.sum(axis=0) - np.einsum("lrq,lq->r", half, logs.zy)
    normal = 0.5 * (normal + normal.T)  # rounding errors differ between its triangles
    try:
        np.linalg.cholesky(normal - _LEAST * np.eye(len(normal)))
    except np.linalg.LinAlgError:  # free deviations may leave only rounding errors in a direction
        normal = normal + max(_LEAST - float(np.linalg.eigvalsh(normal)[0]), 0.0) * np.eye(len(normal))
    return normal, score, middle


def inner(zz: Array, spread: Array) -> Array:
    """Returns ``1 + spread ZᵀZ spread`` of each log, shape (logs, q, q).

    Args:
        zz: ``ZᵀZ``, shape (logs, q, q).
        spread: Standard deviations of the deviations, shape (q,).
    """
    return np.asarray(np.eye(len(spread)) + spread[:, None] * zz * spread)


def _side_by_side(x: Array) -> Array:
    """Reshapes (logs, r, q) to (r, logs q)."""
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def criterion(logs: Moments, variance: Array) -> tuple[float, Array, Array, Array]:
    """Returns minus twice the restricted log-likelihood, and its derivatives.

    Args:
        variance: Variances of the deviations, shape (q,).

    Returns:
        The value; its gradient with respect to the variances, shape (q,); its Hessian and the expected one, shape (q, q).
    """
    from scipy.linalg import cho_solve, cholesky

    normal, score, middle = marginal(logs, spread := np.sqrt(variance))
    factor = cholesky(normal)
    beta = cho_solve((factor, False), score, check_finite=False)
    value = 2.0 * float(np.log(np.diag(factor)).sum()) - float(score @ beta)
    value += float(np.linalg.slogdet(inner(logs.zz, spread))[1].sum() + logs.yy.sum())
    value -= float(np.sum(logs.zy * (middle @ logs.zy[:, :, None])[:, :, 0]))
    zpz, zpy, taken = projected(logs, middle, factor, beta)
    slope = np.sum(np.diagonal(zpz, axis1=1, axis2=2) - zpy**2, axis=0)
    explained = taken @ taken.swapaxes(1, 2)
    by_part = taken.transpose(1, 2, 0)
    between = (by_part @ by_part.swapaxes(1, 2)).reshape(len(slope), -1)  # ZᵀPZ between logs
    expected = np.sum(zpz**2 - explained**2, axis=0) + between @ between.T
    pulled = np.einsum("lq,lqr->qr", zpy, taken)
    observed = np.einsum("lj,ljk,lk->jk", zpy, zpz + explained, zpy) - pulled @ pulled.T
    return value, slope, 2.0 * observed - expected, expected


def projected(logs: Moments, middle: Array, factor: Array, beta: Array) -> tuple[Array, Array, Array]:
    """Returns the moments of the deviations without the part that the mean explains.

    Args:
        middle: From :func:`marginal`, shape (logs, q, q).
        factor: Cholesky factor of the normal equations, shape (r, r).
        beta: The mean, shape (r,).

    Returns:
        ``Zᵀ P Z`` of each log, shape (logs, q, q); ``Zᵀ P y``, shape (logs, q); a root of the part of ``Zᵀ V⁻¹ Z`` explained
        by X, shape (logs, q, r).
    """
    gap = np.eye(middle.shape[1]) - logs.zz @ middle
    zvx = gap @ logs.xz.transpose(0, 2, 1)
    taken = solve_triangular(factor, zvx.reshape(-1, zvx.shape[2]).T, transposed=True).T.reshape(zvx.shape)
    zpy = np.einsum("lqk,lk->lq", gap, logs.zy) - zvx @ beta
    return gap @ logs.zz - taken @ taken.swapaxes(1, 2), zpy, taken


def reml(logs: Moments, start: Array, held: BoolArray | None = None) -> Array:
    """Estimates the variances of the deviations by restricted maximum likelihood, shape (q,), non-negative.

    Projected Newton method (Bertsekas 1982), with the expected Hessian (Fisher scoring) where the criterion is not convex.

    Args:
        start: Initial variances, positive, shape (q,).
        held: Which variances stay as they are, shape (q,); None: none.
    """
    variance, (value, slope, observed, expected) = start, criterion(logs, start)
    for _ in range(_NEWTON_STEPS):
        unit = 1.0 / np.sqrt(positive(np.diag(expected)))  # scale of the variances' errors
        free = (variance > _AT_ZERO * unit) | (slope < 0)  # the others stay at zero
        usable = np.linalg.eigvalsh((observed * unit * unit[:, None])[np.ix_(free, free)]).min(initial=1.0) > _CONVEX
        curvature = np.where(free[:, None] & free, observed if usable else expected, np.diag(np.diag(expected)))
        if held is not None:
            curvature = np.where(held[:, None] | held, np.diag(np.diag(expected)), curvature)
        step = -unit * lstsq(curvature * unit * unit[:, None], slope * unit, rcond=None)[0]
        step = step if held is None else np.where(held, 0.0, step)
        for length in 0.5 ** np.arange(_HALVINGS):
            fresh = np.maximum(variance + length * step, 0.0)
            expected_gain = -float(slope @ (fresh - variance))
            found, *others = criterion(logs, fresh)
            if found <= value - 1e-4 * expected_gain + _ROUNDING * abs(value):
                break
        variance, value, (slope, observed, expected) = fresh, found, others
        if expected_gain < _FLAT:
            break
    return variance
