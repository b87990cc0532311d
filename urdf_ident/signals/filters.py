"""Zero-phase filters, derivatives, and the choice of the cut-off frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LogError
from ..linalg import Array, BoolArray, positive
from ..units import percent

#: Order of the Butterworth filter; forward-backward filtering doubles it.
ORDER = 4
#: Largest noise power passed by the filter, as a fraction of the motion's acceleration power. It is also about the relative
#: bias of inertias towards zero in least squares (errors in variables), and therefore small.
NOISE_SHARE = 0.01
#: Ratio of the cut-off to the frequency where the motion ends, at which both passes together have gain 0.96. Twice as high
#: passes noise; a ratio of 1 distorts the motion.
HEADROOM = 1.5
#: Largest ratio of cut-off to sampling rate; above it smoothing cannot repair the errors of numerical differentiation.
HIGHEST = 0.2
#: Samples filtered at a time, and number of time constants after which a filter's transient is negligible.
LONG, FORGOTTEN = 1 << 16, 30.0
#: Lowest cut-off, as a fraction of the rate: the transient of a lower one lasts for more than a million samples.
_TOO_LOW = 1e-5
#: Hyperbolic tangent of the fastest decay per sample that is counted on.
_FASTEST = 0.9
#: Rounding errors of a filtered signal, as a fraction of its largest value.
_ROUNDED = 1e-15
#: Multiplications per sample up to which sums over the samples around few rows take less time than the recursive filter.
_SUMMED = 20
#: Half length of the decimation filter of the rows, in decimated samples.
HALF_WIDTH = 6

#: Weights of the central differences of fourth and sixth order.
_STENCILS = ((2 / 3, -1 / 12), (3 / 4, -3 / 20, 1 / 60))
#: Default bandwidth for comparing torques [Hz]: the tracking bandwidth of arm controllers. It must not depend on the fit, or
#: a fit could improve its score by smoothing the measurement.
SCORE_BAND = 10.0
#: Largest ratio of that bandwidth, and of a low-pass for predictions, to the rate of the log.
_HIGHEST = 0.4
#: Lowest low-pass for predictions [Hz], and highest as a multiple of the score band, within which it changes nothing.
_LOWEST, _UNCHANGED = 1.0, 2.0


def score_band(rate: float) -> float:
    """Default low-pass for comparing torques [Hz]: :data:`SCORE_BAND`, or less for logs with a low rate [Hz]."""
    return min(SCORE_BAND, _HIGHEST * rate)


def prediction_cutoff(spectrum: float, scale: float, rate: float) -> float:
    """Low-pass of the positions for predictions.

    Args:
        spectrum: Cut-off of the log's spectrum [Hz].
        scale: Multiple of it.
        rate: Samples per second of the log [Hz].

    Returns:
        The multiple [Hz], within 1 Hz and the smaller of 0.4 times the rate and twice the score band, or ``spectrum``.
    """
    lowest, highest = min(_LOWEST, spectrum), max(spectrum, min(_HIGHEST * rate, _UNCHANGED * SCORE_BAND))
    return min(max(scale * spectrum, lowest), highest)


def lowpass(x: Array, rate: float, cutoff: float, order: int = ORDER, rows: slice = slice(None)) -> Array:
    """Zero-phase Butterworth low-pass along axis 0 (forwards, then backwards), same shape as ``x``, or the rows asked for.

    Args:
        x: Signal, shape (N,) or (N, …).
        rate: Samples per second [Hz].
        cutoff: Frequency [Hz] of −3 dB for one pass, −6 dB for both. At or above ``rate / 2`` the signal is unchanged.
        rows: The rows to return; of a few far apart, each is a weighted sum over the samples around it, equal to 1e-12.

    Raises:
        LogError: Rate or cut-off is not positive, or the cut-off is too low for the rate.
    """
    x = np.asarray(x, dtype=float)
    if not (rate > 0 and cutoff > 0):
        raise LogError("rate and cut-off must be positive", got=f"rate {rate} Hz, cut-off {cutoff} Hz")
    if cutoff >= rate / 2 or len(x) < 2:
        return x[rows].copy()
    if cutoff < _TOO_LOW * rate:
        raise LogError(
            "the cut-off is too low for this rate", got=f"{cutoff:.3g} Hz", expected=f"{_TOO_LOW * rate:.3g} Hz or more"
        )
    memory = _memory(order, cutoff / rate)

    def both_ways(part: Array) -> Array:
        y = _filtered(part, lambda s: 1 / (1 + np.abs(s) ** (2 * order)), cutoff / rate, memory)
        # the decay of a single count in an effort that is zero would otherwise be taken for a tiny effort
        y[np.abs(y) < _ROUNDED * np.abs(part).max(axis=0)] = 0.0
        return y

    at = np.arange(*rows.indices(len(x)))
    if len(at) * 2 * memory > _SUMMED * len(x) or len(x) <= 2 * memory:
        return _in_pieces(both_ways, x, memory)[rows]
    response, out = _impulse_response(order, cutoff / rate, memory), np.empty((len(at), *x.shape[1:]))
    first, last = np.searchsorted(at, [memory, len(x) - memory])
    begin = np.concatenate((2 * x[0] - x[memory:0:-1], x[: 2 * memory]))
    for k, row in enumerate(at[:last].tolist()):
        out[k] = response @ (begin[row:] if k < first else x[row - memory :])[: len(response)]
    if last < len(at):
        out[last:] = both_ways(x[-2 * memory :])[at[last:] - len(x)]
    return out


def lag(x: Array, rate: float, cutoff: float) -> Array:
    """First-order low-pass along axis 0, forwards only, same shape as ``x``.

    Args:
        x: Signal, shape (N, …) of two samples or more.
        rate: Samples per second [Hz].
        cutoff: Frequency of −3 dB [Hz], below ``rate / 2``.
    """
    return _filtered(x, lambda s: 1 / (1 + s), cutoff / rate, _memory(1, cutoff / rate))


def _filtered(x: Array, response: Callable[[Array], Array], cutoff: float, memory: int) -> Array:
    """Multiplies the spectrum of a signal, extended oddly at both ends by the memory of the filter, by its response.

    Args:
        x: Signal, shape (N, …).
        response: Of the analogue filter at complex frequencies s, of which that of the cut-off has the magnitude 1; the
            bilinear transform makes it digital.
        cutoff: As a fraction of the rate.
        memory: Samples after which the transient is negligible.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    size = next_fast_len(len(x) + 2 * memory, real=True)
    around = (memory, size - len(x) - memory), *[(0, 0)] * (x.ndim - 1)
    spectrum = rfft(np.pad(x, around, mode="reflect", reflect_type="odd"), axis=0)
    s = 1j * np.tan(np.pi * np.arange(len(spectrum)) / size) / np.tan(np.pi * cutoff)
    spectrum *= response(s).reshape(-1, *[1] * (x.ndim - 1))
    return np.asarray(irfft(spectrum, size, axis=0, overwrite_x=True)[memory : memory + len(x)])


