"""Weighted least squares of the torques of all joints at once, from one Gram matrix per block of time and row (joint).

The rows share the columns of the bodies; each joint has columns of its own: rotor inertia, friction and offset. The efforts are
columns too, so that other readings of the same efforts (signs, orders, scales) need no new matrices. Each row's own columns are
eliminated before the shared ones are solved for, with ridges far above the digits that a Gram matrix loses (1e-16 of a column's
square), which keep unobserved coefficients near zero. That of the shared columns is small: with short offsets between axes,
columns nearly coincide, and the difference of their large coefficients matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..linalg import Array, BoolArray, IntArray, positive

#: Ridge of a row's own columns and of the shared ones, relative to a column's mean and summed square.
_RIDGE, LEAST_RIDGE = 1e-7, 1e-9
#: Square of a shared column relative to the largest one, below which its coefficient is kept near zero.
_UNSEEN = 1e-4


@dataclass(frozen=True, eq=False)
class Equations:
    """Normal equations of one or more fits (leading dimensions), factored.

    Attributes:
        own: Inverses for the own columns of each row, shape (..., n, k, k).
        along: Their coefficients for each shared column, shape (..., n, k, m).
        shared: Inverse for the shared columns, own ones eliminated, shape (..., m, m).
        ridge: Of the shared columns, shape (..., m).
        weights: Of the rows, shape (n,).
    """

    own: Array
    along: Array
    shared: Array
    ridge: Array
    weights: Array

    @classmethod
    def of(cls, gram: Array, shared: int, weights: Array, penalty: Array) -> Equations:
        """Factors the equations.

        Args:
            gram: Columns [shared | own], shape (..., n, p, p).
            penalty: On the squares of the own coefficients, shape (..., k).
        """
        m = shared
        own = np.asarray(np.linalg.inv(gram[..., m:, m:] + penalty[..., None, :, None] * np.eye(gram.shape[-1] - m)))
        along: Array = own @ gram[..., m:, :m]
        squares = np.asarray(np.einsum("i,...ikk->...k", weights, gram[..., :m, :m]))
        # the coefficient of a column that a fit does not observe stays near zero
        ridge = np.asarray(LEAST_RIDGE * np.maximum(squares, positive(_UNSEEN * squares.max(initial=0.0))))
        rest = np.einsum("i,...ikl->...kl", weights, gram[..., :m, :m] - gram[..., :m, m:] @ along)
        return cls(own, along, np.asarray(np.linalg.inv(rest + ridge[..., None] * np.eye(m))), ridge, weights)

    def of_rows(self, rows: Sequence[int]) -> Equations:
        """The equations for right-hand sides that are 0 in all other rows."""
        some = list(rows)
        return replace(self, own=self.own[some], along=self.along[some], weights=self.weights[some])

    @property
    def own_diagonal(self) -> Array:
        """Diagonal of the inverse at the own columns, shape (..., n, k), where all weights are 1."""
        shared = np.sum((self.along @ self.shared[..., None, :, :]) * self.along, axis=-1)
        return np.asarray(np.diagonal(self.own, axis1=-2, axis2=-1) + shared)

    def solve(self, moments: Array) -> tuple[Array, Array]:
        """Solves for several right-hand sides.

        Args:
            moments: Products of the columns [shared | own] with them, shape (..., n, p, H).

        Returns:
            Coefficients of the shared columns, shape (..., m, H), and of each row's own, shape (..., n, k, H).
        """
        m = self.along.shape[-1]
        rest = moments[..., :m, :] - self.along.swapaxes(-1, -2) @ moments[..., m:, :]
        theta = self.shared @ np.einsum("i,...ikh->...kh", self.weights, rest)
        return theta, self.own @ moments[..., m:, :] - self.along @ theta[..., None, :, :]


@dataclass(frozen=True, eq=False)
class JointColumns:
    """Columns of all rows, in the order of their blocks.

    Attributes:
        columns: [shared | own of the row], zero where a row is left out, shape (n, N, p).
        shared: Number of shared columns.
        rows: Which samples count in each row, shape (n, N).
        order: The samples in the order of their blocks, shape (N,).
        count: Samples of each block, shape (B,).
    """

    columns: Array
    shared: int
    rows: BoolArray
    order: IntArray
    count: IntArray

    @classmethod
    def of(cls, shared: Array, own: Array, rows: BoolArray, block: IntArray) -> JointColumns:
        """Sorts columns by block.

        Args:
            shared: Shape (N, n, m).
            own: Shape (n, N, k).
            rows: Which samples count in each row, shape (n, N).
            block: Block of each sample, shape (N,).
        """
        order = np.argsort(block, kind="stable")
        columns = np.concatenate([shared.transpose(1, 0, 2), own], axis=2) * rows[:, :, None]
        return cls(columns[:, order], shared.shape[2], rows[:, order], order, np.bincount(block))

    @cached_property
    def _gram(self) -> list[Array]:
        return [x.swapaxes(1, 2) @ x for x in self._by_block(self.columns)]

    def _by_block(self, x: Array) -> list[Array]:
        return np.split(x, np.cumsum(self.count)[:-1], axis=1)

    def with_efforts(self, efforts: Array) -> Regression:
        """Returns the regression of efforts, or of several versions of them.

        Args:
            efforts: Shape (N, n, K), or (N, 1, K) where each row has all of them [N·m or N].
        """
        n, _, p = self.columns.shape
        last = efforts.shape[2]
        tau = efforts[self.order].transpose(1, 0, 2) * self.rows[:, :, None]
        gram = np.empty((len(self.count), n, p + last, p + last))
        for out, own, columns, some in zip(gram, self._gram, self._by_block(self.columns), self._by_block(tau), strict=True):
            out[:, :p, :p], out[:, p:, p:] = own, some.swapaxes(1, 2) @ some
            out[:, :p, p:] = cross = columns.swapaxes(1, 2) @ some
            out[:, p:, :p] = cross.swapaxes(1, 2)
        return Regression(gram, self.shared, last, self.count.astype(float))


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits to all blocks, or to all but those of one fold each.

    Attributes:
        x: Coefficients of the columns [shared | own | efforts] in the residual, shape (F, n, p, H).
        seen: Mean squared errors in what each fit has seen, shape (F, n, H) [N²·m² or N²].
        squares: Those of each block, by the fit that has not seen it if there are folds, shape (B, n, H).
    """

    x: Array
    seen: Array
    squares: Array


