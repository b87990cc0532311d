"""Reads a robot description of any known format as a URDF; SDFormat (Gazebo) by the frame semantics of versions 1.4 to 1.11.

MuJoCo reads and compiles MJCF, so that it resolves default classes, angles, orientations and inertias of geometry. Every
body becomes a link in the frame of its last joint; joint positions are MuJoCo's ``qpos``. Trees on a free joint are objects in
the scene and are left out.
"""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import MissingExtraError, ModelError, UrdfError
from ..files.read_write import allowed, read_text
from ..grouping import abbreviated
from ..linalg import Array
from .meshes import reachable_folders
from .urdf import BEFORE, UNLIMITED, canonical_urdf, read_xml


def read_description(source: str | Path) -> tuple[str, str, tuple[str, ...]]:
    """Reads a robot description: URDF; MJCF, SDFormat and xacro (where its package is installed) are converted.

    Args:
        source: Path of the file, or its XML text.

    Returns:
        The URDF, its origin for messages, and notes on what was read otherwise than written.

    Raises:
        MissingExtraError: The package that reads the format is not installed.
        UrdfError: The file cannot be read.
    """
    is_text = isinstance(source, str) and source.lstrip(BEFORE).startswith("<")
    path = Path() if is_text else Path(source).expanduser()
    text = str(source) if is_text else read_text(path, "URDF")
    where = "URDF" if is_text else str(path)
    notes: tuple[str, ...] = ()
    kind = root_tag(text)
    if kind == "mujoco":
        text, notes = urdf_of_mjcf(text if is_text else path)
    elif kind == "sdf":
        text = urdf_of_sdf(text, where)
    elif "<xacro:" in text and not is_text and importlib.util.find_spec("xacro") is not None:
        text = _expanded(path)
    text, rewritten = canonical_urdf(text, where)
    return text, where, notes + rewritten


def root_tag(text: str) -> str:
    """Name of the root element of an XML text; empty if it cannot be parsed."""
    with suppress(UrdfError):
        return read_xml(text.lstrip(BEFORE), "").tag
    return ""


def _expanded(path: Path) -> str:
    """The URDF that a xacro file stands for."""
    import xacro

    try:
        return str(xacro.process_file(str(path)).toxml())
    except Exception as error:  # xacro evaluates Python expressions, which raise anything
        got = " ".join(str(error).split())[:200]
        remedy = "run `xacro FILE NAME:=VALUE > robot.urdf` if it needs arguments or a ROS package"
        raise UrdfError("xacro does not expand the file", where=str(path), got=got, remedy=remedy) from error


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
        _sdf_joint(robot, joint, movers, frames, where)
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


def _sdf_joint(
    robot: ElementTree.Element, joint: ElementTree.Element, movers: dict[str, ElementTree.Element], frames: _Frames, where: str
) -> None:
    name, kind, parent = joint.get("name", ""), joint.get("type", ""), _said(joint, "parent")
    if kind not in ("revolute", "continuous", "prismatic", "fixed"):
        expected = "revolute | continuous | prismatic | fixed"
        raise ModelError(f"joint '{name}' has an unsupported type", where=where, got=kind, expected=expected)
    ends = [_numbers(joint, f"axis/limit/{key}", f"{sign}1e16", where)[0] for key, sign in (("lower", "-"), ("upper", "+"))]
    if kind == "revolute" and all(abs(end) >= UNLIMITED for end in ends):
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


#: URDF's words for MuJoCo's kinds of geometry, and the size of each in URDF's convention.
_SHAPES = {
    "box": lambda size: {"size": words(2 * size)},
    "sphere": lambda size: {"radius": words(size[:1])},
    "cylinder": lambda size: {"radius": words(size[:1]), "length": words(2 * size[1:2])},
    "capsule": lambda size: {"radius": words(size[:1]), "length": words(2 * size[1:2])},
}


