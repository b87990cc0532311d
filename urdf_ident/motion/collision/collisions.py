"""Distances between the links of a robot and to its surroundings.

Coal computes them on a Pinocchio geometry model: all pairs of a configuration at once, or single pairs with their nearest
points, which give the gradient of the distance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...errors import LimitError
from ...linalg import Array, BoolArray, IntArray, one_each
from ...model.robot import Robot
from ...samples import freeze_arrays
from .placements import BodyKinematics, Poses
from .solids import Solid
from .world import World


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
        geometry: The Pinocchio geometry model: an object per solid, a collision pair per pair except the tool's.
        tool: Pinocchio's frame of the tool, body and point, or None.
        notes: Notes for the user: replacement capsules, excluded pairs.
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
        """Computes signed distances of all pairs with Pinocchio and Coal.

        Args:
            q: Joint positions, shape (N, n) or (n,) [rad or m].

        Returns:
            Shape (N, P) [m]; negative if they overlap. For the tool: its distance from the nearest face of its box.
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
            out[:, -1] = self._tool_margin(poses.points(self.tool[0], self.tool[1][None])[:, 0])[0]
        return out

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

    def rough(self, poses: Poses, rows: IntArray, pairs: IntArray, near: Array) -> Array:
        """Computes fast lower bounds of distances: from one sphere per link, and if close, from several.

        Args:
            poses: The bodies in N configurations.
            rows: Indices of configurations, shape (M,).
            pairs: Indices of pairs, shape (M,).
            near: Distance below which several spheres are used, shape (M,) [m].

        Returns:
            Shape (M,) [m].
        """
        covers = self._covers
        middles = np.empty((len(poses.origin), len(covers.local), 3))
        for body, own in covers.of_body.items():
            middles[:, own] = poses.points(body, covers.local[own])
        out = self._bounds(middles, rows, pairs, covers.one)
        close = np.flatnonzero((out < near) & (covers.several.count[pairs] > 1))
        if len(close):
            out[close] = np.maximum(out[close], self._bounds(middles, rows[close], pairs[close], covers.several))
        tool = np.flatnonzero(covers.second[pairs] < 0)
        if len(tool):
            out[tool] = self._tool_margin(poses.points(self.tool[0], self.tool[1][None])[rows[tool], 0])[0]  # type: ignore[index]
        return out

    def _bounds(self, middles: Array, rows: IntArray, pairs: IntArray, spheres: _Spheres) -> Array:
        """Computes lower bounds of distances from the spheres that cover links, shape (M,) [m]; inf for the tool."""
        count = spheres.count[pairs]
        begin = np.cumsum(count) - count
        of_entry = np.repeat(np.arange(len(pairs)), count)
        combination = spheres.start[pairs][of_entry] + np.arange(len(of_entry)) - begin[of_entry]
        here, there = middles[rows[of_entry], spheres.first[combination]], spheres.second[combination]
        second, gap = self._covers.second[pairs][of_entry], np.full(len(of_entry), np.inf)
        links = there >= 0
        apart = here[links] - middles[rows[of_entry[links]], there[links]]
        gap[links] = np.sqrt(np.einsum("mi,mi->m", apart, apart))
        for k in np.unique(second[~links & (second >= 0)]).tolist():
            own = ~links & (second == k)
            gap[own] = _to_object(here[own], self.solids[k])
        return np.asarray(np.minimum.reduceat(gap, begin) - spheres.radii[pairs]) if len(pairs) else np.zeros(0)

    @cached_property
    def _covers(self) -> _Covers:
        """The spheres that cover the solids in rough bounds."""
        links = [k for k, solid in enumerate(self.solids) if not solid.of_world]
        local: list[Array] = []
        body: list[int] = []
        one: dict[int, IntArray] = {}
        several: dict[int, IntArray] = {}
        for k in links:
            solid = self.solids[k]
            one[k] = np.array([len(local)])
            several[k] = len(local) + 1 + np.arange(len(solid.spheres))
            local += [solid.centre, *solid.spheres]
            body += [solid.body] * (1 + len(solid.spheres))
        bodies = np.array(body, dtype=np.intp)
        of_body = {b: np.flatnonzero(bodies == b) for b in dict.fromkeys(body)}
        radius, small = ({k: getattr(self.solids[k], name) for k in links} for name in ("radius", "sphere_radius"))
        made = [_Spheres.of(self.pairs, some, size) for some, size in ((one, radius), (several, small))]
        second = np.array([pair.second for pair in self.pairs], dtype=np.intp)
        return _Covers(np.array(local).reshape(-1, 3), of_body, second, *made)

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
            distance[m], near[:, m] = self._tool_distance(poses, int(rows[m]))
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
            distance[m] = found = measures[p](first, second, request, result)
            if found < within:
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
        """Returns the gradients of distances with respect to the joints.

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

    def _tool_distance(self, poses: Poses, row: int) -> tuple[float, Array]:
        body, local = self.tool  # type: ignore[misc]
        point = poses.rotation[row, body] @ local + poses.origin[row, body]
        margin, face = self._tool_margin(point[None])
        normal = self.world.root[:3, :3].T[:, int(face[0]) % 3] * (1.0 if face[0] < 3 else -1.0)
        return float(margin[0]), np.array([point, point - margin[0] * normal])


@dataclass(frozen=True, eq=False)
class _Spheres:
    """Spheres that cover the solids of each pair, in all combinations of a sphere of the first and one of the second.

    Attributes:
        first, second: Indices of spheres, combinations of all pairs one after the other, shape (C,); second is -1 for
            solids that are not covered by spheres.
        start, count: Start and number of the combinations of each pair, shape (P,).
        radii: Sum of the radii of a sphere of the first and one of the second, shape (P,) [m].
    """

    first: IntArray
    second: IntArray
    start: IntArray
    count: IntArray
    radii: Array

    @classmethod
    def of(cls, pairs: Sequence[Pair], spheres: Mapping[int, IntArray], radius: Mapping[int, float]) -> _Spheres:
        """Builds the combinations from the spheres of each solid and their radius."""
        none = np.array([-1])
        made = [(spheres.get(pair.first, none[:0]), spheres.get(pair.second, none)) for pair in pairs]
        made = [(a if pair.second >= 0 else none, b) for (a, b), pair in zip(made, pairs, strict=True)]
        count = np.array([len(a) * len(b) for a, b in made], dtype=np.intp)
        first = np.concatenate([np.repeat(a, len(b)) for a, b in made]) if made else none[:0]
        second = np.concatenate([np.tile(b, len(a)) for a, b in made]) if made else none[:0]
        radii = np.array([radius[pair.first] + radius.get(pair.second, 0.0) if pair.second >= 0 else 0.0 for pair in pairs])
        return cls(first, second, np.cumsum(count) - count, count, radii)


@dataclass(frozen=True, eq=False)
class _Covers:
    """All spheres: centres in body frames, shape (B, 3) [m], indices by body, the second solid of each pair, and the pairs'
    combinations with one sphere per solid and with several."""

    local: Array
    of_body: Mapping[int, IntArray]
    second: IntArray
    one: _Spheres
    several: _Spheres


def _to_object(points: Array, there: Solid) -> Array:
    """Returns lower bounds of the distances of points, shape (M, 3), from an object; shape (M,) [m]."""
    if np.isinf(there.radius):
        return np.asarray(points @ there.geometry.n - there.geometry.d)
    beyond = np.abs((points - there.centre) @ there.placement[:3, :3]) - there.half
    outside = np.maximum(beyond, 0.0)
    return np.asarray(np.sqrt(np.einsum("mi,mi->m", outside, outside)) + np.minimum(beyond.max(axis=1), 0.0))
