"""Repairs that lose nothing: bad rows and cells left out, clocks put right. Too many of them refuse the log."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, quantiles, running_median
from ...model.robot import Robot
from ...scratch import stored
from ..conditioning.clock import GAP_PERIODS, GAP_SECONDS, device_clock, read_clock
from ..recording import Recording
from .findings import Examination

#: Share of bad rows above which a log is refused.
TOO_MANY = 0.05
#: No position, velocity or effort of a robot in SI units is larger.
IMPOSSIBLE = 1e7
_REQUIRED = ("position", "effort")
#: Size of a one-sample spike as a share of the signal's range below which it is left alone.
_SPIKE = {"position": 0.05, "motor_position": 0.05, "velocity": 0.1, "effort": 0.5}
_TIME_UNITS = (("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_RATES = (4.0, 60_000.0)

#: Rows are lost where a step is this much longer than its neighbours, this many times as far from their mean as usual, and this
#: part of that at most to the side; fewest such places, the multiple of which one place is enough, and the jitter of stamps
#: that say anything [periods]. Of 151 sound logs, real and simulated, none has such a place.
_AT_ONCE, _FAR, _ASIDE, _LOST, _JUMP, _STEADY = 1.6, 12.0, 0.3, 2, 5.0, 0.2
#: Fewest samples that make a value a sentinel, and their distance from their neighbours over the signal's usual range.
_SENTINELS, _APART = 5, 0.3


def drop_unreadable_rows(state: Examination) -> None:
    """Leaves out rows without a time or without any position.

    Args:
        state: The log; changed.
    """
    recording = state.recording
    bad = ~np.isfinite(recording.time) | (np.abs(recording.time) > 1e300) | np.isnan(recording.position).all(axis=1)
    _drop(state, bad, "rows-unreadable", "cannot be read (cut short, empty or no numbers)")


def repair_values(state: Examination, robot: Robot) -> None:
    """Leaves out values that cannot be: not finite, far too large, or spikes of one or two samples.

    Args:
        state: The log; changed. Rows whose position or effort is bad go; holes in other signals are bridged.
        robot: Names of the joints.
    """
    changes: dict[str, Any] = {}
    wrenches = dict(state.recording.wrenches)
    bad_rows = np.zeros(len(state.recording), dtype=bool)
    for name, array in state.recording.signals():
        clean = _without_bad_values(state, robot, name, array)
        holes = np.isnan(clean)
        if name in _REQUIRED:
            _refuse_dead(state, robot, name, holes)
            bad_rows |= (holes & ~holes.all(axis=0)).any(axis=1)
            changes[name] = clean
        elif holes.mean() > TOO_MANY or holes.all(axis=0).any():
            state.add("signal-dropped", "repaired", f"{name} is not used: {100 * holes.mean():.3g} % of its values are missing")
            wrenches.pop(name.removeprefix("wrench "), None)
            changes[name] = None
        elif holes.any():
            clean = _bridge(state.recording.time, clean)
            state.add(
                "values-bridged",
                "repaired",
                f"{int(holes.sum())} missing value(s) of {name} were interpolated",
                at=np.flatnonzero(holes.any(axis=1)),
            )
            changes[name] = clean
    for frame in list(wrenches):
        wrenches[frame] = changes.pop(f"wrench {frame}", wrenches[frame])
    known = {item.name for item in fields(Recording)}
    changed = {name: value for name, value in changes.items() if name in known}
    state.recording = replace(state.recording, wrenches=wrenches, **changed)
    if not state.stopped:
        _drop(state, bad_rows, "values-missing", "have a missing or impossible position or effort")


def unwrap_positions(state: Examination, robot: Robot) -> None:
    """Joins positions of revolute joints that jump by a whole turn from one sample to the next.

    Args:
        state: The log; changed.
        robot: Says which joints turn.
    """
    position = state.recording.position
    turns = [np.flatnonzero(np.abs(np.abs(np.diff(x)) - 2 * np.pi) < 0.2 * np.pi) for x in position.T]
    # a spike jumps back at once; a wrapped joint stays there
    wrapped = np.array([len(at) > 0 and not (np.diff(at) == 1).any() for at in turns]) & ~robot.prismatic
    if not wrapped.any():
        return
    fixed = position.copy()
    target = None if state.recording.position_target is None else state.recording.position_target.copy()
    for j in np.flatnonzero(wrapped):
        fixed[:, j] = np.unwrap(position[:, j])
        if target is not None:
            target[:, j] = fixed[:, j] + np.angle(np.exp(1j * (target[:, j] - fixed[:, j])))
        state.add(
            "position-wrapped",
            "repaired",
            f"position jumps by whole turns {len(turns[j])} time(s); joined",
            joint=robot.joints[j],
            at=turns[j] + 1,
        )
    state.recording = replace(state.recording, position=fixed, position_target=target)


def check_time_unit(state: Examination) -> None:
    """Refuses a clock whose intervals are no robot's, and names the unit that would make sense.

    Args:
        state: The log.
    """
    intervals = np.diff(state.recording.time)
    steps = intervals[intervals > 0]
    if len(steps) == 0:
        state.add("clock-stands", "refused", "the time column does not increase", remedy="check `log: {columns: {time: ...}}`")
        return
    typical = float(np.median(steps))
    if 1 / _RATES[1] <= typical <= 1 / _RATES[0]:
        return
    mean = float(intervals.mean())
    if typical < 1 / _RATES[1] and 1 / _RATES[1] <= mean <= 1 / _RATES[0]:
        state.add(
            "clock-uneven",
            "refused",
            f"the rows come in bursts: half of the intervals are below {typical:.2g} s, their mean is {mean:.3g} s",
            remedy="log the device's own time stamps, or give `log: {rate: <Hz>}` without a time column if it samples evenly",
        )
        return
    guess = next((name for name, factor in _TIME_UNITS if _RATES[0] * 2 <= 1 / (typical * factor) <= _RATES[1] / 2), None)
    if typical > 1 and abs(typical - 1) < 1e-9:
        guess = None
    remedy = f"in the project file: `log: {{units: {{time: {guess}}}}}`" if guess else ""
    remedy += f"{', or ' if guess else ''}if it counts samples `log: {{rate: <Hz>}}` without a time column"
    state.add("time-unit", "refused", f"the time goes up by {typical:.4g} a row: not seconds of a robot's log", remedy=remedy)


def repair_order(state: Examination) -> None:
    """Leaves out single rows whose time stamp is out of order; refuses a clock that really runs backwards.

    Args:
        state: The log; changed.
    """
    time = state.recording.time
    keep = np.ones(len(time), dtype=bool)
    first = np.flatnonzero(np.diff(time) < 0)
    if not len(first):
        return
    for _ in range(8):
        index = np.flatnonzero(keep)
        kept = time[index]
        drops = _outliers_of_order(kept)
        if not len(drops):
            break
        keep[index[drops]] = False
    lost = ~keep
    if (np.diff(time[keep]) < 0).any() or lost.mean() > 0.01:
        state.add(
            "time-backwards",
            "refused",
            f"time runs backwards at {len(first)} place(s)",
            at=first + 1,
            remedy="split the file where the clock restarts, or sort it by time",
        )
        return
    _drop(state, lost, "time-out-of-order", "are out of order in time")


def _outliers_of_order(time: Array) -> NDArray[np.int64]:
    """For each step back, the one row without which it would not be there."""
    found: list[int] = []
    last = -1
    for k in (int(index) for index in np.flatnonzero(np.diff(time) < 0)):
        if k <= last:
            continue
        without_late = k + 2 >= len(time) or time[k] <= time[k + 2]  # row k + 1 is out of order
        without_early = k == 0 or time[k - 1] <= time[k + 1]  # row k is out of order
        if without_late:
            found.append(k + 1)
        elif without_early:
            found.append(k)
        last = k + 1
    return np.array(found, dtype=np.int64)


def repair_clock(state: Examination) -> None:
    """Puts the clock right: the device's own clock where the motion shows it, no repeated samples or stamps.

    Args:
        state: The log; changed.
    """
    found = device_clock(state.recording.time, state.recording.position)
    if found is not None:
        state.add(
            "clock-jitter",
            "repaired",
            f"the time stamps jitter by {100 * found.spread_before:.2g} % of a period; the motion shows an even clock of "
            f"{1e3 * found.period:.6g} ms behind them (within {100 * found.spread_after:.2g} %), which is used instead",
        )
        if found.lost:
            state.add("samples-lost", "info", f"{found.lost} sample(s) of the device are not in the log; interpolated")
        repeated = np.concatenate([[False], np.diff(found.time) <= 0])
        state.recording = replace(state.recording, time=found.time)
    else:
        repeated = _repeated_samples(state.recording)
    _drop(state, repeated, "samples-repeated", "repeat the sample before them while the robot moves", limit=0.5)
    equal = np.concatenate([[False], np.diff(state.recording.time) <= 0])
    _drop(state, equal, "stamps-repeated", "have the same time as the row before them", limit=0.5)
    if len(state.recording) < 10:
        return
    clock = read_clock(state.recording.time)
    if found is None and not clock.even:
        state.add(
            "clock-uneven",
            "repaired",
            f"intervals vary by {100 * clock.jitter:.2g} % of a period around {1e3 * clock.period:.4g} ms; "
            f"the log is resampled evenly at {clock.rate:.4g} Hz",
        )
    if len(clock.gaps):
        longest = float(np.diff(state.recording.time)[clock.gaps].max())
        state.add(
            "clock-gaps",
            "repaired",
            f"{len(clock.gaps)} pause(s) longer than {max(GAP_PERIODS * clock.period, GAP_SECONDS):.3g} s, the longest "
            f"{longest:.3g} s; the log is split there",
            at=clock.gaps + 1,
        )


def check_lost_rows(state: Examination) -> None:
    """Warns of rows that are missing although the stamps do not show it: there all joints go a multiple of their way at once.

    Args:
        state: The log, with its clock put right.
    """
    recording = state.recording
    if len(recording) < 100 or read_clock(recording.time).jitter > _STEADY:
        return
    steps = np.diff(recording.position, axis=0) / np.diff(recording.time)[:, None]
    steps = steps / np.maximum(np.median(np.abs(steps), axis=0), 1e-12)
    usual, step = (steps[2:] + steps[:-2]) / 2, steps[1:-1]
    beyond, length = np.linalg.norm(step - usual, axis=1), np.linalg.norm(usual, axis=1)
    times = np.sum(step * usual, axis=1) / np.maximum(length**2, 1e-300)
    aside = np.linalg.norm(step - times[:, None] * usual, axis=1)
    far = beyond > _FAR * max(float(np.median(beyond)), 1e-9)
    lost = np.flatnonzero((times > _AT_ONCE) & far & (aside < _ASIDE * beyond)) + 2
    if len(lost) >= _LOST or (times[lost - 2] > _JUMP).any():
        rows = int(np.maximum(np.round(times[lost - 2]) - 1, 1).sum())
        state.add(
            "samples-lost",
            "warning",
            f"at {len(lost)} place(s) all joints go a multiple of their way within one row: about {rows} rows are missing, and "
            "the time stamps do not show it",
            at=lost,
            remedy="log the device's own time stamps: these count rows, and velocities and accelerations are wrong there",
        )


def _repeated_samples(recording: Recording) -> NDArray[np.bool_]:
    """Rows that equal the one before in every signal although the robot moves there."""
    same = np.ones(len(recording) - 1, dtype=bool)
    for _, array in recording.signals():
        same &= (array[1:] == array[:-1]).all(axis=1)
    repeated = np.concatenate([[False], same])
    if not repeated.any():
        return repeated
    edges = np.flatnonzero(np.diff(np.concatenate([[0], repeated.astype(int), [0]])))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):  # rows begin … end - 1 repeat row begin - 1
        after = min(end, len(recording) - 1)
        before = max(begin - 2, 0)
        elapsed = recording.time[after] - recording.time[before]
        speed = np.abs(recording.position[after] - recording.position[before]).max() / max(elapsed, 1e-12)
        if speed < 0.02 or end == len(recording):
            repeated[begin:end] = False
    return repeated


def _without_bad_values(state: Examination, robot: Robot, name: str, array: Array) -> Array:
    """The signal with NaN where a value is impossible or a spike; one joint at a time, for a sound signal is not held twice."""
    clean: Array | None = None
    for j in range(array.shape[1]):
        joint = robot.joints[j] if array.shape[1] == robot.n and not name.startswith("wrench") else None
        x = array[:, j].copy()
        bad = np.isinf(x) | (np.abs(x) > IMPOSSIBLE)
        if bad.any():
            state.add(
                "values-impossible",
                "repaired",
                f"{int(bad.sum())} value(s) of {name} are impossible (up to {float(np.abs(x[bad]).max()):.3g}); left out",
                joint=joint,
                at=np.flatnonzero(bad),
            )
            x[bad] = np.nan
        if name in _SPIKE:
            stuck = _sentinels(x)
            if stuck.any():
                words = f"{int(stuck.sum())} value(s) of {name} are exactly {x[stuck][0]:.6g} between others; left out"
                state.add(
                    "values-sentinel",
                    "repaired",
                    words,
                    joint=joint,
                    at=np.flatnonzero(stuck),
                    remedy="what does the logger write where it has no value?",
                )
            x[stuck] = np.nan
            spikes = _spikes(x, _SPIKE[name])
            if spikes.any():
                words = f"{int(spikes.sum())} spike(s) of {name} left out"
                state.add("values-spike", "repaired", words, joint=joint, at=np.flatnonzero(spikes))
            x[spikes] = np.nan
            bad |= stuck | spikes
        if bad.any():
            clean = stored(array.copy()) if clean is None else clean
            clean[:, j] = x
    return array if clean is None else clean


def _sentinels(x: Array) -> NDArray[np.bool_]:
    """Single samples far from their neighbours that all hold one and the same value: what a logger writes for none."""
    none = np.zeros(len(x), dtype=bool)
    known = np.isfinite(x)
    if known.sum() < 20:
        return none
    filled = _filled(x, known)
    low, high = quantiles(filled, 0.1, 0.9)
    apart = max(_APART * (high - low), 1e-9)
    away = _away(filled, 7, apart)
    if away is None:
        return none
    far = known & (away > max(apart, 10 * quantiles(away, 0.5)[0]))
    if far.sum() < _SENTINELS:
        return none
    values, counts = np.unique(x[far], return_counts=True)
    value = values[np.argmax(counts)]
    same = counts.max() > max(_SENTINELS, 0.8 * far.sum()) and (far & (x == value)).sum() > 0.3 * (x == value).sum()
    return np.asarray(far & (x == value)) if same else none


def _spikes(x: Array, share: float) -> NDArray[np.bool_]:
    """Samples far from the median of their five neighbours, which all others follow closely."""
    none = np.zeros(len(x), dtype=bool)
    known = np.isfinite(x)
    if known.sum() < 20:
        return none
    filled = _filled(x, known)
    low, high = quantiles(filled, 0.01, 0.99)
    apart = max(share * (high - low), 1e-9)
    away = _away(filled, 5, apart)
    return none if away is None else np.asarray((away > max(apart, 10 * quantiles(away, 0.99)[0])) & known)


def _filled(x: Array, known: NDArray[np.bool_]) -> Array:
    return x if known.all() else np.interp(np.arange(len(x)), np.flatnonzero(known), x[known])


def _away(x: Array, neighbours: int, apart: float) -> Array | None:
    """How far samples are from their neighbours' median, shape (N,); None where steps are too small for any to be apart."""
    if neighbours // 2 * np.abs(np.diff(x)).max() <= apart:
        return None
    return np.asarray(np.abs(x - running_median(x, neighbours)))


