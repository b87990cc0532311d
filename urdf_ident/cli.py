"""The command line (design §3): each command reads, calls the library, prints and writes; nothing is computed here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import QualityError, UrdfIdentError

if TYPE_CHECKING:
    from .data.recording import Recording
    from .identification import Identification
    from .model.robot import Robot
    from .project import Project

app = typer.Typer(
    help="Find the dynamic model that a robot really has, from its URDF and its logs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
JUDGED_BAD, WRONG_USE = 1, 2

Urdf = Annotated[Path, typer.Argument(metavar="ROBOT.urdf", help="The robot description.")]
Logs = Annotated[list[str], typer.Argument(metavar="LOG...", help="Files, folders, quoted globs, or stems of split logs.")]
Config = Annotated[Path | None, typer.Option("-c", "--config", metavar="P", help="Project file (YAML).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Go on in spite of findings that refuse a log.")]
Result = Annotated[Path, typer.Argument(metavar="OUT/identification.json", help="What `identify` wrote.")]


def main() -> None:
    """Runs the command line; errors of the package become one line and an exit code."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments, standalone_mode=True)
    except UrdfIdentError as error:
        if debug:
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(JUDGED_BAD if isinstance(error, QualityError) else WRONG_USE)
    except BrokenPipeError:
        sys.exit(0)


@app.callback(epilog="`--debug` with any command shows the traceback of an error.")
def _root() -> None:
    """Find the dynamic model that a robot really has, from its URDF and its logs."""


@app.command()
def check(
    urdf: Urdf,
    config: Config = None,
    as_json: AsJson = False,
    fix: Annotated[Path | None, typer.Option("--fix", metavar="F", help="Write the nearest physical URDF to F.")] = None,
) -> None:
    """Joints, bodies, lumped links, impossible inertias, and what is identifiable."""
    from .export.fix import fix_urdf
    from .files import read_text, write_text
    from .summary import check_dict, check_text

    project, folder = _project(config)
    if fix is not None:
        text, notes = fix_urdf(read_text(urdf, "URDF"), str(urdf))
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
    from .data.joint_side import joint_side
    from .data.quality import assess
    from .summary import findings_text

    project, folder = _project(config)
    built = project.build_robot(robot, folder)
    drive = project.build_drive(built)
    found, good = [], True
    for recording in _read(logs, built, project):
        report = assess(joint_side(recording, drive), built)
        good &= report.acceptable
        found.append({"log": recording.name, "rows": len(recording), "acceptable": report.acceptable,
                      "findings": [finding.as_dict() for finding in report.findings]})  # fmt: skip
    typer.echo(json.dumps(found, indent=1, ensure_ascii=False) if as_json else findings_text(found))
    if write_project is not None:
        _write_project(write_project, project, built, robot)
    if not good:
        raise typer.Exit(JUDGED_BAD)


@app.command()
def identify(
    urdf: Urdf,
    logs: Logs,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT/", help="Output folder.")],
    config: Config = None,
    validate: Annotated[list[str] | None, typer.Option("--validate", metavar="LOG", help="Held-out log; repeatable.")] = None,
    force: Force = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Processes that read logs.")] = 1,
) -> None:
    """The main job: writes identification.json, the corrected URDF and joints.yaml to OUT."""
    from .files import check_writable
    from .identify import identify as run
    from .summary import summary

    project, folder = _project(config)
    robot = project.build_robot(urdf, folder)
    model = project.build_model(robot)
    recordings, held_out = _read(logs, robot, project), _read(validate or [], robot, project)
    check_writable(out)
    with _progress(sum(len(recording) for recording in recordings)) as progress:
        ident = run(model, recordings, held_out=held_out, project=project, force=force, progress=progress)
    notes = _write(ident, out)
    typer.echo(summary(ident))
    typer.echo("\n".join(["", *notes]))
    if any(item["mean_rmse"] >= item["urdf_mean_rmse"] for item in ident.validation):
        raise typer.Exit(JUDGED_BAD)


