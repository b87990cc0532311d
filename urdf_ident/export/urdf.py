"""The corrected URDF: the source text with only the identified numbers changed.

Inertia is stored about the centre of mass along the axes of ``<origin rpy>``. The file's rpy is kept and the new inertia is
rotated to its axes, which is the smallest change and always consistent. Numbers are written as the shortest text that
reads back to the same double, and are verified by reading them back.

Pinocchio accepts nearly everything; MuJoCo (user_model, xml_urdf) and Drake (detail_urdf_parser) do not. Their rules besides
inertials, as far as they concern the files that this package writes, are checked here without either of them: a unique element
(``<origin>``, ``<inertial>``, ``<limit>``, …) is not repeated (readers that accept repetitions use the first), a visual or
collision contains one shape with positive sizes, a transmission's joint exists. Repairs preserve the meaning: repeated
elements, shapes without extent and transmissions without a joint are removed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pinocchio as pin

from ..consistency.repair import acceptable, assess_links, repaired_theta
from ..errors import EstimationError, ModelError, UrdfError, check_named, check_shape
from ..files.splice import Node, Splicer, outline
from ..linalg import Array
from ..model.geometry import SIZES
from ..model.inertia import MARGIN, margins, to_com
from ..model.robot import Robot
from ..model.urdf import canonical_urdf, parse_urdf
from ..quoting import markup
from .split import exported_links, joint_values

#: Unique child elements, by element.
_ONCE = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller"),
    "visual": ("origin", "geometry", "material"),
    "collision": ("origin", "geometry"),
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
    for key, count in SIZES.get(shape.tag, {}).items():
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


_EPS = float(np.finfo(float).eps)
_INERTIA = [(f"i{a}{b}", i, j) for (i, a), (j, b) in combinations_with_replacement(enumerate("xyz"), 2)]


def corrected_urdf(
    text: str, inertials: Mapping[str, Array], dynamics: Mapping[str, Mapping[str, float]] | None = None, *, where: str = "URDF"
) -> str:
    """Changes inertials and joint friction of a URDF and leaves every other byte unchanged.

    A number that already has the right value is not rewritten. Missing ``<inertial>``, ``<origin>`` and ``<dynamics>``
    elements are added with the file's indentation, line ends and quotes. A body at the boundary of physical consistency is
    moved inside by a relative 1e-6, because engines would reject it.

    Args:
        inertials: Link name → ten parameters in the *link's* frame, shape (10,) [kg, kg·m, kg·m²]; all zero for a
            link without mass.
        dynamics: Joint name → ``damping`` [N·m·s/rad or N·s/m] and ``friction`` [N·m or N], each ≥ 0; what is left out stays.

    Raises:
        UrdfError: The URDF is unreadable (negative masses are accepted), a name is unknown, an element that has to be
            changed is repeated, or a requested number does not read back.
        ModelError: A requested inertial is not physically consistent, or friction is negative or not finite.
    """
    before = parse_urdf(text, where, allow_negative_mass=True)
    wanted = {name: _writable(name, theta) for name, theta in inertials.items()}
    joints = dict(dynamics or {})
    for kind, names, known in (("link", wanted, before.links), ("joint", joints, before.joints)):
        for name in names:
            check_named(kind, name, known, UrdfError, where)
    splicer = Splicer(text, where)
    for node in splicer.root.children:
        name = node.get("name")
        if node.tag == "link" and name in wanted:
            old = before.links[name].theta
            if old is None or not np.array_equal(old, wanted[name]):
                _set_inertial(splicer, node, wanted[name], f"{where}, link '{name}'")
        elif node.tag == "joint" and node.get("type") and name in joints:
            place = f"{where}, joint '{name}'"
            for key, value in joints[name].items():
                if not (math.isfinite(value) and value >= 0):
                    raise ModelError(
                        f"{key} cannot be written to a URDF", where=place, got=value, expected="a finite number >= 0"
                    )
            stated = node.only("dynamics", place)
            if stated is not None:
                for key, value in joints[name].items():
                    if value != float(stated.get(key, "0")):
                        splicer.set(stated, key, number(value))
            elif any(joints[name].values()):
                entries = " ".join(f'{key}="{number(value)}"' for key, value in joints[name].items())
                splicer.append(node, [(0, f"<dynamics {entries}/>")])
    result = splicer.text()
    # every requested number reads back, and no other number has changed
    after = parse_urdf(result, where, allow_negative_mass=True)
    for name, link in after.links.items():
        old, asked = before.links[name].theta, wanted.get(name)
        if asked is None or (old is None and not asked.any()):
            same = (link.theta is None) == (old is None) and (old is None or np.array_equal(link.theta, old))  # type: ignore[arg-type]
        else:
            trace = abs(asked[[4, 6, 9]].sum())
            rounding = 1e-12 * np.repeat([abs(asked[0]), math.sqrt(abs(asked[0]) * trace), trace], (1, 3, 6))
            same = link.theta is not None and bool((np.abs(link.theta - asked) <= rounding).all())
        if not same:
            raise UrdfError(f"link '{name}' does not read back as written", where=where, got=link.theta, expected=asked)
    for name, joint in after.joints.items():
        for key in ("damping", "friction"):
            intended = joints.get(name, {}).get(key, getattr(before.joints[name], key))
            if getattr(joint, key) != intended:
                raise UrdfError(f"{key} of joint '{name}' does not read back as written", where=where, expected=intended)
    return result


def urdf_text(
    robot: Robot,
    theta: Array,
    *,
    damping: Mapping[str, float] | None = None,
    friction: Mapping[str, float] | None = None,
    repair: bool = False,
    where: str | Path | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Returns and verifies a robot's URDF with identified inertials and friction, and notes on other changes.

    Bodies are split into their links (:func:`split_bodies`). The new text is read back, every inertial is tested strictly,
    and inverse dynamics are compared with ``theta``.

    Args:
        theta: Inertial parameters of its bodies, shape (10·n,) [kg, kg·m, kg·m²].
        damping: Joint name → viscous friction [N·m·s/rad or N·s/m]; other joints keep the file's.
        friction: Joint name → Coulomb friction [N·m or N].
        repair: True to write the nearest physically consistent robot, with a note, if ``theta`` is not consistent.
        where: Target file, for messages; the source's if None.

    Raises:
        ShapeError: ``theta`` has the wrong length.
        ModelError: A body is not physically consistent (and ``repair`` is off), a joint is unknown, or a number is not finite.
        EstimationError: The text does not have the torques of ``theta``.
    """
    place = str(where or robot.path)
    values, links, notes = exported_links(robot, theta, repair)
    dynamics, clipped = joint_values(robot, damping=damping, friction=friction)
    source, repairs = without_violations(robot.urdf, robot.path)
    text = corrected_urdf(source, links, dynamics, where=robot.path)
    if left := violations(text, place):
        raise ModelError(f"strict readers would refuse {left[0]}", where=place)
    written = robot.of_urdf(text)
    for name, link in written.description.links.items():
        if link.theta is not None and link.theta.any() and not acceptable(link.theta):
            raise ModelError(f"link '{name}' would not be physical", where=place, got=margins(link.theta))
    if written.joints != robot.joints:
        raise EstimationError("the written URDF has other joints", where=robot.path, got=written.joints, expected=robot.joints)
    if not (difference := torque_difference(robot, values, written.model)) <= 1e-9:
        raise EstimationError(
            "the written URDF does not have the identified torques",
            where=robot.path,
            got=f"relative difference {difference:.3g}",
            expected="at most 1e-9",
        )
    return text, (*notes, *clipped, *repairs)


