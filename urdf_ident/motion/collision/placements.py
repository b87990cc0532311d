"""Vectorised forward kinematics of many configurations, and bounds on the speed of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ...model.inertia import skew
from ...model.robot import Robot


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses of bodies in N configurations; body 0 is the robot's root, body j + 1 is moved by joint j of the tree.

    Attributes:
        rotation: Shape (N, n_bodies + 1, 3, 3).
        origin: Of the joint frames, shape (N, n_bodies + 1, 3) [m].
        axes: Directions of the joint axes, shape (N, n_bodies, 3).
    """

    rotation: Array
    origin: Array
    axes: Array

    def points(self, body: int, local: Array) -> Array:
        """Returns the positions of points fixed to a body, shape (N, K, 3) [m], in the root's frame.

        Args:
            local: Shape (K, 3) [m].
        """
        turned = self.rotation[:, body].reshape(-1, 3) @ local.T  # one large product is ten times as fast as many small ones
        return np.asarray(turned.reshape(len(self.origin), 3, len(local)).swapaxes(1, 2) + self.origin[:, body, None])


class BodyKinematics:
    """Forward kinematics of many configurations, by the joints of the tree: those that mimic others are among them.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.n, self.prismatic, self._axes = robot, len(robot.tree_joints), robot.slides, robot.axes
        self.parents = [parent + 1 for parent in robot.parents]
        self._translation = robot.placements[:, :3, 3]
        #: Per joint [R, RK, RK²], with its rotation R and the cross-product matrix K of its axis, shape (3, 9).
        self._turns = [
            np.hstack([placement[:3, :3] @ power for power in (np.eye(3), K, K @ K)])
            for placement, K in zip(robot.placements, map(skew, robot.axes), strict=True)
        ]
        #: moves[b, j]: whether joint j moves body b.
        self.moves = np.zeros((self.n + 1, self.n), dtype=bool)
        for j, parent in enumerate(self.parents):
            self.moves[j + 1] = self.moves[parent]
            self.moves[j + 1, j] = True

    def evaluate(self, q: Array) -> Poses:
        """Computes the poses of the bodies; q: positions of the independent joints, shape (N, n) [rad or m]."""
        count, q = len(q), self.robot.positions_in_tree(q)
        by_body, origin = np.empty((self.n + 1, count, 3, 3)), np.zeros((count, self.n + 1, 3))
        rotation, axes = by_body.swapaxes(0, 1), np.empty((count, self.n, 3))
        by_body[0] = np.eye(3)
        sin, versine = np.sin(q), 1.0 - np.cos(q)
        for j, parent in enumerate(self.parents):
            before = by_body[parent].reshape(-1, 3)
            frame, first, second = (before @ self._turns[j]).reshape(count, 3, 3, 3).transpose(2, 0, 1, 3)
            axes[:, j] = frame @ self._axes[j]
            origin[:, j + 1] = origin[:, parent] + (before @ self._translation[j]).reshape(count, 3)
            if self.prismatic[j]:
                by_body[j + 1] = frame
                origin[:, j + 1] += q[:, j, None] * axes[:, j]
            else:  # Rodrigues' formula
                by_body[j + 1] = frame + sin[:, j, None, None] * first + versine[:, j, None, None] * second
        return Poses(rotation, origin, axes)

    def lever_arms(self, body: int, radius: float, stroke: Array) -> Array:
        """Bounds the distance of a body's points from each joint in any configuration.

        Args:
            radius: Largest distance of the points from the body's origin [m].
            stroke: Largest ``|q|`` of the prismatic joints of the tree, shape (n_bodies,) [m].

        Returns:
            Shape (n_bodies,) [m]; 1 for prismatic joints: largest displacement of a point per unit of the joint.
        """
        step = np.linalg.norm(self._translation, axis=1) + np.where(self.prismatic, stroke, 0.0)
        difference = self.moves[body] ^ self.moves[1:]  # edges of the tree between the body and joint j's body
        return np.where(self.prismatic, 1.0, np.where(difference, step, 0.0).sum(axis=1) + radius)

    def chain(self, first: int, second: int) -> list[int]:
        """Returns the joints between two bodies, in order from the first to the second.

        Returns:
            Indices of joints of the tree.
        """
        up = [j for j in range(self.n - 1, -1, -1) if self.moves[first, j] and not self.moves[second, j]]
        return up + [j for j in range(self.n) if self.moves[second, j] and not self.moves[first, j]]
