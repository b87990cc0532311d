"""Commands that show a result: report, plot, and demo, which runs the whole workflow on a bundled robot first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ModelError
from ..files.read_write import check_output
from ..progress import steps
from ..result.commands import CommandPaths
from .application import command, optional_lines, say_aside
from .common import Force, Layout, Result, Verbose, coloured, command_paths, open_result, read_logs

if TYPE_CHECKING:
    from ..result.identification import Identification

NoReport = Annotated[bool, typer.Option("--no-report", help="Write no report.html.")]


@command("report out/identification.json", "report out/identification.json run4.csv")
def report(
    result: Result,
    logs: Annotated[
        list[str] | None, typer.Argument(metavar="LOG", help="Logs to show instead of those of the result.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE.html", help="Output file; default: report.html beside the result."),
    ] = None,
    config: Layout = None,
    force: Force = False,
) -> None:
    """Write report.html again, optionally for other logs."""

    from ..report import write_report

    page = out or result.parent / "report.html"
    check_output(page)
    ident = with_logs(open_result(result, config), logs or [], force, config)
    typer.echo(f"wrote {write_report(ident, page, command_paths(ident.model.robot.path, result))}")


@command("plot out/identification.json torque friction -o pictures --format pdf")
def plot(
    result: Result,
    pictures: Annotated[
        list[str] | None,
        typer.Argument(metavar="PICTURE", help="torque, friction, parameters, bodies, residual, errors; default: all."),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")] = Path("pictures"),
    kind: Annotated[str, typer.Option("--format", metavar="png|svg|pdf", help="File format.")] = "png",
    log: Annotated[
        list[str] | None, typer.Option("--log", metavar="LOG", help="Log to show instead of those of the result; repeatable.")
    ] = None,
    config: Layout = None,
    force: Force = False,
) -> None:
    """Write single figures of a result."""
    from ..result.plots.plots import NAMES

    if kind not in ("png", "svg", "pdf"):
        raise typer.BadParameter(f"unknown format '{kind}': png, svg or pdf")
    ident = with_logs(open_result(result, config), log or [], force, config)
    for picture in pictures or NAMES:
        try:
            typer.echo(f"wrote {ident.plot.save(picture, out / f'{picture}.{kind}')}")
        except ModelError as error:
            if pictures:
                raise
            typer.echo(f"note: no picture of {picture}: {error}")


def with_logs(ident: Identification, logs: list[str], force: bool, config: Path | None) -> Identification:
    """Returns a result with the scores and series of other logs.

    Args:
        logs: Files, folders, globs or stems; without any, the result is unchanged.
        force: Use logs in spite of findings that refuse them.
        config: The project file of their layout, which has no effect without logs and is then refused.
    """
    if not logs and config is not None:
        raise typer.BadParameter("-c has no effect on the logs of the result: name the logs that it describes")
    if not logs:
        return ident
    from ..pipeline.validate import validate, with_scores

    recordings, _ = read_logs(logs, ident.model.robot, ident.project)
    return with_scores(ident, validate(ident, recordings, force=force))


def report_lines(ident: Identification, path: Path, paths: CommandPaths) -> list[str]:
    """Writes the report of a result that is already written; if it fails, returns one line that says so instead of raising."""
    from ..report import write_report

    return optional_lines(lambda: [write_report(ident, path, paths)])


def say_file_replaced(path: Path) -> None:
    """Prints that an existing file is replaced, with its date; nothing if there is none."""
    from datetime import datetime

    if path.is_file():
        when = datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
        say_aside(f"note: {path} of {when} is replaced")


@command("demo -o demo")
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")] = Path("urdf-ident-demo"),
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of the motions, the noise and the errors of the URDF.")
    ] = 0,
    verbose: Verbose = False,
) -> None:
    """Run the whole workflow offline on a bundled robot.

    Designs a motion, simulates logs, identifies, validates and exports. Open report.html afterwards.
    """
    from ..pipeline.demo import demo as run
    from ..viz import motion_from
    from ..viz import play as show

    with steps() as progress:
        result = run(out, seed=seed, progress=progress)
    robot = result.ident.model.robot
    page = show(robot, motion_from(str(out / "held_out.csv"), robot), html=out / "motion.html")
    typer.echo(coloured(result.ident.summary(verbose=verbose)))
    typer.echo("\n" + result.summary())
    paths = command_paths(robot.path, out / "identification.json")
    typer.echo("\n".join(report_lines(result.ident, out / "report.html", paths)))
    typer.echo(f"wrote {page} (open it in a browser)")
