"""Tables II and III of Gautier and Venture, "Identification of standard dynamic parameters of robots with positive
definite inertia matrix", IROS 2013: the Stäubli TX40 simulated, identified, and printed beside the paper.

Run: ``python scripts/papers/d_tx40.py`` (some seconds)

The simulated robot is the one that the paper identified (Table II, essential parameters); the prior is Table II's first
column, with the impossible bodies repaired as in the bundled URDF. It moves in a closed loop through 11 points with
trapezoidal acceleration, and only its motors are logged: positions in counts, currents with noise. Motor 6 turns with
q5 + q6: gears and coupling are one matrix. The paper's points, speeds and noise are not printed: ours are below.

Essential are the parameters that are left when all relative standard errors are at most 6 % (``estimation.essential``).
The standard parameters are: the closest to CAD with base parameters moved alone (``consistency.method`` frozen) or all
(minimum_norm, the paper's equation 30), those of the essential parameters, the LMI, and what the paper prints as base
parameters (``regrouped``: text/gautier_2013.md says why).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from paper_page import show, span, table

from urdf_ident import BaseParameters, Drive, DynamicModel, Limits, Recording, Robot
from urdf_ident.consistency.repair import TABLE_TOLERANCES, check_consistency
from urdf_ident.consistency.standard import consistent_parameters, essential_to_prior, nearest_to_prior
from urdf_ident.estimation.uncertainty.essential import essential_parameters
from urdf_ident.friction import Coulomb, Offset, Viscous
from urdf_ident.linalg import Array
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.inertia import BODY_PARAMETERS
from urdf_ident.model.prior import USUAL_WEIGHT, Prior, inertial_prior, with_joint_terms
from urdf_ident.motion.trajectory import trapezoidal
from urdf_ident.result.scores import predict, score
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_log, prepare_logs
from urdf_ident.simulation.plant import RigidPlant
from urdf_ident.simulation.settings import ControllerSection
from urdf_ident.simulation.simulate import SimulatedLog, simulate
from urdf_ident.simulation.truth import FrictionTruth
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.statistic import StatisticSet

POINTS, FILL, SPEED, ACCELERATION = 11, 0.9, 0.8, 60.0  # part of the range, part of the top speed, [rad/s²]
BANDWIDTH = 40.0  # of the position loops [Hz]
RATE, COUNTS = 1000.0, 65536  # [Hz], per motor revolution
CURRENT_GAIN = 0.2  # [N·m/A] at the motor
NOISE = 0.05  # of the motor torque's root mean square
LAWS = ["viscous", "coulomb", "offset"]
LIMIT = 6.0  # of the relative standard errors of essential parameters [%]
#: At every point all joints stop, and stiction holds them with whatever torque: that tells nothing and is left out.
SIGNALS = SignalConfig(cutoff=40.0, rest_speed=0.06, rest_time=0.01, shortest=0.1)

#: Table II: CAD (friction and Ia: first identification), base parameters, essential parameters. SI units.
TABLE_II: dict[str, tuple[float, float, float]] = {
    row["parameter"]: (float(row["cad"]), float(row["base"]), float(row["essential"]))
    for row in csv.DictReader((Path(__file__).with_name("gautier_table_2.csv")).read_text().splitlines())
}
#: Table III as printed: links that pass at each tolerance.
PRINTED_III = {"base": (2, 3, 5, 6), "essential": (6, 6, 6, 6)}
#: Parameter of the table → the package's symbol; links have the table's number.
INERTIAL = dict(zip(["M", "MX", "MY", "MZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ"], BODY_PARAMETERS, strict=True))
#: Link parameters that Table II keeps at CAD and adds to others: taken last, so that they are the dependent ones.
REGROUPED = tuple(f"{symbol}_link_{j}" for symbol in ("Iyy", "mz", "m") for j in range(1, 7)) + ("Ia_joint_1", "Ia_joint_2")


def paper_values(model: DynamicModel, theta: Array) -> dict[str, float]:
    """Our parameters as Table II lists them: everything after the gear, coupled friction counted as the paper does."""
    at, A = dict(zip(model.names, theta, strict=True)), model.drive.reduction
    found = {f"{mine}{j}": at[f"{ours}_link_{j}"] for mine, ours in INERTIAL.items() for j in range(1, 7)}
    for j in range(1, 7):
        found |= {f"Fv{j}": at[f"Fv_joint_{j}"], f"Fs{j}": at[f"Fc_joint_{j}"], f"off{j}": at[f"offset_joint_{j}"]}
    found |= {f"Ia{j}": at[f"Ia_joint_{j}"] for j in range(1, 5)}
    found["Ia6"] = A[5, 5] ** 2 * at["Iam_joint_6"]
    found["Ia5"] = A[4, 4] ** 2 * at["Iam_joint_5"] + A[5, 4] ** 2 * at["Iam_joint_6"]
    found |= {"Fvm6": A[5, 5] ** 2 * at["Fvm_joint_6"], "Fsm6": A[5, 5] * at["Fcm_joint_6"]}
    found |= {f"Fv{j}": found[f"Fv{j}"] + found["Fvm6"] for j in (5, 6)}
    return {name: found[name] for name in TABLE_II}


def table_column(model: DynamicModel, column: int) -> Array:
    """Inverse of :func:`paper_values`: a column of Table II (0: CAD, 1: base, 2: essential) as our parameters, shape (86,).

    What the table lacks (M2, link 1 but ZZ1) is the bundled robot's.
    """
    listed = {name: values[column] for name, values in TABLE_II.items()}
    at, A = dict(zip(model.names, inertial_prior(model.robot).theta0, strict=False)), model.drive.reduction
    for mine, ours in INERTIAL.items():
        for j in range(1, 7):
            at[f"{ours}_link_{j}"] = listed.get(f"{mine}{j}", at[f"{ours}_link_{j}"])
    for j in range(1, 7):
        at |= {f"Fv_joint_{j}": listed[f"Fv{j}"], f"Fc_joint_{j}": listed[f"Fs{j}"], f"offset_joint_{j}": listed[f"off{j}"]}
    at |= {f"Ia_joint_{j}": listed[f"Ia{j}"] for j in range(1, 5)}
    at["Iam_joint_6"] = listed["Ia6"] / A[5, 5] ** 2
    at["Iam_joint_5"] = (listed["Ia5"] - A[5, 4] ** 2 * at["Iam_joint_6"]) / A[4, 4] ** 2
    at |= {"Fvm_joint_6": listed["Fvm6"] / A[5, 5] ** 2, "Fcm_joint_6": listed["Fsm6"] / A[5, 5]}
    for j in (5, 6):
        at[f"Fv_joint_{j}"] -= listed["Fvm6"]
    return np.array([at[name] for name in model.names])


def papers_robot(model: DynamicModel) -> RigidPlant:
    """The robot of Table II's last column as a plant, with friction that really sticks."""
    theta = table_column(model, 2)
    at, A = dict(zip(model.names, theta, strict=True)), model.drive.reduction
    motor = np.array([0, 0, 0, 0, at["Iam_joint_5"], at["Iam_joint_6"]])
    rotor = A.T @ np.diag(motor) @ A + np.diag([*(at[f"Ia_joint_{j}"] for j in range(1, 5)), 0, 0])
    viscous, coulomb, offset = ([at[f"{symbol}_joint_{j}"] for j in range(1, 7)] for symbol in ("Fv", "Fc", "offset"))
    last = np.eye(6)[5]
    friction = FrictionTruth(
        6,
        (Viscous.of(viscous), Coulomb.of(coulomb), Offset.of(offset)),
        (Viscous.of(last * at["Fvm_joint_6"]), Coulomb.of(last * at["Fcm_joint_6"])),
        A,
    )
    return RigidPlant.create(model.robot, theta=theta[:60], rotor_inertia=rotor, friction=friction)


