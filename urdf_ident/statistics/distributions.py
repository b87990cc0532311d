"""Quantiles and tails of the distributions that judge estimates.

They are those of ``scipy.special``, whose import takes 0.3 s of CPU, a tenth of a command. All follow from the incomplete beta
and gamma functions (Abramowitz, Stegun 1964, §26.4-26.7), and these from continued fractions (Didonato, Morris 1992, eq. 9;
Press et al., Numerical Recipes, §6.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from ..linalg import Array

#: Relative precision of continued fractions and series.
_PRECISION = 1e-15
#: In place of a zero that is divided by.
_TINY = 1e-300
#: Newton's steps at most, the longest, and the one after which all digits are right, each doubling them.
_STEPS, _FARTHEST, _LAST_STEP = 200, 5.0, 1e-10
#: Arguments from which five terms of Stirling's series are exact.
_LARGE = 20.0


def student_quantile(share: float, dof: Array | float) -> Array:
    """Quantile of Student's t distribution.

    Args:
        share: Probability below it, 0 to 1.
        dof: Degrees of freedom, any shape; inf is the normal distribution.

    Returns:
        Shape of ``dof``; NaN where that is not positive.
    """
    normal = _normal_quantile(share)

    def quantile(free: float) -> float:
        if math.isinf(free) or normal == 0 or math.isinf(normal):
            return normal
        tail = min(share, 1.0 - share)
        constant = -_log_beta(0.5 * free, 0.5) - 0.5 * math.log(free)

        def at(t: float) -> tuple[float, float]:
            return student_tail(t, free), -t * math.exp(constant - 0.5 * (free + 1.0) * math.log1p(t * t / free))

        return math.copysign(_inverse(at, tail, abs(normal)), normal)

    return _of_each(quantile, dof)


def student_tail(value: float, dof: float) -> float:
    """Probability that Student's t is larger.

    Args:
        value: The value.
        dof: Degrees of freedom.

    Returns:
        0 to 1.
    """
    if value < 0:
        return 1.0 - student_tail(-value, dof)
    square = value * value / dof
    return 0.5 * _beta(0.5 * dof, 0.5, 1.0 / (1.0 + square), square / (1.0 + square))


def normal_tail(value: float) -> float:
    """Probability that a standard normal variable is larger.

    Args:
        value: The value.

    Returns:
        0 to 1.
    """
    return 0.5 * math.erfc(value * math.sqrt(0.5))


def chi_square_quantile(share: float, dof: Array | float) -> Array:
    """Quantile of the chi-square distribution.

    Args:
        share: Probability below it, 0 to 1.
        dof: Degrees of freedom, any shape.

    Returns:
        Shape of ``dof``; NaN where that is not positive.
    """

    upper = share > 0.5  # the smaller tail has the digits

    def quantile(free: float) -> float:
        def at(x: float) -> tuple[float, float]:
            power = math.exp(_log_gamma_power(0.5 * free, 0.5 * x))
            return _gamma(0.5 * free, 0.5 * x)[upper], -power if upper else power

        if share in (0.0, 1.0):
            return math.inf if upper else 0.0
        near = 1.0 - 2.0 / (9.0 * free) + _normal_quantile(share) * math.sqrt(2.0 / (9.0 * free))  # Wilson, Hilferty 1931
        return _inverse(at, 1.0 - share if upper else share, free * max(near, 0.1) ** 3)

    return _of_each(quantile, dof)


def chi_square_tail(value: float, dof: float) -> float:
    """Probability that a chi-square variable is larger.

    Args:
        value: The value.
        dof: Degrees of freedom.

    Returns:
        0 to 1.
    """
    return _gamma(0.5 * dof, 0.5 * value)[1]


def f_tail(value: float, dof: float, dof_below: float) -> float:
    """Probability that an F-distributed variable is larger.

    Args:
        value: The value.
        dof, dof_below: Degrees of freedom of the numerator and of the denominator.

    Returns:
        0 to 1.
    """
    ratio = value * dof / dof_below
    return _beta(0.5 * dof_below, 0.5 * dof, 1.0 / (1.0 + ratio), ratio / (1.0 + ratio))


@lru_cache(maxsize=256)
def one_sigma(dof: int) -> float:
    """How far Student's t goes for the level of confidence of one standard deviation of the normal distribution.

    Args:
        dof: Degrees of freedom.

    Returns:
        One for many degrees of freedom, more for few.
    """
    return float(student_quantile(1.0 - normal_tail(1.0), dof))


def _normal_quantile(share: float) -> float:
    return NormalDist().inv_cdf(share) if 0.0 < share < 1.0 else math.copysign(math.inf, share - 0.5)


def _of_each(quantile: Callable[[float], float], dof: Array | float) -> Array:
    """A quantile by degrees of freedom, made once where they are the same."""
    every, place = np.unique(np.asarray(dof, dtype=float), return_inverse=True)
    found = np.array([quantile(float(free)) if free > 0 else math.nan for free in every])
    return np.asarray(found[place].reshape(np.shape(dof)))


def _inverse(at: Callable[[float], tuple[float, float]], share: float, start: float) -> float:
    """Where a probability is a share, by Newton's steps on logarithms, in which it is concave: they converge from everywhere.

    Args:
        at: x > 0 to the probability beyond (or below) it, and x times the probability's slope by x.
        share: More than 0, less than 1.
        start: Anything positive.

    Returns:
        x.
    """
    x = start
    for _ in range(_STEPS):
        probability, slope = at(x)
        step = math.log(probability / share) * probability / slope
        x *= math.exp(-max(-_FARTHEST, min(_FARTHEST, step)))
        if abs(step) < _LAST_STEP:
            break
    return x


def _stirling(z: float) -> float:
    """What Stirling's formula lacks of the logarithm of the gamma function, for arguments from :data:`_LARGE` on."""
    square = 1.0 / (z * z)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / z


