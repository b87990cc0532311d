"""Distances between the links of a robot and to its surroundings.

Coal computes them with their nearest points, which give the gradient of the distance. The poses of many configurations, and
bounds on the speed of points, come from vectorised kinematics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import LimitError
from ...linalg import Array, BoolArray, IntArray, one_each
from ...model.inertia import skew
from ...model.robot import Robot
from ...samples import ReadOnly, freeze_arrays
from .world import World


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


@dataclass(frozen=True, eq=False)
class Solid(ReadOnly):
    """One solid, fixed to a body.

    Attributes:
        body: Index of the body (0: the robot's root, and the world).
        of_world: Whether it belongs to the world rather than the robot.
        placement: Shape (4, 4) [m], in the body's frame.
        reach: Largest distance of its points from the body's origin [m]; inf for a plane.
        centre: Centre of a bounding sphere, shape (3,) [m], in the body's frame.
        radius: Of that sphere [m].
        half: Half edges of a bounding box, oriented like ``placement`` and centred at ``centre``, shape (3,) [m].
        assumed: Whether it replaces geometry that the URDF lacks.
    """

    name: str
    body: int
    of_world: bool
    geometry: Any
    placement: Array
    reach: float
    centre: Array
    radius: float
    half: Array
    assumed: bool = False


@dataclass(frozen=True)
class Pair:
    """Two solids that must not touch, or the tool and its box.

    Attributes:
        first: Index of a solid of the robot.
        second: Index of a solid; -1 for the tool's box.
    """

    first: int
    second: int
    names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Collisions:
    """Pairs of solids that must keep their distance; created by :func:`.find.find_collisions`.

    Attributes:
        robot: The robot.
        world: Its surroundings.
        solids: All solids.
        pairs: Pairs that can touch but must not; the tool and its box last.
        required: Smallest distance allowed of each pair, shape (P,) [m].
        tool: Pinocchio's frame of the tool, body and point, or None.
        notes: Notes for the user: replacement capsules, excluded pairs.
    """

    robot: Robot
    world: World
    solids: tuple[Solid, ...]
    pairs: tuple[Pair, ...]
    required: Array
    tool: tuple[int, Array] | None
    notes: tuple[str, ...] = ()
    kinematics: BodyKinematics = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinematics", BodyKinematics(self.robot))
        freeze_arrays(self)

    def distances(self, q: ArrayLike) -> Array:
        """Computes signed distances of all pairs.

        Args:
            q: Joint positions, shape (N, n) or (n,) [rad or m].

        Returns:
            Shape (N, P) [m]; negative if they overlap. For the tool: its distance from the nearest face of its box.
        """
        positions = np.atleast_2d(np.asarray(q, dtype=float))
        shape = (len(positions), len(self.pairs))
        rows, pairs = (index.ravel() for index in np.indices(shape))
        return self.exact(self.kinematics.evaluate(positions), rows, pairs, -np.inf)[0].reshape(shape)

    def require_free(self, q: ArrayLike, what: str = "the start pose") -> None:
        """Raises an error if a pose violates a required distance.

        Args:
            q: Shape (n,) [rad or m].
            what: Description of the pose, for the message.

        Raises:
            LimitError: With the pair and its distance.
        """
        pose = one_each("q", q, self.robot.n)
        if not self.pairs:
            return
        distance = self.distances(pose)[0]
        p = int(np.argmin(distance - self.required))
        if distance[p] >= self.required[p]:
            return
        state = "is in collision" if distance[p] < 0 else "is too close"
        if self.pairs[p].second < 0:
            state = "puts the tool outside its box"
        raise LimitError(
            f"{what} {state}",
            where=" and ".join(self.pairs[p].names),
            got=f"{distance[p]:.4g} m",
            expected=f"at least {self.required[p]:.4g} m",
            remedy="choose another pose or clearance, or correct the world",
        )

    def freed(
        self,
        pose: Array,
        margin: Callable[[Array], Array],
        draw: Callable[[], Array],
        tries: int,
        movable: BoolArray | None = None,
    ) -> Array:
        """Moves the joints between links that are too close until none are, where hardly any random pose is free.

        A thumb and its palm, or the tubes of a telescopic arm, are too close in most poses.

        Args:
            pose: Shape (n,) [rad or m].
            margin: Distances of a pose, shape (n,), less those that are required, shape (P,) [m].
            draw: A random pose, shape (n,) [rad or m].
            tries: Number of random poses from which positions are taken.
            movable: Joints that may be moved, shape (n,); default: all.

        Returns:
            A free pose, or the best one found; shape (n,).
        """
        here = margin(pose)
        for _ in range(tries):
            if here.min(initial=np.inf) > 0:
                break
            chain = self.kinematics.chain(*self.bodies[int(np.argmin(here))])
            joints = np.flatnonzero(self.robot.coupling[chain].any(axis=0)).tolist()
            joints = [j for j in joints if movable is None or movable[j]]
            if not joints:
                break
            other = pose.copy()
            other[joints] = draw()[joints]
            there = margin(other)
            if np.minimum(there, 0.0).sum() > np.minimum(here, 0.0).sum():
                pose, here = other, there
        return pose

    def rough(self, poses: Poses, rows: IntArray, pairs: IntArray) -> Array:
        """Computes fast lower bounds of distances, from one sphere around each link, shape (M,) [m].

        Args:
            poses: The bodies in N configurations.
            rows: Indices of configurations, shape (M,).
            pairs: Indices of pairs, shape (M,).
        """
        first, second = self._of_pairs[pairs].T
        out = np.empty(len(rows))
        bodies = self._placements[0]
        centre = np.array([solid.centre for solid in self.solids]).reshape(-1, 3)
        radius = np.array([solid.radius for solid in self.solids])
        of_world = np.array([solid.of_world for solid in self.solids], dtype=bool)

        def middle(which: IntArray, solids: IntArray) -> Array:
            """Centres of the spheres of some links, shape (k, 3) [m]."""
            frames = poses.rotation[rows[which], bodies[solids]]
            return np.asarray((frames @ centre[solids][:, :, None])[:, :, 0] + poses.origin[rows[which], bodies[solids]])

        solid = np.flatnonzero(second >= 0)
        links, objects = solid[~of_world[second[solid]]], solid[of_world[second[solid]]]
        apart = np.linalg.norm(middle(links, first[links]) - middle(links, second[links]), axis=1)
        out[links] = apart - radius[first[links]] - radius[second[links]]
        for k in np.unique(second[objects]).tolist():
            beside = objects[second[objects] == k]
            points, there = middle(beside, first[beside]), self.solids[k]
            if np.isinf(there.radius):  # a plane
                lower = points @ there.geometry.n - there.geometry.d
            else:
                beyond = np.abs((points - there.centre) @ there.placement[:3, :3]) - there.half
                outside = np.maximum(beyond, 0.0)
                lower = np.sqrt(np.einsum("mi,mi->m", outside, outside)) + np.minimum(beyond.max(axis=1), 0.0)
            out[beside] = lower - radius[first[beside]]
        tool = np.flatnonzero(second < 0)
        if len(tool):
            out[tool] = self._tool_margin(poses.points(self.tool[0], self.tool[1][None])[rows[tool], 0])[0]  # type: ignore[index]
        return out

    def exact(self, poses: Poses, rows: IntArray, pairs: IntArray, within: float = np.inf) -> tuple[Array, Array, Array]:
        """Computes distances with Coal, and their nearest points.

        Args:
            poses: The bodies in N configurations.
            rows: Indices of configurations, shape (M,).
            pairs: Indices of pairs, shape (M,).
            within: Distance beyond which points are not computed but zero [m].

        Returns:
            Distances, shape (M,) [m], and the nearest points on the first and second solid, shape (M, 3) [m] each, in
            the root's frame.
        """
        import coal  # type: ignore[import-untyped]

        distance, near = np.empty(len(rows)), np.zeros((2, len(rows), 3))
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        first, second = coal.Transform3s(), coal.Transform3s()
        tool = self._of_pairs[pairs, 1] < 0
        for m in np.flatnonzero(tool).tolist():
            body, local = self.tool  # type: ignore[misc]
            point = poses.rotation[rows[m], body] @ local + poses.origin[rows[m], body]
            margin, face = self._tool_margin(point[None])
            normal = self.world.root[:3, :3].T[:, int(face[0]) % 3] * (1.0 if face[0] < 3 else -1.0)
            distance[m], near[:, m] = margin[0], (point, point - margin[0] * normal)
        solid = np.flatnonzero(~tool)
        placed = (self._placed(poses, rows[solid], self._of_pairs[pairs[solid], k]) for k in (0, 1))
        measures: dict[int, Any] = {}
        for m, p, *places in zip(solid.tolist(), pairs[solid].tolist(), *(x for pair in placed for x in pair), strict=True):
            if p not in measures:
                pair = self.pairs[p]
                measures[p] = coal.ComputeDistance(self.solids[pair.first].geometry, self.solids[pair.second].geometry)
            first.setTransform(*places[:2])
            second.setTransform(*places[2:])
            result.clear()
            distance[m] = gap = measures[p](first, second, request, result)
            if gap < within:
                near[0, m], near[1, m] = result.getNearestPoint1(), result.getNearestPoint2()
        return distance, near[0], near[1]

    @cached_property
    def _of_pairs(self) -> IntArray:
        """Indices of the two solids of each pair, −1 for the tool's box, shape (P, 2)."""
        return np.array([(pair.first, pair.second) for pair in self.pairs], dtype=np.intp).reshape(-1, 2)

    @cached_property
    def _placements(self) -> tuple[IntArray, Array, Array]:
        """Body of each solid, shape (K,), and rotation and position in its frame, (K, 3, 3) and (K, 3) [m]."""
        frames = np.array([solid.placement for solid in self.solids]).reshape(-1, 4, 4)
        bodies = np.array([solid.body for solid in self.solids], dtype=np.intp)
        return bodies, frames[:, :3, :3].copy(), frames[:, :3, 3].copy()

    def _placed(self, poses: Poses, rows: IntArray, solids: IntArray) -> tuple[Array, Array]:
        """Returns rotations and positions of solids in configurations, shapes (M, 3, 3) and (M, 3) [m]."""
        bodies, turns, places = self._placements
        frame = poses.rotation[rows, bodies[solids]]
        moved = (frame @ places[solids][:, :, None])[:, :, 0] + poses.origin[rows, bodies[solids]]
        return frame @ turns[solids], moved

    def gradients(self, poses: Poses, rows: IntArray, pairs: IntArray, first: Array, second: Array, distance: Array) -> Array:
        """Returns the gradients of distances with respect to the joints, shape (M, n) [m/rad or 1].

        Args:
            poses: The bodies.
            rows: Shape (M,).
            pairs: Shape (M,).
            first: Nearest points from :meth:`exact`, shape (M, 3) [m].
            second: Shape (M, 3) [m].
            distance: Shape (M,) [m].
        """
        moves = self.kinematics.moves
        body_a, body_b = self.bodies[pairs].T
        direction = (first - second) / np.where(np.abs(distance) > 1e-12, distance, np.inf)[:, None]
        axes, origins = poses.axes[rows], poses.origin[rows, 1:]
        out = np.zeros((len(rows), self.kinematics.n))
        for sign, body, point in ((1.0, body_a, first), (-1.0, body_b, second)):
            rate = np.where(self.kinematics.prismatic[None, :, None], axes, np.cross(axes, point[:, None] - origins))
            out += sign * np.where(moves[body], np.einsum("mji,mi->mj", rate, direction), 0.0)
        return self.robot.reduced(out)

    @cached_property
    def bodies(self) -> IntArray:
        """Bodies of the two solids of each pair, shape (P, 2)."""
        out = [(self.solids[pair.first].body, self.solids[pair.second].body) for pair in self.pairs if pair.second >= 0]
        return np.array(out if self.tool is None else [*out, (self.tool[0], 0)], dtype=np.intp).reshape(-1, 2)

    def _tool_margin(self, points: Array) -> tuple[Array, IntArray]:
        """Returns the distance of points (N, 3) in the root's frame to the nearest face of the tool's box, and the face."""
        box, root = self.world.tool, self.world.root
        if box is None:
            return np.full(len(points), np.inf), np.zeros(len(points), dtype=np.intp)
        there = points @ root[:3, :3].T + root[:3, 3]
        margin = np.concatenate([there - box.lower, box.upper - there], axis=1)
        face = np.argmin(margin, axis=1)
        return margin[np.arange(len(margin)), face], face
