"""Rows of the mixed model of friction that differs between logs (:mod:`.mixed_model`), from existing factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array, IntArray
from ..entries import Statistic
from ..fit import Fit
from ..least_squares import solve
from ..statistic import StatisticSet
from .changes import Varying

#: Number of parts of a log between which drift is estimated.
PARTS = 3
#: Number of logs times row groups whose rows are cached: enough for the logs that the noise is estimated from, for six joints.
_KEPT = 150


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of whitened rows per log (or part, first axis): X in the solution's coordinates, Z and y."""

    xx: Array
    xz: Array
    zz: Array
    xy: Array
    zy: Array
    yy: Array

    @classmethod
    def of(cls, squares: Array, r: int) -> Moments:
        """Creates the moments from the Gram matrices of the rows.

        Args:
            squares: Gram matrix of the rows ``[X | Z | y]`` of each log, shape (logs, r + q + 1, r + q + 1).
        """
        z = slice(r, -1)
        return cls(
            squares[:, :r, :r], squares[:, :r, z], squares[:, z, z], squares[:, :r, -1], squares[:, z, -1], squares[:, -1, -1]
        )

    def __len__(self) -> int:
        return len(self.yy)


class MixedRows:
    """The factors of a statistic set as rows of the mixed model.

    They are computed on demand and cached for :data:`_KEPT` pairs of log and group: together they are larger than the factors.

    Args:
        statistics: The factors, by time block.
        fit: The fit estimated from them.
        parts: The parameters that may differ between logs, the columns of Z.
    """

    def __init__(self, statistics: StatisticSet, fit: Fit, parts: Sequence[Varying]) -> None:
        self.statistics, self.fit, self.parts = statistics, fit, tuple(parts)
        self.root = solve(statistics.stacked(fit.row_weights or fit.weights, fit.base.independent), fit.rows).root
        self.r, self.q = self.root.shape[1], len(self.parts)
        self.combine = np.zeros((statistics.p, self.q))
        for k, part in enumerate(self.parts):
            self.combine[list(part.columns), k] = 1.0
        self._turns: dict[tuple[str, bool], Array] = {}
        self._made: dict[tuple[str, str], tuple[Array, IntArray]] = {}

    def _wide(self, entries: Sequence[Statistic]) -> Array:
        """Factors as ``[X root | Z | y − X params]``, not weighted; the mixed model estimates a change of the fit."""
        kind = (entries[0].group, entries[0].expansion is None)
        if kind not in self._turns:
            layout = self.statistics.layout(entries[0].group)
            turned = self.fit.base.turned(layout.columns, self.root, self.fit.params)
            friction = np.vstack([self.combine[layout.columns], np.zeros((1, self.q))])
            turned = np.hstack([turned[:, : self.r], friction, turned[:, self.r :]])
            self._turns[kind] = entries[0].times(np.vstack([np.zeros((len(layout.instruments), turned.shape[1])), turned]))
        return np.asarray(np.vstack([entry.factor for entry in entries]) @ self._turns[kind])

    def of(self, log: str, group: str, part: int | None = None) -> tuple[Array, IntArray]:
        """Returns the factors of one log (or of one of its :data:`PARTS`) and group.

        Args:
            part: Index of the part; None for the whole log.

        Returns:
            The factors stacked in order of time, shape (m, r + q + 1), and the row where each begins, with m at the end.
        """
        rows, edges = self._whole(log, group)
        begin, end = self._blocks(len(edges) - 1, part)
        return rows[edges[begin] : edges[end]], edges[begin : end + 1] - edges[begin]

    def number(self, log: str, group: str, part: int | None = None) -> int:
        """Returns the number of data rows that these factors represent.

        Args:
            part: Index of the part; None for the whole log.
        """
        entries = self.statistics.of_log[log].get(group, ())
        return sum(entry.rows for entry in entries[slice(*self._blocks(len(entries), part))])

    def _whole(self, log: str, group: str) -> tuple[Array, IntArray]:
        """Stacked factors of one log and group in order of time, and the row where each begins, with the total at the end."""
        cached = self._made.get((log, group))
        if cached is None:
            entries = self.statistics.of_log[log].get(group, ())
            wide = self._wide(entries) if entries else np.zeros((0, self.r + self.q + 1))
            cached = wide, np.cumsum([0, *(len(entry.factor) for entry in entries)])
            if len(self._made) < _KEPT:
                self._made[log, group] = cached
        return cached

    @staticmethod
    def _blocks(count: int, part: int | None) -> tuple[int, int]:
        """First block of a part, and the one after its last; the first parts have one more if the count is not divisible."""
        size, more = divmod(count, PARTS)
        return (0, count) if part is None else (part * size + min(part, more), (part + 1) * size + min(part + 1, more))

    def squares(self, log: str, *weights: Mapping[str, float]) -> list[Array]:
        """Returns the Gram matrix of one log's rows in each of its :data:`PARTS`.

        Args:
            weights: One or more sets of weights of the row groups.

        Returns:
            One array per set of weights, shape (parts, r + q + 1, r + q + 1).
        """
        totals = [np.zeros((PARTS, self.r + self.q + 1, self.r + self.q + 1)) for _ in weights]
        for group in self.statistics.groups:
            rows, edges = self._whole(log, group)
            for part in range(PARTS):
                begin, end = self._blocks(len(edges) - 1, part)
                of_part = rows[edges[begin] : edges[end]]
                square = of_part.T @ of_part
                for total, weight in zip(totals, weights, strict=True):
                    total[part] += weight[group] ** 2 * square
        return totals
