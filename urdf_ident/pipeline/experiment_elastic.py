"""The robot with elastic joints that an experiment simulates: springs from a truth file or an earlier result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import ModelError
from ..linalg import Array
from ..model.drive import Drive
from ..model.elasticity import ElasticModel
from ..model.robot import Robot
from ..project import Project
from ..result.load import load
from ..simulation.elastic.drive import MotorFriction
from ..simulation.elastic.from_model import elastic_plant
from ..simulation.elastic.plant import ElasticPlant
from ..simulation.truth import JointTruth, read_truth


def build_elastic_plant(robot: Robot, truth: str | Path | None, project: Project) -> ElasticPlant:
    """The robot that is simulated where the project file says ``model.elastic``.

    Args:
        robot: Kinematics, and inertia unless the truth says otherwise.
        truth: A YAML truth file with ``stiffness``, or the identification.json of a robot with elastic joints.
        project: Gear ratios, from its ``drive`` section.

    Returns:
        The plant; friction acts at its motors.

    Raises:
        ModelError: The truth holds no stiffness, other gear ratios, no rotors, or rotors that are not the motors', or is
            another robot's.
        MissingFileError: The truth cannot be read.
        SimulationError: A number that is impossible, or friction that needs a rigid plant.
    """
    drive = project.build_model(robot).drive  # elastic, as the project says; refuses missing gears
    if truth is None:
        raise ModelError(
            "model.elastic is set, and nothing says how stiff the simulated joints are",
            remedy="give --truth with `stiffness` [N·m/rad] and `rotor_inertia`, or set model.elastic: false",
        )
    if str(truth).endswith(".json"):
        return _of_result(truth, robot, drive)
    found = read_truth(truth, robot)
    where = str(truth)
    if found.stiffness is None:
        raise _no_stiffness(where, robot)
    rotor = _rotors(found, drive, robot, where)
    friction = replace(found.friction, reduction=np.diag(drive.ratio))  # each law at its motor, after the gear
    return ElasticPlant(
        robot,
        stiffness=found.stiffness,
        rotor_inertia=rotor,
        ratio=drive.ratio,
        geared=drive.geared,
        damping=found.spring_damping,
        friction=MotorFriction(friction),
    )


def _of_result(path: str | Path, robot: Robot, drive: Drive) -> ElasticPlant:
    """Springs, rotors, friction and inertial parameters that were identified."""
    ident = load(path)
    model = ident.model
    if model.robot.joints != robot.joints:
        raise ModelError("the identification is of another robot", got=model.robot.joints, expected=robot.joints)
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
    """Inertia of each motor's rotor after its gear: gears are as the project says, and every motor has a rotor."""
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
    """Gear ratios, or the whole matrix where motors move several joints."""
    own = np.diag(reduction)
    rows = [own] if np.array_equal(reduction, np.diag(own)) else reduction
    return "; ".join(", ".join(f"{value:g}" for value in row) for row in rows)
