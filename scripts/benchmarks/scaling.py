"""How the time of each stage grows with the rows of a log and with the number of logs; exponents of a power law.

    python scripts/benchmarks/scaling.py [--rows 10000 100000 1000000] [--logs 10 30 100 300]

CPU seconds on one thread of the stages of ``identify`` on simulated motions of the bundled UR10e: one log of many rows, then
many logs of 600 rows with different motions, and as many repeats of one motion. The exponent is the slope of the last two
sizes on logarithmic axes, which leaves out constant costs; 1 is proportional.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from urdf_ident import Drive, DynamicModel, Limits, Recording, Robot, random_fourier, robot_path
from urdf_ident.model.rigid_bodies import rigid_torque
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import assessed, conditioned_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.folds import cross_validate, repetitions

T = TypeVar("T")
RATE, PERIOD, SHORT = 100.0, 20.0, 600
FRICTION = ["viscous", "coulomb", "offset"]


def log(robot: Robot, k: int, rows: int, seed: int) -> Recording:
    """Log ``k`` with its own noise, of Fourier motions one after the other that do not repeat."""
    rng, time_ = np.random.default_rng([k, seed, rows]), np.arange(rows) / RATE
    motion = [
        random_fourier(Limits.from_robot(robot), PERIOD, 5, seed=1000 * seed + part, fill=0.8).evaluate(
            np.arange(min(rows - begin, int(PERIOD * RATE))) / RATE
        )
        for part, begin in enumerate(range(0, rows, int(PERIOD * RATE)))
    ]
    q, v, a = (np.vstack(signal) for signal in zip(*motion, strict=True))
    tau = rigid_torque(robot, robot.inertials.ravel(), q, v, a) + 20.0 * v + 5.0 * np.tanh(v / 0.02)
    noisy = tau + 0.3 * rng.standard_normal(tau.shape)
    return Recording(f"run{k}", robot.joints, time_, q + 2e-6 * rng.standard_normal(q.shape), effort=noisy)


def stages(robot: Robot, logs: Sequence[Recording]) -> dict[str, float]:
    """CPU seconds of each stage."""
    model, config, taken = DynamicModel(robot, friction=FRICTION), SignalConfig(cutoff=4.0), dict[str, float]()
    base = model.base()

    def timed(stage: str, work: Callable[[], T]) -> T:
        begin = time.process_time()
        done = work()
        taken[stage] = time.process_time() - begin
        return done

    reports = timed("check", lambda: assessed(logs, robot, Drive.build(robot.n), config))
    prepared = timed("condition", lambda: conditioned_logs(logs, reports, robot, config, None))
    statistics = timed("rows and factors", lambda: build_statistics(model, prepared))
    statistics = replace(statistics, repetitions=timed("repeated motions", lambda: repetitions(statistics)))
    timed("fit", lambda: fit_base(statistics, base))

    def estimate(part: object) -> np.ndarray:
        return base.embedded(fit_base(part, base).params)  # type: ignore[arg-type]

    timed("folds", lambda: cross_validate(statistics, estimate))
    return taken


def table(title: str, sizes: Sequence[int], taken: Sequence[dict[str, float]]) -> None:
    """Prints the seconds of each stage at each size, and the exponent."""
    print(f"\n{title:22}" + "".join(f"{size:>10}" for size in sizes) + "  exponent")
    for stage in taken[0]:
        seconds = [some[stage] for some in taken]
        exponent = np.log(seconds[-1] / max(seconds[-2], 1e-3)) / np.log(sizes[-1] / sizes[-2])
        print(f"{stage:22}" + "".join(f"{x:10.3f}" for x in seconds) + f"{exponent:10.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--logs", type=int, nargs="*", default=[10, 30, 100, 300])
    given, robot = parser.parse_args(), Robot.from_urdf(robot_path("ur10e"))
    with threadpool_limits(1):
        stages(robot, [log(robot, 0, SHORT, 0)])  # imports
        if len(given.rows) > 1:
            table("rows of one log", given.rows, [stages(robot, [log(robot, 0, rows, 1)]) for rows in given.rows])
        for title, same in (("different motions", False), ("repeats of one motion", True)):
            if len(given.logs) > 1:
                many = [log(robot, k, SHORT, 1 if same else k) for k in range(max(given.logs))]
                table(title, given.logs, [stages(robot, many[:count]) for count in given.logs])


if __name__ == "__main__":
    main()
