"""The entries of a statistic set by time block, the meaning of their columns, and the stretches of time they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..linalg import Array, IntArray, triangle
from ..model.dynamic_model import DynamicModel
from ..samples import freeze_arrays


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


def placed(columns: Array, place: IntArray, width: int) -> Array:
    """Columns at other places of a matrix that is zero elsewhere, shape (m, width).

    Args:
        columns: Shape (m, k).
        place: New index of each column, shape (k,); columns with a negative one are left out.
    """
    out, kept = np.zeros((len(columns), width)), place >= 0
    out[:, place[kept]] = columns[:, kept]
    return out


def layouts_of(model: DynamicModel) -> tuple[Layout, ...]:
    """Returns the layouts of a model's row groups."""
    return tuple(
        Layout(group.name, group.joint, group.columns, places=basis.places, expansion=basis.expansion)
        for group, basis in zip(model.groups, model.compact, strict=True)
    )


#: Time blocks per log; maximum of all logs together, and minimum per log, if there are many logs.
BLOCKS, MOST_BLOCKS, FEWEST_BLOCKS = 32, 512, 8
#: Stretches per log for jackknife and bootstrap: long compared with the autocorrelation, and sufficient in number.
STRETCHES = 16
#: Maximum number of stretches of all logs together: more would not improve the standard errors.
MOST_STRETCHES = 320


def blocks_of(logs: int) -> int:
    """Returns the number of time blocks per log.

    Returns:
        :data:`BLOCKS`, fewer with many logs, since standard errors use the stretches of all logs together.
    """
    return min(BLOCKS, max(FEWEST_BLOCKS, MOST_BLOCKS // max(logs, 1)))


def stretches_of(blocks: Sequence[int], logs: int) -> list[IntArray]:
    """Divides one log into stretches of time.

    Returns:
        The blocks of each stretch; at most :data:`STRETCHES` of them.
    """
    most = max(2, min(STRETCHES, MOST_STRETCHES // max(logs, 1)))
    return np.array_split(np.array(blocks, dtype=np.intp), min(most, len(blocks)))


@dataclass(frozen=True, eq=False)
class Statistic:
    """The factor of the rows of one (log, block, group).

    Attributes:
        log, block, group: The rows it stands for.
        factor: The columns of a basis of all columns, and the effort, shape (m, c + 1), or all columns.
        repeats: Number of periods averaged in each row; such rows are scaled by √repeats.
        expansion: E with ``all columns = basis @ E``, shape (c, k); None if ``factor`` has all columns.
    """

    log: str
    block: int
    group: str
    factor: Array
    rows: int
    repeats: float = 1.0
    expansion: Array | None = None

    def __post_init__(self) -> None:
        if self.factor.flags.writeable:
            freeze_arrays(self)

    @property
    def R(self) -> Array:
        """All columns, shape (≤ width, width), with the same ``RᵀR`` as the rows; not always triangular."""
        return expanded(self.factor, self.expansion)

    def times(self, matrix: Array) -> Array:
        """Returns a matrix whose product with :attr:`factor` is the given one's with :attr:`R`.

        Args:
            matrix: Shape (width, q).

        Returns:
            Shape (columns of :attr:`factor`, q).
        """
        if self.expansion is None:
            return matrix
        k = self.expansion.shape[1]
        return np.vstack([self.expansion @ matrix[:k], matrix[k:]])
