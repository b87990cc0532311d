"""Motions that repeat: what differs between repetitions is noise, without any model (B; Swevers)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.prepare import PreparedLog
from ..model.inertia import Array

#: A motion repeats when it differs from itself one period later by less than this share of its variance.
LIKENESS = 1e-3


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

    def index(self, log: str, time: Array) -> NDArray[np.intp]:
        """Which period an instant is in.

        Args:
            log: Name of the log.
            time: Shape (N,) [s].

        Returns:
            Shape (N,): 0, 1, …; −1 outside whole periods.
        """
        start, number = self.starts[log]
        k = np.floor((np.asarray(time) - start) / self.seconds + 1e-9).astype(np.intp)
        return np.where((k >= 0) & (k < number), k, -1)


def find_period(logs: Sequence[PreparedLog]) -> Period | None:
    """Finds the period that all logs repeat.

    Args:
        logs: Prepared logs.

    Returns:
        The period, or None where a log does not repeat itself or the periods differ.
    """
    found, starts = [], {}
    for log in logs:
        if len(log.segments) != 1:
            return None
        segment = log.segments[0]
        length = _period_samples(segment.q)
        if length is None:
            return None
        found.append(length / segment.rate)
        starts[log.name] = (segment.start, int((len(segment) + 0.5) / length))
    if not found or max(found) > 1.005 * min(found):
        return None
    return Period(float(np.mean(found)), starts)


def _period_samples(q: Array) -> float | None:
    """Samples of one period: the smallest lag at which every joint is where it was."""
    n = len(q)
    q = q - q.mean(axis=0)
    moving = q.std(axis=0) > 1e-3 * q.std(axis=0).max()
    q = q[:, moving]
    if n < 32 or not moving.any():
        return None
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(q, size, axis=0)
    product = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=0)[:n]
    squares = np.vstack([np.zeros(q.shape[1]), np.cumsum(q**2, axis=0)])
    lags = np.arange(n // 2 + 1)
    head, tail = squares[n - lags], squares[n] - squares[lags]
    unlike = ((head + tail - 2 * product[lags]) / np.maximum(head + tail, 1e-300)).max(axis=1)
    apart = np.flatnonzero(unlike > 0.1)
    if not len(apart):
        return None
    near = np.flatnonzero((unlike < LIKENESS) & (lags > apart[0]))
    if not len(near):
        return None
    first = int(near[0])
    best = first
    while best + 1 < len(unlike) and unlike[best + 1] < unlike[best]:
        best += 1
    if best + 1 >= len(unlike):
        return float(best)
    left, middle, right = unlike[best - 1 : best + 2]
    curve = left - 2 * middle + right
    return float(best + (0.5 * (left - right) / curve if curve > 0 else 0.0))
