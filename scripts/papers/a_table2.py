"""Szabó and Gincsainé, "Dynamic parameter identification method for robotic arms with static friction modelling", Acta
IMEKO 10(3), 2021: Table 2 and the excitation problem of section 5, the paper's numbers and ours side by side.

Run: ``python scripts/papers/a_table2.py`` (some seconds)

The three thin rods of the paper are simulated with its friction; torque is corrupted by white noise of 0.5, 0.3 and
0.7 N·m. Parameters are quoted in the paper's own Denavit-Hartenberg frames. Its trajectory is not printed (only drawn), so
that the optimum of its equation 21 is driven within limits of ours: variances differ from the paper's by what the motions
differ; their ratio, LS to WLS, is what can be compared. A second Monte Carlo has noise on the joint angles too.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml
from paper_page import picture, show, span
from paper_page import table as markdown

from urdf_ident import Design, DynamicModel, Limits, Robot, Segment, Trajectory, design_excitation
from urdf_ident.excitation.criteria import criterion_value
from urdf_ident.excitation.family import Family
from urdf_ident.excitation.optimise import Search
from urdf_ident.excitation.problem import formulate
from urdf_ident.excitation.rows import PlannedRows
from urdf_ident.linalg import Array, standard_errors, triangle
from urdf_ident.model.base import BaseParameters, random_motion, reduce_factor
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.inertia import transform_matrix
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.statistic import Layout, Statistic, StatisticSet

#: The order in which the paper's row echelon form takes the columns of a link.
ORDER = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "m", "mx", "my", "mz")
SIGMA = np.array([0.5, 0.3, 0.7])  # [N·m], Fig. 2
PERIOD, RATE, HARMONICS = 10.0, 100.0, 5  # [s], [Hz]; ours
ACCELERATION, STARTS = 10.0, 1  # [rad/s²], ours; random starts of the search for the optimum of Szabó 2021, eq. 21
ANGLE_NOISE = 1e-3  # [rad], ours
END, RANDOM = (1.0, -0.8, 0.5), 100  # qf [rad], number of random motions beside the optimum; ours


def coefficients(expression: str) -> dict[str, float]:
    """Parameter → coefficient of an expression like ``m2 + 2 mx2 - mz3/2``."""
    terms = re.findall(r"([+-]?) ?(?:(\d+) )?([A-Za-z_]+\d)(?:/(\d))?", expression)
    return {name: float(f"{sign}1") * float(times or 1) / float(over or 1) for sign, times, name, over in terms}


#: Rows as printed: expression, exact value, mean and variance of LS, mean and variance of WLS. "m·s²" of the paper is
#: read as ½·m·s: the only reading with which dimensions and exact values agree.
PAPER: dict[str, tuple[dict[str, float], tuple[float, ...]]] = {
    line[0]: (coefficients(line[0]), tuple(map(float, line[1:])))
    for line in list(csv.reader(Path(__file__).with_name("szabo_table_2.csv").read_text().splitlines()))[1:]
}


@dataclass(frozen=True)
class Setup:
    """The robot of the paper, and the change from Pinocchio's joint frames to the paper's frames.

    Attributes:
        model: Rigid bodies and Szabó 2021's friction, in joint frames.
        frames: Shape (p, p): ``theta_joint = frames @ theta_paper``.
        names: The parameters in the paper's frames, e.g. ``"Ixx2"``.
        base: The reduction in the paper's frames and with its column order.
        truth: The exact parameters in the paper's frames, shape (p,).
    """

    model: DynamicModel
    frames: Array
    names: tuple[str, ...]
    base: BaseParameters
    truth: Array


@dataclass(frozen=True)
class Table:
    """Our side of Table 2, one entry a base parameter, in the order of ``setup.base``.

    Attributes:
        expressions: Coefficients of each base parameter by parameter name; ``exact``: exact values, shape (24,).
        variance: Analytic variance of LS and WLS, shape (2, 24); ``mean`` and ``scatter``: mean and variance over the runs.
        cond_f: CondF of the trajectory (Szabó 2021, eq. 20).
        noisy: LS and WLS with noise on the angles too, shape (noisy runs, 2, 24).
        example: One of these runs, as the paper's Fig. 3.
    """

    setup: Setup
    expressions: tuple[dict[str, float], ...]
    exact: Array
    variance: Array
    mean: Array
    scatter: Array
    runs: int
    samples: int
    cond_f: float
    noisy: Array
    example: Example


def prepare() -> Setup:
    """Builds the model, the frames and the reduction."""
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    truth = yaml.safe_load(truth_path("szabo_3r").read_text(encoding="utf-8"))
    arctan = truth["friction"]["stribeck_arctan"]
    law = {"term": "stribeck_arctan", "sharpness": arctan["sharpness"], "stribeck": arctan["stribeck"]}
    model = DynamicModel(robot, friction=[law], rotor_inertia=False)
    frames = np.eye(len(model.parameters))
    for k, (rotation, translation) in enumerate(dh_frames(robot, truth["dh"])):
        frames[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = transform_matrix(rotation, translation)
    link = {body.name: str(k + 1) for k, body in enumerate(robot.bodies)}
    link |= {joint: str(k + 1) for k, joint in enumerate(robot.joints)}
    names = tuple(parameter.symbol + link[parameter.owner] for parameter in model.parameters)
    motion = random_motion(robot, 400)
    factor = np.vstack([factor @ frames[group.columns] for group, factor in _factors(model, motion)])
    order = [names.index(symbol + str(k)) for k in (1, 2, 3) for symbol in ORDER]
    base = reduce_factor(factor, names, np.array([*order, *range(30, len(names))]))
    friction = np.column_stack([arctan["tau_s"], arctan["tau_sc"], arctan["tau_v"]])
    return Setup(model, frames, names, base, np.concatenate([np.ravel(truth["dh_theta"]), friction.ravel()]))


def dh_frames(robot: Robot, dh: dict[str, list[float]], q: Array | None = None) -> list[tuple[Array, Array]]:
    """Rotation (3, 3) and translation (3,) [m] of the paper's frames seen from Pinocchio's joint frames.

    They are standard Denavit-Hartenberg frames, at the far end of each link; ``dh`` holds theta (without q), d, a and alpha of
    each joint. The result must not depend on ``q`` [rad].
    """
    q = np.zeros(robot.n) if q is None else q
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    place, found = np.eye(4), []
    for k, angle in enumerate(q):
        theta, d, a, alpha = (dh[key][k] for key in ("theta", "d", "a", "alpha"))
        (c, s), (ca, sa) = (np.cos(theta + angle), np.sin(theta + angle)), (np.cos(alpha), np.sin(alpha))
        place = place @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        seen = np.linalg.inv(data.oMi[k + 1].homogeneous) @ place
        found.append((seen[:3, :3], seen[:3, 3]))
    return found


def optimal_trajectory(setup: Setup, seed: int) -> Trajectory:
    """The optimum of Szabó 2021, eq. 21: least CondF (eq. 20) between rest at one pose and rest there again, inside limits."""
    limits = Limits.from_robot(setup.model.robot, acceleration=ACCELERATION)
    return design_excitation(
        setup.model,
        PERIOD,
        "frobenius",
        seed,
        family="modified_fourier",
        harmonics=HARMONICS,
        start=np.zeros(3),
        limits=limits,
        collisions=None,
        budget=120.0,
        starts=STARTS,
    ).excitation


def cond_f(setup: Setup, path: Trajectory) -> float:
    """CondF of a motion in the paper's frames (Szabó 2021, eq. 20)."""
    singular = np.linalg.svd(_design(setup, _segment(path, RATE)), compute_uv=False)
    return float(np.sqrt(np.sum(singular**4)) * np.sqrt(np.sum(singular**-4.0)))


