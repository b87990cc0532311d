"""Trajectories: their base class, the piecewise polynomial that most of them are, what composes them, and the default CSV.

A trajectory provides *bounds* on its derivatives and its *smoothness*: a limit checked on samples holds only there; with a
bound on higher derivatives it can be certified between samples as well (:mod:`.limits`). Piecewise polynomials are splines
through samples, clamped B-splines of degree 5 (Zollo 2015), and point-to-point motion with trapezoidal acceleration (Gautier
2013), also that of sweeps at constant speed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, check_positive, check_shape
from ..files.read_write import write_text
from ..files.sizes import MOST_SAMPLES
from ..linalg import Array, one_each, shaped
from ..quoting import csv_cell
from ..samples import freeze_arrays


def table_text(
    joints: tuple[str, ...], time: Array, signals: dict[str, Array], units: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Formats signals as the default CSV (docs/logs.md).

    Args:
        time: Shape (N,) [s].
        signals: Prefix (``q``, ``v``, ``a``, ``tau``, …) → shape (N, n), SI units.
        units: Prefix → unit to state, where the quantity does not say it.

    Returns:
        Header and rows with 12 significant digits. Names that contain a comma or a quotation mark are quoted.
    """
    table = np.column_stack([time, *signals.values()])
    row = ",".join(["%.12g"] * table.shape[1])
    return "\n".join([table_header(joints, signals, units), *(row % tuple(values) for values in table.tolist()), ""])


def table_header(
    joints: tuple[str, ...], prefixes: Iterable[str] = ("q", "v", "a"), units: Mapping[str, str] = MappingProxyType({})
) -> str:
    """First line of the default CSV; prefixes: signals; by default those of a motion; units: as for :func:`table_text`."""
    stated = {prefix: f" [{units[prefix]}]" if prefix in units else "" for prefix in prefixes}
    return ",".join(["t", *(csv_cell(f"{prefix}_{joint}{unit}") for prefix, unit in stated.items() for joint in joints)])


def check_repetitions(periods: float) -> None:
    """Raises an error if a motion cannot be repeated a number of times; periods: that number, as given."""
    if not (periods >= 1 and periods % 1 == 0):
        raise LimitError("a motion is repeated a whole number of times", got=periods, expected="1, 2, …")


