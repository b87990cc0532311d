"""Streaming statistic against the stacked regressor: time and peak memory for a long log of a six-axis arm.

OPENBLAS_NUM_THREADS=1 python scripts/benchmarks/statistic.py [SAMPLES]
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from urdf_ident.model.base import random_motion
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.engine.pinocchio import regressor
from urdf_ident.model.library import robot_path
from urdf_ident.model.robot import Robot
from urdf_ident.samples import Segment
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import RowFilter, accumulate


def measured(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float, float]:
    """Result, seconds and peak megabytes of a piece of work."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    result = work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return result, seconds, peak


def main(samples: int) -> None:
    model = DynamicModel(Robot.from_urdf(robot_path("ur10e")))
    base = model.base()
    motion = random_motion(model.robot, samples, seed=1)
    generator = np.random.default_rng(0)
    tau = generator.standard_normal((samples, model.n))
    segment = Segment("long", 0.0, 100.0, motion.q, motion.v, motion.a, tau)

    def streamed() -> np.ndarray:
        return fit_base(accumulate(model, "long", [segment], RowFilter(1)), base, method="ols").params

    def stacked() -> np.ndarray:
        rigid = regressor(model.robot, motion.q, motion.v, motion.a)
        terms = model.term_columns(segment)
        W = np.zeros((samples, model.n, len(model.names)))
        W[:, :, : model.n_inertial] = rigid
        for j in range(model.n):
            W[:, j, model.n_inertial + 4 * j : model.n_inertial + 4 * j + 4] = terms[:, 4 * j : 4 * j + 4]
        Q, R = np.linalg.qr(W.reshape(-1, len(model.names))[:, base.independent])
        return np.linalg.solve(R, Q.T @ tau.ravel())

    ours, seconds, peak = measured(streamed)
    theirs, slow, much = measured(stacked)
    print(f"{samples} samples: streamed {seconds:.2f} s, {peak:.0f} MB; stacked regressor + QR {slow:.2f} s, {much:.0f} MB")
    print(f"ratios: {slow / seconds:.1f} times faster, {much / peak:.0f} times less memory; "
          f"largest difference {np.abs(ours - theirs).max():.1e}")  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
