"""What the errors that the fit states say of the data's weight, and of every parameter together with the prior."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, whitening
from ..model.posterior import posterior_covariance
from ..model.prior import Prior
from ..statistics.fit import Fit

#: Directions of the estimate whose variance is this part of the largest are rounding.
_CUT = 1e-10


def error_ratio(R: Array, fit: Fit) -> float:
    """How many times larger the variance of what the data see is than their noise alone would make it.

    The mean over the seen directions of honest over nominal variance, ``tr(C_nominal⁻¹ C) / n``: by so much a likelihood of
    independent noise overrates the data against a prior (Müller 2013, "Risk of Bayesian inference in misspecified models",
    the sandwich posterior). What the model lacks in one direction counts in full here, and not at all in a median.

    Args:
        R: Weighted factor of the fit's rows, shape (m, p).

    Returns:
        The ratio; 1 without seen directions.
    """
    seen = fit.seen
    factor = R[:, fit.base.independent[seen]]
    spread = factor @ fit.of_mean.covariance[np.ix_(seen, seen)]
    return float(np.sum(spread * factor) / np.count_nonzero(seen)) if seen.any() else 1.0


def supported(fit: Fit, prior: Prior) -> tuple[Array, Array]:
    """Mean and standard deviation of all parameters after data whose noise is as large as the fit's covariance says.

    The data's nominal metric overrates directions in which the model lacks something: a mass that moves slowly takes what the
    friction laws lack, in held-out parts of the same motion, too. The fit's covariance knows better.

    Args:
        prior: Of all parameters, taken with weight 1.

    Returns:
        Shape (p,) each.
    """
    seen = fit.seen
    root = whitening(fit.of_mean.covariance[np.ix_(seen, seen)], _CUT).T
    R = root @ fit.base.projection[seen]
    posterior = posterior_covariance(R, prior)
    mean = prior.theta0 + posterior @ (R.T @ (root @ fit.params[seen] - R @ prior.theta0))
    return mean, np.sqrt(np.diag(posterior))
