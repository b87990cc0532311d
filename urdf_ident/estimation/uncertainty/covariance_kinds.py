"""The kinds of covariance of the base parameters, computed from the factors or from the rows in order of time.

In order of time: the scatter between repetitions of a motion, and residuals with short autocorrelation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, IntArray, lstsq
from ...model.dynamic_model import DynamicModel
from ...samples import ReadOnly
from ...signals.periods import find_repetition
from ...signals.prepare import PreparedLog
from ...statistics.entries import Statistic
from ...statistics.fit import Fit
from ...statistics.folds import independent_stretches
from ...statistics.least_squares import Solution, leave_one_out_changes, solve
from ...statistics.motions import motions
from ...statistics.pieces import base_rows, row_pieces
from ...statistics.statistic import StatisticSet
from .bands import Spectrum, build_spectrum
from .noise import fit_noise, sandwich, whitened_rows
from .repetitions import lack_of_fit, repetition_count, scatter_covariance, scatter_noise
from .reversals import without_reversals

#: Smallest numbers of repetitions, logs and stretches from which a scatter is estimated.
FEWEST_PERIODS, FEWEST_LOGS, FEWEST_STRETCHES = 6, 3, 4
#: Part of the data determines a direction if it contains at least this share of the information on it.
WELL_DETERMINED = 0.1
#: Number of bootstrap samples.
DRAWS = 400


@dataclass(frozen=True, eq=False)
class Covariance(ReadOnly):
    """Covariance of the base parameters.

    Attributes:
        matrix: Shape (b, b).
        kind: Description of the method.
        dof: Degrees of freedom of the standard errors, a number, or shape (b,).
    """

    matrix: Array
    kind: str
    dof: float | Array

    @property
    def spread(self) -> Array:
        """Standard errors, shape (b,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.matrix), 0.0)))