def compiled_mjcf(source: str | Path) -> tuple[Any, Any]:
    """Reads and compiles a MuJoCo model; static bodies are kept.

    Returns:
        MuJoCo's ``MjSpec`` and ``MjModel``.

    Raises:
        MissingExtraError: MuJoCo is not installed.
        UrdfError: MuJoCo does not accept the model, or it names a file outside its folder and packages.
    """
    where = str(source) if isinstance(source, Path) else "MJCF"
    _refuse_files_elsewhere(source)
    if importlib.util.find_spec("mujoco") is None:
        raise MissingExtraError(
            "MJCF files are read by MuJoCo, which is not installed", where=where, remedy="pip install 'urdf-ident[mujoco]'"
        )
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(where) if isinstance(source, Path) else mujoco.MjSpec.from_string(source)
        spec.compiler.fusestatic = spec.compiler.discardvisual = False
        return spec, spec.compile()
    except (ValueError, RuntimeError) as error:
        raise UrdfError(
            "MuJoCo does not accept the model",
            where=where,
            got=" ".join(str(error).split())[:200],
            remedy="check that MuJoCo's viewer opens it",
        ) from error


def _refuse_files_elsewhere(source: str | Path) -> None:
    """Refuses a model that names a file which it may not open: MuJoCo itself opens any.

    Included files and assets may be named relative to the model, to the file that includes them, or to the folders of the
    compiler; a name is refused if any of these readings is a file elsewhere.
    """
    main = source if isinstance(source, Path) else None
    folders = [] if main is None else [*reachable_folders(main.resolve().parent)]
    below = {"."}  # folders that the compiler puts before the names of assets
    named, waiting, seen = list[tuple[Path, str]](), [(main, source if isinstance(source, str) else None)], set[Path]()
    while waiting:
        file, text = waiting.pop()
        place = Path() if file is None else file.parent
        text = read_text(file, "MJCF") if file is not None else str(text)
        for element in read_xml(text.lstrip(BEFORE), str(file or "MJCF")).iter():
            below |= {element.attrib[key] for key in ("meshdir", "texturedir", "assetdir") if element.get(key)}
            for key, name in element.attrib.items():
                if not key.startswith("file") or not name:
                    continue
                named.append((place, name))
                for base in {place, Path() if main is None else main.parent} if element.tag == "include" else ():
                    inside = allowed(base / name, folders)
                    if inside is not None and inside not in seen:
                        seen.add(inside)
                        waiting.append((inside, None))
    bases = {Path() if main is None else main.parent}
    for place, name in named:
        for path in {base / folder / name for base in bases | {place} for folder in below}:
            if path.is_file() and allowed(path, folders) is None:
                raise UrdfError(
                    "the model names a file outside its folder and packages",
                    where=str(source) if main else "MJCF",
                    got=name,
                    remedy="copy it into the folder of the model, or name its folder with --package",
                )


def names_of(model: Any) -> tuple[list[str], list[str]]:
    """Returns the names of all bodies and joints; one without a name is called after its number or its body."""
    bodies = [model.body(i).name or f"body_{i}" for i in range(model.nbody)]
    joints = [model.joint(j).name or f"{bodies[model.jnt_bodyid[j]]}_joint_{j}" for j in range(model.njnt)]
    return bodies, joints


