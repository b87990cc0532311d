"""Friction that is physical: it takes energy out, inside the speeds of the data and beyond them.

Friction of one axis is linear in its parameters, and so is the demand that it dissipates, ``v · torque(v) ≥ 0``. Inside the
trained speeds it is asked for on a grid of speeds, with no load and with the largest. Beyond them every column goes on as its
tangent (:attr:`.law.Law.trained`), so that value ≥ 0 and slope ≥ 0 at the edge are enough for all speeds. A *bias*
(:attr:`.law.Law.bias`: amplifier, sensor) is no friction and stays out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

import numpy as np

from ..linalg import Array
from .law import Law, Sliding

#: Share of the samples that the trained speeds and loads contain; the few beyond may be glitches.
_WITHIN = 0.995
#: A smooth sign has turned round at this many widths.
_SLIDING = 5.0
#: Step of a slope, a fraction of the velocity.
_STEP = 1e-4
#: Speeds at which friction must dissipate, per direction, and the slowest of them as a fraction of the fastest.
SPEEDS, _SLOWEST = 16, 0.01


@dataclass(frozen=True)
class Trained:
    """What an axis did in the data.

    Attributes:
        low, high: Velocities between which friction was seen, low < 0 < high [rad/s or m/s].
        load: Largest torque [N·m or N].
    """

    low: float
    high: float
    load: float


def trained_range(v: Array, load: Array, laws: Sequence[Law]) -> Trained:
    """The trained range of one axis.

    Args:
        v: Its velocities, shape (N,) [rad/s or m/s].
        load: Its torques, shape (M,) [N·m or N].
        laws: Its laws; below a few of their widths a sign has not turned round, and a tangent would mean nothing.

    Returns:
        The range; a direction in which it hardly moved takes the other's.
    """
    least = _SLIDING * max((float(getattr(law, "width", 0.0)) for law in laws if not law.memory), default=0.0)
    ends = []
    for direction in (-1.0, 1.0):
        own = direction * v[direction * v > 0]
        ends.append(float(np.quantile(own, _WITHIN)) if len(own) else 0.0)
    moved = max(ends)
    low, high = (max(end if end > 0.1 * moved else moved, least, 1e-9) for end in ends)
    return Trained(-low, high, float(np.quantile(np.abs(load), _WITHIN)) if len(load) else 0.0)


def dissipation(laws: Sequence[Law], trained: Trained, speeds: int = SPEEDS) -> tuple[Array, tuple[str, ...]]:
    """What makes the friction of one axis dissipate.

    Args:
        laws: Its laws.
        trained: Its trained range.
        speeds: Number of speeds per direction.

    Returns:
        Rows A of ``A · parameters ≥ 0``, shape (m, k), laws one after the other, each divided by its largest entry; and what
        each row says, in words. Rows that the parameters' signs imply are left out.
    """
    matrix = np.hstack([np.zeros((len(moments(trained, speeds)), 0)), *(law_rows(law, trained, speeds) for law in laws)])
    signs = np.array([sign and not law.bias and not law.conservative for law in laws for sign in law.nonnegative], dtype=bool)
    size = np.abs(matrix).max(axis=1, initial=0.0)
    scaled = matrix / np.where(size > 0, size, 1.0)[:, None]
    needed = ((scaled < -1e-12) | ((scaled > 1e-12) & ~signs)).any(axis=1)
    kept: dict[bytes, tuple[Array, str]] = {}
    for row, key, (v, _, slope) in compress(zip(scaled, np.round(scaled, 9), moments(trained, speeds), strict=True), needed):
        word = f"slope of friction beyond {v:.2g} rad/s or m/s" if slope else f"friction at {v:.2g} rad/s or m/s"
        kept.setdefault(key.tobytes(), (row, word))
    rows = np.array([row for row, _ in kept.values()]).reshape(-1, matrix.shape[1])
    return rows, tuple(word for _, word in kept.values())


@lru_cache(maxsize=256)
def moments(trained: Trained, speeds: int) -> tuple[tuple[float, float, bool], ...]:
    """At what velocities and loads friction must dissipate, and at which its slope counts instead of its value.

    Args:
        trained: The trained range.
        speeds: Number of speeds per direction.

    Returns:
        Velocity [rad/s or m/s], load [N·m or N], whether the slope.
    """
    found: list[tuple[float, float, bool]] = []
    for edge in (trained.high, trained.low):
        for load in (0.0, trained.load):
            found += [(float(v), load, False) for v in edge * np.geomspace(_SLOWEST, 1.0, speeds)]
            found.append((edge, load, True))
    return tuple(found)


def law_rows(law: Law, trained: Trained, speeds: int) -> Array:
    """The part of one law in all demands on its axis.

    Args:
        trained: The trained range.
        speeds: Number of speeds per direction.

    Returns:
        Shape (len(moments), len(symbols)).
    """
    v, load, slope = (np.array(column) for column in zip(*moments(trained, speeds), strict=True))
    here = columns_at([law], v, load)
    before = columns_at([law], (1.0 - _STEP) * v, load)
    return np.asarray(np.where(slope[:, None], (here - before) / (_STEP * v[:, None]), np.sign(v)[:, None] * here))


def columns_at(laws: Sequence[Law], v: Array, load: Array | float) -> Array:
    """Columns of an axis that slides steadily; a bias and springs have zeros.

    Args:
        laws: Its laws.
        v: Velocities, shape (N,) [rad/s or m/s].
        load: Torque on it, shape (N,) or a number [N·m or N].

    Returns:
        Shape (N, k), laws one after the other; states of laws with memory are fully developed.
    """
    motion = Sliding(v, np.broadcast_to(np.asarray(load, dtype=float), v.shape), np.sign(v))
    parts = [np.zeros((len(v), 0))]
    for law in laws:
        if law.bias or law.conservative:
            parts.append(np.zeros((len(v), len(law.symbols))))
            continue
        parts.append(np.column_stack([np.broadcast_to(part, v.shape) for part in law.continued(motion)]))
    return np.hstack(parts)
