"""Faults of the positions of one joint: its zero, scale, encoder and clock, and where the URDF has its axis.

The columns of a family are the torques by which measured efforts exceed those of the logged positions if the true positions
are ``logged + c · e(t)``: a coefficient c is what corrects the positions. The size that is told is ``-unit · c``: an error of
the logged positions with a ``unit`` of 1, and what must be added to them with -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array
from ...model.robot import Robot
from ..evidence import DECISIVE
from ..friction import direction
from ..interpretation import Interpretation
from ..linearized import LinearizedCase
from ..motion_samples import COMPARED
from ..trials import Score, Trials
from .families import FaultFamily
from .kind import FaultKind, Hypothesis, both, milliseconds, signed, whose

#: Size of a zero up to which another place of the centre of mass may absorb it [rad].
_SMALL_ZERO = 1.0
#: Candidate factors of one joint's positions: gear ratios and counts per turn wrong by much.
_RATIOS, _FEW_RATIOS = both(1.4, 2.0, 4.0), both(2.0)
#: Candidate waves per radian of an encoder's error; for a slide, half as many in its range.
_WAVES = (1, 2, 3, 4, 6, 8)
#: How far positions may reach beyond the URDF's limits, over their range.
_BEYOND = 0.05


@dataclass(frozen=True)
class Zeros(Hypothesis):
    """Zeros of several joints, found together, with their standard errors [rad]."""

    errors: tuple[float, ...] = ()


class PositionZero(FaultKind):
    """The zero of a joint is not that of the URDF, or is set anew before each log.

    Size: what must be added to the logged positions [rad].
    """

    id = Id.POSITION_ZERO
    tries = (*signed(0.1, 0.4, np.pi / 2), np.pi)
    step = 0.2

    def places(self, trials: Trials, at: Interpretation, poor: bool) -> Iterable[tuple[int, ...]]:
        return ((j,) for j in trials.moving if zero_matters(trials.robot, j))

    def corrected(self, at: Interpretation, joints: Sequence[int], by: float) -> Interpretation:
        return replace(at, zero=tuple(x + by if j in joints else x for j, x in enumerate(at.zero)))

    def small(self, by: float) -> bool:
        return abs(by) < _SMALL_ZERO

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float:
        return max((hypothesis.interpretation.zero[j] for j in hypothesis.joints), key=abs)

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{size:+.3g} rad ({np.degrees(size):+.3g}°)"

    def remedy(self, joints: Sequence[str], size: float | None = None) -> Remedy:
        return _added(dict.fromkeys(joints, size))

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        stated = super().found(robot, hypothesis, before)
        if not isinstance(hypothesis, Zeros):
            return stated
        zeros = {robot.joints[j]: hypothesis.interpretation.zero[j] for j in hypothesis.joints}
        pairs = zip(zeros.values(), hypothesis.errors, strict=True)
        shown = ", ".join(dict.fromkeys(f"{self.shown(zero)} ± {np.degrees(error):.1g}°" for zero, error in pairs))
        message = f"the zeros of {whose(robot, hypothesis.joints)} are not those of the URDF: {shown} must be added"
        return Judgement(self.id, message, _added(zeros), size=stated.size)

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        logs = np.unique(at.samples.log)
        for j in at.moving:
            if not at.robot.prismatic[j]:
                zero = at.slopes[j, 0][:, :, None]  # e = 1
                yield FaultFamily(self.id, (j,), zero, unit=-1.0)
                if 1 < len(logs) <= COMPARED:
                    yield FaultFamily(self.id, (j,), zero * (at.samples.log[:, None] == logs)[:, None], unit=-1.0, per_log=True)

    def tested(self, robot: Robot, family: FaultFamily, size: float, everywhere: bool) -> Judgement:
        if not family.per_log:
            return super().tested(robot, family, size, everywhere)
        words = f"the zero of {robot.joints[family.joints[0]]} is another in each log, by up to {size:.2g} rad"
        remedy = (
            "log absolute positions, not counts from the start of a log, or move the joint to its reference before each log"
        )
        return Judgement(self.id, words, Remedy(remedy), "warning", size=size)


class PositionScale(FaultKind):
    """The positions of a joint are too large or too small.

    Size: by which part of themselves they are too large [1]. A large one resembles another inertia where a joint carries no
    weight.
    """

    id = Id.POSITION_SCALE
    scales = ("position_factor",)
    step = 0.1
    handicap = DECISIVE

    def hypotheses(self, trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
        for joints in self.places(trials, at, poor):
            for ratio in _RATIOS if poor else _FEW_RATIOS:
                yield Hypothesis(self.id, joints, self.corrected(at, joints, ratio))

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float:
        return 1 / abs(hypothesis.interpretation.position_factor[hypothesis.joints[0]]) - 1

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{1 + size:.4g}"

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        samples = at.samples
        for j in at.moving:
            # e = q, for any zero, and whether or not the effort is too large as well
            beside = np.concatenate([at.slopes[j, 0][:, :, None], at.in_row(j, at.fitted[:, j])], axis=2)
            scaled = at.torque_by(j, samples.q[:, j], samples.v[:, j], samples.a[:, j])
            yield FaultFamily(self.id, (j,), scaled[:, :, None], beside)


class PositionCompliance(FaultKind):
    """Before a gear that gives way, positions lead in the direction of the effort.

    Size: by how much at the root mean square of the joint's effort [rad or m], positive. The joint's own row resembles rotor
    and friction, and where positions are late, friction that depends on the pose: only the efforts of other joints show these
    faults.
    """

    id = Id.POSITION_COMPLIANCE

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j in at.moving:
            # e = effort over its root mean square; the true joint cannot lead what is logged before the gear
            bent = at.torque_by(j, *at.efforts[:, :, j].T / at.size[j])
            yield FaultFamily(self.id, (j,), bent[:, :, None], at.in_row(j, bent[:, j]), impossible_sign=1)


class PositionLate(FaultKind):
    """The positions of one joint are late or early; those of all joints are told as a delay of all efforts.

    Size: by how much they are late [s], negative if they are early.
    """

    id = Id.POSITION_LATE

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j, late in at.late.items():  # e = v · 1 s: late positions have to be put forward
            yield FaultFamily(self.id, (j,), late[:, :, None], at.in_row(j, late[:, j]), unit=-1.0)

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{milliseconds(size)} {'later' if size > 0 else 'earlier'}"


class PositionNonlinear(FaultKind):
    """The positions of a joint have an error that is periodic along its travel.

    Size: its amplitude [rad or m], without a sign.
    """

    id = Id.POSITION_NONLINEAR

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j in at.moving:
            q, v, a = (x[:, j] for x in (at.samples.q, at.samples.v, at.samples.a))
            half = np.pi / float(np.ptp(q))
            turn = half if at.robot.prismatic[j] else 1.0
            for k in [turn * waves for waves in _WAVES if turn * waves >= half]:  # an arc of less is a zero and a scale
                sine, cosine, sign = np.sin(k * q), np.cos(k * q), direction(v)
                errors = (  # e, ė, ë of both waves
                    (sine, k * cosine * v, k * cosine * a - k**2 * sine * v**2),
                    (cosine, -k * sine * v, -k * sine * a - k**2 * cosine * v**2),
                )
                columns = np.stack([at.torque_by(j, *error) for error in errors], axis=2)
                # efforts along the travel, and friction along it, resemble it
                beside = at.in_row(j, sine, cosine, sine * sign, cosine * sign)
                yield FaultFamily(self.id, (j,), columns, beside, slope=k)


class PositionPlay(FaultKind):
    """The encoder of a joint stands still at reversals, and then lags.

    Size: the whole play [rad or m], positive.
    """

    id = Id.POSITION_PLAY

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        for j, place in at.play.items():
            if place.any():
                # e = ±1: the true joint is half the play ahead in the direction of motion
                nuisance = at.in_row(j, place[:, 0], place[:, 0] * at.samples.q[:, j])
                yield FaultFamily(self.id, (j,), at.torque_by(j, *place.T)[:, :, None], nuisance, unit=-2.0, impossible_sign=-1)


class JointOrigin(FaultKind):
    """The axis of a joint is not where the URDF has it on its parent link.

    Size: its distance from there [m], without a sign.
    """

    id = Id.JOINT_ORIGIN

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        return _placed(self.id, at, slice(0, 2))

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{abs(size):.2g} m"


class JointAxis(FaultKind):
    """The axis of a joint is tilted against the URDF's.

    Size: the angle [rad], without a sign.
    """

    id = Id.JOINT_AXIS

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        return _placed(self.id, at, slice(2, None))

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{np.degrees(abs(size)):.2g}°"

    def tested(self, robot: Robot, family: FaultFamily, size: float, everywhere: bool) -> Judgement:
        stated = super().tested(robot, family, size, everywhere)
        far = self.id.entry.message.format(whose=robot.joints[family.joints[0]], size="a large angle")
        return replace(stated, message=far, size=None) if family.is_far(size) else stated


def _placed(id: Id, at: LinearizedCase, which: slice) -> Iterator[FaultFamily]:
    """Families of two columns of displacements (the first two), or tilts (the others), of each joint's axis on its parent."""
    for j in at.moving:
        if at.placed[j].any():
            yield FaultFamily(id, (j,), at.placed[j, which].transpose(1, 2, 0))


