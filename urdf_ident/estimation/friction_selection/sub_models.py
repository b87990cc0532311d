"""Held-out errors of models that differ in their friction laws alone, all from one set of factors.

Columns of every sub-model (bodies and rotors) are eliminated once per fold, in coordinates in which those of all data are
orthonormal. What remains are the second moments of the candidate columns and the torque, in which a sub-model is a small square
system. For the search at one joint the laws of other joints are eliminated as well (Schur complement), and all alternatives are
solved together, folds and alternatives stacked.

Moments square the condition number, but in orthonormal coordinates, and of few candidates scaled to unit norm, of which a share
of at least :data:`DISTINCT` is independent of the others. A ridge of :data:`RIDGE` leaves a column that depends on the others
without effect, and changes the estimate of an independent one by at most ``RIDGE / DISTINCT²`` (2.5e-9) of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...grouping import grouped
from ...linalg import Array, IntArray, positive, triangle
from ...statistics.statistic import StatisticSet

#: A column is distinguishable if more than this share of its norm is independent of the others.
DISTINCT = 0.02
#: Ridge of the sub-models, a share of each column's square; relative tolerance for the rank of the common columns in a fold.
RIDGE, CUT = 1e-12, 1e-9
#: Positions of some columns among the candidates.
Columns = tuple[int, ...]


def eliminated(G: Array, B: Array) -> Array:
    """Returns the moments of what first columns Z leave of the others X, ``(X − Z B)ᵀ (X − Z B)``, shape (…, k, k).

    Args:
        G: Moments ``[Z | X]ᵀ [Z | X]`` of all columns, shape (…, r + k, r + k).
        B: Coefficients of the first columns in each other one, shape (…, r, k).
    """
    r = B.shape[-2]
    half = B.swapaxes(-1, -2) @ (G[..., :r, r:] - 0.5 * G[..., :r, :r] @ B)
    return np.asarray(G[..., r:, r:] - half - half.swapaxes(-1, -2))


class SubModels:
    """Sub-models of a set of factors in all folds.

    The weighted rows are ``[Z | X | y]``: common columns in coordinates ``Z T`` that are orthonormal in all data, candidates
    divided by their norms, torque. With the coefficients B of Z in X and y in a training set, the moments that remain are
    ``S = ([X | y] − Z B)ᵀ ([X | y] − Z B)``. A sub-model solves a part of S of the training set; its error follows from the
    same part of S of the held-out rows, with the B of the training set.

    Attributes:
        T: Parameters of the common columns per unit of each coordinate, shape (c, r).
        norms: Least norm of each candidate in any training set, and 1 for the torque, shape (k + 1,).
        B: Of the training set of each fold, and last of all data, before the division by norms, shape (folds + 1, r, k + 1).
        S_train: Of the same data, shape (folds + 1, k + 1, k + 1).
        S_held: Of the held-out rows of each fold, shape (folds, k + 1, k + 1).

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
        self.folds, self.weights = [statistics.only(fold) for fold in statistics.logs], weights
        self.rows, c, k = float(sum(statistics.rows.values())), len(common), len(candidates)
        known = np.zeros((0, c + 1)) if prior_rows is None else prior_rows
        #: Position of every column, and of the torque, among ``[common | candidates | torque]``.
        self.place = np.full(statistics.p + 1, -1)
        self.place[np.append(np.concatenate([common, candidates]).astype(np.intp), -1)] = np.arange(c + k + 1)
        self.T = self._orthonormal(known[:, :-1])
        # moments [Z | X | y]ᵀ [Z | X | y] of each fold, and of all data with the prior's rows
        r = self.T.shape[1]
        G = np.zeros((len(self.folds), r + k + 1, r + k + 1))
        for part, G_fold in zip(self.folds, G, strict=True):
            for g in range(len(part.layouts)):
                rows, at = self._rows(part, g, self.T)
                G_fold[np.ix_(at, at)] += rows.T @ rows
        of_prior = np.column_stack([known[:, :-1] @ self.T, np.zeros((len(known), k)), known[:, -1]])
        G_all = G.sum(axis=0) + of_prior.T @ of_prior
        # norms of the candidates where the fold with most of each is left out
        fewest = np.diagonal(G_all) - np.diagonal(G, axis1=1, axis2=2).max(axis=0)
        self.norms = np.append(np.sqrt(positive(np.maximum(fewest[r:-1], 0.0))), 1.0)
        # elimination of Z: B = (ZᵀZ)⁺ Zᵀ [X | y] of the training data, and what it leaves of these and of the held-out rows
        self.B, self.S_held = np.zeros((len(G) + 1, r, k + 1)), np.zeros((len(G), k + 1, k + 1))
        self.S_train = np.zeros((len(G) + 1, k + 1, k + 1))
        for fold, B in enumerate(self.B):
            G_train = G_all - G[fold] if fold < len(G) else G_all
            values, vectors = np.linalg.eigh(G_train[:r, :r])
            inverse = np.where(values > CUT, 1.0 / np.maximum(values, CUT), 0.0)
            B[:] = vectors @ (inverse[:, None] * (vectors.T @ G_train[:r, r:]))
            self.S_train[fold] = eliminated(G_train, B) / np.outer(self.norms, self.norms)
            if fold < len(G):
                self.S_held[fold] = eliminated(G[fold], B) / np.outer(self.norms, self.norms)

    def _orthonormal(self, known: Array) -> Array:
        """Coordinates T in which the common columns of all data and of the prior's rows (r, c) are orthonormal.

        From the singular values of these columns, scaled to unit norm: ``Z D⁻¹ = U Σ Vᵀ``, ``T = D⁻¹ V Σ⁻¹``, without the
        directions that they do not span.
        """
        R, as_given = known, np.eye(known.shape[1])
        for part in self.folds:
            R = triangle(R, *(self._rows(part, g, as_given)[0][:, : len(as_given)] for g in range(len(part.layouts))))
        norms = positive(np.linalg.norm(R, axis=0))
        _, singular, turned = np.linalg.svd(R / norms, full_matrices=False)
        seen = singular > CUT * singular.max(initial=0.0)
        return np.asarray((turned[seen] / singular[seen, None]).T / norms[:, None])

    def _rows(self, part: StatisticSet, g: int, T: Array) -> tuple[Array, IntArray]:
        """Weighted factor of one fold and row group ``[common T | its candidates | torque]``, and the columns' positions."""
        layout = part.layouts[g]
        R = self.weights[layout.group] * part.factor(layout.group)[:, len(layout.instruments) :]
        place, (c, r) = self.place[np.append(layout.columns, part.p)], T.shape
        common, free = (place >= 0) & (place < c), place >= c
        return np.hstack([R[:, common] @ T[place[common]], R[:, free]]), np.append(np.arange(r), place[free] - c + r)

    def _held_moments(self, groups: Iterable[int], index: IntArray) -> Array:
        """S of the held-out rows of some row groups, shape (folds, k, k).

        Args:
            index: Positions among ``[candidates | torque]``, shape (k,).
        """
        S, r = np.zeros((len(self.folds), len(index), len(index))), self.T.shape[1]
        for part, B, S_fold in zip(self.folds, self.B[:-1], S, strict=True):
            for g in groups:
                rows, at = self._rows(part, g, self.T)
                wide = np.zeros((len(rows), r + len(self.norms)))
                wide[:, at] = rows
                rest = (wide[:, r + index] - wide[:, :r] @ B[:, index]) / self.norms[index]
                S_fold += rest.T @ rest
        return S

    def squares(self, chosen: Sequence[int]) -> Array:
        """Returns the squared whitened error of every fold and row group with some candidates, shape (folds, groups).

        Args:
            chosen: Positions of these among the candidates, shape (k,).
        """
        index, k = np.array([*chosen, len(self.norms) - 1], dtype=np.intp), len(chosen)
        S = self.S_train[:-1][:, index[:, None], index]
        theta = np.linalg.solve(S[:, :k, :k] + RIDGE * np.eye(k), S[:, :k, k:])
        error = np.concatenate([-theta, np.ones((len(S), 1, 1))], axis=1)
        S_held = (self._held_moments([g], index) for g in range(len(self.folds[0].layouts)))
        return np.column_stack([(error.transpose(0, 2, 1) @ S_group @ error)[:, 0, 0] for S_group in S_held])

    def of_joint(self, others: Sequence[int], candidates: Sequence[int], own: Sequence[int] | IntArray) -> JointSubModels:
        """Returns the sub-models of one joint.

        Args:
            others: Positions (among the candidates) of the laws of other joints, shape (o,).
            candidates: Positions of the joint's candidates, shape (k,); numbered from 0 in the result.
            own: Row groups of the joint, shape (g,).
        """
        index, o = np.array([*others, *candidates, len(self.norms) - 1], dtype=np.intp), len(others)
        S_train, S_held = (S[:, index[:, None], index] for S in (self.S_train, self.S_held))
        S_train[:, range(len(index) - 1), range(len(index) - 1)] += RIDGE
        B = np.asarray(np.linalg.solve(S_train[:, :o, :o], S_train[:, :o, o:]), dtype=float)  # of the others in the joint's
        S_held, S_own = (eliminated(S, B[:-1]) for S in (S_held, self._held_moments(own, index)))
        return JointSubModels(eliminated(S_train, B), S_held, S_own, self.norms[index[o:]], self.rows)


