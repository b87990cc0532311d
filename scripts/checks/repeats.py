"""Distances between logs of one motion and of other motions, on the simulated arms of scripts/benchmarks/arms.py.

    python scripts/checks/repeats.py [--arms 24]

Every arm moves once more as before (with other noise, a slightly different path, a payload), begins later, is cut, runs
slower, backwards, or does another motion. Printed are least, median and largest distance of each kind
(:mod:`urdf_ident.statistics.motions`).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from arms import RATE, Arm, Motion, arm, wander

from urdf_ident.linalg import Array
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.motions import SAME, distances


def _cut(motion: Motion, begin: float, end: float) -> Motion:
    kept = (motion.t >= begin) & (motion.t < end)
    return Motion(motion.t[kept] - begin, motion.q[kept], motion.v[kept], motion.a[kept])


def _slower(motion: Motion, factor: float) -> Motion:
    t = np.arange(round(motion.t[-1] * factor * RATE)) / RATE

    def at(x: Array) -> Array:
        return np.column_stack([np.interp(t / factor, motion.t, column) for column in x.T])

    return Motion(t, at(motion.q), at(motion.v) / factor, at(motion.a) / factor**2)


def variants(one: Arm, rng: np.random.Generator) -> dict[str, Motion]:
    """A motion, and what it is compared with."""
    motion, little = wander(one, rng, 20.0, 0.6), wander(one, rng, 20.0, 0.3)
    near = Motion(motion.t, *(x + 1e-3 * y for x, y in ((motion.q, little.q), (motion.v, little.v), (motion.a, little.a))))
    return {
        "reference": motion,
        "repeated": near,
        "payload": motion,
        "later": _cut(motion, 0.7, 20.0),
        "last 15 s": _cut(motion, 5.13, 20.0),
        "last 10 s": _cut(motion, 9.81, 20.0),
        "middle 9 s": _cut(motion, 6.2, 15.1),
        "at 95 %": _slower(motion, 1 / 0.95),
        "at 80 %": _slower(motion, 1.25),
        "at 50 %": _slower(motion, 2.0),
        "backwards": Motion(motion.t, motion.q[::-1], -motion.v[::-1], motion.a[::-1]),
        "other": wander(one, rng, 20.0, 0.6),
        "other faster": wander(one, rng, 20.0, 0.8),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=24)
    found: dict[str, list[float]] = {}
    for seed in range(parser.parse_args().arms):
        one, rng = arm(seed), np.random.default_rng([3, seed])
        moves = variants(one, rng)
        logs = []
        for name, motion in moves.items():
            log = one.log(name, motion, rng)
            more = 1.3 if name == "payload" else 1.0
            logs.append(replace(log, effort=more * np.asarray(log.effort)))
        ready = prepare_logs(logs, one.robot, one.drive, SignalConfig(cutoff=8.0, decimate=20.0))
        statistics = build_statistics(DynamicModel(one.robot, drive=one.drive), ready)
        first = statistics.logs[0]
        apart = distances(statistics.only([first]), statistics.without([first]))[first]
        for name, value in apart.items():
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        same = sum(value < SAME for value in values)
        print(f"{name:13} {min(values):.3f} {np.median(values):.3f} {max(values):.3f}, same motion {same}/{len(values)}")


if __name__ == "__main__":
    main()
