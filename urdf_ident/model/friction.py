"""Friction laws, each linear in its parameters (theory §3).

The sign function is smooth: a measured velocity is never exactly zero at rest, and ``sign`` of the ±1e-6 rad/s
that zero-phase filtering leaves there would be noise of the full Coulomb torque (design §6.12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import ModelError, nearest
from .inertia import Array
from .terms import AxisMotion, RotorInertia, Term

#: Where |v| reaches the knee of the smooth sign by default [rad/s or m/s].
SIGN_WIDTH = 0.02


def smooth_sign(v: Array, width: float) -> Array:
    """``tanh(v / width)``; the hard sign for width 0.

    Args:
        v: Velocity, any shape [rad/s or m/s].
        width: Half-width of the transition [rad/s or m/s].

    Returns:
        Same shape, between −1 and 1.
    """
    return np.asarray(np.sign(v) if width == 0 else np.tanh(np.asarray(v) / width))


@dataclass(frozen=True)
class Viscous(Term):
    """``Fv · v``."""

    name: ClassVar[str] = "viscous"
    symbols: ClassVar[tuple[str, ...]] = ("Fv",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.v[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N·s/m",) if prismatic else ("N·m·s/rad",)


@dataclass(frozen=True)
class Coulomb(Term):
    """``Fc · S(v)`` with S = tanh(v/width), hard sign for width 0 [rad/s or m/s]."""

    width: float = SIGN_WIDTH
    name: ClassVar[str] = "coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("Fc",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return smooth_sign(axis.v, self.width)[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N",) if prismatic else ("N·m",)


@dataclass(frozen=True)
class Offset(Term):
    """A constant: the amplifier's offset and the asymmetry of Coulomb friction in one (D, eq. 3)."""

    name: ClassVar[str] = "offset"
    symbols: ClassVar[tuple[str, ...]] = ("offset",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)

    def columns(self, axis: AxisMotion) -> Array:
        return np.ones((len(axis.v), 1))

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N",) if prismatic else ("N·m",)


#: Friction laws by the name that a project file uses.
FRICTION: Mapping[str, type[Term]] = {law.name: law for law in (Viscous, Coulomb, Offset)}
#: What ``friction: auto`` means.
DEFAULT_FRICTION = ("viscous", "coulomb", "offset")


def friction_term(spec: str | Mapping[str, Any] | Term) -> Term:
    """Makes a friction law from what a user wrote.

    Args:
        spec: A name (``"coulomb"``), a mapping with its fixed shapes (``{"term": "coulomb", "width": 0.02}``),
            or a term.

    Returns:
        The term.

    Raises:
        ModelError: Unknown name or shape; the nearest valid one is named.
    """
    if isinstance(spec, Term):
        return spec
    options = {"term": spec} if isinstance(spec, str) else dict(spec)
    name = str(options.pop("term", ""))
    laws = {**FRICTION, RotorInertia.name: RotorInertia}
    if name not in laws:
        raise ModelError("unknown friction term", got=repr(name), remedy=nearest(name, FRICTION))
    law = laws[name]
    known = [item.name for item in fields(law)]
    for key, value in options.items():
        if key not in known:
            raise ModelError(f"friction term '{name}' has no shape '{key}'", remedy=nearest(key, known or ["(none)"]))
        if not isinstance(value, (int, float)) or not np.isfinite(value) or value < 0:
            raise ModelError(f"shape '{key}' of friction term '{name}'", got=repr(value), expected="a number >= 0")
    term: Term = law(**options)
    return term


def friction_by_joint(
    spec: str | Sequence[Any] | Mapping[str, Sequence[Any]], joints: Sequence[str]
) -> dict[str, tuple[Term, ...]]:
    """Friction laws of every joint, from the project file's three ways of saying it.

    Args:
        spec: ``"auto"``, a list for all joints, or ``{"default": [...], "joint_3": [...]}``.
        joints: Joint names.

    Returns:
        Joint name → its laws.

    Raises:
        ModelError: An unknown joint or law.
    """
    if isinstance(spec, str):
        if spec not in ("auto", "none"):
            raise ModelError("unknown friction", got=repr(spec), remedy="auto, none, or a list of terms")
        spec = DEFAULT_FRICTION if spec == "auto" else ()
    table = dict(spec) if isinstance(spec, Mapping) else {"default": spec}
    for name in table:
        if name != "default" and name not in joints:
            raise ModelError(f"friction is given for '{name}', which is no joint", remedy=nearest(name, joints))
    default = table.get("default", DEFAULT_FRICTION)
    return {joint: tuple(friction_term(item) for item in table.get(joint, default)) for joint in joints}
