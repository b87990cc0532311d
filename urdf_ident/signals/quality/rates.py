"""Channels changed before logging: rows and efforts interpolated, channels with a lower rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...grouping import equal_runs, runs
from ...judgements.catalogue import Id
from ...linalg import Array, IntArray, positive
from ..clock import read_clock
from ..resolution import count_of
from .checks import smooth_speeds
from .examination import Examination

#: Number of rows per held value from which a signal has a low rate.
_HELD = 3.0
#: Deviation from a line that three samples may have, and least step between rows that is not rounding, both in steps between
#: the effort's levels.
_OFF, _COARSE = 2.5, 10.0
#: Share of rows on lines from which an effort is interpolated, and minimum rows of a line.
_MOST, _LINE = 0.6, 3
#: Relative loss of the joint's velocity by the same interpolation from which it matters: efforts contain accelerations and
#: reversing friction, which lose more.
_LOST = 0.02


def drop_bridged(state: Examination) -> None:
    """Drops rows that the logger put on straight lines over a gap: there all efforts are interpolated, and no robot moved so.

    If most of the log is, efforts come at a lower rate (:func:`check_rates`), and their samples are not known.
    """
    efforts = [x for _, _, x in state.moving_efforts()]
    bridged = np.full(len(state.recording), len(efforts) > 1)
    for x in efforts:
        inside = np.zeros(len(x), dtype=bool)
        for begin, end in zip(*_lines(x), strict=True):
            inside[begin + 1 : end - 1] = True  # the ends were measured
        bridged &= inside
    if bridged.mean() < _MOST:
        state.drop(bridged, Id.ROWS_INTERPOLATED, "lie on straight lines over gaps, in all efforts alike", limit=_MOST)


def check_rates(state: Examination) -> None:
    """Warns of positions with a lower rate than those of other joints, and of efforts with a lower one than the motion needs.

    Between two samples of such a channel its value is held, or a straight line.
    """
    recording, joints = state.recording, state.robot.joints
    rate = read_clock(recording.time).rate
    held = np.array([_regular_length(equal_runs(q)[1]) for q in recording.position.T])
    usual = float(np.median(held))
    for j in np.flatnonzero((held >= _HELD) & (held >= 2 * usual)):
        steps = np.abs(np.diff(recording.position[:, j]))
        if np.median(steps[steps > 0]) < 1.5 * count_of(recording.position[:, j]):
            continue  # at a steady speed each count of the encoder lasts equally long
        words = f"the position comes at {rate / held[j]:.3g} Hz, those of other joints at {rate / usual:.3g} Hz"
        state.add(Id.POSITION_HELD, words, joint=joints[j], size=rate / held[j])
    low = max(_HELD, 2 * usual)
    held_efforts = [
        (joint, *sampled) for joint, _, x in state.moving_efforts() if (sampled := _held_effort(x, low)) is not None
    ]
    pieces = smooth_speeds(recording)[0] if held_efforts else []
    for joint, rows, between in held_efforts:
        if _lost_by_interpolation([piece[:, joints.index(joint)] for piece in pieces], rows) > _LOST:
            words = f"the effort comes at {rate / rows:.3g} Hz, {between}"
            state.add(Id.EFFORT_HELD, words, joint=joint, size=rate / rows)


def _held_effort(x: Array, least: float) -> tuple[float, str] | None:
    """Rows per sample of an effort with a lower rate, and what lies between samples; None if there are fewer than ``least``."""
    rows = _regular_length(equal_runs(x)[1])
    if rows >= least:
        return rows, "each value is held until the next"
    begins, ends = _lines(x)
    if np.sum(ends - begins) > _MOST * len(x) and (rows := _regular_length(np.diff(begins))) >= least:
        return rows, "with straight lines between these samples"
    return None


def _lost_by_interpolation(pieces: Sequence[Array], rows: float) -> float:
    """Relative loss of a velocity, shapes (N_k,), by linear interpolation between samples some rows apart."""
    lost = whole = 0.0
    for v in pieces:
        at = np.arange(len(v))
        knots = np.arange(0.0, at[-1] + rows, rows)
        lost += float(np.sum((np.interp(at, knots, np.interp(knots, at, v)) - v) ** 2))
        whole += float(np.sum(v**2))
    return float(np.sqrt(lost / positive(whole)))


def _regular_length(lengths: IntArray) -> float:
    """Common length of runs; 1 if they vary, as steps due to quantisation do with the motion, or are too few."""
    usual = float(np.median(lengths)) if len(lengths) > 20 else 1.0
    return usual if np.mean(np.abs(lengths - usual) <= 1) > 0.8 else 1.0


def _lines(x: Array) -> tuple[IntArray, IntArray]:
    """First rows of straight, non-horizontal lines, and the rows after their last ones."""
    grain = float(np.diff(np.unique(x)).min())
    step = np.diff(x)
    straight = (np.abs(np.diff(step)) < _OFF * grain) & (np.abs(step[1:]) > _COARSE * grain)
    begins, ends = np.array(runs(straight), dtype=np.intp).reshape(-1, 2).T + [[0], [2]]
    long = ends - begins >= _LINE
    return begins[long], ends[long]
