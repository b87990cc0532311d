"""Logs of one robot that are examined together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..linalg import Array, positive, unit_columns
from ..model.robot import Robot
from ..sequences import white_noise
from .case import Case
from .delay import Delay, find_delays
from .motion_samples import sampler
from .thinned_logs import Logs

#: Minimum number of samples. Each gives one equation per joint, and each joint has about 13 unknowns: a fit to four of five
#: folds then has five times as many equations as unknowns. Whether the motion is long and reverses is asked elsewhere.
_FEWEST = 80
#: Relative deviation from a fixed ratio between the joints' motions below which the ratio counts as fixed.
_ALIKE = 0.02


@dataclass(frozen=True, eq=False)
class LogGroup:
    """Logs of one robot that are examined together.

    Attributes:
        robot: Kinematics and gravity; its inertias are not used.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.
    """

    robot: Robot
    logs: Logs
    reduction: Array | None = None

    @property
    def seconds(self) -> float:
        """Duration of the motion in all logs [s]."""
        return sum(part.repeats * len(part) / part.rate for parts, _ in self.logs for part in parts)

    @cached_property
    def delays(self) -> tuple[Delay | None, Mapping[tuple[str, int], float]]:
        """Common and relative delays, as from :func:`.delay.find_delays`."""
        return find_delays(self.robot, self.logs, self.reduction)

    @property
    def noise(self) -> float:
        """White noise of the noisiest effort, over its standard deviation, median over the logs."""
        efforts = [part.tau for parts, _ in self.logs for part in parts if part.tau is not None]
        of_logs = [white_noise(tau) / positive(tau.std(axis=0)) for tau in efforts]
        return float(np.median(of_logs, axis=0).max()) if of_logs else np.inf

    def some(self, indices: Sequence[int]) -> LogGroup:
        """Returns the group of some of the logs.

        Args:
            indices: Positions of the logs in this group.
        """
        return replace(self, logs=[self.logs[k] for k in indices])

    def case(self) -> Case | None:
        """Samples the logs; None if there are too few, no joint moves with varying torque, or all joints move alike."""
        sampled = sampler(self.logs, reduction=self.reduction)
        first = None if sampled is None else sampled(0.0)
        if sampled is None or first is None or len(first) < _FEWEST:
            return None
        moves = first.moves
        alike = not moves.any() or _one_curve(first.v[:, moves])
        return None if alike else Case(self.robot, first, lambda delay: sampled(delay).tau, moves)


def _one_curve(v: Array) -> bool:
    """Whether all joints move in a fixed ratio: then all torques depend on one position, and any interpretation fits."""
    spread = np.linalg.svd(unit_columns(v), compute_uv=False)
    return v.shape[1] > 1 and bool(spread[1] < _ALIKE * spread[0])
