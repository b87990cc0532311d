"""Standard errors that a second log would confirm.

The textbook's covariance counts every row as news. Rows of one log are not: their noise has memory, and what the model
lacks comes back in every stride. Several ways to count what is really there, all for the same weighted estimate:

- ``model``: independent residuals, the textbook;
- ``hac``: Newey and West, residuals with short memory;
- ``ar``: a model of autocorrelated noise, by REML (:mod:`.noise`): right when the noise is stationary; a part of ``auto``,
  not a setting of its own;
- ``jackknife``: leaves out one stretch of time after the other and refits; ``bootstrap`` draws stretches instead. They
  need no model of the noise, and feel friction that the model lacks;
- ``period``: the scatter between repetitions of one motion, averaged (:mod:`.repetitions`) or not; ``log``:
  leaves out one log after the other.

``auto`` chooses, and adds what the estimate moves without the samples near reversals (:mod:`.reversals`): an error that never
scatters.

All but ``hac`` work on factors, in the coordinates of the solution's root, where the normal matrix is 1.
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
from ...statistics.fit import Fit
from ...statistics.folds import independent_stretches
from ...statistics.kept import KeptRows
from ...statistics.least_squares import Solution, moves_without, solve
from ...statistics.motions import begun_motions, motions
from ...statistics.statistic import StatisticSet
from .bands import Spectrum, begun_spectrum, build_spectrum
from .in_time import between_repetitions, with_short_memory
from .noise import fit_noise, sandwich, whitened_rows
from .periods import Period, find_period
from .repetitions import all_averaged, lack_of_fit, repetition_count, scatter_covariance, scatter_noise
from .reversals import excess_shift, without_reversals

KINDS = ("auto", "model", "hac", "ar", "jackknife", "bootstrap", "period", "log")
#: The noise model and the jackknife agree when their standard errors differ by less than this factor (median).
AGREEMENT = 1.5
#: The scatter between averaged periods explains the residual when that has at most this many times its variance.
EXPLAINED = 1.5
#: Repetitions, logs and stretches from which their scatter is worth using.
FEWEST_PERIODS, FEWEST_LOGS, FEWEST_STRETCHES = 6, 3, 4
#: A parameter on which logs disagree so much by chance is one in so many.
CHANCE = 0.001
#: A shift of so many standard errors is reported.
MOVED = 2.0
#: A direction is told by part of the data that holds at least this share of its information.
TOLD = 0.1
#: Draws of the bootstrap.
DRAWS = 400


@dataclass(frozen=True, eq=False)
class Covariance(ReadOnly):
    """Covariance of the base parameters.

    Attributes:
        matrix: Shape (b, b).
        kind: How it was found, in words.
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
    kept: KeptRows | None = None,
) -> Fit:
    """The same estimate with other standard errors.

    Args:
        statistics: What it was made from, with its blocks in time.
        kind: One of :data:`KINDS`; "auto" chooses by the residuals' memory, repetitions and number of logs.
        model: The model of the rows; without it, only what needs no second pass over the data.
        logs: The prepared logs behind the statistics.
        seed: Of the bootstrap.
        kept: Where rows of models before are kept.

    Returns:
        The fit.

    Raises:
        EstimationError: Unknown kind, or one that needs logs, repetitions or stretches that are not there.
    """
    return begun_covariance(fit, statistics, kind, model=model, logs=logs, seed=seed, kept=kept)()


def begun_covariance(
    fit: Fit, statistics: StatisticSet, kind: str = "auto", *, seed: int = 0, **options: Any
) -> Callable[[], Fit]:
    """:func:`with_covariance`, begun: where others work they do so while this process does something else.

    Args:
        statistics, kind, seed, options: As for :func:`with_covariance`.

    Returns:
        Waits for the fit.

    Raises:
        EstimationError: Unknown kind; the others are raised by what is returned.
    """
    check_known("estimation.covariance", kind, KINDS, EstimationError)
    if kind == "model":
        return lambda: fit
    work = _Work(fit, statistics, **options)
    if kind == "auto" and shared() and work.has_rows and work.stretches and not work.averaged:
        _ = work.any_period or work.spectrum, work.rest
    return partial(_finished, work, kind, seed)


def _finished(work: _Work, kind: str, seed: int) -> Fit:
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
    """Covariance, as "auto" chooses it, of an estimate that rests on more than these rows, or on less than all columns.

    Args:
        statistics: The rows whose noise counts.
        solution: Its root says how the estimate follows the rows; rows of zeros are parameters that do not.
        model: The model of the rows.
        logs: The prepared logs behind the statistics.
        complete: Whether these rows alone tell what is estimated; if not, only stretches of them are left out.

    Returns:
        The part of the covariance that comes from these rows' noise.
    """
    work = _Work(fit, statistics, model, logs, solution)
    if complete:
        return _automatic(work)
    return work.jackknife if work.stretches else Covariance(fit.covariance, fit.covariance_kind, fit.dof)


def _automatic(work: _Work) -> Covariance:
    """Repetitions, else a noise model that the jackknife confirms, else the jackknife; enlarged where logs disagree, or
    where friction at reversals is not the model's."""
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


