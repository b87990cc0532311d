"""Counters that wrap: positions, efforts and clocks that jump by the range of their counter, and are continued."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import Array, IntArray
from ...model.robot import Robot
from ...units import joint_units
from .checks import gravity_torques
from .examination import Examination

#: Largest step of a position that wraps, times two, over its range. Of an effort: its largest step, and how much its range may
#: exceed the jumps.
_STEPS, _EFFORT_STEPS, _BEYOND = 0.2, 0.25, 0.1
#: Least range of a joined effort over its largest step: of an effort that changes sides by equal steps, noise remains, with a
#: range of 3.3 steps. Largest share of the jumps within so many rows of a reversal, where dry friction changes sides.
_VARIES, _REVERSING, _BESIDE = 5.0, 0.5, 10
#: Number of poses whose weight is computed.
_POSES = 100
#: Ranges of clocks [s]: a minute to a week, and counters of 16, 31 and 32 bits in ns, us and ms.
_CLOCKS = (
    60.0,
    3600.0,
    43200.0,
    86400.0,
    604800.0,
    *(2.0**bits * unit for bits in (16, 31, 32) for unit in (1e-9, 1e-6, 1e-3)),
)
#: A clock wraps where the step plus its range is between these multiples of a period. The motion goes on where steps of the
#: positions differ from the next ones by no more than this multiple of the usual (99 % quantile): joined runs do not continue.
_PERIODS, _GOES_ON = (0.5, 3.5), 3.0


def unwrap_positions(state: Examination, robot: Robot) -> None:
    """Unwraps positions that jump between samples: of revolute joints by a whole turn, of all by the range of a counter.

    Args:
        state: The log; changed.
    """
    position = state.recording.position
    turns = [np.flatnonzero(np.abs(np.abs(np.diff(x)) - 2 * np.pi) < 0.2 * np.pi) for x in position.T]
    # a spike jumps back immediately; a wrapped joint stays there
    whole = np.array([len(at) > 0 and not (np.diff(at) == 1).any() for at in turns]) & ~robot.prismatic
    ranges = np.array([2 * np.pi if turned else counter_range(x) for turned, x in zip(whole, position.T, strict=True)])
    if not ranges.any():
        return
    fixed = position.copy()
    target = None if state.recording.position_target is None else state.recording.position_target.copy()
    for j in np.flatnonzero(ranges):
        fixed[:, j] = np.unwrap(position[:, j], period=ranges[j])
        if target is not None:
            beside = target[:, j] - fixed[:, j]
            target[:, j] -= ranges[j] * np.round(beside / ranges[j])
        at = turns[j] if whole[j] else np.flatnonzero(np.abs(np.diff(position[:, j])) > 0.5 * ranges[j])
        by = "whole turns" if whole[j] else f"{ranges[j]:.4g} {joint_units(robot.prismatic[j])['position']}"
        state.add(
            Id.POSITION_WRAPPED,
            f"position jumps by {by} {len(at)} time(s){'' if whole[j] else ', the range of its counter'}; joined",
            joint=robot.joints[j],
            at=at + 1,
            remedy=None if whole[j] else "log turns as well: the zero may be wrong by a multiple of this range",
            severity="repaired" if whole[j] else "warning",
        )
    state.recording = replace(state.recording, position=fixed, position_target=target)


def unwrap_efforts(state: Examination, robot: Robot) -> None:
    """Continues efforts that overflow: beyond one end of the range of their counter they come back at the other.

    The log determines them up to a multiple of the range. The one next to the URDF's weight is taken, for other units than of a
    torque the one next to zero.

    Args:
        state: The log; changed.
    """
    effort = state.recording.effort
    if effort is None:
        return
    ranges = np.array([overflow_range(*both) for both in zip(effort.T, state.recording.position.T, strict=True)])
    if not ranges.any():
        return
    rows = np.flatnonzero(np.isfinite(state.recording.position).all(axis=1))
    rows = rows[:: max(1, len(rows) // _POSES)]
    torques = state.recording.effort_unit in ("N·m", "N")
    weight = gravity_torques(robot, state.recording.position[rows]) if torques else np.zeros((len(rows), robot.n))
    fixed = effort.copy()
    for j in np.flatnonzero(ranges):
        at = np.flatnonzero(np.abs(np.diff(effort[:, j])) > 0.5 * ranges[j])
        if not _goes_on(state.recording.position, at):
            continue
        joined = np.unwrap(effort[:, j], period=ranges[j])
        fixed[:, j] = joined - ranges[j] * np.round(np.median(joined[rows] - weight[:, j]) / ranges[j])
        state.add(
            Id.EFFORT_WRAPPED,
            f"the effort jumps by {ranges[j]:.4g} {len(at)} time(s), from one end of its range to the other: its counter "
            "overflows; joined",
            joint=robot.joints[j],
            at=at + 1,
            size=float(ranges[j]),
        )
    state.recording = replace(state.recording, effort=fixed)


def unwrap_clock(state: Examination) -> None:
    """Continues a clock that starts again at midnight, or when its counter overflows, while the motion goes on.

    Args:
        state: The log; changed.
    """
    time = state.recording.time
    step = np.diff(time)
    back = np.flatnonzero(step < 0)
    if not len(back) or len(step) < 10:
        return
    period = float(np.median(step))
    if not _goes_on(state.recording.position, back):
        return
    shift = np.zeros(len(time))
    for k in back:
        ranges = [x for x in _CLOCKS if _PERIODS[0] * period < step[k] + x < _PERIODS[1] * period]
        if not ranges:
            return
        shift[k + 1] = ranges[0]
    state.recording = replace(state.recording, time=time + np.cumsum(shift))
    words = ", ".join(f"{x:.10g}" for x in dict.fromkeys(shift[shift > 0]))
    state.add(
        Id.CLOCK_WRAPPED,
        f"the clock steps back by {words} s at {len(back)} place(s) while the motion goes on: midnight, or the range of its "
        "counter; continued",
        at=back + 1,
    )


def _goes_on(position: Array, at: IntArray) -> bool:
    """Whether the joints move on from each of these rows (0-based) to the next as they do elsewhere."""
    bends = np.abs(np.diff(position, 2, axis=0))
    usual = np.array([np.quantile(x[np.isfinite(x)], 0.99) if np.isfinite(x).any() else 0.0 for x in bends.T])
    near = np.unique(np.clip(np.concatenate([at - 1, at]), 0, len(bends) - 1))
    return bool((bends[near] <= _GOES_ON * usual).all())


def counter_range(x: Array) -> float:
    """Range of the counter of a position that wraps: it jumps from one end to the other, against the motion and ever as far.

    Args:
        x: Position of one joint, shape (N,) [rad or m].

    Returns:
        The range, in the unit of the position; 0 if the position does not wrap at least twice.
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


