"""``estimation.method``: choice of the estimator, with its reason.

There are two steps. Before the estimation, :func:`choose_weighting` decides whether outliers must be down-weighted, so that
they affect neither the selection of friction laws nor the final estimate. Once the model has converged, :func:`refine`
applies the configured estimator, or the one that the data require, starting from weighted least squares.

All subsequent steps (standard parameters, cross-validation, standard errors) read factors. Every estimator therefore returns
statistics for which weighted least squares *is* its estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import EstimationError, UrdfIdentError, check_known
from ...linalg import Array, positive
from ...model.dynamic_model import DynamicModel
from ...model.prior import Prior
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit, fit_base, fit_ridge
from ...statistics.folds import CrossValidation, folds_of, held_out
from ...statistics.statistic import StatisticSet
from ..friction_selection.reference_torque import ConvergedFit
from ..uncertainty.repetitions import likelihood_weights, repetition_count
from .robust import find_outliers, fit_robust

if TYPE_CHECKING:
    from .closed_loop import ClosedLoop

METHODS = ("auto", "ols", "wls", "irls", "iv", "gls", "didim", "ml", "ridge", "tls")
#: Estimators that are not available for elastic joints, whose link rows measure a deflection and not a torque.
RIGID_ONLY = ("irls", "gls", "didim", "ml", "ridge", "tls")
#: Estimators that simulate the closed loop.
CLOSED_LOOP = ("iv", "didim")
#: A significant bias below this many standard errors does not justify the larger variance of instrumental variables.
MATERIAL = 1.0
#: Tolerance of the first robust estimate, which only has to find the outliers.
_ROUGHLY = 0.1


@dataclass(frozen=True, eq=False)
class SampleWeighting:
    """The estimator chosen before the estimation, with the weights of the samples.

    Attributes:
        name: "ols", "wls", … of :data:`METHODS`; "auto" if the choice is still to be made from the data.
        why: The reason in words; empty if the user chose it.
        weights: Log → weights of the samples of its segments, shape (N, groups) each, 0 to 1; all 1 if None.
    """

    name: str
    why: str = ""
    weights: Mapping[str, Sequence[Array]] | None = None


@dataclass(frozen=True, eq=False)
class Estimated:
    """Result of an estimator.

    Attributes:
        fit: The estimate; weighted least squares on ``statistics`` gives the same parameters.
        statistics: The statistics from which standard parameters are chosen.
        why: The reason for this estimator, in words.
        own_errors: Whether the standard errors are those of the estimator itself.
        logs: Logs from which the rows of the statistics can be computed again; the prepared logs if None; empty if impossible.
        refit: The same estimator for part of ``solved``, for cross-validation; weighted least squares if None.
        transform: T, shape (b, b), if the covariance is ``T V Tᵀ`` with V that of least squares on the statistics; V if None.
    """

    fit: Fit
    statistics: StatisticSet
    why: str = "as configured"
    own_errors: bool = False
    logs: Sequence[PreparedLog] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    refit: Callable[[StatisticSet], Fit] | None = None
    solved: StatisticSet | None = None
    transform: Array | None = None

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry ``estimation`` of identification.json."""
        return {"method": self.fit.method, "why": self.why, **self.details}

    def describe(self) -> str:
        """Returns the estimator and its reason in one line."""
        caveat = "; scores on the measured motion, whose noise is in them, do not show its gain"
        return f"estimator: {self.fit.method.upper()} ({self.why}){caveat if self.fit.method in CLOSED_LOOP else ''}"


def row_weighting(method: str) -> str:
    """Returns how row groups are weighted during the selection of the model.

    Args:
        method: One of :data:`METHODS`.

    Returns:
        "ols" or "wls".
    """
    return "ols" if method == "ols" else "wls"


