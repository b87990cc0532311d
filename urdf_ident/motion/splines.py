"""Clamped B-splines of degree 5 (Zollo 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError
from ..linalg import Array, shaped
from ..samples import freeze_arrays
from .trajectory import PiecewisePolynomial, PiecewiseTrajectory

DEGREE = 5


@dataclass(frozen=True, eq=False)
class BSplineTrajectory(PiecewiseTrajectory):
    """A clamped B-spline of degree 5 on uniform knots, with four continuous derivatives and the convex-hull property.

    Attributes:
        control: Control points, shape (K, n), K ≥ 6 [rad or m]; the first and last are the ends.
        duration: Length [s].
    """

    joints: tuple[str, ...]
    control: Array
    duration: float
    smoothness: int = field(default=DEGREE - 1, init=False)
    pieces: PiecewisePolynomial = field(init=False, repr=False)

    def __post_init__(self) -> None:
        control = shaped("control", self.control, ("K", len(self.joints)))
        if len(control) <= DEGREE:
            raise LimitError("too few control points for a fifth-order spline", got=len(control), expected="at least 6")
        if not self.duration > 0:
            raise LimitError("the duration must be positive", got=f"{self.duration} s")
        object.__setattr__(self, "control", control)
        inner = np.linspace(0.0, self.duration, len(control) - DEGREE + 1)
        knots = np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, self.duration)])
        object.__setattr__(self, "pieces", spline_pieces(self.joints, knots, control))
        freeze_arrays(self)

    @classmethod
    def at_rest(
        cls, joints: Sequence[str], start: ArrayLike, interior: ArrayLike, end: ArrayLike, duration: float
    ) -> BSplineTrajectory:
        """Returns a spline with zero velocity and acceleration at both ends (three equal control points each).

        Args:
            start: First position, shape (n,) [rad or m].
            interior: Free control points, shape (K, n) [rad or m].
            end: Last position, shape (n,) [rad or m].
            duration: Length [s].

        Raises:
            LimitError: The duration is not positive.
        """
        start, end, interior = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (start, end, interior))
        return cls(tuple(joints), np.vstack([np.repeat(start, 3, axis=0), interior, np.repeat(end, 3, axis=0)]), duration)


def spline_pieces(joints: Sequence[str], knots: Array, control: Array) -> PiecewisePolynomial:
    """Converts a clamped spline of degree 5 to polynomials.

    Args:
        knots: Shape (K + 6,) [s], the first and last six equal.
        control: Shape (K, n) [rad or m].

    Returns:
        The same function as piecewise polynomials.
    """
    from scipy.interpolate import BSpline

    spline = BSpline(knots, control, DEGREE)
    breaks = np.unique(knots)
    factorial = np.cumprod([1.0, *range(1, DEGREE + 1)])
    coefficients = np.stack([spline(breaks[:-1], nu=k) / factorial[k] for k in range(DEGREE + 1)], axis=-1)
    return PiecewisePolynomial(tuple(joints), breaks, coefficients, smoothness=DEGREE - 1)
