"""Last stage: scores on logs that were not used in the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..errors import EstimationError
from ..estimation.elastic import spring_scores
from ..estimation.estimators.resting import weigh_alike
from ..estimation.uncertainty.prediction import seen_speeds
from ..linalg import Array, rms
from ..logs.recording import Recording, excerpts
from ..model.trained import outside
from ..parallel import one_thread
from ..result.dynamics.adaptation import chosen_settings
from ..result.dynamics.intervals import prediction_reach
from ..result.dynamics.speed_range import HeldOutMotion, errors_at_speeds
from ..result.evidence.scores import filtered_errors, predict, validate_log
from ..result.evidence.traces import LOGS, Traces, log_trace, speed_profile
from ..result.identification import Identification
from ..result.validation import ValidationReport
from ..samples import columns, fast_speed
from ..signals.filters import lowpass
from ..signals.prepare import PreparedLog, for_scores
from ..statistics.accumulate import build_statistics
from ..statistics.entries import blocks_of
from ..statistics.motions import motions_in_common
from ..statistics.statistic import StatisticSet
from .estimate import DataEstimate
from .training_logs import TrainingLogs, conditioned_as_in_fit

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
    return score_logs(ident, logs, behind_prediction_band(conditioned_as_in_fit(ident, logs, force), ident), force=force)


def behind_prediction_band(logs: Sequence[PreparedLog], ident: Identification) -> list[PreparedLog]:
    """Returns logs behind the low-pass for predictions, with pieces of motion that do not depend on the fit.

    Args:
        logs: Logs conditioned as for the fit, without averaging of periods.
    """
    if not ident.model.is_rigid:
        return list(logs)
    config = ident.project.scoring_config(ident.signals)
    return [for_scores(log, config) for log in logs]


def with_scores(ident: Identification, report: ValidationReport) -> Identification:
    """Returns the result with the scores and series of other logs, for a report on them.

    Args:
        report: Scores of other logs; training logs are marked as such.

    Returns:
        The result with ``validation`` and ``traces`` of those logs.
    """
    trained = {entry["log"] for entry in report.entries if entry["trained_on"]}
    shown = tuple(replace(trace, held_out=trace.log not in trained) for trace in report.logs)
    return replace(ident, validation=report.entries, traces=Traces(shown, ident.traces.speeds))


def score_logs(
    ident: Identification,
    recordings: Sequence[Recording],
    logs: Sequence[PreparedLog],
    *,
    force: bool = False,
    repeats: Mapping[str, str] | None = None,
) -> ValidationReport:
    """Scores a result on prepared logs.

    Args:
        recordings: The logs as read.
        force: Score logs in spite of findings that refuse them.
        repeats: Held-out logs that repeat the motion of a training log, with its name; None where this was not compared.
    """
    training = {log.sha256 for log in ident.inputs}
    model, project = ident.model, ident.project
    thetas = {"exported": ident.theta, "fit": ident.fit_theta, "urdf": ident.urdf_theta, "urdf_friction": ident.baseline}
    try:
        adaptation = None if not model.is_rigid else chosen_settings(ident)
    except EstimationError:  # the spread of friction is unknown
        adaptation = None
    entries, traces = [], []
    for recording, log in zip(recordings, logs, strict=True):
        entry, trace = validate_log(model, thetas, log, project.validation.score_cutoff, adaptation)
        entry["trained_on"] = bool(recording.sha256) and recording.sha256 in training
        if repeats and log.name in repeats:
            entry["repeats"] = repeats[log.name]
        faster = np.vstack([outside(model, part.v) for part in log.segments]).mean(axis=0)  # than friction was observed
        shares = zip(model.robot.joints, faster.tolist(), strict=True)
        entry["beyond_trained"] = {joint: share for joint, share in shares if share > _FASTER}
        if model.is_rigid and ident.prediction is not None:
            for joint, share in zip(entry["per_joint"], _interval_coverage(ident, log).tolist(), strict=True):
                joint["held"] = share
        traces.append(trace)
        if not model.is_rigid:
            entry["springs"] = spring_scores(model, ident.theta, log, log.conditioned.cutoff)
        if ident.residual is not None and recording.motor_position is not None:
            from .compensate import compensated_score

            entry["residual"] = compensated_score(ident, recording, project.validation.score_cutoff, force=force)
        entries.append(entry)
    set_apart = tuple(model.robot.joints[j] for j in sorted(model.apart))
    others = [float(entry["relative"]) for entry in ident.validation if not entry["trained_on"]]
    expected = max(others, default=ident.cross_validated)  # the error of the identification on its own held-out data
    return ValidationReport(model.robot.joints, tuple(entries), tuple(traces[:LOGS]), expected, repeats is not None, set_apart)


def _interval_coverage(ident: Identification, log: PreparedLog) -> Array:
    """Share of the torques of a log that their 95 % prediction intervals hold, shape (n,)."""
    every, held = max(1, sum(map(len, log.segments)) // _INTERVALS), []
    for segment in log.segments:
        error = segment.total - ident.model.effort_along(ident.theta, segment)
        error = lowpass(error, segment.rate, ident.prediction_band)[::every]
        ends = prediction_reach(ident, segment.q[::every], segment.v[::every], segment.a[::every])
        held.append((ends[..., 0] <= error) & (error <= ends[..., 1]))
    return np.asarray(np.vstack(held).mean(axis=0))


def with_validation(
    ident: Identification,
    from_data: DataEstimate,
    recordings: Sequence[Recording],
    logs: Sequence[PreparedLog],
    training: TrainingLogs,
    *,
    force: bool = False,
) -> Identification:
    """Returns the result with its scores on held-out logs, series for plots, and the errors to be expected at all speeds.

    Args:
        from_data: The estimates, with the factors that they are based on.
        recordings: The held-out logs as read.
        logs: The same, conditioned as for the fit.
        force: Score logs in spite of findings that refuse them.
    """
    statistics: list[StatisticSet] = []
    # the error of a log that repeats a training motion does not apply to other motions
    repeats = excerpts([log.recording for log in logs], [log.recording for log in from_data.logs])
    compared = from_data.model.is_rigid
    if compared:  # resting joints count as in the training logs; one log at a time: velocities may come from different sources
        weighed = weigh_alike(from_data.model, from_data.logs, ident.project.signal_config(), logs)
        blocks = blocks_of(len(logs))
        statistics = [build_statistics(from_data.model, [log], blocks=blocks) for log in weighed]
        repeated = [motions_in_common(some, from_data.statistics) for some in statistics]
        repeats = {log: other for some in repeated for log, other in some.items()} | repeats
    logs = behind_prediction_band(logs, ident)
    scored = score_logs(ident, recordings, logs, force=force, repeats=repeats if compared or repeats else None)
    model, cutoff = ident.model, float(ident.signals["cutoff"])
    series = list(scored.logs)
    thetas = np.column_stack([ident.theta, ident.urdf_theta, ident.baseline])
    for log in training.logs[:LOGS] if not series else ():
        torques = np.moveaxis(predict(model, thetas, log), -1, 0)
        predicted = dict(zip(("exported", "urdf", "urdf_friction"), torques, strict=True))
        series.append(log_trace(log, predicted, cutoff, held_out=False))
    speeds = speed_profile(model, ident.theta, training.logs, cutoff)
    ident = replace(ident, validation=scored.entries, traces=Traces(tuple(series), speeds))
    if ident.prediction is None:
        return ident
    tested = []
    for entry, log, log_statistics in zip(scored.entries, logs, statistics, strict=True):
        if not entry["trained_on"] and entry.get("repeats") is None:
            relative = np.array([joint["relative"] for joint in entry["per_joint"]])
            v = [segment.v for segment in log.segments]
            fast = np.array([fast_speed(column) for column in columns(v)])
            tested.append(HeldOutMotion(log_statistics.stacked(ident.fit.weights), fast, seen_speeds(v), relative))
    at_speeds = errors_at_speeds(ident, ident.prediction, training.trained, tested)
    return replace(ident, evidence=replace(ident.evidence, at_speeds=at_speeds))


def torque_error(ident: Identification, recording: Recording, *, force: bool = False) -> tuple[Array, Array]:
    """Error of the predicted torque, relative to the RMS of the joint's measured torque.

    Both torques are low-pass filtered as in the fit and the scores.

    Args:
        recording: A log with efforts.
        force: Use the log in spite of findings that refuse it.

    Returns:
        Time of the parts in motion, shape (N,) [s], and absolute error over the root mean square of the measured torque,
        shape (N, n) [1].

    Raises:
        QualityError: The log is refused.
    """
    (log,) = conditioned_as_in_fit(ident, [recording], force)
    tau, error = filtered_errors(log, predict(ident.model, ident.theta, log), ident.signals["cutoff"])
    time = np.concatenate([part.time for part in log.segments])
    return time, np.abs(error) / np.maximum(rms(tau, 0), np.finfo(float).tiny)