def drive_through(plant: RigidPlant, name: str, seed: int) -> SimulatedLog:
    """A closed-loop run through random points."""
    limits = Limits.from_robot(plant.robot)
    random = np.random.default_rng(seed).uniform(-1.0, 1.0, (POINTS, len(limits.joints)))
    points = limits.middle + FILL * limits.half_range * random
    rates = SPEED * limits.velocity, np.full(6, ACCELERATION), np.full(6, 10 * ACCELERATION)
    path = trapezoidal(plant.robot.joints, points, *rates)
    controller = ControllerSection(bandwidth=BANDWIDTH).build(plant.robot, np.diag(plant.rotor))
    return simulate(plant, controller, path, rate=RATE, name=name)


def motor_log(log: SimulatedLog, drive: Drive, seed: int) -> Recording:
    """What the controller of the real robot would log: motor counts, and motor currents with noise."""
    step, rng = 2 * np.pi / COUNTS, np.random.default_rng(seed)
    position = np.rint((log.truth.q - drive.offset) @ drive.reduction.T / step) * step
    torque = np.linalg.solve(drive.reduction.T, log.truth.tau.T).T
    torque = torque + NOISE * np.sqrt(np.mean(torque**2, axis=0)) * rng.standard_normal(torque.shape)
    return Recording(
        log.truth.log,
        log.recording.joints,
        log.truth.time,
        position,
        effort=torque / drive.gain,
        effort_unit="A",
        position_side="motor",
        effort_side="motor",
    )


