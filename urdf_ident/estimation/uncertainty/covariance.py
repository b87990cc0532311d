"""Standard errors that remain valid for autocorrelated residuals and model errors.

The model-based covariance assumes that all rows are independent. Rows of one log are not: their noise is autocorrelated, and
model errors recur with the motion. All kinds are sandwiches around the same weighted estimate: in the coordinates of the
solution's root, where the normal matrix is the identity, they differ in the covariance of the total score (:data:`KINDS`):

- ``model``: independent residuals;
- ``hac``: Newey and West (1987), residuals with short autocorrelation;
- ``ar``: a model of autocorrelated noise, by REML (:mod:`.noise`), valid if the noise is stationary; used by ``auto``;
- ``jackknife``: leaves out one stretch of time after the other and refits; ``bootstrap`` resamples stretches instead. They
  need no model of the noise, and account for unmodelled friction;
- ``period``: the scatter between the averaged repetitions of one motion; ``log``: leaves out one log after the other.

``auto`` chooses one of them, and adds the shift of the estimate if the samples near reversals are omitted, an error that causes
no scatter. Dry friction shows stiction, presliding and a Stribeck peak: near zero speed every simple law is wrong, and in the
same way at every reversal, so that standard errors from one kind of motion do not include it: on a simulated arm with dry
friction, 95 % intervals of Coulomb friction contained the true value in 20-50 % of runs. Omitting the slow samples shifts the
estimates by nearly their bias. The part of a shift that exceeds chance is counted as an additional error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...errors import EstimationError, check_known
from ...friction import SIGN_WIDTH
from ...grouping import grouped
from ...linalg import Array, lstsq, positive
from ...model.dynamic_model import DynamicModel
from ...model.row_groups import joint_of
from ...samples import REVERSING, columns, fast_speed
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit
from ...statistics.folds import independent_stretches, repetitions
from ...statistics.least_squares import REPORT_LEVEL, Solution, leave_one_out_changes, solve
from ...statistics.motions import motions
from ...statistics.rows import base_rows, row_pieces
from ...statistics.statistic import StatisticSet
from ...units import percent
from .noise import banded_rows, fit_noise, lack_of_fit, repetition_count, scatter_noise

#: Smallest numbers of logs and stretches from which a scatter is estimated.
FEWEST_LOGS, FEWEST_STRETCHES = 3, 4
#: Part of the data determines a direction if it contains at least this share of the information on it.
WELL_DETERMINED = 0.1
#: Number of bootstrap samples.
DRAWS = 400
#: A direction with less than this share of the information in a draw is not estimated from it.
_UNDRAWN = 1e-6
#: The noise model and the jackknife agree if their standard errors differ by less than this factor (median).
AGREEMENT = 1.5
#: The scatter between averaged periods explains the residual if the variance of the residual is at most this many times larger.
EXPLAINED = 1.5
#: Shifts by more than this many standard errors are reported.
MOVED = 2.0


class FitData:
    """An estimate and the data that it is from, on which the kinds of covariance work.

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
        self.weights = fit.row_weights
        self.solution = solution or solve(statistics.stacked(self.weights, fit.base.independent), fit.rows)
        #: Elastic rows are linear only in their factors (compliance form), not sample by sample.
        self.has_rows = bool(logs) and model is not None and model.is_rigid
        #: Whether all rows are averages over periods, with their scatter.
        self.averaged = self.has_rows and all(log.conditioned.averaged is not None for log in logs)

    def with_rows(self, kind: str) -> DynamicModel:
        """Returns the model, with which the rows can be computed again.

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

    def with_errors(self, covariance: Array, kind: str, dof: float | Array) -> Fit:
        """Returns the fit with another covariance.

        Args:
            covariance: Shape (b, b).
            kind: Description of the method.
            dof: Degrees of freedom of the standard errors, a number, or shape (b,).
        """
        dof = np.broadcast_to(dof, self.fit.params.shape)
        return replace(self.fit, covariance=covariance, covariance_kind=kind, error_dof=dof)

    @cached_property
    def units(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Stretches of time that do not repeat each other, as (log, block) pairs."""
        return independent_stretches(self.statistics)

    @cached_property
    def stretches(self) -> tuple[Array, Array]:
        """Normal matrices (u, r, r) and scores (u, r) of the stretches of time.

        Raises:
            EstimationError: They are too few.
        """
        if len(self.units) < FEWEST_STRETCHES:
            raise EstimationError(
                "too few blocks of time to estimate a scatter", got=len(self.units), expected=f">= {FEWEST_STRETCHES}"
            )
        unit = {block: k for k, blocks in enumerate(self.units) for block in blocks}
        r = self.solution.root.shape[1]
        matrices, scores = np.zeros((len(self.units), r, r)), np.zeros((len(self.units), r))
        for group, entries in self.statistics.of_group.items():
            layout = self.statistics.layout(group)
            first, turned = len(layout.instruments), np.zeros((layout.width, r + 1))
            turned[first : first + len(layout.columns) + 1] = self.weights[group] * self.fit.base.turned(
                layout.columns, self.solution.root, self.fit.params
            )
            small = entries[0].times(turned)
            for k, factors in grouped((unit[entry.log, entry.block], entry.factor) for entry in entries).items():
                rows = np.vstack(factors) @ small
                matrices[k] += rows[:, :r].T @ rows[:, :r]
                scores[k] += rows[:, :r].T @ rows[:, r]
        return matrices, scores


