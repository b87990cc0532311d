"""The identified robot as MJCF, including rotor inertia as ``armature``, which a URDF cannot contain, besides damping and
Coulomb friction as ``frictionloss``.

MuJoCo is not required. Bodies follow the URDF's document order, every link is a body; fixed and locked joints become
bodies without a joint. Primitive geometry is kept (visual in group 2, collision in group 3, which collides with other
objects but not with the robot itself). Meshes are included by paths relative to the model if their files exist and MuJoCo
reads them (OBJ, binary STL); others are omitted with a note. The result is checked by MuJoCo's rules
(:func:`mjcf_violations`), and compiled if MuJoCo is installed.
"""

from __future__ import annotations

import importlib.util
import math
import os
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from ..errors import ModelError
from ..files.read_write import write_text
from ..files.splice import Node, outline
from ..grouping import grouped
from ..linalg import Array
from ..model.geometry import SIZES
from ..model.inertia import to_com
from ..model.meshes import find_mesh
from ..model.robot import Robot
from .split import exported_links, joint_values
from .urdf import number, without_violations

#: Attributes of the geoms of a link's elements: collision geometry is hit by other objects, but does not hit itself.
_GEOMS = {
    "visual": {"group": "2", "contype": "0", "conaffinity": "0"},
    "collision": {"group": "3", "contype": "0", "conaffinity": "1"},
}
#: MuJoCo's lower bounds: masses and inertias of moving bodies, eigenvalues of an inertia matrix, and lengths of axes.
_LEAST_MASS, _LEAST_EIGENVALUE, _LEAST_AXIS = 1e-15, 1e-14, 1e-10
#: Largest number of faces of an STL, its least volume [m³], and the size from which an OBJ is too large [bytes].
_FACES, _LEAST_VOLUME, _LARGEST_OBJ = 200_000, 1e-13, 100 * 2**20
#: Attributes that are no numbers.
_NO_NUMBERS = ("joint1", "joint2", "name", "file", "mesh", "type", "model", "angle", "autolimits", "inertiafromgeom")


def write_mjcf(path: str | Path, robot: Robot, theta: Array, **options: Any) -> tuple[str, ...]:
    """Writes the robot as a MuJoCo model, without meshes if MuJoCo refuses one; returns notes on other changes.

    Args:
        path: The file.
        robot: The robot; locked joints are welded at their locked position.
        theta: Inertial parameters of its bodies, shape (10·n,) [kg, kg·m, kg·m²].
        options: Further arguments of :func:`mjcf_text`.

    Raises:
        ModelError: As for :func:`mjcf_text`, or MuJoCo refuses the model.
        OutputError: The file cannot be written.
    """
    text, notes = mjcf_text(robot, theta, folder=Path(path).parent, **options)
    if (refused := mujoco_refusal(mjcf_text(robot, theta, **options)[0])) is not None:  # with absolute paths
        bare, notes = mjcf_text(robot, theta, meshes=False, **options)
        if (again := mujoco_refusal(bare)) is not None:
            raise ModelError("MuJoCo refuses the model", where=str(path), got=again, remedy="`urdf-ident check` the URDF")
        text, notes = bare, (*notes, f"MuJoCo refuses a mesh, so all were left out ({refused})")
    write_text(path, text)
    return notes


