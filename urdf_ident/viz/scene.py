"""The scene as commands of Meshcat: a robot with its inertia ellipsoids, the path of its tip, and the stage around it.

The viewer accepts the JSON format of three.js, so that everything three.js can draw is described directly. Light is
computed in linear colour space (the page switches the renderer to sRGB output), hence the conversion of colours here.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import MissingFileError
from ..files.read_write import read_bytes
from ..grouping import grouped
from ..linalg import Array
from ..model.geometry import PLAIN, Colour, Visual, placed_at
from ..model.inertia import pseudo_inertia
from ..model.meshes import beside_mesh
from ..model.robot import Robot

Command = dict[str, Any]
Entry = dict[str, Any]
Indices = NDArray[np.int64]
#: NumPy type → name of the JavaScript array and code of its message-pack extension.
_ARRAYS = {"uint8": ("Uint8Array", 0x12), "uint32": ("Uint32Array", 0x16), "float32": ("Float32Array", 0x17)}
_IMAGES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg"}
#: A white pixel, instead of a picture that is elsewhere.
_BLANK = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
_LYING = placed_at(np.zeros(3), [[1, 0, 0], [0, 0, -1], [0, 1, 0]])  # three's cylinders lie along y, URDF's along z
_DEFAULTS = (
    "/Grid",
    "/Axes",
    "/Background",
    *(f"/Lights/{name}" for name in ("PointLightNegativeX", "PointLightPositiveX", "FillLight", "AmbientLight", "SpotLight")),
)
#: Colours of the floor and its grid, sRGB.
_FLOOR, _LINES = (0.97, 0.975, 0.985), (0.55, 0.62, 0.70)
#: Rings and spokes of the floor, whose opacity is given at their crossings, and pieces of a line of its grid: round to the eye.
_RINGS, _SPOKES, _PIECES = 6, 72, 48
SIDES = 6  # sides of the tube
#: Slow to fast, sRGB.
SPEEDS = np.array([(0.17, 0.32, 0.75), (0.10, 0.62, 0.72), (0.98, 0.75, 0.18), (0.90, 0.24, 0.20)])
#: Segments of a trail: more than a screen has pixels in a row.
_MOST_STEPS = 4000


class SceneObject:
    """Builder for one object of the scene; always a group, because the viewer makes every single object cast shadows.

    Args:
        path: Path in the scene.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._geometries: list[Entry] = []
        self._materials: list[Entry] = []
        self._children: list[Entry] = []

    def geometry(self, **entry: Any) -> str:
        """Adds a geometry."""
        return self._store(self._geometries, "geometry", entry)

    def material(self, **entry: Any) -> str:
        """Adds a material."""
        return self._store(self._materials, "material", entry)

    def child(self, kind: str, matrix: Array | None = None, **entry: Any) -> None:
        """Adds a child; matrix of shape (4, 4) [m]: its placement, the origin if None."""
        place = {} if matrix is None else {"matrix": flat(matrix)}
        self._store(self._children, "child", {"type": kind, **place, **entry})

    def command(self) -> Command:
        """Returns the command that adds it to the scene."""
        group = {"uuid": self.path, "type": "Group", "children": self._children}
        whole = {
            "metadata": {"version": 4.5, "type": "Object"},
            "geometries": self._geometries,
            "materials": self._materials,
            "object": group,
        }
        return {"type": "set_object", "path": self.path, "object": whole}

    def _store(self, store: list[Entry], kind: str, entry: Entry) -> str:
        identity = f"{self.path} {kind} {len(store)}"
        store.append({**entry, "uuid": identity})
        return identity


def set_transform(path: str, matrix: Array) -> Command:
    """Moves a node of the scene; matrix of shape (4, 4) [m]: its placement in its parent."""
    return {"type": "set_transform", "path": path, "matrix": flat(matrix)}


def flat(matrix: Array) -> list[float]:
    """Returns a matrix as 16 numbers, in the column-major order of three.js; matrix of shape (4, 4)."""
    return [float(value) for value in matrix.T.reshape(-1)]


