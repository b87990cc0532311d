"""Truth files (``robots/<name>_truth.yaml``): simulation parameters that a URDF cannot contain; the same from a model.

Without such a file the URDF's own damping and friction are used, and no rotors, unless the robot cannot be controlled then: the
inertia of a geared joint is mostly that of its rotor, and URDFs often contain light or massless links.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError, nearest
from ..files.documents import parse_yaml
from ..files.read_write import read_text
from ..friction import Friction, Law, Sliding, combine_axes, friction_from_mapping
from ..linalg import Array, BoolArray, positive, shaped
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from .controllers import masses_of_poses


@dataclass(frozen=True, eq=False)
class FrictionTruth:
    """All friction of a robot, on joints and on motors.

    Friction acts on *sliders*: first the n joints, then, with motor friction, the n motors, which turn with
    ``reduction · v`` and load the joints with ``reductionᵀ · torque``. The laws get the *direction of slip* instead of a
    smooth sign of the velocity: the integrator knows whether a joint slips or sticks, and the friction of a joint that
    sticks is the value between the two one-sided limits that keeps it at rest.

    Springs on the joints are stored here too, but handled separately: see :meth:`springs`.

    Attributes:
        reduction: ``v_motor = reduction · v``, shape (n, n); needed for motor friction.
    """

    n: int
    joint: tuple[Friction, ...] = ()
    motor: tuple[Friction, ...] = ()
    reduction: Array | None = None

    def __post_init__(self) -> None:
        for side in ("joint", "motor"):
            object.__setattr__(self, side, tuple(each.on(self.n) for each in getattr(self, side)))
        if self.motor and self.reduction is None:
            raise ModelError("friction on the motors needs the gear ratios", remedy="give `reduction`")
        if any(each.law.loaded for each in self.motor):
            raise ModelError("load-dependent friction belongs to the joint side", remedy="move it there")
        if any(each.law.conservative for each in self.motor):
            raise ModelError("springs belong to the joint side", remedy="move them there")
        for laws in (self.joint, self.motor):
            bent = [np.any([value != 0 for value in each.values], axis=0) for each in laws if each.law.memory]
            if bent and (np.sum(bent, axis=0) > 1).any():
                raise ModelError("at most one friction law with memory on an axis")
        if self.motor:
            shaped("reduction", self.reduction, (self.n, self.n))  # type: ignore[arg-type]

    @cached_property
    def transmission(self) -> Array | None:
        """Velocities of the sliders per joint velocity, shape (2 n, n); None without motor friction."""
        return np.vstack([np.eye(self.n), np.asarray(self.reduction, dtype=float)]) if self.motor else None

    @property
    def sliders(self) -> int:
        """Number of sliders K: n, or 2n with motor terms."""
        return self.n if self.transmission is None else 2 * self.n

    @cached_property
    def memory(self) -> bool:
        """Whether a law depends on the displacement since the last reversal."""
        return any(each.law.memory for each in (*self.joint, *self.motor))

    @cached_property
    def load(self) -> Array | None:
        """Friction per unit of transmitted torque, shape (n,); None without load-dependent laws."""
        loaded = [each for each in self.joint if each.law.loaded]
        one = Sliding(np.zeros(self.n), np.ones(self.n), np.zeros(self.n), np.ones(self.n))
        return sum((each.torque(one) for each in loaded), np.zeros(self.n)) if loaded else None

    @cached_property
    def hard(self) -> BoolArray:
        """Whether each slider can stick, shape (K,)."""
        low, high = self.interval(np.zeros(self.sliders))
        hard = high - low > 0
        if self.load is not None:
            hard[: self.n] |= self.load > 0
        return np.asarray(hard)

    def velocity(self, v: Array) -> Array:
        """Returns the velocities of the sliders, shape (…, K).

        Args:
            v: Joint velocities (or any joint displacement), shape (…, n) [rad/s or m/s].
        """
        return v if self.transmission is None else np.asarray(v @ self.transmission.T)

    def to_joints(self, torque: Array) -> Array:
        """Returns the joint torques equivalent to slider torques, shape (…, n) [N·m or N]; torque: shape (…, K) [N·m or N]."""
        return torque if self.transmission is None else np.asarray(torque @ self.transmission)

    def torque(self, w: Array, s: Array, z: Array) -> Array:
        """Returns the friction on the sliders, without the load-dependent part, shape (…, K) [N·m or N].

        Args:
            w: Slider velocities, shape (…, K).
            s: Directions of slip, shape (…, K); 0 where a slider sticks.
            z: States of laws with memory, shape (…, K).
        """
        if self.transmission is None:
            return self._side(self.joint, w, s, z)
        n = self.n
        joint = self._side(self.joint, w[..., :n], s[..., :n], z[..., :n])
        return np.concatenate([joint, self._side(self.motor, w[..., n:], s[..., n:], z[..., n:])], axis=-1)

    def springs(self, q: Array) -> Array:
        """Returns the drive torque required to balance the springs, shape (n,) [N·m or N].

        Args:
            q: Joint positions, shape (n,) [rad or m].
        """
        motion = Sliding(np.zeros(self.n), q=q)
        return sum((each.torque(motion) for each in self.joint if each.law.conservative), np.zeros(self.n))

    def interval(self, z: Array, load: Array | None = None) -> tuple[Array, Array]:
        """Range of friction of a slider that sticks, relative to the terms that do not depend on slip.

        Args:
            z: States of laws with memory, shape (K,).
            load: Torque transmitted to the links, shape (n,) [N·m or N].

        Returns:
            Lowest (≤ 0) and highest (≥ 0) friction, shapes (K,) [N·m or N].
        """
        zero, ones = np.zeros(self.sliders), np.ones(self.sliders)
        base = self.torque(zero, zero, z)
        low, high = self.torque(zero, -ones, z) - base, self.torque(zero, ones, z) - base
        if self.load is not None and load is not None:
            extra = self.load * np.abs(load)
            low[: self.n] -= extra
            high[: self.n] += extra
        return low, high

    def advance(self, z: Array, step: Array, seconds: float) -> Array:
        """Updates the states of laws with memory after a displacement, exact for motion in one direction.

        Args:
            z: States before, shape (K,).
            step: Displacement of each slider, shape (K,) [rad or m].
            seconds: Its duration [s].

        Returns:
            States after, shape (K,).
        """
        if not self.memory:
            return z
        out = z.copy()
        for begin, side in ((0, self.joint), (self.n, self.motor)):
            sliders = slice(begin, begin + self.n)
            for each in side:
                if each.law.memory:
                    on = np.any([value != 0 for value in each.values], axis=0)
                    out[sliders] = np.where(on, each.law.bend(z[sliders], step[sliders], seconds), out[sliders])
        return out

    @staticmethod
    def _side(laws: tuple[Friction, ...], w: Array, s: Array, z: Array) -> Array:
        total, motion = np.zeros_like(w), Sliding(w, None, z, s)
        for each in laws:
            if not each.law.loaded and not each.law.conservative:
                total += each.torque(motion)
        return total


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
