"""Random effects of a quantity in several robots: its mean, its spread between robots, and robots that are outliers.

The logs of a robot give a quantity's value and its error; the values differ between robots by an unknown spread:
``y_i = mean + u_i + e_i``, ``u_i ~ N(0, spread²)``, ``e_i ~ N(0, error_i²)`` (random effects). The spread is estimated by
restricted maximum likelihood (:mod:`.log_effects.reml`), the error of the mean as in Hartung and Knapp
(2001). Whether a robot is an outlier is judged by the other robots alone: its distance from their mean is divided by the
prediction error for one more robot of their kind (Student's t; Higgins, Thompson and Spiegelhalter 2009). Three to five robots
determine a single spread poorly; the spread of each quantity, by the method of moments (DerSimonian and Laird 1986), is
therefore shrunk towards that of the other quantities as far as they agree (empirical Bayes, Smyth 2004).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, BoolArray
from .log_effects.reml import Moments, reml

#: Smallest number of robots for which a spread can be estimated.
FEWEST = 2
#: Smallest number of quantities that share a prior; the fraction of them counted as independent; smallest dispersion.
_FEWEST_SHARED, _INDEPENDENT, _LEAST = 6, 0.33, 1e-4


class RandomEffects(NamedTuple):
    """A quantity over m robots.

    Attributes:
        std_error: Standard error of the mean (Hartung-Knapp, its factor at least 1), with m − 1 degrees of freedom.
        spread: Standard deviation between robots.
        interval: 95 % interval of the mean.
    """

    mean: float
    std_error: float
    spread: float
    interval: tuple[float, float]


def random_effects(value: Array, error: Array) -> RandomEffects:
    """Estimates mean and spread of a quantity over robots.

    Args:
        value: Estimate from each robot's logs, shape (m,).
        error: Its standard error, positive, shape (m,).

    Raises:
        EstimationError: Fewer than two robots, or an error that is not positive.
    """
    from scipy.special import stdtrit

    value, error, m = np.asarray(value, dtype=float), np.asarray(error, dtype=float), len(value)
    if m < FEWEST:
        raise EstimationError("a spread between robots needs several", got=m, expected=f"{FEWEST} or more")
    if not (np.isfinite(value).all() and np.isfinite(error).all() and (error > 0).all()):
        raise EstimationError("values and errors of robots must be finite, errors positive")
    # whitened by its error, each robot has one row x (mean + u) = y with x = z = 1/error
    rows = np.column_stack([1.0 / error, 1.0 / error, value / error])
    start = np.array([max(float(value.var(ddof=1)), float((error**2).mean()))])
    variance = float(reml(Moments.of(rows[:, :, None] * rows[:, None], 1), start)[0])
    weight = 1.0 / (error**2 + variance)
    total = float(weight.sum())
    mean = float(weight @ value) / total
    scatter = float(weight @ (value - mean) ** 2) / (m - 1)
    std_error = float(np.sqrt(max(scatter, 1.0) / total))
    reach = float(stdtrit(m - 1, 0.975)) * std_error
    return RandomEffects(mean, std_error, float(np.sqrt(variance)), (mean - reach, mean + reach))


class Deviations(NamedTuple):
    """Difference of each robot from the others, shape (m, K) each.

    Attributes:
        difference: Value minus the mean of the other robots.
        std_error: Standard error of the difference for one more robot like the others, its own error included.
        dof: Degrees of freedom: the number of others minus one, plus those of the shared prior; 0 with too few others.
        p_value: Probability that a robot like the others differs as much, 0 to 1.
    """

    difference: Array
    std_error: Array
    dof: Array
    p_value: Array


def deviations(value: Array, error: Array, like: BoolArray | None = None) -> Deviations:
    """Compares every robot with the others.

    The spread of the others is estimated by the method of moments (DerSimonian and Laird 1986): with the weights
    ``w = 1/error²`` of m robots, their weighted mean and ``Q = Σ w (value − mean)²``,
    ``spread² = max(Q − (m − 1), 0) / (Σ w − Σ w² / Σ w)``. For this, the dispersion ``Q / (m − 1)`` of each quantity is shrunk
    towards the usual one ``s²`` of all quantities, which counts as much as d degrees of freedom (Smyth 2004):
    ``(d s² + Q) / (d + m − 1)``. The difference from the mean with the weights ``1 / (error² + spread²)`` is then compared with
    the prediction error ``√(spread² + 1/Σ weights + error²)`` at ``m − 1 + d`` degrees of freedom.

    Args:
        value, error: As for :func:`random_effects`, of quantities of one kind, which share a prior of the spread, shape (m, K).
        like: Values that may represent the fleet, shape (m, K); all if None.

    Returns:
        Differences and p values; a robot with fewer than two others has p = 1.
    """
    from scipy.special import stdtr

    value, error = np.asarray(value, dtype=float), np.asarray(error, dtype=float)
    m, count = value.shape
    used = np.ones((m, count), dtype=bool) if like is None else np.asarray(like, dtype=bool)
    difference, std_error, dof, p_value = (np.full((m, count), x) for x in (0.0, np.inf, 0.0, 1.0))
    for i in range(m):
        rest = used & (np.arange(m) != i)[:, None]
        enough = np.flatnonzero(rest.sum(axis=0) >= FEWEST)
        y, variance, others = value[:, enough], error[:, enough] ** 2, rest[:, enough]
        w, others_dof = others / variance, others.sum(axis=0) - 1.0
        w_total = w.sum(axis=0)
        Q = (w * (y - (w * y).sum(axis=0) / w_total) ** 2).sum(axis=0)
        shared, usual = _shared_dispersion(Q / others_dof, others_dof)
        shrunk = others_dof * (shared * usual + Q) / (shared + others_dof)
        spread2 = np.maximum(shrunk - others_dof, 0.0) / (w_total - (w**2).sum(axis=0) / w_total)
        weights = others / (variance + spread2)
        total = weights.sum(axis=0)
        difference[i, enough] = y[i] - (weights * y).sum(axis=0) / total
        std_error[i, enough] = np.sqrt(spread2 + 1.0 / total + variance[i])
        dof[i, enough] = others_dof + shared
        p_value[i, enough] = 2.0 * stdtr(dof[i, enough], -abs(difference[i, enough]) / std_error[i, enough])
    return Deviations(difference, std_error, dof, p_value)


def _shared_dispersion(ratios: Array, dof: Array) -> tuple[float, float]:
    """Fits the prior of the dispersion that all quantities share.

    Args:
        ratios: Mean squares of the differences between robots over those of the errors, shape (K,).
        dof: Their degrees of freedom, shape (K,).

    Returns:
        Degrees of freedom and scale of an inverse chi-square prior, from the moments of the logarithms (Smyth 2004); the former
        are at most a fraction of those of all quantities, which are not independent, and 0 with few quantities.
    """
    from scipy.special import polygamma, psi

    if len(ratios) < _FEWEST_SHARED:
        return 0.0, 1.0
    half = dof / 2.0
    logs = np.log(np.maximum(ratios, _LEAST)) - psi(half) + np.log(half)
    most = _INDEPENDENT * float(dof.sum())
    extra = float(logs.var(ddof=1) - np.mean(polygamma(1, half)))
    degrees = np.geomspace(0.02, most, 400)
    shared = most if extra <= 0 else float(degrees[int(np.argmin(np.abs(polygamma(1, degrees / 2.0) - extra)))])
    return shared, float(np.exp(logs.mean() + psi(shared / 2.0) - np.log(shared / 2.0)))
