"""Columns of a joint's friction: the simple laws of every fit, and what friction does around reversals.

Around reversals (widths of the reversing speed, and presliding, Dahl 1968) it resembles a delay of the efforts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ..friction.law import smooth_sign
from ..friction.laws import Dahl
from ..linalg import Array, positive, rms
from .motion_samples import WIDTHS, MotionSamples, MovingPart, OfOneLog

#: Columns of :func:`friction_columns`: offset, velocity, and the dissipative ones, which are odd in the velocity.
OFFSET, VISCOUS, DISSIPATES = 1, 2, slice(2, 6)
#: Number of columns per joint or motor, and of additional columns for springs.
OF_ONE, _OF_SPRINGS = 6, 3
#: Widths of the friction reversal besides those of the other checks, as fractions of the joint's typical speed.
_TURNS = (0.03, 0.25, 1.5)
#: Presliding distances, as fractions of the joint's range of motion. With three ten-thousandths as well, late positions of one
#: joint were taken for a lead of all efforts.
_SLIPS = (0.001, 0.003, 0.008, 0.02)


def friction_columns(motion: MotionSamples, j: int, springs: Sequence[int] = ()) -> Array:
    """Columns of rotor inertia, offset and a flexible friction law of one joint, and of motors coupled to it.

    Args:
        springs: Joints with a spring or balancer; if there are any, three more columns, zero for the other joints.

    Returns:
        Shape (N, 6): acceleration, 1, velocity, smoothed signs of two widths, velocity times its magnitude; position, its sine
        and cosine about their means; and the first six for each coupled motor, with the sign in which it drives the joint,
        padded with zeros to the largest number of coupled motors.
    """
    columns = _dissipating(motion.v[:, j], motion.a[:, j], motion.signs[:, j])
    if springs:
        q = motion.q[:, j]
        columns += [x - x.mean() if j in springs else np.zeros(len(q)) for x in (q, np.sin(q), np.cos(q))]
    for motor in coupled_with(motion.reduction, j):
        columns += (
            _dissipating(motion.v @ motor, motion.a @ motor, motion.signs_along(motor))
            if motor.any()
            else [*np.zeros((OF_ONE, len(motion.v)))]
        )
    return np.column_stack(columns)


def direction(v: Array) -> Array:
    """Smoothed sign of a velocity, within a tenth of its usual size; v of shape (N,)."""
    return smooth_sign(v, WIDTHS[0] * positive(float(v.std())))


def scaled_friction(
    motion: MotionSamples, joints: Sequence[int], beyond: Sequence[Array] | None = None, springs: Sequence[int] = ()
) -> Array:
    """Returns the columns of joints with an RMS of 1, and of further ones, shape (joints, N, k).

    Args:
        beyond: Further columns of each of the joints, shape (N, m).
        springs: As for :func:`friction_columns`.
    """
    columns = np.stack([friction_columns(motion, j, springs) for j in joints])
    columns = columns if beyond is None else np.concatenate([columns, np.stack(beyond)], axis=2)
    return np.asarray(columns / positive(rms(columns, 1))[:, None])


def coupled_with(reduction: Array | None, j: int) -> list[Array]:
    """Motors coupled to a joint and others, with the sign in which they drive it.

    Args:
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        Their rates per joint rates, shape (n,) each, padded with zeros to the largest number of coupled motors.
    """
    if reduction is None:
        return []
    coupled = reduction[np.count_nonzero(reduction, axis=1) > 1]
    motors = [np.sign(row[j]) * row for row in coupled if row[j] != 0]
    most = int((coupled != 0).sum(axis=0).max(initial=0))
    return [*motors, *np.zeros((most - len(motors), len(reduction)))]


def column_starts(columns: int) -> list[int]:
    """Start indices of the columns of a joint, and of each coupled motor, in its friction columns.

    Args:
        columns: Number of :func:`friction_columns`.
    """
    return [0, *range(OF_ONE + (_OF_SPRINGS if columns % OF_ONE else 0), columns, OF_ONE)]


def _dissipating(v: Array, a: Array, signs: Array) -> list[Array]:
    return [a, np.ones(len(v)), v, *signs.T, v * np.abs(v)]


def reversal_columns(motion: MotionSamples, joints: Sequence[int]) -> list[Array]:
    """Returns friction columns that change sign with the speed or over a short travel, and so resemble a delayed effort.

    They are computed from the whole motion and filtered like the efforts: a joint passes a short presliding distance
    between two samples.

    Returns:
        For each of the joints one column per width of speed, one per travel, and the same for coupled motors, shape (N, k),
        before the filter between −1 and 1.
    """
    directions = [[np.eye(motion.q.shape[1])[j], *coupled_with(motion.reduction, j)] for j in joints]
    found = iter(motion.whole.sampled([x for own in directions for x in own], _reversing))
    return [np.hstack([next(found) for _ in own]) for own in directions]


def _reversing(parts: Sequence[MovingPart]) -> OfOneLog:
    """Columns of one joint or motor, shape (N, k) for each segment of a log; their scales are those of all logs."""
    positions, speeds = (np.concatenate(x) for x in zip(*parts, strict=True))
    typical, slips = positive(float(speeds.std())), positive(np.array(_SLIPS) * np.ptp(positions))
    return partial(_reversing_in, np.array(_TURNS) * typical, slips)


def _reversing_in(widths: Array, slips: Array, log: Sequence[MovingPart]) -> Iterator[Array]:
    """Yields the columns of each segment of a log.

    Between two segments the state of presliding remains as far as the joint did not move on, as in a rest that was cut out;
    otherwise, and where the log begins, it is that after the travel since the joint stood still.
    """
    last, states = np.inf, np.zeros((1, len(slips)))
    for q, v in log:
        turns = [np.tanh(v / width) for width in widths]
        kept = np.exp(-abs(q[0] - last) / slips)
        starts = states[-1] * kept + np.sign(q[1] - q[0]) * (1 - np.exp(-_travelled(q) / slips)) * (1 - kept)
        states = np.column_stack([Dahl(slip).trace(q, start, 0.0) for start, slip in zip(starts, slips, strict=True)])
        last = float(q[-1])
        yield np.column_stack([*turns, states])


def _travelled(q: Array) -> float:
    """Travel between the last standstill of a joint and its first position, from its acceleration; inf if it slows down."""
    first, second = q[1] - q[0], q[2] - q[1]
    return float(first**2 / (2 * abs(second - first))) if first * (second - first) > 0 else np.inf
