"""Meaning of the columns of the factors of a statistic set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..linalg import Array, IntArray, triangle
from ..model.dynamic_model import DynamicModel


def is_measured(group: str) -> bool:
    """Whether the efforts of a row group are measured.

    Returns:
        False for the links of elastic joints, whose equations have no effort.
    """
    return not group.startswith("link:")


def expanded(factor: Array, expansion: Array | None) -> Array:
    """Expands a factor of a basis of the columns to all columns, shape (m, k + 1).

    Args:
        factor: The basis and the effort, shape (m, c + 1).
        expansion: E with ``all columns = basis @ E``, shape (c, k); None: the factor has all columns.
    """
    if expansion is None:
        return factor
    count = len(expansion)
    return np.hstack([factor[:, :count] @ expansion, factor[:, count:]])


@dataclass(frozen=True, eq=False)
class Layout:
    """Meaning of the columns of a row group's factors.

    Attributes:
        joint: Index of the joint that its residual belongs to.
        columns: Indices into theta of the candidate columns, shape (k,).
        instruments: Indices into theta of the instrument columns (empty without instruments).
        places: Positions in ``columns`` of a basis of all columns for any motion, shape (c,), or None if unknown.
        expansion: E with ``all columns = those at places @ E``, shape (c, k), or None.
    """

    group: str
    joint: int
    columns: IntArray
    instruments: tuple[int, ...] = ()
    places: IntArray | None = None
    expansion: Array | None = None

    @cached_property
    def _held(self) -> IntArray | None:
        """Positions of the columns that :class:`.Statistic` holds; None: all of them."""
        if self.expansion is None or self.places is None or self.instruments:
            return None
        return np.concatenate([self.places, np.arange(len(self.columns), self.width)])

    def reduced(self, factor: Array) -> tuple[Array, Array | None]:
        """Returns the columns of a factor that :class:`.Statistic` holds.

        Args:
            factor: All columns, or those already, shape (m, ·).

        Returns:
            The columns at :attr:`places` and the effort, with :attr:`expansion`; all columns and None without a basis.
        """
        if self._held is None:
            return factor, None
        return factor if factor.shape[1] == len(self._held) else factor[:, self._held], self.expansion

    def merged(self, factors: Sequence[Array]) -> Array:
        """Merges several factors into one; linearly dependent columns are omitted from the computation, shape (≤ width, width).

        Args:
            factors: Shapes (m_i, width), or of a basis of the columns only, as in :attr:`.Statistic.factor`.
        """
        if self._held is None:
            return triangle(*factors)
        rows, begin = np.empty((sum(map(len, factors)), len(self._held)), order="F"), 0  # a second copy would be large
        for factor in factors:
            rows[begin : begin + len(factor)] = self.reduced(factor)[0]
            begin += len(factor)
        return expanded(triangle(rows, overwrite=True), self.expansion)

    @property
    def width(self) -> int:
        """Number of columns of the factors."""
        return len(self.instruments) + len(self.columns) + 1


def layouts_of(model: DynamicModel) -> tuple[Layout, ...]:
    """Returns the layouts of a model's row groups."""
    return tuple(
        Layout(group.name, group.joint, group.columns, places=some.places, expansion=some.expansion)
        for group, some in zip(model.groups, model.compact, strict=True)
    )
