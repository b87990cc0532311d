"""Physically consistent estimate of one body."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, positive
from ..model.inertia import BODY_PARAMETERS, BODY_UNITS, from_com
from ..model.parameters import Parameter
from ..model.prior import Prior, metric_root
from .constraints import LmiOptions
from .lmi import LmiProblem
from .repair import repaired_theta

#: Prior standard deviation of the compact body's scale, a fraction, and weight of that prior: it holds what data leave free.
_LOOSE, _WEIGHT = 0.5, 1e-4
#: Density of the compact body [kg/m³], its least mass [kg], and its least radius [m].
_DENSITY, _LEAST_MASS, _LEAST_GYRATION = 2000.0, 1e-3, 1e-3
#: Largest distance of its centre of mass from the link's origin [m].
_FARTHEST = 10.0


def most_likely_body(estimate: Array, information: Array) -> Array:
    """The physically consistent body that fits best, ``min ‖F (π − estimate)‖``.

    Directions without information stay near a ball with the estimate's mass and centre of mass, or with the least mass at the
    origin if the mass is not positive.

    Args:
        estimate: Unconstrained estimate, shape (10,) [kg, kg·m, kg·m²].
        information: F, a factor of the inverse covariance, shape (k, 10); zero along unidentifiable directions.

    Returns:
        Shape (10,), with the margin that every engine accepts.
    """
    mass = max(float(estimate[0]), _LEAST_MASS)
    com = estimate[1:4] / mass if estimate[0] > _LEAST_MASS else np.zeros(3)
    com *= min(1.0, _FARTHEST / positive(float(np.linalg.norm(com))))  # near zero mass the centre is undetermined
    radius = max(float(np.cbrt(3.0 * mass / (4.0 * np.pi * _DENSITY))), _LEAST_GYRATION)
    ball = np.asarray(from_com(mass, com, 0.4 * mass * radius**2 * np.eye(3)))
    parameters = [Parameter(name, name, "body", unit) for name, unit in zip(BODY_PARAMETERS, BODY_UNITS, strict=True)]
    prior = Prior(ball, metric_root(ball, _LOOSE), ("guess",) * 10, (), ball[None], np.array([_LOOSE]))
    problem = LmiProblem(prior, parameters, LmiOptions("euclid", mass_factor=None))
    return np.asarray(repaired_theta(problem.solve(information, information @ estimate, _WEIGHT).theta))
