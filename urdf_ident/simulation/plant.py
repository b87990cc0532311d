"""Simulated rigid robots, with their own inertia, rotors and friction."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import ModelError, SimulationError, check_shape
from ..linalg import Array, shaped
from ..model.rigid_bodies import with_inertias
from ..model.robot import Robot
from .friction_truth import FrictionTruth


@dataclass(frozen=True, eq=False)
class RigidPlant:
    """A rigid robot with its own inertia (not necessarily the URDF's), rotors and friction.

    Create it with :meth:`create`. Not thread-safe: it contains Pinocchio's workspace.

    Attributes:
        model: Its own Pinocchio model; ``armature`` contains the rotors if they are not coupled.
        rotor: Rotor inertia seen from the joints, shape (n, n) [kg·m² or kg].
    """

    robot: Robot
    model: pin.Model
    rotor: Array
    friction: FrictionTruth
    data: pin.Data = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.model.createData())
        self.model.armature = np.zeros(self.model.nv) if self._coupled else np.diag(self.rotor).copy()

    @cached_property
    def _coupled(self) -> bool:
        """Whether Pinocchio's forward dynamics do not hold: rotors or joints are coupled."""
        return bool(self.robot.coupled) or bool(np.abs(self.rotor - np.diag(np.diag(self.rotor))).max(initial=0.0) > 0)

    @cached_property
    def _sprung(self) -> bool:
        return any(each.law.conservative for each in self.friction.joint)

    @classmethod
    def create(
        cls,
        robot: Robot,
        *,
        theta: ArrayLike | None = None,
        rotor_inertia: ArrayLike | None = None,
        friction: FrictionTruth | None = None,
        gravity: ArrayLike | None = None,
    ) -> RigidPlant:
        """Builds a plant.

        Args:
            robot: Kinematics, and inertia unless ``theta`` is given.
            theta: Ten inertial parameters of each body in the order of ``robot.bodies``, shape (10·n_bodies,)
                [kg, kg·m, kg·m²], about the joint frames' origins.
            rotor_inertia: Rotor inertia after the gear: shape (n,), or (n, n) for coupled drives [kg·m² or kg].
            friction: Its friction; none by default.
            gravity: Acceleration of gravity in the base frame, shape (3,) [m/s²]; the robot's by default.

        Raises:
            ModelError: A body with first moments but no mass, a negative rotor inertia, or friction for other joints.
            SimulationError: The mass matrix is not positive definite.
            ShapeError: Wrong shapes.
        """
        n = robot.n
        model = robot.model.copy() if theta is None else with_inertias(robot, theta)
        if gravity is not None:
            model.gravity.linear = shaped("gravity", gravity, (3,))
        rotor = np.zeros(n) if rotor_inertia is None else np.asarray(rotor_inertia, dtype=float)
        rotor = np.diag(rotor) if rotor.ndim == 1 else rotor
        check_shape("rotor_inertia", rotor.shape, (n, n))
        if not np.allclose(rotor, rotor.T) or np.linalg.eigvalsh(rotor)[0] < -1e-12 * np.abs(rotor).max():
            raise ModelError("the rotor inertia is not symmetric and positive", got=rotor.tolist())
        if friction is not None and friction.n != n:
            raise ModelError("the friction is for another number of joints", got=friction.n, expected=n)
        plant = cls(robot, model, rotor, friction or FrictionTruth(n))
        rng = np.random.default_rng(0)
        for _ in range(10):
            values, vectors = np.linalg.eigh(plant.mass(rng.uniform(-1.0, 1.0, n)))
            if not values[0] > 1e-12 * abs(values[-1]):
                j = int(np.argmax(np.abs(vectors[:, 0])))
                raise SimulationError(
                    "the mass matrix is not positive definite",
                    where=f"joint '{robot.joints[j]}'",
                    got=f"smallest eigenvalue {values[0]:.3g}",
                    remedy="give the body an inertia, or the joint a rotor",
                )
        return plant

    def mass(self, x: Array) -> Array:
        """Mass matrix with rotors, shape (n, n) [kg·m² or kg], at joint positions x, shape (n,) [rad or m]."""
        matrix = pin.crba(self.model, self.data, self.robot.posture(x))
        if self.robot.coupled:
            matrix = self.robot.coupling.T @ matrix @ self.robot.coupling
        return np.asarray(matrix + self.rotor if self._coupled else matrix.copy())

    def bias(self, x: Array, w: Array) -> Array:
        """Coriolis, centrifugal, gravity and spring torque, shape (n,), at joint positions and velocities, shapes (n,)."""
        speeds = self.robot.spread(w)
        rigid = self.robot.reduced(np.array(pin.nonLinearEffects(self.model, self.data, self.robot.posture(x), speeds)))
        return rigid + self.friction.springs(x) if self._sprung else rigid

    def accelerate(self, x: Array, w: Array, force: Array) -> Array:
        """Joint accelerations, shape (n,), for joint torques, shape (n,) [N·m or N]."""
        if self._coupled:
            return np.asarray(np.linalg.solve(self.mass(x), force - self.bias(x, w)))
        if self._sprung:
            force = force - self.friction.springs(x)
        return np.array(pin.aba(self.model, self.data, self.robot.posture(x), w, force))
