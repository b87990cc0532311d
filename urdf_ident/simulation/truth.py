"""Truth files (``robots/<name>_truth.yaml``): simulation parameters that a URDF cannot contain; the same from a model.

Without such a file the URDF's own damping and friction are used, and no rotors, unless the robot cannot be controlled then: the
inertia of a geared joint is mostly that of its rotor, and URDFs often contain light or massless links.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError, nearest
from ..files.documents import parse_yaml
from ..files.read_write import read_text
from ..friction import Friction, Law, combine_axes, friction_from_mapping
from ..linalg import Array, positive
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from .controllers import masses_of_poses
from .friction_truth import FrictionTruth

#: Default bandwidth of the controllers, and a usual frequency of motion [rad/s].
_BAND, _MOTION = 20 * np.pi, np.pi
#: Fastest pole of a loop with that bandwidth for which no rotors are assumed [1/s]: 20 steps of integration a millisecond.
_FASTEST = 2e4

#: Keys of a truth file: up to ``gear`` those of :class:`JointTruth`, then those that only the benchmarks read.
KEYS = (
    "robot",
    "joints",
    "rotor_inertia",
    "reduction",
    "motor",
    "friction",
    "stiffness",
    "spring_damping",
    "gear",
    "dh_theta",
    "dh",
    "torque_noise",
    "drive_gain",
)


@dataclass(frozen=True, eq=False)
class JointTruth:
    """Rotors, friction and gears of a robot, in the order of its joints.

    Attributes:
        rotor: Rotor inertia seen from the joints, shape (n, n) [kg·m² or kg].
        reduction: ``q_motor = reduction · q``, shape (n, n), or None.
        stiffness: Stiffness of the gears, shape (n,) [N·m/rad or N/m], or None.
        spring_damping: Damping of the gears, shape (n,) [N·m·s/rad or N·s/m].
        notes: What was assumed because the URDF does not state it.
    """

    rotor: Array
    friction: FrictionTruth
    reduction: Array | None
    stiffness: Array | None
    spring_damping: Array
    notes: tuple[str, ...] = ()


def read_truth(path: str | Path, robot: Robot) -> JointTruth:
    """Reads a truth file.

    Args:
        path: YAML with ``joints`` and any of ``rotor_inertia`` [kg·m²] (after the gear), ``friction``, ``reduction``,
            ``gear`` (its diagonal), ``motor: {inertia [kg·m²], friction}`` (before the gear), ``stiffness`` [N·m/rad],
            ``spring_damping`` [N·m·s/rad]; see robots/README.md.
        robot: The robot; locked joints are ignored.

    Raises:
        ModelError: Unknown key, wrong number of values, or the joints are not the robot's.
        MissingFileError: The file cannot be read.
    """
    where = str(path)
    settings = parse_yaml(read_text(path, "truth file"), where, ModelError, "truth file")
    if not isinstance(settings, Mapping):
        raise ModelError("the truth file holds no mapping", where=where, expected="joints: […], friction: {…}")
    if "urdf_sha256" in settings:
        raise ModelError(
            "this is the joints.yaml of a result, which holds no masses",
            where=where,
            expected="identification.json, or a YAML of rotors, friction, stiffness",
            remedy="give the identification.json beside it",
        )
    for key in settings:
        if key not in KEYS:
            raise ModelError(f"unknown key '{key}'", where=where, remedy=nearest(str(key), KEYS))
    names = settings.get("joints") or list(robot.joints)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError("'joints' is no list of names", where=where, got=repr(names)[:60])
    missing = [joint for joint in robot.joints if joint not in names]
    if missing:
        raise ModelError(f"the truth has no entry for joint '{missing[0]}'", where=where, got=names)
    pick, count = [names.index(joint) for joint in robot.joints], len(names)
    rotor = np.diag(_values(settings, "rotor_inertia", (count,), where))
    reduction = np.diag(_values(settings, "gear", (count,), where)) if "gear" in settings else None
    if "reduction" in settings:
        reduction = _values(settings, "reduction", (count, count), where)
    motor = _section(settings, "motor", where)
    motor_friction: tuple[Friction, ...] = ()
    if motor:
        if reduction is None:
            raise ModelError("motor numbers need the gear ratios", where=where, remedy="add `reduction`")
        if len(pick) != count:
            raise ModelError("motor numbers with locked joints are ambiguous", where=where, remedy="unlock all joints")
        rotor = rotor + reduction.T @ np.diag(_values(motor, "inertia", (count,), where)) @ reduction
        of_motors = _selected(_section(motor, "friction", f"{where}, motor"), pick, count)
        motor_friction = friction_from_mapping(of_motors, f"{where}, motor.friction")
    joint_friction = friction_from_mapping(_selected(_section(settings, "friction", where), pick, count), f"{where}, friction")
    selected = None if reduction is None else reduction[np.ix_(pick, pick)]
    friction = FrictionTruth(robot.n, joint_friction, motor_friction, selected if motor_friction else None)
    stiffness = _values(settings, "stiffness", (count,), where)[pick] if "stiffness" in settings else None
    damping = _values(settings, "spring_damping", (count,), where)[pick]
    return JointTruth(rotor[np.ix_(pick, pick)], friction, selected, stiffness, damping)


def urdf_truth(robot: Robot) -> JointTruth:
    """The damping, friction and rotors that the robot's file states, with assumed rotors where a controlled robot needs them.

    A joint with less inertia than needed for the loop to follow a motion in spite of friction and of the coupling with other
    joints has a rotor with the rest of it. If some pose leaves some direction almost without inertia, so that the loop would be
    too fast to be integrated, all joints have rotors with a twentieth of their largest inertia.

    Returns:
        The truth; its notes state the rotors that are assumed, and that there is no friction.

    Raises:
        ModelError: The inertia of the robot overflows.
    """
    joints = [robot.description.joints[name] for name in robot.joints]
    damping, dry, stated = (np.array([getattr(j, key) for j in joints]) for key in ("damping", "friction", "armature"))
    known = {"viscous": damping.tolist(), "coulomb": dry.tolist()}
    speed = robot.limit("velocity")
    speed = np.where(np.isfinite(speed), speed, 1.0)
    masses = masses_of_poses(robot)
    inertia, largest = np.diagonal(masses, axis1=1, axis2=2).max(axis=0), np.abs(masses).max(axis=(0, 2))
    coupled = largest * _MOTION / _BAND
    rotor = np.maximum(coupled + (damping + dry / speed) / _BAND - inertia, stated)
    root = np.sqrt(positive(inertia + rotor))
    scaled = (masses + np.diag(rotor)) / root / root[:, None]
    if not np.isfinite(scaled).all():
        remedy = "check its masses, inertias and lengths"
        raise ModelError("the inertia of the robot is too large or too small for numbers", where=robot.path, remedy=remedy)
    least = np.linalg.eigvalsh(scaled).min()
    if least < 2 * _BAND / _FASTEST:
        rotor = np.maximum(rotor, coupled)
    notes: tuple[str, ...] = ()
    if (rotor > stated).any():
        units = ["kg" if prismatic else "kg·m²" for prismatic in robot.prismatic]
        every = zip(robot.joints, np.where(rotor > stated, rotor, 0.0), units, strict=True)
        listed = ", ".join(f"{joint} {value:.2g} {unit}" for joint, value, unit in every if value > 0)
        notes = (
            "the URDF's links are too light to be controlled without rotor inertia, so this much is assumed: "
            f"{listed}; give the real one with --truth",
        )
    if not (damping.any() or dry.any()):
        notes += ("the URDF states no joint friction, so none is simulated; describe it in a file for --truth (docs/howto.md)",)
    friction = FrictionTruth(robot.n, friction_from_mapping(known))
    return JointTruth(np.diag(rotor), friction, None, None, np.zeros(robot.n), notes)


def _selected(value: Any, pick: list[int], count: int) -> Any:
    """Values of the selected joints, in their order."""
    if isinstance(value, Mapping):
        return {key: _selected(entry, pick, count) for key, entry in value.items()}
    return [value[k] for k in pick] if isinstance(value, list) and len(value) == count else value


def _section(settings: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """A part of the file that is a mapping itself; an empty one if it is absent."""
    section = settings.get(key)
    if section is not None and not isinstance(section, Mapping):
        raise ModelError(f"'{key}' is no mapping", where=where, got=repr(section)[:60], expected=f"{key}: {{name: value}}")
    return section or {}


def _values(settings: Mapping[str, Any], key: str, shape: tuple[int, ...], where: str) -> Array:
    """Numbers of the file, one per joint or a square matrix; zeros if they are absent."""
    try:
        values = np.asarray(settings.get(key, np.zeros(shape)), dtype=float)
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(0)
    if values.shape != shape or not np.isfinite(values).all():
        what = "needs one finite number per joint" if len(shape) == 1 else "is not a square matrix of finite numbers"
        expected = f"{' × '.join(map(str, shape))} numbers"
        raise ModelError(f"'{key}' {what}", where=where, got=settings[key], expected=expected)
    return values


def rotors_and_friction(model: DynamicModel, theta: Array) -> tuple[Array, FrictionTruth]:
    """Rotors and friction of a plant with a model's parameters; springs of elastic joints are not included.

    Args:
        theta: All its parameters, shape (p,).

    Returns:
        Rotor inertia seen from the joints, shape (n, n) [kg·m² or kg], and the friction.
    """
    n, rotor = model.n, np.zeros((model.n, model.n))
    sides: dict[str, list[tuple[int, Law, Array]]] = {"joint": [], "motor": []}
    for applied, place in model.placed_terms:
        if applied.term.name == "rotor_inertia":
            weights = model.drive.rate_weights(applied.axis, applied.side)
            rotor += theta[place.start] * np.outer(weights, weights)
        elif isinstance(applied.term, Law):
            sides[applied.side].append((applied.axis, applied.term, np.asarray(theta[place])))
    joint, motor = combine_axes(sides["joint"], n), combine_axes(sides["motor"], n)
    return rotor, FrictionTruth(n, joint, motor, model.drive.reduction if motor else None)
