"""Plot of a motion and its limits: position, velocity, acceleration and torque of every joint on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..linalg import Array
from ..motion.limits import Limits, Torque
from ..motion.trajectory import Trajectory
from ..quoting import figure_text
from ..result.plots.style import figure_class, write_figure
from ..units import joint_units

_QUANTITIES = ("position", "velocity", "acceleration", "torque")
_LINE, _LIMIT, _FORBIDDEN = "#1f5f8b", "#b3261e", "#f6dedc"
#: Number of points drawn; a screen cannot resolve more.
_POINTS = 1500


def limits_figure(trajectory: Trajectory, limits: Limits, torque: Torque | None = None, title: str = "") -> Any:
    """Draws q, v, a (and torque) of every joint against its limits.

    Args:
        limits: The limits; unknown ones are not drawn.
        torque: ``(q, v, a)`` of shapes (N, n) → joint torque (N, n) [N·m or N]; None: three rows.

    Returns:
        A matplotlib ``Figure``.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    time = np.linspace(0.0, trajectory.duration, _POINTS)
    signals = list(trajectory.evaluate(time))
    if torque is not None:
        signals.append(torque(*signals))
    n = len(trajectory.joints)
    figure = figure_class()(figsize=(2.1 + 2.2 * n, 1.2 + 1.75 * len(signals)), layout="constrained")
    axes = figure.subplots(len(signals), n, squeeze=False, sharex=True)
    for row, (quantity, signal) in enumerate(zip(_QUANTITIES, signals, strict=False)):
        for j, joint in enumerate(trajectory.joints):
            unit = joint_units(limits.prismatic[j])[quantity]
            _draw(axes[row, j], time, signal[:, j], _range(limits, quantity, j))
            if row == 0:
                axes[row, j].set_title(figure_text(joint), fontsize=9)
            if j == 0 or limits.prismatic[j] != limits.prismatic[j - 1]:
                axes[row, j].set_ylabel(f"{quantity} [{unit}]", fontsize=8)
            if row == len(signals) - 1:
                axes[row, j].set_xlabel("t [s]", fontsize=8)
    figure.align_ylabels()
    if title:
        figure.suptitle(figure_text(title), fontsize=11)
    return figure


def plot_limits(
    trajectory: Trajectory, limits: Limits, path: str | Path, torque: Torque | None = None, title: str = ""
) -> Path:
    """Writes :func:`limits_figure` to a file.

    Args:
        path: The file; its extension gives the format (png, svg, pdf).
        torque: ``(q, v, a)`` of shapes (N, n) → joint torque (N, n) [N·m or N], or None.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OutputError: It cannot be written, or the format is unknown.
    """
    return write_figure(limits_figure(trajectory, limits, torque, title), path, dpi=130)


def _range(limits: Limits, quantity: str, j: int) -> tuple[float, float]:
    if quantity == "position":
        return float(limits.lower[j]), float(limits.upper[j])
    size = float(getattr(limits, quantity)[j])
    return -size, size


def _draw(axis: Any, time: Array, signal: Array, ends: tuple[float, float]) -> None:
    axis.plot(time, signal, color=_LINE, linewidth=1.0)
    axis.set_xlim(time[0], time[-1])
    axis.tick_params(labelsize=7)
    axis.grid(color="#e6e6e6", linewidth=0.5)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    low, high = ends
    if not (np.isfinite(low) and np.isfinite(high)):
        return
    border = 0.06 * (high - low)
    axis.set_ylim(min(low, float(signal.min())) - border, max(high, float(signal.max())) + border)
    bottom, top = axis.get_ylim()
    axis.axhspan(high, max(top, high), color=_FORBIDDEN, linewidth=0)
    axis.axhspan(min(bottom, low), low, color=_FORBIDDEN, linewidth=0)
    for end in ends:
        axis.axhline(end, color=_LIMIT, linewidth=0.8, linestyle="--")
