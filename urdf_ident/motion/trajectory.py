"""Base class of trajectories, the piecewise polynomial that most of them use, and the default CSV.

A trajectory provides *bounds* on its derivatives and its *smoothness*: a limit checked on samples holds only there; with a
bound on higher derivatives it can be certified between samples as well (:mod:`.limits`).
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
from ..linalg import Array
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
