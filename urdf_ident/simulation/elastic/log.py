"""Simulates a robot with elastic joints under motor control, and its log with both encoders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import ProjectError
from ...linalg import Array
from ...model.robot import Robot
from ...motion.limits import Limits
from ...motion.trajectory import Trajectory
from ..controllers import tuned_gains
from ..settings import ControllerSection, Sensors
from ..simulate import Progress, require_drivable, require_tracking
from ..simulated_log import PERFECT, SimulatedLog, measure
from .plant import ElasticPlant, MotorPD


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
    limits: Limits | None = None,
    trip: float = 1.0,
    name: str = "simulated",
    progress: Progress | None = None,
) -> SimulatedLog:
    """Simulates a closed loop around the motors by Gauss collocation.

    Args:
        sensors: Imperfections of the log, on both encoders; perfect by default.
        rate: Samples per second of the log [Hz].
        step: Longest integration step [s].
        limits: Limits checked before the simulation; the URDF's by default.
        trip: Tracking error above which the controller counts as diverging [rad or m].
        progress: Called with the completed fraction, 0 to 1, about every percent.

    Returns:
        The log: link positions, motor positions before the gear, motor torques seen from the joints.

    Raises:
        LimitError: The trajectory is for other joints, or leaves the limits; names joint and time.
        SimulationError: The plant diverges, or cannot be integrated with this step.
    """
    robot = plant.robot
    require_drivable(trajectory, robot, limits)
    time = trajectory.times(rate)
    q, v, _ = trajectory.evaluate(time)
    percent = max(1, len(time) // 100)

    def watch(t: float, position: Array, velocity: Array) -> None:
        k = round(t * rate)
        require_tracking(robot.joints, trip, t, position, velocity, q[k])
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
