"""The page of a result: content and figures rendered with the template."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ..files.read_write import write_text
from ..result.dynamics.friction_curves import friction_curves
from ..result.evidence.scores import mean_error
from ..result.identification import Identification
from ..result.plots.charts import (
    body_charts,
    change_charts,
    error_chart,
    friction_chart,
    parameter_charts,
    residual_charts,
    torque_charts,
)
from ..result.text.commands import CommandPaths
from .content import content
from .svg import svg
from .template import rendered

#: Heights of pictures [px]: of any, of torque with its error below, of a body, and of a row of a list and its frame.
_HEIGHT, _TORQUE, _BODY, _ROW, _FRAME = 220, 250, 190, 15, 76


def report_html(ident: Identification, title: str = "", paths: CommandPaths | None = None) -> str:
    """Returns the report as one self-contained HTML page.

    Args:
        ident: The result; without series of its logs, figures that need them are omitted with a note on the page.
        title: Title of the page; the robot's name if empty.
        paths: Files that its commands name; if None, their placeholders remain.
    """
    model, joints = ident.model, ident.model.robot.joints
    logs = ident.traces.logs if ident.traces is not None else ()
    errors = {entry["log"]: mean_error(entry) for entry in ident.validation}
    trace = max(logs, key=lambda trace: errors.get(trace.log, 0.0), default=None)  # with the largest held-out error
    units = {parameter.name: parameter.unit for parameter in model.parameters}
    pictures: dict[str, list[str]] = {
        "friction": [
            svg([friction_chart(ident, curve)], f"Friction torque of {curve.joint} against its speed", _HEIGHT)
            for curve in friction_curves(ident)
        ],
        "changes": [
            svg([chart], f"Deviations of {name} from its mean", _HEIGHT)
            for name, chart in (change_charts(ident.fit.changes, units) if ident.fit.changes else {}).items()
        ],
        "parameters": [
            svg([chart], f"Parameters {name} with their 95 % intervals", _FRAME + _ROW * max(len(chart.names), 6))
            for name, chart in parameter_charts(list(ident.parameters), model.n_inertial).items()
        ],
        "bodies": [
            svg(body_charts(before, after, body.name), f"Inertia ellipsoid of {body.name} in the URDF and as identified", _BODY)
            for before, after, body in zip(ident.prior_bodies, ident.bodies, model.robot.bodies, strict=True)
        ],
        "errors": [],
        "torque": [],
        "residual": [],
    }
    if ident.validation:
        height = _FRAME + 2 * _ROW * len(joints) + 30
        pictures["errors"].append(svg([error_chart(ident.validation)], "Held-out errors per joint", height))
    if trace is not None:
        for j, joint in enumerate(joints):
            label = f"Measured and predicted torque of {joint} on {trace.log}"
            pictures["torque"].append(
                svg(torque_charts(trace, j, joint, ident.plot.unit(j)), label, _TORQUE, shares=(0.66, 0.34))
            )
        for chart in residual_charts(trace, joints, ident.plot.units()):
            pictures["residual"].append(svg([chart], chart.title, _HEIGHT + 40))
    name = title or model.robot.name
    shown = content(ident)
    command = "" if paths is None or not paths.command else f" by `{paths.command}`"
    shown["origin"].append(("this page", f"written {datetime.now().astimezone():%Y-%m-%d %H:%M %z}{command}"))
    return rendered("report.html.j2", paths, title=name, pictures=pictures, trace=trace, **shown)


def write_report(ident: Identification, path: str | Path, paths: CommandPaths | None = None) -> Path:
    """Writes report.html: one self-contained page that shows a result.

    Args:
        ident: The result.
        path: The file.
        paths: Files that its commands name; if None, their placeholders remain.

    Returns:
        The path written.

    Raises:
        MissingExtraError: jinja2 is not installed.
        OutputError: It cannot be written.
    """
    return write_text(path, report_html(ident, paths=paths))
