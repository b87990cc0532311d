"""What the data determined and what they did not: base parameters, verdicts of single parameters, intervals of the torque."""

import numpy as np

import urdf_ident as ui

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
    for seed in range(2)
]
ident = ui.identify(ui.DynamicModel(robot, friction=["viscous", "coulomb", "offset"]), logs)

print(ident.fit.summary())
for verdict in ident.verdicts[:10]:
    print(f"{verdict.parameter:<20} {verdict.level}")

q, v, a = np.zeros(robot.n), np.full(robot.n, 0.5), np.zeros(robot.n)
for joint, torque, (low, high) in zip(robot.joints, ident.torque(q, v, a), ident.torque_interval(q, v, a), strict=True):
    print(f"{joint}: {torque:.3f} N·m, 95 % interval of the fit {low:.3f} to {high:.3f}")
