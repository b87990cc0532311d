"""Excitation: how good in how much time, on one core, and how much better than random motions.

python scripts/benchmarks/excitation.py [--seeds 20] [--long 30] [--only cond|gain|torque|among]

- cond: UR10e, five harmonics, 66 unknowns, 20 s: condition number of the 36 unscaled base columns after some seconds from a
  cold start, in time of the process (other work on the machine does not count); the winner is checked on a 1 ms grid.
- gain: D-optimal motions against random Fourier motions that fill the same limits, equal duration: standard errors of all base
  parameters, friction and rotor inertia included; six-axis arm, and TX40 with its coupled wrist.
- torque: the same search when torque limits are the ones that bind.
- among: condition number after some seconds between a table and a wall, preparation counted, on three arms.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

import numpy as np
import yaml

from urdf_ident import Collisions, Drive, DynamicModel, Robot, design_excitation, find_collisions, random_fourier
from urdf_ident.excitation.criteria import condition_number
from urdf_ident.excitation.family import Family
from urdf_ident.excitation.optimise import optimise
from urdf_ident.excitation.problem import Problem, formulate
from urdf_ident.excitation.rows import PlannedRows
from urdf_ident.linalg import standard_errors
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.motion.limits import Limits, check_limits, prior_torque

DURATION, HARMONICS = 20.0, 5  # [s]
MOMENTS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # [s]


def condition_over_time(seeds: int, long: float) -> None:
    """Condition number over the time of the process; ``long`` seconds for three seeds, 2 s for the others."""
    model = DynamicModel(Robot.from_urdf(robot_path("ur10e")), friction="none", rotor_inertia=False)
    base = model.base()
    problem = problem_of(model, "cond", None, "fourier")
    family, limits = problem.family, problem.limits
    torque = prior_torque(model.robot)
    print(f"cond of {len(base)} base columns, {family.unknowns * model.n} unknowns; seconds of one core: {MOMENTS}")
    rows = []
    for seed in range(seeds):
        budget = long if seed < 3 else 2.0
        search = optimise(problem, seed=seed, budget=budget)
        found = search.improvements
        path = family.trajectory(search.best.X)
        report = check_limits(path, limits, torque=torque, rate=1000.0)
        dense = condition_number(PlannedRows(model, base, np.ones(model.n)).along(path, 1000.0))
        row = [np.exp(min([c.value for c in found if c.spent <= t], default=np.nan)) for t in MOMENTS if t <= budget]
        rows.append(row[:3])
        print(
            f"  seed {seed:2d}: " + " ".join(f"{x:7.3f}" for x in row) + f"  1 kHz {dense:.3f}, feasible {report.feasible}, "
            f"{search.starts} starts"
        )
    print(
        "  median  "
        + " ".join(f"{x:7.3f}" for x in np.median(rows, axis=0))
        + "   worst "
        + " ".join(f"{x:7.3f}" for x in np.max(rows, axis=0))
    )


def gain_over_random(seeds: int, budget: float) -> None:
    """Median standard error of random motions over that of the D-optimal one, one design and one random motion a seed."""
    reduction = yaml.safe_load(truth_path("tx40").read_text(encoding="utf-8"))["reduction"]
    wrist = {"joint_6": ["viscous", "coulomb"]}
    arms = {
        "ur10e": DynamicModel(Robot.from_urdf(robot_path("ur10e"))),
        "generic_6axis": DynamicModel(Robot.from_urdf(robot_path("generic_6axis"))),
        "tx40, coupled": DynamicModel(
            Robot.from_urdf(robot_path("tx40")), drive=Drive.build(6, reduction=reduction), motor_friction=wrist
        ),
    }
    print(f"D-optimal ({budget:g} s of search) against random motions, {seeds} seeds: median over parameters of the ratio")
    for name, model in arms.items():
        base, ratios, elapsed = model.base(), [], []
        for seed in range(seeds):
            design = design_excitation(model, DURATION, "D", seed, harmonics=HARMONICS, budget=budget, collisions=None)
            random = random_fourier(design.limits, DURATION, HARMONICS, seed, fill=1.0, span=2 * np.pi)
            rows = PlannedRows(model, base, design.noise)
            ours, theirs = (standard_errors(rows.along(path)) for path in (design.excitation, random))
            ratios.append(np.median(theirs / ours))
            elapsed.append(design.elapsed)
        print(
            f"  {name:14s} {len(base)} parameters: median {np.median(ratios):.2f}, least {min(ratios):.2f}, "
            f"most {max(ratios):.2f}; {np.median(elapsed):.1f} s each"
        )


def torque_bound(seeds: int) -> None:
    """Torque limits at 60 % of what the free design uses: does the search still work, and do they hold?"""
    model = DynamicModel(Robot.from_urdf(robot_path("ur10e")), friction="none", rotor_inertia=False)
    free = design_excitation(model, DURATION, "cond", 0, budget=3.0, collisions=None)
    peak = {m.joint: abs(m.value) for m in free.report.margins if m.quantity == "torque"}
    limits = Limits.from_robot(model.robot, torque=[0.6 * peak[joint] + 0.5 for joint in model.robot.joints])
    print(f"torque limits {limits.torque.round(1)} N·m (free design: cond {free.condition:.2f})")
    for seed in range(seeds):
        design = design_excitation(model, DURATION, "cond", seed, limits=limits, budget=3.0, collisions=None)
        closest = min(m.relative for m in design.report.margins if m.quantity == "torque")
        print(
            f"  seed {seed}: cond {design.condition:.2f}, closest torque {100 * closest:.1f} % left, feasible "
            f"{design.report.feasible}, {design.starts} starts"
        )


def among_obstacles(seeds: int, budget: float) -> None:
    """Condition number after a short search between a table and a wall, in time of the process, preparation counted."""
    table = {"box": [2.0, 2.0, 0.06], "xyz": [0.3, 0, -0.05]}
    print(f"condition number after {budget:g} s between table and wall, seed by seed; median, worst")
    for name, away in (("ur10e", -0.85), ("generic_6axis", -0.5), ("tx40", -0.5)):
        model = DynamicModel(Robot.from_urdf(robot_path(name)), friction="none", rotor_inertia=False)
        world = parse_world({"objects": {"table": table, "wall": {"plane": [1, 0, 0], "offset": away}}})
        collisions = find_collisions(model.robot, world)
        for family in ("modified_fourier", "fourier"):
            reached = []
            for seed in range(seeds):
                search = optimise(problem_of(model, "cond", collisions, family), seed=seed, budget=budget)
                reached.append(float(np.exp(search.best.value)))
            each = " ".join(f"{x:6.2f}" for x in reached)
            print(f"  {name:14s} {family:17s} {each}   {np.median(reached):6.2f} {max(reached):6.2f}", flush=True)


def problem_of(model: DynamicModel, criterion: str, collisions: Collisions | None, name: str = "modified_fourier") -> Problem:
    """What :func:`design_excitation` would search, of the Fourier series without ramps."""
    family = Family(name, model.robot.joints, DURATION, HARMONICS)
    return formulate(model, family, Limits.from_robot(model.robot), criterion, collisions=collisions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--long", type=float, default=30.0, help="time of the first three searches for cond [s]")
    parser.add_argument("--budget", type=float, default=3.0, help="time of each D-optimal design [s]")
    parser.add_argument("--only", choices=("cond", "gain", "torque", "among"))
    arguments = parser.parse_args()
    if arguments.only in (None, "cond"):
        condition_over_time(arguments.seeds, arguments.long)
    if arguments.only in (None, "gain"):
        gain_over_random(arguments.seeds, arguments.budget)
    if arguments.only in (None, "torque"):
        torque_bound(min(arguments.seeds, 5))
    if arguments.only in (None, "among"):
        among_obstacles(min(arguments.seeds, 5), 2.0)


if __name__ == "__main__":
    main()
