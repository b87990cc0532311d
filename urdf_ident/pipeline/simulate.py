"""The command `simulate`: from true parameters, a motion, a controller and sensors to a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError, SimulationError
from ..files.sizes import MOST_SAMPLES
from ..model.robot import Robot
from ..motion.limits import Limits, check_limits
from ..motion.trajectory import Trajectory
from ..project import Project
from ..result.identification import load
from ..simulation.elastic.log import motor_law, plant_of_result, plant_of_truth, simulate_elastic
from ..simulation.elastic.plant import ElasticPlant
from ..simulation.plant import RigidPlant
from ..simulation.simulate import SimulatedLog, needed_substeps
from ..simulation.simulate import simulate as simulate_rigid
from ..simulation.truth import read_truth, rotors_and_friction, urdf_truth


def true_plant(
    project: Project, robot: Robot, truth: str | Path | None = None
) -> tuple[RigidPlant | ElasticPlant, tuple[str, ...]]:
    """Builds the simulated robot: elastic if the project file sets ``model.elastic``, otherwise rigid.

    Args:
        project: Its ``model.elastic`` and ``drive`` sections are used.
        robot: Kinematics and, unless the truth file gives it, inertia.
        truth: An identification.json (its inertia, rotors, friction and springs), a YAML truth file (rotors, friction, and the
            ``stiffness`` that elastic joints need: robots/README.md), or None: the URDF with its own damping and friction.

    Returns:
        The robot; and notes on the truth: assumed rotors, and springs that are ignored without ``model.elastic``.

    Raises:
        ModelError: The truth is another robot's, or contains a friction law that cannot be simulated; with elastic joints, it
            lacks stiffness or rotors, has other gear ratios, or rotors that are not those of the motors.
        MissingFileError: The truth cannot be read.
        SimulationError: A value is impossible, or the friction needs a rigid plant.
    """
    drive = project.build_model(robot).drive if project.model.elastic is not None else None  # raises without gear ratios
    if str(truth).endswith(".json"):
        ident = load(str(truth))
        if ident.model.robot.joints != robot.joints:
            got, expected = ident.model.robot.joints, robot.joints
            raise ModelError("the identification is of another robot", got=got, expected=expected)
        if drive is not None:
            return plant_of_result(ident.model, ident.theta, robot, drive, str(truth)), ()
        rotor, friction = rotors_and_friction(ident.model, ident.theta)
        inertial = ident.theta[: ident.model.n_inertial]
        return RigidPlant.create(robot, theta=inertial, rotor_inertia=rotor, friction=friction), ()
    if drive is not None and truth is None:
        raise ModelError(
            "model.elastic is set, and nothing says how stiff the simulated joints are",
            remedy="give --truth with `stiffness` [N·m/rad] and `rotor_inertia`, or set model.elastic: false",
        )
    joints = urdf_truth(robot) if truth is None else read_truth(truth, robot)
    if drive is not None:
        return plant_of_truth(joints, robot, drive, str(truth)), joints.notes
    rigid = "the truth's stiffness is left out, joints are rigid; `model: {elastic: true}` simulates springs and both encoders"
    notes = joints.notes if joints.stiffness is None else (*joints.notes, rigid)
    return RigidPlant.create(robot, rotor_inertia=joints.rotor, friction=joints.friction), notes


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
    plant = truth if isinstance(truth, RigidPlant | ElasticPlant) else true_plant(project, robot, truth)[0]
    settings = project.simulation
    if not trajectory.duration * max(settings.rate, 1.0 / settings.step) < MOST_SAMPLES:
        raise SimulationError(
            "the simulation has too many steps",
            got=f"{trajectory.duration:g} s in steps of {settings.step:g} s",
            expected=f"fewer than {MOST_SAMPLES:g}",
            remedy="shorten the motion, or raise simulation.step",
        )
    check_limits(trajectory, Limits.from_robot(robot)).require()
    seed = settings.seed if seed is None else seed
    options: dict[str, Any] = {"sensors": settings.sensors, "rate": settings.rate, "seed": seed}
    options |= {"name": name, "progress": progress}
    if isinstance(plant, ElasticPlant):
        law = motor_law(settings.controller, plant, robot, trajectory)
        log = simulate_elastic(plant, law, trajectory, step=settings.step, **options)
    else:
        controller = settings.controller.build(robot, np.diag(plant.rotor).copy())
        substeps = max(1, round(1.0 / (settings.rate * settings.step)))
        if settings.controller.rate is None:  # finer steps do not help if the control rate is fixed
            substeps = needed_substeps(plant, controller, trajectory, settings.rate, substeps)
        options |= {"substeps": substeps, "control_rate": settings.controller.rate}
        log = simulate_rigid(plant, controller, trajectory, **options)
    return replace(log, recording=replace(log.recording, position_target=log.reference)) if settings.log_target else log
