"""The defaults on simulated arms that nobody tuned them for, tested on a faster motion than they learnt from.

    python scripts/benchmarks/arms.py [--arms 40] [--first 0] [--kinds rich,repeats,...] [--no-simple] [-o ROWS.jsonl]
    python scripts/benchmarks/arms.py --kinds dwells,bits,steps,pair,sparse    (logs as users record them)
    python scripts/benchmarks/arms.py --kinds pauses,places,jog,gentle,dead,held,stamps,rates,stuck    (more of these)
    python scripts/benchmarks/arms.py --arms 50 --poor    (short, bad and singular logs: is anything exported that is worse
                                                           than the URDF with bounded friction?)

Every arm is drawn by its seed: chains of 6 and 7 axes, SCARA, gantry, a wrist with coupled motors, a tool that the URDF
does not know, torque sensors behind the gears, small arms with high friction. The URDF that the program gets is wrong by
some 20 % in every inertial parameter. Friction is written here again and not taken from the package; half of its shapes
are none of the package's laws. Torques come from Pinocchio's RNEA, noise has memory.

Per case and kind of training log, on a faster other motion, behind one low-pass of 10 Hz, mean over joints of RMSE over
RMS torque:

- base: exported over the URDF with friction (viscous, Coulomb, offset; non-negative) fitted to the same logs;
- simple: exported over the package's own result with these three laws listed by hand;
- oracle: exported over ridge regression in the true structure with the best of some weights of the prior;
- inside: share of measured samples inside the 95 % prediction interval (all, reversals, fastest tenth), and its width over
  that of the oracle's residual (median of all samples; at reversals RMS of both, where the smeared step of friction is known),
  and over the 95 % quantile of its own residual, by joint (median: what the interval adds to the error that the result has);
- covered: share of 95 % intervals of the inertial base parameters, where finite, that hold the truth.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline
from scipy.optimize import lsq_linear
from scipy.signal import lfilter

from urdf_ident import Drive, DynamicModel, Identification, Recording, Robot, UrdfIdentError, identify
from urdf_ident.linalg import Array
from urdf_ident.model.prior import inertial_prior
from urdf_ident.signals.filters import lowpass

FAMILIES = ("six", "seven", "scara", "gantry", "coupled", "tool", "sensor", "small")
KINDS = ("rich", "repeats", "eight", "four", "resting", "one_way", "flat")
#: Logs that hardly tell anything: 1.5 s, one sine on all joints, two joints that move, coarse efforts, ten times the noise,
#: one tenth of the speed.
POOR = ("brief", "same", "few", "coarse", "noisy", "slow")
#: Logs as users record them: moves from point to point with dwells, a 14-bit encoder, efforts in steps of 1 % of the range,
#: each joint one way in one log and back in the other, 25 Hz. (A kind's position in all four lists is part of its seed.)
USUAL = ("dwells", "bits", "steps", "pair", "sparse")
#: More of them: hand-guided motion with pauses, moves between three poses only, each joint jogged alone, moves at 20 % of the
#: speed, efforts with a dead zone of 2 % of the range, efforts published at 25 Hz and held, time stamps that are late by up to
#: 4 ms, two logs of 100 and 33 Hz, joints jogged alone while dry friction holds the others with any torque within it.
RECORDED = ("pauses", "places", "jog", "gentle", "dead", "held", "stamps", "rates", "stuck")
EVERY = (*KINDS, *POOR, *USUAL, *RECORDED)
#: What is exported may be so much worse than the URDF with bounded friction.
WORSE = 1.05
RATE, SCORE = 100.0, 10.0  # [Hz]
SIMPLE = ["viscous", "coulomb", "offset"]
WEIGHTS = (1.0, 10.0, 100.0)  # of the oracle's prior
SHAPES = ("arctan", "saturating", "power", "hump", "load", "dahl", "smooth", "cubic")


@dataclass(frozen=True, eq=False)
class Motion:
    """Joint motion, shape (N, n) each [rad, rad/s, rad/s² or m …], and its times, shape (N,) [s]."""

    t: Array
    q: Array
    v: Array
    a: Array


@dataclass(frozen=True, eq=False)
class FrictionOfAxis:
    """True friction of one axis: non-negative ``sizes`` of the columns that ``names`` say, offset last (any sign)."""

    names: tuple[str, ...]
    scale: float
    sizes: Array

    def columns(self, q: Array, v: Array, load: Array) -> Array:
        """Shape (N, k) [1 or the unit of the column]."""
        x, sign = v / self.scale, np.tanh(v / (0.004 * self.scale))
        table = {
            "coulomb": sign,
            "viscous": x,
            "arctan": np.arctan(15 * x) * 2 / np.pi,
            "saturating": x / (0.3 + np.abs(x)),
            "power": sign * np.abs(x) ** 0.7,
            "hump": sign * np.exp(-np.abs(x) / 0.1),
            "load": sign * np.abs(load),
            "smooth": np.tanh(4 * x),
            "cubic": x * np.abs(x),
            "offset": np.ones_like(x),
        }
        found = [_dahl(q, 0.002 * self.scale) if name == "dahl" else table[name] for name in self.names]
        return np.column_stack(found)


def _dahl(q: Array, way: float) -> Array:
    """Dahl's presliding friction (first order in position): -1 to 1."""
    z, out = 0.0, np.zeros_like(q)
    for k, step in enumerate(np.diff(q, prepend=q[0])):
        z = np.sign(step) + (z - np.sign(step)) * np.exp(-abs(step) / way)
        out[k] = z
    return out


