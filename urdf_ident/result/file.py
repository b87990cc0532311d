"""identification.json: the result with everything that ``export`` and ``validate`` need, moved anywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..compensation.residual import Residual
from ..documents import parse_json
from ..errors import LogError, UrdfIdentError, check_shape
from ..estimation.uncertainty.identifiability import Verdict
from ..files import read_text, sources, write_text
from ..fileset import finish
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.prior import Prior
from ..project import parse_project
from ..provenance import versions
from ..statistics.changes import FrictionChanges
from ..statistics.fit import Fit
from .checks import check_result, seal
from .evidence import Evidence
from .identification import Identification
from .springs import springs
from .traces import FILE, read_series

SCHEMA = "urdf-ident/1"


def save(ident: Identification, path: str | Path) -> Path:
    """Writes a result as JSON (docs/reference.md), whole or not at all.

    Args:
        ident: The result.
        path: The file.

    Returns:
        The path written.

    Raises:
        OutputError: It cannot be written.
    """
    data = plain(as_dict(ident))
    data["seal"] = seal(data)
    return write_text(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def load(path: str | Path) -> Identification:
    """Reads a result; its torque equals the saved one's to the last bit.

    Args:
        path: An identification.json.

    Returns:
        The result.

    Raises:
        MissingFileError: No such file.
        LogError: It is not an identification.json, of another version, damaged (:mod:`.checks`) or edited.
    """
    finish(Path(path).parent, Path(path).name)
    data = parse_json(read_text(path, "identification"), str(path), LogError, "result")
    try:
        check_result(data, SCHEMA)
        return from_dict(data, series=Path(path).parent / FILE)
    except UrdfIdentError as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        raise LogError(error.what, where=where, got=error.got, expected=error.expected, remedy=error.remedy) from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, RuntimeError) as error:
        raise LogError(
            "not an identification.json, or a damaged one", where=str(path), got=f"{type(error).__name__}: {error}"[:200],
            remedy="name the file that `urdf-ident identify` wrote",
        ) from error  # fmt: skip


def as_dict(ident: Identification) -> dict[str, Any]:
    """The content of identification.json.

    Args:
        ident: The result.

    Returns:
        Nested plain data (arrays are still arrays; :func:`plain` turns them into lists).
    """
    robot, fit = ident.model.robot, ident.fit
    model = ident.model.as_dict()
    model.pop("urdf")
    essential = len(ident.essential["names"]) if ident.essential else None
    return {
        "schema": SCHEMA,
        "verdict": ident.verdict.as_dict(),
        "robot": {"name": robot.name, "sha256": robot.sha256, "path": robot.path, "urdf": robot.urdf},
        "inputs": list(ident.inputs),
        "sources": [{"what": item.what, "path": item.path, "sha256": item.sha256} for item in sources()],
        "joints": list(robot.joints),
        "parameters": {"base": _base_entries(fit, ident.essential.get("names")), "standard": _standard_entries(ident)},
        "links": {name: link.theta for name, link in robot.description.links.items() if link.theta is not None},
        "bodies": {
            body.name: {"joint": body.joint, "links": [link.name for link in body.links], "theta": theta}
            for body, theta in zip(robot.bodies, ident.bodies, strict=True)
        },
        "friction": _friction(ident),
        "elasticity": springs(ident),
        "drive": ident.model.drive.as_dict(),
        "signals": dict(ident.signals),
        "weights": fit.weights,
        "covariance": {"kind": fit.covariance_kind, "matrix": fit.covariance},
        "counts": {"standard": len(ident.theta), "base": len(fit.base), "essential": essential, "samples": fit.rows},
        "condition": fit.condition,
        "rank_gap": fit.base.rank_gap,
        "solver": dict(ident.solver),
        "consistency": ident.consistency.as_dict(),
        "cross_validation": dict(ident.cross_validation),
        "validation": [dict(item) for item in ident.validation],
        "selection": dict(ident.selection),
        "essential": dict(ident.essential),
        "prediction": dict(ident.prediction),
        "evidence": None if ident.evidence is None else ident.evidence.as_dict(),
        "friction_changes": None if fit.changes is None else fit.changes.as_dict(),
        "adaptation": dict(ident.adaptation),
        "estimation": dict(ident.estimation),
        "compensation": dict(ident.compensation),
        "residual": None if ident.residual is None else ident.residual.as_dict(),
        "config": dict(ident.config),
        "versions": versions(),
        "model": model,
        "state": {
            "base": {key: getattr(fit.base, key) for key in ("independent", "dependent", "zero", "K")}
            | {"blurred": fit.base.ill_conditioned},
            "fit": {key: getattr(fit, key) for key in ("seen", "sigma", "rows", "dof", "method", "row_weights", "error_dof")},
            "prior": {
                key: getattr(ident.prior, key)
                for key in ("theta0", "root", "origin", "notes", "spread", "relative_std", "mass_std")
            },
            "factor": ident.factor,
            "baseline": ident.baseline,
        },
    }


def from_dict(data: Mapping[str, Any], series: Path | None = None) -> Identification:
    """Inverse of :func:`as_dict`.

    Args:
        data: Nested plain data.
        series: The file of its series for pictures; without them if None, or if there is no such file.

    Returns:
        The result.

    Raises:
        KeyError: An entry is missing.
        ShapeError: Entries do not fit each other.
    """
    parse_project(data["config"], "config")
    model = DynamicModel.from_dict({**data["model"], "urdf": data["robot"]["urdf"]})
    state, stored = data["state"], data["state"]["base"]
    index = {key: np.array(stored[key], dtype=np.intp) for key in ("independent", "dependent", "zero")}
    K = np.array(stored["K"], dtype=float).reshape(len(index["independent"]), len(index["dependent"]))
    ill_conditioned = np.array(stored.get("blurred", ()), dtype=np.intp)
    base = BaseParameters(model.names, K=K, rank_gap=float(data["rank_gap"]), ill_conditioned=ill_conditioned, **index)
    fit = Fit(
        base,
        np.array([entry["value"] for entry in data["parameters"]["base"]], dtype=float),
        _array(data["covariance"]["matrix"]),
        np.array(state["fit"]["seen"], dtype=bool),
        state["fit"]["sigma"],
        state["fit"]["rows"],
        state["fit"]["dof"],
        float(data["condition"]),
        state["fit"]["method"],
        data["covariance"]["kind"],
        state["fit"].get("row_weights", {}),
        None if state["fit"].get("error_dof") is None else _array(state["fit"]["error_dof"]),
        None if data.get("friction_changes") is None else FrictionChanges.from_dict(data["friction_changes"]),
    )
    p, b = len(model.names), len(base)
    check_shape("parameters.base", fit.params.shape, (b,))
    check_shape("covariance.matrix", fit.covariance.shape, (b, b))
    check_shape("state.factor", np.shape(state["factor"]), ("rows", p + 1))
    check_shape("parameters.standard", (len(data["parameters"]["standard"]),), (p,))
    kept = state["prior"]
    prior = Prior(
        _array(kept["theta0"]), _array(kept["root"]), tuple(kept["origin"]), tuple(kept["notes"]),
        _array(kept["spread"]), _array(kept["relative_std"]), _array(kept["mass_std"]),
    )  # fmt: skip
    theta = np.array([entry["value"] for entry in data["parameters"]["standard"]], dtype=float)
    ident = Identification(
        model,
        fit,
        theta,
        prior,
        _array(state["factor"]),
        _array(state["baseline"]),
        solver=data["solver"],
        signals=data["signals"],
        inputs=tuple(data["inputs"]),
        cross_validation=data["cross_validation"],
        config=data["config"],
        validation=tuple(data["validation"]),
        selection=data.get("selection", {}),
        essential=data.get("essential", {}),
        prediction=data.get("prediction", {}),
        adaptation=data.get("adaptation", {}),
        estimation=data.get("estimation", {}),
        residual=None if data.get("residual") is None else Residual.from_dict(data["residual"]),
        compensation=data.get("compensation", {}),
        evidence=None if data.get("evidence") is None else Evidence.from_dict(data["evidence"]),
        traces=None if series is None else read_series(series, theta),
    )
    if all("motion" in entry for entry in data["parameters"]["standard"]):  # kept: finding them again takes seconds
        ident.__dict__["verdicts"] = tuple(Verdict.from_dict(entry) for entry in data["parameters"]["standard"])
    return ident


def plain(value: Any) -> Any:
    """Turns nested data into what JSON can hold: arrays become lists, inf and nan their names.

    Args:
        value: Nested mappings, sequences, arrays, numbers.

    Returns:
        The same as plain Python.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _array(value: Any) -> Any:
    return np.array(value, dtype=float)