def _memory(order: int, cutoff: float) -> int:
    """Samples after which the transient of a Butterworth filter is negligible; ``cutoff`` as a fraction of the rate."""
    # decay per sample of its slowest poles, z = (1 + s) / (1 − s) with |s| = tan(π·cutoff); a pole at 0 decays at once
    decay = math.atanh(min(math.sin(2 * math.pi * cutoff) * math.sin(math.pi / (2 * order)), _FASTEST))
    return math.ceil(FORGOTTEN / decay)


@lru_cache(maxsize=64)
def _impulse_response(order: int, cutoff: float, memory: int) -> Array:
    """Response of :func:`lowpass` to an impulse, shape (2·memory + 1,); ``cutoff`` as a fraction of the rate."""
    impulse = np.zeros(2 * memory + 1)
    impulse[memory] = 1.0
    return lowpass(impulse, 1.0, cutoff, order)


def lowpass_gain(frequency: ArrayLike, cutoff: float, order: int = ORDER) -> Array:
    """Returns the gain of :func:`lowpass` in both passes, for frequencies and cut-offs well below half the rate.

    Args:
        frequency: Any shape [Hz].
        cutoff, order: As there.

    Returns:
        Shape of ``frequency``.
    """
    return np.asarray(1 / (1 + (np.asarray(frequency) / cutoff) ** (2 * order)))


def _in_pieces(function: Callable[[Array], Array], x: Array, memory: int) -> Array:
    """Applies a function with a support of ``memory`` samples each way to a signal, in overlapping pieces if it is long."""
    step = max(LONG, 4 * memory)
    if len(x) <= 2 * step:
        return np.asarray(function(x))
    out = np.empty(x.shape)
    for begin in range(0, len(x), step):
        first = max(0, begin - memory)
        out[begin : begin + step] = function(x[first : begin + step + memory])[begin - first :][:step]
    return out


