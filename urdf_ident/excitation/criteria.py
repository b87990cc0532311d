"""Criteria of a motion: functions of the singular values of the weighted regressor W of base parameters.

Every value is a logarithm, so that gradients do not depend on units, and smaller is better:

========== ============================================ ===================================================
name       value                                        in words
========== ============================================ ===================================================
cond       log σ_max/σ_min                              condition number (Wu 2012, and most of the literature)
frobenius  log ‖WᵀW‖_F ‖(WᵀW)⁻¹‖_F                      smooth condition number of WᵀW (Szabó 2021, eq. 20)
D          −mean log σ                                  geometric mean of the standard errors' ellipsoid
A          ½ log mean σ⁻²                               root mean square standard error
E          −log σ_min                                   worst standard error of any combination
block      log of the weighted sum of four conditions   W, and its parts of acceleration, velocity, gravity (Liu 2023, 15-16)
========== ============================================ ===================================================

cond and E are not smooth where singular values cross. The optimiser replaces the extremes of the singular values by
p-norms (``sharpness`` p: an upper bound, too large by at most ``b^(2/p)``) with p increasing during the search.

Only D is invariant to the columns' units. The others depend on the scaling: unscaled columns (SI), as in the literature, or
columns normalised by their size on random motion.
"""

from __future__ import annotations

import numpy as np

from ..linalg import Array, triangle

CRITERIA = ("D", "A", "E", "cond", "frobenius", "block")
#: Criteria of a single matrix; "block" is made of several "cond".
SPECTRAL = CRITERIA[:-1]
#: Singular values below this fraction of the largest are rounding errors.
_RANK = 1e-13


def singular_criterion(name: str, sigma: Array, sharpness: float = np.inf) -> tuple[float, Array]:
    """Returns a criterion and its derivative with respect to the singular values.

    Args:
        name: One of :data:`SPECTRAL`.
        sigma: Singular values, shape (b,), descending, positive.
        sharpness: Order p of the norm that replaces the extreme singular values; inf is exact.

    Returns:
        The value and its gradient, shape (b,).
    """
    if name == "D":
        return -float(np.log(sigma).mean()), -1.0 / (len(sigma) * sigma)
    if name == "A":
        share = sigma**-2 / np.sum(sigma**-2)
        return 0.5 * float(np.log(np.mean(sigma**-2))), -share / sigma
    if name == "frobenius":
        high, low = sigma**4 / np.sum(sigma**4), (sigma[-1] / sigma) ** 4
        value = 0.5 * np.log(np.sum((sigma / sigma[0]) ** 4)) + 0.5 * np.log(low.sum()) + 2 * np.log(sigma[0] / sigma[-1])
        return float(value), 2.0 * (high - low / low.sum()) / sigma
    if name == "E":
        value, slope = _extreme(1.0 / sigma, sharpness)
        return value, -slope / sigma
    top, bottom = _extreme(sigma, sharpness), _extreme(1.0 / sigma, sharpness)
    return top[0] + bottom[0], (top[1] - bottom[1]) / sigma


def _extreme(x: Array, sharpness: float) -> tuple[float, Array]:
    """Returns the log of the p-norm of x, and its derivative with respect to log x."""
    largest = float(x.max())
    if np.isinf(sharpness):
        return float(np.log(largest)), (np.arange(len(x)) == int(np.argmax(x))).astype(float)
    powers = (x / largest) ** sharpness
    return float(np.log(largest) + np.log(powers.sum()) / sharpness), powers / powers.sum()


def matrix_criterion(name: str, W: Array, sharpness: float = np.inf) -> tuple[float, Array]:
    """Returns a criterion of a regressor and its gradient with respect to every entry.

    Args:
        name: One of :data:`SPECTRAL`.
        W: Shape (m, b), m ≥ b.
        sharpness: See :func:`singular_criterion`.

    Returns:
        The value (inf if W is numerically rank deficient) and its gradient, shape (m, b).
    """
    _, sigma, right = np.linalg.svd(triangle(W))
    if len(sigma) < W.shape[1] or not sigma[-1] > _RANK * sigma[0]:
        return np.inf, np.zeros_like(W)
    value, slope = singular_criterion(name, sigma, sharpness)
    return value, W @ ((right.T * (slope / sigma)) @ right)


def criterion_value(name: str, W: Array) -> float:
    """Returns the exact value of a criterion.

    Args:
        name: One of :data:`SPECTRAL`.
        W: Weighted, scaled regressor of the base parameters, shape (m, b).

    Returns:
        The value, a logarithm; inf for a motion that does not excite every parameter.
    """
    return matrix_criterion(name, W)[0]


def condition_number(W: Array) -> float:
    """Returns the condition number σ_max/σ_min.

    Args:
        W: Shape (m, b).
    """
    return float(np.exp(criterion_value("cond", W)))


def format_criterion(value: float) -> str:
    """Formats the value of a criterion.

    Args:
        value: Its logarithm.

    Returns:
        The criterion itself (the exponential) as text.
    """
    return f"{np.exp(value):.4g}" if np.isfinite(value) else "none yet"
