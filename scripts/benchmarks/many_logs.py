"""Time and memory of identifying a robot from many logs, by the command line.

    python scripts/benchmarks/many_logs.py [--logs 100] [--rows 2000] [--jobs 1 2] [--laws simple automatic] [--budget 400]
                                           [--cluster]

Every log is another random motion of the bundled UR10e with friction and noise at 100 Hz; what is measured is a process of
its own: wall and processor seconds of it and its workers, and the largest memory of one process. ``--cluster``: the same on two
workers of a dask cluster on this Linux machine, one of which is killed midway, and whether the result is that of the first run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from threading import Timer

import numpy as np
import pinocchio as pin
from command import Taken, run_command

from urdf_ident.files.read_write import write_text
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.robot import Robot
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.motion.trajectory import table_text

ROBOT, RATE = "ur10e", 100.0
PROJECTS = {
    "simple": "model: {friction: [viscous, coulomb, offset]}\n",
    "automatic": "{}\n",
}


def write_logs(folder: Path, count: int, rows: int, seed: int = 0) -> None:
    """Logs of a robot whose masses differ from the URDF's."""
    robot, rng = Robot.from_urdf(robot_path(ROBOT)), np.random.default_rng(seed)
    model, data = robot.model.copy(), robot.model.createData()
    for body in model.inertias:
        body.mass *= 1.1
    rotor = np.array([4.0, 4.0, 1.8, 0.4, 0.4, 0.4])
    viscous, dry = 0.2 * np.array([60.0, 60.0, 40.0, 10.0, 10.0, 10.0]), np.array([8.0, 8.0, 5.0, 2.0, 2.0, 2.0])
    for k in range(count):
        motion = random_fourier(Limits.from_robot(robot), rows / RATE, 5, seed=1000 * seed + k, fill=0.8)
        time_ = np.arange(rows) / RATE
        q, v, a = motion.evaluate(np.minimum(time_, motion.duration))
        tau = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
        tau += rotor * a + viscous * v + dry * np.tanh(v / 0.02) + 0.3 * rng.standard_normal(tau.shape)
        q = q + 2e-6 * rng.standard_normal(q.shape)
        write_text(folder / f"run{k:03d}.csv", table_text(robot.joints, time_, {"q": q, "tau": tau}))


def on_a_cluster(words: list[str], out: Path, serial: Taken, budget: float) -> None:
    """Two workers, one of them killed at a third of the time that one process took."""
    from distributed import LocalCluster

    def seconds() -> float:
        """Processor seconds so far of this process, in which the scheduler runs, and of the workers."""
        pids = [os.getpid(), *(worker.process.pid for worker in cluster.workers.values())]
        found = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids]
        return sum(sum(map(int, both)) for both in found) / os.sysconf("SC_CLK_TCK")

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as for the asking process: workers load compiled modules
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(out.parent / "dask")}
    with LocalCluster(**options) as cluster:
        killer = Timer(serial.wall / 3, lambda: os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL))
        killer.start()
        before = seconds()
        taken = run_command([*words, "--scheduler", cluster.scheduler_address, "-o", str(out)], budget)
        killer.cancel()
        spent = taken.seconds + seconds() - before
    if taken.code not in (0, 1):
        print(taken.said.strip()[-300:], file=sys.stderr)
    ratio, least = taken.wall / serial.wall, spent / serial.seconds / 2.0
    cost = f"wall {taken.wall:6.1f} s, {ratio:.2f} × one process, processor {spent:6.1f} s"
    print(f"   cluster, one of two killed: {cost} (two cores: at least {least:.2f} × one), exit {taken.code}")


def same_numbers(first: Path, second: Path) -> bool:
    """Whether two results hold the same parameters, to the last bit."""
    found = [json.loads((out / "identification.json").read_text(encoding="utf-8"))["parameters"] for out in (first, second)]
    return bool(found[0] == found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--jobs", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--laws", nargs="*", default=list(PROJECTS), choices=list(PROJECTS))
    parser.add_argument("--cluster", action="store_true", help="also on two workers, one of them killed midway")
    parser.add_argument("--budget", type=float, default=400.0, help="seconds after which a run is stopped")
    given = parser.parse_args()
    print(f"{given.logs} logs of {given.rows} rows; load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        write_logs(folder / "logs", given.logs, given.rows)
        for laws in given.laws:
            (folder / "project.yaml").write_text(PROJECTS[laws], encoding="utf-8")
            words = ["identify", str(robot_path(ROBOT)), str(folder / "logs" / "*.csv"), "-c", str(folder / "project.yaml")]
            words += ["--no-report"]
            first: tuple[Path, Taken] | None = None
            for jobs in given.jobs:
                out = folder / f"out_{laws}_{jobs}"
                taken = run_command([*words, "--jobs", str(jobs), "-o", str(out)], given.budget)
                first = first or (out, taken)
                if taken.code not in (0, 1):
                    print(taken.said.strip()[-300:], file=sys.stderr)
                cost = f"wall {taken.wall:6.1f} s, processor {taken.seconds:6.1f} s, {taken.megabytes:5.0f} MB"
                print(f"{laws:>10}, --jobs {jobs}: {cost}, exit {taken.code}", flush=True)
            if given.cluster and first is not None:
                on_a_cluster(words, folder / f"out_{laws}_cluster", first[1], given.budget)
                equal = same_numbers(first[0], folder / f"out_{laws}_cluster")
                print(f"   parameters {'equal' if equal else 'DIFFER'} to the last bit", flush=True)


if __name__ == "__main__":
    main()
