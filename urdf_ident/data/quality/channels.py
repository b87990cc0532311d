"""What the efforts' own numbers say: coarse steps, and a target that was logged in place of a measurement."""

from __future__ import annotations

import numpy as np

from ...model.robot import Robot
from .findings import Examination

#: Step over the efforts' standard deviation from which its rounding is a tenth of the efforts' rms or so; fewest rows.
_COARSE, _ROWS = 0.3, 100
#: Relative difference up to which two channels are one, copied or rescaled.
_COPIED = 1e-6


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


def check_copied(state: Examination, robot: Robot) -> None:
    """Warns of efforts that are the controller's target, sample by sample.

    Args:
        state: The log.
        robot: Its joints.
    """
    recording = state.recording
    if recording.effort is None:
        return
    effort = recording.effort
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
