"""Friction laws listed by joint, and what each list is worth on a motion that took no part in the fit."""

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
    for seed in range(3)
]

lists = {
    "none": "none",
    "viscous and Coulomb": ["viscous", "coulomb"],
    "with Stribeck on the first joint": {
        "default": ["viscous", "coulomb", "offset"],
        robot.joints[0]: ["viscous", "coulomb", "stribeck"],
    },
}
for words, friction in lists.items():
    ident = ui.identify(ui.DynamicModel(robot, friction=friction), logs[:2], held_out=logs[2:], force=True)
    print(f"{words:<36} held-out RMSE {ident.validation[0]['mean_rmse']:.4f} N·m")
