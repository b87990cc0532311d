"""The page of a fleet: outliers, with a figure of every informative quantity."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..files.read_write import write_text
from ..result.fleet import Fleet
from .svg import svg
from .template import rendered


def write_fleet(fleet: Fleet, path: str | Path) -> Path:
    """Writes the report of a fleet as one self-contained HTML page, atomically."""
    headline, how = fleet.headline
    height = 60 + 20 * len(fleet.names)
    text = rendered(
        "fleet.html.j2",
        fleet=fleet,
        headline=headline,
        how=how,
        odd=any(sentences for _, _, sentences in fleet.robots),
        robots=fleet.robots,
        pictures=[
            svg([pooled.chart(fleet.names)], f"{pooled.where}, {pooled.what}: every robot with its interval", height)
            for pooled in fleet.shown
        ],
        quantities=[(pooled, int(np.argmin(pooled.chance))) for pooled in fleet.pooled],  # and the farthest robot
    )
    return write_text(path, text)
