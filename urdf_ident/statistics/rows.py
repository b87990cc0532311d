"""The one producer: segments in, triangular factors out, memory flat in the length of the log.

W and tau go through the same zero-phase low-pass and decimation ("parallel filtering"). By default it is a
symmetric FIR filter, whose finite memory lets the regressor be streamed in chunks exactly. The IIR
``decimate`` of the published EMPS protocol needs whole segments and is there for comparison.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..data.conditioning.filters import HALF_WIDTH, decimate
from ..data.prepare import PreparedLog
from ..errors import EstimationError, ModelError
from ..linalg import Array, triangle
from ..model.dynamic_model import DynamicModel
from ..samples import Segment
from .statistic import Layout, Statistic, StatisticSet

#: Time blocks a log is cut into.
BLOCKS = 32
#: Decimated rows that are made at a time.
ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class RowFilter:
    """Zero-phase low-pass and decimation of the rows.

    Attributes:
        factor: Every how many samples a row is kept; 1 leaves the samples as they are.
        kind: "fir": symmetric Kaiser-windowed sinc, half amplitude at 0.4 of the row rate. "chebyshev": the
            zero-phase 8th-order Chebyshev filter of MATLAB's ``decimate``.
    """

    factor: int = 1
    kind: str = "fir"

    def __post_init__(self) -> None:
        if self.factor < 1 or self.kind not in ("fir", "chebyshev"):
            raise ModelError("invalid row filter", got=self, expected="factor >= 1, kind fir | chebyshev")

    def taps(self) -> Array:
        """Weights of the FIR filter, shape (2·half + 1,), summing to 1."""
        if self.factor == 1:
            return np.ones(1)
        half = HALF_WIDTH * self.factor
        k = np.arange(-half, half + 1)
        taps = np.sinc(0.8 * k / self.factor) * np.kaiser(len(k), 6.0)
        return np.asarray(taps / taps.sum())

    def output_rows(self, samples: int) -> int:
        """Rows that a segment gives.

        Args:
            samples: Its length.

        Returns:
            Number of rows.
        """
        if self.kind == "chebyshev" and self.factor > 1:
            return -(-samples // self.factor)
        return max(0, (samples - len(self.taps())) // self.factor + 1)

    def apply(self, x: Array) -> Array:
        """Filters and decimates a whole signal as the rows are.

        Args:
            x: Shape (N, k), any unit.

        Returns:
            Shape (rows, k); a segment shorter than the filter gives none.
        """
        x = np.asarray(x, dtype=float)
        if self.factor == 1:
            return x
        if self.kind == "chebyshev":
            return decimate(x, self.factor)
        rows = self.output_rows(len(x))
        return np.asarray(self.matrix(rows) @ x[: (rows - 1) * self.factor + len(self.taps())]) if rows else x[:0]

    def matrix(self, rows: int) -> Array:
        """The FIR filter and decimation as a banded matrix.

        Args:
            rows: Number of rows it makes.

        Returns:
            Shape (rows, (rows − 1)·factor + len(taps)).
        """
        taps = self.taps()
        out = np.zeros((rows, (rows - 1) * self.factor + len(taps)))
        for k in range(rows):
            out[k, k * self.factor : k * self.factor + len(taps)] = taps
        return out


def filtered_rows(
    model: DynamicModel, segment: Segment, row_filter: RowFilter, weights: Array | None = None
) -> Iterator[tuple[int, list[Array]]]:
    """Rows ``[columns | tau]`` of every row group, filtered and decimated, a bounded piece at a time.

    A weight on a sample acts before the filter, on columns and tau alike, so that one spoilt sample does not spoil all
    rows around it; a row with filter weights h is ``Σ h w x · sqrt(Σ h² / Σ h² w)``, which keeps its noise as it was.
    Rows of M averaged periods count as the M that they stand for: times √M their noise is that of a single one, so that
    they go with the rows of other logs.

    Args:
        model: The dynamic model.
        segment: With measured ``tau``.
        row_filter: The filter, the same for columns and tau.
        weights: Of the samples' squared residuals, shape (N, groups), 0 to 1; all 1 if None.

    Yields:
        Index of the first row in the segment, and per row group an array (rows, k + 1).

    Raises:
        EstimationError: The segment holds no torque.
    """
    if segment.tau is None:
        raise EstimationError("no torque or current in the log", where=segment.log, remedy="name the effort columns")
    plain = _plain_rows if weights is None else partial(_weighted_rows, weights=weights)
    count = np.sqrt(segment.repeats)
    for first, rows in plain(model, segment, row_filter):
        yield first, rows if segment.repeats == 1 else [x * count for x in rows]


def _plain_rows(model: DynamicModel, segment: Segment, row_filter: RowFilter) -> Iterator[tuple[int, list[Array]]]:
    targets = model.row_targets(segment.tau, segment.external)  # type: ignore[arg-type]
    if row_filter.kind == "chebyshev" and row_filter.factor > 1:
        (_, blocks), *_ = model.row_blocks(segment, chunk=len(segment))
        yield 0, [row_filter.apply(np.column_stack([b, targets[:, i]])) for i, b in enumerate(blocks)]
        return
    span = ROWS_AT_ONCE * row_filter.factor
    matrix = row_filter.matrix(ROWS_AT_ONCE)
    kept: list[Array] | None = None
    first = 0
    for part, blocks in model.row_blocks(segment, chunk=span):
        fresh = [np.column_stack([block, targets[part, i]]) for i, block in enumerate(blocks)]
        kept = fresh if kept is None else [np.vstack([a, b]) for a, b in zip(kept, fresh, strict=True)]
        rows = row_filter.output_rows(len(kept[0]))
        while rows > 0:
            m = min(rows, ROWS_AT_ONCE)
            used = (m - 1) * row_filter.factor + len(row_filter.taps())
            F = matrix[:m, :used]
            yield first, ([F @ x[:used] for x in kept] if row_filter.factor > 1 else [x[:used] for x in kept])
            first += m
            kept = [x[m * row_filter.factor :] for x in kept]
            rows -= m


def _weighted_rows(
    model: DynamicModel, segment: Segment, row_filter: RowFilter, weights: Array
) -> Iterator[tuple[int, list[Array]]]:
    if row_filter.kind != "fir":
        raise EstimationError("weights on samples need the FIR row filter", got=row_filter.kind, expected="fir")
    squares, factor = row_filter.taps() ** 2, row_filter.factor
    noise = np.column_stack([np.convolve(w, squares, "valid")[::factor] for w in weights.T]) / squares.sum()
    scale = 1.0 / np.sqrt(np.maximum(noise, 1e-6))  # rows without a sample left weigh nothing
    weighted = _Weighted(model, weights)
    for first, rows in _plain_rows(weighted, segment, row_filter):  # type: ignore[arg-type]
        part = scale[first : first + len(rows[0])]
        yield first, [x * part[:, i : i + 1] for i, x in enumerate(rows)]


class _Weighted:
    """A model whose rows and targets carry the samples' weights."""

    def __init__(self, model: DynamicModel, weights: Array) -> None:
        self.model, self.weights = model, weights

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        return self.model.row_targets(tau, external) * self.weights

    def row_blocks(self, segment: Segment, chunk: int) -> Iterator[tuple[slice, list[Array]]]:
        for part, blocks in self.model.row_blocks(segment, chunk=chunk):
            yield part, [block * self.weights[part, i : i + 1] for i, block in enumerate(blocks)]


