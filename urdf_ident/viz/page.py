"""One self-contained HTML page: Meshcat's viewer, the scene, the motion and the controls."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingExtraError, ModelError
from ..files.page_policy import page_policy
from ..files.read_write import read_text
from ..linalg import Array
from ..model.geometry import Colour, Visual, reach, robot_shapes
from ..model.robot import Robot
from ..motion.collision.collisions import Collisions
from ..quoting import json_in_script, markup
from .kinematics import BodyPoses, body_poses, outermost, view_direction
from .motion import Motion, error_frames, frames, frames_at, limit_notes
from .scene import inertia_commands, joint_path, robot_commands
from .stage import stage_commands
from .surroundings import Nearest, nearest_entry, nearest_things, rod, world_commands, world_extent
from .three import Command
from .trail import SIDES, SPEEDS, tip_speed, trail_commands

#: Small to large torque error, sRGB; the largest is the 98 % quantile over the motion, at least 5 % of the typical torque.
ERRORS = np.array([(0.80, 0.84, 0.88), (0.98, 0.75, 0.18), (0.84, 0.15, 0.16)])
_QUANTILE, _LEAST = 0.98, 0.05
OTHER: Colour = (0.93, 0.49, 0.13, 0.42)
_INERTIA: Colour = (0.16, 0.43, 0.72, 0.62)
_TRAIL_INDICES = 6 * SIDES  # per trail segment: two triangles per side


def player_page(
    robot: Robot,
    motion: Motion,
    other: Robot | None = None,
    collisions: Collisions | None = None,
    beside: Motion | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Returns the self-contained page that plays a motion.

    Args:
        other: A second robot with joints of the same names, drawn translucent over the first.
        collisions: Its world is drawn, and a line with the smallest distance between any two objects.
        beside: Another motion, executed at the same time by the second robot (the same one if None), to compare a log with
            a model or with the reference.

    Returns:
        The HTML, and notes on what was left out or replaced.

    Raises:
        ModelError: The second robot lacks a joint of the first.
    """
    rate, position = frames(motion, robot)
    shapes, notes = robot_shapes(robot)
    first = body_poses(robot, shapes, position)
    thickness = 0.0025 * float(np.linalg.norm(np.ptp(first.extent, axis=0)))
    drawn = _PageContents()
    drawn.add_robot("robot", robot, shapes, first, _INERTIA)
    drawn.add_trail("robot", first, rate, thickness)
    legend, same, near = [], True, None
    other = other if beside is None else other or robot
    if other is not None:
        moved = position if beside is None else frames_at(beside, robot, len(position), rate)
        same, note = _add_second(drawn, robot, other, first, moved, rate, thickness)
        legend = _legend(robot, motion, other, beside)
        notes += note
    if collisions is not None:
        near = _add_surroundings(drawn, collisions, position, first.base, thickness, motion.measured)
        notes = tuple(dict.fromkeys((*notes, *collisions.notes, *(() if near is None else (near.note(rate),)))))
    points = outermost(np.concatenate(drawn.extent))
    data: dict[str, Any] = {
        "title": robot.name,
        "subtitle": motion.name,
        "duration": motion.duration,
        "rate": rate,
        "frames": len(position),
        "joints": _joint_entries(robot),
        "values": _float32(position),
        "movers": drawn.movers,
        "poses": _float32(np.concatenate(drawn.poses, axis=1)),
        "trails": drawn.trails,
        "legend": legend,
        "robots": ["/robot"] if other is None else ["/robot", "/other"],
        "speed": _speed_scale(first.tip, rate) if drawn.trails else None,
        "camera": _camera(points),
        "layers": _layers(bool(drawn.trails), other is not None, collisions, near, masses=other is not None and same),
        "errors": _errors(error_frames(motion, len(position), rate)),
        "nearest": None if near is None else nearest_entry(near, first.base, _float32),
        "commands": [_packed(command) for command in [*drawn.commands, *stage_commands(points, first.foot, first.base)]],
    }
    return _assemble(f"{robot.name}: {motion.name}", data), (*motion.notes, *limit_notes(motion, robot), *notes)


