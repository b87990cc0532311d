"""Charts as matplotlib figures: axes of notebooks, and files."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import MissingExtraError, OutputError
from ...files.read_write import write_bytes
from ...linalg import Array
from ...quoting import figure_text
from .chart import PALETTE, Area, Chart, Dots, Line

#: Text size in plots [pt], and points per pixel.
TEXT, _POINT = 8.0, 0.75


def new_figure(width: float, height: float, *, on_screen: bool = True) -> Any:
    """A pyplot figure if pyplot is in use and in notebooks, otherwise a bare figure, which needs no window.

    Args:
        width, height: Size [in].
        on_screen: False for a file only: always a bare figure, which no notebook shows and nobody has to close.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("pictures need matplotlib", remedy="install it: pip install 'urdf-ident[report]'") from error
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not on_screen:
        return Figure(figsize=(width, height), layout="constrained")
    session = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if pyplot is None and session is not None and session() is not None:
        pyplot = import_module("matplotlib.pyplot")
    return (Figure if pyplot is None else pyplot.figure)(figsize=(width, height), layout="constrained")


def draw_grid(charts: Sequence[Chart], columns: int, width: float, height: float, *, on_screen: bool = True) -> Array:
    """Draws charts of one size row by row, with one legend for all.

    Args:
        width, height: Size of each chart [in].

    Returns:
        Matplotlib axes, shape (charts,).
    """
    columns = min(len(charts), columns)
    rows = -(-len(charts) // columns)
    figure = new_figure(width * columns, height * rows, on_screen=on_screen)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, chart in zip(grid, charts, strict=False):
        draw(axis, chart)
    for axis in grid[len(charts) :]:
        axis.set_visible(False)
    shown = {label: handle for axis in grid for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if shown:
        legend(figure, list(shown.values()), list(shown), loc="outside upper right", ncols=4)
    return np.asarray(grid[: len(charts)])


def write_rows(charts: Sequence[Chart], rows: int, path: str | Path) -> Path:
    """Writes charts that have the same number of named rows."""
    return write_figure(draw_grid(charts, 2, 4.0, 0.7 + 0.16 * rows, on_screen=False)[0].figure, path)


def draw(axis: Any, chart: Chart) -> None:
    """Draws a chart into matplotlib axes."""
    if chart.log:
        axis.set_xscale("log")
        axis.set_yscale("log")
    limits = chart.limits()
    for mark in chart.marks:
        x, y = mark.within(limits)
        colour, options = PALETTE[mark.colour], {"alpha": mark.alpha, "label": figure_text(mark.label)}
        if isinstance(mark, Line):
            axis.plot(x, y, color=colour, linewidth=mark.width * _POINT, linestyle=mark.dash, **options)
        elif isinstance(mark, Dots):
            size, face = (2 * _POINT * np.asarray(mark.radius)) ** 2, "none" if mark.hollow else colour
            axis.scatter(x, y, s=size, edgecolors=colour, facecolors=face, linewidths=0.8 if mark.hollow else 0, **options)
        elif isinstance(mark, Area):
            axis.fill(x, y, color=colour, linewidth=0, **options)
    if chart.equal:  # the size of the axes sets the limits
        axis.set_aspect("equal", adjustable="datalim")
    else:
        axis.set_xlim(*limits[0])
        axis.set_ylim(*limits[1])
    if chart.names:
        axis.set_yticks(range(len(chart.names)), [figure_text(name) for name in chart.names])
    ink, soft = PALETTE["ink"], PALETTE["soft"]
    axis.set_facecolor("none")
    axis.tick_params(labelsize=TEXT - 0.5, colors=soft, labelcolor=ink, length=2.5, width=0.6)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(soft)
        spine.set_linewidth(0.6)
    axis.grid(color=soft, linewidth=0.4, alpha=0.3)
    axis.set_axisbelow(True)
    for set_text, text in ((axis.set_xlabel, chart.x), (axis.set_ylabel, chart.y)):
        set_text(figure_text(text), fontsize=TEXT, color=ink, labelpad=2)
    if chart.title:
        axis.set_title(figure_text(chart.title), fontsize=TEXT + 1, color=ink, loc="left", y=1.0, pad=5)


def legend(target: Any, *entries: Any, **options: Any) -> None:
    """Adds a legend without a frame; entries: handles and labels, those of the target if not given."""
    target.legend(
        *entries, **{"fontsize": TEXT - 0.5, "labelcolor": PALETTE["ink"], "frameon": False, "handlelength": 1.6, **options}
    )


def write_figure(figure: Any, path: str | Path) -> Path:
    """Writes a figure atomically, in the format that the file's suffix names (default: PNG)."""
    page = io.BytesIO()
    try:
        figure.savefig(page, format=Path(path).suffix.lstrip(".").lower() or "png", dpi=140, facecolor="white")
    except ValueError as error:
        raise OutputError("the picture cannot be written", where=str(path), got=str(error)) from error
    return write_bytes(path, page.getvalue())
