"""A body before and after: centre of mass and inertia ellipsoid, from the side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...linalg import Array
from ...model.inertia import pseudo_inertia
from .style import PALETTE, TEXT, Palette, dress

_VIEWS = ((0, 2, "x", "z"), (1, 2, "y", "z"))


def draw_body(axes: Any, before: Array, after: Array, title: str, palette: Palette = PALETTE) -> None:
    """Draws the ellipsoid of even density with the same mass, centre of mass and inertia, seen along y and along x.

    Args:
        axes: Two matplotlib axes.
        before: Parameters of the body in the URDF, shape (10,).
        after: Identified parameters, shape (10,).
        title: Above the first axes.
        palette: Colours.
    """
    for axis, (a, b, x, y) in zip(axes, _VIEWS, strict=True):
        axis.plot([0], [0], marker="+", color=palette.soft, markersize=7)
        for theta, colour, style, fill in ((before, palette.urdf, "--", 0.10), (after, palette.identified, "-", 0.18)):
            outline = _outline(theta, a, b)
            if outline is None:
                continue
            axis.fill(outline[0], outline[1], color=colour, alpha=fill, linewidth=0)
            axis.plot(outline[0], outline[1], color=colour, linewidth=1.1, linestyle=style)
            axis.plot(theta[1 + a] / theta[0], theta[1 + b] / theta[0], marker="o", markersize=3, color=colour)
        axis.set_aspect("equal", adjustable="datalim")
        dress(axis, palette, x=f"{x} [m]", y=f"{y} [m]")
        axis.locator_params(nbins=4)
    axes[0].set_title(title, fontsize=TEXT + 1, color=palette.ink, loc="left", y=1.0, pad=5)


def _outline(theta: Array, a: int, b: int) -> tuple[Array, Array] | None:
    """Outline of the ellipsoid in one plane; None for a body that is not physically consistent."""
    mass = theta[0]
    if mass <= 0:
        return None
    second = pseudo_inertia(theta)[:3, :3] / mass  # ∫ x xᵀ dm / m about the origin
    com = theta[1:4] / mass
    spread = (second - np.outer(com, com))[np.ix_([a, b], [a, b])]
    values, vectors = np.linalg.eigh(spread)
    if values.min() <= 0:
        return None
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    points = vectors @ (np.sqrt(5.0 * values)[:, None] * np.stack([np.cos(angle), np.sin(angle)]))  # ⟨x²⟩ = a²/5
    return com[a] + points[0], com[b] + points[1]
