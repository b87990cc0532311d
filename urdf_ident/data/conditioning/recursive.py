"""Recursive filters and spectra equal to those of ``scipy.signal``, whose import (with ``scipy.stats``) takes 0.6 s of CPU.

A filter is a cascade of second-order sections, shape (k, 2, 3): numerator and denominator in powers of the delay. A
section is applied by solving a banded triangular system (Golub and Van Loan, Matrix Computations, §4.3) with LAPACK.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...linalg import Array, lapack


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


def run(section: Array, x: Array, steady: bool = False) -> Array:
    """Applies one section once along axis 0.

    Args:
        section: Shape (2, 3).
        x: Signal, shape (N, n).
        steady: Start in the steady state of the first sample instead of at zero.

    Returns:
        Shape (N, n).
    """
    b, a = section.tolist()
    y = np.multiply(x, b[0], order="F")
    y[1:] += b[1] * x[:-1]
    y[2:] += b[2] * x[:-2]
    if steady:
        late = b[2] - a[2] * sum(b) / sum(a)
        y[0] += (b[1] - a[1] * sum(b) / sum(a) + late) * x[0]
        y[1:2] += late * x[0]
    band = np.tile(section[1], (len(x), 1)).T
    return np.asarray(lapack().dtbtrs(band, y, uplo="L", diag="U", overwrite_b=True)[0])


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
    y = np.asfortranarray(np.concatenate([2 * flat[0] - flat[pad:0:-1], flat, 2 * flat[-1] - flat[-2 : -pad - 2 : -1]]))
    for _ in range(2):
        for section in sections:
            y = run(section, y, steady=True)
        y = y[::-1]
    out = np.ascontiguousarray(y[pad : len(y) - pad])
    out[np.abs(out) < np.finfo(float).eps * np.abs(flat).max(axis=0)] = 0.0
    return out.reshape(x.shape)


def welch(x: Array, rate: float, length: int, centred: bool = False) -> tuple[Array, Array]:
    """Power spectral density by Welch's method, with Hann windows and 50 % overlap.

    Args:
        x: Signal, shape (N, n).
        rate: Samples per second [Hz].
        length: Window length in samples, at most N.
        centred: Subtract the mean of each window.

    Returns:
        Frequencies [Hz], shape (length // 2 + 1,), and density [unit²/Hz], shape (length // 2 + 1, n).
    """
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    parts = [x[begin : begin + length] for begin in range(0, len(x) - length + 1, length - length // 2)]
    spectra = [np.fft.rfft((part - centred * part.mean(axis=0)) * window[:, None], axis=0) for part in parts]
    density: Array = np.mean([np.abs(spectrum) ** 2 for spectrum in spectra], axis=0) / (rate * window @ window)
    density[1 : (length + 1) // 2] *= 2  # one-sided density, except at zero and Nyquist
    return np.asarray(np.fft.rfftfreq(length, 1 / rate), dtype=float), density