def accumulate(
    model: DynamicModel,
    log: str,
    segments: Sequence[Segment],
    row_filter: RowFilter,
    *,
    blocks: int = BLOCKS,
    conditioning: str | None = None,
    progress: Callable[[int], None] | None = None,
    weights: Sequence[Array] | None = None,
) -> StatisticSet:
    """Turns one log's segments into its statistic.

    Args:
        model: The dynamic model.
        log: Name of the log.
        segments: Its pieces.
        row_filter: The filter and decimation of the rows.
        blocks: Time blocks of about equal length.
        conditioning: What logs must have in common to be merged, for the fingerprint; the row filter if None.
        progress: Called with the number of rows done.
        weights: Of the samples of each segment, as for :func:`filtered_rows`; all 1 if None.

    Returns:
        Factors per block and row group.

    Raises:
        EstimationError: Nothing is left after filtering.
    """
    total = sum(row_filter.output_rows(len(segment)) for segment in segments)
    if total == 0:
        longest = max(((len(segment) / segment.rate, segment.rate) for segment in segments), default=(0.0, 1.0))
        raise EstimationError(
            "the log is shorter than the filter", where=log, got=f"{longest[0]:.3g} s of motion in one piece",
            expected=f"{len(row_filter.taps()) / longest[1]:.3g} s for {longest[1] / row_filter.factor:.3g} equations a second",
            remedy="record longer, or raise signals.decimate",
        )  # fmt: skip
    layouts = tuple(Layout(group.name, group.joint, group.columns) for group in model.groups)
    factors: dict[tuple[int, int], tuple[Array, int]] = {}
    done = 0
    for k, segment in enumerate(segments):
        offset = done
        for first, pieces in filtered_rows(model, segment, row_filter, None if weights is None else weights[k]):
            rows = len(pieces[0])
            block_of = (offset + first + np.arange(rows)) * blocks // total
            for block in np.unique(block_of):
                mask = block_of == block
                for g, piece in enumerate(pieces):
                    old, count = factors.get((int(block), g), (piece[:0], 0))
                    factors[int(block), g] = (_absorb(old, piece[mask]), count + int(mask.sum()))
            done = offset + first + rows
            if progress is not None:
                progress(done)
    entries = tuple(
        Statistic(log, block, layouts[g].group, triangle(R), rows, segments[0].repeats)
        for (block, g), (R, rows) in sorted(factors.items())
    )
    digest = hashlib.sha256(f"{model.fingerprint} {conditioning or row_filter}".encode()).hexdigest()[:16]
    return StatisticSet(model.names, layouts, entries, digest)


