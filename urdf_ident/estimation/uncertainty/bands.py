"""Rows by frequency: what the noise's colour can be judged from, small and mergeable as all statistics.

The discrete cosine transform of a piece of rows (DCT-II) turns noise of a first-order autoregression into nearly
independent coefficients, whose variance is the noise's spectrum; for it this transform is close to the best there is
(Ahmed, Natarajan, Rao 1974), long memory included. Coefficients of neighbouring frequencies share one variance, so that
one triangular factor per row group and band holds all that generalised least squares needs. Factors of logs merge like those of
any other statistic, so that all logs together take no more room than one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ...data.prepare import PreparedLog
from ...linalg import Array, triangle
from ...model.dynamic_model import DynamicModel
from ...parallel import begun
from ...statistics.kept import KeptRows
from ...statistics.pieces import row_pieces
from ...statistics.rows import RowFilter
from ...statistics.statistic import Layout, layouts_of

#: Bands one coefficient of the longest piece wide, from zero frequency on.
SINGLE = 16
#: Width of a band over its frequency, above those.
GROWTH = 0.15
#: Batches of logs whose rows are merged at once, about.
_BATCHES = 16


@dataclass(frozen=True)
class Kind:
    """Pieces that are alike: their log, length in rows, rate of the samples [Hz], and how rows were made from them."""

    log: str
    length: int
    rate: float
    row_filter: RowFilter


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Rows by row group and frequency band.

    Attributes:
        layouts: What the columns of each row group's factors are.
        factors: Of each row group those of its bands, all logs merged, shape (≤ width, width) each.
        pieces: How many pieces of each kind there are.
        edges: Frequencies of the bands, shape (bands + 1,) [Hz].
    """

    layouts: tuple[Layout, ...]
    factors: tuple[tuple[Array, ...], ...]
    pieces: Mapping[Kind, int]
    edges: Array

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the row groups."""
        return tuple(layout.group for layout in self.layouts)

    @property
    def bands(self) -> int:
        """Number of bands."""
        return len(self.edges) - 1

    @cached_property
    def rows(self) -> Array:
        """Coefficients in each band, shape (bands,), of one row group."""
        total = np.zeros(self.bands)
        for kind, number in self.pieces.items():
            total += number * np.bincount(self._band(kind), minlength=self.bands)
        return total

    def expected(self, memory: float) -> Array:
        """Mean power of unit noise in each band.

        Args:
            memory: Time constant of the noise [s]; 0: white from sample to sample.

        Returns:
            Shape (bands,): expected square of a coefficient, for noise of variance 1 on the samples.
        """
        total, known = np.zeros(self.bands), dict[tuple[int, float, RowFilter], Array]()
        for kind, number in self.pieces.items():
            key = (kind.length, kind.rate, kind.row_filter)
            if key not in known:
                power = cosine_power(row_autocovariance(kind.length, kind.rate, kind.row_filter, memory))
                known[key] = np.asarray(np.bincount(self._band(kind), power, self.bands), dtype=float)
            total += number * known[key]
        return total / np.maximum(self.rows, 1.0)

    def _band(self, kind: Kind) -> NDArray[np.intp]:
        return band_of(kind.length, kind.rate / kind.row_filter.factor, self.edges)


def band_edges(length: int, row_rate: float) -> Array:
    """Bands for pieces of at most a length.

    Args:
        length: Rows of the longest piece.
        row_rate: Rows per second [Hz].

    Returns:
        Ascending frequencies [Hz], half a coefficient below zero first.
    """
    edges = [-0.5]
    while edges[-1] < length - 0.5:
        edges.append(edges[-1] + max(1.0, round(GROWTH * (edges[-1] - SINGLE / 2))))
    return np.asarray(edges) * row_rate / (2 * length)


def band_of(length: int, row_rate: float, edges: Array) -> NDArray[np.intp]:
    """Bands of a piece's coefficients.

    Args:
        length: Rows of the piece.
        row_rate: Rows per second [Hz].
        edges: Shape (bands + 1,) [Hz].

    Returns:
        Shape (length,).
    """
    frequency = np.arange(length) * row_rate / (2 * length)
    return np.clip(np.searchsorted(edges, frequency, side="right") - 1, 0, len(edges) - 2)


def row_autocovariance(length: int, rate: float, row_filter: RowFilter, memory: float) -> Array:
    """Autocovariance of rows whose samples carry unit noise with exponential autocorrelation.

    Args:
        length: Number of rows.
        rate: Samples per second [Hz].
        row_filter: How rows are made from samples.
        memory: Time constant [s]; 0: white.

    Returns:
        Shape (length,), by lag in rows.
    """
    taps = row_filter.taps()
    own = np.correlate(taps, taps, "full")
    begins, longest = np.arange(length) * row_filter.factor, len(taps) - 1
    near = np.searchsorted(begins, longest, side="right")  # rows that share samples with the first
    lag = np.abs(begins[:near, None] + np.arange(-longest, longest + 1))
    if memory <= 0:
        return np.concatenate([(lag == 0) @ own, np.zeros(length - near)])
    apart = np.exp(-np.arange(2 * longest + 1) / (memory * rate)) @ own
    return np.concatenate([np.exp(-lag / (memory * rate)) @ own, np.exp(-(begins[near:] - longest) / (memory * rate)) * apart])


def cosine_power(autocovariance: Array) -> Array:
    """Expected squares of the cosine coefficients (DCT-II, orthonormal) of stationary noise.

    Args:
        autocovariance: By lag, shape (N,).

    Returns:
        Shape (N,).
    """
    c = np.asarray(autocovariance, dtype=float)
    n = len(c)
    lag = np.arange(n)
    spectrum = np.fft.fft(np.vstack([c * (1 - lag / n), c]), 2 * n, axis=1)[:, :n]
    angle = np.pi * lag / n
    power = 2 * spectrum[0].real - c[0]
    power[1:] += 2 * spectrum[1, 1:].imag / (n * np.sin(angle[1:]))
    return np.asarray(power)


def build_spectrum(model: DynamicModel, logs: Sequence[PreparedLog], kept: KeptRows | None = None) -> Spectrum:
    """Transforms the rows of logs, in one pass.

    Args:
        logs: Prepared logs.
        kept: Where rows of models before are kept.

    Returns:
        The rows by frequency.
    """
    return begun_spectrum(model, logs, kept)()


def begun_spectrum(model: DynamicModel, logs: Sequence[PreparedLog], kept: KeptRows | None = None) -> Callable[[], Spectrum]:
    """:func:`build_spectrum`, begun: where others work they do so while this process does something else.

    Args:
        logs, kept: As for :func:`build_spectrum`.

    Returns:
        Waits for the rows by frequency.
    """
    lengths = [RowFilter(log.conditioned.factor).output_rows(len(s)) for log in logs for s in log.segments]
    longest = max(lengths, default=1)
    rate = max(log.conditioned.decimate_rate for log in logs)
    edges = band_edges(max(1, min(longest, 4096)), rate)
    size = max(1, len(logs) // _BATCHES)
    batches = [logs[begin : begin + size] for begin in range(0, len(logs), size)]
    return partial(_spectrum, model, edges, begun(partial(_by_frequency, model, edges, kept), batches))


def _spectrum(model: DynamicModel, edges: Array, pending: Callable[[], Sequence[_Bands]]) -> Spectrum:
    made, bands, layouts = pending(), range(len(edges) - 1), layouts_of(model)
    factors = (tuple(some.expanded(triangle(*(own.of(g, b) for own in made))) for b in bands) for g, some in enumerate(layouts))
    counts = {kind: number for own in made for kind, number in own.pieces.items()}
    return Spectrum(layouts, tuple(factors), counts, edges)


@dataclass(frozen=True, eq=False)
class _Bands:
    """Rows of a few logs by frequency.

    Attributes:
        factors: Of each row group those of all bands, one below the other; the columns that others follow from.
        ends: Where each band ends in them, after a zero, shape (groups, bands + 1).
        pieces: How many pieces of each kind there are.
    """

    factors: tuple[Array, ...]
    ends: NDArray[np.intp]
    pieces: dict[Kind, int]

    def of(self, group: int, band: int) -> Array:
        """The factor of one band of a row group, by their numbers."""
        return self.factors[group][self.ends[group, band] : self.ends[group, band + 1]]


def _by_frequency(model: DynamicModel, edges: Array, kept: KeptRows | None, logs: Sequence[PreparedLog]) -> _Bands:
    """The cosine coefficients of the logs' rows as factors by group and band."""
    from scipy.fft import dct

    bands = len(edges) - 1
    factors = [[np.zeros((0, len(some.places) + 1))] * bands for some in model.compact]
    counts: dict[Kind, int] = {}
    for piece in row_pieces(model, logs, compact=True, kept=kept):
        band = band_of(len(piece), piece.row_rate, edges)
        kind = Kind(piece.log, len(piece), piece.rate, piece.row_filter)
        counts[kind] = counts.get(kind, 0) + 1
        cuts = np.searchsorted(band, np.arange(bands + 1))
        filled = np.flatnonzero(np.diff(cuts)).tolist()
        for own, rows in zip(factors, piece.rows, strict=True):
            cosines = dct(rows, axis=0, norm="ortho")
            for b in filled:
                part = cosines[cuts[b] : cuts[b + 1]]
                stacked = np.vstack([own[b], part]) if len(own[b]) else part
                own[b] = triangle(stacked) if len(stacked) > stacked.shape[1] else stacked
    ends = np.array([np.cumsum([0, *map(len, own)]) for own in factors])
    return _Bands(tuple(np.vstack(own) for own in factors), ends, counts)
