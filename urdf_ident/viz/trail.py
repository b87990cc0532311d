"""The path of the tip as a tube, coloured by its speed."""

from __future__ import annotations

import numpy as np

from ..linalg import Array
from ..model.geometry import Colour
from .three import Command, Indices, SceneObject, buffers, linear

SIDES = 6  # sides of the tube
#: Slow to fast, sRGB.
SPEEDS = np.array([(0.17, 0.32, 0.75), (0.10, 0.62, 0.72), (0.98, 0.75, 0.18), (0.90, 0.24, 0.20)])
_MOST_STEPS = 4000


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
