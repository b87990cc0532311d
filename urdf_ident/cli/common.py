"""Shared by all commands: types of arguments, opening of what they name, and printing of results."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files.read_write import note_input
from ..quoting import printable
from ..result.commands import CommandPaths
from .application import say_aside, typed

if TYPE_CHECKING:
    from ..logs.recording import Recording
    from ..logs.refusals import LeftOut
    from ..logs.sources import LogSource
    from ..model.robot import Robot
    from ..project import Project
    from ..result.identification import Identification


Urdf = Annotated[Path, typer.Argument(metavar="ROBOT.urdf", help="URDF of the robot (or MJCF, SDF, xacro).")]
Logs = Annotated[list[str], typer.Argument(metavar="LOG", help="Log files, folders or quoted globs.")]
Config = Annotated[Path | None, typer.Option("-c", "--config", metavar="P", help="Project file (YAML).")]
Locks = Annotated[
    list[str] | None,
    typer.Option("--lock", metavar="JOINT=VALUE", help="Joint that does not move, and where it stands [rad or m]; repeatable."),
]
Layout = Annotated[
    Path | None,
    typer.Option("-c", "--config", metavar="P", help="Project file (YAML) for logs in another layout (sections log, drive)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Use logs even if the checks refuse them.")]
SkipBadLogs = Annotated[bool, typer.Option("--skip-bad-logs", help="Leave out logs that cannot be read or are refused.")]


def _use_packages(context: typer.Context, folders: list[Path] | None) -> list[Path]:
    """Lets meshes be read from further folders until the command ends."""
    if folders:
        from ..model.meshes import packages_in

        context.with_resource(packages_in(folders))
    return folders or []


Packages = Annotated[
    list[Path] | None,
    typer.Option(
        "--package",
        metavar="DIR",
        callback=_use_packages,
        exists=True,
        file_okay=False,
        help="Package of meshes, or a folder of packages; may be repeated.",
    ),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print the details: settings chosen, tables, advice.")]


def _result_file(path: Path) -> Path:
    from ..result.identification import result_file

    return result_file(path)


Result = Annotated[
    Path, typer.Argument(metavar="OUT/identification.json", callback=_result_file, help="The result that `identify` wrote.")
]


def open_robot(config: Path | None, urdf: Path | None, lock: list[str] | None = None) -> tuple[Project, Path, Robot]:
    """The project of a command, the folder that its relative paths refer to, and the robot.

    Args:
        urdf: Used instead of the project's; a difference is noted.
        lock: ``JOINT=VALUE`` of joints to lock besides those of the project.
    """
    from ..project import load_project

    project, folder = load_project(config, locked(lock))
    own = project.robot.urdf
    if urdf is not None and own is not None and (folder / Path(own).expanduser()).resolve() != urdf.resolve():
        say_aside(f"note: {urdf} of the command line is used, not {own} of the project file (robot.urdf)")
    robot = project.build_robot(urdf, folder)
    for note in robot.notes:
        say_aside(f"note: {robot.path}: {note}")
    return project, folder, robot


def locked(options: list[str] | None) -> dict[str, float]:
    """Joint → position [rad or m] of the options ``--lock JOINT=VALUE``."""
    locks = {}
    for text in options or []:
        joint, sign, value = text.rpartition("=")
        try:
            locks[joint] = float(value if sign and joint else "")
        except ValueError:
            raise typer.BadParameter(f"--lock {text!r} is not JOINT=VALUE with a position in rad or m") from None
    return locks


def command_paths(robot: str | Path, result: Path, project: Path | None = None) -> CommandPaths:
    """The files that commands in texts name, and the command that is running, without the secrets of addresses."""
    from ..logs.sources import shown

    options = (argument.partition("=") if argument.startswith("--") else ("", "", argument) for argument in typed.get())
    words = [printable(f"{name}{mark}{shown(value)}") for name, mark, value in options]
    return CommandPaths(robot, result, project or "", shlex.join(["urdf-ident", *words]) if words else "")


def open_result(path: Path, config: Path | None = None) -> Identification:
    """Reads a result, for logs in the layout of a project file if one is given."""
    from ..result.identification import load

    ident = load(path)
    if config is None:
        return ident
    from ..project import load_project

    return ident.with_layout(load_project(config)[0])


def print_implausible_values(robot: Robot) -> None:
    """Prints what is implausible in a URDF, before anything is computed from it."""
    from ..consistency.plausibility import implausible_lines, implausible_values

    for line in implausible_lines(implausible_values(robot)):
        say_aside(f"note: {robot.path}, {line}")


def read_logs(
    arguments: list[str], robot: Robot, project: Project, *, skip: bool = False, **options: Any
) -> tuple[list[Recording], list[LeftOut]]:
    """Reads the logs that arguments name, if any, and names those that are left out.

    Args:
        skip: Whether to leave out unreadable logs; otherwise all must be readable.
        options: As for :func:`find_logs`.
    """
    from ..logs.read import read_readable

    logs = find_logs(arguments, project, **options)
    return read_readable(logs, robot, project.log, skip=skip) if logs else ([], [])


def find_logs(arguments: list[str], project: Project, *, copies: bool = False, without: Sequence[str] = ()) -> list[LogSource]:
    """The logs that arguments name, protected as inputs; one that is given twice is noted.

    Args:
        copies: Whether duplicates are left out later instead of refused.
        without: Logs that are held out of folders, data sets and globs.
    """
    from ..logs.sources import expand_logs, shown

    for argument in sorted({argument for argument in arguments if arguments.count(argument) > 1}):
        say_aside(f"note: {shown(argument)} is given more than once and used once")
    logs = expand_logs(arguments, project.log, copies=copies, without=without) if arguments else []
    for log in logs:
        for _, path in log.files:
            note_input(path, "log")
    return logs


def say(value: Any, as_json: bool, text: Callable[[], str]) -> None:
    """Prints a result: its value as JSON, or its text."""
    from ..files.documents import json_text

    typer.echo(json_text(value) if as_json else text())


def coloured(text: str) -> str:
    """Colours the verdict in the first line of a summary on a terminal, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    first, *rest = text.split("\n", 1)
    for word, colour in (("GOOD", typer.colors.GREEN), ("USABLE", typer.colors.YELLOW), ("POOR", typer.colors.RED)):
        first = first.replace(f": {word}", f": {typer.style(word, fg=colour, bold=True)}", 1)
    return "\n".join([first, *rest])


def say_file_replaced(path: Path) -> None:
    """Prints that an existing file is replaced, with its date; nothing if there is none."""
    from datetime import datetime

    if path.is_file():
        when = datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
        say_aside(f"note: {path} of {when} is replaced")