def coupled_model(robot: Robot, drive: Drive) -> DynamicModel:
    """14 parameters a joint and the coupled motor's own friction: 86 columns."""
    return DynamicModel(robot, drive=drive, friction=LAWS, motor_friction={"joint_6": ["viscous", "coulomb"]})


@dataclass(frozen=True)
class Case:
    """The TX40: its drive, our model, the simulated robot, base parameters in the paper's choice, and the prior."""

    robot: Robot
    drive: Drive
    model: DynamicModel
    plant: RigidPlant
    base: BaseParameters
    prior: Prior

    @classmethod
    def build(cls) -> Case:
        """Prior: Table II's first column, repaired."""
        robot = Robot.from_urdf(robot_path("tx40"))
        reduction = np.array(yaml.safe_load(truth_path("tx40").read_text(encoding="utf-8"))["reduction"], dtype=float)
        drive = Drive.build(6, reduction=reduction, gain=CURRENT_GAIN)
        model = coupled_model(robot, drive)
        base = model.base(order=[*(name for name in model.names if name not in REGROUPED), *REGROUPED])
        prior = with_joint_terms(inertial_prior(robot), model.parameters, table_column(model, 0)[60:])
        return cls(robot, drive, model, papers_robot(model), base, prior)

    def log(self, name: str, seed: int) -> Recording:
        """What the motors show of one run; the noise differs between fit and test."""
        return motor_log(drive_through(self.plant, name, seed), self.drive, seed + 10)


@dataclass(frozen=True)
class Run:
    """One run: logs, their factors, WLS, which base parameters are essential, and standard parameters by name."""

    logs: list[PreparedLog]
    statistics: StatisticSet
    fit: Fit
    keep: Array
    thetas: dict[str, Array]


def run(case: Case, seed: int) -> Run:
    """Simulates points and noise of a seed, and identifies by WLS the standard parameters of Table II."""
    logs = prepare_logs([case.log("fit", seed)], case.robot, case.drive, SIGNALS)
    statistics = build_statistics(case.model, logs)
    fit = fit_base(statistics, case.base)
    keep = essential_parameters(statistics, case.base, fit, rule="relative_std", limit=LIMIT).rows(case.base)
    reduced = statistics.stacked(fit.weights, case.base.independent)
    regrouped = case.prior.theta0.copy()
    regrouped[case.base.independent] = fit.params
    thetas = {
        "CAD": case.prior.theta0,
        "base": nearest_to_prior("frozen", fit, case.prior).theta,
        "regrouped": regrouped,
        "essential": essential_to_prior(reduced, case.base, case.prior.theta0, keep).theta,
        "minimum norm": nearest_to_prior("minimum_norm", fit, case.prior, "plain").theta,
        "LMI": consistent_parameters(statistics, fit, case.prior, case.model.parameters, weight=USUAL_WEIGHT).theta,
    }
    kept = np.zeros(len(case.base), dtype=bool)
    kept[keep] = True
    return Run(logs, statistics, fit, kept, thetas)


def held_out(case: Case, found: Run, seed: int) -> dict[str, tuple[Array, float]]:
    """‖error‖/‖torque‖ per joint and over all joints on another trajectory, filtered as the rows of the fit.

    The last model leaves the coupling out: its motors each turn one joint (the logs are decoded correctly all the same).
    """
    log = prepare_log(case.log("test", seed + 1), case.robot, case.drive, SIGNALS)

    def errors(model: DynamicModel, theta: Array) -> tuple[Array, float]:
        scores = score(log, predict(model, theta, log), log.conditioned.row_cutoff)
        return np.array([joint["relative"] for joint in scores.per_joint]), float(scores.relative or 0.0)

    diagonal = np.diag(np.diag(case.drive.reduction))
    drive = Drive.build(6, reduction=diagonal, gain=case.drive.gain, gain_origin=case.drive.gain_origin)
    alone = DynamicModel(case.robot, drive=drive, friction=LAWS)
    fit = fit_base(build_statistics(alone, found.logs), alone.base())
    out = {name: errors(case.model, theta) for name, theta in found.thetas.items() if name != "regrouped"}
    return {**out, "base, coupling left out": errors(alone, alone.base().embedded(fit.params))}