@dataclass(frozen=True, eq=False)
class Arm:
    """One simulated arm; ``robot`` is what the user has, ``truth`` the inertials that move, ``noise`` that of its torques."""

    family: str
    robot: Robot
    drive: Drive
    truth: pin.Model
    rotor: Array
    friction: tuple[FrictionOfAxis, ...]
    speed: Array
    noise: Array

    @property
    def n(self) -> int:
        """Number of axes."""
        return self.robot.n

    def columns(self, motion: Motion) -> tuple[Array, list[Array]]:
        """Rigid torque with the motors' rotors (N, n), and per motor the columns of its friction at the joints, (N, n, k)."""
        data = self.truth.createData()
        rigid = np.array([pin.rnea(self.truth, data, *row) for row in zip(motion.q, motion.v, motion.a, strict=True)])
        A = self.drive.reduction
        turn, rate, load = motion.q @ A.T, motion.v @ A.T, rigid @ np.linalg.inv(A)
        found = [
            law.columns(turn[:, k], rate[:, k], load[:, k])[:, None, :] * A[k][None, :, None]
            for k, law in enumerate(self.friction)
        ]
        return rigid + (self.rotor * (motion.a @ A.T)) @ A, found

    def torque(self, motion: Motion) -> Array:
        """True torque, shape (N, n) [N·m or N]."""
        rigid, friction = self.columns(motion)
        return np.asarray(rigid + sum(c @ law.sizes for c, law in zip(friction, self.friction, strict=True)))

    def log(self, name: str, motion: Motion, rng: np.random.Generator, bits: int = 18) -> Recording:
        """What a logger would have written; encoders have ``bits`` bits per turn of a joint (per 0.63 m of a slide)."""
        tau = self.torque(motion)
        white = rng.standard_normal(tau.shape) * np.sqrt(1 - 0.8**2)
        noisy = tau + self.noise * lfilter([1.0], [1.0, -0.8], white, axis=0)
        step = 2 * np.pi / 2**bits * np.where(self.robot.prismatic, 0.1, 1.0)
        return Recording(name, self.robot.joints, motion.t, np.round(motion.q / step) * step, effort=noisy, sha256=name)


def arm(seed: int) -> Arm:
    """The arm of a seed."""
    rng = np.random.default_rng([7, seed])
    family = FAMILIES[seed % len(FAMILIES)]
    n = {"seven": 7, "scara": 4, "gantry": 4}.get(family, 6)
    kinds = {"scara": "rrpr", "gantry": "pppr"}.get(family, "r" * n)
    size = 0.3 if family == "small" else 1.0
    return moving(rng, family, Robot.from_urdf(_urdf(rng, family, kinds, size)))


def moving(rng: np.random.Generator, family: str, robot: Robot) -> Arm:
    """A robot with true inertials, rotors, friction and noise of its own, drawn."""
    n, truth = robot.n, robot.model.copy()
    for j in range(1, n + 1):
        truth.inertias[j] = _disturbed(truth.inertias[j], rng, 0.2)
    if family == "tool":
        truth.inertias[n] = truth.inertias[n] + pin.Inertia.FromSphere(2.0, 0.06).se3Action(
            pin.SE3(np.eye(3), np.array([0.0, 0.03, 0.12]))
        )
    A = np.eye(n)
    if family == "coupled":
        A[n - 1, n - 2] = rng.choice([-1.0, 1.0])
    speed = rng.uniform(0.8, 1.4, n) * np.where(robot.prismatic, 0.3, 1.0)
    blank = Arm(family, robot, Drive.build(n, reduction=A), truth, np.zeros(n), (), speed, np.zeros(n))
    blank = replace(blank, friction=tuple(FrictionOfAxis(("offset",), s, np.zeros(1)) for s in speed))
    trial = wander(blank, rng, 10.0, 1.0)
    rigid = blank.columns(trial)[0]
    loud = np.maximum(rigid.std(axis=0), 0.05 * rigid.std(axis=0).max())
    rotor = 0.0 if family == "sensor" else rng.uniform(0.1, 0.6, n) * loud / np.maximum(trial.a.std(axis=0), 1e-9)
    strong = {"sensor": 0.03, "small": 1.0}.get(family, 0.35)
    laws = []
    for j in range(n):
        more = tuple(rng.choice(SHAPES, rng.integers(0, 3), replace=False))
        names = ("coulomb", "viscous", *more, "offset")
        sizes = rng.uniform(0.3, 1.0, len(names)) * strong * loud[j]
        sizes[-1] *= 0.3 * rng.choice([-1.0, 1.0])
        sizes = np.array([rng.uniform(0.03, 0.12) if name == "load" else s for name, s in zip(names, sizes, strict=True)])
        laws.append(FrictionOfAxis(names, float(speed[j]), sizes))
    noise = rng.uniform(0.01, 0.04) * loud
    return replace(blank, rotor=np.broadcast_to(rotor, n), friction=tuple(laws), noise=noise)


