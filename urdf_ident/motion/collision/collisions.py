"""Distances between the links of a robot, and to the world around it.

Coal measures them, on a Pinocchio geometry model: all pairs of a configuration at once, or single pairs with the points
where they are nearest, which give the distance's gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ...errors import LimitError
from ...linalg import Array
from ...model.robot import Robot
from ...samples import freeze_arrays
from ..base import check_joint_array
from .placements import BodyKinematics, Poses
from .solids import Solid
from .world import World

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Pair:
    """Two things that must not touch, or the tool and its box.

    Attributes:
        first: Index of a solid; of the robot.
        second: Index of a solid; -1 for the tool's box.
        names: What they are called.
    """

    first: int
    second: int
    names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Collisions:
    """What must keep its distance. Build it with :meth:`build`.

    Attributes:
        robot: The robot.
        world: What is around it.
        solids: Everything solid.
        pairs: Pairs that can touch, and must not; the tool and its box last.
        required: Smallest distance allowed of each pair, shape (P,) [m].
        geometry: The Pinocchio geometry model: an object for each solid, a collision pair for each pair but the tool's.
        tool: Pinocchio's frame of the tool, body and point, or None.
        notes: What the user should know: capsules that stand in, pairs that are left out.
    """

    robot: Robot
    world: World
    solids: tuple[Solid, ...]
    pairs: tuple[Pair, ...]
    required: Array
    geometry: pin.GeometryModel
    tool: tuple[int, Array] | None
    notes: tuple[str, ...] = ()
    kinematics: BodyKinematics = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinematics", BodyKinematics(self.robot))
        freeze_arrays(self)

    def distances(self, q: ArrayLike) -> Array:
        """Signed distances of all pairs, by Pinocchio and Coal.

        Args:
            q: Joint positions, shape (N, n) or (n,) [rad or m].

        Returns:
            Shape (N, P) [m]; negative when they overlap. Of the tool: its distance from the nearest face of its box.
        """
        positions = np.atleast_2d(np.asarray(q, dtype=float))
        out = np.empty((len(positions), len(self.pairs)))
        data, geometry_data = self.robot.model.createData(), self.geometry.createData()
        solid = [p for p, pair in enumerate(self.pairs) if pair.second >= 0]
        for k, configuration in enumerate(self.robot.configuration(positions)):
            pin.computeDistances(self.robot.model, data, self.geometry, geometry_data, configuration)
            out[k, solid] = [result.min_distance for result in geometry_data.distanceResults]
        if self.tool is not None:
            poses = self.kinematics.evaluate(positions)
            out[:, -1] = self._tool_room(poses.points(self.tool[0], self.tool[1][None])[:, 0])[0]
        return out

    def require_free(self, q: ArrayLike, what: str = "the start pose") -> None:
        """Does nothing if a pose keeps all distances.

        Args:
            q: Shape (n,) [rad or m].
            what: What the pose is, for the message.

        Raises:
            LimitError: It does not; names the pair and its distance.
        """
        pose = check_joint_array("q", q, self.robot.joints)
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

    def rough(self, poses: Poses, rows: Indices, pairs: Indices, near: Array) -> Array:
        """Lower bounds of distances, quickly: from one ball around each link, and where that is close, from several.

        Args:
            poses: The bodies on N configurations.
            rows: Indices of configurations, shape (M,).
            pairs: Indices of pairs, shape (M,).
            near: What is close, for each pair, shape (P,) [m].

        Returns:
            Shape (M,) [m].
        """
        out, centre = np.empty(len(rows)), self._centres(poses)
        first, second, radii, loose = self._balls
        easy = loose[pairs]
        here, there = (centre[rows[easy], k[pairs[easy]]] for k in (first, second))
        apart = here - there
        out[easy] = np.sqrt(np.einsum("mi,mi->m", apart, apart)) - radii[pairs[easy]]
        order = np.argsort(pairs, kind="stable")
        ends = np.searchsorted(pairs[order], np.arange(len(self.pairs) + 1))
        for p, pair in enumerate(self.pairs):
            mine = order[ends[p] : ends[p + 1]]
            if not len(mine):
                continue
            if pair.second < 0:
                out[mine] = self._tool_room(poses.points(self.tool[0], self.tool[1][None])[rows[mine], 0])[0]  # type: ignore[index]
                continue
            solids = self.solids[pair.first], self.solids[pair.second]
            if not loose[p]:
                out[mine] = _to_object(centre[rows[mine], pair.first, None], solids[1]) - solids[0].radius
            close = mine[out[mine] < near[p]]
            if len(close) and len(solids[0].balls) + len(solids[1].balls) > 2:
                out[close] = np.maximum(out[close], _between(poses, rows[close], *solids))
        return out

    @cached_property
    def _balls(self) -> tuple[Indices, Indices, Array, NDArray[np.bool_]]:
        """Of each pair its solids, the sum of the radii of the balls around them, and whether both are links."""
        first, second = np.array([(pair.first, pair.second) for pair in self.pairs], dtype=np.intp).reshape(-1, 2).T
        radius = np.array([solid.radius for solid in self.solids])
        links = np.array([not solid.of_world for solid in self.solids], dtype=bool)
        loose = (second >= 0) & links[second]
        return first, second, radius[first] + np.where(loose, radius[second], 0.0), loose

    def _centres(self, poses: Poses) -> Array:
        """Middles of the balls around all solids, shape (N, S, 3) [m]."""
        body = np.array([solid.body for solid in self.solids], dtype=np.intp)
        local = np.array([solid.centre if np.isfinite(solid.radius) else np.zeros(3) for solid in self.solids])
        return np.asarray((poses.rotation[:, body] @ local[:, :, None])[..., 0] + poses.origin[:, body])

    def exact(self, poses: Poses, rows: Indices, pairs: Indices, within: float = np.inf) -> tuple[Array, Array, Array]:
        """Distances by Coal, with the points where they are measured.

        Args:
            poses: The bodies on N configurations.
            rows: Indices of configurations, shape (M,).
            pairs: Indices of pairs, shape (M,).
            within: Points are not wanted beyond this distance [m]; they are zero there.

        Returns:
            Distances, shape (M,) [m], and the nearest points on the first and on the second thing, each of shape (M, 3)
            [m], in the root's frame.
        """
        import coal  # type: ignore[import-untyped]

        distance, near = np.empty(len(rows)), np.zeros((2, len(rows), 3))
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        order = np.argsort(pairs, kind="stable")
        ends = np.searchsorted(pairs[order], np.arange(len(self.pairs) + 1))
        for p in np.unique(pairs).tolist():
            mine, pair = order[ends[p] : ends[p + 1]], self.pairs[p]
            if pair.second < 0:
                for m in mine.tolist():
                    distance[m], near[:, m] = self._tool_distance(poses, int(rows[m]))
                continue
            here, there = (_placed(poses, rows[mine], self.solids[k]) for k in (pair.first, pair.second))
            measure = coal.ComputeDistance(self.solids[pair.first].geometry, self.solids[pair.second].geometry)
            for m, (first, second) in zip(mine.tolist(), zip(here, there, strict=True), strict=True):
                result.clear()
                distance[m] = found = measure(first, second, request, result)
                if found < within:
                    near[0, m], near[1, m] = result.getNearestPoint1(), result.getNearestPoint2()
        return distance, near[0], near[1]

    def gradients(self, poses: Poses, rows: Indices, pairs: Indices, first: Array, second: Array, distance: Array) -> Array:
        """How distances change with the joints.

        Args:
            poses: The bodies.
            rows: Shape (M,).
            pairs: Shape (M,).
            first: Nearest points from :meth:`exact`, shape (M, 3) [m].
            second: Shape (M, 3) [m].
            distance: Shape (M,) [m].

        Returns:
            Shape (M, n) [m/rad or 1].
        """
        moves = self.kinematics.moves
        body_a, body_b = self.bodies[pairs].T
        direction = (first - second) / np.where(np.abs(distance) > 1e-12, distance, np.inf)[:, None]
        axes, origins = poses.axes[rows], poses.origin[rows, 1:]
        out = np.zeros((len(rows), self.kinematics.n))
        for sign, body, point in ((1.0, body_a, first), (-1.0, body_b, second)):
            turned = np.cross(axes, point[:, None] - origins)
            rate = np.where(self.kinematics.prismatic[None, :, None], axes, turned)
            out += sign * np.where(moves[body], np.einsum("mji,mi->mj", rate, direction), 0.0)
        return out

    @cached_property
    def bodies(self) -> Indices:
        """Bodies of the two things of each pair, shape (P, 2)."""
        out = [(self.solids[pair.first].body, self.solids[pair.second].body) for pair in self.pairs if pair.second >= 0]
        return np.array(out if self.tool is None else [*out, (self.tool[0], 0)], dtype=np.intp).reshape(-1, 2)

    def _tool_room(self, points: Array) -> tuple[Array, Indices]:
        """Distance to the nearest face of the tool's box, and which one, of points of shape (N, 3) in the root's frame."""
        box, root = self.world.tool, self.world.root
        if box is None:
            return np.full(len(points), np.inf), np.zeros(len(points), dtype=np.intp)
        there = points @ root[:3, :3].T + root[:3, 3]
        room = np.concatenate([there - box.lower, box.upper - there], axis=1)
        face = np.argmin(room, axis=1)
        return room[np.arange(len(room)), face], face

    def _tool_distance(self, poses: Poses, row: int) -> tuple[float, Array]:
        body, local = self.tool  # type: ignore[misc]
        point = poses.rotation[row, body] @ local + poses.origin[row, body]
        room, face = self._tool_room(point[None])
        normal = self.world.root[:3, :3].T[:, int(face[0]) % 3] * (1.0 if face[0] < 3 else -1.0)
        return float(room[0]), np.array([point, point - room[0] * normal])


def _placed(poses: Poses, rows: Indices, solid: Solid) -> list[Any]:
    """Coal's transforms of a solid on some configurations."""
    import coal

    if solid.body == 0:
        return [coal.Transform3s(solid.placement[:3, :3], solid.placement[:3, 3])] * len(rows)
    frame = poses.rotation[rows, solid.body]
    turned, moved = frame @ solid.placement[:3, :3], frame @ solid.placement[:3, 3] + poses.origin[rows, solid.body]
    return [coal.Transform3s(R, t) for R, t in zip(turned, moved, strict=True)]


