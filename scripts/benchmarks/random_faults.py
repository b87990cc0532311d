"""Random faults of kinds that no check is written for: is a model that they spoil ever called good?

    python scripts/benchmarks/random_faults.py [--faults 200] [--first 0] [--automatic] [--data ../shared/data] [-o ROWS.jsonl]
    python scripts/benchmarks/random_faults.py --clean 16    (findings of sound logs of so many arms, rich, short and poor)

Every fault is drawn by its seed: what it is, of which joints, how strong, in which part of which logs; every fourth is two
at once. The logs are of the simulated arms of ``arms.py`` (6 and 7 axes, SCARA, gantry, coupled wrist, a tool unknown to the
URDF, torque sensors, small arms with high friction) and, every tenth, three real ones of the UR10e. A model is identified as a
user would, and judged on a motion of clean logs against the model from the clean logs:

- harmful: more than 1.1 times its error, or nothing comes out; grave: more than 1.5 times;
- named, undecided, misdiagnosed, silent: as in ``faults.py``, of the harmful;
- good but grave: what must not happen. And of the clean logs: whether they are good.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
from arms import SCORE, SIMPLE, arm, training, wander
from faults import BENIGN, commanded, interpolated, part, payload, smoothed, speeds, ur10e
from scipy.ndimage import uniform_filter1d

from urdf_ident.data.prepare import examine_logs, prepare_logs
from urdf_ident.data.recording import Recording
from urdf_ident.errors import UrdfIdentError
from urdf_ident.linalg import Array
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project
from urdf_ident.result.identification import Identification
from urdf_ident.result.scores import predict, score
from urdf_ident.result.verdict import OUTSTANDING
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

HARMFUL, GRAVE = 1.1, 1.5
ARMS, FAULTS_AN_ARM, SECONDS = 8, 16, 9.0
SIGNALS = parse_project({}).signal_config()
VARYING = {"payload-changes", "contact", "effort-drift", "not-stationary"}
ODD = {"log-differs", "logs-disagree"}


@dataclass(frozen=True)
class Setting:
    """A robot with clean logs to learn from and to judge on, and another robot's log with the same columns."""

    name: str
    robot: Robot
    drive: Drive
    learn: list[Recording]
    judge: list[Recording]
    foreign: Recording


