"""The robot with elastic joints that an experiment simulates: springs from a truth file or an earlier result."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import ModelError, ProjectError
from ..linalg import Array
from ..model.elasticity import ElasticModel
from ..model.robot import Robot
from ..motion.trajectories import Trajectory
from ..project import Project
from ..result.load import load
from ..simulation.elastic.drive import MotorFriction, MotorPD
from ..simulation.elastic.log import motor_control
from ..simulation.elastic.plant import ElasticPlant
from ..simulation.from_model import rotors_and_friction
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
        ModelError: The truth holds no stiffness, other gear ratios, coupled or no rotors, or is another robot's.
        MissingFileError: The truth cannot be read.
        SimulationError: A number that is impossible, or friction that needs a rigid plant.
    """
    model = project.build_model(robot)  # elastic, as the project says; refuses missing and coupled gears
    ratio = np.diag(model.drive.reduction)
    if truth is None:
        raise ModelError(
            "model.elastic is set, and nothing says how stiff the simulated joints are",
            remedy="give --truth with `stiffness` [N·m/rad] and `rotor_inertia`, or set model.elastic: false",
        )
    if str(truth).endswith(".json"):
        found, theta = _of_result(truth, robot)
    else:
        found, theta = read_truth(truth, robot), None
    where = str(truth)
    if found.stiffness is None:
        raise ModelError(
            "the truth holds no stiffness, and model.elastic is set",
            where=where,
            remedy=f"add `stiffness: [{', '.join(['…'] * robot.n)}]` [N·m/rad], or set model.elastic: false",
        )
    _check(found, ratio, robot, where)
    return ElasticPlant(
        robot,
        stiffness=found.stiffness,
        rotor_inertia=np.diag(found.rotor),
        ratio=ratio,
        damping=found.spring_damping,
        friction=MotorFriction(found.friction),
        theta=theta,
    )


def motor_law(project: Project, plant: ElasticPlant, robot: Robot, trajectory: Trajectory) -> MotorPD:
    """The controller of the motors.

    Args:
        project: Its ``simulation.controller`` section.
        plant: What is driven.
        robot: The nominal robot, which the controller knows.
        trajectory: What the links should follow.

    Returns:
        The control law.

    Raises:
        ProjectError: A controller that elastic joints do not have.
    """
    wanted = project.simulation.controller
    if wanted.type != "pd_gravity":
        raise ProjectError(
            "elastic joints are driven by PD of the motors with gravity compensation",
            where="simulation.controller.type",
            got=wanted.type,
            expected="pd_gravity",
        )
    if wanted.rate is not None:
        raise ProjectError(
            "elastic joints are driven by a continuous controller",
            where="simulation.controller.rate",
            got=f"{wanted.rate:g}",
            remedy="leave it out",
        )
    if wanted.kp is not None or not wanted.velocity_reference:
        raise ProjectError(
            "elastic joints are driven by gains from a bandwidth",
            where="simulation.controller",
            got="kp, kd or velocity_reference",
            expected="bandwidth and damping",
        )
    return motor_control(plant, robot, trajectory, bandwidth=wanted.bandwidth, damping=wanted.damping)


def _of_result(path: str | Path, robot: Robot) -> tuple[JointTruth, Array]:
    """Springs, rotors, friction and inertial parameters that were identified."""
    ident = load(path)
    model = ident.model
    if model.robot.joints != robot.joints:
        raise ModelError("the identification is of another robot", got=model.robot.joints, expected=robot.joints)
    rotor, friction = rotors_and_friction(model, ident.theta)
    if not isinstance(model, ElasticModel):
        return JointTruth(rotor, friction, None, None, np.zeros(robot.n)), ident.theta[: model.n_inertial]
    if model.rigid:
        raise ModelError(
            "the stiffness of a joint was not seen in the logs, so that it cannot be simulated",
            where=f"{path}, joint '{model.rigid[0]}'",
            remedy="give a YAML truth with `stiffness`",
        )
    damping = ident.term_values("D") if model.damping else {}
    return (
        JointTruth(
            rotor,
            friction,
            np.asarray(model.drive.reduction),
            np.array([ident.term_values("K")[j] for j in robot.joints]),
            np.array([damping.get(j, 0.0) for j in robot.joints]),
        ),
        ident.theta[: model.n_inertial],
    )


def _check(truth: JointTruth, ratio: Array, robot: Robot, where: str) -> None:
    """Gears as the project says, a rotor on every joint, none on two."""
    if truth.reduction is not None and not np.allclose(truth.reduction, np.diag(ratio), rtol=1e-3):
        raise ModelError(
            "the truth's gear ratios are not those of drive.reduction",
            where=where,
            got=", ".join(f"{value:g}" for value in np.diag(truth.reduction)),
            expected=", ".join(f"{value:g}" for value in ratio),
            remedy="correct one of them",
        )
    rotor = np.diag(truth.rotor)
    if not (rotor > 0).all():
        raise ModelError(
            "elastic joints need rotors",
            where=f"{where}, joint '{robot.joints[int(np.argmin(rotor))]}'",
            remedy="give `rotor_inertia` [kg·m²] after the gear, or `motor: {inertia: […]}` before it",
        )
    if np.abs(truth.rotor - np.diag(rotor)).max() > 0:
        raise ModelError("elastic joints with coupled rotors are not supported", where=where, remedy="set model.elastic: false")
