"""SDFormat (Gazebo) as input: the robot of a model as a URDF, by the frame semantics of SDFormat 1.4 to 1.11."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from ..errors import ModelError, UrdfError
from ..linalg import Array
from .mjcf import connect, set_origin, words
from .urdf import read_xml

#: Limits at and beyond this mean none.
_UNLIMITED = 1e16
_SIZES = ("size", "radius", "length", "filename", "scale")
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def urdf_of_sdf(text: str, where: str) -> str:
    """Converts the only model of an SDFormat file to a URDF; every link stands in the frame of the joint that moves it.

    Raises:
        UrdfError: The file holds no model, several, or nested ones; a frame does not exist, or frames refer to each other.
        ModelError: A joint type has no counterpart.
    """
    models = list(read_xml(text, where).iter("model"))
    if len(models) != 1 or models[0].find("include") is not None:
        expected = "one <model> without nested models and <include>"
        raise UrdfError("not the model of one robot", where=where, got=f"{len(models)} models", expected=expected)
    model = models[0]
    links = {link.get("name", ""): link for link in model.findall("link")}
    joints = model.findall("joint")
    movers = {_said(joint, "child"): joint for joint in joints}
    frames = _Frames(model, where)
    robot = ElementTree.Element("robot", name=model.get("name") or "robot")
    if any(_said(joint, "parent") == "world" for joint in joints) and "world" not in links:
        ElementTree.SubElement(robot, "link", name="world")
    for name, link in links.items():
        mover = movers.get(name)
        standing = frames.of(name if mover is None else mover.get("name", ""))
        out = ElementTree.SubElement(robot, "link", name=name)
        back = np.linalg.inv(standing)
        inertial = link.find("inertial")
        if inertial is not None and inertial.find("mass") is not None:
            new = ElementTree.SubElement(out, "inertial")
            set_origin(new, back @ frames.of(name) @ frames.inside(inertial, name))
            ElementTree.SubElement(new, "mass", value=_said(inertial, "mass"))
            matrix = {key: _said(inertial, f"inertia/{key}", "1" if key[1] == key[2] else "0") for key in _MOMENTS}
            ElementTree.SubElement(new, "inertia", matrix)
        for element in (*link.findall("collision"), *link.findall("visual")):
            shape = next(iter(element.find("geometry") or ()), None)
            if shape is None or shape.tag not in ("box", "sphere", "cylinder", "capsule", "mesh"):
                continue
            new = ElementTree.SubElement(out, element.tag)
            set_origin(new, back @ frames.of(name) @ frames.inside(element, name))
            named = {"filename" if key.tag == "uri" else key.tag: (key.text or "").strip() for key in shape}
            kept = {key: named[key] for key in _SIZES if key in named}
            ElementTree.SubElement(ElementTree.SubElement(new, "geometry"), shape.tag, kept)
    for joint in joints:
        _joint(robot, joint, movers, frames, where)
    ElementTree.indent(robot)
    return f"{ElementTree.tostring(robot, encoding='unicode')}\n"


class _Frames:
    """Placements in the model's frame of links, joints and frames at zero position, by name."""

    def __init__(self, model: ElementTree.Element, where: str) -> None:
        self._where = where
        self._known: dict[str, Array] = {"": np.eye(4), "world": np.eye(4), "__model__": np.eye(4)}
        self._elements = {e.get("name", ""): e for tag in ("link", "joint", "frame") for e in model.findall(tag)}

    def of(self, name: str, below: tuple[str, ...] = ()) -> Array:
        """Placement of a named element, shape (4, 4)."""
        if name not in self._known:
            if name in below or name not in self._elements:
                what = "frames refer to each other" if name in below else f"no frame is called '{name}'"
                raise UrdfError(what, where=self._where, got=" → ".join((*below, name)))
            element = self._elements[name]
            usual = {"joint": _said(element, "child"), "frame": element.get("attached_to", "")}.get(element.tag, "")
            self._known[name] = self.inside(element, usual, (*below, name), inner=False)
        return self._known[name]

    def inside(self, element: ElementTree.Element, usual: str, below: tuple[str, ...] = (), *, inner: bool = True) -> Array:
        """Placement by an element's ``<pose>``: in the link ``usual`` if ``inner``, else in the model, shape (4, 4)."""
        pose, place = element.find("pose"), np.eye(4)
        base = usual if pose is None else pose.get("relative_to") or usual
        x, y, z, roll, pitch, yaw = _numbers(element, "pose", "0 0 0 0 0 0", self._where)
        place[:3, :3], place[:3, 3] = pin.rpy.rpyToMatrix(roll, pitch, yaw), (x, y, z)
        whole = self.of(base, below) @ place
        return np.asarray(np.linalg.inv(self.of(usual)) @ whole) if inner else np.asarray(whole)


