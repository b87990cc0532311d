"""Rigid-body dynamics of many samples, by Pinocchio: regressor, torques, mass matrices, Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from threading import local
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import ModelError, check_shape
from ..linalg import Array, IntArray, shaped
from .inertia import symmetric
from .robot import Robot

T = TypeVar("T")
#: Samples per chunk of rows, and entries of the regressor that are held at a time.
CHUNK, _ENTRIES = 1024, 1_000_000
#: Number of recursions that take the time of one regressor.
_RECURSIONS = 3


class _Known(local):
    """What one thread knows, by robot."""

    def __init__(self) -> None:
        self.of: WeakKeyDictionary[Robot, Any] = WeakKeyDictionary()


def per_robot(function: Callable[[Robot], T]) -> Callable[[Robot], T]:
    """Computes something of each robot once in a thread, for as long as the robot lives."""
    known = _Known()

    @wraps(function)
    def of(robot: Robot) -> T:
        if robot not in known.of:
            known.of[robot] = function(robot)
        value: T = known.of[robot]
        return value

    return of


@per_robot
def _workspace(robot: Robot) -> pin.Data:
    """Pinocchio's workspace: creating one for a hundred joints takes as long as fifty regressors."""
    return robot.model.createData()


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
        Shape (N, n, 10 n_bodies) [unit of torque per unit of parameter], columns as ``inertial_parameters``.

    Raises:
        ShapeError: The arrays disagree.
    """
    check_motion(robot, q, v, a)
    out = np.empty((len(q), robot.model.nv, robot.n_inertial))
    model, data, compute = robot.model, _workspace(robot), pin.computeJointTorqueRegressor
    for k, state in enumerate(zip(*_tree_states(robot, q, v, a), strict=True)):
        out[k] = compute(model, data, *state)
    return robot.coupling.T @ out if robot.coupled else out


def _tree_states(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Pinocchio's configurations, velocities and accelerations of the tree."""
    return robot.configuration(q), robot.spread(np.asarray(v)), robot.spread(np.asarray(a))


