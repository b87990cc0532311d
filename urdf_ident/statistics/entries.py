"""The entries of a statistic set by time block, the stretches of time they form, and how they are sent to another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg import Array, IntArray
from ..parallel.scratch import scratch_folder, stored
from ..samples import freeze_arrays
from .layout import expanded

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

    Args:
        blocks: Its blocks, in order.

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


class Entries(tuple[Statistic, ...]):
    """Entries of a log; pickled as one array per width instead of hundreds of small ones."""

    __slots__ = ()

    def stored(self) -> Entries:
        """Moves the factors to the scratch folder, if there is one, to save memory when there are many logs."""
        if scratch_folder() is None:
            return self
        make, (stacks, facts) = self.__reduce__()
        return make([stored(stack) for stack in stacks], facts)

    def __reduce__(self) -> tuple[Callable[..., Entries], tuple[Any, ...]]:
        stacks: dict[int, list[Array]] = {}
        facts = []
        for entry in self:
            stacks.setdefault(entry.factor.shape[1], []).append(entry.factor)
            facts.append((entry.log, entry.block, entry.group, entry.factor.shape, entry.rows, entry.repeats, entry.expansion))
        return _entries, ([np.vstack(stack) for stack in stacks.values()], facts)


def _entries(stacks: Sequence[Array], facts: Sequence[tuple[Any, ...]]) -> Entries:
    """Restores :class:`Entries` from another process."""
    used, of_width = {}, {}
    for stack in stacks:
        stack.setflags(write=False)
        of_width[stack.shape[1]], used[stack.shape[1]] = stack, 0
    made = []
    for log, block, group, (length, width), *rest in facts:
        begin = used[width]
        used[width] = begin + length
        made.append(Statistic(log, block, group, of_width[width][begin : begin + length], *rest))
    return Entries(made)
