"""Filters without delay, derivatives, and the cut-off that a motion asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import LogError
from ...linalg import Array
from ...scratch import room
from .recursive import both_ways, butterworth, chebyshev, welch

#: Order of the Butterworth filter; applied forwards and backwards it acts with twice that order.
ORDER = 4
#: Noise let through, as a share of the motion's acceleration power. It is also about the share by which least
#: squares pulls inertias towards zero (errors in variables), which is why it is kept this small.
NOISE_SHARE = 0.01
#: Cut-off over the frequency where the motion ends: the two passes have gain 0.96 there. Twice as high lets in noise
#: that held-out errors of real logs feel (UR10e 1.43 instead of 1.41 N·m), equal to it bends the motion.
HEADROOM = 1.5
#: A cut-off above this share of the sampling rate smooths nothing that differentiation has not spoilt already.
HIGHEST = 0.2
#: Samples that are filtered at a time, and e-folds after which a filter has forgotten what was before them.
LONG, FORGOTTEN = 1 << 17, 30.0
#: Half length of the filter that makes equations, in decimated samples.
HALF_WIDTH = 6

_STENCILS = {2: (1 / 2,), 4: (2 / 3, -1 / 12), 6: (3 / 4, -3 / 20, 1 / 60)}
#: Torques are compared up to this frequency unless another one is asked for [Hz]: what controllers of arms track. It must not
#: depend on the fit, or a fit gains by smoothing what it is judged by.
SCORE_BAND = 10.0
#: Part of a log's rate up to which it can be compared at all.
_HIGHEST = 0.4


def score_band(rate: float) -> float:
    """Low-pass behind which torques are compared where none is given.

    Args:
        rate: Samples per second of the log [Hz].

    Returns:
        :data:`SCORE_BAND`, less for slow logs [Hz].
    """
    return min(SCORE_BAND, _HIGHEST * rate)


def lowpass(x: Array, rate: float, cutoff: float, order: int = ORDER, padlen: int | None = None) -> Array:
    """Zero-phase Butterworth low-pass along axis 0 (forwards, then backwards).

    Args:
        x: Signal, shape (N,) or (N, …).
        rate: Samples per second [Hz].
        cutoff: Frequency [Hz] where one pass has −3 dB, both passes −6 dB. At or above ``rate / 2`` nothing is done.
        order: Order of one pass.
        padlen: Samples of odd extension at each end; MATLAB's ``filtfilt`` takes ``3 * order``. By default the
            filter's own memory, ``3 * rate / cutoff``; never more than ``N - 1``.

    Returns:
        Same shape as ``x``.

    Raises:
        LogError: Rate or cut-off is not positive, or the cut-off so low that rounding leaves no filter.
    """
    x = np.asarray(x, dtype=float)
    if not (rate > 0 and cutoff > 0):
        raise LogError("rate and cut-off must be positive", got=f"rate {rate} Hz, cut-off {cutoff} Hz")
    if cutoff >= rate / 2 or len(x) < 2:
        return x.copy()
    pad = max(3 * order, round(3 * rate / cutoff)) if padlen is None else padlen
    memory = math.ceil(FORGOTTEN * rate / (2 * np.pi * cutoff * np.sin(np.pi / (2 * order))))
    try:
        sections = butterworth(order, float(2 * cutoff / rate))
        return _in_pieces(lambda part: both_ways(sections, part, min(pad, len(part) - 1)), x, memory)
    except np.linalg.LinAlgError as error:
        raise LogError(
            "the cut-off is too low for this rate", got=f"{cutoff:.3g} Hz", expected=f"about {1e-6 * rate:.3g} Hz or more"
        ) from error


def _in_pieces(function: Callable[[Array], Array], x: Array, memory: int) -> Array:
    """What a function that sees ``memory`` samples each way makes of a signal; a long one piece by piece."""
    step = max(LONG, 4 * memory)
    if len(x) <= 2 * step:
        return np.asarray(function(x))
    out = room(x.shape)
    for begin in range(0, len(x), step):
        first = max(0, begin - memory)
        out[begin : begin + step] = function(x[first : begin + step + memory])[begin - first :][:step]
    return out


def delayed(x: Array, samples: float, rows: slice = slice(None)) -> Array:
    """Rows of a signal so many samples later, between them linearly; beyond the ends the last row.

    Args:
        x: Signal, shape (N,) or (N, m), N of 2 or more.
        samples: How much later [samples]; negative: earlier.
        rows: Which rows are returned.

    Returns:
        Those rows.
    """
    at = np.clip(np.arange(len(x))[rows] + samples, 0, len(x) - 1)
    low = np.minimum(at.astype(int), len(x) - 2)
    return np.asarray(x[low] + (at - low)[:, None] * (x[low + 1] - x[low]))


def decimate(x: Array, factor: int) -> Array:
    """Keeps every ``factor``-th sample after a zero-phase Chebyshev low-pass, as MATLAB's ``decimate`` does.

    Args:
        x: Signal, shape (N,) or (N, …).
        factor: Whole number; 1 changes nothing.

    Returns:
        Shape (ceil(N / factor), …). The filter is of order 8, ripple 0.05 dB, cut-off 0.8 / factor of Nyquist; the
        last sample is kept, the others count back from it.
    """
    x = np.asarray(x, dtype=float)
    if factor == 1:
        return x.copy()
    smooth = both_ways(chebyshev(8, 0.05, 0.8 / factor), x, min(3 * 8, len(x) - 1))
    count = -(-len(x) // factor)
    first = factor - (factor * count - len(x)) - 1
    return np.asarray(smooth[first::factor])


def differentiate(x: Array, rate: float, accuracy: int = 6) -> Array:
    """Derivative along axis 0 by central differences.

    Args:
        x: Signal, shape (N,) or (N, …).
        rate: Samples per second [Hz].
        accuracy: Order of the error in the step: 2 (the textbook difference), 4 or 6. Near the ends the stencil
            shrinks to what fits; the end samples themselves are one-sided (a two-point difference for 2).

    Returns:
        Same shape as ``x``, per second.

    Raises:
        LogError: Fewer than two samples, or another accuracy.
    """
    x = np.asarray(x, dtype=float)
    if len(x) < 2 or accuracy not in _STENCILS:
        raise LogError("cannot differentiate", got=f"{len(x)} samples, accuracy {accuracy}", expected="two or more; 2, 4 or 6")
    return _in_pieces(partial(_differences, rate=rate, accuracy=accuracy), x, 2 * max(_STENCILS))


def _differences(x: Array, rate: float, accuracy: int) -> Array:
    out = np.asarray(np.gradient(x, 1 / rate, axis=0, edge_order=2 if accuracy > 2 and len(x) > 2 else 1))
    for order in (4, 6):
        weights = _STENCILS[order]
        reach, n = len(weights), len(x)
        if order > accuracy or n <= 2 * reach:
            break
        inner = sum(w * (x[reach + k : n - reach + k] - x[reach - k : n - reach - k]) for k, w in enumerate(weights, start=1))
        out[reach : n - reach] = inner * rate
    return out


@dataclass(frozen=True)
class CutoffChoice:
    """A cut-off and the reason for it.

    Attributes:
        cutoff: The choice [Hz].
        motion_end: Frequency [Hz] where the motion's acceleration disappears in noise.
        noise_limit: Frequency [Hz] up to which noise stays below :data:`NOISE_SHARE` of the motion's power.
        why: The reason in words.
    """

    cutoff: float
    motion_end: float
    noise_limit: float
    why: str


def estimate_cutoff(pieces: list[Array], rate: float) -> CutoffChoice:
    """Chooses the low-pass for positions from where the motion's acceleration falls into noise.

    The spectrum of the measured acceleration falls with the motion and rises with the noise (position noise
    times frequency to the fourth). Its valley is where the motion ends. The cut-off is :data:`HEADROOM` times
    that, unless noise up to there exceeds :data:`NOISE_SHARE` of the motion's acceleration power; but never
    below the valley, and never above :data:`HIGHEST` of the rate.

    Args:
        pieces: Positions of the joints that move, each shape (N_k, n) [rad or m], uniformly sampled, rest removed.
        rate: Samples per second [Hz].

    Returns:
        The choice with its reason.
    """
    frequency, density, share_above = _acceleration_spectrum(pieces, rate)
    ceiling = HIGHEST * rate
    step = frequency[1] - frequency[0]
    inside = frequency <= ceiling
    motion_end = _valley(frequency[inside], density[inside], share_above[inside])
    below = frequency <= motion_end
    floor = float(np.interp(motion_end, frequency, density))
    motion_power = float(density[below].sum() * step)
    noise = floor * motion_end + np.cumsum(np.where(below, 0.0, density)) * step
    allowed = frequency[(noise <= NOISE_SHARE * motion_power) & (frequency >= motion_end)]
    noise_limit = float(allowed[-1]) if len(allowed) else motion_end
    cutoff = min(max(motion_end, min(noise_limit, HEADROOM * motion_end)), ceiling)
    why = f"the acceleration signal falls below the noise at {motion_end:.3g} Hz; "
    if cutoff >= ceiling:
        why += f"bounded by a fifth of the rate ({rate:.4g} Hz)"
    elif cutoff < HEADROOM * motion_end * 0.999:
        why += f"{cutoff:.3g} Hz keeps the noise let through near or below {100 * NOISE_SHARE:.2g} % of its power"
    else:
        why += f"{HEADROOM:g} times that keeps 96 % of the signal there"
    return CutoffChoice(cutoff, motion_end, noise_limit, why)


def _acceleration_spectrum(pieces: list[Array], rate: float) -> tuple[Array, Array, Array]:
    """Frequencies [Hz], mean log power density of the joints' accelerations, share of position power above."""
    window = int(min(max(len(piece) for piece in pieces) - 2, max(64, 4 * rate)))
    step = max(LONG, 4 * window)
    parts = [piece[begin : begin + step] for piece in pieces for begin in range(0, len(piece), step)]
    long = [part for part in parts if len(part) - 2 >= window]
    spectra = [welch(np.diff(part, 2, axis=0) * rate**2, rate, window) for part in long]
    frequency = spectra[0][0][1:]
    power = np.average([spectrum[1][1:] for spectrum in spectra], axis=0, weights=[len(part) - 2 for part in long])
    # geometric mean: every joint counts alike, whatever its size; scaled so that powers add up as a mean of joints
    normal = power / np.maximum(power.sum(axis=0), np.finfo(float).tiny)
    density = np.exp(np.log(np.maximum(normal, 1e-300)).mean(axis=1))
    position = (normal.T / frequency**4).sum(axis=0)
    above = np.cumsum(position[::-1])[::-1] / position.sum()
    return frequency, density, above


def _valley(frequency: Array, density: Array, share_above: Array) -> float:
    """First valley of a spectrum that is followed by a clear rise and has no motion behind it; else the lowest point."""
    smooth = _third_octaves(frequency, density)
    lowest = 0
    for k in range(1, len(smooth)):
        if smooth[k] < smooth[lowest] or share_above[lowest] > _MOTION_LEFT:
            lowest = k
        elif smooth[k] > _RISE * smooth[lowest]:
            return float(frequency[lowest])
    return float(frequency[int(np.argmin(smooth))])


_RISE = 10.0
_MOTION_LEFT = 1e-5


def _third_octaves(frequency: Array, density: Array) -> Array:
    """Running mean of the logarithm over a third of an octave around each frequency."""
    total = np.concatenate([[0.0], np.cumsum(np.log(density))])
    begin = np.searchsorted(frequency, frequency * 2 ** (-1 / 6))
    end = np.searchsorted(frequency, frequency * 2 ** (1 / 6), side="right")
    return np.asarray(np.exp((total[end] - total[begin]) / (end - begin)))
