"""Tests the friction model at reversals of the joints by comparing estimates with and without these samples.

Dry friction shows stiction, presliding and a Stribeck peak: near zero speed every simple law is wrong, and in the same way at
every reversal. This bias causes no scatter, so that standard errors from one kind of motion do not include it: on a simulated
arm with dry friction, 95 % intervals of Coulomb friction contained the true value in 20-50 % of runs. Omitting the slow samples
shifts the estimates by nearly their bias. A shift that exceeds chance is counted as an additional error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...parallel import each
from ...samples import columns, fast_speed
from ...signals.condition import Conditioned
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import statistic_of
from ...statistics.entries import blocks_of, stretches_of
from ...statistics.statistic import StatisticSet, merge_all

#: A joint is near a reversal below this share of its usual (95 %) speed, and below this speed in any case [rad/s or m/s].
SLOW, AT_REST = 0.1, 0.02


def without_reversals(
    model: DynamicModel, logs: Sequence[PreparedLog], alike: tuple[tuple[str, ...], ...] | None = None
) -> StatisticSet:
    """Computes the statistics of the data without rows of slow joints.

    Args:
        alike: Names of the logs of each motion, if they have been compared.

    Returns:
        One factor per stretch; as many rows as before, slow ones with zero weight.
    """
    speeds = columns([part.v for log in logs for part in log.segments])
    limit = np.maximum([SLOW * fast_speed(v) for v in speeds], AT_REST)
    work = partial(_without_slow, model, limit, len(logs))
    return replace(merge_all(each(work, [(log.name, log.conditioned) for log in logs])), motions=alike)


def _without_slow(model: DynamicModel, limit: Array, logs: int, log: tuple[str, Conditioned]) -> StatisticSet:
    """Computes the statistic of one of several logs without the rows of joints that are slower than a limit."""
    name, conditioned = log
    involved, blocks = [np.flatnonzero(group.mix) for group in model.groups], blocks_of(logs)

    def weights(v: Array) -> Array:
        fast = (v > limit) | (v < -limit)
        return np.column_stack([fast[:, joints].all(axis=1) for joints in involved]).astype(float)

    fast = name, conditioned, [weights(part.v) for part in conditioned.segments]
    return statistic_of(model, blocks, fast, joined=stretches_of(range(blocks), logs))


def excess_shift(shift: Array, error: Array, error_without: Array) -> Array:
    """Returns the part of a shift of estimates that exceeds chance.

    The variance of a shift due to omitted data is the difference of the two variances (Hausman).

    Args:
        shift: Estimate without some of the data minus that with all, shape (b,).
        error: Standard errors with all data, shape (b,).
        error_without: Standard errors without these data, shape (b,).

    Returns:
        Shape (b,), with the sign of the shift; zero if it is explained by chance.
    """
    chance = np.maximum(error_without**2 - error**2, 0.0)
    left = np.where(np.isfinite(shift) & np.isfinite(chance), shift**2 - chance, 0.0)
    return np.asarray(np.where(left > 0, np.sign(shift) * np.sqrt(np.maximum(left, 0.0)), 0.0))
