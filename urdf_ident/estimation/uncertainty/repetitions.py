"""Noise from the scatter between repetitions: its variance for weights (Wu 2012), its spectrum for standard errors.

Model errors repeat with the motion and are part of the mean, not of the scatter. The scatter is therefore noise alone, also at
the frequencies of the motion, where the fit has absorbed the residual; and a residual larger than the scatter measures the
lack of fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, positive
from ...model.dynamic_model import DynamicModel
from ...signals.prepare import PreparedLog
from ...statistics.fit import Fit
from ...statistics.rows import RowFilter
from .bands import Spectrum, band_of
from .noise import NoiseModel


def repetition_count(logs: Sequence[PreparedLog]) -> int:
    """Returns the number of periods in averaged logs; logs that were not averaged count 0."""
    return sum(log.conditioned.averaged.count for log in logs if log.conditioned.averaged is not None)


def scatter_sigma(model: DynamicModel, logs: Sequence[PreparedLog]) -> dict[str, float]:
    """Returns the noise of the rows of a single period, from the scatter between periods (Wu 2012; docs/theory.md §7).

    Args:
        logs: Averaged logs; others are ignored.

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
    """Returns the variance of the fit's residual over that of the noise between repetitions, mean over the row groups.

    Returns:
        About 1 if the residual is noise only; more with model errors.
    """
    sigma = scatter_sigma(model, logs)
    return float(np.mean([(fit.sigma[group] / value) ** 2 if value > 0 else np.inf for group, value in sigma.items()]))


def scatter_noise(model: DynamicModel, logs: Sequence[PreparedLog], spectrum: Spectrum) -> NoiseModel:
    """Returns the power of the noise in each frequency band, from the scatter, without a model of its spectrum.

    Returns:
        The noise, with the degrees of freedom of each band.
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
    power, freedom = (squares / positive(freedom))[:, near], freedom[:, near]
    return NoiseModel(spectrum.groups, power, np.zeros(groups), freedom)


def _scatter_rows(model: DynamicModel, logs: Sequence[PreparedLog]) -> Iterator[tuple[PreparedLog, Array, float]]:
    """Yields each log with the filtered deviations of its periods from the mean, shape (rows, groups), and the degrees of
    freedom per row."""
    for log in logs:
        averaged = log.conditioned.averaged
        if averaged is not None:
            rows = RowFilter(log.conditioned.factor).apply(model.row_targets(averaged.deviation.reshape(-1, model.n)))
            yield log, rows, (averaged.count - 1) / averaged.count
