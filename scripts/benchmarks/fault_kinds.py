"""Kinds of random faults of signals, clocks and columns, for ``random_faults.py`` (of robot and logger: ``setup_faults.py``).

Each draws what it is by a :class:`Draw` and returns words and what it does to a log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from faults import commanded, interpolated, part, payload, smoothed, speeds, weight
from scipy.ndimage import uniform_filter1d

from urdf_ident import Drive, Recording, Robot
from urdf_ident.linalg import Array
from urdf_ident.signals.filters import lowpass

#: Findings that name what changes along a log, and a log among others.
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


Act = Callable[[Recording], Recording]
Make = Callable[[Draw], tuple[str, Act]]
#: What becomes of a signal: of its values and of its log.
Change = Callable[[Array, Recording], Array]


def efforts(change: Change) -> Act:
    """What changes the efforts of all joints."""
    return lambda log: replace(log, sha256="", effort=change(np.array(log.effort), log))


def effort(j: int, change: Change) -> Act:
    """What changes the effort of one joint."""

    def act(tau: Array, log: Recording) -> Array:
        tau[:, j] = change(tau[:, j].copy(), log)
        return tau

    return efforts(act)


def positions(change: Change, **signals: None) -> Act:
    """What changes the positions of all joints; velocities stay, or are left out: ``velocity=None``."""
    return lambda log: replace(log, sha256="", position=change(np.array(log.position), log), **signals)


def spread(log: Recording, j: int) -> float:
    return float(np.asarray(log.effort)[:, j].std())


def deviations(log: Recording) -> Array:
    return np.asarray(np.asarray(log.effort).std(axis=0))


def along(log: Recording) -> Array:
    """Share of a log's rows up to each, shape (N, 1)."""
    return np.linspace(0, 1, len(log))[:, None]


def play(x: Array, width: float) -> Array:
    """What follows a signal through play."""
    out, at = np.array(x), x[0]
    for k, value in enumerate(x):
        out[k] = at = min(max(at, value - width / 2), value + width / 2)
    return out


def turned(draw: Draw, *joints: int) -> Array:
    """−1 for these joints, 1 for the others."""
    return np.where(np.isin(np.arange(draw.n), joints), -1.0, 1.0)


def _brake(draw: Draw) -> tuple[str, Act]:
    j, size, seed = draw.joint(), draw.between(0.3, 3.0), draw.rng.integers(1 << 30)

    def change(x: Array, log: Recording) -> Array:
        rows = replace(draw, rng=np.random.default_rng(seed)).rows(log)
        return x + rows * size * x.std() * np.tanh(speeds(log)[:, j] / 0.02)

    return f"brake of {j} × {size:.2g}", effort(j, change)


def _late_joint(draw: Draw) -> tuple[str, Act]:
    j, late = draw.joint(), draw.between(0.01, 0.2)
    return f"effort {j} {1e3 * late:.0f} ms late", effort(j, lambda x, log: np.interp(log.time - late, log.time, x))


def _late_all(draw: Draw) -> tuple[str, Act]:
    late = draw.way() * draw.between(0.01, 0.2)
    return f"efforts {1e3 * late:.0f} ms late", efforts(lambda x, log: interpolated(log.time, x, log.time - late))


def _drift(draw: Draw) -> tuple[str, Act]:
    j, size, slow = draw.joint(), draw.way() * draw.between(0.1, 2.0), draw.rng.random() < 0.5

    def change(x: Array, log: Recording) -> Array:
        rise = along(log)[:, 0]
        return x + size * x.std() * (rise if slow else 1 - np.exp(-5 * rise))

    return f"offset of {j} drifts {size:.2g}", effort(j, change)


def _friction_drift(draw: Draw) -> tuple[str, Act]:
    size = draw.way() * draw.between(0.1, 1.0) * (draw.rng.random(draw.n) < 0.6)
    return f"friction drifts {np.round(size, 2)}", efforts(
        lambda x, log: x + size * along(log) * x.std(axis=0) * np.tanh(speeds(log) / 0.05)
    )


def _gain_drift(draw: Draw) -> tuple[str, Act]:
    size = draw.way() * draw.between(0.1, 0.6)
    return f"gain drifts {size:.2g}", efforts(lambda x, log: x * (1 + size * along(log)))


def _offset_step(draw: Draw) -> tuple[str, Act]:
    j, size, at = draw.joint(), draw.way() * draw.between(0.2, 2.0), draw.rng.uniform(0.2, 0.8)
    return f"offset of {j} steps {size:.2g}", effort(j, lambda x, log: x + size * x.std() * part(log, at, 2))


def _encoder(draw: Draw) -> tuple[str, Act]:
    j, size, waves, phase = draw.joint(), draw.between(0.005, 0.15), int(draw.rng.integers(1, 9)), draw.rng.uniform(0, 6)
    size *= 0.2 if draw.setting.robot.prismatic[j] else 1.0

    def change(q: Array, _: Recording) -> Array:
        q[:, j] += size * np.sin(waves * q[:, j] + phase)
        return q

    return f"encoder {j} {size:.2g} rad × sin {waves}", positions(change)


