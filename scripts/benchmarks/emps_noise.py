"""EMPS with white noise on the position: least squares, instruments and DIDIM beside each other, from the main pipeline.

    python scripts/benchmarks/emps_noise.py DATA_EMPS.mat [--noise 20e-6] [--seeds 20] [--periodic off]

The baseline is the clean log in the same run. Every seed is a log of its own; figures are means over seeds, relative to
the clean log's least squares, of mass, viscous and dry friction, and how often the Durbin-Wu-Hausman test rejects.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from urdf_ident.logs.recording import Recording
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import Project, parse_project
from urdf_ident.result.identification import Identification

RATE = 1000.0
SYMBOLS = ("m", "Fv", "Fc")


def project_of(table: dict[str, np.ndarray], method: str, periodic: str = "off") -> Project:
    """The published protocol's filter and rate, and the benchmark's own controller."""
    gain, kp, kv = (float(table[key].item()) for key in ("gtau", "kp", "kv"))
    return parse_project(
        {
            "model": {"friction": ["viscous", {"term": "coulomb", "width": 1e-3}, "offset"], "rotor_inertia": False},
            "signals": {"cutoff": 100.0, "decimate": 100.0, "velocity": "differentiated", "periodic": periodic},
            "estimation": {"method": method},
            "simulation": {"controller": {"type": "pd", "kp": gain * kv * kp, "kd": gain * kv, "velocity_reference": False}},
        }
    )


def log_of(table: dict[str, np.ndarray], robot: Robot, noise: float, seed: int) -> Recording:
    q = table["qm"].reshape(-1, 1)
    q = q + noise * np.random.default_rng(seed).standard_normal(q.shape)
    force = float(table["gtau"].item()) * table["vir"].reshape(-1, 1)
    return Recording(
        "emps",
        robot.joints,
        np.arange(len(q)) / RATE,
        q,
        effort=force,
        effort_unit="N",
        position_target=table["qg"].reshape(-1, 1),
    )


def values(ident: Identification) -> np.ndarray:
    """Mass [kg], viscous [N·s/m] and dry friction [N]."""
    labels = [label.split("_")[0] for label in ident.fit.base.labels]
    return np.array([ident.fit.params[labels.index(symbol)] for symbol in SYMBOLS])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mat", type=Path)
    parser.add_argument("--noise", type=float, default=20e-6, help="standard deviation [m]")
    parser.add_argument("--periodic", choices=["off", "auto"], default="off", help="average the log's periods")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--methods", nargs="+", default=["wls", "iv", "didim", "auto"])
    arguments = parser.parse_args()
    table = loadmat(arguments.mat)
    robot = Robot.from_urdf(robot_path("emps"))

    def run(method: str, noise: float, seed: int) -> Identification:
        project = project_of(table, method, arguments.periodic)
        model: DynamicModel = project.build_model(robot)
        return identify(model, [log_of(table, robot, noise, seed)], project=project)

    clean = run("auto", 0.0, 0)
    base = values(clean)
    print(f"clean log: {clean.fit.method}, M, Fv, Fc = {np.round(base, 3).tolist()}; {clean.estimation['why']}", flush=True)
    for method in arguments.methods:
        found = [run(method, arguments.noise, seed) for seed in range(arguments.seeds)]
        change = 100 * (np.array([values(ident) for ident in found]) / base - 1)
        tests = [ident.estimation.get("hausman") for ident in found]
        rejected = sum(bool(test and test["rejected"]) for test in tests)
        words = f"; DWH rejects in {rejected} of {len(found)}" if any(tests) else ""
        print(
            f"{method:>6} ({found[0].fit.method}): M, Fv, Fc off by {np.round(change.mean(axis=0), 3).tolist()} % "
            f"in the mean, scatter {np.round(change.std(axis=0), 3).tolist()} %{words}",
            flush=True,
        )


if __name__ == "__main__":
    main()
