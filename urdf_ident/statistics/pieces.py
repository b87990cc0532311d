"""A second pass over the rows, for methods that need their order in time or single rows, which factors do not contain.

The rows are computed again by :mod:`.rows` and returned in pieces of bounded length, so that memory does not grow with the
length of a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, IntArray
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..signals.prepare import PreparedLog
from .rows import RowFilter, filtered_rows

#: Maximum number of rows of a piece: half a minute to minutes at the usual row rates.
LONGEST = 4096


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of one log.

    Attributes:
        segment: Index of the segment in the log.
        start: Time of the segment's first sample on the log's clock [s].
        first: Index of the first row in the segment.
        rate: Samples per second of the log [Hz].
        row_filter: Filter and decimation from samples to rows.
        rows: Per row group ``[columns | tau]``, shape (N, k + 1).
    """

    log: str
    segment: int
    start: float
    first: int
    rate: float
    row_filter: RowFilter
    rows: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.rows[0])

    @property
    def row_rate(self) -> float:
        """Rows per second [Hz]."""
        return self.rate / self.row_filter.factor

    @property
    def time(self) -> Array:
        """Times of the rows on the log's clock, at the middle of the samples that the filter uses, shape (N,) [s]."""
        return np.asarray(self.start + self.samples / self.rate)

    @property
    def samples(self) -> IntArray:
        """Indices in the segment of the samples at the middle of the rows, shape (N,)."""
        middle = (len(self.row_filter.taps()) - 1) // 2
        return (self.first + np.arange(len(self))) * self.row_filter.factor + middle


def row_pieces(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    *,
    compact: bool = False,
) -> Iterator[Piece]:
    """Yields the filtered rows of logs in order of time; segments above :data:`LONGEST` rows are divided evenly.

    Args:
        compact: Whether to omit the columns that depend linearly on the others (:attr:`.DynamicModel.compact`).

    Raises:
        EstimationError: No log.
        LogError: A log without torque.
    """
    if not logs:
        raise EstimationError("no log to estimate from")
    widths = [len(basis.places if compact else group.columns) for group, basis in zip(model.groups, model.compact, strict=True)]
    for log in logs:
        row_filter = RowFilter(log.conditioned.factor)
        for index, segment in enumerate(log.segments):
            total = row_filter.output_rows(len(segment))
            if total == 0:
                continue
            length = -(-total // -(-total // LONGEST))
            begin, left = 0, [np.zeros((0, width + 1)) for width in widths]
            for _, new_rows in filtered_rows(model, segment, row_filter, compact=compact):
                left = [np.vstack([old, new]) for old, new in zip(left, new_rows, strict=True)]
                while len(left[0]) >= length or (begin + len(left[0]) == total and len(left[0]) > 0):
                    part = tuple(rows[:length] for rows in left)
                    yield Piece(log.name, index, segment.start, begin, segment.rate, row_filter, part)
                    begin += len(part[0])
                    left = [rows[length:] for rows in left]


def base_rows(piece: Piece, model: DynamicModel, base: BaseParameters) -> list[tuple[IntArray, Array, Array]]:
    """Returns the rows of a piece in terms of base parameters.

    Returns:
        Per row group: indices of the base parameters that act in it, shape (b_g,), their columns, shape (N, b_g), and
        the measured effort, shape (N,).
    """
    targets = [base.place[group.columns] for group in model.groups]
    return [(t[t >= 0], rows[:, :-1][:, t >= 0], rows[:, -1]) for t, rows in zip(targets, piece.rows, strict=True)]
