"""A log as controllers write it, without header, in degrees and ampere: a project describes it once."""

import sys
from pathlib import Path

import numpy as np

import urdf_ident as ui

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

robot = ui.Robot.from_urdf(ui.robot_path("zollo_2r"))
limits = ui.Limits.from_robot(robot)
laboratory = ui.Project.model_validate(
    {"simulation": {"rate": 200, "step": 2e-3, "sensors": {"torque_noise": {"sigma": 0.05}}}}
)
truth = ui.robot_path("zollo_2r").with_name("zollo_2r_truth.yaml")
gain = np.array([12.0, 8.0])  # [N·m/A]
for seed in range(2):
    log = ui.simulate(robot, ui.random_fourier(limits, 10.0, 5, seed), project=laboratory, truth=truth, seed=seed).recording
    np.savetxt(
        out / f"currents_{seed}.csv", np.column_stack([log.time, np.rad2deg(log.position), log.effort / gain]), delimiter=","
    )

project = ui.Project.model_validate(
    {
        "drive": {"gain": gain.tolist()},
        "log": {
            "columns": {"time": 0, "position": [1, 2], "effort": [3, 4]},
            "units": {"position": "deg", "effort": "A"},
        },
        "model": {"friction": ["viscous", "coulomb", "offset"]},
    }
)
logs = [ui.read_recording(out / f"currents_{seed}.csv", robot, project.log) for seed in range(2)]
ident = ui.identify(project.build_model(robot), logs, project=project)
print(ident.verdict.level, *ident.verdict.judgements, sep="\n  ")
