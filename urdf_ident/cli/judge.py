"""Commands that judge a URDF or a log before anything is estimated: check, inspect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import JUDGED_BAD, AsJson, Config, Logs, Urdf, app, open_project, read_logs

if TYPE_CHECKING:
    from ..model.robot import Robot
    from ..project import Project


@app.command()
def check(
    urdf: Urdf,
    config: Config = None,
    as_json: AsJson = False,
    fix: Annotated[Path | None, typer.Option("--fix", metavar="F", help="Write the nearest physical URDF to F.")] = None,
) -> None:
    """Joints, bodies, lumped links, impossible inertias, and what is identifiable."""
    from ..export.fix import fix_urdf
    from ..files import check_output, read_text, write_text
    from ..pipeline.check import check_dict, check_text

    project, folder = open_project(config)
    if fix is not None:
        source = read_text(urdf, "URDF")
        check_output(fix)
        text, notes = fix_urdf(source, str(urdf))
        write_text(fix, text)
        for note in notes or ("nothing to repair",):
            typer.echo(note)
        typer.echo(f"wrote {fix}")
        return
    robot = project.build_robot(urdf, folder)
    found = check_dict(project.build_model(robot))
    typer.echo(json.dumps(found, indent=1, ensure_ascii=False) if as_json else check_text(found))
    if not found["physical"]:
        raise typer.Exit(JUDGED_BAD)


@app.command()
def inspect(
    logs: Logs,
    robot: Annotated[Path | None, typer.Option("--robot", metavar="ROBOT.urdf", help="The robot description.")] = None,
    config: Config = None,
    as_json: AsJson = False,
    write_project: Annotated[
        Path | None, typer.Option("--write-project", metavar="F", help="Write a project file to start from.")
    ] = None,
) -> None:
    """Is this log good enough? Exit code 1 if not; every finding comes with its remedy."""
    from ..data.prepare import examine
    from ..data.torque_constants.gains import resolve_gain
    from ..estimation.estimators.gains import resolve_drive
    from ..files import check_output
    from ..pipeline.check import findings_text

    project, folder = open_project(config)
    built = project.build_robot(robot, folder)
    recordings = read_logs(logs, built, project)
    if write_project is not None:
        check_output(write_project)
    payload, drive = project.build_payload(built), project.build_drive(built)
    if payload is None:
        drive = resolve_gain(drive, recordings)
    else:
        drive = resolve_drive(project.build_model(built), recordings, payload, project.signal_config())
    found, good = [], True
    for recording in recordings:
        report = examine(recording, built, drive, project.signal_config())
        good &= report.acceptable
        found.append({"log": recording.name, "rows": len(recording), "acceptable": report.acceptable,
                      "findings": [finding.as_dict() for finding in report.findings]})  # fmt: skip
    typer.echo(json.dumps(found, indent=1, ensure_ascii=False) if as_json else findings_text(found))
    if write_project is not None:
        _write_project(write_project, project, built, robot)
    if not good:
        raise typer.Exit(JUDGED_BAD)


def _write_project(path: Path, project: Project, robot: Robot, urdf: Path | None) -> None:
    import yaml

    from ..files import write_text

    data = project.model_dump(exclude_defaults=True)
    data["robot"] = {"urdf": str((urdf or Path(robot.path)).resolve()), "joints": list(robot.order), "lock": dict(robot.locked)}
    write_text(path, yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    typer.echo(f"wrote {path}")
