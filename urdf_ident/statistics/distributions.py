"""Quantiles and tail probabilities of the distributions used for tests and confidence intervals.

They call ``scipy.special`` directly, as ``scipy.stats`` does: importing ``scipy.stats`` takes a second of CPU time, and a call
of one of its distributions takes a hundred times as long.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..linalg import Array
from ..scipy_parts import special


def student_quantile(share: float, dof: Array | float) -> Array:
    """Quantile of Student's t distribution, shape of ``dof``.

    Args:
        share: Probability below it, 0 to 1.
        dof: Degrees of freedom, any shape; inf is the normal distribution.
    """
    free = np.asarray(dof, dtype=float)
    return np.asarray(
        np.where(np.isinf(free), special("ndtri")(share), special("stdtrit")(np.where(np.isinf(free), 1.0, free), share))
    )


def normal_quantile(share: float) -> float:
    """Quantile of the standard normal distribution.

    Args:
        share: Probability below it, 0 to 1.
    """
    return float(special("ndtri")(share))


def truncated_normal_quantile(share: float, mean: Array, std: Array) -> Array:
    """Quantile of a normal variable that is known not to be negative, shape (k,).

    Args:
        share: Probability below it, 0 to 1.
        mean, std: Mean and standard deviation (> 0) without that knowledge, shape (k,) each.
    """
    return np.asarray(mean - std * special("ndtri_exp")(np.log1p(-share) + special("log_ndtr")(mean / std)))


def student_tail(value: float, dof: float) -> float:
    """Probability that Student's t is larger.

    Args:
        value: The value.
        dof: Degrees of freedom.

    Returns:
        0 to 1.
    """
    return float(special("stdtr")(dof, -value))


def normal_tail(value: float) -> float:
    """Probability that a standard normal variable is larger.

    Args:
        value: The value.

    Returns:
        0 to 1.
    """
    return float(special("ndtr")(-value))


def chi_square_quantile(share: float, dof: Array | float) -> Array:
    """Quantile of the chi-square distribution, shape of ``dof``.

    Args:
        share: Probability below it, 0 to 1.
        dof: Degrees of freedom, any shape.
    """
    return np.asarray(2.0 * special("gammaincinv")(np.asarray(dof, dtype=float) / 2.0, share))


def chi_square_tail(value: float, dof: float) -> float:
    """Probability that a chi-square variable is larger.

    Args:
        value: The value.
        dof: Degrees of freedom.

    Returns:
        0 to 1.
    """
    return float(special("chdtrc")(dof, value))


def chi_bar_square_tail(value: float, count: int) -> float:
    """Probability that parameters that cannot be negative gain more by chance (Kudô 1963, for uncorrelated ones).

    Args:
        value: Reduction of the squared residual, in variances.

    Returns:
        0 to 1.
    """
    return float(sum(math.comb(count, k) * chi_square_tail(value, k) for k in range(1, count + 1)) / 2**count)


def f_tail(value: float, dof: float, dof_below: float) -> float:
    """Probability that an F-distributed variable is larger.

    Args:
        value: The value.
        dof, dof_below: Degrees of freedom of the numerator and of the denominator.

    Returns:
        0 to 1.
    """
    return float(special("fdtrc")(dof, dof_below, value))


@lru_cache(maxsize=256)
def one_sigma(dof: int) -> float:
    """Quantile of Student's t at the confidence level of one standard deviation of the normal distribution.

    Returns:
        1 for many degrees of freedom, more for few.
    """
    return float(student_quantile(1.0 - normal_tail(1.0), dof))
