"""Forward and backward steps to the friction laws of one joint, given those of all others, by held-out errors.

A step adds a law, exchanges one, or removes one; of those that gain what they need (:meth:`JointSearch.needed`) and are
physically possible, the one with the largest gain is made. Gains are mean relative reductions of the joint's held-out squared
error. More columns must gain more than the error of that gain, fewer must not lose as much.

All errors come from one set of factors. Columns of every sub-model (bodies and rotors) are eliminated once per fold, in
coordinates in which those of all data are orthonormal. What remains are the second moments of the candidate columns and the
torque, in which a sub-model is a small square system: the laws of other joints are eliminated as well (Schur complement), and
all alternatives at one joint are solved together, folds and alternatives stacked. Moments square the condition number, but in
orthonormal coordinates, and of few candidates scaled to unit norm, of which a share of at least :data:`DISTINCT` is independent
of the others. A ridge of :data:`RIDGE` leaves a column that depends on the others without effect, and changes the estimate of
an independent one by at most ``RIDGE / DISTINCT²`` (2.5e-9) of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np

from ...friction import MOST_FRICTION, Offset, Trained, conditions, law_rows
from ...grouping import grouped
from ...linalg import Array, IntArray, orthogonal_part, positive, triangle
from ...statistics.folds import standard_error
from ...statistics.statistic import StatisticSet
from .candidates import OF_EVERY_DRIVE, REPLACES, Candidate, Key, Laws, WideModel

#: A law must lower its joint's held-out squared error by this fraction, another shape of the same law by the second one.
LEAST_GAIN, LEAST_SHAPE_GAIN = 0.01, 1e-4
#: A column is distinguishable if more than this share of its norm is independent of the others.
DISTINCT = 0.02
#: Standard errors that a law must gain which replaces friction that every drive has: even if a short log does not need it, or
#: another law can replace it there, it is needed in faster motion.
SURE_CHANGE = 2.0
#: A spring must gain this many standard errors and lower the squared held-out error by more than this part, and its torque must
#: vary by this share of its joint's: a spring is a statement about the mechanics of the axis. Smaller effects arise by chance,
#: from unmodelled friction or from what the URDF's geometry lacks, and grow beyond the positions of the data.
SURE_SPRING, MOST_OF_IT, LEAST_SPRING = 2.0, 0.5, 0.02
#: Largest plausible share of the load that is lost in gears; its standard error must be below a tenth of this.
MOST_LOST = 0.5
#: Largest friction at low speed over that at the fastest trained speed. Static friction of lubricated contacts is up to about
#: twice the sliding friction; a higher peak explains the few samples near reversals by chance.
MOST_AT_LOW_SPEED = 3.0
#: Number of speeds per direction at which friction must be dissipative; share of the largest value that counts as rounding.
_SPEEDS, _ROUNDING = 8, 1e-9
#: Ridge of the sub-models, a share of each column's square; relative tolerance for the rank of the common columns in a fold.
RIDGE, _CUT = 1e-12, 1e-9

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
            inverse = np.where(values > _CUT, 1.0 / np.maximum(values, _CUT), 0.0)
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
        seen = singular > _CUT * singular.max(initial=0.0)
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

    def focus(self, others: Sequence[int], candidates: Sequence[int], own: Sequence[int] | IntArray) -> Focus:
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
        return Focus(eliminated(S_train, B), S_held, S_own, self.norms[index[o:]], self.rows)


@dataclass(frozen=True, eq=False)
class Focus:
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
    _known_own: dict[Columns, Array] = field(default_factory=dict)

    def error(self, chosen: Columns) -> tuple[Array, Array]:
        """Returns the squared whitened error of some columns, and its part in the joint's own rows, shape (folds,) each."""
        if chosen not in self._known_own:
            self._known_own[chosen] = self._errors([chosen], self.S_own)[0]
        return self.errors([chosen])[:, 0], self._known_own[chosen]

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


