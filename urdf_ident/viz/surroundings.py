"""Objects around the robot, and a line between the two closest objects at every time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..linalg import Array, IntArray
from ..model.geometry import Colour, along
from ..motion.collision.collisions import Collisions
from ..motion.collision.find import CONSTANT
from ..samples import ReadOnly
from .scene import Command, SceneObject, add_shape, buffers, float32, hexadecimal, plain

OBJECT: Colour = (0.55, 0.47, 0.38, 0.45)
_TOOL = (0.16, 0.55, 0.35)
#: Maximum number of times at which distances are computed; a longer motion gets fewer per second.
MOMENTS = 1500
_EDGES = [(a, a | bit) for a in range(8) for bit in (1, 2, 4) if not a & bit]


@dataclass(frozen=True, eq=False)
class Nearest(ReadOnly):
    """The two closest objects at every time.

    Attributes:
        step: Frames from one time to the next.
        ends: Their closest points, shape (M, 2, 3) [m], in the robot's root frame.
        distance: Shape (M,) [m]; negative where they overlap.
        which: Index into ``names``, shape (M,).
        required: Smallest allowed distance of each pair in ``names``, shape (K,) [m]; -inf if contact means nothing: the
            motion was measured, and a shape of the pair only approximates geometry that the URDF lacks.
    """

    step: int
    ends: Array
    distance: Array
    which: IntArray
    names: tuple[tuple[str, str], ...]
    required: Array

    def note(self, rate: float) -> str:
        """Describes the smallest distance; rate: frames per second [Hz]."""
        required = self.required[self.which]
        m = int(np.argmin(self.distance - required if np.isfinite(required).any() else self.distance))
        first, second = self.names[self.which[m]]
        if not np.isfinite(required[m]):
            return (
                f"closest: {first} and {second}, {1000 * self.distance[m]:.4g} mm at {m * self.step / rate:.2f} s, where a "
                "shape replaces geometry that the URDF lacks; the robot was there, so contact would be no collision"
            )
        margin = self.distance[m] - required[m]
        state = "closest" if margin >= 0 else "collision" if self.distance[m] < 0 else "too close"
        return (
            f"{state}: {first} and {second}, {1000 * self.distance[m]:.4g} mm at {m * self.step / rate:.2f} s "
            f"(allowed {1000 * required[m]:.4g})"
        )

    def entry(self, base: Array) -> dict[str, Any]:
        """The data with which the page places the rod and shows the distance; base of shape (4, 4) [m]: of the robot's root."""
        ends = self.ends @ base[:3, :3].T + base[:3, 3]
        return {
            "step": self.step,
            "table": float32(np.column_stack([ends.reshape(len(ends), 6), self.distance, self.which])),
            "names": [" – ".join(pair) for pair in self.names],
            "required": np.maximum(self.required, -1e9).tolist(),
        }


def nearest_things(collisions: Collisions, position: Array, *, measured: bool = False) -> Nearest | None:
    """Finds the two closest objects at every time, and their closest points; None without monitored pairs.

    Pairs whose distance does not change during the motion are left out if there are others.

    Args:
        position: Joint positions of all frames, shape (F, n) [rad or m].
    """
    if not collisions.pairs:
        return None
    step = -(-len(position) // MOMENTS)
    q = position[::step]
    distance = collisions.distances(q)
    changing = np.ptp(distance, axis=0) >= CONSTANT
    if changing.any():
        distance = np.where(changing, distance, np.inf)
    pair = np.argmin(distance - collisions.required, axis=1)
    gap, first, second = collisions.exact(collisions.kinematics.evaluate(q), np.arange(len(q)), pair)
    shown, which = np.unique(pair, return_inverse=True)
    names = tuple(collisions.pairs[p].names for p in shown)
    required = collisions.required[shown]
    if measured:
        pairs = [(collisions.pairs[p].first, collisions.pairs[p].second) for p in shown]
        assumed = [any(k >= 0 and collisions.solids[k].assumed for k in pair) for pair in pairs]
        required = np.where(assumed, -np.inf, required)
    return Nearest(step, np.stack([first, second], axis=1), gap, which.reshape(-1), names, required)


def world_commands(collisions: Collisions, base: Array, extent: Array) -> tuple[list[Command], Array]:
    """Adds the world's objects to the scene.

    Args:
        base: Placement of the robot's root in the scene, shape (4, 4) [m].
        extent: Points around the moving parts, shape (K, 3) [m]; half-spaces are drawn as squares near them.

    Returns:
        The commands, and the objects' corners, shape (L, 3) [m], moved near the moving parts, so that distant walls do not
        shrink the robot in the view.
    """
    world = collisions.world
    origin = base @ np.linalg.inv(world.root)
    shapes = [replace(shape, placement=origin @ shape.placement, colour=OBJECT) for shape in world.shapes]
    low, high = extent.min(axis=0), extent.max(axis=0)
    centre, size = (low + high) / 2, float(np.linalg.norm(high - low))
    commands = []
    for plane in world.planes:  # visible from the free side only, so that it never hides the robot
        normal = origin[:3, :3] @ plane.normal
        above = float(normal @ (centre - origin[:3, 3])) - plane.offset
        node = SceneObject(f"/world/{plain(plane.name)}")
        face = node.geometry(type="PlaneGeometry", width=1.4 * size, height=1.4 * size)
        look = {"color": hexadecimal(OBJECT[:3]), "transparent": True, "opacity": OBJECT[3], "side": 0, "depthWrite": False}
        material = node.material(type="MeshStandardMaterial", roughness=0.8, **look)
        node.child("Mesh", along(normal, centre - above * normal), geometry=face, material=material)
        commands.append(node.command())
    for shape in shapes:
        node = SceneObject(f"/world/{plain(shape.link)}")
        add_shape(node, shape, ghost=True)
        commands.append(node.command())
    if (tool := world.tool) is not None:
        box = np.array([[(tool.lower, tool.upper)[k >> axis & 1][axis] for axis in range(3)] for k in range(8)])
        points = (box @ origin[:3, :3].T + origin[:3, 3])[np.ravel(_EDGES)]
        node = SceneObject("/world/box of the tool")
        edges = node.geometry(type="BufferGeometry", data=buffers(points))
        node.child("LineSegments", geometry=edges, material=node.material(type="LineBasicMaterial", color=hexadecimal(_TOOL)))
        commands.append(node.command())
    corners = np.concatenate([np.zeros((0, 3)), *(shape.corners() for shape in shapes)])
    return commands, np.clip(corners, low - 0.1 * size, high + 0.1 * size)


def rod(radius: float) -> Command:
    """Adds a rod of unit length along y, radius in m, on top of everything, which the page puts between the closest objects."""
    node = SceneObject("/nearest")
    shape = node.geometry(type="CylinderGeometry", radiusTop=radius, radiusBottom=radius, height=1.0, radialSegments=12)
    material = node.material(type="MeshBasicMaterial", color=0xFFFFFF, depthTest=False, transparent=True)
    node.child("Mesh", geometry=shape, material=material, renderOrder=10)
    return node.command()