def mounted_urdf(text: str, link: str, theta: Array, *, where: str = "URDF") -> tuple[str, str]:
    """Adds a link without geometry, fixed to an existing link; every other byte of the text is unchanged.

    Args:
        theta: Ten parameters in that link's frame, shape (10,) [kg, kg·m, kg·m²], of a physically consistent body.

    Returns:
        The new text, and the name of the new link: ``payload``, with a number if the URDF already has that name.
    """
    known = parse_urdf(text, where)
    check_named("link", link, known.links, UrdfError, where)
    taken = {*known.links, *known.joints}
    free = next(name for name in (("payload", *(f"payload_{k}" for k in range(2, 1000)))) if name not in taken)
    splicer = Splicer(text, where)
    lines = [
        (0, f'<link name="{free}">'),
        *((depth + 1, line) for depth, line in _inertial_lines(*to_com(theta))),
        (0, "</link>"),
        (0, f'<joint name="{free}_mount" type="fixed">'),
        (1, f'<parent link="{markup(link)}"/>'),
        (1, f'<child link="{free}"/>'),
        (1, '<origin xyz="0 0 0" rpy="0 0 0"/>'),
        (0, "</joint>"),
    ]
    splicer.append(splicer.root, lines)
    return splicer.text(), free


def torque_difference(robot: Robot, theta: Array, model: pin.Model, samples: int = 50) -> float:
    """Largest relative difference between the torques of ``theta`` and those of a Pinocchio model.

    Args:
        theta: Inertial parameters, shape (10·n,).
        model: A model with the same joints in the same order; its armature is ignored.

    Returns:
        ``max |Δtau| / max |tau|`` over the states, the worst joint [1].
    """
    rng = np.random.default_rng(0)
    model = model.copy()
    model.armature = np.zeros(model.nv)
    data, other = robot.model.createData(), model.createData()
    q, v, a = (scale * rng.uniform(-1.0, 1.0, (samples, robot.n)) for scale in (math.pi, 3.0, 10.0))
    v, a = robot.spread(v), robot.spread(a)
    direct, read = np.empty(v.shape), np.empty(v.shape)
    for k, configuration in enumerate(robot.configuration(q)):
        direct[k] = pin.computeJointTorqueRegressor(robot.model, data, configuration, v[k], a[k]) @ theta
        read[k] = pin.rnea(model, other, configuration, v[k], a[k])
    size = np.abs(direct).max(axis=0)
    scale = np.maximum(size, 1e-6 * size.max() + np.finfo(float).tiny)
    return float((np.abs(direct - read).max(axis=0) / scale).max())


