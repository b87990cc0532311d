"""Random robots as URDF texts in the styles that real files have, for tests of export and repair."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from urdf_ident.model.inertia import from_com, from_pseudo_inertia, pseudo_inertia, to_com


@dataclass(frozen=True)
class Style:
    """How a file is written."""

    line_end: str = "\n"
    indent: str = "  "
    quote: str = '"'
    spread: bool = False  # every attribute on its own line
    comments: bool = False
    namespace: str = ""
    declaration: str = '<?xml version="1.0"?>'


STYLES = (
    Style(),
    Style(line_end="\r\n", indent="\t"),
    Style(quote="'", comments=True, indent="    "),
    Style(spread=True, comments=True, namespace=' xmlns:xacro="http://ros.org/wiki/xacro"'),
    Style(declaration="\ufeff<?xml version='1.0' encoding='utf-8'?>", comments=True, namespace=' xmlns="http://www.ros.org"'),
    Style(line_end="", indent="", declaration=""),
)


def random_body(rng: np.random.Generator, thin: float = 0.0) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it; ``thin`` > 0 makes a rod or plate of that ratio of second moments."""
    mass = 10.0 ** rng.uniform(-2, 1)
    size = rng.uniform(0.05, 0.4, 3)
    moments = mass * size**2 / 12.0
    if thin > 0:
        moments[: rng.integers(1, 3)] = moments.max() * thin
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    second = (turn * moments) @ turn.T
    return mass, rng.uniform(-0.15, 0.15, 3), np.trace(second) * np.eye(3) - second


def random_urdf(rng: np.random.Generator, links: int = 8, style: Style | None = None, thin: float = 0.0) -> str:
    """A random tree whose moving parts all have mass; about a third of the joints is fixed.

    Args:
        rng: Random generator.
        links: Number of links, base included.
        style: How it is written; a random one by default.
        thin: Links are rods and plates of this ratio of second moments with probability one half.
    """
    style = style or STYLES[rng.integers(len(STYLES))]
    lines: list[tuple[int, str]] = []
    elements = [(name, rng.random() < 0.3 and "fixed") for name in (f"link_{k}" for k in range(links))]
    moving = 0
    for k, (name, fixed) in enumerate(elements):
        fixed = fixed and (moving > 0 or k < links - 1)
        bare = (k == 0 and rng.random() < 0.5) or (bool(fixed) and rng.random() < 0.4)
        lines += _link(rng, style, name, None if bare else random_body(rng, thin if rng.random() < 0.5 else 0.0))
        if k > 0:
            kind = "fixed" if fixed else ["revolute", "continuous", "prismatic"][rng.integers(3)]
            moving += kind != "fixed"
            lines += _joint(rng, style, f"joint_{rng.permutation(99)[0]}_{k}", kind, f"link_{rng.integers(k)}", name)
    opening = [style.declaration] if style.declaration else []
    body = [style.indent * depth + line.replace("\n", style.line_end + style.indent * (depth + 2)) for depth, line in lines]
    text = style.line_end.join([*opening, f'<robot name="random"{style.namespace}>', *body, "</robot>", ""])
    return text.replace('"', style.quote) if style.quote != '"' else text


def _tag(style: Style, name: str, **attributes: str) -> str:
    gap = "\n" if style.spread and style.line_end and len(attributes) > 1 else " "
    return "".join([f"<{name}", *(f'{gap}{key}="{value}"' for key, value in attributes.items()), "/>"])


