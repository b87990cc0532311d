"""Simulates the whole experiment: from true parameters, a motion, a controller and sensors to a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError, SimulationError
from ..files.sizes import MOST_SAMPLES
from ..linalg import Array
from ..model.drive import Drive
from ..model.elasticity import ElasticModel
from ..model.robot import Robot
from ..motion.limits import Limits, check_limits
from ..motion.trajectory import Trajectory
from ..project import Project
from ..result.files.load import load
from ..result.identification import Identification
from ..simulation.elastic.from_model import elastic_plant
from ..simulation.elastic.log import motor_law, simulate_elastic
from ..simulation.elastic.plant import ElasticPlant, MotorFriction
from ..simulation.plant import RigidPlant
from ..simulation.simulate import simulate as simulate_rigid
from ..simulation.simulated_log import SimulatedLog
from ..simulation.step import needed_substeps
from ..simulation.truth import JointTruth, read_truth, rotors_and_friction, urdf_truth


def true_plant(project: Project, robot: Robot, truth: str | Path | None = None) -> RigidPlant | ElasticPlant:
    """Builds the simulated robot: elastic if the project file sets ``model.elastic``, otherwise rigid.

    Args:
        project: Its ``model.elastic`` and ``drive`` sections are used.
        robot: Kinematics and, unless the truth file gives it, inertia.
        truth: An identification.json (its inertia, rotors, friction and springs), a YAML truth file (rotors, friction, and the
            ``stiffness`` that elastic joints need: robots/README.md), or None: the URDF with its own damping and friction.

    Raises:
        ModelError: The truth is another robot's, or contains a friction law that cannot be simulated; with elastic joints, it
            lacks stiffness or rotors, has other gear ratios, or rotors that are not those of the motors.
        MissingFileError: The truth cannot be read.
        SimulationError: A value is impossible, or the friction needs a rigid plant.
    """
    if project.model.elastic is not None:
        return _elastic_plant(robot, truth, project)
    if str(truth).endswith(".json"):
        ident = _load_for(robot, str(truth))
        rotor, friction = rotors_and_friction(ident.model, ident.theta)
        return RigidPlant.create(robot, theta=ident.theta[: ident.model.n_inertial], rotor_inertia=rotor, friction=friction)
    joints = urdf_truth(robot) if truth is None else read_truth(truth, robot)
    return RigidPlant.create(robot, rotor_inertia=joints.rotor, friction=joints.friction)


def truth_notes(project: Project, robot: Robot, truth: str | Path | None = None) -> tuple[str, ...]:
    """Returns notes on the truth: assumed rotors, and springs that are ignored without ``model.elastic``.

    Args:
        project: As for :func:`true_plant`.
        robot: As for :func:`true_plant`.
        truth: As for :func:`true_plant`.

    Raises:
        ModelError: The truth is another robot's.
        MissingFileError: The truth cannot be read.
    """
    if truth is None:
        return urdf_truth(robot).notes if project.model.elastic is None else ()
    if str(truth).endswith(".json"):
        return ()
    joints = read_truth(truth, robot)
    if joints.stiffness is None or project.model.elastic is not None:
        return joints.notes
    rigid = "the truth's stiffness is left out, joints are rigid; `model: {elastic: true}` simulates springs and both encoders"
    return (*joints.notes, rigid)


def simulate(
    robot: Robot,
    trajectory: Trajectory,
    *,
    project: Project | None = None,
    truth: str | Path | RigidPlant | ElasticPlant | None = None,
    seed: int | None = None,
    name: str = "simulated",
    progress: Callable[[float], None] | None = None,
) -> SimulatedLog:
    """Simulates the whole experiment (controller, true robot with friction, sensors), as `urdf-ident simulate` does.

    Args:
        robot: The nominal robot, which the controller knows.
        trajectory: The motion.
        project: Its ``simulation`` section gives controller and sensors; all defaults if None.
        truth: The true robot: an identification.json, a YAML of rotors and friction, what :func:`true_plant` makes of one of
            these, or None for the nominal one.
        seed: Seed of the sensor noise; the project's if None.
        name: Name of the log.
        progress: Called with the completed fraction, 0 to 1.

    Returns:
        The log (``.recording``) with the true signals.

    Raises:
        LimitError: The trajectory leaves the limits.
        SimulationError: The controller diverges.
        ModelError: The truth is another robot's.
        ProjectError: The controller does not support elastic joints.
    """
    project = project or Project()
    plant = truth if isinstance(truth, RigidPlant | ElasticPlant) else true_plant(project, robot, truth)
    settings = project.simulation
    if not trajectory.duration * max(settings.rate, 1.0 / settings.step) < MOST_SAMPLES:
        raise SimulationError(
            "the simulation has too many steps",
            got=f"{trajectory.duration:g} s in steps of {settings.step:g} s",
            expected=f"fewer than {MOST_SAMPLES:g}",
            remedy="shorten the motion, or raise simulation.step",
        )
    seed = settings.seed if seed is None else seed
    options: dict[str, Any] = {"sensors": settings.sensors, "rate": settings.rate, "seed": seed}
    options |= {"name": name, "progress": progress}
    if isinstance(plant, ElasticPlant):
        law = motor_law(settings.controller, plant, robot, trajectory)
        log = simulate_elastic(plant, law, trajectory, step=settings.step, **options)
    else:
        check_limits(trajectory, Limits.from_robot(robot)).require()  # before the substeps are computed
        controller = settings.controller.build(robot, np.diag(plant.rotor).copy())
        substeps = max(1, round(1.0 / (settings.rate * settings.step)))
        if settings.controller.rate is None:  # finer steps do not help if the control rate is fixed
            substeps = needed_substeps(plant, controller, trajectory, settings.rate, substeps)
        options |= {"substeps": substeps, "control_rate": settings.controller.rate}
        log = simulate_rigid(plant, controller, trajectory, **options)
    return replace(log, recording=replace(log.recording, position_target=log.reference)) if settings.log_target else log


def _load_for(robot: Robot, path: str | Path) -> Identification:
    """Loads the result of an identification; raises if it is of a robot with other joints."""
    ident = load(path)
    if ident.model.robot.joints != robot.joints:
        raise ModelError("the identification is of another robot", got=ident.model.robot.joints, expected=robot.joints)
    return ident


def _elastic_plant(robot: Robot, truth: str | Path | None, project: Project) -> ElasticPlant:
    """The robot with elastic joints; friction acts at its motors."""
    drive = project.build_model(robot).drive  # raises if gear ratios are missing
    if truth is None:
        raise ModelError(
            "model.elastic is set, and nothing says how stiff the simulated joints are",
            remedy="give --truth with `stiffness` [N·m/rad] and `rotor_inertia`, or set model.elastic: false",
        )
    if str(truth).endswith(".json"):
        return _of_result(truth, robot, drive)
    joints = read_truth(truth, robot)
    where = str(truth)
    if joints.stiffness is None:
        raise _no_stiffness(where, robot)
    rotor = _rotors(joints, drive, robot, where)
    friction = replace(joints.friction, reduction=np.diag(drive.ratio))  # friction acts at the motors, after the gear
    return ElasticPlant(
        robot,
        stiffness=joints.stiffness,
        rotor_inertia=rotor,
        ratio=drive.ratio,
        geared=drive.geared,
        damping=joints.spring_damping,
        friction=MotorFriction(friction),
    )


def _of_result(path: str | Path, robot: Robot, drive: Drive) -> ElasticPlant:
    """Builds the plant from identified springs, rotors, friction and inertial parameters."""
    ident = _load_for(robot, path)
    model = ident.model
    if not isinstance(model, ElasticModel):
        raise _no_stiffness(str(path), robot)
    if model.rigid:
        raise ModelError(
            "the stiffness of a joint was not seen in the logs, so that it cannot be simulated",
            where=f"{path}, joint '{model.rigid[0]}'",
            remedy="give a YAML truth with `stiffness`",
        )
    _check_gears(model.drive.reduction, drive, str(path))
    return elastic_plant(model, ident.theta, robot)


def _no_stiffness(where: str, robot: Robot) -> ModelError:
    return ModelError(
        "the truth holds no stiffness, and model.elastic is set",
        where=where,
        remedy=f"add `stiffness: [{', '.join(['…'] * robot.n)}]` [N·m/rad], or set model.elastic: false",
    )


def _check_gears(reduction: Array, drive: Drive, where: str) -> None:
    if not np.allclose(reduction, drive.reduction, rtol=1e-3):
        raise ModelError(
            "the truth's gear ratios are not those of drive.reduction",
            where=where,
            got=_listed(reduction),
            expected=_listed(drive.reduction),
            remedy="correct one of them",
        )


def _rotors(truth: JointTruth, drive: Drive, robot: Robot, where: str) -> Array:
    """Rotor inertia of each motor after its gear; raises if gears differ from the project's or a rotor is missing."""
    if truth.reduction is not None:
        _check_gears(truth.reduction, drive, where)
    inverse = np.linalg.inv(drive.geared)
    seen = inverse.T @ truth.rotor @ inverse
    rotor = np.diag(seen)
    if np.abs(seen - np.diag(rotor)).max() > 1e-9 * np.abs(seen).max():
        raise ModelError(
            "the truth's rotors are not those of the motors",
            where=where,
            remedy="where motors move several joints, give `motor: {inertia: […]}` [kg·m²] before the gears",
        )
    if not (rotor > 0).all():
        raise ModelError(
            "elastic joints need rotors",
            where=f"{where}, joint '{robot.joints[int(np.argmin(rotor))]}'",
            remedy="give `rotor_inertia` [kg·m²] after the gear, or `motor: {inertia: […]}` before it",
        )
    return rotor


def _listed(reduction: Array) -> str:
    """Formats the gear ratios, or the whole matrix if a motor moves several joints."""
    own = np.diag(reduction)
    rows = [own] if np.array_equal(reduction, np.diag(own)) else reduction
    return "; ".join(", ".join(f"{value:g}" for value in row) for row in rows)
