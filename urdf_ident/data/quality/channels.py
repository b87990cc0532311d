"""What the efforts' own numbers say: coarse steps, a lost sign, one column twice, a target in place of a measurement."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.robot import Robot
from .findings import Examination

#: Step over the efforts' standard deviation from which its rounding is a tenth of the efforts' rms or so; fewest rows.
_COARSE, _ROWS = 0.3, 100
#: Relative difference up to which two channels are one, copied or rescaled.
_COPIED = 1e-6
#: Parts of an effort's largest value below which it is at zero and near it, visits to zero from which its sign is lost; and how
#: much longer it is within twice the second part than within it, at least: 2 times for a fold, 1.4 for a smooth minimum.
_ZERO, _NEAR, _VISITS, _STRAIGHT = 0.02, 0.1, 3, 1.7


def check_steps(state: Examination, robot: Robot) -> None:
    """Warns of efforts of moving joints that come in coarse steps.

    Args:
        state: The log.
        robot: Its joints.
    """
    recording = state.recording
    if recording.effort is None or len(recording) < _ROWS:
        return
    for j in range(robot.n):
        x, spread = recording.effort[:, j], float(recording.effort[:, j].std())
        levels = np.unique(x)
        if spread == 0 or len(levels) < 3 or np.ptp(recording.position[:, j]) < 0.01:
            continue
        gaps = np.diff(levels)
        step = float(gaps.min())
        even = np.abs(gaps / step - np.round(gaps / step)).max() < 0.05 if step > 0.01 * spread else False
        if step > _COARSE * spread and even:
            state.add(
                "effort-quantised",
                "warning",
                f"the effort comes in steps of {step:.3g}, {100 * step / spread:.0f} % of its standard deviation",
                joint=robot.joints[j],
                size=step,
                remedy="log it with more digits; a slower, longer log averages part of the steps out",
            )


def check_sign_lost(state: Examination, robot: Robot) -> None:
    """Refuses efforts without sign: never below zero, and turned back there as by a mirror.

    Args:
        state: The log.
        robot: Its joints.
    """
    recording = state.recording
    if recording.effort is None or len(recording) < _ROWS:
        return
    for j in range(robot.n):
        x = recording.effort[:, j]
        if x.min() < 0 or np.ptp(x) == 0 or np.ptp(recording.position[:, j]) < 0.01:
            continue
        folds = _folds(x)
        if len(folds) >= _VISITS:
            state.add(
                "effort-unsigned",
                "refused",
                f"the effort is never below zero and turns back there {len(folds)} times: its sign is lost",
                joint=robot.joints[j],
                at=folds,
                remedy="log it with its sign",
            )


def _folds(x: Array) -> NDArray[np.intp]:
    """Where a signal comes to zero and turns back as straight as it came."""
    low = np.flatnonzero(x < 2 * _NEAR * x.max())
    visits = np.split(low, np.flatnonzero(np.diff(low) > 1) + 1) if len(low) else []
    at = [
        visit[int(np.argmin(x[visit]))]
        for visit in visits
        if visit[0] > 0 and visit[-1] < len(x) - 1 and x[visit].min() < _ZERO * x.max()
        if len(visit) > _STRAIGHT * np.count_nonzero(x[visit] < _NEAR * x.max())
    ]
    return np.array(at, dtype=np.intp)


def check_copied(state: Examination, robot: Robot) -> None:
    """Refuses one effort in two columns, and warns of efforts that are the controller's target, sample by sample.

    Args:
        state: The log.
        robot: Its joints.
    """
    recording = state.recording
    if recording.effort is None:
        return
    effort = recording.effort
    for i, j in combinations(np.flatnonzero(np.ptp(effort, axis=0) > 0), 2):
        factor = float(effort[:, i] @ effort[:, j] / (effort[:, i] @ effort[:, i]))
        if np.linalg.norm(effort[:, j] - factor * effort[:, i]) < _COPIED * np.linalg.norm(effort[:, j]):
            state.add(
                "effort-twice",
                "refused",
                f"the efforts of {robot.joints[i]} and {robot.joints[j]} are one signal",
                remedy="check which columns `log.columns.effort` names",
            )
    for name in ("torque_target", "effort_target"):
        target = getattr(recording, name)
        if target is None or target.shape != effort.shape:
            continue
        scale = np.sum(effort * target, axis=0) / np.maximum(np.sum(target**2, axis=0), 1e-300)
        left, size = np.linalg.norm(effort - scale * target, axis=0), np.linalg.norm(effort, axis=0)
        alive = (size > 0) & (np.ptp(target, axis=0) > 0)
        if alive.any() and (left[alive] < _COPIED * size[alive]).all():
            state.add(
                "effort-commanded",
                "warning",
                f"the efforts are the controller's {name.split('_')[0]} target, sample by sample: computed, not measured",
                remedy="log the measured current or torque: a target says what the controller's model expects",
            )
            return
