"""Division of logs into time blocks, and into stretches of time from which standard errors are estimated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Time blocks per log; maximum of all logs together, and minimum per log, if there are many logs.
BLOCKS, MOST_BLOCKS, FEWEST_BLOCKS = 32, 512, 8
#: Stretches per log for jackknife and bootstrap: long compared with the autocorrelation, and sufficient in number.
STRETCHES = 16
#: Maximum number of stretches of all logs together: more would not improve the standard errors.
MOST_STRETCHES = 320


def blocks_of(logs: int) -> int:
    """Returns the number of time blocks per log.

    Args:
        logs: Number of logs.

    Returns:
        :data:`BLOCKS`, fewer with many logs, since standard errors use the stretches of all logs together.
    """
    return min(BLOCKS, max(FEWEST_BLOCKS, MOST_BLOCKS // max(logs, 1)))


def stretches_of(blocks: Sequence[int], logs: int) -> list[NDArray[np.intp]]:
    """Divides one log into stretches of time.

    Args:
        blocks: Its blocks, in order.
        logs: Number of logs.

    Returns:
        The blocks of each stretch; at most :data:`STRETCHES` of them.
    """
    most = max(2, min(STRETCHES, MOST_STRETCHES // max(logs, 1)))
    return np.array_split(np.array(blocks, dtype=np.intp), min(most, len(blocks)))
