"""SDFormat (Gazebo, Drake) from a URDF: the same links, inertials, joints and friction, frames named as in the URDF.

Poses follow the frame semantics of SDFormat 1.8: a joint's pose is relative to its parent link, a link's to the joint that
moves it. A fixed link without mass and geometry becomes a frame, because SDFormat would give it a mass of 1 kg.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from ..errors import UrdfError
from ..model.urdf import read_xml

_TYPES = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed"}
#: Mass and inertia of a massless link that cannot become a frame [kg, kg·m²]; SDFormat's default would be 1 kg.
_LEAST = ("1e-6", "1e-9")
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def sdf_text(urdf: str, where: str = "URDF") -> tuple[str, tuple[str, ...]]:
    """Translates a URDF to SDFormat; with notes on what has no counterpart."""
    robot = read_xml(urdf, where)
    sdf = ET.Element("sdf", version="1.8")
    model = ET.SubElement(sdf, "model", name=robot.get("name") or "robot")
    links, joints, notes = robot.findall("link"), robot.findall("joint"), list[str]()
    mover = {_name(joint, "child", where): joint for joint in joints}
    bare = {
        str(link.get("name")) for link in links if _mass(link) == 0 and not link.findall("visual") + link.findall("collision")
    }
    frames = {name for name, joint in mover.items() if joint.get("type") == "fixed" and name in bare}
    for link in links:
        name = str(link.get("name"))
        if name == "world" or name in frames:
            continue
        _link(model, link, mover.get(name), notes)
        if name not in mover:  # SDFormat fixes a root by a joint
            to_world = ET.SubElement(model, "joint", name=f"{name}_to_world", type="fixed")
            _text(to_world, "parent", "world")
            _text(to_world, "child", name)
    for joint in joints:
        _joint(model, joint, _name(joint, "child", where) in frames, where, notes)
    ET.indent(sdf)
    return f'<?xml version="1.0"?>\n{ET.tostring(sdf, encoding="unicode")}\n', tuple(notes)


def _link(model: ET.Element, link: ET.Element, mover: ET.Element | None, notes: list[str]) -> None:
    """Adds a link: its pose at the joint that moves it, inertial, and shapes."""
    out = ET.SubElement(model, "link", name=str(link.get("name")))
    if mover is not None:
        _pose(out, None, str(mover.get("name")))
    inertial, stated = ET.SubElement(out, "inertial"), link.find("inertial")
    inertia = None if stated is None or _mass(link) == 0 else stated.find("inertia")
    if inertia is None and mover is not None:
        notes.append(f"link '{link.get('name')}' has no mass; SDFormat needs one, and got {_LEAST[0]} kg")
    if stated is not None and inertia is not None:
        _pose(inertial, stated.find("origin"))
    mass = None if inertia is None else link.find("inertial/mass")
    _text(inertial, "mass", _LEAST[0] if mass is None else mass.get("value"))
    matrix = ET.SubElement(inertial, "inertia")
    for key in _MOMENTS:
        least = _LEAST[1] if key[1] == key[2] else "0"
        _text(matrix, key, least if inertia is None else inertia.get(key) or "0")
    for kind in ("visual", "collision"):
        for k, shape in enumerate(link.findall(kind)):
            element = ET.SubElement(out, kind, name=shape.get("name") or f"{link.get('name')}_{kind}_{k}")
            _pose(element, shape.find("origin"))
            geometry, form = ET.SubElement(element, "geometry"), shape.find("geometry/*")
            if form is None:
                ET.SubElement(geometry, "empty")
                continue
            same = ET.SubElement(geometry, form.tag)
            if form.tag == "mesh":
                _text(same, "uri", (form.get("filename") or "").replace("package://", "model://", 1))
            for key in ("scale",) if form.tag == "mesh" else ("size", "radius", "length"):
                _text(same, key, form.get(key))


def _mass(link: ET.Element) -> float:
    mass = link.find("inertial/mass")
    return 0.0 if mass is None else float(mass.get("value") or 0.0)


def _name(joint: ET.Element, end: str, where: str) -> str:
    element = joint.find(end)
    if element is None or not element.get("link"):
        raise UrdfError(f"joint '{joint.get('name')}' has no {end}", where=where)
    return str(element.get("link"))


def _pose(parent: ET.Element, origin: ET.Element | None, relative: str | None = None) -> None:
    xyz, rpy = (origin.get("xyz"), origin.get("rpy")) if origin is not None else (None, None)
    pose = ET.SubElement(parent, "pose", {} if relative is None else {"relative_to": relative})
    pose.text = f"{xyz or '0 0 0'} {rpy or '0 0 0'}"


def _text(parent: ET.Element, tag: str, value: str | None) -> None:
    if value is not None:
        ET.SubElement(parent, tag).text = value


def _joint(model: ET.Element, joint: ET.Element, frame: bool, where: str, notes: list[str]) -> None:
    name, kind = str(joint.get("name")), str(joint.get("type"))
    parent, child = (_name(joint, end, where) for end in ("parent", "child"))
    if kind not in _TYPES:
        raise UrdfError(f"joint type '{kind}' has no counterpart in SDFormat", where=f"{where}, joint '{name}'")
    if frame:
        _pose(ET.SubElement(model, "frame", name=child, attached_to=parent), joint.find("origin"))
        return
    out = ET.SubElement(model, "joint", name=name, type=_TYPES[kind])
    _pose(out, joint.find("origin"), (None if parent == "world" else parent) or "__model__")
    _text(out, "parent", parent)
    _text(out, "child", child)
    if kind == "fixed":
        return
    axis = ET.SubElement(out, "axis")
    given = joint.find("axis")
    _text(axis, "xyz", "1 0 0" if given is None else given.get("xyz"))
    limit, written = joint.find("limit"), ET.SubElement(axis, "limit")
    ends = kind != "continuous" and limit is not None
    _text(written, "lower", limit.get("lower") or "0" if ends and limit is not None else "-1e16")
    _text(written, "upper", limit.get("upper") or "0" if ends and limit is not None else "1e16")
    if limit is not None:
        _text(written, "effort", limit.get("effort"))
        _text(written, "velocity", limit.get("velocity"))
    stated = joint.find("dynamics")
    if stated is not None:
        dynamics = ET.SubElement(axis, "dynamics")
        _text(dynamics, "damping", stated.get("damping"))
        _text(dynamics, "friction", stated.get("friction"))
    if joint.find("mimic") is not None:
        notes.append(f"joint '{name}' follows another one in the URDF; the SDFormat file leaves it free")
