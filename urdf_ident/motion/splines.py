"""Clamped B-splines of degree 5 (Zollo 2015)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, check_positive
from ..linalg import Array, shaped
from .trajectory import PiecewisePolynomial

DEGREE = 5


def b_spline_at_rest(
    joints: Sequence[str], start: ArrayLike, interior: ArrayLike, end: ArrayLike, duration: float
) -> PiecewisePolynomial:
    """Returns a clamped B-spline of degree 5 on uniform knots, with zero velocity and acceleration at both ends (three equal
    control points each), four continuous derivatives and the convex-hull property.

    Args:
        start: First position, shape (n,) [rad or m].
        interior: Free control points, shape (K, n) [rad or m].
        end: Last position, shape (n,) [rad or m].
        duration: Length [s].

    Raises:
        LimitError: The duration is not positive.
    """
    check_positive("the duration", duration, LimitError, "s")
    inside = shaped("interior", interior, ("K", len(joints)))
    points = np.vstack([np.tile(start, (3, 1)), inside, np.tile(end, (3, 1))])
    inner = np.linspace(0.0, duration, len(points) - DEGREE + 1)
    return spline_pieces(joints, np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, duration)]), points)


def spline_pieces(joints: Sequence[str], knots: Array, control: Array) -> PiecewisePolynomial:
    """Converts a clamped spline of degree 5 to polynomials.

    Args:
        knots: Shape (K + 6,) [s], the first and last six equal.
        control: Shape (K, n) [rad or m].
    """
    from scipy.interpolate import BSpline

    spline = BSpline(knots, control, DEGREE)
    breaks = np.unique(knots)
    factorial = np.cumprod([1.0, *range(1, DEGREE + 1)])
    coefficients = np.stack([spline(breaks[:-1], nu=k) / factorial[k] for k in range(DEGREE + 1)], axis=-1)
    return PiecewisePolynomial(tuple(joints), breaks, coefficients, smoothness=DEGREE - 1)