def with_covariance(
    fit: Fit,
    statistics: StatisticSet,
    kind: str = "auto",
    *,
    model: DynamicModel | None = None,
    logs: Sequence[PreparedLog] = (),
) -> Fit:
    """Returns the same estimate with standard errors of another kind.

    Args:
        kind: One of :data:`KINDS`; "auto" chooses by the autocorrelation of the residuals, repetitions and number of logs.
        model: The model of the rows; without it, only kinds that need no second pass over the data.

    Raises:
        EstimationError: Unknown kind, or one that needs missing logs, repetitions or stretches.
    """
    check_known("estimation.covariance", kind, tuple(KINDS), EstimationError)
    return KINDS[kind](FitData(fit, statistics, model, logs))


def textbook(data: FitData) -> Fit:
    """Independent residuals."""
    return data.fit


def newey_west(data: FitData) -> Fit:
    """Products of scores up to some lag, with Bartlett weights."""
    model, root = data.with_rows("hac"), data.solution.root
    lags = int(4 * (data.fit.rows / len(data.statistics.groups) / 100) ** (2 / 9))
    middle = np.zeros((root.shape[1],) * 2)
    for piece in row_pieces(model, data.logs):
        for group, (index, X, y) in zip(model.groups, base_rows(piece, model, data.fit.base), strict=True):
            score = data.weights[group.name] ** 2 * (y - X @ data.fit.params[index])[:, None] * (X @ root[index])
            middle += score.T @ score
            for lag in range(1, min(lags, len(score) - 1) + 1):
                cross = score[lag:].T @ score[:-lag]
                middle += (1 - lag / (lags + 1)) * (cross + cross.T)
    return data.with_errors(data.solution.sandwich(middle), f"Newey-West, {lags} lags", data.fit.dof)


def autoregressive(data: FitData) -> Fit:
    """A model of stationary autocorrelated noise, by REML."""
    model = data.with_rows("ar")
    rows = banded_rows(model, data.logs, data.fit, data.solution)
    noise = fit_noise(rows)
    memories = (f"{joint_of(group.name)} {m:.2g} s" for group, m in zip(model.groups, noise.memory, strict=True))
    colour = f"autocorrelated noise by REML ({', '.join(memories)})"
    return data.with_errors(rows.covariance(noise), colour if noise.coloured else "uncorrelated noise by REML", data.fit.dof)


def jackknife(data: FitData) -> Fit:
    """Leaves out one stretch of time after the other."""
    return leaving_out(data, *data.stretches, f"jackknife over {len(data.units)} blocks of time")


def leaving_out(data: FitData, matrices: Array, scores: Array, kind: str) -> Fit:
    """Jackknife covariance.

    Args:
        matrices: Normal matrices of the units that are left out in turn, shape (u, r, r).
        scores: Their scores, shape (u, r).
    """
    moves = leave_one_out_changes(matrices, scores)
    count = len(moves)
    return data.with_errors(data.solution.sandwich((count - 1) / count * moves.T @ moves), kind, count - 1.0)


