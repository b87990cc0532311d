"""Charts: lines, dots and areas in pairs of axes; and which are drawn of results and of designed motions.

Those of a result are torque, residual, errors, friction, parameters and bodies. :mod:`.plots` gives charts to matplotlib,
:mod:`urdf_ident.report` writes them into pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...estimation.uncertainty.identifiability import IDENTIFIABLE, LOST
from ...grouping import grouped
from ...linalg import NORMAL_95, Array, BoolArray, divisors, positive
from ...model.inertia import pseudo_inertia
from ...motion.limits import Limits, Torque
from ...motion.trajectory import Trajectory
from ...units import joint_units
from ..dynamics import friction_curves
from ..record import ParameterRow, Record
from ..scores import POINTS, LogTrace, errors_of_joints

#: Times above this count from a fixed date [s], and are drawn from the first one on.
_SINCE_1970 = 1e5
#: A dot beyond this many prior standard deviations is drawn at the edge.
_EDGE = 6.0
#: Planes in which a body is seen: indices and names of their axes.
_VIEWS = ((0, 2, "x", "z"), (1, 2, "y", "z"))
#: Colours of lines of many joints; those of further joints are dashed.
_COLOURS = ("identified", "residual", "good", "friction", "urdf", "ink", "soft")
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
Ends = tuple[tuple[float, float], tuple[float, float]]
#: Largest number of logs, or quantities of a kind, that are drawn or listed.
SHOWN = 12
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

    def within(self, limits: Ends) -> tuple[Array, Array]:
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

    def limits(self) -> Ends:
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
    marks, rows, reach = list(beside), np.arange(len(names)), NORMAL_95 * error
    odd = np.zeros(len(names), dtype=bool) if odd is None else odd
    for colour, which in (("identified", ~odd), ("bad", odd)):
        centre, at = value[which], rows[which]
        marks += [Line(*intervals(centre - reach[which], centre + reach[which], at), colour), Dots(centre, at, colour)]
    return Chart(marks, title, names=names)


@dataclass(frozen=True, eq=False)
class Picture:
    """Charts that are seen together, and what they show in words, for those who cannot see them."""

    label: str
    charts: Sequence[Chart]


def torque_unit(ident: Record, j: int) -> str:
    """Unit of a joint's torque: ``"N·m"`` or ``"N"``."""
    return str(joint_units(ident.model.robot.prismatic[j])["torque"])


def _torque(ident: Record, trace: LogTrace) -> Iterator[Picture]:
    """Measured torque of every joint, identified, and the URDF's own prediction; and the error, which is drawn below.

    The range is that of measured and identified torque: a prediction of the URDF that is far off may exceed it.
    """
    first = float(np.floor(trace.time[0]))
    clock = "t [s]" if abs(first) < _SINCE_1970 else f"t − {first:.0f} [s]"
    time = trace.time if abs(first) < _SINCE_1970 else trace.time - first
    gaps = [piece.start for piece in trace.pieces()[1:]]
    for j, joint in enumerate(ident.model.robot.joints):
        x, measured, identified, urdf = (
            np.insert(values, gaps, np.nan) for values in (time, trace.measured[:, j], trace.identified[:, j], trace.urdf[:, j])
        )
        both = np.concatenate([trace.measured[:, j], trace.identified[:, j]])
        low, high = float(both.min()), float(both.max())
        reach = max(high - low, 1e-9)
        low = max(min(low, float(trace.urdf[:, j].min())), low - reach)
        high = min(max(high, float(trace.urdf[:, j].max())), high + reach)
        span = float(time[0]), float(time[-1]) if len(time) > 1 else float(time[0]) + 1.0
        usual = max(1.6 * float(np.percentile(np.abs(trace.measured[:, j] - trace.identified[:, j]), 99)), 1e-9)
        lines = [
            Line(x, urdf, "urdf", 0.6, "URDF as it came", width=1.0),
            Line(x, measured, "ink", 0.9, "measured", width=1.7),
            Line(x, identified, "identified", label="identified"),
        ]
        border = 0.06 * (high - low)
        force = f"torque [{unit}]" if (unit := torque_unit(ident, j)) != "N" else "force [N]"
        charts = (
            Chart(lines, joint, y=force, x_range=span, y_range=(low - border, high + border)),
            Chart(
                [horizontal(0.0, "soft"), Line(x, measured - identified, "residual", label="error", width=1.0)],
                x=clock,
                y="error",
                x_range=span,
                y_range=(-usual, usual),
            ),
        )
        yield Picture(f"Measured and predicted torque of {joint} on {trace.log}", charts)


