"""Rows by frequency band, from which the spectrum of the noise is estimated; small and mergeable like all statistics.

The discrete cosine transform of a piece of rows (DCT-II) turns first-order autoregressive noise into nearly independent
coefficients whose variance is the noise spectrum; for such noise it is close to the optimal transform (Ahmed, Natarajan, Rao
1974), also with long autocorrelation. Coefficients of neighbouring frequencies share one variance, so that one triangular
factor per row group and band contains all that generalized least squares needs. The factors of logs are merged like those of
any other statistic, so that all logs together take no more memory than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ...linalg import Array, IntArray, triangle
from ...model.dynamic_model import DynamicModel
from ...parallel import each
from ...signals.prepare import PreparedLog
from ...statistics.entries import Layout, expanded, layouts_of
from ...statistics.pieces import row_pieces
from ...statistics.rows import RowFilter

#: Number of bands, from zero frequency on, that are one coefficient of the longest piece wide.
SINGLE = 16
#: Relative width (width over frequency) of the bands above these.
GROWTH = 0.15
#: Approximate number of batches of logs, each processed as one job.
_BATCHES = 16


@dataclass(frozen=True)
class Kind:
    """Kind of a piece: its log, length in rows, sample rate [Hz], and row filter."""

    log: str
    length: int
    rate: float
    row_filter: RowFilter


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Rows by row group and frequency band.

    Attributes:
        layouts: Layout of the columns of each row group's factors.
        factors: Per row group, the factor of each band, all logs merged, shape (≤ width, width) each.
        edges: Frequencies between the bands, shape (bands + 1,) [Hz].
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
        """Number of coefficients of one row group in each band, shape (bands,)."""
        total = np.zeros(self.bands)
        for kind, number in self.pieces.items():
            total += number * np.bincount(self._band(kind), minlength=self.bands)
        return total

    def expected(self, memory: float) -> Array:
        """Returns the mean power of unit noise in each band.

        Args:
            memory: Time constant of the noise's autocorrelation [s]; 0 for white noise.

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

    def _band(self, kind: Kind) -> IntArray:
        return band_of(kind.length, kind.rate / kind.row_filter.factor, self.edges)


def band_edges(length: int, row_rate: float) -> Array:
    """Returns frequency bands for pieces up to a given length.

    Args:
        row_rate: Rows per second [Hz].

    Returns:
        Ascending frequencies [Hz], starting half a coefficient below zero.
    """
    edges = [-0.5]
    while edges[-1] < length - 0.5:
        edges.append(edges[-1] + max(1.0, round(GROWTH * (edges[-1] - SINGLE / 2))))
    return np.asarray(edges) * row_rate / (2 * length)


def band_of(length: int, row_rate: float, edges: Array) -> IntArray:
    """Returns the band of each coefficient of a piece.

    Args:
        row_rate: Rows per second [Hz].
        edges: Shape (bands + 1,) [Hz].

    Returns:
        Indices, shape (length,).
    """
    frequency = np.arange(length) * row_rate / (2 * length)
    return np.clip(np.searchsorted(edges, frequency, side="right") - 1, 0, len(edges) - 2)


def row_autocovariance(length: int, rate: float, row_filter: RowFilter, memory: float) -> Array:
    """Returns the autocovariance of rows whose samples have unit noise with exponential autocorrelation.

    Args:
        rate: Samples per second [Hz].
        memory: Time constant [s]; 0 for white noise.

    Returns:
        Shape (length,), by lag in rows.
    """
    taps = row_filter.taps()
    of_filter = np.correlate(taps, taps, "full")
    begins, longest = np.arange(length) * row_filter.factor, len(taps) - 1
    near = np.searchsorted(begins, longest, side="right")  # rows that share samples with the first
    lag = np.abs(begins[:near, None] + np.arange(-longest, longest + 1))
    if memory <= 0:
        return np.concatenate([(lag == 0) @ of_filter, np.zeros(length - near)])
    apart = np.exp(-np.arange(2 * longest + 1) / (memory * rate)) @ of_filter
    return np.concatenate(
        [np.exp(-lag / (memory * rate)) @ of_filter, np.exp(-(begins[near:] - longest) / (memory * rate)) * apart]
    )


def cosine_power(autocovariance: Array) -> Array:
    """Returns the expected squares of the cosine coefficients (DCT-II, orthonormal) of stationary noise, shape (N,).

    Args:
        autocovariance: Autocovariance by lag, shape (N,).
    """
    c = np.asarray(autocovariance, dtype=float)
    n = len(c)
    lag = np.arange(n)
    spectrum = np.fft.fft(np.vstack([c * (1 - lag / n), c]), 2 * n, axis=1)[:, :n]
    angle = np.pi * lag / n
    power = 2 * spectrum[0].real - c[0]
    power[1:] += 2 * spectrum[1, 1:].imag / (n * np.sin(angle[1:]))
    return np.asarray(power)


def build_spectrum(model: DynamicModel, logs: Sequence[PreparedLog]) -> Spectrum:
    """Transforms the rows of logs in one pass."""
    lengths = [RowFilter(log.conditioned.factor).output_rows(len(s)) for log in logs for s in log.segments]
    longest = max(lengths, default=1)
    edges = band_edges(max(1, min(longest, 4096)), max(log.conditioned.decimate_rate for log in logs))
    size = max(1, len(logs) // _BATCHES)
    batches = [logs[begin : begin + size] for begin in range(0, len(logs), size)]
    of_batches, bands, layouts = each(partial(_by_frequency, model, edges), batches), range(len(edges) - 1), layouts_of(model)
    factors = (
        tuple(
            expanded(triangle(*(factors_of_batch[g][b] for factors_of_batch, _ in of_batches)), layout.expansion) for b in bands
        )
        for g, layout in enumerate(layouts)
    )
    counts = {kind: number for _, pieces in of_batches for kind, number in pieces.items()}
    return Spectrum(layouts, tuple(factors), counts, edges)


def _by_frequency(model: DynamicModel, edges: Array, logs: Sequence[PreparedLog]) -> tuple[list[list[Array]], dict[Kind, int]]:
    """Computes factors of the cosine coefficients of the logs' rows, independent columns only, per row group and band, and the
    number of pieces of each kind."""
    from scipy.fft import dct

    bands = len(edges) - 1
    factors = [[np.zeros((0, len(basis.places) + 1))] * bands for basis in model.compact]
    counts: dict[Kind, int] = {}
    for piece in row_pieces(model, logs, compact=True):
        band = band_of(len(piece), piece.row_rate, edges)
        kind = Kind(piece.log, len(piece), piece.rate, piece.row_filter)
        counts[kind] = counts.get(kind, 0) + 1
        cuts = np.searchsorted(band, np.arange(bands + 1))
        filled = np.flatnonzero(np.diff(cuts)).tolist()
        for of_bands, rows in zip(factors, piece.rows, strict=True):
            cosines = dct(rows, axis=0, norm="ortho")
            for b in filled:
                part = cosines[cuts[b] : cuts[b + 1]]
                stacked = np.vstack([of_bands[b], part]) if len(of_bands[b]) else part
                of_bands[b] = triangle(stacked) if len(stacked) > stacked.shape[1] else stacked
    return factors, counts
