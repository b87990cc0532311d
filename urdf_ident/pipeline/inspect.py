"""The command `inspect`: whether logs are good enough, every finding with its remedy, before anything is estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import EstimationError, LogError, UrdfIdentError
from ..estimation.estimators.payload_gains import resolve_drive, without_constants
from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..logs.recording import Recording
from ..logs.refusals import LeftOut
from ..model.drive import Drive
from ..model.payload import Payload
from ..model.robot import Robot
from ..parallel import one_thread
from ..project import Project
from ..result.inspection import InspectedLog, Inspection
from ..signals.config import SignalConfig
from ..signals.motor_side import require_effect
from ..signals.prepare import PreparedLog, assessed, conditioned_logs, suspecting_payload
from ..signals.quality.report import QualityReport
from ..torque_constants import resolve_gain
from .checked_logs import estimated_delay, with_contradictions, with_delays


@one_thread()
def inspect(
    robot: Robot, logs: Sequence[Recording], *, project: Project | None = None, unreadable: Sequence[LeftOut] = ()
) -> Inspection:
    """Inspects logs of one robot, each alone and against the others, without refusing any.

    Args:
        robot: The robot.
        logs: The logs.
        project: Settings; all defaults if None.
        unreadable: Logs that could not be read, to be named as such.

    Returns:
        The findings of each log.

    Raises:
        LogError: The effort is a current whose torque constant is neither given nor can be found.
    """
    project = project or Project()
    payload = project.build_payload(robot)
    drive, unknown = project.build_drive(robot), None
    if payload is None:
        drive = resolve_gain(drive, logs)
    else:
        try:
            drive = resolve_drive(project.build_model(robot), logs, payload, project.signal_config())
        except (EstimationError, LogError) as error:  # too few kinds of logs, or an unusable one: still inspected
            drive, unknown = without_constants(drive), error
    motors_used = project.model.elastic is not None or project.compensation.residual != "none"
    reports = examine_logs(
        logs, robot, drive, project.signal_config(), payload=payload, unknown=unknown, motors_used=motors_used
    )
    read = [InspectedLog(log.name, report.findings, len(log)) for log, report in zip(logs, reports, strict=True)]
    unread = [InspectedLog(log.name, (log.as_finding(),)) for log in unreadable]
    return Inspection((*read, *unread))


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
    # 1. each log alone
    reports = assessed(recordings, robot, drive, config, as_logged=unknown is not None)
    # 2. the accepted logs, conditioned alike; those that cannot be conditioned get a finding
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
    # 3. all against the physics of one robot, and the delay of the efforts
    logs = [log.with_findings(suspecting_payload(payload, log.report.findings)) for log in usable.values()]
    logs = with_contradictions(logs, robot, config, drive.reduction)
    delay = estimated_delay(logs, robot, drive.reduction)
    of_delay = () if delay is None else (*delay.findings(), *delay.filter_findings())
    for k, log in zip(usable, with_delays(logs, of_delay), strict=True):
        reports[k] = log.report.with_findings(_taken_out(judged, config) for judged in log.report.findings)
    return reports


def _taken_out(judged: Judgement, config: SignalConfig) -> Judgement:
    """A delay that the settings let `identify` take out already: its remedy is none of the project file."""
    if config.delay != "auto" or not judged.remedy or judged.remedy.settings != {"signals.delay": "auto"}:
        return judged
    return replace(judged, remedy=judged.remedy.done_by("`identify`"))
