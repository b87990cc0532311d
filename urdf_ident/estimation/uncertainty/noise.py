"""Model of the noise of the rows: white noise plus a first-order autoregression in each row group, estimated by REML.

The noise of successive rows is correlated: current loops, temperature, unmodelled friction. Residuals underestimate it, because
the fit absorbs the part that resembles motion. Restricted maximum likelihood (Patterson, Thompson 1971) accounts for this: in
each frequency band the residual's power is divided by the remaining degrees of freedom (rows minus leverage), and the noise
spectrum is fitted to the result, weighted by these. At the frequencies of the motion hardly any remain; the noise there
follows from the shape of the spectrum at other frequencies alone. The time constant can then be uncertain; the log spectra of
all time constants are averaged by likelihood instead of taking the best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, positive
from ...model.row_groups import joint_of
from ...samples import ReadOnly
from ...statistics.fit import SIGMA_FLOOR, Fit
from ...statistics.least_squares import Solution
from .bands import Spectrum

#: Time constants from one row to this fraction of the longest piece are tried: longer ones are indistinguishable from motion.
LONGEST_MEMORY = 1 / 16
MEMORIES = 12
#: The spectra have converged if none changes by more than this fraction; maximum number of iterations.
TOLERANCE, ROUNDS = 1e-3, 40
#: Least variance of a row group over that of its residual in the weighted fit. The likelihood has a degenerate maximum at zero
#: where one parameter explains a row group exactly.
_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class NoiseModel(ReadOnly):
    """Noise of the rows.

    Attributes:
        power: Variance of the rows' cosine coefficients, shape (groups, bands) [unit of torque squared].
        memory: Most likely time constant per row group, shape (groups,) [s].
        freedom: Remaining degrees of freedom, shape (groups, bands).
    """

    groups: tuple[str, ...]
    power: Array
    memory: Array
    freedom: Array

    @property
    def coloured(self) -> bool:
        """Whether the noise power of some row group in the lowest band is more than twice its average."""
        average = np.sum(self.freedom * self.power, axis=1) / self.freedom.sum(axis=1)
        return bool((self.power[:, 0] > 2 * average).any())

    def describe(self) -> str:
        """Returns the time constants in one line."""
        return ", ".join(f"{joint_of(group)} {m:.2g} s" for group, m in zip(self.groups, self.memory, strict=True))


@dataclass(frozen=True, eq=False)
class WhitenedRows:
    """Rows by band in coordinates in which the weighted problem is orthonormal, so that normal matrices lose no precision.

    Attributes:
        Z: Columns times the solution's root, shape (M, r).
        residual: Residual of the fit, shape (M,) [unit of torque].
        unit: Row group · bands + band of each row, shape (M,).
        count: Number of data rows of each unit, shape (groups, bands).
    """

    Z: Array
    residual: Array
    unit: np.ndarray
    count: Array

    def scores(self, noise: NoiseModel, weights: Mapping[str, float]) -> Array:
        """Returns the variance of each row's score in the weighted estimate under some noise, shape (M,).

        Args:
            weights: Row group → weight used for the solution.
        """
        weight = np.array([weights[group] for group in noise.groups])
        return np.asarray((noise.power * weight[:, None] ** 4).reshape(-1)[self.unit])

    def sandwich(self, noise: NoiseModel, weights: Mapping[str, float], solution: Solution) -> Array:
        """Returns the sandwich covariance of the weighted estimate under this noise, shape (b, b)."""
        return solution.sandwich((self.Z * self.scores(noise, weights)[:, None]).T @ self.Z)

    def dof(self, noise: NoiseModel, weights: Mapping[str, float], solution: Solution) -> Array:
        """Returns the degrees of freedom of each variance of the sandwich (Satterthwaite), at least 1, shape (b,)."""
        parts = np.zeros((noise.power.size, len(solution.root)))
        np.add.at(parts, self.unit, self.scores(noise, weights)[:, None] * (self.Z @ solution.root.T) ** 2)
        spread = np.sum(parts**2 / np.maximum(noise.freedom.reshape(-1), 1e-9)[:, None], axis=0)
        return np.asarray(np.maximum(np.sum(parts, axis=0) ** 2 / positive(spread), 1.0))


def whitened_rows(spectrum: Spectrum, fit: Fit, solution: Solution) -> WhitenedRows:
    """Transforms rows by band to the coordinates of a solution."""
    parts, units = [], []
    for g, (layout, factors) in enumerate(zip(spectrum.layouts, spectrum.factors, strict=True)):
        parts.append(np.vstack(factors) @ fit.base.turned(layout.columns, solution.root, fit.params))
        units.append(g * spectrum.bands + np.repeat(np.arange(spectrum.bands), [len(R) for R in factors]))
    rows = np.vstack(parts)
    if not len(rows):
        raise EstimationError("no rows to judge the noise from")
    return WhitenedRows(rows[:, :-1], rows[:, -1], np.concatenate(units), np.tile(spectrum.rows, (len(parts), 1)))


def fit_noise(spectrum: Spectrum, rows: WhitenedRows) -> NoiseModel:
    """Fits the noise model.

    Args:
        rows: The same rows in the coordinates of a fit.
    """
    groups, bands = rows.count.shape
    longest = max(kind.length / (kind.rate / kind.row_filter.factor) for kind in spectrum.pieces)
    shortest = min(kind.row_filter.factor / kind.rate for kind in spectrum.pieces)
    memories = np.geomspace(shortest, max(LONGEST_MEMORY * longest, 2 * shortest), MEMORIES)
    shapes = np.array([spectrum.expected(0.0), *(spectrum.expected(m) for m in memories)])
    start = np.bincount(rows.unit // bands, rows.residual**2, groups) / np.maximum(rows.count.sum(axis=1), 1)
    scaled = start > SIGMA_FLOOR**2 * start.max()  # others hold rounding errors: the effort of a joint is zero
    power = np.repeat(np.where(scaled, start, 1.0)[:, None], bands, axis=1)  # 1 without noise, as statistics.fit.group_sigma
    best = np.zeros(groups, dtype=np.intp)
    for turn in range(ROUNDS):
        squares, leverage = _residual_power(rows, power)
        freedom = np.maximum(rows.count - leverage, 1e-6)
        updated = power.copy()
        for g in range(groups):
            if scaled[g]:
                shape, best[g] = _fit_shapes(squares[g] / freedom[g], freedom[g] * (rows.count[g] > 0), shapes, power[g])
                updated[g] = np.maximum(shape, _LEAST_VARIANCE * start[g])
        change = float(np.abs(np.log(updated / power)).max())
        power = updated if turn < ROUNDS // 2 else np.sqrt(updated * power)  # damping, as two estimates may alternate
        if change < TOLERANCE:
            break
    return NoiseModel(spectrum.groups, power, memories[best], rows.count - leverage)


def _residual_power(rows: WhitenedRows, power: Array) -> tuple[Array, Array]:
    """Residual squares and leverage per row group and band, from generalized least squares with these variances."""
    from scipy.linalg import cho_factor, cho_solve

    weighted = rows.Z / power.reshape(-1)[rows.unit][:, None]
    factor = cho_factor(weighted.T @ rows.Z)
    shift, inverse = cho_solve(factor, weighted.T @ rows.residual), cho_solve(factor, np.eye(rows.Z.shape[1]))
    squares = np.bincount(rows.unit, (rows.residual - rows.Z @ shift) ** 2, power.size)
    leverage = np.bincount(rows.unit, np.sum((weighted @ inverse) * rows.Z, axis=1), power.size)
    return np.asarray(squares, dtype=float).reshape(power.shape), np.asarray(leverage, dtype=float).reshape(power.shape)


def _fit_shapes(observed: Array, freedom: Array, shapes: Array, power: Array) -> tuple[Array, int]:
    """Fits the spectrum of one row group to its power per band, which is χ²-distributed with the given degrees of freedom.

    Args:
        observed: Unbiased power, shape (bands,).
        freedom: Degrees of freedom, shape (bands,).
        shapes: Spectra of unit noise, white first, shape (memories + 1, bands).
        power: Current estimate, shape (bands,).

    Returns:
        The spectrum, and the index of the most likely time constant.
    """
    floor = 1e-6 * float(np.average(observed, weights=np.maximum(freedom, 1e-12)))
    white, coloured = shapes[0], shapes[1:]
    estimate = np.repeat(power[None], len(coloured), axis=0)
    for _ in range(8):
        weight = freedom / estimate**2
        aa, ab, bb = weight @ white**2, np.sum(weight * white * coloured, axis=1), np.sum(weight * coloured**2, axis=1)
        ay, by = weight @ (white * observed), np.sum(weight * coloured * observed, axis=1)
        share = _two_nonnegative(aa, ab, bb, ay, by)
        updated = np.maximum(share[:, :1] * white + share[:, 1:] * coloured, floor)
        change = np.abs(np.log(updated / estimate)).max()
        estimate = updated
        if change < TOLERANCE:
            break
    cost = 0.5 * np.sum(freedom * (np.log(estimate) + observed / estimate), axis=1)
    weight = np.exp(cost.min() - cost)
    return np.exp((weight / weight.sum()) @ np.log(estimate)), int(np.argmin(cost))


def _two_nonnegative(aa: Array, ab: Array, bb: Array, ay: Array, by: Array) -> Array:
    """Solves many least-squares problems with two non-negative unknowns each, from their normal equations."""
    det = positive(aa * bb - ab**2)
    both = np.column_stack([(bb * ay - ab * by) / det, (aa * by - ab * ay) / det])
    first = np.column_stack([np.maximum(ay / aa, 0.0), np.zeros(len(bb))])
    second = np.column_stack([np.zeros(len(bb)), np.maximum(by / bb, 0.0)])
    better = np.where(np.reshape(ay * first[:, 0] > by * second[:, 1], (-1, 1)), first, second)
    return np.asarray(np.where(np.all(both >= 0, axis=1, keepdims=True), both, better))
