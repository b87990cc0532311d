"""Table 2 of Szabó and Gincsainé, "Dynamic parameter identification method for robotic arms with static friction
modelling", Acta IMEKO 10(3), 2021: the paper's numbers and ours side by side.

Run: ``.venv/bin/python scripts/papers/a_table2.py [--runs 400] [--seed 2021]``

The three thin rods of the paper are simulated with its friction; torque is corrupted by white noise of 0.5, 0.3 and
0.7 N·m. Parameters are quoted in the paper's own Denavit-Hartenberg frames. Its trajectory is not printed (only drawn), so
that the optimum of its equation 21 is driven within limits of ours: variances differ from the paper's by what the motions
differ; their ratio, LS to WLS, is what can be compared. A second Monte Carlo has noise on the joint angles too.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import yaml

from urdf_ident.excitation.design import design_excitation
from urdf_ident.linalg import Array, triangle
from urdf_ident.model.base import BaseParameters, reduce_factor
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.inertia import transform_matrix
from urdf_ident.model.robot import Robot
from urdf_ident.model.structure import random_motion
from urdf_ident.motion.limits import Limits
from urdf_ident.motion.trajectory import Trajectory
from urdf_ident.samples import Segment
from urdf_ident.statistics.entries import Layout, Statistic
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.statistic import StatisticSet

#: The order in which the paper's row echelon form takes the columns of a link.
ORDER = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "m", "mx", "my", "mz")
SIGMA = np.array([0.5, 0.3, 0.7])  # [N·m], Fig. 2
PERIOD, RATE, HARMONICS = 10.0, 100.0, 5  # [s], [Hz]; ours
ACCELERATION, STARTS = 10.0, 1  # [rad/s²], ours; random starts of the search for the optimum of Szabó 2021, eq. 21
ANGLE_NOISE = 1e-3  # [rad], ours

#: Rows as printed: expression, exact value, mean and variance of LS, mean and variance of WLS. "m·s²" of the paper is
#: read as ½·m·s: the only reading with which dimensions and exact values agree.
PAPER: dict[str, tuple[dict[str, float], tuple[float, ...]]] = {
    "Ixx2 - Iyy2 - mx2/2": ({"Ixx2": 1, "Iyy2": -1, "mx2": -0.5}, (0.059, 0.059, 8.27e-4, 0.059, 6.25e-4)),
    "Ixx3 - Iyy3 - mx3/2": ({"Ixx3": 1, "Iyy3": -1, "mx3": -0.5}, (0.059, 0.057, 8.09e-4, 0.058, 6.18e-4)),
    "Ixy2": ({"Ixy2": 1}, (0.0, 0.002, 3.23e-4, 0.001, 2.27e-4)),
    "Ixy3": ({"Ixy3": 1}, (0.0, -0.000, 2.04e-4, -0.000, 1.47e-4)),
    "Iyy1 + Iyy2 + Iyy3 + mx2/2 + mx3/2": (
        {"Iyy1": 1, "Iyy2": 1, "Iyy3": 1, "mx2": 0.5, "mx3": 0.5},
        (-0.117, -0.115, 5.25e-4, -0.115, 4.30e-4),
    ),
    "Ixz2 - mz2/2 - mz3/2": ({"Ixz2": 1, "mz2": -0.5, "mz3": -0.5}, (0.0, 0.001, 2.06e-4, 0.000, 1.50e-4)),
    "Ixz3 - mz3/2": ({"Ixz3": 1, "mz3": -0.5}, (0.0, -0.001, 1.60e-4, -0.000, 1.14e-4)),
    "Iyz2": ({"Iyz2": 1}, (0.0, -0.001, 1.32e-4, -0.000, 1.06e-4)),
    "Iyz3": ({"Iyz3": 1}, (0.0, 0.001, 7.56e-5, 0.001, 5.49e-5)),
    "Izz2 + mx2/2": ({"Izz2": 1, "mx2": 0.5}, (-0.059, -0.060, 3.68e-4, -0.060, 2.68e-4)),
    "Izz3 + mx3/2": ({"Izz3": 1, "mx3": 0.5}, (-0.059, -0.057, 3.30e-4, -0.058, 2.21e-4)),
    "m2 + 2 mx2 - 2 mx3": ({"m2": 1, "mx2": 2, "mx3": -2}, (1.414, 1.415, 1.50e-4, 1.414, 6.01e-5)),
    "m3 + 2 mx3": ({"m3": 1, "mx3": 2}, (0.707, 0.706, 3.82e-5, 0.707, 1.42e-5)),
    "tau_s1": ({"tau_s1": 1}, (2.0, 1.998, 7.97e-4, 1.998, 7.80e-4)),
    "tau_s2": ({"tau_s2": 1}, (1.0, 0.999, 1.42e-4, 0.999, 1.41e-4)),
    "tau_s3": ({"tau_s3": 1}, (2.0, 1.998, 2.36e-3, 1.998, 2.34e-3)),
    "tau_v1": ({"tau_v1": 1}, (0.5, 0.505, 8.26e-3, 0.506, 7.89e-3)),
    "tau_v2": ({"tau_v2": 1}, (0.277, 0.243, 9.26e-4, 0.244, 8.08e-4)),
    "tau_v3": ({"tau_v3": 1}, (0.030, 0.034, 1.60e-2, 0.035, 1.54e-2)),
    "tau_sc1": ({"tau_sc1": 1}, (-0.3, -0.302, 1.45e-2, -0.303, 1.39e-2)),
    "tau_sc2": ({"tau_sc2": 1}, (-0.2, -0.176, 1.67e-3, -0.177, 1.65e-3)),
    "tau_sc3": ({"tau_sc3": 1}, (-0.3, -0.306, 3.56e-2, -0.307, 3.45e-2)),
    "my2": ({"my2": 1}, (0.0, 0.000, 3.82e-6, 0.000, 2.24e-6)),
    "my3": ({"my3": 1}, (0.0, 0.000, 4.67e-6, 0.000, 2.37e-6)),
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
        setup: What it is about.
        expressions: Coefficients of each base parameter by parameter name.
        exact: Exact values, shape (24,).
        variance: Analytic variance of LS and WLS, shape (2, 24).
        mean: Mean of LS and WLS over the runs, shape (2, 24).
        scatter: Variance over the runs, shape (2, 24).
        runs: Number of runs.
        samples: Samples per run.
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
    """The paper's frames (standard Denavit-Hartenberg: at the far end of each link) seen from Pinocchio's joint frames.

    Args:
        robot: The robot.
        dh: ``theta``, ``d``, ``a``, ``alpha`` of each joint, theta without q.
        q: Configuration, shape (n,) [rad]; the result must not depend on it.

    Returns:
        Rotation (3, 3) and translation (3,) [m] of each frame.
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
    """One run as in the paper's Fig. 3, shape (N, 3) each: time apart.

    Attributes:
        time: Shape (N,) [s].
        measured: Torque with noise [N·m].
        reconstructed: From the WLS estimate and the measured angles [N·m].
    """

    time: Array
    measured: Array
    reconstructed: Array


