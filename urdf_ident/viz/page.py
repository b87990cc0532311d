"""One self-contained HTML page: Meshcat's viewer, the scene, the motion, the robot's surroundings and the controls."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import MissingExtraError, ModelError
from ..files.read_write import read_text
from ..linalg import Array, IntArray
from ..model.geometry import JOINT, Colour, Visual, along, robot_shapes
from ..model.robot import Robot
from ..motion.collision.collisions import Collisions
from ..motion.collision.find import CONSTANT
from ..quoting import json_in_script, markup, page_policy
from ..samples import ReadOnly
from .motion import BodyPoses, Motion, body_poses, frame_times, limit_notes, outermost, positions_at, view_direction
from .scene import (
    SIDES,
    SPEEDS,
    Command,
    SceneObject,
    add_shape,
    buffers,
    float32,
    hexadecimal,
    inertia_commands,
    joint_path,
    plain,
    robot_commands,
    stage_commands,
    tip_speed,
    trail_commands,
)

#: Colours of the surroundings, of a tool or a path, sRGB.
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


#: Small to large torque error, sRGB.
ERRORS = np.array([(0.80, 0.84, 0.88), (0.98, 0.75, 0.18), (0.84, 0.15, 0.16)])
#: Quantile over a motion that is the largest error shown, and its least value over the typical torque.
_QUANTILE, _LEAST = 0.98, 0.05
OTHER: Colour = (0.93, 0.49, 0.13, 0.42)
_INERTIA: Colour = (*JOINT[:3], 0.62)
_TRAIL_INDICES = 6 * SIDES  # per trail segment: two triangles per side


class _Shown(NamedTuple):
    """A robot in the scene: its node, shapes, and poses over the motion, and the colour of its inertia ellipsoids."""

    name: str
    robot: Robot
    shapes: tuple[Visual, ...]
    poses: BodyPoses
    inertia: Colour


def player_page(
    robot: Robot, motion: Motion, other: Robot | None = None, collisions: Collisions | None = None, beside: Motion | None = None
) -> tuple[str, tuple[str, ...]]:
    """Returns the self-contained page that plays a motion, and notes on what was left out or replaced.

    Args:
        other: A second robot with joints of the same names, drawn translucent over the first.
        collisions: Its world is drawn, and a line with the smallest distance between any two objects.
        beside: Another motion, executed at the same time by the second robot (the same one if None), to compare a log with
            a model or with the reference.
    """
    import umsgpack  # type: ignore[import-untyped]

    rate, times = frame_times(motion)
    position = positions_at(motion, robot, times)
    shapes, notes = robot_shapes(robot)
    first = body_poses(robot, shapes, position)
    thickness = 0.0025 * float(np.linalg.norm(np.ptp(first.extent, axis=0)))
    shown = [_Shown("robot", robot, shapes, first, _INERTIA)]
    legend: list[dict[str, str]] = []
    alike = False  # with the same kinematics only the inertias of the two can differ
    other = other if beside is None else other or robot
    if other is not None:
        second, more = _second_robot(robot, other, position if beside is None else positions_at(beside, robot, times))
        shown.append(second)
        notes += more
        names = (robot.name, f"{other.name} (other)") if beside is None else (motion.name, f"{beside.name} (beside)")
        legend = [{"text": name, "colour": _css(colour[:3])} for name, colour in zip(names, (_INERTIA, OTHER), strict=True)]
        alike = first.poses.shape == second.poses.poses.shape and all(
            np.abs(one - two).max() < 1e-6 * robot.reach()
            for one, two in ((first.poses, second.poses.poses), (first.tip, second.poses.tip))
        )
    commands, movers, trails = _robot_scene(shown, rate, thickness, alike=alike)
    extent, near = np.concatenate([one.poses.extent for one in shown]), None
    if collisions is not None:
        near = nearest_things(collisions, position, measured=motion.measured)
        surroundings, corners = world_commands(collisions, first.base, extent)
        commands += [*surroundings, *([] if near is None else [rod(thickness)])]
        extent = np.concatenate([extent, corners])
        notes = tuple(dict.fromkeys((*notes, *collisions.notes, *(() if near is None else (near.note(rate),)))))
    world = collisions is not None and (bool(collisions.world.names) or collisions.world.tool is not None)
    layers = (
        (world, "world", "obstacles around the robot", ["/world"]),
        (near is not None, "distance", "the two objects that are closest to each other", ["/nearest"]),
        (bool(trails), "trail", "path of the tip", ["/trail"]),
        (other is not None, "other", "the other robot", ["/other", "/inertia/other"]),
    )
    masses = "solid ellipsoids of even density with each link's mass and inertia"
    points = outermost(extent)
    low, high = points.min(axis=0), points.max(axis=0)
    angle, length = {"unit": "°", "factor": 180 / np.pi}, {"unit": " mm", "factor": 1000.0}
    data: dict[str, Any] = {
        "title": robot.name,
        "subtitle": motion.name,
        "duration": motion.duration,
        "rate": rate,
        "frames": len(position),
        "joints": [
            {"name": name, **(length if slides else angle)} for name, slides in zip(robot.joints, robot.prismatic, strict=True)
        ],
        "values": float32(position),
        "movers": movers,
        "poses": float32(np.concatenate([one.poses.poses for one in shown], axis=1)),
        "trails": trails,
        "legend": legend,
        "robots": [f"/{one.name}" for one in shown],
        "speed": {"highest": f"{tip_speed(first.tip, rate).max():.3g}", "colours": [_css(colour) for colour in SPEEDS]}
        if trails
        else None,
        "camera": {
            "points": points.round(5).tolist(),
            "centre": ((low + high) / 2).tolist(),
            "size": float(np.linalg.norm(high - low)) / 2,
            "direction": view_direction(points).tolist(),
        },
        "layers": [
            *({"label": label, "hint": hint, "paths": paths, "on": True} for there, label, hint, paths in layers if there),
            {"label": "inertia", "hint": masses, "paths": ["/inertia"], "on": alike, "fades_robot": True},
        ],
        "errors": _errors(motion, times),
        "nearest": None if near is None else near.entry(first.base),
        "commands": [
            base64.b64encode(umsgpack.packb(command)).decode("ascii")  # as Meshcat does
            for command in [*commands, *stage_commands(points, first.foot, first.base)]
        ],
    }
    return _assemble(f"{robot.name}: {motion.name}", data), (*motion.notes, *limit_notes(motion, robot), *notes)


def _robot_scene(
    shown: list[_Shown], rate: float, thickness: float, *, alike: bool
) -> tuple[list[Command], list[list[str]], list[dict[str, Any]]]:
    """Commands that add the robots and the trails of their tips, paths of what every body moves, and the trails.

    Args:
        rate: Frames per second [Hz].
        thickness: Radius of a trail [m].
        alike: Whether the tips of all robots have one trail.
    """
    commands: list[Command] = []
    movers: list[list[str]] = []
    trails: list[dict[str, Any]] = []
    for one in shown:
        ghost = one.name == "other"
        commands += robot_commands(one.robot, one.shapes, one.poses.base, f"/{one.name}", ghost=ghost)
        commands += inertia_commands(one.robot, one.poses.base, f"/inertia/{one.name}", one.inertia)
        joints = [joint_path(one.robot, j) for j in range(len(one.robot.bodies))]
        movers += [[f"/{one.name}/{joint}", f"/inertia/{one.name}/{joint}"] for joint in joints]
        if not ghost or not alike:
            trail, step = trail_commands(f"/trail/{one.name}", one.poses.tip, rate, thickness, OTHER if ghost else None)
            commands += trail
            trails += [{"path": f"/trail/{one.name}", "step": step, "per_step": _TRAIL_INDICES}] if trail else []
    return commands, movers, trails


def _second_robot(robot: Robot, other: Robot, position: Array) -> tuple[_Shown, tuple[str, ...]]:
    """The second robot on the same motion, joints matched by name; joints that only it has stay at zero. And notes."""
    absent = [name for name in robot.joints if name not in other.joints]
    if absent:
        raise ModelError(
            f"the second robot has no moving joint '{absent[0]}'",
            where=other.path,
            expected=", ".join(robot.joints),
            remedy="the two URDFs must share joint names",
        )
    q = np.zeros((len(position), other.n))
    for j, name in enumerate(robot.joints):
        q[:, other.index(name)] = position[:, j]
    shapes, notes = robot_shapes(other)
    shapes = tuple(replace(shape, colour=OTHER) for shape in shapes)
    return _Shown("other", other, shapes, body_poses(other, shapes, q), OTHER), notes


def _errors(motion: Motion, times: Array) -> dict[str, Any] | None:
    """Torque error of each joint at each frame; unknown errors count as zero."""
    if motion.error is None:
        return None
    nearest = np.searchsorted(motion.time, motion.time[0] + times)
    share = motion.error[np.minimum(nearest, len(motion.time) - 1)]
    if not np.isfinite(share).any():
        return None
    largest = max(float(np.nanquantile(share, _QUANTILE)), _LEAST)
    table = np.nan_to_num(share, nan=0.0)
    return {"table": float32(table), "largest": largest, "colours": ERRORS.tolist(), "css": [_css(c) for c in ERRORS]}


def _assemble(title: str, data: dict[str, Any]) -> str:
    spec = importlib.util.find_spec("meshcat")  # found without importing the package, which loads IPython
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("meshcat is not installed", remedy="`pip install meshcat`")
    folder = Path(next(iter(spec.submodule_search_locations))) / "viewer" / "dist"
    here = resources.files(__package__)
    meshcat = read_text(folder / "main.min.js", "viewer of Meshcat").replace("</script", "<\\/script")
    player = (here / "player.js").read_text(encoding="utf-8")
    fields = {
        "policy": page_policy([meshcat, player]),
        "title": markup(title),
        "licences": read_text(folder / "main.min.js.LICENSE.txt", "licence of Meshcat").replace("--", "- -"),
        "meshcat": meshcat,
        "data": json_in_script(json.dumps(data, separators=(",", ":"), ensure_ascii=False)),
        "player": player,
    }
    page = (here / "player.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda field: fields[field[1]], page)  # at once: a name may look like a field


def _css(colour: Any) -> str:
    return "#" + "".join(f"{round(255 * float(value)):02x}" for value in colour)
