"""Commands that use results to find a payload, changes, and outliers among robots: payload, compare, fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LogError
from ..files.read_write import check_output, check_writable
from .application import (
    JUDGED_BAD,
    AsJson,
    Config,
    Force,
    Layout,
    Locks,
    Logs,
    Packages,
    Result,
    SkipBadLogs,
    Urdf,
    command,
    locked,
    open_result,
    optional_lines,
    read_logs,
    say,
)
from .identify import NoReport

if TYPE_CHECKING:
    from ..result.comparison import Comparison, Trend


@command("payload out/identification.json loaded.csv --link tool0", "payload out/identification.json poses.csv --static")
def payload(
    result: Result,
    logs: Logs,
    link: Annotated[
        str | None, typer.Option("--link", metavar="LINK", help="Link that carries the body; default: tool0 or the last link.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="payload.json", help="Output file; default: beside the result.")
    ] = None,
    static: Annotated[bool, typer.Option("--static", help="Use static poses: mass and centre of mass only.")] = False,
    method: Annotated[
        str, typer.Option("--method", metavar="M", help="held: keep the unloaded model; joint: estimate both together; auto.")
    ] = "auto",
    refit: Annotated[
        str, typer.Option("--refit", metavar="F", help="Refit for the loaded logs: none, offset, friction, auto.")
    ] = "auto",
    gain_error: Annotated[
        float | None, typer.Option("--gain-error", metavar="E", help="Relative error of the torque constants, e.g. 0.01.")
    ] = None,
    config: Layout = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Identify an unknown tool or payload.

    Gives mass, centre of mass and inertia with intervals, from a result of the unloaded robot and logs with the load.
    """
    from ..pipeline.payload import payload as weigh
    from ..result.write import write_payload

    ident = open_result(result, config)
    target = out or result.parent / "payload.json"
    check_writable(target.parent)
    recordings, _ = read_logs(logs, ident.model.robot, ident.project)
    body = weigh(ident, recordings, link=link, method=method, refit=refit, static=static, gain_error=gain_error, force=force)
    written = write_payload(ident, body, target)
    say(body.as_dict(), as_json, lambda: "\n".join([body.summary(), "", *written]))
    if body.verdict.level == "poor":
        raise typer.Exit(JUDGED_BAD)


@command("compare january/identification.json june/identification.json", "compare arm.urdf out/identification.json")
def compare(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT", help="Two results, a URDF and a result, or several results in order of time."),
    ],
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="F", help="Figure of the trend over three or more results.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare results: has the robot changed?

    Given a URDF and a result, lists the URDF values that the data contradict. Given three or more results, shows the trend.
    """
    from ..comparison.changes import compare as changes
    from ..comparison.changes import trend

    urdfs = [path for path in results if path.suffix.lower() in (".urdf", ".xml", ".mjcf", ".sdf", ".xacro")]
    if len(results) < 2 or (urdfs and (len(results) != 2 or len(urdfs) != 1)):
        raise LogError(
            "nothing to compare", got=" ".join(map(str, results)), expected="two or more results, or one URDF and one result"
        )
    if plot is not None and len(results) < 3:
        raise LogError("--plot shows a trend", got=f"{len(results)} results", expected="three or more", remedy="leave it out")
    idents = [open_result(path) for path in results if path not in urdfs]
    comparison: Comparison | Trend
    if len(results) == 2:
        comparison = changes(idents[0].model.robot.of_urdf(urdfs[0]) if urdfs else idents[0], idents[-1])
    else:
        parents = [path.parent.name or path.stem for path in results]
        comparison = trend(idents, parents if len(set(parents)) == len(parents) else [str(path) for path in results])
        if plot is not None:
            check_output(plot)
            comparison.plot(plot)
    say(comparison.as_dict(), as_json, comparison.summary)
    if plot is not None:
        typer.echo(f"wrote {plot}", err=as_json)


@command("fleet arm.urdf 'robots/*/' -o fleet", "fleet arm.urdf robots/a robots/b robots/c -c project.yaml --jobs 2 -o fleet")
def fleet(
    urdf: Urdf,
    folders: Annotated[list[str], typer.Argument(metavar="FOLDER", help="One folder of logs per robot, or quoted globs.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT/", help="Output folder.")],
    config: Config = None,
    lock: Locks = None,
    force: Force = False,
    skip_bad_logs: SkipBadLogs = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Number of robots to identify in parallel.")] = 1,
    no_report: NoReport = False,
    as_json: AsJson = False,
    packages: Packages = None,
) -> None:
    """Compare many robots of one model and find outliers.

    Writes each robot's result to OUT/NAME, and fleet.json, fleet.svg and fleet.html to OUT. The exit code is 1 if a robot could
    not be identified.
    """
    from ..parallel import workers
    from ..pipeline.fleet import fleet as identify_each
    from ..pipeline.fleet import robot_folders
    from ..report import write_fleet

    robots = robot_folders(folders)
    check_writable(out)
    table, picture, page = out / "fleet.json", out / "fleet.svg", out / "fleet.html"
    for path in (table, picture, page):
        check_output(path)
    with workers(jobs):
        comparison = identify_each(
            urdf, robots, out, config=config, lock=locked(lock), force=force, skip_bad_logs=skip_bad_logs
        )
    notes = [f"wrote {comparison.save(table)}"]
    if not no_report:
        notes += optional_lines(lambda: [comparison.plot(picture), write_fleet(comparison, page)])
    say(comparison.as_dict(), as_json, lambda: "\n".join([comparison.summary(), *notes]))
    if comparison.failed:
        raise typer.Exit(JUDGED_BAD)
