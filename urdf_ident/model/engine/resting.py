"""Inertial columns of a motion in which most joints rest.

Bodies between which no joint moves form one rigid group. The motion of a group and its regressor are those of one body, to
whose frame the parameters of the others are transformed: where one joint of a hundred moves, there are two groups, and that
of the base does not move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...linalg import Array, BoolArray, IntArray
from ..inertia import PSEUDO_BASIS, SPATIAL_BASIS, from_pseudo_inertia, motion_transform, skew
from ..robot import Robot
from . import pinocchio


def moving_joints(q: Array, v: Array, a: Array) -> BoolArray:
    """Returns whether each joint moves, shape (n,).

    Args:
        q, v, a: Motion of the joints, shape (N, n) each [rad, rad/s, rad/s² or m, m/s, m/s²].
    """
    return np.asarray((q != q[:1]).any(axis=0) | v.any(axis=0) | a.any(axis=0))


def columns_of_few(
    robot: Robot, groups: Sequence[tuple[Array, IntArray]], q: Array, v: Array, a: Array, out: Sequence[Array]
) -> None:
    """Writes inertial columns of some rows.

    Args:
        groups: Weights of the joint rows in each row, shape (n,), and its columns.
        q, v, a: Motion of the joints, shape (N, n) each [rad, rad/s, rad/s² or m, m/s, m/s²]; every moving one takes time.
        out: Arrays to be filled, one per row, shape (≥ columns, N).
    """
    moving = moving_joints(q, v, a)
    still = np.zeros_like(q[:1])
    resting = pinocchio.regressor(robot, q[:1], still, still)[0]
    root, rows, transforms = _rigid_groups(robot, moving, q, v, a)
    carried = np.zeros((robot.n, robot.n), dtype=bool)
    for joint, bodies in enumerate(robot.subtrees):
        carried[joint, bodies] = True
    for part, (mix, columns) in zip(out, groups, strict=True):
        joints, owners = np.flatnonzero(mix), root[columns // 10]
        constant = mix[joints] @ resting[joints[:, None], columns]
        part[: len(columns)] = np.where(owners < 0, constant, 0.0)[:, None]
        for mover, row in rows.items():
            for joint in joints.tolist():
                own = np.flatnonzero((owners == mover) & carried[joint, columns // 10])
                if len(own):
                    part[own] += transforms[columns[own]] @ (mix[joint] * row[:, joint].T)


def _rigid_groups(robot: Robot, moving: BoolArray, q: Array, v: Array, a: Array) -> tuple[IntArray, dict[int, Array], Array]:
    """Groups of bodies, by the joint that moves them.

    Returns:
        The joint of each body's group, −1 at rest; by joint, the coefficients of the joint rows in the ten parameters of the
        group, shape (N, n, 10); and for each parameter its effect on those of its group, shape (10 n, 10).
    """
    local = robot.placements @ _joint_motion(robot.twists, q[0])
    root, placed = np.full(robot.n, -1), np.empty((robot.n, 4, 4))  # of each body in its group
    place = {-1: np.broadcast_to(np.eye(4), (len(q), 4, 4))}  # of each group in the base
    for j, parent in enumerate(robot.parents):
        above, before = (-1, np.eye(4)) if parent < 0 else (int(root[parent]), placed[parent])
        root[j], placed[j] = (j, np.eye(4)) if moving[j] else (above, before @ local[j])
        if moving[j]:
            place[j] = place[above] @ (before @ robot.placements[j]) @ _joint_motion(robot.twists[j], q[:, j])
    axes = np.einsum("jik,jk->ji", motion_transform(np.linalg.inv(placed)), robot.twists)  # in their groups
    gravity = np.append(-robot.gravity, np.zeros(3))
    speed, acceleration = {-1: np.zeros((len(q), 6))}, {-1: np.broadcast_to(gravity, (len(q), 6))}  # in the base
    rows = dict[int, Array]()
    for j in map(int, np.flatnonzero(moving)):
        above = -1 if robot.parents[j] < 0 else int(root[robot.parents[j]])
        axis = motion_transform(np.linalg.inv(place[j])) @ axes[j]
        speed[j] = speed[above] + axis * v[:, j, None]
        acceleration[j] = acceleration[above] + axis * a[:, j, None] + _cross(speed[j], axis * v[:, j, None])
        here = motion_transform(place[j])
        wrench = _wrench(*((here @ x[j][:, :, None])[:, :, 0] for x in (speed, acceleration)))
        rows[j] = np.zeros((len(q), robot.n, 10))
        for group, there in place.items():
            own = [k for k in range(robot.n) if root[k] == group and (group == j or j in robot.subtrees[k])]
            if own:
                rows[j][:, own] = axes[own] @ (here @ motion_transform(np.linalg.inv(there))).swapaxes(1, 2) @ wrench
    moved = placed[:, None] @ PSEUDO_BASIS @ placed[:, None].swapaxes(2, 3)
    return root, rows, from_pseudo_inertia(moved).reshape(-1, 10)


def _joint_motion(twists: Array, positions: Array) -> Array:
    """Placements that joints make at some positions, shape (..., 4, 4), of revolute or prismatic joints."""
    turn = skew(twists[..., 3:])
    angle = np.asarray(positions)[..., None, None]
    out = np.zeros((*np.shape(positions), 4, 4))
    out[..., :3, :3] = np.eye(3) + np.sin(angle) * turn + (1 - np.cos(angle)) * (turn @ turn)
    out[..., :3, 3] = twists[..., :3] * np.asarray(positions)[..., None]
    out[..., 3, 3] = 1.0
    return out


def _cross(x: Array, y: Array) -> Array:
    """Cross product of twists, shape (N, 6)."""
    linear = np.cross(x[:, 3:], y[:, :3]) + np.cross(x[:, :3], y[:, 3:])
    return np.concatenate([linear, np.cross(x[:, 3:], y[:, 3:])], axis=1)


def _wrench(speed: Array, acceleration: Array) -> Array:
    """Wrench of a body per unit of each of its parameters, in its frame, shape (N, 6, 10): ``I a + v ×* I v``."""
    momentum = np.einsum("pij,sj->spi", SPATIAL_BASIS, speed)
    linear, angular = speed[:, None, :3], speed[:, None, 3:]
    force, moment = np.cross(angular, momentum[..., :3]), np.cross(angular, momentum[..., 3:])
    moment = moment + np.cross(linear, momentum[..., :3])
    total = np.einsum("pij,sj->spi", SPATIAL_BASIS, acceleration) + np.concatenate([force, moment], axis=2)
    return np.asarray(total.swapaxes(1, 2))
