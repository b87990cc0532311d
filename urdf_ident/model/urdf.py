"""Content of a URDF, checked before it is passed to an engine.

Engines accept invalid files: Pinocchio accepts negative masses, and urdfdom drops an inertial that contains a NaN, so that
the link silently becomes massless. The XML is therefore first read and checked here, number by number.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

import numpy as np
import pinocchio as pin

from ..errors import UrdfError, check_name, nearest
from ..files import sizes
from ..files.splice import Node, Splicer
from ..grouping import abbreviated, grouped
from ..linalg import Array
from .inertia import from_com, symmetric, transform

#: Numeric attributes of the elements that engines read.
_NUMERIC = {
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction", "armature"),
    "mimic": ("multiplier", "offset"),
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
    "mesh": ("scale",),
}
#: A number as urdfdom reads it, and several of them separated by blanks; leading blanks are skipped, trailing ones are not.
_WORD = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBERS = re.compile(rf" *{_WORD}(?: +{_WORD})*", re.ASCII)
#: White space and byte order marks that some tools write before the XML declaration.
BEFORE = "\ufeff \t\r\n"
#: Position limit [rad or m] written for an infinite one, which urdfdom does not read.
UNLIMITED = 1e9
#: Largest angle of roll, pitch and yaw [rad] that one would write; a larger one is probably in degrees.
LARGEST_ANGLE = 6.3
MOVING_TYPES = ("revolute", "continuous", "prismatic")
_EXPAND = "run `xacro FILE > robot.urdf` on the xacro file"
#: Elements whose names occur in results and exports.
_NAMED = ("robot", "link", "joint", "material", "visual", "collision")
_INERTIA_ATTRIBUTES = ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")


@dataclass(frozen=True)
class Link:
    """A link: its ten parameters in the *link's* frame, or None if the URDF has no ``<inertial>``."""

    name: str
    theta: Array | None
    has_collision: bool = False


@dataclass(frozen=True)
class Joint:
    """A joint as written; ``limits`` may contain lower, upper, velocity and effort, ``rpy`` [rad] is that of its origin.

    A joint that mimics another is at ``mimic_multiplier · q + mimic_offset`` [rad or m]. ``armature``, the rotor inertia
    [kg·m² or kg], is only known of robots that were read from MJCF.
    """

    name: str
    type: str
    parent: str
    child: str
    limits: dict[str, float]
    damping: float
    friction: float
    mimic: str | None
    rpy: tuple[float, ...]
    mimic_multiplier: float = 1.0
    mimic_offset: float = 0.0
    armature: float = 0.0


@dataclass(frozen=True)
class Description:
    """The links and joints of a URDF, in document order."""

    name: str
    links: dict[str, Link]
    joints: dict[str, Joint]


def parse_urdf(text: str, where: str = "URDF", *, allow_negative_mass: bool = False) -> Description:
    """Reads and checks the links and joints of a URDF.

    Args:
        allow_negative_mass: True to read a file that is about to be repaired.

    Raises:
        UrdfError: The XML does not parse, declares entities, is unprocessed xacro, or holds a number that is
            missing, not finite, or (mass) negative; with the line or the link.
    """
    root = read_xml(text, where)
    if root.tag != "robot":
        raise UrdfError("not a URDF", where=where, got=f"<{root.tag}>", expected="<robot>")
    if any(element.tag.startswith("xacro:") for element in root.iter()):
        raise UrdfError(
            "unprocessed xacro", where=where, remedy=f"{_EXPAND}, or `pip install 'urdf-ident[xacro]'` and give the file itself"
        )
    for element in root.iter():
        if element.tag in _NAMED:
            check_name(element.tag, element.get("name") or "", UrdfError, where)
    if not root.get("name"):  # Pinocchio refuses the whole file
        raise UrdfError("the robot has no name", where=where, remedy='write one: <robot name="...">')
    links: dict[str, Link] = {}
    joints: dict[str, Joint] = {}
    materials = Counter(element.get("name") for element in root if element.tag == "material")
    for name in (name for name, count in materials.items() if count > 1):  # urdfdom refuses the whole file
        raise UrdfError(f"material '{name}' is defined {materials[name]} times", where=where, remedy="keep one definition")
    for element in root:
        if element.tag == "link":
            _add(links, _link(element, where, allow_negative_mass), where)
        elif element.tag == "joint":
            _add(joints, _joint(element, where), where)
    if not links:
        raise UrdfError("the URDF has no <link>", where=where, remedy=f"{_EXPAND} that calls the macros")
    _check_tree(links, joints, where)
    return Description(root.get("name", ""), links, joints)


