"""Repairs of the clock: unit, order, gaps, and missing rows that it does not show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...friction import SIGN_WIDTH
from ...grouping import runs
from ...judgements.catalogue import Id
from ...judgements.judgement import Remedy
from ...linalg import BoolArray
from ...logs.recording import Recording
from ...units import parse_unit, percent
from ..clock import GAP_PERIODS, GAP_SECONDS, device_clock, in_bursts, read_clock
from .examination import TOO_MANY, Examination

#: Least and largest plausible rate of a log [Hz].
_RATES = (4.0, 60_000.0)
#: A clock stands if fewer of the rows increase it, by steps longer than any period.
_STANDS = 0.5


def check_time_unit(state: Examination) -> None:
    """Refuses a clock with implausible intervals, and names a plausible unit."""
    intervals = np.diff(state.recording.time)
    if np.mean(intervals < 0) > TOO_MANY:  # unsorted rows do not give intervals
        return
    steps = intervals[intervals > 0]
    if len(steps) < _STANDS * len(intervals) and (len(steps) == 0 or np.median(steps) > 1 / _RATES[0]):
        often = "does not increase" if len(steps) == 0 else f"increases in only {len(steps)} of {len(intervals) + 1} rows"
        remedy = (
            "export it with all digits, check `log: {columns: {time: ...}}`, or give `log: {rate: <Hz>}` without a time column"
        )
        state.add(Id.CLOCK_STANDS, f"the time column {often}", remedy=remedy)
        return
    typical = float(np.median(steps))
    if 1 / _RATES[1] <= typical <= 1 / _RATES[0]:
        return
    mean = float(intervals.mean())
    if typical < 1 / _RATES[1] and 1 / _RATES[1] <= mean <= 1 / _RATES[0]:
        _refuse_bursts(state, typical, mean)
        return
    rate_of = {name: 1 / (typical * parse_unit(name).factor) for name in ("ms", "us", "ns")}
    guess = next((name for name, rate in rate_of.items() if _RATES[0] * 2 <= rate <= _RATES[1] / 2), None)
    if typical > 1 and abs(typical - 1) < 1e-9:
        guess = None
    counts = "or if it counts samples `log: {rate: <Hz>}` without a time column"
    unit = Remedy(f"in the project file: {{settings}}, {counts}", {"log.units.time": guess})
    if guess is None:
        unit = Remedy(f"state its unit in the project file (`log: {{units: {{time: ...}}}}`), {counts}")
    state.add(Id.TIME_UNIT, f"the time increases by {typical:.4g} per row, which cannot be seconds", remedy=unit)


def _refuse_bursts(state: Examination, typical: float, mean: float) -> None:
    """Refuses a log whose rows were stamped in bursts, with their median and mean interval [s]."""
    state.add(
        Id.CLOCK_UNEVEN,
        f"the rows come in bursts: half of the intervals are below {typical:.2g} s, their mean is {mean:.3g} s",
        remedy="log the device's own time stamps, or give `log: {rate: <Hz>}` without a time column if it samples evenly",
        severity="refused",
    )


def repair_order(state: Examination) -> None:
    """Drops single rows whose stamps are too early, or too late; refuses a clock that runs backwards."""
    time = state.recording.time
    back = np.flatnonzero(np.diff(time) < 0)
    if not len(back):
        return
    late, early = time < np.maximum.accumulate(time), time > np.minimum.accumulate(time[::-1])[::-1]
    lost = min(late, early, key=np.count_nonzero)  # single stamps too early, or single ones too late
    if lost.mean() > 0.01:
        state.add(Id.TIME_BACKWARDS, f"time runs backwards at {len(back)} place(s)", at=back + 1)
        return
    state.drop(lost, Id.TIME_OUT_OF_ORDER, "are out of order in time")


def repair_clock(state: Examination) -> None:
    """Corrects the clock: restores the device's clock if the motion shows it, and drops repeated samples and stamps."""
    recording = state.recording
    device = device_clock(recording.time, recording.position)
    if device is not None:
        state.add(
            Id.CLOCK_JITTER,
            f"the time stamps jitter by {percent(100 * device.spread_before)} % of a period; the motion shows an even clock of "
            f"{1e3 * device.period:.6g} ms behind them (within {percent(100 * device.spread_after)} %), which is used instead",
        )
        if device.lost:
            state.add(
                Id.SAMPLES_LOST,
                f"{device.lost} sample(s) of the device are not in the log; interpolated where few are missing at a time",
            )
        repeated = np.concatenate([[False], np.diff(device.time) <= 0])
        state.recording = replace(recording, time=device.time)
    else:
        if in_bursts(recording.time, recording.position):
            intervals = np.diff(recording.time)
            _refuse_bursts(state, float(np.median(intervals)), float(intervals.mean()))
            return
        repeated = _repeated_rows(recording)
    state.drop(repeated, Id.SAMPLES_REPEATED, "repeat the sample before them while the robot moves", limit=0.5)
    equal = np.concatenate([[False], np.diff(state.recording.time) <= 0])
    state.drop(equal, Id.STAMPS_REPEATED, "have the same time as the row before them", limit=0.5)
    if len(state.recording) >= 10:
        _report_clock(state, resampled=device is None)


def _repeated_rows(recording: Recording) -> BoolArray:
    """Rows that equal the previous one in every signal although the robot moves, shape (N,)."""
    same = np.ones(len(recording) - 1, dtype=bool)
    for _, array in recording.signals():
        same &= (array[1:] == array[:-1]).all(axis=1)
    repeated = np.concatenate([[False], same])
    for begin, end in runs(repeated):  # rows begin … end - 1 repeat row begin - 1
        after = min(end, len(recording) - 1)
        before = max(begin - 2, 0)
        elapsed = recording.time[after] - recording.time[before]
        speed = np.abs(recording.position[after] - recording.position[before]).max() / max(elapsed, 1e-12)
        if speed < SIGN_WIDTH or end == len(recording):
            repeated[begin:end] = False
    return repeated


def _report_clock(state: Examination, *, resampled: bool) -> None:
    """Reports uneven intervals, if the log is resampled for them, and pauses."""
    clock = read_clock(state.recording.time)
    if resampled and not clock.even:
        state.add(
            Id.CLOCK_UNEVEN,
            f"intervals vary by {percent(100 * clock.jitter)} % of a period around {1e3 * clock.period:.4g} ms; "
            f"the log is resampled evenly at {clock.rate:.4g} Hz",
        )
    if len(clock.gaps):
        longest = float(np.diff(state.recording.time)[clock.gaps].max())
        state.add(
            Id.CLOCK_GAPS,
            f"{len(clock.gaps)} pause(s) longer than {max(GAP_PERIODS * clock.period, GAP_SECONDS):.3g} s, the longest "
            f"{longest:.3g} s; the log is split there",
            at=clock.gaps + 1,
        )