def measured_runs(setup: Setup, path: Trajectory, runs: int, seed: int) -> tuple[Array, Example]:
    """Estimates with noise on torques and on joint angles.

    Angles are taken as measured; velocity and acceleration are the derivatives of the Fourier series fitted to them.

    Args:
        setup: The robot.
        path: The motion.
        runs: Monte Carlo runs.
        seed: Of the noise.

    Returns:
        LS and WLS estimates, shape (runs, 2, 24), and the last run.
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
        moved = _statistics(setup, motion)
        found.append([fit_base(moved, setup.base, method=method).params for method in ("ols", "wls")])
    kept = np.zeros(len(setup.names))
    kept[setup.base.independent] = found[-1][1]
    again = setup.model.torque(setup.frames @ kept, motion.q, motion.v, motion.a)
    return np.array(found), Example(time, noisy, again)


def _statistics(setup: Setup, motion: Segment) -> StatisticSet:
    """Factors of a measured motion, columns in the paper's frames."""
    layouts, entries = [], []
    (_, blocks), *_ = setup.model.row_blocks(motion, chunk=len(motion))
    for j, (group, block) in enumerate(zip(setup.model.groups, blocks, strict=True)):
        rows = triangle(np.column_stack([block @ setup.frames[group.columns], motion.tau[:, j]]))  # type: ignore[index]
        layouts.append(Layout(group.name, j, np.arange(len(setup.names))))
        entries.append(Statistic("run", 0, group.name, rows, len(motion)))
    return StatisticSet(setup.names, tuple(layouts), tuple(entries), "table 2")


def table(runs: int = 400, seed: int = 2021, noisy_runs: int = 100) -> Table:
    """Makes our side of the table.

    Args:
        runs: Monte Carlo runs with noise on the torques.
        seed: Of trajectory and noise.
        noisy_runs: Monte Carlo runs with noise on the angles too.

    Returns:
        The table.
    """
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
    layouts, entries = [], []
    for j, (factor, Lj) in enumerate(zip(factors, L, strict=True)):
        white = SIGMA[j] * rng.standard_normal(samples)  # an orthogonal change of coordinates leaves it white
        tau = Lj @ exact + white[: len(Lj)]
        rows = np.vstack([np.column_stack([factor, tau]), np.append(np.zeros(p), np.linalg.norm(white[len(Lj) :]))])
        group = f"joint:{j + 1}"
        layouts.append(Layout(group, j, np.arange(p)))
        entries.append(Statistic("run", 0, group, rows, samples))
    statistics = StatisticSet(setup.names, tuple(layouts), tuple(entries), "table 2")
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


