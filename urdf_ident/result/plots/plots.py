"""``ident.plot``: single plots of a result, as matplotlib axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import ModelError, check_known
from ...linalg import Array
from ...motion.limits import Limits, Torque
from ...motion.trajectory import Trajectory
from ..evidence.traces import LogTrace
from ..record import Record
from .charts import OF_LOG, PICTURES, limit_charts
from .figure import draw, draw_grid, legend, new_figure, write_figure

#: Plots by name; deviations of friction between the logs are drawn in the report alone.
NAMES = tuple(name for name in PICTURES if name != "changes")


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
