"""Resolution of logged signals: the count of an encoder, or the last digit that was written."""

from __future__ import annotations

import numpy as np

from ..linalg import Array

#: Differences relative to the largest value below which values are equal but for the rounding of floating-point numbers.
ROUNDING = 1e-12
#: Least share of steps that are multiples of a count, and their tolerance.
_EVEN, _PARTS = 0.95, 0.05
#: Quantiles of the steps at which the count is searched: a few steps may be interpolated.
_SMALLEST = (0.0, 0.01, 0.05)


def resolution(x: Array) -> float:
    """Returns the typical smallest difference of a signal's values, quantised or not; 0 if constant; x of shape (N,)."""
    steps = _steps(np.unique(x[np.isfinite(x)]))
    few = min(3, len(steps) - 1)  # not the smallest: a repaired sample lies between the steps
    return float(steps[few]) if len(steps) else 0.0


def count_of(x: Array) -> float:
    """Returns the quantisation step of a signal as recorded, in its unit; 0 if it is not quantised; x of shape (N,)."""
    steps = _steps(x[np.isfinite(x)])
    for place in _SMALLEST if len(steps) else ():
        count = float(steps[int(place * (len(steps) - 1))])
        if np.mean(np.abs(steps / count - np.round(steps / count)) < _PARTS) > _EVEN:
            return count
    return 0.0


def _steps(values: Array) -> Array:
    """Sizes of the differences of successive values beyond rounding, in order of size."""
    steps = np.abs(np.diff(values))
    return np.sort(steps[steps > ROUNDING * np.abs(values).max(initial=0.0)])


def counts_of(positions: Array) -> Array:
    """Returns the quantisation step of each joint, shape (n,) [rad or m], 0 if there is none; positions of shape (N, n)."""
    return np.array([count_of(x) for x in positions.T])


def usual_size(x: Array) -> float:
    """Returns the 99 % quantile of the sizes of a signal; x of shape (N,)."""
    return float(np.quantile(np.abs(x), 0.99))
