"""Logs of one robot that are examined together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..linalg import Array, BoolArray, positive, unit_columns, white_noise
from ..model.robot import Robot
from .motion_samples import sampler, travels
from .thinned_logs import Logs, thinned
from .trials import Trials

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

    @property
    def noise(self) -> float:
        """White noise of the noisiest effort, over its standard deviation, median over the logs."""
        efforts = [part.tau for parts, _ in self.logs for part in parts if part.tau is not None]
        of_logs = [white_noise(tau) / positive(tau.std(axis=0)) for tau in efforts]
        return float(np.median(of_logs, axis=0).max()) if of_logs else np.inf

    def some(self, indices: Sequence[int]) -> LogGroup:
        """Returns the group of some of the logs, by their positions in this one."""
        return replace(self, logs=[self.logs[k] for k in indices])

    @property
    def usable(self) -> list[int]:
        """Logs that can be sampled alone."""
        found = []
        for k, log in enumerate(self.logs):
            if pieces := thinned([log]):
                q, v, tau = (np.concatenate([getattr(item.part, x)[item.rows] for item in pieces]) for x in ("q", "v", "total"))
                moves = travels(q, np.zeros(len(q), dtype=np.int64)).any(axis=0) & (np.ptp(tau, axis=0) > 0)
                found += [k] if _examinable(v, moves) else []
        return found

    def trials(self) -> Trials | None:
        """Samples the logs; None if there are too few, no joint moves with varying torque, or all joints move alike."""
        sampled = sampler(self.logs, reduction=self.reduction)
        first = None if sampled is None else sampled(0.0)
        if sampled is None or first is None or not _examinable(first.v, first.moves):
            return None
        return Trials(self.robot, first, lambda delay: sampled(delay).tau)


def _examinable(v: Array, moves: BoolArray) -> bool:
    """Whether there are enough samples in which joints move, and not all in a fixed ratio."""
    if len(v) < _FEWEST or not moves.any():
        return False
    spread = np.linalg.svd(unit_columns(v[:, moves]), compute_uv=False)
    return len(spread) == 1 or bool(spread[1] >= _ALIKE * spread[0])
