"""A motion to record: D-optimal for the parameters of the model, inside position, velocity, acceleration and torque limits."""

import sys
from pathlib import Path

import urdf_ident as ui

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

robot = ui.Robot.from_urdf(ui.robot_path("ur10e"))
model = ui.DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
print(model.base().summary().splitlines()[0])

design = ui.design_excitation(model, duration=10.0, criterion="D", seed=0, budget=2.0)  # [s]
print(design.summary())
design.trajectory.write(out / "excite.csv")
print("wrote", out / "excite.csv")