def visible_springs(wide: WideModel, statistics: StatisticSet, weights: Mapping[str, float], axis: int) -> dict[Key, Array]:
    """Returns the springs among a joint's candidates whose varying torque the bodies and an offset cannot explain.

    A spring's constant torque is that of an offset, which a joint has anyway, and which on a vertical slide is the weight. The
    columns of a balancer are nearly collinear in a small motion: their weakest combination is decisive, of which more than
    :data:`.DISTINCT` must be independent.

    Args:
        weights: Row group → weight [1/unit of torque].

    Returns:
        Matrix M per spring, shape (r, k), such that for parameters x ``‖M x‖`` is the standard deviation of the spring's torque
        over the root mean square of the joint's torque.
    """
    laws = wide.candidates[axis]
    offset = next((wide.columns[list(law.at)] for law in laws if law.key == (Offset.name, "joint")), None)
    springs = {law.key: wide.columns[list(law.at)] for law in laws if law.law.conservative and offset is not None}
    alone = {layout.group: float(layout.joint == axis) for layout in statistics.layouts}
    visible = {}
    for key, columns in springs.items():
        rigid, own = np.split(
            statistics.stacked(weights, np.concatenate([wide.common, offset, columns]))[:, :-1], [-len(columns)], axis=1
        )
        varying = orthogonal_part(own, rigid[:, -1:], _CUT)
        moved = np.linalg.norm(varying, axis=0) > _CUT * np.linalg.norm(own, axis=0)
        if not moved.any():
            continue
        apart = orthogonal_part(own[:, moved], rigid, _CUT) / np.linalg.norm(varying[:, moved], axis=0)
        if np.linalg.svd(apart, compute_uv=False)[-1] >= DISTINCT:
            factor = statistics.stacked(alone, np.concatenate([offset, columns]))
            effort = positive(float(np.linalg.norm(factor[:, -1])))
            visible[key] = orthogonal_part(factor[:, 1:-1], factor[:, :1]) / effort
    return visible


