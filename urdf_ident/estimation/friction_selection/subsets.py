"""Held-out errors of many sub-models from one set of factors: the linear algebra of selection.

Columns that belong to every sub-model (inertial parameters, rotor inertias, the laws of other joints) are projected out
once per fold. What is left is a small triangular problem in the candidate columns, in which adding or taking out one of
them is a rank-one step, done for all of them and all folds at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, lstsq, triangle
from ...statistics.statistic import StatisticSet

#: Directions of the common columns that are weaker than this are not seen by a fold.
_CUT = 1e-9
#: A column whose distance from those before it is less than this is one of them again.
_SAME = 1e-9
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _Problem:
    """A factor with the common columns projected out, how they follow, and each column's length: [candidates | tau]."""

    rest: Array
    follow: Array
    norms: Array

    @classmethod
    def of(cls, factor: Array, count: int, norms: Array | None = None) -> _Problem:
        """``factor`` is triangular: the common columns, so many, then the others."""
        fixed, free, rest = factor[:count, :count], factor[:count, count:], factor[count:, count:]
        scale = np.linalg.norm(fixed, axis=0)
        scaled = fixed / np.where(scale > 0, scale, 1.0)
        follow, rank = lstsq(scaled, free, rcond=_CUT)
        lengths = np.linalg.norm(factor[:, count:], axis=0) if norms is None else norms
        left = _filled(rest) if rank == count else _square(free - scaled @ follow, rest)
        return cls(left, follow / np.where(scale > 0, scale, np.inf)[:, None], lengths)

    def of_some(self, common: Columns, others: Columns) -> _Problem:
        """The same with more columns projected out and fewer left."""
        end = int(others[:-1].max(initial=-1)) + 1  # the triangle's rows below hold none of those that are left, but tau
        few = np.append(common, others[-1])
        lower = triangle(self.rest[end:, few])
        rows = np.zeros((end + len(lower), len(common) + len(others)))
        rows[:end, : len(common)], rows[:end, len(common) :] = self.rest[:end, common], self.rest[:end, others]
        rows[end:, : len(common)], rows[end:, -1] = lower[:, :-1], lower[:, -1]
        return _Problem.of(triangle(rows), len(common), self.norms[others])


def _square(*blocks: Array) -> Array:
    """Triangular factor of stacked blocks, filled up with rows of zeros."""
    return _filled(triangle(*blocks))


def _filled(R: Array) -> Array:
    """A factor filled up with rows of zeros."""
    return R if len(R) == R.shape[1] else np.vstack([R, np.zeros((R.shape[1] - len(R), R.shape[1]))])