def packed(array: Any) -> Any:
    """Encodes an array of any shape for Meshcat's viewer: 8- or 32-bit unsigned integers, or 32-bit floats."""
    import umsgpack  # type: ignore[import-untyped]  # as Meshcat does

    return umsgpack.Ext(_ARRAYS[array.dtype.name][1], np.ascontiguousarray(array).tobytes())


def float32(array: Array) -> str:
    """Encodes an array of any shape as text, in 32-bit floats; array: any shape."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")


def buffers(points: Array, *, colours: Array | None = None, faces: Indices | None = None, flat_up: bool = False) -> Entry:
    """Returns the data of a ``BufferGeometry``.

    Args:
        points: Vertices, shape (K, 3) [m].
        colours: Linear red, green, blue and, if it fades, opacity of each vertex, shape (K, 3) or (K, 4).
        faces: Triangles, shape (T, 3), counter-clockwise from outside.
        flat_up: All normals point up.
    """
    arrays = {"position": points, "color": colours, "normal": np.tile([0.0, 0.0, 1.0], (len(points), 1)) if flat_up else None}
    attributes = {
        name: {
            "type": "Float32Array",
            "array": packed(array.astype(np.float32)),
            "itemSize": array.shape[1],
            "normalized": False,
        }
        for name, array in arrays.items()
        if array is not None
    }
    data: Entry = {"attributes": attributes}
    if faces is not None:
        data["index"] = {"type": "Uint32Array", "array": packed(faces.reshape(-1).astype(np.uint32))}
    return data


def linear(colour: ArrayLike) -> Array:
    """Converts sRGB to linear light, both 0..1; colour of shape (3,) or any other."""
    value = np.asarray(colour, dtype=float)
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def hexadecimal(colour: Sequence[float]) -> int:
    """Returns a colour (red, green, blue, sRGB 0..1) in the form of three.js, ``0xRRGGBB``, in linear light."""
    red, green, blue = (round(255 * float(value)) for value in linear(colour))
    return (red << 16) | (green << 8) | blue


def robot_commands(robot: Robot, shapes: Sequence[Visual], base: Array, root: str, *, ghost: bool = False) -> list[Command]:
    """Adds a robot to the scene, whose joints the page moves; base of shape (4, 4) [m]: placement of its root."""
    commands = []
    for link, of_link in grouped((shape.link, shape) for shape in shapes).items():
        node, placed = _on_link(robot, link, base, root)
        for shape in of_link:
            add_shape(node, shape, ghost=ghost)
        commands += [node.command(), placed]
    return commands


def _on_link(robot: Robot, link: str, base: Array, root: str) -> tuple[SceneObject, Command]:
    """An object that moves with a link, and the command that places it there."""
    joint, placement = robot.link_placements[link]
    node = SceneObject(f"{root}/{joint_path(robot, joint)}/{plain(link)}")
    return node, set_transform(node.path, base @ placement if joint < 0 else placement)


def joint_path(robot: Robot, joint: int) -> str:
    """Name of a joint's node in the scene; joint: its index in :attr:`Robot.tree_joints`, or -1 for the fixed parts."""
    return "fixed" if joint < 0 else f"joint {plain(robot.tree_joints[joint])}"


def plain(name: str) -> str:
    """Makes a name valid in a path."""
    return name.replace("/", "_") or "_"


