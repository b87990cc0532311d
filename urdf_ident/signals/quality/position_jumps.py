"""Positions that jump between two rows while the motion goes on: encoders that slipped, counters that started again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import Array, BoolArray, positive, rms
from ...model.robot import Robot
from ..clock import read_clock
from .examination import Examination

#: A position jumps where a step differs from its neighbours' mean by this multiple of the usual (99 % quantile), by this
#: multiple of their difference and of the encoder's counts; in more rows than this, the position is held.
_FAR, _SUDDEN, _COUNTS, _FEW = 12.0, 5.0, 5.0, 3
#: Longest interval, over the usual, in which no row is missing.
_NEXT = 1.5
#: Jumps of all joints in proportion to their velocities (cosine, in units of their usual differences) are time: rows missing
#: or repeated, or a clock that slipped, by less than the second number of intervals. It never runs back by the third.
_IN_PROPORTION, _SLIP, _BACK = 0.9, 0.5, 1.5
#: Where this part of the joints jumps otherwise, another run begins, unless a jumping joint moves at this part of its root mean
#: square speed, and neither speeds nor efforts change by more than this multiple of the usual (99 % quantile).
_OTHER_RUN, _MOVES, _GOES_ON = 0.5, 0.2, 3.0


def correct_jumps(state: Examination, robot: Robot) -> None:
    """Shifts back what follows a jump of a position in the middle of a motion, and warns of it.

    Args:
        state: The log, with its clock corrected; changed.
    """
    recording = state.recording
    if len(recording) < 100:
        return
    jumps, away = _jumps(recording.time, recording.position)
    if not jumps.any():
        return
    passed = _time_passed(jumps, away, recording.position)
    slips = np.flatnonzero(np.abs(passed) < _SLIP)
    if len(slips):
        late = [f"{1e3 * passed[k] * (recording.time[k + 2] - recording.time[k + 1]):+.2g} ms" for k in slips]
        state.add(
            Id.CLOCK_SLIP,
            f"the clock slips by {', '.join(late)}: the positions of all joints jump in proportion to their velocities",
            at=slips + 2,
        )
    jumps &= np.isnan(passed)[:, None]
    jumps &= _goes_on(jumps, recording.position, recording.effort)[:, None]
    if not jumps.any():
        return
    shift = np.zeros_like(recording.position)
    shift[2:-1] = np.cumsum(np.where(jumps, away, 0.0), axis=0)
    shift[-1] = shift[-2]
    state.recording = replace(recording, position=recording.position - shift)
    for j in np.flatnonzero(jumps.any(axis=0)):
        at = np.flatnonzero(jumps[:, j])
        sizes = ", ".join(f"{away[k, j]:+.3g}" for k in at)
        state.add(
            Id.POSITION_JUMP,
            f"the position jumps by {sizes} {'m' if robot.prismatic[j] else 'rad'} from one row to the next while the motion "
            "goes on; the later rows were shifted back",
            joint=robot.joints[j],
            at=at + 2,
            size=float(away[at[0], j]),
        )


def _jumps(time: Array, position: Array) -> tuple[BoolArray, Array]:
    """Where positions jump between rows k + 1 and k + 2, and how far steps differ from their neighbours, shape (N - 3, n)."""
    interval, step = np.diff(time), np.diff(position, axis=0)
    speed = step / interval[:, None]
    before, after, period = speed[:-2], speed[2:], interval[1:-1, None]
    away = step[1:-1] - 0.5 * (before + after) * period
    size = np.abs(away)
    far = _usual(size)
    counts = np.array([np.quantile(x[x > 0], 0.01) if (x > 0).any() else np.inf for x in np.abs(step).T])
    jumps = (size > _FAR * far) & (size > _SUDDEN * np.abs(after - before) * period)
    jumps &= (before != 0) & (after != 0)  # a frozen position catches up
    longest = _NEXT * read_clock(time).period
    jumps &= (np.maximum(interval[2:], np.maximum(interval[1:-1], interval[:-2])) < longest)[:, None]
    return jumps & (size > _COUNTS * counts) & (jumps.sum(axis=0) <= _FEW), away  # a held position jumps often


def _time_passed(jumps: BoolArray, away: Array, position: Array) -> Array:
    """Intervals by which all joints jump along their velocities; NaN without a jump or where they do not, shape (N - 3,)."""
    steps, far = np.diff(position, axis=0), positive(_usual(away))
    ahead, beside = 0.5 * (steps[:-2] + steps[2:]) / far, away / far
    along, square = np.sum(ahead * beside, axis=1), positive(np.sum(ahead**2, axis=1))
    cosine = along / np.sqrt(square * positive(np.sum(beside**2, axis=1)))
    in_time = jumps.any(axis=1) & (np.abs(cosine) > _IN_PROPORTION) & (along > -_BACK * square)
    return np.where(in_time, along / square, np.nan)


def _goes_on(jumps: BoolArray, position: Array, effort: Array | None) -> BoolArray:
    """Whether the robot moves on over the jumps of a row, which do not begin another run, shape (N - 3,)."""
    steps = np.diff(position, axis=0)
    usual, speed = 0.5 * (steps[:-2] + steps[2:]), rms(steps, axis=0)
    bends = [steps[2:] - steps[:-2], *([] if effort is None else [np.diff(effort, axis=0)[1:-1]])]
    smooth = np.all([(np.abs(x) <= _GOES_ON * _usual(x)).all(axis=1) for x in bends], axis=0)
    moves = (jumps & (np.abs(usual) > _MOVES * speed)).any(axis=1)
    return np.asarray((jumps.mean(axis=1) < _OTHER_RUN) | (smooth & moves))


def _usual(x: Array) -> Array:
    """The usual size of each column: its 99 % quantile, shape (n,)."""
    return np.asarray(np.quantile(np.abs(x), 0.99, axis=0))