@dataclass(frozen=True, eq=False)
class SubModels:
    """Sub-models of a set of factors, and what each fold makes of them; made by :meth:`of`.

    Attributes:
        names: What was held out in turn.
        rows: Rows per fold and row group, shape (folds, groups).
        weight: The same, an averaged row counted as its periods.
    """

    names: tuple[str, ...]
    rows: Array
    weight: Array
    train: tuple[_Problem, ...]
    held: tuple[tuple[Array, ...], ...]
    every: _Problem

    @classmethod
    def of(
        cls,
        statistics: StatisticSet,
        weights: Mapping[str, float],
        common: Sequence[int],
        candidates: Sequence[int],
        prior_rows: Array | None = None,
    ) -> SubModels:
        """Sub-models of a set of factors.

        Args:
            statistics: The data's factors; each "log" is one fold.
            weights: Row group → weight, about one over its residual's standard deviation [1/unit of torque].
            common: Indices into theta of the columns of every sub-model, shape (c,).
            candidates: Indices into theta of the columns to choose from, shape (k,).
            prior_rows: Rows that are added to the training data of every fold, ``[common | value]``, shape (r, c + 1): what is
                known of the common parameters beside the data.

        Returns:
            The sub-models.
        """
        order = np.concatenate([common, candidates]).astype(np.intp)
        count = len(common)
        known = np.zeros((0 if prior_rows is None else len(prior_rows), len(order) + 1))
        if prior_rows is not None:
            known[:, :count], known[:, -1] = prior_rows[:, :-1], prior_rows[:, -1]
        train, held = [], []
        for name in statistics.logs:
            train.append(_Problem.of(statistics.left_out(name).stacked(weights, order, known), count))
            factors = _group_factors(statistics.only([name]), weights, order)
            held.append(tuple(H[:, count:] - H[:, :count] @ train[-1].follow for H in factors))
        every = _Problem.of(statistics.stacked(weights, order, known), count)
        parts = [statistics.only([name]) for name in statistics.logs]
        rows = np.array([[part.rows[group] for group in statistics.groups] for part in parts], dtype=float)
        weight = np.array([[part.weight[group] for group in statistics.groups] for part in parts])
        return cls(statistics.logs, rows, weight, tuple(train), tuple(held), every)

    def group_errors(self, chosen: Sequence[int]) -> Array:
        """Squared whitened error of every fold and row group with some candidates.

        Args:
            chosen: Which ones (positions among the candidates), shape (k,).

        Returns:
            Shape (folds, groups); about the number of rows where the weights fit.
        """
        index = np.array(sorted(chosen), dtype=np.intp)
        norms = np.stack([problem.norms for problem in self.train]).min(axis=0)
        alone, _, _, theta = _solved(np.stack([problem.rest for problem in self.train]), index, norms)
        return np.array(
            [
                [np.sum((H[:, -1] - H[:, index[alone]] @ own) ** 2) for H in groups]
                for groups, own in zip(self.held, theta, strict=True)
            ]
        )

    def focus(self, common: Sequence[int], candidates: Sequence[int], own: Sequence[int]) -> Focus:
        """The same with more columns in every sub-model and fewer to choose from.

        Args:
            common: Positions (among the candidates) that are in every sub-model from now on, shape (c,).
            candidates: Positions to choose from, shape (k,); they are counted from 0 in the result.
            own: Row groups whose error is asked for apart, shape (g,).

        Returns:
            The smaller problem.
        """
        first = np.asarray(common, dtype=np.intp)
        rest = np.append(np.asarray(candidates, dtype=np.intp), len(self.every.norms) - 1)
        train = [problem.of_some(first, rest) for problem in self.train]
        held = [
            [H[:, rest] - H[:, first] @ problem.follow for H in groups]
            for groups, problem in zip(self.held, train, strict=True)
        ]
        return Focus(
            np.stack([problem.rest for problem in train]),
            np.stack([problem.norms for problem in train]).min(axis=0),
            np.stack([_square(*groups) for groups in held]),
            np.stack([_square(*(groups[k] for k in own)) for groups in held]),
            self.every.of_some(first, rest),
            float(self.rows.sum()),
        )


@dataclass(frozen=True, eq=False)
class _Solved:
    """Least squares on some columns, all folds at once: those that are no repetition, bases, triangles, parameters."""

    used: Columns
    Q: Array
    R: Array
    theta: Array
    error: Array


