"""Position of a joint within the backlash of its encoder coupling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from ..linalg import Array, IntArray
from ..parallel import each
from ..signals.filters import lowpass
from .thinned_logs import ThinnedPiece

#: Travel relative to a joint's range that does not yet count as a reversal.
_TURNED = 2e-3


def play(pieces: Sequence[ThinnedPiece], joints: IntArray) -> Array:
    """Position of a joint within its encoder's backlash, with its first two derivatives, at the samples used.

    1 if the joint pushes its encoder forwards, -1 backwards; while the encoder rests after a reversal, the joint moves from
    one to the other with constant acceleration.

    Args:
        pieces: Of the motion, in order.
        joints: The joints, shape (k,).

    Returns:
        Shape (N, 3, k) [1, 1/s, 1/s²].
    """
    ends = np.array([(item.part.q.min(axis=0), item.part.q.max(axis=0)) for item in pieces])[:, :, joints]
    least = _TURNED * (ends[:, 1].max(axis=0) - ends[:, 0].min(axis=0))
    return np.concatenate(each(partial(_play_of, joints, least), pieces))


def _play_of(joints: IntArray, least: Array, item: ThinnedPiece) -> Array:
    places = np.column_stack([_place(item.part.q[:, j], far) for j, far in zip(joints, least, strict=True)])
    place = lowpass(places, item.part.rate, item.cutoff)
    rate = np.gradient(place, axis=0) * item.part.rate
    return np.stack([place, rate, np.gradient(rate, axis=0) * item.part.rate], axis=1)[item.rows].copy()


def _place(q: Array, least: float) -> Array:
    """Position in the backlash of each sample, shape (N,), from turning points followed by more than ``least`` of travel."""
    rises = np.diff(q) > 0
    turns = [0, *(np.flatnonzero(rises[1:] != rises[:-1]) + 1), len(q) - 1]
    way, at, found = 0, 0, []
    for k in turns:
        step = float(q[k] - q[at])
        if way * step >= 0 and (way or abs(step) > least):
            way, at = way or int(np.sign(step)), k
        elif way and abs(step) > least:
            found.append((at, way))
            way, at = -way, k
    place, begin = np.full(len(q), float(way)), 0
    for (k, before), (end, _) in pairwise([*found, (len(q) - 1, 0)]):
        first = int(k - np.argmax(np.abs(q[begin : k + 1][::-1] - q[k]) > least)) if k > begin else k
        last = int(k + np.argmax(np.abs(q[k : end + 1] - q[k]) > least))
        place[begin:first] = before
        x = (np.arange(first, last) - first + 1) / max(last - first, 1)
        place[first:last] = before * (1 - 2 * x**2)
        begin = last
    return place
