"""Spectrum of the noise of the rows: from a model by REML, or from the scatter between repetitions.

The discrete cosine transform of a piece of rows (DCT-II) turns first-order autoregressive noise into nearly independent
coefficients whose variance is the noise spectrum (Ahmed, Natarajan, Rao 1974), also with long autocorrelation. Coefficients of
neighbouring frequencies share one variance, so that one triangular factor per row group and band contains all that generalized
least squares needs; factors of logs are merged, so that all logs together take no more memory than one.

The noise of successive rows is correlated: current loops, temperature, unmodelled friction. Residuals underestimate it, because
the fit absorbs the part that resembles motion. Restricted maximum likelihood (Patterson, Thompson 1971) accounts for this: in
each band the residual's power is divided by the remaining degrees of freedom (rows minus leverage), and white noise plus a
first-order autoregression is fitted to the result, weighted by these. At the frequencies of the motion hardly any remain; the
noise there follows from the shape of the spectrum at other frequencies alone. The time constant can then be uncertain; the log
spectra of all time constants are averaged by likelihood instead of taking the best.

Where logs average repetitions of a motion, the scatter between these gives the noise without a model (Wu 2012): model errors
repeat and are part of the mean. A residual larger than the scatter measures the lack of fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, IntArray, positive, triangle
from ...model.dynamic_model import DynamicModel
from ...parallel import each
from ...samples import ReadOnly
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import FactorAccumulator
from ...statistics.fit import SIGMA_FLOOR, Fit
from ...statistics.least_squares import Solution
from ...statistics.rows import RowFilter, row_pieces
from ...statistics.statistic import expanded, layouts_of

#: Number of bands, from zero frequency on, that are one coefficient of the longest piece wide.
SINGLE = 16
#: Relative width (width over frequency) of the bands above these.
GROWTH = 0.15
#: Rows per column that wait in each of the hundreds of factors, by row group and band, before it is updated.
_WAITING = 4
#: Approximate number of batches of logs, each processed as one job.
_BATCHES = 16
#: Time constants from one row to this fraction of the longest piece are tried: longer ones are indistinguishable from motion.
LONGEST_MEMORY = 1 / 16
MEMORIES = 12
#: The spectra have converged if none changes by more than this fraction; maximum number of iterations.
TOLERANCE, ROUNDS = 1e-3, 40
#: Least variance of a row group over that of its residual in the weighted fit. The likelihood has a degenerate maximum at zero
#: where one parameter explains a row group exactly.
_LEAST_VARIANCE = 1e-6


class Kind(NamedTuple):
    """Kind of a piece of rows: its log, length in rows, sample rate [Hz], and row filter."""

    log: str
    length: int
    rate: float
    row_filter: RowFilter


@dataclass(frozen=True, eq=False)
class NoiseSpectrum(ReadOnly):
    """Noise of the rows.

    Attributes:
        power: Variance of the rows' cosine coefficients, shape (groups, bands) [unit of torque squared].
        freedom: Remaining degrees of freedom, shape (groups, bands).
        memory: Most likely time constant per row group, shape (groups,) [s]; zero without a model.
    """

    power: Array
    freedom: Array
    memory: Array

    @property
    def coloured(self) -> bool:
        """Whether the noise power of some row group in the lowest band is more than twice its average."""
        average = np.sum(self.freedom * self.power, axis=1) / self.freedom.sum(axis=1)
        return bool((self.power[:, 0] > 2 * average).any())


@dataclass(frozen=True, eq=False)
class BandedRows:
    """Rows by row group and frequency band, in coordinates in which the weighted problem is orthonormal.

    Attributes:
        Z: Columns times the solution's root, shape (M, r).
        residual: Residual of the fit, shape (M,) [unit of torque].
        unit: Row group · bands + band of each row, shape (M,).
        weights: Weight of each row group in the fit, shape (groups,) [1/unit of torque].
        solution: The solution of the fit.
        edges: Frequencies between the bands, shape (bands + 1,) [Hz].
        pieces: Number of pieces of each kind.
    """

    Z: Array
    residual: Array
    unit: IntArray
    weights: Array
    solution: Solution
    edges: Array
    pieces: Mapping[Kind, int]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of row groups and of bands."""
        return len(self.weights), len(self.edges) - 1

    @cached_property
    def count(self) -> Array:
        """Number of data rows of one row group in each band, shape (bands,)."""
        total = np.zeros(self.shape[1])
        for kind, number in self.pieces.items():
            total += number * np.bincount(self._band(kind), minlength=len(total))
        return total

    def expected(self, memory: float) -> Array:
        """Returns the mean power of unit noise in each band.

        Args:
            memory: Time constant of the noise's autocorrelation [s]; 0 for white noise.

        Returns:
            Shape (bands,): expected square of a coefficient, for noise of variance 1 on the samples.
        """
        alike = Counter[Kind]()
        for kind, number in self.pieces.items():
            alike[kind._replace(log="")] += number
        total = np.zeros(self.shape[1])
        for kind, number in alike.items():
            power = cosine_power(row_autocovariance(*kind[1:], memory))
            total += number * np.bincount(self._band(kind), power, len(total))
        return total / np.maximum(self.count, 1.0)

    def _band(self, kind: Kind) -> IntArray:
        return band_of(kind.length, kind.rate / kind.row_filter.factor, self.edges)

    def _scores(self, noise: NoiseSpectrum) -> Array:
        """Variance of each row's score in the weighted estimate, shape (M,)."""
        return np.asarray((noise.power * self.weights[:, None] ** 4).reshape(-1)[self.unit])

    def covariance(self, noise: NoiseSpectrum) -> Array:
        """Returns the sandwich covariance of the weighted estimate under this noise, shape (b, b)."""
        return self.solution.sandwich((self.Z * self._scores(noise)[:, None]).T @ self.Z)

    def dof(self, noise: NoiseSpectrum) -> Array:
        """Returns the degrees of freedom of each variance of the sandwich (Satterthwaite), at least 1, shape (b,)."""
        parts = np.zeros((noise.power.size, len(self.solution.root)))
        np.add.at(parts, self.unit, self._scores(noise)[:, None] * (self.Z @ self.solution.root.T) ** 2)
        spread = np.sum(parts**2 / np.maximum(noise.freedom.reshape(-1), 1e-9)[:, None], axis=0)
        return np.asarray(np.maximum(np.sum(parts, axis=0) ** 2 / positive(spread), 1.0))


