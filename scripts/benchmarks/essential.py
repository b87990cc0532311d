#!/usr/bin/env python
"""Held-out error of the essential parameters against that of all base parameters, the choice made anew in every fold.

On a simulated TX40 (closed loop, friction that sticks, encoder counts, autocorrelated torque noise), and on given logs:

    python scripts/benchmarks/essential.py [ROBOT.urdf LOG... -c PROJECT.yaml]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from urdf_ident.estimation.uncertainty.covariance import with_covariance
from urdf_ident.estimation.uncertainty.essential import essential_parameters
from urdf_ident.logs.read import read_recording
from urdf_ident.logs.recording import Recording
from urdf_ident.logs.sources import expand_logs
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.project import load_project
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.simulation.controllers import PDGravity
from urdf_ident.simulation.plant import RigidPlant
from urdf_ident.simulation.settings import Noise, Sensors
from urdf_ident.simulation.simulate import simulate
from urdf_ident.simulation.simulated_log import measure
from urdf_ident.simulation.truth import read_truth
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

LAWS = ["viscous", "coulomb", "offset"]


def simulated(count: int = 5, seconds: float = 15.0) -> tuple[DynamicModel, list[PreparedLog]]:
    """Logs of a TX40 with the bundled truth."""
    robot = Robot.from_urdf(robot_path("tx40"))
    known = read_truth(truth_path("tx40"), robot)
    plant = RigidPlant.create(robot, rotor_inertia=known.rotor, friction=known.friction)
    controller = PDGravity.tuned(robot, bandwidth=5.0, rotor=np.diag(plant.rotor))
    model, recordings = DynamicModel(robot, friction=LAWS), []
    for seed in range(count):
        trajectory = random_fourier(Limits.from_robot(robot), seconds, 8, seed, fill=0.7)
        motion = simulate(plant, controller, trajectory, rate=200.0, substeps=5).truth
        noise = Noise(sigma=(0.05 * motion.tau.std(axis=0)).tolist(), correlation=0.9)
        seen = measure(motion, Sensors(counts=2**17, velocity="none", torque_noise=noise), seed)
        recordings.append(Recording(f"log {seed}", robot.joints, seen.time, seen.position, effort=seen.torque))
    return model, prepare_logs(recordings, robot, model.drive, SignalConfig())


def nested(model: DynamicModel, logs: list[PreparedLog], rule: str) -> tuple[list[int], float]:
    """Numbers of essential parameters, and their held-out error over that of all (mean of the row groups' RMSE)."""
    statistics, base = build_statistics(model, logs), model.base()
    numbers, full, few = [], [], []
    for name in statistics.logs:
        train, test = statistics.without([name]), statistics.only([name])
        fit = with_covariance(fit_base(train, base), train, "jackknife")
        chosen = essential_parameters(train, base, fit, rule=rule)
        numbers.append(len(chosen))
        for errors, params in ((full, fit.params), (few, chosen.fit.params)):
            theta = np.zeros(statistics.p)
            theta[base.independent] = params
            errors.append([test.residual_squares(theta, group) / test.rows[group] for group in test.groups])
    rmse = [float(np.sqrt(np.mean(errors, axis=0)).mean()) for errors in (few, full)]
    return numbers, rmse[0] / rmse[1]


def main() -> None:
    """Prints, for each rule, how many parameters are kept and what that costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("urdf", nargs="?", type=Path)
    parser.add_argument("logs", nargs="*")
    parser.add_argument("-c", "--config", type=Path)
    chosen = parser.parse_args()
    cases = {"simulated TX40": simulated()}
    if chosen.urdf:
        project, folder = load_project(chosen.config)
        robot = project.build_robot(chosen.urdf, folder)
        model, layout = project.build_model(robot), project.log
        recordings = [read_recording(source, robot, layout) for source in expand_logs(chosen.logs, layout)]
        cases[robot.name] = model, prepare_logs(recordings, robot, model.drive, project.signal_config())
    for name, (model, logs) in cases.items():
        for rule in ("f-test", "ratio"):
            begin = time.perf_counter()
            numbers, ratio = nested(model, logs, rule)
            took = time.perf_counter() - begin
            kept = f"{min(numbers)}-{max(numbers)} of {len(model.base())} kept"
            print(f"{name:<16} {rule:<7} {kept}, held-out error {100 * (ratio - 1):+.2f} % ({len(logs)} logs, {took:.0f} s)")


if __name__ == "__main__":
    main()
