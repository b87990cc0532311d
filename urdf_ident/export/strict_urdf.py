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
    """Finds elements of a URDF, besides its inertials, that strict readers reject."""
    root = outline(text, where)
    joints = {node.get("name") for node in root.all("joint") if node.get("type")}
    rejected: list[Violation] = []
    for node in root.children:
        owner = f"{node.tag} '{node.get('name')}'"
        if node.tag == "link" or (node.tag == "joint" and node.get("type")):
            rejected += _repeated(node, owner)
            for child in node.children:
                rejected += _repeated(child, owner)
                if node.tag == "link" and child.tag in ("visual", "collision"):
                    rejected += _shapeless(child, owner)
        elif node.tag == "transmission":
            named = [violation.get("name") for violation in node.all("joint")]
            missing = [name for name in named if name not in joints]
            if missing or not named:
                rejected.append(
                    Violation(owner, f"its joint '{missing[0]}' does not exist" if missing else "it names no joint", node)
                )
    # what lies inside another rejected element goes with it
    outer = [(violation.node, violation.node.start, violation.node.end) for violation in rejected]
    return tuple(
        violation
        for violation in rejected
        if not any(
            node is not violation.node and start <= violation.node.start and violation.node.end <= end
            for node, start, end in outer
        )
    )


def without_violations(text: str, where: str = "URDF") -> tuple[str, tuple[str, ...]]:
    """Removes elements, besides inertials, that strict readers reject, with a note on each; every other byte is unchanged."""
    notes: list[str] = []
    while rejected := violations(text, where):  # removing a shape can leave an empty element
        splicer = Splicer(text, where)
        for violation in rejected:
            splicer.remove(violation.node)
            notes.append(f"{violation}: taken out")
        text = splicer.text()
    return text, tuple(notes)


def _repeated(node: Node, owner: str) -> Iterator[Violation]:
    for tag in _ONCE.get(node.tag, ()):
        inside = "" if f"{node.tag} '" in owner else f" of its <{node.tag}>"
        for again in node.all(tag)[1:]:
            yield Violation(owner, f"a second <{tag}>{inside}, which readers refuse or ignore", again)


def _shapeless(element: Node, owner: str) -> Iterator[Violation]:
    """Visuals or collisions without extent, and additional shapes inside one."""
    geometries = element.all("geometry")
    shapes = geometries[0].children if geometries else ()
    if not shapes:
        yield Violation(owner, f"a <{element.tag}> without a shape", element)
        return
    for again in shapes[1:]:
        yield Violation(owner, f"a second shape in a <{element.tag}>", again)
    shape = shapes[0]
    if shape.tag == "mesh":
        if not shape.get("filename").strip():
            yield Violation(owner, f"a <{element.tag}> whose mesh has no file", element)
        elif not _positive(shape.get("scale", "1 1 1"), 3, signed=True):
            yield Violation(owner, f"a <{element.tag}> whose mesh has no extent (scale '{shape.get('scale')[:40]}')", element)
        return
    for key, count in _SIZES.get(shape.tag, {}).items():
        if not _positive(shape.get(key), count):
            yield Violation(
                owner, f"a <{element.tag}> whose {shape.tag} has no extent ({key} '{shape.get(key)[:40]}')", element
            )
            return


def _positive(text: str, count: int, signed: bool = False) -> bool:
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        return False
    return len(values) == count and all(0 < (abs(value) if signed else value) < float("inf") for value in values)
