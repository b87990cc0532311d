"""Repairs of what happens between two rows: an encoder that slips, rows that are missing, a clock that slips, another run.

Between two rows each joint moves on as before and after them. What it moves besides is compared with what it usually does: of
all joints in proportion to their velocities, it is time; of most joints otherwise, another run; of few joints, or of all while
speeds and efforts go on, it is an error of their positions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import Array, BoolArray, positive, rms
from ..clock import GAP_PERIODS, GAP_SECONDS, read_clock
from ..resolution import counts_of, usual_size
from .examination import Examination

#: Something happens between two rows where a joint moves by more than this multiple of the usual besides (99 % quantile, or
#: where rows may be missing in many places the median), and by more than this multiple of the change of its own steps around
#: it, and of a count of its encoder.
_FAR, _SUDDEN = 12.0, 5.0
#: Largest deviation of the intervals there from the usual one, in periods: next to a late stamp or a pause, steps say nothing.
_EVEN = 0.5
#: Largest jitter of stamps [periods] that do not show missing rows themselves.
_STEADY = 0.2
#: Least cosine of what all joints move besides and their velocities for which it is time, in units of their usual differences.
_IN_PROPORTION = 0.9
#: Intervals by which a clock may slip, from which rows are missing, and from which one such place is enough; a row that
#: repeats another one is −1 interval.
_SLIP, _JUMP = 0.5, 4.0
#: Share of the joints that jump from which another run begins, unless the motion goes on: a jumping joint moves at this part of
#: its root mean square speed, and neither speeds nor efforts change by more than this multiple of the usual (99 % quantile).
_OTHER_RUN, _MOVES, _GOES_ON = 0.5, 0.2, 3.0
#: A position that jumps in more rows is held.
_FEW = 3


def repair_discontinuities(state: Examination) -> None:
    """Sets the clock forward over missing rows, splits joined runs, and shifts back what follows a jump of a position."""
    recording, robot = state.recording, state.robot
    clock = read_clock(recording.time)
    interval = np.diff(recording.time)
    even = np.abs(interval / clock.period - 1) < _EVEN
    even, counts = even[:-2] & even[1:-1] & even[2:], counts_of(recording.position)
    # between rows k + 1 and k + 2, joint by joint to save memory
    sudden, far, swift = np.empty((3, len(even), robot.n), dtype=bool)
    spread, smooth, (square, size, along) = np.zeros(robot.n), np.ones(len(even), dtype=bool), np.zeros((3, len(even)))
    for j, x in enumerate(recording.position.T):
        step, usual, away, changed = _between(x, interval)
        spread[j] = usual_size(away)
        sudden[:, j] = even & (np.abs(away) > _SUDDEN * np.maximum(np.abs(changed), counts[j]))
        far[:, j] = sudden[:, j] & (np.abs(away) > _FAR * spread[j])
        swift[:, j] = np.abs(usual) > _MOVES * rms(step)  # slower motion does not show how much time passed
        smooth &= _goes_on(step[2:] - step[:-2])
        if spread[j] > 0:
            ahead, beside = usual / spread[j], away / spread[j]
            square, size, along = square + ahead**2, size + beside**2, along + ahead * beside
    for x in () if recording.effort is None else recording.effort.T:
        smooth &= _goes_on(np.diff(x)[1:-1])
    size, square = np.sqrt(size), positive(square)
    late = along / square  # in intervals
    in_time = sudden.any(axis=1) & (np.abs(late) * np.sqrt(square) > _IN_PROPORTION * size) & (late > -1 - _SLIP)
    slips = np.flatnonzero(in_time & far.any(axis=1) & (np.abs(late) < _SLIP))
    missing = np.flatnonzero(in_time & swift.any(axis=1) & (size > _FAR * np.median(size)) & (late >= _SLIP))
    if clock.jitter > _STEADY or not (len(missing) > 1 or (late[missing] > _JUMP).any()):
        missing = missing[:0]
    # the robot moves on over a jump that does not begin another run
    goes_on = smooth & (far & swift).any(axis=1)
    most = np.sum(far, axis=1) >= _OTHER_RUN * np.maximum(np.count_nonzero(spread), 1)
    runs = np.flatnonzero(most & ~in_time & ~goes_on)
    jumps = far & (~in_time & (~most | goes_on))[:, None]
    jumps &= far.sum(axis=0) <= _FEW

    later, position = np.zeros(len(recording)), recording.position
    rows = np.round(late[missing])
    later[missing + 2] = rows * clock.period
    later[runs + 2] = 2 * max(GAP_PERIODS * clock.period, GAP_SECONDS)
    if len(slips):
        state.add(
            Id.CLOCK_SLIP,
            f"the clock slips by {', '.join(f'{1e3 * late[k] * interval[k + 1]:+.2g} ms' for k in slips)}: the positions of "
            "all joints jump in proportion to their velocities",
            at=slips + 2,
        )
    for j in np.flatnonzero(jumps.any(axis=0)).tolist():
        at, (step, _, away, _) = np.flatnonzero(jumps[:, j]), _between(recording.position[:, j], interval)
        at = at[(step[at] != 0) & (step[at + 2] != 0)]  # a frozen position catches up
        if not len(at):
            continue
        shift = np.zeros(len(recording))
        shift[at + 2] = away[at]
        position = position.copy() if position is recording.position else position
        position[:, j] -= np.cumsum(shift)
        state.add(
            Id.POSITION_JUMP,
            f"the position jumps by {', '.join(f'{away[k]:+.3g}' for k in at)} {'m' if robot.prismatic[j] else 'rad'} from "
            "one row to the next while the motion goes on; the later rows were shifted back",
            joint=robot.joints[j],
            at=at + 2,
            size=float(away[at[0]]),
        )
    if len(runs):
        state.add(
            Id.RUNS_JOINED,
            f"at {len(runs)} place(s) the joints jump from one row to the next: several runs in one file; the log is split "
            "there",
            at=runs + 2,
        )
    if len(missing):
        state.add(
            Id.SAMPLES_LOST,
            f"at {len(missing)} place(s) all joints move several steps within one row: about {int(rows.sum())} rows are "
            "missing, and the time stamps do not show it; the clock is set forward there",
            at=missing + 2,
            remedy="log the device's own time stamps; these only count rows, and the number of missing ones is an estimate",
            severity="warning",
        )
    if len(runs) + len(missing):
        state.recording = replace(recording, time=recording.time + np.cumsum(later), position=position)
    elif position is not recording.position:
        state.recording = replace(recording, position=position)


def _between(x: Array, interval: Array) -> tuple[Array, Array, Array, Array]:
    """Steps of a position, shape (N - 1,); between rows k + 1 and k + 2, shape (N - 3,) each: the usual step by the speeds
    around it, what the position moves besides, and the change of these speeds, as a step.

    Args:
        x: Shape (N,) [rad or m].
        interval: Between its rows, shape (N - 1,) [s].
    """
    step = np.diff(x)
    speed, own = step / interval, interval[1:-1]
    usual = 0.5 * (speed[:-2] + speed[2:]) * own
    return step, usual, step[1:-1] - usual, (speed[2:] - speed[:-2]) * own


def _goes_on(x: Array) -> BoolArray:
    """Where a change is hardly more than usual, shape of x."""
    return np.asarray(np.abs(x) <= _GOES_ON * usual_size(x))