def _log_beta(a: float, b: float) -> float:
    """Logarithm of the beta function, to the last digits where one argument is large."""
    a, b = max(a, b), min(a, b)
    if a < _LARGE:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    ratio = b - (a - 0.5) * math.log1p(b / a) - b * math.log(a + b) + _stirling(a) - _stirling(a + b)
    return math.lgamma(b) + ratio


def _beta(a: float, b: float, x: float, y: float) -> float:
    """Regularised incomplete beta function ``I_x(a, b)``; y = 1 − x, which its user knows to more digits."""
    if math.isnan(x) or min(x, y) <= 0.0:
        return x if math.isnan(x) else float(y <= 0.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _beta(b, a, y, x)
    logs = (math.log(x) if x < 0.5 else math.log1p(-y), math.log(y) if y < 0.5 else math.log1p(-x))
    front = math.exp(a * logs[0] + b * logs[1] - _log_beta(a, b))

    def terms(m: int) -> tuple[float, float]:
        even, odd = m * (b - m) * x / (a + 2 * m - 1), (a + m) * (a * y - b * x + 1 + m * (1 + y)) / (a + 2 * m + 1)
        return (a + m - 1) * (a + b + m - 1) * x * even / (a + 2 * m - 1), m + even + odd

    return front / _continued_fraction(a * (a * y - b * x + 1) / (a + 1), terms)


def _log_gamma_power(a: float, x: float) -> float:
    """Logarithm of ``xᵃ e⁻ˣ / Γ(a)``."""
    if a < _LARGE:
        return a * math.log(x) - x - math.lgamma(a)
    away = (x - a) / a
    return a * (math.log1p(away) - away) + 0.5 * math.log(a / (2.0 * math.pi)) - _stirling(a)


def _gamma(a: float, x: float) -> tuple[float, float]:
    """Regularised incomplete gamma functions ``P(a, x)`` and ``Q(a, x) = 1 − P``."""
    if math.isnan(x) or x <= 0.0 or math.isinf(x):
        return (x, x) if math.isnan(x) else (float(x > 0.0), float(x <= 0.0))
    front = math.exp(_log_gamma_power(a, x))
    if x < a + 1.0:
        term, total, n = 1.0 / a, 1.0 / a, 0
        while term >= _PRECISION * total:
            n += 1
            term *= x / (a + n)
            total += term
        return front * total, 1.0 - front * total
    upper = front / _continued_fraction(x + 1.0 - a, lambda m: (-m * (m - a), x + 2.0 * m + 1.0 - a))
    return 1.0 - upper, upper


def _continued_fraction(first: float, terms: Callable[[int], tuple[float, float]]) -> float:
    """``b₀ + a₁/(b₁ + a₂/(b₂ + …))`` by Lentz's method, from its terms (a, b) by number."""
    value, above, below, factor, m = first, first, 0.0, 0.0, 0
    while abs(factor - 1.0) >= _PRECISION:
        m += 1
        a, b = terms(m)
        below, above = 1.0 / ((b + a * below) or _TINY), (b + a / above) or _TINY
        factor = above * below
        value *= factor
    return value