def _disturbed(body: pin.Inertia, rng: np.random.Generator, share: float) -> pin.Inertia:
    """Another physically consistent body: ``P → (1 + E) P (1 + E)ᵀ``."""
    P = pin.PseudoInertia.FromInertia(body).toMatrix()
    E = np.eye(4) + share * rng.standard_normal((4, 4)) * np.array([[1, 1, 1, 0.05]] * 3 + [[0, 0, 0, 0.5]])
    return pin.PseudoInertia.FromMatrix(E @ P @ E.T).toInertia()


def _urdf(rng: np.random.Generator, family: str, kinds: str, size: float) -> str:
    parts, parent, n = ['<robot name="arm"><link name="base"/>'], "base", len(kinds)
    upright = {"scara": ["z", "z", "z", "z"], "gantry": ["x", "y", "z", "z"]}.get(family)
    axes = upright or ["z", *("y" if k % 2 else "x" for k in range(1, n))]
    axes = axes if upright else ["z", "y", "y", *(("z", "y", "x", "z")[: n - 3])] if rng.random() < 0.5 else axes
    for k, kind in enumerate(kinds):
        axis = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}[axes[k]]
        far = size * (0.4 if k < 3 else 0.2) * rng.uniform(0.6, 1.3)
        place = [far, 0.0, 0.1 * size] if family == "scara" else [0.05 * size * rng.standard_normal(), 0.05 * size, far]
        mass = size**3 * (15.0 if k < 3 else 4.0) / (1 + 0.4 * k) * rng.uniform(0.7, 1.4)
        com = far * rng.uniform(-0.4, 0.6, 3)
        side = np.maximum(far * rng.uniform(0.15, 0.5, 3), 0.03)
        ixx, iyy, izz = mass / 3 * (side[[1, 0, 0]] ** 2 + side[[2, 2, 1]] ** 2)
        word, reach = ("prismatic", 0.6) if kind == "p" else ("revolute", 3.0)
        parts.append(
            f'<joint name="j{k + 1}" type="{word}"><parent link="{parent}"/><child link="l{k + 1}"/>'
            f'<origin xyz="{text(place)}"/><axis xyz="{axis}"/><limit lower="-{reach}" upper="{reach}" velocity="5" '
            f'effort="500"/></joint><link name="l{k + 1}"><inertial><origin xyz="{text(com)}"/><mass value="{mass:.9g}"/>'
            f'<inertia ixx="{ixx:.9g}" ixy="0" ixz="0" iyy="{iyy:.9g}" iyz="0" izz="{izz:.9g}"/></inertial></link>'
        )
        parent = f"l{k + 1}"
    return "".join([*parts, "</robot>"])


def text(values: Sequence[float] | Array) -> str:
    """Numbers as an attribute of a URDF."""
    return " ".join(f"{float(value):.9g}" for value in values)


def wander(arm: Arm, rng: np.random.Generator, seconds: float, pace: float, wide: float = 1.0) -> Motion:
    """A random Fourier motion whose RMS speed is ``pace`` times half the axes' speed."""
    n, t = arm.n, np.arange(round(seconds * RATE)) / RATE
    w = 2 * np.pi * np.arange(1, 6) * rng.uniform(0.09, 0.12) * pace / max(wide, 0.3)
    a, b = rng.uniform(-1, 1, (2, n, 5)) / np.arange(1, 6) ** 0.7
    scale = (
        0.5
        * pace
        * arm.speed
        / np.sqrt(np.mean(np.square(np.cos(t[:, None] * w) @ (a * w).T + np.sin(t[:, None] * w) @ (b * w).T), axis=0))
    )
    a, b = a * scale[:, None] * wide, b * scale[:, None] * wide
    s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    middle = rng.uniform(-0.5, 0.5, n) * np.where(arm.robot.prismatic, 0.1, 1.0)
    return Motion(t, middle + s @ a.T - c @ b.T, (c * w) @ a.T + (s * w) @ b.T, (-s * w**2) @ a.T + (c * w**2) @ b.T)


