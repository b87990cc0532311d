"""Measured against predicted torque, and what is left."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..traces import LogTrace
from .style import PALETTE, Palette, dress


def draw_torque(
    axis: Any, trace: LogTrace, j: int, joint: str, unit: str, palette: Palette = PALETTE, *, residual: Any = None
) -> None:
    """Draws one joint: measured, identified, and the URDF's own prediction in a pale colour; the error under it.

    Args:
        axis: Matplotlib axes of the torques.
        trace: Series of one log.
        j: Index of the joint.
        joint: Its name.
        unit: Unit of its torque.
        palette: Colours.
        residual: Matplotlib axes of the error; not drawn if None.
    """
    lines = (
        (trace.urdf, palette.urdf, 0.8, 0.55, "URDF as it came"),
        (trace.measured, palette.ink, 1.3, 0.9, "measured"),
        (trace.identified, palette.identified, 1.0, 1.0, "identified"),
    )
    for series, colour, width, alpha, label in lines:
        for k, piece in enumerate(trace.pieces()):
            words = label if k == 0 else f"_{label}"
            axis.plot(trace.time[piece], series[piece, j], color=colour, linewidth=width, alpha=alpha, label=words)
    _limits(axis, trace, j)
    dress(
        axis,
        palette,
        title=joint,
        y=f"torque [{unit}]" if unit != "N" else "force [N]",
        x="" if residual is not None else "t [s]",
    )
    if residual is None:
        return
    for piece in trace.pieces():
        error = trace.measured[piece, j] - trace.identified[piece, j]
        residual.plot(trace.time[piece], error, color=palette.residual, linewidth=0.8)
    residual.axhline(0.0, color=palette.soft, linewidth=0.6)
    residual.set_xlim(axis.get_xlim())
    reach = max(1.6 * float(np.percentile(np.abs(trace.measured[:, j] - trace.identified[:, j]), 99)), 1e-9)
    residual.set_ylim(-reach, reach)
    dress(residual, palette, x="t [s]", y="error")
    residual.locator_params(axis="y", nbins=2)
    axis.tick_params(labelbottom=False)


def _limits(axis: Any, trace: LogTrace, j: int) -> None:
    """Room for what was measured and identified; a URDF that is far off may leave the picture."""
    both = np.concatenate([trace.measured[:, j], trace.identified[:, j]])
    low, high = float(both.min()), float(both.max())
    own = trace.urdf[:, j]
    reach = max(high - low, 1e-9)
    low, high = max(min(low, float(own.min())), low - reach), min(max(high, float(own.max())), high + reach)
    axis.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    axis.set_xlim(float(trace.time[0]), float(trace.time[-1]) if len(trace.time) > 1 else float(trace.time[0]) + 1.0)
