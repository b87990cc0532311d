"""Checks for piecewise constant or linear efforts: from a lower rate than the motion requires, or limited in their rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...grouping import runs
from ...linalg import Array
from ...model.robot import Robot
from ..conditioning.clock import read_clock
from .channels import equal_runs, moving_efforts, regular_length
from .checks import smooth_speeds
from .findings import Examination

#: Deviation from a line that three samples may have, and least step between rows that is not rounding, both in steps between
#: the effort's levels.
_OFF, _COARSE = 2.5, 10.0
#: Share of rows on lines from which an effort is interpolated, and minimum rows of a line.
_MOST, _LINE = 0.6, 3
#: Relative loss of the joint's velocity by the same interpolation from which it matters: efforts contain accelerations and
#: reversing friction, which lose more.
_LOST = 0.02
#: Least share of rows on equally steep lines, least number of these lines, and their least share of the rows on lines.
_SHARE, _LINES, _ALIKE = 0.01, 3, 0.8


def check_straight(state: Examination, robot: Robot) -> None:
    """Warns of efforts that come at a lower rate than the motion requires, and of efforts with a limited rate of change.

    Args:
        state: The log.
        robot: Its joints.
    """
    rate = read_clock(state.recording.time).rate
    positions = float(np.median([regular_length(equal_runs(q)[1]) for q in state.recording.position.T]))
    for joint, _, x in moving_efforts(state, robot):
        held = regular_length(equal_runs(x)[1])
        if held >= max(_LINE, 2 * positions):
            _add_held(state, robot, joint, held / rate)
            continue
        begins, ends = _lines(x)
        rows = int(np.sum(ends - begins))
        apart = regular_length(np.diff(begins)) if rows > _MOST * len(x) else 1.0
        if apart >= _LINE:
            if _taken_by(state, robot.joints.index(joint), apart / rate) > _LOST:
                state.add(
                    "effort-held",
                    "warning",
                    f"the effort comes at {rate / apart:.3g} Hz, with straight lines between these samples",
                    joint=joint,
                    size=rate / apart,
                    remedy="log it at the rate of the positions: lines cut off the peaks and the reversals of friction",
                )
            continue
        steep = np.abs(x[ends - 1] - x[begins]) / np.maximum(ends - begins - 1, 1)
        usual = float(np.median(steep)) if len(steep) else 0.0
        alike = np.abs(steep - usual) < 1e-3 * usual
        limited = int(np.sum((ends - begins)[alike]))
        if limited > max(_SHARE * len(x), 10) and alike.sum() >= _LINES and limited > _ALIKE * rows:
            state.add(
                "effort-slewed",
                "warning",
                f"the effort never changes faster than by {usual * rate:.3g} a second, and in "
                f"{100 * limited / len(x):.3g} % of the rows by just that",
                joint=joint,
                at=begins[alike],
                size=usual * rate,
                remedy="log what the motor gave: behind a limit of its rate an effort misses peaks and reversals",
            )


def _add_held(state: Examination, robot: Robot, joint: str, seconds: float) -> None:
    """Warns of an effort that holds its values for ``seconds`` if the motion requires a higher rate, unless already said."""
    said = any(item.id == "effort-held" and item.joint == joint for item in state.findings)
    if not said and _taken_by(state, robot.joints.index(joint), seconds) > _LOST:
        state.add(
            "effort-held",
            "warning",
            f"the effort comes at {1 / seconds:.3g} Hz, and each value is held until the next",
            joint=joint,
            size=1 / seconds,
            remedy="log it at the rate of the positions: as logged it lags and misses the reversals of friction",
        )


def _lines(x: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First rows of straight, non-horizontal lines, and the rows after their last ones."""
    levels = np.unique(x)
    grain = float(np.diff(levels).min())
    step = np.diff(x)
    straight = (np.abs(np.diff(step)) < _OFF * grain) & (np.abs(step[1:]) > _COARSE * grain)
    begins, ends = np.array(runs(straight), dtype=np.intp).reshape(-1, 2).T + [[0], [2]]
    long = ends - begins >= _LINE
    return begins[long], ends[long]


def _taken_by(state: Examination, j: int, seconds: float) -> float:
    """Relative loss of a joint's velocity by linear interpolation between samples ``seconds`` apart."""
    left = whole = 0.0
    pieces, rate = smooth_speeds(state.recording)
    for v in pieces:
        at = np.arange(len(v)) / rate
        knots = np.arange(0.0, at[-1] + seconds, seconds)
        left += float(np.sum((np.interp(at, knots, np.interp(knots, at, v[:, j])) - v[:, j]) ** 2))
        whole += float(np.sum(v[:, j] ** 2))
    return float(np.sqrt(left / max(whole, 1e-300)))