@dataclass
class Draw:
    """Random choices of one fault."""

    rng: np.random.Generator
    setting: Setting

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.setting.robot.n

    def joint(self) -> int:
        """A joint."""
        return int(self.rng.integers(self.n))

    def two(self) -> tuple[int, int]:
        """Two joints."""
        i, j = self.rng.choice(self.n, 2, replace=False)
        return int(i), int(j)

    def between(self, low: float, high: float) -> float:
        """A number, evenly spread in its logarithm."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def rows(self, log: Recording) -> np.ndarray:
        """A part of a log, a tenth to a half of it."""
        length = self.rng.uniform(0.1, 0.5)
        begin = self.rng.uniform(0, 1 - length)
        return part(log, begin, begin + length)

    def way(self) -> float:
        """Plus or minus one."""
        return float(self.rng.choice([-1.0, 1.0]))


Make = Callable[[Draw], tuple[str, Callable[[Recording], Recording]]]


def _effort(log: Recording, j: int, value: Array) -> Recording:
    effort = np.array(log.effort)
    effort[:, j] = value
    return replace(log, sha256="", effort=effort)


def _spread(log: Recording, j: int) -> float:
    return float(np.asarray(log.effort)[:, j].std())


def _brake(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size, seed = draw.joint(), draw.between(0.3, 3.0), draw.rng.integers(1 << 30)

    def act(log: Recording) -> Recording:
        rows = replace(draw, rng=np.random.default_rng(seed)).rows(log)
        drag = size * _spread(log, j) * np.tanh(speeds(log)[:, j] / 0.02)
        return _effort(log, j, np.asarray(log.effort)[:, j] + rows * drag)

    return f"brake of {j} × {size:.2g}", act


def _late_joint(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, late = draw.joint(), draw.between(0.01, 0.2)

    def act(log: Recording) -> Recording:
        return _effort(log, j, np.interp(log.time - late, log.time, np.asarray(log.effort)[:, j]))

    return f"effort {j} {1e3 * late:.0f} ms late", act


def _late_all(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    late = draw.way() * draw.between(0.01, 0.2)
    return f"efforts {1e3 * late:.0f} ms late", lambda log: replace(
        log, sha256="", effort=interpolated(log.time, np.asarray(log.effort), log.time - late)
    )


def _drift(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size, slow = draw.joint(), draw.way() * draw.between(0.1, 2.0), draw.rng.random() < 0.5

    def act(log: Recording) -> Recording:
        x = np.linspace(0, 1, len(log))
        return _effort(log, j, np.asarray(log.effort)[:, j] + size * _spread(log, j) * (x if slow else 1 - np.exp(-5 * x)))

    return f"offset of {j} drifts {size:.2g}", act


def _friction_drift(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size = draw.way() * draw.between(0.1, 1.0) * (draw.rng.random(draw.n) < 0.6)

    def act(log: Recording) -> Recording:
        x = np.linspace(0, 1, len(log))[:, None]
        return replace(
            log, sha256="", effort=log.effort + size * x * np.asarray(log.effort).std(axis=0) * np.tanh(speeds(log) / 0.05)
        )

    return f"friction drifts {np.round(size, 2)}", act


def _gain_drift(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size = draw.way() * draw.between(0.1, 0.6)
    return f"gain drifts {size:.2g}", lambda log: replace(
        log, sha256="", effort=log.effort * (1 + size * np.linspace(0, 1, len(log))[:, None])
    )


def _offset_step(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size, at = draw.joint(), draw.way() * draw.between(0.2, 2.0), draw.rng.uniform(0.2, 0.8)
    return f"offset of {j} steps {size:.2g}", lambda log: _effort(
        log, j, np.asarray(log.effort)[:, j] + size * _spread(log, j) * part(log, at, 2)
    )


def _encoder(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size, waves, phase = draw.joint(), draw.between(0.005, 0.15), int(draw.rng.integers(1, 9)), draw.rng.uniform(0, 6)
    size *= 0.2 if draw.setting.robot.prismatic[j] else 1.0

    def act(log: Recording) -> Recording:
        q = np.array(log.position)
        q[:, j] += size * np.sin(waves * q[:, j] + phase)
        return replace(log, sha256="", position=q)

    return f"encoder {j} {size:.2g} rad × sin {waves}", act


def _backlash(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.between(0.005, 0.1)
    size *= 0.2 if draw.setting.robot.prismatic[j] else 1.0

    def act(log: Recording) -> Recording:
        q = np.array(log.position)
        at = q[0, j]
        for k in range(len(q)):
            at = min(max(at, q[k, j] - size / 2), q[k, j] + size / 2)
            q[k, j] = at
        return replace(log, sha256="", position=q)

    return f"backlash of encoder {j} {size:.2g}", act


def _zero(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.way() * draw.between(0.03, 3.0)
    at = np.arange(draw.n) == j
    return f"zero of {j} {size:.2g}", lambda log: replace(log, sha256="", position=log.position + size * at)


def _signs(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    i, j = draw.two()
    turn = np.where(np.isin(np.arange(draw.n), (i, j)), -1.0, 1.0)
    return f"signs of efforts {i} {j}", lambda log: replace(log, sha256="", effort=log.effort * turn)


def _sign(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j = draw.joint()
    turn = np.where(np.arange(draw.n) == j, -1.0, 1.0)
    return f"sign of effort {j}", lambda log: replace(log, sha256="", effort=log.effort * turn)


def _position_sign(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j = draw.joint()
    turn = np.where(np.arange(draw.n) == j, -1.0, 1.0)
    return f"sign of position {j}", lambda log: replace(
        log, sha256="", position=log.position * turn, velocity=None if log.velocity is None else log.velocity * turn
    )


def _exchanged(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    i, j = draw.two()
    order = np.arange(draw.n)
    order[[i, j]] = j, i
    return f"efforts {i} {j} exchanged", lambda log: replace(log, sha256="", effort=np.asarray(log.effort)[:, order])


def _copied(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    i, j = draw.two()
    return f"effort {i} in the column of {j}", lambda log: _effort(log, j, np.asarray(log.effort)[:, i])


def _crosstalk(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    (i, j), size = draw.two(), draw.way() * draw.between(0.1, 1.0)
    return f"crosstalk {i} to {j} {size:.2g}", lambda log: _effort(
        log, j, np.asarray(log.effort)[:, j] + size * _spread(log, j) / _spread(log, i) * np.asarray(log.effort)[:, i]
    )


def _scale(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.between(1.15, 10.0) ** draw.way()
    return f"effort {j} × {size:.2g}", lambda log: _effort(log, j, np.asarray(log.effort)[:, j] * size)


def _scale_all(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size = draw.between(1.2, 100.0) ** draw.way()
    return f"efforts × {size:.2g}", lambda log: replace(log, sha256="", effort=log.effort * size)


def _magnitude(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j = draw.joint()
    return f"size of effort {j} without sign", lambda log: _effort(log, j, np.abs(np.asarray(log.effort)[:, j]))


def _clipped(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.rng.uniform(0.3, 0.85)

    def act(log: Recording) -> Recording:
        x = np.asarray(log.effort)[:, j]
        return _effort(log, j, np.clip(x, -size * np.abs(x).max(), size * np.abs(x).max()))

    return f"effort {j} clipped at {size:.2g}", act


def _saturating(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.rng.uniform(0.4, 1.5)

    def act(log: Recording) -> Recording:
        x = np.asarray(log.effort)[:, j]
        most = size * np.abs(x).max()
        return _effort(log, j, most * np.tanh(x / most))

    return f"effort {j} saturates at {size:.2g}", act


def _asymmetric(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.way() * draw.between(0.03, 0.3)

    def act(log: Recording) -> Recording:
        x = np.asarray(log.effort)[:, j]
        return _effort(log, j, x + size * np.abs(x))

    return f"effort {j} has scales of {1 + size:.2f} and {1 - size:.2f}", act


def _slip(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size, at = draw.joint(), draw.way() * draw.between(0.02, 0.3), draw.rng.uniform(0.2, 0.8)

    def act(log: Recording) -> Recording:
        slipped = np.linspace(0, 1, len(log)) > at
        return replace(log, sha256="", position=log.position + size * np.outer(slipped, np.arange(draw.n) == j))

    return f"encoder {j} slips by {size:.2g}", act


def _dead_zone(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.between(0.2, 1.5)

    def act(log: Recording) -> Recording:
        x, least = np.asarray(log.effort)[:, j], size * _spread(log, j)
        return _effort(log, j, np.sign(x) * np.maximum(np.abs(x) - least, 0))

    return f"effort {j} has a dead zone of {size:.2g}", act


def _held(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, rate, position = draw.joint(), draw.between(2.0, 25.0), draw.rng.random() < 0.4

    def act(log: Recording) -> Recording:
        at = np.searchsorted(log.time, np.floor((log.time - log.time[0]) * rate) / rate + log.time[0])
        if position:
            q = np.array(log.position)
            q[:, j] = q[at, j]
            return replace(log, sha256="", position=q)
        return _effort(log, j, np.asarray(log.effort)[at, j])

    return f"{'position' if position else 'effort'} {j} held at {rate:.2g} Hz", act


def _slow_velocity(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    width = int(draw.rng.integers(5, 60))
    return f"velocities averaged over {width}", lambda log: replace(
        log, sha256="", velocity=uniform_filter1d(speeds(log), width, axis=0, origin=(width - 1) // 2)
    )


def _slow_position(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    cutoff = draw.between(0.5, 5.0)
    return f"positions behind {cutoff:.2g} Hz", lambda log: replace(
        log, sha256="", position=smoothed(replace(log, effort=log.position), cutoff).effort, velocity=None
    )


def _slow_effort(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, cutoff = draw.joint(), draw.between(0.3, 5.0)
    return f"effort {j} behind {cutoff:.2g} Hz", lambda log: _effort(log, j, np.asarray(smoothed(log, cutoff).effort)[:, j])


def _jitter(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size, seed = draw.between(0.2, 20.0), draw.rng.integers(1 << 30)

    def act(log: Recording) -> Recording:
        period = float(np.median(np.diff(log.time)))
        moved = log.time + size * period * np.random.default_rng(seed).exponential(1.0, len(log))
        return replace(log, sha256="", time=np.maximum.accumulate(moved) + 1e-6 * np.arange(len(log)))

    return f"stamps jitter {size:.2g} periods", act


def _lost(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    share, seed, burst = draw.between(0.02, 0.3), draw.rng.integers(1 << 30), int(draw.rng.integers(1, 30))

    def act(log: Recording) -> Recording:
        rng = np.random.default_rng(seed)
        gone = np.zeros(len(log), dtype=bool)
        for begin in rng.integers(0, len(log), max(1, round(share * len(log) / burst))):
            gone[begin : begin + burst] = True
        kept = log.take(~gone)
        return replace(kept, sha256="", time=log.time[: len(kept)])

    return f"{share:.2g} of the rows lost in {burst}s, stamps even", act


def _stretched(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size, bare = draw.between(1.1, 4.0) ** draw.way(), draw.rng.random() < 0.6
    return f"time × {size:.2g}", lambda log: replace(
        log, sha256="", time=log.time * size, velocity=None if bare else log.velocity
    )


def _carried(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    share, seed = draw.between(0.03, 0.5), draw.rng.integers(1 << 30)
    robot = draw.setting.robot
    mass = share * sum(body.mass for body in list(robot.model.inertias)[1:])
    mass = min(mass, 5 * share * sum(body.mass for body in list(robot.model.inertias)[-3:]))

    def act(log: Recording) -> Recording:
        return payload(log, robot, mass, replace(draw, rng=np.random.default_rng(seed)).rows(log))

    return f"payload {mass:.2g} kg in a part", act


def _pushed(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size, seed = draw.between(0.2, 3.0), draw.rng.integers(1 << 30)

    def act(log: Recording) -> Recording:
        own = np.random.default_rng(seed)
        rows = replace(draw, rng=own).rows(log)
        push = size * own.uniform(-1, 1, draw.n) * np.asarray(log.effort).std(axis=0)
        return replace(log, sha256="", effort=log.effort + rows[:, None] * push)

    return f"contact {size:.2g}", act


def _ripple(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size, waves = draw.joint(), draw.between(0.1, 1.0), int(draw.rng.integers(2, 60))
    waves *= 10 if draw.setting.robot.prismatic[j] else 1
    return f"ripple of {j} {size:.2g} × sin {waves}", lambda log: _effort(
        log, j, np.asarray(log.effort)[:, j] + size * _spread(log, j) * np.sin(waves * log.position[:, j])
    )


def _hysteresis(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.between(0.2, 1.5)

    def act(log: Recording) -> Recording:
        x, width = np.array(log.effort)[:, j], size * _spread(log, j)
        at = x[0]
        for k in range(len(x)):
            at = min(max(at, x[k] - width / 2), x[k] + width / 2)
            x[k] = at
        return _effort(log, j, x)

    return f"hysteresis of effort {j} {size:.2g}", act


def _commanded(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    return "efforts commanded", lambda log: commanded(log, draw.setting.robot)


def _weightless(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    robot = draw.setting.robot
    data = robot.model.createData()

    def act(log: Recording) -> Recording:
        weight = [pin.computeGeneralizedGravity(robot.model, data, row) for row in robot.configuration(log.position)]
        return replace(log, sha256="", effort=log.effort - np.array(weight))

    return "efforts without the URDF's gravity", act


def _degrees(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    factors = np.where(draw.setting.robot.prismatic, 1e3, 180 / np.pi)
    return "degrees", lambda log: replace(log, sha256="", position=log.position * factors)


def _foreign(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    return "another robot's log", lambda log: replace(draw.setting.foreign, name=log.name, sha256="")


#: What makes each fault, the ids that name it, and whether it only makes sense in one log of several.
KINDS: dict[str, tuple[Make, set[str], bool]] = {
    "brake": (_brake, VARYING, False),
    "late joint": (_late_joint, {"effort-delay", "effort-bandwidth"}, False),
    "late": (_late_all, {"effort-delay"}, False),
    "offset drift": (_drift, VARYING, False),
    "friction drift": (_friction_drift, VARYING, False),
    "gain drift": (_gain_drift, VARYING | {"effort-scale"}, False),
    "offset step": (_offset_step, VARYING, False),
    "encoder": (_encoder, {"position-nonlinear", "velocity-unrelated"}, False),
    "backlash": (_backlash, {"position-play", "position-nonlinear", "velocity-unrelated", "channel-frozen"}, False),
    "zero": (_zero, {"position-zero"}, False),
    "signs": (_signs, {"effort-sign"}, False),
    "sign": (_sign, {"effort-sign"}, False),
    "position sign": (_position_sign, {"position-sign", "axis-sign"}, False),
    "exchanged": (_exchanged, {"joints-exchanged"}, False),
    "copied": (_copied, {"joints-exchanged", "effort-twice"}, False),
    "crosstalk": (_crosstalk, {"effort-crosstalk"}, False),
    "scale": (_scale, {"effort-scale", "effort-scale-open"}, False),
    "scale all": (_scale_all, {"effort-scale", "effort-unit", "gravity-scale"}, False),
    "magnitude": (_magnitude, {"effort-sign", "effort-unsigned"}, False),
    "clipped": (_clipped, {"effort-clipped"}, False),
    "saturating": (_saturating, {"effort-clipped", "effort-saturates"}, False),
    "asymmetric": (_asymmetric, {"effort-asymmetric", "effort-scale"}, False),
    "slip": (_slip, {"contact", "position-zero", "values-jump", "position-nonlinear"}, False),
    "dead zone": (_dead_zone, {"effort-dead-zone", "channel-frozen", "frozen-too-long"}, False),
    "held": (_held, {"position-held", "effort-held", "channel-frozen", "frozen-too-long"}, False),
    "slow velocity": (_slow_velocity, {"velocity-lag"}, False),
    "slow position": (_slow_position, {"effort-delay", "effort-bandwidth", "velocity-lag"}, False),
    "slow effort": (_slow_effort, {"effort-delay", "effort-bandwidth"}, False),
    "jitter": (_jitter, {"clock-uneven", "clock-jitter", "clock-gaps"}, False),
    "lost": (_lost, {"samples-lost", "time-scale", "clock-gaps", "values-jump"}, False),
    "stretched": (_stretched, {"time-scale"}, False),
    "payload": (_carried, VARYING, False),
    "contact": (_pushed, VARYING, False),
    "ripple": (_ripple, {"effort-ripple"}, False),
    "hysteresis": (_hysteresis, {"effort-delay", "effort-clipped", "effort-saturates", "channel-frozen"}, False),
    "commanded": (_commanded, {"effort-commanded"}, False),
    "weightless": (_weightless, {"effort-without-gravity"}, False),
    "degrees": (_degrees, {"position-unit", "velocity-unit", "velocity-scale"}, False),
    "foreign": (_foreign, set(), True),
}


@cache
def setting(seed: int) -> Setting:
    """The arm of a seed with its clean logs; half of them with velocities."""
    one, rng = arm(seed), np.random.default_rng([13, seed])
    logs = [one.log(f"run{k}", wander(one, rng, SECONDS, 1.0), rng) for k in range(3)]
    if seed % 2:
        logs = [_with_velocity(log, rng) for log in logs]
    test = one.log("test", wander(one, rng, 12.0, 1.5), rng)
    other = arm(seed + 1000 * 8)
    foreign = other.log("foreign", wander(other, rng, 12.0, 1.0), rng)
    return Setting(one.family, one.robot, one.drive, logs, [test], replace(foreign, joints=one.robot.joints))


def _with_velocity(log: Recording, rng: np.random.Generator) -> Recording:
    v = np.gradient(uniform_filter1d(log.position, 3, axis=0), log.time, axis=0)
    return replace(log, velocity=v + 1e-3 * v.std() * rng.standard_normal(v.shape))


@cache
def real(data: Path) -> Setting:
    """The UR10e with three logs to learn from, and of the others two to judge on; a simulated arm is the foreign one."""
    robot, logs = ur10e(data)
    logs = [replace(log, torque_target=None, effort_target=None) for log in logs]
    other = arm(800)
    rng = np.random.default_rng(0)
    foreign = replace(other.log("foreign", wander(other, rng, 20.0, 1.0), rng), joints=robot.joints)
    return Setting("ur10e", robot, Drive.build(robot.n), logs[::2][:3], logs[1::2][:2], foreign)


def drawn(seed: int, at: Setting) -> tuple[list[str], str, set[str], list[Recording], Robot]:
    """The fault of a seed: its kinds, words, ids, and the logs and the robot with it."""
    rng = np.random.default_rng([17, seed])
    names = sorted(KINDS)
    kinds = [names[seed % (len(names) + 1)] if seed % (len(names) + 1) < len(names) else "gravity"]
    if rng.random() < 0.25:
        kinds.append(str(rng.choice(names)))
    logs, robot, words, ids = list(at.learn), at.robot, [], set()
    for kind in kinds:
        if kind == "gravity":
            lean, side = rng.uniform(0.03, 0.35), rng.uniform(0, 2 * np.pi)
            g = 9.81 * np.array([np.sin(lean) * np.cos(side), np.sin(lean) * np.sin(side), -np.cos(lean)])
            robot = robot.with_gravity((float(g[0]), float(g[1]), float(g[2])))
            words.append(f"gravity {np.degrees(lean):.0f}° off")
            ids.add("gravity-direction")
            continue
        make, own, alone = KINDS[kind]
        said, act = make(Draw(rng, at))
        some = [int(rng.integers(len(logs)))] if alone or rng.random() < 0.3 else range(len(logs))
        for k in some:
            logs[k] = act(logs[k])
        ids |= own | (ODD if len(some) == 1 else set())
        words.append(said + (f" in log {some[0]}" if len(some) == 1 else ""))
    return kinds, ", ".join(words), ids, logs, robot


def identified(at: Setting, logs: Sequence[Recording], robot: Robot, automatic: bool) -> Identification:
    """As a user would; intervals of the parameters, which no verdict asks for, by the quickest way."""
    model = modelled(at, robot, automatic)
    return identify(model, logs, project=parse_project({"estimation": {"covariance": "model"}}))


def modelled(at: Setting, robot: Robot, automatic: bool = False) -> DynamicModel:
    """The model of the robot with friction of three laws, or as the data ask."""
    coupled = np.abs(at.drive.reduction - np.diag(np.diag(at.drive.reduction))).any()
    motors = dict.fromkeys(robot.joints if coupled and not automatic else (), SIMPLE[:2])
    return DynamicModel(robot, friction="auto" if automatic else SIMPLE, drive=at.drive, motor_friction=motors)


def error(model: DynamicModel, theta: Array, at: Setting) -> float:
    """Mean relative error on the clean logs to judge on."""
    ready = prepare_logs(at.judge, at.robot, at.drive, SIGNALS, force=True)
    scores = [score(log, predict(model, theta, log), at.robot.joints, SCORE, measured_only=True) for log in ready]
    torque = np.sqrt(np.mean([np.mean(np.vstack([part.tau for part in log.segments]) ** 2, axis=0) for log in ready], axis=0))
    return float(np.mean(np.sqrt(np.mean([item.rmse**2 for item in scores], axis=0)) / torque))


def plain(at: Setting, logs: Sequence[Recording], robot: Robot) -> float:
    """Error of a plain fit in spite of every finding; inf where nothing comes out."""
    try:
        model = modelled(at, robot)
        base = model.base()
        prepared = prepare_logs(logs, robot, at.drive, SIGNALS, force=True)
        theta = base.embedded(fit_base(build_statistics(model, prepared), base).params)
        return error(model, theta, at)
    except (UrdfIdentError, np.linalg.LinAlgError):
        return np.inf


@cache
def clean(seed: int | Path, automatic: bool) -> tuple[str, float, float]:
    """Level and error of the model from the clean logs, and error of the plain fit to them."""
    at = real(seed) if isinstance(seed, Path) else setting(seed)
    ident = identified(at, at.learn, at.robot, automatic)
    return ident.verdict.level, error(ident.model, ident.theta, at), plain(at, at.learn, at.robot)


def word(said: set[str], doubts: set[str], ids: set[str]) -> str:
    """named, undecided, misdiagnosed or silent."""
    if said & ids:
        return "named"
    if doubts & (ids | {"physics-undecided"}):
        return "undecided"
    return "misdiagnosed" if said - BENIGN else "silent"


def run(seed: int, data: Path, automatic: bool) -> dict[str, object]:
    """One fault. A finding that keeps every verdict from good spares the identification: a plain fit says what it costs."""
    start = time.process_time()
    which: int | Path = data if seed % 10 == 9 else seed % ARMS + ARMS * (seed // (ARMS * FAULTS_AN_ARM))
    at = real(which) if isinstance(which, Path) else setting(which)
    kinds, words, ids, logs, robot = drawn(seed, at)
    level, best, simple = clean(which, automatic)
    row: dict[str, object] = {"seed": seed, "robot": at.name, "kinds": kinds, "fault": words, "clean": level}
    findings = [item for report in examine_logs(logs, robot, at.drive, SIGNALS) for item in report.findings]
    grave = {item.id for item in findings if item.severity == "warning" and item.id.startswith(OUTSTANDING)}
    if any(item.severity == "refused" for item in findings):
        found, ratio = "refused", plain(at, logs, robot) / simple
    elif grave - {"effort-constant"}:
        found, ratio = "capped", plain(at, logs, robot) / simple
    else:
        try:
            ident = identified(at, logs, robot, automatic)
            found, ratio = ident.verdict.level, error(ident.model, ident.theta, at) / best
            row["causes"] = [reason.id for reason in ident.verdict.reasons if reason.level != "good"]
        except UrdfIdentError as failure:
            found, ratio = "failed", np.inf
            row["causes"] = [str(failure)[:80]]
    usual = {item.id for report in examine_logs(at.learn, at.robot, at.drive, SIGNALS) for item in report.findings} - ids
    said = {item.id for item in findings if item.severity != "info" and item.id != "physics-undecided"} - usual
    said |= {str(cause) for cause in row.get("causes", ())} & ids  # a reason of the verdict names it as well
    doubts = {c for item in findings for c in (*item.candidates, item.id)}
    row |= {"level": found, "ratio": ratio, "word": word(said, doubts, ids), "findings": sorted(said - BENIGN)}
    row["doubts"] = sorted(doubts - said - BENIGN)
    return {**row, "cpu": time.process_time() - start}


def report(rows: Sequence[dict[str, object]]) -> str:
    """The sums."""
    harmful = [row for row in rows if float(str(row["ratio"])) > HARMFUL]
    counts = Counter(str(row["word"]) for row in harmful)
    grave = [row for row in rows if row["level"] == "good" and float(str(row["ratio"])) > GRAVE]
    shares = ", ".join(
        f"{name} {counts[name]} ({100 * counts[name] / max(len(harmful), 1):.1f} %)"
        for name in ("named", "undecided", "misdiagnosed", "silent")
    )
    levels = Counter(str(row["level"]) for row in rows)
    settings = {(str(row["robot"]), str(row["clean"])) for row in rows}
    lines = [
        f"{len(rows)} faults, {len(harmful)} harmful: {shares}",
        ", ".join(f"{level} {count}" for level, count in levels.most_common()) + f"; clean: {sorted(settings)}",
        f"good but grave: {len(grave)}",
    ]
    return "\n".join([*lines, *(f"  {row['seed']} {row['robot']} {row['fault']}: × {row['ratio']:.2f}" for row in grave)])


def sound(arms: int) -> None:
    """All warnings and refusals of sound logs."""
    logs = 0
    for seed in range(arms):
        one = arm(100 + seed)
        rng = np.random.default_rng([19, seed])
        kinds = {kind: training(one, kind, rng) for kind in ("rich", "eight", "four", "flat", "resting", "one_way")}
        kinds["slow"] = [one.log("run", wander(one, rng, 30.0, 0.2), rng)]
        kinds["fast"] = [one.log("run", wander(one, rng, 10.0, 2.0), rng)]
        for kind, some in kinds.items():
            reports = examine_logs(some, one.robot, one.drive, SIGNALS)
            said = [
                x for report in reports for x in report.findings if x.severity in ("warning", "refused") and x.id not in BENIGN
            ]
            logs += len(some)
            if said:
                words = "; ".join(f"{x.severity} {x.id} {x.joint} {x.message}" for x in said)
                print(f"{100 + seed} {one.family:8s} {kind:8s} {words}", flush=True)
    print(f"{logs} sound logs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first fault")
    parser.add_argument("--seeds", type=int, nargs="*", help="these seeds alone")
    parser.add_argument("--clean", type=int, help="inspect sound logs of so many arms instead")
    parser.add_argument("--automatic", action="store_true", help="friction chosen by the data, instead of three laws")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2].parent / "shared" / "data")
    parser.add_argument("-o", "--output", type=Path, help="rows as JSON lines, appended")
    arguments = parser.parse_args()
    if arguments.clean:
        sound(arguments.clean)
        return
    rows = []
    for seed in arguments.seeds or range(arguments.first, arguments.first + arguments.faults):
        row = run(seed, arguments.data, arguments.automatic)
        rows.append(row)
        print(
            f"{seed:4d} {row['robot']:7s} {row['fault']:60s} {row['level']:8s} {row['ratio']:7.2f} {row['word']:12s} "
            f"{', '.join(map(str, row['findings'])) or '-'} | {', '.join(map(str, row.get('causes', ()))) or '-'} "
            f"{row['cpu']:.1f} s",
            flush=True,
        )
        if arguments.output:
            with arguments.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
