"""Pages of a result and of a fleet: tables, sentences and figures from the records alone, rendered with the templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..comparison.other_models import solutions
from ..consistency.repair import TABLE_TOLERANCES
from ..errors import MissingExtraError
from ..estimation.uncertainty.identifiability import COMBINATION, LOST, missing_motions
from ..files.read_write import write_text
from ..friction import FRICTION
from ..grouping import grouped
from ..linalg import Array, positive, rms
from ..model.inertia import to_com
from ..provenance import versions
from ..quoting import CommandPaths, markup, page_policy
from ..result.comparison import Fleet
from ..result.identification import Identification
from ..result.plots.charts import OF_LOG, PICTURES, torque_unit
from ..result.scores import errors_of_joints, mean_error
from ..result.summary import overview
from ..units import with_error
from .svg import svg

#: Usual height of a picture [px].
_HEIGHT = 220
#: Heights of pictures that are not usual [px]: torque has its error below.
_HEIGHTS = {"torque": 250, "bodies": 190, "residual": 260}
#: Height of a row of a list of names, and of the frame of the list [px].
_ROW, _FRAME = 15, 76
_VERDICT_WORDS = {
    "identifiable": "determined by the data",
    "weak": "determined by the data, but with a standard error above 50 % of its size",
    "only in combination": "the data determine a sum that contains it; its share of the sum is the URDF's",
    "not identifiable": "the data say nothing about it; the value is the URDF's, within the physical constraints",
}


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


def rendered(name: str, paths: CommandPaths | None = None, **values: Any) -> str:
    """Renders a page from its template; paths: files that its commands name, or None to keep their placeholders."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("the report needs jinja2", remedy="pip install 'urdf-ident[report]'") from error
    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )

    def code(text: str) -> str:  # HTML, to be marked as safe
        html = re.sub(r"`([^`]+)`", r"<code>\1</code>", markup((paths or CommandPaths()).fill(text)))
        return html.replace(" -&gt; ", " → ")

    environment.filters.update(number=number, code=code, with_error=with_error)
    script = _text("page.js")
    return environment.get_template(name).render(**values, script=script, policy=page_policy([script]))


