"""Spinning rotors on moving links: inertial coupling of motors and links (docs/theory.md §4).

Rotor i is carried by the body before joint i and spins about the unit axis z_i, fixed in that body. Its spin is
``s = z_i·ω + r θ'_i`` with ω of the carrying body. About its axis it has the inertia Υ; its mass and transverse
inertia belong to the carrying body's ten parameters. This module is pure kinematics, vectorised over samples and
independent of Pinocchio, on which the simulated plant is based, so that the two validate each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..errors import check_shape
from ..linalg import Array
from .robot import Robot


@dataclass(frozen=True, eq=False)
class RotorCoupling:
    """Effect of each rotor on links and motors per unit of its inertia *after the gear*, Ia = r²Υ.

    Attributes:
        link: Shape (N, n, n): torque on joint j by rotor k [1/s²], zero where joint j does not move the rotor.
        motor: Shape (N, n): contribution of the carrier's rotation to θ'' in the motor's balance [rad/s² or m/s²].
    """

    link: Array
    motor: Array


def joint_axes(robot: Robot) -> Array:
    """Returns the axis of every joint in its own frame.

    Returns:
        Unit vectors, shape (n, 3).
    """
    model = robot.model
    data = model.createData()
    pin.computeJointJacobians(model, data, pin.neutral(model))
    axes = np.empty((robot.n, 3))
    for j in range(robot.n):
        jacobian = np.asarray(pin.getJointJacobian(model, data, j + 1, pin.ReferenceFrame.LOCAL))
        column = jacobian.reshape(6, -1)[:, model.joints[j + 1].idx_v]  # Pinocchio returns a vector for one joint
        axes[j] = column[:3] if robot.prismatic[j] else column[3:]
    return axes


def carriers_of_rotors(robot: Robot) -> NDArray[np.intp]:
    """Returns the body on which each joint's motor is mounted.

    Returns:
        Shape (n,): body indices, −1 for the base.
    """
    return np.array([int(parent) - 1 for parent in list(robot.model.parents)[1:]], dtype=np.intp)


def rotor_coupling(robot: Robot, ratio: Array, q: Array, v: Array, a: Array, vm: Array, am: Array) -> RotorCoupling:
    """Computes the inertial coupling torques of rotors and links, without the spring and Ia·θ'' itself.

    Args:
        ratio: Gear ratios r, shape (n,); may be negative.
        q, v, a: Link motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        vm, am: Motor motion after the gear, shape (N, n) [rad/s, rad/s² or m/s, m/s²].

    Returns:
        The coupling, per unit of Ia.

    Raises:
        ShapeError: The arrays disagree.
    """
    n, count = robot.n, len(q)
    for name, array in (("v", v), ("a", a), ("vm", vm), ("am", am)):
        check_shape(name, np.shape(array), (count, n))
    axes, placed = joint_axes(robot), [placement.rotation for placement in list(robot.model.jointPlacements)[1:]]
    omega, alpha, jacobian = _turning(robot, axes, placed, q, v, a)
    link, motor = np.zeros((count, n, n)), np.zeros((count, n))
    for k, body in enumerate(carriers_of_rotors(robot)):
        if body < 0:  # mounted on the base: no coupling
            continue
        z = placed[k] @ axes[k]
        spin = omega[body] @ z + ratio[k] * vm[:, k]
        spin_rate = alpha[body] @ z + ratio[k] * am[:, k]
        moment = spin_rate[:, None] * z + spin[:, None] * np.cross(omega[body], z)
        link[:, :, k] = np.einsum("nxj,nx->nj", jacobian[body], moment) / ratio[k] ** 2
        motor[:, k] = alpha[body] @ z / ratio[k]
    return RotorCoupling(link, motor)


def _turning(
    robot: Robot, axes: Array, placed: list[Array], q: Array, v: Array, a: Array
) -> tuple[list[Array], list[Array], list[Array]]:
    """Returns angular velocity (N, 3), acceleration (N, 3) and Jacobian (N, 3, n) of each body in its own frame."""
    count, n = q.shape
    omega: list[Array] = []
    alpha: list[Array] = []
    jacobian: list[Array] = []
    for j, parent in enumerate(carriers_of_rotors(robot)):
        turns = not robot.prismatic[j]
        back = np.broadcast_to(placed[j].T, (count, 3, 3))
        if turns:
            back = _rotation(axes[j], -q[:, j]) @ back
        if parent < 0:
            w, dw, J = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3, n))
        else:
            w, dw = ((back @ x[parent][:, :, None])[:, :, 0] for x in (omega, alpha))
            J = back @ jacobian[parent]
        if turns:
            own = v[:, j, None] * axes[j]
            dw = dw + a[:, j, None] * axes[j] + np.cross(w, own)
            w = w + own
            J[:, :, j] += axes[j]
        omega.append(w)
        alpha.append(dw)
        jacobian.append(J)
    return omega, alpha, jacobian


def _rotation(axis: Array, angle: Array) -> Array:
    """Returns rotations by ``angle`` (N,) [rad] about one axis (Rodrigues' formula), shape (N, 3, 3)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.asarray(np.eye(3) + s * K + (1.0 - c) * (K @ K))