@dataclass(frozen=True)
class Example:
    """One run as in the paper's Fig. 3: time [s], measured and reconstructed torque [N·m], by WLS and measured angles."""

    time: Array
    measured: Array
    reconstructed: Array


def measured_runs(setup: Setup, path: Trajectory, runs: int, seed: int) -> tuple[Array, Example]:
    """LS and WLS estimates with noise on torques and on joint angles, shape (runs, 2, 24), and the last run.

    Angles are taken as measured; velocity and acceleration are the derivatives of the Fourier series fitted to them.
    """
    rng, time = np.random.default_rng(seed), path.times(RATE)
    q, v, a = path.evaluate(time)
    theta = setup.frames @ setup.truth
    tau = setup.model.torque(theta, q, v, a)
    angle = np.outer(time, 2 * np.pi / PERIOD * np.arange(1, HARMONICS + 1))
    basis = np.hstack([np.ones((len(time), 1)), np.sin(angle), np.cos(angle)])
    rate = 2 * np.pi / PERIOD * np.arange(1, HARMONICS + 1)
    first = np.hstack([np.zeros((len(time), 1)), rate * np.cos(angle), -rate * np.sin(angle)])
    second = np.hstack([np.zeros((len(time), 1)), -(rate**2) * np.sin(angle), -(rate**2) * np.cos(angle)])
    solver, found = np.linalg.pinv(basis), []
    for _ in range(runs):
        seen = q + ANGLE_NOISE * rng.standard_normal(q.shape)
        series = solver @ seen
        noisy = tau + SIGMA * rng.standard_normal(tau.shape)
        motion = Segment("run", 0.0, RATE, seen, first @ series, second @ series, noisy)
        (_, blocks), *_ = setup.model.row_blocks(motion, chunk=len(motion))
        rows = [
            triangle(np.column_stack([block @ setup.frames[group.columns], noisy[:, j]]))
            for j, (group, block) in enumerate(zip(setup.model.groups, blocks, strict=True))
        ]
        moved = _statistics(setup, rows, len(motion))
        found.append([fit_base(moved, setup.base, method=method).params for method in ("ols", "wls")])
    kept = np.zeros(len(setup.names))
    kept[setup.base.independent] = found[-1][1]
    again = setup.model.torque(setup.frames @ kept, motion.q, motion.v, motion.a)
    return np.array(found), Example(time, noisy, again)


