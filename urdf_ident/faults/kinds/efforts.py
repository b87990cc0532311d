"""Faults of the efforts: scale, delay and filter, sensors that saturate or leak, and springs that are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array, positive
from ...model.robot import Robot
from ...samples import one_way
from ...units import percent
from ..evidence import DOUBTFUL, MATERIAL
from ..interpretation import Interpretation
from ..linearized import LinearizedCase
from ..motion_samples import COMPARED
from ..trials import Trials
from .families import FaultFamily
from .kind import FaultKind, Hypothesis, both, milliseconds

#: Candidate factors of one joint's effort, and common ones of several: half octaves.
GAINS, COMMON_GAINS = both(4 / 3, 2.0, 10.0, 100.0), both(2.0**0.5, 2.0, 2.0**1.5, 4.0)
#: Fewest periods of an oscillation in the longest log (with fewer an offset in a part of a log looks alike), the highest
#: frequency (faster ones hardly change a model) [Hz], and steps within the width of a line.
_PERIODS, _HIGHEST, _STEPS = 2.0, 4.0, 8
#: Knee of the saturation column, as a fraction of the large efforts.
_KNEE = 0.5


class EffortScale(FaultKind):
    """The scale of a joint's effort does not match that of the others.

    Size: the logged effort over the true one, 1 without the fault.
    """

    id = Id.EFFORT_SCALE
    tries = GAINS
    scales = ("effort_factor",)
    step = 0.2
    faultless = 1.0

    def small(self, by: float) -> bool:
        return True

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float:
        return 1 / abs(hypothesis.interpretation.effort_factor[hypothesis.joints[0]])

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{size:.4g}"

    def remedy(self, joints: Sequence[str], size: float | None = None) -> Remedy:
        if not size or size < 0:  # as of an effort that is noise
            return super().remedy(joints)
        return Remedy(f"{self.id.entry.remedy}: {{settings}}", {"drive.gain": {"multiply": dict.fromkeys(joints, 1 / size)}})

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j in at.moving:
            yield FaultFamily(self.id, (j,), at.in_row(j, at.fitted[:, j]), unit=-1.0)


class EffortDelay(FaultKind):
    """The efforts of all joints are late, which :mod:`..delay` estimates, or those of one joint beside the others.

    Size: the delay behind the motion [s], negative if efforts are early.
    """

    id = Id.EFFORT_DELAY
    tries = (-0.03, 0.03, 0.06)
    step = 0.01

    def places(self, trials: Trials, at: Interpretation, poor: bool) -> Iterable[tuple[int, ...]]:
        return ((),)

    def corrected(self, at: Interpretation, joints: Sequence[int], by: float) -> Interpretation:
        return replace(at, delay=at.delay + by)

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float:
        return hypothesis.interpretation.delay

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{milliseconds(size)} {'behind' if size > 0 else 'ahead of'}"

    def remedy(self, joints: Sequence[str], size: float | None = None) -> Remedy:
        return Remedy(f"{{settings}} takes it out; {self.id.entry.remedy}", {"signals.delay": "auto"})

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        # efforts that are early by the coefficient [s] exceed the true ones by their rate times it: the rate of the efforts
        # shows a short delay best, that of the bodies' torque one in which dry friction reverses
        rates, of_bodies = at.efforts[:, 1], np.sum([*at.late.values()], axis=0)
        yield FaultFamily(self.id, (), of_bodies[:, :, None], only_competes=True)
        yield FaultFamily(self.id, (), of_bodies[:, :, None], throughout=False)
        for j in at.moving:
            for rate in (rates, of_bodies):
                yield FaultFamily(self.id, (j,), at.in_row(j, rate[:, j]), impossible_sign=1)  # one effort cannot be early

    def tested(self, robot: Robot, family: FaultFamily, size: float, everywhere: bool) -> Judgement:
        whose, others = ("the effort of this joint", "joints") if family.joints else ("the efforts of this log", "logs")
        verb = ("lag" if size > 0 else "lead") + ("s" if family.joints else "")
        words = f"{whose} {verb} the motion by {milliseconds(size)} compared with the other {others}"
        remedy = "check filter, rate and clock of this channel (`signals.delay` shifts all channels alike)"
        return Judgement(self.id, words, Remedy(remedy), "warning", size=size)


class EffortBandwidth(FaultKind):
    """All efforts were filtered: told by :mod:`..delay`."""

    id = Id.EFFORT_BANDWIDTH

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        yield FaultFamily(self.id, (), np.stack([at.efforts[:, 1], at.curvature], axis=2), only_competes=True)


@dataclass(frozen=True, eq=False)
class Wave(FaultFamily):
    """An oscillation at a frequency [Hz], with another amplitude and phase in each log."""

    frequency: float = 0.0


class EffortPeriodic(FaultKind):
    """An effort oscillates in time: hum of a supply, pulses of another drive, a control loop.

    Size: the frequency [Hz], that at which most of what bodies and friction leave of the effort is.
    """

    id = Id.EFFORT_PERIODIC

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        samples, logs = at.samples, np.unique(at.samples.log)
        longest = max(float(np.ptp(samples.time[samples.log == k])) for k in logs)
        rate = 1 / float(np.median(np.diff(samples.time)[np.diff(samples.log) == 0]))
        lines = np.arange(_PERIODS, min(_HIGHEST, rate / 2) * longest, 1 / _STEPS) / longest
        if len(logs) > COMPARED or not len(lines):
            return
        turning = np.exp(2j * np.pi * np.outer(samples.time, lines))
        for j in at.moving:
            residual = (samples.tau - at.fitted)[:, j] * samples.glides[:, j]
            power = sum(np.abs(residual[samples.log == k] @ turning[samples.log == k]) ** 2 for k in logs)
            frequency = float(lines[np.argmax(power)])
            angle = 2 * np.pi * frequency * samples.time
            waves = [wave(angle) * (samples.log == k) for k in logs for wave in (np.sin, np.cos)]
            yield Wave(self.id, (j,), at.in_row(j, *waves), per_log=True, tries=len(lines), frequency=frequency)

    def tested(self, robot: Robot, family: FaultFamily, size: float, everywhere: bool) -> Judgement:
        frequency = family.frequency if isinstance(family, Wave) else 0.0
        message = self.id.entry.message.format(whose=robot.joints[family.joints[0]], size=f"{frequency:.2g} Hz")
        return Judgement(self.id, message, Remedy(self.id.entry.remedy), "warning", size=frequency)


class EffortCrosstalk(FaultKind):
    """The effort of one joint contains a part of another's, which no motor of its own drives.

    Size: this part [1].
    """

    id = Id.EFFORT_CROSSTALK

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j in at.moving:
            for i in at.moving:
                if not at.drives(j)[i]:
                    yield FaultFamily(self.id, (j, i), at.in_row(j, at.samples.tau[:, i]), unit=-1.0)


class EffortSaturates(FaultKind):
    """Large efforts of a joint, or of all joints, are too small for the motion.

    Size: the share by which a large effort is reduced [1], positive.
    """

    id = Id.EFFORT_SATURATES

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        bent = np.column_stack([_bend(tau) for tau in at.fitted.T])
        yield FaultFamily(self.id, (), bent[:, :, None], impossible_sign=1)
        for j in at.moving:
            yield FaultFamily(self.id, (j,), at.in_row(j, bent[:, j]), impossible_sign=1)


class EffortProgressive(FaultKind):
    """Large efforts of a joint are too large for the motion.

    Size: the share by which a large effort is increased [1], positive.
    """

    id = Id.EFFORT_PROGRESSIVE

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j in filter(lambda j: _both_ways(at, j), at.moving):
            yield FaultFamily(self.id, (j,), at.in_row(j, _bend(at.fitted[:, j])), unit=-1.0, impossible_sign=-1)

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{percent(100 * abs(size))} %"


class EffortAsymmetric(FaultKind):
    """Positive and negative efforts of a joint differ in scale.

    Size: half the difference of the scales [1], positive if positive efforts are too large.
    """

    id = Id.EFFORT_ASYMMETRIC

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j in filter(lambda j: _both_ways(at, j), at.moving):
            v = at.samples.v[:, j]
            beside = at.in_row(j, np.abs(v), v**2)  # friction that depends on the direction
            yield FaultFamily(self.id, (j,), at.in_row(j, np.abs(at.fitted[:, j])), beside, unit=-1.0)

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{'+' if size > 0 else ''}{percent(200 * size)} %"


class JointSpring(FaultKind):
    """A torque that depends on the position and is not gravity: no fault, but it may resemble gravity, a zero or a scale.

    It has three parameters, and few joints have one.
    """

    id = Id.SPRING
    tries = (1.0,)  # springs have no sizes to be tried
    handicap = DOUBTFUL

    def places(self, trials: Trials, at: Interpretation, poor: bool) -> Iterable[tuple[int, ...]]:
        return ((j,) for j in trials.moving if j not in at.springs)

    def corrected(self, at: Interpretation, joints: Sequence[int], by: float) -> Interpretation:
        return replace(at, springs=(*at.springs, *joints))


def _both_ways(at: LinearizedCase, j: int) -> bool:
    """Whether a joint moves and works in both directions."""
    tau = at.fitted[:, j]
    least = min(np.sum(tau.clip(0) ** 2), np.sum(tau.clip(None, 0) ** 2))
    return bool(not one_way(at.samples.v[:, j]) and least > MATERIAL * np.sum(tau**2))


def _bend(tau: Array) -> Array:
    """Reduction of an effort by saturation, normalised to the relative reduction of a large effort, shape (N,)."""
    knee = _KNEE * positive(float(np.percentile(np.abs(tau), 99.5)))
    return np.asarray((tau - knee * np.tanh(tau / knee)) / (1 - _KNEE * np.tanh(1 / _KNEE)))
