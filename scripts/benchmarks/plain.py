"""A plain least-squares script beside the defaults: what the package must not lose to.

    python scripts/benchmarks/plain.py real DATA [--sets xmate psm ...]      (DATA: the folder of real logs)
    python scripts/benchmarks/plain.py logs ROBOT.urdf LOG... [-c PROJECT.yaml] [--first SECONDS]
    python scripts/benchmarks/plain.py arms [--arms 40] [--first 0] [--kinds rich,few,bare,foreign]

The script knows Pinocchio's regressor, viscous and Coulomb friction, an offset and a rotor inertia for each joint. The low-pass
of the positions and the ridge are chosen by cross-validation, over logs, or over parts of a single log. It takes nothing from
the package but recordings as read (torques after the torque constants that the defaults found).

Per set: mean joint RMSE [N·m or N] on held-out motion, both torques behind one low-pass (10 Hz, or 0.4 times the rate), RMS
over logs: the URDF, the same with friction, plain, default, and default over the better one of the two simple models. Of
several ``logs`` each is left out once; of one, the first 60 % teach and the rest judges; with ``--first`` each log's first
seconds of motion teach and all others judge. On arms
(`arms.py`), relative to the torque, without noise of the test motion; more kinds of logs there: ``bare`` (rich, of a URDF
without inertials) and ``foreign`` (rich, the effort of one joint is that of another machine; that joint does not count).
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
from arms import EVERY, Motion, arm, bounded_baseline, relative, training, wander
from scipy.signal import butter, sosfiltfilt

from urdf_ident import DynamicModel, Recording, Robot, UrdfIdentError, expand_logs, identify, read_recording
from urdf_ident.linalg import Array, rms
from urdf_ident.project import Project, load_project, parse_project

CUTOFFS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0)  # [Hz]
RIDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # share of the scaled normal equations' trace
PARTS, BAND, REST = 5, 10.0, 0.02  # folds of one log, low-pass of torques [Hz], speed at rest [rad/s, m/s]


def smooth(x: Array, rate: float, cutoff: float) -> Array:
    """Zero-phase Butterworth low-pass of order four along the samples."""
    if cutoff >= 0.5 * rate:
        return x
    flat = x.reshape(len(x), -1)
    pad = min(len(flat) - 1, round(3 * rate / cutoff))
    return np.asarray(sosfiltfilt(butter(4, 2 * cutoff / rate, output="sos"), flat, axis=0, padlen=pad)).reshape(x.shape)


@dataclass(frozen=True, eq=False)
class Rows:
    """Low-passed regressor (N, n, p) and torque (N, n) of one log or part."""

    W: Array
    tau: Array


class Plain:
    """The plain estimator of one robot."""

    def __init__(self, model: pin.Model) -> None:
        self.model = model
        self.n = model.nv

    def columns(self, q: Array, v: Array, a: Array) -> Array:
        """Columns of all parameters, shape (N, n, p)."""
        data = self.model.createData()
        bodies = [pin.computeJointTorqueRegressor(self.model, data, *row).copy() for row in zip(q, v, a, strict=True)]
        eye = np.eye(self.n)
        own = [eye * x[:, None, :] for x in (v, np.tanh(v / 0.01), np.ones_like(v), a)]
        return np.concatenate([np.array(bodies), *own], axis=2)

    def rows(self, log: Recording, cutoff: float) -> Rows:
        """Rows of one log, from its first to its last motion, thinned to a few times the band."""
        rate = 1.0 / float(np.median(np.diff(log.time)))
        grid = np.arange(log.time[0], log.time[-1], 1.0 / rate)
        q, tau = (np.column_stack([np.interp(grid, log.time, x) for x in np.asarray(y).T]) for y in (log.position, log.effort))
        band, every = min(BAND, 0.4 * rate), max(1, int(rate / (5 * BAND)))
        q = smooth(q, rate, cutoff)
        v = np.gradient(q, 1 / rate, axis=0)
        a = np.gradient(v, 1 / rate, axis=0)
        moving = np.flatnonzero((np.abs(v) > REST).any(axis=1))
        some = slice(int(moving[0]), int(moving[-1]) + 1, every)
        W = smooth(self.columns(q[some], v[some], a[some]), rate / every, band)
        return Rows(W, smooth(tau, rate, band)[some])

    def fit(self, logs: Sequence[Recording]) -> Callable[[Recording], tuple[Array, Array]]:
        """Chooses cut-off and ridge; returns a function of a log: measured and predicted torque, shape (N, n) each."""
        best: tuple[float, float, float, list[Rows]] | None = None
        rate = 1.0 / float(np.median(np.diff(logs[0].time)))
        for cutoff in (cutoff for cutoff in CUTOFFS if cutoff <= 0.4 * rate):
            rows = [self.rows(log, cutoff) for log in logs]
            folds = rows if len(rows) > 1 else _parts(rows[0])
            for ridge in RIDGES:
                errors = []
                for k, fold in enumerate(folds):
                    theta = solve([other for i, other in enumerate(folds) if i != k], ridge)
                    errors.append(rms(fold.tau - fold.W @ theta, 0))
                error = float(np.mean(rms(np.array(errors), 0)))
                if best is None or error < best[0]:
                    best = error, cutoff, ridge, rows
        assert best is not None
        _, self.cutoff, self.ridge, rows = best
        self.theta = solve(rows, self.ridge)

        def predict(log: Recording) -> tuple[Array, Array]:
            made = self.rows(log, self.cutoff)
            return made.tau, made.W @ self.theta

        return predict


def _parts(rows: Rows) -> list[Rows]:
    """A single log in parts, with a second between them left out."""
    edges, guard = np.linspace(0, len(rows.tau), PARTS + 1).astype(int), 25
    return [Rows(rows.W[b + guard : e - guard], rows.tau[b + guard : e - guard]) for b, e in pairwise(edges)]


def solve(rows: Sequence[Rows], ridge: float) -> Array:
    """Ridge regression with joints weighted by their torque and scaled columns."""
    tau = np.concatenate([own.tau for own in rows])
    weight = 1.0 / np.maximum(tau.std(axis=0), 1e-9)
    W = (np.concatenate([own.W for own in rows]) * weight[:, None]).reshape(-1, rows[0].W.shape[2])
    y, scale = (tau * weight).ravel(), np.maximum(np.linalg.norm(W, axis=0), 1e-12)
    values, vectors = np.linalg.eigh((W / scale).T @ (W / scale))
    kept = values > 1e-12 * values[-1]
    turned = vectors.T @ ((W / scale).T @ y)
    return np.asarray(vectors[:, kept] @ (turned[kept] / (values[kept] + ridge * values.sum())) / scale)


@dataclass(frozen=True, eq=False)
class LogSet:
    """Logs to learn from, and logs to judge on."""

    name: str
    project: Project
    robot: Robot
    learn: list[Recording]
    judge: list[Recording]


def part(log: Recording, some: Array, name: str = "") -> Recording:
    """Some rows of a log, which count as a log of their own."""
    return replace(log.take(some), name=name or log.name, sha256="")


def sixty_forty(project: Project, robot: Robot, log: Recording) -> LogSet:
    """The first 60 % of a log, and the rest."""
    early = log.time < log.time[0] + 0.6 * (log.time[-1] - log.time[0])
    return LogSet(f"{log.name} 60/40", project, robot, [part(log, early)], [part(log, ~early, "rest")])


def left_out_once(project: Project, robot: Robot, logs: list[Recording], first: float | None = None) -> Iterator[LogSet]:
    """Every log judges what the others teach; with ``first``, its first seconds of motion teach, and the others judge [s]."""
    for k, log in enumerate(logs):
        others = logs[:k] + logs[k + 1 :]
        if first is None:
            yield LogSet(f"all but {log.name}", project, robot, others, [log])
            continue
        moving = np.abs(np.gradient(log.position, log.time, axis=0)).max(axis=1) > 0.05
        window = max(1, round(1.0 / np.median(np.diff(log.time))))  # a motion lasts a second: a jog before it does not count
        share = np.convolve(moving, np.ones(window) / window)[window - 1 :]
        end = log.time[int(np.argmax(share > 0.95))] + first
        yield LogSet(f"{first:g} s of {log.name}", project, robot, [part(log, log.time < end)], others)


def own_logs(urdf: Path, logs: Sequence[str], config: Path | None, first: float | None) -> Iterator[LogSet]:
    """The sets of a user's logs."""
    project, folder = load_project(config)
    robot = project.build_robot(urdf, folder)
    recordings = [read_recording(source, robot, project.log) for source in expand_logs(logs, project.log)]
    if len(recordings) == 1:
        return iter([sixty_forty(project, robot, recordings[0])])
    return left_out_once(project, robot, recordings, first)