@app.command()
def validate(result: Result, logs: Logs, force: Force = False, as_json: AsJson = False) -> None:
    """Scores a result on other logs; exit code 1 if it is worse than the original URDF."""
    from .identify import validated
    from .project import Project
    from .result_file import load
    from .summary import validation_table

    ident = load(result)
    project = Project.model_validate(ident.config)
    ident = validated(ident, _read(logs, ident.model.robot, project), force=force)
    lines = validation_table(ident.validation, ident.model.robot.joints)
    typer.echo(json.dumps(list(ident.validation), indent=1) if as_json else "\n".join(lines))
    if any(item["mean_rmse"] >= item["urdf_mean_rmse"] for item in ident.validation):
        raise typer.Exit(JUDGED_BAD)


@app.command()
def export(
    result: Result,
    urdf: Annotated[Path | None, typer.Option("--urdf", metavar="F", help="Corrected URDF.")] = None,
    mjcf: Annotated[Path | None, typer.Option("--mjcf", metavar="F", help="MuJoCo model with damping and armature.")] = None,
    sidecar: Annotated[Path | None, typer.Option("--sidecar", metavar="F", help="What URDF cannot hold (YAML).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Even if the URDF has changed since the identification.")] = False,
) -> None:
    """Writes a result in other formats."""
    from .export.sidecar import write_sidecar
    from .result_file import load

    ident = load(result)
    if urdf is None and mjcf is None and sidecar is None:
        raise typer.BadParameter("nothing to write: give --urdf, --mjcf or --sidecar")
    _check_source(ident, force)
    if urdf is not None:
        for note in _write_urdf(ident, urdf):
            typer.echo(note)
    if mjcf is not None:
        _write_mjcf(ident, mjcf)
    if sidecar is not None:
        write_sidecar(sidecar, ident.model, ident.theta)
    for path in (urdf, mjcf, sidecar):
        if path is not None:
            typer.echo(f"wrote {path}")


def _project(config: Path | None) -> tuple[Project, Path]:
    from .project import load_project

    return load_project(config)


def _read(arguments: list[str], robot: Robot, project: Project) -> list[Recording]:
    from .data.readers import read_recording
    from .data.sources import expand_logs

    layout = project.log_layout()
    return [read_recording(source, robot, layout) for source in expand_logs(arguments, layout)] if arguments else []


def _write(ident: Identification, out: Path) -> list[str]:
    """Writes everything that `identify` promises; returns the lines to print."""
    from .export.sidecar import write_sidecar
    from .result_file import save

    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in ident.model.robot.name)
    urdf = out / f"{name}_identified.urdf"
    notes = _write_urdf(ident, urdf)
    written = [urdf, write_sidecar(out / "joints.yaml", ident.model, ident.theta), save(ident, out / "identification.json")]
    return [*notes, *(f"wrote {path}" for path in written)]


def _write_urdf(ident: Identification, path: Path) -> list[str]:
    from .export.urdf import write_urdf

    robot, inertial = ident.model.robot, ident.theta[: ident.model.n_inertial]
    damping, friction = ident.term_values("Fv"), ident.term_values("Fc")
    return list(write_urdf(path, robot, inertial, damping=damping, friction=friction, repair=True))


def _write_mjcf(ident: Identification, path: Path) -> None:
    from .export.mjcf import write_mjcf

    robot, inertial = ident.model.robot, ident.theta[: ident.model.n_inertial]
    terms = {"damping": ident.term_values("Fv"), "frictionloss": ident.term_values("Fc"), "armature": ident.term_values("Ia")}
    write_mjcf(path, robot, inertial, **terms)


def _check_source(ident: Identification, force: bool) -> None:
    """Refuses to export when the source URDF was edited since: the numbers would belong to another robot."""
    from .errors import FingerprintError
    from .provenance import sha256

    source = Path(ident.model.robot.path)
    if force or not source.is_file() or sha256(source.read_bytes()) == ident.model.robot.sha256:
        return
    raise FingerprintError(
        "the URDF has changed since the identification", where=str(source),
        remedy="identify again, or give --force to write the embedded, older URDF corrected",
    )  # fmt: skip


def _write_project(path: Path, project: Project, robot: Robot, urdf: Path | None) -> None:
    import yaml

    from .files import write_text

    data = project.model_dump(exclude_defaults=True)
    data["robot"] = {"urdf": str((urdf or Path(robot.path)).resolve()), "joints": list(robot.order), "lock": dict(robot.locked)}
    write_text(path, yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    typer.echo(f"wrote {path}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, int], None] | None]:
    """A progress bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} rows"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def update(name: str, rows: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=None)
            bar.update(tasks[name], completed=rows)

        yield update