def _writable(name: str, theta: Array) -> Array:
    """A requested inertial with the margin that engines require."""
    values = np.array(theta, dtype=float)
    check_shape(f"inertials['{name}']", values.shape, (10,))
    if not np.isfinite(values).all():
        raise ModelError(f"the inertial of link '{name}' is not finite", got=values.tolist())
    if not values.any():
        return values
    margin = margins(values)
    if margin.relative < -MARGIN:
        raise ModelError(
            f"link '{name}' is not physically consistent",
            got=f"mass {margin.mass:.6g} kg, relative margin {margin.relative:.3g}",
            expected="mass > 0, triangle inequality",
            remedy="repair it first (repaired_theta, or the LMI step)",
        )
    return repaired_theta(values)


def _set_inertial(splicer: Splicer, link: Node, theta: Array, where: str) -> None:
    """Writes one link's inertial into the text."""
    mass, com, inertia = to_com(theta)
    noise = 64 * _EPS * abs(theta[[4, 6, 9]].sum())
    inertial = link.only("inertial", where)
    if inertial is None:
        if theta.any():
            splicer.append(link, _inertial_lines(mass, com, inertia))
        return
    origin, weight, matrix = (inertial.only(tag, where) for tag in ("origin", "mass", "inertia"))
    if weight is None or matrix is None:  # already rejected by parse_urdf
        raise UrdfError("<inertial> without <mass> or <inertia>", where=where)
    if origin is not None:
        rotation = pin.rpy.rpyToMatrix(*(float(word) for word in origin.get("rpy", "0 0 0").split() or "000"))
        inertia = rotation.T @ inertia @ rotation
    _set_numbers(splicer, weight, "value", [float(mass)], 0.0)
    if origin is not None and origin.get("xyz").strip():
        _set_numbers(splicer, origin, "xyz", com, 8 * _EPS * np.abs(com).max())
    elif com.any() and origin is not None:
        splicer.set(origin, "xyz", " ".join(map(number, com)))
    elif com.any():
        splicer.prepend(inertial, f'<origin xyz="{" ".join(map(number, com))}" rpy="0 0 0"/>')
    for key, row, column in _INERTIA:
        _set_numbers(splicer, matrix, key, [inertia[row, column]], noise)


def _set_numbers(splicer: Splicer, node: Node, key: str, values: Array | list[float], noise: float) -> None:
    """Replaces the numbers of an attribute that differ from the new values by more than rounding."""
    old = [float(word) for word in node.get(key).split()]
    numbers = [None if abs(new - was) <= noise else number(new) for new, was in zip(values, old, strict=True)]
    splicer.set_words(node, key, numbers)


def _inertial_lines(mass: Array, com: Array, inertia: Array) -> list[tuple[int, str]]:
    entries = " ".join(f'{key}="{number(inertia[row, column])}"' for key, row, column in _INERTIA)
    return [
        (0, "<inertial>"),
        (1, f'<origin xyz="{" ".join(map(number, com))}" rpy="0 0 0"/>'),
        (1, f'<mass value="{number(mass)}"/>'),
        (1, f"<inertia {entries}/>"),
        (0, "</inertial>"),
    ]


def number(value: float | Array) -> str:
    """The shortest text that reads back to the same double; never ``-0.0``; value: finite number, or an array of shape ()."""
    return repr(float(value) + 0.0)


def fix_urdf(text: str, where: str = "URDF") -> tuple[str, tuple[str, ...]]:
    """Repairs inconsistent inertials (also negative masses), removes elements that strict readers reject, and nothing else."""
    text, rewritten = canonical_urdf(text, where)
    text, repairs = without_violations(text, where)
    assessed = assess_links(parse_urdf(text, where, allow_negative_mass=True))
    wrong = {name: link for name, link in assessed.items() if link.level != "ok"}
    notes = [f"link '{name}': {'; '.join(link.problems)}; {link.correction}" for name, link in wrong.items()]
    fixed = corrected_urdf(text, {name: link.repaired for name, link in wrong.items()}, where=where)
    left = [name for name, link in assess_links(parse_urdf(fixed, where)).items() if link.level != "ok"]
    if left:
        raise UrdfError("some links could not be repaired", where=where, got=left)
    return fixed, (*rewritten, *notes, *repairs)
