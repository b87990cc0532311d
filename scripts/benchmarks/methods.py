"""Every estimator on the same real logs: held-out error, each log left out once, friction laws given.

    python scripts/benchmarks/methods.py ROBOT.urdf LOG... [-c PROJECT.yaml] [--methods wls irls gls ridge ols auto]
        [--spoil SHARE] [--first SECONDS]

With one log its first 60 % teach. The baseline is OLS in the same run. ``--spoil`` puts outliers into the torques that
teach (45 times the fit's residual), never into those that judge.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from real_logs import logs_parser, opened, tasks

from urdf_ident.logs.recording import Recording
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project

LAWS = ["viscous", "coulomb", "offset"]


def spoilt(log: Recording, share: float, size: np.ndarray, seed: int) -> Recording:
    """The log with outliers of this size, shape (n,), in its efforts."""
    rng = np.random.default_rng(seed)
    effort = np.array(log.effort)
    outlying = (rng.random(effort.shape) < share) * rng.choice([-1.0, 1.0], effort.shape)
    return replace(log, effort=effort + outlying * size, sha256="")


def main() -> None:
    parser = logs_parser(__doc__)
    parser.add_argument("--methods", nargs="+", default=["ols", "wls", "gls", "irls", "ridge", "auto"])
    parser.add_argument("--spoil", type=float, default=0.0, help="share of outliers in the torques that teach")
    parser.add_argument("--first", type=float, help="seconds of each log that teach; all other logs judge")
    arguments = parser.parse_args()
    given, robot, logs = opened(arguments)
    data = given.model_dump(exclude_unset=True)
    baseline = None
    for method in arguments.methods:
        project = parse_project({**data, "model": {"friction": LAWS}, "estimation": {"method": method}})
        model, errors, chosen, start = project.build_model(robot), [], [], time.perf_counter()
        for k, (_, learn, judge) in enumerate(tasks(logs, arguments.first)):
            if arguments.spoil:
                size = [0.1 * np.abs(log.effort).max(axis=0) * 4.5 for log in learn if log.effort is not None]
                learn = [spoilt(log, arguments.spoil, size[i], 10 * k + i) for i, log in enumerate(learn)]
            ident = identify(model, learn, held_out=judge, project=project)
            errors.append([[item["fit_mean_rmse"], item["mean_rmse"]] for item in ident.validation])
            chosen.append(ident.fit.method)
        fit, exported = np.sqrt(np.mean(np.square(errors), axis=(0, 1)))
        baseline = baseline or fit
        seconds = (time.perf_counter() - start) / len(errors)
        print(
            f"{method:>6} ({', '.join(sorted(set(chosen)))}): held-out RMSE of the fit {fit:.4f} "
            f"({fit / baseline:.4f} of the first), exported {exported:.4f}; {seconds:.1f} s a case",
            flush=True,
        )


if __name__ == "__main__":
    main()
