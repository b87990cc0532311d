"""Forward kinematics over the frames of a motion, and the view direction derived from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ..linalg import Array
from ..model.geometry import Visual, reach, tip_point
from ..model.robot import Robot

_VIEW_FRAMES = 80


@dataclass(frozen=True, eq=False)
class BodyPoses:
    """Poses of a robot's bodies in every frame, in a world whose z axis points up.

    Attributes:
        base: Placement of the robot's root in the world, shape (4, 4).
        poses: Position [m] and quaternion (x, y, z, w) of each joint's frame, shape (F, n_bodies, 7).
        tip: Path of the tip, shape (F, 3) [m].
        extent: Points around everything drawn, over the motion, shape (K, 3) [m].
        foot: Centre of the lowest points of the fixed parts, shape (3,) [m].
    """

    base: Array
    poses: Array
    tip: Array
    extent: Array
    foot: Array


def body_poses(robot: Robot, shapes: Sequence[Visual], position: Array) -> BodyPoses:
    """Computes the forward kinematics over a motion; position of shape (F, n) [rad or m]."""
    model, data = robot.model, robot.model.createData()
    base = upright(robot)
    configurations = robot.configuration(position)
    poses = np.empty((len(position), len(robot.bodies), 7))
    root = pin.SE3(base)
    for k, configuration in enumerate(configurations):
        pin.forwardKinematics(model, data, configuration)
        for j in range(len(robot.bodies)):
            poses[k, j] = pin.SE3ToXYZQUAT(root * data.oMi[j + 1])
    joint, point = tip_point(robot, shapes)
    tip = transform_points(poses[:, joint - 1], point[None])[:, 0]
    frames = np.unique(np.linspace(0, len(poses) - 1, _VIEW_FRAMES).astype(int))
    fixed, moving = [base[None, :3, 3]], [tip[frames], poses[frames, :, :3].reshape(-1, 3)]
    for shape in shapes:
        carrier, placement = robot.link_placements[shape.link]
        corners = shape.corners() @ placement[:3, :3].T + placement[:3, 3]
        if carrier < 0:
            fixed.append(corners @ base[:3, :3].T + base[:3, 3])
        else:
            moving.append(transform_points(poses[frames, carrier], corners).reshape(-1, 3))
    still = np.concatenate(fixed)
    low = still[still[:, 2] < still[:, 2].min() + 1e-3 * reach(robot)]
    return BodyPoses(base, poses, tip, outermost(np.concatenate([still, *moving])), low.mean(axis=0))


def upright(robot: Robot) -> Array:
    """Placement of the robot's root for which gravity points down, shape (4, 4)."""
    gravity = robot.gravity
    size = float(np.linalg.norm(gravity))
    placement = np.eye(4)
    if size > 1e-9 and gravity[2] > -size * (1 - 1e-12):
        placement[:3, :3] = pin.Quaternion.FromTwoVectors(gravity / size, np.array([0.0, 0.0, -1.0])).matrix()
    return placement


def transform_points(poses: Array, points: Array) -> Array:
    """Transforms points of a body into the world in every frame, shape (F, K, 3) [m].

    Args:
        poses, points: Shape (F, 7): position and quaternion (x, y, z, w); shape (K, 3) [m], in the body's frame.
    """
    from scipy.spatial.transform import Rotation

    rotation = Rotation.from_quat(poses[:, 3:]).as_matrix()
    return np.asarray(np.einsum("fij,kj->fki", rotation, points) + poses[:, None, :3])


def view_direction(extents: Array) -> Array:
    """Best view direction, a unit vector: across the widest horizontal direction of a motion, slightly from the side and above.

    Args:
        extents: Points around the moving parts, shape (K, 3) [m].
    """
    flat = extents[:, :2] - extents[:, :2].mean(axis=0)
    values, vectors = np.linalg.eigh(flat.T @ flat)
    wide = vectors[:, 1] if values[1] > 1.3 * values[0] else np.array([0.0, 1.0])
    across = np.array([-wide[1], wide[0]])
    across = across if across @ [0.8, -0.6] > 0 else -across
    turn, rise = np.deg2rad(28.0), np.deg2rad(17.0)
    side = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ across
    return np.array([*(np.cos(rise) * side), np.sin(rise)])


def outermost(points: Array) -> Array:
    """Selects the few outermost points of a cloud, shape (at most 200, 3) [m]; points of shape (K, 3) [m]."""
    k, golden = np.arange(200), np.pi * (3 - np.sqrt(5))
    z = 1 - (2 * k + 1) / 200
    around = np.sqrt(1 - z * z)
    directions = np.column_stack([around * np.cos(golden * k), around * np.sin(golden * k), z])
    return np.asarray(points[np.unique(np.argmax(points @ directions.T, axis=0))])
