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

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...errors import EstimationError, check_known
from ...linalg import BoolArray, positive
from ...model.dynamic_model import DynamicModel
from ...signals.prepare import PreparedLog
from ...statistics.fit import Fit
from ...statistics.least_squares import Solution
from ...statistics.motions import motions
from ...statistics.statistic import StatisticSet
from ...units import percent
from .covariance_kinds import FEWEST_LOGS, Covariance, Covariances
from .reversals import excess_shift

KINDS = ("auto", "model", "hac", "ar", "jackknife", "bootstrap", "period", "log")
#: The noise model and the jackknife agree if their standard errors differ by less than this factor (median).
AGREEMENT = 1.5
#: The scatter between averaged periods explains the residual if the variance of the residual is at most this many times larger.
EXPLAINED = 1.5
#: Significance level at which logs disagree on a single parameter.
CHANCE = 0.001
#: Shifts by more than this many standard errors are reported.
MOVED = 2.0


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

    Raises:
        EstimationError: Unknown kind, or one that needs missing logs, repetitions or stretches.
    """
    check_known("estimation.covariance", kind, KINDS, EstimationError)
    if kind == "model":
        return fit
    work = Covariances(fit, statistics, model, logs)
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
        solution: Its root is the sensitivity of the estimate to the rows; zero rows belong to parameters without any.
        complete: Whether these rows alone determine the estimate; if not, only the jackknife over stretches is used.

    Returns:
        The part of the covariance due to the noise of these rows.
    """
    work = Covariances(fit, statistics, model, logs, solution)
    if complete:
        return _automatic(work)
    return work.jackknife if work.stretches else Covariance(fit.covariance, fit.covariance_kind, fit.dof)


def _automatic(work: Covariances) -> Covariance:
    """Scatter between repetitions, else a noise model that the jackknife confirms, else the jackknife; enlarged if logs
    disagree, or if the friction model fails at reversals."""
    if not work.stretches:
        return Covariance(work.fit.covariance, work.fit.covariance_kind + ": too short for any other", work.fit.dof)
    found, period, lack_of_fit = work.jackknife, None, np.inf
    if work.has_rows:
        period, lack_of_fit = work.any_period, work.lack_of_fit() if work.averaged else np.inf
        if lack_of_fit <= EXPLAINED:
            found = work.by_scatter(lack_of_fit)
        elif period is not None:
            found = work.by_period(period)
        else:
            noise = work.autoregressive()
            compared = work.fit.seen & (found.spread > 0)  # parameters of an effort that is constantly zero do not scatter
            ratio = float(np.median(noise.spread[compared] / found.spread[compared])) if compared.any() else 1.0
            if 1 / AGREEMENT <= ratio <= AGREEMENT:
                found = replace(noise, kind=f"{noise.kind}, confirmed by a jackknife over blocks of time")
            else:
                found = replace(found, kind=f"{found.kind}: no stationary noise explains the residuals (ratio {ratio:.2g})")
            if work.averaged:
                explained = f"{percent(100 / lack_of_fit)} % of the residual"
                words = f"; the scatter between periods explains {explained}, the model lacks the rest"
                found = replace(found, kind=found.kind + words)
    if len(motions(work.statistics)) >= FEWEST_LOGS:
        found = _judged_by_logs(found, work.by_log(), work.fit.seen)
    return _with_reversals(found, work) if lack_of_fit > EXPLAINED and work.has_rows else found


def _with_reversals(found: Covariance, work: Covariances) -> Covariance:
    """Errors enlarged by the shift of the estimate without samples near reversals, as far as it exceeds chance."""
    rest = work.on(work.rest)
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


def _judged_by_logs(within: Covariance, between: Covariance, seen: BoolArray) -> Covariance:
    """Errors from within the logs, enlarged if the logs disagree by more than chance.

    With few logs the disagreement on one parameter is a poor estimate of its error, but the median over all parameters is
    a good one of a common factor (Birge). A parameter with a significantly larger disagreement keeps its error between logs.
    """
    from scipy.special import chdtri

    logs = int(between.dof) + 1
    ratio = np.where(seen & (within.spread > 0), between.spread / positive(within.spread), 1.0)
    common = max(1.0, float(np.median(ratio[seen]) / np.sqrt(chdtri(between.dof, 0.5) / between.dof)))
    alone = ratio > common * np.sqrt(chdtri(between.dof, CHANCE) / between.dof)
    scale = np.where(alone, ratio, common)
    if common == 1.0 and not alone.any():
        return replace(within, kind=f"{within.kind}; {logs} logs agree with it")
    words = f"{within.kind}, enlarged because {logs} logs disagree by more (times {common:.2g}"
    words += f"; {int(alone.sum())} parameters by themselves)" if alone.any() else ")"
    return Covariance(within.matrix * np.outer(scale, scale), words, np.where(alone, between.dof, within.dof))