def _backlash(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.between(0.005, 0.1)
    size *= 0.2 if draw.setting.robot.prismatic[j] else 1.0

    def change(q: Array, _: Recording) -> Array:
        q[:, j] = play(q[:, j], size)
        return q

    return f"backlash of encoder {j} {size:.2g}", positions(change)


def _zero(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.way() * draw.between(0.03, 3.0)
    return f"zero of {j} {size:.2g}", positions(lambda q, _: q + size * (np.arange(draw.n) == j))


def _signs(draw: Draw) -> tuple[str, Act]:
    i, j = draw.two()
    return f"signs of efforts {i} {j}", efforts(lambda x, _: x * turned(draw, i, j))


def _sign(draw: Draw) -> tuple[str, Act]:
    j = draw.joint()
    return f"sign of effort {j}", efforts(lambda x, _: x * turned(draw, j))


def _position_sign(draw: Draw) -> tuple[str, Act]:
    j = draw.joint()
    turn = turned(draw, j)
    return f"sign of position {j}", lambda log: replace(
        log, sha256="", position=log.position * turn, velocity=None if log.velocity is None else log.velocity * turn
    )


def _exchanged(draw: Draw) -> tuple[str, Act]:
    i, j = draw.two()
    order = np.arange(draw.n)
    order[[i, j]] = j, i
    return f"efforts {i} {j} exchanged", efforts(lambda x, _: x[:, order])


def _copied(draw: Draw) -> tuple[str, Act]:
    i, j = draw.two()
    return f"effort {i} in the column of {j}", effort(j, lambda _, log: np.asarray(log.effort)[:, i])


def _crosstalk(draw: Draw) -> tuple[str, Act]:
    (i, j), size = draw.two(), draw.way() * draw.between(0.1, 1.0)
    return f"crosstalk {i} to {j} {size:.2g}", effort(
        j, lambda x, log: x + size * x.std() / spread(log, i) * np.asarray(log.effort)[:, i]
    )


def _scale(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.between(1.15, 10.0) ** draw.way()
    return f"effort {j} × {size:.2g}", effort(j, lambda x, _: x * size)


def _scale_all(draw: Draw) -> tuple[str, Act]:
    size = draw.between(1.2, 100.0) ** draw.way()
    return f"efforts × {size:.2g}", efforts(lambda x, _: x * size)


def _magnitude(draw: Draw) -> tuple[str, Act]:
    j = draw.joint()
    return f"size of effort {j} without sign", effort(j, lambda x, _: np.abs(x))


def _clipped(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.rng.uniform(0.3, 0.85)
    return f"effort {j} clipped at {size:.2g}", effort(
        j, lambda x, _: np.clip(x, -size * np.abs(x).max(), size * np.abs(x).max())
    )


def _saturating(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.rng.uniform(0.4, 1.5)
    return f"effort {j} saturates at {size:.2g}", effort(j, lambda x, _: (most := size * np.abs(x).max()) * np.tanh(x / most))


def _asymmetric(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.way() * draw.between(0.03, 0.3)
    return f"effort {j} has scales of {1 + size:.2f} and {1 - size:.2f}", effort(j, lambda x, _: x + size * np.abs(x))


def _slip(draw: Draw) -> tuple[str, Act]:
    j, size, at = draw.joint(), draw.way() * draw.between(0.02, 0.3), draw.rng.uniform(0.2, 0.8)
    return f"encoder {j} slips by {size:.2g}", positions(
        lambda q, log: q + size * np.outer(along(log)[:, 0] > at, np.arange(draw.n) == j)
    )


def _dead_zone(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.between(0.2, 1.5)
    return f"effort {j} has a dead zone of {size:.2g}", effort(
        j, lambda x, _: np.sign(x) * np.maximum(np.abs(x) - size * x.std(), 0)
    )


def _held(draw: Draw) -> tuple[str, Act]:
    j, rate, position = draw.joint(), draw.between(2.0, 25.0), draw.rng.random() < 0.4

    def change(x: Array, log: Recording) -> Array:
        at = np.searchsorted(log.time, np.floor((log.time - log.time[0]) * rate) / rate + log.time[0])
        x[:, j] = x[at, j]
        return x

    return f"{'position' if position else 'effort'} {j} held at {rate:.2g} Hz", (positions if position else efforts)(change)


def _slow_velocity(draw: Draw) -> tuple[str, Act]:
    width = int(draw.rng.integers(5, 60))
    return f"velocities averaged over {width}", lambda log: replace(
        log, sha256="", velocity=uniform_filter1d(speeds(log), width, axis=0, origin=(width - 1) // 2)
    )


def _slow_position(draw: Draw) -> tuple[str, Act]:
    cutoff = draw.between(0.5, 5.0)
    return f"positions behind {cutoff:.2g} Hz", positions(
        lambda q, log: smoothed(replace(log, effort=q), cutoff).effort, velocity=None
    )


def _smooth_position(draw: Draw) -> tuple[str, Act]:
    cutoff = draw.between(0.4, 4.0)
    return f"positions low-passed without delay at {cutoff:.2g} Hz", positions(
        lambda q, log: lowpass(q, 1 / float(np.median(np.diff(log.time))), cutoff, order=2), velocity=None
    )


def _noisy_position(draw: Draw) -> tuple[str, Act]:
    size, seed = draw.between(0.0005, 0.02), draw.rng.integers(1 << 30)
    scale = size * np.where(draw.setting.robot.prismatic, 0.2, 1.0)
    return f"noise of positions {size:.2g}", positions(
        lambda q, _: q + scale * np.random.default_rng(seed).standard_normal(q.shape), velocity=None
    )


def _few_samples(draw: Draw) -> tuple[str, Act]:
    rate = draw.between(3.0, 15.0)

    def act(log: Recording) -> Recording:
        at = np.searchsorted(log.time, np.arange(log.time[0], log.time[-1], 1 / rate))
        return replace(log.take(np.isin(np.arange(len(log)), at)), sha256="", velocity=None)

    return f"logged at {rate:.2g} Hz", act


def _slow_efforts(draw: Draw) -> tuple[str, Act]:
    cutoff = draw.between(0.5, 8.0)
    return f"efforts behind {cutoff:.2g} Hz", lambda log: smoothed(log, cutoff)


def _slow_effort(draw: Draw) -> tuple[str, Act]:
    j, cutoff = draw.joint(), draw.between(0.3, 5.0)
    return f"effort {j} behind {cutoff:.2g} Hz", effort(j, lambda _, log: np.asarray(smoothed(log, cutoff).effort)[:, j])


def _jitter(draw: Draw) -> tuple[str, Act]:
    size, seed = draw.between(0.2, 20.0), draw.rng.integers(1 << 30)

    def act(log: Recording) -> Recording:
        period = float(np.median(np.diff(log.time)))
        moved = log.time + size * period * np.random.default_rng(seed).exponential(1.0, len(log))
        return replace(log, sha256="", time=np.maximum.accumulate(moved) + 1e-6 * np.arange(len(log)))

    return f"stamps jitter {size:.2g} periods", act


def _lost(draw: Draw) -> tuple[str, Act]:
    share, seed, burst = draw.between(0.02, 0.3), draw.rng.integers(1 << 30), int(draw.rng.integers(1, 30))

    def act(log: Recording) -> Recording:
        rng = np.random.default_rng(seed)
        gone = np.zeros(len(log), dtype=bool)
        for begin in rng.integers(0, len(log), max(1, round(share * len(log) / burst))):
            gone[begin : begin + burst] = True
        kept = log.take(~gone)
        return replace(kept, sha256="", time=log.time[: len(kept)])

    return f"{share:.2g} of the rows lost in {burst}s, stamps even", act


def _stretched(draw: Draw) -> tuple[str, Act]:
    size, bare = draw.between(1.1, 4.0) ** draw.way(), draw.rng.random() < 0.6
    return f"time × {size:.2g}", lambda log: replace(
        log, sha256="", time=log.time * size, velocity=None if bare else log.velocity
    )


def _carried(draw: Draw) -> tuple[str, Act]:
    share, seed = draw.between(0.03, 0.5), draw.rng.integers(1 << 30)
    robot = draw.setting.robot
    mass = share * sum(body.mass for body in list(robot.model.inertias)[1:])
    mass = min(mass, 5 * share * sum(body.mass for body in list(robot.model.inertias)[-3:]))
    return f"payload {mass:.2g} kg in a part", lambda log: payload(
        log, robot, mass, replace(draw, rng=np.random.default_rng(seed)).rows(log)
    )


def _pushed(draw: Draw) -> tuple[str, Act]:
    size, seed = draw.between(0.2, 3.0), draw.rng.integers(1 << 30)

    def change(x: Array, log: Recording) -> Array:
        own = np.random.default_rng(seed)
        rows = replace(draw, rng=own).rows(log)
        return x + rows[:, None] * (size * own.uniform(-1, 1, draw.n) * x.std(axis=0))

    return f"contact {size:.2g}", efforts(change)


def _ripple(draw: Draw) -> tuple[str, Act]:
    j, size, waves = draw.joint(), draw.between(0.1, 1.0), int(draw.rng.integers(2, 60))
    waves *= 10 if draw.setting.robot.prismatic[j] else 1
    return f"ripple of {j} {size:.2g} × sin {waves}", effort(
        j, lambda x, log: x + size * x.std() * np.sin(waves * log.position[:, j])
    )


def _hysteresis(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.between(0.2, 1.5)
    return f"hysteresis of effort {j} {size:.2g}", effort(j, lambda x, _: play(x, size * float(x.std())))


def _commanded(draw: Draw) -> tuple[str, Act]:
    return "efforts commanded", lambda log: commanded(log, draw.setting.robot)


def _weightless(draw: Draw) -> tuple[str, Act]:
    return "efforts without the URDF's gravity", efforts(lambda x, log: x - weight(draw.setting.robot, log))


def _degrees(draw: Draw) -> tuple[str, Act]:
    return "degrees", positions(lambda q, _: q * np.where(draw.setting.robot.prismatic, 1e3, 180 / np.pi))


def _foreign(draw: Draw) -> tuple[str, Act]:
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