def overflow_range(x: Array, position: Array) -> float:
    """Range of the counter of an effort that overflows: it jumps from one end to the other, and goes on from there if joined.

    Args:
        x: Effort of one joint, shape (N,), in any unit.
        position: Of the joint, shape (N,) [rad or m].

    Returns:
        The range, in the unit of the effort; 0 if the effort does not overflow at least twice while the joint moves on. Values
        for missing samples hardly vary if joined.
    """
    step = np.diff(x)
    span = float(np.ptp(x)) if np.isfinite(x).all() else 0.0
    far = np.abs(step) > 0.5 * span
    if far.sum() < 2 or far[0] or far[-1]:
        return 0.0
    at, usual = np.flatnonzero(far), np.where(far, 0.0, step)
    places = np.clip(np.stack([at - _BESIDE, at, at + 1, at + 1 + _BESIDE]), 0, len(x) - 1)
    before, after = position[places[1]] - position[places[0]], position[places[3]] - position[places[2]]
    if np.mean(before * after <= 0) > _REVERSING:
        return 0.0
    most = float(np.abs(usual).max())
    sizes = np.abs(step[at] - 0.5 * (usual[at - 1] + usual[at + 1]))
    size = float(np.median(sizes))
    ends = np.sort([x[at], x[at + 1]], axis=0)  # a spike starts from where the effort happens to be
    away = max(float((ends[0] - x.min()).max()), float((x.max() - ends[1]).max()))
    if away > 2 * most or most > _EFFORT_STEPS * span or span - size > _BEYOND * span:
        return 0.0
    size = max(size, span)  # its range holds all values
    return size if np.ptp(np.unwrap(x, period=size)) > _VARIES * most else 0.0