def _statistics(setup: Setup, rows: list[Array], samples: int) -> StatisticSet:
    """The set of one factor ``[columns | torque]`` a joint."""
    groups = [f"joint:{j + 1}" for j in range(len(rows))]
    layouts = tuple(Layout(group, j, np.arange(len(setup.names))) for j, group in enumerate(groups))
    entries = tuple(Statistic("run", 0, group, factor, samples) for group, factor in zip(groups, rows, strict=True))
    return StatisticSet(setup.names, layouts, entries, "table 2")


def table(runs: int = 400, seed: int = 2021, noisy_runs: int = 100) -> Table:
    """Makes our side of the table; the noisy runs have noise on the angles too."""
    setup = prepare()
    path = optimal_trajectory(setup, seed)
    motion = _segment(path, RATE)
    factors = [factor @ setup.frames[group.columns] for group, factor in _factors(setup.model, motion)]
    L = [factor[:, setup.base.independent] for factor in factors]
    exact = setup.base.of(setup.truth)
    estimates = np.array([_estimate(setup, factors, L, exact, len(motion), seed + run + 1) for run in range(runs)])
    expressions = tuple(dict(setup.base.terms(row)) for row in range(len(setup.base)))
    return Table(
        setup,
        expressions,
        exact,
        _variances(L),
        estimates.mean(axis=0),
        estimates.var(axis=0, ddof=1),
        runs,
        len(motion),
        cond_f(setup, path),
        *measured_runs(setup, path, noisy_runs, seed),
    )


