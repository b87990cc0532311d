"""Logs examined against the URDF: each alone, against rigid-body physics, and for delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import LogError, UrdfIdentError
from ..faults.contradictions import physics_findings
from ..faults.delay.profile import delay_findings, unreported
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
) -> list[QualityReport]:
    """Assesses several logs of one robot, each alone and against each other, without refusing any.

    Args:
        recordings: As read.
        drive: The drive; unknown torque constants are 1.
        payload: The payload that some of the logs carry, or None.
        unknown: The reason if torque constants are unknown: efforts are then not compared with the URDF; None: they are
            known.

    Returns:
        A report for each log; errors of the conditioning are among its findings.

    Raises:
        LogError: The effort is a current without a known gain.
    """
    require_effect(recordings, drive)
    reports = assessed(recordings, robot, drive, config, as_logged=unknown is not None)
    logs = _usable(recordings, reports, robot, config, payload)
    if unknown is not None:
        words = f"the torque constants are not known ({unknown.what}): efforts are looked at as logged, not against the URDF"
        open_ = Judgement(Id.CONSTANTS_UNKNOWN, words, Remedy(unknown.remedy or ""))
        return [report.with_findings((*report.findings, open_)) for report in reports]
    prepared = with_automatic(list(logs.values()), robot, config, payload)
    found = _contradictions(prepared, robot, drive.reduction)
    if not any(item.severity == "refused" for findings in found for item in findings):  # delays need physically plausible logs
        banded = [(log.examined.segments, log.examined.band) for log in prepared]
        late, apart = delay_findings(robot, banded, drive.reduction)
        common = () if late is None else late.findings()
        found = [[*findings, *common, *unreported(own, findings)] for findings, own in zip(found, apart, strict=True)]
    for k, findings in zip(logs, with_known_delays(prepared, robot, found), strict=True):
        told = [_taken_out(item, config) for item in findings]
        reports[k] = reports[k].with_findings(suspecting_payload(payload, (*reports[k].findings, *told)))
    return reports


def _usable(
    recordings: Sequence[Recording],
    reports: list[QualityReport],
    robot: Robot,
    config: SignalConfig,
    payload: Payload | None,
) -> dict[int, PreparedLog]:
    """The accepted logs, conditioned alike; in ``reports``, those that cannot be conditioned get a finding."""
    left = [k for k, report in enumerate(reports) if report.verdict.level != "poor"]
    while left:
        try:
            made = conditioned_logs([recordings[k] for k in left], [reports[k] for k in left], robot, config, payload)
        except LogError as error:
            for k in tuple(left):
                if why := error.logs.get(recordings[k].name):
                    refused = Judgement(Id.NOT_USABLE, why.fact, Remedy(why.remedy or ""))
                    reports[k] = reports[k].with_findings((*reports[k].findings, refused))
                    left.remove(k)
        else:
            logs = dict(zip(left, made, strict=True))
            for k, log in logs.items():
                reports[k] = log.report
            return logs
    return {}


def check_physics(
    logs: Sequence[PreparedLog],
    robot: Robot,
    config: SignalConfig,
    *,
    reduction: Array | None = None,
    payload: Payload | None = None,
    force: bool = False,
) -> list[PreparedLog]:
    """Adds contradictions with physics to the findings of logs that were prepared together.

    Args:
        reduction: Matrix from joint to motor velocities, shape (n, n), or None if every motor drives one joint.
        payload: A known payload, whose torque is subtracted from the logs that carry it.
        force: Continue in spite of findings that refuse a log.

    Raises:
        QualityError: A log is refused; the error carries all its findings.
    """
    logs = with_automatic(logs, robot, config, payload)
    found = _contradictions(logs, robot, reduction)
    out: list[PreparedLog | UrdfIdentError] = []
    for log, known in zip(logs, with_known_delays(logs, robot, found), strict=True):
        physical = suspecting_payload(payload, known)
        findings = (*log.report.findings, *physical)
        refused = [finding for finding in physical if finding.severity == "refused"]
        if refused and not force:
            out.append(refusal(log.recording, findings, refused))
        else:
            out.append(replace(log, report=replace(log.report, findings=findings)))
    return all_usable([log.recording for log in logs], out)


def _taken_out(judged: Judgement, config: SignalConfig) -> Judgement:
    """A delay that the settings let `identify` take out already: its remedy is none of the project file."""
    if config.delay != "auto" or not judged.remedy or judged.remedy.settings != {"signals.delay": "auto"}:
        return judged
    words = str(judged.remedy.action).replace("{settings} takes", "`identify` takes")
    return replace(judged, remedy=Remedy(words))


def _contradictions(logs: Sequence[PreparedLog], robot: Robot, reduction: Array | None) -> list[list[Judgement]]:
    """Contradictions of each log with physics; a remedy that changes its rate states the rate, which no project has to hold."""
    found = physics_findings(robot, [(log.examined.segments, log.examined.cutoff) for log in logs], reduction)
    return [[_at_rate(item, log.examined.rate) for item in own] for log, own in zip(logs, found, strict=True)]


def _at_rate(judged: Judgement, rate: float) -> Judgement:
    change = judged.remedy.settings.get("log.rate") if judged.remedy else None
    if judged.remedy is None or not isinstance(change, Mapping):
        return judged
    settings = {**judged.remedy.settings, "log.rate": rate * change["multiply"]}
    return replace(judged, remedy=replace(judged.remedy, settings=settings))


def with_known_delays(
    logs: Sequence[PreparedLog], robot: Robot, found: Sequence[Sequence[Judgement]]
) -> list[tuple[Judgement, ...]]:
    """Findings on prepared logs after :func:`.quality.hidden_delays.known_delays`."""
    seen = [(log.report.recording.position, log.examined.segments, log.examined.cutoff) for log in logs]
    return known_delays(robot.joints, seen, found)
