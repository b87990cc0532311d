"""Joint controllers of simulated robots.

A controller uses joint positions, velocities and the reference, but never the true parameters: model-based controllers
have their own *nominal* robot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
class Feedback(Controller):
    """Decentralised feedback ``kp (q_r − q) + kd (v_r − v) + ki ∫(q_r − q)``, with gravity compensation if ``robot`` is given.

    Attributes:
        kp: Shape (n,) [N·m/rad or N/m].
        kd: Shape (n,) [N·m·s/rad or N·s/m].
        ki: Shape (n,) [N·m/(rad·s) or N/(m·s)]; None: no integral.
        robot: The nominal robot, whose gravity is compensated.
        velocity_reference: False: v_r is zero, so that kd acts on the motion itself.
    """

    kp: Array
    kd: Array
    ki: Array | None = None
    robot: Robot | None = None
    velocity_reference: bool = True

    def __post_init__(self) -> None:
        for name, gain in (("kp", self.kp), ("kd", self.kd), ("ki", self.kp if self.ki is None else self.ki)):
            check_shape(name, np.shape(gain), np.shape(self.kp))
            if not (np.isfinite(gain).all() and (np.asarray(gain) >= 0).all()):
                raise ModelError(f"the gain {name} is negative or not finite", got=np.asarray(gain).tolist())

    @property
    def states(self) -> int:
        return 0 if self.ki is None else len(self.kp)

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        wanted = reference.v if self.velocity_reference else 0.0
        torque: Array = self.kp * (reference.q - q) + self.kd * (wanted - v)
        if self.ki is not None:
            torque = torque + self.ki * state
        if self.robot is not None:
            gravity = pin.computeGeneralizedGravity(self.robot.model, self._data, self.robot.posture(q))
            torque = torque + self.robot.reduced(gravity)
        return torque

    def rate(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        return np.zeros(0) if self.ki is None else reference.q - q

    @cached_property
    def _data(self) -> pin.Data:
        return None if self.robot is None else self.robot.model.createData()


@dataclass(frozen=True, eq=False)
class ComputedTorque(Controller):
    """Inverse dynamics of a nominal model, ``M(q)(a_r + 2ζω ė + ω² e) + h(q, v)``.

    Attributes:
        bandwidth: Bandwidth of the error dynamics [Hz].
        damping: Damping ratio [1].
        rotor: Nominal rotor inertia after the gear, shape (n,) or a number [kg·m² or kg].
    """

    robot: Robot
    bandwidth: float = 10.0
    damping: float = 1.0
    rotor: Array | float = 0.0

    def __post_init__(self) -> None:
        _check_tuning(self.bandwidth, self.damping)

    @cached_property
    def _data(self) -> pin.Data:
        return self.robot.model.createData()

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        omega = 2 * np.pi * self.bandwidth
        a = reference.a + omega**2 * (reference.q - q) + 2 * self.damping * omega * (reference.v - v)
        robot, rates = self.robot, (self.robot.spread(v), self.robot.spread(a))
        return np.asarray(robot.reduced(pin.rnea(robot.model, self._data, robot.posture(q), *rates)) + self.rotor * a)


def tuned_gains(robot: Robot, *, bandwidth: float = 10.0, damping: float = 1.0, rotor: ArrayLike = 0.0) -> tuple[Array, Array]:
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
    _check_tuning(bandwidth, damping)
    inertia = np.diagonal(masses_of_poses(robot), axis1=1, axis2=2).max(axis=0) + np.asarray(rotor)
    if not (inertia > 0).all():
        raise ModelError("an axis without inertia cannot be tuned", where=f"joint '{robot.joints[int(np.argmin(inertia))]}'")
    omega = 2 * np.pi * bandwidth
    return inertia * omega**2, 2 * damping * omega * inertia


def masses_of_poses(robot: Robot) -> Array:
    """Returns the mass matrices of 50 random poses, without rotors, shape (50, n, n) [kg·m², kg·m or kg].

    The largest inertias among so many lie within 15 % of those of 20 000 poses (bundled robots).
    """
    return mass_matrices(robot, np.random.default_rng(0).uniform(-np.pi, np.pi, (50, robot.n)))


def _check_tuning(bandwidth: float, damping: float) -> None:
    if not (bandwidth > 0 and damping >= 0):
        raise ModelError("bandwidth must be positive and damping not negative", got=(bandwidth, damping))
