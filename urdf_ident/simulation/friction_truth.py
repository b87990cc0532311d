"""All the friction of a simulated robot, on joints and on motors, and what it takes to stick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from ..errors import ModelError, check_shape
from ..linalg import Array
from ..model.robot import NDArrayBool
from .friction_terms import AsymmetricCoulomb, Coulomb, Friction, LoadCoulomb, Offset, Presliding, Viscous


@dataclass(frozen=True, eq=False)
class FrictionTruth:
    """All friction of a robot, on joints and on motors.

    Where friction acts is called a *slider*: the n joints first, then, with motor terms, the n motors, which turn with
    ``reduction · v`` and load the joints with ``reductionᵀ · torque`` (theory §2).

    Attributes:
        n: Number of joints.
        joint: Terms on the joints.
        motor: Terms on the motors.
        reduction: ``v_motor = reduction · v``, shape (n, n); needed for motor terms.
    """

    n: int
    joint: tuple[Friction, ...] = ()
    motor: tuple[Friction, ...] = ()
    reduction: Array | None = None
    transmission: Array | None = field(init=False, repr=False)
    hard: NDArrayBool = field(init=False, repr=False)
    load: Array | None = field(init=False, repr=False)
    memory: Array | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for term in (*self.joint, *self.motor):
            for item in fields(term):
                value = getattr(term, item.name)
                if value.shape not in ((), (self.n,)):
                    check_shape(f"{item.name} of {type(term).__name__}", value.shape, (self.n,))
        if self.motor and self.reduction is None:
            raise ModelError("friction on the motors needs the gear ratios", remedy="give `reduction`")
        if any(isinstance(term, LoadCoulomb) for term in self.motor):
            raise ModelError("load-dependent friction belongs to the joint side", remedy="move it there")
        transmission = None
        if self.motor:
            reduction = np.asarray(self.reduction, dtype=float)
            check_shape("reduction", reduction.shape, (self.n, self.n))
            transmission = np.vstack([np.eye(self.n), reduction])
        object.__setattr__(self, "transmission", transmission)
        object.__setattr__(self, "_sliders", self.n if transmission is None else 2 * self.n)
        object.__setattr__(self, "load", self._sum(LoadCoulomb, "coefficient"))
        object.__setattr__(self, "memory", self._displacements())
        object.__setattr__(self, "_fast", self._merge())
        low, high = self.interval(np.zeros(self.sliders))
        hard = high - low > 0
        if self.load is not None:
            hard[: self.n] |= self.load > 0
        object.__setattr__(self, "hard", hard)

    @property
    def sliders(self) -> int:
        """Number of sliders K: n, or 2n with motor terms."""
        return int(self._sliders)  # type: ignore[attr-defined]

    def velocity(self, v: Array) -> Array:
        """Velocities of the sliders.

        Args:
            v: Joint velocities (or any joint displacement), shape (n,) [rad/s or m/s].

        Returns:
            Shape (K,).
        """
        return v if self.transmission is None else np.asarray(self.transmission @ v)

    def to_joints(self, torque: Array) -> Array:
        """Joint torques that slider torques amount to.

        Args:
            torque: Shape (K,) [N·m or N].

        Returns:
            Shape (n,) [N·m or N].
        """
        return torque if self.transmission is None else np.asarray(self.transmission.T @ torque)

    def torque(self, w: Array, s: Array, z: Array) -> Array:
        """Friction on the sliders, without the load-dependent part.

        Args:
            w: Slider velocities, shape (K,).
            s: Directions of slip, shape (K,); 0 where a slider sticks.
            z: Bristle deflections, shape (K,).

        Returns:
            Shape (K,) [N·m or N].
        """
        linear, constant, even, odd, rest = self._fast  # type: ignore[attr-defined]
        out = linear * w + constant + odd * s
        if even is not None:
            out += even * np.abs(s)
        for part, term in rest:
            out[part] += term.torque(w[part], s[part], z[part])
        return np.asarray(out)

    def interval(self, z: Array, load: Array | None = None) -> tuple[Array, Array]:
        """What a slider that sticks can hold, beyond the terms that do not depend on slip.

        Args:
            z: Bristle deflections, shape (K,).
            load: Torque passed on to the links, shape (n,) [N·m or N].

        Returns:
            Lowest (≤ 0) and highest (≥ 0) friction, shapes (K,) [N·m or N].
        """
        rest, ones = np.zeros(self.sliders), np.ones(self.sliders)
        base = self.torque(rest, rest, z)
        low, high = self.torque(rest, -ones, z) - base, self.torque(rest, ones, z) - base
        if self.load is not None and load is not None:
            extra = self.load * np.abs(load)
            low[: self.n] -= extra
            high[: self.n] += extra
        return low, high

    def advance(self, z: Array, way: Array) -> Array:
        """Bristles after the sliders have moved, exactly for motion in one direction.

        Args:
            z: Deflections before, shape (K,).
            way: How far each slider has moved, shape (K,) [rad or m].

        Returns:
            Deflections after, shape (K,).
        """
        if self.memory is None:
            return z
        direction = np.sign(way)
        bent = direction + (z - direction) * np.exp(-np.abs(way) / self.memory)
        return np.asarray(np.where(way == 0, z, bent))

    def _sum(self, kind: type[Friction], name: str) -> Array | None:
        found = [getattr(term, name) for term in self.joint if isinstance(term, kind)]
        return np.asarray(sum(found) + np.zeros(self.n)) if found else None

    def _sides(self) -> list[tuple[slice, Sequence[Friction]]]:
        return [(slice(0, self.n), self.joint), (slice(self.n, self.sliders), self.motor)]

    def _displacements(self) -> Array | None:
        out, found = np.ones(self.sliders), False
        for part, terms in self._sides():
            bristles = [term for term in terms if isinstance(term, Presliding)]
            if len(bristles) > 1:
                raise ModelError("at most one presliding term a side")
            for term in bristles:
                if not (np.asarray(term.displacement) > 0).all():
                    raise ModelError("the presliding displacement must be positive", got=np.asarray(term.displacement).min())
                out[part], found = term.displacement, True
        return out if found else None

    def _merge(self) -> tuple[Array, Array, Array | None, Array, list[tuple[slice, Friction]]]:
        """The constant-coefficient terms added up, for speed; the others as they are."""
        linear, constant, even, odd = np.zeros((4, self.sliders))
        rest: list[tuple[slice, Friction]] = []
        for part, terms in self._sides():
            for term in terms:
                if isinstance(term, Viscous):
                    linear[part] += term.coefficient
                elif isinstance(term, Offset):
                    constant[part] += term.level
                elif isinstance(term, Coulomb):
                    odd[part] += term.level
                elif isinstance(term, AsymmetricCoulomb):
                    plus, minus = np.asarray(term.plus), np.asarray(term.minus)
                    odd[part] += (plus + minus) / 2
                    even[part] += (plus - minus) / 2
                elif not isinstance(term, LoadCoulomb):
                    rest.append((part, term))
        return linear, constant, even if even.any() else None, odd, rest
