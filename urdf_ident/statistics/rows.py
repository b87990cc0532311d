"""Computes the rows of the regression from segments, filtered and decimated, in pieces of bounded size.

W and tau pass through the same zero-phase low-pass and decimation ("parallel filtering"), a symmetric FIR filter, whose finite
memory allows exact streaming of the regressor in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import ModelError
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..samples import Segment
from ..signals.filters import HALF_WIDTH

#: Approximate number of samples that are processed at a time.
AT_ONCE = 2048
#: Number of rows of each signal computed by one matrix product of the filter.
BLOCK = 16


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
        return np.vstack([rows.T for rows in _Decimator(self).rows([x.T])])


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
        made, step = [], BLOCK * self.factor
        before = self.waiting or [np.zeros((len(piece), 0)) for piece in pieces]
        self.waiting = []
        for old, new in zip(before, pieces, strict=True):
            samples = old.shape[1] + new.shape[1]
            total = max(0, (samples - self.length) // self.factor + 1)
            blocks = -(-total // BLOCK)
            x = np.zeros((len(new), max(samples, max(blocks - 1, 0) * step + len(self.table))))
            x[:, : old.shape[1]], x[:, old.shape[1] : samples] = old, new
            seen = np.lib.stride_tricks.sliding_window_view(x, len(self.table), axis=1)[:, ::step][:, :blocks]
            made.append((seen.reshape(-1, len(self.table)) @ self.table).reshape(len(x), -1)[:, :total])
            self.waiting.append(x[:, total * self.factor : samples].copy())
        return made


def filtered_rows(
    model: DynamicModel, segment: Segment, row_filter: RowFilter, weights: Array | None = None, *, compact: bool = False
) -> Iterator[tuple[int, list[Array]]]:
    """Yields the rows ``[columns | tau]`` of every row group, filtered and decimated, in pieces of bounded size.

    Sample weights are applied before the filter, to columns and tau alike, so that one outlier does not affect all rows around
    it; a row with filter coefficients h is ``Σ h w x · sqrt(Σ h² / Σ h² w)``, which preserves its noise level.
    Rows are scaled by :func:`row_scale`.

    Args:
        segment: A segment with measured ``tau``.
        weights: Weights of the samples' squared residuals, 0 to 1, shape (N, groups); all 1 if None.
        compact: Whether to omit the columns that depend linearly on the others (:attr:`.DynamicModel.compact`).

    Yields:
        Index of the first row in the segment, and per row group an array (rows, k + 1).

    Raises:
        LogError: The segment has no torque.
    """
    made = (
        unscaled_rows(model, segment, row_filter, compact)
        if weights is None
        else _weighted_rows(model, segment, row_filter, weights, compact)
    )
    scale = row_scale(segment, row_filter)
    for first, rows in made:
        yield first, scaled(rows, scale[first : first + len(rows[0])])


def scaled(rows: Sequence[Array], scale: Array) -> list[Array]:
    """Returns the rows of each group times their factors.

    Args:
        rows: Per row group, shape (rows, k).
        scale: Shape (rows, groups), or (rows, 1) if the groups have the same factors.
    """
    factors = np.broadcast_to(scale, (len(scale), len(rows))).T
    return [own if (by == 1.0).all() else own * by[:, None] for own, by in zip(rows, factors, strict=True)]


def row_scale(segment: Segment, row_filter: RowFilter) -> Array:
    """Returns the factors of the rows of a segment that give all rows the noise of a moving joint in a single period.

    √M for M averaged periods, and the root of its weight (:func:`row_counts`).

    Args:
        row_filter: The filter and decimation of its rows.

    Returns:
        Shape (rows, groups), or (rows, 1) without weights.
    """
    counts = row_counts(segment, row_filter)
    if segment.weights is None:  # takes no memory
        return np.broadcast_to(np.sqrt(segment.repeats), counts.shape)
    return np.asarray(np.sqrt(segment.repeats * counts))


def row_counts(segment: Segment, row_filter: RowFilter) -> Array:
    """Returns how many rows of a moving joint each row of a segment is worth, its weight.

    Where samples have weights w, their noise has the variance 1/w, and that of a row with the filter coefficients h is
    ``Σ h²/w``.

    Args:
        row_filter: The filter and decimation of its rows.

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
