"""What the data, with the errors that the fit states, and the prior say together of every parameter."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, whitening
from ..model.posterior import posterior_covariance
from ..model.prior import Prior
from ..statistics.fit import Fit

#: Directions of the estimate whose variance is this part of the largest are rounding.
_CUT = 1e-10


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
