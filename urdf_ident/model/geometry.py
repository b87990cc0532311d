"""Shapes of a robot: visual and collision geometry of its URDF, or capsules along links without geometry; and the bodies of
uniform density in these shapes, for links whose inertials a URDF lacks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..grouping import abbreviated, grouped
from ..linalg import Array
from .inertia import from_pseudo_inertia
from .meshes import MESH_FORMATS, find_mesh, load_mesh, mesh_box
from .robot import Robot
from .urdf import read_xml

Colour = tuple[float, float, float, float]
PLAIN: Colour = (0.76, 0.78, 0.80, 1.0)
JOINT: Colour = (0.16, 0.43, 0.72, 1.0)
DARK: Colour = (0.22, 0.24, 0.27, 1.0)
#: Attributes of a shape in a URDF, and the number of values of each [m].
SIZES: Mapping[str, Mapping[str, int]] = {
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
}
#: Radius of the capsules for links without collision geometry, as a fraction of the length of the kinematic chain.
CAPSULE = 0.04


@dataclass(frozen=True, eq=False)
class Visual:
    """One shape of a link.

    Attributes:
        kind: ``box``, ``cylinder`` and ``capsule`` (along z), ``sphere`` or ``mesh``.
        size: Edges (3); radius and length (2), of a capsule between the centres of its ends; radius (1) [m]; of a mesh
            its scale (3).
        placement: Shape (4, 4) [m], in the link's frame.
        colour: Red, green, blue, opacity, each 0..1 as in URDF; None if a mesh file may define its own.
        assumed: Whether it replaces geometry that the URDF lacks.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    placement: Array
    colour: Colour | None = PLAIN
    mesh: Path | None = None
    assumed: bool = False

    def corners(self) -> Array:
        """Returns the corners of a bounding box, in the link's frame, shape (8, 3) [m]."""
        if self.kind == "mesh" and self.mesh is not None:
            box = mesh_box(self.mesh)
            low, high = np.zeros((2, 3)) if box is None else box * self.size
        else:
            radius, length = self.size[0], self.size[-1]
            high = {
                "box": np.array(self.size) / 2,
                "sphere": np.full(3, radius),
                "cylinder": np.array([radius, radius, length / 2]),
                "capsule": np.array([radius, radius, length / 2 + radius]),
            }[self.kind]
            low = -high
        choice = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        return np.asarray(np.where(choice, high, low) @ self.placement[:3, :3].T + self.placement[:3, 3])


def robot_shapes(robot: Robot) -> tuple[tuple[Visual, ...], tuple[str, ...]]:
    """Returns the shapes of a robot: its ``<visual>``, else its ``<collision>``, else capsules between its joints.

    Returns:
        Shapes, and notes on what could not be drawn as in the URDF.
    """
    stated = _read_shapes(robot, "visual")
    if not (stated.shapes or stated.meshless):
        stated = _read_shapes(robot, "collision")
    shapes, notes = stated.shapes, []
    if stated.meshless:
        meshless = {link for link, _ in stated.meshless}
        shapes = [*shapes, *(shape for shape in link_capsules(robot) if shape.link in meshless)]
        notes.append(_meshless(stated.meshless))
    if stated.invalid:
        notes.append(f"geometry that cannot be drawn was left out of link {', '.join(sorted(stated.invalid))}")
    return tuple(shapes or link_capsules(robot)), tuple(notes)


def collision_shapes(robot: Robot) -> tuple[tuple[Visual, ...], tuple[str, ...]]:
    """Returns the solid shapes of a robot: its ``<collision>`` geometry, and capsules where that is missing.

    A link with mass and without usable collision geometry gets capsules from its joint to the next ones, with a note. Their
    radius is a fixed fraction of the length of the chain, without strokes.

    Returns:
        Shapes, and notes on the capsules.
    """
    stated = _read_shapes(robot, "collision")
    drawn = {shape.link for shape in stated.shapes} - stated.unread
    heavy = {name for name, link in robot.description.links.items() if link.theta is not None and link.theta[0] > 0}
    bare = [name for name in robot.description.links if name in stated.unread or (name in heavy and name not in drawn)]
    if not bare:
        return tuple(stated.shapes), ()
    thickness = CAPSULE * robot.reach(with_strokes=False)
    capsules = capsules_between_joints(robot, thickness, least=1e-6)
    made = [shape for shape in capsules if shape.link in bare]
    for name in bare:
        theta = robot.description.links[name].theta
        if all(shape.link != name for shape in made) and theta is not None and theta[0] > 0:
            made.append(Visual(name, "sphere", (thickness,), placed_at(theta[1:4] / theta[0])))
    stood = [name for name in bare if any(shape.link == name for shape in made)]
    notes = []
    if stood:
        several = f"links {abbreviated(stood)} have" if len(stood) > 1 else f"link {stood[0]} has"
        notes.append(f"{several} no usable collision geometry: capsules of {1000 * thickness:.3g} mm radius stand in")
    if stated.meshless:
        notes.append(_meshless(stated.meshless))
    if stated.invalid:
        notes.append(f"collision geometry without a usable size: {abbreviated(sorted(stated.invalid))}")
    return (*stated.shapes, *(replace(shape, assumed=True) for shape in made)), tuple(notes)


