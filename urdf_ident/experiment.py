"""The whole experiment in simulation: a truth, a motion, a controller and sensors in; a log out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from .errors import ModelError
from .model.dynamic_model import DynamicModel
from .model.inertia import Array
from .model.robot import Robot
from .motion.trajectories import Trajectory
from .project import Project
from .result.file import load
from .result.identification import Identification
from .simulation.friction_terms import friction_from_mapping
from .simulation.friction_truth import FrictionTruth
from .simulation.plant import RigidPlant
from .simulation.simulate import SimulatedLog, simulate
from .simulation.truth import read_truth

#: Friction laws of a model (term, shape names) as laws of a plant: name, field of each column, field of each shape.
_LAWS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "viscous": ("viscous", ("coefficient",), {}),
    "coulomb": ("coulomb", ("level",), {}),
    "offset": ("offset", ("level",), {}),
    "cubic": ("cubic", ("coefficient",), {}),
    "sublinear": ("sub_linear", ("coefficient",), {}),
    "load_coulomb": ("load_coulomb", ("coefficient",), {}),
    "stribeck": ("stribeck", ("extra",), {"velocity": "velocity"}),
    "stribeck_arctan": ("arctan", ("stiction", "difference", "viscous"), {"sharpness": "sharpness", "stribeck": "stribeck"}),
    "presliding": ("presliding", ("coulomb",), {"width": "displacement"}),
}


def build_plant(robot: Robot, truth: str | Path | None = None) -> RigidPlant:
    """The robot that is simulated.

    Args:
        robot: Kinematics and, without a better truth, inertia.
        truth: An identification.json (its inertia, rotors and friction), a YAML truth file (rotors and friction, see
            robots/README.md), or None: the URDF with its own damping and friction.

    Returns:
        The plant.

    Raises:
        ModelError: The truth is another robot's, or holds a friction law that no plant has.
        MissingFileError: The truth cannot be read.
    """
    if truth is None:
        joints = [robot.description.joints[name] for name in robot.joints]
        own = {"viscous": [joint.damping for joint in joints], "coulomb": [joint.friction for joint in joints]}
        return RigidPlant.create(robot, friction=FrictionTruth(robot.n, friction_from_mapping(own)))
    if str(truth).endswith(".json"):
        return plant_of(load(truth), robot)
    found = read_truth(truth, robot)
    return RigidPlant.create(robot, rotor_inertia=found.rotor, friction=found.friction)


def plant_of(ident: Identification, robot: Robot | None = None) -> RigidPlant:
    """A plant with identified parameters.

    Args:
        ident: The identification.
        robot: Where it is simulated; the identified robot if None. The joints must be the same.

    Returns:
        The plant.

    Raises:
        ModelError: Other joints, or a friction law that no plant has.
    """
    model = ident.model
    robot = robot or model.robot
    if robot.joints != model.robot.joints:
        raise ModelError("the identification is of another robot", got=model.robot.joints, expected=robot.joints)
    rotor, laws = np.zeros((model.n, model.n)), {"joint": {}, "motor": {}}  # type: ignore[var-annotated]
    column = model.n_inertial
    for item in model.terms:
        width = len(item.term.symbols)
        values = ident.theta[column : column + width]
        column += width
        if item.term.name == "rotor_inertia":
            spread = item.distribution(model.drive.reduction)
            rotor += values[0] * np.outer(spread, spread)
        else:
            _add_law(laws[item.side], item.term.as_dict(), item.axis, values, model)
    joint, motor = (friction_from_mapping(laws[side]) for side in ("joint", "motor"))
    friction = FrictionTruth(model.n, joint, motor, model.drive.reduction if motor else None)
    return RigidPlant.create(robot, theta=ident.theta[: model.n_inertial], rotor_inertia=rotor, friction=friction)


def run_experiment(
    project: Project,
    robot: Robot,
    trajectory: Trajectory,
    *,
    plant: RigidPlant | None = None,
    name: str = "simulated",
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> SimulatedLog:
    """Simulates a log as a project file describes it.

    Args:
        project: Its ``simulation`` section is used.
        robot: The nominal robot, which the controller knows.
        trajectory: The motion.
        plant: The true robot; the nominal one if None.
        name: Of the log.
        seed: Of the sensors' random numbers; the project's if None.
        progress: Called with the part that is done, 0 to 1.

    Returns:
        The log, with the truth behind it.

    Raises:
        LimitError: The trajectory leaves the limits.
        SimulationError: The controller diverges.
    """
    settings = project.simulation
    plant = plant or build_plant(robot)
    controller = settings.controller.build(robot, np.diag(plant.rotor).copy())
    return simulate(
        plant,
        controller,
        trajectory,
        sensors=settings.sensors.build(),
        rate=settings.rate,
        seed=settings.seed if seed is None else seed,
        substeps=max(1, round(1.0 / (settings.rate * settings.step))),
        control_rate=settings.controller.rate,
        name=name,
        progress=progress,
    )


def _add_law(
    laws: dict[str, dict[str, list[float]]], term: dict[str, object], axis: int, values: Array, model: DynamicModel
) -> None:
    """Adds one joint's term to a table of laws per joint; joints without it have zeros."""
    name = str(term["term"])
    if name not in _LAWS:
        raise ModelError(f"friction law '{name}' cannot be simulated", expected=" | ".join(_LAWS))
    law, columns, shapes = _LAWS[name]
    table = laws.setdefault(law, {key: [0.0] * model.n for key in columns} | {key: [1.0] * model.n for key in shapes.values()})
    for key, value in zip(columns, values, strict=True):
        table[key][axis] = float(value)
    for shape, key in shapes.items():
        table[key][axis] = float(term[shape])  # type: ignore[arg-type]