def _link(rng: np.random.Generator, style: Style, name: str, body: tuple | None) -> list[tuple[int, str]]:
    if body is None and rng.random() < 0.5:
        return [(1, f'<link name="{name}"/>')]
    lines = [(1, f'<link name="{name}">')]
    if style.comments:
        lines.append((2, '<!-- masse \u00e9 \u2713: mass value="12" is < not > a number -->'))
    if rng.random() < 0.5:
        lines += [(2, "<visual>"), (3, '<geometry><box size="0.1 0.2 0.3"/></geometry>'), (2, "</visual>")]
    if body is not None:
        mass, com, inertia = body
        rpy = rng.uniform(-3, 3, 3) if rng.random() < 0.4 else np.zeros(3)
        lines.append((2, "<inertial>"))
        if com.any() and rng.random() < 0.9:
            turned = {"rpy": _words(rpy)} if rpy.any() else {}
            lines.append((3, _tag(style, "origin", xyz=_words(com), **turned)))
        lines.append((3, _tag(style, "mass", value=repr(mass))))
        keys = [("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2)]
        order = rng.permutation(6) if rng.random() < 0.3 else range(6)
        lines.append((3, _tag(style, "inertia", **{keys[i][0]: repr(float(inertia[keys[i][1:]])) for i in order})))
        lines.append((2, "</inertial>"))
    return [*lines, (1, "</link>")]


def _joint(rng: np.random.Generator, style: Style, name: str, kind: str, parent: str, child: str) -> list[tuple[int, str]]:
    lines = [(1, f'<joint name="{name}" type="{kind}">')]
    lines.append((2, _tag(style, "origin", xyz=_words(rng.uniform(-0.4, 0.4, 3)), rpy=_words(rng.uniform(-3, 3, 3)))))
    lines += [(2, f'<parent link="{parent}"/>'), (2, f'<child link="{child}"/>')]
    if kind != "fixed":
        axis = np.eye(3)[rng.integers(3)] if rng.random() < 0.5 else rng.normal(size=3)
        axis = axis / np.linalg.norm(axis)
        lines.append((2, f'<axis xyz="{_words(axis)}"/>'))
        if kind != "continuous":
            lines.append((2, _tag(style, "limit", lower="-2", upper="2.5", velocity="3", effort="50")))
        if rng.random() < 0.5:
            lines.append((2, _tag(style, "dynamics", damping="0.1", friction="0.0")))
    return [*lines, (1, "</joint>")]


def _words(values: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in values)


def inertial_text(theta: np.ndarray) -> str:
    """The <inertial> element of ten parameters, with axes along those of the link."""
    mass, com, inertia = to_com(theta)
    numbers = {"ixx": (0, 0), "ixy": (0, 1), "iyy": (1, 1), "ixz": (0, 2), "iyz": (1, 2), "izz": (2, 2)}
    words = " ".join(f'{key}="{float(inertia[at])!r}"' for key, at in numbers.items())
    return f'<inertial><origin xyz="{_words(com)}"/><mass value="{float(mass)!r}"/><inertia {words}/></inertial>'


def serial_urdf(inertials: Sequence[str], tools: Sequence[tuple[str, str, str]] = ()) -> str:
    """A chain of revolute joints with one <inertial> a link, and fixed tools (xyz, rpy, inertial) on the last."""
    parts = ['<robot name="chain"><link name="base"/>']
    for i, text in enumerate(inertials):
        parent = "base" if i == 0 else f"l{i}"
        parts.append(f'<link name="l{i + 1}">{text}</link><joint name="j{i + 1}" type="revolute"><parent link="{parent}"/>')
        parts.append(
            f'<child link="l{i + 1}"/><origin xyz="0 0 0.4" rpy="0.3 {0.2 * i} 0"/><axis xyz="0 {i % 2} {1 - i % 2}"/>'
        )
        parts.append('<limit lower="-3" upper="3" velocity="2" effort="50"/></joint>')
    for k, (xyz, rpy, text) in enumerate(tools):
        parts.append(f'<link name="t{k}">{text}</link><joint name="f{k}" type="fixed"><parent link="l{len(inertials)}"/>')
        parts.append(f'<child link="t{k}"/><origin xyz="{xyz}" rpy="{rpy}"/></joint>')
    return "".join([*parts, "</robot>"])


def changed(rng: np.random.Generator, theta: np.ndarray, amount: float = 0.2) -> np.ndarray:
    """Other physically consistent bodies, shape (k, 10): pseudo-inertias under a random congruence."""
    out = []
    for body in np.reshape(theta, (-1, 10)):
        turn = np.eye(4) + amount * rng.uniform(-1, 1, (4, 4)) * np.array([[1, 1, 1, 0.1]] * 3 + [[1, 1, 1, 1]])
        out.append(from_pseudo_inertia(turn @ pseudo_inertia(body) @ turn.T))
    return np.array(out)


def random_theta(rng: np.random.Generator, thin: float = 0.0) -> np.ndarray:
    """Ten parameters of a random body, shape (10,)."""
    return from_com(*random_body(rng, thin))


def point_masses(rng: np.random.Generator, mass: float | None = None) -> np.ndarray:
    """Inertial parameters of any physical body: random masses at random points."""
    points = rng.normal(size=(12, 3)) * 0.15 + rng.normal(size=3) * 0.1
    weights = rng.uniform(0.1, 1.0, 12)
    weights *= (mass or rng.uniform(0.5, 8)) / weights.sum()
    return sum(from_com(w, p, np.zeros((3, 3))) for w, p in zip(weights, points, strict=True))
