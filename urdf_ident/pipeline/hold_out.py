"""Fourth stage: the errors on motion that took no part, from the training logs alone.

Every fold of the data is predicted by parameters that the other folds, physics and the prior give. From these predictions
follow the low-pass of positions for predictions, the prediction intervals, the comparison with simpler models and with a black
box, and whether friction that adapts along a log would help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ..comparison.black_box import compare_black_box
from ..comparison.simpler_models import compare_simpler_models
from ..compensation.adaptation_choice import choose_adaptation
from ..errors import EstimationError
from ..estimation.uncertainty.prediction import choose_prediction_band, held_out_parameters, held_out_residual, in_all_periods
from ..parallel import each
from ..result.dynamics.adaptation import filter_settings
from ..result.identification import Identification
from ..result.record import with_note
from ..signals.prepare import PreparedLog, in_band, with_all_periods
from ..statistics.folds import CrossValidation, score_folds
from .physics import Physical


def hold_out(ident: Identification, physical: Physical, logs: Sequence[PreparedLog], *, compare: bool) -> Identification:
    """Adds what the prediction of held-out folds shows; a note where none can be held out, nothing with elastic joints.

    Args:
        physical: The standard parameters, with those chosen without each fold, and the data that they are based on.
        logs: The training logs.
        compare: Whether a black box learns the residual as well.
    """
    if not ident.model.is_rigid:
        return ident
    model, project, statistics = ident.model, ident.project, physical.estimate.statistics
    without_folds = physical.standard.without_folds
    given = (statistics, ident.fit.weights, ident.prior, ident.prior_weight)
    constraints, signals = tuple(ident.solver.get("active", ())), ident.signals
    try:
        by_fold = {} if without_folds is None else without_folds()
        held = held_out_parameters(*given, logs, by_fold)
        spectrum = replace(project.scoring_config(ident.signals), cutoff="auto")
        whole = [with_all_periods(log, spectrum) for log in logs]
        held = in_all_periods(held, logs, whole)
        if project.signals.prediction == "auto" and project.signals.cutoff == "auto":
            compared = project.validation.score_cutoff
            limit = None if compared == "auto" else float(compared)
            band = choose_prediction_band(model, whole, held, spectrum, compared=limit)
            signals = {**signals, "prediction": band, "why": [*signals["why"], f"prediction: {band['why']}"]}
        banded = each(partial(in_band, config=project.scoring_config(signals)), whole)
        unlimited = None
        if without_folds is not None and constraints:
            unlimited = replace(held, theta=held_out_parameters(*given, logs).theta)
        residual, torque = held_out_residual(model, *given, banded, held, unlimited)
    except EstimationError as error:
        return with_note(ident, f"nothing was held out, so that there are no prediction intervals: {error}")
    # errors of the exported parameters on the same folds and rows
    cross_validation = ident.cross_validation
    if cross_validation is not None and set(cross_validation.folds) == set(by_fold):
        scored = score_folds(statistics, by_fold)
        at = [scored.groups.index(group) for group in cross_validation.groups]
        exported = CrossValidation(scored.folds, cross_validation.groups, scored.rmse[:, at], scored.effort_rms[:, at])
        cross_validation = replace(cross_validation, exported=exported)
    ident = replace(
        ident,
        signals=signals,
        prediction=residual,
        cross_validation=cross_validation,
        simpler_models=compare_simpler_models(model, statistics, ident.fit, ident.prior.theta0, by_fold, constraints),
        black_box=compare_black_box(model, banded, held, torque, residual.band) if compare else {},
    )
    try:
        plain = filter_settings(ident)
    except EstimationError:  # the spread of friction between the logs is unknown
        return ident
    return replace(ident, adaptation=choose_adaptation(plain, model.robot.joints, banded, torque, residual.band))
