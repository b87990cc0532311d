"""Logs in which a joint's effort is explained far worse than in any other log, each by parameters of its own.

What the log of one day alone holds in one effort, a filter, a delay, values held or bent, noise, is no other robot: no further
parameters explain it, and over all logs it may be little. It shows where the log is compared with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from .evidence import EXACT

#: How many times as much as in any other log must be left of a joint's effort, and at least this part of it. Sound logs, real
#: and simulated, slow and fast, short and long ones mixed, come to 1.8; filters, delays and bends of one effort to 3 to 10.
_TIMES, _LEAST = 2.5, 0.1


@dataclass(frozen=True, eq=False)
class Left:
    """What a log's own parameters leave of its efforts.

    Attributes:
        seen: Part of each effort where the fit has seen everything, shape (n,).
        elsewhere: The same on blocks of time that it has not seen, shape (n,).
        size: Root mean square of each effort about its mean, shape (n,) [N·m or N].
    """

    seen: Array
    elsewhere: Array
    size: Array


def unlike(logs: Sequence[Left]) -> dict[int, tuple[int, float]]:
    """Logs that stand out, as parts of the efforts and in their units: slow motion leaves more of less.

    Args:
        logs: What is left of each, in its own order.

    Returns:
        Log → the joint, and how many times as much is left of it as in any other log.
    """
    if len(logs) < 2:
        return {}
    seen, elsewhere, size = (np.stack([getattr(log, name) for log in logs]) for name in ("seen", "elsewhere", "size"))
    found: dict[int, tuple[int, float]] = {}
    for k in range(len(logs)):
        others = np.arange(len(logs)) != k
        part = seen[k] / np.maximum(elsewhere[others], EXACT).max(axis=0)
        whole = seen[k] * size[k] / np.maximum((elsewhere * size)[others].max(axis=0), EXACT * size[k])
        times = np.where(seen[k] > _LEAST, np.minimum(part, whole), 0.0)
        if times.max() > _TIMES:
            found[k] = int(np.argmax(times)), float(times.max())
    return found
