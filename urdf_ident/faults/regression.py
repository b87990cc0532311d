"""Weighted least squares of the torques of all joints at once, from one Gram matrix per block of time and row (joint).

The rows share the columns of the bodies; each joint has columns of its own: rotor inertia, friction and offset. Other readings
of the same efforts (signs, orders, scales) need no new products. Each row's own columns are eliminated before the shared ones
are solved for, with ridges far above the digits that a Gram matrix loses (1e-16 of a column's square), which keep unobserved
coefficients near zero. That of the shared columns is small: with short offsets between axes, columns nearly coincide, and the
difference of their large coefficients matters.
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
    """Normal equations of the rows of one or more fits (leading dimensions), the own columns of each row eliminated.

    Attributes:
        own: Inverses for the own columns of each row, shape (..., n, k, k).
        along: Their coefficients for each shared column, shape (..., n, k, m).
        rest: Equations of the shared columns, own ones eliminated, shape (..., n, m, m).
        squares: Of the shared columns, shape (..., n, m).
    """

    own: Array
    along: Array
    rest: Array
    squares: Array

    @classmethod
    def of(cls, gram: Array, shared: int, penalty: Array) -> Equations:
        """Eliminates the own columns.

        Args:
            gram: Columns [shared | own], shape (..., n, p, p).
            penalty: On the squares of the own coefficients, shape (..., k).
        """
        m = shared
        own = np.asarray(np.linalg.inv(gram[..., m:, m:] + penalty[..., None, :, None] * np.eye(gram.shape[-1] - m)))
        along: Array = own @ gram[..., m:, :m]
        rest = gram[..., :m, :m] - gram[..., :m, m:] @ along
        return cls(own, along, rest, np.diagonal(gram, axis1=-2, axis2=-1)[..., :m])

    def fits(self, weights: Array, moments: Array) -> Array:
        """Solves F fits for H right-hand sides, those of each of W groups with weights of the rows of its own.

        Args:
            weights: One over the variance of each row, shape (n, W).
            moments: Products of the columns [shared | own] with the right-hand sides, shape (F, n, p, H).

        Returns:
            Coefficients, shape (F, n, p, H).
        """
        rest = self._eliminated(moments)
        sides = np.einsum("iw,fikwg->wfkg", weights, rest.reshape(*rest.shape[:3], weights.shape[1], -1))
        squares, matrices = (np.tensordot(weights, x, (0, 1)) for x in (self.squares, self.rest))
        theta = np.linalg.solve(matrices + _ridge(squares)[..., None] * np.eye(rest.shape[2]), sides)
        theta = theta.transpose(1, 2, 0, 3).reshape(len(rest), -1, rest.shape[3])
        own = self._completed(theta, moments)
        return np.concatenate([np.broadcast_to(theta[:, None], (*own.shape[:2], *theta.shape[1:])), own], axis=2)

    @cached_property
    def ridge(self) -> Array:
        """Ridge of the shared columns of one fit with rows of equal weights, shape (m,)."""
        return _ridge(self.squares.sum(axis=0))

    @cached_property
    def shared(self) -> Array:
        """Inverse for the shared columns of this fit, shape (m, m)."""
        return np.asarray(np.linalg.inv(self.rest.sum(axis=0) + np.diag(self.ridge)))

    @property
    def own_diagonal(self) -> Array:
        """Diagonal of the inverse of this fit at the own columns, shape (n, k)."""
        shared = np.sum((self.along @ self.shared) * self.along, axis=2)
        return np.asarray(np.diagonal(self.own, axis1=1, axis2=2) + shared)

    def solve(self, moments: Array, rows: Sequence[int] | slice = slice(None)) -> tuple[Array, Array]:
        """Solves this fit for several right-hand sides.

        Args:
            moments: Products of the columns [shared | own] with them in some rows, shape (rows, p, H); 0 in all others.
            rows: These rows.

        Returns:
            Coefficients of the shared columns, shape (m, H), and of these rows' own, shape (rows, k, H).
        """
        some = replace(self, own=self.own[rows], along=self.along[rows])
        theta = self.shared @ some._eliminated(moments).sum(axis=0)
        return theta, some._completed(theta, moments)

    def _eliminated(self, moments: Array) -> Array:
        """Right-hand sides of the shared columns, shape (..., n, m, H)."""
        m = self.along.shape[-1]
        return np.asarray(moments[..., :m, :] - self.along.swapaxes(-1, -2) @ moments[..., m:, :])

    def _completed(self, theta: Array, moments: Array) -> Array:
        """Coefficients of each row's own columns, shape (..., n, k, H), given those of the shared ones, shape (..., m, H)."""
        return np.asarray(self.own @ moments[..., self.along.shape[-1] :, :] - self.along @ theta[..., None, :, :])


def _ridge(squares: Array) -> Array:
    """Ridge of shared columns by their squares, shape (..., m): coefficients that a fit does not see stay near zero."""
    return np.asarray(LEAST_RIDGE * np.maximum(squares, positive(_UNSEEN * squares.max(axis=-1, keepdims=True, initial=0.0))))


