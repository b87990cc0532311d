"""The factor that all bodies have in common relative to the URDF's, whose errors have a size that the data show as well.

The inertial parameters are ``c (theta0 + s u)`` with ``u`` distributed as the prior. ``u`` is integrated out; ``c`` is that of
generalised least squares (Aitken 1936) for the ``s`` of maximum likelihood.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..linalg import Array, positive

#: Candidate sizes of the URDF's errors in units of the prior's standard deviations. They are at least these: how well the
#: bodies of one robot agree with each other does not show an error that they share.
_SPREADS = np.geomspace(1.0, 10.0, 25)
#: Number of fixed-point steps of the factor for one size; each reduces the error about tenfold.
_STEPS = 6


class ScaledBodies(NamedTuple):
    """The common factor of the bodies.

    Attributes:
        factor: Their factor relative to the URDF's.
        error: Its standard error.
        spread: Size of the URDF's errors in units of the prior's standard deviations.
        cost: Twice the negative log-likelihood, up to a constant.
    """

    factor: float
    error: float
    spread: float
    cost: float


def scaled_bodies(stated: Array, bodies: Array, seen: Array, noise: float) -> ScaledBodies:
    """Estimates the common factor of the bodies.

    Args:
        stated: Torque of the URDF's bodies, shape (N,).
        bodies: Torques of independent errors of the bodies of one standard deviation of the prior, shape (N, m).
        seen: Measured torque, shape (N,).
        noise: Variance of its noise.
    """
    square, axes = np.linalg.eigh(bodies @ bodies.T)  # the singular values of a few such matrices do not converge
    stated, seen, square = axes.T @ stated, axes.T @ seen, square.clip(0.0)
    factor = np.ones(len(_SPREADS))
    for _ in range(_STEPS):
        variance = noise + ((factor * _SPREADS) ** 2)[:, None] * square
        weighed = stated / variance
        precision = positive(weighed @ stated)
        factor = weighed @ seen / precision
    costs = np.sum(np.log(variance) + (seen - factor[:, None] * stated) ** 2 / variance, axis=1)
    best = int(np.argmin(costs))
    return ScaledBodies(*(float(of_spread[best]) for of_spread in (factor, precision**-0.5, _SPREADS, costs)))
