"""Fast Runge-Kutta stages of a rigid robot with simple friction, which dominate the time of a simulation.

A controller without memory is affine in the state except for its own robot model (:class:`.Feedback`), and simple friction
is affine in the velocity while no direction of slip changes; joints that stick are held by the torque that makes their
acceleration zero. Torques and stage states are one small matrix product each; the rest are calls of Pinocchio. The general
method in :mod:`.integrators` gives the same numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..linalg import Array, BoolArray
from .controllers import Feedback
from .plant import RigidPlant


class Stages:
    """Classical Runge-Kutta steps of a rigid plant while no direction of slip changes.

    Args:
        plant: Its friction must be affine (:attr:`.FrictionTruth.affine`) and on the joints, see :meth:`support`.
        feedback: The controller.
        feed: Contribution of the reference at a time [s], shape (n,).
    """

    @staticmethod
    def support(plant: RigidPlant) -> bool:
        """Whether the plant's friction is affine and on the joints."""
        return plant.friction.affine is not None and not plant.friction.motor

    def __init__(self, plant: RigidPlant, feedback: Feedback, feed: Callable[[float], Array]) -> None:
        n = plant.robot.n
        self._constant, self._slope, self._jump = plant.friction.affine  # type: ignore[misc]
        self._accelerate, self._feed, self._complete = plant.acceleration(), feed, feedback.complete
        self._apart = feedback.complete is not None and bool(self._slope.any() or self._constant.any() or self._jump.any())
        self._gains = np.zeros((n, 2 * n + 1))  # times (position, velocity, 1)
        self._gains[:, : 2 * n] = feedback.gains
        if self._complete is None:  # friction's slope acts like the controller's damping
            self._gains[:, n : 2 * n] += np.diag(self._slope)
        self._argument, self._net = np.ones(2 * n + 1), np.empty(n)
        self._state = self._argument[: 2 * n].reshape(2, n)
        self._q, self._v = self._state
        self._table = np.zeros((6, n))  # position, velocity and the accelerations of four stages
        self._length, self._shares = 0.0, _shares(0.0)
        self._inverse_mass, self._bias, self._rest = plant.inverse_mass, plant.bias, np.zeros(n)
        self.slide(np.zeros(n), np.zeros(n, dtype=bool))

    def slide(self, slip: Array, sticking: BoolArray) -> None:
        """Sets the directions of slip and the sticking joints.

        Args:
            slip: −1, 0 or 1, shape (n,).
            sticking: Mask, shape (n,).
        """
        self._stuck = np.flatnonzero(sticking)
        self._dry = self._constant + self._jump * slip
        if self._complete is None:
            self._gains[:, -1] = self._dry

    def held(self, friction: Array) -> bool:
        """Whether the holding torques are within the friction limits, so that the sticking joints keep sticking.

        Args:
            friction: Friction from :meth:`now`, shape (n,) [N·m or N].
        """
        return bool((np.abs((friction - self._constant)[self._stuck]) < (1.0 - 1e-9) * self._jump[self._stuck]).all())

    def now(self, t: float, x: Array, w: Array) -> tuple[Array, Array, Array]:
        """Computes accelerations, drive torques and friction at a time, shapes (n,) each [rad/s² or m/s², N·m or N].

        Args:
            t: Time [s].
            x: Positions, shape (n,) [rad or m].
            w: Velocities, shape (n,) [rad/s or m/s].
        """
        self._state[0], self._state[1] = x, w
        net, a, hold = self._stage(t)
        a, friction = np.array(a), self._slope * w
        friction += self._dry
        tau = net + friction
        if hold is not None:
            friction[self._stuck] += hold
        return a, tau, friction

    def step(self, t: float, h: float, x: Array, w: Array, a: Array) -> tuple[Array, Array]:
        """Integrates one step.

        Args:
            t: Time at its start [s].
            h: Length of the step [s].
            x: Positions, shape (n,) [rad or m].
            w: Velocities, shape (n,) [rad/s or m/s].
            a: Accelerations, shape (n,) [rad/s² or m/s²].

        Returns:
            Positions and velocities at its end, shapes (n,).
        """
        if h != self._length:
            self._length, self._shares = h, _shares(h)
        table, state, (second, third, fourth, end) = self._table, self._state, self._shares
        table[0], table[1], table[2] = x, w, a
        half = t + 0.5 * h
        np.dot(second, table, out=state)
        table[3] = self._stage(half)[1]
        np.dot(third, table, out=state)
        table[4] = self._stage(half)[1]
        np.dot(fourth, table, out=state)
        table[5] = self._stage(t + h)[1]
        x, w = np.dot(end, table)
        return x, w

    def _stage(self, t: float) -> tuple[Array, Array, Array | None]:
        """Net torque, acceleration and holding torques in the current stage state; the next call overwrites them."""
        net = self._net
        np.dot(self._gains, self._argument, out=net)
        np.subtract(self._feed(t), net, out=net)
        if self._complete is not None:
            net = self._complete(net, self._q, self._v)
            if self._apart:
                net -= self._slope * self._v + self._dry
        stuck = self._stuck
        if len(stuck) == len(net):
            return net, self._rest, net - self._bias(self._q, self._rest)
        a = self._accelerate(self._q, self._v, net)
        if not len(stuck):
            return net, a, None
        columns = self._inverse_mass(self._q)[:, stuck]
        compliance = columns[stuck]
        hold: Array = a[stuck] / compliance[0, 0] if len(stuck) == 1 else np.asarray(np.linalg.solve(compliance, a[stuck]))
        a = a - columns @ hold
        a[stuck] = 0.0
        return net, a, hold


def _shares(h: float) -> tuple[Array, Array, Array, Array]:
    """Weights of (x, w, a1, a2, a3, a4) in the states of the second to fourth stage and at the end, shape (2, 6) each."""
    return (
        np.array([[1, h / 2, 0, 0, 0, 0], [0, 1, h / 2, 0, 0, 0]]),
        np.array([[1, h / 2, h * h / 4, 0, 0, 0], [0, 1, 0, h / 2, 0, 0]]),
        np.array([[1, h, 0, h * h / 2, 0, 0], [0, 1, 0, 0, h, 0]]),
        np.array([[1, h, h * h / 6, h * h / 6, h * h / 6, 0], [0, 1, h / 6, h / 3, h / 3, h / 6]]),
    )