def _meshless(meshless: Sequence[tuple[str, str]]) -> str:
    """The same note for drawn and for solid shapes, so that it is given once."""
    files = abbreviated(list(dict.fromkeys(repr(file) for _, file in meshless)), 1)
    lacking = f"mesh files not found, broken or of another format than {', '.join(MESH_FORMATS)}: {files}"
    return f"{lacking}; capsules stand in; give the package of others with --package DIR, or in ROS_PACKAGE_PATH"


def stated_shapes(robot: Robot) -> tuple[tuple[Visual, ...], frozenset[str]]:
    """Returns the visual and collision shapes of the URDF, without any replacements.

    Returns:
        Shapes of ``<visual>`` and ``<collision>``, and the links whose geometry could not be read completely.
    """
    visual, collision = (_read_shapes(robot, tag) for tag in ("visual", "collision"))
    return (*visual.shapes, *collision.shapes), frozenset(visual.unread | collision.unread)


def solid_shapes(robot: Robot) -> tuple[dict[str, list[Visual]], frozenset[str]]:
    """Returns what each link is made of: its ``<collision>`` geometry, else its ``<visual>``.

    Returns:
        Shapes by link, and the links of which neither can be read completely.
    """
    shapes: dict[str, list[Visual]] = {}
    unread: set[str] = set()
    for tag in ("visual", "collision"):
        stated = _read_shapes(robot, tag)
        shapes |= grouped((shape.link, shape) for shape in stated.shapes if shape.link not in stated.unread)
        unread |= stated.unread
    return shapes, frozenset(unread - set(shapes))


def capsules_between_joints(robot: Robot, radius: float, *, least: float) -> list[Visual]:
    """Returns a capsule from the origin of each link to each joint on it; of a last link, to twice its centre of mass.

    Args:
        radius: [m].
        least: Length below which there is none [m].
    """
    joints, places = robot.description.joints.values(), _joint_placements(robot)
    ends = [(joint.parent, places[joint.name][:3, 3]) for joint in joints]
    parents = {joint.parent for joint in joints}
    for joint in joints:
        theta = robot.description.links[joint.child].theta
        if joint.child not in parents and theta is not None and theta[0] > 0:  # an empty last link is only a frame
            ends.append((joint.child, 2.0 * theta[1:4] / theta[0]))
    return [segment(link, np.zeros(3), end, radius) for link, end in ends if np.linalg.norm(end) > least]


class _StatedShapes(NamedTuple):
    """Shapes of one kind of element, (link, file) of each missing mesh, and links with invalid geometry."""

    shapes: list[Visual]
    meshless: list[tuple[str, str]]
    invalid: set[str]

    @property
    def unread(self) -> set[str]:
        """Links whose geometry could not be read completely."""
        return self.invalid | {link for link, _ in self.meshless}


def _read_shapes(robot: Robot, tag: str) -> _StatedShapes:
    root = read_xml(robot.urdf, robot.path)
    materials = {one.get("name"): colour for one in root.iter("material") if (colour := _colour(one)) is not None}
    stated = _StatedShapes([], [], set())
    for link in root.iter("link"):
        for element in link.findall(tag):
            name = link.get("name") or ""
            try:
                shape = _shape(name, element, materials, Path(robot.path))
            except (ValueError, TypeError):
                stated.invalid.add(name)
                continue
            if shape is None:
                mesh = element.find("geometry/mesh")
                stated.meshless.append((name, str(mesh.get("filename")) if mesh is not None else ""))
            else:
                stated.shapes.append(shape)
    return stated


def _shape(link: str, element: ElementTree.Element, materials: dict[str | None, Colour], urdf: Path) -> Visual | None:
    """Reads one element; returns None for a missing mesh file and raises ValueError for invalid geometry."""
    geometry = element.find("geometry")
    solid = next(iter(geometry), None) if geometry is not None else None
    if solid is None:
        raise ValueError("no geometry")
    material = element.find("material")
    colour = None if material is None else _colour(material) or materials.get(material.get("name"))
    placement = _origin(element)
    if solid.tag == "mesh":
        path = find_mesh(solid.get("filename") or "", urdf)
        scale = _numbers(solid.get("scale") or "1 1 1", 3)
        return None if path is None else Visual(link, "mesh", scale, placement, colour, path)
    if solid.tag not in SIZES:
        raise ValueError(solid.tag)
    size = tuple(value for key, count in SIZES[solid.tag].items() for value in _numbers(solid.get(key), count))
    if min(size) <= 0:
        raise ValueError("no size")
    return Visual(link, solid.tag, size, placement, colour or PLAIN)


def _numbers(text: str | None, count: int) -> tuple[float, ...]:
    values = tuple(float(part) for part in (text or "").split())
    if len(values) != count or not all(math.isfinite(value) for value in values):
        raise ValueError(text)
    return values


