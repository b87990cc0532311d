"""Repairs of positions: counters that wrap, and encoders that slip or start again in the middle of a motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import Array, positive, rms
from ...units import joint_units
from ..clock import read_clock
from ..resolution import usual_size
from .examination import Examination

#: Largest step of a position that wraps, times two, over its range.
_STEPS = 0.2
#: A position jumps where a step differs from its neighbours' mean by this multiple of the usual (99 % quantile), by this
#: multiple of their difference, and by this multiple of the encoder's counts.
_FAR, _SUDDEN, _COUNTS = 12.0, 5.0, 5.0
#: A position that jumps in more rows is held.
_FEW = 3
#: Longest interval, over the usual, in which no row is missing.
_NEXT = 1.5
#: Jumps of all joints in proportion to their velocities are time (rows missing or repeated, or a clock that slipped): least
#: cosine, in units of their usual differences.
_IN_PROPORTION = 0.9
#: A clock slips by less than this number of intervals, and never runs back by this number.
_SLIP, _BACK = 0.5, 1.5
#: Another run begins where this part of the joints jumps otherwise, unless the motion goes on.
_OTHER_RUN = 0.5
#: A motion goes on where a jumping joint moves at this part of its root mean square speed, and neither speeds nor efforts
#: change by more than this multiple of the usual (99 % quantile).
_MOVES, _GOES_ON = 0.2, 3.0


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


def correct_jumps(state: Examination) -> None:
    """Shifts back what follows a jump of a position in the middle of a motion, and warns of it."""
    recording, joints = state.recording, state.robot.joints
    interval, step = np.diff(recording.time), np.diff(recording.position, axis=0)
    speed = step / interval[:, None]
    before, after, period = speed[:-2], speed[2:], interval[1:-1, None]
    away = step[1:-1] - 0.5 * (before + after) * period  # of the step between rows k + 1 and k + 2 from its neighbours
    size, far = np.abs(away), usual_size(away)
    counts = np.array([np.quantile(x[x > 0], 0.01) if (x > 0).any() else np.inf for x in np.abs(step).T])
    jumps = (size > _FAR * far) & (size > _SUDDEN * np.abs(after - before) * period)
    jumps &= (before != 0) & (after != 0)  # a frozen position catches up
    longest = _NEXT * read_clock(recording.time).period
    jumps &= (np.maximum(interval[2:], np.maximum(interval[1:-1], interval[:-2])) < longest)[:, None]
    jumps &= (size > _COUNTS * counts) & (jumps.sum(axis=0) <= _FEW)  # a held position jumps often
    if not jumps.any():
        return
    ahead, beside = 0.5 * (step[:-2] + step[2:]) / positive(far), away / positive(far)
    along, square = np.sum(ahead * beside, axis=1), positive(np.sum(ahead**2, axis=1))
    cosine = along / np.sqrt(square) / np.sqrt(positive(np.sum(beside**2, axis=1)))
    in_time = jumps.any(axis=1) & (np.abs(cosine) > _IN_PROPORTION) & (along > -_BACK * square)
    slips = np.flatnonzero(in_time & (np.abs(along) < _SLIP * square))
    if len(slips):
        late = [f"{1e3 * along[k] / square[k] * interval[k + 1]:+.2g} ms" for k in slips]
        state.add(
            Id.CLOCK_SLIP,
            f"the clock slips by {', '.join(late)}: the positions of all joints jump in proportion to their velocities",
            at=slips + 2,
        )
    # the robot moves on over a jump that does not begin another run
    usual, motion = 0.5 * (step[:-2] + step[2:]), rms(step, axis=0)
    bends = [step[2:] - step[:-2], *([] if recording.effort is None else [np.diff(recording.effort, axis=0)[1:-1]])]
    smooth = np.all([(np.abs(x) <= _GOES_ON * usual_size(x)).all(axis=1) for x in bends], axis=0)
    moves = (jumps & (np.abs(usual) > _MOVES * motion)).any(axis=1)
    jumps &= (~in_time & ((jumps.mean(axis=1) < _OTHER_RUN) | (smooth & moves)))[:, None]
    shift = np.zeros_like(recording.position)
    shift[2:-1] = np.cumsum(np.where(jumps, away, 0.0), axis=0)
    shift[-1] = shift[-2]
    for j in np.flatnonzero(jumps.any(axis=0)):
        at = np.flatnonzero(jumps[:, j])
        sizes = ", ".join(f"{away[k, j]:+.3g}" for k in at)
        state.add(
            Id.POSITION_JUMP,
            f"the position jumps by {sizes} {'m' if state.robot.prismatic[j] else 'rad'} from one row to the next while the "
            "motion goes on; the later rows were shifted back",
            joint=joints[j],
            at=at + 2,
            size=float(away[at[0], j]),
        )
    state.recording = replace(recording, position=recording.position - shift)
