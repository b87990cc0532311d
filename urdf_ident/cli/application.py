"""What all commands share: registration and help, running, exit codes and errors; types of arguments, opening, printing."""

from __future__ import annotations

import errno
import gc
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from ..errors import QualityError, UrdfIdentError
from ..files.read_write import inputs_protected, note_input, outputs
from ..quoting import CommandPaths, printable

if TYPE_CHECKING:
    from ..logs.recording import Recording
    from ..logs.refusals import LeftOut
    from ..logs.sources import LogSource
    from ..model.robot import Robot
    from ..project import Project
    from ..result.identification import Identification

#: All commands in workflow order.
ORDER = (
    *("demo", "check", "inspect", "identify", "validate", "report", "plot", "export"),
    *("design", "simulate", "play", "export-motion", "payload", "compare", "fleet"),
)
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


class Command(TyperCommand):
    """One command; its arguments are listed by name, without their Python type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments and options, arguments without their Python type."""
        parameters = list(super().get_params(ctx))
        for parameter in parameters:
            if isinstance(parameter, TyperArgument):
                parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        return parameters


app = typer.Typer(
    help="Identify the dynamic model of a real robot from its URDF and its logs.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # plain help: panels print a type after every flag
    pretty_exceptions_enable=False,
)


def command(*examples: str, name: str | None = None) -> Callable[[Any], Any]:
    """Registers a function as a command, with examples: command lines without the program's name."""
    lines = ["\b", "Example:" if len(examples) == 1 else "Examples:", *(f"  urdf-ident {example}" for example in examples)]
    return app.command(name, cls=Command, epilog="\n".join(lines))


JUDGED_BAD, WRONG_USE, UNFORESEEN = 1, 2, 70
#: Base class of typer's errors for an unknown command, a missing option, or a value of the wrong type.
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]

#: Whether errors are raised with their traceback.
_debug: ContextVar[bool] = ContextVar("debug", default=False)
#: The arguments of the running command as typed.
typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def main() -> None:
    """Runs the command line; errors of the package are printed as one line and set the exit code."""
    gc.set_threshold(50_000)  # imports make many objects and no garbage: 5 % of a short command
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads do not help with small matrices
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # avoids a search of all installed packages
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # a file would get the number of a closed one
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    sys.exit(run([argument for argument in sys.argv[1:] if argument != "--debug"], debug="--debug" in sys.argv))


def run(arguments: list[str], *, debug: bool = False) -> int:
    """Runs one command in this process, and returns its exit code; every error is one line on standard error.

    Args:
        debug: Whether to raise errors, with their traceback.
    """
    shown: Any = _Printed(sys.stdout)
    notes: Any = _Printed(sys.stderr)
    debugging, words = _debug.set(debug), typed.set(tuple(arguments))
    try:
        with inputs_protected(), redirect_stdout(shown), redirect_stderr(notes), nullcontext() if debug else _no_warnings():
            try:
                code = int(_parser(next(iter(arguments), ""))(arguments or ["--help"], standalone_mode=False) or 0)
            except (typer.Abort, KeyboardInterrupt):
                code = 130
            except typer.Exit as error:
                code = error.exit_code
            except Exception as error:
                if debug:
                    raise
                text, code = error_line(error, arguments)
                say_aside(f"error: {text}{_already_written()}")
            shown.flush()
            if shown.full and code in (0, JUDGED_BAD):
                say_aside(f"error: the output cannot be written ({shown.full}){_already_written()}")
                return WRONG_USE
            return code
    finally:
        _debug.reset(debugging)
        typed.reset(words)


def optional_lines(write: Callable[[], list[Path]]) -> list[str]:
    """Writes what accompanies written results, such as a report; a failure leaves these and the verdict valid."""
    try:
        return [f"wrote {path}" for path in write()]
    except Exception as error:
        if _debug.get():
            raise
        return [f"no report: {error_line(error, [])[0]}"]