def moves(
    arm: Arm, rng: np.random.Generator, seconds: float, pace: float = 1.0, goals: Callable[[], Iterator[Array]] | None = None
) -> Motion:
    """From point to point and rests between: all joints start and stop together, with trapezoidal speeds of limited jerk."""
    fine, n = 1000.0, arm.n
    reach = np.where(arm.robot.prismatic, 0.15, 1.2)
    blend = int(fine * rng.uniform(0.02, 0.12))
    speed = np.zeros((round(seconds * fine), n))
    begin, at = int(0.5 * fine), np.zeros(n)
    ahead = (rng.uniform(-reach, reach) for _ in itertools.count()) if goals is None else goals()
    while True:
        goal = next(ahead)
        length = int(fine * (1.5 * np.max(np.abs(goal - at) / (pace * arm.speed)) + 2 * blend / fine + 0.2))
        if begin + length > len(speed):
            break
        inner = length - 2 * blend
        flat = np.clip(3 * np.minimum(x := (np.arange(inner) + 0.5) / inner, 1 - x), 0.0, 1.0)
        shape = np.convolve(np.convolve(flat, np.ones(blend) / blend), np.ones(blend) / blend)
        speed[begin : begin + len(shape)] = np.outer(shape / (shape.sum() / fine), goal - at)
        begin, at = begin + length + int(fine * rng.uniform(0.4, 1.2)), goal
    position, every = np.cumsum(speed, axis=0) / fine, round(fine / RATE)
    middle = rng.uniform(-0.5, 0.5, n) * np.where(arm.robot.prismatic, 0.1, 1.0)
    q, v, a = position + middle, speed, np.gradient(speed, 1 / fine, axis=0)
    return Motion(np.arange(len(speed))[::every] / fine, q[::every], v[::every], a[::every])


def sweep(arm: Arm, rng: np.random.Generator, seconds: float, way: float) -> Motion:
    """Every joint goes one way, ``way`` ±1, at changing speed."""
    t = np.arange(round(seconds * RATE)) / RATE
    w, lag = 2 * np.pi * rng.uniform(0.1, 0.6, (4, arm.n)), rng.uniform(0, 2 * np.pi, (4, arm.n))
    size = rng.uniform(0.3, 1.0, (4, arm.n))
    size *= 0.85 / size.sum(axis=0)
    angle, mean = t[:, None, None] * w + lag, 0.5 * arm.speed
    q = mean * (t[:, None] - 0.5 * seconds + (size / w * np.sin(angle)).sum(axis=1))
    v = mean * (1 + (size * np.cos(angle)).sum(axis=1))
    return Motion(t, way * q, way * v, way * -mean * (size * w * np.sin(angle)).sum(axis=1))


def usual(arm: Arm, kind: str, rng: np.random.Generator) -> list[Recording]:
    """Logs of one kind among ``USUAL``."""
    if kind == "dwells":
        return [arm.log(f"run{k}", moves(arm, rng, 20.0), rng) for k in range(2)]
    if kind == "pair":
        return [arm.log(name, sweep(arm, rng, 10.0, way), rng) for name, way in (("there", 1.0), ("back", -1.0))]
    logs = [arm.log(f"run{k}", wander(arm, rng, 12.0, 1.0), rng, bits=14 if kind == "bits" else 18) for k in range(2)]
    if kind == "sparse":
        return [log.take(np.arange(len(log.time)) % 4 == 0) for log in logs]
    if kind == "steps":
        step = 0.01 * 1.5 * np.max([np.abs(log.effort).max(axis=0) for log in logs], axis=0)
        return [replace(log, effort=np.round(log.effort / step) * step) for log in logs]
    return logs


def guided(arm: Arm, rng: np.random.Generator, seconds: float) -> Motion:
    """A wandering path along which the hand stops, for 1 to 4 s, and goes on."""
    path, fine = wander(arm, rng, seconds, 1.0), 1000.0
    pace = np.ones(round(2 * seconds * fine))
    begin = int(fine * rng.uniform(1.0, 3.0))
    while begin < len(pace):
        length = int(fine * rng.uniform(1.0, 4.0))
        pace[begin : begin + length] = 0.0
        begin += length + int(fine * rng.uniform(1.0, 4.0))
    blend = np.ones(int(0.25 * fine))
    pace = np.convolve(np.convolve(pace, blend / len(blend), "same"), blend / len(blend), "same")
    along = np.cumsum(pace) / fine
    pace, along = pace[along < path.t[-1] - 0.1], along[along < path.t[-1] - 0.1]
    q, v, a = (CubicSpline(path.t, x)(along) for x in (path.q, path.v, path.a))
    rate = np.gradient(pace, 1 / fine)
    every = round(fine / RATE)
    now = slice(None, None, every)
    p = pace[:, None]
    return Motion(np.arange(len(pace))[now] / fine, q[now], (v * p)[now], (a * p**2 + v * rate[:, None])[now])