def _residual(ident: Record, trace: LogTrace) -> Iterator[Picture]:
    """Autocorrelation and, where it is known, amplitude density of the residual, one line per joint."""
    joints = ident.model.robot.joints
    units = list(dict.fromkeys(torque_unit(ident, j) for j in range(ident.model.n)))
    unit = units[0] if len(units) == 1 else f"({' or '.join(units)})"

    def lines(x: Array, series: Array) -> list[Mark]:
        return [
            Line(x, series[:, j], _COLOURS[j % len(_COLOURS)], label=joint, dash="-" if j < len(_COLOURS) else "--")
            for j, joint in enumerate(joints)
        ]

    memory = [horizontal(0.0, "soft"), *lines(trace.lag, trace.memory)]
    ends = 0.0, float(trace.lag[-1])
    charts = [Chart(memory, "autocorrelation of the residual", "lag [s]", "autocorrelation", x_range=ends, legend=True)]
    if len(trace.frequency):
        charts.append(
            Chart(
                [*lines(trace.frequency, np.maximum(trace.spectrum, 1e-12)), vertical(trace.cutoff, "bad", 1.0, "--")],
                "spectrum of the residual",
                "frequency [Hz]; dashed: low-pass of the errors",
                f"residual [{unit}/√Hz]",
                log=True,
            )
        )
    for chart in charts:
        yield Picture(chart.title, [chart])


def _errors(ident: Record, _: object) -> Iterator[Picture]:
    """Held-out errors per joint, relative to its RMS torque, next to those of the URDF (RMS over logs)."""
    if not ident.validation:
        return
    errors = errors_of_joints(ident.validation)
    marks: list[Mark] = []
    models = (("urdf_rmse", "urdf", "URDF"), ("urdf_friction_rmse", "friction", "URDF + fitted friction"))
    for k, (key, colour, label) in enumerate((*models, ("rmse", "identified", "identified"))):
        values = 100 * errors[key] / divisors(errors["rms_torque"])
        for j, value in enumerate(values.tolist()):
            at = j + 0.26 * (k - 1)
            if np.isfinite(value):
                marks.append(box(0.0, value, at - 0.12, at + 0.12, colour, label=label if j == 0 else ""))
    most = max((float(np.max(mark.x)) for mark in marks), default=1.0)
    label, reach = "RMS error over RMS torque [%]", (0.0, 1.05 * most)
    chart = Chart(marks, x=label, names=ident.model.robot.joints, x_range=reach, legend=True)
    yield Picture("Held-out errors per joint", [chart])


def _friction(ident: Record, _: object) -> Iterator[Picture]:
    """Friction torque of each joint against its speed: law with interval, URDF, means of the logs, histogram of speeds."""
    robot = ident.model.robot
    for curve in friction_curves(ident):
        j, joint = robot.joints.index(curve.joint), robot.description.joints[curve.joint]
        units, v, (begin, end) = joint_units(robot.prismatic[j]), curve.speed, curve.trained
        inside = (v >= begin) & (v <= end)
        marks: list[Mark] = [horizontal(0.0, "soft")]
        if np.isfinite(curve.interval).all():
            low, high = curve.interval.T
            marks.append(Area(np.append(v, v[::-1]), np.append(low, high[::-1]), "identified", 0.18, "95 % interval"))
        marks.append(Line(v, curve.torque, "identified", width=1.2, dash=":"))
        marks.append(Line(v[inside], curve.torque[inside], "identified", label="identified law", width=2.1))
        if joint.damping or joint.friction:
            marks.append(Line(v, joint.damping * v + joint.friction * np.sign(v), "urdf", 0.8, "URDF", width=1.2))
        speeds = ident.traces.speeds
        if speeds is not None:
            centre = 0.5 * (speeds.edges[j, 1:] + speeds.edges[j, :-1])
            size = 0.67 * np.sqrt(6 + 60 * speeds.count[j])
            marks.append(Dots(centre, speeds.friction[j], "ink", 0.5, "mean of the logs", size))
        if np.isfinite(curve.limit) and curve.limit <= v[-1]:
            marks += [vertical(side, "bad", 1.0, "--") for side in (-curve.limit, curve.limit)]
        low, high = Chart(marks).limits()[1]
        if speeds is not None:  # the histogram of the speeds as a strip along the bottom
            height = 0.14 * (high - low)
            tops = low - height + height * speeds.count[j] / positive(float(speeds.count[j].max()))
            edges = speeds.edges[j]
            x = np.concatenate([edges[:1], np.repeat(edges[1:-1], 2), edges[-1:], edges[-1:], edges[:1]])
            marks.append(Area(x, np.concatenate([np.repeat(tops, 2), np.full(2, low - height)]), "soft", 0.45))
            low -= height
        load = f", at a load of {curve.load:.3g} {units['torque']}" if curve.load else ""
        labels = f"speed [{units['velocity']}]{load}", f"friction [{units['torque']}]"
        chart = Chart(marks, curve.joint, *labels, x_range=(float(v[0]), float(v[-1])), y_range=(low, high))
        yield Picture(f"Friction torque of {curve.joint} against its speed", [chart])