def _with_reversals(found: Covariance, work: _Work) -> Covariance:
    """Errors enlarged by what the estimate moves when samples near reversals are left out, where that is no chance."""
    if work.kept:
        work.kept.clear()  # as large as what is made next
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
    """Errors from inside the logs, enlarged where the logs disagree by more than chance.

    With few logs the disagreement on one parameter is a bad guess of its error, but the median over all parameters is
    a good one of a common factor (Birge). A parameter that stands out beyond chance keeps what the logs say of it.
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


class _Work:
    """One fit and all that its covariances share."""

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
        """Waits for the rows by frequency."""
        return begun_spectrum(self.need_rows("ar"), self.logs, self.kept)

    @cached_property
    def rest(self) -> Callable[[], StatisticSet]:
        """Waits for the data without the samples near reversals."""
        return without_reversals(self.need_rows("auto"), self.logs, begun_motions(self.statistics))

    def on(self, statistics: StatisticSet) -> _Work:
        """The same estimate from part of the data, moved only along what that part tells nearly as well (:data:`TOLD`).

        Laws that differ at reversals alone (Coulomb friction and presliding) are not distinguishable without them: along such
        a direction the estimate would move without bounds, and its move would say nothing of the model.
        """
        factor = statistics.stacked(self.weights, self.fit.base.independent)
        X, y, start = factor[:, :-1], factor[:, -1], self.solution.estimate
        _, told, turned = np.linalg.svd(X @ self.solution.root, full_matrices=False)
        kept = told**2 >= TOLD
        root = self.solution.root @ (turned[kept].T / told[kept])
        estimate = start + root @ (root.T @ (X.T @ (y - X @ start)))
        solution = replace(self.solution, estimate=estimate, root=root)
        return _Work(replace(self.fit, params=estimate), statistics, self.model, self.logs, solution)

    @property
    def averaged(self) -> bool:
        """Whether all rows are averages over periods, with their scatter."""
        return self.has_rows and all_averaged(self.logs)

    def lack(self) -> float:
        """Variance of the residual over that of the scatter between averaged periods."""
        return lack_of_fit(self.need_rows("period"), self.logs, self.fit)

    def by_scatter(self, lack: float = 1.0) -> Covariance:
        """The noise's spectrum from the scatter between averaged periods, enlarged by what the residual has more."""
        model = self.need_rows("period")
        spectrum = build_spectrum(model, self.logs)
        noise = scatter_noise(model, self.logs, spectrum)
        matrix, dof = scatter_covariance(spectrum, noise, self.fit, self.solution)
        words = f"spectrum of the scatter between {repetition_count(self.logs)} periods"
        return Covariance(max(1.0, lack) * matrix, words, dof)

    def need_rows(self, kind: str) -> DynamicModel:
        """The model, when rows can be made again."""
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
            own: list[list[Array]] = [[] for _ in self.units]
            for entry in entries:
                own[unit[entry.log, entry.block]].append(entry.R[:, len(layout.instruments) :][:, : len(layout.columns) + 1])
            turned = self.weights[group] * self.fit.base.turned(layout.columns, self.solution.root, self.fit.params)
            for k, factors in enumerate(own):
                if factors:
                    rows = np.vstack(factors) @ turned
                    matrices[k] += rows[:, :r].T @ rows[:, :r]
                    scores[k] += rows[:, :r].T @ rows[:, r]
        return matrices, scores

    def _matrix(self, middle: Array) -> Array:
        return np.asarray(self.solution.root @ middle @ self.solution.root.T)

    def _left_out(self, matrices: Array, scores: Array) -> Array:
        """Covariance from leaving out one unit after the other."""
        moves = moves_without(matrices, scores)
        return self._matrix((len(moves) - 1) / len(moves) * moves.T @ moves)

    @cached_property
    def jackknife(self) -> Covariance:
        """Leaves out stretches of time."""
        if not self.stretches:
            raise EstimationError("too few blocks of time for a jackknife", got=len(self.units), expected=">= 4")
        kind = f"jackknife over {len(self.units)} blocks of time"
        return Covariance(self._left_out(*self._scores), kind, len(self.units) - 1.0)

    def by_log(self) -> Covariance:
        """Leaves out logs."""
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
        """Draws stretches with replacement."""
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
        """The model of autocorrelated noise."""
        spectrum = self.spectrum()
        rows = whitened_rows(spectrum, self.fit, self.solution)
        noise = fit_noise(spectrum, rows)
        kind = f"autocorrelated noise by REML ({noise.describe()})" if noise.coloured else "uncorrelated noise by REML"
        return Covariance(sandwich(rows, self.solution, self.weights, noise), kind, self.fit.dof)

    @cached_property
    def any_period(self) -> Period | None:
        """The common period of the logs, if they hold enough repetitions of one."""
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
        """Scatter of the scores between repetitions."""
        middle, count = between_repetitions(self.need_rows("period"), self.logs, self.fit, self.solution, period)
        return Covariance(self._matrix(middle), f"scatter between {count} repetitions of {period.seconds:.4g} s", count - 1.0)

    def newey_west(self) -> Covariance:
        """Short memory, with Bartlett weights."""
        lags = int(4 * (self.fit.rows / len(self.statistics.groups) / 100) ** (2 / 9))
        middle = with_short_memory(self.need_rows("hac"), self.logs, self.fit, self.solution, lags)
        return Covariance(self._matrix(middle), f"Newey-West, {lags} lags", self.fit.dof)
