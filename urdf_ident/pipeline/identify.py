"""Identification from logs: runs all stages in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import EstimationError, LimitError, ModelError
from ..estimation.uncertainty.prediction import held_out_parameters, held_out_residual
from ..estimation.uncertainty.prediction_band import choose_prediction_band, with_all_periods
from ..linalg import Array
from ..logs.recording import Recording
from ..logs.refusals import LeftOut, refuse_trained
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from ..motion.limits import Limits
from ..parallel import each, one_thread
from ..progress import Progress
from ..project import Project
from ..result.dynamics.speed_range import errors_at_speeds
from ..result.identification import Identification
from ..signals.prepare import PreparedLog, in_band
from ..statistics.folds import score_folds
from .adapt import validate_adaptation
from .black_box import check_black_box, compare_black_box
from .estimate import DataEstimate, estimate_from_data
from .floor import measure_floor
from .physics import Physical, complete
from .prepare import Prepared, prepare, prepare_each, prepare_usable
from .validate import behind_prediction_band, held_out_motions, repeated_motions, score_logs, traces, unseen_statistics


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
            (:mod:`.black_box`).
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
    logs, held_out, sweeps = _checked(model.robot, logs, held_out, sweeps)
    if compare:
        check_black_box()
    loops = project.compensation
    if compensated := loops.residual != "none" or bool(sweeps):
        # imported late: most robots have one encoder per joint
        from ..compensation.three_loop import check_compensation
        from .compensate import compensate

        check_compensation(model, logs, loops.residual, loops.inputs)
    if skip_bad_logs:
        prepared, refused = prepare_usable(model, logs, project, force, progress)
        logs, left_out = [log.recording for log in prepared.logs], [*left_out, *refused]
    else:
        prepared = prepare(model, logs, project, force, progress)
    # logs that cannot be scored raise before the fit
    unseen = prepare_each(held_out, prepared.model, project, project.further_config(prepared.signals), force)
    from_data = estimate_from_data(prepared, project, progress)
    result = _result(from_data, prepared, project, compare)
    result = replace(result, left_out=tuple(log.as_dict() for log in sorted(left_out, key=lambda log: log.path or log.name)))
    if compensated:
        result = compensate(result, logs, sweeps=sweeps, judged=True, force=force, progress=progress, **loops.options())
    return _scored(result, from_data, prepared, held_out, unseen, force)


def _scored(
    result: Identification,
    from_data: DataEstimate,
    prepared: Prepared,
    held_out: Sequence[Recording],
    unseen: Sequence[PreparedLog],
    force: bool,
) -> Identification:
    """Adds the scores of the held-out logs, the torques to be plotted, and the errors to be expected at other speeds."""
    factors = unseen_statistics(from_data, unseen, result.project.signal_config())
    repeats = repeated_motions(from_data, unseen, factors)
    unseen = behind_prediction_band(unseen, result)
    scored = score_logs(result, held_out, unseen, force=force, repeats=repeats)
    result = replace(result, validation=scored.entries, traces=traces(result, scored, prepared.logs))
    if not result.prediction or result.evidence is None:
        return result
    expected = errors_at_speeds(result, prepared.trained, held_out_motions(result, scored, unseen, factors))
    return replace(result, evidence=replace(result.evidence, at_speeds=expected))


def _result(from_data: DataEstimate, prepared: Prepared, project: Project, compare: bool) -> Identification:
    """Runs the third stage and returns its result."""
    model, fit = from_data.model, from_data.fit
    physical = complete(model, from_data.statistics, fit, from_data.prior, project, prepared.trained, from_data.reversals)
    solver = physical.standard.solver
    notes = [*from_data.notes, *physical.prior.notes, *solver.get("notes", ())]
    result = Identification(
        model,
        fit,
        physical.standard.theta,
        physical.prior,
        physical.factor,
        physical.baseline,
        solver={**solver, "notes": notes, **({"springs": from_data.springs} if from_data.springs else {})},
        signals=prepared.signals,
        inputs=tuple(log.as_dict() for log in prepared.logs),
        cross_validation=from_data.cross_validation,
        project=project,
        estimation=from_data.estimated.as_dict(),
        selection=from_data.selected.as_dict(),
        essential=from_data.essential,
        evidence=physical.evidence,
    )
    return _with_prediction(result, from_data, prepared, physical, compare)


def _with_prediction(
    ident: Identification, from_data: DataEstimate, prepared: Prepared, physical: Physical, compare: bool
) -> Identification:
    """Adds the held-out prediction error and whether adaptation would help; adds neither where nothing can be held out."""
    if not ident.model.is_rigid:
        return ident
    given = (from_data.statistics, ident.fit.weights, ident.prior, ident.prior_weight)
    project, model, payload = ident.project, ident.model, ident.project.build_payload(ident.model.robot)
    config = replace(project.scoring_config(ident.signals), cutoff="auto")
    try:
        without_folds = physical.standard.without_folds
        by_fold = without_folds() if without_folds is not None else {}
        held = held_out_parameters(*given, prepared.logs, by_fold)
        logs, held = with_all_periods(prepared.logs, held, model.robot, config, payload)
        if project.signals.prediction == "auto" == project.signals.cutoff:
            compared = project.validation.score_cutoff
            band = choose_prediction_band(
                model, logs, held, config, compared=None if compared == "auto" else float(compared), payload=payload
            )
            signals = {**ident.signals, "prediction": band.as_dict(), "why": [*ident.signals["why"], f"prediction: {band.why}"]}
            ident = replace(ident, signals=signals)
        config = project.scoring_config(ident.signals)
        logs = each(partial(in_band, robot=model.robot, config=config, payload=payload), logs)
        torque, unlimited = held.torque(model, logs), None
        if without_folds is not None and ident.solver.get("active"):
            unlimited = replace(held, theta=held_out_parameters(*given, prepared.logs).theta).torque(model, logs)
        found = held_out_residual(model, *given, logs, torque, unlimited)
    except EstimationError:
        return ident
    limits = tuple(ident.solver.get("active", ()))
    floor = measure_floor(model, from_data.statistics, ident.fit, ident.prior.theta0, by_fold, limits)
    cross_validation = _with_exported(ident, from_data, by_fold)
    black_box = compare_black_box(model, logs, held, torque.parts, found.band) if compare else {}
    ident = replace(ident, black_box=black_box, prediction=found.as_dict(), cross_validation=cross_validation, floor=floor)
    return replace(ident, adaptation=validate_adaptation(ident, logs, torque.parts, found.band))


def _with_exported(ident: Identification, from_data: DataEstimate, by_fold: Mapping[str, Array]) -> Mapping[str, Any]:
    """The cross-validation of the fit, with the errors of the exported parameters on the same folds and rows."""
    known = ident.cross_validation
    if not known or set(known["folds"]) != set(by_fold):
        return known
    found = score_folds(from_data.statistics, by_fold)
    at = [found.groups.index(group) for group in known["groups"]]
    return {**known, "exported_rmse": found.group_rmse[at].tolist(), "effort_rms": found.group_effort[at].tolist()}


def _checked(robot: Robot, *kinds: Sequence[Recording]) -> tuple[Sequence[Recording], Sequence[Recording], Sequence[Recording]]:
    """Training, held-out and sweep logs with their joints in the robot's order; refuses held-out logs that are also trained."""
    Limits.from_robot(robot)  # raises if the limits leave no room
    logs, held_out, sweeps = ([log.ordered(robot) for log in some] for some in kinds)
    refuse_trained(
        {log.sha256: log.name for log in (*logs, *sweeps)},
        held_out,
        "this held-out log is also one of the training logs",
        "leave it out of one of the two lists",
    )
    return logs, held_out, sweeps


def motion_advice(ident: Identification) -> str:
    """One line on what another motion would determine; empty if none can be planned, or the logs have faults."""
    from ..excitation.sequential import forecast_random_motion

    findings = {finding["severity"] for log in ident.inputs for finding in log["findings"]}
    if ident.verdict.level == "poor" or {"warning", "refused"} & findings:
        return ""
    settings = ident.project.excitation
    try:
        expected = forecast_random_motion(ident, settings.options(ident.model.robot)["limits"], settings.duration)
    except (LimitError, ModelError):  # no limits in the URDF, or elastic joints: `design` reports it
        return ""
    return f"next: {expected.sentence()}, even with a random motion; --next TRAJ.csv designs a better one"
