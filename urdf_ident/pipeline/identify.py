"""The command `identify`: all stages in order, of which the fourth, the errors on motion that took no part, is here too.

Every fold of the training data is predicted by parameters that the other folds, physics and the prior give. From these
predictions follow the low-pass of positions for predictions, the prediction intervals, the comparison with simpler models and
with a black box, and whether friction that adapts along a log would help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..comparison.other_models import check_black_box, compare_black_box, compare_simpler_models
from ..compensation.friction_filter import choose_adaptation
from ..errors import EstimationError, LimitError, ModelError
from ..estimation.elastic import check_drive_used
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
from ..logs.recording import Recording
from ..logs.refusals import LeftOut, refuse_trained
from ..model.dynamic_model import DynamicModel
from ..motion.limits import Limits
from ..parallel import each, one_thread
from ..progress import Progress
from ..project import Project
from ..result.dynamics import filter_settings
from ..result.identification import Identification
from ..result.record import with_note
from ..signals.prepare import PreparedLog, in_band, with_all_periods
from ..statistics.folds import CrossValidation, score_folds
from ..statistics.statistic import StatisticSet
from .checked_logs import further_logs, training_logs
from .estimate import Physical, estimate_from_data, physical_parameters
from .validate import with_validation


@one_thread()
def identify(
    model: DynamicModel,
    logs: Sequence[Recording],
    *,
    held_out: Sequence[Recording] = (),
    sweeps: Sequence[Recording] = (),
    project: Project | None = None,
    force: bool = False,
    skip_bad_logs: bool = False,
    compare: bool = False,
    left_out: Sequence[LeftOut] = (),
    progress: Progress | None = None,
) -> Identification:
    """Identifies a robot from its logs.

    Args:
        model: The dynamic model.
        logs: Training logs.
        held_out: Logs to score on; they take no part in the fit.
        sweeps: Runs at constant speed in both directions, one joint at a time, for friction curves.
        project: Settings; all defaults if None.
        force: Use logs in spite of findings that refuse them.
        skip_bad_logs: Skip training logs that are refused and continue with the others; ``left_out`` of the result
            names them. If False, one such log raises.
        compare: Also learn the residual by gradient boosting, to tell how much of the held-out error is predictable
            (:mod:`.other_models`).
        left_out: Logs that were already skipped when they were read, to be named in the result.
        progress: Called with the name of the current log and the number of rows done.

    Raises:
        QualityError: A log is refused.
        LogError: A held-out log is also a training log, or no log was given.
        EstimationError: There are too few data.
        SolverError: The consistency step failed.
        LimitError: Position limits of the URDF leave no room.
        MissingExtraError: ``compare`` needs scikit-learn.
    """
    project = project or Project()
    Limits.from_robot(model.robot)  # raises if the limits leave no room
    logs, held_out, sweeps = ([log.ordered(model.robot) for log in some] for some in (logs, held_out, sweeps))
    refuse_trained(
        {log.sha256: log.name for log in (*logs, *sweeps)},
        held_out,
        "this held-out log is also one of the training logs",
        "leave it out of one of the two lists",
    )
    loops = project.compensation
    with_loops = loops.residual != "none" or bool(sweeps)
    check_drive_used(model, (*logs, *held_out, *sweeps), deformation=with_loops)
    if compare:
        check_black_box()
    if with_loops:
        # imported late: most robots have one encoder per joint
        from ..compensation.three_loop import check_compensation
        from .compensate import compensate

        check_compensation(model, logs, loops.residual, loops.inputs)
    prepared = training_logs(model, logs, project, force, skip_bad_logs)
    logs, left_out = [log.recording for log in prepared.logs], [*left_out, *prepared.left_out]
    # logs that cannot be scored raise before the fit
    conditioned_held_out = further_logs(held_out, prepared.model, project, project.further_config(prepared.signals), force)
    from_data = estimate_from_data(prepared, project, progress)
    physical = physical_parameters(from_data, project, prepared.trained)
    result = physical.result(
        project,
        [*from_data.notes, *physical.estimate.prior.notes],
        signals=prepared.signals,
        inputs=tuple(log.summed_up() for log in prepared.logs),
        left_out=tuple(sorted(left_out, key=lambda log: log.path or log.name)),
    )
    result = hold_out(result, physical, prepared.logs, compare=compare)
    if with_loops:  # its result keeps only the low-pass for predictions of what the folds show
        result = compensate(result, logs, sweeps=sweeps, judged=True, force=force, progress=progress, **loops.options())
    return with_validation(result, from_data, held_out, conditioned_held_out, prepared, force=force)


def motion_advice(ident: Identification) -> str:
    """One line on what another motion would determine; empty if none can be planned, or the logs have faults."""
    from ..excitation.sequential import forecast_random_motion

    severities = {finding.severity for log in ident.inputs for finding in log.findings}
    if ident.verdict.level == "poor" or {"warning", "refused"} & severities:
        return ""
    settings = ident.project.excitation
    try:
        expected = forecast_random_motion(ident, settings.build_limits(ident.model.robot), settings.duration)
    except (LimitError, ModelError):  # no limits in the URDF, or elastic joints: `design` reports it
        return ""
    return f"next: {expected.sentence()}, even with a random motion; --next TRAJ.csv designs a better one"


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
        signals, banded, held, torque, residual = _predicted_folds(
            ident, statistics, logs, by_fold=by_fold, constrained=bool(constraints)
        )
    except EstimationError as error:
        return with_note(ident, f"nothing was held out, so that there are no prediction intervals: {error}")
    ident = replace(
        ident,
        signals=signals,
        prediction=residual,
        cross_validation=_with_exported_errors(ident.cross_validation, statistics, by_fold),
        simpler_models=compare_simpler_models(model, statistics, ident.fit, ident.prior.theta0, by_fold, constraints),
        black_box=compare_black_box(model, banded, held, torque, residual.band) if compare else {},
    )
    try:
        plain = filter_settings(ident)
    except EstimationError:  # the spread of friction between the logs is unknown
        return ident
    return replace(ident, adaptation=choose_adaptation(plain, model.robot.joints, banded, torque, residual.band))


def _predicted_folds(
    ident: Identification,
    statistics: StatisticSet,
    logs: Sequence[PreparedLog],
    *,
    by_fold: Mapping[str, Array],
    constrained: bool,
) -> tuple[Mapping[str, Any], list[PreparedLog], HeldOutParameters, HeldOutTorque, HeldOutResidual]:
    """Predicts every fold of the logs behind the low-pass for predictions, which the error chooses if it is left open.

    Args:
        by_fold: Parameters chosen as the exported ones without each fold, shape (p,) each; empty if unknown.
        constrained: Whether constraints are active in the exported parameters: their errors without them are added.

    Returns:
        signals: The conditioning with the low-pass.
        banded: The logs behind it.
        held: Parameters without each fold.
        torque: The torque that they predict.
        residual: The quantiles of its error.
    """
    model, project, signals = ident.model, ident.project, ident.signals
    based_on: dict[str, Any] = {
        "statistics": statistics,
        "weights": ident.fit.weights,
        "prior": ident.prior,
        "weight": ident.prior_weight,
    }
    # 1. parameters without each fold, on all periods of the logs, without a low-pass
    spectrum = replace(project.scoring_config(signals), cutoff="auto")
    whole = [with_all_periods(log, spectrum) for log in logs]
    held = in_all_periods(held_out_parameters(**based_on, logs=logs, by_fold=by_fold), logs, whole)
    # 2. the low-pass for predictions
    if project.signals.prediction == "auto" and project.signals.cutoff == "auto":
        score_cutoff = project.validation.score_cutoff
        compared = None if score_cutoff == "auto" else float(score_cutoff)
        band = choose_prediction_band(model, whole, held, spectrum, compared=compared)
        signals = {**signals, "prediction": band, "why": [*signals["why"], f"prediction: {band['why']}"]}
    banded = each(partial(in_band, config=project.scoring_config(signals)), whole)
    # 3. errors behind it, and where constraints are active those without them
    limited = bool(by_fold) and constrained
    unlimited = replace(held, theta=held_out_parameters(**based_on, logs=logs).theta) if limited else None
    residual, torque = held_out_residual(model, **based_on, logs=banded, held=held, unlimited=unlimited)
    return signals, banded, held, torque, residual


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
