"""Clocks of logs: sampling rate, gaps, and reconstruction of the device's clock from jittering time stamps.

A log written by a separate computer has that computer's time stamps, which jitter although the device sampled uniformly.
The motion shows how much time passed between two samples (distance over speed). If those intervals are integer multiples
of one period, they give the better clock (:func:`device_clock`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ..errors import LogError
from ..files.sizes import MOST_SAMPLES
from ..grouping import runs
from ..linalg import Array, BoolArray, IntArray, positive, rms
from ..logs.recording import Recording
from .filters import LONG, ahead, differentiate, lowpass

#: A pause longer than this many periods, and longer than GAP_SECONDS, is not bridged by interpolation.
GAP_PERIODS = 5.0
GAP_SECONDS = 0.02
#: Largest deviation of time stamps from a uniform grid that counts as uniform, in periods.
EVEN = 0.02
#: A log holds each sample of the device once if at least this share of its intervals in motion is not zero: intervals at rest
#: are then whole periods too.
_ONCE = 0.99
#: Samples may have arrived in bursts if most intervals are shorter than this fraction of the mean.
_SHORT = 0.5
#: Least number of long intervals that show bursts, and least step of the joints beside them, of its root mean square.
_SEVERAL, _MOVING = 5, 0.3
#: Largest standard deviation of intervals shown by the motion from whole periods; least square of the speed that is tried, over
#: its mean.
_WHOLE, _SLOWEST = 0.1, 1e-4
#: Number of intervals within which one late stamp is made up for; most stamps of fast motion before and after a slow one
#: that are compared.
_BESIDE, _LEVEL = 5, 25
#: Knots kept around a piece of a spline; the influence of those beyond is a factor of 1e-17.
KNOTS = 30


@dataclass(frozen=True)
class Clock:
    """Properties of a column of time stamps.

    Attributes:
        rate: Sampling rate without gaps [Hz].
        period: Its inverse [s].
        jitter: Standard deviation of the intervals without gaps, in periods.
        gaps: Indices k of the pauses between samples k and k + 1, shape (G,).
        even: Whether all stamps between gaps lie on a uniform grid.
    """

    rate: float
    period: float
    jitter: float
    gaps: IntArray
    even: bool


def read_clock(time: Array) -> Clock:
    """Analyses increasing time stamps; time of shape (N,) [s], strictly increasing, N ≥ 2."""
    intervals = np.diff(time)
    typical = float(np.median(intervals))
    gaps = np.flatnonzero(intervals > max(GAP_PERIODS * typical, GAP_SECONDS))
    usual = np.delete(intervals, gaps)
    period = typical
    if len(usual):  # the mean interval, or the common divisor if the intervals are multiples of it (lost samples)
        multiples = np.maximum(np.round(usual / typical), 1)
        on_grid = np.abs(usual - multiples * typical) < EVEN * typical
        period = float(usual[on_grid].sum() / multiples[on_grid].sum() if on_grid.mean() > 0.9 else usual.mean())
    even = True
    for begin, end in bounds(len(time), gaps):
        off = time[begin:end] - (time[begin] + np.arange(end - begin) * period)
        even &= end - begin < 3 or bool(np.abs(off - off.mean()).max() < EVEN * period)
    jitter = float(np.std(usual) / period) if len(usual) else 0.0
    return Clock(1 / period, period, jitter, gaps, even)


def bounds(count: int, gaps: IntArray) -> list[tuple[int, int]]:
    """Sample ranges (begin, end), end exclusive, between gaps; gaps of shape (G,): index of the last sample before each."""
    return list(pairwise([0, *(int(k) + 1 for k in gaps), count]))


@dataclass(frozen=True)
class DeviceClock:
    """The uniform device clock reconstructed from jittering stamps.

    Attributes:
        time: Shape (N,) [s], repaired; equal stamps mark a sample that repeats the previous one.
        period: Sampling period of the device [s].
        spread_before, spread_after: Standard deviation between the intervals estimated from the motion and those of the
            stamps, or of the repaired clock [periods].
        lost: Number of device samples that are missing from the log.
    """

    time: Array
    period: float
    spread_before: float
    spread_after: float
    lost: int


def device_clock(time: Array, position: Array) -> DeviceClock | None:
    """Reconstructs the uniform clock of the device that took the samples.

    The interval before sample k is estimated as ``Δq·v / v·v`` over the joints, with v from the smoothed positions.

    Args:
        time: Shape (N,) [s], not decreasing.
        position: Shape (N, n) [rad or m], finite.

    Returns:
        The clock, or None if the stamps are good enough or the motion gives no evidence of a uniform clock: the
        intervals must lie within 0.1 period (standard deviation) of integer multiples, and within half that of the stamps.
    """
    if len(time) < 100:
        return None
    intervals = np.diff(time)
    few_long = (intervals < 0.05 * intervals.mean()).mean() > 0.2 or np.median(intervals) < _SHORT * intervals.mean()
    clock = _device_clock(time, position, bursts=True) if few_long else None  # the motion tells bursts from pauses
    return clock or _device_clock(time, position, bursts=False)


def _device_clock(time: Array, position: Array, *, bursts: bool) -> DeviceClock | None:
    """The clock of :func:`device_clock`, if the samples arrived in bursts: their mean interval is then the typical one."""
    intervals = np.diff(time)
    typical = float(intervals.mean() if bursts else np.median(intervals))
    usual = intervals[intervals < GAP_PERIODS * typical]
    if typical <= 0 or (np.std(usual) < EVEN * typical and not bursts):
        return None
    shown, energy = _shown_intervals(_smooth_stamps(time, bursts), position)
    fast = energy > 0.1 * energy.mean()
    near = fast & (np.abs(shown / typical - 1) < 0.5)
    if near.sum() < 0.3 * len(shown):
        return None
    period = float(np.median(shown[near]))
    count = np.maximum(np.round(shown / period), 0)
    near_whole = fast & (count <= 3)
    after = float(np.std((shown - count * period)[near_whole]) / period)
    before = float(np.std((shown - intervals)[near_whole]) / period)
    if after > _WHOLE or after > 0.5 * before:
        return None
    period = float(intervals[fast].sum() / count[fast].sum())
    slow = intervals
    if bursts:
        slow = np.where(intervals > 3 * np.percentile(intervals, 99), intervals, period)
    elif (count[fast] > 0).mean() > _ONCE:
        fast = _with_slower(fast, np.where(count <= 3, energy, 0.0), shown / period - count)
        count = np.where(fast, count, 1 + _lost_while_slow(time / _slope(time, count, fast), count, fast))
        period = _slope(time, count, np.ones(len(count), dtype=bool))
        slow = count * period
    repaired = time[0] + np.concatenate([[0.0], np.cumsum(np.where(fast, count * period, slow))])
    if np.abs(repaired - time).max() > max(10 * period, 0.01 * (time[-1] - time[0])):
        return None
    return DeviceClock(repaired, period, before, after, int(np.maximum(count - 1, 0)[fast].sum()))


def _smooth_stamps(time: Array, bursts: bool) -> Array:
    """Increasing stamps, without bursts if there are any, shape (N,) [s]."""
    from scipy.ndimage import uniform_filter1d

    intervals = np.diff(time)
    if not bursts and intervals.min() >= 0.1 * intervals.mean():
        return time
    rows = len(time) / max(int(np.sum(intervals > intervals.mean())), 1)  # of one burst
    stamps = uniform_filter1d(time, max(25, min(round(3 * rows), len(time) // 4)), mode="nearest")
    return np.asarray(np.maximum.accumulate(stamps + 1e-9 * np.arange(len(stamps))))


def _shown_intervals(stamps: Array, position: Array) -> tuple[Array, Array]:
    """Intervals that the motion shows, ``Δq·v / v·v`` [s], and ``v·v``, shape (N - 1,), each joint scaled to its usual speed.

    The velocity is smoothed so that it does not follow the jitter.
    """
    rate = (len(stamps) - 1) / (stamps[-1] - stamps[0])
    grid = np.linspace(stamps[0], stamps[-1], len(stamps))
    even = np.stack([np.interp(grid, stamps, column) for column in position.T], axis=1)
    velocity = differentiate(lowpass(even, rate, min(rate / 8, max(10.0, rate / 50))), rate)
    speed = np.stack([np.interp((stamps[1:] + stamps[:-1]) / 2, grid, column) for column in velocity.T], axis=1)
    step = np.diff(position, axis=0)
    scale = 1 / np.maximum(np.sqrt((speed**2).mean(axis=0)), 1e-12)
    energy = ((speed * scale) ** 2).sum(axis=1)
    return ((step * scale) * (speed * scale)).sum(axis=1) / positive(energy), energy


def _with_slower(fast: BoolArray, energy: Array, off: Array) -> BoolArray:
    """Fast motion, and slower one as long as it shows whole periods.

    Args:
        fast: Intervals of fast motion, shape (N - 1,).
        energy: Square of the speed, 0 where the motion is not tried, shape (N - 1,).
        off: Deviation of the intervals from whole periods, shape (N - 1,).
    """
    least = np.mean(energy)
    while least > _SLOWEST * energy.mean():
        least /= 2
        slower = (energy > least) & ~fast
        if slower.any() and np.std(off[slower]) > _WHOLE:
            break
        fast = fast | slower
    return fast


def _slope(time: Array, count: Array, fast: BoolArray) -> float:
    """Period [s] of a clock by least squares over the rows of each fast motion, whose counts of periods are known."""
    square, product = 0.0, 0.0
    for begin, end in runs(fast):
        passed = np.concatenate([[0.0], np.cumsum(count[begin:end])])
        passed -= passed.mean()
        square += float(passed @ passed)
        product += float(passed @ time[begin : end + 1])
    return product / square


def _lost_while_slow(stamps: Array, count: Array, fast: BoolArray) -> Array:
    """Number of samples that are missing in each interval of slow motion or rest, where a log holds each sample once.

    Stamps [periods] jitter, and a late one is no missing sample: no more samples are missing in a stretch of slow motion than
    the stamps before it and after it are further apart in the median. count, fast: of the intervals, shape (N - 1,).
    """
    late = stamps - np.concatenate([[0.0], np.cumsum(np.where(fast, count, 1.0))])
    longer = np.where(fast, 0.0, np.diff(stamps) - 1)
    around = np.convolve(longer, np.ones(_BESIDE), "same")  # about 0 where a stamp is late: the next interval is shorter
    missing = np.minimum(longer, around)
    lost, slow = np.zeros(len(count)), runs(~fast)
    ends = [0, *(end for _, end in slow)]
    begins = [*(begin for begin, _ in slow), len(count)]
    for k, (begin, end) in enumerate(slow):
        inside = (end - begin) // 2 + 1  # of a stretch at the beginning or end of the log
        before = late[max(ends[k], begin - _LEVEL) : begin + 1] if begin else late[: min(inside, _LEVEL)]
        after = late[end : min(begins[k + 1], end + _LEVEL) + 1] if end < len(count) else late[-min(inside, _LEVEL) :]
        left = max(0, round(float(np.median(after) - np.median(before))))
        for row in begin + np.argsort(-missing[begin:end], kind="stable")[:left]:
            lost[row] = min(max(np.round(missing[row]), 1.0), left)
            left -= lost[row]
    return lost


def in_bursts(time: Array, position: Array) -> bool:
    """Whether a log's joints advance by its rows instead of by its time, as where rows wait in a buffer and are stamped late.

    Most intervals are then short, and a step of the joints within a long one is no longer than the steps beside it; in a pause
    it would be longer by the ratio of the intervals. The nearer of the two, in logarithms, is decisive.

    Args:
        time: Shape (N,) [s], not decreasing.
        position: Shape (N, n) [rad or m], finite.
    """
    intervals = np.diff(time)
    if len(intervals) < 100 or np.median(intervals) > _SHORT * intervals.mean():
        return False
    step = np.linalg.norm(np.diff(position, axis=0) / np.maximum(position.std(axis=0), 1e-9), axis=1)
    beside, around = ((x[2:] + x[:-2]) / 2 for x in (step, intervals))
    # several: a pause in motion may end where it began
    late = (intervals[1:-1] > intervals.mean()) & (beside > _MOVING * rms(beside))
    longer, later = step[1:-1][late] / beside[late], intervals[1:-1][late] / positive(around[late])
    return bool(late.sum() >= _SEVERAL and np.median(longer) < np.sqrt(np.median(later)))


@lru_cache(maxsize=1)  # several checks of a log use it in turn
def even_pieces(recording: Recording) -> tuple[list[Recording], Clock]:
    """Splits a log at its gaps, and resamples it to a uniform grid unless its clock is one.

    Args:
        recording: All rows finite, time strictly increasing.

    Returns:
        The pieces of ten samples or more, and the clock that gives their rate. Resampled ones
        have the signals that a motion is made of: no targets, no temperatures.

    Raises:
        LogError: There are fewer than ten samples or missing values, or time does not increase.
    """
    time = recording.time
    if len(time) < 10 or not (np.diff(time) > 0).all():
        raise LogError(
            "the log has no usable clock",
            where=recording.name,
            got=f"{len(time)} samples",
            expected="ten or more samples with increasing time",
            remedy="run the quality check first",
        )
    holes = [name for name, array in recording.signals() if not np.isfinite(array).all()]
    if holes:
        raise LogError(f"values of {', '.join(holes)} are missing", where=recording.name, remedy="run the quality check first")
    clock = read_clock(time)
    pieces = []
    for begin, end in bounds(len(time), clock.gaps):
        apart = np.count_nonzero(np.diff(time[begin:end]) > 0.2 / clock.rate)
        if end - begin >= 10 and apart >= 3:  # the stamps may be nearly equal
            piece = recording.take(slice(begin, end))
            pieces.append(piece if clock.even else _resample(piece, clock.rate))
    if not pieces:
        raise LogError("the log is all gaps", where=recording.name, got=f"{len(clock.gaps)} pauses", remedy="record it again")
    return pieces, clock


def _resample(part: Recording, rate: float) -> Recording:
    """Interpolates positions and velocities cubically, efforts linearly: they are noisy and must not overshoot."""
    from scipy.interpolate import CubicSpline

    time = part.time
    apart = np.concatenate([[True], np.diff(time) > 0.2 / rate])  # a spline through nearly equal stamps would oscillate
    if not (time[-1] - time[0]) * rate < min(MOST_SAMPLES, 100.0 * len(time) + 1e6):  # one stamp far from all others
        worst = int(np.argmax(np.diff(time)))
        raise LogError(
            "the clock jumps too far to be made even",
            where=f"{part.name}, row {worst + 1}",
            got=f"{time[worst + 1] - time[worst]:.3g} s between two rows",
            expected=f"about {1 / rate:.3g} s",
            remedy="cut the log there, or correct the time stamp",
        )
    grid, knots = np.arange(time[0], time[-1], 1 / rate), np.flatnonzero(apart)

    def cubic(x: Array) -> Array:
        out = np.empty((len(grid), x.shape[1]))
        for begin in range(0, len(grid), LONG):  # distant knots have no influence
            some = grid[begin : begin + LONG]
            first, last = np.searchsorted(time[knots], (some[0], some[-1])) + (-KNOTS, KNOTS)
            near = knots[max(0, first) : last]
            out[begin : begin + LONG] = CubicSpline(time[near], x[near])(some)
        return out

    def linear(x: Array) -> Array:
        return np.column_stack([np.interp(grid, time, column) for column in x.T])

    velocity, motor = (None if x is None else cubic(x) for x in (part.velocity, part.motor_position))
    effort, external = (None if x is None else linear(x) for x in (part.effort, part.external_torque))
    return Recording(
        part.name,
        part.joints,
        grid,
        cubic(part.position),
        velocity,
        effort=effort,
        effort_unit=part.effort_unit,
        motor_position=motor,
        external_torque=external,
    )


def advanced(piece: Recording, rate: float, delay: float) -> Recording:
    """Advances the efforts of a piece by ``delay`` and removes the rows without efforts.

    Args:
        piece: On a uniform grid.
        rate: Samples per second [Hz].
        delay: Lag of the efforts behind the positions [s]; negative if they lead.

    Returns:
        The piece, shorter by the delay.

    Raises:
        LogError: The piece is shorter than the delay.
    """
    if piece.effort is None:
        return piece
    late = math.ceil(abs(delay) * rate)
    if len(piece) < late + 10:
        raise LogError("the log is shorter than the delay of its efforts", where=piece.name, got=f"{len(piece) / rate:.3g} s")
    moved = replace(piece, effort=ahead(piece.effort, delay * rate))
    return moved.take(slice(0, len(piece) - late) if delay > 0 else slice(late, None))