def real_sets(data: Path, wanted: Sequence[str]) -> Iterator[LogSet]:
    """The sets of the shared real logs."""

    def opened(folder: str, files: Sequence[str], urdf: str = "robot.urdf", **settings: object) -> tuple:
        project = parse_project(settings)
        robot = project.build_robot(data / folder / urdf)
        return project, robot, [read_recording(data / folder / file, robot, project.log) for file in files]

    fingers = {"robot": {"lock": {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}}}
    if "xmate" in wanted:
        project, robot, logs = opened("xmate", [f"log{k}.csv" for k in (1, 2, 3)])
        for learn, judge in ((0, 2), (1, 2), (2, 0)):
            yield LogSet(f"xmate {learn + 1} to {judge + 1}", project, robot, [logs[learn]], [logs[judge]])
    if "psm" in wanted:
        project, robot, logs = opened("psm", [f"log{k}.csv" for k in range(1, 7)])
        yield LogSet("psm 1-3 to 4-6", project, robot, logs[:3], logs[3:])
    if "panda_30hz" in wanted:
        project, robot, logs = opened("panda_30hz", ["train.csv", "test.csv"], **fingers)
        learn, judge = (replace(log, effort=-np.asarray(log.effort)) for log in logs)
        yield LogSet("panda 30 Hz, signs put right", project, robot, [learn], [judge])
    if "panda" in wanted:
        project, robot, (log,) = opened("panda", ["panda_exciting.csv"], "panda.urdf", **fingers)
        yield sixty_forty(project, robot, log)
    if {"ur10e", "ur10e_8s"} & set(wanted):
        places = {"time": 0, "position": [*range(1, 7)], "velocity": [*range(7, 13)], "effort": [*range(13, 19)]}
        places |= {"effort_target": [*range(19, 25)], "torque_target": [*range(25, 31)]}
        files = sorted(path.name for path in (data / "ur10e").glob("*.csv"))
        layout = {"columns": places, "units": {"effort": "A"}}
        ur10e = opened("ur10e", files, "ur10e.urdf", log=layout)
        if "ur10e" in wanted:
            yield from left_out_once(*ur10e)
        if "ur10e_8s" in wanted:
            yield from left_out_once(*ur10e, first=8.0)


