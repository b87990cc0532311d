"""The columns of an unknown log as time series: clock, smoothed values, difference quotients, and which are rates of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import LogError
from ...linalg import Array, BoolArray, IntArray, white_noise
from ...units import parse_unit
from .recognised import Certainty

#: Window over which values are averaged and differences taken [s].
_WINDOW = 0.04
#: Range of plausible sampling intervals [s].
_SHORTEST, _LONGEST = 5e-5, 0.5
#: Maximum number of windows; long logs are subsampled.
_MOST = 3000
#: Minimum correlation of the difference quotient of a column with the mean of its rate, by how much a later run must exceed an
#: earlier one, and minimum correlation of twins, such as a measured value and its target.
_LINKED, _BETTER, _ALIKE = 0.9, 0.02, 0.98
Block = tuple[int, ...]


@dataclass(frozen=True)
class TimeColumn:
    """Time of a log: its column (or None), its unit, the sampling interval [s], and how certain that is, with the reason."""

    column: int | None
    unit: str
    interval: float
    certainty: Certainty
    reason: str


class Rate(NamedTuple):
    """The run of columns that holds the rates of another: lowest correlation and median scale over the moving joints."""

    block: Block | None = None
    correlation: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Series:
    """All columns, smoothed in the same way.

    The mean of a rate over a window equals the difference quotient of its integral, so that the ``slope`` of one column and
    the ``mean`` of another can be compared without a filter.

    Attributes:
        mean: Window means, shape (M, W).
        slope: Difference quotients over the same windows, shape (M, W) [per s].
        bend: Second difference quotients, shape (M, W) [per s²].
        rough: Shape (W,): standard deviation of the sample-to-sample noise, in the column's unit.
        moves: Shape (W,): True for columns that are not constant.
        like: Shape (W, W): correlation of the columns.
        correlation: Shape (W, W): correlation of the slope of column i with column j.
        scale: Shape (W, W): slope of i per unit of j.
    """

    mean: Array
    slope: Array
    bend: Array
    rough: Array
    moves: BoolArray
    like: Array
    correlation: Array
    scale: Array

    def alike(self, first: Block, second: Block) -> bool:
        """Whether two runs are twins: they correlate for every moving joint."""
        pairs = self._moving(first, second)
        return bool(pairs) and all(abs(self.like[i, j]) > _ALIKE for i, j in pairs)

    def rates(self, among: Sequence[Block]) -> dict[Block, Rate]:
        """Finds for each run of columns the run of its rates; runs without one are absent."""
        stride = {block: block[1] - block[0] if len(block) > 1 else 0 for block in among}
        rate_of: dict[Block, Rate] = {}
        for block in among:
            for other in among:
                if other == block or stride[other] != stride[block] or set(other) & set(block):
                    continue
                moving = self._moving(block, other)
                if 2 * len(moving) < len(block):
                    continue
                worst = min(float(self.correlation[i, j]) for i, j in moving)
                if worst > max(_LINKED, rate_of[block].correlation + _BETTER if block in rate_of else -1.0):
                    rate_of[block] = Rate(other, worst, float(np.median([self.scale[i, j] for i, j in moving])))
        return rate_of

    def _moving(self, first: Block, second: Block) -> list[tuple[int, int]]:
        """Pairs of columns of two runs that both move."""
        return [(i, j) for i, j in zip(first, second, strict=True) if self.moves[i] and self.moves[j]]


def find_clock(values: Array, rate: float | None, named: int | None, unit: str | None) -> TimeColumn:
    """Finds the time column.

    Args:
        values: Shape (N, W).
        rate: Rows per second from the project file [Hz], or None.
        named: The time column according to the header or the project file, or None.
        unit: Its unit according to these, or None.

    Returns:
        The clock; a guess of 100 Hz if there is no time column.
    """
    candidates = [named] if named is not None else []
    if named is None and rate is None:
        candidates = [k for k in range(values.shape[1]) if _rises(values[:, k])]
    for k in candidates:
        column = values[np.isfinite(values[:, k]), k]
        interval = float(np.median(np.diff(column))) if len(column) > 2 else 0.0
        if named is None and interval == 1.0:
            continue  # a row counter
        fits = [name for name in ("s", "ms", "us", "ns") if _SHORTEST <= interval * parse_unit(name).factor <= _LONGEST]
        chosen = unit or (fits[0] if fits else None)
        if chosen is None or interval <= 0:
            continue
        seconds = interval * parse_unit(chosen).factor
        stated = named is not None and bool(unit)
        sure: Certainty = "certain" if stated or len(fits) == 1 else "likely"
        found = "named so in the header" if stated else "increases steadily"
        return TimeColumn(k, chosen, seconds, sure, f"{found}, {1 / seconds:.4g} rows per second if in {chosen}")
    if rate is not None:
        return TimeColumn(None, "s", 1.0 / rate, "certain", f"log.rate {rate:g} Hz is given")
    return TimeColumn(None, "s", 0.01, "guess", "no column looks like time; give the true rate")


def _rises(column: Array) -> bool:
    known = column[np.isfinite(column)]
    if len(known) < 0.95 * len(column) or len(known) < 10:
        return False
    steps = np.diff(known)
    middle = float(np.median(steps))
    return bool(
        middle > 0 and (steps >= 0).mean() > 0.98 and np.quantile(steps, 0.9) < 20 * middle and abs(steps.mean()) < 20 * middle
    )


def smoothed(values: Array, clock: TimeColumn) -> Series:
    """Window means and difference quotients of all columns.

    Args:
        values: Shape (N, W); NaN if unknown.

    Returns:
        The series, of at most :data:`_MOST` windows.

    Raises:
        LogError: There are too few rows.
    """
    half = max(1, round(0.5 * _WINDOW / clock.interval))
    count = len(values)
    if count < 12 * half + 4:
        raise LogError("the log is too short to tell its columns", got=f"{count} rows", expected=f"at least {12 * half + 4}")
    filled = np.where(np.isfinite(values) & (np.abs(values) < 1e12), values, np.nan)
    for k in range(values.shape[1]):
        good = np.isfinite(filled[:, k])
        if good.any() and not good.all():
            filled[:, k] = np.interp(np.arange(count), np.flatnonzero(good), filled[good, k])
    filled = np.nan_to_num(filled)
    time = np.arange(count) * clock.interval
    if clock.column is not None:
        logged = filled[:, clock.column] * parse_unit(clock.unit).factor
        if (np.diff(logged) > 0).mean() > 0.9:
            time = logged - logged[0]
    total = np.vstack([np.zeros((1, values.shape[1])), np.cumsum(filled - filled.mean(axis=0), axis=0)])
    stride = max(1, (count - 6 * half) // _MOST)
    centre = np.arange(3 * half, count - 3 * half, stride)
    span = np.maximum(time[centre + half] - time[centre - half], 0.2 * half * clock.interval)[:, None]
    mean = (total[centre + half + 1] - total[centre - half]) / (2 * half + 1) + filled.mean(axis=0)
    slope = (filled[centre + half] - filled[centre - half]) / span

    def middle(rows: IntArray) -> Array:
        return np.asarray((total[rows + half + 1] - total[rows - half]) / (2 * half + 1))

    wide = np.maximum(0.5 * (time[centre + 2 * half] - time[centre - 2 * half]), 0.2 * half * clock.interval)[:, None]
    bend = (middle(centre + 2 * half) - 2 * middle(centre) + middle(centre - 2 * half)) / wide**2
    # how columns, and their slopes, correlate with each column
    apart, turning = mean - mean.mean(axis=0), slope - slope.mean(axis=0)
    size, speed = np.linalg.norm(apart, axis=0), np.linalg.norm(turning, axis=0)
    moves = size > 1e-9 * np.maximum(np.abs(mean).max(axis=0), 1e-9) * np.sqrt(len(mean))
    spread, fast = np.where(moves, size, np.inf), np.where(moves & (speed > 0), speed, np.inf)
    like, product = (apart.T @ apart) / spread[:, None] / spread, turning.T @ apart
    correlation, scale = product / fast[:, None] / spread, product / spread**2
    return Series(mean, slope, bend, white_noise(filled), moves, like, correlation, scale)


def blocks(width: int, n: int, taken: Sequence[int]) -> list[Block]:
    """Runs of n equally spaced columns, adjacent or interleaved."""
    if n == 1:
        return [(k,) for k in range(width) if k not in taken]
    runs = []
    for stride in range(1, (width - 1) // (n - 1) + 1):
        for start in range(width - stride * (n - 1)):
            block = tuple(range(start, start + stride * n, stride))
            if not set(block) & set(taken):
                runs.append(block)
    return runs
