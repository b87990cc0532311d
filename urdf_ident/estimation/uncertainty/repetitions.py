"""Noise from the scatter between repetitions: its size for weights (Wu 2012), its autocorrelation for standard errors.

What a model lacks repeats with the motion and is in the mean, not in the scatter. So the scatter tells the noise alone,
at the motion's own frequencies too, where the residual of a fit has none left; and a residual that is larger than the
scatter allows tells how much the model lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...data.prepare import PreparedLog
from ...errors import EstimationError
from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...statistics.fit import Fit
from ...statistics.least_squares import Solution
from ...statistics.rows import RowFilter
from .bands import Spectrum, band_of
from .noise import NoiseModel, WhitenedRows, sandwich, whitened_rows


def all_averaged(logs: Sequence[PreparedLog]) -> bool:
    """Whether every log is the average of a motion's periods.

    Args:
        logs: Any number of prepared logs.

    Returns:
        True if there is one, and all are.
    """
    return bool(logs) and all(log.conditioned.averaged is not None for log in logs)


def repetition_count(logs: Sequence[PreparedLog]) -> int:
    """Number of periods behind averaged logs.

    Args:
        logs: Any prepared logs.

    Returns:
        The number; 0 for logs that do not repeat.
    """
    return sum(log.conditioned.averaged.count for log in logs if log.conditioned.averaged is not None)


def scatter_sigma(model: DynamicModel, logs: Sequence[PreparedLog]) -> dict[str, float]:
    """Noise of the rows of a single period, from the scatter between periods (Wu 2012; docs/theory.md §7).

    Args:
        logs: Averaged logs; others tell nothing.

    Returns:
        Row group → σ [unit of torque].

    Raises:
        EstimationError: No log repeats its motion.
    """
    squares, freedom = np.zeros(len(model.groups)), 0.0
    for _, rows, share in _scatter_rows(model, logs):
        squares += np.sum(rows**2, axis=0)
        freedom += share * len(rows)
    if freedom == 0:
        raise EstimationError(
            "maximum likelihood takes the noise from repetitions, and no log repeats its motion",
            where=", ".join(log.name for log in logs),
            expected="three or more periods, or signals.periodic: on",
            remedy="record several periods of one motion, or use estimation.method: wls",
        )
    return {group.name: float(np.sqrt(total / freedom)) for group, total in zip(model.groups, squares, strict=True)}


def lack_of_fit(model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit) -> float:
    """Variance of the fit's residual over that of the noise between repetitions, mean over the row groups.

    Args:
        logs: Averaged logs.
        fit: Of their rows.

    Returns:
        About 1 where noise is all there is; more where the model lacks what repeats.
    """
    sigma = scatter_sigma(model, logs)
    return float(np.mean([(fit.sigma[group] / value) ** 2 if value > 0 else np.inf for group, value in sigma.items()]))


def likelihood_weights(model: DynamicModel, logs: Sequence[PreparedLog]) -> dict[str, float]:
    """Weights of the maximum-likelihood estimate: one over the noise between periods (Wu 2012, section 4; docs/theory.md §7).

    Args:
        logs: Prepared logs, at least one of them averaged.

    Returns:
        Row group → weight [1/unit of torque].

    Raises:
        EstimationError: No log repeats its motion, or its periods do not differ at all.
    """
    sigma = scatter_sigma(model, logs)
    for group, value in sigma.items():
        if not value > 0:
            raise EstimationError(
                "the periods do not differ at all: there is no noise to weight by",
                where=group,
                remedy="use estimation.method: wls",
            )
    return {group: 1.0 / value for group, value in sigma.items()}


def scatter_noise(model: DynamicModel, logs: Sequence[PreparedLog], spectrum: Spectrum) -> NoiseModel:
    """Power of the noise in each frequency band, from the scatter; no model of its colour.

    Args:
        logs: Averaged logs.
        spectrum: Their rows by band.

    Returns:
        The noise, with the degrees of freedom behind each band.
    """
    from scipy.fft import dct

    groups, bands = len(model.groups), spectrum.bands
    squares, freedom = np.zeros((groups, bands)), np.zeros((groups, bands))
    for log, rows, share in _scatter_rows(model, logs):
        length = max(kind.length for kind in spectrum.pieces if kind.log == log.name)
        rate = log.conditioned.decimate_rate
        for begin in range(0, len(rows) - length + 1, length):
            cosines = dct(rows[begin : begin + length], axis=0, norm="ortho") ** 2
            band = band_of(length, rate, spectrum.edges)
            for g in range(groups):
                squares[g] += np.bincount(band, cosines[:, g], bands)
            freedom += share * np.bincount(band, minlength=bands)
    known = freedom[0] > 0
    near = np.array([int(np.argmin(np.where(known, np.abs(np.arange(bands) - b), np.inf))) for b in range(bands)])
    power, freedom = (squares / np.maximum(freedom, 1e-300))[:, near], freedom[:, near]
    level = np.sqrt(squares.sum(axis=1) / freedom.sum(axis=1))
    return NoiseModel(spectrum.groups, power, np.zeros(groups), np.zeros(groups), level, freedom)


def scatter_covariance(spectrum: Spectrum, noise: NoiseModel, fit: Fit, solution: Solution) -> tuple[Array, Array]:
    """Covariance of a fit under the noise between repetitions, and how sure it is.

    Args:
        spectrum: Rows by band.
        noise: From :func:`scatter_noise`.
        solution: Of the same problem, with its root.

    Returns:
        Covariance, shape (b, b), and the degrees of freedom of each variance (Satterthwaite), shape (b,).
    """
    rows: WhitenedRows = whitened_rows(spectrum, fit, solution)
    weights = fit.row_weights or fit.weights
    weight = np.array([weights[group] for group in noise.groups])
    variance = (noise.power * weight[:, None] ** 4).reshape(-1)
    shares = np.zeros((noise.power.size, len(fit.params)))
    np.add.at(shares, rows.unit, (rows.Z @ solution.root.T) ** 2)
    parts = variance[:, None] * shares
    spread = np.sum(parts**2 / np.maximum(noise.freedom.reshape(-1), 1e-9)[:, None], axis=0)
    dof = np.sum(parts, axis=0) ** 2 / np.maximum(spread, 1e-300)
    return sandwich(rows, solution, weights, noise), np.maximum(dof, 1.0)


def _scatter_rows(model: DynamicModel, logs: Sequence[PreparedLog]) -> Iterator[tuple[PreparedLog, Array, float]]:
    """Rows of each period's torque less the mean, in order of time, shape (rows, groups), and their freedom per row."""
    for log in logs:
        averaged = log.conditioned.averaged
        if averaged is not None:
            apart = averaged.deviation.reshape(-1, model.n)
            rows = RowFilter(log.conditioned.factor).apply(model.row_targets(apart))
            yield log, rows, (averaged.count - 1) / averaged.count