def _absorb(factor: Array, rows: Array) -> Array:
    """Stacks rows under a factor; it is triangularised once it has grown past a few times its width."""
    stacked = np.vstack([factor, rows])
    return triangle(stacked) if len(stacked) > 4 * stacked.shape[1] else stacked


def build_statistics(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    *,
    blocks: int = BLOCKS,
    progress: Callable[[str, int], None] | None = None,
    weights: Mapping[str, Sequence[Array]] | None = None,
) -> StatisticSet:
    """The statistic of several prepared logs: the one door from data to estimators.

    Logs may be sampled at different rates; what must agree is the low-pass and the source of the velocities.

    Args:
        model: The dynamic model.
        logs: Prepared logs.
        blocks: Time blocks a log.
        progress: Called with the log's name and the number of rows done.
        weights: Log → weights of the samples of its segments, as for :func:`filtered_rows`; all 1 if None.

    Returns:
        Factors per log, block and row group.

    Raises:
        EstimationError: No log, or one without torque.
        FingerprintError: The logs were conditioned differently, or two have the same name.
    """
    total: StatisticSet | None = None
    for log in logs:
        done = None if progress is None else (lambda rows, name=log.name: progress(name, rows))
        row_filter = RowFilter(log.conditioned.factor)
        conditioning = f"cutoff {log.conditioned.cutoff:.9g} Hz, velocity {log.conditioned.velocity_source}"
        part = accumulate(
            model, log.name, log.segments, row_filter, blocks=blocks, conditioning=conditioning, progress=done,
            weights=None if weights is None else weights[log.name],
        )  # fmt: skip
        total = part if total is None else total.merged(part)
    if total is None:
        raise EstimationError("no log to estimate from")
    return total
