"""Held-out error on real logs, from the command line's own pipeline, beside what the user had before.

    python scripts/benchmarks/real_logs.py ROBOT.urdf LOG... [-c PROJECT.yaml] [--first SECONDS]

With several logs each is left out once; with one, its first 60 % teach and the rest judges. With ``--first`` each log's
first seconds of motion teach and all other logs judge.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from urdf_ident.logs.read import read_recording
from urdf_ident.logs.recording import Recording
from urdf_ident.logs.sources import expand_logs
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import Project, load_project

COLUMNS = ("mean_rmse", "fit_mean_rmse", "urdf_friction_mean_rmse", "urdf_mean_rmse")


def logs_parser(words: str | None) -> argparse.ArgumentParser:
    """A parser of a robot, its logs, and a project file."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("urdf", type=Path)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("-c", "--config", type=Path)
    return parser


def opened(arguments: argparse.Namespace) -> tuple[Project, Robot, list[Recording]]:
    """What such arguments name."""
    project, folder = load_project(arguments.config)
    robot, layout = project.build_robot(arguments.urdf, folder), project.log
    return project, robot, [read_recording(source, robot, layout) for source in expand_logs(arguments.logs, layout)]


def tasks(logs: list[Recording], first: float | None = None) -> Iterator[tuple[str, list[Recording], list[Recording]]]:
    """Name, logs to learn from, logs to judge on."""
    if len(logs) == 1:
        (log,) = logs
        cut = log.time[0] + 0.6 * (log.time[-1] - log.time[0])
        parts = [
            replace(log.take(mask), name=f"{log.name} {word}", sha256="")
            for mask, word in ((log.time < cut, "first 60 %"), (log.time >= cut, "rest"))
        ]
        yield log.name, parts[:1], parts[1:]
        return
    for k, log in enumerate(logs):
        others = logs[:k] + logs[k + 1 :]
        if first is None:
            yield f"all but {log.name}", others, [log]
        else:
            speed = np.abs(np.gradient(log.position, log.time, axis=0)).max(axis=1)
            begin = sustained_start(log.time, speed)
            yield f"{first:g} s of {log.name}", [replace(log.take(log.time < begin + first), sha256="")], others


def sustained_start(t: np.ndarray, speed: np.ndarray) -> float:
    """When the motion begins that then lasts a second (a jog before it does not count)."""
    moving = speed > 0.05
    window = max(1, round(1.0 / np.median(np.diff(t))))
    share = np.convolve(moving, np.ones(window) / window)[window - 1 :]
    return float(t[int(np.argmax(share > 0.95))])


def main() -> None:
    parser = logs_parser(__doc__)
    parser.add_argument("--first", type=float)
    arguments = parser.parse_args()
    project, robot, logs = opened(arguments)
    model = project.build_model(robot)
    joint_errors, totals = [], []
    for name, learn, judge in tasks(logs, arguments.first):
        start = time.perf_counter()
        ident = identify(model, learn, held_out=judge, project=project)
        seconds = time.perf_counter() - start
        rmse = np.array([[joint["rmse"] for joint in item["per_joint"]] for item in ident.validation])
        means = np.array([[item[key] for key in COLUMNS] for item in ident.validation])
        joint_errors.append(np.sqrt(np.mean(rmse**2, axis=0)))
        totals.append(np.sqrt(np.mean(means**2, axis=0)))
        masses = ident.bodies[:, 0] / ident.prior.theta0[: model.n_inertial : 10]
        line = "  ".join(
            f"{key.removesuffix('_mean_rmse').replace('mean_rmse', 'exported')} {value:.3f}"
            for key, value in zip(COLUMNS, totals[-1], strict=True)
        )
        factor = np.exp(np.abs(np.log(masses)).max())
        print(f"{name}: {line}  worst mass factor {factor:.2f}  {seconds:.1f} s", flush=True)
    per_joint = np.sqrt(np.mean(np.square(joint_errors), axis=0))
    print(f"exported, RMS over logs per joint: {np.round(per_joint, 3).tolist()}; mean over joints {per_joint.mean():.3f}")
    print("means over cases: " + ", ".join(f"{k} {v:.3f}" for k, v in zip(COLUMNS, np.mean(totals, axis=0), strict=True)))


if __name__ == "__main__":
    main()
