"""Comparison of logged velocities with the derivative of the positions: sign, scale, lag, noise, and order of joints."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ..linalg import Array, positive, unit_columns, vertex
from ..units import percent
from .filters import ahead, differentiate, lowpass

#: Longest lag searched [s].
LONGEST_LAG = 0.3
#: Maximum number of samples of a log that are compared with others of it.
MOST_COMPARED = 1 << 18


@dataclass(frozen=True, eq=False)
class VelocityMatch:
    """Comparison of logged velocities v with the derivative dq/dt.

    Attributes:
        scale: Shape (n,): least-squares factor, ``dq/dt ≈ scale · v`` after the lag is removed; NaN for joints at rest.
        correlation: Shape (n,): correlation of v with dq/dt after the lag is removed; NaN for joints at rest.
        lag: Lag of v behind dq/dt [s], median over the moving joints.
        frequency: Frequency of the motion, rms(a) / rms(v), median over the moving joints [rad/s].
        noise_ratio: Power of v over that of dq/dt just above the cut-off; below 1, v has less noise.
        cross: Shape (n, n): correlation of dq/dt of joint i with v of joint j, lag removed (for joints that do
            not match their own velocity, the lag of each pair).
        words: The result in one sentence.
    """

    scale: Array
    correlation: Array
    lag: float
    frequency: float
    noise_ratio: float
    cross: Array
    words: str

    @property
    def lag_error(self) -> float:
        """Error of v caused by the lag, relative to v."""
        return abs(self.lag) * self.frequency

    @property
    def agrees(self) -> bool:
        """Whether v equals dq/dt within 5 % on every moving joint."""
        known = np.isfinite(self.scale)
        return bool(known.any() and (np.abs(self.scale[known] - 1) < 0.05).all() and (self.correlation[known] > 0.95).all())


def match_velocity(q: Array, v: Array, rate: float, cutoff: float) -> VelocityMatch:
    """Compares logged velocities with differentiated positions on a uniform grid.

    Args:
        q: Positions, shape (N, n) [rad or m].
        v: Logged velocities, shape (N, n).
        rate: Samples per second [Hz].
        cutoff: Low-pass [Hz] applied to both.
    """
    middle = slice(max(0, (len(q) - MOST_COMPARED) // 2), (len(q) + MOST_COMPARED) // 2)
    q, v = q[middle], v[middle]
    v_low = lowpass(v, rate, cutoff)
    edge = min(int(rate / cutoff), len(q) // 10)
    inner = slice(edge, len(q) - edge)
    derivative, smooth = differentiate(lowpass(q, rate, cutoff), rate)[inner], v_low[inner]
    reach = min(int(LONGEST_LAG * rate), len(derivative) // 4)
    speed = np.sqrt((derivative**2).mean(axis=0))
    moving = (speed > 1e-3 * speed.max()) & (speed > 0) & (smooth.std(axis=0) > 0)
    lags = np.array([_lag(derivative[:, j], smooth[:, j], reach) for j in np.flatnonzero(moving)])
    lag_samples = float(np.median(lags)) if len(lags) else 0.0
    lag, in_step = lag_samples / rate, ahead(smooth, lag_samples)
    cross = _correlation(derivative, in_step)
    unmatched = np.flatnonzero(moving & (np.abs(np.diag(cross)) < 0.8))
    for i, j in permutations(unmatched, 2):  # velocities of another joint? The lag that most joints have is then meaningless
        other = ahead(smooth[:, [j]], _lag(derivative[:, i], smooth[:, j], reach))
        cross[i, j] = _correlation(derivative[:, [i]], other)[0, 0]
    power = positive((in_step**2).sum(axis=0))
    scale = np.where(moving, (derivative * in_step).sum(axis=0) / power, np.nan)
    correlation = np.where(moving, np.diag(cross), np.nan)
    acceleration = differentiate(derivative, rate)
    sizes = np.sqrt((acceleration[:, moving] ** 2).mean(axis=0)) / speed[moving] if moving.any() else np.zeros(1)
    noise = _noise_ratio(q[:, moving], v[:, moving], v_low[:, moving], rate, cutoff, inner) if moving.any() else 1.0
    timing = f"comes {1e3 * lag:.3g} ms after dq/dt" if abs(lag_samples) > 0.5 else "is in step with dq/dt"
    words = (
        f"the logged velocity {timing}, its scale is off by at most "
        f"{percent(100 * np.nanmax(np.abs(scale - 1), initial=0.0))} %, its noise power is {noise:.2g} times that of dq/dt"
    )
    return VelocityMatch(scale, correlation, lag, float(np.median(sizes)), noise, cross, words)


def _noise_ratio(q: Array, v: Array, v_low: Array, rate: float, cutoff: float, inner: slice) -> float:
    """Power of v over that of dq/dt between the cut-off and twice it, geometric mean over joints; 1 without such."""
    upper = min(2 * cutoff, 0.45 * rate)
    if upper <= 1.05 * cutoff:
        return 1.0

    def power(x: Array, low: Array) -> Array:
        return np.asarray(((lowpass(x, rate, upper) - low)[inner] ** 2).mean(axis=0))

    dq = differentiate(q, rate)
    ratio = positive(power(v, v_low)) / positive(power(dq, lowpass(dq, rate, cutoff)))
    return float(np.exp(np.log(ratio).mean()))


def _lag(reference: Array, late: Array, reach: int) -> float:
    """Lag of ``late`` in samples, with sub-sample resolution, from the peak of the normalised cross-correlation.

    The inner part of the reference is correlated with equally long windows of the other signal, each normalised by its
    own norm; truncating the overlap instead would bias the lag of slow motions towards zero.
    """
    inner = reference[reach : len(reference) - reach]
    size = 1 << int(np.ceil(np.log2(len(late) + len(inner))))
    products = np.fft.irfft(np.conj(np.fft.rfft(inner, size)) * np.fft.rfft(late, size), size)[: 2 * reach + 1]
    energy = np.concatenate([[0.0], np.cumsum(late**2)])
    energy = energy[len(inner) : len(inner) + 2 * reach + 1] - energy[: 2 * reach + 1]
    values = np.abs(products) / np.sqrt(positive(energy))
    k = int(np.argmax(values))
    fraction = vertex(*-values[k - 1 : k + 2]) if 0 < k < len(values) - 1 else 0.0
    return float(k - reach + fraction)


def _correlation(a: Array, b: Array) -> Array:
    return np.asarray(unit_columns(a - a.mean(axis=0)).T @ unit_columns(b - b.mean(axis=0)))
