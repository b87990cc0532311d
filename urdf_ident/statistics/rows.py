"""Computes the rows of the regression from segments, filtered and decimated, in pieces of bounded size.

W and tau pass through the same zero-phase low-pass and decimation ("parallel filtering"), a symmetric FIR filter, whose finite
memory allows exact streaming of the regressor in chunks.

Successive friction laws share most of their columns: the rigid-body columns do not depend on the laws, and a law's columns do
not depend on other laws. Filtered and decimated they are kept as long as their motion (:class:`_Kept`), as far as there is
room; only columns that depend on the rigid torque, which changes with every estimate, are computed again.

Methods that need the order of the rows in time, or single rows, which factors do not contain, take a second pass
(:func:`row_pieces`), in pieces of bounded length, so that memory does not grow with the length of a log.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar
from weakref import finalize

import numpy as np

from ..errors import EstimationError, ModelError
from ..linalg import Array, IntArray
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..samples import Segment
from ..signals.filters import HALF_WIDTH
from ..signals.prepare import PreparedLog

#: Approximate number of samples that are processed at a time.
AT_ONCE = 2048
#: Number of rows of each signal computed by one matrix product of the filter.
BLOCK = 16
#: Maximum number of values kept in all segments together: 128 MB, the rigid columns of 116 000 rows of six axes.
MOST = 16_000_000
#: Number of rows that are enough to choose between models: of two whose squared errors differ by a share γ, N independent rows
#: show the difference with the relative error ``2/√(γ N)``, a tenth of it for the least gain that counts, 1 %.
ENOUGH = 40_000
#: Length of a stretch of a long log, in lengths of the filter, of which one is lost.
_STRETCH = 32
#: Number of values of whole signals that are filtered at a time: more do not fit the processor's cache.
_FILTERED = 100_000
#: Number of values of term columns at the full rate that are filtered at a time.
_TERMS_AT_ONCE = 500_000
#: Maximum number of rows of a piece: half a minute to minutes at the usual row rates.
LONGEST = 4096


@dataclass(frozen=True)
class RowFilter:
    """Zero-phase low-pass and decimation of the rows: a Kaiser-windowed sinc with half amplitude at 0.4 of the row rate.

    Attributes:
        factor: Decimation factor, samples per row; 1 does not filter.
    """

    factor: int = 1

    def __post_init__(self) -> None:
        if self.factor < 1:
            raise ModelError("invalid row filter", got=self, expected="factor >= 1")

    def taps(self) -> Array:
        """Returns the coefficients of the FIR filter, shape (2·half + 1,), with the sum 1."""
        return _taps(self.factor)

    def output_rows(self, samples: int) -> int:
        """Returns the number of rows of a segment."""
        return max(0, (samples - len(self.taps())) // self.factor + 1)

    def apply(self, x: Array) -> Array:
        """Filters and decimates a whole signal in the same way as the rows.

        Args:
            x: Shape (N, k), any unit.

        Returns:
            Shape (rows, k); no rows for a segment shorter than the filter.
        """
        x = np.asarray(x, dtype=float)
        if self.factor == 1:
            return x
        if self.output_rows(len(x)) == 0:
            return x[:0]
        decimator, span = _Decimator(self), self.factor * max(1, _FILTERED // (self.factor * max(1, x.shape[1])))
        return np.vstack([decimator.rows([x[begin : begin + span].T])[0].T for begin in range(0, len(x), span)])


@lru_cache(maxsize=64)
def _taps(factor: int) -> Array:
    if factor == 1:
        return np.ones(1)
    half = HALF_WIDTH * factor
    k = np.arange(-half, half + 1)
    taps = np.sinc(0.8 * k / factor) * np.kaiser(len(k), 6.0)
    taps /= taps.sum()
    taps.setflags(write=False)
    return np.asarray(taps)


@lru_cache(maxsize=64)
def _table(factor: int) -> Array:
    """The filter coefficients of :data:`BLOCK` rows as a matrix, shape (samples, rows)."""
    taps = _taps(factor)
    table = np.zeros(((BLOCK - 1) * factor + len(taps), BLOCK))
    for row, column in enumerate(table.T):
        column[row * factor : row * factor + len(taps)] = taps
    table.setflags(write=False)
    return table


class _Decimator:
    """FIR filter and decimation of signals that arrive in pieces; a few rows at a time are one matrix product.

    Args:
        row_filter: The filter.
    """

    def __init__(self, row_filter: RowFilter) -> None:
        self.factor, self.length = row_filter.factor, len(row_filter.taps())
        self.table = _table(row_filter.factor)
        self.waiting: list[Array] = []

    def rows(self, pieces: Sequence[Array]) -> list[Array]:
        """Returns the rows that can be computed after another piece.

        Args:
            pieces: Signals, shapes (k, samples) each.

        Returns:
            Rows, shapes (k, rows).
        """
        rows_made, step = [], BLOCK * self.factor
        before = self.waiting or [np.zeros((len(piece), 0)) for piece in pieces]
        self.waiting = []
        for old, new in zip(before, pieces, strict=True):
            samples = old.shape[1] + new.shape[1]
            total = max(0, (samples - self.length) // self.factor + 1)
            blocks = -(-total // BLOCK)
            x = np.zeros((len(new), max(samples, max(blocks - 1, 0) * step + len(self.table))))
            x[:, : old.shape[1]], x[:, old.shape[1] : samples] = old, new
            seen = np.lib.stride_tricks.sliding_window_view(x, len(self.table), axis=1)[:, ::step][:, :blocks]
            rows_made.append((seen.reshape(-1, len(self.table)) @ self.table).reshape(len(x), -1)[:, :total])
            self.waiting.append(x[:, total * self.factor : samples].copy())
        return rows_made


def filtered_rows(
    model: DynamicModel,
    segment: Segment,
    row_filter: RowFilter,
    weights: Array | None = None,
    *,
    compact: bool = False,
    keep: bool = True,
) -> Iterator[tuple[int, list[Array]]]:
    """Yields the rows ``[columns | tau]`` of every row group, filtered and decimated, in pieces of bounded size.

    Sample weights are applied before the filter, to columns and tau alike, so that one outlier does not affect all rows around
    it; a row with filter coefficients h is ``Σ h w x · sqrt(Σ h² / Σ h² w)``, which preserves its noise level.
    Rows are scaled by √M for M averaged periods, and by the root of :func:`row_counts`.

    Args:
        segment: A segment with measured ``tau``.
        weights: Weights of the samples' squared residuals, 0 to 1, shape (N, groups); all 1 if None.
        compact: Whether to omit the columns that depend linearly on the others (:attr:`.DynamicModel.compact`).
        keep: Whether to keep the columns for further models, if there is room.

    Yields:
        Index of the first row in the segment, and per row group an array (rows, k + 1).

    Raises:
        LogError: The segment has no torque.
    """
    if weights is not None:
        pieces = _weighted_rows(model, segment, row_filter, weights, compact)
    elif compact and keep and type(model) is DynamicModel and (kept := _kept(model, segment, row_filter)) is not None:
        pieces = _kept_rows(kept, model, segment, row_filter)
    else:
        pieces = unscaled_rows(model, segment, row_filter, compact)
    counts = row_counts(segment, row_filter)
    # all rows get the noise of a moving joint in a single period
    scale = np.sqrt(segment.repeats * counts) if segment.weights is not None or segment.repeats != 1 else None
    for first, rows in pieces:
        if scale is None:
            yield first, rows
        else:
            factors = np.broadcast_to(scale[first : first + len(rows[0])], (len(rows[0]), len(rows))).T
            yield first, [block if (by == 1.0).all() else block * by[:, None] for block, by in zip(rows, factors, strict=True)]


def row_counts(segment: Segment, row_filter: RowFilter) -> Array:
    """Returns how many rows of a moving joint each row of a segment is worth, its weight.

    Where samples have weights w, their noise has the variance 1/w, and that of a row with the filter coefficients h is
    ``Σ h²/w``.

    Returns:
        Shape (rows, groups), 0 to 1; ones of shape (rows, 1) without weights.
    """
    if segment.weights is None:
        return np.broadcast_to(1.0, (row_filter.output_rows(len(segment)), 1))
    squares = row_filter.taps() ** 2
    noise = np.column_stack([np.convolve(1.0 / w, squares, "valid")[:: row_filter.factor] for w in segment.weights.T])
    return np.asarray(squares.sum() / noise)


def unscaled_rows(
    model: DynamicModel, segment: Segment, row_filter: RowFilter, compact: bool, weights: Array | None = None
) -> Iterator[tuple[int, list[Array]]]:
    """Yields the rows of :func:`filtered_rows` before they are scaled.

    Args:
        compact: As for :func:`filtered_rows`.
        weights: Factors of the samples before the filter, shape (N, groups); all 1 if None.

    Yields:
        Index of the first row in the segment, and per row group an array (rows, k + 1).
    """
    options = {"torque": True, **({"compact": True} if compact else {})}
    decimator, first = _Decimator(row_filter), 0
    span = row_filter.factor * max(1, AT_ONCE // row_filter.factor)
    for part, blocks in model.row_blocks(segment, chunk=span, **options):
        pieces = [block.T for block in blocks]
        if weights is not None:
            pieces = [piece * weights[part, i] for i, piece in enumerate(pieces)]
        if row_filter.factor > 1:
            pieces = decimator.rows(pieces)
        rows = pieces[0].shape[1]
        if rows:
            yield first, [piece.T for piece in pieces]
            first += rows


def _weighted_rows(
    model: DynamicModel, segment: Segment, row_filter: RowFilter, weights: Array, compact: bool
) -> Iterator[tuple[int, list[Array]]]:
    squares, factor = row_filter.taps() ** 2, row_filter.factor
    noise = np.column_stack([np.convolve(w, squares, "valid")[::factor] for w in weights.T]) / squares.sum()
    scale = 1.0 / np.sqrt(np.maximum(noise, 1e-6))  # rows whose samples all have weight 0 vanish
    for first, rows in unscaled_rows(model, segment, row_filter, compact, weights):
        part = scale[first : first + len(rows[0])]
        yield first, [x * part[:, i : i + 1] for i, x in enumerate(rows)]


class _Kept:
    """Filtered columns of one motion: of a term, or of the rigid bodies by row group.

    Attributes:
        held: Number of values of all motions.
        of: The arrays of the motion, the positions excepted, with which it is forgotten.
    """

    held: ClassVar[int] = 0

    def __init__(self, of: Sequence[Array | None]) -> None:
        self.size, self.columns, self.of = 0, dict[Hashable, list[Array]](), of

    def keep(self, key: Hashable, arrays: list[Array]) -> list[Array]:
        """Keeps columns if there is room, and returns them."""
        size = sum(array.size for array in arrays)
        if _Kept.held + size <= MOST:
            self.columns[key] = arrays
            self.size += size
            _Kept.held += size
        return arrays

    def __del__(self) -> None:
        _Kept.held -= self.size


#: By the arrays that columns depend on: a segment with other weights or torques has the same columns.
_KEPT: dict[tuple[float, ...], _Kept] = {}


def count_rows(logs: Sequence[PreparedLog]) -> int:
    """Returns the number of rows of each row group in all logs."""
    return sum(RowFilter(log.conditioned.factor).output_rows(len(part)) for log in logs for part in log.segments)


def have_room(model: DynamicModel, logs: Sequence[PreparedLog]) -> bool:
    """Returns whether the rigid columns of all logs can be kept; otherwise none of these logs' are."""
    if type(model) is not DynamicModel:
        return False
    return count_rows(logs) * sum(len(places) for _, places in model.compact_inertial) <= MOST


