"""``estimation.method``: choice of the estimator, with its reason.

There are two steps. Before the estimation, :func:`choose_weighting` decides whether outliers must be down-weighted, so that
they affect neither the selection of friction laws nor the final estimate. Once the model has converged, :func:`refine`
applies the configured estimator, or the one that the data require, starting from weighted least squares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import EstimationError, UrdfIdentError, check_known
from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit, fit_base
from ...statistics.folds import CrossValidation, folds_of, held_out
from ...statistics.rows import evenly_spread
from ...statistics.statistic import StatisticSet
from ..friction_selection.reference_torque import FOLD_TOLERANCE, ConvergedFit, converge, for_folds, load_response
from ..uncertainty.covariance import with_covariance
from .estimator import Estimated, Estimator, EstimatorInput
from .generalized import generalized_least_squares
from .instrumental import didim, instrumental_variables
from .irls import robust
from .outliers import find_outliers
from .prior_knowledge import maximum_likelihood, ridge
from .total_least_squares import total_least_squares_estimate

#: A significant bias below this many standard errors does not justify the larger variance of instrumental variables.
MATERIAL = 1.0
#: Tolerance of the first robust estimate, which only has to find the outliers.
_ROUGHLY = 0.1


def least_squares(problem: EstimatorInput) -> Estimated:
    """Least squares, weighted or not, as it was solved before."""
    return Estimated(problem.least_squares, problem.statistics)


#: Every estimator by its name; a further entry is a further ``estimation.method``.
ESTIMATORS: dict[str, Estimator] = {
    "ols": least_squares,
    "wls": least_squares,
    "irls": robust,
    "iv": instrumental_variables,
    "gls": generalized_least_squares,
    "didim": didim,
    "ml": maximum_likelihood,
    "ridge": ridge,
    "tls": total_least_squares_estimate,
}
#: Estimators available for elastic joints, whose link rows measure a deflection and not a torque.
ELASTIC = ("auto", "ols", "wls", "iv")


@dataclass(frozen=True, eq=False)
class SampleWeighting:
    """The estimator chosen before the estimation, with the weights of the samples.

    Attributes:
        name: One of :data:`ESTIMATORS`; "auto" if the choice is still to be made from the data.
        why: The reason in words; empty if the user chose it.
        weights: Log → weights of the samples of its segments, shape (N, groups) each, 0 to 1; all 1 if None.
    """

    name: str
    why: str = ""
    weights: Mapping[str, Sequence[Array]] | None = None


def row_weighting(method: str) -> str:
    """Returns how row groups are weighted during the selection of the model, "ols" or "wls"."""
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
        method: "auto", or one of :data:`ESTIMATORS`.
        loss: Loss function of IRLS, "tukey" or "huber".
        statistics: Those of the model without load-dependent friction, if they have been computed.

    Raises:
        EstimationError: Unknown method, one that is not available for elastic joints, or too few rows.
    """
    check_known("estimation.method", method, ("auto", *ESTIMATORS), EstimationError)
    if not model.is_rigid:
        if method not in ELASTIC:
            raise EstimationError(
                f"estimation.method {method} is for rigid joints", got="elastic joints", expected="auto, ols, wls or iv"
            )
        return SampleWeighting(method, "weighted least squares, deflections as measurements" if method == "auto" else "")
    if method not in ("auto", "irls"):
        return SampleWeighting(method)
    model = model.unloaded()  # outliers are found without load-dependent friction too
    statistics = statistics or build_statistics(model, logs)
    first = fit_base(statistics, model.base())
    outliers = find_outliers(model, first, evenly_spread(logs))
    if method == "auto" and not outliers.dominate:
        return SampleWeighting("auto", "no relevant outliers")
    try:
        weights = robust(EstimatorInput(model, logs, statistics, first, loss), converged=_ROUGHLY).weights
    except EstimationError as error:
        if method == "irls":
            raise
        return SampleWeighting("wls", f"{outliers.describe()}; IRLS cannot help: {error}")
    return SampleWeighting("irls", outliers.describe() if outliers.dominate and method == "auto" else "", weights)