def ahead(x: Array, samples: float, rows: slice = slice(None)) -> Array:
    """Rows of a signal as it is some samples later, linearly interpolated, constant beyond the ends; x of shape (N, m)."""
    at = np.clip(np.arange(*rows.indices(len(x))) + samples, 0, len(x) - 1)
    low = np.minimum(at.astype(int), len(x) - 2)
    return np.asarray(x[low] + (at - low)[:, None] * (x[low + 1] - x[low]))


def differentiate(x: Array, rate: float) -> Array:
    """Derivative along axis 0 by central differences of sixth order; near the ends with shorter stencils.

    Args:
        x: Signal, shape (N,) or (N, …).
        rate: Samples per second [Hz].

    Returns:
        Same shape as ``x``, per second.

    Raises:
        LogError: There are fewer than two samples.
    """
    x = np.asarray(x, dtype=float)
    if len(x) < 2:
        raise LogError("cannot differentiate", got=f"{len(x)} samples", expected="two or more")

    def differences(x: Array) -> Array:
        out = np.asarray(np.gradient(x, 1 / rate, axis=0, edge_order=2 if len(x) > 2 else 1))
        for weights in _STENCILS:
            reach, end = len(weights), len(x) - len(weights)
            if end <= reach:
                break
            inner = sum(w * (x[reach + k : end + k] - x[reach - k : end - k]) for k, w in enumerate(weights, start=1))
            out[reach:end] = inner * rate
        return out

    return _in_pieces(differences, x, 4 * len(_STENCILS[-1]))


@dataclass(frozen=True)
class CutoffChoice:
    """A cut-off and the reason for it.

    Attributes:
        cutoff: The choice [Hz].
        motion_end: Frequency [Hz] at which the motion's acceleration falls below the noise.
    """

    cutoff: float
    motion_end: float
    why: str


def estimate_cutoff(
    pieces: list[Array], rate: float, moving: list[BoolArray] | None = None, steps: Array | None = None
) -> CutoffChoice:
    """Chooses the low-pass for positions from the frequency at which the motion's acceleration falls below the noise.

    The spectrum of the measured acceleration first falls with the motion and then rises with the noise (position noise
    times frequency to the fourth power). The cut-off is :data:`HEADROOM` times the frequency where the motion ends, or less if
    the noise up to there exceeds :data:`NOISE_SHARE` of the motion's acceleration power; but never below the end of the motion,
    and never above :data:`HIGHEST` times the rate.

    Args:
        pieces: Positions of the moving joints, each shape (N_k, n) [rad or m], uniformly sampled.
        rate: Samples per second [Hz].
        moving: Samples of each piece that are in motion, shapes (N_k,); None: all. Standstill between motions belongs to the
            spectrum, as a window over a single motion would suppress its beginning and end; long standstill does not.
        steps: Steps in which the positions come, shape (n,) [rad or m]; 0: not quantised; None: none is.
    """
    moving = moving or [np.ones(len(q), bool) for q in pieces]
    steps = np.zeros(pieces[0].shape[1]) if steps is None else steps
    longest = max(len(piece) for piece, moves in zip(pieces, moving, strict=True) if moves[1:-1].any())
    window = int(min(longest - 2, max(64, 4 * rate)))
    step = max(LONG, 4 * window)
    parts = [
        (piece[begin:end], moves[begin + 1 : end - 1])
        for piece, moves in zip(pieces, moving, strict=True)
        # a rest that is shorter than a window belongs to the part before it
        for begin, end in pairwise([*range(0, max(len(piece) - window - 1, 1), step), len(piece)])
    ]
    long = [(part, moves) for part, moves in parts if len(part) - 2 >= window and moves.any()]
    spectra = [welch(np.diff(part, 2, axis=0) * rate**2, rate, window, moves) for part, moves in long]
    counts = [moves.sum() for _, moves in long]
    power = np.average([spectrum[1][1:] for spectrum in spectra], axis=0, weights=counts)
    # geometric mean of normalised spectra: every joint has the same weight
    total = np.maximum(power.sum(axis=0), np.finfo(float).tiny)
    frequency = spectra[0][0][1:]
    within = (power / (rate**4 * _twice_differenced(frequency, rate)[:, None])).sum(axis=0) * frequency[0]
    variance = np.average([part.var(axis=0) for part, _ in long], axis=0, weights=counts)
    slow = np.maximum(variance - within, 0.0) / frequency[0]
    # of the accelerations, of the positions below the lowest frequency, and of rounding errors: white, of variance step²/12
    means = [np.exp(np.log(positive(x / total)).mean(axis=-1)) for x in (power, slow, steps**2 / (6.0 * rate))]
    density, windows, ceiling = means[0], max(1.0, sum(counts) / window), HIGHEST * rate
    motion_end = _motion_end(frequency, density, float(means[1]), float(means[2]), windows, rate)
    below = frequency <= motion_end
    floor = float(np.interp(motion_end, frequency, density))
    width = frequency[1] - frequency[0]
    motion_power = float(density[below].sum() * width)
    noise = floor * motion_end + np.cumsum(np.where(below, 0.0, density)) * width
    allowed = frequency[(noise <= NOISE_SHARE * motion_power) & (frequency >= motion_end)]
    noise_limit = float(allowed[-1]) if len(allowed) else motion_end
    cutoff = min(max(motion_end, min(noise_limit, HEADROOM * motion_end)), ceiling)
    why = f"the acceleration signal falls below the noise at {motion_end:.3g} Hz; "
    if cutoff >= ceiling:
        why += f"bounded by a fifth of the rate ({rate:.4g} Hz)"
    elif cutoff < HEADROOM * motion_end * 0.999:
        why += f"{cutoff:.3g} Hz keeps the noise let through near or below {percent(100 * NOISE_SHARE)} % of its power"
    else:
        why += f"{HEADROOM:g} times that keeps 96 % of the signal there"
    return CutoffChoice(cutoff, motion_end, why)