def banded_rows(model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit, solution: Solution) -> BandedRows:
    """Transforms the rows of logs in one pass.

    Args:
        fit: The fit that the residuals are of.
        solution: Its solution, in whose coordinates the rows are returned.

    Raises:
        EstimationError: No rows.
    """
    lengths = [RowFilter(log.conditioned.factor).output_rows(len(s)) for log in logs for s in log.segments]
    edges = band_edges(max(1, min(max(lengths, default=1), 4096)), max(log.conditioned.decimate_rate for log in logs))
    size = max(1, len(logs) // _BATCHES)
    batches = [logs[begin : begin + size] for begin in range(0, len(logs), size)]
    of_batches = each(partial(_by_band, model, edges), batches)
    factors = []  # per row group and band, in the solution's coordinates, and the residual
    for g, layout in enumerate(layouts_of(model)):
        turned = fit.base.turned(layout.columns, solution.root, fit.params)
        for parts in zip(*(batch[g] for batch, _ in of_batches), strict=True):
            factors.append(expanded(triangle(*parts), layout.expansion) @ turned)
    rows = np.vstack(factors)
    if not len(rows):
        raise EstimationError("no rows to judge the noise from")
    weights, used = np.array([fit.row_weights[group.name] for group in model.groups]), Counter[Kind]()
    for _, pieces in of_batches:
        used.update(pieces)
    unit = np.repeat(np.arange(len(factors)), [len(R) for R in factors])
    return BandedRows(rows[:, :-1], rows[:, -1], unit, weights, solution, edges, used)


def _by_band(model: DynamicModel, edges: Array, logs: Sequence[PreparedLog]) -> tuple[list[list[Array]], Counter[Kind]]:
    """Factors of the cosine coefficients of some logs, per row group and band, and the number of pieces of each kind."""
    from scipy.fft import dct

    bands, pieces = len(edges) - 1, Counter[Kind]()
    widths = [len(basis.places) + 1 for basis in model.compact]
    factors = [[FactorAccumulator(width, _WAITING * width) for _ in range(bands)] for width in widths]
    for piece in row_pieces(model, logs, compact=True):
        pieces[Kind(piece.log, len(piece), piece.rate, piece.row_filter)] += 1
        cuts = np.searchsorted(band_of(len(piece), piece.row_rate, edges), np.arange(bands + 1))
        for of_group, rows in zip(factors, piece.rows, strict=True):
            cosines = dct(rows, axis=0, norm="ortho")
            for b in np.flatnonzero(np.diff(cuts)).tolist():
                of_group[b].add(cosines[cuts[b] : cuts[b + 1]].copy())  # not the whole piece
    return [[factor.factor() for factor in of_group] for of_group in factors], pieces


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
    power = 2 * spectrum[0].real - c[0]
    power[1:] += 2 * spectrum[1, 1:].imag / (n * np.sin(np.pi * lag[1:] / n))
    return np.asarray(power)


def fit_noise(rows: BandedRows) -> NoiseSpectrum:
    """Fits white noise plus a first-order autoregression to the residuals by REML."""
    from scipy.linalg import cho_factor, cho_solve

    groups, bands = rows.shape
    longest = max(kind.length / (kind.rate / kind.row_filter.factor) for kind in rows.pieces)
    shortest = min(kind.row_filter.factor / kind.rate for kind in rows.pieces)
    memories = np.geomspace(shortest, max(LONGEST_MEMORY * longest, 2 * shortest), MEMORIES)
    shapes = np.array([rows.expected(0.0), *(rows.expected(m) for m in memories)])
    start = np.bincount(rows.unit // bands, rows.residual**2, groups) / max(rows.count.sum(), 1)
    scaled = start > SIGMA_FLOOR**2 * start.max()  # others hold rounding errors: the effort of a joint is zero
    power = np.repeat(np.where(scaled, start, 1.0)[:, None], bands, axis=1)  # 1 without noise, as statistics.fit.group_sigma
    best = np.zeros(groups, dtype=np.intp)
    for turn in range(ROUNDS):
        # residual squares and leverage per row group and band, from generalized least squares with these variances
        weighted = rows.Z / power.reshape(-1)[rows.unit][:, None]
        factor = cho_factor(weighted.T @ rows.Z)
        shift, inverse = cho_solve(factor, weighted.T @ rows.residual), cho_solve(factor, np.eye(rows.Z.shape[1]))
        squares = np.bincount(rows.unit, (rows.residual - rows.Z @ shift) ** 2, power.size).reshape(power.shape)
        leverage = np.bincount(rows.unit, np.sum((weighted @ inverse) * rows.Z, axis=1), power.size).reshape(power.shape)
        freedom = np.maximum(rows.count - leverage, 1e-6)
        updated = power.copy()
        for g in np.flatnonzero(scaled):
            shape, best[g] = _fit_shapes(squares[g] / freedom[g], freedom[g] * (rows.count > 0), shapes, power[g])
            updated[g] = np.maximum(shape, _LEAST_VARIANCE * start[g])
        change = float(np.abs(np.log(updated / power)).max())
        power = updated if turn < ROUNDS // 2 else np.sqrt(updated * power)  # damping, as two estimates may alternate
        if change < TOLERANCE:
            break
    return NoiseSpectrum(power, rows.count - leverage, memories[best])


def _fit_shapes(observed: Array, freedom: Array, shapes: Array, power: Array) -> tuple[Array, int]:
    """Fits the spectrum of one row group to its power per band, which is χ²-distributed with the given degrees of freedom.

    Args:
        observed: Unbiased power, shape (bands,).
        freedom: Degrees of freedom, shape (bands,).
        shapes: Spectra of unit noise, white first, shape (memories + 1, bands).
        power: Current estimate, shape (bands,).

    Returns:
        The spectrum, and the index of the most likely time constant.
    """
    floor = 1e-6 * float(np.average(observed, weights=np.maximum(freedom, 1e-12)))
    white, coloured = shapes[0], shapes[1:]
    estimate = np.repeat(power[None], len(coloured), axis=0)
    for _ in range(8):
        # least squares with two non-negative unknowns for each time constant, from the normal equations
        weight = freedom / estimate**2
        aa, ab, bb = weight @ white**2, np.sum(weight * white * coloured, axis=1), np.sum(weight * coloured**2, axis=1)
        ay, by = weight @ (white * observed), np.sum(weight * coloured * observed, axis=1)
        det, none = positive(aa * bb - ab**2), np.zeros(len(bb))
        share = np.column_stack([(bb * ay - ab * by) / det, (aa * by - ab * ay) / det])
        first, second = (np.column_stack(x) for x in ((np.maximum(ay / aa, 0.0), none), (none, np.maximum(by / bb, 0.0))))
        better = np.where((ay * first[:, 0] > by * second[:, 1])[:, None], first, second)
        share = np.where(np.all(share >= 0, axis=1, keepdims=True), share, better)
        updated = np.maximum(share[:, :1] * white + share[:, 1:] * coloured, floor)
        change = np.abs(np.log(updated / estimate)).max()
        estimate = updated
        if change < TOLERANCE:
            break
    cost = 0.5 * np.sum(freedom * (np.log(estimate) + observed / estimate), axis=1)
    weight = np.exp(cost.min() - cost)
    return np.exp((weight / weight.sum()) @ np.log(estimate)), int(np.argmin(cost))


def repetition_count(logs: Sequence[PreparedLog]) -> int:
    """Returns the number of periods in averaged logs; logs that were not averaged count 0."""
    return sum(log.conditioned.averaged.count for log in logs if log.conditioned.averaged is not None)


def scatter_sigma(model: DynamicModel, logs: Sequence[PreparedLog]) -> dict[str, float]:
    """Returns the noise of the rows of a single period, from the scatter between periods (Wu 2012; docs/theory.md §7).

    Args:
        logs: Averaged logs; others are ignored.

    Returns:
        Row group → σ [unit of torque].

    Raises:
        EstimationError: No log repeats its motion.
    """
    squares, freedom = np.zeros(len(model.groups)), 0.0
    for _, rows, share in _scatter_rows(model, logs):
        squares += np.sum(rows**2, axis=0)
        freedom += share * len(rows)
    if freedom == 0:
        raise EstimationError(
            "maximum likelihood takes the noise from repetitions, and no log repeats its motion",
            where=", ".join(log.name for log in logs),
            expected="three or more periods, or signals.periodic: on",
            remedy="record several periods of one motion, or use estimation.method: wls",
        )
    return {group.name: float(np.sqrt(total / freedom)) for group, total in zip(model.groups, squares, strict=True)}


def lack_of_fit(model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit) -> float:
    """Returns the variance of the fit's residual over that of the noise between repetitions, mean over the row groups."""
    sigma = scatter_sigma(model, logs)
    return float(np.mean([(fit.sigma[group] / value) ** 2 if value > 0 else np.inf for group, value in sigma.items()]))


def scatter_noise(model: DynamicModel, logs: Sequence[PreparedLog], rows: BandedRows) -> NoiseSpectrum:
    """Returns the power of the noise in each frequency band from the scatter between repetitions."""
    from scipy.fft import dct

    squares, freedom = np.zeros(rows.shape), np.zeros(rows.shape[1])
    for log, deviations, share in _scatter_rows(model, logs):
        length = max(kind.length for kind in rows.pieces if kind.log == log.name)
        band = band_of(length, log.conditioned.decimate_rate, rows.edges)
        for begin in range(0, len(deviations) - length + 1, length):
            cosines = dct(deviations[begin : begin + length], axis=0, norm="ortho") ** 2
            for own, column in zip(squares, cosines.T, strict=True):
                own += np.bincount(band, column, len(own))
            freedom += share * np.bincount(band, minlength=len(freedom))
    bands = np.arange(len(freedom))
    apart = np.abs(bands - bands[:, None])
    near = np.argmin(np.where(freedom > 0, apart, np.inf), axis=1)  # bands without rows take the noise of the nearest
    power = (squares / positive(freedom))[:, near]
    return NoiseSpectrum(power, np.tile(freedom[near], (len(squares), 1)), np.zeros(len(squares)))


def _scatter_rows(model: DynamicModel, logs: Sequence[PreparedLog]) -> Iterator[tuple[PreparedLog, Array, float]]:
    """Yields each log with the filtered deviations of its periods from the mean, shape (rows, groups), and the degrees of
    freedom per row."""
    for log in logs:
        averaged = log.conditioned.averaged
        if averaged is not None:
            rows = RowFilter(log.conditioned.factor).apply(model.row_targets(averaged.deviation.reshape(-1, model.n)))
            yield log, rows, (averaged.count - 1) / averaged.count