class Covariances:
    """The covariances of a fit, of every kind, and the intermediate results that they share.

    Args:
        fit: The fit.
        statistics: Its factors, by time block.
        model: Its model, for rows in order of time.
        logs: Its logs, likewise.
        solution: The solution if it is not that of the factors alone.
    """

    def __init__(
        self,
        fit: Fit,
        statistics: StatisticSet,
        model: DynamicModel | None = None,
        logs: Sequence[PreparedLog] = (),
        solution: Solution | None = None,
    ) -> None:
        self.fit, self.statistics, self.model, self.logs = fit, statistics, model, logs
        self.weights = fit.row_weights or fit.weights
        self._given = solution
        #: Elastic rows are linear only in their factors (compliance form), not sample by sample.
        self.has_rows = bool(logs) and model is not None and model.is_rigid

    @cached_property
    def solution(self) -> Solution:
        """The given solution, or that of the factors alone."""
        return self._given or solve(self.statistics.stacked(self.weights, self.fit.base.independent), self.fit.rows)

    @cached_property
    def units(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Stretches of time that do not repeat each other."""
        return independent_stretches(self.statistics)

    @property
    def stretches(self) -> bool:
        """Whether there are enough of them."""
        return len(self.units) >= FEWEST_STRETCHES

    @cached_property
    def spectrum(self) -> Spectrum:
        """Rows by frequency."""
        return build_spectrum(self.need_rows("ar"), self.logs)

    @cached_property
    def rest(self) -> StatisticSet:
        """The statistics without the samples near reversals."""
        return without_reversals(self.need_rows("auto"), self.logs, motions(self.statistics))

    def on(self, statistics: StatisticSet) -> Covariances:
        """The same estimate from part of the data, changed only in directions that it determines (:data:`WELL_DETERMINED`).

        Laws that differ only at reversals (Coulomb friction and presliding) are not distinguishable without them: along such
        a direction the change of the estimate would be unbounded and independent of the model's errors.
        """
        factor = statistics.stacked(self.weights, self.fit.base.independent)
        X, y, start = factor[:, :-1], factor[:, -1], self.solution.estimate
        _, singular, turned = np.linalg.svd(X @ self.solution.root, full_matrices=False)
        kept = singular**2 >= WELL_DETERMINED
        root = self.solution.root @ (turned[kept].T / singular[kept])
        estimate = start + root @ (root.T @ (X.T @ (y - X @ start)))
        solution = replace(self.solution, estimate=estimate, root=root)
        return Covariances(replace(self.fit, params=estimate), statistics, self.model, self.logs, solution)

    @property
    def averaged(self) -> bool:
        """Whether all rows are averages over periods, with their scatter."""
        return self.has_rows and all(log.conditioned.averaged is not None for log in self.logs)

    def lack_of_fit(self) -> float:
        """Variance of the residual over that of the scatter between averaged periods."""
        return lack_of_fit(self.need_rows("period"), self.logs, self.fit)

    def by_scatter(self, lack_of_fit: float = 1.0) -> Covariance:
        """Covariance from the spectrum of the scatter between averaged periods, enlarged by the lack of fit.

        Args:
            lack_of_fit: From :meth:`lack_of_fit`; below 1 it has no effect.

        Raises:
            EstimationError: The rows cannot be computed again.
        """
        model = self.need_rows("period")
        spectrum = build_spectrum(model, self.logs)
        matrix, dof = scatter_covariance(spectrum, scatter_noise(model, self.logs, spectrum), self.fit, self.solution)
        words = f"spectrum of the scatter between {repetition_count(self.logs)} periods"
        return Covariance(max(1.0, lack_of_fit) * matrix, words, dof)

    def need_rows(self, kind: str) -> DynamicModel:
        """The model, if the rows can be computed again; an error otherwise.

        Raises:
            EstimationError: There are only factors, or the joints are elastic.
        """
        if self.model is None or not self.has_rows:
            got = "elastic joints" if self.logs else f"the factors of method {self.fit.method} alone"
            raise EstimationError(
                f"covariance '{kind}' needs the rows in order of time",
                got=got,
                remedy="use auto, jackknife, bootstrap or log; in Python give model and logs",
            )
        return self.model

    @cached_property
    def _scores(self) -> tuple[Array, Array]:
        """Normal matrices (u, r, r) and scores (u, r) of the stretches of time."""
        unit = {block: k for k, blocks in enumerate(self.units) for block in blocks}
        r = self.solution.root.shape[1]
        matrices, scores = np.zeros((len(self.units), r, r)), np.zeros((len(self.units), r))
        for group, entries in self.statistics.of_group.items():
            layout = self.statistics.layout(group)
            own: list[list[Statistic]] = [[] for _ in self.units]
            for entry in entries:
                own[unit[entry.log, entry.block]].append(entry)
            first, turned = len(layout.instruments), np.zeros((layout.width, r + 1))
            turned[first : first + len(layout.columns) + 1] = self.weights[group] * self.fit.base.turned(
                layout.columns, self.solution.root, self.fit.params
            )
            small = entries[0].times(turned)
            for k, some in enumerate(own):
                if some:
                    rows = np.vstack([entry.factor for entry in some]) @ small
                    matrices[k] += rows[:, :r].T @ rows[:, :r]
                    scores[k] += rows[:, :r].T @ rows[:, r]
        return matrices, scores

    def _left_out(self, matrices: Array, scores: Array) -> Array:
        """Jackknife covariance, leaving out one unit after the other."""
        moves = leave_one_out_changes(matrices, scores)
        return self.solution.sandwich((len(moves) - 1) / len(moves) * moves.T @ moves)

    @cached_property
    def jackknife(self) -> Covariance:
        """Jackknife over stretches of time."""
        if not self.stretches:
            raise EstimationError("too few blocks of time for a jackknife", got=len(self.units), expected=">= 4")
        kind = f"jackknife over {len(self.units)} blocks of time"
        return Covariance(self._left_out(*self._scores), kind, len(self.units) - 1.0)

    def by_log(self) -> Covariance:
        """Jackknife over motions (logs with their repetitions)."""
        moves = motions(self.statistics)
        if len(moves) < 2:
            got = f"{len(self.statistics.logs)} of one motion"
            raise EstimationError(
                "standard errors between logs need several logs of different motions", got=got, expected=">= 2"
            )
        motion = {log: k for k, logs in enumerate(moves) for log in logs}
        begins = np.unique([motion[unit[0][0]] for unit in self.units], return_index=True)[1]
        return Covariance(
            self._left_out(*(np.add.reduceat(x, begins) for x in self._scores)),
            f"leaving out each of {len(moves)} logs",
            len(moves) - 1.0,
        )

    def bootstrap(self, seed: int) -> Covariance:
        """Bootstrap over stretches of time, drawn with replacement.

        Raises:
            EstimationError: There are too few blocks of time.
        """
        if not self.stretches:
            raise EstimationError("too few blocks of time for a bootstrap", got=len(self.units), expected=">= 4")
        matrices, scores = self._scores
        rng = np.random.default_rng(seed)
        draws = rng.multinomial(len(self.units), np.full(len(self.units), 1 / len(self.units)), DRAWS)
        moves = [lstsq(np.einsum("u,uij->ij", draw, matrices), draw @ scores, rcond=1e-6)[0] for draw in draws]
        kind = f"bootstrap over {len(self.units)} blocks of time, {DRAWS} draws"
        return Covariance(self.solution.sandwich(np.cov(np.array(moves).T)), kind, len(self.units) - 1.0)

    def autoregressive(self) -> Covariance:
        """Covariance by the model of autocorrelated noise."""
        spectrum = self.spectrum
        rows = whitened_rows(spectrum, self.fit, self.solution)
        noise = fit_noise(spectrum, rows)
        kind = f"autocorrelated noise by REML ({noise.describe()})" if noise.coloured else "uncorrelated noise by REML"
        return Covariance(sandwich(rows, self.solution, self.weights, noise), kind, self.fit.dof)

    @cached_property
    def any_period(self) -> Period | None:
        """The common period of the logs, if it is repeated often enough."""
        found = find_period(self.logs)
        return found if found is not None and found.count >= FEWEST_PERIODS else None

    def period(self) -> Period:
        """The common period of the logs."""
        found = find_period(self.logs)
        if found is None or found.count < 2:
            raise EstimationError(
                "the motion does not repeat: there is no scatter between periods",
                where=", ".join(self.statistics.logs),
                remedy="use covariance: auto, or record several periods of one motion",
            )
        return found

    def by_period(self, period: Period) -> Covariance:
        """Covariance from the scatter of the scores between repetitions."""
        middle, count = between_repetitions(self.need_rows("period"), self.logs, self.fit, self.solution, period)
        kind = f"scatter between {count} repetitions of {period.seconds:.4g} s"
        return Covariance(self.solution.sandwich(middle), kind, count - 1.0)

    def newey_west(self) -> Covariance:
        """Newey-West covariance, with Bartlett weights."""
        lags = int(4 * (self.fit.rows / len(self.statistics.groups) / 100) ** (2 / 9))
        middle = with_short_memory(self.need_rows("hac"), self.logs, self.fit, self.solution, lags)
        return Covariance(self.solution.sandwich(middle), f"Newey-West, {lags} lags", self.fit.dof)


@dataclass(frozen=True, eq=False)
class Period:
    """The common period of some logs.

    Attributes:
        seconds: Its length [s].
        starts: Log → time of the first whole period on the log's clock [s] and number of whole periods.
    """

    seconds: float
    starts: Mapping[str, tuple[float, int]]

    @property
    def count(self) -> int:
        """Number of whole periods."""
        return sum(number for _, number in self.starts.values())

    def index(self, log: str, time: Array) -> IntArray:
        """Returns the index of the period of each instant, shape (N,): 0, 1, …; −1 outside whole periods.

        Args:
            time: Times on the log's clock, shape (N,) [s].
        """
        start, number = self.starts[log]
        k = np.floor((np.asarray(time) - start) / self.seconds + 1e-9).astype(np.intp)
        return np.where((k >= 0) & (k < number), k, -1)


def find_period(logs: Sequence[PreparedLog]) -> Period | None:
    """Finds the period that all logs repeat.

    Returns:
        The period, or None if a log does not repeat itself or the periods differ.
    """
    found, starts = [], {}
    for log in logs:
        if len(log.segments) != 1:
            return None
        segment = log.segments[0]
        repetition = find_repetition(segment.q, fewest=2)
        if repetition is None:
            return None
        found.append(repetition.length / segment.rate)
        starts[log.name] = (segment.start + repetition.first / segment.rate, repetition.count)
    if not found or max(found) > 1.005 * min(found):
        return None
    return Period(float(np.mean(found)), starts)


def between_repetitions(
    model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit, solution: Solution, period: Period
) -> tuple[Array, int]:
    """Returns the covariance of the total score from the scatter between repetitions.

    Args:
        solution: The solution that defines the r coordinates.

    Returns:
        Covariance of the score of all rows, shape (r, r), and the number of repetitions.
    """
    totals: dict[tuple[str, int], Array] = {}
    inside = 0
    for log, time, score in _scores(model, logs, fit, solution):
        index = period.index(log, time)
        inside += int((index >= 0).sum())
        for k in np.unique(index[index >= 0]):
            totals[log, int(k)] = totals.get((log, int(k)), 0.0) + score[index == k].sum(axis=0)
    scores = np.array(list(totals.values()))
    count, centred = len(scores), scores - scores.mean(axis=0)
    # Rows outside whole periods contribute to the estimate too and are assumed to scatter in the same way.
    return (fit.rows / max(inside, 1)) * count / (count - 1.0) * centred.T @ centred, count


def with_short_memory(model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit, solution: Solution, lags: int) -> Array:
    """Returns the Newey-West covariance of the total score: products of scores up to some lag, with Bartlett weights.

    Args:
        solution: The solution that defines the r coordinates.
        lags: Largest lag, in rows.

    Returns:
        Covariance of the score of all rows, shape (r, r).
    """
    r = solution.root.shape[1]
    middle = np.zeros((r, r))
    for _, _, score in _scores(model, logs, fit, solution):
        middle += score.T @ score
        for lag in range(1, min(lags, len(score) - 1) + 1):
            cross = score[lag:].T @ score[:-lag]
            middle += (1 - lag / (lags + 1)) * (cross + cross.T)
    return middle


def _scores(
    model: DynamicModel, logs: Sequence[PreparedLog], fit: Fit, solution: Solution
) -> Iterator[tuple[str, Array, Array]]:
    """Yields log, times [s] and weighted scores in the solution's coordinates, per piece and row group."""
    weights = fit.row_weights or fit.weights
    for piece in row_pieces(model, logs):
        for group, (index, X, y) in zip(model.groups, base_rows(piece, model, fit.base), strict=True):
            error = y - X @ fit.params[index]
            yield piece.log, piece.time, weights[group.name] ** 2 * error[:, None] * (X @ solution.root[index])