def choose_weighting(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    method: str = "auto",
    loss: str = "tukey",
    statistics: StatisticSet | None = None,
) -> SampleWeighting:
    """Decides whether samples are weighted individually.

    Args:
        method: One of :data:`METHODS`.
        loss: Loss function of IRLS, "tukey" or "huber".
        statistics: Those of the model without load-dependent friction, if they have been computed.

    Raises:
        EstimationError: Unknown method, one that is not available for elastic joints, or too few rows.
    """
    check_known("estimation.method", method, METHODS, EstimationError)
    if not model.is_rigid:
        if method in RIGID_ONLY:
            raise EstimationError(
                f"estimation.method {method} is for rigid joints", got="elastic joints", expected="auto, ols, wls or iv"
            )
        return SampleWeighting(method, "weighted least squares, deflections as measurements" if method == "auto" else "")
    if method not in ("auto", "irls"):
        return SampleWeighting(method)
    model = model.unloaded()  # outliers are found without load-dependent friction too
    base = model.base()
    first = fit_base(statistics or build_statistics(model, logs), base)
    found = find_outliers(model, first, logs)
    if method == "auto" and not found.dominate:
        return SampleWeighting("auto", "no relevant outliers")
    try:
        robust = fit_robust(model, logs, base, loss=loss, converged=_ROUGHLY, start=first)
    except EstimationError as error:
        if method == "irls":
            raise
        return SampleWeighting("wls", f"{found.describe()}; IRLS cannot help: {error}")
    return SampleWeighting("irls", found.describe() if found.dominate and method == "auto" else "", robust.weights)


def refine(
    weighting: SampleWeighting,
    converged: ConvergedFit,
    logs: Sequence[PreparedLog],
    *,
    loss: str = "tukey",
    prior: Prior | None = None,
    reference: Array | None = None,
    loop: Callable[[], ClosedLoop] | None = None,
    loop_known: bool = False,
) -> Estimated:
    """Estimates the parameters of a converged model with the chosen estimator.

    Args:
        weighting: Decision of :func:`choose_weighting`.
        converged: The model with its estimate by (weighted) least squares.
        loss: Loss function of IRLS, "tukey" or "huber".
        prior: Prior of the inertial parameters, for ridge.
        reference: Base values kept where parameters are not identifiable, shape (b,); 0 if None.
        loop: Creates the simulation of the logs, for IV and DIDIM.
        loop_known: Whether the user has described the controller; only then does "auto" simulate.

    Raises:
        EstimationError: The estimator does not converge, or lacks what it needs.
    """
    plain = Estimated(converged.fit, converged.statistics, weighting.why or "as configured")
    if weighting.name == "irls":
        try:
            return _robust(plain, converged, logs, loss, reference)
        except EstimationError as error:
            if not weighting.why:  # the user chose IRLS
                raise
            return replace(plain, why=f"{plain.why}; the first weights are kept: {error}", logs=())
    if weighting.name == "gls":
        return _full_covariance(converged, logs, reference)
    if weighting.name == "tls":
        return _total_least_squares(converged, logs, reference)
    if weighting.name == "ml":
        return _maximum_likelihood(plain, converged, logs, reference)
    if weighting.name == "ridge":
        if prior is None:
            raise EstimationError("ridge needs a prior", remedy="use method wls")
        refit = partial(fit_ridge, fit=converged.fit, prior=prior)
        return replace(plain, fit=refit(converged.statistics), own_errors=True, solved=converged.statistics, refit=refit)
    if weighting.name in CLOSED_LOOP and loop is None:
        raise EstimationError(f"{weighting.name} needs the closed loop", remedy="give reference and controller, or use wls")
    if weighting.name in CLOSED_LOOP and loop is not None:
        by = _instrumental(converged, logs, loop()) if weighting.name == "iv" else _didim(converged, logs, loop(), reference)
        guess = "" if loop_known else "; the default controller was simulated: describe yours in simulation.controller"
        return replace(by, why=by.why + guess)
    targets = all(log.report.recording.position_target is not None for log in logs)
    if weighting.name == "auto" and loop is not None and loop_known and targets:
        return _chosen_by_test(plain, converged, logs, loop)
    return plain


