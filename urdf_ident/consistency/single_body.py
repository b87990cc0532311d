"""Physically consistent estimate of one body."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, positive
from ..model.inertia import from_com, from_pseudo_inertia, margins, nearest_physical, pseudo_inertia
from .repair import repaired_theta

#: Prior standard deviation of each parameter from the compact body's, as a fraction of its size.
_LOOSE = 0.5
#: Density of the compact body [kg/m³], its least mass [kg], and its least radius [m].
_DENSITY, _LEAST_MASS, _LEAST_GYRATION = 2000.0, 1e-3, 1e-3
#: Largest distance of its centre of mass from the link's origin [m].
_FARTHEST = 10.0
_LOWER = np.tril_indices(4)


def most_likely_body(estimate: Array, information: Array) -> Array:
    """The physically consistent body that fits best, ``min ‖F (π − estimate)‖`` over positive semidefinite pseudo-inertias.

    The pseudo-inertia is written as ``L Lᵀ`` (Burer and Monteiro 2003; with a square L there are no other local minima).
    Directions without information stay near a compact body of the same mass and centre of mass.

    Args:
        estimate: Unconstrained estimate, shape (10,) [kg, kg·m, kg·m²].
        information: F, a factor of the inverse covariance, shape (k, 10); zero along unidentifiable directions.

    Returns:
        Shape (10,), with the margin that every engine accepts.
    """
    from scipy.optimize import least_squares

    reference = _compact(estimate)
    mass, reach = reference[0], float(np.sqrt(reference[4:].max() / reference[0]))
    unit = np.concatenate([[mass], np.full(3, mass * reach), np.full(6, mass * reach**2)])
    norms = np.linalg.norm(information * unit, axis=0)
    weak = norms * 1e-3 < 1.0  # standard error above a thousandth of the compact body's size
    if margins(estimate).relative >= 1e-6 and not (norms < 1e-3).any():
        return np.asarray(repaired_theta(estimate))
    rows = np.diag(np.where(weak, 1e-2, 0.0) / (_LOOSE * unit))
    size = np.sqrt(mass) * np.array([reach, reach, reach, 1.0])

    def body(packed: Array) -> Array:
        lower = np.zeros((4, 4))
        lower[_LOWER] = packed
        half = size[:, None] * lower
        return from_pseudo_inertia(half @ half.T)

    def residual(packed: Array) -> Array:
        theta = body(packed)
        return np.concatenate([information @ (theta - estimate), rows @ (theta - reference)])

    start = np.linalg.cholesky(pseudo_inertia(reference) / np.outer(size, size))[_LOWER]
    solution = least_squares(residual, start, method="lm", x_scale=1.0, max_nfev=4000)
    return np.asarray(repaired_theta(nearest_physical(body(solution.x), 1e-6)))


def _compact(estimate: Array) -> Array:
    """A ball with the estimate's mass and centre of mass; with the least mass at the origin if the mass is not positive."""
    mass = max(float(estimate[0]), _LEAST_MASS)
    com = estimate[1:4] / mass if estimate[0] > _LEAST_MASS else np.zeros(3)
    com *= min(1.0, _FARTHEST / positive(float(np.linalg.norm(com))))  # near zero mass the centre is undetermined
    radius = max(float(np.cbrt(3.0 * mass / (4.0 * np.pi * _DENSITY))), _LEAST_GYRATION)
    return np.asarray(from_com(mass, com, 0.4 * mass * radius**2 * np.eye(3)))
