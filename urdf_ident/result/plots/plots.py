"""``ident.plot``: single plots of a result, as matplotlib axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import ModelError, check_known
from ...linalg import Array
from ...motion.limits import Limits, Torque
from ...motion.trajectory import Trajectory
from ...units import joint_units
from ..dynamics.friction_curves import friction_curves
from ..evidence.traces import LogTrace
from ..parameters import parameters
from ..record import Record
from .charts import body_charts, error_chart, friction_chart, limit_charts, parameter_charts, residual_charts, torque_charts
from .figure import draw, draw_grid, legend, new_figure, write_figure

#: Available plots.
PICTURES = ("torque", "friction", "parameters", "bodies", "residual", "errors")


class Plots:
    """Plots of a result; each method returns the matplotlib axes that it drew into (figure: ``axes.flat[0].figure``).

    Raises:
        MissingExtraError: From each method, if matplotlib is not installed.
    """

    def __init__(self, ident: Record) -> None:
        self._ident = ident

    def torque(self, log: str | None = None) -> Array:
        """Plots measured and predicted torque of every joint, with the error below.

        Args:
            log: Name of the log; if None, the first stored one (held-out if there are any).

        Returns:
            Axes, shape (2, n).

        Raises:
            ModelError: The result has no series, or none of that log.
        """
        trace, joints = self.trace(log), self._ident.model.robot.joints
        columns = min(len(joints), 4)
        rows = -(-len(joints) // columns)
        figure = new_figure(3.4 * columns, 2.8 * rows)
        grid = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=[3, 1] * rows)
        places = [divmod(j, columns) for j in range(len(joints))]
        axes = np.array([[grid[2 * row + k, column] for row, column in places] for k in (0, 1)], dtype=object)
        for j, joint in enumerate(joints):
            for axis, chart in zip(axes[:, j], torque_charts(trace, j, joint, self.unit(j)), strict=True):
                draw(axis, chart)
            axes[0, j].tick_params(labelbottom=False)
        for axis in set(grid.flat) - set(axes.flat):
            axis.set_visible(False)
        legend(figure, *axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
        return axes

    def friction(self) -> Array:
        """Plots friction against speed of every joint that has friction laws.

        Returns:
            Axes, shape (joints,).

        Raises:
            ModelError: The model has no friction.
        """
        curves = friction_curves(self._ident)
        if not curves:
            raise ModelError("there is no friction to draw", got="a model without friction laws")
        return draw_grid([friction_chart(self._ident, curve) for curve in curves], 3, 3.2, 2.6)

    def parameters(self) -> Array:
        """Plots estimates with 95 % intervals: one plot per body, with its prior, and one per kind of joint term.

        Returns:
            Axes, shape (bodies + kinds,).
        """
        charts = parameter_charts(list(parameters(self._ident)), self._ident.model.n_inertial)
        return draw_grid(list(charts.values()), 3, 3.2, 2.8)

    def bodies(self) -> Array:
        """Plots the inertia ellipsoids of every body, from the URDF and as identified.

        Returns:
            Axes, shape (bodies, 2).
        """
        ident = self._ident
        bodies = zip(ident.prior_bodies, ident.bodies, ident.model.robot.bodies, strict=True)
        charts = [chart for before, after, body in bodies for chart in body_charts(before, after, body.name)]
        return draw_grid(charts, 2, 2.5, 2.3).reshape(-1, 2)

    def residual(self, log: str | None = None) -> Array:
        """Plots autocorrelation and spectrum of the residual.

        Args:
            log: Name of the log; the first stored one if None.

        Returns:
            Axes, shape (2,); (1,) if the log is too short for a spectrum.

        Raises:
            ModelError: The result has no series, or none of that log.
        """
        return draw_grid(residual_charts(self.trace(log), self._ident.model.robot.joints, self.units()), 2, 4.2, 3.0)

    def errors(self) -> Array:
        """Plots held-out errors per joint, compared with the URDF and the URDF with fitted friction.

        Returns:
            Axes, shape (1,).

        Raises:
            ModelError: Nothing was held out.
        """
        if not self._ident.validation:
            raise ModelError(
                "there are no held-out errors to draw", remedy="give --validate LOG, or `urdf-ident report` with logs"
            )
        return draw_grid([error_chart(self._ident.validation)], 1, 5.0, 3.2)

    def save(self, picture: str, path: str | Path) -> Path:
        """Writes one plot to a file.

        Args:
            picture: ``"torque"``, ``"friction"``, ``"parameters"``, ``"bodies"``, ``"residual"`` or ``"errors"``.
            path: The file; its extension gives the format (png, svg, pdf).

        Raises:
            ModelError: There is no such plot, or nothing to draw.
            OutputError: It cannot be written, or the format is unknown.
        """
        check_known("picture", picture, PICTURES, ModelError)
        return write_figure(getattr(self, picture)().flat[0].figure, path)

    def trace(self, log: str | None = None) -> LogTrace:
        """Returns the series of one log.

        Args:
            log: Its name; the first stored one if None.

        Raises:
            ModelError: There are no series, or none of that log.
        """
        logs = self._ident.traces.logs if self._ident.traces is not None else ()
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

    def unit(self, j: int) -> str:
        """Unit of a joint's torque: ``"N·m"`` or ``"N"``."""
        return str(joint_units(self._ident.model.robot.prismatic[j])["torque"])

    def units(self) -> str:
        """Units of the torques of all joints: ``"N·m"``, ``"N"``, or both with ``or`` between them."""
        return " or ".join(dict.fromkeys(self.unit(j) for j in range(self._ident.model.n)))

    def __repr__(self) -> str:
        names = ", ".join(f".{name}()" for name in PICTURES)
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
