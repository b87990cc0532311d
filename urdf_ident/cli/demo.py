"""The whole tool on a bundled robot: demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..progress import steps
from .common import app

if TYPE_CHECKING:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")] = Path("urdf-ident-demo"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the motions, the noise and the URDF's errors.")] = 0,
) -> None:
    """The whole tool, offline, on a bundled robot: excite, simulate, identify, validate, export."""
    from ..pipeline.demo import run_demo
    from ..viz import motion_from
    from ..viz import play as show

    with steps() as progress:
        result = run_demo(out, seed=seed, progress=progress)
    robot = result.ident.model.robot
    page = show(robot, motion_from(str(out / "held_out.csv"), robot), html=out / "motion.html")
    typer.echo(result.ident.summary())
    typer.echo("\n" + result.summary())
    typer.echo(f"wrote {page} (open it in a browser)")
