"""Inspects logs: whether each is good enough, every finding with its remedy, before anything is estimated."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import EstimationError, LogError, UrdfIdentError
from ..estimation.estimators.payload_gains import resolve_drive, without_constants
from ..logs.recording import Recording
from ..logs.refusals import LeftOut
from ..model.drive import Drive
from ..model.payload import Payload
from ..model.robot import Robot
from ..parallel import one_thread
from ..project import Project
from ..result.inspection import Inspection
from ..torque_constants.gains import resolve_gain
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
    drive, unknown = _resolved_drive(project, robot, logs, payload)
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


def _resolved_drive(
    project: Project, robot: Robot, logs: Sequence[Recording], payload: Payload | None
) -> tuple[Drive, UrdfIdentError | None]:
    """The drive with its torque constants; with constants of 1 and the reason if they cannot be determined."""
    drive = project.build_drive(robot)
    if payload is None:
        return resolve_gain(drive, logs), None
    try:
        return resolve_drive(project.build_model(robot), logs, payload, project.signal_config()), None
    except (EstimationError, LogError) as error:  # too few kinds of logs, or an unusable one: still inspected
        return without_constants(drive), error