def evenly_spread(logs: Sequence[PreparedLog]) -> Sequence[PreparedLog]:
    """Returns logs to choose between models on: all, or about :data:`ENOUGH` rows of more, in stretches drawn by lot."""
    every, thinned = math.ceil(count_rows(logs) / ENOUGH), list[PreparedLog]()
    lot = np.random.default_rng(0)  # no motion is in step with it
    if every <= 1:
        return logs
    for log in logs:
        longest, stretches = _STRETCH * len(RowFilter(log.conditioned.factor).taps()), list[Segment]()
        for part in log.segments:
            edges = np.linspace(0, len(part), 1 + math.ceil(len(part) / longest)).astype(int).tolist()
            pairs = pairwise(edges)
            stretches += [replace(part.window(*own), before=part.q[: own[0]] if own[0] else part.before) for own in pairs]
        drawn = np.arange(0, len(stretches), every)
        drawn = np.minimum(drawn + lot.integers(every, size=len(drawn)), len(stretches) - 1)
        thinned.append(log.with_segments(stretches[k] for k in drawn))
    return thinned


def _rigid_key(model: DynamicModel, row_filter: RowFilter) -> Hashable:
    return row_filter, model.robot, tuple((mix.tobytes(), places.tobytes()) for mix, places in model.compact_inertial)


