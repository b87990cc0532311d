"""The demo over many seeds: held-out error against the wrong URDF's, and how often the truth lies within 3σ.

python scripts/benchmarks/demo_seeds.py [SEEDS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.demo import demo


def main(seeds: int) -> None:
    import mujoco

    ratios, covered, total = [], 0, 0
    for seed in range(seeds):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            result = demo(folder, seed=seed)
            path = Path(folder) / "ur10e_identified.urdf"
            Robot.from_urdf(path)
            mujoco.MjModel.from_xml_path(str(path))
        score = result.ident.validation[0]
        ratios.append(score["urdf_mean_rmse"] / score["mean_rmse"])
        fit = result.ident.fit
        inside = np.abs(fit.params - fit.base.of(result.truth)) <= 3 * fit.bse
        covered, total = covered + int(inside.sum()), total + len(inside)
        print(
            f"seed {seed}: URDF/identified {ratios[-1]:.2f}, within 3σ {inside.mean():.3f}, {time.perf_counter() - start:.1f} s"
        )
    print(
        f"smallest ratio {min(ratios):.2f} (wanted 5), median {np.median(ratios):.2f}; "
        f"within three standard errors {covered / total:.3f} (wanted 0.95)"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