def bootstrap(data: FitData) -> Fit:
    """Draws stretches of time with replacement."""
    matrices, scores = data.stretches
    count = len(scores)
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), DRAWS)
    moves = [lstsq(np.einsum("u,uij->ij", draw, matrices), draw @ scores, rcond=_UNDRAWN)[0] for draw in draws]
    kind = f"bootstrap over {count} blocks of time, {DRAWS} draws"
    return data.with_errors(data.solution.sandwich(np.atleast_2d(np.cov(np.array(moves).T))), kind, count - 1.0)


def between_logs(data: FitData) -> Fit:
    """Leaves out one motion (logs with their repetitions) after the other."""
    moves = motions(data.statistics)
    if len(moves) < 2:
        got = f"{len(data.statistics.logs)} of one motion"
        raise EstimationError("standard errors between logs need several logs of different motions", got=got, expected=">= 2")
    motion = {log: k for k, logs in enumerate(moves) for log in logs}
    begins = np.unique([motion[unit[0][0]] for unit in data.units], return_index=True)[1]
    matrices, scores = (np.add.reduceat(x, begins) for x in data.stretches)
    return leaving_out(data, matrices, scores, f"leaving out each of {len(moves)} logs")


def between_periods(data: FitData, unexplained: float = 1.0) -> Fit:
    """The spectrum of the scatter between averaged repetitions of a motion.

    Args:
        unexplained: Lack of fit, by which the errors are enlarged; below 1 it has no effect.

    Raises:
        EstimationError: A log is no average over repetitions.
    """
    model = data.with_rows("period")
    if not data.averaged:
        raise EstimationError(
            "the motion does not repeat: there is no scatter between periods",
            where=", ".join(data.statistics.logs),
            remedy="use covariance: auto, or record several periods of one motion",
        )
    rows = banded_rows(model, data.logs, data.fit, data.solution)
    noise = scatter_noise(model, data.logs, rows)
    words = f"spectrum of the scatter between {repetition_count(data.logs)} periods"
    return data.with_errors(max(1.0, unexplained) * rows.covariance(noise), words, rows.dof(noise))


def automatic(data: FitData) -> Fit:
    """Scatter between repetitions, else a noise model that the jackknife confirms, else the jackknife; enlarged if logs
    disagree, or if the friction model fails at reversals."""
    if len(data.units) < FEWEST_STRETCHES:
        return replace(data.fit, covariance_kind=f"{data.fit.covariance_kind}: too short for any other")
    fit = within = jackknife(data)
    unexplained = lack_of_fit(data.with_rows("period"), data.logs, data.fit) if data.averaged else None
    repeated = unexplained is not None and unexplained <= EXPLAINED  # the scatter between periods explains the residual
    if unexplained is not None and repeated:
        fit = between_periods(data, unexplained)
    elif data.has_rows:
        fit = _confirmed_noise(data, within, unexplained)
    if len(motions(data.statistics)) >= FEWEST_LOGS:
        fit = _enlarged_between_logs(data, fit)
    return _with_reversals(data, fit, within) if data.has_rows and not repeated else fit


def _confirmed_noise(data: FitData, within: Fit, unexplained: float | None) -> Fit:
    """Errors by the model of the noise if those of the jackknife over stretches of time, ``within``, confirm them, else these.

    Args:
        unexplained: Variance of the residual over that of the noise between periods; None without these.
    """
    noise = autoregressive(data)
    compared = data.fit.seen & (_variances(within) > 0)  # parameters of an effort that is constantly zero do not scatter
    ratio = float(np.median(noise.bse[compared] / within.bse[compared])) if compared.any() else 1.0
    if 1 / AGREEMENT <= ratio <= AGREEMENT:
        fit, words = noise, ", confirmed by a jackknife over blocks of time"
    else:
        fit, words = within, f": no stationary noise explains the residuals (ratio {ratio:.2g})"
    if unexplained is not None:
        explained = f"{percent(100 / unexplained)} % of the residual"
        words += f"; the scatter between periods explains {explained}, the model lacks the rest"
    return replace(fit, covariance_kind=fit.covariance_kind + words)


