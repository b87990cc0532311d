"""Friction found automatically on simulated arms whose friction is known.

    python scripts/benchmarks/selection_arms.py [--arms 20] [--first 0]

Every arm is a chain of 3 to 6 joints with random axes and links; every joint has a random subset of the laws below, each as
strong as 8 to 40 % of the joint's other torque, with shapes of its own. Torques come from Pinocchio's RNEA and the formulas
written again here, with coloured noise. Four logs teach, two judge. Printed are

- found: true laws that were chosen, of all, and of the *active* ones: those whose absence from the true structure raises the
  joint's held-out squared error by more than 2 %. A law that costs less than that is not distinguishable from its absence.
- loss: held-out error over that of the oracle, the true structure with its true shapes, estimated from the same logs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pinocchio as pin
from arms import text
from scipy.signal import lfilter

from urdf_ident import DynamicModel, Recording, Robot
from urdf_ident.estimation.friction_selection.reference_torque import converge
from urdf_ident.estimation.friction_selection.selection import select_friction
from urdf_ident.linalg import Array
from urdf_ident.result.scores import predict, score
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

LAWS = ("viscous", "coulomb", "offset", "stribeck", "sublinear", "cubic", "load_coulomb", "presliding")
RATE, SECONDS, TEACH, JUDGE = 200.0, 20.0, 4, 2  # [Hz], [s], logs
NOISE, MEMORY = 0.03, 0.8  # part of the torque's standard deviation, and correlation from sample to sample
LEAST = 0.02  # of the squared held-out error: below it a law is not active


@dataclass(frozen=True, eq=False)
class Law:
    """One true law of one joint: ``size · shape(q, v, load)``; ``shape`` is a width or velocity where the law has one."""

    name: str
    size: float
    shape: float = 0.0

    def torque(self, q: Array, v: Array, load: Array) -> Array:
        """Shape (N,) [N·m], for size 1."""
        sign = np.tanh(v / 0.02)
        if self.name == "presliding":
            return np.asarray((q - _play(q, self.shape / 2, float(q[0] - self.shape / 2 * sign[0]))) / (self.shape / 2))
        return {
            "viscous": v,
            "coulomb": sign,
            "offset": np.ones_like(v),
            "sublinear": sign * np.sqrt(np.abs(v)),
            "cubic": v**3,
            "stribeck": sign * np.exp(-((v / max(self.shape, 1e-9)) ** 2)),
            "load_coulomb": sign * np.abs(load),
        }[self.name]

    def spec(self) -> dict[str, object]:
        """As a project file writes it."""
        key = {"stribeck": "velocity", "presliding": "width"}.get(self.name)
        return {"term": self.name} if key is None else {"term": self.name, key: self.shape}


def _play(q: Array, radius: float, point: float) -> Array:
    out = np.empty_like(q)
    for k, x in enumerate(q):
        point = min(max(point, x - radius), x + radius)
        out[k] = point
    return out


def random_urdf(rng: np.random.Generator) -> str:
    """A chain of 3 to 6 revolute joints."""
    parts, parent = ['<robot name="chain"><link name="base"/>'], "base"
    for k in range(1, int(rng.integers(3, 7)) + 1):
        axis, place = np.eye(3)[rng.integers(3)], rng.uniform(-0.1, 0.1, 3) + [0.0, 0.0, 0.5 / k]
        mass, com, size = 10.0 / k, rng.uniform(-0.1, 0.1, 3), rng.uniform(0.05, 0.15, 3)
        ixx, iyy, izz = mass * (size[[1, 0, 0]] ** 2 + size[[2, 2, 1]] ** 2)
        roll = rng.choice([0.0, np.pi / 2, -np.pi / 2], 3)
        parts.append(
            f'<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/><origin xyz="{text(place)}" '
            f'rpy="{text(roll)}"/><axis xyz="{text(axis)}"/><limit lower="-3" upper="3" velocity="3" effort="300"/></joint>'
            f'<link name="l{k}"><inertial><origin xyz="{text(com)}"/><mass value="{mass:.9g}"/><inertia ixx="{ixx:.9g}" '
            f'ixy="0" ixz="0" iyy="{iyy:.9g}" iyz="0" izz="{izz:.9g}"/></inertial></link>'
        )
        parent = f"l{k}"
    return "".join([*parts, "</robot>"])


def motion(n: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """A random Fourier motion: t (N,), and q, v, a (N, n)."""
    t, harmonics = np.arange(round(SECONDS * RATE)) / RATE, np.arange(1, 6)
    w = 2 * np.pi * harmonics / 10.0
    a, b = rng.uniform(-1, 1, (2, n, 5)) / harmonics
    s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    q = rng.uniform(-0.5, 0.5, n) + s @ a.T - c @ b.T
    return t, q, (c * w) @ a.T + (s * w) @ b.T, (-s * w**2) @ a.T + (c * w**2) @ b.T


def simulate(robot: Robot, laws: Sequence[Sequence[Law]], rng: np.random.Generator, name: str) -> Recording:
    """One log."""
    t, q, v, a = motion(robot.n, rng)
    tau, _ = _torque(robot, laws, q, v, a)
    white = rng.standard_normal(tau.shape) * np.sqrt(1 - MEMORY**2)
    tau = tau + NOISE * tau.std(axis=0) * lfilter([1.0], [1.0, -MEMORY], white, axis=0)
    return Recording(name, robot.joints, t, q, effort=tau, sha256=name)


def _torque(robot: Robot, laws: Sequence[Sequence[Law]], q: Array, v: Array, a: Array) -> tuple[Array, Array]:
    data = robot.model.createData()
    rigid = np.array([pin.rnea(robot.model, data, *row) for row in zip(q, v, a, strict=True)])
    tau = rigid + 0.1 * a
    for j, mine in enumerate(laws):
        tau[:, j] += sum(law.size * law.torque(q[:, j], v[:, j], rigid[:, j]) for law in mine)
    return tau, rigid


def random_laws(robot: Robot, rng: np.random.Generator) -> list[list[Law]]:
    """A random subset of the laws for every joint."""
    _, q, v, a = motion(robot.n, rng)
    tau, rigid = _torque(robot, [[]] * robot.n, q, v, a)
    found = []
    for j in range(robot.n):
        names = [name for name in LAWS if rng.random() < 0.4] or ["coulomb"]
        mine, level = [], max(float(np.std(tau[:, j])), 0.5)
        for name in names:
            shape = {"stribeck": rng.uniform(0.06, 0.3), "presliding": np.exp(rng.uniform(np.log(4e-4), np.log(4e-3)))}
            law = Law(name, 1.0, float(shape.get(name, 0.0)))
            part = law.torque(q[:, j], v[:, j], rigid[:, j])
            size = rng.uniform(0.08, 0.4) * level / max(float(np.sqrt(np.mean(part**2))), 1e-9)
            mine.append(Law(name, min(size, 0.3) if name == "load_coulomb" else size, law.shape))
        found.append(mine)
    return found


def held_out(model: DynamicModel, teach: list[PreparedLog], judge: list[PreparedLog]) -> Array:
    """Held-out RMSE, shape (n,) [N·m]."""
    found = converge(model, partial(build_statistics, logs=teach), partial(fit_base, base=model.base()))
    theta = np.zeros(len(model.parameters))
    theta[found.fit.base.independent] = found.fit.params
    cutoff = judge[0].conditioned.cutoff
    rmse = [score(log, predict(found.model, theta, log), cutoff).rmse for log in judge]
    return np.asarray(np.sqrt(np.mean(np.square(rmse), axis=0)))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What selection made of one arm: true laws, active ones, and how many of each were chosen; losses by joint."""

    joints: int
    true: int
    found: int
    active: int
    active_found: int
    extra: int
    loss: Array
    missed: tuple[str, ...]
    seconds: float


