"""Safety: designed motions against an independent judge; and six axes with collisions on in ten seconds.

python scripts/benchmarks/safety.py [--seeds 200] [--first 0] [--budget 1.0] [--only seeds|sweeps|ten]

- seeds: three robots in turn, every family of motions, random durations, harmonics and start poses; the UR10e works over a
  table, between a wall and a post that stands elsewhere every time. Judged is the CSV that is written: positions as they are,
  velocities and accelerations by differences of the positions, torques by Pinocchio's dynamics of these, distances of all
  shapes by MuJoCo's own kinematics and collision code. Designs that are refused are counted, and are no violations.
- sweeps: the same judge, world and robots for runs at constant speed.
- ten: the default design of the UR10e, collisions on and off, ten seconds on two cores: criterion and time.
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from urdf_ident.errors import LimitError
from urdf_ident.excitation.design import Design, design_excitation
from urdf_ident.excitation.sweeps import BidirectionalExperiment, bidirectional_experiment
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.motion.collision.collisions import Collisions
from urdf_ident.motion.collision.find import find_collisions
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.motion.limits import Limits, prior_torque

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from collision_oracle import MujocoScene

ROBOTS = ("ur10e", "tx40", "generic_6axis")
CLEARANCE = 0.015  # [m]
#: By how much two collision libraries may differ [m].
AGREE = 3e-4
#: Shapes closer than NEAR on this part of random configurations overlap by design.
TOUCHING, NEAR = 0.9, 0.01  # [-, m]
#: Room that differences of a CSV with 1 ms steps need, as a part of the limit.
ROUND = 1e-3


@dataclass
class Judge:
    """Everything checked about one robot among some objects.

    Attributes:
        robot: The robot.
        objects: Name → (kind, size, place), as the oracle takes them.
        worst: Quantity → the least relative room so far; of the distance, what was left above the clearance [m].
    """

    robot: Robot
    objects: dict[str, tuple[str, list[float], list[float]]]
    worst: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import mujoco

        self.mujoco, self.scene = mujoco, MujocoScene(self.robot, self.objects)
        model, robot = self.scene.model, self.robot
        body = [int(model.body_weldid[k]) for k in model.geom_bodyid]
        parent = [int(model.body_weldid[model.body_parentid[k]]) for k in body]
        pairs = [
            (a, b)
            for a in range(model.ngeom)
            for b in range(a + 1, model.ngeom)
            if body[a] != body[b] and (not self._near(a, b, body, parent) or self._of_world(a) or self._of_world(b))
        ]
        q = np.random.default_rng(1).uniform(robot.limit("lower"), robot.limit("upper"), (200, robot.n))
        share = (self.distances(q, pairs) < NEAR).mean(axis=0)
        self.pairs = [pair for pair, part in zip(pairs, share, strict=True) if part < TOUCHING]

    def _of_world(self, geom: int) -> bool:
        return self.scene.owner[geom] in self.objects

    @staticmethod
    def _near(a: int, b: int, body: list[int], parent: list[int]) -> bool:
        return parent[a] == body[b] or parent[b] == body[a]

    def distances(self, q: np.ndarray, pairs: list[tuple[int, int]], far: float = 0.1) -> np.ndarray:
        """Distances by MuJoCo, shape (N, P) [m]; ``far`` where they are larger."""
        out = np.empty((len(q), len(pairs)))
        for k, configuration in enumerate(q):
            self.scene.data.qpos[self.scene.addresses] = configuration
            self.mujoco.mj_kinematics(self.scene.model, self.scene.data)
            measure = self.mujoco.mj_geomDistance
            out[k] = [measure(self.scene.model, self.scene.data, a, b, far, None) for a, b in pairs]
        return out

    def violations(self, path: Path, limits: Limits) -> list[str]:
        """What a written motion breaks."""
        with path.open(encoding="utf-8") as file:
            names = file.readline().strip().split(",")
            table = np.loadtxt(file, delimiter=",")
        t = table[:, names.index("t")]
        q = table[:, [names.index(f"q_{joint}") for joint in self.robot.joints]]
        step = float(t[1] - t[0])
        v = (q[2:] - q[:-2]) / (2 * step)
        a = (q[2:] - 2 * q[1:-1] + q[:-2]) / step**2
        data = self.robot.model.createData()
        poses = self.robot.configuration(q[1:-1])
        tau = np.array([pin.rnea(self.robot.model, data, *row) for row in zip(poses, v, a, strict=True)])
        middle, half = (limits.upper + limits.lower) / 2, (limits.upper - limits.lower) / 2
        room = {
            "position": 1 - np.abs(q - middle) / half,
            "velocity": 1 - np.abs(v) / limits.velocity,
            "acceleration": 1 - np.abs(a) / limits.acceleration,
            "torque": 1 - np.abs(tau) / limits.torque,
        }
        found = []
        for quantity, left in room.items():
            least = float(left.min())
            self.worst[quantity] = min(self.worst.get(quantity, np.inf), least)
            if least < -ROUND:
                found.append(f"{quantity} {-100 * least:.2f} % beyond")
        near = self.distances(q[::10], self.pairs).min(axis=1)
        close = np.unique(np.clip(10 * np.flatnonzero(near < CLEARANCE + 0.02)[:, None] + np.arange(-5, 6), 0, len(q) - 1))
        least = float(min(near.min(), self.distances(q[close[::2]], self.pairs).min(initial=np.inf))) - CLEARANCE
        self.worst["distance"] = min(self.worst.get("distance", np.inf), least)
        if least < -AGREE:
            found.append(f"{1000 * -least:.2f} mm too close")
        return found


def objects_of(name: str, rng: np.random.Generator) -> dict[str, tuple[str, list[float], list[float]]]:
    """A table, a wall and a post around the UR10e, nothing around the others."""
    if name != "ur10e":
        return {}
    angle, away = rng.uniform(-np.pi, np.pi), rng.uniform(0.55, 1.1)
    return {
        "table": ("box", [2.0, 2.0, 0.06], [0.3, 0.0, -0.05]),
        "wall": ("box", [0.1, 4.0, 4.0], [-0.9, 0.0, 1.0]),
        "post": ("cylinder", [0.05, 1.6], [away * np.cos(angle), away * np.sin(angle), 0.8]),
    }


def options(rng: np.random.Generator, seed: int, robot: Robot, collisions: Collisions) -> dict[str, Any]:
    """Random settings: family, duration, harmonics, and for some a start pose."""
    family = ("modified_fourier", "fourier", "spline", "tied_fourier")[int(rng.integers(4))]
    out: dict[str, Any] = {"family": family, "duration": float(rng.uniform(6, 20)), "harmonics": int(rng.integers(3, 7))}
    out |= {"seed": seed, "ramp": float(rng.uniform(1.5, 3.0)), "starts": None}
    if family == "tied_fourier" or rng.random() < 0.3:
        for _ in range(500):
            pose = rng.uniform(0.6 * robot.limit("lower"), 0.6 * robot.limit("upper"))
            if (collisions.distances(pose)[0] > collisions.required + 0.01).all():
                return out | {"start": pose}
    return out


def place(seed: int) -> tuple[str, Robot, dict[str, tuple[str, list[float], list[float]]], Collisions, np.random.Generator]:
    """A robot, and what is around it."""
    name, rng = ROBOTS[seed % len(ROBOTS)], np.random.default_rng(1000 + seed)
    robot, objects = Robot.from_urdf(robot_path(name)), objects_of(name, rng)
    world = parse_world({"objects": {key: {kind: size, "xyz": xyz} for key, (kind, size, xyz) in objects.items()}})
    return name, robot, objects, find_collisions(robot, world, clearance=CLEARANCE), rng


def seeds(first: int, count: int, budget: float, *, sweeps: bool = False) -> None:
    """Designs with random settings, or sweeps; what the judge says of the files."""
    worst: dict[str, dict[str, float]] = {name: {} for name in ROBOTS}
    bad, refused, tally = [], [], dict.fromkeys(ROBOTS, 0)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            name, robot, objects, collisions, rng = place(seed)
            try:
                if sweeps:
                    limits = Limits.from_robot(robot, acceleration=2.0 * robot.limit("velocity"))
                    design: Design | BidirectionalExperiment = bidirectional_experiment(
                        limits,
                        count=4,
                        cruise=float(rng.uniform(0.3, 1.0)),
                        torque=prior_torque(robot),
                        collisions=collisions,
                        seed=seed,
                    )
                else:
                    settings = options(rng, seed, robot, collisions)
                    design = design_excitation(DynamicModel(robot), budget=budget, collisions=collisions, **settings)
            except LimitError as error:
                refused.append(f"seed {seed}, {name}: {error}")
                continue
            judge = Judge(robot, objects, worst[name])
            broken = judge.violations(design.trajectory.write(Path(folder) / "motion.csv"), design.limits)
            bad += [f"seed {seed}, {name}, {'sweeps' if sweeps else settings['family']}: {text}" for text in broken]
            tally[name] += 1
    by_robot = ", ".join(f"{name} {number}" for name, number in tally.items())
    what = "sweeps" if sweeps else "motions"
    print(
        f"{sum(tally.values())} {what} ({by_robot}), {len(refused)} refused, {len(bad)} violations; "
        f"{time.perf_counter() - begun:.0f} s"
    )
    for name, least in worst.items():
        above = 1000 * least.get("distance", np.nan)
        margins = ", ".join(f"{key} {100 * value:.2f} %" for key, value in least.items() if key != "distance")
        print(f"  {name:14s} least margin: {margins}, distance {above:+.2f} mm above the clearance")
    for line in [*refused, *bad]:
        print("  " + line)


def ten(repeats: int) -> None:
    """Collisions on against off: what they cost, in ten seconds."""
    robot = Robot.from_urdf(robot_path("ur10e"))
    model = DynamicModel(robot)
    objects = objects_of("ur10e", np.random.default_rng(3))
    world = parse_world({"objects": {key: {kind: size, "xyz": xyz} for key, (kind, size, xyz) in objects.items()}})

    def tell(what: str, design: Design, elapsed: float) -> None:
        print(
            f"  {what:24s} seed {design.settings['seed']}: D {np.exp(design.value):.3f}, condition {design.condition:.0f}, "
            f"{design.starts} starts, {elapsed:.1f} s"
        )

    print("UR10e, 58 base parameters, 20 s, wall-clock time with the collisions' own preparation")
    for seed in range(repeats):
        for what, build in (
            ("limits only", lambda: None),
            ("links", lambda: find_collisions(robot)),
            ("links, table, wall, post", lambda: find_collisions(robot, world, clearance=CLEARANCE)),
        ):
            begun = time.perf_counter()
            design = design_excitation(model, seed=seed, budget=9.6, collisions=build())
            tell(what, design, time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--budget", type=float, default=1.0, help="time of each search [s]")
    parser.add_argument("--repeats", type=int, default=3, help="designs in ten seconds of each kind")
    parser.add_argument("--only", choices=("seeds", "sweeps", "ten"))
    arguments = parser.parse_args()
    if arguments.only in (None, "seeds"):
        seeds(arguments.first, arguments.seeds, arguments.budget)
    if arguments.only in (None, "sweeps"):
        seeds(arguments.first, min(arguments.seeds, 12), 0.0, sweeps=True)
    if arguments.only in (None, "ten"):
        ten(arguments.repeats)


if __name__ == "__main__":
    main()