def _text(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def write_fleet(fleet: Fleet, path: str | Path) -> Path:
    """Writes the report of a fleet as one self-contained HTML page, atomically."""
    headline, how = fleet.headline
    height = 60 + 20 * len(fleet.names)
    text = rendered(
        "fleet.html.j2",
        fleet=fleet,
        headline=headline,
        how=how,
        odd=any(sentences for _, _, sentences in fleet.robots),
        robots=fleet.robots,
        pictures=[
            svg([pooled.chart(fleet.names)], f"{pooled.where}, {pooled.what}: every robot with its interval", height)
            for pooled in fleet.shown
        ],
        quantities=[(pooled, int(np.argmin(pooled.chance))) for pooled in fleet.pooled],  # and the farthest robot
    )
    return write_text(path, text)


def content(ident: Identification) -> dict[str, Any]:
    """Returns what the template shows besides the figures, in the order of the page."""
    view, levels = overview(ident), [row.verdict for row in ident.parameters]
    used = {parameter.symbol for parameter in ident.model.parameters}
    laws = ((", ".join(s for s in law.symbols if s in used), law.name) for law in FRICTION.values())
    return {
        "ident": ident,
        "view": view,
        "reasons": [reason for reason in ident.verdict.judgements[1:] if reason.level != "good"],
        "facts": _facts(ident, levels),
        "errors": _errors(ident),
        "crossed": {} if ident.validation else view.errors,
        "changes": ident.fit.changes,
        "units": {parameter.name: parameter.unit for parameter in ident.model.parameters},
        "bodies": _bodies(ident),
        "solutions": solutions(ident, ident.model.robot),
        "tolerances": [abs(tolerance) for tolerance in TABLE_TOLERANCES],
        "solver": [ident.solver[name] for name in ("method", "name", "status") if name in ident.solver],
        "symbols": "; ".join(f"{symbols}: {name}" for symbols, name in laws if symbols and symbols != name) or "none",
        "verdicts": [(level, levels.count(level), meaning) for level, meaning in _VERDICT_WORDS.items()],
        "motions": missing_motions(ident.verdicts),
        "findings": _findings(ident),
        "choices": [
            *ident.signals.get("why", ()),
            *ident.solver.get("notes", ()),
            f"standard errors: {ident.fit.covariance_kind}",
        ],
        "origin": _origin(ident),
        "versions": versions(),
    }


def _facts(ident: Identification, levels: Sequence[str]) -> list[tuple[str, str]]:
    """The figures at the top of the page; levels: verdict on each standard parameter."""
    fit, left = ident.fit, f", {len(ident.left_out)} left out" if ident.left_out else ""
    return [
        ("logs", f"{len(ident.inputs)} for the fit, {len(ident.validation)} held out{left}"),
        ("equations", f"{fit.rows:,} at {number(ident.signals['decimate'])} Hz".replace(",", " ")),
        ("cut-off", f"{number(ident.signals['cutoff'])} Hz"),
        ("parameters", f"{len(ident.theta)} standard, {len(fit.base)} base"),
        ("not identified", f"{levels.count(LOST)} of {len(levels)}, {levels.count(COMBINATION)} only in combination"),
        ("condition number", number(fit.condition, 3)),
        ("estimator", fit.method.upper()),
    ]


def _bodies(ident: Identification) -> list[dict[str, Any]]:
    """Mass, centre of mass and consistency of every body, beside the URDF's."""
    return [
        {
            "name": name,
            "mass": with_error(ident.bodies[k, 0], ident.posterior_std[10 * k]),
            "verdict": ident.verdicts[10 * k].level,
            "mass_before": ident.prior_bodies[k, 0],
            "guessed": bool(ident.prior.guessed[k]),
            "com": _com(ident.bodies[k]),
            "com_before": _com(ident.prior_bodies[k]),
            "share": ident.bodies_from_data[k].mean(),
            "eigenvalue": assessed.margins.min_eigenvalue,
            "consistent": assessed.consistent,
            "words": assessed.words,
        }
        for k, (name, assessed) in enumerate(ident.consistency.per_body.items())
    ]


def _findings(ident: Identification) -> list[dict[str, str]]:
    """Findings about the logs, most severe first; those that are the same in several logs are one row."""
    left_out = [(("left out", log.why), log.name) for log in ident.left_out]
    of_logs = [((finding.severity, finding.line()), log.name) for log in ident.inputs for finding in log.findings]
    rows = [
        {"log": ", ".join(dict.fromkeys(logs)), "severity": severity, "words": words}
        for (severity, words), logs in grouped([*left_out, *of_logs]).items()
    ]
    order = {"left out": 0, "refused": 1, "warning": 2}
    return sorted(rows, key=lambda row: order.get(row["severity"], 3))


def _origin(ident: Identification) -> list[tuple[str, str]]:
    drive, joints, units = ident.model.drive, ident.model.robot.joints, ident.project.log.units
    gains, ratios = (
        ", ".join(f"{joint} {value:.5g}" for joint, value in zip(joints, values, strict=True))
        for values in (drive.gain, drive.ratio)
    )
    of_logs = ", ".join(f"{name}: {unit if isinstance(unit, str) else ' '.join(unit)}" for name, unit in units.items())
    return [
        ("torque or force per unit of effort", f"{gains} ({drive.gain_origin})"),
        *([("gear ratios", ratios)] if (drive.ratio != 1).any() else []),
        ("units of the logs", of_logs or "SI (rad or m, s, N·m or N)"),
    ]


def number(value: float, digits: int = 4) -> str:
    """Formats a number for readers; ``digits``: significant ones, 0 for a whole number; value: any unit."""
    if not np.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "–"
    return (f"{value:.{digits}g}" if digits else f"{round(value)}").replace("-", "−")


def _errors(ident: Identification) -> list[dict[str, Any]]:
    """Errors per joint over all held-out logs (RMS over logs), of the identified model and of the original URDF."""
    if not ident.validation:
        return []
    errors, rows = errors_of_joints(ident.validation), []
    for j, joint in enumerate(ident.model.robot.joints):
        entries = [entry["per_joint"][j] for entry in ident.validation]
        row: dict[str, Any] = {"joint": joint, "unit": torque_unit(ident, j), **{key: each[j] for key, each in errors.items()}}
        adapted = [entry["adapted"]["per_joint"][j]["rmse"] for entry in ident.validation if "adapted" in entry]
        row["adapted"] = rms(adapted) if len(adapted) == len(entries) else None
        moving = [error["moving_rmse"] for error in entries if error["moving_rmse"] > 0]  # 0: the joint rests in this log
        row["moving"] = rms(moving) if moving else float("nan")
        row["relative"] = row["rmse"] / positive(row["rms_torque"])
        rows.append(row)
    return rows


def _com(theta: Array) -> str:
    if theta[0] <= 0:
        return "–"
    return ", ".join(f"{round(1000 * x, 1) + 0.0:.1f}".replace("-", "−") for x in to_com(theta)[1])
