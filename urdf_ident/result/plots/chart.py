"""A chart: lines, dots and areas in one pair of axes, for matplotlib (:mod:`.plots`) and pages (:mod:`urdf_ident.report`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...linalg import Array, BoolArray

#: Colours by meaning: ``ink`` is measured torque, ``urdf`` the URDF's prediction and prior. In pages they are CSS variables.
PALETTE = {
    "ink": "#1b1f24",
    "soft": "#8a929b",
    "identified": "#0b6bcb",
    "urdf": "#b0823f",
    "friction": "#7a4fb3",
    "residual": "#c2410c",
    "good": "#15803d",
    "bad": "#b91c1c",
}
#: Ends of the x and of the y axis.
Limits = tuple[tuple[float, float], tuple[float, float]]
#: Free space around the data, as a fraction of their range.
_BORDER = 0.05


@dataclass(frozen=True, eq=False)
class Mark:
    """Points of a chart, shape (N,) each; a line breaks at nan, and infinite ends reach the border of the chart.

    Attributes:
        colour: A key of :data:`PALETTE`.
        label: Text of the legend; none if empty.
    """

    x: ArrayLike
    y: ArrayLike
    colour: str
    alpha: float = 1.0
    label: str = ""

    def within(self, limits: Limits) -> tuple[Array, Array]:
        """The points, infinite ones at the limits."""
        ends = zip((self.x, self.y), limits, strict=True)
        x, y = (
            np.where(np.isposinf(v), max(end), np.where(np.isneginf(v), min(end), v))
            for v, end in ((np.asarray(values, dtype=float), end) for values, end in ends)
        )
        return x, y


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """A line; ``width`` [px], ``dash`` as in matplotlib: ``"-"``, ``"--"`` or ``":"``."""

    width: float = 1.3
    dash: str = "-"


@dataclass(frozen=True, eq=False)
class Dots(Mark):
    """Circles; ``radius`` of one or of each [px]."""

    radius: float | Array = 2.6
    hollow: bool = False


class Area(Mark):
    """A filled polygon."""


@dataclass(frozen=True, eq=False)
class Chart:
    """One pair of axes.

    Attributes:
        x, y: Labels with units.
        x_range, y_range: Ranges; those of the points with a border if None.
        names: Names of the rows y = 0, 1, … from above, instead of numbers.
        log: Whether both axes are logarithmic.
        equal: Whether a unit is as long in x as in y.
        legend: Whether a page shows the labels above the chart; a figure has one legend of all its charts.
    """

    marks: Sequence[Mark]
    title: str = ""
    x: str = ""
    y: str = ""
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    names: Sequence[str] = ()
    log: bool = False
    equal: bool = False
    legend: bool = False

    def limits(self) -> Limits:
        """Ends of both axes; those of named rows run downwards."""
        rows = (len(self.names) - 0.4, -0.6) if self.names else self.y_range
        return self._limits([m.x for m in self.marks], self.x_range), self._limits([m.y for m in self.marks], rows)

    def _limits(self, values: Sequence[ArrayLike], given: tuple[float, float] | None) -> tuple[float, float]:
        if given is not None:
            return given
        points = np.concatenate([np.ravel(np.asarray(value, dtype=float)) for value in values] or [np.zeros(0)])
        points = points[np.isfinite(points) & ((points > 0) | (not self.log))]
        low, high = (float(points.min()), float(points.max())) if len(points) else (0.0, 1.0)
        if self.log:
            border = (high / low) ** _BORDER if high > low else 2.0
            return low / border, high * border
        border = _BORDER * (high - low) or max(abs(high), 1.0)
        return low - border, high + border


def vertical(at: float, colour: str, width: float = 0.8, dash: str = "-") -> Line:
    """A line across the chart; at: its x; width: as of :class:`Line` [px]."""
    return Line([at, at], [-np.inf, np.inf], colour, width=width, dash=dash)


def horizontal(at: float, colour: str, width: float = 0.8, dash: str = "-") -> Line:
    """A line across the chart; at: its y; width: as of :class:`Line` [px]."""
    return Line([-np.inf, np.inf], [at, at], colour, width=width, dash=dash)


def box(left: float, right: float, bottom: float, top: float, colour: str, alpha: float = 1.0, label: str = "") -> Area:
    """A rectangle.

    Args:
        left, right, bottom, top: Its ends; infinite ones are at the border of the chart.
        alpha: Opacity, 0 to 1.
    """
    return Area([left, right, right, left], [bottom, bottom, top, top], colour, alpha, label)


def intervals(low: ArrayLike, high: ArrayLike, at: ArrayLike) -> tuple[Array, Array]:
    """Ends of intervals and their places as one line with gaps, shape (3 k,) each.

    Args:
        low, high, at: Ends and place of each interval, shape (k,).
    """
    ends = np.column_stack([np.asarray(low, dtype=float), high, np.full(np.shape(low), np.nan)])
    return ends.ravel(), np.repeat(np.asarray(at, dtype=float), 3)


def values_chart(
    title: str, names: Sequence[str], value: Array, error: Array, beside: Sequence[Mark] = (), odd: BoolArray | None = None
) -> Chart:
    """Values with their 95 % intervals, one row each.

    Args:
        value, error: Values and their standard errors, shape (k,).
        beside: Marks below them.
        odd: Values in red, shape (k,); none if None.
    """
    marks, rows, reach = list(beside), np.arange(len(names)), 1.96 * error
    odd = np.zeros(len(names), dtype=bool) if odd is None else odd
    for colour, which in (("identified", ~odd), ("bad", odd)):
        centre, at = value[which], rows[which]
        marks += [Line(*intervals(centre - reach[which], centre + reach[which], at), colour), Dots(centre, at, colour)]
    return Chart(marks, title, names=names)
