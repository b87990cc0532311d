"""Solids of a robot and of its world as Coal geometry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelError
from ...linalg import Array
from ...model.geometry import Visual
from ...model.meshes import load_mesh
from ...samples import ReadOnly
from .world import Plane

#: A thinner mesh is thickened by this much on either side [m].
FLAT = 1e-4


@dataclass(frozen=True, eq=False)
class Solid(ReadOnly):
    """One solid, fixed to a body.

    Attributes:
        body: Index of the body (0: the robot's root, and the world).
        of_world: Whether it belongs to the world rather than the robot.
        placement: Shape (4, 4) [m], in the body's frame.
        reach: Largest distance of its points from the body's origin [m]; inf for a plane.
        centre: Centre of a bounding sphere, shape (3,) [m], in the body's frame.
        radius: Of that sphere [m].
        half: Half edges of a bounding box, oriented like ``placement`` and centred at ``centre``, shape (3,) [m].
        assumed: Whether it replaces geometry that the URDF lacks.
    """

    name: str
    body: int
    of_world: bool
    geometry: Any
    placement: Array
    reach: float
    centre: Array
    radius: float
    half: Array
    assumed: bool = False


def shape_solid(shape: Visual, body: int, frame: Array, *, of_world: bool = False) -> Solid:
    """Returns the solid of a shape of a link or of the world.

    Args:
        shape: The shape, in the frame of the link or of the world.
        body: Index of the body that the link is lumped into; 0 for fixed links and the world.
        frame: Placement of that frame in the body, shape (4, 4) [m].
        of_world: Whether it belongs to the world.

    Returns:
        The solid; for a mesh of a link its convex hull, for one of the world its exact surface.

    Raises:
        ModelError: The mesh of a link has no hull.
    """
    import coal  # type: ignore[import-untyped]  # comes with Pinocchio

    middle = np.zeros(3)
    if shape.kind == "mesh":
        mesh = load_mesh(Path(str(shape.mesh)), np.array(shape.size))
        points, round_off = np.array(mesh.vertices()), 0.0
        middle, half = (points.max(axis=0) + points.min(axis=0)) / 2, (points.max(axis=0) - points.min(axis=0)) / 2
        geometry = mesh if of_world else _hull(mesh, shape)
    elif shape.kind == "box":
        geometry, half = coal.Box(*shape.size), np.array(shape.size) / 2
        points, round_off = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half, 0.0
    else:  # solid of revolution: the ends of its axis, and a radius
        length = 0.0 if shape.kind == "sphere" else shape.size[1] / 2
        points, round_off = np.array([[0.0, 0, -length], [0, 0, length]]), shape.size[0]
        half = np.array([round_off, round_off, length + (0.0 if shape.kind == "cylinder" else round_off)])
        geometry = {"sphere": coal.Sphere, "cylinder": coal.Cylinder, "capsule": coal.Capsule}[shape.kind](*shape.size)
    placement = frame @ shape.placement
    there = points @ placement[:3, :3].T + placement[:3, 3]
    centre = placement[:3, :3] @ middle + placement[:3, 3]
    if shape.kind == "cylinder":
        radius = float(np.hypot(half[0], half[2]))
    else:
        radius = float(np.linalg.norm(there - centre, axis=1).max() + round_off)
    reach = float(np.linalg.norm(there, axis=1).max() + round_off)
    return Solid(shape.link, body, of_world, geometry, placement, reach, centre, radius, half, shape.assumed)


def plane_solid(plane: Plane, root: Array) -> Solid:
    """Returns the solid of a half-space of the world; root: placement of the robot's root in the world, shape (4, 4) [m]."""
    import coal

    offset = plane.offset - float(plane.normal @ root[:3, 3])
    turned = root[:3, :3].T @ plane.normal
    solid = coal.Halfspace(turned, offset)
    return Solid(plane.name, 0, True, solid, np.eye(4), np.inf, offset * turned, np.inf, np.zeros(3))


def _hull(mesh: Any, shape: Visual) -> Any:
    """Returns the convex hull of a mesh; a flat mesh, on which Coal crashes, is thickened slightly."""
    import coal

    points = np.array(mesh.vertices())
    axes = np.linalg.eigh(np.cov(points.T, bias=True))[1].T
    flat = axes[np.ptp(points @ axes.T, axis=0) < FLAT]
    if len(flat):
        for axis in flat:
            points = np.concatenate([points - FLAT * axis, points + FLAT * axis])
        mesh = coal.BVHModelOBBRSS()
        mesh.beginModel(1, len(points))
        mesh.addVertices(points)
        mesh.addTriangle(*points[:3])
        mesh.endModel()
    try:
        mesh.buildConvexHull(True, "Qt")
    except RuntimeError as error:
        raise ModelError("a collision mesh has no convex hull", where=f"link '{shape.link}'", got=str(shape.mesh)) from error
    return mesh.convex