def urdf_of_mjcf(source: str | Path) -> tuple[str, tuple[str, ...]]:
    """Converts a MuJoCo model to a URDF.

    Rotor inertia, which a URDF cannot hold, becomes the attribute ``armature`` of ``<dynamics>``.

    Returns:
        The URDF, and notes on what it cannot hold.

    Raises:
        MissingExtraError: MuJoCo is not installed.
        UrdfError: MuJoCo does not accept the model.
        ModelError: A joint is a ball joint, or the base is not fixed.
    """
    spec, model = compiled_mjcf(source)  # says so where MuJoCo is missing
    import mujoco

    where = str(source) if isinstance(source, Path) else "MJCF"
    bodies, joints = names_of(model)
    kinds = [mujoco.mjtJoint(kind) for kind in model.jnt_type]
    free = {int(model.jnt_bodyid[j]) for j, kind in enumerate(kinds) if kind == mujoco.mjtJoint.mjJNT_FREE}
    robot = ElementTree.Element("robot", name=spec.modelname or "robot")
    ElementTree.SubElement(robot, "link", name=bodies[0])
    frames: dict[int, Array] = {0: np.eye(4)}  # placement of each body's link in the body
    left_out = set[int]()
    for i in range(1, model.nbody):
        parent = int(model.body_parentid[i])
        if i in free or parent in left_out:
            left_out.add(i)
            continue
        place = np.asarray(np.linalg.inv(frames[parent])) @ placement(model.body_pos[i], model.body_quat[i])
        above, anchor = bodies[parent], placement(np.zeros(3))
        begin, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        for j in range(begin, begin + count):
            if kinds[j] == mujoco.mjtJoint.mjJNT_BALL:
                raise ModelError(
                    f"joint '{joints[j]}' is a ball joint", where=where, expected="hinge | slide", remedy="write three hinges"
                )
            slides, turned, axis = kinds[j] == mujoco.mjtJoint.mjJNT_SLIDE, np.eye(4), model.jnt_axis[j]
            back = -float(model.qpos0[model.jnt_qposadr[j]]) * axis  # the body is written at position `ref`
            if slides:
                turned[:3, 3] = back
            else:
                turned[:3, :3] = pin.exp3(back)
            anchor = placement(model.jnt_pos[j])
            below = bodies[i] if j == begin + count - 1 else f"{bodies[i]}_{joints[j]}"
            _joint(robot, model, j, joints[j], (above, below), place @ anchor @ turned)
            above, place = below, np.asarray(np.linalg.inv(anchor))
            if below != bodies[i]:
                ElementTree.SubElement(robot, "link", name=below)
        if count == 0:
            fixed = ElementTree.SubElement(robot, "joint", name=f"{bodies[i]}_fixed", type="fixed")
            connect(fixed, above, bodies[i], place)
        frames[i] = anchor
        _link(robot, spec, model, i, bodies[i], np.asarray(np.linalg.inv(anchor)))
    if free and all(joint.get("type") == "fixed" for joint in robot.iter("joint")):
        raise ModelError("no joint moves on a fixed base", where=where, got="free joints only", remedy="fix the robot's base")
    notes = _couple(robot, model, joints) + _notes(model, bodies, joints, left_out)
    ElementTree.indent(robot)
    return f"{ElementTree.tostring(robot, encoding='unicode')}\n", tuple(notes)


def _joint(robot: ElementTree.Element, model: Any, j: int, name: str, ends: tuple[str, str], place: Array) -> None:
    import mujoco

    slides, limited = model.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE, bool(model.jnt_limited[j])
    kind = "prismatic" if slides else "revolute" if limited else "continuous"
    element = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    connect(element, *ends, place)
    ElementTree.SubElement(element, "axis", xyz=words(model.jnt_axis[j]))
    efforts = [np.abs(model.jnt_actfrcrange[j]).max()] if model.jnt_actfrclimited[j] else []
    for k in range(model.nu):  # a force range before the gear
        drives = mujoco.mjtTrn(model.actuator_trntype[k]) in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
        if drives and model.actuator_trnid[k, 0] == j and model.actuator_forcelimited[k]:
            efforts.append(float(np.abs(model.actuator_forcerange[k]).max() * abs(model.actuator_gear[k, 0])))
    lower, upper = model.jnt_range[j] if limited else (-1e9, 1e9) if slides else (0.0, 0.0)
    limits = {"lower": lower, "upper": upper, "effort": min(efforts, default=0.0), "velocity": 0.0}
    ElementTree.SubElement(element, "limit", {key: words([value]) for key, value in limits.items()})
    dof = model.jnt_dofadr[j]
    terms = {"damping": model.dof_damping, "friction": model.dof_frictionloss, "armature": model.dof_armature}
    ElementTree.SubElement(element, "dynamics", {key: words([np.ravel(values[dof])[0]]) for key, values in terms.items()})


def _link(robot: ElementTree.Element, spec: Any, model: Any, i: int, name: str, place: Array) -> None:
    """Adds a body's link with its inertial and geometry; ``place`` is the body's placement in the link."""
    import mujoco

    link = ElementTree.SubElement(robot, "link", name=name)
    if model.body_mass[i] > 0:
        inertial, centre = ElementTree.SubElement(link, "inertial"), place @ placement(model.body_ipos[i], model.body_iquat[i])
        about = (centre[:3, :3] * model.body_inertia[i]) @ centre[:3, :3].T
        ElementTree.SubElement(inertial, "origin", xyz=words(centre[:3, 3]))
        ElementTree.SubElement(inertial, "mass", value=words([model.body_mass[i]]))
        ElementTree.SubElement(
            inertial, "inertia", {f"i{'xyz'[r]}{'xyz'[c]}": words([about[r, c]]) for r in range(3) for c in range(r, 3)}
        )
    for g in range(int(model.body_geomadr[i]), int(model.body_geomadr[i] + model.body_geomnum[i])):
        kind, at = mujoco.mjtGeom(model.geom_type[g]).name.removeprefix("mjGEOM_").lower(), place
        at = at @ placement(model.geom_pos[g], model.geom_quat[g])
        if kind == "mesh":  # MuJoCo moves the vertices to the mesh's centre of mass
            mesh = int(model.geom_dataid[g])
            at = at @ np.linalg.inv(placement(model.mesh_pos[mesh], model.mesh_quat[mesh]))
            asset = spec.mesh(model.mesh(mesh).name)
            shape = {"filename": str(Path(spec.meshdir) / asset.file), "scale": words(asset.scale)}
        elif kind in _SHAPES:
            shape = _SHAPES[kind](model.geom_size[g])
        else:
            continue
        solid = model.geom_contype[g] or model.geom_conaffinity[g]
        element = ElementTree.SubElement(link, "collision" if solid else "visual")
        set_origin(element, at)
        ElementTree.SubElement(ElementTree.SubElement(element, "geometry"), kind, shape)


