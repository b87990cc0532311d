"""Writes identification.json: the result with everything that ``export`` and ``validate`` need, in one portable file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...files.read_write import sources, write_text
from ...files.records import plain
from ...provenance import versions
from ..dynamics.springs import springs
from ..record import Record
from ..verdict.verdict import verdict_of
from .checks import seal

SCHEMA = "urdf-ident/1"
#: Sections that hold fields of :class:`.Record` under their names; some are empty.
FIELDS = (
    *("inputs", "left_out", "signals", "solver", "estimation", "selection", "essential", "evidence", "cross_validation"),
    *("prediction", "adaptation", "simpler_models", "black_box", "validation", "residual", "compensation"),
)


def save(ident: Record, path: str | Path) -> Path:
    """Writes a result as JSON (docs/reference.md), atomically.

    Raises:
        OutputError: It cannot be written.
    """
    data = plain(as_dict(ident))
    data["seal"] = seal(data)
    return write_text(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def as_dict(ident: Record) -> dict[str, Any]:
    """Returns the content of identification.json."""
    robot, fit = ident.model.robot, ident.fit
    model = ident.model.as_dict()
    model.pop("urdf")
    return {
        "schema": SCHEMA,
        "verdict": verdict_of(ident),
        "robot": {"name": robot.name, "sha256": robot.sha256, "path": robot.path, "urdf": robot.urdf},
        **{name: getattr(ident, name) for name in FIELDS},
        "sources": [{"what": entry.what, "path": entry.path, "sha256": entry.sha256} for entry in sources()],
        "joints": list(robot.joints),
        "parameters": {"base": _base_rows(ident), "standard": _standard_rows(ident)},
        "links": {name: link.theta for name, link in robot.description.links.items() if link.theta is not None},
        "bodies": {
            body.name: {"joint": body.joint, "links": [link.name for link in body.links], "theta": theta}
            for body, theta in zip(robot.bodies, ident.bodies, strict=True)
        },
        "friction": _friction(ident),
        "elasticity": springs(ident),
        "drive": ident.model.drive,
        "weights": fit.weights,
        "covariance": {"kind": fit.covariance_kind, "matrix": fit.covariance},
        "counts": {
            "standard": len(ident.theta),
            "base": len(fit.base),
            "essential": len(ident.essential["names"]) if ident.essential else None,
            "samples": fit.rows,
        },
        "condition": fit.condition,
        "rank_gap": fit.base.rank_gap,
        "consistency": ident.consistency,
        "friction_changes": fit.changes,
        "config": ident.project.model_dump(),
        "versions": versions(),
        "model": model,
        "state": {  # what a result needs to compute with, beside what is shown
            "base": {key: getattr(fit.base, key) for key in ("independent", "dependent", "zero", "K", "ill_conditioned")},
            "fit": {key: getattr(fit, key) for key in ("seen", "sigma", "rows", "dof", "method", "row_weights", "error_dof")},
            "prior": ident.prior,
            "factor": ident.factor,
            "baseline": ident.baseline,
        },
    }


def _base_rows(ident: Record) -> list[dict[str, Any]]:
    """The base parameters, with the standard ones that they combine."""
    fit, essential, intervals = ident.fit, ident.essential.get("names"), ident.fit.conf_int()
    return [
        {
            "name": label,
            "terms": [{"parameter": name, "coefficient": coefficient} for name, coefficient in fit.base.terms(row)],
            "value": fit.params[row],
            "std_error": fit.bse[row],
            "rel_std_percent": fit.relative_percent[row],
            "interval": intervals[row],
            "essential": None if essential is None else label in essential,
        }
        for row, label in enumerate(fit.base.labels)
    ]


def _standard_rows(ident: Record) -> list[dict[str, Any]]:
    """The standard parameters with their prior, errors and verdicts."""
    return [
        {
            "name": row.name,
            "body" if k < ident.model.n_inertial else "joint": row.owner,
            "unit": row.unit,
            "value": row.value,
            "prior": row.prior,
            "prior_origin": ident.prior.origin[k],
            "std_error": row.std_error,
            "from_data": row.from_data,
            "posterior_std": ident.posterior_std[k],
            "interval": [row.low, row.high],
            **verdict.as_dict(),
        }
        for k, (row, verdict) in enumerate(zip(ident.parameters, ident.verdicts, strict=True))
    ]


def _friction(ident: Record) -> dict[str, dict[str, Any]]:
    """Joint → symbol → term, value, unit and shapes of its law."""
    friction: dict[str, dict[str, Any]] = {joint: {} for joint in ident.model.robot.joints}
    for k, parameter in enumerate(ident.model.parameters[ident.model.n_inertial :], ident.model.n_inertial):
        term = ident.model.term_of(k)
        shapes = {key: value for key, value in term.as_dict().items() if key != "term"}
        entry = {"term": term.name, "value": ident.theta[k], "unit": parameter.unit, **shapes}
        friction[parameter.owner][parameter.symbol] = entry
    return friction