def recorded(arm: Arm, kind: str, rng: np.random.Generator) -> list[Recording]:
    """Logs of one kind among ``RECORDED``."""
    reach = np.where(arm.robot.prismatic, 0.15, 1.2)

    def alone() -> Iterator[Array]:
        at = np.zeros(arm.n)
        for k in itertools.count():
            at = np.array(at)
            at[k // 3 % arm.n] = 0.0 if k % 3 == 2 else rng.uniform(-1, 1) * reach[k // 3 % arm.n]
            yield at

    if kind == "pauses":
        return [arm.log(f"run{k}", guided(arm, rng, 15.0), rng) for k in range(2)]
    if kind == "places":
        poses = rng.uniform(-reach, reach, (3, arm.n))
        return [arm.log("run", moves(arm, rng, 40.0, goals=lambda: itertools.cycle(poses)), rng)]
    if kind in ("jog", "stuck"):
        motion = moves(arm, rng, 60.0, goals=alone)
        log = arm.log("run", motion, rng)
        return [log if kind == "jog" else held_at_rest(arm, log, motion, rng)]
    if kind == "gentle":
        return [arm.log(f"run{k}", moves(arm, rng, 40.0, pace=0.2), rng) for k in range(2)]
    logs = [arm.log(f"run{k}", wander(arm, rng, 12.0, 1.0), rng) for k in range(2)]
    efforts = [np.asarray(log.effort) for log in logs]
    if kind == "dead":
        least = 0.02 * 1.5 * np.max([np.abs(effort).max(axis=0) for effort in efforts], axis=0)
        return [replace(log, effort=np.where(np.abs(e) < least, 0.0, e)) for log, e in zip(logs, efforts, strict=True)]
    if kind == "held":
        return [replace(log, effort=e[np.arange(len(e)) // 4 * 4]) for log, e in zip(logs, efforts, strict=True)]
    if kind == "stamps":
        return [replace(log, time=np.sort(log.time + rng.gamma(2.0, 0.001, len(log.time)).clip(max=0.004))) for log in logs]
    return [logs[0], logs[1].take(np.arange(len(logs[1].time)) % 3 == 0)]


def held_at_rest(arm: Arm, log: Recording, motion: Motion, rng: np.random.Generator) -> Recording:
    """The log with dry friction that holds a joint at rest with any torque within it, another one in every rest."""
    effort = np.array(log.effort)
    for j, law in enumerate(arm.friction):
        dry = sum(size for name, size in zip(law.names, law.sizes, strict=True) if name in ("coulomb", "hump"))
        still = np.abs(motion.v @ arm.drive.reduction[j]) < 1e-3 * law.scale
        for begin, end in np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]]))).reshape(-1, 2):
            effort[begin:end] += rng.uniform(-1, 1) * dry * arm.drive.reduction[j]
    return replace(log, effort=effort)


def training(arm: Arm, kind: str, rng: np.random.Generator) -> list[Recording]:
    """Logs of one kind."""
    if kind in RECORDED:
        return recorded(arm, kind, rng)
    if kind in USUAL:
        return usual(arm, kind, rng)
    if kind == "rich":
        return [arm.log(f"run{k}", wander(arm, rng, 12.0, 1.0), rng) for k in range(3)]
    if kind == "repeats":
        motion = wander(arm, rng, 20.0, 0.4)
        return [arm.log(f"run{k}", motion, rng) for k in range(2)]
    if kind in ("eight", "four"):
        return [arm.log("run", wander(arm, rng, {"eight": 8.0, "four": 3.8}[kind], 1.0), rng)]
    if kind in ("brief", "coarse", "noisy", "slow"):
        seconds, pace = {"brief": (1.5, 1.0), "coarse": (8.0, 1.0), "noisy": (8.0, 1.0), "slow": (8.0, 0.1)}[kind]
        loud = replace(arm, noise=10 * arm.noise) if kind == "noisy" else arm
        log = loud.log("run", wander(arm, rng, seconds, pace), rng)
        step = np.asarray(log.effort).std(axis=0) if kind == "coarse" else 0.0
        return [log if kind != "coarse" else replace(log, effort=np.round(log.effort / step) * step)]
    motion = wander(arm, rng, 16.0, 0.8, wide=0.25 if kind == "flat" else 1.0)
    if kind in ("resting", "few"):
        still = [int(rng.integers(arm.n))] if kind == "resting" else rng.permutation(arm.n)[: arm.n - 2]
        q, v, a = (np.array(x) for x in (motion.q, motion.v, motion.a))
        q[:, still], v[:, still], a[:, still] = q[0, still], 0.0, 0.0
        motion = Motion(motion.t, q, v, a)
    if kind == "same":
        w = 2 * np.pi * 0.25
        sine = [
            0.5 * arm.speed / w * wave[:, None]
            for wave in (np.sin(w * motion.t), w * np.cos(w * motion.t), -(w**2) * np.sin(w * motion.t))
        ]
        motion = Motion(motion.t, motion.q.mean(axis=0) + sine[0], sine[1], sine[2])
    if kind == "one_way":
        some = rng.random(arm.n) < 0.4
        some[int(rng.integers(arm.n))] = True
        ease, x = motion.t[-1], motion.t / motion.t[-1]
        far = np.where(arm.robot.prismatic, 0.5, 4.0)
        wave = 0.06 * np.sin(2 * np.pi * x * 3)[:, None]
        swept = [
            (x[:, None] + wave / 2) * far,
            (1 + 0.06 / 2 * 6 * np.pi * np.cos(6 * np.pi * x))[:, None] * far / ease,
            -(0.06 / 2 * (6 * np.pi) ** 2 * np.sin(6 * np.pi * x))[:, None] * far / ease**2,
        ]
        q, v, a = (np.where(some, new, old) for new, old in zip(swept, (motion.q, motion.v, motion.a), strict=True))
        motion = Motion(motion.t, q, v, a)
    return [arm.log("run", motion, rng)]


