"""Friction of a simulated robot on joints and motors, with stiction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import ModelError
from ..friction import Friction, Sliding
from ..linalg import Array, BoolArray, shaped

#: Velocities at which friction is tested for being affine [rad/s or m/s].
_PROBES = (-3.7, -0.41, -0.013, 0.0021, 0.17, 1.3, 8.9)


@dataclass(frozen=True, eq=False)
class FrictionTruth:
    """All friction of a robot, on joints and on motors.

    Friction acts on *sliders*: first the n joints, then, with motor friction, the n motors, which turn with
    ``reduction · v`` and load the joints with ``reductionᵀ · torque``. The laws get the *direction of slip* instead of a
    smooth sign of the velocity: the integrator knows whether a joint slips or sticks, and the friction of a joint that
    sticks is the value between the two one-sided limits that keeps it at rest.

    Springs on the joints are stored here too, but handled separately: see :meth:`springs`.

    Attributes:
        reduction: ``v_motor = reduction · v``, shape (n, n); needed for motor friction.
    """

    n: int
    joint: tuple[Friction, ...] = ()
    motor: tuple[Friction, ...] = ()
    reduction: Array | None = None

    def __post_init__(self) -> None:
        for side in ("joint", "motor"):
            object.__setattr__(self, side, tuple(each.on(self.n) for each in getattr(self, side)))
        if self.motor and self.reduction is None:
            raise ModelError("friction on the motors needs the gear ratios", remedy="give `reduction`")
        if any(each.law.loaded for each in self.motor):
            raise ModelError("load-dependent friction belongs to the joint side", remedy="move it there")
        if any(each.law.conservative for each in self.motor):
            raise ModelError("springs belong to the joint side", remedy="move them there")
        for laws in (self.joint, self.motor):
            bent = [np.any([value != 0 for value in each.values], axis=0) for each in laws if each.law.memory]
            if bent and (np.sum(bent, axis=0) > 1).any():
                raise ModelError("at most one friction law with memory on an axis")
        if self.motor:
            shaped("reduction", self.reduction, (self.n, self.n))  # type: ignore[arg-type]

    @cached_property
    def transmission(self) -> Array | None:
        """Velocities of the sliders per joint velocity, shape (2 n, n); None without motor friction."""
        return np.vstack([np.eye(self.n), np.asarray(self.reduction, dtype=float)]) if self.motor else None

    @property
    def sliders(self) -> int:
        """Number of sliders K: n, or 2n with motor terms."""
        return self.n if self.transmission is None else 2 * self.n

    @cached_property
    def memory(self) -> bool:
        """Whether a law depends on the displacement since the last reversal."""
        return any(each.law.memory for each in (*self.joint, *self.motor))

    @cached_property
    def load(self) -> Array | None:
        """Friction per unit of transmitted torque, shape (n,); None without load-dependent laws."""
        loaded = [each for each in self.joint if each.law.loaded]
        one = Sliding(np.zeros(self.n), np.ones(self.n), np.zeros(self.n), np.ones(self.n))
        return sum((each.torque(one) for each in loaded), np.zeros(self.n)) if loaded else None

    @cached_property
    def hard(self) -> BoolArray:
        """Whether each slider can stick, shape (K,)."""
        low, high = self.interval(np.zeros(self.sliders))
        hard = high - low > 0
        if self.load is not None:
            hard[: self.n] |= self.load > 0
        return np.asarray(hard)

    @cached_property
    def affine(self) -> tuple[Array, Array, Array] | None:
        """Constant, factor of the velocity and factor of the direction of slip of each slider, shapes (K,), without springs.

        None unless friction has this form.
        """
        if self.load is not None or self.memory:
            return None
        zero, one = np.zeros(self.sliders), np.ones(self.sliders)
        constant = self._by_laws(zero, zero, zero)
        slope, jump = self._by_laws(one, zero, zero) - constant, self._by_laws(zero, one, zero) - constant
        if (jump[~self.hard] != 0).any():
            return None
        for w in _PROBES:  # tested numerically, because users can define their own laws
            for s in (-1.0, 1.0):
                friction = self._by_laws(w * one, s * one, zero)
                if not np.allclose(friction, constant + slope * w + jump * s, rtol=1e-9, atol=1e-12):
                    return None
        return constant, slope, jump

    def velocity(self, v: Array) -> Array:
        """Returns the velocities of the sliders, shape (…, K).

        Args:
            v: Joint velocities (or any joint displacement), shape (…, n) [rad/s or m/s].
        """
        return v if self.transmission is None else np.asarray(v @ self.transmission.T)

    def to_joints(self, torque: Array) -> Array:
        """Returns the joint torques equivalent to slider torques, shape (…, n) [N·m or N]; torque: shape (…, K) [N·m or N]."""
        return torque if self.transmission is None else np.asarray(torque @ self.transmission)

    def torque(self, w: Array, s: Array, z: Array) -> Array:
        """Returns the friction on the sliders, without the load-dependent part, shape (…, K) [N·m or N].

        Args:
            w: Slider velocities, shape (…, K).
            s: Directions of slip, shape (…, K); 0 where a slider sticks.
            z: States of laws with memory, shape (…, K).
        """
        if self.affine is None:
            return self._by_laws(w, s, z)
        constant, slope, jump = self.affine
        return np.asarray(constant + slope * w + jump * s)

    def _by_laws(self, w: Array, s: Array, z: Array) -> Array:
        if self.transmission is None:
            return self._side(self.joint, w, s, z)
        n = self.n
        joint = self._side(self.joint, w[..., :n], s[..., :n], z[..., :n])
        return np.concatenate([joint, self._side(self.motor, w[..., n:], s[..., n:], z[..., n:])], axis=-1)

    def springs(self, q: Array) -> Array:
        """Returns the drive torque required to balance the springs, shape (n,) [N·m or N].

        Args:
            q: Joint positions, shape (n,) [rad or m].
        """
        motion = Sliding(np.zeros(self.n), q=q)
        return sum((each.torque(motion) for each in self.joint if each.law.conservative), np.zeros(self.n))

    def interval(self, z: Array, load: Array | None = None) -> tuple[Array, Array]:
        """Range of friction of a slider that sticks, relative to the terms that do not depend on slip.

        Args:
            z: States of laws with memory, shape (K,).
            load: Torque transmitted to the links, shape (n,) [N·m or N].

        Returns:
            Lowest (≤ 0) and highest (≥ 0) friction, shapes (K,) [N·m or N].
        """
        zero, ones = np.zeros(self.sliders), np.ones(self.sliders)
        base = self._by_laws(zero, zero, z)
        low, high = self._by_laws(zero, -ones, z) - base, self._by_laws(zero, ones, z) - base
        if self.load is not None and load is not None:
            extra = self.load * np.abs(load)
            low[: self.n] -= extra
            high[: self.n] += extra
        return low, high

    def advance(self, z: Array, step: Array, seconds: float) -> Array:
        """Updates the states of laws with memory after a displacement, exact for motion in one direction.

        Args:
            z: States before, shape (K,).
            step: Displacement of each slider, shape (K,) [rad or m].
            seconds: Its duration [s].

        Returns:
            States after, shape (K,).
        """
        if not self.memory:
            return z
        out = z.copy()
        for begin, side in ((0, self.joint), (self.n, self.motor)):
            sliders = slice(begin, begin + self.n)
            for each in side:
                if each.law.memory:
                    on = np.any([value != 0 for value in each.values], axis=0)
                    out[sliders] = np.where(on, each.law.bend(z[sliders], step[sliders], seconds), out[sliders])
        return out

    @staticmethod
    def _side(laws: tuple[Friction, ...], w: Array, s: Array, z: Array) -> Array:
        total, motion = np.zeros_like(w), Sliding(w, None, z, s)
        for each in laws:
            if not each.law.loaded and not each.law.conservative:
                total += each.torque(motion)
        return total