def _robust(
    plain: Estimated, converged: ConvergedFit, logs: Sequence[PreparedLog], loss: str, reference: Array | None
) -> Estimated:
    found = fit_robust(converged.model, logs, converged.fit.base, loss=loss, reference=reference, start=converged.fit)
    details = {"loss": loss, "rounds": found.rounds, "down_weighted": dict(found.down_weighted), "scale": dict(found.scale)}
    return replace(
        plain,
        fit=found.fit,
        statistics=found.statistics,
        logs=(),
        details=details,
        refit=_by_weights_of(found.fit, reference),
        solved=found.statistics,
    )


def _instrumental(converged: ConvergedFit, logs: Sequence[PreparedLog], loop: ClosedLoop) -> Estimated:
    from .instrumental import fit_instrumental, iterate_instrumental  # imported late, as it loads the simulation

    base = converged.fit.base
    found = iterate_instrumental(converged.model, logs, base, loop, converged.fit.params)
    plain = fit_base(converged.statistics, base, weights=found.fit.weights)
    change = base.embedded(found.fit.params - plain.params)
    largest = found.fit.distance(plain.params)
    test = {**vars(found.test), "rejected": found.test.rejected, "largest": largest, "words": found.test.describe()}
    details = {
        "rounds": found.rounds,
        "hausman": test,
        "least_squares": found.least_squares.params.tolist(),
    }
    size = f"; it moves by up to {largest:.2g} standard errors" if found.test.rejected else ""
    return Estimated(
        found.fit,
        converged.statistics.shifted(change),
        f"as configured; {found.test.describe()}{size}",
        own_errors=True,
        details=details,
        refit=lambda part: fit_instrumental(part, base).fit,
        solved=found.statistics,
    )


def _chosen_by_test(
    plain: Estimated, converged: ConvergedFit, logs: Sequence[PreparedLog], loop: Callable[[], ClosedLoop]
) -> Estimated:
    """Returns the IV estimate if its test shows a material bias of least squares; otherwise the latter, which varies less."""
    try:
        found = _instrumental(converged, logs, loop())
    except UrdfIdentError as error:  # for instance a friction law that the simulation lacks, or a payload
        return replace(plain, why=f"{plain.why}; whether noise on the motion biases it is not known: {error}")
    test = found.details["hausman"]
    if test["rejected"] and test["largest"] > MATERIAL:
        return replace(found, why=found.why.removeprefix("as configured; "))
    size = f", but moves it by {test['largest']:.2g} standard errors at most" if test["rejected"] else ""
    return replace(plain, why=f"{plain.why}; {test['words']}{size}", details={"hausman": test})


def _didim(converged: ConvergedFit, logs: Sequence[PreparedLog], loop: ClosedLoop, reference: Array | None) -> Estimated:
    from .didim import fit_didim

    base = converged.fit.base
    found = fit_didim(converged.model, logs, base, loop, converged.fit.params, reference=reference)
    return Estimated(
        found.fit,
        found.statistics,
        logs=found.logs,
        details={"rounds": found.rounds},
        refit=lambda part: fit_base(part, base, reference=reference),
        solved=found.statistics,
    )


def _full_covariance(converged: ConvergedFit, logs: Sequence[PreparedLog], reference: Array | None) -> Estimated:
    from .full_covariance import fit_full_covariance

    found = fit_full_covariance(converged.model, logs, converged.fit.base, converged.fit, reference=reference)
    details = {"rounds": found.rounds, "correlation": found.correlation.tolist()}
    return Estimated(
        found.fit,
        found.statistics,
        logs=(),
        details=details,
        refit=_by_weights_of(found.fit, reference),
        solved=found.statistics,
    )