def add_shape(node: SceneObject, shape: Visual, *, ghost: bool = False) -> None:
    """Adds one shape to an object of the scene."""
    material = node.material(**_material(shape.colour or PLAIN, ghost))
    look: Entry = {"castShadow": not ghost, "receiveShadow": not ghost}

    def mesh(local: Array, **geometry: object) -> None:
        node.child("Mesh", shape.placement @ local, geometry=node.geometry(**geometry), material=material, **look)

    if shape.kind == "mesh":  # the file itself; of Collada without a colour from the URDF with its own materials
        path = Path(str(shape.mesh))
        kind = path.suffix.lower().lstrip(".")
        content = read_bytes(path, "mesh")
        data = packed(np.frombuffer(content, dtype=np.uint8)) if kind == "stl" else _text(content, path)
        if kind == "dae":
            data = _with_own_images(str(data), path)
        placement = shape.placement @ np.diag([*shape.size, 1.0])
        if kind == "dae" and shape.colour is None:
            node.child("_meshfile_object", placement, format=kind, data=data, resources={}, name="own materials", **look)
        else:
            geometry = node.geometry(type="_meshfile_geometry", format=kind, data=data)
            node.child("Mesh", placement, geometry=geometry, material=material, **look)
    elif shape.kind == "box":
        width, height, depth = shape.size
        mesh(np.eye(4), type="BoxGeometry", width=width, height=height, depth=depth)
    elif shape.kind == "sphere":
        mesh(np.eye(4), **_ball(shape.size[0]))
    else:
        radius, length = shape.size
        mesh(_LYING, type="CylinderGeometry", radiusTop=radius, radiusBottom=radius, height=length, radialSegments=48)
        if shape.kind == "capsule":
            for end in (-length / 2, length / 2):
                mesh(placed_at([0, 0, end]), **_ball(radius))


def _ball(radius: float) -> Entry:
    return {"type": "SphereGeometry", "radius": radius, "widthSegments": 40, "heightSegments": 28}


