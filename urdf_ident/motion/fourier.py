"""Finite Fourier series, free (Szabó 2021, eq. 22; Liu 2023, eq. 17) or constrained at both ends (Wu 2012); docs/theory.md §8.

``q_i = q0_i + Σ_l a_il/(ω l) sin(ω l t) − b_il/(ω l) cos(ω l t)``, so that a and b are velocity amplitudes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, check_positive
from ..linalg import Array, one_each, shaped
from ..samples import freeze_arrays
from .limits import Limits, finite_ends
from .trajectory import Trajectory, check_repetitions

#: Smoothness of a series, which has all derivatives: above every order that a check asks for.
_ANALYTIC = 99


@dataclass(frozen=True, eq=False)
class FourierTrajectory(Trajectory):
    """A finite Fourier series.

    Attributes:
        period: Of the fundamental [s]; ω = 2π / period.
        offset: q0, shape (n,) [rad or m]; the mean position.
        a: Sine coefficients, shape (n, M) [rad/s or m/s].
        b: Cosine coefficients, shape (n, M) [rad/s or m/s].
        duration: Length [s]; one period unless stated.
    """

    joints: tuple[str, ...]
    period: float
    offset: Array
    a: Array
    b: Array
    duration: float = 0.0
    smoothness: int = field(default=_ANALYTIC, init=False)

    def __post_init__(self) -> None:
        a = shaped("a", self.a, (len(self.joints), "M"))
        _check_series(self.period, a.shape[1])
        freeze_arrays(
            self,
            offset=one_each("offset", self.offset, len(self.joints)),
            a=a,
            b=shaped("b", self.b, a.shape),
            duration=float(self.duration or self.period),
        )

    @property
    def harmonics(self) -> int:
        """Number of harmonics M."""
        return int(self.a.shape[1])

    @property
    def omega(self) -> float:
        """Fundamental angular frequency [rad/s]."""
        return 2 * np.pi / self.period

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        speed = self.omega * np.arange(1, self.harmonics + 1)
        angle = np.atleast_1d(np.asarray(t, dtype=float))[:, None] * speed
        sin, cos = np.sin(angle), np.cos(angle)
        q = self.offset + sin @ (self.a / speed).T - cos @ (self.b / speed).T
        return q, cos @ self.a.T + sin @ self.b.T, cos @ (self.b * speed).T - sin @ (self.a * speed).T

    def bounds(self, order: int) -> Array:
        """Sum of the harmonics' amplitudes; see :meth:`Trajectory.bounds`."""
        speed = self.omega * np.arange(1, self.harmonics + 1)
        return np.asarray((np.hypot(self.a, self.b) * speed ** (order - 1)).sum(axis=1))


def modified_fourier(
    joints: tuple[str, ...], period: float, start: ArrayLike, free_a: ArrayLike, free_b: ArrayLike, periods: int = 1
) -> FourierTrajectory:
    """Returns a Fourier series that starts and ends at rest in one pose (modified Fourier series, Wu 2012).

    The constraints ``Σ a_l = 0``, ``Σ l·b_l = 0``, ``q0 = q + Σ b_l/(ω l)`` are solved for the last harmonic and the
    offset, so every choice of the free coefficients satisfies them exactly.

    Args:
        period: Of the fundamental [s].
        start: Position at t = 0 and at every whole period, shape (n,) [rad or m].
        free_a: Sine coefficients of all harmonics but the last, shape (n, M − 1) [rad/s or m/s].
        free_b: Cosine coefficients of all harmonics but the last, shape (n, M − 1) [rad/s or m/s].
        periods: Whole number of periods.

    Raises:
        LimitError: The period or the number of periods is not positive, or the latter not whole.
        ShapeError: The coefficients do not fit.
    """
    sine = shaped("free_a", free_a, (len(joints), "M - 1"))
    cosine = shaped("free_b", free_b, sine.shape)
    harmonics = sine.shape[1] + 1
    _check_series(period, harmonics)
    check_repetitions(periods)
    order, omega = np.arange(1, harmonics), 2 * np.pi / period
    a = np.column_stack([sine, -sine.sum(axis=1)])
    b = np.column_stack([cosine, -cosine @ order / harmonics])
    offset = one_each("start", start, len(joints)) + b @ (1.0 / (omega * np.arange(1, harmonics + 1)))
    return FourierTrajectory(joints, period, offset, a, b, period * periods)


def random_fourier(
    limits: Limits,
    duration: float = 20.0,
    harmonics: int = 5,
    seed: int = 0,
    *,
    fill: float = 0.9,
    span: float = 2.0,
    start: ArrayLike | None = None,
    periods: int = 1,
) -> FourierTrajectory:
    """Returns a random modified Fourier series, scaled to the position, velocity and acceleration limits of every joint.

    It starts and ends at rest. An unknown acceleration limit (a URDF holds none) is replaced by the velocity limit per
    half second.

    Args:
        limits: Limits of the joints; positions and velocities must be known.
        duration: Of one period [s].
        harmonics: Number of harmonics, at least 2.
        seed: Of the random number generator.
        fill: Fraction of each limit that is used, 0 to 1.
        span: Largest deviation from the start position where the position limits allow more [rad or m].
        start: Start position, shape (n,) [rad or m]; the middle of the range (0 without limits) by default.
        periods: Whole number of periods.

    Raises:
        LimitError: A limit is unknown, the start is outside the limits, or there are too few harmonics.
    """
    limits.require("velocity")
    n, rng = len(limits.joints), np.random.default_rng(seed)
    if harmonics < 2:
        raise LimitError("too few harmonics to start and end at rest", got=harmonics, expected="at least 2")
    low, high = limits.lower, limits.upper
    centre = np.mean(finite_ends(low, high), axis=0) if start is None else one_each("start", start, len(limits.joints))
    limits.require_inside(centre, "start pose")
    half_range = np.minimum(np.minimum(high - centre, centre - low), span) * fill
    free = rng.standard_normal((2, n, harmonics - 1)) * (1.0 / np.sqrt(np.arange(1, harmonics)))
    shape = modified_fourier(limits.joints, duration, np.zeros(n), free[0], free[1])
    intervals = 400 * harmonics  # 400 in the shortest period: the bound between samples adds little
    motion = shape.evaluate(np.linspace(0.0, duration, intervals + 1))
    between = (duration / intervals) ** 2 / 8  # excess of a signal between samples, per bound of its second derivative
    peaks = [np.abs(signal).max(axis=0) + shape.bounds(order + 2) * between for order, signal in enumerate(motion)]
    allowed = [half_range, fill * limits.velocity, fill * limits.assumed_acceleration]
    scale = np.min([most / peak for most, peak in zip(allowed, peaks, strict=True)], axis=0)[:, None]
    return modified_fourier(limits.joints, duration, centre, free[0] * scale, free[1] * scale, periods=periods)


def _check_series(period: float, harmonics: int) -> None:
    check_positive("the period of a Fourier series", period, LimitError, "s")
    if harmonics < 1:
        raise LimitError("a Fourier series without harmonics does not move", got=harmonics, expected="at least 1")
