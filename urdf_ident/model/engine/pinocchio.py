"""The reference engine: Pinocchio's joint-torque regressor, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from ...errors import check_shape
from ...linalg import Array, shaped
from ..inertia import to_com
from ..robot import Robot

#: Samples per chunk of the regressor; small enough to stay in the cache.
CHUNK = 512


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
    out = np.empty((len(q), robot.n, 10 * robot.n))
    configuration = robot.configuration(q)
    for name, array in (("v", v), ("a", a)):
        check_shape(name, np.shape(array), (len(q), robot.n))
    model, data = robot.model, robot.model.createData()
    compute = pin.computeJointTorqueRegressor
    for k, (qk, vk, ak) in enumerate(zip(configuration, np.asarray(v), np.asarray(a), strict=True)):
        out[k] = compute(model, data, qk, vk, ak)
    return out


def regressor_chunks(robot: Robot, q: Array, v: Array, a: Array) -> Iterator[tuple[slice, Array]]:
    """Yields the regressor in chunks, so that memory does not grow with the log.

    Args:
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

    Yields:
        The slice of at most :data:`CHUNK` samples and its regressor, shape (≤ CHUNK, n, 10 n).
    """
    for begin in range(0, len(q), CHUNK):
        part = slice(begin, min(begin + CHUNK, len(q)))
        yield part, regressor(robot, q[part], v[part], a[part])


def with_inertias(robot: Robot, theta: Array, rotor_inertia: Array | None = None) -> pin.Model:
    """Returns a Pinocchio model with other inertial parameters, for dynamics algorithms.

    Args:
        theta: Inertial parameters, shape (10 n,).
        rotor_inertia: Reflected rotor inertia, shape (n,) [kg·m² or kg], put into ``armature``; 0 if None.

    Returns:
        A new model; the masses must not be zero (Pinocchio stores the centre of mass).
    """
    theta = shaped("theta", theta, (10 * robot.n,))
    model = robot.model.copy()
    for j, (mass, com, inertia) in enumerate(zip(*to_com(theta.reshape(-1, 10)), strict=True)):
        model.inertias[j + 1] = pin.Inertia(float(mass), com, inertia)
    model.armature = np.zeros(robot.n) if rotor_inertia is None else np.asarray(rotor_inertia, dtype=float)
    return model