def real(sets: Iterable[LogSet]) -> None:
    """Prints one line for each set."""
    print(f"{'set':40} {'URDF':>7} {'+fric.':>7} {'plain':>7} {'default':>7} {'ratio':>6}  {'plain':>14} {'CPU [s]':>8}")
    ratios = []
    for one in sets:
        start, robot = time.process_time(), one.robot
        ident = identify(one.project.build_model(robot), one.learn, held_out=one.judge, project=one.project)
        seconds = time.process_time() - start
        per_joint = {
            key: rms(np.array([[joint[f"{key}rmse"] for joint in entry["per_joint"]] for entry in ident.validation]), 0)
            for key in ("", "urdf_", "urdf_friction_")
        }
        plain = Plain(robot.model)
        gain = ident.model.drive.gain
        learn, judge = (
            [
                log if gain is None else replace(log, effort=np.asarray(log.effort) * gain)
                for log in (log.ordered(robot) for log in logs)
            ]
            for logs in (one.learn, one.judge)
        )
        predict = plain.fit(learn)
        errors = rms(np.array([rms(np.subtract(*predict(log)), 0) for log in judge]), 0)
        default, urdf, friction = (float(value.mean()) for value in per_joint.values())
        ratios.append(default / min(float(errors.mean()), friction))
        print(
            f"{one.name:40} {urdf:7.3f} {friction:7.3f} {errors.mean():7.3f} {default:7.3f} {ratios[-1]:6.3f}  "
            f"{plain.cutoff:4.1f} Hz, {plain.ridge:5.0e} {seconds:8.1f}",
            flush=True,
        )
    print(f"default over the better simple model: median {np.median(ratios):.3f}, worst {max(ratios):.3f}")


