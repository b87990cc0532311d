"""The entries of theta, and the terms applied to axes: named groups of columns that are appended to the rigid-body regressor.

A term belongs to one *axis* and one *side*. On the joint side it depends on the joint's own motion and acts on that
joint only. On the motor side it depends on the motor's motion ``A q`` and acts on every joint that this motor
drives, through the motor's row of A. For an uncoupled axis both sides give the same column, so only the
joint-side one is created. The terms of a spring between motor and link (docs/theory.md §4) need both motions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import ModelError, check_known
from ..friction import MOTOR_FRICTION, AxisMotion, Term, friction_by_joint, friction_term
from ..linalg import Array
from .drive import Drive
from .inertia import BODY_PARAMETERS, BODY_UNITS
from .robot import Robot


@dataclass(frozen=True)
class Parameter:
    """One entry of theta, the parameters of a model.

    Attributes:
        name: Unique, e.g. ``"Ixx_forearm_link"`` or ``"Fv_elbow_joint"``.
        symbol: One of the ten inertial names, or a term's symbol (``"Ia"``, ``"Fv"``, …).
        nonnegative: True where negative values are unphysical (rotor inertia, viscous and Coulomb friction).
    """

    name: str
    symbol: str
    owner: str
    unit: str
    nonnegative: bool = False

    @property
    def rotor(self) -> bool:
        """Whether it is a rotor inertia, reflected to a joint (``Ia``) or on the motor side (``Iam``)."""
        return self.symbol in ("Ia", "Iam")


def inertial_parameters(robot: Robot) -> tuple[Parameter, ...]:
    """Returns the 10·n inertial entries, body by body in the order of ``robot.bodies``; theta always starts with them.

    Returns:
        ``m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz`` of each body, about its joint frame's origin.
    """
    return tuple(
        Parameter(f"{symbol}_{body.name}", symbol, body.name, unit, nonnegative=symbol == "m")
        for body in robot.bodies
        for symbol, unit in zip(BODY_PARAMETERS, BODY_UNITS, strict=True)
    )


class MotionTerm(Term):
    """A nonnegative parameter times one signal of the axis's motion."""

    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    #: Its signal in :class:`.AxisMotion`, and its unit on revolute and on prismatic axes.
    signal: ClassVar[str]
    of_kind: ClassVar[tuple[str, str]]

    def columns(self, axis: AxisMotion) -> Array:
        return np.asarray(getattr(axis, self.signal)[:, None])

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return (self.of_kind[int(prismatic)],)


@dataclass(frozen=True)
class Stiffness(MotionTerm):
    """``K · (θ − q)``: a spring between motor and link; on this axis q is the deflection."""

    name, symbols, signal, of_kind = "stiffness", ("K",), "q", ("N·m/rad", "N/m")


@dataclass(frozen=True)
class Damping(MotionTerm):
    """``D · (θ' − v)``: damping inside the spring."""

    name, symbols, signal, of_kind = "spring_damping", ("D",), "v", ("N·m·s/rad", "N·s/m")


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


@dataclass(frozen=True)
class RotorInertia(MotionTerm):
    """Inertia of rotor and gear, reflected to the axis (Pinocchio's ``armature``)."""

    name, symbols, signal, of_kind = "rotor_inertia", ("Ia",), "a", ("kg·m²", "kg")


@dataclass(frozen=True)
class AppliedTerm:
    """A term on one axis.

    Attributes:
        axis: Index of the joint, or of the motor.
        side: "joint" or "motor".
    """

    term: Term
    axis: int
    side: str = "joint"

    def __post_init__(self) -> None:
        check_known("side of a term", self.side, ("joint", "motor"), ModelError)

    def as_dict(self, robot: Robot) -> dict[str, Any]:
        return {**self.term.as_dict(), "axis": robot.joints[self.axis], "side": self.side}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], robot: Robot) -> AppliedTerm:
        """Builds a term of a robot from the result of :meth:`as_dict`."""
        law = {key: value for key, value in data.items() if key not in ("axis", "side")}
        known = {kind.name: kind for kind in (RotorInertia, *SPRING_TERMS)}
        term = known[law["term"]]() if law.get("term") in known else friction_term(law)
        return cls(term, robot.index(data["axis"]), data["side"])


def applied_terms(
    robot: Robot,
    drive: Drive,
    friction: str | Sequence[Any] | Mapping[str, Sequence[Any]],
    motor_friction: Mapping[str, Sequence[Any]],
    *,
    rotor_inertia: bool,
) -> tuple[AppliedTerm, ...]:
    """Builds the terms of a rigid model from the user's notation.

    Args:
        motor_friction: Joint name or "default" → friction of motors. The laws of a motor that moves only its own joint
            are applied to the joint, unless already there: the columns would be the same.
        rotor_inertia: Whether every axis has a rotor inertia.

    Raises:
        ModelError: Unknown names or shapes, or a term is listed twice.
    """
    shared = [bool(np.delete(row, j).any()) for j, row in enumerate(drive.reduction)]
    turns = {joint: abs(float(drive.reduction[j, j])) or 1.0 for j, joint in enumerate(robot.joints) if shared[j]}
    listed = {"default": MOTOR_FRICTION if friction == "auto" else (), **_with_rotor_terms(motor_friction)}
    laws = friction_by_joint(_with_rotor_terms(friction), robot.joints)
    motor_laws = friction_by_joint(listed, robot.joints, turns)
    terms: list[AppliedTerm] = []
    for j, joint in enumerate(robot.joints):
        if rotor_inertia:
            terms.append(AppliedTerm(RotorInertia(), j, "motor" if drive.coupled[j] else "joint"))
        terms += [AppliedTerm(law, j) for law in laws[joint]]
        if shared[j]:
            terms += [AppliedTerm(law, j, "motor") for law in motor_laws[joint]]
        elif joint in motor_friction or "default" in motor_friction:
            present = {law.name for law in laws[joint]}
            terms += [AppliedTerm(law, j) for law in motor_laws[joint] if law.name not in present]
    columns = [(symbol, applied.axis, applied.side) for applied in terms for symbol in applied.term.symbols]
    twice = next((entry for entry in columns if columns.count(entry) > 1), None)
    if twice is not None:
        name = f"{twice[0]}{'m' if twice[2] == 'motor' else ''}_{robot.joints[twice[1]]}"
        raise ModelError("a term is listed twice", got=name, remedy="name each friction law once per joint")
    return tuple(terms)


def _with_rotor_terms(spec: Any) -> Any:
    """Replaces the name "rotor_inertia", which is not a friction law, in a list of terms, or in the lists of a mapping."""
    if isinstance(spec, Mapping):
        return {joint: _with_rotor_terms(listed) for joint, listed in spec.items()}
    if isinstance(spec, str) or not isinstance(spec, Sequence):
        return spec
    return [RotorInertia() if law in (RotorInertia.name, {"term": RotorInertia.name}) else law for law in spec]