def _base_entries(fit: Fit, essential: Sequence[str] | None) -> list[dict[str, Any]]:
    intervals = fit.conf_int()
    return [
        {
            "name": fit.base.labels[row],
            "terms": [{"parameter": name, "coefficient": coefficient} for name, coefficient in fit.base.terms(row)],
            "value": fit.params[row],
            "std_error": fit.bse[row],
            "rel_std_percent": fit.relative_percent[row],
            "interval": intervals[row],
            "essential": None if essential is None else fit.base.labels[row] in essential,
        }
        for row in range(len(fit.base))
    ]


def _standard_entries(ident: Identification) -> list[dict[str, Any]]:
    entries, intervals = [], ident.interval()
    for k, (parameter, verdict) in enumerate(zip(ident.model.parameters, ident.verdicts, strict=True)):
        owner = "body" if k < ident.model.n_inertial else "joint"
        entries.append(
            {
                "name": parameter.name,
                owner: parameter.owner,
                "unit": parameter.unit,
                "value": ident.theta[k],
                "prior": ident.prior.theta0[k],
                "prior_origin": ident.prior.origin[k],
                "std_error": ident.std_error[k],
                "from_data": ident.from_data[k],
                "posterior_std": ident.posterior_std[k],
                "interval": intervals[k],
                **verdict.as_dict(),
            }
        )
    return entries


def _friction(ident: Identification) -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {joint: {} for joint in ident.model.robot.joints}
    for k, parameter in enumerate(ident.model.parameters[ident.model.n_inertial :], ident.model.n_inertial):
        shapes = {key: value for key, value in ident.model.term_of(k).as_dict().items() if key != "term"}
        table[parameter.owner][parameter.symbol] = {
            "term": ident.model.term_of(k).name, "value": ident.theta[k], "unit": parameter.unit, **shapes,
        }  # fmt: skip
    return table
