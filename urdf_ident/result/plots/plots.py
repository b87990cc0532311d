"""Charts as matplotlib figures: ``ident.plot``, axes of notebooks, and files."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import MissingExtraError, ModelError, OutputError, check_known
from ...files.read_write import write_bytes
from ...linalg import Array
from ...motion.limits import Limits, Torque
from ...motion.trajectory import Trajectory
from ...quoting import figure_text
from ..record import Record
from ..scores import LogTrace
from .charts import OF_LOG, PALETTE, PICTURES, Area, Chart, Dots, Line, limit_charts

#: Plots by name; deviations of friction between the logs are drawn in the report alone.
NAMES = tuple(name for name in PICTURES if name != "changes")
#: Text size in plots [pt], and points per pixel.
TEXT, _POINT = 8.0, 0.75


class Plots:
    """Plots of a result; each method returns the matplotlib axes that it drew into (figure: ``axes.flat[0].figure``).

    Raises:
        MissingExtraError: From each method, if matplotlib is not installed.
        ModelError: From each method, if there is nothing to draw.
    """

    def __init__(self, ident: Record) -> None:
        self._ident = ident

    def torque(self, log: str | None = None) -> Array:
        """Plots measured and predicted torque of every joint, with the error below.

        Args:
            log: Name of the log; if None, the first stored one (held-out if there are any).

        Returns:
            Axes, shape (2, n).
        """
        pictures = list(PICTURES["torque"](self._ident, self.trace(log)))
        columns = min(len(pictures), 4)
        rows = -(-len(pictures) // columns)
        figure = new_figure(3.4 * columns, 2.8 * rows)
        grid = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=[3, 1] * rows)
        places = [divmod(j, columns) for j in range(len(pictures))]
        axes = np.array([[grid[2 * row + k, column] for row, column in places] for k in (0, 1)], dtype=object)
        for j, picture in enumerate(pictures):
            for axis, chart in zip(axes[:, j], picture.charts, strict=True):
                draw(axis, chart)
            axes[0, j].tick_params(labelbottom=False)
        for axis in set(grid.flat) - set(axes.flat):
            axis.set_visible(False)
        legend(figure, *axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
        return axes

    def friction(self) -> Array:
        """Plots friction against speed of every joint that has friction laws; axes of shape (joints,)."""
        return self._grid("friction", 3, 3.2, 2.6)

    def parameters(self) -> Array:
        """Plots estimates with 95 % intervals: one plot per body, with its prior, and one per kind of joint term.

        Returns:
            Axes, shape (bodies + kinds,).
        """
        return self._grid("parameters", 3, 3.2, 2.8)

    def bodies(self) -> Array:
        """Plots the inertia ellipsoids of every body, from the URDF and as identified; axes of shape (bodies, 2)."""
        return self._grid("bodies", 2, 2.5, 2.3).reshape(-1, 2)

    def residual(self, log: str | None = None) -> Array:
        """Plots autocorrelation and spectrum of the residual.

        Args:
            log: Name of the log; the first stored one if None.

        Returns:
            Axes, shape (2,); (1,) if the log is too short for a spectrum.
        """
        return self._grid("residual", 2, 4.2, 3.0, log)

    def errors(self) -> Array:
        """Plots held-out errors per joint, compared with the URDF and the URDF with fitted friction; axes of shape (1,)."""
        return self._grid("errors", 1, 5.0, 3.2)

    def _grid(self, name: str, columns: int, width: float, height: float, log: str | None = None) -> Array:
        trace = self.trace(log) if name in OF_LOG else None
        charts = [chart for picture in PICTURES[name](self._ident, trace) for chart in picture.charts]
        if not charts and name == "errors":
            raise ModelError(
                "there are no held-out errors to draw", remedy="give --validate LOG, or `urdf-ident report` with logs"
            )
        if not charts:
            raise ModelError(f"there is no {name} to draw", got=f"a model without {name} laws")
        return draw_grid(charts, columns, width, height)

    def save(self, picture: str, path: str | Path) -> Path:
        """Writes one plot to a file.

        Args:
            picture: ``"torque"``, ``"friction"``, ``"parameters"``, ``"bodies"``, ``"residual"`` or ``"errors"``.
            path: The file; its extension gives the format (png, svg, pdf).

        Raises:
            ModelError: There is no such plot, or nothing to draw.
            OutputError: It cannot be written, or the format is unknown.
        """
        check_known("picture", picture, NAMES, ModelError)
        return write_figure(getattr(self, picture)().flat[0].figure, path)

    def trace(self, log: str | None = None) -> LogTrace:
        """Returns the series of one log.

        Args:
            log: Its name; the first stored one if None.

        Raises:
            ModelError: There are no series, or none of that log.
        """
        logs = self._ident.traces.logs
        if not logs:
            raise ModelError(
                "the torque series of the logs are not available",
                expected="series.json beside identification.json",
                remedy="`urdf-ident report OUT/identification.json LOG...` makes them from logs",
            )
        trace = next((trace for trace in logs if log in (None, trace.log)), None)
        if trace is None:
            raise ModelError("no series of this log", got=repr(log), expected=", ".join(trace.log for trace in logs))
        return trace

    def __repr__(self) -> str:
        names = ", ".join(f".{name}()" for name in NAMES)
        return f"<pictures of {self._ident.model.robot.name}: {names}, .save(picture, file)>"


def plot_limits(trajectory: Trajectory, limits: Limits, path: str | Path, torque: Torque | None = None) -> Path:
    """Writes a figure of q, v, a (and torque) of every joint against its limits.

    Args:
        limits: The limits; unknown ones are not drawn.
        path: The file; its extension gives the format (png, svg, pdf).
        torque: ``(q, v, a)`` of shapes (N, n) → joint torque (N, n) [N·m or N], or None.
    """
    charts = limit_charts(trajectory, limits, torque)
    return write_figure(draw_grid(charts, len(trajectory.joints), 2.4, 1.9, on_screen=False)[0].figure, path)


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