def _colour(material: ElementTree.Element) -> Colour | None:
    element = material.find("color")
    try:
        red, green, blue, opacity = _numbers(element.get("rgba"), 4) if element is not None else ()
    except ValueError:
        return None
    red, green, blue, opacity = (min(max(value, 0.0), 1.0) for value in (red, green, blue, opacity))
    return red, green, blue, opacity


def link_capsules(robot: Robot) -> list[Visual]:
    """Returns shapes for a robot without geometry: capsules between joints, and a marker on every joint.

    Returns:
        Shapes; the capsule of a last link without a tool frame ends at twice its centre of mass.
    """
    # Proportions of a drawing, from no source; distances and inertias use CAPSULE. The capsules' radius is a fraction of the
    # reach and the unit of all others: markers of joints and the foot are wider, to stick out, the rod along a stroke thinner.
    radius = 0.032 * robot.reach()
    places = _joint_placements(robot)
    shapes = capsules_between_joints(robot, radius, least=0.2 * radius)
    joints = robot.description.joints
    for index, name in enumerate(robot.tree_joints):
        joint, place, axis = joints[name], places[name], robot.axes[index]
        if joint.type == "prismatic":
            block = (2.6 * radius, 2.6 * radius, 3.6 * radius)
            shapes.append(Visual(joint.child, "box", block, along(axis, np.zeros(3)), JOINT))
            ends = [place[:3, 3] + place[:3, :3] @ axis * joint.limits.get(key, 0.0) for key in ("lower", "upper")]
            if np.linalg.norm(ends[1] - ends[0]) > radius:
                shapes.append(segment(joint.parent, ends[0], ends[1], 0.4 * radius, DARK))
        else:
            shapes.append(Visual(joint.child, "cylinder", (1.35 * radius, 3.0 * radius), along(axis, np.zeros(3)), JOINT))
    root = next(link for link in robot.description.links if all(joint.child != link for joint in joints.values()))
    foot = np.array([0.0, 0.0, 0.4 * radius])
    shapes.append(Visual(root, "cylinder", (2.2 * radius, 0.8 * radius), along(np.array([0.0, 0.0, 1.0]), foot), DARK))
    return shapes


def segment(link: str, start: Array, end: Array, radius: float, colour: Colour = PLAIN) -> Visual:
    """Returns a capsule between two points.

    Args:
        start: Shape (3,) [m], in the link's frame.
        end: Shape (3,) [m].
        radius: [m].
        colour: Red, green, blue, opacity.
    """
    length = float(np.linalg.norm(end - start))
    return Visual(link, "capsule", (radius, length), along((end - start) / length, (start + end) / 2), colour)


def tip_point(robot: Robot, shapes: Sequence[Visual]) -> tuple[int, Array]:
    """Returns the tip, whose path is drawn: the end of the longest chain of joints.

    Args:
        shapes: Shapes of the robot.

    Returns:
        Pinocchio's index of the joint that moves it, and the point, shape (3,) [m], in that joint's frame: the farthest
        frame fixed to the last link, or without one, the far end of that link's shapes.
    """
    joint = robot.tip + 1
    frames = [frame for frame in robot.model.frames if frame.parentJoint == joint and frame.type == pin.FrameType.BODY]
    far = max((frame.placement.translation for frame in frames), key=lambda point: float(np.linalg.norm(point)))
    if np.linalg.norm(far) > 1e-6:
        return joint, np.array(far)
    links = {frame.name for frame in frames}
    corners = [shape.corners() for shape in shapes if shape.link in links]
    if not corners:
        return joint, np.array(far)
    points = np.concatenate(corners)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    axis = int(np.argmax(np.abs(middle)))
    end = np.zeros(3)
    end[axis] = max(points[:, axis], key=abs) if abs(middle[axis]) > 1e-6 else 0.0
    return joint, end


def _joint_placements(robot: Robot) -> dict[str, Array]:
    """Returns each joint's placement in its parent link at position zero, shape (4, 4) [m]."""
    return {joint.get("name") or "": _origin(joint) for joint in read_xml(robot.urdf, robot.path).findall("joint")}


def _origin(element: ElementTree.Element) -> Array:
    origin = element.find("origin")
    given = {} if origin is None else origin.attrib
    xyz, rpy = (_numbers(given.get(key) or "0 0 0", 3) for key in ("xyz", "rpy"))
    return placed_at(xyz, pin.rpy.rpyToMatrix(*rpy))


def placed_at(translation: ArrayLike, rotation: ArrayLike = ((1, 0, 0), (0, 1, 0), (0, 0, 1))) -> Array:
    """Matrix of a placement, shape (4, 4); translation of shape (3,) [m]; rotation of shape (3, 3)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, translation
    return matrix


def along(direction: Array, origin: Array) -> Array:
    """Returns a placement whose z axis points along a direction, shape (4, 4).

    Args:
        direction: Unit vector, shape (3,).
        origin: Shape (3,) [m].
    """
    helper = np.eye(3)[int(np.argmin(np.abs(direction)))]
    x = np.cross(helper, direction)
    x /= np.linalg.norm(x)
    return placed_at(origin, np.column_stack([x, np.cross(direction, x), direction]))


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
    radius = CAPSULE * robot.reach(with_strokes=False)
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
