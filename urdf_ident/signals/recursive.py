"""Recursive filters and spectra equal to those of ``scipy.signal``, whose import (with ``scipy.stats``) takes 0.6 s of CPU.

A filter is a cascade of second-order sections, shape (k, 2, 3): numerator and denominator in powers of the delay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..linalg import Array, BoolArray
from ..scipy_parts import part_of_scipy


@lru_cache(maxsize=64)
def butterworth(order: int, cutoff: float) -> Array:
    """Butterworth low-pass.

    Args:
        cutoff: Frequency of −3 dB, as a fraction of half the sampling rate.

    Returns:
        Sections, shape (k, 2, 3).

    Raises:
        numpy.linalg.LinAlgError: The cut-off is too low for double precision.
    """
    poles = np.exp(0.5j * np.pi * (1 + (2 * np.arange(order) + 1) / order))  # of the analogue filter at 1 rad/s
    fast = np.tan(0.5 * np.pi * cutoff) * poles  # bilinear transform
    sections = []
    for pole, z in zip(poles, (1 + fast) / (1 - fast), strict=True):
        if abs(pole.imag) < 1e-9 * abs(pole):
            sections.append([[1.0, 1.0, 0.0], [1.0, -z.real, 0.0]])
        elif pole.imag > 0:
            sections.append([[1.0, 2.0, 1.0], [1.0, -2 * z.real, abs(z) ** 2]])
    out = np.array(sections)
    rest = out[:, 1].sum(axis=1)
    if rest.min() < 8 * np.finfo(float).eps:
        raise np.linalg.LinAlgError("poles too near to one")
    out[:, 0] *= (rest / out[:, 0].sum(axis=1))[:, None]
    out.flags.writeable = False
    return out


def run(sections: Array, x: Array, steady: bool = False) -> Array:
    """Applies sections one after the other, once along axis 0.

    Args:
        sections: Shape (k, 2, 3), or (2, 3) for one; the first number of each denominator is 1.
        x: Signal, shape (N, n).
        steady: Start in the steady state of the first sample instead of at zero.

    Returns:
        Shape (N, n).
    """
    y, table = np.array(x.T, dtype=float, order="C"), np.array(sections).reshape(-1, 6)
    b, a = table[:, :3], table[:, 3:]
    gain = b.sum(axis=1) / a.sum(axis=1)
    before = np.cumprod(np.append(1.0, gain[:-1]))  # of all earlier sections
    late, first = b[:, 2] - a[:, 2] * gain, b[:, 1] - a[:, 1] * gain
    state = before[:, None] * np.column_stack([first + late, late])  # of the transposed direct form II
    _cascade()(table, y, state * (y[:, :1, None] if steady else np.zeros((len(y), 1, 1))))
    return y.T


@lru_cache(maxsize=1)
def _cascade() -> Callable[[Array, Array, Array], None]:
    """Filters each row of the second argument in place: sections (k, 6), rows (n, N), states (n, k, 2)."""
    if hasattr(part := part_of_scipy("scipy.signal._sosfilt"), "_sosfilt"):
        return part._sosfilt  # type: ignore[no-any-return]
    from scipy.signal import sosfilt

    def in_place(table: Array, y: Array, state: Array) -> None:
        y[:] = sosfilt(table, y, zi=state.transpose(1, 0, 2))[0]

    return in_place


def both_ways(sections: Array, x: Array, pad: int) -> Array:
    """Zero-phase filter along axis 0: forwards, then backwards.

    Args:
        sections: Shape (k, 2, 3).
        x: Signal, shape (N,) or (N, …).
        pad: Samples of odd extension at each end, below N.

    Returns:
        Same shape as ``x``; 0 where it is below the rounding error of the largest value, as the decay of a single count in an
        effort that is zero would otherwise be taken for a tiny effort.
    """
    flat = x.reshape(len(x), -1)
    y = np.concatenate([2 * flat[0] - flat[pad:0:-1], flat, 2 * flat[-1] - flat[-2 : -pad - 2 : -1]])
    for _ in range(2):
        y = run(sections, y, steady=True)[::-1]
    out = np.ascontiguousarray(y[pad : len(y) - pad])
    out[np.abs(out) < np.finfo(float).eps * np.abs(flat).max(axis=0)] = 0.0
    return out.reshape(x.shape)


def welch(
    x: Array, rate: float, length: int, centred: bool = False, weights: Array | BoolArray | None = None
) -> tuple[Array, Array]:
    """Power spectral density by Welch's method, with Hann windows and 50 % overlap.

    Args:
        x: Signal, shape (N, n).
        rate: Samples per second [Hz].
        length: Window length in samples, at most N.
        centred: Subtract the mean of each window.
        weights: Weight of each sample, shape (N,): each window counts as much as the weight within it, and one more window
            covers the last samples. None: all windows count the same.

    Returns:
        Frequencies [Hz], shape (length // 2 + 1,), and density [unit²/Hz], shape (length // 2 + 1, n).
    """
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    begins = list(range(0, len(x) - length + 1, length - length // 2))
    if weights is not None and begins[-1] < len(x) - length:
        begins.append(len(x) - length)
    parts = [x[begin : begin + length] for begin in begins]
    spectra = [np.fft.rfft((part - centred * part.mean(axis=0)) * window[:, None], axis=0) for part in parts]
    counted = None if weights is None else [weights[begin : begin + length].sum() for begin in begins]
    density: Array = np.average([np.abs(spectrum) ** 2 for spectrum in spectra], axis=0, weights=counted)
    density /= rate * window @ window
    density[1 : (length + 1) // 2] *= 2  # one-sided density, except at zero and Nyquist
    return np.asarray(np.fft.rfftfreq(length, 1 / rate), dtype=float), density