def _changes(ident: Record, _: object) -> Iterator[Picture]:
    """Deviations of friction with non-zero spread: of thirds of each log over time, or of each log over its temperature."""
    if (changes := ident.fit.changes) is None:
        return
    units = {parameter.name: parameter.unit for parameter in ident.model.parameters}
    for k, name in enumerate(changes.parameters):
        spread = float(np.nan_to_num(changes.spread[k]))
        if changes.known and spread <= 0:
            continue
        marks: list[Mark] = [horizontal(0.0, "soft")]
        if spread > 0:
            marks.append(box(-np.inf, np.inf, -spread, spread, "soft", 0.25))
        if changes.covariate is not None and np.isfinite(changes.covariate[:, k]).all():
            label = "temperature [K or °C]"
            x, y, e = changes.covariate[:, k], changes.deviation[:, k], changes.deviation_error[:, k]
            marks += [_upright(x, y, e, 1.0), Dots(x, y, "identified")]
        else:
            label = "part of the log" if changes.seconds is None else "time since the log's start [s]"
            thirds = (np.arange(changes.parts.shape[1]) + 0.5) / changes.parts.shape[1]
            for log in range(min(len(changes.logs), SHOWN)):
                x = thirds * (1.0 if changes.seconds is None else float(changes.seconds[log]))
                y, later = changes.parts[log, :, k], 0.35 + 0.6 * log / max(len(changes.logs) - 1, 1)
                line = _upright(x, y, changes.parts_error[log, :, k], later)
                marks += [line, Line(x, y, "identified", later, width=1.0), Dots(x, y, "identified", later, radius=2.0)]
        chart = Chart(marks, name, label, f"deviation [{units[name]}]")
        yield Picture(f"Deviations of {name} from its mean", [chart])


def _upright(x: Array, y: Array, error: Array, alpha: float) -> Line:
    ends, at = intervals(y - error, y + error, x)
    return Line(at, ends, "identified", alpha, width=1.0)


def _parameters(ident: Record, _: object) -> Iterator[Picture]:
    """Estimates with 95 % intervals: one chart per body, in prior standard deviations from the prior, and one per joint term.

    Joint terms of prismatic joints are apart, because newtons beside newton metres hide each other.
    """
    rows, inertial = ident.parameters, ident.model.n_inertial
    units = grouped(dict.fromkeys((row.symbol, row.unit) for row in rows[inertial:]))
    titles = [f"{row.symbol} [{row.unit}]" if len(units[row.symbol]) > 1 else row.symbol for row in rows[inertial:]]
    charts: list[Chart] = []
    for body, of_body in grouped((row.owner, row) for row in rows[:inertial]).items():
        scale = divisors(np.array([row.prior_std for row in of_body]))
        marks: list[Mark] = [box(-1.0, 1.0, -np.inf, np.inf, "urdf", 0.18), vertical(0.0, "urdf")]
        marks += _estimates(of_body, np.array([row.prior for row in of_body]), scale, _EDGE)
        names, label = [row.symbol for row in of_body], "difference to the URDF [prior σ]"
        charts.append(Chart(marks, body, label, names=names, x_range=(-1.05 * _EDGE, 1.05 * _EDGE)))
    for title, terms in grouped(zip(titles, rows[inertial:], strict=True)).items():
        marks = [vertical(0.0, "soft"), *_estimates(terms, np.zeros(len(terms)), np.ones(len(terms)), np.inf)]
        charts.append(Chart(marks, title, terms[0].unit, names=[row.owner for row in terms]))
    for chart in charts:
        yield Picture(f"Parameters {chart.title} with their 95 % intervals", [chart])


