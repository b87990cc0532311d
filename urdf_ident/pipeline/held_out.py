"""Fourth stage of an identification: what shows when held-out folds of the training data are predicted.

Every fold is predicted by parameters that the other folds, physics and the prior give. From these predictions follow the
low-pass of positions for predictions, the prediction intervals, the comparison with simpler models and with a black box, and
whether friction that adapts along a log would help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..comparison.other_models import compare_black_box, compare_simpler_models
from ..compensation.friction_filter import choose_adaptation
from ..consistency.standard import Standard
from ..errors import EstimationError
from ..estimation.uncertainty.prediction import (
    choose_prediction_band,
    held_out_parameters,
    held_out_residual,
)
from ..linalg import Array
from ..parallel import each
from ..result.dynamics import filter_settings
from ..result.identification import Identification
from ..result.record import with_note
from ..signals.prepare import PreparedLog, in_band, with_all_periods
from ..statistics.folds import CrossValidation, score_folds
from ..statistics.statistic import StatisticSet


def hold_out(
    ident: Identification, standard: Standard, statistics: StatisticSet, logs: Sequence[PreparedLog], *, compare: bool
) -> Identification:
    """Adds what the prediction of held-out folds shows; a note where none can be held out, nothing with elastic joints.

    Args:
        standard: The standard parameters, with those chosen without each fold.
        statistics: The data that they are based on.
        compare: Whether a black box learns the residual as well.
    """
    if not ident.model.is_rigid:
        return ident
    model, project, signals = ident.model, ident.project, ident.signals
    based_on: dict[str, Any] = {
        "statistics": statistics,
        "weights": ident.fit.weights,
        "prior": ident.prior,
        "weight": ident.prior_weight,
    }
    # 1. Parameters without each fold: chosen as the exported ones, if that is known; and without constraints if these count.
    try:
        by_fold = standard.without_folds() if standard.without_folds is not None else {}
        held = held_out_parameters(**based_on, logs=logs, by_fold=by_fold)
        unlimited = held_out_parameters(**based_on, logs=logs) if by_fold and ident.solver.get("active") else None
    except EstimationError as error:
        return with_note(ident, f"nothing was held out, so that there are no prediction intervals: {error}")
    # 2. All periods of the logs, behind the low-pass for predictions, which the error chooses if it is left open.
    by_spectrum = replace(project.scoring_config(signals), cutoff="auto")
    whole = [with_all_periods(log, by_spectrum) for log in logs]
    if project.signals.prediction == "auto" and project.signals.cutoff == "auto":
        score_cutoff = project.validation.score_cutoff
        compared = None if score_cutoff == "auto" else float(score_cutoff)
        band = choose_prediction_band(model, whole, held, by_spectrum, compared=compared)
        signals = {**signals, "prediction": band, "why": [*signals["why"], f"prediction: {band['why']}"]}
    banded = each(partial(in_band, config=project.scoring_config(signals)), whole)
    # 3. The errors behind it, beside those of simpler models and of a black box.
    residual, torque = held_out_residual(model, **based_on, logs=banded, held=held, unlimited=unlimited)
    ident = replace(
        ident,
        signals=signals,
        prediction=residual,
        cross_validation=_with_exported_errors(ident.cross_validation, statistics, by_fold),
        simpler_models=compare_simpler_models(ident, statistics, by_fold),
        black_box=compare_black_box(model, banded, held, torque, residual.band) if compare else {},
    )
    # 4. Whether friction that adapts along a log would predict better.
    try:
        plain = filter_settings(ident)
    except EstimationError:  # the spread of friction between the logs is unknown
        return ident
    return replace(ident, adaptation=choose_adaptation(plain, model.robot.joints, banded, torque, residual.band))


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
