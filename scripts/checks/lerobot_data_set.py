"""Writes a LeRobot data set of the bundled six-axis arm with LeRobot's own library; tests/lerobot holds what it wrote.

    pip install lerobot==0.3.3 pin    # version 2.1 of the format; 0.4.2 writes version 3.0
    python scripts/checks/lerobot_data_set.py tests/lerobot/v2.1 --position degrees

Features are those of LeRobot's `record`: positions and targets as `joint.pos`, in degrees or in −100 … 100 of each joint's
range, at 30 frames a second, and beside them the present currents [mA], as an arm with Feetech or Dynamixel motors can add.
Torques are Pinocchio's, with the friction and rotor inertia of `robots/generic_6axis_truth.yaml`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import pinocchio as pin
import yaml
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.datasets.utils import hw_to_dataset_features

ROBOTS = Path(__file__).parents[2] / "robots"
FRAMES_PER_SECOND = 30
#: Torque constants behind the gears [N·m/A].
GAIN = np.array([12.0, 14.0, 9.0, 4.0, 4.0, 2.0])


def motion(model: pin.Model, seconds: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations (N, n) of a sum of five sines at most at 0.4 Hz within the limits."""
    generator, t = np.random.default_rng(seed), np.arange(round(seconds * FRAMES_PER_SECOND)) / FRAMES_PER_SECOND
    w = 2 * np.pi * generator.uniform(0.05, 0.4, (5, model.nq))
    phase, weight = generator.uniform(0, 2 * np.pi, w.shape), generator.uniform(0.3, 1.0, w.shape)
    q, v, a = (
        (weight * w**order * np.sin(w * t[:, None, None] + phase + order * np.pi / 2)).sum(axis=1) for order in (0, 1, 2)
    )
    factor = 0.8 * np.minimum(model.upperPositionLimit / abs(q).max(axis=0), model.velocityLimit / abs(v).max(axis=0))
    return factor * q, factor * v, factor * a


def main() -> None:
    """Reads the command line and writes the data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--position", choices=("degrees", "normalized"), default="degrees")
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0)
    given = parser.parse_args()
    model, truth = (
        pin.buildModelFromUrdf(str(ROBOTS / "generic_6axis.urdf")),
        yaml.safe_load((ROBOTS / "generic_6axis_truth.yaml").read_text(encoding="utf-8")),
    )
    data, joints = model.createData(), list(model.names)[1:]
    scale = 180 / np.pi if given.position == "degrees" else 100 / model.upperPositionLimit
    positions = {f"{joint}.pos": float for joint in joints}
    features = hw_to_dataset_features(positions, "observation", False) | hw_to_dataset_features(positions, "action", False)
    features["observation.present_current"] = {"dtype": "float32", "shape": (model.nq,), "names": joints}
    if given.out.exists():
        shutil.rmtree(given.out)
    dataset = LeRobotDataset.create(
        "urdf_ident/arm", FRAMES_PER_SECOND, features, root=given.out, robot_type="arm", use_videos=False
    )
    for seed in range(given.episodes):
        generator = np.random.default_rng(1000 + seed)
        q, v, a = motion(model, given.seconds, seed)
        friction = truth["friction"]
        tau = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
        tau += truth["rotor_inertia"] * a + friction["viscous"] * v + friction["coulomb"] * np.tanh(v / 0.01)
        tau += 0.03 * tau.std(axis=0) * generator.standard_normal(tau.shape)
        seen = q + 2 * np.pi / 4096 * generator.uniform(-0.5, 0.5, q.shape)  # an encoder of 12 bits
        for target, position, effort in zip(q, seen, tau, strict=True):
            frame = {
                "action": np.float32(scale * target),
                "observation.state": np.float32(scale * position),
                "observation.present_current": np.float32(1000 * effort / GAIN),
            }
            if hasattr(dataset, "finalize"):  # version 3 takes the task as a field of the frame
                dataset.add_frame(frame | {"task": "move"})
            else:
                dataset.add_frame(frame, "move")
        dataset.save_episode()
    if hasattr(dataset, "finalize"):
        dataset.finalize()


if __name__ == "__main__":
    main()
