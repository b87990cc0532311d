"""Commands that assess a URDF or a log before anything is estimated: check, inspect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import EstimationError, LogError, UrdfIdentError
from ..files.read_write import check_output, read_text, write_text
from .common import (
    JUDGED_BAD,
    WRONG_USE,
    AsJson,
    Config,
    Locks,
    Logs,
    Scratch,
    Urdf,
    command,
    open_project,
    open_robot,
    read_readable_logs,
    say,
)

if TYPE_CHECKING:
    from ..logs.recording import Recording
    from ..model.drive import Drive
    from ..model.payload import Payload
    from ..model.robot import Robot
    from ..project import Project


@command("check arm.urdf", "check arm.urdf --fix physical.urdf")
def check(
    urdf: Urdf,
    config: Config = None,
    lock: Locks = None,
    as_json: AsJson = False,
    fix: Annotated[
        Path | None, typer.Option("--fix", metavar="F", help="Write the nearest physically consistent URDF to F.")
    ] = None,
) -> None:
    """Check a URDF: joints, inertial parameters, what can be identified."""
    if fix is not None:
        from ..export.urdf import fix_urdf

        project, folder = open_project(config)
        source = read_text(urdf, "URDF")
        check_output(fix)
        text, notes = fix_urdf(source, str(urdf))
        write_text(fix, text)
        for note in notes or ("nothing to repair",):
            typer.echo(note)
        typer.echo(f"wrote {fix}")
        try:
            project.build_robot(fix, folder)
        except UrdfIdentError as error:
            typer.echo(f"left as it is: {error}")
        return
    from ..pipeline.check import check as check_model
    from ..pipeline.check import check_text

    project, _, robot = open_robot(config, urdf, lock)
    found = check_model(project.build_model(robot))
    say(found, as_json, lambda: check_text(found))
    if not found["physical"]:
        raise typer.Exit(JUDGED_BAD)


@command("inspect run1.csv --robot arm.urdf", "inspect my_bag/ --robot arm.urdf --write-project project.yaml")
def inspect(
    logs: Logs,
    robot: Annotated[
        Path | None, typer.Option("--robot", metavar="ROBOT.urdf", help="URDF of the robot; default: that of the project file.")
    ] = None,
    config: Config = None,
    lock: Locks = None,
    as_json: AsJson = False,
    write_project: Annotated[
        Path | None,
        typer.Option(
            "--write-project",
            metavar="F",
            help="Infer columns, units, gravity and torque constants from the data, and write a project file.",
        ),
    ] = None,
    scratch: Scratch = None,
) -> None:
    """Check whether logs are good enough.

    Every finding comes with a remedy. The exit code is 1 if a log cannot be used, 2 if one cannot be read.
    """
    from ..pipeline.check import findings_text
    from ..pipeline.examine import examine_logs

    project, folder, built = open_robot(config, robot, lock)
    if write_project is not None:
        import yaml

        from ..pipeline.describe import describe
        from ..project import parse_project

        check_output(write_project)
        text = describe(logs, project, built, robot or folder / built.path)
        project = parse_project(yaml.safe_load(text), str(write_project))
        built = project.build_robot(robot, folder)
        write_text(write_project, text)  # also if the log turns out to be unusable: that may be what has to be corrected
        typer.echo(f"wrote {write_project}: read its comments before you use it", err=as_json)
    project.build_model(built)  # unknown friction laws or joints are an error before `identify` is called
    recordings, unreadable = read_readable_logs(logs, built, project, skip=True, copies=False)
    payload = project.build_payload(built)
    drive, unknown = _resolved_drive(project, built, recordings, payload)
    reports = examine_logs(recordings, built, drive, project.signal_config(), payload=payload, unknown=unknown)
    found = [
        {"log": log.name, "rows": len(log), "acceptable": own.acceptable, "findings": [item.as_dict() for item in own.findings]}
        for log, own in zip(recordings, reports, strict=True)
    ]
    found += [{"log": log.name, "acceptable": False, "findings": [log.as_finding()]} for log in unreadable]
    say(found, as_json, lambda: findings_text(found))
    if unreadable:
        raise typer.Exit(WRONG_USE)
    if not all(report.acceptable for report in reports):
        raise typer.Exit(JUDGED_BAD)


def _resolved_drive(
    project: Project, robot: Robot, recordings: Sequence[Recording], payload: Payload | None
) -> tuple[Drive, UrdfIdentError | None]:
    """The drive with its torque constants; with constants of 1 and the reason if they cannot be determined."""
    from ..estimation.estimators.payload_gains import resolve_drive, without_constants
    from ..torque_constants.gains import resolve_gain

    drive = project.build_drive(robot)
    if payload is None:
        return resolve_gain(drive, recordings), None
    try:
        return resolve_drive(project.build_model(robot), recordings, payload, project.signal_config()), None
    except (EstimationError, LogError) as error:  # too few kinds of logs, or an unusable one: still inspected
        return without_constants(drive), error