@dataclass(frozen=True, eq=False)
class JointSubModels:
    """Sub-models in the candidates of one joint; columns are chosen by their positions.

    The moments are those of :class:`SubModels`, the laws of other joints eliminated as well: ``S = [[Sxx, Sxy], [Syx, Syy]]``.
    Chosen columns have the parameters ``theta = Sxx⁻¹ Sxy`` of the training data.

    Attributes:
        S_train: Of the training data of each fold, and last of all data, with the ridge, shape (folds + 1, k + 1, k + 1).
        S_held: Of the held-out rows, shape (folds, k + 1, k + 1).
        S_own: Their part in the joint's own row groups, same shape.
        norms: Norms of the original columns, by which the candidates are divided, shape (k + 1,).
        rows: Number of rows of all data.
    """

    S_train: Array
    S_held: Array
    S_own: Array
    norms: Array
    rows: float
    _known: dict[Columns, Array] = field(default_factory=dict)

    def error(self, chosen: Columns) -> tuple[Array, Array]:
        """Returns the squared whitened error of some columns, and its part in the joint's own rows, shape (folds,) each."""
        return self.errors([chosen])[:, 0], self._errors([chosen], self.S_own)[0]

    def errors(self, options: Sequence[Columns]) -> Array:
        """Returns the squared whitened errors of several choices of columns.

        Returns:
            Shape (folds, options); about the number of rows if the weights are correct.
        """
        new = [option for option in dict.fromkeys(options) if option not in self._known]
        for some in grouped((len(option), option) for option in new).values():
            self._known.update(zip(some, self._errors(some, self.S_held), strict=True))
        return np.array([self._known[option] for option in options]).reshape(len(options), len(self.S_held)).T

    def _errors(self, options: Sequence[Columns], S: Array) -> Array:
        """Errors ``Syy − 2 thetaᵀ Sxy + thetaᵀ Sxx theta`` of choices of as many columns each, shape (options, folds).

        Args:
            S: Moments of some held-out rows.
        """
        index = np.array(options, dtype=np.intp)
        right, below = index[:, None, :], index[:, :, None]
        theta = np.linalg.solve(self.S_train[:-1, below, right], self.S_train[:-1, index, -1:])
        explained = theta * (2.0 * S[:, index, -1:] - S[:, below, right] @ theta)
        return np.asarray(S[:, -1:, -1] - explained.sum(axis=(2, 3))).T

    def distinct(self, chosen: Columns, added: Sequence[int]) -> tuple[Array, Array]:
        """Returns the part of each added column that is independent of common and chosen ones, minimum over training sets.

        Returns:
            Share of its norm, 0 to 1, and the whitened norm (one over the standard error that its parameter would have,
            in units of the parameter); shape (a,) each.
        """
        index, tried = np.array(chosen, dtype=np.intp), np.array(added, dtype=np.intp)
        S, mixed = (self.S_train[:-1, index[:, None], some] for some in (index, tried))
        square = self.S_train[:-1, tried, tried] - np.sum(mixed * np.linalg.solve(S, mixed), axis=1)
        share = np.sqrt(np.maximum(square, 0.0).min(axis=0))
        return share, share * self.norms[tried]

    def estimates(self, chosen: Columns) -> tuple[Array, Array]:
        """Returns the parameters from all data, shape (k,), and a root B of their covariance ``B Bᵀ``, shape (k, k).

        A linearly dependent column has a parameter of zero with a very large error.
        """
        index = np.array(chosen, dtype=np.intp)
        Sxx, Sxy = self.S_train[-1][np.ix_(index, index)], self.S_train[-1, index, -1]
        root = np.linalg.inv(np.linalg.cholesky(Sxx)).T
        theta = root @ (root.T @ Sxy)
        left = max(float(self.S_train[-1, -1, -1] - Sxy @ theta), 0.0)
        sigma = np.sqrt(left / max(self.rows - len(index), 1.0))
        return theta / self.norms[index], sigma * root / self.norms[index][:, None]
