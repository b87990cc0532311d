"""Least squares from triangular factors by QR decomposition, without normal equations.

The rank tolerance of the solver covers rounding errors only (``eps·rows`` on column-scaled factors; NIST's Filip data set needs
all of it); *structural* identifiability was decided before, by :mod:`urdf_ident.model.base`.

Accuracy: Filip's scaled columns have a condition number of 5e9, so that rounding the triangular factor once costs up to
``eps · 5e9 = 1e-6``. Over 200 row orders the factor gives 6.5 to 8.7 correct digits, median 7.3, and no order of rows or
columns is better; exact arithmetic on the same factors gives no more, and half a unit in the last digit of the *data* leaves
7.1. More would need factors in twice the precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError
from ..linalg import Array, BoolArray, positive, shaped, triangle
from ..samples import ReadOnly

#: Levels of significance: of a choice between models, of a correction of the estimate, and of what is reported of logs.
LEVEL, CORRECTION_LEVEL, REPORT_LEVEL = 0.05, 0.01, 0.001
#: Most iterations of an estimate that weights or scales its own rows; one that has not converged by then does not.
MOST_ROUNDS = 100
#: Number of left-out parts that are processed at a time.
_AT_ONCE = 64
#: Information that remains in any direction when a part is left out, at least this share of that of all parts.
_LEAST_LEFT = 0.01


@dataclass(frozen=True, eq=False)
class Solution(ReadOnly):
    """Solution of ``min ‖y − X b‖²``.

    Attributes:
        estimate: Shape (k,); directions in the null space of X stay at the reference.
        root: Shape (k, r): a factor of the unscaled covariance, ``(XᵀX)⁺ = root rootᵀ`` on the identifiable subspace.
        seen: Shape (k,): False where a null direction of the data moves the parameter.
        residual_squares: ``‖y − X b‖²``.
        triangle: Triangular factor of the independent columns of the column-scaled X, shape (r, r).
    """

    estimate: Array
    root: Array
    seen: BoolArray
    residual_squares: float
    rows: int
    rank: int
    triangle: Array

    @cached_property
    def condition(self) -> float:
        """Condition number of the independent columns of the column-scaled X."""
        singular = np.linalg.svd(self.triangle, compute_uv=False)
        return float(singular[0] / singular[-1]) if self.rank else np.inf

    @property
    def dof(self) -> int:
        return self.rows - self.rank

    @property
    def variance(self) -> float:
        """Residual variance, ``RSS/(rows − rank)`` (Gautier 2013, eq. 10)."""
        return self.residual_squares / self.dof if self.dof > 0 else np.inf

    def covariance(self, variance: float | None = None) -> Array:
        """Returns the covariance of the estimate (Gautier 2013, eq. 11); not meaningful for unidentifiable parameters.

        Args:
            variance: Residual variance; :attr:`variance` if None.

        Returns:
            Shape (k, k).
        """
        return np.asarray((self.variance if variance is None else variance) * (self.root @ self.root.T))

    def sandwich(self, middle: Array) -> Array:
        """Returns the covariance of the estimate for another covariance of its score, shape (k, k).

        Args:
            middle: Covariance of the total score in the coordinates of :attr:`root`, shape (rank, rank); positive semidefinite
                up to rounding, which does not make variances negative.
        """
        values, axes = np.linalg.eigh(middle)
        half = self.root @ (axes * np.sqrt(np.maximum(values, 0.0)))
        return np.asarray(half @ half.T)

    @cached_property
    def std_error(self) -> Array:
        """Standard errors, shape (k,); inf where a parameter is not identifiable."""
        return np.where(self.seen, np.sqrt(self.variance) * np.linalg.norm(self.root, axis=1), np.inf)


def solve(factor: ArrayLike, rows: int, reference: ArrayLike | None = None) -> Solution:
    """Solves a least-squares problem from a factor of ``[X | y]``.

    Args:
        factor: Shape (m, k + 1), any array whose Gram matrix is that of ``[X | y]``.
        rows: Number of data rows that it represents.
        reference: Shape (k,): values kept along the null directions of the data; 0 if None.

    Raises:
        EstimationError: No data, or values that are not finite.
    """
    from scipy.linalg import lapack

    full = np.asarray(factor, dtype=float)
    k = full.shape[1] - 1
    if not np.isfinite(full).all():
        raise EstimationError("the regression holds values that are not finite", remedy="check the log for NaN or overflow")
    if rows == 0 or k == 0:
        raise EstimationError("nothing to estimate", got=f"{rows} rows, {k} columns")
    reference = np.zeros(k) if reference is None else shaped("reference", reference, (k,))
    norms = np.linalg.norm(full[:, :k], axis=0)
    scale = np.where(norms > np.finfo(float).eps * norms.max(), norms, np.inf)  # columns of rounding errors are not scaled up
    scaled, target = full[:, :k] / scale, full[:, k:] - full[:, :k] @ reference[:, None]
    if len(full) > 2 * (k + 1):
        R = triangle(np.hstack([scaled, target]))
        scaled, target = R[:, :k], R[:, k:]
    T, pivots, reflections, *_ = lapack.dgeqp3(scaled)
    y = lapack.dormqr("L", "T", T[:, : len(reflections)], reflections, target, 64)[0][:, 0]
    T, pivots = np.triu(T[: len(reflections)]), pivots - 1
    diagonal = np.abs(np.diag(T))
    # After merging factors the residue of a null direction reaches several eps·k, so a bound of eps·k would be too tight.
    tolerance = np.finfo(float).eps * max(rows, 10 * k)
    rank = int((diagonal > tolerance * diagonal.max(initial=0.0)).sum())
    kept, T1 = pivots[:rank], T[:rank, :rank]
    inverse = lapack.dtrtri(T1)[0] if rank else T1
    z = lapack.dtrtrs(T1, y[:rank])[0] if rank else y[:0]
    estimate, root, seen = reference.copy(), np.zeros((k, rank)), np.zeros(k, dtype=bool)
    estimate[kept] += z / scale[kept]
    root[kept] = inverse / scale[kept][:, None]
    seen[kept] = (np.abs(inverse @ T[:rank, rank:]) < 1e-7).all(axis=1)
    return Solution(estimate, root, seen, float(y[rank:] @ y[rank:]), rows, rank, T1)


def ols(W: ArrayLike, y: ArrayLike) -> Solution:
    """Computes ordinary least squares of data in memory, refined with residuals in extended precision.

    Args:
        W: Shape (N, k).
        y: Shape (N,).

    Raises:
        EstimationError: Fewer rows than columns, or values that are not finite.
        ShapeError: The arrays disagree.
    """
    W = shaped("W", W, ("N", "k"))
    y = shaped("y", y, (len(W),))
    if W.shape[0] < W.shape[1]:
        raise EstimationError("fewer rows than parameters", got=f"{W.shape[0]} rows", expected=f">= {W.shape[1]}")
    first = solve(triangle(np.column_stack([W, y])), len(W))
    wide = W.astype(np.longdouble)
    estimate, residual = first.estimate, y - wide @ first.estimate
    for _ in range(2):  # corrected semi-normal equations (Björck)
        estimate = estimate + (first.root @ (first.root.T @ np.asarray(wide.T @ residual, dtype=float)))
        residual = y - wide @ estimate
    return replace(first, estimate=estimate, residual_squares=float(residual @ residual))


def leave_one_out_changes(matrices: Array, scores: Array) -> Array:
    """Returns the change of an estimate when each part of the data is left out: ``−(1 − G)⁻¹ g``.

    Directions that only this part excites cannot be estimated without it; there the change is bounded instead of infinite.

    Args:
        matrices: Normal matrix G of each part in the coordinates of the solution's root, where they sum to the identity,
            shape (u, r, r).
        scores: Gradient g of each part at the solution, shape (u, r).

    Returns:
        The changes in the same coordinates, shape (u, r).
    """
    moves, unit = np.empty_like(scores), np.eye(matrices.shape[1])
    for begin in range(0, len(scores), _AT_ONCE):  # bounds the memory for many logs
        G, g = matrices[begin : begin + _AT_ONCE], scores[begin : begin + _AT_ONCE]
        if np.linalg.norm(G, axis=(1, 2)).max() < 1 - _LEAST_LEFT:  # this norm is no less than the largest eigenvalue
            moves[begin : begin + _AT_ONCE] = -np.linalg.solve(unit - G, g[:, :, None])[:, :, 0]
            continue
        values, vectors = np.linalg.eigh(unit - G)
        inside = np.einsum("uij,ui->uj", vectors, g) / np.maximum(values, _LEAST_LEFT)
        moves[begin : begin + _AT_ONCE] = -np.einsum("uij,uj->ui", vectors, inside)
    return moves


def constrained_least_squares(A: Array, b: Array, G: Array) -> Array:
    """Solves ``min ‖A x − b‖`` subject to ``G x ≥ 0``: the free solution is projected onto the cone, by the dual, a
    non-negative least-squares problem (Moreau, 1962; Lawson and Hanson, 1974, ch. 23).

    Args:
        A: Shape (m, k), full column rank.
        b: Shape (m,).
        G: Shape (c, k).

    Returns:
        Shape (k,).

    Raises:
        EstimationError: The active set did not converge.
    """
    from scipy.optimize import nnls

    scale = 1.0 / np.linalg.norm(A, axis=0)
    Q, R = np.linalg.qr(A * scale)
    start = Q.T @ b
    if len(G):
        turned = np.linalg.solve(R.T, (G * scale).T).T
        turned = turned / positive(np.linalg.norm(turned, axis=1, keepdims=True))
        if (turned @ start < 0).any():
            try:
                dual = nnls(turned.T, -start, maxiter=50 * len(G))[0]
            except RuntimeError as error:
                raise EstimationError("the bounded least squares did not converge", got=str(error)) from error
            start = start + turned.T @ dual
    return np.asarray(scale * np.linalg.solve(R, start))
