"""Whether the masses of a choice are supported: by the data with their honest errors, or by the prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array
from ..model.prior import Prior
from ..statistics.fit import Fit


def farthest_mass(fit: Fit, prior: Prior, theta: Array, masses: NDArray[np.intp]) -> float:
    """How far masses are from what the data, with the errors that the fit states, and the prior say together.

    The data's nominal metric overrates directions in which the model lacks something: a mass that moves slowly takes what the
    friction laws lack, in held-out parts of the same motion, too. The fit's covariance knows better.

    Args:
        prior: Of all parameters, taken with weight 1.
        theta: Standard parameters, shape (p,).
        masses: Which of them are masses, indices, shape (k,).

    Returns:
        The largest distance, in posterior standard deviations.
    """
    seen = fit.seen
    B, known = fit.base.projection[seen], prior.root.T @ prior.root
    information = _inverse(fit.of_mean.covariance[np.ix_(seen, seen)])
    posterior = _inverse(B.T @ information @ B + known)
    mean = posterior @ (B.T @ information @ fit.params[seen] + known @ prior.theta0)
    spread = np.sqrt(np.maximum(np.diag(posterior), 1e-300))
    return float(np.max(np.abs((theta - mean) / spread)[masses], initial=0.0))


def _inverse(matrix: Array) -> Array:
    """Pseudo-inverse of a covariance or information, in scaled rows and columns."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    outer = np.outer(inverse, inverse)
    return np.asarray(np.linalg.pinv(matrix * outer, rcond=1e-10, hermitian=True) * outer)
