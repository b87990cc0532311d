"""Averages over the periods of a motion that repeats (Wu 2012, section 4; Swevers): less noise, its size, exact derivatives.

Torques are averaged as they are; what differs between periods is noise, whatever the model. Positions are averaged and then
held by the motion's own Fourier series, with as many harmonics as the closed loop needs: more than the planned motion has,
for a robot that is driven does not do exactly what it was told. A harmonic that is left out is missing from the
acceleration, one that is taken in brings its noise along, both with the fourth power of its frequency; the number of
harmonics makes the sum of both least (Mallows' C_p, on accelerations). Velocity and acceleration are then exact
derivatives of what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...linalg import Array
from ...samples import ReadOnly, Segment
from .filters import HIGHEST
from .periods import Repetition, deviations, periods_of
from .resample import Stretch

#: A sample is an outlier when it is this many robust standard deviations of the noise away from the median of its phase.
FAR, _QUARTILE = 10.0, 0.6745
#: Differences between periods below this part of the largest torque are rounding.
ROUNDING = 1e-12
#: Median over mean of a squared complex normal coefficient.
_MEDIAN = float(np.log(2.0))


@dataclass(frozen=True, eq=False)
class Averaged(ReadOnly):
    """One period, averaged, and what differed.

    Attributes:
        seconds: Length of a period [s].
        count: Number of periods behind it.
        start: When the first began, on the log's clock [s].
        harmonics: Of the positions.
        missing: Share of the acceleration's power that is noise or left out, mean over the joints that move.
        deviation: Torque of each period less the mean, shape (count, K, n) [N·m or N].
        noise: Standard deviation of a sample of the torque, from that, shape (n,) [N·m or N].
        outliers: Samples of the torque that were left out, far from what all periods do at their phase.
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
        """What was done, in one line."""
        return (
            f"{self.count} periods of {self.seconds:.4g} s; {self.harmonics} harmonics of their mean "
            f"({self.harmonics / self.seconds:.3g} Hz) represent the motion, {100 * self.missing:.2g} % of its acceleration is "
            f"noise or left out; torque noise from their scatter {', '.join(f'{x:.2g}' for x in self.noise)} N·m or N"
            + (f"; {self.outliers} outliers of it left out" if self.outliers else "")
        )


def average(
    piece: Stretch, rate: float, repetition: Repetition, log: str, cutoff: float | None = None, around: int = 1
) -> tuple[Segment, Averaged]:
    """Averages the periods of a piece of a log.

    Args:
        piece: On an even grid, without motor positions.
        rate: Its samples per second [Hz].
        repetition: Its periods.
        log: Name of the log.
        cutoff: No harmonic is higher [Hz]; their number is chosen by the residual all the same. None: a fifth of the rate.
        around: Periods that are put before and after the one that counts, so that filters and terms with memory find what
            was there.

    Returns:
        ``2·around + 1`` equal periods in a row, the middle one at the time of the second; and what is known of the repetitions.
    """
    q = periods_of(piece.q, repetition).mean(axis=0)
    samples, seconds = len(q), repetition.length / rate
    begin = piece.start + repetition.first / rate
    reach = int(HIGHEST * samples) if cutoff is None else max(1, min(int(cutoff * seconds), int(HIGHEST * samples)))
    scatter = deviations(piece.q, repetition)
    harmonics, missing = choose_harmonics(q, scatter, reach)
    path = fourier_derivatives(q, seconds, harmonics)
    tau, deviation, noise, outliers = None, np.zeros((repetition.count, samples, q.shape[1])), np.zeros(q.shape[1]), 0
    if piece.tau is not None:
        tau, deviation, outliers = mean_of_periods(periods_of(piece.tau, repetition))
        noise = np.sqrt(np.sum(deviation**2, axis=(0, 1)) / ((repetition.count - 1) * samples))
    external = None if piece.external is None else periods_of(piece.external, repetition).mean(axis=0)
    tiled = {
        name: None if x is None else np.tile(x, (2 * around + 1, 1))
        for name, x in zip(("q", "v", "a", "tau", "external"), (*path, tau, external), strict=True)
    }
    first = begin + (1 - around) * seconds
    segment = Segment(log, first, samples / seconds, **tiled, repeats=repetition.count)  # type: ignore[arg-type]
    return segment, Averaged(seconds, repetition.count, begin, harmonics, missing, deviation, noise, outliers)


