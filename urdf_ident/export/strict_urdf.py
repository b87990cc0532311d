"""Finds and removes elements of a URDF, besides inertials, that strict readers reject.

Pinocchio accepts nearly everything; MuJoCo (user_model, xml_urdf) and Drake (detail_urdf_parser) do not. Their rules, as far
as they concern the files that this package writes, are checked here without either of them:

- a unique element (``<origin>``, ``<inertial>``, ``<limit>``, …) is not repeated: readers that accept repetitions use the
  first;
- a visual or collision contains one shape with positive sizes;
- a transmission's joint exists.

Repairs preserve the meaning: repeated elements, shapes without extent and transmissions without a joint are removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..files.splice import Node, Splicer, outline

#: Unique child elements, by element.
_ONCE = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller"),
    "visual": ("origin", "geometry", "material"),
    "collision": ("origin", "geometry"),
}
#: Size attributes of a shape, and the number of values of each.
_SIZES = {
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
}


@dataclass(frozen=True)
class Violation:
    """An element that a strict reader rejects.

    Attributes:
        what: Description.
    """

    where: str
    what: str
    node: Node

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def violations(text: str, where: str = "URDF") -> tuple[Violation, ...]:
    """Finds elements of a URDF, besides its inertials, that strict readers reject.

    Returns:
        The elements in document order; empty if there are none.

    Raises:
        UrdfError: The XML does not parse.
    """
    root = outline(text, where)
    joints = {node.get("name") for node in root.all("joint") if node.get("type")}
    found: list[Violation] = []
    for node in root.children:
        owner = f"{node.tag} '{node.get('name')}'"
        if node.tag == "link" or (node.tag == "joint" and node.get("type")):
            found += _repeated(node, owner)
            for part in node.children:
                found += _repeated(part, owner)
                if node.tag == "link" and part.tag in ("visual", "collision"):
                    found += _shapeless(part, owner)
        elif node.tag == "transmission":
            named = [item.get("name") for item in node.all("joint")]
            missing = [name for name in named if name not in joints]
            if missing or not named:
                found.append(
                    Violation(owner, f"its joint '{missing[0]}' does not exist" if missing else "it names no joint", node)
                )
    inside = {id(item.node) for item in found}
    return tuple(
        item for item in found if not any(_holds(other.node, item.node) for other in found if id(other.node) in inside)
    )


def without_violations(text: str, where: str = "URDF") -> tuple[str, tuple[str, ...]]:
    """Removes elements, besides inertials, that strict readers reject; every other byte is unchanged.

    Returns:
        The text, unchanged if nothing was wrong, and a note on each removed element.

    Raises:
        UrdfError: The XML does not parse.
    """
    notes: list[str] = []
    while found := violations(text, where):  # removing a shape can leave an empty element
        splicer = Splicer(text, where)
        for item in found:
            splicer.remove(item.node)
            notes.append(f"{item}: taken out")
        text = splicer.text()
    return text, tuple(notes)


def _repeated(node: Node, owner: str) -> Iterator[Violation]:
    for tag in _ONCE.get(node.tag, ()):
        inside = "" if f"{node.tag} '" in owner else f" of its <{node.tag}>"
        for again in node.all(tag)[1:]:
            yield Violation(owner, f"a second <{tag}>{inside}, which readers refuse or ignore", again)


def _shapeless(part: Node, owner: str) -> Iterator[Violation]:
    """Visuals or collisions without extent, and additional shapes inside one."""
    geometries = part.all("geometry")
    shapes = geometries[0].children if geometries else ()
    if not shapes:
        yield Violation(owner, f"a <{part.tag}> without a shape", part)
        return
    for again in shapes[1:]:
        yield Violation(owner, f"a second shape in a <{part.tag}>", again)
    shape = shapes[0]
    if shape.tag == "mesh":
        if not shape.get("filename").strip():
            yield Violation(owner, f"a <{part.tag}> whose mesh has no file", part)
        elif not _positive(shape.get("scale", "1 1 1"), 3, signed=True):
            yield Violation(owner, f"a <{part.tag}> whose mesh has no extent (scale '{shape.get('scale')[:40]}')", part)
        return
    for key, count in _SIZES.get(shape.tag, {}).items():
        if not _positive(shape.get(key), count):
            yield Violation(owner, f"a <{part.tag}> whose {shape.tag} has no extent ({key} '{shape.get(key)[:40]}')", part)
            return


def _positive(text: str, count: int, signed: bool = False) -> bool:
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        return False
    return len(values) == count and all(0 < (abs(value) if signed else value) < float("inf") for value in values)


def _holds(outer: Node, inner: Node) -> bool:
    return outer is not inner and outer.start <= inner.start and inner.end <= outer.end
