"""Objective function: a criterion of the planned rows, with barriers for the torque limits and the distances of links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array
from .criteria import Criterion
from .family import Grid
from .interior import Evaluation
from .obstacles import Obstacles
from .rows import PlannedRows


@dataclass(frozen=True, eq=False)
class Objective:
    """Criterion and barriers as a function of a family's unknowns.

    Attributes:
        grid: Instants of the criterion, followed by ``extra`` ones where only torque is checked.
        torque: Torque limits, shape (n,) [N·m or N]; inf without a limit.
        obstacles: Barrier on distances, or None.
    """

    criterion: Criterion
    rows: PlannedRows
    grid: Grid
    extra: int
    torque: Array
    obstacles: Obstacles | None = None

    def __call__(self, X: Array, barrier: float, sharpness: float = np.inf) -> Evaluation:
        """Returns value and gradient.

        Args:
            X: The unknowns, shape (d, n).
            barrier: Weight of the barriers.
            sharpness: See :func:`.criteria.singular_criterion`.

        Returns:
            The value, inf if a torque limit or a distance is violated, and its gradient.
        """
        outside = Evaluation(np.inf, np.zeros_like(X))
        distance, push = (0.0, None) if self.obstacles is None else self.obstacles(X, barrier)
        if not np.isfinite(distance):
            return outside
        N = len(self.grid.time)
        inside = N - self.extra
        q, v, a = self.grid.motion(X)
        motions = self.criterion.motions(q[:inside], v[:inside], a[:inside])
        kept = len(motions[0])
        W, state = self.rows.evaluate(*(np.concatenate([x, y[inside:]]) for x, y in zip(motions, (q, v, a), strict=True)))
        watched = np.r_[0:inside, kept : len(W)]
        tau = self.rows.torque(state)[watched]
        slack = np.stack([self.torque - tau, self.torque + tau])
        if not slack.min() > 0:
            return outside
        value, by_rows = self.criterion.value(W[:kept], sharpness)
        if not np.isfinite(value):
            return outside
        weight = np.concatenate([by_rows, np.zeros((self.extra, *W.shape[1:]))])
        by_torque = None
        limited = np.isfinite(self.torque)
        if limited.any():
            share = barrier / N
            value -= share * float(np.log(slack[:, :, limited] / self.torque[limited]).sum())
            by_torque = np.zeros(W.shape[:2])
            by_torque[watched] = share * (1.0 / slack[0] - 1.0 / slack[1])
        bars = self.rows.gradient(weight, state, by_torque)
        folded = self.criterion.fold(*(x[:kept] for x in bars))
        by_motion = (np.concatenate([x, y[kept:]]) for x, y in zip(folded, bars, strict=True))
        gradient = np.asarray(sum(basis.T @ by for basis, by in zip(self.grid.bases, by_motion, strict=True)))
        return Evaluation(value + distance, gradient if push is None else gradient + push.gradient, push)
