"""Commands about motions: design, simulate, play."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LogError, ProjectError, check_named
from ..files.read_write import check_output, check_writable, note_input
from ..progress import search_bar, steps
from .application import (
    Config,
    Locks,
    Packages,
    Urdf,
    command,
    open_result,
    open_robot,
    print_implausible_values,
    say_aside,
    say_file_replaced,
)

if TYPE_CHECKING:
    from ..excitation.design import DesignedMotion
    from ..model.dynamic_model import DynamicModel
    from ..project import Project
    from ..result.identification import Identification


@command("design arm.urdf -c project.yaml -o motion.csv", "design arm.urdf --after out/identification.json -o next.csv")
def design(
    urdf: Urdf,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="TRAJ.csv", help="The motion: t, q, v, a of every joint.")],
    config: Config = None,
    lock: Locks = None,
    after: Annotated[
        Path | None,
        typer.Option("--after", metavar="identification.json", help="Earlier result: design for what it left unknown."),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="F", help="Figure of q, v, a, tau and their limits.")] = None,
    family: Annotated[
        str | None, typer.Option("--family", metavar="F", help="Kind of motion: fourier, sweeps, poses, circle, ...")
    ] = None,
    packages: Packages = None,
) -> None:
    """Design an exciting motion within all limits."""
    project, folder, robot = open_robot(config, urdf, lock)
    project = project if family is None else _of_family(project, family)
    check_writable(out.parent)
    earlier = None if after is None else open_result(after)
    check_output(out)
    if plot is not None:
        check_output(plot)
    print_implausible_values(robot)
    designed = run_design(project, folder, project.build_model(robot), out, earlier)
    if plot is not None:
        from ..motion.limits import prior_torque
        from ..result.plots.plots import plot_limits

        typer.echo(f"wrote {plot_limits(designed.trajectory, designed.limits, plot, prior_torque(robot))}")


@command("simulate arm.urdf motion.csv --truth out/identification.json -o log.csv")
def simulate(
    urdf: Urdf,
    trajectory: Annotated[Path, typer.Argument(metavar="TRAJ.csv", help="The motion, as `design` writes it.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="LOG.csv", help="The log to write.")],
    config: Config = None,
    lock: Locks = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="F", help="True parameters: identification.json, or a YAML file.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Seed of the sensor noise.")] = None,
) -> None:
    """Simulate the experiment in closed loop and write a log.

    With stick-slip friction and imperfect sensors; the project file holds the settings.
    """
    from ..logs.motions import read_trajectory, why_recorded
    from ..pipeline.simulate import simulate as run
    from ..pipeline.simulate import true_plant
    from ..simulation.simulate import write_log

    project, _, robot = open_robot(config, urdf, lock)
    motion = read_trajectory(trajectory, robot)
    check_output(out)
    plant, notes = true_plant(project, robot, truth)
    if recorded := why_recorded(trajectory, motion):
        say_aside(f"note: {trajectory} is a recording: {recorded}; its noise becomes part of the motion")
    with steps() as progress:
        options: dict[str, Any] = {"seed": seed, "progress": lambda done: progress("simulating", done)}
        log = run(robot, motion, project=project, truth=plant, name=out.stem, **options)
    say_file_replaced(out)
    write_log(log, out)
    error = ", ".join(f"{value:.2g}" for value in log.tracking_error)
    typer.echo(
        f"{len(log.recording)} rows at {project.simulation.rate:g} Hz, {log.integrator}; RMS tracking error {error} rad or m"
    )
    for note in notes:
        typer.echo(f"note: {note}")
    typer.echo(f"wrote {out}")


@command(
    "play arm.urdf motion.csv",
    "play arm.urdf run1.csv --beside motion.csv --html motion.html",
    "play arm.urdf run1.csv --errors out/identification.json",
)
def play(
    urdf: Urdf,
    motion: Annotated[str, typer.Argument(metavar="TRAJ_OR_LOG", help="A trajectory or a log.")],
    config: Config = None,
    lock: Locks = None,
    other: Annotated[
        Path | None, typer.Option("--urdf", metavar="OTHER.urdf", help="Second URDF, drawn translucent over the first.")
    ] = None,
    beside: Annotated[
        str | None, typer.Option("--beside", metavar="TRAJ_OR_LOG", help="Second motion, drawn translucent beside the first.")
    ] = None,
    errors: Annotated[
        Path | None,
        typer.Option("--errors", metavar="identification.json", help="Colour the links by the torque error of this result."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="F", help="Write an offline page instead of opening a viewer.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="N", min=1, max=65535, help="Port of the viewer.")] = None,
    packages: Packages = None,
) -> None:
    """Show a motion or log in Meshcat.

    Runs until Ctrl-C, or writes an offline page.
    """
    from ..viz import play as run
    from ..viz import read_motion

    project, folder, robot = open_robot(config, urdf, lock)
    second = project.build_robot(other, folder) if other is not None else None
    note_input(motion, "motion")
    if html is not None:
        check_output(html)
    ident = None if errors is None else open_result(errors, config)
    layout, drive = (project.log, project.build_drive(robot)) if ident is None else (ident.project.log, ident.model.drive)
    shown, ghost = read_motion(motion, robot, layout), None if beside is None else read_motion(beside, robot, layout)
    around = project.excitation.build_collisions(robot, folder)
    options: dict[str, Any] = {"html": html, "port": port, "say": typer.echo}
    written = run(robot, shown, other=second, beside=ghost, drive=drive, collisions=around, errors=ident, **options)
    if written is not None:
        typer.echo(f"wrote {written}")


@command("export-motion motion.csv --robot arm.urdf --for ros2_control -o on_robot", name="export-motion")
def export_motion(
    trajectory: Annotated[Path, typer.Argument(metavar="TRAJ.csv", help="The motion, as `design` writes it.")],
    target: Annotated[str, typer.Option("--for", metavar="ros2_control|urscript|franka", help="Controller of the robot.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for scripts and README.txt.")],
    urdf: Annotated[
        Path | None, typer.Option("--robot", metavar="ROBOT.urdf", help="URDF of the robot; default: that of the project file.")
    ] = None,
    config: Config = None,
    lock: Locks = None,
    packages: Packages = None,
) -> None:
    """Write scripts that make a real robot follow a motion.

    Includes a slow approach, a dry run, the recording, and a checklist.
    """
    from ..export.on_robot import export_motion as write
    from ..logs.motions import read_trajectory, why_recorded

    project, folder, robot = open_robot(config, urdf, lock)
    limits = project.excitation.build_limits(robot)
    motion = read_trajectory(trajectory, robot)
    if recorded := why_recorded(trajectory, motion):
        raise LogError(
            "this is a recording, and a robot would follow its noise",
            where=str(trajectory),
            got=recorded,
            expected="a planned motion, as `design` writes it",
            remedy="give the motion that the robot was commanded",
        )
    check_writable(out)
    around = project.excitation.build_collisions(robot, folder)
    for path in write(motion, robot, target, out, limits=limits, collisions=around):
        typer.echo(f"wrote {path}")
    typer.echo(f"read {out / 'README.txt'} before the robot moves")


def run_design(project: Project, folder: Path, model: DynamicModel, out: Path, after: Identification | None) -> DesignedMotion:
    """Designs a motion, writes it, and prints its quality; after: an earlier result, to design for what it left unknown."""
    from ..excitation.sequential import forecast
    from ..samples import SHORT, SHORTEST

    with search_bar() as progress:
        designed = project.excitation.design(model, folder, after=after, progress=progress)
    designed.trajectory.write(out)
    typer.echo(designed.summary())
    if designed.trajectory.duration < SHORT:
        seconds = f"{designed.trajectory.duration:.3g} s of motion"
        typer.echo(f"note: {seconds} is short: `inspect` warns below {SHORT:g} s and refuses below {SHORTEST:g} s")
    if after is not None:
        typer.echo(forecast(after, designed.trajectory, designed.limits).summary())
    typer.echo(f"wrote {out}")
    return designed


def _of_family(project: Project, family: str) -> Project:
    """The project with another family of motions."""
    from typing import get_args

    known = get_args(type(project.excitation).model_fields["family"].annotation)
    check_named("family of motions", family, known, ProjectError)
    return project.model_copy(update={"excitation": project.excitation.model_copy(update={"family": family})})
