"""Friction around reversals, which resembles a delay of the efforts: reversing widths and presliding (Dahl 1968)."""

from __future__ import annotations

import numpy as np

from ....linalg import Array
from ..grams import coupled_with
from ..motion_samples import MotionSamples

#: Widths of the friction reversal besides those of the other checks, as fractions of the joint's typical speed.
_TURNS = (0.03, 0.25, 1.5)
#: Presliding distances, as fractions of the joint's range of motion. With a thousandth as well, noise of the encoders was taken
#: for a lead of the efforts by 37 ms (12 s at 200 Hz, noise 0.2 mrad).
_SLIPS = (0.003, 0.008, 0.02)


def reversal_columns(motion: MotionSamples, j: int) -> Array:
    """Returns friction columns that change sign with the speed or over a short travel, and so resemble a delayed effort.

    Returns:
        One column per width of speed, one per travel, and the same for coupled motors, shape (N, k), between −1 and 1.
    """
    columns: list[Array] = []
    for direction in (np.eye(motion.q.shape[1])[j], *coupled_with(motion.reduction, j)):
        q, v = motion.q @ direction, motion.v @ direction
        columns += [np.tanh(v / (width * max(float(v.std()), 1e-9))) for width in _TURNS]
        columns += [_dahl_state(q, part) for part in _SLIPS]
    return np.column_stack(columns)


def _dahl_state(q: Array, part: float) -> Array:
    """The state of Dahl's model, between −1 and 1, shape (N,)."""
    step = np.diff(q, prepend=q[0])
    directions, kept = np.sign(step), np.exp(-np.abs(step) / max(part * float(np.ptp(q)), 1e-9))
    state, out = 0.0, []
    for direction, share in zip(directions.tolist(), kept.tolist(), strict=True):
        state = direction - (direction - state) * share
        out.append(state)
    return np.array(out)
