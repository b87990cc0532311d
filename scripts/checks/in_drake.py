"""Do exported URDFs mean the same in Drake? Run once, in two environments, because Drake is large:

    python scripts/checks/in_drake.py write /tmp/drake-check        # here: URDFs, random states, their torques
    python -m venv /tmp/drake-venv && /tmp/drake-venv/bin/pip install drake
    /tmp/drake-venv/bin/python scripts/checks/in_drake.py compare /tmp/drake-check

Every bundled robot is exported with changed inertials (random possible ones, some on the boundary) and friction.
Drake replaces inertias that it does not like by a ball and a warning; then the torques would differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

STATES = 1000


def write(folder: Path) -> None:
    """Exports the bundled robots, with 1000 random states each and the torques that the parameters stand for."""
    from urdf_ident.export.urdf import urdf_text
    from urdf_ident.model.bundled import robot_names, robot_path
    from urdf_ident.model.inertia import from_pseudo_inertia, pseudo_inertia
    from urdf_ident.model.prior import inertial_prior
    from urdf_ident.model.rigid_bodies import regressor
    from urdf_ident.model.robot import Robot

    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for name in robot_names():
        robot = Robot.from_urdf(robot_path(name))
        theta = inertial_prior(robot).theta0.copy()
        for i in range(robot.n):
            root = np.linalg.cholesky(pseudo_inertia(theta[10 * i : 10 * i + 10]))
            stretch = np.eye(4) + 0.2 * generator.standard_normal((4, 4))
            theta[10 * i : 10 * i + 10] = from_pseudo_inertia(root @ stretch @ stretch.T @ root.T)
        friction = dict.fromkeys(robot.joints, 0.5)
        text, notes = urdf_text(robot, theta, damping=friction, friction=friction)
        (folder / f"{name}.urdf").write_text(text)
        q, v, a = (scale * generator.uniform(-1, 1, (STATES, robot.n)) for scale in (2.0, 3.0, 10.0))
        tau = regressor(robot, q, v, a) @ theta
        np.savez(folder / f"{name}.npz", q=q, v=v, a=a, tau=tau)
        children = {joint.child for joint in robot.description.joints.values()}
        root_link = next(link for link in robot.description.links if link not in children)
        (folder / f"{name}.json").write_text(json.dumps({"joints": robot.joints, "root": root_link, "notes": notes}))
    print(f"wrote {len(robot_names())} robots to {folder}")


def compare(folder: Path) -> None:
    """Inverse dynamics of the same states in Drake; exits with 1 where they differ by more than 1e-6."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    worst = 0.0
    for path in sorted(folder.glob("*.urdf")):
        told = json.loads(path.with_suffix(".json").read_text())
        joints = told["joints"]
        reference = np.load(path.with_suffix(".npz"))
        plant = MultibodyPlant(0.0)
        (robot,) = Parser(plant).AddModels(str(path))
        if told["root"] != "world":  # Drake knows a link of that name already
            plant.WeldFrames(plant.world_frame(), plant.GetBodyByName(told["root"], robot).body_frame())
        plant.mutable_gravity_field().set_gravity_vector([0.0, 0.0, -9.81])
        plant.Finalize()
        context = plant.CreateDefaultContext()
        order = [plant.GetJointByName(name, robot).velocity_start() for name in joints]
        tau = np.empty_like(reference["tau"])
        for k in range(len(tau)):
            q, v, a = (np.zeros(len(order)) for _ in range(3))
            q[order], v[order], a[order] = reference["q"][k], reference["v"][k], reference["a"][k]
            plant.SetPositions(context, q)
            plant.SetVelocities(context, v)
            forces = _no_forces(plant, context)
            tau[k] = plant.CalcInverseDynamics(context, a, forces)[order]
        size = np.abs(reference["tau"]).max(axis=0)
        error = float((np.abs(tau - reference["tau"]).max(axis=0) / np.maximum(size, 1e-6 * size.max())).max())
        worst = max(worst, error)
        print(f"{path.name:<24} {len(joints)} joints, {len(tau)} states, largest relative difference {error:.1e}")
    sys.exit(0 if worst <= 1e-6 else 1)


def _no_forces(plant: object, context: object) -> object:
    """Gravity alone: what else CalcForceElementsContribution adds (damping) is not part of the inertials."""
    from pydrake.multibody.tree import MultibodyForces

    forces = MultibodyForces(plant)
    forces.SetZero()
    gravity = plant.CalcGravityGeneralizedForces(context)  # type: ignore[attr-defined]
    forces.mutable_generalized_forces()[:] = gravity
    return forces


if __name__ == "__main__":
    {"write": write, "compare": compare}[sys.argv[1]](Path(sys.argv[2]))