def relative(arm: Arm, log: Recording, predicted: Array) -> float:
    """Mean over joints of RMSE over RMS torque, behind one low-pass."""
    measured = np.asarray(log.effort)
    error = lowpass(measured - predicted, RATE, SCORE)
    return float(np.mean(np.sqrt(np.mean(error**2, axis=0) / np.mean(lowpass(measured, RATE, SCORE) ** 2, axis=0))))


def _regressor(model: pin.Model, motion: Motion) -> Array:
    data = model.createData()
    rows = [pin.computeJointTorqueRegressor(model, data, *row).copy() for row in zip(motion.q, motion.v, motion.a, strict=True)]
    return np.array(rows)  # (N, n, 10 n)


def _motion_of(log: Recording) -> Motion:
    """The noise-free motion is not known to anybody: position filtered and differentiated at 8 Hz."""
    rate = rate_of(log)
    q = lowpass(log.position, rate, 8.0)
    v = np.gradient(q, 1 / rate, axis=0)
    return Motion(log.time, q, v, np.gradient(v, 1 / rate, axis=0))


def smoothed(logs: Sequence[Recording], signals: Sequence[Array]) -> Array:
    """One signal of every log, low-passed, one after the other."""
    pairs = zip(logs, signals, strict=True)
    return np.concatenate([lowpass(x.reshape(len(x), -1), rate_of(log), SCORE).reshape(x.shape) for log, x in pairs])


def rate_of(log: Recording) -> float:
    """Samples per second [Hz]."""
    return float(1 / np.median(np.diff(log.time)))


def bounded_baseline(arm: Arm, logs: Sequence[Recording], test: Motion) -> Array:
    """URDF with viscous and Coulomb friction that cannot be negative, and an offset, predicted on the test motion."""
    A, theta = arm.drive.reduction, inertial_prior(arm.robot).theta0
    predicted = _regressor(arm.robot.model, test) @ theta

    def columns(v: Array) -> Array:
        turn = v @ A.T
        return np.stack([turn, np.tanh(turn / 0.02), np.ones_like(turn)], axis=-1)  # (N, n, 3)

    moved_by = [_motion_of(log) for log in logs]
    left = [np.asarray(log.effort) - _regressor(arm.robot.model, m) @ theta for log, m in zip(logs, moved_by, strict=True)]
    motor = smoothed(logs, [each @ np.linalg.inv(A) for each in left])
    made = np.vstack([columns(m.v) for m in moved_by])
    smooth = smoothed(logs, [columns(m.v) for m in moved_by])
    friction = np.zeros_like(predicted)
    for k in range(arm.n):
        moved = np.std(made[:, k, 0]) > 1e-4
        W = smooth[:, k] if moved else np.ones((len(motor), 1))
        most = np.abs(motor[:, k]).max() / np.sqrt(np.mean(W**2, axis=0))  # no law may be larger than all torque
        lower = most * ([0.0, 0.0, -1.0] if moved else [-1.0])
        ridge = 1e-2 * np.linalg.norm(motor[:, k]) * np.diag(1.0 / most)
        found = lsq_linear(np.vstack([W, ridge]), np.append(motor[:, k], np.zeros(len(most))), (lower, most + 1e-12)).x
        friction[:, k] = columns(test.v)[:, k] @ found if moved else found[0]
    return predicted + friction @ A