def one_arm(seed: int, kind: str) -> dict[str, float | str]:
    """Relative errors of one arm with one kind of log."""
    one = arm(seed)
    usual = kind if kind in EVERY else "rich"
    rng = np.random.default_rng([11, seed, EVERY.index(usual)])
    logs = training(one, usual, rng)
    test = wander(one, rng, 12.0, 2.0 * (0.4 if kind == "repeats" else 1.0))
    judge, robot, counted = one.log("test", test, rng), one.robot, np.ones(one.n, dtype=bool)
    if kind == "bare":
        robot = Robot.from_urdf(re.sub(r"<inertial>.*?</inertial>", "", robot.urdf, flags=re.DOTALL))
    if kind == "foreign":
        counted[int(rng.integers(one.n))] = False
        made = [np.array(log.effort) for log in logs]
        for log, effort in zip(logs, made, strict=True):
            size = effort[:, ~counted].std()
            effort[:, ~counted] = 2 * size * (1 + np.sin(2 * np.pi * 0.13 * log.time + seed))[:, None]
        logs = [replace(log, effort=effort) for log, effort in zip(logs, made, strict=True)]
    row: dict[str, float | str] = {"seed": seed, "family": one.family, "kind": kind}
    try:
        ident = identify(DynamicModel(robot, friction="auto", drive=one.drive), logs, force=True)
    except UrdfIdentError as error:
        return {**row, "refused": str(error)[:80]}
    plain = Plain(one.robot.model)
    plain.fit(logs)

    def error(predicted: Array) -> float:
        own = np.where(counted, predicted, np.asarray(judge.effort))
        return relative(one, judge, own) * one.n / counted.sum()

    row["level"] = ident.verdict.level
    row["why"] = ",".join(reason.id for reason in ident.verdict.judgements if reason.level != "good") or "-"
    row["default"] = error(ident.torque(test.q, test.v, test.a))
    row["plain"] = error(plain.columns(test.q, test.v, test.a) @ plain.theta)
    row["friction"] = error(bounded_baseline(one, logs, Motion(test.t, test.q, test.v, test.a)))
    row["ratio"] = float(row["default"]) / min(float(row["plain"]), float(row["friction"]))
    return row


def simulated(first: int, arms: int, kinds: Sequence[str]) -> None:
    """Prints one line for each arm and kind of log."""
    rows = []
    for seed in range(first, first + arms):
        for kind in kinds:
            rows.append(one_arm(seed, kind))
            print(" ".join(f"{k}={v:.3f}" if isinstance(v, float) else f"{k}={v}" for k, v in rows[-1].items()), flush=True)
    for kind in (*kinds, "all"):
        ratios = [float(row["ratio"]) for row in rows if "ratio" in row and kind in (row["kind"], "all")]
        if ratios:
            print(f"{kind}: default over the better simple model: median {np.median(ratios):.3f}, worst {max(ratios):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    logs = commands.add_parser("real")
    logs.add_argument("data", type=Path)
    logs.add_argument("--sets", nargs="+", default=["xmate", "psm", "panda_30hz", "panda", "ur10e", "ur10e_8s"])
    own = commands.add_parser("logs")
    own.add_argument("urdf", type=Path)
    own.add_argument("logs", nargs="+")
    own.add_argument("-c", "--config", type=Path)
    own.add_argument("--first", type=float)
    arms = commands.add_parser("arms")
    arms.add_argument("--arms", type=int, default=40)
    arms.add_argument("--first", type=int, default=0, help="seed of the first arm")
    arms.add_argument("--kinds", default="rich,few,bare,foreign")
    arguments = parser.parse_args()
    if arguments.command == "real":
        real(real_sets(arguments.data, arguments.sets))
    elif arguments.command == "logs":
        real(own_logs(arguments.urdf, arguments.logs, arguments.config, arguments.first))
    else:
        simulated(arguments.first, arguments.arms, arguments.kinds.split(","))


if __name__ == "__main__":
    main()