def _total_least_squares(converged: ConvergedFit, logs: Sequence[PreparedLog], reference: Array | None) -> Estimated:
    from .total_least_squares import fit_total_least_squares, noisy_columns

    base, statistics = converged.fit.base, converged.statistics
    noise = noisy_columns(converged.model, logs, base)
    found = fit_total_least_squares(statistics, converged.fit, noise)
    plain = fit_base(statistics, base, weights=found.fit.row_weights, reference=reference)
    change = base.embedded(found.fit.params - plain.params)
    largest = plain.distance(found.fit.params)
    joints = dict(zip(converged.model.robot.joints, noise.position.tolist(), strict=True))
    details = {"rounds": found.rounds, "position_noise": joints, "largest": largest}
    levels = f"{noise.position.min():.2g} to {noise.position.max():.2g} rad or m"
    moved = f"it moves the estimate by up to {largest:.2g} standard errors"
    why = f"as configured; noise of the positions {levels}, {moved}"

    def refit(part: StatisticSet) -> Fit:
        return fit_total_least_squares(part, fit_base(part, base, reference=reference), noise).fit

    return Estimated(
        found.fit,
        statistics.shifted(change),
        why,
        logs=(),
        details=details,
        refit=refit,
        solved=statistics,
        transform=found.transform,
    )


def _by_weights_of(fit: Fit, reference: Array | None) -> Callable[[StatisticSet], Fit]:
    """Returns a function that refits part of the rows with the weights of all rows."""
    return partial(fit_base, base=fit.base, weights=fit.row_weights, reference=reference)


def _maximum_likelihood(
    plain: Estimated, converged: ConvergedFit, logs: Sequence[PreparedLog], reference: Array | None
) -> Estimated:
    weights = likelihood_weights(converged.model, logs)

    def refit(part: StatisticSet) -> Fit:
        return replace(fit_base(part, converged.fit.base, weights=weights, reference=reference), method="ml")

    why = f"rows weighted by the scatter between {repetition_count(logs)} periods"
    return replace(plain, fit=refit(converged.statistics), why=why, refit=refit, solved=converged.statistics)


def inflated_like(fit: Fit, least: Fit, stretches: Fit) -> Fit:
    """Enlarges the standard errors of the IV estimate by the same factors as those of least squares on the same rows.

    The jackknife over stretches of time misses errors that all stretches share: disagreement between logs, unmodelled friction
    at reversals. They affect instrumental variables as much as least squares.

    Args:
        fit: The IV fit, its errors from the jackknife over stretches of time.
        least: The least-squares fit, with all errors included.
        stretches: The least-squares fit, its errors from the jackknife over stretches of time.

    Returns:
        The first fit with enlarged errors; none decreases.
    """
    ratio = np.where(fit.seen & (stretches.bse > 0), least.bse / positive(stretches.bse), 1.0)
    scale = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)
    if (scale == 1.0).all():
        return fit
    kind = f"{fit.covariance_kind}, enlarged as those of least squares are ({least.covariance_kind})"
    return replace(fit, covariance=fit.covariance * np.outer(scale, scale), covariance_kind=kind)


def held_out_errors(converged: ConvergedFit, estimated: Estimated) -> CrossValidation:
    """Returns the held-out error per fold, with the structure of the model as selected on all data.

    Args:
        converged: The model and its unweighted rows, on which errors are evaluated.
        estimated: The estimate, with ``refit`` and ``solved``, whose time blocks are those of the unweighted rows.

    Raises:
        EstimationError: A single log that is too short to be divided into folds.
    """
    judged, learnt = folds_of(converged.statistics), folds_of(estimated.solved or converged.statistics)
    refit = estimated.refit or (lambda part: fit_base(part, converged.fit.base))

    def trained(fold: str) -> tuple[StatisticSet, Array]:
        fit = refit(learnt.left_out(fold))
        return judged.only([fold]), fit.base.embedded(fit.params)

    return held_out(judged.logs, judged.groups, trained)