def _between(poses: Poses, rows: Indices, here: Solid, there: Solid) -> Array:
    """Lower bound of the distance of a link from another one or from an object, by several balls; shape (M,) [m]."""

    def balls(solid: Solid) -> Array:
        turned = solid.balls @ poses.rotation[rows, solid.body].swapaxes(1, 2)
        return np.asarray(turned + poses.origin[rows, solid.body][:, None])

    middles = balls(here)
    if there.of_world:
        return _to_object(middles, there) - here.ball_radius
    apart = middles[:, :, None] - balls(there)[:, None]
    gap = np.sqrt(np.einsum("mkli,mkli->mkl", apart, apart).min(axis=(1, 2)))
    return np.asarray(gap - here.ball_radius - there.ball_radius)


def _to_object(points: Array, there: Solid) -> Array:
    """Lower bound of the distance of the nearest of some points, shape (M, K, 3), from an object; shape (M,) [m]."""
    if np.isinf(there.radius):
        return np.asarray((points @ there.geometry.n - there.geometry.d).min(axis=1))
    beyond = np.abs((points - there.centre) @ there.placement[:3, :3]) - there.half
    outside = np.maximum(beyond, 0.0)
    gap = np.sqrt(np.einsum("mki,mki->mk", outside, outside)) + np.minimum(beyond.max(axis=2), 0.0)
    return np.asarray(gap.min(axis=1))
