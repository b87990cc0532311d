"""Kinds of random faults of signals, clocks and columns, for ``random_faults.py`` (of robot and logger: ``setup_faults.py``).

Each draws what it is by a :class:`Draw` and returns words and what it does to a log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from faults import commanded, interpolated, part, payload, smoothed, speeds
from scipy.ndimage import uniform_filter1d

from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording
from urdf_ident.model.drive import Drive
from urdf_ident.model.robot import Robot
from urdf_ident.signals.filters import lowpass

#: Findings that name what changes along a log, and a log among others.
VARYING = {"payload-changes", "contact", "contact-force", "effort-drift", "not-stationary"}
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
    """Random choices of one fault; a mild one is of the weaker half of its sizes."""

    rng: np.random.Generator
    setting: Setting
    mild: bool = False

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
        high = float(np.sqrt(low * high)) if self.mild else high
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


def changed_effort(log: Recording, j: int, value: Array) -> Recording:
    effort = np.array(log.effort)
    effort[:, j] = value
    return replace(log, sha256="", effort=effort)


def spread(log: Recording, j: int) -> float:
    return float(np.asarray(log.effort)[:, j].std())


def _brake(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size, seed = draw.joint(), draw.between(0.3, 3.0), draw.rng.integers(1 << 30)

    def act(log: Recording) -> Recording:
        rows = replace(draw, rng=np.random.default_rng(seed)).rows(log)
        drag = size * spread(log, j) * np.tanh(speeds(log)[:, j] / 0.02)
        return changed_effort(log, j, np.asarray(log.effort)[:, j] + rows * drag)

    return f"brake of {j} × {size:.2g}", act


def _late_joint(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, late = draw.joint(), draw.between(0.01, 0.2)

    def act(log: Recording) -> Recording:
        return changed_effort(log, j, np.interp(log.time - late, log.time, np.asarray(log.effort)[:, j]))

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
        return changed_effort(
            log, j, np.asarray(log.effort)[:, j] + size * spread(log, j) * (x if slow else 1 - np.exp(-5 * x))
        )

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
    return f"offset of {j} steps {size:.2g}", lambda log: changed_effort(
        log, j, np.asarray(log.effort)[:, j] + size * spread(log, j) * part(log, at, 2)
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
    return f"effort {i} in the column of {j}", lambda log: changed_effort(log, j, np.asarray(log.effort)[:, i])


def _crosstalk(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    (i, j), size = draw.two(), draw.way() * draw.between(0.1, 1.0)
    return f"crosstalk {i} to {j} {size:.2g}", lambda log: changed_effort(
        log, j, np.asarray(log.effort)[:, j] + size * spread(log, j) / spread(log, i) * np.asarray(log.effort)[:, i]
    )


def _scale(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.between(1.15, 10.0) ** draw.way()
    return f"effort {j} × {size:.2g}", lambda log: changed_effort(log, j, np.asarray(log.effort)[:, j] * size)


def _scale_all(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size = draw.between(1.2, 100.0) ** draw.way()
    return f"efforts × {size:.2g}", lambda log: replace(log, sha256="", effort=log.effort * size)


def _magnitude(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j = draw.joint()
    return f"size of effort {j} without sign", lambda log: changed_effort(log, j, np.abs(np.asarray(log.effort)[:, j]))


def _clipped(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.rng.uniform(0.3, 0.85)

    def act(log: Recording) -> Recording:
        x = np.asarray(log.effort)[:, j]
        return changed_effort(log, j, np.clip(x, -size * np.abs(x).max(), size * np.abs(x).max()))

    return f"effort {j} clipped at {size:.2g}", act


def _saturating(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.rng.uniform(0.4, 1.5)

    def act(log: Recording) -> Recording:
        x = np.asarray(log.effort)[:, j]
        most = size * np.abs(x).max()
        return changed_effort(log, j, most * np.tanh(x / most))

    return f"effort {j} saturates at {size:.2g}", act


def _asymmetric(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.way() * draw.between(0.03, 0.3)

    def act(log: Recording) -> Recording:
        x = np.asarray(log.effort)[:, j]
        return changed_effort(log, j, x + size * np.abs(x))

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
        x, least = np.asarray(log.effort)[:, j], size * spread(log, j)
        return changed_effort(log, j, np.sign(x) * np.maximum(np.abs(x) - least, 0))

    return f"effort {j} has a dead zone of {size:.2g}", act


def _held(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, rate, position = draw.joint(), draw.between(2.0, 25.0), draw.rng.random() < 0.4

    def act(log: Recording) -> Recording:
        at = np.searchsorted(log.time, np.floor((log.time - log.time[0]) * rate) / rate + log.time[0])
        if position:
            q = np.array(log.position)
            q[:, j] = q[at, j]
            return replace(log, sha256="", position=q)
        return changed_effort(log, j, np.asarray(log.effort)[at, j])

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


def _smooth_position(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    cutoff = draw.between(0.4, 4.0)
    return f"positions low-passed without delay at {cutoff:.2g} Hz", lambda log: replace(
        log, sha256="", position=lowpass(log.position, 1 / float(np.median(np.diff(log.time))), cutoff, order=2), velocity=None
    )


def _noisy_position(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    size, seed = draw.between(0.0005, 0.02), draw.rng.integers(1 << 30)
    scale = size * np.where(draw.setting.robot.prismatic, 0.2, 1.0)

    def act(log: Recording) -> Recording:
        noise = scale * np.random.default_rng(seed).standard_normal(log.position.shape)
        return replace(log, sha256="", position=log.position + noise, velocity=None)

    return f"noise of positions {size:.2g}", act


def _few_samples(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    rate = draw.between(3.0, 15.0)

    def act(log: Recording) -> Recording:
        at = np.searchsorted(log.time, np.arange(log.time[0], log.time[-1], 1 / rate))
        return replace(log.take(np.isin(np.arange(len(log)), at)), sha256="", velocity=None)

    return f"logged at {rate:.2g} Hz", act


def _slow_efforts(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    cutoff = draw.between(0.5, 8.0)
    return f"efforts behind {cutoff:.2g} Hz", lambda log: smoothed(log, cutoff)


def _slow_effort(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, cutoff = draw.joint(), draw.between(0.3, 5.0)
    return f"effort {j} behind {cutoff:.2g} Hz", lambda log: changed_effort(
        log, j, np.asarray(smoothed(log, cutoff).effort)[:, j]
    )


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
    return f"ripple of {j} {size:.2g} × sin {waves}", lambda log: changed_effort(
        log, j, np.asarray(log.effort)[:, j] + size * spread(log, j) * np.sin(waves * log.position[:, j])
    )


def _hysteresis(draw: Draw) -> tuple[str, Callable[[Recording], Recording]]:
    j, size = draw.joint(), draw.between(0.2, 1.5)

    def act(log: Recording) -> Recording:
        x, width = np.array(log.effort)[:, j], size * spread(log, j)
        at = x[0]
        for k in range(len(x)):
            at = min(max(at, x[k] - width / 2), x[k] + width / 2)
            x[k] = at
        return changed_effort(log, j, x)

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
    "scale all": (_scale_all, {"effort-scale", "effort-unit", "gravity-scale", "mass-scale"}, False),
    "magnitude": (_magnitude, {"effort-sign", "effort-unsigned"}, False),
    "clipped": (_clipped, {"effort-clipped"}, False),
    "saturating": (_saturating, {"effort-clipped", "effort-saturates"}, False),
    "asymmetric": (_asymmetric, {"effort-asymmetric", "effort-scale"}, False),
    "slip": (_slip, {"position-jump", "position-zero"}, False),
    "dead zone": (_dead_zone, {"effort-dead-zone", "channel-frozen", "frozen-too-long"}, False),
    "held": (_held, {"position-held", "effort-held", "channel-frozen", "frozen-too-long"}, False),
    "slow velocity": (_slow_velocity, {"velocity-lag"}, False),
    "slow position": (_slow_position, {"effort-delay", "effort-bandwidth", "velocity-lag"}, False),
    "slow effort": (_slow_effort, {"effort-delay", "effort-bandwidth"}, False),
    "smooth position": (_smooth_position, {"effort-bandwidth", "position-bandwidth"}, False),
    "noisy position": (_noisy_position, {"position-noise", "position-bandwidth"}, False),
    "few samples": (_few_samples, {"position-bandwidth", "too-few-rows"}, False),
    "slow efforts": (_slow_efforts, {"effort-delay", "effort-bandwidth"}, False),
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
