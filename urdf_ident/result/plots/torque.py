"""Plots of measured and predicted torque, autocorrelation and spectrum of the residual, and errors side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...linalg import Array, divisors
from ...quoting import figure_text
from ..evidence.scores import over_logs
from ..evidence.traces import LogTrace
from .style import PALETTE, TEXT, apply_style, legend

#: Times above this count from a fixed date [s], and are drawn from the first one on.
_SINCE_1970 = 1e5


def _times(trace: LogTrace) -> tuple[Array, str]:
    """Times to draw, shape (N,) [s], and their label."""
    first = float(np.floor(trace.time[0]))
    return (trace.time, "t [s]") if abs(first) < _SINCE_1970 else (trace.time - first, f"t − {first:.0f} [s]")


def draw_torque(axis: Any, trace: LogTrace, j: int, joint: str, unit: str, *, residual: Any) -> None:
    """Draws one joint: measured, identified, and the URDF's own prediction in a pale colour; the error below.

    Args:
        residual: Matplotlib axes of the error.
    """
    lines = (
        (trace.urdf, PALETTE.urdf, 0.8, 0.55, "URDF as it came"),
        (trace.measured, PALETTE.ink, 1.3, 0.9, "measured"),
        (trace.identified, PALETTE.identified, 1.0, 1.0, "identified"),
    )
    time, clock = _times(trace)
    for series, colour, width, alpha, label in lines:
        for k, piece in enumerate(trace.pieces()):
            entry = label if k == 0 else f"_{label}"
            axis.plot(time[piece], series[piece, j], color=colour, linewidth=width, alpha=alpha, label=entry)
    _limits(axis, trace, time, j)
    apply_style(axis, title=joint, y=f"torque [{unit}]" if unit != "N" else "force [N]")
    for piece in trace.pieces():
        error = trace.measured[piece, j] - trace.identified[piece, j]
        residual.plot(time[piece], error, color=PALETTE.residual, linewidth=0.8)
    residual.axhline(0.0, color=PALETTE.soft, linewidth=0.6)
    residual.set_xlim(axis.get_xlim())
    reach = max(1.6 * float(np.percentile(np.abs(trace.measured[:, j] - trace.identified[:, j]), 99)), 1e-9)
    residual.set_ylim(-reach, reach)
    apply_style(residual, x=clock, y="error")
    residual.locator_params(axis="y", nbins=2)
    axis.tick_params(labelbottom=False)


def _limits(axis: Any, trace: LogTrace, time: Array, j: int) -> None:
    """Sets limits to fit measured and identified torque; a URDF prediction far off may exceed them."""
    both = np.concatenate([trace.measured[:, j], trace.identified[:, j]])
    low, high = float(both.min()), float(both.max())
    predicted = trace.urdf[:, j]
    reach = max(high - low, 1e-9)
    low, high = max(min(low, float(predicted.min())), low - reach), min(max(high, float(predicted.max())), high + reach)
    axis.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    axis.set_xlim(float(time[0]), float(time[-1]) if len(time) > 1 else float(time[0]) + 1.0)


def draw_memory(axis: Any, trace: LogTrace, joints: Sequence[str]) -> None:
    """Draws the autocorrelation of the residual, one line per joint."""
    _lines(axis, trace.lag, trace.memory, joints)
    axis.axhline(0.0, color=PALETTE.soft, linewidth=0.6)
    axis.set_xlim(0.0, float(trace.lag[-1]))
    apply_style(axis, title="autocorrelation of the residual", x="lag [s]", y="autocorrelation")
    if len(joints) > 8:  # room for the legend above the lines
        axis.set_ylim(top=1.0 + 0.08 * (len(joints) - 8))
    legend(axis, ncols=2 if len(joints) > 4 else 1, loc="upper right")


def draw_spectrum(axis: Any, trace: LogTrace, joints: Sequence[str], unit: str) -> None:
    """Draws the amplitude density of the residual, one line per joint.

    Args:
        unit: Unit of torque, or the units of all joints (``"N or N·m"``).
    """
    _lines(axis, trace.frequency, np.maximum(trace.spectrum, 1e-12), joints)
    axis.axvline(trace.cutoff, color=PALETTE.bad, linewidth=0.8, linestyle="--")
    axis.set_xscale("log")
    axis.set_yscale("log")
    apply_style(
        axis,
        title="spectrum of the residual",
        x="frequency [Hz]; dashed: low-pass of the errors",
        y=f"residual [{unit if ' ' not in unit else f'({unit})'}/√Hz]",
    )


def draw_errors(axis: Any, entries: Sequence[Mapping[str, Any]]) -> None:
    """Draws the errors per joint, relative to its RMS torque, next to those of the URDF (RMS over logs).

    Args:
        entries: ``validation`` of a result.
    """
    joints = [error["joint"] for error in entries[0]["per_joint"]]
    torque = divisors(over_logs(entries, "rms_torque"))
    keys = (
        ("urdf_rmse", PALETTE.urdf, "URDF"),
        ("urdf_friction_rmse", PALETTE.friction, "URDF + fitted friction"),
        ("rmse", PALETTE.identified, "identified"),
    )
    for k, (key, colour, label) in enumerate(keys):
        values = 100 * over_logs(entries, key) / torque
        if np.isnan(values).all():
            continue
        axis.barh(np.arange(len(joints)) + 0.26 * (k - 1), values, height=0.24, color=colour, label=label, linewidth=0)
    axis.set_yticks(range(len(joints)), [figure_text(joint) for joint in joints])
    axis.invert_yaxis()
    apply_style(axis, x="RMS error over RMS torque [%]")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", labelsize=TEXT)
    legend(axis, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, columnspacing=0.8, borderaxespad=0.2)


def _lines(axis: Any, x: Any, series: Any, joints: Sequence[str]) -> None:
    colours = (PALETTE.identified, PALETTE.residual, PALETTE.good, PALETTE.friction, PALETTE.urdf, PALETTE.ink, PALETTE.soft)
    for j, joint in enumerate(joints):
        style = "-" if j < len(colours) else "--"
        axis.plot(x, series[:, j], color=colours[j % len(colours)], linestyle=style, linewidth=1.0, label=figure_text(joint))
