"""The complete workflow on a robot with known parameters: excite → simulate → identify → validate → export, offline.

The true robot is the bundled six-axis arm with stick-slip friction, a Stribeck effect that the model lacks, encoder
quantisation, current resolution and coloured torque noise. The identification receives the logs and a URDF with wrong
masses, centres of mass and inertias and without friction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..export.urdf import corrected_urdf
from ..files.read_write import check_writable, write_text
from ..friction import Coulomb, Stribeck
from ..linalg import Array
from ..logs.read import read_recording
from ..model.bundled import robot_path, truth_path
from ..model.inertia import from_com, to_com
from ..model.robot import Robot
from ..motion.fourier import random_fourier
from ..motion.limits import Limits
from ..project import parse_project
from ..result.demo import Demo
from ..result.identification import Identification
from ..result.write import write_all
from ..simulation.plant import RigidPlant
from ..simulation.simulate import write_log
from ..simulation.truth import FrictionTruth, read_truth
from .identify import identify
from .simulate import simulate

ROBOT = "ur10e"
#: Number of training logs, and duration of each log [s].
LOGS, SECONDS = 2, 15.0
#: Start pose with bent joints, so that gravity acts on them and no axes are aligned [rad].
_HOME = np.array([0.0, -1.2, 1.3, -1.0, -1.2, 0.3])


def demo(out: str | Path, *, seed: int = 0, progress: Callable[[str, float], None] | None = None) -> Demo:
    """Runs the whole workflow on a bundled robot: simulates its logs, identifies it from a wrong URDF, validates, exports.

    Args:
        out: Folder for all files.
        seed: Seed of the motions, the noise and the errors of the URDF.
        progress: Called with the name of the step and its completed fraction, 0 to 1.

    Returns:
        The result, and the true parameters.

    Raises:
        OutputError: The folder cannot be written.
    """
    folder, report = check_writable(out), progress or (lambda _step, _done: None)
    true_robot = Robot.from_urdf(robot_path(ROBOT))
    generator, links = np.random.default_rng(seed), {}  # a rough guess: masses, sizes and centres of mass wrong by about 30 %
    for name, link in true_robot.description.links.items():
        if link.theta is not None and link.theta[0] > 0:
            mass, com, inertia = to_com(link.theta)
            factor, stretch = np.exp(0.3 * generator.standard_normal(2))
            shift = 0.3 * np.sqrt(np.trace(inertia) / (2 * mass)) * generator.standard_normal(3)
            links[name] = from_com(mass * factor, com + shift, inertia * factor * stretch**2)
    wrong = write_text(folder / "wrong.urdf", corrected_urdf(true_robot.urdf, links))
    effort = np.minimum(true_robot.limit("effort"), 1e3)
    sensors: dict[str, Any] = {
        "counts": 65536.0,
        "torque_noise": {"sigma": (0.005 * effort).tolist(), "correlation": 0.9},
        "torque_step": (effort / 2048).tolist(),
    }
    controller = {"type": "pd_gravity", "bandwidth": 8.0, "rate": 500.0}
    simulation = {"rate": 250.0, "step": 2e-3, "sensors": sensors, "controller": controller}
    project = parse_project({"model": {"friction": ["viscous", "coulomb", "offset"]}, "simulation": simulation})
    known = read_truth(truth_path(ROBOT), true_robot)
    coulomb = next(each for each in known.friction.joint if isinstance(each.law, Coulomb))
    laws = *known.friction.joint, Stribeck.of(0.2 * coulomb.values[0], velocity=0.05)
    plant = RigidPlant.create(true_robot, rotor_inertia=known.rotor, friction=FrictionTruth(true_robot.n, laws))
    logs = []
    for k in range(LOGS + 1):
        name = f"log_{k + 1}" if k < LOGS else "held_out"
        motion = random_fourier(
            Limits.from_robot(true_robot), SECONDS, 10, 100 * seed + k, fill=0.9, start=_HOME[: true_robot.n]
        )
        motion.write(folder / f"{name}_trajectory.csv", rate=100)
        options: dict[str, Any] = {"seed": 1000 * seed + k, "progress": partial(report, f"simulating {name}")}
        log = simulate(true_robot, motion, project=project, truth=plant, name=name, **options)
        logs.append(write_log(log, folder / f"{name}.csv"))
    robot = Robot.from_urdf(wrong)
    model = project.build_model(robot)
    *learn, held_out = (read_recording(path, robot, project.log) for path in logs)
    report("identifying", 0.0)
    ident = identify(model, learn, held_out=[held_out], project=project)
    report("identifying", 1.0)
    return Demo(ident, true_theta(ident, true_robot, plant), tuple(write_all(ident, folder)))


def true_theta(ident: Identification, robot: Robot, plant: RigidPlant) -> Array:
    """Returns the true values in the order of the identified parameters, without friction that the model lacks, shape (p,)."""
    theta = np.zeros(len(ident.theta))
    theta[: ident.model.n_inertial] = robot.inertials.ravel()
    values = {"Ia": np.diag(plant.rotor)}
    for each in plant.friction.joint:
        values.update(zip(each.law.symbols, each.values, strict=True))
    for k, parameter in enumerate(ident.model.parameters[ident.model.n_inertial :], ident.model.n_inertial):
        if parameter.symbol in values:
            theta[k] = values[parameter.symbol][robot.index(parameter.owner)]
    return theta
