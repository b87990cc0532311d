"""Physical friction: constraints that make it dissipate energy inside and beyond the speeds of the data.

The friction of one axis is linear in its parameters, and so is the condition ``v · torque(v) ≥ 0``. Inside the trained
speeds it is imposed on a grid of speeds, without load and with the largest load. Beyond them every column is extrapolated
along its tangent (:attr:`.law.Law.trained`), so that value ≥ 0 and slope ≥ 0 at the edge suffice for all speeds. A *bias*
(:attr:`.law.Law.bias`: amplifier, sensor) is not friction and is excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress

import numpy as np

from ..linalg import Array, BoolArray
from .law import TANGENT_STEP, Law, Sliding

#: Share of the samples inside the trained speeds and loads; the few beyond may be glitches.
_WITHIN = 0.995
#: A smooth sign is saturated at this many widths.
_SLIDING = 5.0
#: Number of speeds per direction at which friction must dissipate, and the slowest as a fraction of the fastest.
SPEEDS, _SLOWEST = 16, 0.01
#: A direction in which the axis reaches less than this share of its speed in the other takes that one's range; least speed of a
#: range [rad/s or m/s].
_SEEN, _LEAST_SPEED = 0.1, 1e-9
#: Friction over the largest measured torque above which it is impossible, at speeds inside the data: inertia and weight can
#: hide a part of friction from the torque only while they help the motion.
MOST_FRICTION = 1.5


#: The speeds of the conditions as fractions of the fastest.
FRACTIONS = np.geomspace(_SLOWEST, 1.0, SPEEDS)


@dataclass(frozen=True)
class Trained:
    """Range of speeds and loads of an axis in the data.

    Attributes:
        low, high: Velocity range of the data, low < 0 < high [rad/s or m/s].
        load: Largest torque [N·m or N].
    """

    low: float
    high: float
    load: float

    def mirrored_if_odd(self, laws: Sequence[Law]) -> Trained:
        """Returns the range in which laws are known: odd ones at the speeds of either direction, in both."""
        fastest = max(-self.low, self.high)
        odd = all(_is_odd(law, fastest) for law in laws if not (law.bias or law.conservative))
        return replace(self, low=-fastest, high=fastest) if odd else self


def trained_range(v: Array, load: Array, laws: Sequence[Law]) -> Trained:
    """Determines the trained range of one axis.

    Args:
        v: Its velocities, shape (N,) [rad/s or m/s].
        load: Its torques, shape (M,) [N·m or N].
        laws: Its laws; below a few of their widths a smooth sign is not saturated, and its tangent is meaningless.

    Returns:
        The range (:meth:`Trained.mirrored_if_odd`); a direction in which the axis hardly moved takes that of the other.
    """
    least = _SLIDING * max((float(getattr(law, "width", 0.0)) for law in laws if not law.memory), default=0.0)
    ends = []
    for direction in (-1.0, 1.0):
        speeds = direction * v[direction * v > 0]
        ends.append(float(np.quantile(speeds, _WITHIN)) if len(speeds) else 0.0)
    moved = max(ends)
    low, high = (max(end if end > _SEEN * moved else moved, least, _LEAST_SPEED) for end in ends)
    return Trained(-low, high, float(np.quantile(np.abs(load), _WITHIN)) if len(load) else 0.0).mirrored_if_odd(laws)


def dissipation(laws: Sequence[Law], trained: Trained, speeds: int = SPEEDS) -> tuple[Array, tuple[str, ...]]:
    """Returns the linear constraints under which the friction of one axis dissipates.

    Returns:
        Rows A of ``A · parameters ≥ 0``, shape (m, k), laws one after the other, each row divided by its largest entry; and a
        description of each row. Rows implied by the signs of the parameters are omitted.
    """
    velocity, _, on_slope = conditions(trained, speeds)
    matrix = np.hstack([np.zeros((len(velocity), 0)), *(law_rows(law, trained, speeds) for law in laws)])
    signs = np.array([sign and not law.bias and not law.conservative for law in laws for sign in law.nonnegative], dtype=bool)
    size = np.abs(matrix).max(axis=1, initial=0.0)
    scaled = matrix / np.where(size > 0, size, 1.0)[:, None]
    needed = ((scaled < -1e-12) | ((scaled > 1e-12) & ~signs)).any(axis=1)
    distinct: dict[bytes, tuple[Array, str]] = {}
    for row, key, v, beyond in compress(zip(scaled, np.round(scaled, 9), velocity, on_slope, strict=True), needed):
        description = f"slope of friction beyond {v:.2g} rad/s or m/s" if beyond else f"friction at {v:.2g} rad/s or m/s"
        distinct.setdefault(key.tobytes(), (row, description))
    rows = np.array([row for row, _ in distinct.values()]).reshape(-1, matrix.shape[1])
    return rows, tuple(description for _, description in distinct.values())


@lru_cache(maxsize=256)
def conditions(trained: Trained, speeds: int) -> tuple[Array, Array, BoolArray]:
    """Returns where the friction of one axis must dissipate: by its value or, at the edge of the trained speeds, by its slope.

    Args:
        speeds: Number of speeds in each direction.

    Returns:
        Velocity [rad/s or m/s], torque that the gear transmits (none, and the largest one) [N·m or N], and whether it is on the
        slope, shape (m,) each.
    """
    v, load, on_slope = np.array(
        [
            (v, load, on_slope)
            for edge in (trained.high, trained.low)
            for load in (0.0, trained.load)
            for v, on_slope in (*((v, False) for v in edge * np.geomspace(_SLOWEST, 1.0, speeds)), (edge, True))
        ]
    ).T
    return v, load, on_slope.astype(bool)


@lru_cache(maxsize=1024)
def law_rows(law: Law, trained: Trained, speeds: int) -> Array:
    """Returns the columns of one law in the constraints of its axis, shape (len(conditions), len(symbols))."""
    v, load, on_slope = conditions(trained, speeds)
    here = _sliding_columns(law, v, load)
    before = _sliding_columns(law, (1.0 - TANGENT_STEP) * v, load)
    return np.asarray(np.where(on_slope[:, None], (here - before) / (TANGENT_STEP * v[:, None]), np.sign(v)[:, None] * here))


@lru_cache(maxsize=1024)
def _is_odd(law: Law, speed: float) -> bool:
    """Whether a law is the same in both directions, so that the data of one tell the friction of the other."""
    motion = Sliding(speed * np.array([1.0, -1.0]), np.ones(2), np.array([1.0, -1.0]))
    return all(np.isclose(ahead, -back) for ahead, back in law.basis(motion))


def _sliding_columns(law: Law, v: Array, load: Array) -> Array:
    """Columns in steady sliding, where states of laws with memory are fully developed; zero for a bias and for springs."""
    if law.bias or law.conservative:
        return np.zeros((len(v), len(law.symbols)))
    motion = Sliding(v, load, np.sign(v))
    return np.column_stack([np.broadcast_to(column, v.shape) for column in law.extrapolated(motion)])