def _text(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MissingFileError("the mesh file is not text", where=str(path), remedy="export it again, or as STL") from error


def _with_own_images(text: str, path: Path) -> str:
    """A Collada file whose pictures are part of it: a page asks neither the network nor the disk for them."""
    if "<!" in re.sub(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", "", text, flags=re.S):
        raise MissingFileError("the mesh file declares a document type", where=str(path), remedy="export it again, or as STL")

    def inlined(match: re.Match[str]) -> str:
        name = html.unescape(re.sub(r"<[^>]*>", "", match[2])).strip()
        kind = _IMAGES.get(Path(name).suffix.lower())
        file = None if kind is None else beside_mesh(name, path)
        data = _BLANK if file is None else base64.b64encode(read_bytes(file, "picture")).decode("ascii")
        return f"{match[1]}data:image/{'png' if file is None else kind};base64,{data}{match[3]}"

    def of_image(match: re.Match[str]) -> str:
        return named.sub(inlined, match[0])

    def of_surface(match: re.Match[str]) -> str:
        known = html.unescape(match[2]).strip() in images or match[2].startswith("data:image/")
        return match[0] if known else inlined(match)

    named = re.compile(r"(<init_from\b[^>]*>)(.*?)(</init_from\s*>)", re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    images = {html.unescape(name) for _, name in re.findall(r"<image\b[^>]*\bid\s*=\s*(['\"])(.*?)\1", text)}
    text = re.sub(r"<image\b.*?</image\s*>", of_image, text, flags=re.S)
    return named.sub(of_surface, text)  # of Collada 1.4, which names an image


def _material(colour: Colour, ghost: bool = False) -> Entry:
    entry: Entry = {"type": "MeshStandardMaterial", "color": hexadecimal(colour[:3]), "roughness": 0.48, "metalness": 0.12}
    entry["side"] = 2  # both sides: some meshes have inverted faces
    if colour[3] < 1:
        entry |= {"transparent": True, "opacity": colour[3], "depthWrite": not ghost}
    return entry


def inertia_commands(robot: Robot, base: Array, root: str, colour: Colour) -> list[Command]:
    """Adds the solid ellipsoid of uniform density with each link's mass and inertia; base of shape (4, 4) [m]; colour: RGBA."""
    commands = []
    for link in robot.link_placements:
        known = robot.description.links.get(link)
        if known is None or known.theta is None or known.theta[0] <= 0:
            continue
        node, placed = _on_link(robot, link, base, root)
        material = node.material(**{**_material(colour, ghost=True), "roughness": 0.7})
        node.child("Mesh", ellipsoid(known.theta), geometry=node.geometry(**_ball(1.0)), material=material)
        commands += [node.command(), placed]
    return commands


def ellipsoid(theta: Array) -> Array:
    """Map from the unit ball to the solid ellipsoid of uniform density with given mass and inertia.

    Its second moment along a semi-axis a is ``m a²/5``.

    Args:
        theta: Ten inertial parameters, shape (10,): mass [kg], first moments [kg·m], inertia about the origin [kg·m²].

    Returns:
        Shape (4, 4) [m]; semi-axes are at least 1 mm, even if the inertia is impossible.
    """
    centre = theta[1:4] / theta[0]
    moments, axes = np.linalg.eigh(pseudo_inertia(theta)[:3, :3] / theta[0] - np.outer(centre, centre))
    return placed_at(centre, axes * np.linalg.det(axes) * np.maximum(np.sqrt(5.0 * np.maximum(moments, 0.0)), 1e-3))


def stage_commands(points: Array, foot: Array, base: Array) -> list[Command]:
    """Replaces the viewer's floor, axes and lights by ones that fit the motion.

    Args:
        points: Points around everything drawn, shape (K, 3) [m].
        foot: Lowest point of the fixed parts, shape (3,) [m]; a column supports it if the motion reaches below.
        base: Placement of the robot's root, shape (4, 4) [m].
    """
    low, high = points.min(axis=0), points.max(axis=0)
    centre, size = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
    standing = base[2, 2] > 0.9  # not hanging or on a wall
    level = float(min(foot[2] if standing else low[2], low[2] + 0.02 * size)) - 2e-3 * size
    hidden = [{"type": "set_property", "path": path, "property": "visible", "value": False} for path in _DEFAULTS]
    spot = np.array([centre[0], centre[1], level])
    commands = [*hidden, *_floor(spot, size), *_lights(centre, size), _axes(base, 0.26 * size)]
    return [*commands, _column(foot, level, size)] if standing and foot[2] - level > 0.05 * size else commands


def _lights(centre: Array, size: float) -> list[Command]:
    """A warm key light that casts shadows, a cool fill light, and sky light."""
    box = 1.3 * size
    view = {"left": -box, "right": box, "top": box, "bottom": -box, "near": 0.1 * size, "far": 9 * size, "zoom": 1}
    camera = {"uuid": "shadow camera", "type": "OrthographicCamera", **view}
    shadow = {"bias": -0.0004, "radius": 5, "mapSize": [2048, 2048], "camera": camera}
    key, fill, sky = (SceneObject(f"/stage/{name} light") for name in ("key", "fill", "sky"))
    place = placed_at(centre + size * np.array([2.0, -1.6, 3.6]))
    key.child("DirectionalLight", place, color=0xFFF4E6, intensity=1.22, castShadow=True, shadow=shadow)
    fill.child("DirectionalLight", placed_at(centre + size * np.array([-3.0, 1.5, 1.2])), color=0xCFE2FF, intensity=0.35)
    sky.child("HemisphereLight", placed_at([0.0, 0.0, 1.0]), color=0xF4F8FF, groundColor=0x9A9488, intensity=0.6)
    return [key.command(), fill.command(), sky.command()]


def _axes(base: Array, length: float) -> Command:
    """The axes of the robot's base frame: red x, green y, blue z."""
    node = SceneObject("/stage/axes")
    turns = np.array([[[0, 1, 0], [-1, 0, 0], [0, 0, 1]], np.eye(3), [[1, 0, 0], [0, 0, -1], [0, 1, 0]]], dtype=float)
    for axis, colour in enumerate(((0.85, 0.22, 0.20), (0.20, 0.65, 0.30), (0.16, 0.40, 0.85))):
        radius = 0.014 * length
        rod = node.geometry(type="CylinderGeometry", radiusTop=radius, radiusBottom=radius, height=length)
        paint = node.material(type="MeshBasicMaterial", color=hexadecimal(colour))
        node.child("Mesh", base @ placed_at(length / 2 * np.eye(3)[axis], turns[axis]), geometry=rod, material=paint)
    return node.command()


def _floor(spot: Array, size: float) -> list[Command]:
    """A disc that fades out, a grid with round steps, and a surface for the shadows."""
    radius = 4.5 * size
    border = 0.95 * radius
    vertices, shades, faces = _disc(spot, radius)
    lines = _grid(spot, size, border)
    fade = 0.5 * np.clip(1 - (np.linalg.norm(lines[:, :2] - spot[:2], axis=1) / border), 0, 1) ** 1.2
    line_shades = np.column_stack([np.tile(linear(_LINES), (len(lines), 1)), fade])
    fading: Entry = {"vertexColors": 2, "transparent": True, "depthWrite": False, "color": 0xFFFFFF}
    catcher: Entry = {"color": 0x1B2A41, "transparent": True, "opacity": 0.26, "depthWrite": False}
    layers = (
        ("floor", "Mesh", "MeshBasicMaterial", fading, buffers(vertices, colours=shades, faces=faces)),
        ("grid", "LineSegments", "LineBasicMaterial", fading, buffers(lines, colours=line_shades)),
        ("shadow", "Mesh", "ShadowMaterial", catcher, buffers(vertices + [0, 0, 2e-4 * size], faces=faces, flat_up=True)),
    )
    commands = []
    for order, (name, kind, material, look, data) in enumerate(layers, start=-len(layers)):
        layer = SceneObject(f"/stage/{name}")
        geometry, shade = layer.geometry(type="BufferGeometry", data=data), layer.material(type=material, **look)
        layer.child(kind, geometry=geometry, material=shade, renderOrder=order, receiveShadow=name == "shadow")
        commands.append(layer.command())
    return commands


def _disc(spot: Array, radius: float) -> tuple[Array, Array, Indices]:
    """Vertices of rings about a spot, shape (K, 3) [m], their colours and opacities, shape (K, 4), and triangles, (T, 3)."""
    k = np.arange(_SPOKES)
    angles, after = 2 * np.pi * k / _SPOKES, (k + 1) % _SPOKES
    circle = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(_SPOKES)])
    shares = np.linspace(0.0, 1.0, _RINGS)
    vertices = np.concatenate([share * circle for share in shares]) * radius + spot
    shades = np.repeat([[*linear(_FLOOR), (1 - share**3) ** 2] for share in shares], _SPOKES, axis=0)
    ring = np.stack([k, k + _SPOKES, after, after, k + _SPOKES, after + _SPOKES], axis=1).reshape(1, -1)
    return vertices, shades, (ring + _SPOKES * np.arange(_RINGS - 1)[:, None]).reshape(-1, 3)


def _grid(spot: Array, size: float, border: float) -> Array:
    """Ends of short pieces of lines, a round step apart, within a circle about a spot, shape (2 K, 3) [m]."""
    step = 10.0 ** np.floor(np.log10(size / 2))
    step *= max(factor for factor in (1, 2, 5) if factor == 1 or factor * step <= size / 2)
    pieces = []
    for axis in (0, 1):
        first, last = np.ceil((spot[axis] - border) / step), np.floor((spot[axis] + border) / step)
        for value in np.arange(first, last + 1) * step:
            half = np.sqrt(max(border**2 - (value - spot[axis]) ** 2, 0.0))
            line = np.full((_PIECES + 1, 3), spot[2] + 4e-4 * size)
            line[:, axis], line[:, 1 - axis] = value, np.linspace(-half, half, _PIECES + 1) + spot[1 - axis]
            pieces.append(np.stack([line[:-1], line[1:]], axis=1).reshape(-1, 3))
    return np.concatenate(pieces)


def _column(foot: Array, level: float, size: float) -> Command:
    """A column that supports the robot where its motion reaches below its foot."""
    column, height = SceneObject("/stage/column"), float(foot[2] - level)
    shape = Visual("", "cylinder", (0.045 * size, height), placed_at(foot - [0, 0, height / 2]), (0.80, 0.83, 0.87, 0.6))
    add_shape(column, shape, ghost=True)
    return column.command()


def trail_commands(
    path: str, tip: Array, rate: float, radius: float, colour: Colour | None = None
) -> tuple[list[Command], int]:
    """Draws the path of the tip as a tube.

    Args:
        tip: Path of the tip, shape (F, 3) [m].
        rate: Frames per second [Hz].
        radius: Radius of the tube [m].
        colour: A single colour instead of colours by speed.

    Returns:
        Commands, none if the tip does not move; and the number of frames per segment of the tube.
    """
    step = -(-(len(tip) - 1) // _MOST_STEPS)
    points = tip[np.unique(np.append(np.arange(0, len(tip), step), len(tip) - 1))]
    if np.ptp(points, axis=0).max() < 2 * radius:
        return [], step
    speed = tip_speed(tip, rate)[np.minimum(np.arange(len(points)) * step, len(tip) - 1)]
    if colour is None:
        stops = np.linspace(0, 1, len(SPEEDS))
        shades = np.column_stack([np.interp(speed / speed.max(), stops, channel) for channel in SPEEDS.T])
    else:
        shades = np.tile(colour[:3], (len(points), 1))
    vertices, faces = tube(points, radius)
    node = SceneObject(path)
    data = buffers(vertices, colours=np.repeat(linear(shades), SIDES, axis=0), faces=faces)
    node.child(
        "Mesh",
        geometry=node.geometry(type="BufferGeometry", data=data),
        material=node.material(
            type="MeshBasicMaterial", color=0xFFFFFF, vertexColors=2, side=2, transparent=True, opacity=0.98
        ),
    )
    return [node.command()], step


def tip_speed(tip: Array, rate: float) -> Array:
    """Returns the speed along a path, shape (F,) [m/s]; tip of shape (F, 3) [m], rate: frames per second [Hz]."""
    return np.asarray(np.linalg.norm(np.gradient(tip, axis=0), axis=1) * rate)


def tube(points: Array, radius: float) -> tuple[Array, Indices]:
    """Builds a tube along a path, with one ring of vertices per point, without twist.

    Args:
        points: Path, shape (K, 3) [m]; points may repeat.
        radius: Radius [m].

    Returns:
        Vertices, shape (K·sides, 3) [m], and triangles, shape ((K − 1)·sides·2, 3), in the order of the path.
    """
    tangents = np.gradient(points, axis=0)
    lengths = np.linalg.norm(tangents, axis=1, keepdims=True)
    moving = np.flatnonzero(lengths[:, 0] > 1e-12)
    if len(moving) == 0:
        tangents, moving, lengths = np.tile([1.0, 0.0, 0.0], (len(points), 1)), np.array([0]), np.ones((len(points), 1))
    latest = moving[np.maximum(np.searchsorted(moving, np.arange(len(points)), side="right") - 1, 0)]
    tangents = tangents[latest] / lengths[latest]  # at rest, the last direction of motion
    angles = 2 * np.pi * np.arange(SIDES) / SIDES
    normal = np.array([0.0, 0.0, 1.0])
    rings = np.empty((len(points), SIDES, 3))
    for k, tangent in enumerate(tangents):
        across = normal - (normal @ tangent) * tangent
        if across @ across < 1e-6:
            across = np.cross(tangent, np.eye(3)[int(np.argmin(np.abs(tangent)))])
        normal = across / np.sqrt(across @ across)
        rings[k] = points[k] + radius * (np.outer(np.cos(angles), normal) + np.outer(np.sin(angles), np.cross(tangent, normal)))
    here, following = np.arange(SIDES), (np.arange(SIDES) + 1) % SIDES
    upper = np.stack([here, following, here + SIDES], axis=1)
    lower = np.stack([following, following + SIDES, here + SIDES], axis=1)
    piece = np.stack([upper, lower], axis=1).reshape(1, -1, 3)
    return rings.reshape(-1, 3), (piece + (np.arange(len(points) - 1) * SIDES)[:, None, None]).reshape(-1, 3)