def _couple(robot: ElementTree.Element, model: Any, joints: list[str]) -> list[str]:
    """Writes active linear equality constraints between joints as ``<mimic>``; returns notes on other constraints."""
    import mujoco

    elements, other = {element.get("name"): element for element in robot.iter("joint")}, []
    for e in range(model.neq):
        if not model.eq_active0[e]:
            continue
        kind = mujoco.mjtEq(model.eq_type[e])
        if kind != mujoco.mjtEq.mjEQ_JOINT:
            other.append(model.eq(e).name or kind.name.removeprefix("mjEQ_").lower())
            continue
        follower, leader, slope = int(model.eq_obj1id[e]), int(model.eq_obj2id[e]), model.eq_data[e, :5]
        if leader < 0 or slope[2:].any():
            other.append(f"{joints[follower]} (not linear)" if leader >= 0 else f"{joints[follower]} (held)")
            continue
        start = [float(model.qpos0[model.jnt_qposadr[j]]) for j in (follower, leader)]
        mimic = {"multiplier": slope[1], "offset": slope[0] + start[0] - slope[1] * start[1]}
        if joints[follower] in elements:
            line = {key: words([value]) for key, value in mimic.items()}
            ElementTree.SubElement(elements[joints[follower]], "mimic", {"joint": joints[leader], **line})
    return [f"equality constraints are left out: {abbreviated(other)}; lock their joints (robot.lock)"] if other else []


def _notes(model: Any, bodies: list[str], joints: list[str], left_out: set[int]) -> list[str]:
    """What a URDF cannot hold."""
    notes = []
    if left_out:
        notes.append(f"bodies on free joints are left out: {abbreviated([bodies[i] for i in sorted(left_out)])}")
    if sprung := [joints[j] for j in range(model.njnt) if np.any(model.jnt_stiffness[j])]:
        notes.append(f"springs are left out of joints {abbreviated(sprung)}; model.friction: [..., spring] estimates them")
    if lifted := [bodies[i] for i in range(model.nbody) if model.body_gravcomp[i]]:
        notes.append(f"gravity compensation (gravcomp) is left out of bodies {abbreviated(lifted)}")
    if np.linalg.norm(model.opt.gravity - np.array([0.0, 0.0, -9.81])) > 0.05:
        notes.append(f"its gravity, {words(model.opt.gravity)} m/s², is not used; robot.gravity in the project file is")
    return notes


def placement(translation: Array, quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0)) -> Array:
    """Homogeneous placement, shape (4, 4).

    Args:
        translation: Shape (3,) [m].
        quaternion: As MuJoCo writes it, w, x, y, z, shape (4,).
    """
    w, x, y, z = np.asarray(quaternion, dtype=float).tolist()
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = pin.Quaternion(w, x, y, z).normalized().toRotationMatrix(), translation
    return out


def connect(joint: ElementTree.Element, parent: str, child: str, place: Array) -> None:
    """Adds the origin of a joint and its links; place: placement of the joint in the parent link, shape (4, 4) [m]."""
    set_origin(joint, place)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)


def set_origin(element: ElementTree.Element, place: Array) -> None:
    """Adds an ``<origin>``; place of shape (4, 4) [m]."""
    ElementTree.SubElement(element, "origin", xyz=words(place[:3, 3]), rpy=words(pin.rpy.matrixToRpy(place[:3, :3])))


def words(values: Any) -> str:
    """Returns numbers as text that reads back to the same doubles."""
    return " ".join(repr(float(value)) for value in values)
