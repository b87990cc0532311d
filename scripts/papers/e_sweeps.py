"""Liu et al., Actuators 12, 2023: do the friction runs of loop 1 help on other motions? What the product makes of them.

Run: ``.venv/bin/python scripts/papers/e_sweeps.py [--seeds 10] [--first 1]`` (about three minutes a seed)

The simulated arm of ``e_three_loop.py`` drives three motions and the runs at constant speed. The result of ``identify`` on the
motions is completed by ``compensate`` with ``residual: auto``, with the runs and without, as ``identify --sweeps`` does, and
scored on two motions that took no part. The friction of the runs is used where it predicts left-out motions better beyond
chance; where it does not, the result is that without the runs, which is made beside it for the first such seed only.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from e_three_loop import ACCELERATION, HarmonicArm, build_arm

from urdf_ident.excitation.sweeps import bidirectional_experiment
from urdf_ident.logs.recording import Recording
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.pipeline.compensate import compensate, compensated_score
from urdf_ident.pipeline.identify import identify
from urdf_ident.pipeline.validate import validate
from urdf_ident.result.identification import Identification

SECONDS, RATE, TRAIN, TEST = 12.0, 200.0, 3, 2


@dataclass(frozen=True)
class Outcome:
    """Mean RMSE on other motions [N·m], and whose friction laws and which residual were taken.

    Attributes:
        rigid: Of ``identify`` alone.
        without, swept: With a residual, without the runs and with them.
        laws: "logs" or "sweeps".
        residual: "none", "rbf" or "gmr".
    """

    rigid: float
    without: float
    swept: float
    laws: str
    residual: str


def recordings(arm: HarmonicArm, seed: int) -> tuple[list[Recording], list[Recording], Recording]:
    """Motions to learn from, motions to judge on, and the runs at constant speed."""
    limits, still = Limits.from_robot(arm.robot, acceleration=ACCELERATION), np.zeros(arm.robot.n)
    logs = [
        arm.run(random_fourier(limits, SECONDS, 5, 100 * seed + k, start=still), 100 * seed + k, f"motion_{k}", RATE)
        for k in range(TRAIN + TEST)
    ]
    motion = bidirectional_experiment(limits, home=still, cruise=1.5).trajectory
    return logs[:TRAIN], logs[TRAIN:], arm.run(motion, seed, "sweeps", RATE)


def error(ident: Identification, tests: list[Recording]) -> float:
    """Mean RMSE of the whole model on other motions."""
    if ident.residual is None:
        return float(np.mean([entry["mean_rmse"] for entry in validate(ident, tests).entries]))
    return float(np.mean([compensated_score(ident, log)["mean_rmse"] for log in tests]))


def outcome(arm: HarmonicArm, seed: int, both: bool) -> Outcome:
    """One seed; ``both``: make the result without the runs also where it should be the same."""
    logs, tests, sweeps = recordings(arm, seed)
    model = DynamicModel(arm.robot, drive=Drive.build(arm.robot.n, reduction=np.full(arm.robot.n, arm.gear)))
    rigid = identify(model, logs)
    swept = compensate(rigid, logs, sweeps=[sweeps], kind="auto")
    found = swept.compensation
    with_runs = error(swept, tests)
    again = both or found["laws"] != "logs"
    without = error(compensate(rigid, logs, kind="auto"), tests) if again else with_runs
    return Outcome(error(rigid, tests), without, with_runs, found["laws"], found["chosen"])


def main() -> None:
    """Prints one line a seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    chosen = parser.parse_args()
    arm, found = build_arm(), []
    print("mean RMSE on other motions [N·m]: identify alone, residual auto without the runs, and with them")
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        one = outcome(arm, seed, both=all(other.laws != "logs" for other in found))
        found.append(one)
        print(
            f"  seed {seed:2d}: {one.rigid:.3f} {one.without:.3f} {one.swept:.3f}  laws of {one.laws}, {one.residual}",
            flush=True,
        )
    kept = sum(one.swept <= one.without for one in found)
    print(f"with the runs not worse than without in {kept} of {len(found)} seeds")


if __name__ == "__main__":
    main()
