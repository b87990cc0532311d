"""The page: content and pictures put into the template."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError
from ..files import write_text
from ..result.identification import Identification
from ..result.traces import LogTrace
from . import pictures
from .content import content, number
from .svg import MARKED, svg

FILE = "report.html"


def report_html(ident: Identification, title: str = "") -> str:
    """The report as one self-contained HTML page.

    Args:
        ident: The result; without series of its logs the pictures that need them are left out, and the page says so.
        title: Title of the page; the robot's name if empty.

    Returns:
        The page.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("the report needs matplotlib and jinja2", remedy="pip install 'urdf-ident[report]'") from error
    svg(lambda figure: None, 1.0, 1.0, "")  # says so at once where matplotlib is missing
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    source = files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source).render(
        title=title or ident.model.robot.name, pictures=_pictures(ident), trace=_worst(ident), **content(ident)
    )


def write_report(ident: Identification, path: str | Path, title: str = "") -> Path:
    """Writes the report, whole or not at all.

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
    """The log that is shown: of those kept, the one with the largest held-out error."""
    logs = ident.traces.logs if ident.traces is not None else ()
    errors = {entry["log"]: float(entry["mean_rmse"]) for entry in ident.validation}
    return max(logs, key=lambda trace: errors.get(trace.log, 0.0), default=None)
