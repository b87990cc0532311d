"""The command that runs the whole workflow on a bundled robot: demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..progress import steps
from .application import command
from .common import Verbose, coloured, command_paths
from .report import report_lines


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
