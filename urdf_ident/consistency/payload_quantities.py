"""Mass, centre of mass and inertia of an estimated payload, with standard errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..estimation.estimators.payload import PayloadFit
from ..linalg import Array, positive
from ..model.inertia import BODY_PARAMETERS, BODY_UNITS, to_com
from ..model.prior import Prior, metric_root
from ..model.terms import Parameter
from ..samples import ReadOnly
from .lmi import LmiProblem
from .repair import repaired_theta, small_body

#: Coverage of the intervals.
_COVERAGE = 0.95
#: Which quantities are never negative: the mass and the moments of inertia.
_NONNEGATIVE = np.isin(np.arange(10), (0, 4, 7, 9))
#: Entries of the inertia in the order of a URDF (xx, xy, xz, yy, yz, zz), and where they are among the ten parameters.
_INERTIA, _ROWS_OF_INERTIA = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]), [4, 5, 7, 6, 8, 9]
#: Prior standard deviation of the compact body's scale, a fraction, and weight of that prior: it holds what data leave free.
_LOOSE, _WEIGHT = 0.5, 1e-4
#: Least mass of the compact body [kg], and largest distance of its centre of mass from the link's origin [m].
_LEAST_MASS, _FARTHEST = 1e-3, 10.0


@dataclass(frozen=True, eq=False)
class Quantities(ReadOnly):
    """Mass, centre of mass (3) and inertia about it (6, in the order of a URDF) of an unknown body.

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
    nearest = most_likely_body(fit.params, fit.precision)
    value, estimate = _quantities(nearest), _quantities(fit.params)
    estimate = np.where(np.isfinite(estimate), estimate, value)
    slopes = _slopes(fit.params if fit.params[0] > 0 else nearest)
    undetermined = np.asarray((np.abs(slopes[:, ~fit.seen]) > 0).any(axis=1))
    if not fit.massive:  # then centre of mass and inertia are undefined
        undetermined[1:] = True
    error = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", slopes, fit.covariance, slopes), 0.0))
    error = np.where(undetermined, np.inf, error)
    reach = _reach(fit, slopes, error)
    contrary = _NONNEGATIVE & (estimate + reach < 0)
    error, reach = np.where(contrary, np.hypot(error, estimate), error), np.where(contrary, reach - estimate, reach)
    return Quantities(value, error, _interval(estimate, reach, value), slopes, bool(contrary[0]))


def _slopes(theta: Array) -> Array:
    """Derivatives of the quantities with respect to the ten parameters, shape (10, 10).

    They are those of ``c = h/m`` and ``I_c = I − (hᵀh·1 − h hᵀ)/m``.
    """
    mass, com, _ = to_com(theta)
    slopes = np.eye(10)[[0, 1, 2, 3, *_ROWS_OF_INERTIA]]
    slopes[1:4, 1:4] /= mass
    slopes[1:4, 0] = -com / mass
    for k, (i, j) in enumerate(zip(*_INERTIA, strict=True), 4):
        same = float(i == j)
        slopes[k, 0] = same * (com @ com) - com[i] * com[j]
        slopes[k, 1:4] = com[i] * np.eye(3)[j] + com[j] * np.eye(3)[i] - 2.0 * same * com
    return slopes


def _reach(fit: PayloadFit, slopes: Array, error: Array) -> Array:
    """Half-width of the intervals by Student's t, shape (10,)."""
    from scipy.special import stdtrit

    quantile = stdtrit([fit.dof(row) for row in slopes], (1 + _COVERAGE) / 2)
    return np.asarray(np.where(np.isinf(error), np.inf, quantile * error))


def _interval(estimate: Array, reach: Array, value: Array) -> Array:
    """Intervals about the estimates that contain the values and no impossible numbers, shape (10, 2)."""
    low, high = estimate - reach, np.where(_NONNEGATIVE, np.maximum(estimate, 0.0), estimate) + reach
    low = np.where(_NONNEGATIVE, np.maximum(low, 0.0), low)
    return np.column_stack([np.minimum(low, value), np.maximum(high, value)])


def _quantities(theta: Array) -> Array:
    """Mass, centre of mass, and inertia about it in the order of a URDF, shape (10,)."""
    mass, com, inertia = to_com(theta)
    return np.concatenate([[float(mass)], com, inertia[_INERTIA]])


def most_likely_body(estimate: Array, information: Array) -> Array:
    """The physically consistent body that fits best, ``min ‖F (π − estimate)‖``.

    Directions without information stay near a steel ball with the estimate's mass and centre of mass, or with the least mass
    at the origin if the mass is not positive.

    Args:
        estimate: Unconstrained estimate, shape (10,) [kg, kg·m, kg·m²].
        information: F, a factor of the inverse covariance, shape (k, 10); zero along unidentifiable directions.

    Returns:
        Shape (10,), with the margin that every engine accepts.
    """
    mass = max(float(estimate[0]), _LEAST_MASS)
    com = estimate[1:4] / mass if estimate[0] > _LEAST_MASS else np.zeros(3)
    com *= min(1.0, _FARTHEST / positive(float(np.linalg.norm(com))))  # near zero mass the centre is undetermined
    ball = small_body(mass, com)
    parameters = [Parameter(name, name, "body", unit) for name, unit in zip(BODY_PARAMETERS, BODY_UNITS, strict=True)]
    prior = Prior(ball, metric_root(ball, _LOOSE), ("guess",) * 10, (), ball[None], np.array([_LOOSE]), np.array([np.inf]))
    problem = LmiProblem(prior, parameters, (), "euclid")
    return np.asarray(repaired_theta(problem.solve(information, information @ estimate, _WEIGHT).theta))
