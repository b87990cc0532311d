"""Friction found automatically: held-out error on real logs with the choice inside every fold.

    python scripts/benchmarks/selection.py ROBOT.urdf LOG... [-c PROJECT.yaml] [--score HERTZ]

With several logs each is left out once: torque constants, conditioning, friction laws and parameters come from the others
alone. With one log its first 60 % teach and the rest judges. Beside it the simple laws (viscous, Coulomb, offset).
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from real_logs import logs_parser, opened, tasks

from urdf_ident.estimation.friction_selection.reference_torque import converge
from urdf_ident.estimation.friction_selection.selection import select_friction
from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.result.evidence.scores import predict, score
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_log, prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.torque_constants.gains import resolve_gain


def held_out(model: DynamicModel, learn: list[Recording], judge: Recording, signals: SignalConfig, hertz: float | None):
    """RMSE per joint with the simple and with the chosen laws, the chosen model, and the seconds of the search."""
    model = model.with_drive(resolve_gain(model.drive, learn))
    logs = prepare_logs(learn, model.robot, model.drive, signals)
    used = logs[0].conditioned
    fixed = SignalConfig(cutoff=used.cutoff, decimate=used.decimate_rate, velocity=signals.velocity)
    target, build = prepare_log(judge, model.robot, model.drive, fixed), partial(build_statistics, logs=logs)

    def rmse(candidate: DynamicModel) -> Array:
        found = converge(candidate, build, partial(fit_base, base=candidate.base()))
        theta = np.zeros(len(candidate.parameters))
        theta[found.fit.base.independent] = found.fit.params
        return score(target, predict(found.model, theta, target), model.robot.joints, hertz or used.cutoff).rmse

    start = time.perf_counter()
    selected = select_friction(model, build, [part for log in logs for part in log.segments])
    seconds = time.perf_counter() - start
    return rmse(model), rmse(selected.model), selected, seconds


def main() -> None:
    parser = logs_parser(__doc__)
    parser.add_argument("--score", type=float, help="low-pass of the measured torque [Hz]; the fit's cut-off if absent")
    arguments = parser.parse_args()
    project, robot, logs = opened(arguments)
    model = project.build_model(robot)
    errors = []
    for _, learn, (judge,) in tasks(logs):
        simple, chosen, selected, seconds = held_out(model, learn, judge, project.signal_config(), arguments.score)
        errors.append((simple, chosen))
        print(f"{judge.name}: simple {simple.mean():.4f}, chosen {chosen.mean():.4f}, search {seconds:.1f} s", flush=True)
        for j, joint in enumerate(robot.joints):
            laws = [trial.term for trial in selected.trials if trial.joint == joint and trial.chosen]
            print(f"  {joint}: {simple[j]:.3f} -> {chosen[j]:.3f}  {', '.join(laws)}")
    print(f"gains: {selected.model.drive.gain_origin}")
    for word, part in zip(("simple", "chosen"), np.swapaxes(np.array(errors), 0, 1), strict=True):
        total = np.sqrt(np.mean(part**2, axis=0))
        print(f"{word}: mean over joints {total.mean():.4f}, per joint {np.round(total, 3)}")


if __name__ == "__main__":
    main()
