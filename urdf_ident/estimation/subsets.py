"""Held-out errors of many sub-models from one set of factors: the linear algebra of selection.

Columns that belong to every sub-model (inertial parameters, rotor inertias) are projected out once per fold. What is
left is a small triangular problem in the candidate columns, in which adding one of them is a rank-one step, done for all
candidates at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..linalg import triangle
from ..model.inertia import Array
from .statistic import StatisticSet

#: Directions of the common columns that are weaker than this are not seen by a fold.
_CUT = 1e-9
#: A column whose distance from those before it is less than this is one of them again.
_SAME = 1e-9
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _Solved:
    """Least squares on some columns: those that are no repetition, basis, triangle and parameters."""

    used: Columns
    Q: Array
    R: Array
    theta: Array


@dataclass(frozen=True, eq=False)
class _Problem:
    """A factor with the common columns projected out, how they follow, and each column's length: [candidates | tau]."""

    rest: Array
    follow: Array
    norms: Array

    @classmethod
    def of(cls, factor: Array, common: int) -> _Problem:
        scale = np.linalg.norm(factor[:, :common], axis=0)
        scaled = factor[:, :common] / np.where(scale > 0, scale, 1.0)
        follow = np.linalg.lstsq(scaled, factor[:, common:], rcond=_CUT)[0]
        rest = triangle(factor[:, common:] - scaled @ follow)
        return cls(rest, follow / np.where(scale > 0, scale, np.inf)[:, None], np.linalg.norm(factor[:, common:], axis=0))

    def solve(self, chosen: Columns) -> _Solved:
        Q, R = np.linalg.qr(self.rest[:, chosen])
        alone = np.abs(np.diag(R)) > _SAME * np.maximum(self.norms[chosen], 1e-300)
        if not alone.all():
            return self.solve(chosen[alone])
        return _Solved(chosen, Q, R, np.linalg.solve(R, Q.T @ self.rest[:, -1]) if len(chosen) else np.zeros(0))


