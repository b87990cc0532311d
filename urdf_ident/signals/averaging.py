"""Averages over the periods of a repeated motion (Wu 2012, section 4; Swevers): noise reduction, noise estimate, derivatives.

Torques are averaged directly; differences between periods are noise, independently of the model. Positions are averaged and
represented by a Fourier series, with more harmonics than the planned motion has, because the closed loop does not track it
exactly. An omitted harmonic is missing from the acceleration, an included one adds its noise, both weighted by the fourth
power of frequency; the number of harmonics minimises the sum (Mallows' C_p of the accelerations), up to the cut-off of the
positions, which logs without periods have as well: what repeats in every period is no noise to that sum, although vibration and
errors of the clock, which repeat as well, are not the motion of rigid bodies. Velocity and acceleration are the exact
derivatives of the series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg import Array
from ..samples import ReadOnly, Segment
from ..units import percent
from .filters import HIGHEST
from .periods import Repetition, deviations, periods_of
from .resample import UniformPiece

#: A sample is an outlier if it is this many robust standard deviations of the noise from the median at its phase.
FAR, _QUARTILE = 10.0, 0.6745
#: Differences between periods below this fraction of the largest torque are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Averaged(ReadOnly):
    """Statistics of the averaged periods.

    Attributes:
        seconds: Length of a period [s].
        count: Number of periods averaged.
        start: Start of the first period, on the log's clock [s].
        missing: Fraction of the acceleration power that is noise or omitted, mean over the moving joints.
        deviation: Torque of each period minus the mean, shape (count, K, n) [N·m or N].
        noise: Standard deviation of a torque sample, from ``deviation``, shape (n,) [N·m or N].
        outliers: Number of torque samples left out as outliers.
    """

    seconds: float
    count: int
    start: float
    harmonics: int
    missing: float
    deviation: Array
    noise: Array
    outliers: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The entry ``periods`` of a log in identification.json."""
        return {
            "seconds": self.seconds,
            "count": self.count,
            "start": self.start,
            "harmonics": self.harmonics,
            "noise": self.noise.tolist(),
            "wild": self.outliers,
        }

    def describe(self) -> str:
        """A one-line description of the averaging."""
        return (
            f"{self.count} periods of {self.seconds:.4g} s; {self.harmonics} harmonics of their mean "
            f"({self.harmonics / self.seconds:.3g} Hz) represent the motion, {percent(100 * self.missing)} % of its "
            "acceleration is noise or left out; "
            f"torque noise from their scatter {', '.join(f'{x:.2g}' for x in self.noise)} N·m or N"
            + (f"; {self.outliers} outliers of it left out" if self.outliers else "")
        )


def average(
    piece: UniformPiece, rate: float, repetition: Repetition, log: str, cutoff: float, around: int = 1
) -> tuple[Segment, Averaged]:
    """Averages the periods of a piece of a log.

    Args:
        piece: On a uniform grid, without motor positions.
        rate: Its samples per second [Hz].
        cutoff: Upper limit for the harmonics [Hz], whose number is chosen by the residual.
        around: Number of copies of the period before and after the one that is used, as history for filters and terms with
            memory.

    Returns:
        ``2·around + 1`` equal periods in a row, the middle one at the time of the second period of the log; and the
        statistics of the periods.
    """
    q = periods_of(piece.q, repetition).mean(axis=0)
    samples, seconds = len(q), repetition.length / rate
    begin = piece.start + repetition.first / rate
    reach = max(1, min(int(cutoff * seconds), int(HIGHEST * samples)))
    harmonics, missing = choose_harmonics(q, deviations(piece.q, repetition), reach)
    path = fourier_derivatives(q, seconds, harmonics)
    tau, deviation, noise, outliers = None, np.zeros((repetition.count, samples, q.shape[1])), np.zeros(q.shape[1]), 0
    if piece.tau is not None:
        # mean over periods without outliers, samples far from the median over periods at their phase
        x = periods_of(piece.tau, repetition)
        apart = x - np.median(x, axis=0)
        off = [np.abs(apart[..., j][apart[..., j] != 0.0]) for j in range(x.shape[2])]  # of an odd count, one is the median
        level = np.array([np.median(part) if len(part) else 0.0 for part in off])
        kept = np.abs(apart) <= FAR * level / _QUARTILE
        kept |= ~kept.any(axis=0)
        tau, outliers = np.where(kept, x, 0.0).sum(axis=0) / kept.sum(axis=0), int((~kept).sum())
        deviation = np.where(kept, x - tau, 0.0)
        deviation[np.abs(deviation) < ROUNDING * np.abs(tau).max(axis=0)] = 0.0
        noise = np.sqrt(np.sum(deviation**2, axis=(0, 1)) / ((repetition.count - 1) * samples))
    external = None if piece.external is None else periods_of(piece.external, repetition).mean(axis=0)
    tiled = {
        name: None if x is None else np.tile(x, (2 * around + 1, 1))
        for name, x in zip(("q", "v", "a", "tau", "external"), (*path, tau, external), strict=True)
    }
    segment = Segment(log, begin + (1 - around) * seconds, samples / seconds, **tiled, repeats=repetition.count)  # type: ignore[arg-type]
    return segment, Averaged(seconds, repetition.count, begin, harmonics, missing, deviation, noise, outliers)


