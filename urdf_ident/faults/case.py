"""A robot and samples of its logs, on which explanations of the logs are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..linalg import Array, BoolArray
from ..model.robot import Robot
from ..samples import distinct_reversals
from .evidence import scarcity
from .motion_samples import MotionSamples


@dataclass(frozen=True, eq=False)
class Case:
    """A robot and samples of its logs.

    Attributes:
        samples: With the efforts as logged, or corrected.
        late: Returns the efforts with a delay [s] removed, shape (N, n) [N·m or N].
        moves: Joints that move, shape (n,).
    """

    robot: Robot
    samples: MotionSamples
    late: Callable[[float], Array]
    moves: BoolArray

    def without_delay(self, delay: float) -> MotionSamples:
        """Returns the samples with a delay of the efforts removed.

        Args:
            delay: [s].
        """
        return replace(self.samples, tau=self.late(delay)) if delay else self.samples

    def with_more(self, efforts: Array) -> Case:
        """Returns the case with a correction added to the efforts.

        Args:
            efforts: Shape (N, n) [N·m or N].
        """
        samples = replace(self.samples, tau=self.samples.tau + efforts)
        return replace(self, samples=samples, late=lambda delay: self.late(delay) + efforts)

    @property
    def reached(self) -> Array:
        """Lowest and highest position of each joint, shape (2, n) [rad or m]."""
        return np.stack([self.samples.q.min(axis=0), self.samples.q.max(axis=0)])

    @cached_property
    def turns(self) -> float:
        """Median number of reversals of the moving joints.

        Repetitions of a motion count once: what a model does not explain is the same in each, and seems to be significant.
        """
        return float(np.median(distinct_reversals(self.samples.q, self.samples.v)[self.moves]))

    @property
    def scarcity(self) -> float:
        """Factor by which its few reversals overstate significance (:func:`.evidence.scarcity`)."""
        return scarcity(self.turns)
