"""Friction as a simulated robot really has it: written apart from the columns that identification fits.

Every term is what the drive must overcome: positive for motion in the positive direction. The discontinuous terms are
written with the *direction of slip* s ∈ {−1, 0, 1} instead of ``sign(v)``: the integrator knows whether a joint slips or
sticks, and a joint that sticks takes whatever friction between the two one-sided limits keeps it still.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from ..errors import ModelError, nearest
from ..linalg import Array

#: A number per joint, shape (n,), or one for all.
PerJoint = Array | float


@dataclass(frozen=True, eq=False)
class Friction(ABC):
    """One kind of friction on every joint; each field holds a number per joint, shape (n,), or one number for all.

    Zero switches it off on a joint.
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            array = np.asarray(getattr(self, item.name), dtype=float)
            if not np.isfinite(array).all():
                raise ModelError(f"'{item.name}' of {type(self).__name__} is not finite", got=array.tolist())
            array.setflags(write=False)
            object.__setattr__(self, item.name, array)

    @abstractmethod
    def torque(self, v: Array, s: Array, z: Array) -> Array:
        """Friction torque.

        Args:
            v: Velocity, shape (n,) [rad/s or m/s].
            s: Direction of slip, shape (n,), −1, 0 or 1; 0 where the joint sticks.
            z: Bristle deflection, shape (n,), −1 … 1; only :class:`Presliding` uses it.

        Returns:
            Shape (n,) [N·m or N].
        """


@dataclass(frozen=True, eq=False)
class Viscous(Friction):
    """``coefficient · v``; coefficient [N·m·s/rad or N·s/m]."""

    coefficient: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(self.coefficient * v)


@dataclass(frozen=True, eq=False)
class Coulomb(Friction):
    """Dry friction of constant size; level [N·m or N]."""

    level: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(self.level * s)


@dataclass(frozen=True, eq=False)
class AsymmetricCoulomb(Friction):
    """Dry friction that differs by direction; plus at v > 0, minus at v < 0, both positive numbers [N·m or N]."""

    plus: PerJoint
    minus: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(np.where(s > 0, self.plus, 0.0) - np.where(s < 0, self.minus, 0.0))


@dataclass(frozen=True, eq=False)
class Offset(Friction):
    """A constant torque (amplifier offset); level [N·m or N]."""

    level: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(self.level + 0.0 * v)


@dataclass(frozen=True, eq=False)
class Stribeck(Friction):
    """Stiction above Coulomb's level that fades with speed: ``extra · exp(−(|v|/velocity)^exponent)``.

    extra [N·m or N], velocity [rad/s or m/s], exponent [1].
    """

    extra: PerJoint
    velocity: PerJoint
    exponent: PerJoint = 2.0

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(s * self.extra * np.exp(-((np.abs(v) / self.velocity) ** self.exponent)))


@dataclass(frozen=True, eq=False)
class Cubic(Friction):
    """``coefficient · v³``; coefficient [N·m·s³/rad³ or N·s³/m³]."""

    coefficient: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(self.coefficient * v**3)


@dataclass(frozen=True, eq=False)
class AsymmetricPolynomial(Friction):
    """Viscous, quadratic and cubic parts that differ by direction (E, eq. 11).

    plus_1, plus_2, plus_3 for v > 0 and minus_1 … for v < 0 multiply v, v·|v| and v³ [N·m·sᵏ/radᵏ or N·sᵏ/mᵏ];
    below the threshold [rad/s or m/s] there is none.
    """

    plus_1: PerJoint
    plus_2: PerJoint
    plus_3: PerJoint
    minus_1: PerJoint
    minus_2: PerJoint
    minus_3: PerJoint
    threshold: PerJoint = 0.0

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        v = np.where(np.abs(v) < self.threshold, 0.0, v)
        forward = self.plus_1 * v + self.plus_2 * v * v + self.plus_3 * v**3
        backward = self.minus_1 * v - self.minus_2 * v * v + self.minus_3 * v**3
        return np.asarray(np.where(v > 0, forward, backward))


@dataclass(frozen=True, eq=False)
class SubLinear(Friction):
    """Grease at low speed: ``coefficient · sign(v) · sqrt|v|``; coefficient [N·m·(s/rad)^½ or N·(s/m)^½]."""

    coefficient: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(self.coefficient * s * np.sqrt(np.maximum(s * v, 0.0)))


@dataclass(frozen=True, eq=False)
class LoadCoulomb(Friction):
    """Dry friction in proportion to the torque that the gear passes on to the links; coefficient [1].

    The torque depends on the acceleration and this friction on the torque: the plant solves for both at once.
    """

    coefficient: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.zeros_like(v)


@dataclass(frozen=True, eq=False)
class Presliding(Friction):
    """Dahl's bristles: ``coulomb · z`` with ``dz/dq = (s − z)/displacement`` along the way; no true stiction.

    coulomb [N·m or N], displacement over which the friction turns round [rad or m].
    """

    coulomb: PerJoint
    displacement: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        return np.asarray(self.coulomb * z)


@dataclass(frozen=True, eq=False)
class Arctan(Friction):
    """Smooth static friction of Szabó and Gincsainé (A, eqs. 7-9); does not stick, it creeps.

    stiction, difference (Coulomb minus stiction) [N·m], viscous [N·m·s/rad], sharpness K_v and stribeck δ [s/rad].
    """

    stiction: PerJoint
    difference: PerJoint
    viscous: PerJoint
    sharpness: PerJoint
    stribeck: PerJoint

    def torque(self, v: Array, s: Array, z: Array) -> Array:
        static = self.stiction * np.arctan(self.sharpness * v) + self.difference * np.arctan(self.stribeck * v)
        return np.asarray(2.0 / np.pi * static + self.viscous * v)


KINDS: dict[str, type[Friction]] = {
    "viscous": Viscous,
    "coulomb": Coulomb,
    "asymmetric_coulomb": AsymmetricCoulomb,
    "offset": Offset,
    "stribeck": Stribeck,
    "cubic": Cubic,
    "asymmetric_polynomial": AsymmetricPolynomial,
    "sub_linear": SubLinear,
    "load_coulomb": LoadCoulomb,
    "presliding": Presliding,
    "arctan": Arctan,
}


def friction_from_mapping(settings: Mapping[str, object], where: str = "friction") -> tuple[Friction, ...]:
    """Friction terms from a YAML or JSON mapping.

    Args:
        settings: Name of :data:`KINDS` → its only field's numbers per joint, or a mapping of field → numbers.
        where: File and key, for messages.

    Returns:
        The terms.

    Raises:
        ModelError: Unknown name or field, a field that is missing, or no numbers.
    """
    terms = []
    for name, value in settings.items():
        if name not in KINDS:
            raise ModelError(f"unknown friction '{name}'", where=where, remedy=nearest(name, KINDS))
        kind = KINDS[name]
        names = [item.name for item in fields(kind)]
        chosen = dict(value) if isinstance(value, Mapping) else {names[0]: value}
        unknown = set(chosen) - set(names)
        if unknown:
            raise ModelError(f"unknown field of '{name}'", where=where, got=sorted(unknown), expected=", ".join(names))
        try:
            terms.append(kind(**chosen))
        except (TypeError, ValueError) as error:
            raise ModelError(f"friction '{name}' lacks a field or holds no numbers", where=where, got=str(error)) from error
    return tuple(terms)
