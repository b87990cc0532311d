"""A triangular factor that grows with the rows of the data."""

from __future__ import annotations

import numpy as np

from ..linalg import REFLECTIONS, UNBLOCKED, Array, lapack, triangle

#: Number of collected rows from which a factor is updated.
_WAITING = 1024
#: Rows per column from which the QR of a triangle on top of the rows is faster than that of the rows alone.
_TALL = 3


class FactorAccumulator:
    """Updates a triangular factor with new rows; rows are collected first, so that each update is worth its cost.

    Args:
        width: Number of columns.
    """

    def __init__(self, width: int) -> None:
        self.width, self.waiting = width, max(_WAITING, width)
        self._factor: Array | None = None
        self._parts: list[Array] = []
        self._count = 0

    def add(self, rows: Array) -> None:
        """Adds rows.

        Args:
            rows: Shape (m, width); not copied, so they must not be changed afterwards.
        """
        self._parts.append(rows)
        self._count += len(rows)
        if self._count >= self.waiting:
            self._update()

    def factor(self) -> Array:
        """Factor of all rows added so far, with at most as many rows as columns.

        Returns:
            Shape (≤ width, width), with ``RᵀR`` the sum over rows; triangular, or the rows themselves if there are few.
        """
        if self._factor is not None:
            return self._update() if self._parts else self._factor
        if self._count > max(UNBLOCKED, _TALL * self.width):
            return self._update()
        rows = np.vstack([np.zeros((0, self.width)), *self._parts])
        return rows if len(rows) <= self.width else triangle(rows)

    def _update(self) -> Array:
        rows = np.empty((self.width, self._count)).T  # column-major, as LAPACK expects
        np.concatenate(self._parts, out=rows)
        old = np.zeros((self.width, self.width), order="F") if self._factor is None else np.asfortranarray(self._factor)
        if self.width:  # Householder QR of a triangle on top of rows (Elmroth, Gustavson 2000)
            old, _, _, info = lapack().dtpqrt(0, min(REFLECTIONS, self.width), old, rows, overwrite_a=1, overwrite_b=1)
            if info != 0:
                raise ValueError(f"LAPACK refuses argument {-info}")
        self._factor, self._parts, self._count = old, [], 0
        return old
