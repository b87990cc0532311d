"""Friction at the motors of an elastic plant."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...errors import SimulationError
from ...linalg import Array
from ..friction_truth import FrictionTruth


class MotorFriction:
    """Friction at the motors of an elastic plant with smooth signs, so that motors creep instead of sticking.

    Args:
        truth: The friction; its joint friction acts at the motors, after the gear.
        width: Half-width of the smooth sign, after the gear, number or shape (n,) [rad/s or m/s].

    Raises:
        SimulationError: A law with memory, or one that depends on the load.
    """

    def __init__(self, truth: FrictionTruth, width: ArrayLike = 0.01) -> None:
        for each in (*truth.joint, *truth.motor):
            if each.law.memory or each.law.loaded:
                raise SimulationError(
                    "this friction cannot be simulated with elastic joints",
                    got=type(each.law).__name__,
                    remedy="take another law in the truth, or simulate the robot as rigid",
                )
        self.truth, self.width = truth, np.asarray(width, dtype=float)
        self._direction = np.sign(truth.velocity(np.ones(truth.n)))
        self._still = np.zeros(truth.sliders)

    def torque(self, speed: Array) -> Array:
        """Returns the friction torque, shape of ``speed`` [N·m or N].

        Args:
            speed: Motor velocity after the gear, shape (…, n) [rad/s or m/s].
        """
        truth, smooth = self.truth, np.tanh(speed / self.width)
        sign = smooth if truth.transmission is None else self._direction * np.concatenate([smooth, smooth], axis=-1)
        return truth.to_joints(truth.torque(truth.velocity(speed), sign, self._still))

    def slope(self, speed: Array) -> Array:
        """Derivative of the torque with respect to speed; each motor's friction depends only on its own speed.

        Args:
            speed: Motor velocity after the gear, shape (…, n) [rad/s or m/s].

        Returns:
            Shape of ``speed`` [N·m·s/rad or N·s/m].
        """
        step = 1e-4 * self.width
        return np.asarray((self.torque(speed + step) - self.torque(speed - step)) / (2 * step))
