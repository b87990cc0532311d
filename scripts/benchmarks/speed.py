"""Speed and memory beside named peers, in one run, on one core, in CPU seconds; writes docs/performance.md.

    python scripts/benchmarks/speed.py [--samples 100000] [--long 1000000] [--write]
                                       [--robot ROBOT.urdf --logs LOG... -c PROJECT.yaml]

The peers: Pinocchio's regressor in a loop that stores the whole matrix, then ``numpy.linalg.qr`` of its base columns, which is
what toolboxes for this purpose do, and ``pinocchio.rnea`` in a loop. ``--write`` writes the table to docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from command import run_command
from threadpoolctl import threadpool_limits

from urdf_ident import DynamicModel, Identification, Robot, Segment, load, robot_path
from urdf_ident.model.base import random_motion
from urdf_ident.model.rigid_bodies import regressor, rigid_torque
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import RowFilter

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
ROBOT = "ur10e"


def cpu(work: Callable[[], object], repeat: int = 3) -> float:
    """CPU seconds, the best of several."""
    found = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def log_of(model: DynamicModel, samples: int) -> Segment:
    """A log without rest or decimation: every sample is an equation of every joint."""
    motion, rng = random_motion(model.robot, samples, seed=1), np.random.default_rng(0)
    return Segment("long", 0.0, 100.0, motion.q, motion.v, motion.a, rng.standard_normal((samples, model.n)))


def fitted(model: DynamicModel, segment: Segment) -> np.ndarray:
    """Base parameters of a log as if it were read: without columns that were kept when it was fitted before."""
    unseen = replace(segment, q=segment.q.copy())
    return fit_base(accumulate(model, "long", [unseen], RowFilter(1)), model.base(), method="ols").params


def stored(model: DynamicModel, segment: Segment) -> np.ndarray:
    """The whole regressor, friction included, shape (N, n, p)."""
    W = np.zeros((len(segment), model.n, len(model.names)))
    W[:, :, : model.n_inertial] = regressor(model.robot, segment.q, segment.v, segment.a)
    terms, width = model.term_columns(segment), 4
    for j in range(model.n):
        W[:, j, model.n_inertial + width * j : model.n_inertial + width * (j + 1)] = terms[:, width * j : width * (j + 1)]
    return W


def solved(model: DynamicModel, segment: Segment) -> np.ndarray:
    Q, R = np.linalg.qr(stored(model, segment).reshape(-1, len(model.names))[:, model.base().independent])
    return np.linalg.solve(R, Q.T @ segment.tau.ravel())  # type: ignore[union-attr]


def beside_peers(samples: int) -> list[str]:
    """Rows of the table: kernels of a six-axis arm."""
    model = DynamicModel(Robot.from_urdf(robot_path(ROBOT)), friction=["viscous", "coulomb", "offset"])
    segment, base = log_of(model, samples), model.base()
    peer_fit, peer_rows = cpu(lambda: solved(model, segment), 1), cpu(lambda: stored(model, segment), 2)
    expected = solved(model, segment)
    data = model.robot.model.createData()

    def loop() -> None:
        for q, v, a in zip(segment.q, segment.v, segment.a, strict=True):
            pin.rnea(model.robot.model, data, q, v, a)

    peer_torque = cpu(loop, 2)
    rows = cpu(lambda: [None for _ in model.row_blocks(segment, compact=True)])
    fit = cpu(lambda: fitted(model, segment))
    inertials = model.robot.inertials.ravel()
    torque = cpu(lambda: rigid_torque(model.robot, inertials, segment.q, segment.v, segment.a))
    apart = float(np.abs((fitted(model, segment) - expected) / np.maximum(np.abs(expected), 1e-9)).max())
    one = 1e6 / samples  # s → µs a sample
    lines = [
        f"| columns and rows | {one * rows:.2f} µs a sample | {one * peer_rows:.2f} µs, `pin` loop that stores W "
        f"| {peer_rows / rows:.1f} × |",
        f"| {samples} samples → {len(base)} base parameters | {fit:.2f} s "
        f"| {peer_fit:.2f} s, stored W + `numpy.linalg.qr` | {peer_fit / fit:.1f} × |",
        f"| rigid torque of many samples | {one * torque:.2f} µs a sample "
        f"| {one * peer_torque:.2f} µs, `pin.rnea` in a loop | {peer_torque / torque:.1f} × |",
    ]
    print(f"largest relative difference of base parameters from the peer's {apart:.1e}", file=sys.stderr)
    return lines


def peak(samples: int) -> float:
    """Peak of what NumPy and Python hold while so many samples are fitted, the data apart [MB]."""
    model = DynamicModel(Robot.from_urdf(robot_path(ROBOT)), friction=["viscous", "coulomb", "offset"])
    segment = log_of(model, samples)
    tracemalloc.start()
    fitted(model, segment)
    found = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return found


def memory(few: int, many: int) -> list[str]:
    """Rows of the table: how memory grows with the log."""
    words = "peak memory beside the data, with columns kept for other laws as far as 128 MB hold them"
    return [f"| {words}, {samples} samples | {peak(samples):.1f} MB | | |" for samples in (few, many)]


def command(words: Sequence[str], label: str) -> str:
    """CPU seconds of a command of the command line, the best of three."""
    runs = [run_command(words) for _ in range(3)]
    bad = [taken for taken in runs if taken.code not in (0, 1)]
    failed = f" (exit {bad[0].code}: {bad[0].said.strip()[:80]})" if bad else ""
    return f"| {label}{failed} | {min(taken.seconds for taken in runs):.1f} s | | |"


def commands(robot: str | None, logs: Sequence[str], project: str | None) -> list[str]:
    urdf = str(robot_path(ROBOT))
    lines = [command(["check", urdf], "`urdf-ident check`, six axes")]
    if robot is not None and logs:
        extra = ["-c", project] if project else []
        with tempfile.TemporaryDirectory() as folder:
            lines.append(command(["inspect", logs[0], "--robot", robot, *extra], "`inspect`, one log"))
            words = ["identify", robot, *logs, *extra, "-o", folder, "--no-report"]
            lines.append(command(words, f"`identify`, {len(logs)} logs"))
            lines.append(torques(load(folder)))
            lines.append(command(["report", f"{folder}/identification.json"], "`report` of it"))
    return lines


def torques(ident: Identification, samples: int = 5000) -> str:
    """Row of the table: torques of a result, with the friction that was found."""
    motion = random_motion(ident.model.robot, samples, seed=1)
    states = motion.q, motion.v, motion.a
    singly = cpu(lambda: [ident.torque(*state) for state in zip(*states, strict=True)])
    times = [f"{1e6 * seconds / samples:.2g} µs" for seconds in (singly, cpu(lambda: ident.torque(*states)))]
    return f"| `torque` of it | {times[0]} for a single sample, {times[1]} for each of many | | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--long", type=int, default=1_000_000)
    parser.add_argument("--robot")
    parser.add_argument("--logs", nargs="*", default=[])
    parser.add_argument("-c", "--project")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with threadpool_limits(1):
        lines = beside_peers(given.samples) + memory(given.samples, given.long)
    lines += commands(given.robot, given.logs, given.project)
    about = Path("/proc/cpuinfo")
    named = [line for line in about.read_text().splitlines() if "model name" in line] if about.exists() else []
    processor = named[0].split(":")[1].strip() if named else platform.processor()
    text = "\n".join(
        [
            "# Performance",
            "",
            f"Written by `python scripts/benchmarks/speed.py --samples {given.samples} --long {given.long} --write`",
            f"{'' if given.robot is None else 'with a robot and its logs '}on {processor}: one thread, CPU seconds; "
            f"load average {os.getloadavg()[0]:.1f}.",
            f"Python {platform.python_version()}, NumPy {np.__version__}, Pinocchio {pin.__version__}.",
            "Ratios are of the same run; absolute numbers depend on what else the machine did.",
            "",
            "| work | ours | peer | ratio |",
            "|---|---|---|---|",
            *lines,
            "",
        ]
    )
    print(text)
    if given.write:
        rest = PAGE.read_text(encoding="utf-8").partition("## ")  # sections with figures of other scripts
        PAGE.write_text("\n".join([text, "".join(rest[1:])]) if rest[1] else text, encoding="utf-8")


if __name__ == "__main__":
    main()
