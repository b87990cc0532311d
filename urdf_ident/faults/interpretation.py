"""How a log may be read: which column is which joint's, with which factors, zeros, clock and gravity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Interpretation:
    """An interpretation of a log.

    Attributes:
        effort_order: ``effort_order[i]``: the effort column of joint i.
        effort_factor: Factors of the efforts, by joint.
        position_order: ``position_order[i]``: the position column of joint i.
        position_factor: Factors of the positions, by joint; negative if they have the wrong sign.
        zero: Offsets added to the positions [rad or m], by joint.
        counted: Joints whose position counts that of the joint before in, each with that joint and the sense, +1 or -1.
        gravity: Gravity in the base frame [m/s²]; as described if None.
        stretch: Real seconds per second of the log.
        delay: Delay of the efforts behind the positions [s].
        springs: Joints with an additional torque that depends on their position alone; not a fault of the log.
    """

    effort_order: tuple[int, ...]
    effort_factor: tuple[float, ...]
    position_order: tuple[int, ...]
    position_factor: tuple[float, ...]
    zero: tuple[float, ...]
    gravity: tuple[float, float, float] | None = None
    stretch: float = 1.0
    delay: float = 0.0
    springs: tuple[int, ...] = ()
    counted: tuple[tuple[int, int, float], ...] = ()

    @classmethod
    def as_logged(cls, n: int) -> Interpretation:
        """Returns the log as described."""
        same, ones = tuple(range(n)), (1.0,) * n
        return cls(same, ones, same, ones, (0.0,) * n)

    def motion(self, limb: tuple[int, ...]) -> tuple[object, ...]:
        """The joints of a limb and the entries that affect the regressor or the samples of their rows."""
        own = (tuple(entry[j] for j in limb) for entry in (self.position_factor, self.zero))
        springs = tuple(j for j in self.springs if j in limb)
        return (limb, *own, self.position_order, self.counted, self.gravity, self.stretch, self.delay, springs)

    def efforts(self, limb: tuple[int, ...]) -> tuple[tuple[int, float], ...]:
        """The effort column and factor of each joint of a limb."""
        return tuple((self.effort_order[j], self.effort_factor[j]) for j in limb)

    def scaled(self, entry: str, joints: Sequence[int], factor: float) -> Interpretation:
        """Returns it with an entry of some joints times a factor."""
        entries: dict[str, Any] = {entry: tuple(factor * x if j in joints else x for j, x in enumerate(getattr(self, entry)))}
        return replace(self, **entries)
