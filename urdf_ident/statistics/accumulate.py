"""Computes the statistic of conditioned logs: rows are streamed into one triangular factor per time block and row group."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import EstimationError
from ..linalg import REFLECTIONS, UNBLOCKED, Array, IntArray, triangle
from ..model.dynamic_model import DynamicModel
from ..parallel import each
from ..progress import Progress
from ..samples import Segment
from ..signals.condition import Conditioned
from ..signals.prepare import PreparedLog
from .entries import BLOCKS, Layout, Statistic, blocks_of, layouts_of
from .rows import RowFilter, filtered_rows, row_counts
from .statistic import StatisticSet, merge_all

#: Number of collected rows from which a factor is updated.
_WAITING = 1024
#: Rows per column from which the QR of a triangle on top of the rows is faster than that of the rows alone.
_TALL = 3


def accumulate(
    model: DynamicModel,
    log: str,
    segments: Sequence[Segment],
    row_filter: RowFilter,
    *,
    blocks: int = BLOCKS,
    conditioning: str | None = None,
    weights: Sequence[Array] | None = None,
    joined: Sequence[IntArray] = (),
) -> StatisticSet:
    """Computes the statistic of one log from its segments.

    Args:
        blocks: Number of time blocks, of about equal length.
        conditioning: What logs must have in common to be merged, for the fingerprint; the row filter if None.
        weights: Weights of the samples of each segment, as for :func:`filtered_rows`; all 1 if None.
        joined: Blocks merged into one factor, shape (k,) each, all blocks in order; one factor per block if empty.

    Returns:
        Factors per block and row group.

    Raises:
        EstimationError: Nothing is left after filtering.
    """
    total = sum(row_filter.output_rows(len(segment)) for segment in segments)
    if total == 0:
        longest, rate = max(((len(segment) / segment.rate, segment.rate) for segment in segments), default=(0.0, 1.0))
        raise EstimationError(
            "the log is shorter than the filter",
            where=log,
            got=f"{longest:.3g} s of motion in one piece",
            expected=f"{len(row_filter.taps()) / rate:.3g} s for {rate / row_filter.factor:.3g} equations a second",
            remedy="record longer, or raise signals.decimate",
        )
    layouts, done = layouts_of(model), 0
    factors = BlockFactors(layouts)
    place_of = np.repeat(np.arange(len(joined)), [len(part) for part in joined]) if joined else np.arange(blocks)
    for k, segment in enumerate(segments):
        offset, counts = done, row_counts(segment, row_filter)
        for first, pieces in filtered_rows(model, segment, row_filter, None if weights is None else weights[k], compact=True):
            rows = np.arange(first, first + len(pieces[0]))
            factors.add(place_of[(offset + rows) * blocks // total], pieces, counts[rows])
            done = offset + first + len(rows)
    digest = hashlib.sha256(f"{model.fingerprint} {conditioning or row_filter}".encode()).hexdigest()[:16]
    return StatisticSet(model.names, layouts, factors.entries(log, segments[0].repeats), digest)


class BlockFactors:
    """Accumulates the factors of one log's time blocks, one block after the other.

    Args:
        layouts: Columns of each row group.
    """

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self.layouts = layouts
        self._finished: list[tuple[int, list[Array], Array]] = []  # block, factors and rows of its groups
        self._block, self._open, self._rows = -1, list[FactorAccumulator](), np.zeros(len(layouts))

    def add(self, block_of: IntArray, pieces: Sequence[Array], counts: Array) -> None:
        """Adds rows in the order of their blocks.

        Args:
            block_of: Block of each row, shape (m,), ascending over all calls.
            pieces: Rows of each row group, shape (m, columns of the group) each; not copied.
            counts: Number of rows of each group that each row counts as, shape (m, groups).
        """
        begins = np.flatnonzero(np.diff(block_of, prepend=-1))
        for begin, end in zip(begins, [*begins[1:], len(block_of)], strict=True):
            if block_of[begin] != self._block:
                self._finish()
                self._block, self._open = int(block_of[begin]), [FactorAccumulator(piece.shape[1]) for piece in pieces]
                self._rows = np.zeros(len(pieces))
            for factor, piece in zip(self._open, pieces, strict=True):
                factor.add(piece[begin:end])
            self._rows = self._rows + counts[begin:end].sum(axis=0)

    def _finish(self) -> None:
        if self._open:
            self._finished.append((self._block, [factor.factor() for factor in self._open], self._rows))
        self._open = []

    def entries(self, log: str, repeats: float) -> tuple[Statistic, ...]:
        """Returns the factors of all rows added, by block and row group.

        Args:
            repeats: Number of periods averaged in each row.
        """
        self._finish()
        return tuple(
            Statistic(log, block, layout.group, factor, max(1, round(float(count))), repeats, layout.expansion)
            for block, factors, rows in self._finished
            for layout, factor, count in zip(self.layouts, factors, rows, strict=True)
        )


def statistic_of(
    model: DynamicModel,
    blocks: int,
    log: tuple[str, Conditioned, Sequence[Array] | None],
    joined: Sequence[IntArray] = (),
) -> StatisticSet:
    """Computes the statistic of one log, decimated as it was prepared.

    Args:
        log: Its name, its motion, and weights of the samples of each segment, shape (N, groups).
        blocks: As for :func:`accumulate`.
        joined: As there, shape (k,) each.
    """
    name, made, weights = log
    common = f"cutoff {made.cutoff:.9g} Hz, velocity {made.velocity_source}"
    options: dict[str, Any] = {"conditioning": common, "weights": weights, "joined": joined}
    return accumulate(model, name, made.segments, RowFilter(made.factor), blocks=blocks, **options)


def build_statistics(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    *,
    blocks: int | None = None,
    progress: Progress | None = None,
    weights: Mapping[str, Sequence[Array]] | None = None,
    alike: tuple[tuple[str, ...], ...] | None = None,
) -> StatisticSet:
    """Computes the statistic of several prepared logs, from which all estimators work.

    Logs may be sampled at different rates; the low-pass and the source of the velocities must agree.

    Args:
        blocks: Time blocks per log; chosen by the number of logs if None (:func:`blocks_of`).
        progress: Called with this step, the number of logs done and their total.
        weights: Log → weights of the samples of its segments, as for :func:`filtered_rows`; all 1 if None.
        alike: Names of the logs of each motion, if they have been compared; fewer blocks are too coarse for that.

    Returns:
        Factors per log, block and row group.

    Raises:
        EstimationError: No log.
        LogError: A log without torque.
        FingerprintError: The logs were conditioned differently, or two have the same name.
    """
    if not logs:
        raise EstimationError("no log to estimate from")
    tasks = [(log.name, log.conditioned, None if weights is None else weights[log.name]) for log in logs]
    finished = None if progress is None else lambda done: progress("equations of the logs", done, len(logs))
    made = each(partial(statistic_of, model, blocks or blocks_of(len(logs))), tasks, finished)
    return replace(merge_all(made), motions=alike)


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
        from scipy.linalg import lapack

        rows = np.empty((self.width, self._count)).T  # column-major, as LAPACK expects
        np.concatenate(self._parts, out=rows)
        old = np.zeros((self.width, self.width), order="F") if self._factor is None else np.asfortranarray(self._factor)
        if self.width:  # Householder QR of a triangle on top of rows (Elmroth, Gustavson 2000)
            old, _, _, info = lapack.dtpqrt(0, min(REFLECTIONS, self.width), old, rows, overwrite_a=1, overwrite_b=1)
            if info != 0:
                raise ValueError(f"LAPACK refuses argument {-info}")
        self._factor, self._parts, self._count = old, [], 0
        return old