@dataclass(frozen=True, eq=False)
class Regression:
    """Gram matrices of columns and efforts.

    Attributes:
        gram: Columns [shared | own of the row | efforts], shape (B, n, p, p).
        shared, efforts: Numbers of these columns.
        count: Samples of each block, shape (B,).
    """

    gram: Array
    shared: int
    efforts: int
    count: Array

    @cached_property
    def total(self) -> Array:
        """Sum over the blocks, shape (n, p, p)."""
        return np.asarray(self.gram.sum(axis=0))

    def fit(self, readings: Array, weights: Array, fold: IntArray | None = None) -> Fits:
        """Fits H readings of the efforts.

        Args:
            readings: Coefficients of the efforts in each row, shape (n, efforts, H).
            weights: One over the variance of each row, shape (n,).
            fold: Fold of each block, shape (B,); one fit to all blocks by default.
        """
        learnt, counts = (self.total[None], self.count.sum(keepdims=True)) if fold is None else self._without_folds(fold)
        x = solved(learnt, counts, self.shared, readings, weights)
        seen = np.maximum(np.sum(x * (learnt @ x), axis=2), 0.0) / counts[:, None, None]
        by = x if fold is None else x[fold]
        return Fits(x, seen, np.maximum(np.sum(by * (self.gram @ by), axis=2), 0.0) / self.count[:, None, None])

    def _without_folds(self, fold: IntArray) -> tuple[Array, Array]:
        """Sums over the blocks of all folds but one, shape (F, n, p, p), and their samples, shape (F,)."""
        key = fold.tobytes()
        if key not in self._learnt:
            folds = range(int(fold.max()) + 1)
            learnt = np.stack([self.total - self.gram[fold == k].sum(axis=0) for k in folds])
            self._learnt[key] = learnt, np.array([self.count[fold != k].sum() for k in folds])
        return self._learnt[key]

    @cached_property
    def _learnt(self) -> dict[bytes, tuple[Array, Array]]:
        return {}


def solved(gram: Array, counts: Array, shared: int, readings: Array, weights: Array) -> Array:
    """Solves all fits for all readings of the efforts.

    Args:
        gram: Columns [shared | own | efforts], shape (F, n, p, p).
        counts: Number of samples of each fit, shape (F,).
        readings: Coefficients of the efforts in each row, shape (n, efforts, H).
        weights: One over the variance of each row, shape (n,).

    Returns:
        Coefficients in the residual, shape (F, n, p, H).
    """
    p = gram.shape[2] - readings.shape[1]
    penalty = np.broadcast_to((_RIDGE * counts)[:, None], (len(gram), p - shared))
    theta, own = Equations.of(gram[:, :, :p, :p], shared, weights, penalty).solve(gram[:, :, :p, p:] @ readings)
    shape = (*gram.shape[:2], *theta.shape[1:])
    return np.concatenate(
        [np.broadcast_to(-theta[:, None], shape), -own, np.broadcast_to(readings, (*shape[:2], *readings.shape[1:]))], axis=2
    )
