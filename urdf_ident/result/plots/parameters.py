"""Plots of identified parameters with prior and error, of bodies, friction curves and their changes, and of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...estimation.uncertainty.identifiability import IDENTIFIABLE, LOST
from ...linalg import Array, BoolArray, positive
from ...model.inertia import pseudo_inertia
from ...quoting import figure_text
from ...statistics.log_effects.changes import FrictionChanges
from ..dynamics.friction_curves import SteadyFriction
from ..evidence.traces import SpeedProfile
from ..parameters import ParameterRow
from .style import PALETTE, TEXT, apply_style

#: A dot beyond this many prior standard deviations is drawn at the edge.
_EDGE = 6.0
_VIEWS = ((0, 2, "x", "z"), (1, 2, "y", "z"))
#: Maximum number of logs drawn.
_LOGS = 12


def draw_parameters(axis: Any, rows: Sequence[ParameterRow], title: str = "") -> None:
    """Draws parameters as dots with their 95 % intervals, in prior standard deviations from the prior."""
    axis.axvspan(-1.0, 1.0, color=PALETTE.urdf, alpha=0.18, linewidth=0)
    axis.axvline(0.0, color=PALETTE.urdf, linewidth=0.9)
    for k, row in enumerate(rows):
        colour, face, label = _look(row.verdict)
        scale = positive(row.prior_std)
        place, ends = (row.value - row.prior) / scale, ((row.low - row.prior) / scale, (row.high - row.prior) / scale)
        shown = float(np.clip(place, -_EDGE, _EDGE))
        low, high = (float(np.clip(x, -_EDGE, _EDGE)) for x in ends)
        axis.plot([low, high], [k, k], color=colour, linewidth=1.4, alpha=0.7, solid_capstyle="butt")
        marker = "o" if abs(place) <= _EDGE else "<" if place < 0 else ">"
        axis.plot([shown], [k], marker, markersize=4, color=colour, markerfacecolor=face, label=label)
    axis.set_xlim(-_EDGE * 1.05, _EDGE * 1.05)
    axis.set_yticks(range(len(rows)), [figure_text(row.symbol) for row in rows])
    axis.invert_yaxis()
    apply_style(axis, title=title, x="difference to the URDF [prior σ]")
    axis.tick_params(axis="y", labelsize=TEXT - 0.5)


def _look(verdict: str) -> tuple[str, str, str]:
    """Colour of an estimate, fill of its dot and label, by how well the data determine it."""
    if verdict == LOST:
        return PALETTE.soft, "none", "not identifiable"
    colour, label = (PALETTE.identified, "identifiable") if verdict == IDENTIFIABLE else (PALETTE.friction, "weak or combined")
    return colour, colour, label


def draw_terms(axis: Any, rows: Sequence[ParameterRow], title: str = "") -> None:
    """Draws one kind of joint term (viscous friction, rotor inertia, …) of joints of one unit, with 95 % intervals."""
    axis.axvline(0.0, color=PALETTE.soft, linewidth=0.6)
    for k, row in enumerate(rows):
        colour, face, label = _look(row.verdict)
        axis.plot([row.low, row.high], [k, k], color=colour, linewidth=1.4, alpha=0.7, solid_capstyle="butt")
        axis.plot([row.value], [k], "o", markersize=4, color=colour, markerfacecolor=face, label=label)
    axis.set_yticks(range(len(rows)), [figure_text(row.owner) for row in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    apply_style(axis, title=title, x=rows[0].unit)


def draw_body(axes: Any, before: Array, after: Array, title: str) -> None:
    """Draws the ellipsoid of uniform density with the same mass, centre of mass and inertia, seen along y and along x.

    Args:
        before: Parameters of the body in the URDF, shape (10,).
        after: Identified parameters, shape (10,).
    """
    for axis, (a, b, x, y) in zip(axes, _VIEWS, strict=True):
        axis.plot([0], [0], marker="+", color=PALETTE.soft, markersize=7)
        for theta, colour, style, fill in ((before, PALETTE.urdf, "--", 0.10), (after, PALETTE.identified, "-", 0.18)):
            outline = _outline(theta, a, b)
            if outline is None:
                continue
            axis.fill(*outline, color=colour, alpha=fill, linewidth=0)
            axis.plot(*outline, color=colour, linewidth=1.1, linestyle=style)
            axis.plot(1e3 * theta[1 + a] / theta[0], 1e3 * theta[1 + b] / theta[0], marker="o", markersize=3, color=colour)
        axis.set_aspect("equal", adjustable="datalim")
        apply_style(axis, x=f"{x} [mm]", y=f"{y} [mm]")
        axis.locator_params(axis="x", nbins=3)
        axis.locator_params(axis="y", nbins=4)
    axes[0].set_title(figure_text(title), fontsize=TEXT + 1, color=PALETTE.ink, loc="left", y=1.0, pad=5)


def _outline(theta: Array, a: int, b: int) -> tuple[Array, Array] | None:
    """Outline of the ellipsoid in one plane [mm]; None for a body that is not physically consistent."""
    mass = theta[0]
    if mass <= 0:
        return None
    second = pseudo_inertia(theta)[:3, :3] / mass  # ∫ x xᵀ dm / m about the origin
    com = theta[1:4] / mass
    moments = (second - np.outer(com, com))[np.ix_([a, b], [a, b])]
    values, vectors = np.linalg.eigh(moments)
    if values.min() <= 0:
        return None
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    points = vectors @ (np.sqrt(5.0 * values)[:, None] * np.stack([np.cos(angle), np.sin(angle)]))  # ⟨x²⟩ = a²/5
    return 1e3 * (com[a] + points[0]), 1e3 * (com[b] + points[1])


def draw_changes(axis: Any, changes: FrictionChanges, k: int, unit: str) -> None:
    """Draws one parameter's deviations: thirds of each log over time since its start, or over temperature if logged.

    Args:
        changes: How friction differs between the logs.
    """
    warm = changes.covariate is not None and np.isfinite(changes.covariate[:, k]).all()
    spread = float(np.nan_to_num(changes.spread[k]))
    if spread > 0:
        axis.axhspan(-spread, spread, color=PALETTE.soft, alpha=0.25, linewidth=0, label="spread")
    if warm and changes.covariate is not None:
        x, y, e = changes.covariate[:, k], changes.deviation[:, k], changes.deviation_error[:, k]
        axis.errorbar(x, y, yerr=e, fmt="o", markersize=3, color=PALETTE.identified, linewidth=0.8)
        label = "temperature [K or °C]"
    else:
        for log in range(min(len(changes.logs), _LOGS)):
            length = 1.0 if changes.seconds is None else float(changes.seconds[log])
            x = length * (np.arange(changes.parts.shape[1]) + 0.5) / changes.parts.shape[1]
            y, e = changes.parts[log, :, k], changes.parts_error[log, :, k]
            later = 0.35 + 0.6 * log / max(len(changes.logs) - 1, 1)
            axis.errorbar(x, y, yerr=e, marker="o", markersize=2.5, linewidth=0.8, color=PALETTE.identified, alpha=later)
        label = "time since the log's start [s]" if changes.seconds is not None else "part of the log"
    axis.axhline(0.0, color=PALETTE.soft, linewidth=0.6)
    apply_style(axis, title=changes.parameters[k], x=label, y=f"deviation [{unit}]")


def draw_friction(
    axis: Any,
    curve: SteadyFriction,
    unit: str,
    rate: str,
    *,
    speeds: SpeedProfile | None = None,
    j: int = 0,
    urdf: tuple[float, float] | None = None,
) -> None:
    """Draws the friction torque of one joint against its speed.

    Args:
        speeds: Histogram of the logs' speeds; not drawn if None.
        urdf: Viscous [unit of torque per unit of speed] and Coulomb friction of the URDF; not drawn if None or both zero.
    """
    v, (begin, end) = curve.speed, curve.trained
    inside = (v >= begin) & (v <= end)
    if np.isfinite(curve.interval).all():
        axis.fill_between(
            v,
            curve.interval[:, 0],
            curve.interval[:, 1],
            color=PALETTE.identified,
            alpha=0.18,
            linewidth=0,
            label="95 % interval",
        )
    axis.plot(v, curve.torque, color=PALETTE.identified, linewidth=0.9, linestyle=":", label="_beyond the logs")
    axis.plot(v[inside], curve.torque[inside], color=PALETTE.identified, linewidth=1.6, label="identified law")
    if urdf is not None and any(urdf):
        axis.plot(v, urdf[0] * v + urdf[1] * np.sign(v), color=PALETTE.urdf, linewidth=0.9, alpha=0.8, label="URDF")
    if speeds is not None:
        centre = 0.5 * (speeds.edges[j, 1:] + speeds.edges[j, :-1])
        axis.scatter(
            centre,
            speeds.friction[j],
            s=6 + 60 * speeds.count[j],
            color=PALETTE.ink,
            alpha=0.5,
            linewidths=0,
            label="mean of the logs",
        )
        _density(axis, speeds, j)
    if np.isfinite(curve.limit) and curve.limit <= v[-1]:
        for side in (-curve.limit, curve.limit):
            axis.axvline(side, color=PALETTE.bad, linewidth=0.8, linestyle="--", label="_limit")
    axis.axhline(0.0, color=PALETTE.soft, linewidth=0.6)
    axis.set_xlim(float(v[0]), float(v[-1]))
    load = f", at a load of {curve.load:.3g} {unit}" if curve.load else ""
    apply_style(axis, title=curve.joint, x=f"speed [{rate}]{load}", y=f"friction [{unit}]")


def _density(axis: Any, speeds: SpeedProfile, j: int) -> None:
    """Draws the histogram of the logs' speeds as a strip along the bottom."""
    low, high = axis.get_ylim()
    height = 0.14 * (high - low)
    tops = low - height + height * speeds.count[j] / positive(float(speeds.count[j].max()))
    axis.stairs(tops, speeds.edges[j], baseline=low - height, fill=True, color=PALETTE.soft, alpha=0.45)
    axis.set_ylim(low - height, high)


def draw_quantity(
    axis: Any,
    value: Array,
    error: Array,
    band: tuple[float, float],
    odd: BoolArray,
    names: list[str],
    title: str,
) -> None:
    """Draws one quantity of every robot.

    Args:
        value, error: Value of each robot and its standard error, shape (m,).
        band: Mean and spread of the robots that are not outliers.
        odd: Which robots are outliers, shape (m,).
        title: Title of the axes, with the unit.
    """
    mean, spread = band
    axis.axvspan(mean - 2 * spread, mean + 2 * spread, color=PALETTE.soft, alpha=0.25, linewidth=0)
    axis.axvline(mean, color=PALETTE.soft, linewidth=0.9)
    for k, (x, e) in enumerate(zip(value, error, strict=True)):
        colour = PALETTE.bad if odd[k] else PALETTE.identified
        axis.errorbar(x, k, xerr=1.96 * e, fmt="o", markersize=3.5, color=colour, linewidth=1.2)
    axis.set_yticks(np.arange(len(names)), [figure_text(name) for name in names])
    axis.set_ylim(len(names) - 0.4, -0.6)
    apply_style(axis, title=title)
