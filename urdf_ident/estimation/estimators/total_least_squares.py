"""Total least squares with the noise of encoders in the regressor (Golub 1980; Van Huffel and Vandewalle 1991).

Least squares assumes that W is exact. Its columns are computed from measured positions, whose noise biases estimates towards
zero. Total least squares finds the smallest change of W *and* tau, each in units of its noise, that satisfies the equations.
The noise of W follows from the data: the content of the positions at frequencies above those of robot motion is noise, and
passing noise of that size through low-pass, derivatives and regressor gives the covariance of the columns, which is far from
diagonal.

The estimate is first-order unbiased, unlike that of least squares, at the price of a larger variance: it is useful for noisy
encoders and motion with little acceleration; with 17 bits and more it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ...errors import EstimationError
from ...linalg import Array, block_diagonal, positive, shaped, solve_triangular, triangle
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...signals.filters import differentiate, lowpass
from ...signals.prepare import PreparedLog
from ...statistics.fit import Fit
from ...statistics.least_squares import MOST_ROUNDS
from ...statistics.rows import RowFilter, filtered_rows
from ...statistics.statistic import StatisticSet, placed
from ..uncertainty.covariance import with_covariance
from .estimator import Estimated, EstimatorInput

#: The weights from the residual have converged if no parameter changes by more than this share of its standard error.
CONVERGED = 1e-3
#: Smallest share of a residual's variance that is attributed to the noise of the torque.
TORQUE_SHARE = 0.01
#: Noise is measured above this fraction of the sampling rate, or above twice the cut-off.
HIGH = 0.25


def total_least_squares(factor: ArrayLike, noise: ArrayLike) -> Array:
    """Returns the b for which the smallest change of ``[X | y]``, in units of its noise, satisfies ``X b = y``, shape (k,).

    Minimizes ``‖[X | y] x‖² / ‖N x‖²`` over x with last entry −1: the singular vector of the largest singular value of
    ``N R⁻¹``, R the triangular factor of ``[X | y]``.

    Args:
        factor: Any array with the Gram matrix of ``[X | y]``, shape (m, k + 1).
        noise: Any N with ``NᵀN`` proportional to the covariance of one row of ``[X | y]``, shape (r, k + 1); may be
            singular if some columns have no noise.

    Raises:
        EstimationError: The columns are linearly dependent, none has noise, or no finite b exists.
        ShapeError: The shapes do not match.
    """
    data = np.asarray(factor, dtype=float)
    N = shaped("noise", noise, ("r", data.shape[1]))
    norms = positive(np.linalg.norm(data, axis=0))
    R = triangle(data / norms)
    diagonal = np.abs(np.diag(R))
    if len(R) < data.shape[1] or diagonal.min() <= np.finfo(float).eps * len(R):
        if len(R) >= data.shape[1] - 1 and diagonal[:-1].min(initial=1.0) > np.finfo(float).eps * len(R):
            return np.asarray(
                solve_triangular(R[:-1, :-1] if len(R) == data.shape[1] else R[:, :-1], R[: data.shape[1] - 1, -1])
                * norms[-1]
                / norms[:-1]
            )
        raise EstimationError("total least squares: columns depend on each other", remedy="leave out what the data do not see")
    if not np.any(N):
        raise EstimationError("total least squares needs something noisy", got="no noise at all")
    whitened = solve_triangular(R, (N / norms).T, transposed=True).T
    x = solve_triangular(R, np.linalg.svd(whitened)[2][0]) / norms
    if abs(x[-1]) <= np.finfo(float).eps * np.abs(x).max():
        raise EstimationError("total least squares has no finite solution", remedy="use method wls")
    return np.asarray(-x[:-1] / x[-1])


def noisy_columns(
    model: DynamicModel, logs: Sequence[PreparedLog], base: BaseParameters, seed: int = 0
) -> tuple[Array, dict[str, Array]]:
    """Measures the noise of the positions and propagates noise of that size to the columns.

    Returns:
        Standard deviation of the positions' noise, mean over logs, shape (n,) [rad or m]; row group → covariance of one row's
        base columns, shape (b, b).
    """
    rng, levels = np.random.default_rng(seed), []
    squares = {group.name: np.zeros((len(base), len(base))) for group in model.groups}
    rows = dict.fromkeys(squares, 0)
    for log in logs:
        conditioned = log.conditioned
        recording = log.report.recording
        q = high_frequency_noise(recording.position, conditioned.rate, conditioned.cutoff)
        logged = conditioned.velocity_source == "logged" and recording.velocity is not None
        v = high_frequency_noise(recording.velocity, conditioned.rate, conditioned.cutoff) if logged else None  # type: ignore[arg-type]
        levels.append(q)
        row_filter = RowFilter(conditioned.factor)
        for segment in log.segments:
            # the segment with noise of this size, conditioned like the signals; √M smaller for a mean of M periods
            less = rng.standard_normal(segment.q.shape) / np.sqrt(segment.repeats)
            place = lowpass(q * less, segment.rate, conditioned.cutoff)
            if v is None:
                speed = differentiate(place, segment.rate)
            else:
                less = rng.standard_normal(segment.q.shape) / np.sqrt(segment.repeats)
                speed = lowpass(v * less, segment.rate, conditioned.cutoff)
            turned = segment.a + differentiate(speed, segment.rate)
            moved = replace(segment, q=segment.q + place, v=segment.v + speed, a=turned)
            pairs = zip(filtered_rows(model, segment, row_filter), filtered_rows(model, moved, row_filter), strict=True)
            for (_, exact), (_, noisy) in pairs:
                for group, first, second in zip(model.groups, exact, noisy, strict=True):
                    change = placed((second - first)[:, :-1], base.place[group.columns], len(base))
                    squares[group.name] += change.T @ change
                    rows[group.name] += len(first)
    covariance = {name: square / max(rows[name], 1) for name, square in squares.items()}
    return np.mean(levels, axis=0), covariance


def high_frequency_noise(signal: Array, rate: float, cutoff: float) -> Array:
    """Returns the standard deviation of a signal's white noise, measured above the frequencies of the motion.

    Args:
        signal: Shape (N, n), any unit, as logged.
        rate: Samples per second [Hz].
        cutoff: Highest frequency of the motion [Hz].
    """
    edge = min(max(2 * cutoff, HIGH * rate), 0.45 * rate)
    impulse = np.zeros((min(len(signal), 4096), 1))
    impulse[len(impulse) // 2] = 1.0
    share = float(np.sum((impulse - lowpass(impulse, rate, edge)) ** 2))
    high = signal - lowpass(signal, rate, edge)
    inner = high[len(high) // 20 : len(high) - len(high) // 20]  # without the filter's transients
    return np.asarray(np.sqrt(np.mean(inner**2, axis=0) / share))


def fit_total_least_squares(statistics: StatisticSet, fit: Fit, noise: Mapping[str, Array]) -> tuple[Fit, Array, int]:
    """Estimates base parameters by total least squares from factors.

    Every row group has its own noise, of its torque and of its columns. Both follow from the residual, whose variance is
    ``σ_τ² + βᵀ C β``, and are updated after each estimate.

    Args:
        fit: The least-squares fit, from which the iteration starts.
        noise: Row group → covariance of one row's base columns, shape (b, b).

    Returns:
        The estimate, whose covariance is that of least squares; T of its own ``T V Tᵀ``, shape (b, b); the number of rounds.

    Raises:
        EstimationError: It does not converge, or has no finite solution.
    """
    base, seen = fit.base, np.flatnonzero(fit.seen)
    rows, params, sigma = statistics.rows, fit.params.copy(), dict(fit.sigma)
    transform = np.eye(len(base))
    for turn in range(1, MOST_ROUNDS + 1):
        weights = {group: 1.0 / value for group, value in sigma.items()}
        data = statistics.stacked(weights, base.independent)
        kept = np.column_stack([data[:, seen], data[:, -1] - data[:, :-1] @ np.where(fit.seen, 0.0, fit.params)])
        columns, torque = np.zeros((len(seen), len(seen))), 0.0
        for group, value in sigma.items():
            C = noise[group]
            of_torque = max(value**2 - float(params @ C @ params), TORQUE_SHARE * value**2)
            columns += rows[group] / value**2 * C[np.ix_(seen, seen)]
            torque += rows[group] * of_torque / value**2
        values, vectors = np.linalg.eigh(columns)
        root = block_diagonal(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, np.atleast_2d(np.sqrt(torque)))
        before = params.copy()
        params[seen] = total_least_squares(kept, root)
        share, theta = sum(rows.values()) / max(fit.dof, 1.0), base.embedded(params)
        for group, value in fit.sigma.items():
            square = statistics.residual_squares(theta, group) / max(rows[group], 1) * share
            sigma[group] = max(float(np.sqrt(square)), 1e-6 * value)
        if (np.abs(params - before)[seen] <= CONVERGED * fit.bse[seen]).all():
            normal = kept[:, :-1].T @ kept[:, :-1]
            scale = np.sqrt(positive(np.diag(normal - columns)))
            if np.linalg.eigvalsh((normal - columns) / np.outer(scale, scale))[0] > 1e-9:
                transform[np.ix_(seen, seen)] = np.linalg.solve(normal - columns, normal)
            return replace(fit, params=params, sigma=sigma, row_weights=weights, method="tls"), transform, turn
    raise EstimationError(
        "total least squares does not converge",
        got=f"{MOST_ROUNDS} rounds",
        remedy="the positions are too noisy for this motion: use method wls or iv",
    )


def total_least_squares_estimate(problem: EstimatorInput) -> Estimated:
    """Total least squares as an estimator."""
    base, statistics = problem.base, problem.statistics
    position, noise = noisy_columns(problem.model, problem.logs, base)
    fit, transform, rounds = fit_total_least_squares(statistics, problem.least_squares, noise)
    plain = problem.refit(fit.row_weights)(statistics)
    largest = plain.distance(fit.params)
    joints = dict(zip(problem.model.robot.joints, position.tolist(), strict=True))
    levels = f"{position.min():.2g} to {position.max():.2g} rad or m"
    shifted = statistics.shifted(base.embedded(fit.params - plain.params))

    def errors(kind: str) -> Fit:
        least = with_covariance(fit, shifted, kind, model=problem.model)
        return replace(least, covariance=transform @ least.covariance @ transform.T)

    return Estimated(
        fit,
        shifted,
        f"as configured; noise of the positions {levels}, it moves the estimate by up to {largest:.2g} standard errors",
        errors=errors,
        details={"rounds": rounds, "position_noise": joints, "largest": largest},
        refit=lambda part: fit_total_least_squares(part, problem.refit()(part), noise)[0],
        solved=statistics,
    )
