"""The page of a result: content and figures rendered with the template."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ..files.read_write import write_text
from ..result.evidence.scores import mean_error
from ..result.identification import Identification
from ..result.plots.charts import OF_LOG, PICTURES
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
    logs = ident.traces.logs
    errors = {entry["log"]: mean_error(entry) for entry in ident.validation}
    trace = max(logs, key=lambda trace: errors.get(trace.log, 0.0), default=None)  # with the largest held-out error
    pictures: dict[str, list[str]] = {name: [] for name in PICTURES}
    for name, shown in PICTURES.items():
        for picture in shown(ident, trace) if trace is not None or name not in OF_LOG else ():
            rows = len(picture.charts[0].names)
            height = {
                "torque": _TORQUE,
                "bodies": _BODY,
                "parameters": _FRAME + _ROW * max(rows, 6),
                "errors": _FRAME + 2 * _ROW * rows + 30,
                "residual": _HEIGHT + 40,
            }.get(name, _HEIGHT)
            shares = (0.66, 0.34) if name == "torque" else ()
            pictures[name].append(svg(picture.charts, picture.label, height, shares=shares))
    words = content(ident)
    command = "" if paths is None or not paths.command else f" by `{paths.command}`"
    words["origin"].append(("this page", f"written {datetime.now().astimezone():%Y-%m-%d %H:%M %z}{command}"))
    return rendered("report.html.j2", paths, title=title or ident.model.robot.name, pictures=pictures, trace=trace, **words)


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
