"""The command line (design §3): each command reads, calls the library, prints and writes; nothing is computed here."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import QualityError, UrdfIdentError
from .progress import log_bars, search_bar, steps

if TYPE_CHECKING:
    from .data.recording import Recording
    from .excitation.design import Design
    from .excitation.sweeps import BidirectionalExperiment
    from .model.dynamic_model import DynamicModel
    from .model.robot import Robot
    from .project import Project
    from .result.identification import Identification

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


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")] = Path("urdf-ident-demo"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the motions, the noise and the URDF's errors.")] = 0,
) -> None:
    """The whole tool, offline, on a bundled robot: excite, simulate, identify, validate, export."""
    from .pipeline.demo import run_demo
    from .viz import motion_from
    from .viz import play as show

    with steps() as progress:
        result = run_demo(out, seed=seed, progress=progress)
    robot = result.ident.model.robot
    page = show(robot, motion_from(str(out / "held_out.csv"), robot), html=out / "motion.html")
    typer.echo(result.ident.summary())
    typer.echo("\n" + result.summary())
    typer.echo(f"wrote {page} (open it in a browser)")


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
    from .pipeline.check import check_dict, check_text

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
    from .data.prepare import examine
    from .data.torque_constants.gains import resolve_gain
    from .estimation.estimators.gains import resolve_drive
    from .pipeline.check import findings_text

    project, folder = _project(config)
    built = project.build_robot(robot, folder)
    recordings = _read(logs, built, project)
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


@app.command()
def design(
    urdf: Urdf,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="TRAJ.csv", help="The motion: t, q, v, a of every joint.")],
    config: Config = None,
    after: Annotated[
        Path | None, typer.Option("--after", metavar="identification.json", help="Earlier result: look for what is unknown.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="F", help="Picture of q, v, a, tau and their limits.")] = None,
) -> None:
    """Designs a motion that shows the parameters well and stays inside the limits."""
    from .files import check_writable
    from .result.file import load

    project, folder = _project(config)
    robot = project.build_robot(urdf, folder)
    check_writable(out.parent)
    earlier = None if after is None else load(after)
    found = _designed(project, folder, project.build_model(robot), out, earlier)
    if plot is not None:
        from .motion.limits import prior_torque
        from .viz.limits_plot import plot_limits

        typer.echo(f"wrote {plot_limits(found.trajectory, found.limits, plot, prior_torque(robot), robot.name)}")


@app.command()
def simulate(
    urdf: Urdf,
    trajectory: Annotated[Path, typer.Argument(metavar="TRAJ.csv", help="The motion, as `design` writes it.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="LOG.csv", help="The log to write.")],
    config: Config = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="F", help="identification.json, or a YAML of rotors, friction, stiffness.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of the sensors' noise.")] = None,
) -> None:
    """Simulates the whole experiment: closed loop, friction that sticks, sensors; settings in the project file."""
    from .motion.trajectories import read_trajectory
    from .pipeline.experiment import left_out, run_experiment, true_plant
    from .simulation.simulate import write_log

    project, folder = _project(config)
    robot = project.build_robot(urdf, folder)
    motion = read_trajectory(trajectory, robot)
    with steps() as progress:
        log = run_experiment(
            project, robot, motion, plant=true_plant(project, robot, truth), name=out.stem, seed=seed,
            progress=lambda done: progress("simulating", done),
        )  # fmt: skip
    write_log(log, out)
    error = ", ".join(f"{value:.2g}" for value in log.tracking_error)
    typer.echo(
        f"{len(log.recording)} rows at {project.simulation.rate:g} Hz, {log.integrator}; RMS tracking error {error} rad or m"
    )
    note = left_out(project, robot, truth)
    if note is not None:
        typer.echo(f"note: {note}")
    typer.echo(f"wrote {out}")


@app.command()
def identify(
    urdf: Urdf,
    logs: Logs,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT/", help="Output folder.")],
    config: Config = None,
    validate: Annotated[list[str] | None, typer.Option("--validate", metavar="LOG", help="Held-out log; repeatable.")] = None,
    sweeps: Annotated[
        list[str] | None,
        typer.Option("--sweeps", metavar="LOG", help="Runs at constant speed both ways, one joint at a time; repeatable."),
    ] = None,
    force: Force = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Processes that read logs.")] = 1,
    following: Annotated[
        Path | None, typer.Option("--next", metavar="TRAJ.csv", help="Design the motion that tells most of what is unknown.")
    ] = None,
) -> None:
    """The main job: writes identification.json, the corrected URDF and joints.yaml to OUT."""
    from .files import check_writable
    from .pipeline.identify import identify as run
    from .result.exports import write_all
    from .result.scores import better_than_urdf

    project, folder = _project(config)
    robot = project.build_robot(urdf, folder)
    model = project.build_model(robot)
    recordings, held_out, runs = (_read(some or [], robot, project, jobs) for some in (logs, validate, sweeps))
    check_writable(out)
    with log_bars({recording.name for recording in recordings}) as progress:
        ident = run(model, recordings, held_out=held_out, sweeps=runs, project=project, force=force, progress=progress)
    notes = write_all(ident, out)
    typer.echo(ident.summary())
    typer.echo("\n".join(["", *notes]))
    if following is None:
        _offer(project, ident)
    else:
        _designed(project, folder, model, following, ident)
    if not better_than_urdf(ident.validation):
        raise typer.Exit(JUDGED_BAD)


@app.command()
def validate(result: Result, logs: Logs, force: Force = False, as_json: AsJson = False) -> None:
    """Scores a result on other logs; exit code 1 if it is worse than the original URDF."""
    from .pipeline.identify import validate as score
    from .project import Project
    from .result.file import load

    ident = load(result)
    project = Project.model_validate(ident.config)
    report = score(ident, _read(logs, ident.model.robot, project), force=force)
    typer.echo(json.dumps(list(report.entries), indent=1) if as_json else report.summary())
    if not report.better_than_urdf:
        raise typer.Exit(JUDGED_BAD)


@app.command()
def play(
    urdf: Urdf,
    motion: Annotated[str, typer.Argument(metavar="TRAJ_OR_LOG", help="A trajectory or a log.")],
    config: Config = None,
    other: Annotated[
        Path | None, typer.Option("--urdf", metavar="OTHER.urdf", help="Drawn translucent over the first.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="F", help="Write one offline page instead.")] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="N", min=1, max=65535, help="Port of the viewer.")] = None,
) -> None:
    """Shows the robot moving, in Meshcat: live until Ctrl-C, or as one offline page."""
    from .viz import motion_from
    from .viz import play as run

    project, folder = _project(config)
    robot = project.build_robot(urdf, folder)
    second = project.build_robot(other, folder) if other is not None else None
    shown = motion_from(motion, robot, project.log_layout(), project.build_drive(robot))
    around = project.excitation.build_collisions(robot, folder)
    written = run(robot, shown, other=second, collisions=around, html=html, port=port, say=typer.echo)
    if written is not None:
        typer.echo(f"wrote {written}")


@app.command()
def export(
    result: Result,
    urdf: Annotated[Path | None, typer.Option("--urdf", metavar="F", help="Corrected URDF.")] = None,
    mjcf: Annotated[Path | None, typer.Option("--mjcf", metavar="F", help="MuJoCo model with damping and armature.")] = None,
    sidecar: Annotated[Path | None, typer.Option("--sidecar", metavar="F", help="What URDF cannot hold (YAML).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Even if the URDF has changed since the identification.")] = False,
) -> None:
    """Writes a result in other formats."""
    from .result.exports import check_source, write_mjcf, write_sidecar, write_urdf
    from .result.file import load

    ident = load(result)
    wanted = [(urdf, write_urdf), (mjcf, write_mjcf), (sidecar, write_sidecar)]
    if all(path is None for path, _ in wanted):
        raise typer.BadParameter("nothing to write: give --urdf, --mjcf or --sidecar")
    if not force:
        check_source(ident)
    for path, write in wanted:
        if path is not None:
            notes = write(ident, path)
            for note in notes if isinstance(notes, tuple) else ():
                typer.echo(note)
            typer.echo(f"wrote {path}")


def _designed(
    project: Project, folder: Path, model: DynamicModel, out: Path, after: Identification | None
) -> Design | BidirectionalExperiment:
    """Designs a motion, writes it, and says what it is worth."""
    from .excitation.sequential import forecast

    with search_bar() as progress:
        found = project.excitation.design(model, folder, after=after, progress=progress)
    found.trajectory.write(out)
    typer.echo(found.summary())
    if after is not None:
        typer.echo(forecast(after, found.trajectory, found.limits).summary())
    typer.echo(f"wrote {out}")
    return found


def _offer(project: Project, ident: Identification) -> None:
    """One line on what another motion would tell; nothing where none can be planned."""
    from .errors import LimitError, ModelError
    from .excitation.sequential import offer

    settings = project.excitation
    try:
        found = offer(ident, settings.options(ident.model.robot)["limits"], settings.duration)
    except (LimitError, ModelError):  # no limits in the URDF, or elastic joints: `design` says so when it is asked
        return
    typer.echo(f"next: {found.sentence()} even with a random motion; --next TRAJ.csv designs a better one")


def _project(config: Path | None) -> tuple[Project, Path]:
    from .project import load_project

    return load_project(config)


def _read(arguments: list[str], robot: Robot, project: Project, jobs: int = 1) -> list[Recording]:
    from .data.readers.read import read_recordings
    from .data.readers.sources import expand_logs

    layout = project.log_layout()
    return read_recordings(expand_logs(arguments, layout), robot, layout, jobs=jobs) if arguments else []


def _write_project(path: Path, project: Project, robot: Robot, urdf: Path | None) -> None:
    import yaml

    from .files import write_text

    data = project.model_dump(exclude_defaults=True)
    data["robot"] = {"urdf": str((urdf or Path(robot.path)).resolve()), "joints": list(robot.order), "lock": dict(robot.locked)}
    write_text(path, yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    typer.echo(f"wrote {path}")
