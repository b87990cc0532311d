"""Tables and sentences of the report, from the result alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..comparison.solutions import solutions
from ..consistency.cholesky import TABLE_TOLERANCES
from ..estimation.uncertainty.identifiability import COMBINATION, LOST, missing_motions
from ..friction import FRICTION
from ..grouping import grouped
from ..linalg import Array, positive, rms
from ..model.inertia import to_com
from ..provenance import versions
from ..result.evidence.scores import errors_of_joints
from ..result.identification import Identification
from ..result.plots.charts import torque_unit
from ..result.text.brief import overview
from ..units import with_error

_VERDICT_WORDS = {
    "identifiable": "determined by the data",
    "weak": "determined by the data, but with a standard error above 50 % of its size",
    "only in combination": "the data determine a sum that contains it; its share of the sum is the URDF's",
    "not identifiable": "the data say nothing about it; the value is the URDF's, within the physical constraints",
}


def content(ident: Identification) -> dict[str, Any]:
    """Returns the content of the report without the figures."""
    view = overview(ident)
    # drive and units with which the numbers were computed
    drive, log = ident.model.drive, ident.project.log
    gains = ", ".join(f"{joint} {gain:.5g}" for joint, gain in zip(ident.model.robot.joints, drive.gain, strict=True))
    units = ", ".join(f"{name}: {unit if isinstance(unit, str) else ' '.join(unit)}" for name, unit in log.units.items())
    ratios = ", ".join(f"{joint} {ratio:.5g}" for joint, ratio in zip(ident.model.robot.joints, drive.ratio, strict=True))
    fit, levels = ident.fit, [row.verdict for row in ident.parameters]
    logs, left = len(ident.inputs), f", {len(ident.left_out)} left out" if ident.left_out else ""
    used = {parameter.symbol for parameter in ident.model.parameters}
    laws = ((", ".join(s for s in law.symbols if s in used), law.name) for law in FRICTION.values())
    # findings about the logs, most severe first
    left_out = [(("left out", log.why), log.name) for log in ident.left_out]
    of_logs = [((finding.severity, finding.line()), log.name) for log in ident.inputs for finding in log.findings]
    rows = [
        {"log": ", ".join(dict.fromkeys(logs)), "severity": severity, "words": words}
        for (severity, words), logs in grouped([*left_out, *of_logs]).items()
    ]
    order = {"left out": 0, "refused": 1, "warning": 2}
    return {
        "ident": ident,
        "view": view,
        "reasons": [reason for reason in ident.verdict.judgements[1:] if reason.level != "good"],
        "facts": [
            ("logs", f"{logs} for the fit, {len(ident.validation)} held out{left}"),
            ("equations", f"{fit.rows:,} at {number(ident.signals['decimate'])} Hz".replace(",", " ")),
            ("cut-off", f"{number(ident.signals['cutoff'])} Hz"),
            ("parameters", f"{len(ident.theta)} standard, {len(fit.base)} base"),
            ("not identified", f"{levels.count(LOST)} of {len(levels)}, {levels.count(COMBINATION)} only in combination"),
            ("condition number", number(fit.condition, 3)),
            ("estimator", fit.method.upper()),
        ],
        "errors": _errors(ident),
        "crossed": {} if ident.validation else view.errors,
        "changes": _changes(ident),
        "bodies": [
            {
                "name": entry.body,
                "mass": with_error(ident.bodies[k, 0], ident.posterior_std[10 * k]),
                "verdict": ident.verdicts[10 * k].level,
                "mass_before": ident.prior_bodies[k, 0],
                "guessed": bool(ident.prior.guessed[k]),
                "com": _com(ident.bodies[k]),
                "com_before": _com(ident.prior_bodies[k]),
                "share": ident.bodies_from_data[k].mean(),
                "eigenvalue": entry.margins.min_eigenvalue,
                "consistent": entry.consistent,
                "words": entry.words,
            }
            for k, entry in enumerate(ident.consistency.per_body)
        ],
        "solutions": solutions(ident, ident.model.robot),
        "tolerances": [abs(tolerance) for tolerance in TABLE_TOLERANCES],
        "solver": [ident.solver[name] for name in ("method", "name", "status") if name in ident.solver],
        "symbols": ("; ".join(f"{symbols}: {name}" for symbols, name in laws if symbols and symbols != name) or "none"),
        "verdicts": [(level, levels.count(level), meaning) for level, meaning in _VERDICT_WORDS.items()],
        "motions": missing_motions(ident.verdicts),
        "findings": sorted(rows, key=lambda row: order.get(row["severity"], 3)),
        "choices": [
            *ident.signals.get("why", ()),
            *ident.solver.get("notes", ()),
            f"standard errors: {ident.fit.covariance_kind}",
        ],
        "origin": [
            ("torque or force per unit of effort", f"{gains} ({drive.gain_origin})"),
            *([("gear ratios", ratios)] if (drive.ratio != 1).any() else []),
            ("units of the logs", units or "SI (rad or m, s, N·m or N)"),
        ],
        "versions": versions(),
    }


def number(value: float, digits: int = 4) -> str:
    """Formats a number for readers; ``digits``: significant ones, 0 for a whole number; value: any unit."""
    if not np.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "–"
    return (f"{value:.{digits}g}" if digits else f"{round(value)}").replace("-", "−")


def _changes(ident: Identification) -> dict[str, Any] | None:
    """Changes of friction between the logs, one row per parameter."""
    changes = ident.fit.changes
    if changes is None:
        return None
    units = {parameter.name: parameter.unit for parameter in ident.model.parameters}
    logs = range(len(changes.logs) if changes.known else 0)
    return {
        "known": changes.known,
        "logs": changes.logs if changes.known else (),
        "rows": [
            {
                "name": name,
                "unit": units[name],
                "mean": with_error(changes.mean[k], changes.next_log_error[k]),
                "spread": changes.spread[k],
                "logs": [
                    with_error(changes.deviation[i, k], changes.deviation_error[i, k]) if changes.spread[k] > 0 else "–"
                    for i in logs
                ],
                "slope": with_error(changes.slope[k], changes.slope_error[k]),
                "left": changes.left[k],
            }
            for k, name in enumerate(changes.parameters)
        ],
        "warm": bool(np.isfinite(changes.slope).any()),
    }


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