def run(seed: int) -> Outcome:
    """One arm."""
    rng = np.random.default_rng(seed)
    robot = Robot.from_urdf(random_urdf(rng))
    laws = random_laws(robot, rng)
    recordings = [simulate(robot, laws, rng, f"run{k}") for k in range(TEACH + JUDGE)]
    model = DynamicModel(robot)
    logs = prepare_logs(recordings, robot, model.drive, SignalConfig())
    teach, judge = logs[:TEACH], logs[TEACH:]
    start = time.perf_counter()
    chosen = select_friction(model, partial(build_statistics, logs=teach), [s for log in teach for s in log.segments]).model
    seconds = time.perf_counter() - start
    spec = {joint: [law.spec() for law in mine] for joint, mine in zip(robot.joints, laws, strict=True)}
    oracle = held_out(DynamicModel(robot, friction=spec), teach, judge)
    names = [{item.term.name for item in chosen.terms if item.axis == j} - {"rotor_inertia"} for j in range(robot.n)]
    active = active_found = found = 0
    missed = []
    for j, (joint, mine) in enumerate(zip(robot.joints, laws, strict=True)):
        for law in mine:
            left = {**spec, joint: [other.spec() for other in mine if other is not law]}
            without = held_out(DynamicModel(robot, friction=left), teach, judge)
            matters = bool((without[j] / oracle[j]) ** 2 - 1.0 > LEAST)
            there = law.name in names[j]
            active, active_found, found = active + matters, active_found + (matters and there), found + there
            if matters and not there:
                missed.append(
                    f"{joint} {law.name} (chosen: {', '.join(sorted(names[j]))}; true: "
                    f"{', '.join(other.name for other in mine)})"
                )
    extra = sum(len(names[j] - {law.name for law in mine}) for j, mine in enumerate(laws))
    loss = held_out(chosen, teach, judge) / oracle - 1.0
    return Outcome(robot.n, sum(map(len, laws)), found, active, active_found, extra, loss, tuple(missed), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first arm")
    arguments = parser.parse_args()
    outcomes = []
    for seed in range(arguments.first, arguments.first + arguments.arms):
        one = run(seed)
        outcomes.append(one)
        print(
            f"arm {seed}: {one.joints} joints, active laws found {one.active_found}/{one.active}, of all "
            f"{one.found}/{one.true}, "
            f"others chosen {one.extra}, loss {_percent(one.loss.mean())}, worst joint {_percent(one.loss.max())}, "
            f"{one.seconds:.1f} s",
            flush=True,
        )
        for words in one.missed:
            print(f"  missed: {words}")
    total = {key: sum(getattr(one, key) for one in outcomes) for key in ("active", "active_found", "true", "found", "extra")}
    losses = np.array([one.loss.mean() for one in outcomes])
    print(
        f"active laws found: {total['active_found']} of {total['active']} "
        f"({100 * total['active_found'] / total['active']:.1f} %); of all drawn: {total['found']} of {total['true']}; "
        f"others chosen: {total['extra']}"
    )
    worst = max(float(one.loss.max()) for one in outcomes)
    print(
        f"held-out loss against the oracle structure: worst arm {_percent(losses.max())}, mean {_percent(losses.mean())}; "
        f"worst joint {_percent(worst)}"
    )


def _percent(part: float) -> str:
    return f"{100 * part:+.2f} %"


if __name__ == "__main__":
    main()
