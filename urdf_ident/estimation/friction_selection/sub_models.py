"""Held-out errors of many sub-models from one set of factors.

Columns of every sub-model (bodies and rotors) are eliminated once per fold by QR. What remains are the second moments of the
candidate columns and the torque, in which a sub-model is a small square system: the laws of other joints are eliminated as well
(Schur complement), and all alternatives at one joint are solved together, folds and alternatives stacked.

Moments square the condition number, but of few columns scaled to unit norm, of which a share of at least :data:`.DISTINCT` is
independent of the others. A ridge of :data:`RIDGE` leaves a column that depends on the others without effect, and changes the
estimate of an independent one by at most ``RIDGE / DISTINCT²`` (2.5e-9) of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...grouping import grouped
from ...linalg import Array, IntArray, lstsq, positive
from ...statistics.entries import placed
from ...statistics.statistic import StatisticSet

#: Ridge of the sub-models, a share of each column's square.
RIDGE = 1e-12
#: Relative tolerance for the rank of the common columns in a fold.
_CUT = 1e-9

#: Positions of some columns among the candidates.
Columns = tuple[int, ...]


def projected(factor: Array, c: int) -> tuple[Array, Array]:
    """Eliminates the first columns of a triangular factor from the others.

    Args:
        factor: Shape (m, c + k).
        c: Number of columns to eliminate.

    Returns:
        Their coefficients in each other column, shape (c, k), and what these columns leave of them, shape (m, k).
    """
    fixed, free = factor[:c, :c], factor[:c, c:]
    scale = positive(np.linalg.norm(fixed, axis=0))
    follow = lstsq(fixed / scale, free, rcond=_CUT)[0] / scale[:, None]
    return follow, np.vstack([free - fixed @ follow, factor[c:, c:]])


class SubModels:
    """Sub-models of a set of factors in all folds.

    Args:
        statistics: Factors of the data; each "log" is one fold.
        weights: Row group → weight, about one over its residual's standard deviation [1/unit of torque].
        common: Indices into theta of the columns of every sub-model, shape (c,).
        candidates: Indices into theta of the columns to choose from, shape (k,).
        prior_rows: Rows added to the training data of every fold, ``[common | value]``, shape (r, c + 1): prior knowledge of
            the common parameters.
    """

    def __init__(
        self,
        statistics: StatisticSet,
        weights: Mapping[str, float],
        common: IntArray,
        candidates: IntArray,
        prior_rows: Array | None = None,
    ) -> None:
        order, c = np.concatenate([common, candidates]).astype(np.intp), len(common)
        known = np.zeros((0 if prior_rows is None else len(prior_rows), len(order) + 1))
        if prior_rows is not None:
            known[:, :c], known[:, -1] = prior_rows[:, :-1], prior_rows[:, -1]
        parts = (*map(statistics.left_out, statistics.logs), statistics)  # training data of each fold, and all data
        factors = [part.stacked(weights, order, known) for part in parts]
        self.folds = [statistics.only([fold]) for fold in statistics.logs]
        self.weights, self.order, self.c, self.rows = weights, order, c, float(sum(statistics.rows.values()))
        self.norms = np.append(positive(np.min([np.linalg.norm(R[:, c:-1], axis=0) for R in factors], axis=0)), 1.0)
        self.follow, rest = zip(*(projected(factor, c) for factor in factors), strict=True)
        self.train = np.array([R.T @ R for R in (rows / self.norms for rows in rest)])
        self.held = self._held_moments(range(len(statistics.layouts)), np.arange(len(candidates) + 1))

    def _held_moments(self, groups: Iterable[int], index: IntArray) -> Array:
        """Moments of the held-out rows of some row groups, what follows the columns subtracted, shape (folds, k, k).

        Args:
            index: Positions among ``[candidates | torque]``, shape (k,).
        """
        place, width = np.full(self.folds[0].p + 1, -1), len(self.order) + 1
        place[self.order], place[-1] = np.arange(width - 1), width - 1
        moments = np.zeros((len(self.folds), len(index), len(index)))
        for part, follow, out in zip(self.folds, self.follow, moments, strict=False):
            for layout in (part.layouts[g] for g in groups):
                if part.rows[layout.group]:
                    R = self.weights[layout.group] * part.factor(layout.group)[:, len(layout.instruments) :]
                    H = placed(R, place[np.append(layout.columns, part.p)], width)
                    rows = (H[:, self.c + index] - H[:, : self.c] @ follow[:, index]) / self.norms[index]
                    out += rows.T @ rows
        return moments

    def squares(self, chosen: Sequence[int]) -> Array:
        """Returns the squared whitened error of every fold and row group with some candidates, shape (folds, groups).

        Args:
            chosen: Positions of these among the candidates, shape (k,).
        """
        index, errors = np.array(chosen, dtype=np.intp), []
        for part, follow, train in zip(self.folds, self.follow, self.train, strict=False):
            theta = np.zeros(part.p)
            moments = train[np.ix_(index, index)] + RIDGE * np.eye(len(index))
            laws = np.linalg.solve(moments, train[index, -1]) / self.norms[index]
            theta[self.order[: self.c]] = follow[:, -1] - follow[:, index] @ laws
            theta[self.order[self.c + index]] = laws
            errors.append(
                [self.weights[g] ** 2 * part.residual_squares(theta, g) if part.rows[g] else 0.0 for g in part.groups]
            )
        return np.array(errors)

    def focus(self, others: Sequence[int], candidates: Sequence[int], own: Sequence[int] | IntArray) -> Focus:
        """Returns the sub-models of one joint.

        Args:
            others: Positions (among the candidates) of the laws of other joints, shape (o,).
            candidates: Positions of the joint's candidates, shape (k,); numbered from 0 in the result.
            own: Row groups of the joint, shape (g,).
        """
        index, o = np.array([*others, *candidates, len(self.norms) - 1], dtype=np.intp), len(others)
        train, whole = (moments[:, index[:, None], index] for moments in (self.train, self.held))
        train[:, range(len(index) - 1), range(len(index) - 1)] += RIDGE
        follow = np.linalg.solve(train[:, :o, :o], train[:, :o, o:])
        turn = np.concatenate([-follow, np.broadcast_to(np.eye(len(index) - o), (len(train), *[len(index) - o] * 2))], axis=1)
        held, mine = (turn[:-1].transpose(0, 2, 1) @ x @ turn[:-1] for x in (whole, self._held_moments(own, index)))
        reduced = train[:, o:, o:] - train[:, o:, :o] @ follow
        return Focus(reduced, held, mine, self.norms[index[o:]], self.rows)


@dataclass(frozen=True, eq=False)
class Focus:
    """Sub-models in the candidates of one joint; columns are chosen by their positions.

    Attributes:
        train: Moments of the training data ``[candidates | torque]`` of each fold, and last of all data, with the ridge, shape
            (folds + 1, k + 1, k + 1).
        held: Moments of the held-out rows, what follows the candidates subtracted, shape (folds, k + 1, k + 1).
        own: Their part in the joint's own row groups, same shape.
        norms: Norms of the original columns, by which the candidates are divided, shape (k + 1,).
        rows: Number of rows of all data.
    """

    train: Array
    held: Array
    own: Array
    norms: Array
    rows: float
    _known: dict[Columns, Array] = field(default_factory=dict)
    _known_own: dict[Columns, Array] = field(default_factory=dict)

    def error(self, chosen: Columns) -> tuple[Array, Array]:
        """Returns the squared whitened error of some columns, and its part in the joint's own rows, shape (folds,) each."""
        if chosen not in self._known_own:
            self._known_own[chosen] = self._errors([chosen], self.own)[0]
        return self.errors([chosen])[:, 0], self._known_own[chosen]

    def errors(self, options: Sequence[Columns]) -> Array:
        """Returns the squared whitened errors of several choices of columns.

        Returns:
            Shape (folds, options); about the number of rows if the weights are correct.
        """
        new = [option for option in dict.fromkeys(options) if option not in self._known]
        for some in grouped((len(option), option) for option in new).values():
            self._known.update(zip(some, self._errors(some, self.held), strict=True))
        return np.array([self._known[option] for option in options]).reshape(len(options), len(self.held)).T

    def _errors(self, options: Sequence[Columns], held: Array) -> Array:
        """Errors of choices of as many columns each, by the moments of some held-out rows, shape (options, folds)."""
        index = np.array(options, dtype=np.intp)
        right, below = index[:, None, :], index[:, :, None]
        theta = np.linalg.solve(self.train[:-1, below, right], self.train[:-1, index, -1:])
        explained = theta * (2.0 * held[:, index, -1:] - held[:, below, right] @ theta)
        return np.asarray(held[:, -1:, -1] - explained.sum(axis=(2, 3))).T

    def distinct(self, chosen: Columns, added: Sequence[int]) -> tuple[Array, Array]:
        """Returns the part of each added column that is independent of common and chosen ones, minimum over training sets.

        Returns:
            Share of its norm, 0 to 1, and the whitened norm (one over the standard error that its parameter would have,
            in units of the parameter); shape (a,) each.
        """
        index, tried = np.array(chosen, dtype=np.intp), np.array(added, dtype=np.intp)
        moments, mixed = (self.train[:-1, index[:, None], some] for some in (index, tried))
        square = self.train[:-1, tried, tried] - np.sum(mixed * np.linalg.solve(moments, mixed), axis=1)
        share = np.sqrt(np.maximum(square, 0.0).min(axis=0))
        return share, share * self.norms[tried]

    def estimates(self, chosen: Columns) -> tuple[Array, Array]:
        """Returns the parameters from all data, shape (k,), and a root B of their covariance ``B Bᵀ``, shape (k, k).

        A linearly dependent column has a parameter of zero with a very large error.
        """
        index = np.array(chosen, dtype=np.intp)
        moments, right = self.train[-1][np.ix_(index, index)], self.train[-1, index, -1]
        root = np.linalg.inv(np.linalg.cholesky(moments)).T
        theta = root @ (root.T @ right)
        left = max(float(self.train[-1, -1, -1] - right @ theta), 0.0)
        sigma = np.sqrt(left / max(self.rows - len(index), 1.0))
        return theta / self.norms[index], sigma * root / self.norms[index][:, None]
