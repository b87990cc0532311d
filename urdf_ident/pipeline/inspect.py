"""Inspects logs: whether each is good enough, every finding with its remedy, before anything is estimated."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import EstimationError, LogError
from ..estimation.estimators.payload_gains import resolve_drive, without_constants
from ..logs.recording import Recording
from ..logs.refusals import LeftOut
from ..model.robot import Robot
from ..parallel import one_thread
from ..project import Project
from ..result.inspection import Inspection
from ..torque_constants import resolve_gain
from .examine import examine_logs


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
    read = [
        {
            "log": log.name,
            "rows": len(log),
            "acceptable": report.verdict.level != "poor",
            "findings": [finding.as_dict() for finding in report.findings],
        }
        for log, report in zip(logs, reports, strict=True)
    ]
    unread = [{"log": log.name, "acceptable": False, "findings": [log.as_finding()]} for log in unreadable]
    return Inspection((*read, *unread))
