"""The excitation problem of Szabó and Gincsainé, "Dynamic parameter identification method for robotic arms with static
friction modelling", Acta IMEKO 10(3), 2021, section 5: CondF (eq. 20) minimised with both ends given (eq. 21).

Run: ``.venv/bin/python scripts/papers/a_excitation.py [--budget 5] [--seed 0]``

The paper's arm, friction and torque noise; its limits, poses and result are not printed: the bundled robot's limits, and
poses of ours. A Fourier series returns after its period, so that a motion from q0 to another qf lasts part of a period only.
Beside the optimum stand the best of a hundred random motions that keep the same ends and limits, and their middle one.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import yaml

from urdf_ident.excitation.criteria import criterion_value
from urdf_ident.excitation.design import Design, design_excitation
from urdf_ident.excitation.family import Family
from urdf_ident.excitation.optimise import Search
from urdf_ident.excitation.problem import formulate
from urdf_ident.excitation.rows import weighted_regressor
from urdf_ident.linalg import Array, standard_errors
from urdf_ident.model.base import BaseParameters
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.motion.limits import Limits
from urdf_ident.motion.trajectory import Trajectory

DURATION, HARMONICS, RATE = 10.0, 5, 100.0  # [s], [Hz]; ours
START, END = (0.0, 0.0, 0.0), (1.0, -0.8, 0.5)  # q0 and qf [rad]; ours
ACCELERATION = 10.0  # [rad/s²]; ours
RANDOM = 100


@dataclass(frozen=True)
class Case:
    """One version of the problem: ends, the optimum and what random motions reach.

    Attributes:
        name: In words.
        design: The optimum.
        cond_f: CondF of WᵀW: optimum, best and median random motion (eq. 20).
        errors: Standard errors by WLS with the paper's noise: optimum and median random motion, shape (2, 24).
    """

    name: str
    design: Design
    cond_f: tuple[float, float, float]
    errors: Array


def prepare() -> tuple[DynamicModel, BaseParameters, Array]:
    """The paper's arm with its friction, its 24 base parameters, and the torque noise [N·m]."""
    truth = yaml.safe_load(truth_path("szabo_3r").read_text(encoding="utf-8"))
    shape = truth["friction"]["stribeck_arctan"]
    law = {"term": "stribeck_arctan", "sharpness": shape["sharpness"], "stribeck": shape["stribeck"]}
    model = DynamicModel(Robot.from_urdf(robot_path("szabo_3r")), friction=[law], rotor_inertia=False)
    return model, model.base(), np.array(truth["torque_noise"])


def solve(name: str, end: tuple[float, ...] | None, budget: float, seed: int, starts: int | None = None) -> Case:
    """Solves (21) for one pair of ends.

    Args:
        name: In words.
        end: qf [rad]; None: back to q0.
        budget: Time for the search [s].
        seed: Of the starts and of the random motions.
        starts: Random starts of the search; as many as there is time for by default.

    Returns:
        The case.
    """
    model, base, noise = prepare()
    limits = Limits.from_robot(model.robot, acceleration=ACCELERATION)
    design = design_excitation(
        model,
        DURATION,
        "frobenius",
        seed,
        family="tied_fourier",
        harmonics=HARMONICS,
        start=START,
        end=end,
        limits=limits,
        collisions=None,
        budget=budget,
        starts=starts,
    )
    ones = np.ones(model.n)
    motions = random_motions(model, limits, end, seed)
    values = [criterion_value("frobenius", weighted_regressor(model, base, path, ones, RATE)) for path in motions]
    middle = motions[int(np.argsort(values)[len(values) // 2])]
    own = criterion_value("frobenius", weighted_regressor(model, base, design.excitation, ones, RATE))
    errors = [standard_errors(weighted_regressor(model, base, path, noise, RATE)) for path in (design.excitation, middle)]
    return Case(name, design, tuple(np.exp([own, min(values), np.median(values)])), np.array(errors))  # type: ignore[arg-type]


def random_motions(model: DynamicModel, limits: Limits, end: tuple[float, ...] | None, seed: int) -> list[Trajectory]:
    """Random motions with the same ends, as large as the limits allow."""
    goal = None if end is None else np.array(end)
    family = Family("tied_fourier", model.robot.joints, DURATION, HARMONICS, 1, 0.0, np.array(START), goal)
    search = Search(formulate(model, family, limits, "frobenius"), seed, np.inf)
    return [family.excitation(search.random()) for _ in range(RANDOM)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--budget", type=float, default=5.0, help="time for each search [s]")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name, end in (("back to the start", None), ("to another pose", END)):
        case = solve(name, end, arguments.budget, arguments.seed)
        optimum, best, middle = case.cond_f
        ends = [x.round(12) + 0.0 for x in case.design.trajectory.evaluate([0.0, DURATION])]
        print(
            f"\n{name}: q from {ends[0][0]} to {ends[0][1]} rad; v {np.abs(ends[1]).max():g}, a {np.abs(ends[2]).max():g} there"
        )
        print(f"  CondF  optimum {optimum:.4g}   best of {RANDOM} random {best:.4g}   median random {middle:.4g}")
        ratio = case.errors[1] / case.errors[0]
        print(
            f"  standard errors (WLS, the paper's noise), random over optimum: median {np.median(ratio):.2f}, "
            f"least {ratio.min():.2f}, most {ratio.max():.2f}"
        )
        print("  " + case.design.summary().replace("\n", "\n  "))


if __name__ == "__main__":
    main()
