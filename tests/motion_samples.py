"""Smooth motions with known torque, for tests of what works on segments."""

import numpy as np
import yaml
from conftest import arm_urdf, inertials

from urdf_ident import BaseParameters, Drive, DynamicModel, Robot, Segment, Trajectory
from urdf_ident.linalg import Array
from urdf_ident.model.bundled import robot_path, truth_path

A = np.array([[-50.0, 0, 0], [0, 45, 0], [0, 32, 32]])  # joint 1 alone, joints 2 and 3 coupled


def robot_3r() -> Robot:
    return Robot.from_urdf(arm_urdf("zyx"))


def coupled_model() -> DynamicModel:
    return DynamicModel(robot_3r(), drive=Drive.build(3, reduction=A), motor_friction={"j3": ["coulomb"]})


def tx40(**options: object) -> DynamicModel:
    """A TX40 with the coupled motors of its wrist."""
    reduction = yaml.safe_load(truth_path("tx40").read_text())["reduction"]
    drive = Drive.build(6, reduction=reduction)
    friction = {"joint_6": ["viscous", "coulomb"]}
    return DynamicModel(Robot.from_urdf(robot_path("tx40")), drive=drive, motor_friction=friction, **options)  # type: ignore[arg-type]


def truth(model: DynamicModel, seed: int = 0) -> Array:
    """The URDF's inertial parameters and positive numbers for the terms."""
    inertial = inertials(model.robot)
    terms = np.random.default_rng(seed).uniform(0.5, 2.0, len(model.parameters) - len(inertial))
    motor = np.array([parameter.symbol.endswith("m") for parameter in model.parameters[len(inertial) :]])
    return np.concatenate([inertial, np.where(motor, terms / 2000, terms)])


def make_segment(
    model: DynamicModel, samples: int = 800, *, log: str = "log", rate: float = 100.0, seed: int = 0, sigma: float | Array = 0.0
) -> Segment:
    """Sums of sines, differentiated on paper, with the torque of :func:`truth` and white noise on the rows.

    Args:
        model: The model.
        samples: Length.
        log: Name.
        rate: Samples per second [Hz].
        seed: Of motion and noise.
        sigma: Standard deviation of the noise of each row group, a number or shape (n,) [unit of torque].

    Returns:
        The segment.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / rate
    q, v, a = np.zeros((3, samples, model.n))
    for _ in range(5):
        size, w, phase = rng.uniform(0.1, 0.5, model.n), rng.uniform(0.5, 6.0, model.n), rng.uniform(0, 6, model.n)
        angle = np.outer(t, w) + phase
        q += size * np.sin(angle)
        v += size * w * np.cos(angle)
        a -= size * w**2 * np.sin(angle)
    noise = rng.normal(size=(samples, model.n)) * sigma
    tau = model.torque(truth(model), q, v, a) + np.linalg.solve(model.drive.row_mix, noise.T).T
    return Segment(log, 0.0, rate, q, v, a, tau)


def raw_rows(model: DynamicModel, segment: Segment) -> list[Array]:
    """``[W | tau]`` of every row group, all columns of theta, by probing the model with unit parameters.

    Args:
        model: The model.
        segment: The motion.

    Returns:
        Per row group shape (N, p + 1).
    """
    W = model.torque(np.eye(len(model.parameters)), segment.q, segment.v, segment.a)
    joint_rows = np.concatenate([W, segment.tau[:, :, None]], axis=2)
    mixed = np.einsum("ij,njp->nip", model.drive.row_mix, joint_rows)
    return [mixed[:, i] for i in range(model.n)]


def rows_along(model: DynamicModel, base: BaseParameters, trajectory: Trajectory, noise: Array, rate: float = 100.0) -> Array:
    """Rows of a motion for the base parameters as identification computes them, divided by their noise, shape (N·n, b)."""
    count = round(trajectory.duration * rate)
    segment = Segment("planned", 0.0, rate, *trajectory.evaluate((np.arange(count) + 0.5) / rate))
    out = np.zeros((model.n, count, len(model.parameters)))
    for samples, blocks in model.row_blocks(segment):
        for j, (group, block) in enumerate(zip(model.groups, blocks, strict=True)):
            out[j, samples, group.columns] = (block / noise[j]).T
    return out.reshape(-1, len(model.parameters))[:, base.independent]
