"""Linear algebra of the selection: held-out errors of many sub-models from one set of factors.

Columns of all sub-models (inertial parameters, rotor inertias, the laws of other joints) are projected out once per fold. This
leaves a small triangular problem in the candidate columns, in which adding or removing a column is a rank-one update, computed
for all candidates and all folds at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array, BoolArray, IntArray, lstsq, positive, triangle
from ...statistics.statistic import StatisticSet

#: Relative tolerance for the rank of the common columns in a fold.
_CUT = 1e-9
#: A column whose relative distance from the span of the previous ones is below this counts as linearly dependent.
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class _Problem:
    """A factor of [candidates | tau] with the common columns projected out, the projection, and the norms of the columns."""

    rest: Array
    follow: Array
    norms: Array

    @classmethod
    def of(cls, factor: Array, count: int, norms: Array | None = None) -> _Problem:
        """Projects the first ``count`` columns out of a triangular factor."""
        fixed, free, rest = factor[:count, :count], factor[:count, count:], factor[count:, count:]
        scale = np.linalg.norm(fixed, axis=0)
        scaled = fixed / np.where(scale > 0, scale, 1.0)
        follow, rank = lstsq(scaled, free, rcond=_CUT)
        lengths = np.linalg.norm(factor[:, count:], axis=0) if norms is None else norms
        left = _filled(rest) if rank == count else _square(free - scaled @ follow, rest)
        return cls(left, follow / np.where(scale > 0, scale, np.inf)[:, None], lengths)

    def of_some(self, common: IntArray, others: IntArray) -> _Problem:
        """Projects further columns out and keeps some of the others."""
        end = int(others[:-1].max(initial=-1)) + 1  # below this row all kept columns but tau are zero
        lower = triangle(self.rest[end:, np.append(common, others[-1])])
        rows = np.zeros((end + len(lower), len(common) + len(others)))
        rows[:end, : len(common)], rows[:end, len(common) :] = self.rest[:end, common], self.rest[:end, others]
        rows[end:, : len(common)], rows[end:, -1] = lower[:, :-1], lower[:, -1]
        return _Problem.of(triangle(rows), len(common), self.norms[others])


def _square(*blocks: Array) -> Array:
    """Triangular factor of stacked blocks, padded with rows of zeros."""
    return _filled(triangle(*blocks))


def _filled(R: Array) -> Array:
    """A factor padded with rows of zeros."""
    return R if len(R) == R.shape[1] else np.vstack([R, np.zeros((R.shape[1] - len(R), R.shape[1]))])


@dataclass(frozen=True, eq=False)
class SubModels:
    """Sub-models of a set of factors in all folds; created by :meth:`of`.

    Attributes:
        names: Names of the held-out folds.
        rows: Rows per fold and row group, shape (folds, groups).
        weight: The same, each averaged row counted as the number of its periods.
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
        """Creates the sub-models of a set of factors.

        Args:
            statistics: Factors of the data; each "log" is one fold.
            weights: Row group → weight, about one over its residual's standard deviation [1/unit of torque].
            common: Indices into theta of the columns of every sub-model, shape (c,).
            candidates: Indices into theta of the columns to choose from, shape (k,).
            prior_rows: Rows added to the training data of every fold, ``[common | value]``, shape (r, c + 1): prior
                knowledge of the common parameters.
        """
        order = np.concatenate([common, candidates]).astype(np.intp)
        count = len(common)
        known = np.zeros((0 if prior_rows is None else len(prior_rows), len(order) + 1))
        if prior_rows is not None:
            known[:, :count], known[:, -1] = prior_rows[:, :-1], prior_rows[:, -1]
        parts, train, held = [statistics.only([name]) for name in statistics.logs], [], []
        for name, part in zip(statistics.logs, parts, strict=True):
            train.append(_Problem.of(statistics.left_out(name).stacked(weights, order, known), count))
            factors = _group_factors(part, weights, order)
            held.append(tuple(H[:, count:] - H[:, :count] @ train[-1].follow for H in factors))
        every = _Problem.of(statistics.stacked(weights, order, known), count)
        rows = np.array([[part.rows[group] for group in statistics.groups] for part in parts], dtype=float)
        weight = np.array([[part.weight[group] for group in statistics.groups] for part in parts])
        return cls(statistics.logs, rows, weight, tuple(train), tuple(held), every)

    def group_errors(self, chosen: Sequence[int]) -> Array:
        """Returns the squared whitened error of every fold and row group with some candidates.

        Args:
            chosen: Positions of these among the candidates, shape (k,).

        Returns:
            Shape (folds, groups); about the number of rows if the weights are correct.
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
        """Returns the problem with more common columns and fewer candidates.

        Args:
            common: Positions (among the candidates) of additional common columns, shape (c,).
            candidates: Positions of the remaining candidates, shape (k,); numbered from 0 in the result.
            own: Row groups whose error is also computed separately, shape (g,).
        """
        first = np.asarray(common, dtype=np.intp)
        rest = np.append(np.asarray(candidates, dtype=np.intp), len(self.every.norms) - 1)
        train = [problem.of_some(first, rest) for problem in self.train]
        held = [[H[:, rest] - H[:, first] @ one.follow for H in groups] for groups, one in zip(self.held, train, strict=True)]
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
    """Least squares on some columns in all folds: the independent ones, bases, triangles, parameters, errors."""

    used: IntArray
    Q: Array
    R: Array
    theta: Array
    error: Array


class Focus:
    """Errors of small sub-models on held-out folds; created by :meth:`SubModels.focus`.

    Args:
        train: Triangular problems ``[candidates | tau]`` of all but one fold, shape (folds, k + 1, k + 1).
        norms: Norms of the original columns, shape (k + 1,).
        whole: Factors of the held-out folds, shape (folds, k + 1, k + 1).
        own: Their part in the joint's own row groups, same shape.
        every: The problem of all data.
        rows: Number of rows of all data.
    """

    def __init__(self, train: Array, norms: Array, whole: Array, own: Array, every: _Problem, rows: float) -> None:
        self._train, self._norms, self._whole, self._own, self._every, self._rows = train, norms, whole, own, every, rows
        # columns contiguous in memory, as they are accessed: shape (folds, k + 1, rows)
        self._columns, self._left_out = (np.ascontiguousarray(x.transpose(0, 2, 1)) for x in (train, whole))
        self._room = np.empty(train.size), np.empty(train.size)  # reused, as allocation takes longer than the computation
        self._known: dict[tuple[int, ...], _Solved] = {}
        self._own_known: dict[tuple[int, ...], Array] = {}
        self._estimates: dict[tuple[int, ...], tuple[Array, Array, BoolArray]] = {}

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
        """Returns the squared whitened error of every fold with some candidates, shape (folds,).

        Args:
            chosen: Positions of these among the candidates, shape (k,).
        """
        return np.asarray(np.sum(np.square(self._solve(chosen).error), axis=1))

    def own_errors(self, chosen: Sequence[int]) -> Array:
        """Returns the part of :meth:`errors` in the joint's own row groups, shape (folds,).

        Args:
            chosen: Positions among the candidates, shape (k,).
        """
        key = tuple(sorted(chosen))
        if key not in self._own_known:
            found = self._solve(key)
            error = self._own[:, :, -1] - np.einsum("frk,fk->fr", self._own[:, :, found.used], found.theta)
            self._own_known[key] = np.sum(error**2, axis=1)
        return self._own_known[key]

    def with_each(self, chosen: Sequence[int], added: Sequence[int]) -> Array:
        """Returns the errors with one additional column, for each of several columns, shape (folds, a); as :meth:`errors`.

        Args:
            chosen: Positions of the columns in all of them, shape (k,).
            added: Positions of the additional columns, one at a time, shape (a,).
        """
        return self._with_each(self._solve(chosen), np.asarray(added, dtype=np.intp))

    def exchanged(self, chosen: Sequence[int], taken: Sequence[int], put: Sequence[int]) -> Array:
        """Returns the errors with one column replaced by another, for several such pairs, shape (folds, m); as :meth:`errors`.

        Args:
            chosen: Positions of the columns before, shape (k,).
            taken: Positions of the replaced columns, shape (m,).
            put: Positions of their replacements, shape (m,).
        """
        base = self._solve(chosen)
        if len(base.used) < len(chosen):  # which dependent column is omitted may change
            pairs = zip(taken, put, strict=True)
            return np.hstack([self.with_each([k for k in chosen if k != old], [new]) for old, new in pairs])
        inverse = np.linalg.inv(base.R)
        alone = inverse / np.linalg.norm(inverse, axis=2, keepdims=True)
        alone = alone[:, np.searchsorted(base.used, np.asarray(taken, dtype=np.intp))]
        return self._with_each(base, np.asarray(put, dtype=np.intp), alone)

    def _with_each(self, base: _Solved, tried: IntArray, alone: Array | None = None) -> Array:
        """Errors with one additional column; ``alone``: direction to remove, a unit vector in the basis, shape (folds, m, k).

        It is the dual vector of the replaced column, orthogonal to all other columns.
        """
        folds, _, rows = self._columns.shape
        C, room = (flat[: folds * len(tried) * rows].reshape(folds, len(tried), rows) for flat in self._room)
        np.take(self._columns, tried, axis=1, out=C, mode="clip")
        turned, y = base.Q.transpose(0, 2, 1), self._train[:, :, -1:]
        part = C @ base.Q
        if alone is not None:
            part -= alone * np.einsum("fmk,fmk->fm", alone, part)[:, :, None]
        C -= np.matmul(part, turned, out=room)
        length = np.maximum(np.einsum("fmr,fmr->fm", C, C), positive((_SAME * self._norms[tried]) ** 2))
        step = (C @ y) / length[:, :, None]
        part *= step
        if alone is not None:
            part += alone * (alone @ (turned @ y))
        error = np.matmul(part, np.linalg.solve(base.R.transpose(0, 2, 1), self._left_out[:, base.used]), out=room)
        np.take(self._left_out, tried, axis=1, out=C, mode="clip")
        C *= step
        error -= C
        error += base.error[:, None, :]
        return np.asarray(np.einsum("fmr,fmr->fm", error, error))

    def without_each(self, chosen: Sequence[int], taken: Sequence[int]) -> Array:
        """Returns the errors with one column removed, for each of several columns, shape (folds, m); as :meth:`errors`.

        Args:
            chosen: Positions of the columns before, shape (k,).
            taken: Positions of the removed columns, one at a time, shape (m,).
        """
        base = self._solve(chosen)
        if len(base.used) < len(chosen):  # a dependent column may become independent
            return np.stack([self.errors([k for k in chosen if k != old]) for old in taken], axis=1)
        inverse, at = np.linalg.inv(base.R), np.searchsorted(base.used, np.asarray(taken, dtype=np.intp))
        row = inverse[:, at]
        step = row @ inverse.transpose(0, 2, 1) * (base.theta[:, at] / np.sum(row**2, axis=2))[:, :, None]
        error = step @ self._left_out[:, base.used]
        error += base.error[:, None, :]
        return np.asarray(np.einsum("fmr,fmr->fm", error, error))

    def distinct(self, chosen: Sequence[int], added: Sequence[int]) -> tuple[Array, Array]:
        """Returns the part of each column that is independent of the common and chosen columns, minimum over training sets.

        Args:
            chosen: Positions of the chosen columns, shape (k,).
            added: Positions of the columns to test, shape (a,).

        Returns:
            Share of its norm, 0 to 1, and the whitened norm (one over the standard error that its parameter would have,
            in units of the parameter); shape (a,) each.
        """
        Q, C = self._solve(chosen).Q, self._train[:, :, np.asarray(added, dtype=np.intp)]
        left = np.linalg.norm(C - Q @ (Q.transpose(0, 2, 1) @ C), axis=1).min(axis=0)
        return left / positive(self._norms[np.asarray(added, dtype=np.intp)]), left

    def estimates(self, chosen: Sequence[int]) -> tuple[Array, Array]:
        """Returns the parameters from all data, and their standard errors.

        Args:
            chosen: Positions among the candidates, shape (k,).

        Returns:
            Shape (k,) each; zero and inf for a linearly dependent column.
        """
        theta, root, alone = self._estimate(chosen)
        return theta, np.where(alone, np.linalg.norm(root, axis=1), np.inf)

    def combinations(self, chosen: Sequence[int], rows: Array) -> tuple[Array, Array]:
        """Returns linear combinations of the parameters from all data, and their standard errors.

        Args:
            chosen: Positions among the candidates, shape (k,).
            rows: Coefficients, shape (m, k).

        Returns:
            Shape (m,) each; the parameter of a linearly dependent column counts as zero.
        """
        theta, root, _ = self._estimate(chosen)
        return rows @ theta, np.linalg.norm(rows @ root, axis=1)

    def _estimate(self, chosen: Sequence[int]) -> tuple[Array, Array, BoolArray]:
        """Parameters from all data, a root of their covariance, and which columns are independent."""
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


def _basis(columns: Array, norms: Array) -> tuple[Array, Array, BoolArray]:
    """Bases and triangles of the columns (folds, r, k) that are independent in all folds, and which those are."""
    alone = np.ones(columns.shape[2], dtype=bool)
    while True:
        Q, R = np.linalg.qr(columns[:, :, alone])
        apart = np.abs(np.diagonal(R, axis1=1, axis2=2)).min(axis=0) > _SAME * positive(norms[alone])
        if apart.all():
            return Q, R, alone
        alone[np.flatnonzero(alone)[np.argmin(apart)]] = False


def _solved(train: Array, index: IntArray, norms: Array) -> tuple[BoolArray, Array, Array, Array]:
    """Least squares of tau on some columns of problems (folds, r, k + 1): the independent columns, bases, triangles, theta."""
    Q, R, alone = _basis(train[:, :, index], norms[index])
    theta = np.linalg.solve(R, Q.transpose(0, 2, 1) @ train[:, :, -1:])[:, :, 0]
    return alone, Q, R, np.asarray(theta, dtype=np.float64)


def _group_factors(part: StatisticSet, weights: Mapping[str, float], order: IntArray) -> list[Array]:
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
