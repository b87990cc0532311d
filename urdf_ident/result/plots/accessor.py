"""``ident.plot``: single plots of a result, as matplotlib axes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelError, check_known
from ...grouping import grouped
from ...linalg import Array
from ...units import joint_units
from ..dynamics.friction_curves import SteadyFriction, friction_curves
from ..evidence.traces import LogTrace
from ..parameters import ParameterRow, parameters
from ..record import Record
from .parameters import draw_body, draw_friction, draw_parameters, draw_terms
from .style import figure_class, legend, write_figure
from .torque import draw_errors, draw_memory, draw_spectrum, draw_torque

#: Available plots.
PICTURES = ("torque", "friction", "parameters", "bodies", "residual", "errors")


class Plots:
    """Plots of a result; each method returns the matplotlib axes that it drew into (figure: ``axes.flat[0].figure``).

    Args:
        ident: The result.
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
            MissingExtraError: matplotlib is not installed.
        """
        trace, joints = self.trace(log), self._ident.model.robot.joints
        columns = min(len(joints), 4)
        rows = -(-len(joints) // columns)
        figure = _figure(3.4 * columns, 2.8 * rows)
        grid = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=[3, 1] * rows)
        places = [divmod(j, columns) for j in range(len(joints))]
        axes = np.array([[grid[2 * row + k, column] for row, column in places] for k in (0, 1)], dtype=object)
        for j, joint in enumerate(joints):
            draw_torque(axes[0, j], trace, j, joint, self.unit(j), residual=axes[1, j])
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
            MissingExtraError: matplotlib is not installed.
        """
        curves = friction_curves(self._ident)
        if not curves:
            raise ModelError("there is no friction to draw", got="a model without friction laws")
        axes = _grid(len(curves), 3.2, 2.6)
        for axis, curve in zip(axes, curves, strict=True):
            self.friction_drawing(curve)(axis)
        legend(axes[0], loc="upper left")
        return axes

    def friction_drawing(self, curve: SteadyFriction) -> Callable[[Any], None]:
        """Prepares the drawing of one friction curve.

        Args:
            curve: From :func:`.friction_curves.friction_curves`.

        Returns:
            A function that draws the curve into axes; it does not contain the result.
        """
        robot, traces = self._ident.model.robot, self._ident.traces
        j = robot.joints.index(curve.joint)
        joint = robot.description.joints[curve.joint]
        units = joint_units(robot.prismatic[j])
        return partial(
            draw_friction,
            curve=curve,
            unit=units["torque"],
            rate=units["velocity"],
            j=j,
            speeds=None if traces is None else traces.speeds,
            urdf=(joint.damping, joint.friction),
        )

    def parameters(self) -> Array:
        """Plots estimates with 95 % intervals: one plot per body, with its prior, and one per kind of joint term.

        Returns:
            Axes, shape (bodies + kinds,).

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        bodies, terms = self.parameter_groups()
        axes = _grid(len(bodies) + len(terms), 3.2, 2.8)
        for axis, (title, rows) in zip(axes, bodies.items(), strict=False):
            draw_parameters(axis, rows, title)
        for axis, (title, rows) in zip(axes[len(bodies) :], terms.items(), strict=True):
            draw_terms(axis, rows, title)
        shown = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        legend(axes[0].figure, list(shown.values()), list(shown), loc="outside upper right", ncols=3)
        return axes

    def parameter_groups(self) -> tuple[dict[str, list[ParameterRow]], dict[str, list[ParameterRow]]]:
        """Groups the parameters by plot.

        Returns:
            Body → its ten parameters, and symbol of a joint term → its parameters of all joints; those of prismatic joints
            apart, because newtons beside newton metres hide each other.
        """
        rows, count = list(parameters(self._ident)), self._ident.model.n_inertial
        units = grouped(dict.fromkeys((row.symbol, row.unit) for row in rows[count:]))
        titles = [f"{row.symbol} [{row.unit}]" if len(units[row.symbol]) > 1 else row.symbol for row in rows[count:]]
        return grouped((row.owner, row) for row in rows[:count]), grouped(zip(titles, rows[count:], strict=True))

    def bodies(self) -> Array:
        """Plots the inertia ellipsoids of every body, from the URDF and as identified.

        Returns:
            Axes, shape (bodies, 2).

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        model = self._ident.model
        grid = _figure(5.0, 2.3 * model.n).subplots(model.n, 2, squeeze=False)
        for k, body in enumerate(model.robot.bodies):
            draw_body(grid[k], self._ident.prior_bodies[k], self._ident.bodies[k], body.name)
        return np.asarray(grid)

    def residual(self, log: str | None = None) -> Array:
        """Plots autocorrelation and spectrum of the residual.

        Args:
            log: Name of the log; the first stored one if None.

        Returns:
            Axes, shape (2,).

        Raises:
            ModelError: The result has no series, or none of that log.
            MissingExtraError: matplotlib is not installed.
        """
        trace, joints = self.trace(log), self._ident.model.robot.joints
        axes = _grid(2, 4.2, 3.0)
        draw_memory(axes[0], trace, joints)
        draw_spectrum(axes[1], trace, joints, self.units())
        return axes

    def errors(self) -> Array:
        """Plots held-out errors per joint, compared with the URDF and the URDF with fitted friction.

        Returns:
            Axes, shape (1,).

        Raises:
            ModelError: Nothing was held out.
            MissingExtraError: matplotlib is not installed.
        """
        if not self._ident.validation:
            raise ModelError(
                "there are no held-out errors to draw", remedy="give --validate LOG, or `urdf-ident report` with logs"
            )
        axes = _grid(1, 5.0, 3.2)
        draw_errors(axes[0], self._ident.validation)
        return axes

    def save(self, picture: str, path: str | Path) -> Path:
        """Writes one plot to a file.

        Args:
            picture: ``"torque"``, ``"friction"``, ``"parameters"``, ``"bodies"``, ``"residual"`` or ``"errors"``.
            path: The file; its extension gives the format (png, svg, pdf).

        Raises:
            ModelError: There is no such plot, or nothing to draw.
            MissingExtraError: matplotlib is not installed.
            OutputError: It cannot be written, or the format is unknown.
        """
        check_known("picture", picture, PICTURES, ModelError)
        return write_figure(getattr(self, picture)().flat[0].figure, path, dpi=150, facecolor="white")

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

    def units(self) -> str:
        """Returns the units of the torques of all joints.

        Returns:
            ``"N·m"``, ``"N"``, or both with ``or`` between them.
        """
        return " or ".join(dict.fromkeys(self.unit(j) for j in range(self._ident.model.n)))

    def unit(self, j: int) -> str:
        """Returns the unit of a joint's torque.

        Returns:
            ``"N·m"`` or ``"N"``.
        """
        return str(joint_units(self._ident.model.robot.prismatic[j])["torque"])

    def __repr__(self) -> str:
        names = ", ".join(f".{name}()" for name in PICTURES)
        return f"<pictures of {self._ident.model.robot.name}: {names}, .save(picture, file)>"


def _figure(width: float, height: float) -> Any:
    """A pyplot figure if pyplot is in use and in notebooks, otherwise a bare figure, which needs no window."""
    bare, pyplot = figure_class(), sys.modules.get("matplotlib.pyplot")
    session = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if pyplot is None and session is not None and session() is not None:
        pyplot = import_module("matplotlib.pyplot")
    return (bare if pyplot is None else pyplot.figure)(figsize=(width, height), layout="constrained")


def _grid(count: int, width: float, height: float) -> Array:
    columns = min(count, 3)
    rows = -(-count // columns)
    grid = _figure(width * columns, height * rows).subplots(rows, columns, squeeze=False)
    for axis in grid.flat[count:]:
        axis.set_visible(False)
    return np.asarray(grid.flat[:count])