def _refuse_dead(state: Examination, robot: Robot, name: str, holes: NDArray[np.bool_]) -> None:
    for j in np.flatnonzero(holes.mean(axis=0) > TOO_MANY):
        share = 100 * holes[:, j].mean()
        state.add(
            "channel-missing",
            "refused",
            f"{share:.3g} % of the {name} values are missing or impossible",
            joint=robot.joints[j],
            at=np.flatnonzero(holes[:, j]),
            remedy="check the column and its sensor, or record the log again",
        )


def _bridge(time: Array, x: Array) -> Array:
    out = x.copy()
    for j in range(x.shape[1]):
        known = np.isfinite(x[:, j])
        out[:, j] = np.interp(time, time[known], x[known, j])
    return out


def _drop(state: Examination, bad: NDArray[np.bool_], code: str, what: str, limit: float = TOO_MANY) -> None:
    """Leaves out rows and says so; more than ``limit`` of them refuse the log."""
    count = int(bad.sum())
    if not count:
        return
    share = count / len(bad)
    words = f"{count} row(s) ({100 * share:.2g} %) {what}"
    if share > limit:
        state.add(
            code, "refused", words, at=np.flatnonzero(bad), remedy="record the log again, or cut out the part that is good"
        )
    else:
        state.add(code, "repaired", f"{words}; left out", at=np.flatnonzero(bad))
    state.recording = state.recording.take(~bad)
