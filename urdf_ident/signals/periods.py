"""Repeated motion: detection from the positions alone, and averages over its periods (Wu 2012, section 4; Swevers).

Averages reduce noise, and show it: torques are averaged directly, and differences between periods are noise, independently of
the model. Positions are averaged and represented by a Fourier series, with more harmonics than the planned motion has, because
the closed loop does not track it exactly. An omitted harmonic is missing from the acceleration, an included one adds its noise,
both weighted by the fourth power of frequency; the number of harmonics minimises the sum (Mallows' C_p of the accelerations),
up to the cut-off of the positions, which logs without periods have as well: what repeats in every period is no noise to that
sum, although vibration and errors of the clock, which repeat as well, are not the motion of rigid bodies. Velocity and
acceleration are the exact derivatives of the series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..grouping import runs
from ..linalg import OUTLYING, Array, positive, robust_std
from ..logs.recording import Recording
from ..samples import ReadOnly, Segment
from ..units import percent
from .clock import EVEN
from .filters import HIGHEST
from .resolution import ROUNDING
from .velocity import MOST_COMPARED

#: A motion repeats if its difference to itself one period later is below this fraction of its variance; the second value
#: applies if the user states that it repeats.
LIKENESS, SAID = 1e-4, 1e-3
#: Dissimilarity of the whole log (with start-up and ramps) to itself below which a lag is examined further.
PROMISING = 0.5
#: Maximum number of lags examined, and the fraction of a period over which the difference is averaged.
TRIED_LAGS, WINDOW = 64, 0.05
#: A joint whose standard deviation is below this fraction of the largest one is ignored.
MOVING = 1e-3
#: Search range around a lag, as a fraction of it, and number of instants compared.
NEARBY, INSTANTS = 0.02, 2000
#: Median squared difference, in variances, above which a lag is not a period.
UNLIKE = 0.05
#: Iterations of the refinement of a period, and tolerance at the ends of the log [samples].
ROUNDS, TOLERANCE = 3, 2.0


@dataclass(frozen=True)
class Repetition:
    """Whole periods of a motion on a uniform grid.

    Attributes:
        first: Sample at which the first whole period starts.
        length: Length of one period in samples, in general not an integer.
        count: Number of whole periods.
    """

    first: int
    length: float
    count: int


def find_repetition(q: Array, fewest: int = 2, likeness: float = LIKENESS) -> Repetition | None:
    """Finds the shortest period of a motion, and the interval in which it repeats.

    Ramps and transients before and after are ignored; if the interval is longer than its whole periods, equal parts are cut
    at both ends.

    Args:
        q: Positions, shape (N, n) [rad or m], uniformly sampled.
        likeness: See :data:`LIKENESS`, a fraction.

    Returns:
        The repetition, or None if the motion does not repeat.
    """
    q = np.asarray(q, dtype=float)
    if len(q) < 32:
        return None
    stride = -(-len(q) // MOST_COMPARED)  # longer logs are subsampled
    decimated = q[::stride]
    mean, size = decimated.mean(axis=0), decimated.std(axis=0)
    moving = size > MOVING * size.max()
    if not moving.any():
        return None
    # lags at which the whole log is similar to itself
    x, n = ((decimated - mean) / positive(size))[:, moving], len(decimated)
    padded = 1 << (2 * n - 1).bit_length()
    product = np.fft.irfft(np.abs(np.fft.rfft(x, padded, axis=0)) ** 2, padded, axis=0)[:n]
    squares = np.vstack([np.zeros(x.shape[1]), np.cumsum(x**2, axis=0)])
    lags = np.arange(min(n // fewest + 1, n - 1) + 1)
    head, tail = squares[n - lags], squares[n] - squares[lags]
    unlike = ((head + tail - 2 * product[lags]) / positive(head + tail)).max(axis=1)
    apart = np.flatnonzero(unlike > PROMISING)
    if not len(apart):
        return None
    inner = unlike[1:-1]
    low = np.flatnonzero((inner < PROMISING) & (inner <= unlike[:-2]) & (inner <= unlike[2:])) + 1
    low = np.append(low, lags[-1]) if unlike[-1] < PROMISING else low
    low = low[low > apart[0]]
    for lag in np.sort(low[np.argsort(unlike[low])[:TRIED_LAGS]]).tolist():
        repetition = _examined((q[:, moving] - mean[moving]) / size[moving], stride * lag, fewest, likeness)
        if repetition is not None:
            return repetition
    return None


def _examined(x: Array, lag: float, fewest: int, likeness: float) -> Repetition | None:
    """The repetition with approximately this lag, if there is one."""
    stretch = (0, len(x))
    # the integer lag nearby with the smallest median difference (ramps at the ends would affect the mean)
    lag = int(lag)
    reach = max(3, round(NEARBY * lag))
    index = np.arange(0, len(x) - min(lag + reach, len(x) - 2), max(1, len(x) // INSTANTS))

    def best(begin: int, end: int, step: int) -> tuple[float, int]:
        lags = np.arange(max(1, begin), min(end, len(x) - 2) + 1, step)
        return min((float(np.median(((x[index + k] - x[index]) ** 2).max(axis=1))), int(k)) for k in lags)

    step = max(1, int(np.sqrt(reach)))  # coarse search first: differences grow steadily away from the period
    rough = best(lag - reach, lag + reach, step)[1]
    unlike, nearest = best(rough - step, min(rough + step, lag + reach), 1)
    if unlike >= UNLIKE:  # more than half a sample of lag error can explain
        return None
    lag = float(nearest)
    for _ in range(ROUNDS):
        # to a fraction of a sample by one Gauss-Newton step
        index = np.arange(stretch[0], min(stretch[1], len(x) - int(lag) - 2))
        if len(index) >= 8:
            later = _between(x, index + lag)
            apart, slope = x[index] - later, np.gradient(later, axis=0)
            squares = (apart**2).max(axis=1)
            kept = squares <= 4.0 * np.median(squares)  # without ramps
            change = float(np.sum(apart[kept] * slope[kept])) / positive(float(np.sum(slope[kept] ** 2)))
            lag += float(np.clip(change, -1.0, 1.0))
        # the longest run of samples that equal those one lag later
        later = _between(x, np.arange(len(x) - int(lag) - 1) + lag)
        squares, window = ((x[: len(later)] - later) ** 2).max(axis=1) / 2.0, max(1, round(WINDOW * lag))
        if len(squares) < window:
            return None
        mean = np.convolve(squares, np.full(window, 1.0 / window), "valid")
        begin, end = max(runs(mean < likeness), key=lambda run: run[1] - run[0], default=(0, 0))
        stretch = (begin, end + window - 1)
        if not end or stretch[1] - stretch[0] < (fewest - 1) * lag - TOLERANCE:
            return None
    last = min(stretch[1] + lag + TOLERANCE, len(x))  # the last matching sample has its counterpart a period later
    count = int((last - stretch[0] + TOLERANCE) / lag)
    if count < fewest:
        return None
    repetition = Repetition(max(0, int(stretch[0] + (last - stretch[0] - count * lag) / 2)), lag, count)
    agree = (deviations(x, repetition).var(axis=(0, 1)) < likeness).all()  # all periods, not only neighbours
    return repetition if agree else None


def periods_of(x: Array, repetition: Repetition) -> Array:
    """Cuts a signal into periods sampled at equal phases.

    Args:
        x: Shape (N, n), uniformly sampled.

    Returns:
        Shape (count, K, n) with K the period rounded to samples; cubic interpolation between samples.
    """
    x = np.asarray(x, dtype=float)
    samples = round(repetition.length)
    phase = np.arange(samples) * (repetition.length / samples)
    where = repetition.first + np.arange(repetition.count)[:, None] * repetition.length + phase
    where = np.clip(where, 0.0, len(x) - 1.0).reshape(-1)
    exact = np.abs(where - np.round(where)).max() < EVEN  # no interpolation is needed
    cut = x[np.round(where).astype(np.intp)] if exact else _between(x, where)
    return np.asarray(cut.reshape(repetition.count, samples, -1))


def deviations(x: Array, repetition: Repetition) -> Array:
    """Deviation of each period from the mean over periods, shape (count, K, n), as :func:`periods_of`; x of shape (N, n)."""
    cut = periods_of(x, repetition)
    return np.asarray(cut - cut.mean(axis=0))


def _between(x: Array, where: NDArray[np.floating[Any]]) -> Array:
    """Cubic (Catmull-Rom) interpolation between samples, shape (len(where), n)."""
    base = np.floor(where).astype(np.intp)
    t = (where - base)[:, None]
    a, b, c, d = (x[np.clip(base + k, 0, len(x) - 1)] for k in (-1, 0, 1, 2))
    return np.asarray(b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))))


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


def average(piece: Recording, rate: float, repetition: Repetition, cutoff: float, around: int = 1) -> tuple[Segment, Averaged]:
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
    q = periods_of(piece.position, repetition).mean(axis=0)
    samples, seconds = len(q), repetition.length / rate
    begin = float(piece.time[0]) + repetition.first / rate
    reach = max(1, min(int(cutoff * seconds), int(HIGHEST * samples)))
    harmonics, missing = choose_harmonics(q, deviations(piece.position, repetition), reach)
    path = fourier_derivatives(q, seconds, harmonics)
    tau, deviation, noise, outliers = None, np.zeros((repetition.count, samples, q.shape[1])), np.zeros(q.shape[1]), 0
    if piece.effort is not None:
        # mean over periods without outliers, samples far from the median over periods at their phase
        x = periods_of(piece.effort, repetition)
        apart = x - np.median(x, axis=0)
        off = [np.abs(apart[..., j][apart[..., j] != 0.0]) for j in range(x.shape[2])]  # of an odd count, one is the median
        level = np.array([robust_std(part) if len(part) else 0.0 for part in off])
        kept = np.abs(apart) <= OUTLYING * level
        kept |= ~kept.any(axis=0)
        tau, outliers = np.where(kept, x, 0.0).sum(axis=0) / kept.sum(axis=0), int((~kept).sum())
        deviation = np.where(kept, x - tau, 0.0)
        deviation[np.abs(deviation) < ROUNDING * np.abs(tau).max(axis=0)] = 0.0
        noise = np.sqrt(np.sum(deviation**2, axis=(0, 1)) / ((repetition.count - 1) * samples))
    external = None if piece.external_torque is None else periods_of(piece.external_torque, repetition).mean(axis=0)
    tiled = {
        name: None if x is None else np.tile(x, (2 * around + 1, 1))
        for name, x in zip(("q", "v", "a", "tau", "external"), (*path, tau, external), strict=True)
    }
    segment = Segment(piece.name, begin + (1 - around) * seconds, samples / seconds, **tiled, repeats=repetition.count)  # type: ignore[arg-type]
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
