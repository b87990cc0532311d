"""Bodies of uniform density in a robot's geometry, for links whose inertials a URDF lacks."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from ..grouping import grouped
from ..linalg import Array
from .geometry import CAPSULE, capsules_between_joints, placed_at, reach, solid_shapes
from .inertia import from_pseudo_inertia
from .meshes import load_mesh
from .robot import Robot

#: Sum of the area vectors of a mesh over the sum of their lengths up to which it is closed; rounded corners leave 1e-6.
_CLOSED = 1e-4


def uniform_bodies(robot: Robot) -> Array:
    """Returns the inertial parameters of the moving bodies, lumped links included, if their geometry had a density of 1 kg/m³.

    The geometry of a link is its ``<collision>``, else its ``<visual>``. Links with missing mesh files, and those of bodies
    without any geometry, are capsules between their joints; without any length, a body is a ball of the
    volume of a capsule from the joint before to its own.

    Returns:
        Shape (n_bodies, 10), about the joint frames' origins [m³, m⁴, m⁵].
    """
    shapes, lost = solid_shapes(robot)
    radius = CAPSULE * reach(robot, with_strokes=False)
    capsules = grouped((shape.link, shape) for shape in capsules_between_joints(robot, radius, least=radius))
    out = []
    for i, body in enumerate(robot.bodies):
        bare, matter = not any(link.name in shapes for link in body.links), np.zeros((4, 4))
        for link in body.links:
            own = capsules.get(link.name, []) if bare or link.name in lost else shapes.get(link.name, [])
            place = placed_at(link.translation, link.rotation)
            for shape in own:  # pseudo-inertias, shape (4, 4)
                inside = _moments(shape.kind, shape.size) if shape.mesh is None else np.eye(4)
                if shape.mesh is not None:
                    scale = np.diag([*shape.size, 1.0])
                    inside = abs(np.prod(shape.size)) * (scale @ _mesh_moments(shape.mesh) @ scale)
                put = place @ shape.placement
                matter += put @ inside @ put.T
        if matter[3, 3] == 0:
            volume = _moments("capsule", (radius, float(robot.offsets[i])))[3, 3]
            matter = _moments("sphere", (np.cbrt(0.75 * volume / np.pi),))
        out.append(from_pseudo_inertia(matter))
    return np.array(out)


def _moments(kind: str, size: tuple[float, ...]) -> Array:
    """Pseudo-inertia of a primitive of density 1 about its centre, shape (4, 4): second moments and volume."""
    r, length = size[0], size[-1]
    tube, ball = np.pi * r**2 * length, 4 / 3 * np.pi * r**3
    round_tube, round_ball = tube * np.array([r**2 / 4, r**2 / 4, length**2 / 12]), ball * np.full(3, r**2 / 5)
    ends = round_ball + ball * np.array([0.0, 0.0, length**2 / 4 + 3 * r * length / 8])
    volume, second = {
        "box": (np.prod(size), np.prod(size) * np.square(size) / 12),
        "sphere": (ball, round_ball),
        "cylinder": (tube, round_tube),
        "capsule": (tube + ball, round_tube + ends),
    }[kind]
    return np.diag([*second, volume])


@lru_cache(maxsize=256)
def _mesh_moments(path: Path) -> Array:
    """Pseudo-inertia of a mesh, or of its bounding box where its surface is not closed, shape (4, 4)."""
    mesh = load_mesh(path, np.ones(3))
    corners = np.array(mesh.vertices())
    faces = corners[[[mesh.tri_indices(k)[i] for i in range(3)] for k in range(mesh.num_tris)]]
    area = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    volume, total = np.linalg.det(faces) / 6, faces.sum(axis=1)  # of tetrahedra between the origin and each face
    second = np.einsum("k,kia,kib->ab", volume, faces, faces) + np.einsum("k,ka,kb->ab", volume, total, total)
    first = volume @ total / 4
    moments = np.block([[second / 20, first[:, None]], [first[None, :], volume.sum()]])
    closed = np.linalg.norm(area.sum(axis=0)) < _CLOSED * np.linalg.norm(area, axis=1).sum()
    if closed and np.linalg.eigvalsh(moments)[0] > 0:
        return moments
    low, high = corners.min(axis=0), corners.max(axis=0)
    place = placed_at((low + high) / 2)
    return np.asarray(place @ _moments("box", tuple(np.maximum(high - low, 1e-3))) @ place.T)