def separate_rotor(case: Case) -> tuple[int, int]:
    """Columns and base parameters when the coupled motor has a rotor inertia of its own, beside six on the joints."""
    motor = {"joint_6": ["rotor_inertia", "viscous", "coulomb"]}
    terms = ["rotor_inertia", *LAWS]
    model = DynamicModel(case.robot, drive=case.drive, friction=terms, rotor_inertia=False, motor_friction=motor)
    return len(model.parameters), len(model.base())


def passing(theta: Array) -> list[int]:
    """Table III: links that pass the Cholesky test, at each of its tolerances."""
    return list(check_consistency(theta, [f"link {k}" for k in range(1, 7)]).passing)


def papers_essential() -> set[str]:
    """What the paper's essential column moves away from CAD."""
    return {name for name, (reference, _, moved) in TABLE_II.items() if moved != reference}


def distance(values: dict[str, float], reference: dict[str, float]) -> float:
    """Table II's footnote: norm of the difference over norm of the reference."""
    gap = np.array([values[name] - reference[name] for name in TABLE_II])
    return float(np.linalg.norm(gap) / np.linalg.norm([reference[name] for name in TABLE_II]))


def symbol_of(name: str) -> str:
    """Our parameter behind one of Table II."""
    kind, j = name.rstrip("123456"), name[-1]
    if kind in INERTIAL:
        return f"{INERTIAL[kind]}_link_{j}"
    if kind in ("Fvm", "Fsm"):
        return f"{'Fvm' if kind == 'Fvm' else 'Fcm'}_joint_{j}"
    if kind == "Ia" and j in "56":
        return f"Iam_joint_{j}"
    return f"{ {'Fs': 'Fc', 'off': 'offset'}.get(kind, kind) }_joint_{j}"


def figures(pictures: Path | None = None, seeds: Sequence[int] = (1, 2, 3)) -> dict[str, Any]:
    """The figures of the page."""
    case = Case.build()
    runs = [run(case, seed) for seed in seeds]
    first, prior = runs[0], paper_values(case.model, case.prior.theta0)
    sets = {name: paper_values(case.model, theta) for name, theta in first.thetas.items()}
    errors = held_out(case, first, seeds[0])
    printed = [{name: values[k] for name, values in TABLE_II.items()} for k in range(3)]
    moved = {symbol_of(name) for name in papers_essential()}
    kept = [{case.base.names[k] for k in case.base.independent[found.keep]} for found in runs]
    apart = {name: [distance(paper_values(case.model, x.thetas[name]), prior) for x in runs] for name in first.thetas}
    passed = {name: [passing(x.thetas[name]) for x in runs] for name in first.thetas}
    columns, rank = separate_rotor(case)
    counts = {name: [span(column) for column in zip(*some, strict=True)] for name, some in passed.items()}
    tests = [[f"{name}, here", *counts[name], span(apart[name])] for name in first.thetas]
    for k, (name, numbers) in enumerate(PRINTED_III.items(), 1):
        tests.append([f"{name}, paper", *map(str, numbers), distance(printed[k], printed[0])])
    rows = [
        (name, prior[name], base, sets["regrouped"][name], sets["base"][name], essential, sets["essential"][name])
        for name, (_, base, essential) in TABLE_II.items()
    ]
    scores = [(name, *(f"{100 * x:.1f}" for x in (*joints, whole))) for name, (joints, whole) in errors.items()]
    heads = ("parameter", "CAD", "base, paper", "regrouped, here", "closest, here", "essential, paper", "essential, here")
    return {
        "standard": len(case.model.parameters),
        "base": len(case.base),
        "columns": columns,
        "rank": rank,
        "essential": span(len(names) for names in kept),
        "shared": span(len(names & moved) for names in kept),
        "apart_essential": span(apart["essential"]),
        "apart_regrouped": span(apart["regrouped"]),
        **{f"gain_{key}": span(np.divide(apart[key], apart["essential"])) for key in ("base", "regrouped")},
        "pass_essential": counts["essential"][0],
        "pass_regrouped": counts["regrouped"][0],
        "pass_tolerant": counts["regrouped"][1:],
        "pass_printed": passing(table_column(case.model, 1)),
        "error_essential": 100 * errors["essential"][1],
        "error_alone": 100 * errors["base, coupling left out"][0][4:],
        "error_joints": 100 * errors["base"][0][4:],
        "seeds": len(seeds),
        "table_iii": table(["solution", *(f"ε = {eps:g}" for eps in TABLE_TOLERANCES), "distance from CAD"], tests),
        "errors": table(["solution", *(f"joint {j}" for j in range(1, 7)), "all"], scores),
        "table_ii": table(heads, rows),
    }


if __name__ == "__main__":
    show("gautier_2013", figures())