def canonical_urdf(text: str, where: str = "URDF") -> tuple[str, tuple[str, ...]]:
    """Writes the numbers of a URDF so that all readers see the same ones; everything else stays, byte for byte.

    urdfdom drops a whole inertial, and so a body, for a line break behind a number; it refuses a file for ``-Inf`` as a limit
    and for a limit without effort or velocity.

    Args:
        text: The URDF; XML that does not parse is returned unchanged.

    Returns:
        The text, unchanged if nothing had to be rewritten, and a note on each kind of change.
    """
    bare = text.lstrip(BEFORE)
    if text == "\ufeff" + bare:  # a byte order mark alone, which XML allows
        bare = text
    notes = [] if bare == text else ["blanks before the first < were left out"]
    try:
        read_xml(bare, where)
        splicer = Splicer(bare, where)
    except UrdfError:
        return text, ()
    source = bare.encode("utf-8")
    rewritten: list[str] = []
    unstated: list[str] = []
    missing: list[str] = []

    def visit(node: Node, owner: str) -> None:
        for key in _NUMERIC.get(node.tag, ()):
            attribute = node.attributes.get(key)
            value = None if attribute is None else _canonical(node.tag, key, attribute.value)
            if attribute is None or value is None:
                continue
            if key in ("velocity", "effort") and value.startswith("-") and float(value) < 0:
                splicer.set(node, key, "0")
                unstated.append(f"{owner} {key} {value}")
            elif not _NUMBERS.fullmatch(source[attribute.start : attribute.end].decode("utf-8")):
                splicer.set(node, key, value)
                rewritten.append(f"{owner} {key}")
        if node.tag == "limit":
            for key in ("effort", "velocity"):  # urdfdom refuses the file without
                if key not in node.attributes:
                    splicer.set(node, key, "0")
                    missing.append(f"{owner} {key}")
            with suppress(ValueError):
                if (lower := float(node.get("lower", "0"))) > (upper := float(node.get("upper", "0"))):
                    unstated.append(f"{owner} lower {lower:g} above upper {upper:g}")
        for child in node.children:
            visit(child, f"{node.tag} '{node.get('name')}'" if node.tag in ("link", "joint") else owner)

    visit(splicer.root, "robot")
    if rewritten:
        notes.append(f"numbers spelled so that other readers drop them were rewritten: {abbreviated(rewritten)}")
    if missing:
        notes.append(f"limits that other readers need were taken as not known (0): {abbreviated(missing)}")
    if unstated:
        notes.append(f"limits that cannot be were taken as not stated: {abbreviated(unstated)}")
    return splicer.text(), tuple(notes)


def _canonical(tag: str, key: str, text: str) -> str | None:
    """The numbers of an attribute as every reader reads them; None if some word is no number."""
    values = []
    for word in text.split():
        value = _value(word)
        if math.isinf(value) and tag == "limit":
            value = math.copysign(UNLIMITED, value) if key in ("lower", "upper") else 0.0
        if not math.isfinite(value):
            return None
        values.append(word if re.fullmatch(_WORD, word, re.ASCII) else repr(value))
    return " ".join(values) if values else None


def _value(word: str) -> float:
    """A number as every reader reads it, NaN if it is none: Python alone takes underscores and digits of other scripts."""
    try:
        return math.nan if "_" in word or not word.isascii() else float(word)
    except ValueError:
        return math.nan


