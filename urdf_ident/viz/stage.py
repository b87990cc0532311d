"""The stage around the robot: floor with grid, base axes, supporting column, lights."""

from __future__ import annotations

import numpy as np

from ..linalg import Array
from ..model.geometry import Visual, placed_at
from .scene import add_shape
from .three import Command, Entry, Indices, SceneObject, buffers, hexadecimal, linear

_DEFAULTS = (
    "/Grid",
    "/Axes",
    "/Background",
    *(f"/Lights/{name}" for name in ("PointLightNegativeX", "PointLightPositiveX", "FillLight", "AmbientLight", "SpotLight")),
)
_FLOOR, _LINES = (0.97, 0.975, 0.985), (0.55, 0.62, 0.70)
_FADE = ((0.0, 1.0), (0.35, 1.0), (0.6, 0.75), (0.8, 0.3), (1.0, 0.0))  # share of the radius, opacity
_SPOKES, _PIECES = 72, 48


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
    vertices = np.concatenate([share * circle for share, _ in _FADE]) * radius + spot
    shades = np.repeat([[*linear(_FLOOR), opacity] for _, opacity in _FADE], _SPOKES, axis=0)
    ring = np.stack([k, k + _SPOKES, after, after, k + _SPOKES, after + _SPOKES], axis=1).reshape(1, -1)
    return vertices, shades, (ring + _SPOKES * np.arange(len(_FADE) - 1)[:, None]).reshape(-1, 3)


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
