"""From a URDF and logs to a corrected URDF: identify, look at the verdict, validate, export.

The logs are simulated from a bundled robot, so that the example runs anywhere; with a real robot they come from its controller.
"""

import sys
from pathlib import Path

import urdf_ident as ui

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

# A robot, and three logs of different motions.
robot = ui.Robot.from_urdf(ui.robot_path("zollo_2r"))
limits = ui.Limits.from_robot(robot)
laboratory = ui.Project.model_validate(
    {"simulation": {"rate": 200, "step": 2e-3, "sensors": {"torque_noise": {"sigma": 0.05}}}}
)
truth = ui.robot_path("zollo_2r").with_name("zollo_2r_truth.yaml")
logs = [
    ui.simulate(
        robot, ui.random_fourier(limits, 10.0, 5, seed), project=laboratory, truth=truth, seed=seed, name=f"run{seed}"
    ).recording
    for seed in range(3)
]

# Identify from two, validate on the third.
model = ui.DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
ident = ui.identify(model, logs[:2], held_out=logs[2:])
print(ident.verdict.level, *ident.verdict.judgements, sep="\n  ")
print(ui.validate(ident, logs[2:]))

# The identified model is a callable; results are files.
tau = ident.torque(logs[2].position, 0 * logs[2].position, 0 * logs[2].position)  # gravity [N·m]
print("largest gravity torque:", abs(tau).max(axis=0).round(3), "N·m")
ident.save(out / "identification.json")
ui.write_urdf(ident, out / "identified.urdf")
print("wrote", out / "identified.urdf")
