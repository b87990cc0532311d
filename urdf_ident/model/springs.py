"""Terms of a spring between motor and link (docs/theory.md §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..friction import AxisMotion, Term
from ..linalg import Array


@dataclass(frozen=True)
class Stiffness(Term):
    """``K · (θ − q)``: a spring between motor and link; on this axis q is the deflection."""

    name: ClassVar[str] = "stiffness"
    symbols: ClassVar[tuple[str, ...]] = ("K",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.q[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N/m",) if prismatic else ("N·m/rad",)


@dataclass(frozen=True)
class Damping(Term):
    """``D · (θ' − v)``: damping inside the spring."""

    name: ClassVar[str] = "spring_damping"
    symbols: ClassVar[tuple[str, ...]] = ("D",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.v[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N·s/m",) if prismatic else ("N·m·s/rad",)


@dataclass(frozen=True)
class Preload(Term):
    """Spring torque at equal encoder readings: K times the difference of their zeros."""

    name: ClassVar[str] = "preload"
    symbols: ClassVar[tuple[str, ...]] = ("preload",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)

    def columns(self, axis: AxisMotion) -> Array:
        return np.ones((len(axis.q), 1))


SPRING_TERMS = (Stiffness, Damping, Preload)
#: Symbols of their parameters, after and before the gear.
SPRING_SYMBOLS = frozenset(symbol + side for term in SPRING_TERMS for symbol in term.symbols for side in ("", "m"))
