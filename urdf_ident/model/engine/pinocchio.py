"""The reference engine: Pinocchio's joint-torque regressor, sample by sample."""

from __future__ import annotations

from threading import local
from weakref import WeakKeyDictionary

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...errors import ModelError, check_shape
from ...linalg import Array, shaped
from ..inertia import symmetric
from ..robot import Robot


class _Workspaces(local):
    """Pinocchio's workspaces of one thread, by robot: creating one for a hundred joints takes as long as fifty regressors."""

    def __init__(self) -> None:
        self.of: WeakKeyDictionary[Robot, pin.Data] = WeakKeyDictionary()


_WORKSPACES = _Workspaces()


def _workspace(robot: Robot) -> pin.Data:
    found = _WORKSPACES.of.get(robot)
    if found is None:
        found = _WORKSPACES.of[robot] = robot.model.createData()
    return found


def check_motion(robot: Robot, q: Array, v: Array, a: Array) -> None:
    """Checks the shapes of a motion of all joints.

    Args:
        q, v, a: Shape (N, n) each [rad, rad/s, rad/s² or m, m/s, m/s²].

    Raises:
        ShapeError: They have other shapes.
    """
    check_shape("q", np.shape(q), ("N", robot.n))
    for name, array in (("v", v), ("a", a)):
        check_shape(name, np.shape(array), (len(q), robot.n))


def regressor(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """Returns the regressor of the inertial parameters (docs/theory.md §1): ``tau = Y theta``, including gravity.

    Rotor inertia and friction are not included.

    Args:
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

    Returns:
        Shape (N, n, 10 n) [unit of torque per unit of parameter], columns as ``inertial_parameters``.

    Raises:
        ShapeError: The arrays disagree.
    """
    check_motion(robot, q, v, a)
    out = np.empty((len(q), robot.n, 10 * robot.n))
    configuration, model, data = robot.configuration(q), robot.model, _workspace(robot)
    compute = pin.computeJointTorqueRegressor
    for k, (qk, vk, ak) in enumerate(zip(configuration, np.asarray(v), np.asarray(a), strict=True)):
        out[k] = compute(model, data, qk, vk, ak)
    return out


def mass_matrices(robot: Robot, q: Array) -> Array:
    """Computes the mass matrix of each configuration, without rotors (Featherstone 2008, ch. 6).

    Args:
        q: Shape (N, n) [rad or m].

    Returns:
        Shape (N, n, n) [kg·m², kg·m or kg].
    """
    data = _workspace(robot)
    upper = np.array([np.triu(pin.crba(robot.model, data, pose)) for pose in robot.configuration(q)])
    return np.asarray(upper + np.triu(upper, 1).swapaxes(1, 2))


def tip_jacobians(robot: Robot, q: Array, frame: pin.ReferenceFrame) -> tuple[Array, Array]:
    """Returns the Jacobian of the last body (:attr:`.Robot.tip`) and the place of its joint in every configuration.

    Args:
        q: Joint positions, shape (N, n) [rad or m].
        frame: Axes of the velocities: ``pin.LOCAL`` or ``pin.LOCAL_WORLD_ALIGNED``.

    Returns:
        Jacobians of the linear velocity of the joint's origin and of the angular velocity, shape (N, 6, n), and the origins in
        the base frame, shape (N, 3) [m].
    """
    model, data, last = robot.model, _workspace(robot), robot.tip + 1
    J, place = np.empty((len(q), 6, robot.n)), np.empty((len(q), 3))
    for k, row in enumerate(robot.configuration(q)):
        pin.computeJointJacobians(model, data, row)
        J[k], place[k] = pin.getJointJacobian(model, data, last, frame).reshape(6, -1), data.oMi[last].translation
    return J, place


def _inertia_of(theta: Array, body: str) -> pin.Inertia:
    """Returns Pinocchio's inertia of one body, also of a massless or physically inconsistent one.

    Args:
        theta: Its ten parameters, shape (10,).

    Raises:
        ModelError: First moments without mass; Pinocchio stores the centre of mass.
    """
    if theta[0] != 0:
        return pin.Inertia.FromDynamicParameters(theta)
    if np.any(theta[1:4] != 0):
        raise ModelError("first moments without mass", where=f"body '{body}'", got=theta[1:4].tolist(), remedy="give it a mass")
    return pin.Inertia(0.0, np.zeros(3), symmetric(theta[4:]))


def with_inertias(robot: Robot, theta: ArrayLike, rotor_inertia: ArrayLike | None = None) -> pin.Model:
    """Returns the robot's Pinocchio model with other inertial parameters, for dynamics algorithms.

    Args:
        theta: Inertial parameters, shape (10 n,).
        rotor_inertia: Reflected rotor inertia, shape (n,) [kg·m² or kg], put into ``armature``; 0 if None.

    Raises:
        ModelError: A body with first moments but no mass.
        ShapeError: Wrong shapes.
    """
    bodies = shaped("theta", theta, (10 * robot.n,)).reshape(-1, 10)
    model = robot.model.copy()
    for j, (ten, body) in enumerate(zip(bodies, robot.bodies, strict=True), 1):
        model.inertias[j] = _inertia_of(ten, body.name)
    model.armature = np.zeros(robot.n) if rotor_inertia is None else shaped("rotor_inertia", rotor_inertia, (robot.n,))
    return model