class JointSearch:
    """Search at one joint.

    Args:
        focus: Sub-models in the joint's candidate columns.
        candidates: The candidates.
        usual_side: Side of the friction that every drive has.
        trained: By side, the range of speed and load of the axis: there, and beyond, friction must dissipate.
        springs: The springs that the data tell from gravity, and their varying torques (:func:`.visible_springs`).
        few: Whether the joint reverses too rarely for friction laws with many columns.
    """

    def __init__(
        self,
        focus: Focus,
        candidates: Sequence[Candidate],
        usual_side: str = "joint",
        trained: Mapping[str, Trained] | None = None,
        springs: Mapping[Key, Array] | None = None,
        few: bool = False,
    ) -> None:
        self.focus, self.candidates, self.trained, self.springs, self.few = focus, candidates, trained or {}, springs or {}, few
        ends = np.cumsum([0, *(len(law.at) for law in candidates)]).tolist()
        self.at = {law: tuple(range(*span)) for law, span in zip(candidates, pairwise(ends), strict=True)}
        self.single = [law for law in candidates if len(law.at) == 1]
        self.usual = {(name, usual_side) for name in OF_EVERY_DRIVE}

    def run(self, laws: Laws, *, many: bool = False) -> Laws:
        """Searches from given laws until no step improves them; no set of laws is visited twice.

        Losses are relative to the error with a law, gains to that without it, so that where folds differ the search may go in
        a circle. Of the sets in it, the one with the lowest held-out error is returned.

        Args:
            many: Whether laws with many columns are candidates.
        """
        visited, returned = [laws], list[int]()  # where a step would have returned to
        for _ in range(len(self.candidates) + 1):
            for new in (step for step in self._steps(visited[-1], many) if step is not None):
                if new not in visited:
                    visited.append(new)
                    break
                returned.append(visited.index(new))
            else:
                break
        circle = visited[min(returned) : -1] if returned else []
        sound = [laws for laws in circle if not self.violations(laws)]
        return min((visited[-1], *sound), key=lambda laws: float(self.focus.error(self._columns(laws))[0].sum()))

    def _steps(self, laws: Laws, many: bool) -> Iterator[Laws | None]:
        """The next laws by each kind of step, in the order in which they are tried; None where a kind offers none."""
        # drop a law that is impossible, or a spring without effect
        bad = self.violations(laws) or self._negligible(laws)
        yield self._without(laws, bad[0]) if bad else None
        # add a law of one column
        yield self._best(laws, self._added(laws))
        # exchange one for another
        single = [self._without(laws, key) for key, law in laws.items() if len(law.at) == 1]
        yield self._best(laws, [new for fewer in single for new in self._added(fewer)])
        # drop a law that is not needed
        yield self._best(laws, self._fewer(laws))
        # add a spring, if there is none
        if not any(law.law.conservative for law in laws.values()):
            yield self._best(laws, [self._with(laws, law) for law in self.candidates if law.key in self.springs])
        # add a friction law of many columns
        if many and not self.few:
            wide = [law for law in self.candidates if len(law.at) > 1 and not law.law.conservative and law.key not in laws]
            yield self._best(laws, [self._with(laws, law) for law in wide])
        # add or drop a law and adapt all others to it
        yield self._two_steps(laws)

    def _best(self, laws: Laws, news: Sequence[Laws]) -> Laws | None:
        """The laws of the largest gain that may follow."""
        gains, errors = self.gains(laws, news)
        for k in map(int, np.argsort(-gains)):
            if gains[k] > self.needed(laws, news[k], float(errors[k])) and not self._impossible(laws, news[k]):
                return news[k]
        return None

    def _two_steps(self, laws: Laws) -> Laws | None:
        """Adds or removes a law, adapts the shapes of the others to it, and only then removes laws that are not needed.

        Similar laws compensate for each other while the shapes are wrong, a local optimum that single steps do not leave.
        """
        starts = [self._without(laws, key) for key in laws if key[0] not in REPLACES]
        added = self._added(laws)
        best: dict[Key, Laws] = {}
        for k in np.argsort(-self.gains(laws, added)[0], kind="stable"):
            best.setdefault(next(reversed(added[k])), added[k])
        for new in (*starts, *best.values()):
            fewer: Laws | None = new
            while fewer is not None:
                new = self._reshaped(fewer)
                fewer = self._best(new, self._fewer(new))
            if set(new) != set(laws) and not self.violations(new):
                gain, error = (float(x[0]) for x in self.gains(laws, [new]))
                if gain > max(self.needed(laws, new, error), -LEAST_GAIN):
                    return new
        return None

    def _reshaped(self, laws: Laws) -> Laws:
        """The same laws with the shapes of the largest gain, changed one after the other."""
        for _ in self.candidates:
            news = [{**laws, law.key: law} for law in self.single if law.key in laws and laws[law.key] is not law]
            gain, _ = self.gains(laws, news)
            if gain.max(initial=0.0) <= LEAST_SHAPE_GAIN:
                break
            laws = news[int(np.argmax(gain))]
        return laws

    def _with(self, laws: Laws, law: Candidate) -> Laws:
        """The laws with another one, which replaces those that it contains."""
        contained = REPLACES.get(law.key[0], ())
        return {**{key: other for key, other in laws.items() if key[0] not in contained}, law.key: law}

    def _without(self, laws: Laws, key: Key) -> Laws:
        """The laws without one; those that it contains return."""
        back = [(name, key[1]) for name in REPLACES.get(key[0], ())]
        returned = {key: next(law for law in self.candidates if law.key == key) for key in back}
        return {**{other: law for other, law in laws.items() if other != key}, **returned}

    def _fewer(self, laws: Laws) -> list[Laws]:
        return [self._without(laws, key) for key in laws if key not in self.usual]

    def _added(self, laws: Laws) -> list[Laws]:
        """The laws with one more of one column: distinguishable from the present ones, and a lost load is measurable."""
        contained = {name for key in laws for name in REPLACES.get(key[0], ())}
        options = [law for law in self.single if law.key not in laws and law.key[0] not in contained]
        return [self._with(laws, law) for law in self._measurable(laws, options)]

    def _measurable(self, laws: Laws, options: Sequence[Candidate]) -> list[Candidate]:
        share, length = self.focus.distinct(self._columns(laws), [self.at[law][0] for law in options])
        needed = [10.0 / MOST_LOST if law.law.loaded else 0.0 for law in options]
        return [law for law, s, n, least in zip(options, share, length, needed, strict=True) if s > DISTINCT and n > least]

    def _columns(self, laws: Laws) -> Columns:
        return tuple(chain.from_iterable(map(self.at.__getitem__, laws.values())))

    def gains(self, old: Laws, news: Sequence[Laws]) -> tuple[Array, Array]:
        """Returns mean gains over folds, as fractions of the joint's own error, and their standard errors, shape (news,)."""
        whole, own = self.focus.error(self._columns(old))
        gained = (whole[:, None] - self.focus.errors([self._columns(laws) for laws in news])) / positive(own)[:, None]
        return gained.mean(axis=0), standard_error(gained)

    def needed(self, old: Laws, new: Laws, error: float) -> float:
        """Returns the gain that new laws need: √k standard errors with k more columns, at least :data:`LEAST_GAIN`.

        With fewer columns, they may lose as much, unless friction that every drive has is omitted. For this, and for springs,
        more is needed.

        Args:
            error: Standard error of the gain.
        """
        changed = set(old) ^ set(new)
        changed -= {(name, key[1]) for key in new for name in REPLACES.get(key[0], ())}
        if not changed:
            return LEAST_SHAPE_GAIN
        springs, usual = bool(changed & set(self.springs)), bool(changed & set(old) & self.usual)
        more = sum(len(law.at) for law in new.values()) - sum(len(law.at) for law in old.values())
        sure = SURE_CHANGE if usual else SURE_SPRING if springs else 1.0
        least = max(LEAST_GAIN, float(np.sqrt(max(abs(more), 1))) * sure * error, MOST_OF_IT if springs else 0.0)
        return -least if more < 0 and not usual else least

    def _impossible(self, old: Laws, new: Laws) -> str:
        """Why laws may not follow others although they gain enough; empty if they may."""
        if (set(new) - set(old)) & set(self._negligible(new)):
            return f"its torque varies by less than {100 * LEAST_SPRING:g} % of the joint's"
        return "needs parameters that cannot be" if self.violations(new) else ""

    def _negligible(self, laws: Laws) -> list[Key]:
        """The springs whose torque hardly varies."""
        springs = [key for key in laws if key in self.springs]
        parameters = self._by_law(laws, self.focus.estimates(self._columns(laws))[0]) if springs else {}
        return [key for key in springs if np.linalg.norm(self.springs[key] @ parameters[key]) < LEAST_SPRING]

    def _by_law(self, laws: Laws, values: Array) -> dict[Key, Array]:
        end = 0
        return {key: values[end : (end := end + len(law.at))] for key, law in laws.items()}

    def violations(self, laws: Laws) -> list[Key]:
        """Returns the laws of an impossible sign or share of the load, or the law responsible for impossible friction."""
        theta, root = self.focus.estimates(self._columns(laws))
        values, errors = (self._by_law(laws, x) for x in (theta, np.linalg.norm(root, axis=1)))
        bad = [
            key
            for key, law in laws.items()
            if (values[key] < -errors[key])[list(law.nonnegative)].any() or (law.law.loaded and values[key][0] > MOST_LOST)
        ]
        responsible = (self._responsible(laws, side, values, root) for side in self.trained) if not bad else ()
        return bad or [key for key in responsible if key is not None][:1]

    def _responsible(self, laws: Laws, side: str, values: Mapping[Key, Array], root: Array) -> Key | None:
        """The law mainly responsible if the friction of one side significantly drives the axis, or is too large.

        A law that the data hardly determine, as a narrow Stribeck peak at speeds between the samples, may be hundreds of times
        the measured torque, or the friction at other speeds. Friction that every drive has is not refused for its size, as most
        samples of a joint that hardly ever moves do not show it; nor are others for being beside it.
        """
        given, sliding = self.trained[side], [law.law for law in laws.values() if law.applied.side == side]
        if not sliding:
            return None
        ranges = [given.mirrored_if_odd([law]) for law in sliding]
        trained = given if given in ranges else ranges[0]  # both directions alike only where all laws are
        speed, _, slope = conditions(trained, _SPEEDS)
        nothing = np.zeros(len(speed))[:, None]
        blocks = {
            key: law_rows(law.law, trained, _SPEEDS) if law.applied.side == side else nothing.repeat(len(law.at), axis=1)
            for key, law in laws.items()
        }
        torques = {key: block @ values[key] for key, block in blocks.items()}
        value, error = np.sum(list(torques.values()), axis=0), np.linalg.norm(np.hstack(list(blocks.values())) @ root, axis=1)
        least = int(np.argmin(value + error))
        if value[least] + error[least] < -_ROUNDING * np.abs(value).max():
            return min(torques, key=lambda key: torques[key][least])
        friction = np.where(slope, -np.inf, value)
        most, fastest = int(np.argmax(friction)), float(friction[np.isin(speed, (trained.low, trained.high))].max())
        allowed = min(MOST_FRICTION * trained.load, MOST_AT_LOW_SPEED * max(fastest, 0.0))
        resist = {key: torque[most] for key, torque in torques.items() if torque[most] > 0 and key not in self.usual}
        together = sum(resist.values())
        if friction[most] > allowed and (together > allowed or friction[most] - together <= allowed):
            return max(resist, key=lambda key: resist[key])
        return None

    def verdict(self, laws: Laws, key: Key) -> tuple[Candidate, float, float, str]:
        """Returns the best version of a law, its gain in addition to the selected ones, the error, and the reason in words."""
        versions = [law for law in self.candidates if law.key == key]
        if key in laws:
            gain, error = (float(x[0]) for x in self.gains(self._without(laws, key), [laws]))
            missed = gain > max(LEAST_GAIN, error) or key not in self.usual
            reason = "missed when it is left out" if missed else "not missed, but kept: every drive has it"
            return laws[key], gain, error, reason
        spring, wide = versions[0].law.conservative, len(versions[0].at) > 1
        container = next((other[0] for other in laws if key[0] in REPLACES.get(other[0], ())), None)
        options = versions if wide else self._measurable(laws, versions)
        reasons = {
            "the data do not tell it from gravity or an offset": spring and key not in self.springs,
            "the joint reverses too rarely for so many parameters": self.few and wide and not spring,
            f"{container} contains it": container is not None,
            "the data do not excite it here": not options,
        }
        for reason, holds in reasons.items():
            if holds:
                return versions[0], 0.0, 0.0, reason
        news = [self._with(laws, law) for law in options]
        gains, errors = self.gains(laws, news)
        k = int(np.argmax(gains))
        gain, error, reason = float(gains[k]), float(errors[k]), "gains too little"
        if gain > self.needed(laws, news[k], error):
            reason = self._impossible(laws, news[k])
        elif spring and gain > max(LEAST_GAIN, SURE_SPRING * error):
            reason = "explains less than half of what remains"
        return options[k], gain, error, reason