def _check_tree(links: dict[str, Link], joints: dict[str, Joint], where: str) -> None:
    """Checks that links and joints form one tree; urdfdom does not detect a loop, and Pinocchio crashes on it."""
    if len(links) > sizes.MOST_LINKS:
        got, expected = f"{len(links)} links", f"at most {sizes.MOST_LINKS}"
        raise UrdfError("too large for a robot", where=where, got=got, expected=expected, remedy="merge fixed links")
    above: dict[str, str] = {}
    for joint in joints.values():
        for end in (joint.parent, joint.child):
            if end not in links:
                raise UrdfError(
                    f"joint '{joint.name}' names a link that does not exist",
                    where=where,
                    got=repr(end),
                    remedy=nearest(end, links),
                )
        if joint.child in above:
            raise UrdfError(
                f"link '{joint.child}' is the child of two joints",
                where=where,
                expected="a kinematic tree",
                remedy=f"remove joint '{joint.name}' or close the loop outside the URDF",
            )
        above[joint.child] = joint.parent
    roots = [name for name in links if name not in above]
    if len(roots) != 1:
        got = f"{len(roots)} links without a parent ({', '.join(roots[:3]) or 'the joints form a loop'})"
        remedy = (
            f"join '{roots[-1]}' to the others by a fixed joint, or remove it" if roots else "remove the joint that closes it"
        )
        raise UrdfError("not a kinematic tree", where=where, got=got, expected="exactly one root link", remedy=remedy)
    below = grouped((parent, child) for child, parent in above.items())
    depth, waiting = {roots[0]: 0}, list(roots)
    while waiting:
        children = below.get(name := waiting.pop(), [])
        depth.update(dict.fromkeys(children, depth[name] + 1))
        waiting += children
    deepest = max(depth.values())
    if deepest > sizes.LONGEST_CHAIN:  # engines descend recursively
        got, expected = f"{deepest} joints one behind the other", f"at most {sizes.LONGEST_CHAIN}"
        raise UrdfError("the chain of joints is too long", where=where, got=got, expected=expected, remedy="merge fixed links")
    if loose := [name for name in links if name not in depth]:
        raise UrdfError(f"link '{loose[0]}' hangs in a loop of joints", where=where, expected="a kinematic tree")


def read_xml(text: str, where: str) -> ElementTree.Element:
    """Parses XML without namespaces, as the engines' readers do.

    Prefixes need no declaration, ``<robot xmlns="…">`` still contains links, and ``<sensor:link>`` is not a link.

    Raises:
        UrdfError: The XML does not parse, declares entities, or is too deep or too large.
    """
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise UrdfError("a DOCTYPE or entity is refused", where=where, remedy="delete the <!DOCTYPE …> part")

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    depth, count = 0, 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > sizes.DEEPEST_XML or count > sizes.MOST_ELEMENTS:
            most = f"{sizes.DEEPEST_XML} levels, {sizes.MOST_ELEMENTS} elements"
            raise UrdfError(
                "too deep or too large for a robot", where=f"{where}, line {parser.CurrentLineNumber}", expected=most
            )
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text.encode("utf-8"), True)
    except expat.ExpatError as error:
        head = text.lstrip(BEFORE)[:30]
        if not head.startswith("<"):
            got = repr(head) if head else "an empty file"
            remedy = "ROBOT.urdf is the first argument, before any log"
            raise UrdfError("not a URDF", where=where, got=got, expected="XML with <robot>", remedy=remedy) from error
        raise UrdfError(
            f"URDF does not parse ({expat.ErrorString(error.code)})",
            where=f"{where}, line {error.lineno}, column {error.offset + 1}",
            remedy="is this file an XML robot description?",
        ) from error
    return builder.close()


def _add(table: dict[str, Any], item: Link | Joint, where: str) -> None:
    if not item.name.strip():
        kind = type(item).__name__.lower()
        raise UrdfError(f"{kind} {len(table) + 1} has no name", where=where, remedy=f'write one: <{kind} name="...">')
    if item.name in table:
        raise UrdfError(f"two elements are called '{item.name}'", where=where, remedy="rename one")
    table[item.name] = item


def _link(element: ElementTree.Element, where: str, allow_negative_mass: bool) -> Link:
    name = element.get("name") or ""
    here = f"{where}, link '{name}'"
    inertial = element.find("inertial")
    has_collision = element.find("collision") is not None
    if inertial is None:
        return Link(name, None, has_collision)
    mass_element, inertia_element = inertial.find("mass"), inertial.find("inertia")
    if mass_element is None or inertia_element is None:
        raise UrdfError("<inertial> without <mass> or <inertia>", where=here, remedy="add it, or remove the inertial")
    mass = _number(mass_element, "value", here)
    if mass < 0 and not allow_negative_mass:
        raise UrdfError(
            "negative mass",
            where=here,
            got=f"{mass:g} kg",
            expected="mass >= 0",
            remedy="correct it, or write a repaired copy with `urdf-ident check --fix FILE`",
        )
    origin = inertial.find("origin")
    xyz = _vector(origin, "xyz", here)
    rotation = pin.rpy.rpyToMatrix(_vector(origin, "rpy", here))
    inertia = symmetric([_number(inertia_element, key, here) for key in _INERTIA_ATTRIBUTES])
    return Link(name, transform(from_com(mass, np.zeros(3), inertia), rotation, xyz), has_collision)


