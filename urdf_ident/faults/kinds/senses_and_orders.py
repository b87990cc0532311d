"""Signs, orders and units: faults without small sizes, which are only tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array, BoolArray
from ...model.robot import Robot
from ...units import parse_unit
from ..interpretation import Interpretation
from ..trials import Score, Trials
from .kind import FaultKind, Hypothesis, whose
from .positions import widened_limits

#: How far positions of joints without limits may reach [rad or m].
_FARTHEST = 2 * np.pi


class EffortSign(FaultKind):
    """The effort of one joint, of two or of all has the wrong sign."""

    id = Id.EFFORT_SIGN
    tries = (-1.0,)
    scales = ("effort_factor",)

    def places(self, trials: Trials, at: Interpretation, poor: bool) -> Iterable[tuple[int, ...]]:
        # two at once: one alone may explain less than a change along the log
        pairs = combinations(trials.moving, 2) if poor else ()
        return (tuple(range(trials.robot.n)), *super().places(trials, at, poor), *pairs)

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        negative = np.flatnonzero(np.sign(hypothesis.interpretation.effort_factor) < 0)
        remedy = self.remedy([robot.joints[j] for j in negative])
        if len(hypothesis.joints) == robot.n and not before.reversed.any():
            more = "; if gravity is right as logged, the controller subtracted more friction from the efforts than there is"
            remedy = replace(remedy, action=remedy.action + more)
        return replace(super().found(robot, hypothesis, before), remedy=remedy)

    def remedy(self, joints: Sequence[str], size: float | None = None) -> Remedy:
        return Remedy(f"{self.id.entry.remedy}: {{settings}}", {"drive.gain": {"multiply": dict.fromkeys(joints, -1.0)}})


class PositionSign(FaultKind):
    """The position of a joint has the wrong sign."""

    id = Id.POSITION_SIGN
    tries = (-1.0,)
    scales = ("position_factor",)


class AxisSign(FaultKind):
    """Position and effort of a joint both have the wrong sign."""

    id = Id.AXIS_SIGN
    tries = (-1.0,)
    scales = ("position_factor", "effort_factor")


@dataclass(frozen=True)
class Exchange(Hypothesis):
    """An exchange of columns of efforts, of positions, or of both."""

    signals: tuple[str, ...] = ()


class JointsExchanged(FaultKind):
    """Columns of two joints are exchanged, or those of all joints in turn."""

    id = Id.JOINTS_EXCHANGED

    def hypotheses(self, trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
        robot = trials.robot
        orders = {"positions": at.position_order, "efforts": at.effort_order}

        def exchange(joints: Sequence[int], order: Sequence[int], *signals: str) -> Hypothesis:
            new: dict[str, Any] = {f"{signal[:-1]}_order": tuple(orders[signal][k] for k in order) for signal in signals}
            return Exchange(self.id, tuple(joints), replace(at, **new), signals=signals)

        for i, j in combinations(trials.moving, 2):
            order = [{i: j, j: i}.get(k, k) for k in range(robot.n)]
            yield exchange((i, j), order, "efforts")
            if (poor or j == i + 1) and robot.prismatic[i] == robot.prismatic[j]:
                yield exchange((i, j), order, "positions")
                yield exchange((i, j), order, *orders)
        for shift in range(1, robot.n) if poor and robot.n > 2 else ():
            yield exchange(range(robot.n), np.roll(range(robot.n), shift).tolist(), *orders)

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        signals = hypothesis.signals if isinstance(hypothesis, Exchange) else ()
        what, names = " and ".join(signals), [robot.joints[j] for j in hypothesis.joints]
        words = f"{what} of {' and '.join(names)} appear to be exchanged"
        if len(names) > 2:
            columns = ", ".join(robot.joints[k] for k in np.argsort(hypothesis.interpretation.position_order))
            words = f"{what} appear to be in another order than described: {columns}"
        keys = " and ".join(f"log.columns.{signal[:-1]}" for signal in signals)
        return Judgement(self.id, words, Remedy(f"correct the order of the columns (their names, or {keys})"))


class PositionCoupled(FaultKind):
    """The position of a joint counts that of the joint before in, in one sense or the other."""

    id = Id.POSITION_COUPLED
    tries = (1.0, -1.0)

    def places(self, trials: Trials, at: Interpretation, poor: bool) -> Iterable[tuple[int, ...]]:
        carried = ((j, trials.robot.carrier(j)) for j in (trials.moving if poor else ()))
        return ((j, i) for j, i in carried if i >= 0 and trials.robot.prismatic[i] == trials.robot.prismatic[j])

    def corrected(self, at: Interpretation, joints: Sequence[int], by: float) -> Interpretation:
        return replace(at, counted=(*at.counted, (joints[0], joints[1], by)))

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        (j, i, sense), names = hypothesis.interpretation.counted[-1], robot.joints
        more, correct = ("plus", "subtract") if sense > 0 else ("minus", "add")
        message = f"the position of {names[j]} is its own {more} that of {names[i]}, as of an angle to the base or a motor"
        coupled = "if both joints' motors are coupled, and their efforts with them, give drive.reduction as a matrix and "
        setting = "`log: {side: {position: motor, effort: motor}}`"
        return Judgement(
            self.id, f"{message} that turns along", Remedy(f"{correct} the column of {names[i]}; {coupled}{setting}")
        )


@dataclass(frozen=True)
class OtherUnit(Hypothesis):
    """Positions in another unit than described, with the factor between them."""

    unit: str = "rad"
    described: str = "rad"
    factor: float = 1.0


class PositionUnit(FaultKind):
    """All positions of revolute, or of prismatic, joints have another unit than described."""

    id = Id.POSITION_UNIT

    def hypotheses(self, trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
        lower, upper = widened_limits(trials.robot, _FARTHEST)

        def within(at: Interpretation, kind: BoolArray) -> bool:
            reached: Array = np.array(at.position_factor) * trials.reached
            return bool(((reached > lower) & (reached < upper))[:, kind].all())

        for pair in (("rad", "deg"), ("rev", "rad"), ("m", "mm")):
            for unit, described in (pair, pair[::-1]):
                factor = parse_unit(unit).factor / parse_unit(described).factor
                kind = trials.robot.prismatic == (unit in ("m", "mm"))
                joints = tuple(np.flatnonzero(kind).tolist())
                made = at.scaled("position_factor", joints, factor)
                if joints and within(made, kind) and (factor > 1 or not within(at, kind)):
                    yield OtherUnit(self.id, joints, made, unit=unit, described=described, factor=factor)

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        if not isinstance(hypothesis, OtherUnit):
            return super().found(robot, hypothesis, before)
        unit, factor, joints = hypothesis.unit, hypothesis.factor, whose(robot, hypothesis.joints)
        words = f"the positions of {joints} are {1 / factor:.3g} times those that match the efforts, as if they were in {unit}"
        remedy = Remedy("in the project file: {settings}", {"log.units.position": unit})
        return Judgement(self.id, f"{words} and read as {hypothesis.described}", remedy)