class Focus:
    """Errors of small sub-models on folds that took no part in estimating them; made by :meth:`SubModels.focus`.

    Args:
        train: Triangular problems ``[candidates | tau]`` of all but one fold, shape (folds, k + 1, k + 1).
        norms: Lengths that the columns had, shape (k + 1,).
        whole: What was left out, shape (folds, k + 1, k + 1).
        own: What was left out of the own row groups, same shape.
        every: The problem of all data.
        rows: Number of rows of all data.
    """

    def __init__(self, train: Array, norms: Array, whole: Array, own: Array, every: _Problem, rows: float) -> None:
        self._train, self._norms, self._whole, self._own, self._every, self._rows = train, norms, whole, own, every, rows
        # columns one after the other, as they are taken: shape (folds, k + 1, rows)
        self._columns, self._left_out = (np.ascontiguousarray(x.transpose(0, 2, 1)) for x in (train, whole))
        self._room = np.empty(train.size), np.empty(train.size)  # memory that is new each time costs more than the sums in it
        self._known: dict[tuple[int, ...], _Solved] = {}
        self._own_known: dict[tuple[int, ...], Array] = {}
        self._estimates: dict[tuple[int, ...], tuple[Array, Array, NDArray[np.bool_]]] = {}

    def _solve(self, chosen: Sequence[int]) -> _Solved:
        key = tuple(sorted(chosen))
        if key not in self._known:
            index = np.array(key, dtype=np.intp)
            alone, Q, R, theta = _solved(self._train, index, self._norms)
            used = index[alone]
            error: Array = self._whole[:, :, -1] - np.einsum("frk,fk->fr", self._whole[:, :, used], theta)
            self._known[key] = _Solved(used, Q, R, theta, error)
        return self._known[key]

    def errors(self, chosen: Sequence[int]) -> Array:
        """Squared whitened error of every fold with some candidates.

        Args:
            chosen: Which ones (positions among the candidates), shape (k,).

        Returns:
            Shape (folds,).
        """
        return np.asarray(np.sum(np.square(self._solve(chosen).error), axis=1))

    def own_errors(self, chosen: Sequence[int]) -> Array:
        """The part of :meth:`errors` in the own row groups.

        Args:
            chosen: Positions among the candidates, shape (k,).

        Returns:
            Shape (folds,).
        """
        key = tuple(sorted(chosen))
        if key not in self._own_known:
            found = self._solve(key)
            error = self._own[:, :, -1] - np.einsum("frk,fk->fr", self._own[:, :, found.used], found.theta)
            self._own_known[key] = np.sum(error**2, axis=1)
        return self._own_known[key]

    def with_each(self, chosen: Sequence[int], added: Sequence[int]) -> Array:
        """Errors with one more column, for each of several columns.

        Args:
            chosen: Positions that stay, shape (k,).
            added: Positions to try, one at a time, shape (a,).

        Returns:
            Shape (folds, a); as :meth:`errors`.
        """
        return self._with_each(self._solve(chosen), np.asarray(added, dtype=np.intp))

    def exchanged(self, chosen: Sequence[int], taken: Sequence[int], put: Sequence[int]) -> Array:
        """Errors with one column in the place of another, for several such pairs.

        Args:
            chosen: Positions of the columns before, shape (k,).
            taken: Which of them gives way, shape (m,).
            put: Position of the one that takes its place, shape (m,).

        Returns:
            Shape (folds, m); as :meth:`errors`.
        """
        base = self._solve(chosen)
        if len(base.used) < len(chosen):  # which of two columns that repeat each other counts depends on what else is there
            pairs = zip(taken, put, strict=True)
            return np.hstack([self.with_each([k for k in chosen if k != old], [new]) for old, new in pairs])
        inverse = np.linalg.inv(base.R)
        alone = inverse / np.linalg.norm(inverse, axis=2, keepdims=True)
        alone = alone[:, np.searchsorted(base.used, np.asarray(taken, dtype=np.intp))]
        return self._with_each(base, np.asarray(put, dtype=np.intp), alone)

    def _with_each(self, base: _Solved, tried: Columns, alone: Array | None = None) -> Array:
        """Errors with one more column; ``alone``: what gives way for it, a unit vector in the basis, shape (folds, m, k).

        That is what a column alone spans beside the others: its dual vector.
        """
        folds, _, rows = self._columns.shape
        C, room = (flat[: folds * len(tried) * rows].reshape(folds, len(tried), rows) for flat in self._room)
        np.take(self._columns, tried, axis=1, out=C, mode="clip")
        turned, y = base.Q.transpose(0, 2, 1), self._train[:, :, -1:]
        part = C @ base.Q
        if alone is not None:
            part -= alone * np.einsum("fmk,fmk->fm", alone, part)[:, :, None]
        C -= np.matmul(part, turned, out=room)
        length = np.maximum(np.einsum("fmr,fmr->fm", C, C), (_SAME * self._norms[tried]) ** 2 + 1e-300)
        step = (C @ y) / length[:, :, None]
        part *= step
        if alone is not None:
            part += alone * (alone @ (turned @ y))
        held = np.linalg.solve(base.R.transpose(0, 2, 1), self._left_out[:, base.used])
        error = np.matmul(part, held, out=room)
        np.take(self._left_out, tried, axis=1, out=C, mode="clip")
        C *= step
        error -= C
        error += base.error[:, None, :]
        return np.asarray(np.einsum("fmr,fmr->fm", error, error))

    def without_each(self, chosen: Sequence[int], taken: Sequence[int]) -> Array:
        """Errors with one column less, for each of several columns.

        Args:
            chosen: Positions of the columns before, shape (k,).
            taken: Which of them to leave out, one at a time, shape (m,).

        Returns:
            Shape (folds, m); as :meth:`errors`.
        """
        base = self._solve(chosen)
        if len(base.used) < len(chosen):  # another one may count then
            return np.stack([self.errors([k for k in chosen if k != old]) for old in taken], axis=1)
        inverse, at = np.linalg.inv(base.R), np.searchsorted(base.used, np.asarray(taken, dtype=np.intp))
        row = inverse[:, at]
        step = row @ inverse.transpose(0, 2, 1) * (base.theta[:, at] / np.sum(row**2, axis=2))[:, :, None]
        error = step @ self._left_out[:, base.used]
        error += base.error[:, None, :]
        return np.asarray(np.einsum("fmr,fmr->fm", error, error))

    def distinct(self, chosen: Sequence[int], added: Sequence[int]) -> tuple[Array, Array]:
        """What of each column the common and the chosen columns cannot make; the least over all folds' training data.

        Args:
            chosen: Positions that stay, shape (k,).
            added: Positions to judge, shape (a,).

        Returns:
            Share of its length, 0 to 1, and that length, whitened (one over the standard error that its parameter
            would have, in units of the parameter); shape (a,) each.
        """
        Q, C = self._solve(chosen).Q, self._train[:, :, np.asarray(added, dtype=np.intp)]
        left = np.linalg.norm(C - Q @ (Q.transpose(0, 2, 1) @ C), axis=1).min(axis=0)
        return left / np.maximum(self._norms[np.asarray(added, dtype=np.intp)], 1e-300), left

    def estimates(self, chosen: Sequence[int]) -> tuple[Array, Array]:
        """Parameters from all data, and their standard errors.

        Args:
            chosen: Positions among the candidates, shape (k,).

        Returns:
            Shape (k,) each; zero and inf for a column that repeats others.
        """
        theta, root, alone = self._estimate(chosen)
        return theta, np.where(alone, np.linalg.norm(root, axis=1), np.inf)

    def combinations(self, chosen: Sequence[int], rows: Array) -> tuple[Array, Array]:
        """Combinations of the parameters from all data, and their standard errors.

        Args:
            chosen: Positions among the candidates, shape (k,).
            rows: Coefficients, shape (m, k).

        Returns:
            Shape (m,) each; a column that repeats others counts as zero.
        """
        theta, root, _ = self._estimate(chosen)
        return rows @ theta, np.linalg.norm(rows @ root, axis=1)

    def _estimate(self, chosen: Sequence[int]) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Parameters from all data, a root of their covariance, and which columns are no repetition."""
        key = tuple(chosen)
        if key in self._estimates:
            return self._estimates[key]
        index, y = np.asarray(chosen, dtype=np.intp), self._every.rest[:, -1]
        bases, triangles, alone = _basis(self._every.rest[None, :, index], self._every.norms[index])
        Q, R = bases[0], triangles[0]
        variance = float(np.sum((y - Q @ (Q.T @ y)) ** 2)) / max(self._rows - len(index), 1.0)
        theta, root = np.zeros(len(index)), np.zeros((len(index), len(R)))
        theta[alone] = np.linalg.solve(R, Q.T @ y)
        root[alone] = np.sqrt(variance) * np.linalg.inv(R)
        self._estimates[key] = theta, root, alone
        return self._estimates[key]


def _basis(columns: Array, norms: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Bases and triangles of columns (folds, r, k) that are no repetition in any fold, and which those are."""
    alone = np.ones(columns.shape[2], dtype=bool)
    while True:
        Q, R = np.linalg.qr(columns[:, :, alone])
        apart = np.abs(np.diagonal(R, axis1=1, axis2=2)).min(axis=0) > _SAME * np.maximum(norms[alone], 1e-300)
        if apart.all():
            return Q, R, alone
        alone[np.flatnonzero(alone)[np.argmin(apart)]] = False


def _solved(train: Array, index: Columns, norms: Array) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    """Least squares of tau on some columns of problems (folds, r, k + 1): which are no repetition, bases, triangles, theta."""
    Q, R, alone = _basis(train[:, :, index], norms[index])
    theta = np.linalg.solve(R, Q.transpose(0, 2, 1) @ train[:, :, -1:])[:, :, 0]
    return alone, Q, R, np.asarray(theta, dtype=np.float64)


def _group_factors(part: StatisticSet, weights: Mapping[str, float], order: Columns) -> list[Array]:
    """Weighted factor of every row group over the columns ``[order | tau]``."""
    blocks = []
    for layout in part.layouts:
        if part.rows[layout.group] == 0:
            blocks.append(np.zeros((0, len(order) + 1)))
            continue
        R = part.factor(layout.group)[:, len(layout.instruments) :]
        wide = np.zeros((len(R), part.p + 1))
        wide[:, layout.columns] = R[:, : len(layout.columns)]
        wide[:, -1] = R[:, len(layout.columns)]
        blocks.append(wide[:, np.append(order, part.p)] * weights[layout.group])
    return blocks
