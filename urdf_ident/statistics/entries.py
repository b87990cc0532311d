"""The entries of a statistic set, and how they go to another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg import Array
from ..samples import freeze_arrays
from ..scratch import scratch_folder, stored


@dataclass(frozen=True, eq=False)
class Statistic:
    """One factor of the rows of one (log, block, group).

    Attributes:
        log, block, group: Which rows.
        R: Shape (≤ width, width); with ``RᵀR`` as of the rows, not always triangular.
        rows: Their number.
        repeats: Periods that each is the mean of; such rows are √repeats times their size.
    """

    log: str
    block: int
    group: str
    R: Array
    rows: int
    repeats: float = 1.0

    def __post_init__(self) -> None:
        if self.R.flags.writeable:
            freeze_arrays(self)


class Entries(tuple[Statistic, ...]):
    """Entries of a log, which go to another process as one array of each width instead of hundreds."""

    __slots__ = ()

    def stored(self) -> Entries:
        """Those of a log among many: their factors in the scratch folder, where there is one.

        Returns:
            The same numbers.
        """
        if scratch_folder() is None:
            return self
        make, (stacks, facts) = self.__reduce__()
        return make([stored(stack) for stack in stacks], facts)

    def __reduce__(self) -> tuple[Callable[..., Entries], tuple[Any, ...]]:
        stacks: dict[int, list[Array]] = {}
        facts = []
        for entry in self:
            stacks.setdefault(entry.R.shape[1], []).append(entry.R)
            facts.append((entry.log, entry.block, entry.group, entry.R.shape, entry.rows, entry.repeats))
        return _entries, ([np.vstack(stack) for stack in stacks.values()], facts)


def _entries(stacks: Sequence[Array], facts: Sequence[tuple[str, int, str, tuple[int, int], int, float]]) -> Entries:
    """What :class:`Entries` were in another process."""
    used, of_width = {}, {}
    for stack in stacks:
        stack.setflags(write=False)
        of_width[stack.shape[1]], used[stack.shape[1]] = stack, 0
    made = []
    for log, block, group, (length, width), rows, repeats in facts:
        begin = used[width]
        used[width] = begin + length
        made.append(Statistic(log, block, group, of_width[width][begin : begin + length], rows, repeats))
    return Entries(made)