def refine(weighting: SampleWeighting, problem: EstimatorInput, *, loop_known: bool = False) -> Estimated:
    """Estimates the parameters of a converged model with the chosen estimator.

    Args:
        weighting: Decision of :func:`choose_weighting`.
        loop_known: Whether the user has described the controller; only then does "auto" simulate.

    Raises:
        EstimationError: The estimator does not converge, or lacks what it needs.
    """
    name, why = weighting.name, weighting.why
    plain = replace(least_squares(problem), why=why or "as configured")
    if name != "auto":
        try:
            estimated = ESTIMATORS[name](problem)
        except EstimationError as error:
            if name == "irls" and why:  # not chosen by the user
                return replace(plain, why=f"{why}; the first weights are kept: {error}", logs=())
            raise
        guessed = estimated.simulated and not loop_known
        guess = "; the default controller was simulated: describe yours in simulation.controller" if guessed else ""
        return replace(estimated, why=(why or estimated.why) + guess)
    targets = all(log.report.recording.position_target is not None for log in problem.logs)
    if problem.loop is None or not loop_known or not targets:
        return plain
    try:
        estimated = instrumental_variables(problem)
    except UrdfIdentError as error:  # for instance a friction law that the simulation lacks, or a payload
        return replace(plain, why=f"{plain.why}; whether noise on the motion biases it is not known: {error}")
    test = estimated.details["hausman"]
    if test["rejected"] and test["largest"] > MATERIAL:  # least squares varies less, but its bias is material
        return replace(estimated, why=estimated.why.removeprefix("as configured; "))
    size = f", but moves it by {test['largest']:.2g} standard errors at most" if test["rejected"] else ""
    return replace(plain, why=f"{plain.why}; {test['words']}{size}", details={"hausman": test})


def with_errors(estimated: Estimated, problem: EstimatorInput, kind: str) -> Fit:
    """Returns the estimate with its standard errors.

    Args:
        problem: The input of the estimator.
        kind: ``estimation.covariance``; those of the estimator itself where it has some.

    Raises:
        EstimationError: The kind does not suit the estimator, or needs what the data lack.
    """
    model, fit = problem.model, estimated.fit
    if estimated.errors is not None:
        return estimated.errors(kind)
    logs = problem.logs if estimated.logs is None else estimated.logs
    fit = with_covariance(fit, estimated.statistics, kind, model=model, logs=logs)
    if not model.loaded or not logs:
        return fit
    response = load_response(fit, model, logs, problem.prior)
    words = f"{fit.covariance_kind}; the load of friction counted as estimated"
    return replace(fit, covariance=response @ fit.covariance @ response.T, covariance_kind=words)


def cross_validated(converged: ConvergedFit, estimated: Estimated) -> CrossValidation:
    """Returns the held-out error per fold, with the structure of the model as selected on all data.

    Least squares finds the rigid torque of load-dependent friction in each fold from the others; from that of all data, which
    only saves time.

    Args:
        converged: Its unweighted rows are those on which errors are evaluated.
        estimated: The estimate; the time blocks of what it ``solved`` are those of the unweighted rows.

    Raises:
        EstimationError: A single log that is too short to be divided into folds.
    """
    model, build, refit = converged.model, for_folds(converged.build, converged.statistics), estimated.refit
    judged, learnt = folds_of(converged.statistics), folds_of(estimated.solved or estimated.statistics)

    def trained(fold: str) -> tuple[StatisticSet, Array]:
        if refit is not None or not model.loaded:
            fit = (refit or converged.estimate)(learnt.left_out(fold))
            return judged.only(fold), fit.base.embedded(fit.params)
        own = converge(
            model,
            build,
            lambda part: converged.estimate(folds_of(part).without([fold])),
            start=model.reference_theta,
            prior=converged.prior,
            tolerance=FOLD_TOLERANCE,
        )
        return folds_of(own.statistics).only(fold), own.fit.base.embedded(own.fit.params)

    return held_out(judged.logs, judged.groups, trained)
