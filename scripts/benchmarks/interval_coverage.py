"""How often 95 % intervals hold the truth: many logs of one simulated closed-loop motion of a 6-axis arm.

The motion is simulated once per trajectory (feedback, friction, encoder counts); every run measures it anew, with torque
noise that remembers its past (first-order autoregression). Friction is viscous and Coulomb with a smooth sign of the
width that the model assumes, so that the model is right and only noise is on trial; ``--stiction`` uses the bundled arm's
dry friction instead, which sticks, so that the model is wrong at every reversal.

    python scripts/benchmarks/interval_coverage.py [--runs 100] [--trajectories 2] [--kinds model,ar,auto] [--stiction]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from urdf_ident import DynamicModel, Limits, Robot, Segment, random_fourier
from urdf_ident.estimation.uncertainty.covariance import with_covariance
from urdf_ident.friction import AxisScale, Coulomb, Law, Sliding, Viscous, smooth_sign
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_log
from urdf_ident.simulation.plant import RigidPlant
from urdf_ident.simulation.settings import ControllerSection, Noise, Sensors
from urdf_ident.simulation.simulate import measure, simulate
from urdf_ident.simulation.truth import FrictionTruth, read_truth
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import Fit, fit_base

RATE, SECONDS, COUNTS = 100.0, 20.0, 2**17
WIDTH = 0.1  # [rad/s] of the smooth sign
NOISE = 0.05  # standard deviation of the torque noise over that of the torque
VISCOUS = np.array([18.0, 17.0, 9.0, 3.2, 2.6, 3.0])
COULOMB = np.array([16.0, 17.0, 7.5, 2.9, 3.2, 2.6])


@dataclass(frozen=True)
class CreepingCoulomb(Coulomb):
    """Coulomb friction that does not stick in the plant either: the law that the model has."""

    name: ClassVar[str] = "creeping_coulomb"

    def basis(self, motion: Sliding) -> Sequence[np.ndarray]:
        """``tanh(v / width)``, shape (n,)."""
        return (smooth_sign(motion.v, self.width),)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        """None: it stays out of searches."""
        return ()


@dataclass(frozen=True, eq=False)
class Arm:
    """A simulated arm, the model that is fitted to it, and the true base parameters."""

    plant: RigidPlant
    model: DynamicModel
    truth: np.ndarray

    @classmethod
    def build(cls, *, stiction: bool = False) -> Arm:
        """The bundled UR10e with rotor inertia and friction of the size of a real one."""
        robot = Robot.from_urdf(robot_path("ur10e"))
        known = read_truth(truth_path("ur10e"), robot)
        smooth = FrictionTruth(robot.n, (Viscous.of(VISCOUS), CreepingCoulomb.of(COULOMB, width=WIDTH)))
        plant = RigidPlant.create(robot, rotor_inertia=known.rotor, friction=known.friction if stiction else smooth)
        law = "coulomb" if stiction else {"term": "coulomb", "width": WIDTH}
        model = DynamicModel(robot, friction=["viscous", law, "offset"])
        values = {"Ia": np.diag(known.rotor), "Fv": VISCOUS, "Fc": COULOMB, "offset": np.zeros(robot.n)}
        theta = [inertia.toDynamicParameters() for inertia in list(robot.model.inertias)[1:]]
        terms = [values[p.symbol][robot.joints.index(p.owner)] for p in model.parameters[model.n_inertial :]]
        return cls(plant, model, model.base().of(np.concatenate([*theta, terms])))

    def motion(self, seed: int) -> Segment:
        """A closed-loop motion with its torque, without any imperfection of sensors."""
        robot = self.plant.robot
        trajectory = random_fourier(Limits.from_robot(robot), SECONDS, 10, seed, fill=0.7)
        controller = ControllerSection(bandwidth=5.0).build(robot, np.diag(self.plant.rotor))
        return simulate(self.plant, controller, trajectory, rate=RATE, substeps=5).truth


def logs_of(arm: Arm, motion: Segment, rho: float, runs: int, seed: int = 0) -> Iterator[PreparedLog]:
    """Measures one motion many times: new torque noise, encoder counts, conditioning of a user's log."""
    noise = Noise(sigma=(NOISE * motion.tau.std(axis=0)).tolist(), correlation=rho)
    sensors = Sensors(counts=COUNTS, velocity="none", torque_noise=noise)
    robot = arm.model.robot
    for run in range(runs):
        recording = replace(measure(motion, robot.joints, sensors, seed + run), name="simulated", velocity=None)
        yield prepare_log(recording, robot, arm.model.drive, SignalConfig())


def fits_of(arm: Arm, log: PreparedLog, kinds: Sequence[str]) -> dict[str, Fit]:
    """One estimate with several kinds of standard errors."""
    statistics = build_statistics(arm.model, [log])
    fit = fit_base(statistics, arm.model.base())
    return {kind: with_covariance(fit, statistics, kind, model=arm.model, logs=[log]) for kind in kinds}


def coverage(
    arm: Arm, rho: float, *, runs: int, kinds: Sequence[str], trajectories: int = 1, first: int = 0
) -> dict[str, np.ndarray]:
    """Share of the runs whose 95 % interval holds the truth.

    Returns:
        Kind → shape (trajectories, parameters).
    """
    inside: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
    for trajectory in range(first, first + trajectories):
        motion = arm.motion(trajectory)
        held: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
        for log in logs_of(arm, motion, rho, runs, seed=1000 * trajectory):
            for kind, fit in fits_of(arm, log, kinds).items():
                low, high = fit.conf_int().T
                held[kind].append((low <= arm.truth) & (arm.truth <= high))
        for kind in kinds:
            inside[kind].append(np.mean(held[kind], axis=0))
    return {kind: np.array(values) for kind, values in inside.items()}


def main() -> None:
    """Prints mean and worst coverage of every kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--trajectories", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="seed of the first trajectory")
    parser.add_argument("--kinds", default="model,hac,ar,jackknife,auto")
    parser.add_argument("--rho", default="0.9,0.98")
    parser.add_argument("--stiction", action="store_true")
    chosen = parser.parse_args()
    arm, kinds = Arm.build(stiction=chosen.stiction), chosen.kinds.split(",")
    for rho in map(float, chosen.rho.split(",")):
        begin = time.perf_counter()
        found = coverage(arm, rho, runs=chosen.runs, kinds=kinds, trajectories=chosen.trajectories, first=chosen.first)
        for kind, share in found.items():
            print(
                f"rho {rho:g}  {kind:<10} mean {100 * share.mean():5.1f} %   worst parameter {100 * share.min():5.1f} %   "
                f"worst over trajectories {100 * share.mean(axis=0).min():5.1f} %"
            )
        print(f"({chosen.runs} runs x {chosen.trajectories} trajectories, {time.perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
