"""Friction of a fleet: every robot with its error, mean and spread, who stands out in colour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from .style import PALETTE, Palette, dress


def draw_quantity(
    axis: Any,
    value: Array,
    error: Array,
    band: tuple[float, float],
    odd: NDArray[np.bool_],
    names: list[str],
    title: str,
    palette: Palette = PALETTE,
) -> None:
    """Draws one quantity of every robot.

    Args:
        axis: Matplotlib axes.
        value, error: Of each robot with its standard error, shape (m,).
        band: Mean and spread between the robots that do not stand out.
        odd: Which robots stand out, shape (m,).
        names: Of the robots.
        title: Above the axes, with the unit.
        palette: Colours.
    """
    mean, spread = band
    axis.axvspan(mean - 2 * spread, mean + 2 * spread, color=palette.soft, alpha=0.25, linewidth=0)
    axis.axvline(mean, color=palette.soft, linewidth=0.9)
    for k, (x, e) in enumerate(zip(value, error, strict=True)):
        colour = palette.bad if odd[k] else palette.identified
        axis.errorbar(x, k, xerr=1.96 * e, fmt="o", markersize=3.5, color=colour, linewidth=1.2)
    axis.set_yticks(np.arange(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    dress(axis, palette, title=title)
