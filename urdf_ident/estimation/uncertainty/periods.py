"""The common period of logs whose repetitions were not averaged: differences between them are noise (Wu 2012; Swevers)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...data.conditioning.periods import find_repetition
from ...data.prepare import PreparedLog
from ...linalg import Array


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
        """Returns the index of the period of each instant.

        Args:
            log: Name of the log.
            time: Times on the log's clock, shape (N,) [s].

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