def attenuation(pieces: list[Array], rate: float, cutoff: float, order: int = ORDER, band: float = 0.0) -> Array:
    """Returns how much of each joint's acceleration the low-pass of its positions takes away, in RMS.

    It is computed from the spectrum of the positions less their noise. The spectrum of the filtered accelerations would not
    do: it contains the ends of pieces and the onsets of rest, which a division by the filter's gain near the cut-off
    multiplies.

    Args:
        pieces: Positions before :func:`lowpass`, each shape (N_k, n) [rad or m].
        rate: Samples per second [Hz].
        cutoff: The cut-off [Hz].
        band: End of the motion [Hz], if it is above the cut-off.

    Returns:
        Fraction of the acceleration below the cut-off or ``band``, shape (n,); 0 for joints at rest or at constant speed, and
        where the acceleration is partly noise.
    """
    window = int(min(max(len(piece) - 2 for piece in pieces), max(64, 4 * rate)))
    long = [piece for piece in pieces if len(piece) - 2 >= window]
    # joint by joint to save memory
    spectra = [[welch(np.diff(x, 2), rate, window) for x in piece.T] for piece in long]
    frequency, weights = spectra[0][0][0], [len(piece) - 2 for piece in long]
    density = np.average([np.column_stack([x for _, x in joints]) for joints in spectra], axis=0, weights=weights)
    position = density / _twice_differenced(frequency, rate)[:, None]
    noise = _WHITE * np.median(position[frequency > rate / 4], axis=0)
    below = frequency <= max(cutoff, band)
    twice = (2 * np.pi * frequency[below, None]) ** 4  # from the power of positions to that of accelerations
    gain = lowpass_gain(frequency[below], cutoff, order)[:, None]
    moved = twice * np.maximum(position[below] - noise, 0.0)
    kept = (gain**2 * moved).sum(axis=0)
    clear = ((gain**2 * twice * noise).sum(axis=0) < _NOISY * kept) & (kept > _ACCELERATED * kept.max())
    lost = 1 - np.sqrt(kept / np.where(clear, moved.sum(axis=0), 1.0))
    return np.where(clear, lost, 0.0)


def _twice_differenced(frequency: Array, rate: float) -> Array:
    """Power of the second differences of a signal over its own; not zero."""
    return np.asarray(np.maximum(2.0 * np.sin(np.pi * frequency / rate), 1e-9) ** 4)


