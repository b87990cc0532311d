"""What all commands share: the application, its argument types, its exit codes, and how errors are printed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import QualityError, UrdfIdentError

if TYPE_CHECKING:
    from ..data.recording import Recording
    from ..model.robot import Robot
    from ..project import Project

app = typer.Typer(
    help="Find the dynamic model that a robot really has, from its URDF and its logs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
JUDGED_BAD, WRONG_USE = 1, 2
#: What typer raises for a command that does not exist, an option that is missing, a value of the wrong kind.
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]

Urdf = Annotated[Path, typer.Argument(metavar="ROBOT.urdf", help="The robot description.")]
Logs = Annotated[list[str], typer.Argument(metavar="LOG...", help="Files, folders, quoted globs, or stems of split logs.")]
Config = Annotated[Path | None, typer.Option("-c", "--config", metavar="P", help="Project file (YAML).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Go on in spite of findings that refuse a log.")]
Result = Annotated[Path, typer.Argument(metavar="OUT/identification.json", help="What `identify` wrote.")]


def main() -> None:
    """Runs the command line; errors of the package become one line and an exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads would only wait for each other
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        sys.exit(app(arguments or ["--help"], standalone_mode=False))
    except UrdfIdentError as error:
        if debug:
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(JUDGED_BAD if isinstance(error, QualityError) else WRONG_USE)
    except USAGE_ERROR as error:
        words = ["urdf-ident", *(name for name in arguments[:1] if name in _commands()), "--help"]
        text = " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
        typer.echo(f"error: {text}; see `{' '.join(words)}`", err=True)
        sys.exit(WRONG_USE)
    except typer.Abort:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)


def _commands() -> set[str]:
    return {command.name or str(getattr(command.callback, "__name__", "")) for command in app.registered_commands}


@app.callback(epilog="`--debug` with any command shows the traceback of an error.")
def _root() -> None:
    """Find the dynamic model that a robot really has, from its URDF and its logs."""


def open_project(config: Path | None) -> tuple[Project, Path]:
    """Reads the project file.

    Args:
        config: Its path; all defaults if None.

    Returns:
        The project, and the folder that its relative paths refer to.
    """
    from ..project import load_project

    return load_project(config)


def read_logs(arguments: list[str], robot: Robot, project: Project, jobs: int = 1) -> list[Recording]:
    """Reads the logs that the arguments name.

    Args:
        arguments: Files, folders, globs or stems.
        robot: The robot.
        project: How logs are laid out.
        jobs: Processes that read.

    Returns:
        The recordings; none without arguments.
    """
    from ..data.readers.read import read_recordings
    from ..data.readers.sources import expand_logs

    layout = project.log_layout()
    return read_recordings(expand_logs(arguments, layout), robot, layout, jobs=jobs) if arguments else []
