"""Last stage, and the command `validate`: scores on logs that were not used in the fit, with verdict and remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..compensation.residual import Residual
from ..errors import EstimationError
from ..estimation.elastic import spring_scores
from ..estimation.estimators.resting import weigh_alike
from ..estimation.uncertainty.prediction import seen_speeds
from ..linalg import Array, rms
from ..logs.recording import Recording, excerpts
from ..model.trained import outside
from ..parallel import one_thread
from ..result.dynamics import chosen_settings
from ..result.identification import Identification
from ..result.intervals import HeldOutMotion, errors_at_speeds, prediction_reach
from ..result.scores import (
    LOGS,
    MOST_SAMPLES,
    LogTrace,
    Traces,
    filtered_errors,
    log_trace,
    predict,
    predict_all,
    score,
    speed_profile,
    validate_log,
)
from ..result.validation import ValidationReport
from ..samples import Segment, columns, fast_speed
from ..signals.filters import lowpass
from ..signals.prepare import PreparedLog, for_scores
from ..statistics.accumulate import build_statistics
from ..statistics.motions import motions_in_common
from ..statistics.statistic import blocks_of
from .checked_logs import TrainingLogs, conditioned_as_in_fit
from .estimate import DataEstimate

#: Share of samples beyond the trained speeds from which it is reported.
_FASTER = 0.05
#: Number of states of a log at which intervals are compared with its torques: a share of 0.85 is then known within 0.03.
_INTERVALS = 500


@one_thread()
def validate(ident: Identification, logs: Sequence[Recording], *, force: bool = False) -> ValidationReport:
    """Scores a result on logs that were not used in the fit, conditioned as the training logs were.

    Args:
        ident: The result.
        logs: The held-out logs.
        force: Score logs in spite of findings that refuse them.

    Returns:
        The scores.

    Raises:
        QualityError: A log is refused.
    """
    return score_logs(ident, behind_prediction_band(conditioned_as_in_fit(ident, logs, force), ident), force=force)


def behind_prediction_band(logs: Sequence[PreparedLog], ident: Identification) -> list[PreparedLog]:
    """Returns logs, conditioned as for the fit, behind the low-pass for predictions; the fit does not choose their samples."""
    if not ident.model.is_rigid:
        return list(logs)
    config = ident.project.scoring_config(ident.signals)
    return [for_scores(log, config) for log in logs]


def with_scores(ident: Identification, report: ValidationReport) -> Identification:
    """Returns the result with the scores and series of other logs, for a report on them; training logs are marked as such."""
    trained = {entry["log"] for entry in report.entries if entry["trained_on"]}
    shown = tuple(replace(trace, held_out=trace.log not in trained) for trace in report.logs)
    return replace(ident, validation=report.entries, traces=Traces(shown, ident.traces.speeds))


def score_logs(
    ident: Identification,
    logs: Sequence[PreparedLog],
    *,
    force: bool = False,
    repeats: Mapping[str, str] | None = None,
) -> ValidationReport:
    """Scores a result on prepared logs.

    Args:
        repeats: Held-out logs that repeat the motion of a training log, with its name; None where this was not compared.
    """
    trained_on = {log.sha256 for log in ident.inputs}
    model, project = ident.model, ident.project
    thetas = {"exported": ident.theta, "fit": ident.fit_theta, "urdf": ident.urdf_theta, "urdf_friction": ident.baseline}
    try:
        adaptation = None if not model.is_rigid else chosen_settings(ident)
    except EstimationError:  # the spread of friction is unknown
        adaptation = None
    entries, traces = [], []
    for log in logs:
        entry, trace = validate_log(model, thetas, log, project.validation.score_cutoff, adaptation)
        entry["trained_on"] = bool(log.recording.sha256) and log.recording.sha256 in trained_on
        if repeats and log.name in repeats:
            entry["repeats"] = repeats[log.name]
        # samples faster than friction was observed
        faster = np.vstack([outside(model, segment.v) for segment in log.segments]).mean(axis=0)
        shares = zip(model.robot.joints, faster.tolist(), strict=True)
        entry["beyond_trained"] = {joint: share for joint, share in shares if share > _FASTER}
        if model.is_rigid and ident.prediction is not None:
            for joint, share in zip(entry["per_joint"], _interval_coverage(ident, log).tolist(), strict=True):
                joint["held"] = share
        traces.append(trace)
        if not model.is_rigid:
            entry["springs"] = spring_scores(model, ident.theta, log, log.conditioned.cutoff)
        if ident.residual is not None and log.recording.motor_position is not None:
            entry["residual"] = _residual_scores(ident, ident.residual, log, entry["score_cutoff"], force)
        entries.append(entry)
    set_apart = tuple(model.robot.joints[j] for j in sorted(model.apart))
    others = [float(entry["relative"]) for entry in ident.validation if not entry["trained_on"]]
    expected = max(others, default=ident.cross_validated)  # the error of the identification on its own held-out data
    return ValidationReport(model.robot.joints, tuple(entries), tuple(traces[:LOGS]), expected, repeats is not None, set_apart)


def _residual_scores(ident: Identification, residual: Residual, log: PreparedLog, cutoff: float, force: bool) -> dict[str, Any]:
    """Mean errors and those of each joint on a log with and without the residual [N·m or N], as in the scores.

    Args:
        cutoff: Zero-phase low-pass of measured and predicted torque [Hz].
        force: Whether a log that the checks refuse is used.
    """
    from ..compensation.three_loop import residual_torque  # imported late: most robots have one encoder per joint

    model = ident.model
    if residual.ripple is not None:
        clean = residual.ripple.cleaned(log.recording, model.drive)
        (log,) = behind_prediction_band(conditioned_as_in_fit(ident, [clean], force), ident)
    rigid = predict(model, ident.theta, log)
    full = rigid + np.concatenate([residual_torque(residual, segment) for segment in log.segments])
    rmse, rigid_rmse = (score(log, predicted, cutoff).rmse for predicted in (full, rigid))
    joints = [
        {"joint": joint, "rmse": error, "rigid_rmse": rigid_error}
        for joint, error, rigid_error in zip(model.robot.joints, rmse.tolist(), rigid_rmse.tolist(), strict=True)
    ]
    return {"mean_rmse": float(rmse.mean()), "rigid_mean_rmse": float(rigid_rmse.mean()), "per_joint": joints}


def _interval_coverage(ident: Identification, log: PreparedLog) -> Array:
    """Share of the torques of a log that their 95 % prediction intervals hold, shape (n,)."""
    step = max(1, sum(map(len, log.segments)) // _INTERVALS)
    held = []
    for segment in log.segments:
        error = segment.total - ident.model.effort_along(ident.theta, segment)
        error = lowpass(error, segment.rate, ident.prediction_band, rows=slice(None, None, step))
        ends = prediction_reach(ident, segment.q[::step], segment.v[::step], segment.a[::step])
        held.append((ends[..., 0] <= error) & (error <= ends[..., 1]))
    return np.asarray(np.vstack(held).mean(axis=0))


def with_validation(
    ident: Identification,
    from_data: DataEstimate,
    logs: Sequence[PreparedLog],
    training: TrainingLogs,
    *,
    force: bool = False,
) -> Identification:
    """Adds the scores on held-out logs, series for plots, and the errors to be expected at all speeds."""
    # 1. Logs that repeat a training motion, whose error does not apply to other motions: with the same samples, or, which is
    # compared of rigid joints alone, with the same motion. One log at a time, as velocities may come from different sources.
    model, blocks = from_data.model, blocks_of(len(logs))
    weighed = weigh_alike(model, from_data.logs, ident.project.signal_config(), logs) if model.is_rigid else []
    statistics = [build_statistics(model, [log], blocks=blocks) for log in weighed]
    same_motions = [motions_in_common(of_log, from_data.statistics) for of_log in statistics]
    same_samples = excerpts([log.recording for log in logs], [log.recording for log in from_data.logs])
    repeats = {log: other for pairs in (*same_motions, same_samples) for log, other in pairs.items()}
    # 2. Scores behind the low-pass for predictions, and series for plots.
    banded, compared = behind_prediction_band(logs, ident), model.is_rigid or bool(repeats)
    report = score_logs(ident, banded, force=force, repeats=repeats if compared else None)
    series = report.logs or _training_series(ident, training.logs[:LOGS])
    speeds = speed_profile(ident.model, ident.theta, training.logs, float(ident.signals["cutoff"]))
    ident = replace(ident, validation=report.entries, traces=Traces(series, speeds))
    if ident.prediction is None:
        return ident
    # 3. Errors to be expected at all speeds, from those of logs with other motions.
    tested = [
        _tested_motion(entry, log, of_log.stacked(ident.fit.weights))
        for entry, log, of_log in zip(report.entries, banded, statistics, strict=True)
        if not entry["trained_on"] and entry.get("repeats") is None
    ]
    at_speeds = errors_at_speeds(ident, ident.prediction, training.trained, tested)
    return replace(ident, evidence=replace(ident.evidence, at_speeds=at_speeds))


def _training_series(ident: Identification, logs: Sequence[PreparedLog]) -> tuple[LogTrace, ...]:
    """Series of training logs for plots, beside the torques of the URDF without and with fitted friction; of a long one its
    beginning."""
    thetas = {"exported": ident.theta, "urdf": ident.urdf_theta, "urdf_friction": ident.baseline}
    begun = [log.with_segments(_beginning(log.segments)) for log in logs]
    cutoff = float(ident.signals["cutoff"])
    return tuple(log_trace(log, predict_all(ident.model, thetas, log), cutoff, held_out=False) for log in begun)


def _beginning(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Yields the first :data:`.MOST_SAMPLES` samples of a log."""
    left = MOST_SAMPLES
    for segment in segments:
        if left > 0:
            yield segment.slice(0, min(len(segment), left))
        left -= len(segment)


def _tested_motion(entry: Mapping[str, Any], log: PreparedLog, factor: Array) -> HeldOutMotion:
    """The errors of a held-out log with its rows and speeds; entry: its scores; factor: triangular, of its weighted rows."""
    relative = np.array([joint["relative"] for joint in entry["per_joint"]])
    v = [segment.v for segment in log.segments]
    fast = np.array([fast_speed(column) for column in columns(v)])
    return HeldOutMotion(factor, fast, seen_speeds(v), relative)


def torque_error(ident: Identification, recording: Recording, *, force: bool = False) -> tuple[Array, Array]:
    """Error of the predicted torque of a log relative to the RMS of the measured one, both low-pass filtered as in the fit.

    Returns:
        Time of the motion, shape (N,) [s], and absolute error over the RMS of the measured torque, shape (N, n) [1].
    """
    (log,) = conditioned_as_in_fit(ident, [recording], force)
    tau, error = filtered_errors(log, predict(ident.model, ident.theta, log), ident.signals["cutoff"])
    time = np.concatenate([segment.time for segment in log.segments])
    return time, np.abs(error) / np.maximum(rms(tau, 0), np.finfo(float).tiny)
