"""Computes the statistic of conditioned logs: rows are streamed into one triangular factor per time block and row group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ..errors import EstimationError
from ..linalg import REFLECTIONS, UNBLOCKED, Array, IntArray, triangle
from ..model.dynamic_model import DynamicModel
from ..parallel import each
from ..progress import Progress
from ..samples import Segment
from ..signals.condition import Conditioned
from ..signals.prepare import PreparedLog
from .rows import RowFilter, filtered_rows, have_room, row_counts
from .statistic import BLOCKS, Layout, Repetitions, Statistic, StatisticSet, blocks_of, layouts_of, merge_all

#: Number of collected rows from which a factor is updated.
_WAITING = 1024
#: Rows per column from which the QR of a triangle on top of the rows is faster than that of the rows alone.
_TALL = 3


class Rows(NamedTuple):
    """Other rows than a model's ``[columns | tau]``: those of an estimator that mixes them, or has instruments.

    Attributes:
        kind: Distinguishes them from the model's own.
        layouts: Layout of each row group.
        pieces: Computes them from model, segment and row filter, in pieces as :func:`filtered_rows` yields them.
    """

    kind: str
    layouts: tuple[Layout, ...]
    pieces: Callable[[DynamicModel, Segment, RowFilter], Iterator[tuple[int, list[Array]]]]


def accumulate(
    model: DynamicModel,
    log: str,
    segments: Sequence[Segment],
    row_filter: RowFilter,
    *,
    blocks: int = BLOCKS,
    conditioning: str | None = None,
    weights: Sequence[Array] | None = None,
    rows: Rows | None = None,
    keep: bool = True,
) -> StatisticSet:
    """Computes the statistic of one log from its segments.

    Args:
        blocks: Number of time blocks, of about equal length.
        conditioning: What logs must have in common to be merged, for the fingerprint; the row filter if None.
        weights: Weights of the samples of each segment, as for :func:`filtered_rows`; all 1 if None.
        rows: Other rows than the model's own, without weights.
        keep: As for :func:`filtered_rows`.

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
    layouts, entries = layouts_of(model) if rows is None else rows.layouts, list[Statistic]()

    def cut() -> Iterator[tuple[int, list[Array], Array]]:
        """The rows of all segments, cut where blocks begin, with their block and the number of rows that they count as."""
        done = 0
        for k, segment in enumerate(segments):
            counts = row_counts(segment, row_filter)
            if rows is None:
                weight = None if weights is None else weights[k]
                pieces_of_segment = filtered_rows(model, segment, row_filter, weight, compact=True, keep=keep)
            else:
                pieces_of_segment = rows.pieces(model, segment, row_filter)
            for first, pieces in pieces_of_segment:
                index = np.arange(first, first + len(pieces[0]))
                block_of = (done + index) * blocks // total
                begins = np.flatnonzero(np.diff(block_of, prepend=-1)).tolist()
                for begin, end in pairwise([*begins, len(index)]):
                    count = counts[index[begin:end]].sum(axis=0)
                    yield int(block_of[begin]), [piece[begin:end] for piece in pieces], count
            done += row_filter.output_rows(len(segment))

    for block, pieces_of_block in groupby(cut(), key=itemgetter(0)):
        factors, counted = list[FactorAccumulator](), np.zeros(len(layouts))
        for _, pieces, count in pieces_of_block:
            factors = factors or [FactorAccumulator(piece.shape[1]) for piece in pieces]
            for factor, piece in zip(factors, pieces, strict=True):
                factor.add(piece)
            counted += count
        entries += [
            Statistic(log, block, layout.group, factor.factor(), max(1, round(number)), segments[0].repeats, layout.expansion)
            for layout, factor, number in zip(layouts, factors, counted.tolist(), strict=True)
        ]
    kind = "" if rows is None else f" {rows.kind}"
    digest = hashlib.sha256(f"{model.fingerprint} {conditioning or row_filter}{kind}".encode()).hexdigest()[:16]
    return StatisticSet(model.names, layouts, tuple(entries), digest)


def _statistic_of(
    model: DynamicModel, blocks: int, rows: Rows | None, keep: bool, log: tuple[str, Conditioned, Sequence[Array] | None]
) -> StatisticSet:
    """Computes the statistic of one log, decimated as it was prepared, from its name, motion and weights of the samples."""
    name, conditioned, weights = log
    common = f"cutoff {conditioned.cutoff:.9g} Hz, velocity {conditioned.velocity_source}"
    row_filter, segments = RowFilter(conditioned.factor), conditioned.segments
    return accumulate(
        model, name, segments, row_filter, blocks=blocks, conditioning=common, weights=weights, rows=rows, keep=keep
    )


def build_statistics(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    *,
    blocks: int | None = None,
    progress: Progress | None = None,
    weights: Mapping[str, Sequence[Array]] | None = None,
    alike: Repetitions | None = None,
    rows: Rows | None = None,
) -> StatisticSet:
    """Computes the statistic of several prepared logs, from which all estimators work.

    Logs may be sampled at different rates; the low-pass and the source of the velocities must agree.

    Args:
        blocks: Time blocks per log; chosen by the number of logs if None (:func:`blocks_of`).
        progress: Called with this step, the number of logs done and their total.
        weights: Log → weights of the samples of its segments, as for :func:`filtered_rows`; all 1 if None.
        alike: What the logs repeat, if they have been compared; fewer blocks are too coarse for that.
        rows: Other rows than the model's own, without weights.

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
    keep = rows is None and have_room(model, logs)
    of_logs = each(partial(_statistic_of, model, blocks or blocks_of(len(logs)), rows, keep), tasks, finished)
    return replace(merge_all(of_logs), repetitions=alike)


def of_columns(statistics: StatisticSet, wide: DynamicModel, model: DynamicModel) -> StatisticSet | None:
    """Returns the statistic of a model as a selection of columns of that of another one, on the same rows.

    Args:
        statistics: That of the other model, a rigid one.
        wide: The other model.

    Returns:
        As of :func:`build_statistics`; None if the other model lacks a term, or the two differ in more than their terms.
    """
    known, references = dict(wide.placed_terms), [one.reference_theta if model.loaded else None for one in (wide, model)]
    alike = [
        one.with_terms(model.terms).with_reference(reference).fingerprint
        for one, reference in zip((wide, model), references, strict=True)
    ]
    if not all(applied in known for applied in model.terms) or alike[0] != alike[1]:
        return None
    in_wide = np.concatenate([np.arange(model.n_inertial), *(np.r_[known[applied]] for applied in model.terms)])
    layouts, kept = layouts_of(model), dict[str, tuple[IntArray, Array | None]]()
    for layout, whole in zip(layouts, statistics.layouts, strict=True):
        place = np.full(len(wide.parameters), -1)
        place[whole.columns[whole.places]] = np.arange(len(whole.columns[whole.places]))
        kept[layout.group] = np.append(place[in_wide[layout.columns[layout.places]]], -1), layout.expansion
    entries = []
    for entry in statistics.entries:
        columns, expansion = kept[entry.group]
        entries.append(replace(entry, factor=triangle(entry.factor[:, columns]), expansion=expansion))
    return replace(
        statistics, names=model.names, layouts=layouts, entries=tuple(entries), fingerprint=f"{statistics.fingerprint} columns"
    )


class FactorAccumulator:
    """Updates a triangular factor with new rows; rows are collected first, so that each update is worth its cost.

    Args:
        width: Number of columns.
        waiting: Number of rows that are collected, at least the width.
    """

    def __init__(self, width: int, waiting: int = _WAITING) -> None:
        self.width, self.waiting = width, max(waiting, width)
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
