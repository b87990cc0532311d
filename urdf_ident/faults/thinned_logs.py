"""Segments of conditioned logs, thinned for quick checks, and their efforts without outliers, filtered like the motion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..linalg import Array
from ..parallel import each
from ..samples import Segment
from ..signals.filters import lowpass

#: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
Logs = Sequence[tuple[Sequence[Segment], float]]
#: Number of samples from all logs together, more where joints are many.
SAMPLES = 500
#: Fewest samples per joint for faults and delays, whose models have about as many numbers.
FEWEST = 25
#: Number of samples of a segment below which the first one would have a weight of more than a tenth.
_FEW_OF_A_STRETCH = 10
#: A torque is an outlier if its distance from the median of this many neighbours exceeds this multiple of the usual distance
#: and this fraction of the torque's standard deviation.
_NEIGHBOURS, _OUTLIER, _FELT = 7, 12.0, 0.3


@dataclass(frozen=True, eq=False)
class ThinnedPiece:
    """A segment of a log, its log's index and cut-off [Hz], and the step between its samples used."""

    log: int
    cutoff: float
    part: Segment
    step: int

    @property
    def rows(self) -> slice:
        """The samples used: the first of every step, but the middle ones in a segment with few samples.

        Filters are inaccurate at the ends of a segment, and among few samples the first has a large weight.
        """
        few = len(self.part) < _FEW_OF_A_STRETCH * self.step
        return slice((min(self.step, len(self.part)) - 1) // 2 if few else 0, None, self.step)


def thinned(logs: Logs, samples: int = SAMPLES) -> list[ThinnedPiece]:
    """Subsamples the segments of conditioned logs with measured torque evenly.

    Args:
        logs: Segments of each log, and the cut-off of its positions [Hz].
        samples: Approximate maximum number of samples in total, if joints are few.

    Returns:
        The segments, in order.
    """
    parts = [
        (k, cutoff, part)
        for k, (segments, cutoff) in enumerate(logs)
        for part in segments
        if part.tau is not None and len(part) > 20
    ]
    if not parts:
        return []
    seconds, least = sum(len(part) / part.rate for _, _, part in parts), FEWEST * (parts[0][2].q.shape[1] + 2)

    def step(rate: float) -> int:
        """No longer than leaves the fewest samples that are of use."""
        return max(1, min(math.ceil(rate * seconds / samples - 1e-9), int(rate * seconds / least)))

    return [ThinnedPiece(k, cutoff, part, step(part.rate)) for k, cutoff, part in parts]


def smoothed_efforts(pieces: Sequence[ThinnedPiece]) -> list[Array]:
    """Torque of each whole segment, in order, without outliers and filtered like the motion."""
    return each(_smooth, pieces)


def _smooth(item: ThinnedPiece) -> Array:
    return lowpass(_without_outliers(item.part.total), item.part.rate, item.cutoff)


def _without_outliers(tau: Array) -> Array:
    """Replaces single samples far from their neighbours by the neighbours' median; the estimators handle them separately.

    Two samples alike, as where friction reverses in a log of few samples per second, are no outliers.
    """
    from scipy.ndimage import median_filter

    out = np.empty(tau.shape)
    for j, x in enumerate(tau.T):
        steps, felt = np.abs(np.diff(x)), _FELT * float(x.std())
        nearest = np.minimum(np.append(steps, np.inf), np.append(np.inf, steps))
        out[:, j] = x
        if nearest.max() > felt / 2:  # otherwise no sample is alone
            usual = median_filter(x, _NEIGHBOURS, mode="nearest")
            away = np.abs(x - usual)
            outlying = (nearest > away / 2) & (away > max(_OUTLIER * np.median(away), felt))
            out[outlying, j] = usual[outlying]
    return out
