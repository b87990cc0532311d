"""The page: content and figures rendered with the template."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..files.read_write import write_text
from ..parallel import each
from ..result.dynamics.friction_curves import friction_curves
from ..result.evidence.scores import mean_error
from ..result.evidence.traces import LogTrace
from ..result.identification import Identification
from ..result.plots.parameters import draw_body, draw_changes, draw_parameters, draw_terms
from ..result.plots.style import figure_class
from ..result.plots.torque import draw_errors, draw_memory, draw_spectrum, draw_torque
from ..result.text.commands import CommandPaths
from .content import content
from .svg import svg
from .template import rendered

FILE = "report.html"
#: Draws a figure and returns its SVG element; it can be sent to another process.
Drawing = Callable[[], str]


def report_html(ident: Identification, title: str = "", paths: CommandPaths | None = None) -> str:
    """Returns the report as one self-contained HTML page, with figures drawn by the available workers.

    Args:
        ident: The result; without series of its logs, figures that need them are omitted with a note on the page.
        title: Title of the page; the robot's name if empty.
        paths: Files that its commands name; if None, their placeholders remain.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
    """
    figure_class()  # raises early if matplotlib is missing; workers that start now need not import it
    trace, joints = _worst(ident), ident.model.robot.joints
    drawings: dict[str, list[Drawing]] = {
        "torque": [] if trace is None else [_torque(ident, trace, j, joint) for j, joint in enumerate(joints)],
        "errors": [_picture(0.9 + 0.34 * len(joints), "Held-out errors per joint", draw_errors, ident.validation, left=0.36)]
        if ident.validation
        else [],
        "friction": friction_pictures(ident),
        "changes": change_pictures(ident),
        "parameters": parameter_pictures(ident),
        "bodies": body_pictures(ident),
        "residual": [] if trace is None else residual_pictures(ident, trace),
    }
    drawn = iter(each(_drawn, [drawing for group in drawings.values() for drawing in group]))
    pictures = {kind: [next(drawn) for _ in group] for kind, group in drawings.items()}
    name = title or ident.model.robot.name
    return rendered("report.html.j2", paths, title=name, pictures=pictures, trace=trace, **content(ident))


def write_report(ident: Identification, path: str | Path, paths: CommandPaths | None = None) -> Path:
    """Writes report.html: one self-contained page that shows a result.

    Args:
        ident: The result.
        path: The file.
        paths: Files that its commands name; if None, their placeholders remain.

    Returns:
        The path written.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
        OutputError: It cannot be written.
    """
    return write_text(path, report_html(ident, paths=paths))


def _worst(ident: Identification) -> LogTrace | None:
    """The log to show: the stored one with the largest held-out error."""
    logs = ident.traces.logs if ident.traces is not None else ()
    errors = {entry["log"]: mean_error(entry) for entry in ident.validation}
    return max(logs, key=lambda trace: errors.get(trace.log, 0.0), default=None)


#: Width and margins of every figure [in, fractions of the figure].
_WIDTH, _LEFT, _RIGHT = 3.75, 0.18, 0.96


def friction_pictures(ident: Identification) -> list[Drawing]:
    """Returns the drawings of friction curves, one per joint with friction laws."""
    title = "Friction torque of {} against its speed"
    return [_picture(2.3, title.format(curve.joint), ident.plot.friction_drawing(curve)) for curve in friction_curves(ident)]


def change_pictures(ident: Identification) -> list[Drawing]:
    """Returns the drawings of changes of friction: deviations of each log, one per parameter with non-zero spread."""
    changes = ident.fit.changes
    if changes is None:
        return []
    units = {parameter.name: parameter.unit for parameter in ident.model.parameters}
    return [
        _picture(2.0, f"Deviations of {name} from its mean", draw_changes, changes, k, units[name])
        for k, name in enumerate(changes.parameters)
        if not changes.known or changes.spread[k] > 0
    ]


def parameter_pictures(ident: Identification) -> list[Drawing]:
    """Returns the drawings of estimates with intervals, one per body and one per kind of joint term."""
    bodies, terms = ident.plot.parameter_groups()
    return [
        _picture(
            max(2.4, 0.8 + 0.16 * len(rows)), f"Parameters {title} with their 95 % intervals", draw, rows, title, left=left
        )
        for groups, draw, left in ((bodies, draw_parameters, _LEFT), (terms, draw_terms, 0.36))
        for title, rows in groups.items()
    ]


def body_pictures(ident: Identification) -> list[Drawing]:
    """Returns the drawings of inertia ellipsoids before and after, one per body."""
    title = "Inertia ellipsoid of {} in the URDF and as identified"
    names = [body.name for body in ident.model.robot.bodies]
    return [
        _picture(1.9, title.format(name), draw_body, ident.prior_bodies[k], ident.bodies[k], name, columns=2, wspace=0.55)
        for k, name in enumerate(names)
    ]


def residual_pictures(ident: Identification, trace: LogTrace) -> list[Drawing]:
    """Returns the drawings of autocorrelation and spectrum of the residual in one log."""
    joints = ident.model.robot.joints
    drawings = [_picture(2.6, "Autocorrelation of the residual", draw_memory, trace, joints)]
    if len(trace.frequency):
        drawings.append(_picture(2.6, "Spectrum of the residual", draw_spectrum, trace, joints, ident.plot.units(), left=0.2))
    return drawings


def _drawn(drawing: Drawing) -> str:
    return drawing()


def _torque(ident: Identification, trace: LogTrace, j: int, joint: str) -> Drawing:
    """Torque over time with the residual below."""
    title = f"Measured and predicted torque of {joint} on {trace.log}"
    return partial(svg, partial(_draw_both, trace, j, joint, ident.plot.unit(j)), _WIDTH, 2.5, title)


def _draw_both(trace: LogTrace, j: int, joint: str, unit: str, figure: Any) -> None:
    top, under = figure.subplots(2, 1, height_ratios=[3, 1], gridspec_kw=_margins(2.5, 0.22, hspace=0.16))
    draw_torque(top, trace, j, joint, unit, residual=under)


def _picture(height: float, title: str, draw: Callable[..., Any], *what: Any, columns: int = 1, **margins: float) -> Drawing:
    """A drawing of ``draw(axes, *what)`` on axes with margins of fixed size."""
    return partial(svg, partial(_draw_on, draw, what, columns, {**_margins(height), **margins}), _WIDTH, height, title)


def _draw_on(draw: Callable[..., Any], what: tuple[Any, ...], columns: int, margins: dict[str, float], figure: Any) -> None:
    draw(figure.subplots(1, columns, gridspec_kw=margins), *what)


def _margins(height: float, top: float = 0.26, **more: float) -> dict[str, float]:
    """Margins of fixed size [in], so that labels keep their position."""
    return {"left": _LEFT, "right": _RIGHT, "bottom": 0.42 / height, "top": 1.0 - top / height, **more}