def _joint(
    robot: ElementTree.Element, joint: ElementTree.Element, movers: dict[str, ElementTree.Element], frames: _Frames, where: str
) -> None:
    name, kind, parent = joint.get("name", ""), joint.get("type", ""), _said(joint, "parent")
    if kind not in ("revolute", "continuous", "prismatic", "fixed"):
        expected = "revolute | continuous | prismatic | fixed"
        raise ModelError(f"joint '{name}' has an unsupported type", where=where, got=kind, expected=expected)
    ends = [_numbers(joint, f"axis/limit/{key}", f"{sign}1e16", where)[0] for key, sign in (("lower", "-"), ("upper", "+"))]
    if kind == "revolute" and all(abs(end) >= _UNLIMITED for end in ends):
        kind = "continuous"
    out = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    here = frames.of(name)
    above = frames.of(movers[parent].get("name", "") if parent in movers else parent)
    connect(out, parent, _said(joint, "child"), np.linalg.inv(above) @ here)
    if kind == "fixed":
        return
    xyz = joint.find("axis/xyz")
    turn = np.eye(3)
    if xyz is not None and xyz.get("expressed_in"):
        turn = here[:3, :3].T @ frames.of(str(xyz.get("expressed_in")))[:3, :3]
    elif _said(joint, "axis/use_parent_model_frame", "0") in ("1", "true"):
        turn = here[:3, :3].T
    ElementTree.SubElement(
        out, "axis", xyz=words(turn @ np.array([float(x) for x in _said(joint, "axis/xyz", "0 0 1").split()]))
    )
    most = {key: str(max(float(_said(joint, f"axis/limit/{key}", "0")), 0.0)) for key in ("effort", "velocity")}
    lower, upper = (words([np.clip(float(end), -1e9, 1e9)]) for end in ends)
    ElementTree.SubElement(out, "limit", {"lower": lower, "upper": upper, **most})
    ElementTree.SubElement(out, "dynamics", {key: _said(joint, f"axis/dynamics/{key}", "0") for key in ("damping", "friction")})
    mimic = joint.find("axis/mimic")
    if mimic is not None:
        slope, offset, start = (_numbers(mimic, key, "0", where)[0] for key in ("multiplier", "offset", "reference"))
        told = {"multiplier": words([slope]), "offset": words([offset - slope * start])}
        ElementTree.SubElement(out, "mimic", {"joint": mimic.get("joint", ""), **told})


def _said(element: ElementTree.Element, path: str, otherwise: str = "") -> str:
    """Text of a child, without blanks around it."""
    return (element.findtext(path) or otherwise).strip()


def _numbers(element: ElementTree.Element, path: str, usual: str, where: str) -> list[float]:
    """The numbers in a child, as many as usual."""
    text, count = _said(element, path, usual), len(usual.split())
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        values = []
    if len(values) != count or np.isnan(values).any():
        here = f"{where}, {element.tag} '{element.get('name', '')}'"
        tag = path.rpartition("/")[2]
        raise UrdfError(f"<{tag}> is not {count} number{'s' * (count > 1)}", where=here, got=repr(text)[:60])
    return values
