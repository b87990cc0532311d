"""What is left: its memory and its spectrum, and errors side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..traces import LogTrace
from .style import PALETTE, TEXT, Palette, dress, legend


def draw_memory(axis: Any, trace: LogTrace, joints: Sequence[str], palette: Palette = PALETTE) -> None:
    """Draws the autocorrelation of the residual, one line a joint.

    Args:
        axis: Matplotlib axes.
        trace: Series of one log.
        joints: Joint names.
        palette: Colours.
    """
    _lines(axis, trace.lag, trace.memory, joints, palette)
    axis.axhline(0.0, color=palette.soft, linewidth=0.6)
    axis.set_xlim(0.0, float(trace.lag[-1]))
    dress(axis, palette, title="memory of the residual", x="lag [s]", y="autocorrelation")
    legend(axis, palette, ncols=2 if len(joints) > 4 else 1, loc="upper right")


def draw_spectrum(axis: Any, trace: LogTrace, joints: Sequence[str], unit: str, palette: Palette = PALETTE) -> None:
    """Draws the amplitude density of the residual, one line a joint.

    Args:
        axis: Matplotlib axes.
        trace: Series of one log.
        joints: Joint names.
        unit: Unit of torque.
        palette: Colours.
    """
    _lines(axis, trace.frequency, np.maximum(trace.spectrum, 1e-12), joints, palette)
    axis.axvline(trace.cutoff, color=palette.bad, linewidth=0.8, linestyle="--")
    axis.set_xscale("log")
    axis.set_yscale("log")
    dress(axis, palette, title="spectrum of the residual", x="frequency [Hz]; dashed: cut-off", y=f"[{unit}/√Hz]")


def draw_errors(axis: Any, entries: Sequence[Mapping[str, Any]], unit: str, palette: Palette = PALETTE) -> None:
    """Draws the errors per joint beside those of the URDF, RMS over logs.

    Args:
        axis: Matplotlib axes.
        entries: ``validation`` of a result.
        unit: Unit of torque.
        palette: Colours.
    """
    joints = [item["joint"] for item in entries[0]["per_joint"]]
    keys = (
        ("urdf_rmse", palette.urdf, "URDF"),
        ("urdf_friction_rmse", palette.friction, "URDF + fitted friction"),
        ("rmse", palette.identified, "identified"),
    )
    for k, (key, colour, label) in enumerate(keys):
        if key not in entries[0]["per_joint"][0]:
            continue
        values = [np.sqrt(np.mean([entry["per_joint"][j][key] ** 2 for entry in entries])) for j in range(len(joints))]
        axis.barh(np.arange(len(joints)) + 0.26 * (k - 1), values, height=0.24, color=colour, label=label, linewidth=0)
    axis.set_yticks(range(len(joints)), joints)
    axis.invert_yaxis()
    dress(axis, palette, x=f"RMS error [{unit}]")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", labelsize=TEXT)
    legend(axis, palette, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, columnspacing=0.8, borderaxespad=0.2)


def _lines(axis: Any, x: Any, series: Any, joints: Sequence[str], palette: Palette) -> None:
    colours = (palette.identified, palette.residual, palette.good, palette.friction, palette.urdf, palette.ink, palette.soft)
    for j, joint in enumerate(joints):
        style = "-" if j < len(colours) else "--"
        axis.plot(x, series[:, j], color=colours[j % len(colours)], linestyle=style, linewidth=1.0, label=joint)
