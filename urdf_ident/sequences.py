"""Extremes and noise of sampled values."""

from __future__ import annotations

import numpy as np

from .linalg import Array


def vertex(left: float, middle: float, right: float) -> float:
    """Place of the minimum of the parabola through values at −1, 0 and 1; 0 if it has none.

    Args:
        left, middle, right: The values.
    """
    curvature = left - 2 * middle + right
    return 0.5 * (left - right) / curvature if curvature > 0 else 0.0


def white_noise(x: Array) -> Array:
    """Estimates the noise of signals from their third differences, which a smooth motion hardly shows.

    Args:
        x: Shape (N,) or (N, n).

    Returns:
        Standard deviation, shape () or (n,), in the unit of x; 0 with fewer than four samples.
    """
    third = np.diff(x, 3, axis=0)
    return np.asarray(np.median(np.abs(third), axis=0) / (0.6745 * np.sqrt(20.0)) if len(third) else np.zeros(x.shape[1:]))
