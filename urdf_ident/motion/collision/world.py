"""Surroundings of a robot: a YAML file of boxes, planes and meshes, and a box that the tool must not leave.

```yaml
base: {xyz: [0, 0, 0.8], rpy: [0, 0, 0]}                  # pose of the robot's root in the world; the origin if absent
clearance: 0.02                                          # smallest distance allowed [m]
objects:
  table: {box: [1.6, 1.0, 0.04], xyz: [0.4, 0, 0.76]}      # edges [m], centre, and rpy if rotated
  floor: {plane: [0, 0, 1], offset: 0.0}                   # solid where normal·x < offset
  press: {mesh: press.stl, xyz: [0.9, 0, 0], scale: [1, 1, 1]}
  post:  {cylinder: [0.05, 1.2], xyz: [0, 0.9, 0.6]}       # radius and length; also capsule, and sphere: radius
tool: {frame: tool0, box: [[0.2, -0.5, 0.9], [0.9, 0.5, 1.6]]}
allow: [[base_link, table]]                              # pairs that may touch
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from ...errors import ProjectError, nearest
from ...files.documents import parse_yaml
from ...files.read_write import read_text
from ...files.sizes import LARGEST_NUMBER
from ...linalg import Array
from ...model.geometry import SIZES, Visual, placed_at
from ...model.meshes import MESH_FORMATS, find_mesh, mesh_box
from ...model.urdf import LARGEST_ANGLE
from ...samples import ReadOnly

#: Name of the faces of the tool's box among the objects.
TOOL_BOX = "the tool's box"
_KEYS = ("base", "clearance", "objects", "tool", "allow")
_SIZES = {**{kind: sum(values.values()) for kind, values in SIZES.items()}, "plane": 3, "mesh": 0}
_PLACED = ("xyz", "rpy")


@dataclass(frozen=True, eq=False)
class Plane(ReadOnly):
    """A half-space: solid where ``normal·x < offset``.

    Attributes:
        normal: Unit vector out of the solid, shape (3,).
        offset: [m].
    """

    name: str
    normal: Array
    offset: float


@dataclass(frozen=True, eq=False)
class ToolBox(ReadOnly):
    """Box in which the origin of a frame must stay, in world coordinates.

    Attributes:
        lower: Shape (3,) [m].
        upper: Shape (3,) [m].
    """

    frame: str
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class World:
    """Surroundings of a robot.

    Attributes:
        shapes: Solid objects; ``link`` is their name, ``placement`` is in the world.
        base: Placement of the robot's root in the world, shape (4, 4) [m].
        clearance: Smallest distance allowed, also between links [m]; None: by the size of the robot.
        tool: Box in which the tool must stay, or None.
        allowed: Pairs of names (links or objects) that may touch.
    """

    shapes: tuple[Visual, ...] = ()
    planes: tuple[Plane, ...] = ()
    base: Array | None = None
    clearance: float | None = None
    tool: ToolBox | None = None
    allowed: tuple[tuple[str, str], ...] = ()

    @property
    def root(self) -> Array:
        """Placement of the robot's root in the world, shape (4, 4) [m]."""
        return np.eye(4) if self.base is None else self.base

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objects."""
        return tuple(item.link for item in self.shapes) + tuple(plane.name for plane in self.planes)


def read_world(path: str | Path) -> World:
    """Reads a world file.

    Args:
        path: The YAML file; mesh paths are relative to it.

    Raises:
        MissingFileError: No such file.
        ProjectError: It does not parse, an unknown key, a wrong number, or a mesh that cannot be read.
    """
    where = str(path)
    data = parse_yaml(read_text(path, "world file"), where, ProjectError, "world file")
    return parse_world({} if data is None else data, where)


def parse_world(data: Any, where: str = "world file") -> World:
    """Builds a world from nested mappings.

    Args:
        where: File name, for messages and for relative mesh paths.

    Raises:
        ProjectError: See :func:`read_world`.
    """
    _check_keys(data, _KEYS, where, "the world")
    shapes: list[Visual] = []
    planes: list[Plane] = []
    objects = data.get("objects") or {}
    if not isinstance(objects, Mapping):
        raise ProjectError("'objects' is not a mapping", where=where, got=type(objects).__name__, expected="name: {box: …}")
    for name, entry in objects.items():
        if not isinstance(name, str) or not name.strip():
            raise ProjectError("an object has no name", where=where, got=repr(name), expected="words; numbers in quotes")
        solid = _object(name, entry, where)
        if isinstance(solid, Plane):
            planes.append(solid)
        else:
            shapes.append(solid)
    base = None
    if data.get("base") is not None:
        _check_keys(data["base"], _PLACED, where, "base")
        base = _placement(data["base"], where, "base")
    clearance = None if data.get("clearance") is None else float(_numbers(data["clearance"], 1, where, "clearance")[0])
    if clearance is not None and clearance <= 0:
        raise ProjectError("the clearance must be positive", where=where, got=clearance, expected="metres")
    tool, entry = None, data.get("tool")
    if entry is not None:
        _check_keys(entry, ("frame", "box"), where, "tool")
        if not isinstance(entry.get("frame"), str) or not isinstance(entry.get("box"), list) or len(entry["box"]) != 2:
            expected = "tool: {frame: NAME, box: [[x, y, z], [x, y, z]]}"
            raise ProjectError("'tool' needs a frame and a box", where=where, got=entry, expected=expected)
        lower, upper = (_numbers(corner, 3, where, "tool.box") for corner in entry["box"])
        if not (upper > lower).all():
            expected = "least, then largest corner"
            raise ProjectError("the box of the tool has no inside", where=where, got=entry["box"], expected=expected)
        tool = ToolBox(entry["frame"], lower, upper)
    pairs = data.get("allow") or []
    if not isinstance(pairs, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise ProjectError("'allow' is not a list of pairs", where=where, got=pairs, expected="[[link, object], …]")
    allowed = tuple((str(first), str(second)) for first, second in pairs)
    return World(tuple(shapes), tuple(planes), base, clearance, tool, allowed)


def _object(name: str, entry: Any, where: str) -> Visual | Plane:
    owner = f"object '{name}'"
    _check_keys(entry, (*_SIZES, *_PLACED, "offset", "scale"), where, owner)
    kinds = [kind for kind in _SIZES if kind in entry]
    if len(kinds) != 1:
        raise ProjectError(f"{owner} needs exactly one shape", where=where, got=kinds, expected=" | ".join(_SIZES))
    kind = kinds[0]
    for key, only in {"offset": "plane", "scale": "mesh"}.items():
        if key in entry and kind != only:
            raise ProjectError(f"{owner}: '{key}' belongs to a {only}", where=where, got=kind)
    if kind == "plane":
        if any(key in entry for key in _PLACED):
            raise ProjectError(
                f"{owner}: a plane is placed by its normal and its offset", where=where, expected="plane, offset"
            )
        normal = _numbers(entry["plane"], 3, where, owner)
        length = float(np.linalg.norm(normal))
        if length < 1e-9:
            raise ProjectError(f"{owner}: the normal is zero", where=where, got=entry["plane"])
        return Plane(name, normal / length, float(_numbers(entry.get("offset", 0.0), 1, where, owner)[0] / length))
    placement = _placement(entry, where, owner)
    if kind == "mesh":
        scale = _numbers(entry.get("scale", [1, 1, 1]), 3, where, owner)
        if not scale.all():
            raise ProjectError(f"{owner}: the scale is zero, the object would vanish", where=where, got=scale.tolist())
        path = find_mesh(str(entry["mesh"]), Path(where))
        if path is None:
            raise ProjectError(
                f"{owner}: the mesh cannot be read",
                where=where,
                got=entry["mesh"],
                expected=f"a file beside the world file, {', '.join(MESH_FORMATS)}",
            )
        box = mesh_box(path)
        if box is None or not (np.abs(box * scale) < LARGEST_NUMBER).all():
            raise ProjectError(f"{owner}: the mesh is too large", where=where, got=path.name, expected="metres")
        return Visual(name, "mesh", tuple(scale.tolist()), placement, mesh=path)
    size = _numbers(entry[kind], _SIZES[kind], where, owner)
    if not (size > 0).all():
        raise ProjectError(f"{owner}: every size must be positive", where=where, got=size.tolist())
    return Visual(name, kind, tuple(size.tolist()), placement)


def _placement(entry: Mapping[str, Any], where: str, owner: str) -> Array:
    rpy = _numbers(entry.get("rpy", [0, 0, 0]), 3, where, owner)
    if (np.abs(rpy) > LARGEST_ANGLE).any():
        raise ProjectError(f"{owner}: rpy is in rad", where=where, got=rpy.tolist(), expected="a turn at most, ±6.2832")
    return placed_at(_numbers(entry.get("xyz", [0, 0, 0]), 3, where, owner), pin.rpy.rpyToMatrix(rpy))


def _numbers(value: Any, count: int, where: str, owner: str) -> Array:
    words = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, bool | str)]
    try:
        array = np.atleast_1d(np.asarray(value, dtype=float)) if not words else np.full(0, np.nan)
    except (TypeError, ValueError, OverflowError):
        array = np.full(0, np.nan)
    if array.shape != (count,) or not (np.abs(array) < LARGEST_NUMBER).all():
        raise ProjectError(
            f"{owner}: wrong numbers", where=where, got=value, expected=f"{count} finite numbers, not above {LARGEST_NUMBER:g}"
        )
    return array


def _check_keys(entry: Any, known: tuple[str, ...], where: str, owner: str) -> None:
    if not isinstance(entry, Mapping):
        raise ProjectError(f"{owner} is not a mapping", where=where, got=repr(entry)[:60], expected=", ".join(known))
    for key in entry:
        if key not in known:
            raise ProjectError(f"{owner}: unknown key '{key}'", where=where, remedy=nearest(str(key), known))
