"""Time of the consistency step on data reduced to a triangle, against the same programme on the raw rows.

OPENBLAS_NUM_THREADS=1 taskset -c 0 python scripts/benchmarks/lmi.py [ROWS_PER_JOINT]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from urdf_ident.consistency.constraints import LmiOptions
from urdf_ident.consistency.lmi import LmiProblem
from urdf_ident.linalg import Array
from urdf_ident.model.inertia import PSEUDO_BASIS, from_com, pseudo_inertia, to_com
from urdf_ident.model.parameters import inertial_parameters
from urdf_ident.model.prior import inertial_prior
from urdf_ident.model.rigid_bodies import regressor
from urdf_ident.model.robot import Robot
from urdf_ident.model.structure import random_motion

REPEATS = 5


def chain(n: int, generator: np.random.Generator) -> Robot:
    """A chain of n revolute joints with random bodies."""
    parts = ['<robot name="chain"><link name="l0"/>']
    for i in range(1, n + 1):
        points = 0.15 * generator.normal(size=(12, 3))
        masses = generator.uniform(0.05, 0.6, 12)
        mass, com, inertia = to_com(
            np.sum([from_com(m, p, np.zeros((3, 3))) for m, p in zip(masses, points, strict=True)], axis=0)
        )
        six = " ".join(
            f'{key}="{inertia["xyz".index(key[1]), "xyz".index(key[2])]}"' for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        parts.append(
            f'<link name="l{i}"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="{mass}"/><inertia {six}/>'
            f'</inertial></link><joint name="j{i}" type="revolute"><parent link="l{i - 1}"/><child link="l{i}"/>'
            f'<origin xyz="0.05 0 0.3" rpy="{0.3 * i} 0.2 0"/><axis xyz="0 {i % 2} {1 - i % 2}"/>'
            '<limit lower="-3" upper="3" velocity="2" effort="50"/></joint>'
        )
    return Robot.from_urdf("".join(parts) + "</robot>")


def raw_rows(prior_theta: Array, root: Array, W: Array, tau: Array, n: int) -> float:
    """What one would write first: CVXPY on all rows; processor seconds."""
    import cvxpy as cp

    start = time.process_time()
    theta = cp.Variable(10 * n)
    bodies = []
    for i in range(n):
        P = sum(theta[10 * i + k] * PSEUDO_BASIS[k] for k in range(10))
        bodies.append(P - 1e-3 * pseudo_inertia(prior_theta[10 * i : 10 * i + 10]) >> 0)
    cost = cp.sum_squares(W @ theta - tau) + 10.0 * cp.sum_squares(root @ (theta - prior_theta))
    cp.Problem(cp.Minimize(cost), bodies).solve(solver="CLARABEL")
    return time.process_time() - start


def main(rows: int) -> None:
    generator = np.random.default_rng(0)
    titles = ("bodies", "distance", "reduce", "solver", "whole", "rough", "raw rows", "ratio")
    print("{:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>7}".format(*titles), f"  [s of the processor, best of {REPEATS}]")
    for n in (7, 32):
        robot = chain(n, generator)
        prior, parameters = inertial_prior(robot), inertial_parameters(robot)
        motion = random_motion(robot, rows, seed=1)
        W = np.vstack(list(regressor(robot, motion.q, motion.v, motion.a))).reshape(-1, 10 * n)
        truth = prior.theta0 * np.repeat(np.exp(0.2 * generator.standard_normal(n)), 10)
        sigma = 0.05 * np.std(W @ truth)
        tau = W @ truth + sigma * generator.standard_normal(len(W))
        start = time.process_time()
        factor = np.linalg.qr(np.column_stack([W, tau]) / sigma, mode="r")
        reduce = time.process_time() - start
        baseline = raw_rows(prior.theta0, prior.root, W / sigma, tau / sigma, n) if n == 7 else float("nan")
        for distance in ("euclid", "entropic"):
            problem = LmiProblem(prior, parameters, LmiOptions(distance=distance))
            roughly = problem.rough_solver([(factor[:, :-1], factor[:, -1])])
            solver, whole, rough = [], [], []
            for _ in range(REPEATS):
                start = time.process_time()
                solution = problem.solve(factor[:, :-1], factor[:, -1], 10.0)
                whole.append(time.process_time() - start)
                solver.append(solution.seconds)
                start = time.process_time()
                roughly(10.0)
                rough.append(time.process_time() - start)
            times = (reduce, min(solver), min(whole), min(rough), baseline, baseline / min(whole))
            print(
                f"{n:>6} {distance:>9} "
                + " ".join(f"{value:>8.3f}" for value in times[:4])
                + f" {times[4]:>9.2f} {times[5]:>7.1f}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