def report(found: Table) -> str:
    """The paper's table and ours, as text."""
    setup, base = found.setup, found.setup.base
    lines = [
        __doc__.split("\n\n")[0].replace("\n", " "),
        "",
        f"{len(base)} base parameters: {int(np.sum(base.independent < 30))} inertial + "
        f"{int(np.sum(base.independent >= 30))} friction (paper: 24). {found.samples} samples a run, {found.runs} runs, "
        f"sigma = {SIGMA.tolist()} N·m, CondF = {found.cond_f:.3g}.",
        "mu: mean of the runs; s²: analytic variance (ours; the runs' own scatter agrees, last column: largest of "
        "|mean - exact| in standard errors of LS and WLS)",
        "",
        f"{'symbolic expression':<36}{'exact value':^18}{'LS mu':^16}{'LS s²':^20}{'WLS mu':^16}{'WLS s²':^20}{'off':>6}",
        f"{'':<36}{'paper':>9}{'ours':>9}" + f"{'paper':>8}{'ours':>8}{'paper':>10}{'ours':>10}" * 2 + f"{'':>6}",
    ]
    error = np.abs(found.mean - found.exact) / np.sqrt(found.variance / found.runs)
    matched = [match(found, expression) for expression, _ in PAPER.values()]
    for (label, (_, paper)), row in zip(PAPER.items(), matched, strict=True):
        exact, ls, ls_variance, wls, wls_variance = paper
        lines.append(
            f"{label:<36}{exact:>9.3f}{round(found.exact[row], 9) + 0.0:>9.4f}"
            f"{ls:>8.3f}{found.mean[0, row]:>8.3f}{ls_variance:>10.2e}{found.variance[0, row]:>10.2e}"
            f"{wls:>8.3f}{found.mean[1, row]:>8.3f}{wls_variance:>10.2e}{found.variance[1, row]:>10.2e}"
            f"{error[:, row].max():>6.1f}"
        )
    better = int((found.variance[1] < found.variance[0]).sum())
    gain, printed = found.variance[1] / found.variance[0], [paper[4] / paper[2] for _, paper in PAPER.values()]
    lines += [
        "",
        f"WLS has the smaller variance in {better} of {len(base)} (paper: {sum(r < 1 for r in printed)} of 24); "
        f"variance ratio WLS/LS: {gain.min():.2f} to {gain.max():.2f} (paper: {min(printed):.2f} to {max(printed):.2f})",
        *_noisy_lines(found),
        "All symbolic expressions are the paper's; exact values agree to the digits printed "
        "(-0.1178 is printed as -0.117, 0.0589 as 0.059).",
        f"Not seen: {', '.join(setup.names[k] for k in base.zero)}.",
    ]
    return "\n".join(lines)


def _noisy_lines(found: Table) -> list[str]:
    """What noise on the angles changes."""
    scatter, error = found.noisy.var(axis=0, ddof=1), found.noisy.mean(axis=0) - found.exact
    ratio, off = scatter[1] / scatter[0], np.abs(error) / np.sqrt(scatter / len(found.noisy))
    left = found.example.measured - found.example.reconstructed
    size = ", ".join(f"{x:.3f}" for x in left.std(axis=0))
    return [
        f"With noise of {1e3 * ANGLE_NOISE:g} mrad on the angles too ({len(found.noisy)} runs): scatter WLS/LS "
        f"{ratio.min():.2f} to {ratio.max():.2f}, larger than with exact angles by a factor of "
        f"{np.median(scatter[1] / found.variance[1]):.2f} in the median; largest mean error {off.max():.1f} standard errors",
        f"Residual torque of one run (Fig. 3): {size} N·m (noise of the torques {SIGMA.tolist()})",
    ]


def match(found: Table, expression: dict[str, float]) -> int:
    """Index of the base parameter that has a given expression.

    Args:
        found: The table.
        expression: Parameter name → coefficient.

    Returns:
        The index.

    Raises:
        ValueError: No base parameter has this expression.
    """
    for row, own in enumerate(found.expressions):
        if set(own) == set(expression) and all(abs(own[name] - expression[name]) < 1e-9 for name in own):
            return row
    raise ValueError(f"no base parameter is {expression}")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="Monte Carlo runs")
    parser.add_argument("--seed", type=int, default=2021, help="of trajectory and noise")
    options = parser.parse_args()
    print(report(table(options.runs, options.seed)))


if __name__ == "__main__":
    main()