def oracle(arm: Arm, logs: Sequence[Recording], test: Motion, judge: Recording) -> tuple[float, Array]:
    """Ridge regression in the true structure, the best of some weights of the prior: its error and its prediction."""
    prior = inertial_prior(arm.robot)

    def rows(motion: Motion) -> Array:
        _, friction = arm.columns(motion)
        A = arm.drive.reduction
        rotor = A.T[None] * (motion.a @ A.T)[:, None, :]  # (N, joints, motors)
        return np.concatenate([_regressor(arm.robot.model, motion), rotor, *friction], axis=2)

    moved_by = [_motion_of(log) for log in logs]
    every = max(1, round(4 * rate_of(logs[0]) / RATE))
    W = smoothed(logs, [rows(m) for m in moved_by])[::every]
    y = smoothed(logs, [np.asarray(log.effort) for log in logs])[::every]
    k = len(prior.theta0)
    extra = np.concatenate([arm.rotor, *(law.sizes for law in arm.friction)])
    typical = np.maximum(np.abs(extra), 1e-3)
    root = np.zeros((k + len(extra),) * 2)
    root[:k, :k], root[k:, k:] = prior.root, np.diag(1.0 / typical)
    centre = np.concatenate([prior.theta0, np.zeros(len(extra))])
    columns, found = rows(test), []
    flat = W.reshape(-1, W.shape[2])
    first = np.linalg.lstsq(np.vstack([flat, 1e-3 * root]), np.concatenate([y.ravel(), 1e-3 * root @ centre]), rcond=None)[0]
    sigma = np.maximum(np.std(y - W @ first, axis=0), 1e-9)
    for weight in WEIGHTS:
        X = np.vstack([(W / sigma[:, None]).reshape(-1, W.shape[2]), np.sqrt(weight) * root])
        z = np.concatenate([(y / sigma).ravel(), np.sqrt(weight) * root @ centre])
        predicted = columns @ np.linalg.lstsq(X, z, rcond=None)[0]
        found.append((relative(arm, judge, predicted), predicted))
    return min(found, key=lambda pair: pair[0])


def run(seed: int, kind: str, *, simple: bool = True) -> dict[str, float | str]:
    """One arm with one kind of log."""
    one = arm(seed)
    rng = np.random.default_rng([11, seed, EVERY.index(kind)])
    logs = training(one, kind, rng)
    test = wander(one, rng, 12.0, 2.0 * (0.4 if kind == "repeats" else 1.0))
    judge = one.log("test", test, rng)
    start = time.process_time()
    model = DynamicModel(one.robot, friction="auto", drive=one.drive)
    row: dict[str, float | str] = {"seed": seed, "family": one.family, "kind": kind}
    try:
        ident = identify(model, logs)
    except UrdfIdentError as error:
        return {**row, "refused": str(error)[:80]}
    seconds = time.process_time() - start
    exported = relative(one, judge, ident.torque(test.q, test.v, test.a))
    fit = relative(one, judge, ident.model.torque(ident.fit_theta, test.q, test.v, test.a))
    base = relative(one, judge, bounded_baseline(one, logs, test))
    best, predicted = oracle(one, logs, test, judge)
    zero = relative(one, judge, _regressor(one.robot.model, test) @ inertial_prior(one.robot).theta0)
    row |= {
        "exported": exported,
        "fit": fit,
        "baseline": base,
        "urdf": zero,
        "oracle": best,
        "weight": float(ident.solver.get("weight", np.nan)),
        "laws": len(ident.model.terms),
        "level": ident.verdict.level,
        "cpu": seconds,
    }
    if simple:
        motors = dict.fromkeys(one.robot.joints if one.family == "coupled" else (), SIMPLE[:2])
        plain = identify(DynamicModel(one.robot, friction=SIMPLE, drive=one.drive, motor_friction=motors), logs)
        row["simple"] = relative(one, judge, plain.torque(test.q, test.v, test.a))
        row["weight_simple"] = float(plain.solver.get("weight", np.nan))
    row |= _intervals(one, ident, test, judge, predicted)
    return row