def mean_of_periods(x: Array) -> tuple[Array, Array, int]:
    """Mean over periods without outliers: one that is far from what all periods do at its phase is left out.

    Args:
        x: Shape (count, K, n), any unit.

    Returns:
        The mean, shape (K, n), what each period differs by, shape (count, K, n), 0 where left out; and how many were left out.
    """
    apart = x - np.median(x, axis=0)
    off = [np.abs(apart[..., j][apart[..., j] != 0.0]) for j in range(x.shape[2])]  # of an odd count one is the median itself
    level = np.array([np.median(part) if len(part) else 0.0 for part in off])
    kept = np.abs(apart) <= FAR * level / _QUARTILE
    kept |= ~kept.any(axis=0)
    mean = np.where(kept, x, 0.0).sum(axis=0) / kept.sum(axis=0)
    deviation = np.where(kept, x - mean, 0.0)
    deviation[np.abs(deviation) < ROUNDING * np.abs(mean).max(axis=0)] = 0.0
    return mean, deviation, int((~kept).sum())


def choose_harmonics(q: Array, scatter: Array, reach: int) -> tuple[int, float]:
    """How many harmonics the positions need.

    Args:
        q: Mean positions of one period, shape (K, n) [rad or m].
        scatter: Positions of each period less the mean, shape (count, K, n).
        reach: Most harmonics to take.

    Returns:
        The number, and the share of the acceleration's power that is noise or left out with it.
    """
    count, samples = scatter.shape[:2]
    power = np.abs(np.fft.rfft(q, axis=0)[1:] / samples) ** 2
    apart = np.abs(np.fft.rfft(scatter, axis=1)[:, 1:] / samples) ** 2
    dof = count - 1
    noise = np.median(apart.sum(axis=0), axis=0) / (dof * count * (1.0 - 1.0 / (3.0 * dof)))  # median of a χ² to its mean
    if reach < len(power) - 2:  # what the mean holds beyond all motion: encoder steps repeat, and do not scatter
        noise = np.maximum(noise, np.median(power[reach:], axis=0) / _MEDIAN)
    order = np.arange(1.0, reach + 1.0)[:, None] ** 4
    price, news = order * noise, order * (power[:reach] - noise)  # what a harmonic costs, and what it holds
    loss = np.cumsum(price - news, axis=0)
    signal = np.array([news[: int(np.argmin(column)) + 1, j].sum() for j, column in enumerate(loss.T)])
    moving = signal > 1e-12 * signal.max(initial=0.0)
    best = int(np.argmin((loss[:, moving] / signal[moving]).mean(axis=1))) + 1
    kept, lost = price[:best].sum(axis=0), np.maximum(news[best : 2 * best].sum(axis=0), 0.0)  # far out only noise is left
    return best, float(np.mean((kept + lost)[moving] / signal[moving]))


def fourier_derivatives(q: Array, seconds: float, harmonics: int) -> tuple[Array, Array, Array]:
    """A period as a Fourier series of so many harmonics, by least squares, with its derivatives.

    Args:
        q: Shape (K, n), uniformly over one period [rad or m].
        seconds: Length of the period [s].
        harmonics: Their number.

    Returns:
        Position, velocity, acceleration, shapes (K, n).
    """
    spectrum = np.fft.rfft(q, axis=0)
    spectrum[harmonics + 1 :] = 0.0
    turn = 2j * np.pi / seconds * np.arange(len(spectrum))[:, None]
    parts = (spectrum, spectrum * turn, spectrum * turn**2)
    position, velocity, acceleration = (np.asarray(np.fft.irfft(part, len(q), axis=0)) for part in parts)
    return position, velocity, acceleration