def welch(x: Array, rate: float, length: int, weights: BoolArray | None = None) -> tuple[Array, Array]:
    """Welch's spectrum: the mean over Hann windows that overlap by half, of which the last one ends with the signal.

    Args:
        x: Signal, shape (N,) or (N, m).
        rate: Samples per second [Hz].
        length: Samples of a window, at most N.
        weights: Each window counts as its samples do, shape (N,); None: all alike.

    Returns:
        Frequencies [Hz], shape (length // 2 + 1,), and the one-sided power density, shape (length // 2 + 1,) or
        (length // 2 + 1, m) [square of the unit per Hz].
    """
    from scipy.fft import rfft

    begins, hann = [*range(0, len(x) - length, length - length // 2), len(x) - length], np.hanning(length + 1)[:-1]
    windows = np.stack([x[begin : begin + length] for begin in begins], axis=-1)
    power = np.abs(rfft(windows * hann.reshape(-1, *[1] * x.ndim), axis=0)) ** 2 / (rate * (hann @ hann))
    power[1 : (length + 1) // 2] *= 2
    counts = None if weights is None else [weights[begin : begin + length].sum() for begin in begins]
    return np.arange(len(power)) * rate / length, np.average(power, axis=-1, weights=counts)


def _motion_end(frequency: Array, density: Array, slow: float, quantised: float, windows: float, rate: float) -> float:
    """Frequency [Hz] at which the acceleration density turns from the motion's slope to the noise's.

    The acceleration of a motion does not rise with frequency, beyond its lobes; noise of positions rises with the fourth
    power, after a first-order filter with the second. Their boundary is where the density rises with the first power: the
    first minimum of density over frequency that is followed by a clear rise. (The minimum of the density itself can be anywhere
    on the plateau that tracking errors and friction leave.) Without a clear rise, a filter of the positions ends the noise; its
    slope is then smaller, and so is the power. Noise of positions does not rise with frequency and is small; what is followed
    by a larger density of positions, or by one near the largest, is therefore within the motion. Larger means beyond chance:
    the logarithm of a density has the variance π²/6 over the number of independent values in it (chi-squared with two
    degrees of freedom; joints with the same errors, as of late time stamps, add none), and a spectrum of few windows has few.
    A density of very few values may be small between two lobes of a move; chance does not count there. Rounding errors are
    white only on average: at a steady speed they are lines at multiples of the number of steps per second.
    """
    inside = frequency <= HIGHEST * rate
    frequency = frequency[inside]
    # geometric running mean over a third of an octave around each frequency, and the number of values in each
    total = np.concatenate([[0.0], np.cumsum(np.log(density[inside]))])
    begin = np.searchsorted(frequency, frequency * 2 ** (-1 / 6))
    values = np.searchsorted(frequency, frequency * 2 ** (1 / 6), side="right").astype(float) - begin
    smooth = np.exp((total[begin + values.astype(int)] - total[begin]) / values)
    chance = np.where(values < _LOBES, 1.0, np.exp(_CHANCE * np.sqrt(2 * np.pi**2 / 6 * _HANN / (values * windows))))
    position = smooth / (rate**4 * _twice_differenced(frequency, rate))
    largest_above = np.maximum.accumulate(position[::-1])[::-1]
    largest = max(slow, float(largest_above[0]))  # of a slow motion the spectrum has only the noise
    beyond = np.maximum(np.minimum(_NOT_RISING * chance * position, _NOT_NOISE * largest), _ROUNDING * quantised)
    within = np.flatnonzero(largest_above > beyond)
    first = min(int(within[-1]) + 1 if len(within) else 0, len(position) - 1)
    frequency, smooth = frequency[first:], smooth[first:]
    tilted = smooth / frequency
    risen = np.flatnonzero(tilted > _RISE * np.minimum.accumulate(tilted))
    end = np.argmin(tilted[: risen[0]]) if len(risen) else np.argmin(smooth / np.sqrt(frequency))
    return float(frequency[end])


#: Fraction of a joint's acceleration power that may be noise for its attenuation to be known.
_NOISY = 0.1
#: Acceleration power, relative to the joint of the largest, below which a joint rests or moves at constant speed.
_ACCELERATED = 1e-6
#: Rise of density over frequency that ends the search for its minimum.
_RISE = 10.0
#: Ratio of densities of positions above which the later one is not noise, besides chance.
_NOT_RISING = 3.0
#: Standard errors of the logarithm of that ratio that are chance; bandwidth of a Hann window in steps of frequency; number of
#: values in a third of an octave that contains lobes of a move and what is between them.
_CHANCE, _HANN, _LOBES = 2.0, 1.5, 5
#: Ratio of densities of positions to their largest above which they are the motion's, as the noise is less than a tenth of it.
_NOT_NOISE = 0.01
#: Ratio of a density of positions to the mean density of their rounding errors up to which it may be one of their lines.
_ROUNDING = 10.0
#: Factor on the noise that is subtracted from the spectrum of the positions: the median of few averaged spectra is up to a
#: fifth below their mean.
_WHITE = 1.25
