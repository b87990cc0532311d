"""Joint controllers of simulated robots.

A controller uses joint positions, velocities and the reference, but never the true parameters: model-based controllers
have their own *nominal* robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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

    def feedback(self) -> Feedback | None:
        """Its torque in the fast form, or None."""
        return None

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """Drive torque, shape (n,) [N·m or N], for positions q and velocities v, shapes (n,), and state (k,)."""
        raise NotImplementedError

    def rate(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """Time derivative of the internal state, shape (k,), for the same arguments."""
        return np.zeros(self.states)


@dataclass(frozen=True, eq=False)
class Feedback:
    """Fast form of a controller without memory: ``torque = complete(feed(reference) − gains · (q, v), q, v)``.

    Attributes:
        feed: Function of reference positions, velocities and accelerations, shapes (N, n) each; returns shape (N, n).
        gains: Shape (n, 2n).
        complete: Model-based function of the sum, q and v, shapes (n,), that returns the torque; None: the sum is the torque.
    """

    feed: Callable[[Array, Array, Array], Array]
    gains: Array
    complete: Callable[[Array, Array, Array], Array] | None = None


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

    def feedback(self) -> Feedback | None:
        """Its torque in the fast form, or None."""
        kp, kd = self.kp, self.kd
        return Feedback(lambda q, v, a: kp * q + kd * v, np.hstack([np.diag(kp), np.diag(kd)]))

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
        return np.asarray(self.kp * (reference.q - q) + self.kd * (reference.v - v) + self.ki * state)

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

    def feedback(self) -> Feedback | None:
        """Its torque in the fast form, or None."""
        linear, robot, data, gravity = super().feedback(), self.robot, self.data, pin.computeGeneralizedGravity
        if linear is None:
            return None
        return replace(linear, complete=lambda total, q, v: total + robot.reduced(gravity(robot.model, data, robot.posture(q))))

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

    def feedback(self) -> Feedback | None:
        """Its torque in the fast form, or None."""
        robot, data, rotor, omega = self.robot, self.data, np.asarray(self.rotor), 2 * np.pi * self.bandwidth
        if robot.model.nq != robot.n:
            return None
        kp, kd = omega**2, 2 * self.damping * omega
        gains = np.hstack([kp * np.eye(robot.n), kd * np.eye(robot.n)])
        return Feedback(
            lambda q, v, a: a + kp * q + kd * v,
            gains,
            lambda total, q, v: pin.rnea(robot.model, data, q, v, total) + rotor * total,
        )

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

    def feedback(self) -> Feedback | None:
        """Fast form of the inner controller, for a reference at rest."""
        inner = feedback_of(self.inner)
        if inner is None:
            return None
        return replace(inner, feed=lambda q, v, a: inner.feed(q, np.zeros_like(v), np.zeros_like(a)))

    def torque(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """The controller's torque for a reference at rest, shape (n,) [N·m or N]."""
        return self.inner.torque(_at_rest(reference), q, v, state)

    def rate(self, reference: Reference, q: Array, v: Array, state: Array) -> Array:
        """Rate of the inner controller's state for a reference at rest, shape (k,)."""
        return self.inner.rate(_at_rest(reference), q, v, state)


def feedback_of(controller: Controller) -> Feedback | None:
    """Fast form of a controller's torque.

    The form is compared with the torque in three random states, because a derived user class may override the torque and
    inherit the form.

    Returns:
        The form, or None if there is none: with an internal state, or a user-defined controller.
    """
    form = None if controller.states else controller.feedback()
    if form is None:
        return None
    for q_r, v_r, a_r, q, v in np.random.default_rng(0).uniform(-1.0, 1.0, (3, 5, len(form.gains))):
        exact = controller.torque(Reference(q_r, v_r, a_r), q, v, np.zeros(0))
        total = form.feed(q_r[None], v_r[None], a_r[None])[0] - form.gains @ np.concatenate([q, v])
        torque = total if form.complete is None else form.complete(total, q, v)
        if not np.allclose(torque, exact, rtol=1e-9, atol=1e-9 * float(np.abs(exact).max())):
            return None
    return form


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
