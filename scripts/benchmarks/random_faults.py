"""Random faults of kinds that no check is written for: is a model that they spoil ever called good?

    python scripts/benchmarks/random_faults.py [--faults 200] [--first 0] [--automatic] [--data ../shared/data] [-o ROWS.jsonl]
    python scripts/benchmarks/random_faults.py --clean 16    (findings of sound logs of so many arms, of many shapes)
    python scripts/benchmarks/random_faults.py --null 100    (share of so many sets drawn from the null model that is rejected)
    python scripts/benchmarks/random_faults.py --robots *.urdf    (arms of these URDFs alone, e. g. of example-robot-data)

Every fault is drawn by its seed: what it is, of which joints, how strong, in which part of which logs; every fourth is two
at once. The logs are of the simulated arms of ``arms.py`` (6 and 7 axes, SCARA, gantry, coupled wrist, a tool unknown to the
URDF, torque sensors, small arms with high friction) and, every tenth, three real ones of the UR10e. A model is identified as a
user would, and judged on a motion of clean logs against the model from the clean logs:

- harmful: more than 1.1 times its error, or nothing comes out; grave: more than 1.5 times;
- named, undecided, misdiagnosed, silent: as in ``faults.py``, of the harmful;
- good but grave: what must not happen. And of the clean logs: whether they are good.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from arms import SCORE, SIMPLE, arm, training, wander
from fault_kinds import KINDS, ODD, Draw, Setting
from faults import BENIGN, ur10e
from log_shapes import PUBLISHED, SHAPES, published, shaped
from setup_faults import SETUP_KINDS, URDF_KINDS

from urdf_ident import Drive, DynamicModel, Identification, Recording, Robot, UrdfIdentError, identify
from urdf_ident.faults.linearized import LinearizedCase
from urdf_ident.faults.null_model import NullModel
from urdf_ident.faults.score_test import least_chance
from urdf_ident.faults.trials import LogGroup
from urdf_ident.linalg import Array
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.project import parse_project
from urdf_ident.result.scores import predict, score
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

HARMFUL, GRAVE = 1.1, 1.5
ARMS, FAULTS_AN_ARM = 24, 6
SIGNALS = parse_project({}).signal_config()
OF_LOGS, OF_URDF = KINDS | SETUP_KINDS, URDF_KINDS
#: Drawn from unless ``--kinds`` are given; a kind's place is part of every seed.
NAMES = sorted(OF_LOGS | OF_URDF)
#: URDF files that replace the simulated arms.
GIVEN: list[str] = []


@cache
def setting(seed: int) -> Setting:
    """The arm of a seed, every third of a published URDF, with its clean logs: half of them wander, half have another shape."""
    rng = np.random.default_rng([13, seed])
    one = published(seed) if seed % 3 == 2 or GIVEN else arm(seed)
    shape = SHAPES[seed // 2 % len(SHAPES)] if seed % 2 else "wander"
    test = one.log("test", wander(one, rng, 12.0, 1.5), rng)
    other = arm(seed + 1000 * 8)
    foreign = other.log("foreign", wander(other, rng, 12.0, 1.0), rng)
    n = one.robot.n
    foreign = replace(
        foreign,
        joints=one.robot.joints,
        position=np.resize(foreign.position.T, (n, len(foreign))).T,
        effort=np.resize(np.asarray(foreign.effort).T, (n, len(foreign))).T,
    )
    return Setting(f"{one.family} {shape}", one.robot, one.drive, shaped(one, shape, rng), [test], foreign)


@cache
def real(data: Path) -> Setting:
    """The UR10e with three logs to learn from, and of the others two to judge on; a simulated arm is the foreign one."""
    robot, logs = ur10e(data)
    logs = [replace(log, torque_target=None, effort_target=None) for log in logs]
    other = arm(800)
    rng = np.random.default_rng(0)
    foreign = replace(other.log("foreign", wander(other, rng, 20.0, 1.0), rng), joints=robot.joints)
    return Setting("ur10e", robot, Drive.build(robot.n), logs[::2][:3], logs[1::2][:2], foreign)


def drawn(seed: int, at: Setting) -> tuple[list[str], str, set[str], list[Recording], Robot]:
    """The fault of a seed: its kinds, words, ids, and the logs and the robot with it."""
    rng = np.random.default_rng([17, seed])
    kinds = [NAMES[seed % len(NAMES)]]
    if rng.random() < 0.25:
        kinds.append(str(rng.choice(NAMES)))
    logs, robot, words, ids = list(at.learn), at.robot, [], set()
    draw = Draw(rng, at, mild=len(kinds) > 1 and rng.random() < 0.5)
    for kind in kinds:
        if kind in OF_URDF:
            mistake, own = OF_URDF[kind]
            said, change = mistake(draw)
            robot = change(robot)
            words.append(said)
            ids |= own
            continue
        make, own, alone = OF_LOGS[kind]
        said, act = make(draw)
        some = [int(rng.integers(len(logs)))] if alone or rng.random() < 0.3 else range(len(logs))
        for k in some:
            logs[k] = act(logs[k])
        ids |= own | (ODD if len(some) == 1 else set())
        words.append(said + (f" in log {some[0]}" if len(some) == 1 else ""))
    return kinds, ", ".join(words), ids, logs, robot


def identified(at: Setting, logs: Sequence[Recording], robot: Robot, automatic: bool) -> Identification:
    """As a user would; intervals of the parameters, which no verdict asks for, by the quickest way."""
    model = modelled(at, robot, automatic)
    return identify(model, logs, project=parse_project({"estimation": {"covariance": "model"}}))


def modelled(at: Setting, robot: Robot, automatic: bool = False) -> DynamicModel:
    """The model of the robot with friction of three laws, or as the data ask."""
    coupled = np.abs(at.drive.reduction - np.diag(np.diag(at.drive.reduction))).any()
    motors = dict.fromkeys(robot.joints if coupled and not automatic else (), SIMPLE[:2])
    return DynamicModel(robot, friction="auto" if automatic else SIMPLE, drive=at.drive, motor_friction=motors)


def error(model: DynamicModel, theta: Array, at: Setting) -> float:
    """Mean relative error on the clean logs to judge on."""
    ready = prepare_logs(at.judge, at.robot, at.drive, SIGNALS, force=True)
    scores = [score(log, predict(model, theta, log), SCORE, measured_only=True) for log in ready]
    torque = np.sqrt(np.mean([np.mean(np.vstack([part.tau for part in log.segments]) ** 2, axis=0) for log in ready], axis=0))
    return float(np.mean(np.sqrt(np.mean([item.rmse**2 for item in scores], axis=0)) / torque))


def plain(at: Setting, logs: Sequence[Recording], robot: Robot) -> float:
    """Error of a plain fit in spite of every finding; inf where nothing comes out."""
    try:
        model = modelled(at, robot)
        base = model.base()
        prepared = prepare_logs(logs, robot, at.drive, SIGNALS, force=True)
        theta = base.embedded(fit_base(build_statistics(model, prepared), base).params)
        return error(model, theta, at)
    except (UrdfIdentError, np.linalg.LinAlgError):
        return np.inf


@cache
def clean(seed: int | Path, automatic: bool) -> tuple[str, float, float]:
    """Level and error of the model from the clean logs, and error of the plain fit to them."""
    at = real(seed) if isinstance(seed, Path) else setting(seed)
    ident = identified(at, at.learn, at.robot, automatic)
    return ident.verdict.level, error(ident.model, ident.theta, at), plain(at, at.learn, at.robot)


def word(said: set[str], doubts: set[str], ids: set[str]) -> str:
    """named, undecided, misdiagnosed or silent."""
    if said & ids:
        return "named"
    if doubts & (ids | {"physics-undecided"}):
        return "undecided"
    return "misdiagnosed" if said - BENIGN else "silent"


def run(seed: int, data: Path, automatic: bool) -> dict[str, object]:
    """One fault. A finding that keeps every verdict from good spares the identification: a plain fit says what it costs."""
    start = time.process_time()
    which: int | Path = data if seed % 10 == 9 else seed % ARMS + ARMS * (seed // (ARMS * FAULTS_AN_ARM))
    at = real(which) if isinstance(which, Path) else setting(which)
    kinds, words, ids, logs, robot = drawn(seed, at)
    level, best, simple = clean(which, automatic)
    row: dict[str, object] = {"seed": seed, "robot": at.name, "kinds": kinds, "fault": words, "clean": level}
    findings = [item for report in examine_logs(logs, robot, at.drive, SIGNALS) for item in report.findings]
    capping = [item for item in findings if item.severity == "warning" and not item.id.entry.tolerated]
    grave = {item.id for item in capping if (item.id, item.joint) != ("effort-delay", None)}  # which identify takes out
    if any(item.severity == "refused" for item in findings):
        found, ratio = "refused", plain(at, logs, robot) / simple
    elif grave - {"effort-constant"}:
        found, ratio = "capped", plain(at, logs, robot) / simple
    else:
        try:
            ident = identified(at, logs, robot, automatic)
            found, ratio = ident.verdict.level, error(ident.model, ident.theta, at) / best
            row["causes"] = [reason.id for reason in ident.verdict.judgements if reason.level != "good"]
        except UrdfIdentError as failure:
            found, ratio = "failed", np.inf
            row["causes"] = [str(failure)[:80]]
    usual = {item.id for report in examine_logs(at.learn, at.robot, at.drive, SIGNALS) for item in report.findings} - ids
    said = {item.id for item in findings if item.severity != "info" and item.id != "physics-undecided"} - usual
    said |= {str(cause) for cause in row.get("causes", ())} & ids  # a reason of the verdict names it as well
    doubts = {c for item in findings for c in (*item.candidates, item.id)}
    row |= {"level": found, "ratio": ratio, "word": word(said, doubts, ids), "findings": sorted(said - BENIGN)}
    row["doubts"] = sorted(doubts - said - BENIGN)
    return {**row, "cpu": time.process_time() - start}


def report(rows: Sequence[dict[str, object]]) -> str:
    """The sums."""
    harmful = [row for row in rows if float(str(row["ratio"])) > HARMFUL]
    counts = Counter(str(row["word"]) for row in harmful)
    grave = [row for row in rows if row["level"] == "good" and float(str(row["ratio"])) > GRAVE]
    shares = ", ".join(
        f"{name} {counts[name]} ({100 * counts[name] / max(len(harmful), 1):.1f} %)"
        for name in ("named", "undecided", "misdiagnosed", "silent")
    )
    levels = Counter(str(row["level"]) for row in rows)
    settings = {(str(row["robot"]), str(row["clean"])) for row in rows}
    lines = [
        f"{len(rows)} faults, {len(harmful)} harmful: {shares}",
        ", ".join(f"{level} {count}" for level, count in levels.most_common()) + f"; clean: {sorted(settings)}",
        f"good but grave: {len(grave)}",
    ]
    return "\n".join([*lines, *(f"  {row['seed']} {row['robot']} {row['fault']}: × {row['ratio']:.2f}" for row in grave)])


def sound(first: int, arms: int) -> None:
    """All warnings and refusals of sound logs."""
    sets = 0
    for seed in range(first, first + arms):
        for one in (*([] if GIVEN else [arm(seed)]), published(seed)):
            rng = np.random.default_rng([19, seed])
            kinds = {kind: training(one, kind, rng) for kind in ("rich", "eight", "four", "flat", "resting", "one_way")}
            kinds["slow"] = [one.log("run", wander(one, rng, 30.0, 0.2), rng)]
            kinds["fast"] = [one.log("run", wander(one, rng, 10.0, 2.0), rng)]
            kinds |= {shape: shaped(one, shape, rng) for shape in SHAPES}
            for kind, some in kinds.items():
                reports = examine_logs(some, one.robot, one.drive, SIGNALS)
                items = [item for report in reports for item in report.findings]
                said = [x for x in items if x.severity in ("warning", "refused") and x.id not in BENIGN]
                sets += 1
                if said:
                    words = "; ".join(dict.fromkeys(f"{x.severity} {x.id} {x.joint} {x.message}" for x in said))
                    print(f"{seed} {one.family:8s} {kind:10s} {words}", flush=True)
    print(f"{sets} sound sets")


def calibration(first: int, draws: int) -> None:
    """Share of sets that the test of faults rejects before it asks what matters, drawn from null models of sound sets."""
    chances = list[float]()
    for seed in range(first, first + draws):
        one, rng = published(seed) if seed % 2 else arm(seed), np.random.default_rng([23, seed])
        logs = shaped(one, SHAPES[seed // 2 % len(SHAPES)], rng)
        prepared = prepare_logs(logs, one.robot, one.drive, SIGNALS, force=True)
        some = [(log.examined.segments, log.examined.cutoff) for log in prepared]
        trials = LogGroup(one.robot, some, one.drive.reduction).trials()
        if trials is not None:
            at = LinearizedCase.of(trials)
            null, tau = NullModel.of(at), np.array(trials.samples.tau)
            moving = null.weights.T > 0
            tau[:, at.moving] = np.where(moving, null.drawn(rng).T / np.where(moving, null.weights.T, 1.0), tau[:, at.moving])
            drawn = LinearizedCase.of(trials.with_more(tau - trials.samples.tau))
            chances.append(least_chance(drawn, NullModel.of(drawn)))
        if seed == first + draws - 1 or len(chances) % 20 == 0:
            print(f"{len(chances)} sets drawn from null models; rejected, and expected:", flush=True)
            for level in (0.003, 0.01, 0.05):
                share, error = float(np.mean(np.array(chances) < level)), np.sqrt(level * (1 - level) / len(chances))
                print(f"{100 * share:6.1f} %, {100 * level:g} ± {100 * error:.1f} %", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument(
        "--first", type=int, default=0, help="seed of the first fault, or of the first arm with sound logs (100)"
    )
    parser.add_argument("--seeds", type=int, nargs="*", help="these seeds alone")
    parser.add_argument("--clean", type=int, help="inspect sound logs of so many arms instead")
    parser.add_argument("--null", type=int, help="draw so many sets from null models instead")
    parser.add_argument("--robots", nargs="*", default=[], help="URDF files to take instead of all simulated arms")
    parser.add_argument("--kinds", nargs="*", default=[], help="draw from these kinds of faults alone")
    parser.add_argument("--automatic", action="store_true", help="friction chosen by the data, instead of three laws")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2].parent / "shared" / "data")
    parser.add_argument("-o", "--output", type=Path, help="rows as JSON lines, appended")
    arguments = parser.parse_args()
    GIVEN[:] = arguments.robots
    PUBLISHED[:] = GIVEN or PUBLISHED
    NAMES[:] = arguments.kinds or NAMES
    if arguments.clean:
        sound(arguments.first or 100, arguments.clean)
        return
    if arguments.null:
        calibration(arguments.first, arguments.null)
        return
    rows = []
    for seed in arguments.seeds or range(arguments.first, arguments.first + arguments.faults):
        try:
            row = run(seed, arguments.data, arguments.automatic)
        except UrdfIdentError as failure:  # of the sound logs: a URDF without inertials has no torques, for instance
            print(f"{seed:4d} left out, sound logs give no model: {failure}", flush=True)
            continue
        rows.append(row)
        print(
            f"{seed:4d} {row['robot']:7s} {row['fault']:60s} {row['level']:8s} {row['ratio']:7.2f} {row['word']:12s} "
            f"{', '.join(map(str, row['findings'])) or '-'} | {', '.join(map(str, row.get('causes', ()))) or '-'} "
            f"{row['cpu']:.1f} s",
            flush=True,
        )
        if arguments.output:
            with arguments.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
