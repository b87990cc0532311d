"""Repairs of what happens between two rows: an encoder that slips, rows that are missing, a clock that slips, another run.

Between two rows each joint moves on as before and after them. What it moves besides is compared with what it usually does: of
all joints in proportion to their velocities, it is time; of most joints otherwise, another run; of few joints, or of all while
speeds and efforts go on, it is an error of their positions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import positive, rms
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
    interval, step = np.diff(recording.time), np.diff(recording.position, axis=0)
    speed, own = step / interval[:, None], interval[1:-1, None]
    usual = 0.5 * (speed[:-2] + speed[2:]) * own
    away = step[1:-1] - usual  # between rows k + 1 and k + 2, shape (N - 3, n)
    even = np.abs(interval / clock.period - 1) < _EVEN
    changed = np.abs(speed[2:] - speed[:-2]) * own
    sudden = np.abs(away) > _SUDDEN * np.maximum(changed, counts_of(recording.position))
    sudden &= (even[:-2] & even[1:-1] & even[2:])[:, None]
    spread = usual_size(away)
    far = sudden & (np.abs(away) > _FAR * spread)
    ahead, beside = (np.where(spread > 0, x / positive(spread), 0.0) for x in (usual, away))
    size, square = np.linalg.norm(beside, axis=1), positive(np.sum(ahead**2, axis=1))
    late = np.sum(ahead * beside, axis=1) / square  # in intervals
    in_time = sudden.any(axis=1) & (np.abs(late) * np.sqrt(square) > _IN_PROPORTION * size) & (late > -1 - _SLIP)
    slips = np.flatnonzero(in_time & far.any(axis=1) & (np.abs(late) < _SLIP))
    swift = np.abs(usual) > _MOVES * rms(step, axis=0)  # slower motion does not show how much time passed
    missing = np.flatnonzero(in_time & swift.any(axis=1) & (size > _FAR * np.median(size)) & (late >= _SLIP))
    if clock.jitter > _STEADY or not (len(missing) > 1 or (late[missing] > _JUMP).any()):
        missing = missing[:0]
    # the robot moves on over a jump that does not begin another run
    bends = [step[2:] - step[:-2], *([] if recording.effort is None else [np.diff(recording.effort, axis=0)[1:-1]])]
    smooth = np.all([(np.abs(x) <= _GOES_ON * usual_size(x)).all(axis=1) for x in bends], axis=0)
    goes_on = smooth & (far & swift).any(axis=1)
    most = np.sum(far, axis=1) >= _OTHER_RUN * np.maximum(np.count_nonzero(spread), 1)
    runs = np.flatnonzero(most & ~in_time & ~goes_on)
    jumps = far & (~in_time & (~most | goes_on))[:, None]
    jumps &= (speed[:-2] != 0) & (speed[2:] != 0)  # a frozen position catches up
    jumps &= far.sum(axis=0) <= _FEW

    later, shift = np.zeros(len(recording)), np.zeros_like(recording.position)
    rows = np.round(late[missing])
    later[missing + 2] = rows * clock.period
    later[runs + 2] = 2 * max(GAP_PERIODS * clock.period, GAP_SECONDS)
    shift[2:-1] = np.cumsum(np.where(jumps, away, 0.0), axis=0)
    shift[-1] = shift[-2]
    if len(slips):
        state.add(
            Id.CLOCK_SLIP,
            f"the clock slips by {', '.join(f'{1e3 * late[k] * interval[k + 1]:+.2g} ms' for k in slips)}: the positions of "
            "all joints jump in proportion to their velocities",
            at=slips + 2,
        )
    for j in np.flatnonzero(jumps.any(axis=0)):
        at = np.flatnonzero(jumps[:, j])
        state.add(
            Id.POSITION_JUMP,
            f"the position jumps by {', '.join(f'{away[k, j]:+.3g}' for k in at)} {'m' if robot.prismatic[j] else 'rad'} from "
            "one row to the next while the motion goes on; the later rows were shifted back",
            joint=robot.joints[j],
            at=at + 2,
            size=float(away[at[0], j]),
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
        state.recording = replace(recording, time=recording.time + np.cumsum(later), position=recording.position - shift)
    elif jumps.any():
        state.recording = replace(recording, position=recording.position - shift)
