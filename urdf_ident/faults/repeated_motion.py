"""Finds motion that a log repeats: cycles of poses, periods, and paths that are driven again.

What a model does not explain is the same in every repetition. Repetitions are therefore held out together: otherwise each is
predicted from the others, and errors of the model seem to be certain effects of faults.
"""

from __future__ import annotations

import numpy as np

from ..linalg import Array, IntArray
from ..samples import SAME_POSE, fast_speed

#: Largest difference of velocities of one motion, as a fraction of each joint's fast speed.
_SAME_SPEED = 0.15
#: Points of the path between two samples, and samples by which repetitions may run apart from one sample to the next.
_BETWEEN, _APART = 4, 3
#: Smallest number of samples in which a motion may repeat.
_FEWEST = 20


def first_shown(q: Array, v: Array) -> IntArray:
    """Index of the first sample near which the same motion passes as at each sample: its own if the motion is new.

    Args:
        q: Positions of one log, shape (N, n) [rad or m].
        v: Velocities, shape (N, n) [rad/s or m/s].

    Returns:
        Shape (N,); the same motion has the same positions and velocities, also at a neighbouring sample.
    """
    new = np.arange(len(q))
    if len(q) < _FEWEST:
        return new
    widths = np.concatenate([SAME_POSE * np.ptp(q, axis=0), [_SAME_SPEED * fast_speed(speed) for speed in v.T]])
    states = np.hstack([q, v])[:, widths > 0] / widths[widths > 0]
    at = np.arange(_BETWEEN * (len(q) - 1) + 1) / _BETWEEN
    path = np.column_stack([np.interp(at, new, x) for x in states.T])
    shown = new.copy()
    for k, state in enumerate(states):
        away = np.abs(path[: _BETWEEN * k] - state).max(axis=1, initial=0.0)
        apart = np.flatnonzero(away > 1.0)
        earlier = away[: apart[-1]] if len(apart) else away[:0]  # before the motion that leads to this sample
        if len(earlier) and earlier.min() < 1.0:
            shown[k] = round(at[np.argmin(earlier)])
    step = np.diff(shown)
    both = (shown[1:] < new[1:]) & (shown[:-1] < new[:-1]) & (step >= 0) & (step <= _APART)
    passes = np.append(both, False) | np.append(False, both)
    shown = np.where(passes, shown, new)
    for k in range(len(q)):  # a repetition of a repetition
        shown[k] = shown[shown[k]]
    return shown
