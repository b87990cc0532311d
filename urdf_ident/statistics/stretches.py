"""Time blocks that logs are cut into, and the stretches of time that errors are judged by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Time blocks a log is cut into, those of many logs together, and each of many, at least.
BLOCKS, MOST_BLOCKS, FEWEST_BLOCKS = 32, 512, 8
#: Stretches of time that a log is cut into for jackknife and bootstrap: long against its autocorrelation, and enough.
STRETCHES = 16
#: Stretches of all logs together: more would not tell errors any better.
MOST_STRETCHES = 320


def blocks_of(logs: int) -> int:
    """Time blocks that each of so many logs is cut into.

    Args:
        logs: Number of logs.

    Returns:
        :data:`BLOCKS`, fewer where there are many logs: errors are told by all stretches together.
    """
    return min(BLOCKS, max(FEWEST_BLOCKS, MOST_BLOCKS // max(logs, 1)))


def stretches_of(blocks: Sequence[int], logs: int) -> list[NDArray[np.intp]]:
    """Stretches of time of one log.

    Args:
        blocks: Its blocks, in order.
        logs: How many logs there are.

    Returns:
        The blocks of each stretch, :data:`STRETCHES` at most.
    """
    most = max(2, min(STRETCHES, MOST_STRETCHES // max(logs, 1)))
    return np.array_split(np.array(blocks, dtype=np.intp), min(most, len(blocks)))