class Trajectory(ABC):
    """A joint-space motion with analytic velocity and acceleration.

    Attributes:
        joints: Joint names, the order of every column.
        duration: Length [s]; the trajectory starts at t = 0.
        smoothness: Order of the highest continuous derivative (2: the acceleration does not jump).
    """

    joints: tuple[str, ...]
    duration: float
    smoothness: int

    @abstractmethod
    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Returns position, velocity and acceleration.

        Args:
            t: Times, shape (N,) [s], from 0 to ``duration``.

        Returns:
            ``(q, v, a)``, each of shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        """

    @abstractmethod
    def bounds(self, order: int) -> Array:
        """Returns an upper bound of ``|dᵏq/dtᵏ|`` over the whole trajectory, not only on samples.

        Args:
            order: The derivative k, at least 1.

        Returns:
            Shape (n,) [rad/sᵏ or m/sᵏ]; inf where no bound is known.
        """

    def times(self, rate: float) -> Array:
        """Returns sample times from 0 to the end.

        Args:
            rate: Samples per second [Hz].

        Returns:
            Shape (N,) [s]; the last one is the last multiple of the sampling period not beyond the end.

        Raises:
            LimitError: The rate is not positive, or there are more than :data:`.sizes.MOST_SAMPLES`.
        """
        check_positive("the sampling rate", rate, LimitError, "Hz")
        if not self.duration * rate < MOST_SAMPLES:
            got, expected = f"{self.duration:g} s at {rate:g} Hz", f"fewer than {MOST_SAMPLES:g}"
            raise LimitError("the motion has too many samples", got=got, expected=expected)
        return np.arange(int(np.floor(self.duration * rate * (1 + 1e-12) + 1e-9)) + 1) / rate

    def write(self, path: str | Path, rate: float = 1000.0) -> Path:
        """Writes the default CSV: ``t, q_<joint>…, v_<joint>…, a_<joint>…``.

        Args:
            rate: Samples per second [Hz].

        Raises:
            OutputError: It cannot be written.
        """
        time = self.times(rate)
        signals = dict(zip(("q", "v", "a"), self.evaluate(time), strict=True))
        return write_text(path, table_text(self.joints, time, signals))


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial(Trajectory):
    """Polynomials in the time since the start of each piece; at rest before the first and after the last piece.

    Attributes:
        breaks: Start of each piece and the end of the last, shape (P + 1,) [s], from 0.
        coefficients: Ascending powers, shape (P, n, D + 1) [rad/sᵏ or m/sᵏ].
    """

    joints: tuple[str, ...]
    breaks: Array
    coefficients: Array
    smoothness: int = 2
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        check_shape("coefficients", self.coefficients.shape, (len(self.breaks) - 1, len(self.joints), "D + 1"))
        if self.breaks[0] != 0 or not (np.diff(self.breaks) > 0).all():
            raise LimitError("the times of a trajectory must start at 0 and increase", got=self.breaks[:5])
        freeze_arrays(self, duration=float(self.breaks[-1]))

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        time = np.atleast_1d(np.asarray(t, dtype=float))
        inside = np.clip(time, 0.0, self.duration)
        piece = np.clip(np.searchsorted(self.breaks, inside, side="right") - 1, 0, len(self.breaks) - 2)
        s = (inside - self.breaks[piece])[:, None]
        c = self.coefficients[piece]
        q, v, a = (np.zeros(c.shape[:2]) for _ in range(3))
        for k in range(c.shape[2] - 1, -1, -1):  # Horner for the value and its first two derivatives at once
            a = a * s + 2.0 * v
            v = v * s + q
            q = q * s + c[:, :, k]
        outside = (time < 0) | (time > self.duration)
        v[outside] = a[outside] = 0.0
        return q, v, a

    def bounds(self, order: int) -> Array:
        """Bound from the Bernstein coefficients of each piece; see :meth:`Trajectory.bounds`."""
        degree = self.coefficients.shape[2] - 1 - order
        if degree < 0:
            return np.zeros(len(self.joints))
        powers = np.arange(order, order + degree + 1)
        factor = np.array([np.prod(np.arange(p, p - order, -1, dtype=float)) for p in powers])
        scaled = self.coefficients[:, :, order:] * factor * np.diff(self.breaks)[:, None, None] ** (powers - order)
        to_bernstein = np.array(
            [[comb(j, i) / comb(degree, i) if i <= j else 0.0 for i in range(degree + 1)] for j in range(degree + 1)]
        )
        return np.asarray(np.abs(scaled @ to_bernstein.T).max(axis=(0, 2)))


def sampled(joints: Sequence[str], time: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> PiecewisePolynomial:
    """Returns the fifth-degree polynomials through samples of position, velocity and acceleration.

    Args:
        time: Shape (N,) [s], from 0, increasing.
        q: Positions, shape (N, n) [rad or m].
        v: Velocities, shape (N, n) [rad/s or m/s].
        a: Accelerations, shape (N, n) [rad/s² or m/s²].
    """
    t, q, v, a = (np.asarray(x, dtype=float) for x in (time, q, v, a))
    h = np.diff(t)[:, None]
    q0, v0, a0 = q[:-1], v[:-1] * h, a[:-1] * h**2
    dq = q[1:] - q0 - v0 - a0 / 2
    dv = v[1:] * h - v0 - a0
    da = a[1:] * h**2 - a0
    unit = np.stack([q0, v0, a0 / 2, 10 * dq - 4 * dv + da / 2, -15 * dq + 7 * dv - da, 6 * dq - 3 * dv + da / 2], axis=-1)
    return PiecewisePolynomial(tuple(joints), t, unit / h[:, :, None] ** np.arange(6))


#: Largest difference between two ends that count as equal [rad, rad/s, rad/s² or m …].
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class SequenceTrajectory(Trajectory):
    """One trajectory after the other, as :func:`ramped` and :func:`repeated` make them: without a jump in position, velocity or
    acceleration.

    Attributes:
        parts: The trajectories, for the same joints.
    """

    parts: tuple[Trajectory, ...]
    joints: tuple[str, ...] = field(init=False)
    duration: float = field(init=False)
    smoothness: int = field(init=False)

    def __post_init__(self) -> None:
        duration, smooth = sum(piece.duration for piece in self.parts), min(piece.smoothness for piece in self.parts)
        freeze_arrays(self, joints=self.parts[0].joints, duration=float(duration), smoothness=min(2, smooth))

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        time = np.atleast_1d(np.asarray(t, dtype=float))
        motion = np.empty((3, len(time), len(self.joints)))
        starts = np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.parts])[:-1]])
        index = np.clip(np.searchsorted(starts, time, side="right") - 1, 0, None)
        for k, (piece, start) in enumerate(zip(self.parts, starts, strict=True)):
            during = index == k
            if during.any():
                motion[:, during] = piece.evaluate(time[during] - start)
        return motion[0], motion[1], motion[2]

    def bounds(self, order: int) -> Array:
        """Largest bound of the parts; see :meth:`Trajectory.bounds`."""
        return np.asarray(np.max([piece.bounds(order) for piece in self.parts], axis=0))


def repeated(trajectory: Trajectory, periods: int) -> SequenceTrajectory:
    """Repeats a closed motion without a pause.

    Args:
        trajectory: One period; must end in the state in which it starts.

    Raises:
        LimitError: It does not, or the number of periods is no whole number.
    """
    check_repetitions(periods)
    end, start = trajectory.evaluate([trajectory.duration]), trajectory.evaluate([0.0])
    for name, x, y in zip(("position", "velocity", "acceleration"), end, start, strict=True):
        jump = np.abs(x[0] - y[0])
        j = int(np.argmax(jump))
        if jump[j] > TOLERANCE * (1.0 + abs(x[0, j])):
            raise LimitError(
                f"the trajectory does not end where it starts: the {name} jumps",
                where=f"joint '{trajectory.joints[j]}'",
                got=f"{jump[j]:.3g}",
                remedy="join them with ramped(…)",
            )
    return SequenceTrajectory((trajectory,) * periods)


def ramped(trajectory: Trajectory, home: ArrayLike, duration: float = 2.0) -> SequenceTrajectory:
    """Adds fifth-degree ramps, so that the motion starts and ends at rest at a home pose.

    Args:
        trajectory: Any trajectory; it may start and end in motion.
        home: The pose, shape (n,) [rad or m].
        duration: Of each ramp [s]; check the limits afterwards: short ramps need high accelerations.

    Raises:
        LimitError: The duration is not positive.
    """
    check_positive("the duration of a ramp", duration, LimitError, "s")
    pose = one_each("home", home, len(trajectory.joints))
    first, last = ([x[0] for x in trajectory.evaluate([time])] for time in (0.0, trajectory.duration))
    still, ends = np.zeros_like(pose), np.array([0.0, duration])
    rise = sampled(trajectory.joints, ends, [pose, first[0]], [still, first[1]], [still, first[2]])
    fall = sampled(trajectory.joints, ends, [last[0], pose], [last[1], still], [last[2], still])
    return SequenceTrajectory((rise, trajectory, fall))


DEGREE = 5


def b_spline_at_rest(
    joints: Sequence[str], start: ArrayLike, interior: ArrayLike, end: ArrayLike, duration: float
) -> PiecewisePolynomial:
    """Returns a clamped B-spline of degree 5 on uniform knots, with zero velocity and acceleration at both ends (three equal
    control points each), four continuous derivatives and the convex-hull property.

    Args:
        start: First position, shape (n,) [rad or m].
        interior: Free control points, shape (K, n) [rad or m].
        end: Last position, shape (n,) [rad or m].
        duration: Length [s].

    Raises:
        LimitError: The duration is not positive.
    """
    check_positive("the duration", duration, LimitError, "s")
    inside = shaped("interior", interior, ("K", len(joints)))
    points = np.vstack([np.tile(start, (3, 1)), inside, np.tile(end, (3, 1))])
    inner = np.linspace(0.0, duration, len(points) - DEGREE + 1)
    return spline_pieces(joints, np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, duration)]), points)


def spline_pieces(joints: Sequence[str], knots: Array, control: Array) -> PiecewisePolynomial:
    """Converts a clamped spline of degree 5 to polynomials.

    Args:
        knots: Shape (K + 6,) [s], the first and last six equal.
        control: Shape (K, n) [rad or m].
    """
    from scipy.interpolate import BSpline

    spline = BSpline(knots, control, DEGREE)
    breaks = np.unique(knots)
    factorial = np.cumprod([1.0, *range(1, DEGREE + 1)])
    coefficients = np.stack([spline(breaks[:-1], nu=k) / factorial[k] for k in range(DEGREE + 1)], axis=-1)
    return PiecewisePolynomial(tuple(joints), breaks, coefficients, smoothness=DEGREE - 1)


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
