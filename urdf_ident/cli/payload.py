"""Commands that use results to find changes: payload, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LogError
from ..files.folders import check_writable
from ..files.read_write import check_output
from .common import JUDGED_BAD, AsJson, Force, Logs, Result, command, open_result, read_logs, say

if TYPE_CHECKING:
    from ..logs.recording import Recording
    from ..result.comparison import Comparison, Trend
    from ..result.identification import Identification
    from ..result.payload import PayloadResult


@command(
    "payload out/identification.json loaded.csv --link tool0",
    "payload out/identification.json poses.csv --static",
)
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
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Identify an unknown tool or payload.

    Gives mass, centre of mass and inertia with intervals, from a result of the unloaded robot and logs with the load.
    """
    from ..pipeline.payload import weigh

    ident = open_result(result)
    target = out or result.parent / "payload.json"
    check_writable(target.parent)
    recordings = read_logs(logs, ident.model.robot, ident.project)
    found = weigh(ident, recordings, link=link, method=method, refit=refit, static=static, gain_error=gain_error, force=force)
    written = _written(ident, found, target)
    lines = [f"  {name}: {line}" for name, line in found.as_dict()["set_payload"].items()]
    say(found.as_dict(), as_json, lambda: "\n".join([found.summary(), *lines, "", *written]))
    if found.verdict["level"] == "poor":
        raise typer.Exit(JUDGED_BAD)


def weigh_and_write(
    ident: Identification, logs: list[Recording], target: Path, link: str | None = None, force: bool = False
) -> tuple[PayloadResult, list[str]]:
    """Identifies the payload of loaded logs, with the more precise of both methods, and writes it beside the result.

    Args:
        ident: The unloaded robot.
        link: The link with the payload; the usual link if None.
        force: Use logs in spite of findings that refuse them.

    Returns:
        The payload, and lines that describe what was written.
    """
    from ..pipeline.payload import weigh

    found = weigh(ident, logs, link=link, force=force)
    return found, _written(ident, found, target)


def _written(ident: Identification, found: PayloadResult, target: Path) -> list[str]:
    """Writes the JSON and, if there is a payload, the robot with it; returns lines that describe them."""
    from ..result.files.exports import write_with_payload

    saved = f"wrote {found.save(target)}"
    if not found.shown:
        return [saved, "no URDF, MJCF or set_payload: these logs show no body"]
    return [*write_with_payload(ident, found, target.parent), saved]


@command(
    "compare january/identification.json june/identification.json",
    "compare arm.urdf out/identification.json",
)
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
    from ..pipeline import compare

    urdfs = [path for path in results if path.suffix.lower() in (".urdf", ".xml", ".xacro")]
    if len(results) < 2 or (urdfs and (len(results) != 2 or len(urdfs) != 1)):
        raise LogError(
            "nothing to compare", got=" ".join(map(str, results)), expected="two or more results, or one URDF and one result"
        )
    if plot is not None and len(results) < 3:
        raise LogError("--plot shows a trend", got=f"{len(results)} results", expected="three or more", remedy="leave it out")
    found: Comparison | Trend
    if urdfs:
        ident = open_result(next(path for path in results if path not in urdfs))
        found = compare.contradictions(ident.model.robot.of_urdf(urdfs[0]), ident)
    elif len(results) == 2:
        found = compare.compare(open_result(results[0]), open_result(results[1]))
    else:
        parents = [path.parent.name or path.stem for path in results]
        names = parents if len(set(parents)) == len(parents) else [str(path) for path in results]
        found = compare.trend([open_result(path) for path in results], names)
        if plot is not None:
            check_output(plot)
            found.plot(plot)
    say(found.as_dict(), as_json, found.summary)
    if plot is not None:
        typer.echo(f"wrote {plot}", err=as_json)
