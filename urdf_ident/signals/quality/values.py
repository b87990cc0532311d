"""Lossless repairs of values: bad rows and cells are dropped, positions that wrap are joined.

Too many bad rows refuse the log.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...grouping import equal_runs
from ...judgements.catalogue import Id
from ...linalg import Array, BoolArray, IntArray
from ...logs.recording import IMPOSSIBLE
from ...units import joint_units
from ..clock import GAP_PERIODS
from ..resolution import count_of
from .examination import TOO_MANY, Examination

_REQUIRED = ("position", "effort")
#: Size of a one-sample spike, as a fraction of the signal's range, below which it is kept.
_SPIKE = {"position": 0.05, "motor_position": 0.05, "velocity": 0.1, "effort": 0.5}
#: Minimum number of samples of a sentinel value, and their distance from their neighbours over the signal's usual range.
_SENTINELS, _APART = 5, 0.3
#: Least distance from the neighbours [rad or m]: the encoder of a resting joint jumps between counts (12 bits: 0.0015 rad).
_RESOLUTION = {"position": 2e-3}
#: Least step to and from such a value near the motion, over the 90 % quantile of all steps.
_SUDDEN = 5.0
#: A signal has rows of its own if it has this many, and fewer than this share of them hold the positions, or conversely.
_OWN, _SHARED = 100, 0.5
#: Largest step of a position that wraps, times two, over its range.
_STEPS = 0.2


def zero_vanishing(state: Examination) -> None:
    """Takes values whose squares are no longer numbers for 0: memory that a driver never wrote, of 1e-308, say."""
    recording, least = state.recording, float(np.sqrt(np.finfo(float).tiny))
    zeroed = {
        name: np.where(np.abs(array) < least, 0.0, array)
        for name, array in recording.signals()
        if ((array != 0) & (np.abs(array) < least)).any()
    }
    if zeroed:
        state.recording = recording.with_signals(zeroed)
        state.add(Id.NOTE, f"values of {', '.join(zeroed)} below {least:.0e} are taken for 0")


def join_rows(state: Examination) -> None:
    """Joins signals whose rows hold no positions, as in an outer join of topics with separate clocks.

    The rows of the positions are kept, whose accelerations interpolation would spoil.
    """
    recording, time = state.recording, state.recording.time

    def complete(array: Array) -> BoolArray:
        """Rows in which no column is missing that has values at all, shape (N,)."""
        known = np.isfinite(array)
        return np.asarray(known[:, known.any(axis=0)].all(axis=1) & known.any())

    rows, signals, apart = complete(recording.position), dict(recording.signals()), dict[str, BoolArray]()
    for name, array in signals.items():
        others = complete(array)
        fewer = min(rows.sum(), others.sum())
        if fewer >= _OWN and (rows & others).sum() < _SHARED * fewer:
            apart[name] = others
    if not apart or not np.isfinite(time).all() or (np.diff(time) < 0).any():
        return
    joined: dict[str, Array] = {}
    for name in apart:  # interpolated at the times of the positions, but not across gaps: NaN there
        array = signals[name]
        joined[name] = np.full((int(rows.sum()), array.shape[1]), np.nan)
        for j in np.flatnonzero(np.isfinite(array).any(axis=0)):
            known = np.isfinite(array[:, j])
            stamps = time[known]
            gap = np.diff(stamps, prepend=-np.inf, append=np.inf)[np.searchsorted(stamps, time[rows])]
            near = (gap <= GAP_PERIODS * np.median(np.diff(stamps))) | np.isin(time[rows], stamps)
            joined[name][near, j] = np.interp(time[rows][near], stamps, array[known, j])
    words = ", ".join(f"{name} in {int(others.sum())}" for name, others in apart.items())
    state.recording = recording.take(rows).with_signals(joined)
    state.add(
        Id.SIGNALS_JOINED,
        f"positions are in {int(rows.sum())} of {len(rows)} rows, {words} others: signals with separate clocks; "
        "interpolated at the times of the positions",
    )


def drop_unreadable(state: Examination) -> None:
    """Drops rows without a time or without any position."""
    recording = state.recording
    bad = ~np.isfinite(recording.time) | (np.abs(recording.time) > 1e300) | np.isnan(recording.position).all(axis=1)
    state.drop(bad, Id.ROWS_UNREADABLE, "cannot be read (too few or too many cells, empty, or no numbers)")


def repair(state: Examination) -> None:
    """Drops impossible values: not finite, far too large, values of a logger for missing ones, or spikes of one or two samples.

    Rows with a bad position or effort are dropped; gaps in other signals are interpolated.
    """
    recording, joints = state.recording, state.robot.joints
    changes = dict[str, Array | None]()
    bad_rows = np.zeros(len(recording), dtype=bool)
    for name, array in recording.signals():
        clean = _without_impossible(state, name, array)
        holes = np.isnan(clean)
        if name in _REQUIRED:
            for j in np.flatnonzero(holes.mean(axis=0) > TOO_MANY):
                words = f"{100 * holes[:, j].mean():.3g} % of the {name} values are missing or impossible"
                state.add(Id.CHANNEL_MISSING, words, joint=joints[j], at=np.flatnonzero(holes[:, j]))
            bad_rows |= (holes & ~holes.all(axis=0)).any(axis=1)
            changes[name] = clean
        elif holes.mean() > TOO_MANY or holes.all(axis=0).any():
            state.add(Id.SIGNAL_DROPPED, f"{name} is not used: {100 * holes.mean():.3g} % of its values are missing")
            changes[name] = None
        elif holes.any():
            words = f"{int(holes.sum())} missing value(s) of {name} were interpolated"
            state.add(Id.VALUES_BRIDGED, words, at=np.flatnonzero(holes.any(axis=1)))
            filled = [
                np.interp(recording.time, recording.time[~hole], x[~hole]) for hole, x in zip(holes.T, clean.T, strict=True)
            ]
            changes[name] = np.column_stack(filled)
    state.recording = recording.with_signals(changes)
    if not state.stopped:
        state.drop(bad_rows, Id.VALUES_MISSING, "have a missing or impossible position or effort")


def _without_impossible(state: Examination, name: str, array: Array) -> Array:
    """A signal with NaN for impossible values, each kind of which is reported; the same array if there are none."""
    joints, clean = state.robot.joints, array
    for k in range(array.shape[1]):
        joint = joints[k] if array.shape[1] == len(joints) and not name.startswith("wrench") else None
        x = array[:, k].copy()
        bad = np.isinf(x) | (np.abs(x) > IMPOSSIBLE)
        if bad.any():
            reached = float(np.abs(x[bad]).max())
            words = f"{int(bad.sum())} value(s) of {name} are impossible (up to {reached:.3g}); left out"
            state.add(Id.VALUES_IMPOSSIBLE, words, joint=joint, at=np.flatnonzero(bad))
            x[bad] = np.nan
        if name in _SPIKE:
            least = _RESOLUTION.get(name, 1e-9)
            stuck = (_sentinel_runs if name.endswith("position") else _sentinels)(x, least)
            if stuck.any():
                words = f"{int(stuck.sum())} value(s) of {name} are exactly {x[stuck][0]:.6g} between others; left out"
                state.add(Id.VALUES_SENTINEL, words, joint=joint, at=np.flatnonzero(stuck))
                x[stuck] = np.nan
            spikes = _spikes(x, _SPIKE[name], least)
            if spikes.any():
                words = f"{int(spikes.sum())} spike(s) of {name} left out"
                state.add(Id.VALUES_SPIKE, words, joint=joint, at=np.flatnonzero(spikes))
            bad |= stuck | spikes
        if bad.any():
            clean = array.copy() if clean is array else clean
            clean[bad, k] = np.nan
    return clean


def _sentinels(x: Array, least: float, rows: IntArray | None = None) -> BoolArray:
    """Samples far from their neighbours that all have the same value, as some loggers write for missing values.

    Those closer than ``least``, or one step of a quantised signal, to their neighbours are not. ``rows`` is how many rows each
    sample stands for, shape of x; one if None.
    """
    none = np.zeros(len(x), dtype=bool)
    jumps = _away(x, 7, _APART, 0.1, least)
    if jumps is None:
        return none
    known, away, apart = jumps
    far = known & (away > max(apart, 10 * np.quantile(away, 0.5)))
    far &= away > 1.5 * count_of(x[known])
    if not far.any():
        return none
    rows = np.ones(len(x), dtype=int) if rows is None else rows
    values, which = np.unique(x[far], return_inverse=True)
    counts = np.bincount(which, rows[far])
    value = values[np.argmax(counts)]
    same = counts.max() > max(_SENTINELS, 0.8 * rows[far].sum()) and counts.max() > 0.3 * rows[x == value].sum()
    return np.asarray(far & (x == value)) if same else none


def _sentinel_runs(x: Array, least: float) -> BoolArray:
    """The same of a position, which no motion brings to a value, or takes from it, by a jump, be it small."""
    begins, lengths = equal_runs(x)
    few = x[begins]
    stuck = _sentinels(few, least, lengths)
    if stuck.any():
        step = np.abs(np.diff(few))
        jump = np.maximum(np.append(0.0, step), np.append(step, 0.0))
        stuck |= (few == few[stuck][0]) & (jump > _SUDDEN * np.quantile(step[np.isfinite(step)], 0.9))
    return np.asarray(np.repeat(stuck, lengths))


def _spikes(x: Array, share: float, least: float) -> BoolArray:
    """Samples far, and at least ``least``, from the median of their five neighbours, while all others are close to it."""
    jumps = _away(x, 5, share, 0.01, least)
    if jumps is None:
        return np.zeros(len(x), dtype=bool)
    known, away, apart = jumps
    return np.asarray((away > max(apart, 10 * np.quantile(away, 0.99))) & known)


def _away(x: Array, neighbours: int, share: float, tail: float, least: float) -> tuple[BoolArray, Array, float] | None:
    """Which samples are known, their distance from their neighbours' median, shapes (N,), and the least one of outliers.

    The latter is at least a share of the range without its tails. None if all steps are too small for outliers, or fewer than
    20 samples are known.
    """
    from scipy.ndimage import median_filter

    known = np.isfinite(x)
    if known.sum() < 20:
        return None
    filled = x if known.all() else np.interp(np.arange(len(x)), np.flatnonzero(known), x[known])
    low, high = np.quantile(filled, [tail, 1.0 - tail])
    apart = max(share * (high - low), least)
    if neighbours // 2 * np.abs(np.diff(filled)).max() <= apart:
        return None
    return known, np.abs(filled - median_filter(filled, neighbours, mode="nearest")), apart


def unwrap(state: Examination) -> None:
    """Unwraps positions that jump between samples: of revolute joints by a whole turn, of all by the range of a counter."""
    recording, robot = state.recording, state.robot
    turns = [np.flatnonzero(np.abs(np.abs(np.diff(x)) - 2 * np.pi) < 0.2 * np.pi) for x in recording.position.T]
    # a spike jumps back immediately; a wrapped joint stays there
    whole = np.array([len(at) > 0 and not (np.diff(at) == 1).any() for at in turns]) & ~robot.prismatic
    ranges = [2 * np.pi if turned else counter_range(x) for turned, x in zip(whole, recording.position.T, strict=True)]
    if not any(ranges):
        return
    fixed = recording.position.copy()
    target = None if recording.position_target is None else recording.position_target.copy()
    for j in np.flatnonzero(ranges):
        fixed[:, j] = np.unwrap(fixed[:, j], period=ranges[j])
        if target is not None:
            target[:, j] -= ranges[j] * np.round((target[:, j] - fixed[:, j]) / ranges[j])
        at = turns[j] if whole[j] else np.flatnonzero(np.abs(np.diff(recording.position[:, j])) > 0.5 * ranges[j])
        by = "whole turns" if whole[j] else f"{ranges[j]:.4g} {joint_units(robot.prismatic[j])['position']}"
        state.add(
            Id.POSITION_WRAPPED,
            f"position jumps by {by} {len(at)} time(s){'' if whole[j] else ', the range of its counter'}; joined",
            joint=robot.joints[j],
            at=at + 1,
            remedy=None if whole[j] else "log turns as well: the zero may be wrong by a multiple of this range",
            severity="repaired" if whole[j] else "warning",
        )
    state.recording = replace(recording, position=fixed, position_target=target)


def counter_range(x: Array) -> float:
    """Range of the counter of a position that wraps: it jumps from one end to the other, against the motion and ever as far.

    The range is 0 if the position does not wrap at least twice; x of shape (N,) [rad or m].
    """
    step, span = np.diff(x), np.ptp(x)
    at = np.flatnonzero(np.abs(step) > 0.5 * span)
    if len(at) < 2 or at[0] == 0 or at[-1] == len(step) - 1 or np.diff(at).min() == 1:
        return 0.0
    most, usual = np.abs(np.delete(step, at)).max(), 0.5 * (step[at - 1] + step[at + 1])
    sizes = np.abs(step[at] - usual)
    size = float(np.median(sizes))
    alike = np.ptp(sizes) < most and abs(size - span) < 2 * most < _STEPS * span
    return size if alike and (usual * step[at] < 0).all() else 0.0