def _enlarged_between_logs(data: FitData, fit: Fit) -> Fit:
    """Errors enlarged as far as the logs disagree by more.

    With few logs the disagreement on one parameter is a poor estimate of its error, but the median over all parameters is a
    good one of a common factor (Birge). A parameter with a significantly larger one keeps its error between logs.
    """
    from scipy.special import chdtri

    between, seen, logs = between_logs(data), fit.seen, len(motions(data.statistics))
    own, dof = _variances(fit), logs - 1.0
    spreads = np.where(seen & (own > 0), np.sqrt(_variances(between) / positive(own)), 1.0)
    common = max(1.0, float(np.median(spreads[seen]) / np.sqrt(chdtri(dof, 0.5) / dof)))
    alone = spreads > common * np.sqrt(chdtri(dof, REPORT_LEVEL) / dof)
    if common == 1.0 and not alone.any():
        return replace(fit, covariance_kind=f"{fit.covariance_kind}; {logs} logs agree with it")
    words = f"{fit.covariance_kind}, enlarged because {logs} logs disagree by more (times {common:.2g}"
    words += f"; {int(alone.sum())} parameters by themselves)" if alone.any() else ")"
    scale = np.where(alone, spreads, common)
    return data.with_errors(fit.covariance * np.outer(scale, scale), words, np.where(alone, dof, fit.error_dof))


def _variances(fit: Fit) -> Array:
    """Variances of all parameters, also of those that are not identifiable, shape (b,)."""
    return np.maximum(np.diag(fit.covariance), 0.0)


#: Kind of covariance → its function.
KINDS: Mapping[str, Callable[[FitData], Fit]] = {
    "auto": automatic,
    "model": textbook,
    "hac": newey_west,
    "ar": autoregressive,
    "jackknife": jackknife,
    "bootstrap": bootstrap,
    "period": between_periods,
    "log": between_logs,
}


def _with_reversals(data: FitData, fit: Fit, within: Fit) -> Fit:
    """Errors enlarged by the shift of the estimate without samples near reversals, as far as it exceeds chance.

    Laws that differ only at reversals (Coulomb friction and presliding) are not distinguishable without them: along such a
    direction the change of the estimate would be unbounded and independent of the model's errors. So it changes only in
    directions that the rest determines. The variance of a shift by chance is the difference of the two variances (Hausman).

    Args:
        within: The fit with the errors of the jackknife.
    """
    model, speeds = data.with_rows("auto"), columns([part.v for log in data.logs for part in log.segments])
    limit = np.maximum([REVERSING * fast_speed(v) for v in speeds], SIGN_WIDTH)
    involved = [np.flatnonzero(group.mix) for group in model.groups]

    def fast(v: Array) -> Array:
        above = np.abs(v) > limit
        return np.column_stack([above[:, joints].all(axis=1) for joints in involved]).astype(float)

    weights = {log.name: [fast(part.v) for part in log.segments] for log in data.logs}
    rest = build_statistics(model, data.logs, weights=weights, alike=repetitions(data.statistics))
    factor = rest.stacked(data.weights, data.fit.base.independent)
    X, y, start = factor[:, :-1], factor[:, -1], data.solution.estimate
    _, singular, turned = np.linalg.svd(X @ data.solution.root, full_matrices=False)
    kept = singular**2 >= WELL_DETERMINED
    root = data.solution.root @ (turned[kept].T / singular[kept])
    move = root @ (root.T @ (X.T @ (y - X @ start)))
    moved, solution = replace(data.fit, params=start + move), replace(data.solution, estimate=start + move, root=root)
    without = FitData(moved, rest, data.model, data.logs, solution)
    if len(without.units) < FEWEST_STRETCHES:
        return fit
    chance = np.maximum(_variances(jackknife(without)) - _variances(within), 0.0)
    excess = np.where(np.isfinite(move) & np.isfinite(chance), move**2 - chance, 0.0)
    shift = np.where(fit.seen & (excess > 0), np.sign(move) * np.sqrt(np.maximum(excess, 0.0)), 0.0)
    count, kind = int((np.abs(shift) > MOVED * np.sqrt(_variances(fit))).sum()), fit.covariance_kind
    if count:
        kind += f"; the model fails near reversals: without them {count} parameters move by more, which is counted as an error"
    return replace(fit, covariance=fit.covariance + np.outer(shift, shift), covariance_kind=kind)
