"""The command for many robots of one model: fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..files.read_write import check_output, check_writable
from .application import JUDGED_BAD, command, optional_lines
from .common import AsJson, Config, Force, Locks, Packages, SkipBadLogs, Urdf, locked, say
from .report import NoReport


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