def _intervals(arm: Arm, ident: Identification, test: Motion, judge: Recording, oracle: Array) -> dict[str, float]:
    """How honest the intervals are."""
    truth = list(arm.truth.inertias)[1:]
    theta = np.zeros(len(ident.model.parameters))
    theta[: 10 * arm.n] = np.concatenate([body.toDynamicParameters() for body in truth])
    for k, parameter in enumerate(ident.model.parameters):
        if parameter.symbol in ("Ia", "offset"):
            own = arm.rotor if parameter.symbol == "Ia" else arm.drive.reduction.T @ [law.sizes[-1] for law in arm.friction]
            theta[k] = own[arm.robot.joints.index(parameter.owner)]
    base, ends = ident.fit.base, ident.fit.conf_int()
    inertial = np.flatnonzero((base.independent < 10 * arm.n) & np.isfinite(ends).all(axis=1))
    value = base.of(theta)
    inside = (ends[inertial, 0] <= value[inertial]) & (value[inertial] <= ends[inertial, 1])
    reach, exported = ident.torque_prediction_interval(test.q, test.v, test.a), ident.torque(test.q, test.v, test.a)
    measured = lowpass(np.asarray(judge.effort), RATE, ident.prediction_band)
    within, missed = (reach[..., 0] <= measured) & (measured <= reach[..., 1]), np.abs(measured - exported)
    fast = np.abs(test.v) > np.quantile(np.abs(test.v), 0.9, axis=0)
    near = np.abs(test.v) < 0.1 * arm.speed
    ideal = 2 * 1.96 * np.std(lowpass(np.asarray(judge.effort) - oracle, RATE, ident.prediction_band), axis=0)
    width = (reach[..., 1] - reach[..., 0]) / ideal
    turning = np.sqrt(np.mean(width[near] ** 2) / np.mean((2 * 1.96 * (measured - oracle) / ideal)[near] ** 2))
    return {
        "covered": float(inside.mean()) if len(inertial) else np.nan,
        "inside": float(within.mean()),
        "inside_reversals": float(within[near].mean()),
        "inside_fast": float(within[fast].mean()),
        "width": float(np.median(width)),
        "width_reversals": float(turning),
        "width_own": float(np.median((reach[..., 1] - reach[..., 0]) / (2 * np.quantile(missed, 0.95, axis=0)))),
    }


def report(rows: Sequence[dict[str, float | str]]) -> str:
    """The table, a line a kind of log."""
    lines = [
        f"{'kind':9} {'n':>3} {'base 50/99/worst %':>22} {'simple 50/99/worst':>22} {'oracle 50/90/worst':>22} "
        f"{'inside all/rev/fast':>20} {'width/rev/own':>14} {'covered':>7} {'cpu':>5}"
    ]
    for kind in [*EVERY, "all"]:
        some = [row for row in rows if kind in (row["kind"], "all") and "exported" in row]
        if not some:
            continue

        def ratio(key: str, level: int, some: Sequence[dict[str, float | str]] = some) -> str:
            x = np.array([float(row["exported"]) / float(row[key]) for row in some if key in row])
            if not len(x):
                return "-"
            return f"{np.median(x):.3f} {np.percentile(x, level):.3f} {x.max():.3f}"

        def mean(key: str, some: Sequence[dict[str, float | str]] = some) -> float:
            return float(np.nanmean([float(row.get(key, np.nan)) for row in some]))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inside = "/".join(f"{100 * mean(key):.0f}" for key in ("inside", "inside_reversals", "inside_fast"))
            lines.append(
                f"{kind:9} {len(some):3d} {ratio('baseline', 99):>22} {ratio('simple', 99):>22} {ratio('oracle', 90):>22} "
                f"{inside:>20} {mean('width'):4.2f}/{mean('width_reversals'):4.2f}/{mean('width_own'):4.2f} "
                f"{100 * mean('covered'):7.1f} {mean('cpu'):5.1f}"
            )
    refused = [row for row in rows if "refused" in row]
    judged = [(float(row["exported"]) / float(row["baseline"]), row) for row in rows if "exported" in row]
    worse = sorted((pair for pair in judged if pair[0] > WORSE), key=lambda pair: -pair[0])
    lines.append(f"more than {WORSE} times the URDF with bounded friction: {len(worse)} of {len(judged)}")
    lines += [f"  {row['kind']} {row['seed']} {row['family']}: × {ratio:.2f}, said {row['level']}" for ratio, row in worse]
    lines += [f"refused: {row['kind']} {row['seed']}: {row['refused']}" for row in refused]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first arm")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {','.join(EVERY)}")
    parser.add_argument("--poor", action="store_true", help="logs that hardly tell anything, without comparisons")
    parser.add_argument("--no-simple", action="store_true", help="leave the comparison with listed laws out")
    parser.add_argument("-o", "--output", type=Path, help="rows as JSON lines, appended")
    arguments = parser.parse_args()
    kinds = list(POOR) if arguments.poor else arguments.kinds.split(",")
    if unknown := sorted(set(kinds) - set(EVERY)):
        parser.error(f"--kinds: no kind {', '.join(map(repr, unknown))}; known are {', '.join(EVERY)}")
    rows = []
    for seed in range(arguments.first, arguments.first + arguments.arms):
        for kind in kinds:
            row = run(seed, kind, simple=not (arguments.no_simple or arguments.poor))
            rows.append(row)
            print(" ".join(f"{k}={v:.3f}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()), flush=True)
            if arguments.output:
                with arguments.output.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
