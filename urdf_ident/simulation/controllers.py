"""Joint controllers of simulated robots.

A controller uses joint positions, velocities and the reference, but never the true parameters: model-based controllers
have their own *nominal* robot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import ModelError, check_shape
from ..linalg import Array
from ..model.rigid_bodies import mass_matrices
from ..model.robot import Robot


class Reference(NamedTuple):
    """Reference position, velocity and acceleration, shapes (n,)."""

    q: Array
    v: Array
    a: Array


class Controller:
    """A feedback law with an internal state of size ``states``, which is integrated with the plant; by default none."""

    @property
    def states(self) -> int:
        """Size k of its internal state."""
        return 0

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """Drive torque, shape (n,) [N·m or N], for positions q and velocities v, shapes (n,), and state (k,)."""
        raise NotImplementedError

    def rate(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """Time derivative of the internal state, shape (k,), for the same arguments."""
        return np.zeros(self.states)


@dataclass(frozen=True, eq=False)
class PD(Controller):
    """Decentralised position and velocity feedback.

    Attributes:
        kp: Shape (n,) [N·m/rad or N/m].
        kd: Shape (n,) [N·m·s/rad or N·s/m].
    """

    kp: Array
    kd: Array

    def __post_init__(self) -> None:
        _check_gains(self.kp, kd=self.kd)

    @classmethod
    def tuned(cls, robot: Robot, *, bandwidth: float = 10.0, damping: float = 1.0, rotor: ArrayLike = 0.0) -> PD:
        """Tunes the gains to the nominal inertia of each axis.

        Args:
            bandwidth: Natural frequency of each axis [Hz].
            damping: Damping ratio [1].
            rotor: Nominal rotor inertia after the gear, shape (n,) or a number [kg·m² or kg].
        """
        return cls.with_gains(robot, *tuned_gains(robot, bandwidth=bandwidth, damping=damping, rotor=rotor))

    @classmethod
    def with_gains(cls, robot: Robot, kp: Array, kd: Array) -> PD:
        """Builds the controller of a nominal robot.

        Args:
            kp: Shape (n,) [N·m/rad or N/m].
            kd: Shape (n,) [N·m·s/rad or N·s/m].
        """
        return cls(kp, kd)

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """``kp (q_r − q) + kd (v_r − v)``, shape (n,) [N·m or N]."""
        return np.asarray(self.kp * (reference.q - q) + self.kd * (reference.v - v))


@dataclass(frozen=True, eq=False)
class PID(PD):
    """Decentralised PD with an integral of the position error.

    Attributes:
        ki: Shape (n,) [N·m/(rad·s) or N/(m·s)]; with tuned or given kp and kd twice kp.
    """

    ki: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        _check_gains(self.kp, kd=self.kd, ki=self.ki)

    @classmethod
    def with_gains(cls, robot: Robot, kp: Array, kd: Array) -> PD:
        return cls(kp, kd, 2.0 * kp)

    @property
    def states(self) -> int:
        """The integrals of the errors."""
        return len(self.kp)

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """PD plus ``ki ∫(q_r − q)``, shape (n,) [N·m or N]."""
        return np.asarray(super().torque(reference, q, v, state) + self.ki * state)

    def rate(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """The position error, shape (n,) [rad or m]."""
        return reference.q - q


@dataclass(frozen=True, eq=False)
class PDGravity(PD):
    """Decentralised PD with gravity compensation from a nominal model.

    Attributes:
        robot: The nominal robot; shape of the gains must be (n,).
    """

    robot: Robot = field(kw_only=True)
    data: pin.Data = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "data", self.robot.model.createData())

    @classmethod
    def with_gains(cls, robot: Robot, kp: Array, kd: Array) -> PD:
        return cls(kp, kd, robot=robot)

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """PD plus the gravity torque at q, shape (n,) [N·m or N]."""
        gravity = pin.computeGeneralizedGravity(self.robot.model, self.data, self.robot.posture(q))
        return np.asarray(super().torque(reference, q, v, state) + self.robot.reduced(gravity))


@dataclass(frozen=True, eq=False)
class ComputedTorque(Controller):
    """Inverse dynamics of a nominal model, with feedback on the acceleration level.

    Attributes:
        bandwidth: Bandwidth of the error dynamics [Hz].
        damping: Damping ratio [1].
        rotor: Nominal rotor inertia after the gear, shape (n,) or a number [kg·m² or kg].
    """

    robot: Robot
    bandwidth: float = 10.0
    damping: float = 1.0
    rotor: Array | float = 0.0
    data: pin.Data = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.bandwidth > 0 and self.damping >= 0):
            raise ModelError("bandwidth must be positive and damping not negative", got=(self.bandwidth, self.damping))
        object.__setattr__(self, "rotor", np.broadcast_to(np.asarray(self.rotor, dtype=float), (self.robot.n,)))
        object.__setattr__(self, "data", self.robot.model.createData())

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """``M(q)(a_r + 2ζω ė + ω² e) + h(q, v)``, shape (n,) [N·m or N]."""
        omega = 2 * np.pi * self.bandwidth
        a = reference.a + omega**2 * (reference.q - q) + 2 * self.damping * omega * (reference.v - v)
        robot, rates = self.robot, (self.robot.spread(v), self.robot.spread(a))
        return np.asarray(robot.reduced(pin.rnea(robot.model, self.data, robot.posture(q), *rates)) + self.rotor * a)


@dataclass(frozen=True, eq=False)
class PositionReference(Controller):
    """A controller with zero reference velocity and acceleration, so that velocity feedback acts on the motion itself."""

    inner: Controller

    @property
    def states(self) -> int:
        """States of the inner controller."""
        return self.inner.states

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """The controller's torque for a reference at rest, shape (n,) [N·m or N]."""
        return self.inner.torque(_at_rest(reference), q, v, state)

    def rate(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """Rate of the inner controller's state for a reference at rest, shape (k,)."""
        return self.inner.rate(_at_rest(reference), q, v, state)


def _at_rest(reference: Reference) -> Reference:
    return Reference(reference.q, np.zeros_like(reference.v), np.zeros_like(reference.a))


def tuned_gains(robot: Robot, *, bandwidth: float, damping: float, rotor: ArrayLike = 0.0) -> tuple[Array, Array]:
    """Position and velocity gains for a natural frequency and damping ratio of every axis, considered separately.

    Args:
        robot: The nominal robot; the largest inertia of each axis over random poses is used.
        bandwidth: Natural frequency [Hz].
        damping: Damping ratio [1].
        rotor: Nominal rotor inertia after the gear, shape (n,) or a number [kg·m² or kg].

    Returns:
        ``(kp, kd)``, shapes (n,).

    Raises:
        ModelError: The bandwidth is not positive, or an axis has no inertia.
    """
    if not (bandwidth > 0 and damping >= 0):
        raise ModelError("bandwidth must be positive and damping not negative", got=(bandwidth, damping))
    inertia = np.diagonal(masses_of_poses(robot), axis1=1, axis2=2).max(axis=0) + np.asarray(rotor)
    if not (inertia > 0).all():
        raise ModelError("an axis without inertia cannot be tuned", where=f"joint '{robot.joints[int(np.argmin(inertia))]}'")
    omega = 2 * np.pi * bandwidth
    return inertia * omega**2, 2 * damping * omega * inertia


def masses_of_poses(robot: Robot) -> Array:
    """Returns the mass matrices of 50 random poses, without rotors, shape (50, n, n) [kg·m², kg·m or kg]."""
    return mass_matrices(robot, np.random.default_rng(0).uniform(-np.pi, np.pi, (50, robot.n)))


def _check_gains(kp: Array, **others: Array) -> None:
    for name, gain in (("kp", kp), *others.items()):
        check_shape(name, np.shape(gain), np.shape(kp))
        if not (np.isfinite(gain).all() and (np.asarray(gain) >= 0).all()):
            raise ModelError(f"the gain {name} is negative or not finite", got=np.asarray(gain).tolist())
