"""Chooses the memory of the friction adaptation and the joints that benefit, by cross-validation over logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from ..linalg import Array, positive
from ..parallel import each
from ..samples import Segment
from ..signals.filters import lowpass
from ..signals.prepare import PreparedLog
from ..statistics.folds import standard_error
from .friction_filter import FilterSettings, replay

#: Candidate time constants [s of motion], and candidate factors on the residual variance.
MEMORIES, CAUTIONS = (10.0, 30.0, 100.0, 300.0, np.inf), (0.3, 1.0, 3.0)
#: Maximum number of logs used for this, evenly spaced over all.
MOST_LOGS = 12
#: Approximate maximum number of samples filtered in parallel, over all logs.
_TOGETHER = 100_000
#: Settings filtered at a time: all at once would take more memory than the log.
_FILTERED = 3


def choose_adaptation(
    plain: FilterSettings, joints: Sequence[str], logs: Sequence[PreparedLog], predicted: Sequence[Sequence[Array]], band: float
) -> dict[str, Any]:
    """Runs the filter along each log from the prior, on the static model's prediction fitted without that log.

    A joint is adapted if the gain over the static model exceeds its error (:mod:`.statistics.folds`).

    Args:
        plain: The filter without memory or caution, with the spread of friction between the logs.
        predicted: Held-out prediction for each segment with torques of each log, shape (N, n) [N·m or N].
        band: Low-pass of the error [Hz].

    Returns:
        The entry ``adaptation`` of identification.json; empty if nothing varies.
    """
    if not plain.spread.any():
        return {}
    tried = [(memory, caution) for memory in MEMORIES for caution in CAUTIONS]
    settings = [replace(plain, memory=memory, caution=caution) for memory, caution in tried]
    judged = [(log.segments, torques) for log, torques in zip(logs, predicted, strict=True)]
    judged = [judged[k * len(judged) // min(MOST_LOGS, len(judged))] for k in range(min(MOST_LOGS, len(judged)))]
    together = max(1, _TOGETHER // max(sum(map(len, parts)) for parts, _ in judged))
    groups = [judged[k : k + together] for k in range(0, len(judged), together)]
    squares = [pair for pairs in each(partial(_squares, settings, band), groups) for pair in pairs]
    static, adapted = (np.array(values) for values in zip(*squares, strict=True))  # (logs, n), (logs, tried, n)
    ratio = np.sqrt(adapted.mean(axis=0) / positive(static.mean(axis=0)))  # (tried, n)
    best = int(np.argmin(np.minimum(ratio, 1.0).mean(axis=1)))
    gain = static - adapted[:, best]
    used = gain.mean(axis=0) > standard_error(gain)
    after = np.where(used, adapted[:, best].mean(axis=0), static.mean(axis=0))
    memory, caution = tried[best]
    return {
        "memory": memory,
        "caution": caution,
        "joints": list(joints),
        "used": used.tolist(),
        "static_rmse": np.sqrt(static.mean(axis=0)),
        "adapted_rmse": np.sqrt(after),
    }


def _squares(
    settings: Sequence[FilterSettings], band: float, logs: Sequence[tuple[Sequence[Segment], Sequence[Array]]]
) -> list[tuple[Array, Array]]:
    """Mean squared error of each log without and with adaptation, shape (n,) and (tried, n)."""
    squares = []
    for (segments, torques), adaptations in zip(logs, replay(settings, logs), strict=True):
        before, after = np.zeros(segments[0].v.shape[1]), np.zeros((len(settings), segments[0].v.shape[1]))
        for segment, torque, added in zip(segments, torques, adaptations, strict=True):
            static = lowpass(segment.total - torque, segment.rate, band)
            before += np.sum(static**2, axis=0)
            for k in range(0, len(settings), _FILTERED):
                error = static[:, None] - lowpass(np.stack([*islice(added, _FILTERED)], axis=1), segment.rate, band)
                after[k : k + _FILTERED] += np.sum(error**2, axis=0)
        samples = sum(map(len, segments))
        squares.append((before / samples, after / samples))
    return squares
