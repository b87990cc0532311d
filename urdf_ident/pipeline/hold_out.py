"""Fourth stage: the errors on motion that took no part, from the training logs alone.

Every fold of the data is predicted by parameters that the other folds, physics and the prior give. From these predictions
follow the low-pass of positions for predictions, the prediction intervals, the comparison with simpler models and with a black
box, and whether friction that adapts along a log would help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..comparison.black_box import compare_black_box
from ..comparison.simpler_models import compare_simpler_models
from ..compensation.adaptation_choice import choose_adaptation
from ..errors import EstimationError
from ..estimation.uncertainty.prediction import (
    HeldOutParameters,
    HeldOutResidual,
    HeldOutTorque,
    choose_prediction_band,
    held_out_parameters,
    held_out_residual,
    in_all_periods,
)
from ..linalg import Array
from ..parallel import each
from ..result.dynamics.adaptation import filter_settings
from ..result.identification import Identification
from ..result.record import with_note
from ..signals.prepare import PreparedLog, in_band, with_all_periods
from ..statistics.folds import CrossValidation, score_folds
from ..statistics.statistic import StatisticSet
from .physics import Physical


def hold_out(ident: Identification, physical: Physical, logs: Sequence[PreparedLog], *, compare: bool) -> Identification:
    """Adds what the prediction of held-out folds shows; a note where none can be held out, nothing with elastic joints.

    Args:
        physical: The standard parameters, with those chosen without each fold, and the data that they are based on.
        compare: Whether a black box learns the residual as well.
    """
    if not ident.model.is_rigid:
        return ident
    model, statistics, without_folds = ident.model, physical.estimate.statistics, physical.standard.without_folds
    constraints = tuple(ident.solver.get("active", ()))
    try:
        by_fold = {} if without_folds is None else without_folds()
        held_out = _predicted_folds(ident, statistics, logs, by_fold, constrained=bool(constraints))
    except EstimationError as error:
        return with_note(ident, f"nothing was held out, so that there are no prediction intervals: {error}")
    logs, residual = held_out.logs, held_out.residual
    ident = replace(
        ident,
        signals=held_out.signals,
        prediction=residual,
        cross_validation=_with_exported_errors(ident.cross_validation, statistics, by_fold),
        simpler_models=compare_simpler_models(model, statistics, ident.fit, ident.prior.theta0, by_fold, constraints),
        black_box=compare_black_box(model, logs, held_out.parameters, held_out.torque, residual.band) if compare else {},
    )
    try:
        plain = filter_settings(ident)
    except EstimationError:  # the spread of friction between the logs is unknown
        return ident
    return replace(ident, adaptation=choose_adaptation(plain, model.robot.joints, logs, held_out.torque, residual.band))


class _PredictedFolds(NamedTuple):
    """Folds of logs, behind the low-pass in ``signals``, predicted from the others; torque: (N, n) by segment [N·m or N]."""

    signals: Mapping[str, Any]
    logs: list[PreparedLog]
    parameters: HeldOutParameters
    torque: HeldOutTorque
    residual: HeldOutResidual


def _predicted_folds(
    ident: Identification,
    statistics: StatisticSet,
    logs: Sequence[PreparedLog],
    by_fold: Mapping[str, Array],
    constrained: bool,
) -> _PredictedFolds:
    """Predicts every fold of the logs behind the low-pass for predictions, which the error chooses if it is left open.

    Args:
        by_fold: Parameters chosen as the exported ones without each fold, shape (p,) each; empty if unknown.
        constrained: Whether constraints are active in the exported parameters: their errors without them are added.
    """
    model, project, signals = ident.model, ident.project, ident.signals
    based_on: dict[str, Any] = {"statistics": statistics, "weights": ident.fit.weights}
    based_on |= {"prior": ident.prior, "weight": ident.prior_weight}
    spectrum = replace(project.scoring_config(signals), cutoff="auto")
    whole = [with_all_periods(log, spectrum) for log in logs]
    held = in_all_periods(held_out_parameters(**based_on, logs=logs, by_fold=by_fold), logs, whole)
    if project.signals.prediction == "auto" and project.signals.cutoff == "auto":
        score_cutoff = project.validation.score_cutoff
        compared = None if score_cutoff == "auto" else float(score_cutoff)
        band = choose_prediction_band(model, whole, held, spectrum, compared=compared)
        signals = {**signals, "prediction": band, "why": [*signals["why"], f"prediction: {band['why']}"]}
    banded = each(partial(in_band, config=project.scoring_config(signals)), whole)
    unlimited = None
    if by_fold and constrained:
        unlimited = replace(held, theta=held_out_parameters(**based_on, logs=logs).theta)
    residual, torque = held_out_residual(model, **based_on, logs=banded, held=held, unlimited=unlimited)
    return _PredictedFolds(signals, banded, held, torque, residual)


def _with_exported_errors(
    known: CrossValidation | None, statistics: StatisticSet, by_fold: Mapping[str, Array]
) -> CrossValidation | None:
    """Adds the errors of the exported parameters on the same folds and rows, if they are known for these folds."""
    if known is None or set(known.folds) != set(by_fold):
        return known
    scored = score_folds(statistics, by_fold)
    columns = [scored.groups.index(group) for group in known.groups]
    exported = CrossValidation(scored.folds, known.groups, scored.rmse[:, columns], scored.effort_rms[:, columns])
    return replace(known, exported=exported)