def _estimates(rows: Sequence[ParameterRow], origin: Array, scale: Array, edge: float) -> list[Mark]:
    """Dots and their intervals by how well the data determine them, cut at an edge."""
    ends = np.array([[row.low, row.value, row.high] for row in rows])
    low, value, high = np.clip((ends - origin[:, None]) / scale[:, None], -edge, edge).T
    looks = {IDENTIFIABLE: ("identified", "identifiable"), LOST: ("soft", "not identifiable")}
    marks: list[Mark] = []
    for (colour, label), of_look in grouped(
        (looks.get(row.verdict, ("friction", "weak or combined")), k) for k, row in enumerate(rows)
    ).items():
        marks.append(Line(*intervals(low[of_look], high[of_look], of_look), colour, 0.7, width=1.9))
        marks.append(Dots(value[of_look], of_look, colour, label=label, hollow=colour == "soft"))
    return marks


def _bodies(ident: Record, _: object) -> Iterator[Picture]:
    """Ellipsoid of uniform density with the mass, centre of mass and inertia of each body, seen along y and along x."""
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    for before, after, body in zip(ident.prior_bodies, ident.bodies, ident.model.robot.bodies, strict=True):
        charts = []
        for a, b, x, y in _VIEWS:
            marks: list[Mark] = [Line([-9, 9, np.nan, 0, 0], [0, 0, np.nan, -9, 9], "soft", width=1.0)]
            for theta, colour, dash, fill in ((before, "urdf", "--", 0.10), (after, "identified", "-", 0.18)):
                com = theta[1:4] / positive(theta[0])
                second = pseudo_inertia(theta)[:3, :3] / positive(theta[0])  # ∫ x xᵀ dm / m about the origin
                values, vectors = np.linalg.eigh((second - np.outer(com, com))[np.ix_([a, b], [a, b])])
                if theta[0] > 0 and values.min() > 0:  # physically consistent; ⟨x²⟩ = (semi-axis)²/5
                    circle = np.stack([np.cos(angle), np.sin(angle)])
                    u, w = 1e3 * (com[[a, b]][:, None] + vectors @ (np.sqrt(5.0 * values)[:, None] * circle))
                    marks += [Area(u, w, colour, fill), Line(u, w, colour, dash=dash)]
                    marks.append(Dots(1e3 * com[[a]], 1e3 * com[[b]], colour))
            charts.append(Chart(marks, body.name if a == 0 else "", f"{x} [mm]", f"{y} [mm]", equal=True))
        yield Picture(f"Inertia ellipsoid of {body.name} in the URDF and as identified", charts)


#: What is drawn of a result, by name; the series of one log (:class:`.LogTrace`) are drawn by those of :data:`OF_LOG` alone.
PICTURES: Mapping[str, Callable[[Record, Any], Iterator[Picture]]] = {
    "torque": _torque,
    "friction": _friction,
    "parameters": _parameters,
    "bodies": _bodies,
    "residual": _residual,
    "errors": _errors,
    "changes": _changes,
}
OF_LOG = ("torque", "residual")


def limit_charts(trajectory: Trajectory, limits: Limits, torque: Torque | None = None) -> list[Chart]:
    """Charts of q, v, a (and torque, as :func:`.plot_limits`) of every joint in a column, against the limits that are known."""
    time = np.linspace(0.0, trajectory.duration, POINTS)
    signals = list(trajectory.evaluate(time))
    if torque is not None:
        signals.append(torque(*signals))
    charts = []
    for quantity, signal in zip(("position", "velocity", "acceleration", "torque"), signals, strict=False):
        for j, joint in enumerate(trajectory.joints):
            size = np.inf if quantity == "position" else float(getattr(limits, quantity)[j])
            low, high = (limits.lower[j], limits.upper[j]) if quantity == "position" else (-size, size)
            marks: list[Mark] = [Line(time, signal[:, j], "identified")]
            if np.isfinite(low) and np.isfinite(high):
                marks += [horizontal(float(end), "bad", 1.0, "--") for end in (low, high)]
                marks += [
                    box(-np.inf, np.inf, float(high), np.inf, "bad", 0.12),
                    box(-np.inf, np.inf, -np.inf, float(low), "bad", 0.12),
                ]
            unit = joint_units(limits.prismatic[j])[quantity]
            labels = joint if quantity == "position" else "", "t [s]", f"{quantity} [{unit}]"
            charts.append(Chart(marks, *labels, x_range=(0.0, trajectory.duration)))
    return charts
