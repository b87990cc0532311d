"""One self-contained HTML page: Meshcat's viewer, the scene, the motion and the controls."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import MissingExtraError, ModelError
from ..files.read_write import read_text
from ..linalg import Array
from ..model.geometry import Colour, Visual, reach, robot_shapes
from ..model.robot import Robot
from ..motion.collision.collisions import Collisions
from ..quoting import json_in_script, markup, page_policy
from .motion import BodyPoses, Motion, body_poses, frame_times, limit_notes, outermost, positions_at, view_direction
from .scene import (
    SIDES,
    SPEEDS,
    Command,
    float32,
    inertia_commands,
    joint_path,
    robot_commands,
    stage_commands,
    tip_speed,
    trail_commands,
)
from .surroundings import nearest_things, rod, world_commands

#: Small to large torque error, sRGB; the largest is the 98 % quantile over the motion, at least 5 % of the typical torque.
ERRORS = np.array([(0.80, 0.84, 0.88), (0.98, 0.75, 0.18), (0.84, 0.15, 0.16)])
_QUANTILE, _LEAST = 0.98, 0.05
OTHER: Colour = (0.93, 0.49, 0.13, 0.42)
_INERTIA: Colour = (0.16, 0.43, 0.72, 0.62)
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
            np.abs(one - two).max() < 1e-6 * reach(robot)
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
