"""Corrects the MJCF that a robot was read from: only the identified numbers change.

Comments, default classes, actuators, sensors, meshes and layout stay. MuJoCo's own writer would lose comments and all digits
beyond the sixth, so that the numbers are replaced in the text. They are verified by compiling the result.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EstimationError, ModelError
from ..files.read_write import read_text
from ..files.splice import Node, Splicer, outline
from ..grouping import abbreviated
from ..linalg import Array
from ..model.description import compiled_mjcf, names_of, placement
from ..model.inertia import from_com, transform
from ..model.robot import Robot
from .mjcf import inertial_attributes
from .split import exported_links, joint_values
from .urdf import number

#: Largest relative difference between intended and compiled numbers, and of numbers that are left as they are.
_SAME = 1e-9
#: Attributes of <compiler> that name folders.
_FOLDERS = ("meshdir", "texturedir", "assetdir")


def patched_mjcf(
    source: Path, robot: Robot, theta: Array, joints: Mapping[str, Mapping[str, float]], folder: Path
) -> tuple[str, tuple[str, ...]]:
    """Returns the file of a MuJoCo model that holds the bodies, with identified numbers, and notes on other changes.

    Args:
        theta: Inertial parameters of its bodies, shape (10·n,) [kg, kg·m, kg·m²].
        joints: ``damping`` [N·m·s/rad or N·s/m], ``frictionloss`` [N·m or N] and ``armature`` [kg·m² or kg] → joint → value.
        folder: Folder of the new file, to which paths of meshes are made relative.
    """
    _, inertials, notes = exported_links(robot, theta, repair=True)
    dynamics, clipped = joint_values(robot, **joints)
    spec, model = compiled_mjcf(source)
    bodies, values = _changed_bodies(source, model, inertials), _changed_values(model, dynamics)
    files = _files_of(source)
    holder = _holder(source, files, [*(("body", name) for name in bodies), *(("joint", name) for name, _ in values)])
    text = _with_numbers(Splicer(files[holder], str(holder)), bodies, values)
    _verify(source, {**files, holder: text}, bodies, values)
    if holder != source:
        kept = f"{source.name} includes {holder.name}, which holds the bodies: the file written replaces {holder.name}"
        return text, (*notes, *clipped, kept)
    assets = {"meshdir": spec.meshdir, "texturedir": spec.texturedir}
    return _moved(text, source.parent, folder, assets, [*files.values()][1:]), (*notes, *clipped)


def _changed_bodies(source: Path, model: Any, inertials: Mapping[str, Array]) -> dict[str, Array]:
    """Bodies whose parameters change, with the ten new ones in the body's frame."""
    names, changed = names_of(model)[0], {}
    for i, name in enumerate(names):
        if name in inertials:
            last = int(model.body_jntadr[i] + model.body_jntnum[i]) - 1  # the link's frame is at the joint
            anchor = model.jnt_pos[last] if model.body_jntnum[i] else np.zeros(3)
            ten, before = transform(inertials[name], np.eye(3), anchor), _compiled(model, i)
            if not np.allclose(ten, before, rtol=_SAME, atol=_SAME * np.abs(before).max()):
                changed[name] = ten
    if lost := sorted(name for name, ten in inertials.items() if name not in names and ten.any()):
        raise ModelError(
            f"MJCF cannot hold the bodies between joints of one body: {abbreviated(lost)}",
            where=str(source),
            remedy="give each joint a <body> of its own",
        )
    return changed


def _changed_values(model: Any, dynamics: Mapping[str, Mapping[str, float]]) -> dict[tuple[str, str], float]:
    """Damping, friction and armature that change, by joint and attribute."""
    names, changed = names_of(model)[1], {}
    for name, attributes in dynamics.items():
        for key, value in attributes.items():
            before = float(np.ravel(getattr(model, f"dof_{key}")[model.jnt_dofadr[names.index(name)]])[0])
            if abs(value - before) > _SAME * max(value, before):
                changed[name, key] = value
    return changed


def _files_of(source: Path) -> dict[Path, str]:
    """Texts of a model and of the files that it includes, whose names are relative to the model, else to the including file."""
    files: dict[Path, str] = {}
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files[file] = read_text(file, "MJCF")
            for node in _all(Splicer(files[file], str(file)).root, "include"):
                beside_model = source.parent / node.get("file")
                waiting.append(beside_model if beside_model.is_file() else file.parent / node.get("file"))
    return files


def _with_numbers(splicer: Splicer, bodies: Mapping[str, Array], values: Mapping[tuple[str, str], float]) -> str:
    """The text of a file with the new parameters of bodies and attributes of joints."""
    nodes = _named(splicer.root)
    for name, ten in bodies.items():
        body = nodes["body", name]
        line = "<inertial " + " ".join(f'{key}="{value}"' for key, value in inertial_attributes(ten).items()) + "/>"
        if inertial := body.all("inertial"):
            splicer.replace(inertial[0], line)
        else:  # it was computed from the geometry
            splicer.append(body, [(0, line)])
    for (name, key), value in values.items():
        splicer.set(nodes["joint", name], key, number(value))
    for compiler in splicer.root.all("compiler"):
        for key, instead in (("inertiafromgeom", "auto"), ("settotalmass", "-1")):
            if compiler.get(key) not in ("", "auto", "false"):
                splicer.set(compiler, key, instead)  # it would replace the masses
    return splicer.text()


