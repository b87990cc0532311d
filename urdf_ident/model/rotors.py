"""Spinning rotors on moving links: inertial coupling of motors and links (docs/theory.md §4).

Rotor i is carried by the body before joint i and spins about the unit axis z_i, fixed in that body. Its spin is
``s = z_i·ω + r θ'_i`` with ω of the carrying body. About its axis it has the inertia Υ; its mass and transverse
inertia belong to the carrying body's ten parameters. This module is pure kinematics, vectorised over samples and
independent of Pinocchio, on which the simulated plant is based, so that the two validate each other.
"""

from __future__ import annotations

import numpy as np

from ..errors import check_shape
from ..linalg import Array
from .inertia import skew
from .robot import Robot


def rotor_coupling(robot: Robot, ratio: Array, q: Array, v: Array, a: Array, vm: Array, am: Array) -> tuple[Array, Array]:
    """Computes the inertial coupling torques of rotors and links, without the spring and Ia·θ'' itself.

    Args:
        ratio: Gear ratios r, shape (n,); may be negative.
        q, v, a: Link motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        vm, am: Motor motion after the gear, shape (N, n) [rad/s, rad/s² or m/s, m/s²].

    Returns:
        Per unit of each rotor's inertia after the gear, Ia = r²Υ: torque on joint j by rotor k, shape (N, n, n) [1/s²], zero
        where joint j does not move the rotor; and the contribution of the carrier's rotation to θ'' in the motor's balance,
        shape (N, n) [rad/s² or m/s²].

    Raises:
        ShapeError: The arrays disagree.
    """
    n, count = robot.n, len(q)
    for name, array in (("v", v), ("a", a), ("vm", vm), ("am", am)):
        check_shape(name, np.shape(array), (count, n))
    # angular velocity (N, 3), acceleration (N, 3) and Jacobian (N, 3, n) of each body in its own frame
    omega, alpha, jacobian = list[Array](), list[Array](), list[Array]()
    for j, (parent, axis) in enumerate(zip(robot.parents, robot.axes, strict=True)):
        turns = not robot.prismatic[j]
        back = np.broadcast_to(robot.placements[j, :3, :3].T, (count, 3, 3))
        if turns:
            K, angle = skew(axis), -q[:, j, None, None]  # Rodrigues' formula
            back = (np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)) @ back
        if parent < 0:
            w, dw, J = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3, n))
        else:
            w, dw = ((back @ x[parent][:, :, None])[:, :, 0] for x in (omega, alpha))
            J = back @ jacobian[parent]
        if turns:
            own = v[:, j, None] * axis
            dw = dw + a[:, j, None] * axis + np.cross(w, own)
            w = w + own
            J[:, :, j] += axis
        omega.append(w)
        alpha.append(dw)
        jacobian.append(J)
    link, motor = np.zeros((count, n, n)), np.zeros((count, n))
    for k, body in enumerate(robot.parents):
        if body < 0:  # mounted on the base: no coupling
            continue
        z = robot.placements[k, :3, :3] @ robot.axes[k]
        spin = omega[body] @ z + ratio[k] * vm[:, k]
        moment = (alpha[body] @ z + ratio[k] * am[:, k])[:, None] * z + spin[:, None] * np.cross(omega[body], z)
        link[:, :, k] = np.einsum("nxj,nx->nj", jacobian[body], moment) / ratio[k] ** 2
        motor[:, k] = alpha[body] @ z / ratio[k]
    return link, motor