def _variances(L: list[Array]) -> Array:
    """Of LS, ``L⁺ Σ L⁺ᵀ``, and of WLS, ``(Lᵀ Σ⁻¹ L)⁻¹``, when joint j has noise of SIGMA[j]."""
    _, R = np.linalg.qr(np.vstack(L))
    inverse = np.linalg.inv(R)
    middle = np.vstack([sigma * Lj @ inverse for sigma, Lj in zip(SIGMA, L, strict=True)])
    plain = np.sum((middle @ inverse.T) ** 2, axis=0)
    _, weighted = np.linalg.qr(np.vstack([Lj / sigma for sigma, Lj in zip(SIGMA, L, strict=True)]))
    return np.array([plain, np.sum(np.linalg.inv(weighted) ** 2, axis=1)])


def _estimate(setup: Setup, factors: list[Array], L: list[Array], exact: Array, samples: int, seed: int) -> Array:
    """One run: LS and WLS, shape (2, 24). The noise is drawn per row, then taken into the factor's coordinates."""
    rng, p = np.random.default_rng(seed), len(setup.names)
    stacks = []
    for j, (factor, Lj) in enumerate(zip(factors, L, strict=True)):
        white = SIGMA[j] * rng.standard_normal(samples)  # an orthogonal change of coordinates leaves it white
        tau = Lj @ exact + white[: len(Lj)]
        stacks.append(np.vstack([np.column_stack([factor, tau]), np.append(np.zeros(p), np.linalg.norm(white[len(Lj) :]))]))
    statistics = _statistics(setup, stacks, samples)
    return np.array([fit_base(statistics, setup.base, method=method).params for method in ("ols", "wls")])


def _factors(model: DynamicModel, motion: Segment) -> list[tuple]:
    """Row groups with a triangular factor of their columns."""
    stacks: list[list[Array]] = [[] for _ in model.groups]
    for _, blocks in model.row_blocks(motion):
        for stack, block in zip(stacks, blocks, strict=True):
            stack.append(block)
    return [(group, triangle(*stack)) for group, stack in zip(model.groups, stacks, strict=True)]


def _design(setup: Setup, motion: Segment) -> Array:
    stack = [factor @ setup.frames[group.columns] for group, factor in _factors(setup.model, motion)]
    return np.vstack(stack)[:, setup.base.independent]


def _segment(path: Trajectory, rate: float) -> Segment:
    q, v, a = path.evaluate(path.times(rate))
    return Segment("run", 0.0, rate, q, v, a)


def match(found: Table, expression: dict[str, float]) -> int:
    """Index of the base parameter that has a given expression; ValueError if none has."""
    for row, own in enumerate(found.expressions):
        if set(own) == set(expression) and all(abs(own[name] - expression[name]) < 1e-9 for name in own):
            return row
    raise ValueError(f"no base parameter is {expression}")


@dataclass(frozen=True)
class Case:
    """The excitation problem for one pair of ends: the optimum and what random motions reach.

    Attributes:
        design: The optimum.
        cond_f: CondF of WᵀW: optimum, best and median random motion (eq. 20).
        errors: Standard errors by WLS with the paper's noise: optimum and median random motion, shape (2, 24).
    """

    design: Design
    cond_f: tuple[float, float, float]
    errors: Array


