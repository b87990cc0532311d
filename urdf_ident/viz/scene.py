"""Scene commands for a robot: its shapes, and its inertia ellipsoids."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import MissingFileError
from ..files.read_write import read_bytes
from ..linalg import Array
from ..model.geometry import PLAIN, Colour, Visual, placed_at
from ..model.inertia import pseudo_inertia
from ..model.meshes import beside_mesh
from ..model.robot import Robot
from .three import Command, Entry, SceneObject, hexadecimal, packed, set_transform

_IMAGES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg"}
#: A white pixel, instead of a picture that is elsewhere.
_BLANK = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
_LYING = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])  # three's cylinders lie along y, URDF's along z


def robot_commands(robot: Robot, shapes: Sequence[Visual], base: Array, root: str, *, ghost: bool = False) -> list[Command]:
    """Adds a robot to the scene, whose joints the page moves; base of shape (4, 4) [m]: placement of its root."""
    commands = []
    placements = robot.link_placements
    for link in dict.fromkeys(shape.link for shape in shapes):
        joint, placement = placements[link]
        node = SceneObject(f"{root}/{joint_path(robot, joint)}/{plain(link)}")
        for shape in shapes:
            if shape.link == link:
                add_shape(node, shape, ghost=ghost)
        commands += [node.command(), set_transform(node.path, base @ placement if joint < 0 else placement)]
    return commands


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
    for link, (joint, placement) in robot.link_placements.items():
        known = robot.description.links.get(link)
        if known is None or known.theta is None or known.theta[0] <= 0:
            continue
        node = SceneObject(f"{root}/{joint_path(robot, joint)}/{plain(link)}")
        material = node.material(**{**_material(colour, ghost=True), "roughness": 0.7})
        node.child("Mesh", ellipsoid(known.theta), geometry=node.geometry(**_ball(1.0)), material=material)
        commands += [node.command(), set_transform(node.path, base @ placement if joint < 0 else placement)]
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