class _Printed:
    """Standard output or error whose failure does not interrupt a command; what comes after a failed write is dropped."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.full = ""  # why a write failed; empty also if nobody reads any more

    def write(self, text: str) -> int:
        try:
            self.stream.write(text)
        except UnicodeEncodeError:  # half a character, or an old encoding
            self.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        except (OSError, ValueError) as error:
            self._drop(error)
        return len(text)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except (OSError, ValueError) as error:
            self._drop(error)

    def _drop(self, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno in _FULL:
            self.full = self.full or str(error.strerror)
        with suppress(OSError, ValueError):  # else the interpreter would fail to flush it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Warnings of libraries are for developers: they do not reach the terminal, from here or from child processes."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    silent = logging.NullHandler()
    logging.getLogger().addHandler(silent)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger().removeHandler(silent)
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _already_written() -> str:
    """Which files a command wrote before it failed; empty if there are none."""
    from ..grouping import abbreviated

    files = [str(path) for path in outputs()]
    return f"; written before: {abbreviated(files)}" if files else ""


def error_line(error: Exception, arguments: list[str]) -> tuple[str, int]:
    """The error message for the user, and the exit code."""
    if isinstance(error, UrdfIdentError):
        return str(error), JUDGED_BAD if isinstance(error, QualityError) else WRONG_USE
    if isinstance(error, USAGE_ERROR):
        from ..project import settings_called

        words = ["urdf-ident", *(name for name in arguments[:1] if name in _commands()), "--help"]
        text = " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
        settings = settings_called(str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_"))
        text += f"; in a project file (-c P) it is {' or '.join(settings)}" if settings else ""
        return f"{text}; see `{' '.join(words)}`", WRONG_USE
    what = printable(" ".join(str(error).split())[:300])
    if (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, ImportError) and "failed to map segment" in what)
        or (isinstance(error, RuntimeError) and "can't start new thread" in what)
    ):
        return f"not enough memory ({what or 'no more is known'}); use fewer or shorter logs, or a lower rate", WRONG_USE
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return f"the output cannot be written ({error.strerror})", WRONG_USE
    if isinstance(error, OSError) and error.filename is not None:
        return f"a file or folder cannot be used ({error.strerror}), at {str(error.filename)[:200]!r}", WRONG_USE
    return (
        f"internal error, {type(error).__name__}: {what}; please report it to the maintainers (SECURITY.md), with the input "
        "and what `--debug` prints",
        UNFORESEEN,
    )


def say_aside(line: str) -> None:
    """Prints one line on standard error, with escapes for what could control a terminal."""
    typer.echo(printable(line), err=True)


@lru_cache(maxsize=32)
def _parser(first: str) -> Callable[..., Any]:
    """Parser of the command named by the first argument, or of all; parsing all signatures takes longer than many commands."""
    asked, known = copy(app), _commands()
    asked.registered_commands = [known[first]] if first in known else [known[name] for name in ORDER]
    return typer.main.get_command(asked)


def _commands() -> dict[str, Any]:
    return {command.name or str(getattr(command.callback, "__name__", "")): command for command in app.registered_commands}


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"urdf-ident {version('urdf-ident')}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 done; 1 judged bad (files are written); 2 wrong use, or an input or output that cannot be used; "
    "70 internal error; 130 interrupted. `--debug` with any command shows the traceback of an error."
)
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Identify the dynamic model of a real robot from its URDF and its logs."""


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
    from ..pipeline.check import implausible_values
    from ..result.urdf_check import implausible_lines

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


def find_logs(arguments: list[str], project: Project, *, without: Sequence[str] = ()) -> list[LogSource]:
    """The logs that arguments name, protected as inputs; one that is given twice is noted.

    Args:
        without: Logs that are held out of folders, data sets and globs.
    """
    from ..logs.sources import expand_logs, shown

    for argument in sorted({argument for argument in arguments if arguments.count(argument) > 1}):
        say_aside(f"note: {shown(argument)} is given more than once and used once")
    logs = expand_logs(arguments, project.log, without=without) if arguments else []
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
