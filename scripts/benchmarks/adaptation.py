"""Friction that changes: spread between logs, its coverage, and adaptation online, on real and on simulated arms.

    python scripts/benchmarks/adaptation.py ur10e ROBOT.urdf LOG... [-c PROJECT.yaml]
    python scripts/benchmarks/adaptation.py arms [--kinds spread time work none] [--arms 10] [--first 0]
    python scripts/benchmarks/adaptation.py speed [--robot robots/ur10e.urdf]

``ur10e`` leaves each log out once, everything automatic, and prints static and adapted RMSE (any robot's logs will do).
``arms`` makes chains of 3 to 6 joints with friction that differs from log to log (``spread``), warms with time (``time``) or
with the work done by friction (``work``), or stays (``none``); seven logs teach, one judges. Torques come from Pinocchio's RNEA
and formulas written again here, with coloured noise. Printed are, over arms:

- spread: identified over true spread (``spread`` only), and the part within a factor of 1.5;
- coverage: how often the 95 % intervals hold the friction of the next log, and the inertial base parameters;
- adapted over static RMSE of the judging log, and adapted over that of an oracle which knows friction at each instant.

``speed`` measures one update and one torque of six axes.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.signal import lfilter

from urdf_ident.linalg import Array
from urdf_ident.logs.read import read_recording
from urdf_ident.logs.recording import Recording
from urdf_ident.logs.sources import expand_logs
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.identify import identify
from urdf_ident.pipeline.validate import validate
from urdf_ident.project import load_project
from urdf_ident.result.identification import Identification

RATE, SECONDS, TEACH = 100.0, 20.0, 7  # [Hz], [s], logs
NOISE, MEMORY = 0.02, 0.8  # part of the torque's standard deviation, and correlation from sample to sample
LAWS = ["viscous", "coulomb", "offset"]
SPREAD = 0.15  # of friction, from log to log
WARM, HOURS = 0.5, 300.0  # friction of a cold arm is larger by this part; time constant of warming [s]


@dataclass(frozen=True, eq=False)
class Arm:
    """A random chain with friction that changes."""

    robot: Robot
    viscous: Array
    coulomb: Array
    rotor: Array
    kind: str

    @classmethod
    def random(cls, seed: int, kind: str) -> Arm:
        rng = np.random.default_rng(seed)
        robot = Robot.from_urdf(random_urdf(rng))
        n = robot.n
        return cls(robot, rng.uniform(1.0, 6.0, n), rng.uniform(1.0, 5.0, n), rng.uniform(0.05, 0.5, n), kind)

    def log(self, name: str, seed: int) -> tuple[Recording, Array, Array]:
        """A log, the true friction along it, shape (N, n), and its Coulomb and viscous parameters where they are constant."""
        rng = np.random.default_rng(seed)
        q, v, a = motion(rng, self.robot.n)
        model, data = self.robot.model, self.robot.model.createData()
        rigid = np.array([pin.rnea(model, data, x, y, z) for x, y, z in zip(q, v, a, strict=True)]) + self.rotor * a
        coulomb, viscous = np.tile(self.coulomb, (len(q), 1)), np.tile(self.viscous, (len(q), 1))
        t, begin = np.arange(len(q)) / RATE, rng.uniform(0.0, 2.0 * HOURS)
        if self.kind == "spread":
            coulomb = coulomb * (1 + SPREAD * rng.normal(size=self.robot.n))
            viscous = viscous * (1 + SPREAD * rng.normal(size=self.robot.n))
        elif self.kind == "time":
            factor = 1 + WARM * np.exp(-(begin + t) / HOURS)[:, None]
            coulomb, viscous = coulomb * factor, viscous * factor
        elif self.kind == "work":
            power = (np.abs(v) * coulomb + v**2 * viscous).cumsum(axis=0) / RATE
            usual = power[-1] / SECONDS
            factor = 1 + WARM * np.exp(-(begin + power / usual) / HOURS)
            coulomb, viscous = coulomb * factor, viscous * factor
        friction = coulomb * np.tanh(v / 0.02) + viscous * v
        tau = rigid + friction
        noise = lfilter([np.sqrt(1 - MEMORY**2)], [1.0, -MEMORY], rng.normal(size=tau.shape), axis=0)
        tau = tau + NOISE * tau.std(axis=0) * noise
        return Recording(name, self.robot.joints, t, q, effort=tau, sha256=f"{name}{seed}"), friction, v


def random_urdf(rng: np.random.Generator) -> str:
    """A chain of 3 to 6 revolute joints."""
    parts, parent = ['<robot name="chain"><link name="base"/>'], "base"
    for k in range(1, int(rng.integers(3, 7)) + 1):
        axis, place = np.eye(3)[rng.integers(3)], rng.uniform(-0.1, 0.1, 3) + [0.0, 0.0, 0.5 / k]
        mass, size, com = rng.uniform(3.0, 8.0) / k, rng.uniform(0.05, 0.15, 3), rng.uniform(-0.05, 0.05, 3)
        inertia = mass * (size @ size - size**2)
        parts.append(
            f'<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>'
            f'<origin xyz="{" ".join(map(str, place))}" rpy="0.1 0.2 {0.3 * k}"/><axis xyz="{" ".join(map(str, axis))}"/>'
            '<limit lower="-3" upper="3" velocity="4" effort="500"/></joint>'
            f'<link name="l{k}"><inertial><origin xyz="{" ".join(map(str, com))}"/><mass value="{mass}"/>'
            f'<inertia ixx="{inertia[0]}" iyy="{inertia[1]}" izz="{inertia[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
        parent = f"l{k}"
    return "".join([*parts, "</robot>"])


def motion(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    """A random Fourier motion, shapes (N, n)."""
    t, w = np.arange(round(SECONDS * RATE)) / RATE, 2 * np.pi / 10.0
    q, v, a = np.zeros((3, len(t), n))
    q += rng.uniform(-0.5, 0.5, n)
    for k in range(1, 6):
        c, s = rng.normal(size=(2, n)) * 0.7 / k
        sin, cos = np.sin(k * w * t)[:, None], np.cos(k * w * t)[:, None]
        q += c * sin + s * cos
        v += k * w * (c * cos - s * sin)
        a -= (k * w) ** 2 * (c * sin + s * cos)
    return q, v, a


def held(arm: Arm, ident: Identification) -> tuple[list[bool], list[bool]]:
    """Whether the intervals hold the friction of a next log, and the inertial base parameters."""
    base, ends = ident.fit.base, ident.fit.conf_int()
    truth = np.zeros(len(base.names))
    model = ident.model
    truth[: model.n_inertial] = ident.urdf_theta[: model.n_inertial]  # the URDF is the truth, and the fit does not know it
    for k, parameter in enumerate(model.parameters):
        if parameter.symbol == "Ia":
            truth[k] = arm.rotor[arm.robot.joints.index(parameter.owner)]
    inertial, friction = [], []
    beta = base.of(truth)
    rng = np.random.default_rng(abs(hash(arm.robot.sha256)) % 2**32)
    for row, index in enumerate(base.independent):
        parameter = model.parameters[int(index)]
        if parameter.symbol in ("Fc", "Fv"):
            mean = (arm.coulomb if parameter.symbol == "Fc" else arm.viscous)[arm.robot.joints.index(parameter.owner)]
            spread = SPREAD if arm.kind == "spread" else 0.0
            for _ in range(20):
                following = mean * (1 + spread * rng.normal())
                friction.append(bool(ends[row, 0] < following < ends[row, 1]))
        elif parameter.symbol != "offset" and ident.fit.seen[row]:
            inertial.append(bool(ends[row, 0] < beta[row] < ends[row, 1]))
    return friction, inertial


def arms(kinds: list[str], count: int, first: int) -> None:
    """The simulated arms."""
    for kind in kinds:
        ratios, friction, inertial, gain, oracle, seconds, worst = [], [], [], [], [], [], []
        for seed in range(first, first + count):
            arm = Arm.random(seed, kind)
            logs = [arm.log(f"log{k}", 1000 * seed + k)[0] for k in range(TEACH)]
            following, true, v = arm.log("next", 1000 * seed + 500)
            start = time.process_time()
            ident = identify(DynamicModel(arm.robot, friction=LAWS), logs, held_out=[following])
            seconds.append(time.process_time() - start)
            (entry,) = ident.validation
            changes = ident.friction_changes
            assert changes is not None
            if kind == "spread":
                means = np.array(
                    [(arm.coulomb if k == "dry" else arm.viscous)[j] for j, k in zip(changes.axes, changes.kinds, strict=True)]
                )
                ratios += (changes.spread / (SPREAD * means)).tolist()
            if kind in ("spread", "none"):
                found = held(arm, ident)
                friction += found[0]
                inertial += found[1]
            own = ident.friction(v) - np.array([ident.term_values("offset")[joint] for joint in arm.robot.joints])
            assert following.effort is not None
            known = replace(following, effort=following.effort - true + own, sha256="oracle")
            best = validate(ident, [known], force=True).entries[0]["mean_rmse"]
            adapted = entry["adapted"]["mean_rmse"] if "adapted" in entry else entry["mean_rmse"]
            gain.append(adapted / entry["mean_rmse"])
            oracle.append(adapted / best)
            each = zip(entry.get("adapted", {}).get("per_joint", []), entry["per_joint"], strict=False)
            worst.append(max((new["rmse"] / old["rmse"] for new, old in each), default=1.0))
            memory = ident.adaptation.get("memory", "-")
            words = (
                f"adapted/static {gain[-1]:.3f} (worst joint {worst[-1]:.3f}), adapted/oracle {oracle[-1]:.3f}, memory {memory}"
            )
            print(f"  {kind} {seed}: {arm.robot.n} joints, {words}, {seconds[-1]:.1f} s", flush=True)
        line = f"{kind}: adapted/static mean {np.mean(gain):.3f}, worst {np.max(gain):.3f}, worst joint {np.max(worst):.3f}; "
        line += f"adapted/oracle mean {np.mean(oracle):.3f}, worst {np.max(oracle):.3f}; "
        if ratios:
            inside = np.mean((np.array(ratios) < 1.5) & (np.array(ratios) > 1 / 1.5))
            line += f"spread/true median {np.median(ratios):.2f}, within 1.5: {100 * inside:.0f} % of {len(ratios)}; "
        if friction:
            line += f"coverage: next log's friction {100 * np.mean(friction):.1f} %, inertial {100 * np.mean(inertial):.1f} %"
        print(line, flush=True)


def real(urdf: Path, names: list[str], config: Path | None) -> None:
    """Leaves each log out once."""
    project, folder = load_project(config)
    robot = project.build_robot(urdf, folder)
    model, layout = project.build_model(robot), project.log
    logs = [read_recording(source, robot, layout) for source in expand_logs(names, layout)]
    static, adapted = [], []
    for k, log in enumerate(logs):
        start = time.process_time()
        ident = identify(model, logs[:k] + logs[k + 1 :], held_out=[log], project=project)
        (entry,) = ident.validation
        static.append([joint["rmse"] for joint in entry["per_joint"]])
        adapted.append([joint["rmse"] for joint in entry["adapted"]["per_joint"]])
        print(
            f"{log.name}: static {entry['mean_rmse']:.3f}, adapted {entry['adapted']['mean_rmse']:.3f}, memory "
            f"{ident.adaptation['memory']:g} s, caution {ident.adaptation['caution']:g}, {time.process_time() - start:.0f} s",
            flush=True,
        )
    before, after = (np.sqrt(np.mean(np.square(x), axis=0)) for x in (static, adapted))
    print(
        f"RMS over logs per joint: static {before.round(3).tolist()}, adapted over static {(after / before).round(3).tolist()}"
    )
    print(
        f"means over joints: static {before.mean():.3f}, adapted {after.mean():.3f}, ratio {after.mean() / before.mean():.3f}"
    )


def speed(urdf: Path) -> None:
    """One update and one torque at 500 Hz."""
    robot = Robot.from_urdf(urdf)
    arm = Arm(robot, np.full(robot.n, 4.0), np.full(robot.n, 3.0), np.full(robot.n, 0.2), "spread")
    logs = [arm.log(f"log{k}", k)[0] for k in range(3)]
    ident = identify(DynamicModel(robot, friction=LAWS), logs)
    q, v, a = motion(np.random.default_rng(9), robot.n)
    tau = ident.torque(q, v, a)
    state = ident.adaptive(memory=30.0, rate=500.0)
    best = {"update": np.inf, "torque": np.inf, "worst update": np.inf}
    for _ in range(5):
        single = []
        for k in range(len(q)):
            begin = time.perf_counter()
            state.update(q[k], v[k], a[k], tau[k])
            single.append(time.perf_counter() - begin)
        begin = time.process_time()
        for k in range(len(q)):
            state.torque(q[k], v[k], a[k])
        best["torque"] = min(best["torque"], (time.process_time() - begin) / len(q))
        best["update"] = min(best["update"], float(np.mean(single)))
        best["worst update"] = min(best["worst update"], float(np.percentile(single, 99)))
    print(f"{robot.n} axes: " + ", ".join(f"{name} {1e6 * value:.1f} µs" for name, value in best.items()) + " (99 % quantile)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    logs = ways.add_parser("ur10e")
    logs.add_argument("urdf", type=Path)
    logs.add_argument("logs", nargs="+")
    logs.add_argument("-c", "--config", type=Path)
    chains = ways.add_parser("arms")
    chains.add_argument("--kinds", nargs="+", default=["spread", "time", "work", "none"])
    chains.add_argument("--arms", type=int, default=10)
    chains.add_argument("--first", type=int, default=0)
    fast = ways.add_parser("speed")
    fast.add_argument("--robot", type=Path, default=Path(__file__).parents[2] / "robots" / "ur10e.urdf")
    arguments = parser.parse_args()
    if arguments.way == "ur10e":
        real(arguments.urdf, arguments.logs, arguments.config)
    elif arguments.way == "arms":
        arms(arguments.kinds, arguments.arms, arguments.first)
    else:
        speed(arguments.robot)


if __name__ == "__main__":
    main()