def mjcf_text(
    robot: Robot,
    theta: Array,
    *,
    damping: Mapping[str, float] | None = None,
    frictionloss: Mapping[str, float] | None = None,
    armature: Mapping[str, float] | None = None,
    repair: bool = False,
    meshes: bool = True,
    folder: Path | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Returns the robot as MJCF, and notes on changes besides the requested values.

    Args:
        theta: Inertial parameters of its bodies, shape (10·n,) [kg, kg·m, kg·m²], physically consistent.
        damping: Joint name → viscous friction [N·m·s/rad or N·s/m]; other joints have that of the robot's description.
        frictionloss: Joint name → Coulomb friction [N·m or N]; other joints have the description's.
        armature: Joint name → rotor inertia seen at the joint [kg·m² or kg]; other joints have the description's.
        repair: True to write the nearest physically consistent robot, with a note, if ``theta`` is not consistent.
        meshes: False to leave out all meshes.
        folder: Folder of the model, to which paths of meshes are relative; None: absolute paths.
    """
    _, links, notes = exported_links(robot, theta, repair)
    stated = {
        key: {name: getattr(robot.description.joints[name], key) for name in robot.joints}
        for key in ("damping", "friction", "armature")
    }
    dynamics, clipped = joint_values(
        robot,
        damping={**stated["damping"], **(damping or {})},
        frictionloss={**stated["friction"], **(frictionloss or {})},
        armature={**stated["armature"], **(armature or {})},
    )
    known = {name: link.theta for name, link in robot.description.links.items() if link.theta is not None}
    writer = _Writer(robot, {**known, **links}, dynamics, MeshAssets(Path(robot.path), folder, meshes))
    text = ElementTree.tostring(writer.document(), encoding="unicode")
    if violations := mjcf_violations(text):
        raise ModelError(
            "MuJoCo would refuse the model", where=robot.path, got=violations[0], remedy="`urdf-ident check` the URDF"
        )
    return f"{text}\n", (*notes, *clipped, *writer.repairs, *writer.assets.notes())


class _Writer:
    """Builds the document from the URDF's elements."""

    def __init__(
        self, robot: Robot, inertials: Mapping[str, Array], dynamics: Mapping[str, Mapping[str, float]], assets: MeshAssets
    ) -> None:
        source, self.repairs = without_violations(robot.urdf, robot.path)
        root = outline(source, robot.path)
        self.robot, self.inertials, self.dynamics, self.assets = robot, inertials, dynamics, assets
        self.links = {node.get("name"): node for node in root.all("link")}
        joints = robot.description.joints
        self.joints = grouped((joints[node.get("name")].parent, node) for node in root.all("joint") if node.get("type"))
        self.colors = {
            node.get("name"): colors[0].get("rgba") for node in root.all("material") if (colors := node.all("color"))
        }

    def document(self) -> ElementTree.Element:
        """The ``<mujoco>`` element, indented."""
        mujoco = ElementTree.Element("mujoco", model=self.robot.name)
        ElementTree.SubElement(mujoco, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        ElementTree.SubElement(mujoco, "option", gravity=_words(self.robot.gravity))
        assets = ElementTree.SubElement(mujoco, "asset")
        world = ElementTree.SubElement(mujoco, "worldbody")
        children = {joint.child for joint in self.robot.description.joints.values()}
        for name in self.links:
            if name not in children:
                self._body(world, name, None)
        for entry in self.assets.entries():
            ElementTree.SubElement(assets, "mesh", entry)
        if len(assets) == 0:
            mujoco.remove(assets)
        if self.robot.coupled:
            equality = ElementTree.SubElement(mujoco, "equality")
            for name, (leader, multiplier, offset) in self.robot.coupled.items():
                line = _words([offset, multiplier, 0.0, 0.0, 0.0])
                ElementTree.SubElement(equality, "joint", joint1=name, joint2=leader, polycoef=line)
        ElementTree.indent(mujoco)
        return mujoco

    def _body(self, parent: ElementTree.Element, name: str, joint: Node | None) -> None:
        """Adds a link, with its inertia and geometry, and the links below it to the body of its parent link.

        Args:
            joint: The URDF's joint between both; None for a root link, whose parent is the world.
        """
        # MuJoCo reserves the name "world": a root link of that name is the world.
        if joint is None and name == "world":
            body = parent
        else:
            body = ElementTree.SubElement(parent, "body", name="world_link" if name == "world" else name)
        if joint is not None:
            self._place(body, joint)
        theta = self.inertials.get(name)
        if theta is not None and theta.any() and body is not parent:
            ElementTree.SubElement(body, "inertial", inertial_attributes(theta))
        for tag, attributes in _GEOMS.items():
            for node in self.links[name].all(tag):
                self._geometry(body, node, attributes)
        for child in self.joints.get(name, []):
            self._body(body, self.robot.description.joints[child.get("name")].child, child)

    def _place(self, body: ElementTree.Element, node: Node) -> None:
        """Places a body at its joint, and adds the joint unless it is fixed or locked."""
        name, kind = node.get("name"), node.get("type")
        position, rotation = _origin(node)
        axis = _attribute(node, "axis", "xyz", "1 0 0")
        length = float(np.linalg.norm(axis))
        axis = axis / length if length > 0 else np.array([1.0, 0.0, 0.0])
        value = self.robot.locked.get(name, 0.0)
        if kind == "prismatic":
            position = position + rotation @ axis * value
        elif kind != "fixed":
            rotation = rotation @ pin.exp3(axis * value)
        body.set("pos", _words(position))
        body.set("quat", _words(_quaternion(rotation)))
        if name not in self.robot.tree_joints:
            return
        lower = upper = effort = math.inf
        if name not in self.robot.coupled:
            j = self.robot.index(name)
            lower, upper, effort = (float(self.robot.limit(key)[j]) for key in ("lower", "upper", "effort"))
        joint = ElementTree.SubElement(
            body, "joint", name=name, type="slide" if kind == "prismatic" else "hinge", axis=_words(axis)
        )
        if math.isfinite(lower) and math.isfinite(upper) and lower < upper:
            joint.set("range", _words([lower, upper]))
        if math.isfinite(effort):
            joint.set("actuatorfrcrange", _words([-effort, effort]))
        for key, size in self.dynamics.get(name, {}).items():
            if size > 0:
                joint.set(key, number(size))

    def _geometry(self, body: ElementTree.Element, node: Node, attributes: Mapping[str, str]) -> None:
        """Adds the geom of a ``<visual>`` or ``<collision>``; none for a shape that MuJoCo lacks or a mesh that it cannot read.

        A URDF states whole lengths, MuJoCo half ones.
        """
        shape = next((shape for geometry in node.all("geometry") for shape in geometry.children), None)
        if shape is None or shape.tag not in ("box", "cylinder", "sphere", "capsule", "mesh"):
            return
        if shape.tag == "mesh":
            mesh = self.assets.name_of(shape.get("filename"), shape.get("scale", "1 1 1"))
            if mesh is None:
                return
            form = {"type": "mesh", "mesh": mesh}
        elif shape.tag == "box":
            form = {"type": "box", "size": _words([0.5 * float(word) for word in shape.get("size").split()])}
        else:
            half_length = [] if shape.tag == "sphere" else [0.5 * float(shape.get("length"))]
            form = {"type": shape.tag, "size": _words([float(shape.get("radius")), *half_length])}
        position, rotation = _origin(node)
        materials = node.all("material")  # with a colour of their own, or the name of one of the robot's
        own = next((color.get("rgba") for material in materials for color in material.all("color")), "")
        color = own or next((self.colors.get(material.get("name"), "") for material in materials), "")
        place = {"pos": _words(position), "quat": _words(_quaternion(rotation))}
        geom = ElementTree.SubElement(body, "geom", {**form, **place, **attributes})
        if len(color.split()) == 4 and finite_numbers(color):
            geom.set("rgba", color)


def _origin(node: Node) -> tuple[Array, Array]:
    return _attribute(node, "origin", "xyz", "0 0 0"), pin.rpy.rpyToMatrix(_attribute(node, "origin", "rpy", "0 0 0"))


def _attribute(node: Node, tag: str, key: str, default: str) -> Array:
    elements = node.all(tag)
    return np.array([float(word) for word in (elements[0].get(key, default) if elements else default).split()])


def _quaternion(rotation: Array) -> Array:
    """Unit quaternion (w, x, y, z)."""
    x, y, z, w = pin.Quaternion(rotation).normalized().coeffs()
    return np.array([w, x, y, z])


def inertial_attributes(theta: Array) -> dict[str, str]:
    """The attributes of ``<inertial>``; theta: inertial parameters of the body in its frame, shape (10,)."""
    mass, com, inertia = to_com(theta)
    six = [inertia[index] for index in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return {"pos": _words(com), "mass": number(float(mass)), "fullinertia": _words(six)}


def _words(values: Array | list[float]) -> str:
    return " ".join(number(value) for value in values)


class MeshAssets:
    """Collects the mesh files that a model uses, once per file and scale.

    Args:
        urdf: The URDF, to which names of meshes are relative.
        folder: Folder of the model, to which written paths are relative; None: absolute paths.
        wanted: False to omit all meshes.
    """

    def __init__(self, urdf: Path, folder: Path | None, wanted: bool = True) -> None:
        self._urdf, self._folder, self._wanted = urdf, folder, wanted
        self._names: dict[tuple[Path, str], str] = {}
        self._absent: list[str] = []
        self._unreadable: list[str] = []
        self._found: dict[str, Path | None] = {}

    def name_of(self, filename: str, scale: str) -> str | None:
        """Returns the asset name of a mesh; None if the file is missing or MuJoCo cannot read it."""
        if not self._wanted:
            return None
        if filename not in self._found:
            path = find_mesh(filename, self._urdf)
            if path is None:
                self._absent.append(filename)
            elif not readable_mesh(path):
                self._unreadable.append(filename)
                path = None
            self._found[filename] = path
        mesh = self._found[filename]
        if mesh is None:
            return None
        key = (mesh, " ".join(scale.split()) or "1 1 1")
        if key not in self._names:
            self._names[key] = f"{mesh.stem}_{len(self._names)}"
        return self._names[key]

    def entries(self) -> list[dict[str, str]]:
        """Attributes of each asset, in order of use."""
        return [{"name": name, "file": self._written(path), "scale": scale} for (path, scale), name in self._names.items()]

    def notes(self) -> tuple[str, ...]:
        notes = []
        for names, why in ((self._absent, "is not there"), (self._unreadable, "is no OBJ or binary STL with a volume")):
            if names:
                more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
                notes.append(f"mesh '{names[0]}'{more} {why}: left out of the MuJoCo model")
        return tuple(notes)

    def _written(self, path: Path) -> str:
        whole = path.resolve()
        try:
            return str(whole if self._folder is None else os.path.relpath(whole, self._folder.resolve()))
        except ValueError:  # on another drive (Windows)
            return str(whole)


def mjcf_violations(text: str) -> tuple[str, ...]:
    """Violations of MuJoCo's rules in a model written by this package.

    The rules are those of its compiler (user_objects, user_mesh) for the elements that this package writes: unique names,
    non-zero axes, positive sizes, inertias with eigenvalues above 1e-14 and A + B ≥ C, moving bodies with mass (including
    welded bodies), and finite numbers.
    """
    root = ElementTree.fromstring(text)
    named = Counter(
        (element.tag, element.get("name", "")) for element in root.iter() if element.get("name") and element.tag != "mujoco"
    )
    faults = [f"{kind} '{name}' exists twice" for (kind, name), count in named.items() if count > 1]
    for element in root.iter():
        for key, value in element.attrib.items():
            if key not in _NO_NUMBERS and not finite_numbers(value):
                faults.append(f"<{element.tag} {key}> is '{value[:40]}'")
    if faults:
        return tuple(faults)
    for geom in root.iter("geom"):
        count = sum(SIZES.get(geom.get("type", ""), {}).values())
        sizes = _numbers(geom.get("size", ""))[:count]
        if geom.get("type") != "mesh" and (len(sizes) < max(count, 1) or not (sizes > 0).all()):
            faults.append(f"a geom has the size '{geom.get('size')}'")
        if geom.get("rgba") is not None and len(_numbers(geom.get("rgba", ""))) != 4:
            faults.append(f"a geom has the colour '{geom.get('rgba')}'")
    for joint in root.iter("joint"):
        if not np.linalg.norm(_numbers(joint.get("axis", "0 0 1"))) > _LEAST_AXIS:
            faults.append(f"joint '{joint.get('name')}' has no axis")
    for body in root.iter("body"):
        name, inertial = body.get("name"), body.find("inertial")
        if inertial is not None:
            xx, yy, zz, xy, xz, yz = _numbers(inertial.get("fullinertia", ""))
            small, middle, large = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            if small < _LEAST_EIGENVALUE:
                faults.append(f"body '{name}' has a principal inertia of {small:.3g} kg·m²")
            elif small + middle < large:
                faults.append(f"body '{name}' breaks the triangle inequality")
        if body.find("joint") is not None and not _has_mass(body):
            faults.append(f"body '{name}' moves and weighs nothing")
    return tuple(faults)


def mujoco_refusal(text: str) -> str | None:
    """MuJoCo's error about a model or URDF with absolute paths, in one line; None if it accepts it, or is not installed."""
    if importlib.util.find_spec("mujoco") is None:
        return None
    import mujoco

    try:
        mujoco.MjModel.from_xml_string(text)
    except (ValueError, RuntimeError) as error:
        return " ".join(str(error).split())[:200]
    return None


def readable_mesh(path: Path) -> bool:
    """Whether MuJoCo reads a mesh file: OBJ, or binary STL whose faces enclose a volume."""
    if path.suffix.lower() == ".obj":
        return path.stat().st_size < _LARGEST_OBJ
    if path.suffix.lower() != ".stl":
        return False
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little")
    if len(data) != 84 + 50 * count or not 1 <= count <= _FACES:
        return False  # ASCII, or truncated
    faces = np.frombuffer(data, offset=84, dtype=np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")]))
    a, b, c = np.moveaxis(faces["corners"].astype(float), 1, 0)
    if not np.isfinite([a, b, c]).all():
        return False
    centre = np.concatenate([a, b, c]).mean(axis=0)
    return float(np.einsum("ij,ij->i", a - centre, np.cross(b - centre, c - centre)).sum()) / 6.0 > _LEAST_VOLUME


def _has_mass(body: ElementTree.Element) -> bool:
    """Whether a body, or one welded to it, has mass."""
    inertial = body.find("inertial")
    if inertial is not None and float(inertial.get("mass", "0")) >= _LEAST_MASS:
        return True
    return any(child.find("joint") is None and _has_mass(child) for child in body.findall("body"))


def finite_numbers(text: str) -> bool:
    """Whether a text consists of finite numbers."""
    try:
        return all(math.isfinite(float(word)) for word in text.split())
    except ValueError:
        return False


def _numbers(text: str) -> Array:
    return np.array([float(word) for word in text.split()])
