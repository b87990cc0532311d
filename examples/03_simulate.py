"""The whole experiment in simulation: a motion, a controller, friction that sticks, encoder counts, noise; a log comes out."""

import sys
from pathlib import Path

import urdf_ident as ui

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

robot = ui.Robot.from_urdf(ui.robot_path("zollo_2r"))
limits = ui.Limits.from_robot(robot)
motion = ui.random_fourier(limits, 8.0, 5, 0)

project = ui.Project.model_validate(
    {"simulation": {"rate": 500, "sensors": {"counts": 100_000, "torque_noise": {"sigma": 0.05, "correlation": 0.9}}}}
)
log = ui.simulate(robot, motion, project=project, seed=1, name="simulated")
print(len(log.recording), "rows; RMS tracking error", log.tracking_error, "rad")
ui.write_log(log, out / "simulated.csv")
print("wrote", out / "simulated.csv")
