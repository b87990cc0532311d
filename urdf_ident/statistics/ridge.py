"""Base parameters pulled to the prior: ridge regression with the prior's own covariance (Hoerl, Kennard 1970; Bayes).

What data hardly see, least squares answers with noise. The prior says by how much each *standard* parameter may be wrong;
seen through the reduction ``beta = theta_L + K theta_K`` that is a prior of the base parameters, mean and covariance:
no weight is left to choose. Friction and rotor inertia, which a URDF does not hold, are not pulled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..linalg import Array, cholesky, solve_triangular
from ..model.base import BaseParameters
from ..model.prior import Prior
from .fit import Fit
from .least_squares import solve
from .statistic import StatisticSet

#: Coefficients below this in a combination are rounding.
_ROUNDING = 1e-9


def base_prior(base: BaseParameters, prior: Prior) -> tuple[Array, Array]:
    """The prior of the base parameters that one of the standard parameters implies.

    Args:
        base: The reduction of p parameters.
        prior: Of the first k of them; the others have no prior, nor of combinations that hold one.

    Returns:
        Mean, shape (b,), and a matrix S, shape (r, b), so that ``‖S (beta − mean)‖²`` is the squared distance in standard
        deviations; parameters without a prior have zero columns.
    """
    held, spread = _known(base, prior)
    S = np.zeros((len(held), len(base)))
    if len(held):
        S[:, held] = solve_triangular(cholesky(spread.T @ spread), np.eye(len(held)), transposed=True)
    return prior_mean(base, prior), S


def prior_mean(base: BaseParameters, prior: Prior) -> Array:
    """The base parameters that the prior expects, without friction and rotors.

    Args:
        base: The reduction.
        prior: Of the inertial parameters.

    Returns:
        Shape (b,).
    """
    return base.of(np.concatenate([prior.theta0, np.zeros(len(base.names) - len(prior.theta0))]))


def likely_slopes(base: BaseParameters, prior: Prior) -> Array:
    """How the most likely inertial parameters follow given base parameters: ``theta0 + M (beta - prior_mean)``.

    A base parameter that holds a rotor inertia tells nothing of the links: the rotor, of which the prior knows nothing,
    makes up for what they lack.

    Args:
        base: The reduction.
        prior: Of the inertial parameters.

    Returns:
        M, shape (k, b).
    """
    held, spread = _known(base, prior)
    M = np.zeros((len(prior.theta0), len(base)))
    if len(held):
        M[:, held] = solve_triangular(prior.root, np.asarray(np.linalg.pinv(spread.T), dtype=float))
    return M


def _known(base: BaseParameters, prior: Prior) -> tuple[np.ndarray, Array]:
    """Base parameters that hold nothing but what the prior knows, and a root of the covariance that it gives them."""
    k = len(prior.theta0)
    held = np.flatnonzero(np.abs(base.projection[:, k:]).max(axis=1, initial=0.0) < _ROUNDING)
    return held, solve_triangular(prior.root, base.projection[held, :k].T, transposed=True)


def fit_ridge(statistics: StatisticSet, fit: Fit, prior: Prior) -> Fit:
    """The most likely base parameters when the data are added to the prior.

    Args:
        fit: Weighted least squares on them: its residual is the noise that data and prior are weighed by.
        prior: As for :func:`base_prior`.

    Returns:
        The estimate, ``method`` "ridge", with the posterior covariance.
    """
    mean, S = base_prior(fit.base, prior)
    data = statistics.stacked(fit.weights, fit.base.independent)
    found = solve(np.vstack([data, np.column_stack([S, S @ mean])]), fit.rows + len(S), mean)
    return replace(
        fit,
        params=found.estimate,
        covariance=found.covariance(1.0),
        seen=found.seen,
        method="ridge",
        covariance_kind="posterior of independent residuals and the prior",
        condition=found.condition,
    )