def choose_harmonics(q: Array, scatter: Array, reach: int) -> tuple[int, float]:
    """Chooses the number of harmonics of the positions by Mallows' C_p of the accelerations.

    Args:
        q: Mean positions of one period, shape (K, n) [rad or m].
        scatter: Positions of each period minus the mean, shape (count, K, n).
        reach: Largest number.

    Returns:
        The number, and the resulting fraction of the acceleration power that is noise or omitted.
    """
    count, samples = scatter.shape[:2]
    power = np.abs(np.fft.rfft(q, axis=0)[1:] / samples) ** 2
    apart = np.abs(np.fft.rfft(scatter, axis=1)[:, 1:] / samples) ** 2
    dof = count - 1
    noise = np.median(apart.sum(axis=0), axis=0) / (dof * count * (1.0 - 1.0 / (3.0 * dof)))  # median to mean of a χ²
    # Errors that repeat in every period, as of encoder steps, show beyond the motion only. Their mean counts, as they need
    # not be normal, and of a sine about the middle of a step half of the coefficients are zero.
    seen = int(HIGHEST * samples)
    noise = np.maximum(noise, power[seen:].mean(axis=0))
    order = np.arange(1.0, seen + 1.0)[:, None] ** 4
    added, gained = order * noise, order * (power[:seen] - noise)  # noise added and signal gained by a harmonic
    loss = np.cumsum(added - gained, axis=0)
    signal = np.array([gained[: int(np.argmin(column)) + 1, j].sum() for j, column in enumerate(loss.T)])
    moving = signal > 1e-12 * signal.max(initial=0.0)
    best = int(np.argmin((loss[:reach, moving] / signal[moving]).mean(axis=1))) + 1
    kept, lost = added[:best].sum(axis=0), np.maximum(signal - gained[:best].sum(axis=0), 0.0)
    return best, float(np.mean((kept + lost)[moving] / signal[moving]))


def fourier_derivatives(q: Array, seconds: float, harmonics: int) -> tuple[Array, Array, Array]:
    """Least-squares Fourier series of a period, with its derivatives.

    Args:
        q: Shape (K, n), uniformly sampled over one period [rad or m].
        seconds: Length of the period [s].

    Returns:
        Position, velocity, acceleration, shapes (K, n).
    """
    spectrum = np.fft.rfft(q, axis=0)
    spectrum[harmonics + 1 :] = 0.0
    turn = 2j * np.pi / seconds * np.arange(len(spectrum))[:, None]
    parts = (spectrum, spectrum * turn, spectrum * turn**2)
    position, velocity, acceleration = (np.asarray(np.fft.irfft(part, len(q), axis=0)) for part in parts)
    return position, velocity, acceleration
