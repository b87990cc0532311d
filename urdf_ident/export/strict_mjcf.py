"""Checks that MuJoCo accepts a model, without MuJoCo, and with it where it is installed.

The rules are those of its compiler (user_objects, user_mesh) for the elements that this package writes: unique names, non-zero
axes, positive sizes, inertias with eigenvalues above 1e-14 and A + B ≥ C, moving bodies with mass (including welded bodies),
and finite numbers.
"""

from __future__ import annotations

import importlib.util
import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import numpy as np

from ..linalg import Array

#: MuJoCo's lower bounds: masses and inertias of moving bodies, and eigenvalues of an inertia matrix.
_LEAST, _LEAST_EIGENVALUE = 1e-15, 1e-14
_SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2}
#: Attributes that are no numbers.
_WORDS = ("joint1", "joint2", "name", "file", "mesh", "type", "model", "angle", "autolimits", "inertiafromgeom")
#: Largest number of faces of a mesh, and its least volume [m³].
_FACES, _LEAST_VOLUME = 200_000, 1e-13


def mjcf_violations(text: str) -> tuple[str, ...]:
    """Violations of MuJoCo's rules in a model written by this package."""
    root = ElementTree.fromstring(text)
    named = Counter(
        (element.tag, element.get("name", "")) for element in root.iter() if element.get("name") and element.tag != "mujoco"
    )
    faults = [f"{kind} '{name}' exists twice" for (kind, name), count in named.items() if count > 1]
    for element in root.iter():
        for key, value in element.attrib.items():
            if key not in _WORDS and not finite_numbers(value):
                faults.append(f"<{element.tag} {key}> is '{value[:40]}'")
    if faults:
        return tuple(faults)
    for geom in root.iter("geom"):
        sizes = _numbers(geom.get("size", ""))[: _SIZES.get(geom.get("type", ""), 0)]
        if geom.get("type") != "mesh" and (len(sizes) < _SIZES.get(geom.get("type", ""), 1) or not (sizes > 0).all()):
            faults.append(f"a geom has the size '{geom.get('size')}'")
        if geom.get("rgba") is not None and len(_numbers(geom.get("rgba", ""))) != 4:
            faults.append(f"a geom has the colour '{geom.get('rgba')}'")
    for joint in root.iter("joint"):
        if not np.linalg.norm(_numbers(joint.get("axis", "0 0 1"))) > 1e-10:
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
        return path.stat().st_size < 100 * 2**20
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
    if inertial is not None and float(inertial.get("mass", "0")) >= _LEAST:
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
