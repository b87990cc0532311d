"""Mass, centre of mass and inertia of an estimated payload, with standard errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..consistency.single_body import most_likely_body
from ..estimation.estimators.payload import PayloadFit
from ..linalg import Array
from ..model.inertia import to_com
from ..samples import ReadOnly

#: Coverage of the intervals.
_COVERAGE = 0.95
#: Indices of the mass and the moments of inertia, which are never negative.
_BOUNDED = [0, 4, 7, 9]


@dataclass(frozen=True, eq=False)
class Quantities(ReadOnly):
    """The ten quantities of :data:`.QUANTITIES` of an unknown body.

    Attributes:
        value: Those of the most likely physically consistent body, shape (10,) [kg, m, kg·m²].
        std_error: Shape (10,); inf where the data do not determine the value.
        interval: 95 % intervals, shape (10, 2).
        slopes: Derivatives with respect to the estimated parameters, shape (10, 10).
        impossible: Whether the data contradict every mass that is not negative.
    """

    value: Array
    std_error: Array
    interval: Array
    slopes: Array
    impossible: bool


def payload_quantities(fit: PayloadFit) -> Quantities:
    """Computes the quantities of an estimated body.

    Where the data imply a negative mass or moment of inertia, they are wrong in something else by at least this much, by which
    standard error and interval are widened.
    """
    from scipy.special import stdtrit

    nearest = most_likely_body(fit.params, fit.precision)
    value, raw = _quantities(nearest), _quantities(fit.params)
    slopes = _slopes(fit.params if fit.params[0] > 0 else nearest)
    error = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", slopes, fit.covariance, slopes), 0.0))
    undetermined = np.asarray((np.abs(slopes[:, ~fit.seen]) > 0).any(axis=1))
    if not fit.massive:  # then centre of mass and inertia are undefined
        undetermined[1:] = True
    error = np.where(undetermined, np.inf, error)
    reach = stdtrit([fit.dof(row) for row in slopes], (1 + _COVERAGE) / 2) * error
    reach = np.where(undetermined, np.inf, reach)
    raw = np.where(np.isfinite(raw), raw, value)
    below = np.zeros(10)
    below[_BOUNDED] = np.maximum(-(raw + reach)[_BOUNDED], 0.0)
    contrary = below > 0
    reach = np.where(contrary, reach - raw, reach)
    error = np.where(contrary, np.hypot(error, raw), error)
    interval = np.column_stack([raw - reach, raw + reach])
    interval[_BOUNDED] = np.column_stack([raw - reach, np.maximum(raw, 0.0) + reach])[_BOUNDED].clip(min=0.0)
    interval = np.column_stack([np.minimum(interval[:, 0], value), np.maximum(interval[:, 1], value)])
    return Quantities(value, error, interval, slopes, bool(contrary[0]))


def _quantities(theta: Array) -> Array:
    """Mass, centre of mass, and inertia about it in the order of a URDF, shape (10,)."""
    mass, com, inertia = to_com(theta)
    return np.concatenate([[float(mass)], com, inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]])


def _slopes(theta: Array) -> Array:
    """Derivatives of :func:`_quantities` with respect to the ten parameters, shape (10, 10)."""
    reach = max(float(np.sqrt(np.abs(theta[4:]).max() / abs(theta[0]))), 1e-2)
    steps = 1e-6 * abs(theta[0]) * np.array([1.0, *[reach] * 3, *[reach**2] * 6])
    moved = [(_quantities(theta + row) - _quantities(theta - row)) for row in np.diag(steps)]
    return np.asarray(np.array(moved).T / (2.0 * steps))