def _holder(source: Path, files: Mapping[Path, str], elements: Sequence[tuple[str, str]]) -> Path:
    """The file with all of some elements, each by tag and name; the model itself without elements."""
    places = {file: _named(Splicer(text, str(file)).root) for file, text in files.items()}
    for element in elements:
        if sum(element in nodes for nodes in places.values()) != 1:
            raise ModelError(
                "{} '{}' is not written once under this name".format(*element),
                where=str(source),
                remedy="name it, and write what <replicate> or <attach> makes (MuJoCo: MjSpec.to_xml)",
            )
    holders = {file for file, nodes in places.items() for element in elements if element in nodes} or {source}
    if len(holders) > 1:
        got = ", ".join(sorted(file.name for file in holders))
        raise ModelError("the bodies stand in several files", where=str(source), got=got, remedy="merge them (MjSpec.to_xml)")
    return holders.pop()


def _compiled(model: Any, i: int) -> Array:
    """Ten parameters of a compiled body in its frame, shape (10,)."""
    rotation = placement(model.body_ipos[i], model.body_iquat[i])[:3, :3]
    return from_com(model.body_mass[i], model.body_ipos[i], (rotation * model.body_inertia[i]) @ rotation.T)


def _all(node: Node, tag: str) -> list[Node]:
    return [node] * (node.tag == tag) + [below for child in node.children for below in _all(child, tag)]


def _named(root: Node) -> dict[tuple[str, str], Node]:
    """Bodies and joints by tag and name; one that occurs twice is left out."""
    named: dict[tuple[str, str], list[Node]] = {}
    for world in root.all("worldbody") or (root,):
        for tag in ("body", "joint"):
            for node in _all(world, tag):
                named.setdefault((tag, node.get("name")), []).append(node)
    return {key: nodes[0] for key, nodes in named.items() if len(nodes) == 1}


def _moved(text: str, old: Path, new: Path, assets: Mapping[str, str], included: Sequence[str]) -> str:
    """The text in another folder: paths of meshes, textures and included files stay those of the old one.

    Args:
        assets: ``meshdir`` and ``texturedir`` of the whole model, relative to the old folder.
        included: Texts of the included files.
    """
    if old.resolve() == new.resolve():
        return text
    splicer, back = Splicer(text), os.path.relpath(old.resolve(), new.resolve())
    for node in _all(splicer.root, "include"):
        splicer.set(node, "file", os.path.join(back, node.get("file")))
    stated = {key: node for node in splicer.root.all("compiler") for key in _FOLDERS if key in node.attributes}
    for key, node in stated.items():
        splicer.set(node, key, os.path.join(back, node.get(key)))
    elsewhere = any(key in node.attributes for other in included for node in outline(other).all("compiler") for key in _FOLDERS)
    missing = [key for key in assets if elsewhere or not stated.keys() & {key, "assetdir"}]
    if missing:  # of several compilers, the last one counts
        folders = (f'{key}="{os.path.normpath(os.path.join(back, assets[key]))}"' for key in missing)
        splicer.append(splicer.root, [(0, f"<compiler {' '.join(folders)}/>")])
    return splicer.text()


def _verify(
    source: Path, files: Mapping[Path, str], bodies: Mapping[str, Array], joints: Mapping[tuple[str, str], float]
) -> None:
    """Compiles the new text in place of the old, and compares its numbers with the intended ones."""
    import mujoco

    included = {os.path.relpath(file, source.parent): text.encode() for file, text in files.items() if file != source}
    try:
        spec = mujoco.MjSpec.from_string(files[source], include=included)
        spec.meshdir, spec.texturedir = (str(source.parent.resolve() / folder) for folder in (spec.meshdir, spec.texturedir))
        spec.compiler.fusestatic = False
        model = spec.compile()
    except (ValueError, RuntimeError) as error:
        raise EstimationError(
            "MuJoCo refuses the corrected model", where=str(source), got=" ".join(str(error).split())[:200]
        ) from error
    body_names, joint_names = names_of(model)
    pairs = [(name, ten, _compiled(model, body_names.index(name))) for name, ten in bodies.items()]
    for (name, key), value in joints.items():
        read = getattr(model, f"dof_{key}")[model.jnt_dofadr[joint_names.index(name)]]
        pairs.append((name, np.array([value]), np.ravel(read)[:1]))
    for name, intended, read in pairs:
        if not np.allclose(intended, read, rtol=_SAME, atol=_SAME * np.abs(intended).max()):
            raise EstimationError(f"MuJoCo reads other numbers of '{name}'", where=str(source), got=read, expected=intended)
