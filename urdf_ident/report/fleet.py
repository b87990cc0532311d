"""The page of a fleet: outliers, with a figure of every informative quantity."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..files.read_write import write_text
from ..result.fleet import Fleet, Pooled
from ..result.plots.parameters import draw_quantity
from .svg import svg
from .template import rendered

FILE = "fleet.html"


def fleet_html(fleet: Fleet) -> str:
    """Returns the report of a fleet as one self-contained HTML page.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
    """
    headline, how = fleet.headline
    return rendered(
        "fleet.html.j2",
        fleet=fleet,
        headline=headline,
        how=how,
        odd=any(sentences for _, _, sentences in fleet.robots),
        robots=fleet.robots,
        pictures=[_picture(fleet, pooled) for pooled in fleet.shown],
        quantities=[_row(fleet, pooled) for pooled in fleet.pooled],
    )


def write_fleet(fleet: Fleet, path: str | Path) -> Path:
    """Writes the page of a fleet atomically.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
        OutputError: It cannot be written.
    """
    return write_text(path, fleet_html(fleet))


def _picture(fleet: Fleet, pooled: Pooled) -> str:
    def draw(figure: Any) -> None:
        figure.subplots_adjust(
            left=min(0.1 + 0.02 * max(map(len, fleet.names)), 0.6), right=0.97, top=1 - 0.3 / height, bottom=0.3 / height
        )
        title = f"{pooled.where}: {pooled.what} [{pooled.unit}]"
        values = (pooled.value, pooled.error, (pooled.mean, pooled.spread), pooled.stands_out, list(fleet.names))
        draw_quantity(figure.subplots(), *values, title)

    height = 0.7 + 0.2 * len(fleet.names)
    return svg(draw, 3.6, height, f"{pooled.where}, {pooled.what}: every robot with its interval")


def _row(fleet: Fleet, pooled: Pooled) -> Mapping[str, Any]:
    farthest = int(np.argmin(pooled.chance))
    return {
        "name": f"{pooled.where}: {pooled.what}",
        "mean": pooled.mean,
        "error": pooled.std_error,
        "spread": pooled.spread,
        "interval": pooled.interval,
        "unit": pooled.unit,
        "farthest": fleet.names[farthest],
        "odd": bool(pooled.stands_out[farthest]),
        "chance": float(pooled.chance[farthest]),
    }
