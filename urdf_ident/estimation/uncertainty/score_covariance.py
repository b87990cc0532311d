"""Covariance of scores in order of time: scatter between repetitions of a motion, and residuals with short autocorrelation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...data.conditioning.periods import find_repetition
from ...data.prepare import PreparedLog
from ...linalg import Array, IntArray
from ...model.dynamic_model import DynamicModel
from ...statistics.fit import Fit
from ...statistics.least_squares import Solution
from ...statistics.pieces import base_rows, row_pieces


@dataclass(frozen=True, eq=False)
class Period:
    """The common period of some logs.

    Attributes:
        seconds: Its length [s].
        starts: Log → time of the first whole period on the log's clock [s] and number of whole periods.
    """

    seconds: float
    starts: Mapping[str, tuple[float, int]]

    @property
    def count(self) -> int:
        """Number of whole periods."""
        return sum(number for _, number in self.starts.values())

    def index(self, log: str, time: Array) -> IntArray:
        """Returns the index of the period of each instant, shape (N,): 0, 1, …; −1 outside whole periods.

        Args:
            time: Times on the log's clock, shape (N,) [s].
        """
        start, number = self.starts[log]
        k = np.floor((np.asarray(time) - start) / self.seconds + 1e-9).astype(np.intp)
        return np.where((k >= 0) & (k < number), k, -1)


def find_period(logs: Sequence[PreparedLog]) -> Period | None:
    """Finds the period that all logs repeat.

    Returns:
        The period, or None if a log does not repeat itself or the periods differ.
    """
    found, starts = [], {}
    for log in logs:
        if len(log.segments) != 1:
            return None
        segment = log.segments[0]
        repetition = find_repetition(segment.q, fewest=2)
        if repetition is None:
            return None
        found.append(repetition.length / segment.rate)
        starts[log.name] = (segment.start + repetition.first / segment.rate, repetition.count)
    if not found or max(found) > 1.005 * min(found):
        return None
    return Period(float(np.mean(found)), starts)


def between_repetitions(
    model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit, solution: Solution, period: Period
) -> tuple[Array, int]:
    """Returns the covariance of the total score from the scatter between repetitions.

    Args:
        solution: The solution that defines the r coordinates.

    Returns:
        Covariance of the score of all rows, shape (r, r), and the number of repetitions.
    """
    totals: dict[tuple[str, int], Array] = {}
    inside = 0
    for log, time, score in _scores(model, logs, fit, solution):
        index = period.index(log, time)
        inside += int((index >= 0).sum())
        for k in np.unique(index[index >= 0]):
            totals[log, int(k)] = totals.get((log, int(k)), 0.0) + score[index == k].sum(axis=0)
    scores = np.array(list(totals.values()))
    count, centred = len(scores), scores - scores.mean(axis=0)
    # Rows outside whole periods contribute to the estimate too and are assumed to scatter in the same way.
    return (fit.rows / max(inside, 1)) * count / (count - 1.0) * centred.T @ centred, count


def with_short_memory(model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit, solution: Solution, lags: int) -> Array:
    """Returns the Newey-West covariance of the total score: products of scores up to some lag, with Bartlett weights.

    Args:
        solution: The solution that defines the r coordinates.
        lags: Largest lag, in rows.

    Returns:
        Covariance of the score of all rows, shape (r, r).
    """
    r = solution.root.shape[1]
    middle = np.zeros((r, r))
    for _, _, score in _scores(model, logs, fit, solution):
        middle += score.T @ score
        for lag in range(1, min(lags, len(score) - 1) + 1):
            cross = score[lag:].T @ score[:-lag]
            middle += (1 - lag / (lags + 1)) * (cross + cross.T)
    return middle


def _scores(
    model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit, solution: Solution
) -> Iterator[tuple[str, Array, Array]]:
    """Yields log, times [s] and weighted scores in the solution's coordinates, per piece and row group."""
    weights = fit.row_weights or fit.weights
    for piece in row_pieces(model, logs):
        time = piece.time
        for group, (index, X, y) in zip(model.groups, base_rows(piece, model, fit.base), strict=True):
            error = y - X @ fit.params[index]
            yield piece.log, time, weights[group.name] ** 2 * error[:, None] * (X @ solution.root[index])
