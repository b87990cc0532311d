"""Standard errors that remain valid for autocorrelated residuals and model errors.

The model-based covariance assumes that all rows are independent. Rows of one log are not: their noise is autocorrelated, and
model errors recur with the motion. There are several estimates of the covariance, all of the same weighted estimate:

- ``model``: independent residuals;
- ``hac``: Newey and West, residuals with short autocorrelation;
- ``ar``: a model of autocorrelated noise, by REML (:mod:`.noise`), valid if the noise is stationary; used by ``auto``;
- ``jackknife``: leaves out one stretch of time after the other and refits; ``bootstrap`` resamples stretches instead. They
  need no model of the noise, and account for unmodelled friction;
- ``period``: the scatter between repetitions of one motion, averaged (:mod:`.repetitions`) or not; ``log``:
  leaves out one log after the other.

``auto`` chooses one of them, and adds the shift of the estimate if the samples near reversals are omitted (:mod:`.reversals`),
an error that causes no scatter.

All but ``hac`` work on factors, in the coordinates of the solution's root, where the normal matrix is the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.prepare import PreparedLog
from ...errors import EstimationError, check_known
from ...linalg import Array, lstsq
from ...model.dynamic_model import DynamicModel
from ...model.elasticity import ElasticModel
from ...parallel import shared
from ...samples import ReadOnly
from ...statistics.distributions import chi_square_quantile
from ...statistics.entries import Statistic
from ...statistics.fit import Fit
from ...statistics.folds import independent_stretches
from ...statistics.kept_rows import KeptRows
from ...statistics.least_squares import Solution, leave_one_out_changes, solve
from ...statistics.motions import motions, start_motions
from ...statistics.statistic import StatisticSet
from .bands import Spectrum, build_spectrum, start_spectrum
from .noise import fit_noise, sandwich, whitened_rows
from .repetitions import lack_of_fit, repetition_count, scatter_covariance, scatter_noise
from .reversals import excess_shift, without_reversals
from .score_covariance import Period, between_repetitions, find_period, with_short_memory

KINDS = ("auto", "model", "hac", "ar", "jackknife", "bootstrap", "period", "log")
#: The noise model and the jackknife agree if their standard errors differ by less than this factor (median).
AGREEMENT = 1.5
#: The scatter between averaged periods explains the residual if the variance of the residual is at most this many times larger.
EXPLAINED = 1.5
#: Smallest numbers of repetitions, logs and stretches from which a scatter is estimated.
FEWEST_PERIODS, FEWEST_LOGS, FEWEST_STRETCHES = 6, 3, 4
#: Significance level at which logs disagree on a single parameter.
CHANCE = 0.001
#: Shifts by more than this many standard errors are reported.
MOVED = 2.0
#: Part of the data determines a direction if it contains at least this share of the information on it.
TOLD = 0.1
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


def with_covariance(
    fit: Fit,
    statistics: StatisticSet,
    kind: str = "auto",
    *,
    model: DynamicModel | None = None,
    logs: Sequence[PreparedLog] = (),
    seed: int = 0,
) -> Fit:
    """Returns the same estimate with standard errors of another kind.

    Args:
        statistics: The statistics of the fit, by time block.
        kind: One of :data:`KINDS`; "auto" chooses by the autocorrelation of the residuals, repetitions and number of logs.
        model: The model of the rows; without it, only kinds that need no second pass over the data.
        logs: The prepared logs of the statistics.
        seed: Seed of the bootstrap.

    Returns:
        The fit.

    Raises:
        EstimationError: Unknown kind, or one that needs missing logs, repetitions or stretches.
    """
    return start_covariance(fit, statistics, kind, model=model, logs=logs, seed=seed)()


def start_covariance(
    fit: Fit, statistics: StatisticSet, kind: str = "auto", *, seed: int = 0, **options: Any
) -> Callable[[], Fit]:
    """Starts :func:`with_covariance`; workers, if there are any, compute in the background.

    Args:
        statistics, kind, seed, options: As for :func:`with_covariance`.

    Returns:
        A function that waits for the fit and returns it.

    Raises:
        EstimationError: Unknown kind; other errors are raised by the returned function.
    """
    check_known("estimation.covariance", kind, KINDS, EstimationError)
    if kind == "model":
        return lambda: fit
    work = _CovarianceWork(fit, statistics, **options)
    if kind == "auto" and shared() and work.has_rows and work.stretches and not work.averaged:
        _ = work.any_period or work.spectrum, work.rest
    return partial(_finished, work, kind, seed)


def _finished(work: _CovarianceWork, kind: str, seed: int) -> Fit:
    fit = work.fit
    if kind == "auto":
        found = _automatic(work)
    elif kind in ("jackknife", "bootstrap"):
        found = work.jackknife if kind == "jackknife" else work.bootstrap(seed)
    elif kind == "log":
        found = work.by_log()
    elif kind == "period":
        found = work.by_scatter() if work.averaged else work.by_period(work.period())
    elif kind == "ar":
        found = work.autoregressive()
    else:
        found = work.newey_west()
    return replace(
        fit, covariance=found.matrix, covariance_kind=found.kind, error_dof=np.broadcast_to(found.dof, fit.params.shape)
    )


def covariance_at(
    fit: Fit, statistics: StatisticSet, solution: Solution, *, model: DynamicModel, logs: Sequence[PreparedLog], complete: bool
) -> Covariance:
    """Returns the "auto" covariance of an estimate that depends on more than these rows, or on only some columns.

    Args:
        statistics: The rows whose noise is propagated.
        solution: Its root is the sensitivity of the estimate to the rows; zero rows belong to parameters without any.
        model: The model of the rows.
        logs: The prepared logs of the statistics.
        complete: Whether these rows alone determine the estimate; if not, only the jackknife over stretches is used.

    Returns:
        The part of the covariance due to the noise of these rows.
    """
    work = _CovarianceWork(fit, statistics, model, logs, solution)
    if complete:
        return _automatic(work)
    return work.jackknife if work.stretches else Covariance(fit.covariance, fit.covariance_kind, fit.dof)


def _automatic(work: _CovarianceWork) -> Covariance:
    """Scatter between repetitions, else a noise model that the jackknife confirms, else the jackknife; enlarged if logs
    disagree, or if the friction model fails at reversals."""
    if not work.stretches:
        return Covariance(work.fit.covariance, work.fit.covariance_kind + ": too short for any other", work.fit.dof)
    found, period, lack = work.jackknife, None, np.inf
    if work.has_rows:
        period, lack = work.any_period, work.lack() if work.averaged else np.inf
        if lack <= EXPLAINED:
            found = work.by_scatter(lack)
        elif period is not None:
            found = work.by_period(period)
        else:
            noise = work.autoregressive()
            ratio = float(np.median(noise.spread[work.fit.seen] / found.spread[work.fit.seen]))
            if 1 / AGREEMENT <= ratio <= AGREEMENT:
                found = replace(noise, kind=f"{noise.kind}, confirmed by a jackknife over blocks of time")
            else:
                found = replace(found, kind=f"{found.kind}: no stationary noise explains the residuals (ratio {ratio:.2g})")
            if work.averaged:
                words = f"; the scatter between periods explains {100 / lack:.2g} % of the residual, the model lacks the rest"
                found = replace(found, kind=found.kind + words)
    if len(motions(work.statistics)) >= FEWEST_LOGS:
        found = _judged_by_logs(found, work.by_log(), work.fit.seen)
    return _with_reversals(found, work) if lack > EXPLAINED and work.has_rows else found


def _with_reversals(found: Covariance, work: _CovarianceWork) -> Covariance:
    """Errors enlarged by the shift of the estimate without samples near reversals, as far as it exceeds chance."""
    if work.kept:
        work.kept.clear()  # frees the memory for the next statistics
    rest = work.on(work.rest())
    try:
        within, without = work.jackknife.spread, rest.jackknife.spread
    except EstimationError:
        return found
    shift = np.where(work.fit.seen, excess_shift(rest.solution.estimate - work.solution.estimate, within, without), 0.0)
    moved = int((np.abs(shift) > MOVED * found.spread).sum())
    kind = found.kind
    if moved:
        kind += f"; the model fails near reversals: without them {moved} parameters move by more, which is counted as an error"
    return replace(found, matrix=found.matrix + np.outer(shift, shift), kind=kind)


def _judged_by_logs(within: Covariance, between: Covariance, seen: NDArray[np.bool_]) -> Covariance:
    """Errors from within the logs, enlarged if the logs disagree by more than chance.

    With few logs the disagreement on one parameter is a poor estimate of its error, but the median over all parameters is
    a good one of a common factor (Birge). A parameter with a significantly larger disagreement keeps its error between logs.
    """
    logs = int(between.dof) + 1
    ratio = np.where(seen & (within.spread > 0), between.spread / np.maximum(within.spread, 1e-300), 1.0)
    common = max(1.0, float(np.median(ratio[seen]) / np.sqrt(chi_square_quantile(0.5, between.dof) / between.dof)))
    alone = ratio > common * np.sqrt(chi_square_quantile(1 - CHANCE, between.dof) / between.dof)
    scale = np.where(alone, ratio, common)
    if common == 1.0 and not alone.any():
        return replace(within, kind=f"{within.kind}; {logs} logs agree with it")
    words = f"{within.kind}, enlarged because {logs} logs disagree by more (times {common:.2g}"
    words += f"; {int(alone.sum())} parameters by themselves)" if alone.any() else ")"
    return Covariance(within.matrix * np.outer(scale, scale), words, np.where(alone, between.dof, within.dof))


class _CovarianceWork:
    """A fit and the intermediate results that its covariances share."""

    def __init__(
        self,
        fit: Fit,
        statistics: StatisticSet,
        model: DynamicModel | None = None,
        logs: Sequence[PreparedLog] = (),
        solution: Solution | None = None,
        kept: KeptRows | None = None,
    ) -> None:
        self.fit, self.statistics, self.model, self.logs, self.kept = fit, statistics, model, logs, kept
        self.weights = fit.row_weights or fit.weights
        self.solution = solution or solve(statistics.stacked(self.weights, fit.base.independent), fit.rows)
        self.units = independent_stretches(statistics)
        self.stretches = len(self.units) >= FEWEST_STRETCHES
        #: Elastic rows are linear only in their factors (compliance form), not sample by sample.
        self.has_rows = bool(logs) and model is not None and not isinstance(model, ElasticModel)

    @cached_property
    def spectrum(self) -> Callable[[], Spectrum]:
        """Starts the spectrum; the returned function waits for it."""
        return start_spectrum(self.need_rows("ar"), self.logs, self.kept)

    @cached_property
    def rest(self) -> Callable[[], StatisticSet]:
        """Starts the statistics without the samples near reversals; the returned function waits for them."""
        return without_reversals(self.need_rows("auto"), self.logs, start_motions(self.statistics))

    def on(self, statistics: StatisticSet) -> _CovarianceWork:
        """The same estimate from part of the data, changed only in directions that it determines well (:data:`TOLD`).

        Laws that differ only at reversals (Coulomb friction and presliding) are not distinguishable without them: along such
        a direction the change of the estimate would be unbounded and independent of the model's errors.
        """
        factor = statistics.stacked(self.weights, self.fit.base.independent)
        X, y, start = factor[:, :-1], factor[:, -1], self.solution.estimate
        _, told, turned = np.linalg.svd(X @ self.solution.root, full_matrices=False)
        kept = told**2 >= TOLD
        root = self.solution.root @ (turned[kept].T / told[kept])
        estimate = start + root @ (root.T @ (X.T @ (y - X @ start)))
        solution = replace(self.solution, estimate=estimate, root=root)
        return _CovarianceWork(replace(self.fit, params=estimate), statistics, self.model, self.logs, solution)

    @property
    def averaged(self) -> bool:
        """Whether all rows are averages over periods, with their scatter."""
        return self.has_rows and all(log.conditioned.averaged is not None for log in self.logs)

    def lack(self) -> float:
        """Variance of the residual over that of the scatter between averaged periods."""
        return lack_of_fit(self.need_rows("period"), self.logs, self.fit)

    def by_scatter(self, lack: float = 1.0) -> Covariance:
        """Covariance from the spectrum of the scatter between averaged periods, enlarged by the lack of fit."""
        model = self.need_rows("period")
        spectrum = build_spectrum(model, self.logs)
        noise = scatter_noise(model, self.logs, spectrum)
        matrix, dof = scatter_covariance(spectrum, noise, self.fit, self.solution)
        words = f"spectrum of the scatter between {repetition_count(self.logs)} periods"
        return Covariance(max(1.0, lack) * matrix, words, dof)

    def need_rows(self, kind: str) -> DynamicModel:
        """The model, if the rows can be computed again; an error otherwise."""
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

    def _matrix(self, middle: Array) -> Array:
        return np.asarray(self.solution.root @ middle @ self.solution.root.T)

    def _left_out(self, matrices: Array, scores: Array) -> Array:
        """Jackknife covariance, leaving out one unit after the other."""
        moves = leave_one_out_changes(matrices, scores)
        return self._matrix((len(moves) - 1) / len(moves) * moves.T @ moves)

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
        """Bootstrap over stretches of time, drawn with replacement."""
        if not self.stretches:
            raise EstimationError("too few blocks of time for a bootstrap", got=len(self.units), expected=">= 4")
        matrices, scores = self._scores
        rng = np.random.default_rng(seed)
        draws = rng.multinomial(len(self.units), np.full(len(self.units), 1 / len(self.units)), DRAWS)
        moves = []
        for draw in draws:
            normal = np.einsum("u,uij->ij", draw, matrices)
            moves.append(lstsq(normal, draw @ scores, rcond=1e-6)[0])
        kind = f"bootstrap over {len(self.units)} blocks of time, {DRAWS} draws"
        return Covariance(self._matrix(np.cov(np.array(moves).T)), kind, len(self.units) - 1.0)

    def autoregressive(self) -> Covariance:
        """Covariance by the model of autocorrelated noise."""
        spectrum = self.spectrum()
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
        return Covariance(self._matrix(middle), f"scatter between {count} repetitions of {period.seconds:.4g} s", count - 1.0)

    def newey_west(self) -> Covariance:
        """Newey-West covariance, with Bartlett weights."""
        lags = int(4 * (self.fit.rows / len(self.statistics.groups) / 100) ** (2 / 9))
        middle = with_short_memory(self.need_rows("hac"), self.logs, self.fit, self.solution, lags)
        return Covariance(self._matrix(middle), f"Newey-West, {lags} lags", self.fit.dof)
