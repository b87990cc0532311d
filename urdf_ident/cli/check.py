"""Commands that assess a URDF or a log before anything is estimated: check, inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UrdfIdentError
from ..files.read_write import check_output, read_text, write_text
from .application import (
    JUDGED_BAD,
    WRONG_USE,
    AsJson,
    Config,
    Locks,
    Logs,
    Urdf,
    command,
    find_logs,
    locked,
    open_result,
    open_robot,
    read_logs,
    say,
)


@command("check arm.urdf", "check arm.urdf --fix physical.urdf", "check arm.urdf --against out/identification.json")
def check(
    urdf: Urdf,
    config: Config = None,
    lock: Locks = None,
    as_json: AsJson = False,
    fix: Annotated[
        Path | None, typer.Option("--fix", metavar="F", help="Write the nearest physically consistent URDF to F.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="identification.json",
            help="Test a-priori, base, closest, essential and exported parameters of a result side by side.",
        ),
    ] = None,
) -> None:
    """Check a URDF: joints, inertial parameters, what can be identified."""
    if fix is not None:
        from ..export.urdf import fix_urdf
        from ..project import load_project

        project, folder = load_project(config, locked(lock))
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

    project, _, robot = open_robot(config, urdf, lock)
    checked = check_model(project.build_model(robot))
    if against is None:
        say(checked.as_dict(), as_json, checked.summary)
    else:
        from ..comparison.other_models import solution_lines, solutions

        rows = solutions(open_result(against), robot)
        say(
            {**checked.as_dict(), "solutions": rows}, as_json, lambda: "\n".join([checked.summary(), "", *solution_lines(rows)])
        )
    if not checked.physical:
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
) -> None:
    """Check whether logs are good enough.

    Every finding comes with a remedy. The exit code is 1 if a log cannot be used, 2 if one cannot be read.
    """
    from ..pipeline.inspect import inspect as examine

    project, folder, built = open_robot(config, robot, lock)
    if write_project is None:
        project.build_model(built)  # unknown friction laws or joints are an error before `identify` is called
        recordings, unreadable = read_logs(logs, built, project, skip=True)
        inspection = examine(built, recordings, project=project, unreadable=unreadable)
    else:
        from ..pipeline.describe import describe

        check_output(write_project)
        text, inspection = describe(find_logs(logs, project), project, built, robot or folder / built.path)
        if inspection.all_read:  # also if one is refused: the file may be what has to be corrected
            write_text(write_project, text)
            typer.echo(f"wrote {write_project}: read its comments before you use it", err=as_json)
    say(inspection.logs, as_json, inspection.summary)
    if not inspection.all_read:
        raise typer.Exit(WRONG_USE)
    if inspection.verdict.level == "poor":
        raise typer.Exit(JUDGED_BAD)
