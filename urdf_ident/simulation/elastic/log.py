"""Builds an elastic plant from what is known of a true robot (a file of rotors, friction and springs, or an identified
model), and simulates it under motor control, with its log of both encoders.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import ModelError, ProjectError
from ...friction import SIGN_WIDTH
from ...linalg import Array
from ...model.drive import Drive
from ...model.dynamic_model import DynamicModel
from ...model.elasticity import ElasticModel
from ...model.robot import Robot
from ...motion.trajectory import Trajectory
from ..controllers import tuned_gains
from ..settings import ControllerSection, Sensors
from ..simulate import PERFECT, Progress, SimulatedLog, measure, require_tracking
from ..truth import JointTruth, rotors_and_friction
from .plant import ElasticPlant, MotorFriction, MotorPD

#: Natural frequency of a rotor on the stiff spring of a rigid joint [Hz].
_STIFF = 150.0


def plant_of_truth(truth: JointTruth, robot: Robot, drive: Drive, where: str) -> ElasticPlant:
    """Builds the plant of a robot with these rotors, friction and springs; friction acts at its motors.

    Args:
        truth: The content of the file.
        robot: Kinematics and inertia.
        drive: The gears that the project states.
        where: Name of the file, for errors.

    Raises:
        ModelError: The truth has no stiffness, other gear ratios, no rotors, or rotors that are not those of the motors.
        SimulationError: A value is impossible, or the friction needs a rigid plant.
    """
    if truth.stiffness is None:
        raise _no_stiffness(where, robot)
    if truth.reduction is not None:
        _check_gears(truth.reduction, drive, where)
    inverse = np.linalg.inv(drive.geared)
    after_gears = inverse.T @ truth.rotor @ inverse
    rotor = np.diag(after_gears)
    if np.abs(after_gears - np.diag(rotor)).max() > 1e-9 * np.abs(after_gears).max():
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
    return ElasticPlant(
        robot,
        stiffness=truth.stiffness,
        rotor_inertia=rotor,
        ratio=drive.ratio,
        geared=drive.geared,
        damping=truth.spring_damping,
        friction=MotorFriction(replace(truth.friction, reduction=np.diag(drive.ratio))),  # at motors, after the gears
    )


def plant_of_result(model: DynamicModel, theta: Array, robot: Robot, drive: Drive, where: str) -> ElasticPlant:
    """Builds the plant from identified springs, rotors, friction and inertial parameters.

    Args:
        theta: The identified parameters, shape (p,).
        robot: Kinematics.
        drive: The gears that the project states.
        where: Name of the file, for errors.

    Raises:
        ModelError: The result has no springs, a joint without one, or other gear ratios.
        SimulationError: See :func:`.elastic_plant`.
    """
    if not isinstance(model, ElasticModel):
        raise _no_stiffness(where, robot)
    if model.rigid:
        raise ModelError(
            "the stiffness of a joint was not seen in the logs, so that it cannot be simulated",
            where=f"{where}, joint '{model.rigid[0]}'",
            remedy="give a YAML truth with `stiffness`",
        )
    _check_gears(model.drive.reduction, drive, where)
    return elastic_plant(model, theta, robot)


def elastic_plant(model: ElasticModel, theta: Array, robot: Robot | None = None) -> ElasticPlant:
    """Builds the plant of a model with given parameters.

    Args:
        model: The model; its rigid joints get stiff springs.
        theta: All its parameters, shape (p,).
        robot: The simulated robot; the model's if None.

    Raises:
        SimulationError: A rotor without inertia, a spring without stiffness, or friction that elastic plants do not support.
    """
    drive = model.drive
    rotor, friction = rotors_and_friction(model, theta)
    to_joints = np.linalg.inv(drive.geared)
    inertia = np.diag(to_joints.T @ rotor @ to_joints)
    springs = np.array([model.of_spring(j) for j in range(model.n)])
    geared = np.array([model.after_gear(int(k)) for k in springs])
    stiffness, damping = geared * theta[springs], geared * theta[springs + 1] if model.damping else np.zeros(model.n)
    rigid = np.isin(model.robot.joints, model.rigid)
    widths = np.full(model.n, SIGN_WIDTH)  # of the smooth signs of friction, after the gears [rad/s or m/s]
    for applied in model.terms:
        if hasattr(applied.term, "width"):
            ratio = abs(drive.ratio[applied.axis]) if applied.side == "motor" else 1.0
            widths[applied.axis] = applied.term.width / ratio
    return ElasticPlant(
        robot or model.robot,
        stiffness=np.where(rigid, inertia * (2 * np.pi * _STIFF) ** 2, stiffness),
        rotor_inertia=inertia,
        ratio=drive.ratio,
        geared=drive.geared,
        damping=np.where(rigid, 0.0, np.maximum(damping, 0.0)),
        friction=MotorFriction(replace(friction, reduction=np.diag(drive.ratio)), widths),  # at motors, after the gears
        theta=theta[: model.n_inertial],
    )


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


def _listed(reduction: Array) -> str:
    """Formats the gear ratios, or the whole matrix if a motor moves several joints."""
    own = np.diag(reduction)
    rows = [own] if np.array_equal(reduction, np.diag(own)) else reduction
    return "; ".join(", ".join(f"{value:g}" for value in row) for row in rows)


def motor_law(wanted: ControllerSection, plant: ElasticPlant, robot: Robot, trajectory: Trajectory) -> MotorPD:
    """Builds the motor controller from its settings.

    Raises:
        ProjectError: A controller that is not supported for elastic joints.
    """
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
    gains = wanted.gains(robot)
    if gains is None:
        rotor = np.diag(plant.geared.T @ np.diag(plant.rotor_inertia) @ plant.geared)
        own = tuned_gains(robot, bandwidth=wanted.bandwidth, damping=wanted.damping, rotor=rotor)
        gains = own[0] @ np.linalg.inv(plant.geared) ** 2, own[1] @ np.linalg.inv(plant.geared) ** 2
    known = ElasticPlant(
        robot, stiffness=plant.stiffness, rotor_inertia=plant.rotor_inertia, ratio=plant.ratio, geared=plant.geared
    )

    def reference(t: Array) -> tuple[Array, Array]:
        q, v, _ = trajectory.evaluate(np.clip(t, 0.0, trajectory.duration))
        return q, v if wanted.velocity_reference else np.zeros_like(v)

    return MotorPD(known, reference, *gains)


def simulate_elastic(
    plant: ElasticPlant,
    law: MotorPD,
    trajectory: Trajectory,
    *,
    sensors: Sensors | None = None,
    rate: float = 1000.0,
    seed: int = 0,
    step: float = 1e-3,
    name: str = "simulated",
    progress: Progress | None = None,
) -> SimulatedLog:
    """Simulates a closed loop around the motors by Gauss collocation.

    Args:
        sensors: Imperfections of the log, on both encoders; perfect by default.
        rate: Samples per second of the log [Hz].
        step: Longest integration step [s].
        progress: Called with the completed fraction, 0 to 1, about every percent.

    Returns:
        The log: link positions, motor positions before the gear, motor torques seen from the joints.

    Raises:
        SimulationError: The plant diverges, or cannot be integrated with this step.
    """
    robot = plant.robot
    time = trajectory.times(rate)
    q, v, _ = trajectory.evaluate(time)
    percent = max(1, len(time) // 100)

    def watch(t: float, position: Array, velocity: Array) -> None:
        k = round(t * rate)
        require_tracking(robot.joints, t, position, velocity, q[k])
        if progress is not None and (k + 1) % percent == 0:
            progress((k + 1) / len(time))

    duration = (len(time) - 1) / rate
    speed = np.concatenate([v[0], plant.at_motors(v[0])])
    run = plant.simulate(law, duration, start=q[0], speed=speed, rate=rate, step=step, watch=watch)
    to_joints = np.linalg.inv(plant.geared).T
    motors = replace(run, log=name, tau=run.measured @ plant.geared)
    truth = replace(motors, **{key: getattr(run, key) @ to_joints for key in ("qm", "vm", "am")})
    recording = measure(motors, robot.joints, sensors or PERFECT, seed, prismatic=robot.prismatic, ratio=plant.ratio)
    friction = np.array([plant.friction.torque(speed) for speed in np.asarray(run.vm)]) @ plant.geared
    substeps = max(1, int(np.ceil(1.0 / (rate * step) - 1e-9)))
    return SimulatedLog(recording, truth, friction, q, f"Gauss collocation, step {1 / (rate * substeps):.3g} s")