class SubModels:
    """Errors of sub-models on folds that took no part in estimating them.

    Args:
        statistics: The data's factors; each "log" is one fold.
        weights: Row group → weight, about one over its residual's standard deviation [1/unit of torque].
        common: Indices into theta of the columns of every sub-model.
        candidates: Indices into theta of the columns to choose from.
    """

    def __init__(
        self, statistics: StatisticSet, weights: Mapping[str, float], common: Sequence[int], candidates: Sequence[int]
    ) -> None:
        order = np.concatenate([common, candidates]).astype(np.intp)
        self.folds = statistics.logs
        self._all = _Problem.of(statistics.stacked(weights, order), len(common))
        self._rows = float(sum(statistics.rows.values()))
        self._train: list[_Problem] = []
        self._held: list[list[Array]] = []
        for fold in self.folds:
            problem = _Problem.of(statistics.without([fold]).stacked(weights, order), len(common))
            self._train.append(problem)
            self._held.append(_held_out(statistics.only([fold]), weights, order, problem.follow))
        self._stacked = [triangle(*parts) for parts in self._held]
        parts = [statistics.only([fold]).rows for fold in self.folds]
        #: Rows per fold and row group, shape (folds, groups).
        self.rows = np.array([[rows[group] for group in statistics.groups] for rows in parts], dtype=float)

    def errors(self, chosen: Sequence[int]) -> Array:
        """Squared whitened error of every fold with some candidates.

        Args:
            chosen: Which ones (positions among the candidates), shape (k,).

        Returns:
            Shape (folds,); about the number of rows where the weights fit.
        """
        return self.with_each(chosen, None)[:, 0]

    def group_errors(self, chosen: Sequence[int]) -> Array:
        """As :meth:`errors`, row group by row group.

        Args:
            chosen: Positions among the candidates, shape (k,).

        Returns:
            Shape (folds, groups).
        """
        squares = []
        for problem, held in zip(self._train, self._held, strict=True):
            found = problem.solve(np.asarray(chosen, dtype=np.intp))
            squares.append([np.sum((H[:, -1] - H[:, found.used] @ found.theta) ** 2) for H in held])
        return np.array(squares)

    def with_each(self, chosen: Sequence[int], added: Sequence[int] | None) -> Array:
        """Errors with one more column, for each of several columns.

        Args:
            chosen: Positions that stay, shape (k,).
            added: Positions to try, one at a time, shape (a,); none if None.

        Returns:
            Shape (folds, a), or (folds, 1) if None; as :meth:`errors`.
        """
        squares = []
        for problem, H in zip(self._train, self._stacked, strict=True):
            base = problem.solve(np.asarray(chosen, dtype=np.intp))
            error = H[:, -1] - H[:, base.used] @ base.theta
            if added is None:
                squares.append([np.sum(error**2)])
                continue
            tried = np.asarray(added, dtype=np.intp)
            C, y = problem.rest[:, tried], problem.rest[:, -1]
            part = base.Q.T @ C
            apart = C - base.Q @ part
            length = np.maximum(np.sum(apart**2, axis=0), (_SAME * problem.norms[tried]) ** 2 + 1e-300)
            step = apart.T @ (y - base.Q @ (base.Q.T @ y)) / length
            moved = H[:, tried] - H[:, base.used] @ np.linalg.solve(base.R, part)
            squares.append(np.sum((error[:, None] - moved * step) ** 2, axis=0))
        return np.array(squares)

    def distinct(self, chosen: Sequence[int], added: Sequence[int]) -> tuple[Array, Array]:
        """What of each column the common and the chosen columns cannot make; the least over all folds' training data.

        Args:
            chosen: Positions that stay, shape (k,).
            added: Positions to judge, shape (a,).

        Returns:
            Share of its length, 0 to 1, and that length, whitened (one over the standard error that its parameter
            would have, in units of the parameter); shape (a,) each.
        """
        tried = np.asarray(added, dtype=np.intp)
        share, length = np.full((2, len(tried)), np.inf)
        for problem in self._train:
            Q, C = problem.solve(np.asarray(chosen, dtype=np.intp)).Q, problem.rest[:, tried]
            left = np.linalg.norm(C - Q @ (Q.T @ C), axis=0)
            share, length = np.minimum(share, left / np.maximum(problem.norms[tried], 1e-300)), np.minimum(length, left)
        return share, length

    def estimates(self, chosen: Sequence[int]) -> tuple[Array, Array]:
        """Parameters from all data, and their standard errors.

        Args:
            chosen: Positions among the candidates, shape (k,).

        Returns:
            Shape (k,) each; zero and inf for a column that repeats others.
        """
        index = np.asarray(chosen, dtype=np.intp)
        found, y = self._all.solve(index), self._all.rest[:, -1]
        variance = float(np.sum((y - found.Q @ (found.Q.T @ y)) ** 2)) / max(self._rows - len(index), 1.0)
        theta, error = np.zeros(len(index)), np.full(len(index), np.inf)
        seen = np.isin(index, found.used)
        theta[seen] = found.theta
        error[seen] = np.sqrt(variance) * np.linalg.norm(np.linalg.inv(found.R), axis=1)
        return theta, error


def _held_out(part: StatisticSet, weights: Mapping[str, float], order: Columns, follow: Array) -> list[Array]:
    """Per row group the weighted factor of what was left out, common columns replaced by what training makes of them."""
    common = len(follow)
    blocks = []
    for layout in part.layouts:
        if part.rows[layout.group] == 0:
            blocks.append(np.zeros((0, len(order) - common + 1)))
            continue
        R = part.factor(layout.group)[:, len(layout.instruments) :]
        wide = np.zeros((len(R), part.p + 1))
        wide[:, layout.columns] = R[:, : len(layout.columns)]
        wide[:, -1] = R[:, len(layout.columns)]
        kept = wide[:, np.append(order, part.p)] * weights[layout.group]
        blocks.append(triangle(kept[:, common:] - kept[:, :common] @ follow))
    return blocks