def row_columns(
    robot: Robot, rows: Sequence[tuple[Array, IntArray]], q: Array, v: Array, a: Array, spare: Sequence[int] = ()
) -> list[Array]:
    """Returns inertial columns of rows that mix the torques of several joints; the whole regressor is never stored.

    Args:
        rows: Weights of the joints in each row, shape (n,), and its inertial columns.
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        spare: Number of additional columns per row, to be filled by the caller; none if empty.

    Returns:
        Per row, shape (columns and spare ones, N) [unit of torque per unit of parameter].

    Raises:
        ShapeError: The arrays disagree.
    """
    out = [np.empty((len(columns) + more, len(q))) for (_, columns), more in zip(rows, spare or [0] * len(rows), strict=True)]
    step = max(1, _ENTRIES // (robot.n_inertial * robot.model.nv))
    for part in (slice(k, k + step) for k in range(0, len(q), step)):
        whole = regressor(robot, q[part], v[part], a[part])
        for block, (mix, columns) in zip(out, rows, strict=True):
            joints = np.flatnonzero(mix)
            np.einsum("j,njk->kn", mix[joints], whole[:, joints[:, None], columns], out=block[: len(columns), part])
    return out


def rigid_torque(robot: Robot, theta: Array, q: Array, v: Array, a: Array) -> Array:
    """Computes the rigid-body torque, including gravity, shape (N, n) or (N, n, k) [N·m or N].

    By recursion (RNEA); of several models by the regressor. Impossible bodies, such as differences of bodies, cannot be
    expressed about a centre of mass without loss of digits: a possible body is added to each, and its torque is subtracted.

    Args:
        theta: Inertial parameters, shape (10·n_bodies,) or (10·n_bodies, k).
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

    Raises:
        ShapeError: The arrays disagree.
    """
    check_motion(robot, q, v, a)
    theta = np.asarray(theta, dtype=float)
    check_shape("theta", theta.shape, (robot.n_inertial, *theta.shape[1:2]))
    if theta.ndim == 2 and theta.shape[1] <= _RECURSIONS:
        return np.stack([rigid_torque(robot, one, q, v, a) for one in theta.T], axis=-1)
    if theta.ndim == 2:
        out = np.empty((len(q), robot.n, theta.shape[1]))
        step = max(1, _ENTRIES // (robot.n_inertial * robot.model.nv))
        for part in (slice(k, k + step) for k in range(0, len(q), step)):
            out[part] = regressor(robot, q[part], v[part], a[part]) @ theta
        return out
    bodies = theta.reshape(-1, 10)
    size, spread = np.sum(bodies[:, 1:4] ** 2, axis=1), bodies[:, 4] + bodies[:, 6] + bodies[:, 9]
    # possible: nothing, or no smaller than a point at its centre of mass, 2 |m c|² ≤ m tr I
    impossible = bodies.any(axis=1) & ((bodies[:, 0] <= 0) | (2 * size > bodies[:, 0] * spread))
    if impossible.any():
        added = np.outer(np.abs(bodies).sum(axis=1) * impossible, [1, 0, 0, 0, 1, 0, 1, 0, 0, 1]).ravel()
        return rigid_torque(robot, theta + added, q, v, a) - rigid_torque(robot, added, q, v, a)
    out = np.empty((len(q), robot.model.nv))
    model, states = with_inertias(robot, theta), _tree_states(robot, q, v, a)
    if hasattr(pin, "rneaInParallel"):  # since Pinocchio 4: the same loop, without Python's calls
        pin.rneaInParallel(1, pin.ModelPool(model, 1), *(x.T for x in states), out.T)
        return robot.reduced(out)
    data = _workspace(robot)
    for k, state in enumerate(zip(*states, strict=True)):
        out[k] = pin.rnea(model, data, *state)
    return robot.reduced(out)


def mass_matrices(robot: Robot, q: Array) -> Array:
    """Computes the mass matrix of each configuration, without rotors (Featherstone 2008, ch. 6).

    Args:
        q: Shape (N, n) [rad or m].

    Returns:
        Shape (N, n, n) [kg·m², kg·m or kg].
    """
    data = _workspace(robot)
    upper = np.array([np.triu(pin.crba(robot.model, data, pose)) for pose in robot.configuration(q)])
    whole = np.asarray(upper + np.triu(upper, 1).swapaxes(1, 2))
    return robot.coupling.T @ whole @ robot.coupling if robot.coupled else whole


def gravity_torques(robot: Robot, q: Array) -> Array:
    """Computes the gravity torques of the URDF's masses, shape (N, n) [N·m or N]; q of shape (N, n) [rad or m]."""
    data = _workspace(robot)
    return robot.reduced(np.array([pin.computeGeneralizedGravity(robot.model, data, row) for row in robot.configuration(q)]))


def torques_by_gravity(robot: Robot, theta: Array, q: Array) -> Array:
    """Computes the torques at rest per unit of gravity along x, y and z of the base, shape (N, n, 3) [kg·m or kg].

    Args:
        robot: The robot; its gravity vector is not used.
        theta: Inertial parameters, shape (10 n_bodies,).
        q: Joint positions, shape (N, n) [rad or m].
    """
    still = np.zeros_like(q)
    return np.stack([rigid_torque(robot.with_gravity(axis), theta, q, still, still) for axis in np.eye(3)], axis=2)


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
    J, place = np.empty((len(q), 6, robot.model.nv)), np.empty((len(q), 3))
    for k, row in enumerate(robot.configuration(q)):
        pin.computeJointJacobians(model, data, row)
        J[k], place[k] = pin.getJointJacobian(model, data, last, frame).reshape(6, -1), data.oMi[last].translation
    return robot.reduced(J), place


def with_inertias(robot: Robot, theta: ArrayLike, rotor_inertia: ArrayLike | None = None) -> pin.Model:
    """Returns the robot's Pinocchio model with other inertial parameters, for dynamics algorithms.

    Args:
        theta: Inertial parameters, shape (10 n_bodies,).
        rotor_inertia: Reflected rotor inertia, shape (n,) [kg·m² or kg], put into ``armature``; 0 if None.

    Raises:
        ModelError: A body with first moments but no mass.
        ShapeError: Wrong shapes.
    """
    bodies = shaped("theta", theta, (robot.n_inertial,)).reshape(-1, 10)
    model = robot.model.copy()
    for j, (ten, body) in enumerate(zip(bodies, robot.bodies, strict=True), 1):
        if ten[0] != 0:
            model.inertias[j] = pin.Inertia.FromDynamicParameters(ten)
        elif np.any(ten[1:4] != 0):  # Pinocchio stores the centre of mass
            got, where = ten[1:4].tolist(), f"body '{body.name}'"
            raise ModelError("first moments without mass", where=where, got=got, remedy="give it a mass")
        else:
            model.inertias[j] = pin.Inertia(0.0, np.zeros(3), symmetric(ten[4:]))
    rotors = np.zeros(robot.n) if rotor_inertia is None else shaped("rotor_inertia", rotor_inertia, (robot.n,))
    model.armature = robot.in_tree(rotors)
    return model
