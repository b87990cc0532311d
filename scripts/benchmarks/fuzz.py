"""Damaged inputs: every command ends in a result or in one line, never in a traceback, a crash or a hang.

python scripts/benchmarks/fuzz.py [--count 20000] [--seed 0] [--kinds urdf,project,...] [--keep DIR] [--seconds 30]

Each input is one of the six files that are no logs (URDF, project, world, truth and result files, trajectories), damaged by
``mutants.py``, a log of any format (``mutant_logs.py``), or all files with hostile names of one joint, link and robot (kind
``names``). Commands run in this
process's children, 100 inputs a child, so that a crash costs one input. Reported are inputs a kind, exit codes, the largest
memory, and every failure (exit 70, a signal, no end after the given seconds, more than one line, files changed by a refused
command) with the input kept in DIR.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

import mutant_logs
import mutants
import numpy as np
import yaml

import urdf_ident as ui
from urdf_ident.cli.application import run
from urdf_ident.files.read_write import write_text
from urdf_ident.model.prior import inertial_prior
from urdf_ident.result.checks import seal

BATCH, MEMORY = 100, 8 * 2**30  # inputs a child, bytes
FILES = {
    "urdf": "robot.urdf",
    "project": "p.yaml",
    "world": "world.yaml",
    "truth": "truth.yaml",
    "result": "r.json",
    "trajectory": "t.csv",
}
#: What is run on a file of a kind: command → how often.
COMMANDS: dict[str, dict[str, float]] = yaml.safe_load(Path(__file__).with_name("fuzz_commands.yaml").read_text())
#: Whole files as text, made once.
_TEXTS: dict[str, str] = {}


class TooLong(BaseException):
    """The time is over; no handler of the program catches this."""


def prepare(folder: Path, thorough: bool = True) -> dict[str, Any]:
    """Writes one good file of each kind, and a log; returns what is to be damaged. Thorough: says which do not work."""
    robot = ui.Robot.from_urdf(mutants.urdf())
    write_text(folder / "robot.urdf", mutants.urdf())
    t = np.arange(0.0, 4.0, 0.01)
    phase = np.array([1.0, 1.7, 2.3])
    q = 0.8 * np.sin(phase * t[:, None]) * [1, 1, 0.2]
    v, a = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    model = ui.DynamicModel(robot, friction=["viscous", "coulomb"])
    theta = inertial_prior(robot).theta0
    theta = np.concatenate([theta[: model.n_inertial], np.tile([0.1, 0.5, 0.8], robot.n)])[: len(model.names)]
    tau = model.torque(theta, q, v, a) + np.random.default_rng(0).normal(0, 0.01, q.shape)
    head = ",".join(["t", *(f"{kind}_{joint}" for kind in ("q", "v", "tau") for joint in robot.joints)])
    _save(folder / "log.csv", [t, q, v, tau], head)
    _save(folder / "loaded.csv", [t, q, v, 1.02 * tau], head)
    for name in ("a", "b"):
        (folder / "robots" / name).mkdir(parents=True)
        _save(folder / "robots" / name / "log.csv", [t, q, v, tau], head)
    x = np.linspace(0.0, 1.0, 60)[:, None]  # from rest to rest
    _save(folder / "t.csv", [0.6 * x, [0.1, 0.1, 0.02] * (10 * x**3 - 15 * x**4 + 6 * x**5)], "t,q_j1,q_j2,q_j3")
    write_text(
        folder / "fast.yaml",
        "simulation: {rate: 100, step: 5.0e-4, controller: {bandwidth: 2}}\n"
        "excitation: {duration: 2, harmonics: 2, budget: 0.3}",
    )
    write_text(
        folder / "plain.yaml", "signals: {cutoff: 8, decimate: 20}\nmodel: {friction: [viscous]}\nconsistency: {weight: 1}"
    )
    write_text(folder / "world_project.yaml", "excitation: {world: world.yaml, duration: 2, harmonics: 2, budget: 0.3}")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        if run(["identify", "robot.urdf", "log.csv", "-o", "good", "-c", "plain.yaml", "--force", "--no-report"]) not in (0, 1):
            raise SystemExit(said.getvalue())
    (folder / "logs").mkdir()
    good = {
        "urdf": mutants.urdf(),
        "project": mutants.PROJECT,
        "world": mutants.WORLD,
        "truth": mutants.TRUTH,
        "result": json.loads((folder / "good" / "identification.json").read_text()),
        "trajectory": (folder / "t.csv").read_text(),
        "log": mutant_logs.seeds(folder / "logs"),
    }
    write_text(folder / "two.urdf", mutant_logs.URDF)
    for name in ("r.json", "good.json"):
        (folder / name).write_text(json.dumps(good["result"]))
    write_files(good)
    every = {line for commands in COMMANDS.values() for line in commands if "LOG" not in line} if thorough else set()
    for line in sorted(every):  # whole files must work
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = run(line.split())
        if code not in (0, 1):
            print(f"{line}: exit {code}, {said.getvalue()}", file=sys.stderr)
    return good


def _save(path: Path, columns: list[Any], head: str) -> None:
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=head, comments="", fmt="%.9g")


def write_files(good: dict[str, Any]) -> None:
    """Writes all files whole but results and logs of other formats."""
    if "log.csv" not in _TEXTS:
        _TEXTS["log.csv"] = Path("log.csv").read_text()
    Path("log.csv").write_text(_TEXTS["log.csv"])
    for name, content in good.items():
        if name in FILES and name != "result":
            if name not in _TEXTS:
                _TEXTS[name] = content if isinstance(content, str) else mutants.yaml.safe_dump(content)
            Path(FILES[name]).write_text(_TEXTS[name])


def rename(dice: random.Random) -> None:
    """Gives a joint, its link and the robot hostile names in all files, now and then in some only, escaped or raw."""
    joint, link, robot = (mutants.hostile_name(dice) for _ in range(3))
    for name in ("robot.urdf", "log.csv", "t.csv", "truth.yaml", "p.yaml", "world.yaml"):
        if dice.random() < 0.05:
            continue
        text = Path(name).read_text()
        raw = dice.random() < 0.2
        if name.endswith(".urdf"):
            spelled = [item if raw else mutants.as_reference(item) for item in (joint, link, robot)]
            for old, new in zip(('"j1"', '"l1"', 'name="arm"'), spelled, strict=True):
                text = text.replace(old, f'name="{new}"' if "=" in old else f'"{new}"')
        elif name.endswith(".csv"):
            head, _, rest = text.partition("\n")
            cells = [f"{cell[:-2]}{joint}" if cell.endswith("_j1") else cell for cell in head.split(",")]
            text = ",".join(cell if raw else '"' + cell.replace('"', '""') + '"' for cell in cells) + "\n" + rest
        else:
            text = text.replace("j1", joint if raw else json.dumps(joint))
        Path(name).write_bytes(text.encode("utf-8", "surrogatepass"))


def snapshot() -> dict[str, tuple[int, int]]:
    """Inode and time of every file here, but for the report of the fuzzer itself."""
    paths = (path for path in Path().rglob("*") if path.is_file() and path.name != "report.txt")
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def one(kind: str, good: dict[str, Any], dice: random.Random, seconds: int) -> tuple[str, str, str]:
    """Runs one damaged input: the command, the outcome, and what was said."""
    write_files(good)
    text = ""
    if kind == "names":
        rename(dice)
    elif kind == "result":
        data = mutants.mutate_data(good[kind], dice)
        if dice.random() < 0.7 and isinstance(data, dict):
            with contextlib.suppress(TypeError, ValueError):
                data["seal"] = seal(data)
        text = mutants.as_json(data, dice)
    elif kind != "log":
        text = mutants.MUTATORS[kind](good[kind], dice)
    if text:
        Path(FILES[kind]).write_bytes(text.encode("utf-8", "surrogatepass"))
    line = dice.choices(list(COMMANDS[kind]), list(COMMANDS[kind].values()))[0]
    if kind == "log":
        line = line.replace("LOG", str(mutant_logs.damaged(good[kind], Path(), np.random.default_rng(dice.randrange(1 << 32)))))
    out, err = io.StringIO(), io.StringIO()
    before = snapshot()
    signal.alarm(seconds)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(line.split())
        outcome = f"exit {code}"
        if code == 70:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(TooLong):
                try:
                    run(line.split(), debug=True)
                except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
                    err.write(traceback.format_exc())
    except TooLong:
        outcome = f"no end after {seconds} s"
    except BaseException as error:  # noqa: BLE001
        outcome = f"escaped {type(error).__name__}"
        err.write(traceback.format_exc())
    finally:
        signal.alarm(0)
    said = [item for item in err.getvalue().splitlines() if item.startswith("error:")]
    if outcome == "exit 2" and before != snapshot() and "written before:" not in err.getvalue():
        outcome = "files changed by a refused command"
    if outcome == "exit 2" and (len(said) != 1 or "Traceback" in err.getvalue()):
        outcome = "not one line"
    return line, outcome, err.getvalue()


def ring(_: int, __: FrameType | None) -> None:
    """What the alarm does."""
    raise TooLong


def batch(jobs: list[tuple[str, int]], good: dict[str, Any], seconds: int, report: Path) -> None:
    """Runs some inputs in a child, one line of JSON each; a line is begun before the input is run."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.signal(signal.SIGALRM, ring)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)  # what C++ libraries say
            with report.open("a") as stream:
                for kind, seed in jobs:
                    stream.write(json.dumps([kind, seed]) + "\t")
                    stream.flush()
                    begin = time.monotonic()
                    line, outcome, said = one(kind, good, random.Random(f"{kind} {seed}"), seconds)
                    stream.write(json.dumps([line, outcome, said[-3000:], time.monotonic() - begin]) + "\n")
                    stream.flush()
            code = 0
        finally:
            os._exit(code)
    os.waitpid(pid, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(COMMANDS))
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    kinds, keep = options.kinds.split(","), options.keep.resolve()
    shares = {"urdf": 6, "project": 5, "result": 5, "trajectory": 2, "truth": 2, "world": 1, "names": 4, "log": 8}
    dice = random.Random(options.seed)
    jobs = [(dice.choices(kinds, [shares[kind] for kind in kinds])[0], options.seed * 10**9 + k) for k in range(options.count)]
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        good = prepare(Path(place))
        report = Path(place) / "report.txt"
        report.touch()
        outcomes: Counter[str] = Counter()
        failures: dict[str, list[str]] = {}
        slowest: list[tuple[float, str]] = []
        done = 0
        while done < len(jobs):
            report.write_text("")
            batch(jobs[done : done + BATCH], good, options.seconds, report)
            lines = report.read_text().split("\n")
            for text in filter(None, lines):
                head, _, tail = text.partition("\t")
                kind, seed = json.loads(head)
                line, outcome, said, spent = json.loads(tail) if tail else ("?", "crash", "", 0.0)
                done += 1
                outcomes[f"{kind}: {outcome}"] += 1
                slowest = sorted([*slowest, (spent, f"{kind} {seed}: {line}")], reverse=True)[:5]
                if outcome not in ("exit 0", "exit 1", "exit 2"):
                    trace = [item.strip() for item in said.splitlines() if item.strip().startswith("File")]
                    where = " | ".join([outcome, said.strip().splitlines()[-1][:150] if said.strip() else "", *trace[-1:]])
                    failures.setdefault(where, []).append(f"{kind} {seed}: {line}")
                    if len(failures[where]) <= 2:
                        keep.mkdir(parents=True, exist_ok=True)
                        (keep / f"{kind}_{seed}.txt").write_text(f"{line}\n{outcome}\n{said}")
            print(f"{done} of {len(jobs)}, {sum(map(len, failures.values()))} failures", file=sys.stderr, flush=True)
    for name, number in sorted(outcomes.items()):
        print(f"{number:>7}  {name}")
    for where, items in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(items):>5} x {where}\n        e.g. {items[0]}")
    for spent, what in slowest:
        print(f"slowest: {spent:.1f} s  {what}")
    print(f"largest memory of a child: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20:.2f} GB")
    print(f"{done} inputs, {sum(map(len, failures.values()))} failures at {len(failures)} places")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