def solve(end: tuple[float, ...] | None, budget: float, seed: int, starts: int | None = None) -> Case:
    """Solves (21) for one pair of ends; beside the optimum stand random motions that keep the same ends and limits.

    A Fourier series returns after its period, so that a motion to another pose lasts part of a period only.
    """
    model = prepare().model
    base, limits = model.base(), Limits.from_robot(model.robot, acceleration=ACCELERATION)
    start, goal = np.zeros(3), np.zeros(3) if end is None else np.array(end)
    design = design_excitation(
        model,
        PERIOD,
        "frobenius",
        seed,
        harmonics=HARMONICS,
        start=start,
        end=goal,
        limits=limits,
        collisions=None,
        budget=budget,
        starts=starts,
    )
    shape = Family("modified_fourier", model.robot.joints, PERIOD, HARMONICS, 1, 0.0, start, goal)
    search = Search(formulate(model, shape, limits, "frobenius"), seed, np.inf)
    motions = [shape.excitation(search.random()) for _ in range(RANDOM)]

    rows, weighted = PlannedRows(model, base, np.ones(3)), PlannedRows(model, base, SIGMA)

    def value(path: Trajectory) -> float:
        return criterion_value("frobenius", rows.along(path, RATE))

    values = [value(path) for path in motions]
    middle = motions[int(np.argsort(values)[len(values) // 2])]
    errors = [standard_errors(weighted.along(path, RATE)) for path in (design.excitation, middle)]
    reached = np.exp([value(design.excitation), min(values), np.median(values)])
    return Case(design, tuple(reached.tolist()), np.array(errors))


def figures(pictures: Path | None = None, runs: int = 200, noisy_runs: int = 40) -> dict[str, Any]:
    """The figures of the page."""
    found = table(runs, noisy_runs=noisy_runs)
    base, setup = found.setup.base, found.setup
    order = [match(found, expression) for expression, _ in PAPER.values()]
    printed = np.array([numbers for _, numbers in PAPER.values()])
    ratio = found.variance[1] / found.variance[0]
    to_paper = found.variance[:, order] / printed[:, [2, 4]].T
    off = (np.abs(found.mean - found.exact) / np.sqrt(found.variance / found.runs))[:, order].max(axis=0)
    scatter = found.noisy.var(axis=0, ddof=1)
    noisy_off = np.abs(found.noisy.mean(axis=0) - found.exact) / np.sqrt(scatter / len(found.noisy))
    shown = found.example
    lines = []
    for k, (label, row) in enumerate(zip(PAPER, order, strict=True)):
        exact, *methods = printed[k]
        line: list[object] = [label, f"{exact:.3f}", f"{found.exact[row] + 0.0:.4f}"]
        for m in (0, 1):
            mean, variance = methods[2 * m : 2 * m + 2]
            line += [f"{mean:.3f}", f"{found.mean[m, row]:.3f}", f"{variance:.2e}", f"{found.variance[m, row]:.2e}"]
            line.append(to_paper[m, k])
        lines.append([*line, f"{off[k]:.1f}"])
    pair = ("variance, paper", "here", "ratio")
    heads = ("expression", "exact, paper", "here", "LS mean, paper", "here", *pair, "WLS mean, paper", "here", *pair, "off")
    cases = {"back": solve(None, 5.0, 0, 2), "other": solve(END, 5.0, 0, 2)}
    panels = [
        (f"joint {j + 1}", shown.time, {"measured": shown.measured[:, j], "reconstructed": shown.reconstructed[:, j]})
        for j in range(3)
    ]
    return {
        "base": len(base),
        "inertial": int(np.sum(base.independent < 30)),
        "friction": int(np.sum(base.independent >= 30)),
        "equal": len(set(order)),
        "digits": format(np.abs(found.exact[order] - printed[:, 0]).max(), ".1g"),
        "smaller": int((ratio < 1).sum()),
        "ratio": span(ratio, ".2f"),
        "ratio_paper": span(printed[:, 4] / printed[:, 2], ".2f"),
        "off": span([off.max()]),
        "noisy_off": span([noisy_off.max()]),
        "runs": found.runs,
        "samples": found.samples,
        "cond_f": found.cond_f,
        "to_paper": span(to_paper.ravel(), ".2f"),
        "left": (shown.measured - shown.reconstructed).std(axis=0),
        **{f"cond_f_{name}": (*case.cond_f, np.median(case.errors[1] / case.errors[0])) for name, case in cases.items()},
        "unseen": [setup.names[k] for k in base.zero],
        "table_2": markdown(heads, lines),
        "picture": picture(panels, ("time [s]", "torque [N·m]"), pictures, "szabo_fig3"),
    }


if __name__ == "__main__":
    show("szabo_2021", figures())