def _kept(model: DynamicModel, segment: Segment, row_filter: RowFilter) -> _Kept | None:
    """What is kept of a segment; None if there is no room for its rigid columns."""
    others = segment.v, segment.a, segment.qm, segment.vm, segment.am, segment.before, segment.reference_torque
    place = (segment.rate, id(segment.q), *map(id, others))
    if place not in _KEPT:
        _KEPT[place] = _Kept(others)
        finalize(segment.q, _KEPT.pop, place, None)
    kept = _KEPT[place]
    size = row_filter.output_rows(len(segment)) * sum(len(places) for _, places in model.compact_inertial)
    return kept if _Kept.held + size <= MOST or _rigid_key(model, row_filter) in kept.columns else None


def _kept_rows(kept: _Kept, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> Iterator[tuple[int, list[Array]]]:
    """The rows of :func:`unscaled_rows`, independent columns only, from kept columns."""
    count = row_filter.output_rows(len(segment))
    if count == 0:
        return
    key = _rigid_key(model, row_filter)
    if (rigid := kept.columns.get(key)) is None:
        pieces = [blocks for _, blocks in unscaled_rows(_bare(model), segment, row_filter, compact=True)]
        rigid = kept.keep(key, [np.vstack(blocks)[:, :-1] for blocks in zip(*pieces, strict=True)])
    terms = _terms(kept, model, segment, row_filter)
    targets = row_filter.apply(model.row_targets(segment.measured, segment.external))
    for begin in range(0, count, AT_ONCE):
        part, rows = slice(begin, begin + AT_ONCE), []
        for g, (group, inertial) in enumerate(zip(model.groups, rigid, strict=True)):
            places = group.columns[group.columns >= model.n_inertial] - model.n_inertial
            scales = group.scale[len(group.columns) - len(places) :]
            beside = (terms[k][part] * s for k, s in zip(places, scales, strict=True))
            rows.append(np.column_stack([inertial[part], *beside, targets[part, g]]))
        yield begin, rows


def _terms(kept: _Kept, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
    """All term columns, filtered, shape (rows,) each, before they are assigned to row groups."""
    # none where they change with every estimate
    keys: list[Hashable] = [None if item.term.loaded else (row_filter, model.drive, item) for item in model.terms]
    made = {k: known for k, key in enumerate(keys) if key is not None and (known := kept.columns.get(key)) is not None}
    missing = [k for k in range(len(keys)) if k not in made]
    whole = model.with_reference_torque(segment) if any(model.terms[k].term.loaded for k in missing) else segment
    size = max(1, _TERMS_AT_ONCE // max(len(segment), 1))
    for begin in range(0, len(missing), size):
        chunk = missing[begin : begin + size]
        items = [model.terms[k] for k in chunk]
        filtered = row_filter.apply(model.term_values(whole, items))
        ends = np.cumsum([len(item.term.symbols) for item in items])[:-1]
        for k, values in zip(chunk, np.split(filtered, ends, axis=1), strict=True):
            made[k] = list(np.ascontiguousarray(values.T))
            if keys[k] is not None:
                kept.keep(keys[k], made[k])
    return [column for k in range(len(keys)) for column in made[k]]


@lru_cache(maxsize=1)
def _bare(model: DynamicModel) -> DynamicModel:
    return model.with_terms([])


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of one log.

    Attributes:
        segment: Index of the segment in the log.
        first: Index of the first row in the segment.
        rate: Samples per second of the log [Hz].
        row_filter: Filter and decimation from samples to rows.
        rows: Per row group ``[columns | tau]``, shape (N, k + 1).
    """

    log: str
    segment: int
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
    keep = have_room(model, logs)
    widths = [len(basis.places if compact else group.columns) for group, basis in zip(model.groups, model.compact, strict=True)]
    for log in logs:
        row_filter = RowFilter(log.conditioned.factor)
        for index, segment in enumerate(log.segments):
            total = row_filter.output_rows(len(segment))
            if total == 0:
                continue
            length = -(-total // -(-total // LONGEST))
            begin, left = 0, [np.zeros((0, width + 1)) for width in widths]
            for _, new_rows in filtered_rows(model, segment, row_filter, compact=compact, keep=keep):
                left = [np.vstack([old, new]) for old, new in zip(left, new_rows, strict=True)]
                while len(left[0]) >= length or (begin + len(left[0]) == total and len(left[0]) > 0):
                    part = tuple(rows[:length] for rows in left)
                    yield Piece(log.name, index, begin, segment.rate, row_filter, part)
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
