"""What a kind of fault is: how large ones are tried, what small ones add to the torques, and what is said of them.

A large fault is tried exactly, as another interpretation of the log (:class:`Hypothesis`). A small one is the columns that it
adds to the torques, to first order (:class:`FaultFamily`): a small error e(t) of one joint's positions changes all torques by
``∂τ/∂q e + ∂τ/∂v ė + ∂τ/∂a ë`` of the robot identified from the logs (:mod:`..linearized`), and a fault of an effort adds its
own torque to one joint's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...model.robot import Robot
from ..interpretation import Interpretation
from ..linearized import LinearizedCase
from ..trials import Score, Trials
from .families import FaultFamily


@dataclass(frozen=True)
class Hypothesis:
    """One cause: an interpretation that would correct it.

    Attributes:
        joints: The joints at fault; none for the whole log.
        small: Whether free bodies may absorb it, so that the URDF's own are asked as well.
    """

    id: Id
    joints: tuple[int, ...]
    interpretation: Interpretation
    small: bool = False


class FaultKind:
    """A kind of fault, with the entry of its id in :mod:`...judgements.catalogue`.

    A kind has :meth:`hypotheses` of large sizes, :meth:`families` of small ones, or both. Its docstring says what its size is.

    Attributes:
        tries: Corrections by which large sizes are tried: offsets, or factors.
        scales: Entries of an interpretation that corrections multiply; without any, corrections are offsets.
        step: First offset, or logarithm of a factor, by which a size is refined; 0 if it has none.
        handicap: Least advantage over other faults, in the sum of the logarithms of the rows' residuals.
        faultless: The size without a fault.
    """

    id: ClassVar[Id]
    tries: ClassVar[tuple[float, ...]] = ()
    scales: ClassVar[tuple[str, ...]] = ()
    step: ClassVar[float] = 0.0
    handicap: ClassVar[float] = 0.0
    faultless: ClassVar[float] = 0.0

    def places(self, trials: Trials, at: Interpretation, poor: bool) -> Iterable[tuple[int, ...]]:
        """The joints for which it is tried: each that moves; one entry without joints for the whole log.

        Args:
            at: The interpretation to be changed.
            poor: Whether to include changes that fault-free logs never need.
        """
        return ((j,) for j in trials.moving)

    def corrected(self, at: Interpretation, joints: Sequence[int], by: float) -> Interpretation:
        """An interpretation with an offset or factor more.

        Args:
            by: The offset or factor.
        """
        if not self.scales:
            raise NotImplementedError
        for entry in self.scales:
            at = at.scaled(entry, joints, by)
        return at

    def hypotheses(self, trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
        """Yields the interpretations to be tried.

        Args:
            at, poor: As for :meth:`places`.
        """
        for joints in self.places(trials, at, poor):
            for by in self.tries:
                yield Hypothesis(self.id, joints, self.corrected(at, joints, by), self.small(by))

    def nearby(self, found: Hypothesis, step: float) -> list[Hypothesis]:
        """The same fault with a somewhat larger and smaller size.

        Args:
            step: Offset, or logarithm of a factor.
        """
        corrections = [float(np.exp(x)) if self.scales else x for x in (step, -step)]
        return [replace(found, interpretation=self.corrected(found.interpretation, found.joints, x)) for x in corrections]

    def small(self, by: float) -> bool:
        """Whether free bodies may absorb a correction, so that the URDF's own are asked as well.

        Args:
            by: The correction.
        """
        return False

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        """Yields the columns to be tested, of shape (N, n, m).

        Args:
            at: The identified robot.
        """
        return iter(())

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float | None:
        """The size of a hypothesis as the catalogue states it for the id; None if it states none."""
        return None

    def shown(self, size: float, unit: str = "rad") -> str:
        """A size in words.

        Args:
            unit: Of the joint's positions.
        """
        return f"{abs(size):.2g} {unit}"

    def remedy(self, joints: Sequence[str], size: float | None = None) -> Remedy:
        """What corrects it in all logs.

        Args:
            size: As the catalogue states it.
        """
        return Remedy(self.id.entry.remedy)

    def cause(self, robot: Robot, hypothesis: Hypothesis) -> str:
        """Names a hypothesis among several."""
        return self._filled(self.id.entry.cause, robot, hypothesis)

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        """States a hypothesis that the evidence determines.

        Args:
            before: The score of the previous interpretation.
        """
        names, size = [robot.joints[j] for j in hypothesis.joints], self.size(robot, hypothesis)
        return Judgement(self.id, self._filled(self.id.entry.message, robot, hypothesis), self.remedy(names, size), size=size)

    def tested(self, robot: Robot, family: FaultFamily, size: float, everywhere: bool) -> Judgement:
        """States a fault that the test of families found.

        Args:
            size: In the unit of the family.
            everywhere: Whether it is in all logs.
        """
        names = [robot.joints[j] for j in family.joints] or ["all joints"]
        unit, stated = "m" if family.joints and robot.prismatic[family.joints[0]] else "rad", self.faultless + size
        message = self.id.entry.message.format(whose=names[0], other=names[-1], size=f"about {self.shown(stated, unit)}")
        remedy = self.remedy(names[:1], stated) if everywhere else Remedy(self.id.entry.remedy)
        return Judgement(self.id, message, remedy, "warning", size=stated if self.id.entry.size else None)

    def _filled(self, words: str, robot: Robot, hypothesis: Hypothesis) -> str:
        size = self.size(robot, hypothesis)
        return words.format(whose=whose(robot, hypothesis.joints), size="" if size is None else self.shown(size))


def whose(robot: Robot, joints: Sequence[int]) -> str:
    """Names of joints, or that it is all of them."""
    names = [robot.joints[j] for j in joints]
    return "all joints" if len(names) == robot.n > 1 else ", ".join(names)


def milliseconds(size: float) -> str:
    """A duration without its sign in words; size in [s]."""
    return f"{1e3 * abs(size):.3g} ms"


def both(*factors: float) -> tuple[float, ...]:
    """Factors and their inverses, in order."""
    return (*(1 / factor for factor in reversed(factors)), *factors)


def signed(*sizes: float) -> tuple[float, ...]:
    """Sizes of both signs, in order."""
    return (*(-size for size in reversed(sizes)), *sizes)
