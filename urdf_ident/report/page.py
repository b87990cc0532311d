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

#: Usual height of a picture [px].
_HEIGHT = 220
#: Heights of pictures that are not usual [px]: torque has its error below.
_HEIGHTS = {"torque": 250, "bodies": 190, "residual": 260}
#: Height of a row of a list of names, and of the frame of the list [px].
_ROW, _FRAME = 15, 76


def report_html(ident: Identification, title: str = "", paths: CommandPaths | None = None) -> str:
    """The report as one self-contained HTML page; title: the robot's name if empty; paths: files that its commands name."""
    logs = ident.traces.logs
    errors = {entry["log"]: mean_error(entry) for entry in ident.validation}
    trace = max(logs, key=lambda trace: errors.get(trace.log, 0.0), default=None)  # with the largest held-out error
    pictures: dict[str, list[str]] = {name: [] for name in PICTURES}
    for name, shown in PICTURES.items():
        for picture in shown(ident, trace) if trace is not None or name not in OF_LOG else ():
            rows = len(picture.charts[0].names)
            of_lists = {"parameters": _FRAME + _ROW * max(rows, 6), "errors": _FRAME + 2 * _ROW * rows + 30}
            height = {**_HEIGHTS, **of_lists}.get(name, _HEIGHT)
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