class _PageContents:
    """Contents of the page so far: scene commands, moving nodes and their poses, trails, and the extent."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.movers: list[list[str]] = []
        self.poses: list[Array] = []
        self.trails: list[dict[str, Any]] = []
        self.extent: list[Array] = []

    def add_robot(
        self, name: str, robot: Robot, shapes: tuple[Visual, ...], motion: BodyPoses, inertia: Colour, *, ghost: bool = False
    ) -> None:
        self.commands += robot_commands(robot, shapes, motion.base, f"/{name}", ghost=ghost)
        self.commands += inertia_commands(robot, motion.base, f"/inertia/{name}", inertia)
        joints = [joint_path(robot, j) for j in range(robot.n)]
        self.movers += [[f"/{name}/{joint}", f"/inertia/{name}/{joint}"] for joint in joints]
        self.poses.append(motion.poses)
        self.extent.append(motion.extent)

    def add_trail(self, name: str, motion: BodyPoses, rate: float, thickness: float, colour: Colour | None = None) -> None:
        path = f"/trail/{name}"
        trail, step = trail_commands(path, motion.tip, rate, thickness, colour)
        self.commands += trail
        self.trails += [{"path": path, "step": step, "per_step": _TRAIL_INDICES}] if trail else []


def _add_second(
    drawn: _PageContents, robot: Robot, other: Robot, first: BodyPoses, position: Array, rate: float, thickness: float
) -> tuple[bool, tuple[str, ...]]:
    """Adds the second robot, with its path unless it moves like the first; whether it does, and notes."""
    second, shapes, notes = _other_body_poses(robot, other, position)
    same = _alike(first, second, 1e-6 * reach(robot))
    drawn.add_robot("other", other, shapes, second, OTHER, ghost=True)
    if not same:
        drawn.add_trail("other", second, rate, thickness, OTHER)
    return same, notes


def _add_surroundings(
    drawn: _PageContents, collisions: Collisions, position: Array, base: Array, thickness: float, measured: bool
) -> Nearest | None:
    """Adds the objects around the robot, and a line between the two closest ones, which is returned."""
    extent = np.concatenate(drawn.extent)
    near = nearest_things(collisions, position, measured=measured)
    drawn.commands += [*world_commands(collisions, base, extent), *([] if near is None else [rod(thickness)])]
    drawn.extent.append(world_extent(collisions, base, extent))
    return near


def _other_body_poses(robot: Robot, other: Robot, position: Array) -> tuple[BodyPoses, tuple[Visual, ...], tuple[str, ...]]:
    """Poses of the second robot on the same motion, joints matched by name; joints that only it has stay at zero."""
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
    return body_poses(other, shapes, q), shapes, notes


def _legend(robot: Robot, motion: Motion, other: Robot, beside: Motion | None) -> list[dict[str, str]]:
    """Names and colours of the two robots, or of the two motions."""
    names = (robot.name, f"{other.name} (other)") if beside is None else (motion.name, f"{beside.name} (beside)")
    return [{"text": name, "colour": _css(colour[:3])} for name, colour in zip(names, (_INERTIA, OTHER), strict=True)]


def _alike(first: BodyPoses, second: BodyPoses, tolerance: float) -> bool:
    """Whether two robots have the same kinematics, so that only their inertias can differ."""
    return first.poses.shape == second.poses.shape and bool(
        np.abs(first.poses - second.poses).max() < tolerance and np.abs(first.tip - second.tip).max() < tolerance
    )


def _speed_scale(tip: Array, rate: float) -> dict[str, Any]:
    """Colours of the trails, from rest to the highest speed of the tip [m/s]."""
    return {"highest": f"{tip_speed(tip, rate).max():.3g}", "colours": [_css(colour) for colour in SPEEDS]}


def _joint_entries(robot: Robot) -> list[dict[str, Any]]:
    angle, length = {"unit": "°", "factor": 180 / np.pi}, {"unit": " mm", "factor": 1000.0}
    kinds = [length if prismatic else angle for prismatic in robot.prismatic]
    return [{"name": name, **kind} for name, kind in zip(robot.joints, kinds, strict=True)]


def _errors(share: Array | None) -> dict[str, Any] | None:
    """Torque error of each joint at each frame; unknown errors count as zero."""
    if share is None or not np.isfinite(share).any():
        return None
    largest = max(float(np.nanquantile(share, _QUANTILE)), _LEAST)
    table = np.nan_to_num(share, nan=0.0)
    return {"table": _float32(table), "largest": largest, "colours": ERRORS.tolist(), "css": [_css(c) for c in ERRORS]}


def _camera(points: Array) -> dict[str, Any]:
    low, high = points.min(axis=0), points.max(axis=0)
    size = float(np.linalg.norm(high - low)) / 2
    return {
        "points": points.round(5).tolist(),
        "centre": ((low + high) / 2).tolist(),
        "size": size,
        "direction": view_direction(points).tolist(),
    }


def _layers(
    trails: bool, other: bool, collisions: Collisions | None, near: Nearest | None, *, masses: bool
) -> list[dict[str, Any]]:
    """Layers that can be shown and hidden, and which of them exist."""
    world = collisions is not None and (bool(collisions.world.names) or collisions.world.tool is not None)
    listed = (
        (world, "world", "obstacles around the robot", ["/world"]),
        (near is not None, "distance", "the two objects that are closest to each other", ["/nearest"]),
        (trails, "trail", "path of the tip", ["/trail"]),
        (other, "other", "the other robot", ["/other", "/inertia/other"]),
    )
    layers = [{"label": label, "hint": hint, "paths": paths, "on": True} for there, label, hint, paths in listed if there]
    hint = "solid ellipsoids of even density with each link's mass and inertia"
    return [*layers, {"label": "inertia", "hint": hint, "paths": ["/inertia"], "on": masses, "fades_robot": True}]


def _assemble(title: str, data: dict[str, Any]) -> str:
    folder = _viewer_folder()
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


@cache
def _viewer_folder() -> Path:
    """Meshcat's bundled viewer, found without importing the package (which loads IPython)."""
    spec = importlib.util.find_spec("meshcat")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("meshcat is not installed", remedy="`pip install meshcat`")
    return Path(next(iter(spec.submodule_search_locations))) / "viewer" / "dist"


def _packed(command: Command) -> str:
    import umsgpack  # type: ignore[import-untyped]  # as Meshcat does

    return base64.b64encode(umsgpack.packb(command)).decode("ascii")


def _float32(array: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")


def _css(colour: Any) -> str:
    return "#" + "".join(f"{round(255 * float(value)):02x}" for value in colour)
