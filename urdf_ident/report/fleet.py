"""The page of a fleet: outliers, with a figure of every informative quantity."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..files.read_write import write_text
from ..result.fleet import Fleet, Pooled
from .svg import svg
from .template import rendered


def fleet_html(fleet: Fleet) -> str:
    """Returns the report of a fleet as one self-contained HTML page."""
    headline, how = fleet.headline
    height = 60 + 20 * len(fleet.names)
    return rendered(
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
        quantities=[_row(fleet, pooled) for pooled in fleet.pooled],
    )


def write_fleet(fleet: Fleet, path: str | Path) -> Path:
    """Writes the page of a fleet atomically."""
    return write_text(path, fleet_html(fleet))


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
