"""Friction curves: the law, how sure it is, and where there were data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..friction_curves import SteadyFriction
from ..traces import SpeedProfile
from .style import PALETTE, Palette, dress


def draw_friction(
    axis: Any,
    curve: SteadyFriction,
    unit: str,
    rate: str,
    palette: Palette = PALETTE,
    *,
    speeds: SpeedProfile | None = None,
    j: int = 0,
    urdf: tuple[float, float] | None = None,
) -> None:
    """Draws the friction torque of one joint against its speed.

    Args:
        axis: Matplotlib axes.
        curve: The law with its interval.
        unit: Unit of the torque.
        rate: Unit of the speed.
        palette: Colours.
        speeds: Histogram of the logs' speeds; not drawn if None.
        j: Index of the joint in it.
        urdf: Viscous [unit of torque per unit of speed] and Coulomb friction of the URDF; not drawn if None or both zero.
    """
    v, (begin, end) = curve.speed, curve.trained
    inside = (v >= begin) & (v <= end)
    if np.isfinite(curve.interval).all():
        axis.fill_between(
            v,
            curve.interval[:, 0],
            curve.interval[:, 1],
            color=palette.identified,
            alpha=0.18,
            linewidth=0,
            label="95 % interval",
        )
    axis.plot(v, curve.torque, color=palette.identified, linewidth=0.9, linestyle=":", label="_beyond the logs")
    axis.plot(v[inside], curve.torque[inside], color=palette.identified, linewidth=1.6, label="identified law")
    if urdf is not None and any(urdf):
        axis.plot(v, urdf[0] * v + urdf[1] * np.sign(v), color=palette.urdf, linewidth=0.9, alpha=0.8, label="URDF")
    if speeds is not None:
        centre = 0.5 * (speeds.edges[j, 1:] + speeds.edges[j, :-1])
        axis.scatter(
            centre,
            speeds.friction[j],
            s=6 + 60 * speeds.count[j],
            color=palette.ink,
            alpha=0.5,
            linewidths=0,
            label="mean of the logs",
        )
        _density(axis, speeds, j, palette)
    if np.isfinite(curve.limit) and curve.limit <= v[-1]:
        for side in (-curve.limit, curve.limit):
            axis.axvline(side, color=palette.bad, linewidth=0.8, linestyle="--", label="_limit")
    axis.axhline(0.0, color=palette.soft, linewidth=0.6)
    axis.set_xlim(float(v[0]), float(v[-1]))
    load = f", at a load of {curve.load:.3g} {unit}" if curve.load else ""
    dress(axis, palette, title=curve.joint, x=f"speed [{rate}]{load}", y=f"friction [{unit}]")


def _density(axis: Any, speeds: SpeedProfile, j: int, palette: Palette) -> None:
    """How often the logs show which speed, as a strip along the bottom."""
    low, high = axis.get_ylim()
    height = 0.14 * (high - low)
    tops = low - height + height * speeds.count[j] / max(float(speeds.count[j].max()), 1e-300)
    axis.stairs(tops, speeds.edges[j], baseline=low - height, fill=True, color=palette.soft, alpha=0.45)
    axis.set_ylim(low - height, high)
