"""The page: content and figures rendered with the template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..files import write_text
from ..result.identification import Identification
from ..result.traces import LogTrace
from . import pictures
from .content import content
from .svg import MARKED
from .template import rendered

FILE = "report.html"


def report_html(ident: Identification, title: str = "") -> str:
    """Returns the report as one self-contained HTML page.

    Args:
        ident: The result; without series of its logs, figures that need them are omitted with a note on the page.
        title: Title of the page; the robot's name if empty.

    Returns:
        The page.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
    """
    return rendered(
        "report.html.j2",
        title=title or ident.model.robot.name,
        pictures=_pictures(ident),
        trace=_worst(ident),
        **content(ident),
    )


def write_report(ident: Identification, path: str | Path, title: str = "") -> Path:
    """Writes the report atomically.

    Args:
        path: The HTML file.
        title: Title of the page; the robot's name if empty.

    Returns:
        The path written.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
        OutputError: It cannot be written.
    """
    return write_text(path, report_html(ident, title))


def _pictures(ident: Identification) -> dict[str, Any]:
    trace = _worst(ident)
    return {
        "torque": [] if trace is None else pictures.torque_pictures(ident, trace),
        "errors": pictures.error_picture(ident) if ident.validation else "",
        "friction": pictures.friction_pictures(ident),
        "changes": pictures.change_pictures(ident),
        "parameters": pictures.parameter_pictures(ident),
        "bodies": pictures.body_pictures(ident),
        "residual": [] if trace is None else pictures.residual_pictures(ident, trace),
        "palette": MARKED,
    }


def _worst(ident: Identification) -> LogTrace | None:
    """The log to show: the stored one with the largest held-out error."""
    logs = ident.traces.logs if ident.traces is not None else ()
    errors = {entry["log"]: float(entry["mean_rmse"]) for entry in ident.validation}
    return max(logs, key=lambda trace: errors.get(trace.log, 0.0), default=None)
