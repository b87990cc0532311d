"""Point-to-point motion with trapezoidal acceleration (Gautier 2013), and sweeps at constant speed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError
from ..linalg import Array, shaped
from .trajectory import PiecewisePolynomial


def trapezoidal(
    joints: tuple[str, ...],
    points: ArrayLike,
    velocity: ArrayLike,
    acceleration: ArrayLike,
    jerk: ArrayLike,
    dwell: float = 0.0,
) -> PiecewisePolynomial:
    """Returns straight joint-space moves through via points; all joints start and stop together and rest at every point.

    Each move is as fast as its slowest joint allows: the acceleration rises linearly (constant jerk), holds and falls;
    a phase of constant velocity may follow.

    Args:
        points: Via points, shape (K, n), K ≥ 2 [rad or m].
        velocity: Largest velocity, shape (n,) or (K − 1, n) for each move [rad/s or m/s].
        acceleration: Largest acceleration, same shapes [rad/s² or m/s²].
        jerk: Largest jerk, same shapes [rad/s³ or m/s³].
        dwell: Pause after each move [s].

    Raises:
        LimitError: Fewer than two points, a limit that is not positive, or nothing moves.
    """
    via = shaped("points", points, ("K", len(joints)))
    if len(via) < 2:
        raise LimitError("a point-to-point motion needs two points", got=len(via))
    rates = [np.broadcast_to(np.asarray(x, dtype=float), via[1:].shape) for x in (velocity, acceleration, jerk)]
    for name, rate in zip(("velocity", "acceleration", "jerk"), rates, strict=True):
        if not (rate > 0).all():
            raise LimitError(f"the {name} limits of a motion must be positive", got=rate.min())
    lengths: list[float] = []
    rows: list[Array] = []
    for k, (start, move) in enumerate(zip(via[:-1], np.diff(via, axis=0), strict=True)):
        moving = np.abs(move) > 0
        if moving.any():
            scaled = [float((rate[k][moving] / np.abs(move[moving])).min()) for rate in rates]
            for length, cubic in _unit_profile(*scaled):
                row = np.outer(move, cubic)
                row[:, 0] += start
                lengths.append(length)
                rows.append(row)
        if dwell > 0:
            lengths.append(dwell)
            rows.append(np.column_stack([via[k + 1], np.zeros((len(joints), 3))]))
    if not rows:
        raise LimitError("all points are the same and there is no dwell: nothing moves")
    return PiecewisePolynomial(joints, np.concatenate([[0.0], np.cumsum(lengths)]), np.array(rows))


def _unit_profile(v: float, a: float, j: float) -> list[tuple[float, Array]]:
    """Returns the fastest rest-to-rest move over distance 1 with limits v, a, j: seven phases of constant jerk."""

    def rise(speed: float) -> tuple[float, float]:
        """Returns the duration of constant jerk and the total time to reach a speed."""
        return (a / j, speed / a + a / j) if speed >= a * a / j else (np.sqrt(speed / j), 2 * np.sqrt(speed / j))

    if v * rise(v)[1] > 1.0:  # no cruise phase: peak speed at which rise and fall cover the distance
        r = a / j
        v = 0.5 * a * (np.sqrt(r * r + 4.0 / a) - r)
        if v < a * a / j:
            v = np.cbrt(j / 4.0)
    ramp, total = rise(v)
    hold = max(0.0, total - 2 * ramp)
    cruise = max(0.0, (1.0 - v * total) / v)
    jerk = v / (ramp * (ramp + hold))
    phases = [(ramp, jerk), (hold, 0), (ramp, -jerk), (cruise, 0), (ramp, -jerk), (hold, 0), (ramp, jerk)]
    state, out = np.zeros(3), []
    for length, slope in phases:
        if length <= 1e-12 * total:
            continue
        out.append((length, np.array([state[0], state[1], state[2] / 2, slope / 6])))
        state = np.array(
            [
                state[0] + state[1] * length + state[2] * length**2 / 2 + slope * length**3 / 6,
                state[1] + state[2] * length + slope * length**2 / 2,
                state[2] + slope * length,
            ]
        )
    return out
