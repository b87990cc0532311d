"""The factor that all bodies have in common relative to the URDF's, whose errors have a size that the data show as well.

The inertial parameters are ``c (theta0 + s u)`` with ``u`` distributed as the prior. ``u`` is integrated out; ``c``, and the
coefficients of further columns, are those of generalised least squares (Aitken 1936) for the ``s`` of maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array

#: Candidate sizes of the URDF's errors in units of the prior's standard deviations. They are at least these: how well the
#: bodies of one robot agree with each other does not show an error that they share.
_SPREADS = np.geomspace(1.0, 10.0, 25)
#: Number of fixed-point steps of the factor for one size; each reduces the error about tenfold.
_STEPS = 6


@dataclass(frozen=True, eq=False)
class ScaledBodies:
    """The factor, and what is free beside it.

    Attributes:
        sizes: The factor, then the coefficients of the further columns, shape (1 + k,).
        errors: Their standard errors, shape (1 + k,).
        spread: Size of the URDF's errors in units of the prior's standard deviations.
        cost: Twice the negative log-likelihood, up to a constant.
    """

    sizes: Array
    errors: Array
    spread: float
    cost: float


def scaled_bodies(columns: Array, bodies: Array, seen: Array, noise: float) -> ScaledBodies:
    """Estimates the common factor of the bodies.

    Args:
        columns: Torque of the URDF's bodies, and further independent columns, shape (N, 1 + k).
        bodies: Torques of independent errors of the bodies of one standard deviation of the prior, shape (N, m).
        seen: Measured torque, shape (N,).
        noise: Variance of its noise.
    """
    square, axes = np.linalg.eigh(bodies @ bodies.T)  # the singular values of a few such matrices do not converge
    columns, seen, square = axes.T @ columns, axes.T @ seen, square.clip(0.0)
    best = ScaledBodies(np.zeros(columns.shape[1]), np.zeros(columns.shape[1]), 1.0, np.inf)
    for spread in _SPREADS:
        factor = 1.0
        for _ in range(_STEPS):
            variance = noise + (factor * spread) ** 2 * square
            weighed = columns.T / variance
            normal = weighed @ columns
            sizes = np.linalg.solve(normal, weighed @ seen)
            factor = float(sizes[0])
        cost = float(np.sum(np.log(variance)) + np.sum((seen - columns @ sizes) ** 2 / variance))
        if cost < best.cost:
            best = ScaledBodies(sizes, np.sqrt(np.diag(np.linalg.inv(normal))), float(spread), cost)
    return best
