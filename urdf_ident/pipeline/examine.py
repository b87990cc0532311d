"""Logs examined against the URDF: each alone, against rigid-body physics, and for delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import LogError, UrdfIdentError
from ..faults.contradictions import moved_alike, physics_findings
from ..faults.delay import Delay, find_delay
from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..linalg import Array
from ..logs.recording import Recording
from ..logs.refusals import all_usable
from ..model.drive import Drive
from ..model.payload import Payload
from ..model.robot import Robot
from ..signals.config import SignalConfig
from ..signals.motor_side import require_effect
from ..signals.prepare import (
    PreparedLog,
    assessed,
    conditioned_logs,
    refusal,
    suspecting_payload,
    with_automatic,
)
from ..signals.quality.hidden_delays import known_delays
from ..signals.quality.report import QualityReport


def examine_logs(
    recordings: Sequence[Recording],
    robot: Robot,
    drive: Drive,
    config: SignalConfig,
    *,
    payload: Payload | None = None,
    unknown: UrdfIdentError | None = None,
    motors_used: bool = False,
) -> list[QualityReport]:
    """Assesses several logs of one robot, each alone and against each other, without refusing any.

    Args:
        recordings: As read.
        drive: The drive; unknown torque constants are 1.
        payload: The payload that some of the logs carry, or None.
        unknown: The reason if torque constants are unknown: efforts are then not compared with the URDF; None: they are
            known.
        motors_used: Whether the model uses motor positions besides those of the joints.

    Returns:
        A report for each log; errors of the conditioning are among its findings.

    Raises:
        LogError: The effort is a current without a known gain, or a setting of the drive has no effect.
    """
    require_effect(recordings, drive, motors_used=motors_used)
    reports = assessed(recordings, robot, drive, config, as_logged=unknown is not None)
    # the accepted logs, conditioned alike; those that cannot be conditioned get a finding
    kept, usable = [k for k, report in enumerate(reports) if report.verdict.level != "poor"], dict[int, PreparedLog]()
    while kept and not usable:
        try:
            made = conditioned_logs([recordings[k] for k in kept], [reports[k] for k in kept], robot, config, payload)
            usable = dict(zip(kept, made, strict=True))
            for k, log in usable.items():
                reports[k] = log.report
        except LogError as error:
            if not error.logs.keys() & {recordings[k].name for k in kept}:  # it does not concern individual logs
                raise
            for k in tuple(kept):
                if why := error.logs.get(recordings[k].name):
                    refused = Judgement(Id.NOT_USABLE, why.fact, Remedy(why.remedy or ""))
                    reports[k] = reports[k].with_findings((*reports[k].findings, refused))
                    kept.remove(k)
    if unknown is not None:
        message = f"the torque constants are not known ({unknown.what}): efforts are looked at as logged, not against the URDF"
        judgement = Judgement(Id.CONSTANTS_UNKNOWN, message, Remedy(unknown.remedy or ""))
        return [report.with_findings((*report.findings, judgement)) for report in reports]
    logs = [log.with_findings(suspecting_payload(payload, log.report.findings)) for log in usable.values()]
    logs = with_contradictions(logs, robot, config, drive.reduction)
    delay = estimated_delay(logs, robot, drive.reduction)
    of_delay = () if delay is None else (*delay.findings(), *delay.filter_findings())
    for k, log in zip(usable, with_delays(logs, of_delay), strict=True):
        reports[k] = log.report.with_findings(_taken_out(judged, config) for judged in log.report.findings)
    return reports


def with_contradictions(
    logs: Sequence[PreparedLog], robot: Robot, config: SignalConfig, reduction: Array | None
) -> list[PreparedLog]:
    """Adds contradictions with rigid-body physics to the findings of logs that were prepared together.

    Args:
        reduction: Matrix from joint to motor velocities, shape (n, n), or None if every motor drives one joint.
    """
    logs = with_automatic(logs, config)
    examined = [(log.examined.segments, log.examined.cutoff) for log in logs]
    if any(judged.id == Id.POSITION_TWICE for log in logs for judged in log.report.findings):
        alike = moved_alike(robot, examined, reduction)
        kept = [[item for item in log.report.findings if item.id != Id.POSITION_TWICE] for log in logs]
        logs = [log.with_findings(some) if same else log for log, some, same in zip(logs, kept, alike, strict=True)]
    contradictions = physics_findings(robot, examined, reduction)
    stated = [
        [_at_rate(judged, log.examined.rate) for judged in findings] for log, findings in zip(logs, contradictions, strict=True)
    ]
    return _with_findings(
        logs, [suspecting_payload(log.payload, judgements) for log, judgements in zip(logs, stated, strict=True)]
    )


def _at_rate(judged: Judgement, rate: float) -> Judgement:
    """A remedy that changes the rate of a log states the rate, which no project has to hold."""
    change = judged.remedy.settings.get("log.rate") if judged.remedy else None
    if judged.remedy is None or not isinstance(change, Mapping):
        return judged
    settings = {**judged.remedy.settings, "log.rate": rate * change["multiply"]}
    return replace(judged, remedy=replace(judged.remedy, settings=settings))


def estimated_delay(logs: Sequence[PreparedLog], robot: Robot, reduction: Array | None) -> Delay | None:
    """Estimates the delay of the efforts (:func:`.find_delay`); None from logs that contradict physics in another way.

    Args:
        reduction: Matrix from joint to motor velocities, shape (n, n), or None if every motor drives one joint.
    """
    if any(finding.severity == "refused" for log in logs for finding in log.report.findings):
        return None
    return find_delay(robot, [(log.examined.segments, log.examined.band) for log in logs], reduction)


def with_delays(logs: Sequence[PreparedLog], of_delay: Sequence[Judgement]) -> list[PreparedLog]:
    """Adds findings of the delay of all efforts that no other finding of a log covers."""
    reported = [{(item.id, item.joint) for item in log.report.findings} for log in logs]
    return _with_findings(logs, [[item for item in of_delay if (item.id, item.joint) not in known] for known in reported])


def _with_findings(logs: Sequence[PreparedLog], findings: Sequence[Sequence[Judgement]]) -> list[PreparedLog]:
    """Adds findings to those of each log; delays that the log does not determine are marked."""
    motions = [(log.report.recording.position, log.examined.segments, log.examined.cutoff) for log in logs]
    known = known_delays(logs[0].robot.joints, motions, findings) if logs else []
    return [log.with_findings((*log.report.findings, *judgements)) for log, judgements in zip(logs, known, strict=True)]


def _taken_out(judged: Judgement, config: SignalConfig) -> Judgement:
    """A delay that the settings let `identify` take out already: its remedy is none of the project file."""
    if config.delay != "auto" or not judged.remedy or judged.remedy.settings != {"signals.delay": "auto"}:
        return judged
    return replace(judged, remedy=judged.remedy.done_by("`identify`"))


def refuse_contradictions(logs: Sequence[PreparedLog]) -> None:
    """Raises QualityError with all findings of a log if physics refuses it."""
    refused = [[finding for finding in log.report.findings if finding.severity == "refused"] for log in logs]
    results = [
        refusal(log.recording, log.report.findings, reasons) if reasons else log
        for log, reasons in zip(logs, refused, strict=True)
    ]
    all_usable([log.recording for log in logs], results)
