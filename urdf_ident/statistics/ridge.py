"""Base parameters regularized by the prior: ridge regression with the prior's covariance (Hoerl, Kennard 1970; Bayes).

Least squares estimates poorly excited parameters with large errors. The prior gives the uncertainty of each *standard*
parameter; through the reduction ``beta = theta_L + K theta_K`` it implies mean and covariance of the base parameters, so that
no weight has to be chosen. Friction and rotor inertia, which a URDF does not contain, are not regularized.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..linalg import Array, cholesky, solve_triangular
from ..model.base import BaseParameters
from ..model.prior import USUAL_WEIGHT, Prior
from .fit import Fit
from .least_squares import solve
from .statistic import StatisticSet

#: Coefficients of a combination below this are rounding errors.
_ROUNDING = 1e-9


def base_prior(base: BaseParameters, prior: Prior) -> tuple[Array, Array]:
    """Returns the prior of the base parameters that is implied by a prior of the standard parameters.

    Args:
        prior: Prior of the first k of them; combinations that contain any of the others have no prior.

    Returns:
        Mean, shape (b,), and a matrix S, shape (r, b), so that ``‖S (beta − mean)‖²`` is the squared distance in standard
        deviations; parameters without a prior have zero columns.
    """
    held, coefficients = _known(base, prior)
    S = np.zeros((len(held), len(base)))
    if len(held):
        S[:, held] = solve_triangular(cholesky(coefficients.T @ coefficients), np.eye(len(held)), transposed=True)
    return prior_mean(base, prior), S


def prior_mean(base: BaseParameters, prior: Prior) -> Array:
    """Returns the prior mean of the base parameters, with friction and rotor inertias zero, shape (b,)."""
    return base.of(np.concatenate([prior.theta0, np.zeros(len(base.names) - len(prior.theta0))]))


def likely_slopes(base: BaseParameters, prior: Prior) -> Array:
    """Returns M of the most likely inertial parameters given base parameters, ``theta0 + M (beta - prior_mean)``.

    A base parameter that contains a rotor inertia is uninformative about the links: the rotor, which has no prior, can account
    for any difference.

    Returns:
        M, shape (k, b).
    """
    held, coefficients = _known(base, prior)
    M = np.zeros((len(prior.theta0), len(base)))
    if len(held):
        M[:, held] = solve_triangular(prior.root, np.asarray(np.linalg.pinv(coefficients.T), dtype=float))
    return M


def _known(base: BaseParameters, prior: Prior) -> tuple[np.ndarray, Array]:
    """Indices of the base parameters that contain only parameters with a prior, and a root of their prior covariance."""
    k = len(prior.theta0)
    held = np.flatnonzero(np.abs(base.projection[:, k:]).max(axis=1, initial=0.0) < _ROUNDING)
    return held, solve_triangular(prior.root, base.projection[held, :k].T, transposed=True)


def fit_ridge(statistics: StatisticSet, fit: Fit, prior: Prior) -> Fit:
    """Estimates the most likely base parameters given the data and the prior.

    Args:
        fit: The weighted least-squares fit, whose residual gives the weight of the data relative to the prior.
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


def usual_weight(statistics: StatisticSet, fit: Fit) -> float:
    """Returns the prior's weight that the errors of a fit justify: the factor by which its nominal variances are too small.

    The likelihood of independent residuals is too sharp where they are not independent: in slow motion, where unmodelled
    friction dominates them, by a factor of up to some hundreds. Raised to the power of one over that factor it has the right
    curvature in the median (Lyddon, Holmes, Walker 2019; with the median of variances instead of their sum, which one direction
    can dominate). As the weight of the prior it has the same effect.

    Args:
        fit: The fit with the errors of its covariance estimate.

    Returns:
        At least :data:`.prior.USUAL_WEIGHT`.
    """
    rows = statistics.stacked(fit.weights, fit.base.independent)[:, :-1]
    return max(USUAL_WEIGHT, fit.variance_factor(rows))