@dataclass(frozen=True, eq=False)
class Efforts:
    """Products with efforts, of which each row has several: those of all joints, or versions of its own.

    Attributes:
        moments: Of the columns with them, shape (B, n, p, E).
        squares: Their own, shape (B, n, E) [N²·m² or N²].
    """

    moments: Array
    squares: Array

    def read(self, factors: Array) -> Efforts:
        """Returns the products of H readings of the efforts.

        Args:
            factors: Factor of each effort in each row, of one at most that is not 0, shape (n, E, H).
        """
        return Efforts(self.moments @ factors, np.einsum("bie,ieh->bih", self.squares, factors**2))


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
    def regression(self) -> Regression:
        """The Gram matrices of the blocks."""
        gram = np.stack([x.swapaxes(1, 2) @ x for x in self._by_block(self.columns)])
        return Regression(gram, self.shared, self.count.astype(float))

    def products(self, efforts: Array) -> Efforts:
        """Returns the products with efforts.

        Args:
            efforts: Shape (N, n, E), or (N, 1, E) where each row has all of them [N·m or N].
        """
        tau = self._by_block(efforts[self.order].transpose(1, 0, 2) * self.rows[:, :, None])
        moments = [x.swapaxes(1, 2) @ some for x, some in zip(self._by_block(self.columns), tau, strict=True)]
        return Efforts(np.stack(moments), np.stack([np.sum(some**2, axis=1) for some in tau]))

    def _by_block(self, x: Array) -> list[Array]:
        return np.split(x, np.cumsum(self.count)[:-1], axis=1)


@dataclass(frozen=True, eq=False)
class Regression:
    """Gram matrices of columns.

    Attributes:
        gram: Columns [shared | own of the row], shape (B, n, p, p).
        shared: Number of shared columns.
        count: Samples of each block, shape (B,).
    """

    gram: Array
    shared: int
    count: Array

    @cached_property
    def total(self) -> Array:
        """Sum over the blocks, shape (n, p, p)."""
        return np.asarray(self.gram.sum(axis=0))

    def fit(self, efforts: Efforts, weights: Array, fold: IntArray | None = None) -> tuple[Array, Array]:
        """Fits H readings of the efforts to all blocks, or to all but those of one fold each.

        Args:
            efforts: Their products.
            weights: One over the variance of each row, the same for all readings or of each, shape (n, 1) or (n, H).
            fold: Fold of each block, shape (B,); one fit to all blocks by default.

        Returns:
            Coefficients of the columns [shared | own], shape (F, n, p, H), and mean squared errors of each block, by the fit
            that has not seen it if there are folds, shape (B, n, H).
        """
        moments = efforts.moments.sum(axis=0)[None]
        if fold is not None:
            moments = moments - _of_folds(efforts.moments, fold)
        x = self._equations(fold).fits(weights, moments)
        errors = _squares(self.gram, efforts, x if fold is None else x[fold])
        return x, errors / self.count[:, None, None]

    def errors(self, efforts: Efforts, weights: Array, fold: IntArray | None = None) -> tuple[Array, Array]:
        """Mean squared errors of the fits of :meth:`fit` in what each has seen, shape (F, n, H), and those of each block."""
        x, squares = self.fit(efforts, weights, fold)
        if fold is None:
            return np.average(squares, 0, self.count)[None], squares
        whole = _squares(self.total, Efforts(efforts.moments.sum(axis=0), efforts.squares.sum(axis=0)), x)
        held, counts = (_of_folds(y, fold) for y in (squares * self.count[:, None, None], self.count))
        return np.maximum(whole - held, 0.0) / (self.count.sum() - counts)[:, None, None], squares

    def beside(self, efforts: Efforts) -> Array:
        """Gram matrices of the columns and one reading of the efforts, shape (B, n, p + 1, p + 1)."""
        edge = efforts.moments
        return np.block([[self.gram, edge], [edge.swapaxes(2, 3), efforts.squares[..., None]]])

    def _equations(self, fold: IntArray | None) -> Equations:
        """Those of all blocks, or of all but one fold each, shape (F, ...); their own columns do not depend on the efforts."""
        key = None if fold is None else fold.tobytes()
        if key not in self._known:
            gram, counts = self.total[None], self.count.sum(keepdims=True)
            if fold is not None:
                gram, counts = gram - _of_folds(self.gram, fold), counts - _of_folds(self.count, fold)
            penalty = np.broadcast_to((_RIDGE * counts)[:, None], (len(gram), gram.shape[-1] - self.shared))
            self._known[key] = Equations.of(gram, self.shared, penalty)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[bytes | None, Equations]:
        return {}


def _of_folds(x: Array, fold: IntArray) -> Array:
    """Sums over the blocks of each fold, shape (F, ...)."""
    return np.stack([x[fold == k].sum(axis=0) for k in range(int(fold.max()) + 1)])


def _squares(gram: Array, efforts: Efforts, x: Array) -> Array:
    """Sums of squared errors of coefficients, shape (..., n, H)."""
    return np.asarray(np.maximum(np.sum(x * (gram @ x - 2 * efforts.moments), axis=-2) + efforts.squares, 0.0))
