"""Finds logs in which a joint's effort is explained far worse than in any other log, each with its own parameters.

A fault of one effort in one log (a filter, a delay, held or saturated values, noise) is not a change of the robot: no further
parameters explain it, and over all logs it may be small. It is found by comparing the log with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ...samples import FEWEST_REVERSALS
from ..grams import EXACT

#: Least ratio of a joint's residual to that in any other log, and least relative residual. The residual of one
#: model differs between slow and fast logs, as unmodelled friction does, but hardly by more than a factor of two.
_TIMES, _LEAST = 2.5, 0.1


@dataclass(frozen=True, eq=False)
class LogResidual:
    """Residuals of a log's efforts with its own parameters.

    Attributes:
        seen: In-sample relative residual of each effort, shape (n,).
        elsewhere: The same on held-out blocks of time, shape (n,).
        size: Root mean square of each effort about its mean, shape (n,) [N·m or N].
        reversals: Reversals of each joint, shape (n,).
    """

    seen: Array
    elsewhere: Array
    size: Array
    reversals: Array

    def gains_over(self, other: LogResidual) -> Array:
        """Logarithms by which the held-out residuals are smaller than other ones of the same log, shape (n,)."""
        return np.asarray(np.log(other.elsewhere * other.size / (self.elsewhere * self.size)))


def outlying_logs(logs: Sequence[LogResidual]) -> dict[int, tuple[int, float]]:
    """Finds logs whose residual stands out in relative and absolute terms: slow motion has larger relative residuals.

    A log in which the joint's effort is constant, as where it rests, shows nothing to compare with. Nor does one in which it
    hardly turns back: along a single move, the log's own parameters explain friction of any kind.

    Returns:
        Log → the joint, and the ratio of its residual to that in any other log.
    """
    names = ("seen", "elsewhere", "size", "reversals")
    seen, elsewhere, size, turns = (np.stack([getattr(log, name) for log in logs]) for name in names)
    out, shows = dict[int, tuple[int, float]](), (size > EXACT * size.max(axis=0)) & (turns >= FEWEST_REVERSALS)
    for k in range(len(logs)) if len(logs) > 1 else ():
        others = np.arange(len(logs)) != k
        part = seen[k] / np.maximum(elsewhere[others], EXACT).max(axis=0)
        whole = seen[k] * size[k] / np.maximum((elsewhere * size)[others].max(axis=0), EXACT * size[k])
        times = np.where((seen[k] > _LEAST) & shows[others].any(axis=0), np.minimum(part, whole), 0.0)
        if times.max() > _TIMES:
            out[k] = int(np.argmax(times)), float(times.max())
    return out
