"""Conservative laws on an axis: gas and coil springs, gravity compensation, cables and hoses.

They share the interface of friction laws (columns, parameters, files), but depend only on the position and have a
potential, so they neither dissipate nor stick. On a joint under gravity load, a spring may be confounded with link weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import ModelError
from ..linalg import Array
from ..units import joint_units
from .law import AxisScale, Law, Sliding


@dataclass(frozen=True)
class Conservative(Law):
    """A law with a potential; parameters of either sign."""

    nonnegative: ClassVar[tuple[bool, ...]] = (False, False)
    conservative: ClassVar[bool] = True

    def _position(self, motion: Sliding) -> Array:
        if motion.q is None:
            raise ModelError("a spring needs the position of its joint", where=f"law '{self.name}'")
        return motion.q


@dataclass(frozen=True)
class Spring(Conservative):
    """``ks · q + ts``: a linear spring, relaxed at ``q = −ts/ks``. It replaces the offset."""

    name: ClassVar[str] = "spring"
    symbols: ClassVar[tuple[str, ...]] = ("ks", "ts")
    formula: ClassVar[str] = "ks*q + ts"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        q = self._position(motion)
        return q, np.ones_like(q)

    def units(self, prismatic: bool) -> tuple[str, ...]:
        units = joint_units(prismatic)
        return f"{units['torque']}/{units['position']}", units["torque"]

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return () if scale.motor else (cls(),)


@dataclass(frozen=True)
class Balancer(Conservative):
    """``Gs · sin(q) + Gc · cos(q)``: a gravity-balancing spring on a lever, with arbitrary phase."""

    name: ClassVar[str] = "balancer"
    symbols: ClassVar[tuple[str, ...]] = ("Gs", "Gc")
    formula: ClassVar[str] = "Gs*sin(q) + Gc*cos(q)"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        q = self._position(motion)
        return np.sin(q), np.cos(q)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return () if scale.motor or scale.prismatic else (cls(),)