def _joint(element: ElementTree.Element, where: str) -> Joint:
    name, kind = element.get("name") or "", element.get("type") or ""
    here = f"{where}, joint '{name}'"
    if not kind:
        raise UrdfError("<joint> lacks 'type'", where=here, expected=" | ".join((*MOVING_TYPES, "fixed")))
    ends = {}
    for end in ("parent", "child"):
        node = element.find(end)
        if node is None or not node.get("link"):
            raise UrdfError(f"<{end} link=…> is missing", where=here)
        ends[end] = str(node.get("link"))
    limit, dynamics, mimic = element.find("limit"), element.find("dynamics"), element.find("mimic")
    _vector(element.find("origin"), "xyz", here)
    axis = element.find("axis")  # absent: (1, 0, 0); readers accept an empty one, with which a joint moves nothing
    if kind != "fixed" and axis is not None and not (axis.get("xyz") and np.linalg.norm(_vector(axis, "xyz", here)) > 1e-6):
        raise UrdfError(
            "the axis has no direction", where=here, got=repr(axis.get("xyz")), expected='<axis xyz="…"/> of length 1'
        )
    stated = [] if limit is None else [key for key in ("lower", "upper", "velocity", "effort") if limit.get(key) is not None]
    limits = {} if limit is None else {key: _number(limit, key, here, finite=False) for key in stated}
    if kind in ("revolute", "prismatic") and ("lower" in limits or "upper" in limits):
        limits = {"lower": 0.0, "upper": 0.0} | limits  # one that is not written is 0 (URDF specification, joint)
        lower, upper = limits["lower"], limits["upper"]
        if absent := [key for key in ("lower", "upper") if key not in stated] if lower > upper else []:
            raise UrdfError(
                "the lower limit is above the upper",
                where=here,
                got=f"{lower:g} > {upper:g}",
                remedy=f"write '{absent[0]}', which is 0 if it is absent",
            )
        if lower > upper or (lower <= -UNLIMITED and upper >= UNLIMITED):  # the first is Bullet's way to write no limits
            del limits["lower"], limits["upper"]
    if limit is None and kind in ("revolute", "prismatic"):
        raise UrdfError(
            f"{kind} joint without <limit>", where=here, remedy='add <limit lower="…" upper="…" velocity="…" effort="…"/>'
        )
    return Joint(
        name,
        kind,
        ends["parent"],
        ends["child"],
        limits,
        damping=_optional(dynamics, "damping", here),
        friction=_optional(dynamics, "friction", here),
        mimic=None if mimic is None else mimic.get("joint"),
        rpy=tuple(map(float, _vector(element.find("origin"), "rpy", here))),
        mimic_multiplier=1.0 if mimic is None or mimic.get("multiplier") is None else _number(mimic, "multiplier", here),
        mimic_offset=_optional(mimic, "offset", here),
        armature=_optional(dynamics, "armature", here),
    )


def _number(element: ElementTree.Element, key: str, here: str, *, finite: bool = True) -> float:
    text = element.get(key)
    if text is None:
        raise UrdfError(f"<{element.tag}> lacks '{key}'", where=here)
    value = _value(text)
    if math.isnan(value) or (finite and math.isinf(value)):
        raise UrdfError(
            f"<{element.tag} {key}> is not a finite number",
            where=here,
            got=repr(text[:40]),
            remedy=_remedy(text, "write a number there"),
        )
    if finite and abs(value) > sizes.LARGEST_NUMBER:
        raise UrdfError(
            f"<{element.tag} {key}> is out of all proportion",
            where=here,
            got=f"{value:g}",
            expected=f"at most {sizes.LARGEST_NUMBER:g}",
        )
    return value


def _remedy(text: str, otherwise: str) -> str:
    return _EXPAND if "$" in text else otherwise


def _optional(element: ElementTree.Element | None, key: str, here: str) -> float:
    return 0.0 if element is None or element.get(key) is None else _number(element, key, here)


def _vector(element: ElementTree.Element | None, key: str, here: str) -> Array:
    text = "0 0 0" if element is None else element.get(key) or "0 0 0"
    values = np.array([_value(part) for part in text.split()])
    if values.shape != (3,) or not (np.abs(values) <= sizes.LARGEST_NUMBER).all():
        tag = "origin" if element is None else element.tag
        raise UrdfError(
            f"<{tag} {key}> is not three finite numbers",
            where=here,
            got=repr(text[:80]),
            expected=f"three numbers, each at most {sizes.LARGEST_NUMBER:g}",
            remedy=_remedy(text, "separate them by spaces only" if "," in text else ""),
        )
    return values
