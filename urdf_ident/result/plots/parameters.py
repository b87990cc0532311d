"""Standard parameters: prior, estimate and standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...estimation.uncertainty.identifiability import IDENTIFIABLE, LOST
from ..frames import ParameterRow
from .style import PALETTE, TEXT, Palette, dress

#: A dot farther out than so many prior standard deviations is drawn at the edge.
_EDGE = 6.0


def draw_parameters(axis: Any, rows: Sequence[ParameterRow], title: str = "", palette: Palette = PALETTE) -> None:
    """Draws parameters as dots with their 95 % intervals, in prior standard deviations from the prior.

    Args:
        axis: Matplotlib axes.
        rows: The parameters.
        title: Above the axes.
        palette: Colours.
    """
    axis.axvspan(-1.0, 1.0, color=palette.urdf, alpha=0.18, linewidth=0)
    axis.axvline(0.0, color=palette.urdf, linewidth=0.9)
    for k, row in enumerate(rows):
        colour = {IDENTIFIABLE: palette.identified, LOST: palette.soft}.get(row.verdict, palette.friction)
        scale = max(row.prior_std, 1e-300)
        place, ends = (row.value - row.prior) / scale, ((row.low - row.prior) / scale, (row.high - row.prior) / scale)
        shown = float(np.clip(place, -_EDGE, _EDGE))
        low, high = (float(np.clip(x, -_EDGE, _EDGE)) for x in ends)
        axis.plot([low, high], [k, k], color=colour, linewidth=1.4, alpha=0.7, solid_capstyle="butt")
        marker = "o" if abs(place) <= _EDGE else "<" if place < 0 else ">"
        axis.plot(
            [shown], [k], marker=marker, markersize=4, color=colour, markerfacecolor="none" if row.verdict == LOST else colour
        )
    axis.set_xlim(-_EDGE * 1.05, _EDGE * 1.05)
    axis.set_yticks(range(len(rows)), [row.symbol for row in rows])
    axis.invert_yaxis()
    dress(axis, palette, title=title, x="prior standard deviations from the URDF")
    axis.tick_params(axis="y", labelsize=TEXT - 0.5)


def draw_terms(axis: Any, rows: Sequence[ParameterRow], title: str = "", palette: Palette = PALETTE) -> None:
    """Draws one kind of joint term (viscous friction, rotor inertia, …) of all joints, with 95 % intervals.

    Args:
        axis: Matplotlib axes.
        rows: The parameters, of one symbol.
        title: Above the axes.
        palette: Colours.
    """
    axis.axvline(0.0, color=palette.soft, linewidth=0.6)
    for k, row in enumerate(rows):
        colour = {IDENTIFIABLE: palette.identified, LOST: palette.soft}.get(row.verdict, palette.friction)
        axis.plot([row.low, row.high], [k, k], color=colour, linewidth=1.4, alpha=0.7, solid_capstyle="butt")
        face = "none" if row.verdict == LOST else colour
        axis.plot([row.value], [k], marker="o", markersize=4, color=colour, markerfacecolor=face)
    axis.set_yticks(range(len(rows)), [row.owner for row in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    dress(axis, palette, title=title, x=" or ".join(dict.fromkeys(row.unit for row in rows)))