def zero_matters(robot: Robot, j: int) -> bool:
    """Whether a zero offset of a joint is observable: not just a rotation of the last body or of the robot about gravity."""
    if robot.prismatic[j] or len(robot.subtrees[j]) == 1:
        return False
    body, gravity = robot.place_in_tree[j], robot.gravity
    axis = robot.placements[body, :3, :3] @ robot.axes[body]
    return not (robot.parents[body] < 0 and np.linalg.norm(np.cross(axis, gravity)) < 1e-3 * np.linalg.norm(gravity))


def widened_limits(robot: Robot, otherwise: float = np.inf) -> tuple[Array, Array]:
    """The URDF's position limits and a little beyond, shape (n,) each [rad or m].

    Args:
        otherwise: How far positions may reach where it states none.
    """
    lower, upper = robot.limit("lower"), robot.limit("upper")
    stated = np.isfinite(lower) & np.isfinite(upper) & (upper > lower)
    beyond = np.where(stated, _BEYOND * (upper - lower), 0.0)
    return np.where(stated, lower - beyond, -otherwise), np.where(stated, upper + beyond, otherwise)


def _added(zeros: Mapping[str, float | None]) -> Remedy:
    """The setting that adds zeros to the positions of joints."""
    return Remedy(f"{Id.POSITION_ZERO.entry.remedy}: {{settings}}", {"drive.joint_offset": {"add": dict(zeros)}})
