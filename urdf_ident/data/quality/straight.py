"""Efforts drawn with straight lines: put between samples of a lower rate, or behind a limit of how fast they may change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.robot import Robot
from ..conditioning.clock import read_clock
from .channels import moving_efforts, regular_length
from .checks import smooth_speeds
from .findings import Examination

#: Steps between an effort's levels by which three samples on a line may be off it; steps that one row must make at least, so
#: that equal ones are no rounding.
_OFF, _COARSE = 2.5, 10.0
#: Part of the rows that lie on lines, from which an effort is interpolated, and fewest rows of a line.
_MOST, _LINE = 0.6, 3
#: Part of the joint's velocity that the same interpolation would take away, from which it matters: efforts hold accelerations
#: and friction that turns round, which suffer more.
_LOST = 0.02
#: Part of the rows, and lines, that must be as steep as each other, and the part of all lines' rows that they are.
_SHARE, _LINES, _ALIKE = 0.01, 3, 0.8


def check_straight(state: Examination, robot: Robot) -> None:
    """Warns of efforts that were interpolated from a lower rate, and of those that never change faster than by so much.

    Args:
        state: The log.
        robot: Its joints.
    """
    rate = read_clock(state.recording.time).rate
    for joint, _, x in moving_efforts(state, robot):
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


def _lines(x: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First rows of straight lines that are not level, and the rows after their last ones."""
    levels = np.unique(x)
    grain = float(np.diff(levels).min())
    step = np.diff(x)
    straight = (np.abs(np.diff(step)) < _OFF * grain) & (np.abs(step[1:]) > _COARSE * grain)
    edges = np.diff(np.concatenate([[0], straight.astype(int), [0]]))
    begins, ends = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0) + 2
    long = ends - begins >= _LINE
    return begins[long], ends[long]


def _taken_by(state: Examination, j: int, seconds: float) -> float:
    """Part of a joint's velocity that straight lines between samples so far apart take away."""
    left = whole = 0.0
    pieces, rate = smooth_speeds(state.recording)
    for v in pieces:
        at = np.arange(len(v)) / rate
        knots = np.arange(0.0, at[-1] + seconds, seconds)
        left += float(np.sum((np.interp(at, knots, np.interp(knots, at, v[:, j])) - v[:, j]) ** 2))
        whole += float(np.sum(v[:, j] ** 2))
    return float(np.sqrt(left / max(whole, 1e-300)))
