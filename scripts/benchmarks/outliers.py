"""Wild torque samples before any filter: parameter error of IRLS and OLS over that of OLS without outliers.

    python scripts/benchmarks/outliers.py [--seeds 10] [--share 0.05] [--size 45]

A 6-axis arm of 20 s at 100 Hz, white torque noise; the same motion in every seed, root-mean-square error of every parameter
over the seeds. IRLS weights joints too, so that it is compared with outlier-free WLS beside OLS. Goal: IRLS at most 1.5 times
outlier-free OLS, OLS at least 10 times.
"""

from __future__ import annotations

import argparse

import numpy as np

from urdf_ident.logs.recording import Recording
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project

LAWS = {"Ia": 0.3, "Fv": 2.0, "Fc": 1.5, "offset": 0.1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.05, help="of the samples")
    parser.add_argument("--size", type=float, default=45.0, help="standard deviations of the noise")
    arguments = parser.parse_args()
    robot = Robot.from_urdf(robot_path("ur10e"))
    project = {
        name: parse_project({"model": {"friction": ["viscous", "coulomb", "offset"]}, "estimation": {"method": name}})
        for name in ("ols", "wls", "irls", "auto")
    }
    model: DynamicModel = project["ols"].build_model(robot)
    motion = random_fourier(Limits.from_robot(robot), 20.0, 8, 1, fill=0.8)
    time = motion.times(100.0)
    q, v, a = motion.evaluate(time)
    true = np.concatenate(
        [
            np.concatenate([inertia.toDynamicParameters() for inertia in list(robot.model.inertias)[1:]]),
            [LAWS[parameter.symbol] for parameter in model.parameters[model.n_inertial :]],
        ]
    )
    clean = model.torque(true, q, v, a)
    sigma = 0.02 * clean.std(axis=0)

    def error(method: str, tau: np.ndarray) -> np.ndarray:
        ident = identify(model, [Recording("log", robot.joints, time, q, effort=tau)], project=project[method])
        return ident.fit.params - ident.fit.base.of(true)

    names = ("clean ols", "clean wls", "ols", "irls", "auto")
    errors: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for seed in range(arguments.seeds):
        rng = np.random.default_rng(seed)
        good = clean + sigma * rng.standard_normal(clean.shape)
        outlying = (rng.random(clean.shape) < arguments.share) * rng.choice([-1.0, 1.0], clean.shape)
        bad = good + arguments.size * sigma * outlying
        for name in names:
            errors[name].append(error(name.split()[-1], good if name.startswith("clean") else bad))
    size = {name: np.sqrt(np.mean(np.square(values), axis=0)) for name, values in errors.items()}
    for name, before in (("ols", "clean ols"), ("irls", "clean ols"), ("irls", "clean wls"), ("auto", "clean wls")):
        ratio = size[name] / size[before]
        print(
            f"{name:>5} over {before}: median {np.median(ratio):.2f}, all parameters together "
            f"{np.sqrt(np.mean(ratio**2)):.2f}, worst {ratio.max():.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
