"""Reads results from identification.json and checks them before use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LogError, UrdfIdentError
from ...estimation.uncertainty.identifiability import Identifiability
from ...files.documents import parse_json
from ...files.fileset import finish
from ...files.read_write import read_text
from ...files.records import read_fields, record
from ...model.dynamic_model import DynamicModel
from ...model.elasticity import ElasticModel
from ...model.prior import Prior
from ...project import parse_project
from ...provenance import versions
from ...statistics.fit import Fit
from ..evidence.traces import FILE, Traces, read_series
from ..identification import Identification
from .checks import RESTORE, check_file, check_values
from .save import FIELDS, SCHEMA
from .sections import Sections


def result_file(path: str | Path) -> Path:
    """The identification.json in a folder, or the file itself, whether it exists or not; ``~`` is the user's home."""
    place = Path(path).expanduser()
    return place / "identification.json" if place.is_dir() else place


def load(path: str | Path) -> Identification:
    """Reads a result; its torque is bitwise equal to that of the saved result.

    Args:
        path: An identification.json, or its folder.

    Returns:
        The result.

    Raises:
        MissingFileError: No such file.
        LogError: It is not an identification.json, has another version, is damaged (:mod:`.checks`) or was edited.
    """
    path = result_file(path)
    finish(path.parent, path.name)
    data = parse_json(read_text(path, "identification"), str(path), LogError, "result")
    try:
        check_file(data, SCHEMA)
        return from_dict(data, series=path.parent / FILE)
    except UrdfIdentError as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        raise LogError(
            error.what, where=where, got=error.got, expected=error.expected, remedy=error.remedy or RESTORE
        ) from error
    except KeyError as error:
        known = data.get("versions")
        theirs = known.get("urdf-ident", "unknown") if isinstance(known, Mapping) else "unknown"
        raise LogError(
            "an entry is missing: the result is damaged, or of another version",
            where=str(path),
            got=f"no {error.args[0]!r} in a result of urdf-ident {theirs}, schema {data['schema']}",
            expected=f"what urdf-ident {versions().get('urdf-ident', 'unknown')} writes",
            remedy="identify again, or read it with the version that wrote it",
        ) from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, RuntimeError) as error:
        raise LogError(
            "not an identification.json, or a damaged one",
            where=str(path),
            got=f"{type(error).__name__}: {error}"[:200],
            remedy="name the file that `urdf-ident identify` wrote",
        ) from error


def from_dict(data: Mapping[str, Any], series: Path | None = None) -> Identification:
    """Inverse of :func:`as_dict`; series: file of its series for plots, which are omitted if it does not exist."""
    kind = ElasticModel if data["model"].get("elastic") else DynamicModel
    model = kind.from_dict({**data["model"], "urdf": data["robot"]["urdf"]})
    state, parameters = data["state"], data["parameters"]
    stored = state["base"]
    base = {
        **stored,
        "names": model.names,
        "K": np.array(stored["K"], dtype=float).reshape(len(stored["independent"]), len(stored["dependent"])),
        "rank_gap": data["rank_gap"],
        "ill_conditioned": stored["ill_conditioned"],
        "units": [entry["unit"] for entry in parameters["standard"]],
    }
    params = [entry["value"] for entry in parameters["base"]]
    covariance, changes = data["covariance"]["matrix"], data["friction_changes"]
    fitted = {"base": base, "params": params, "covariance": covariance, "condition": data["condition"], "changes": changes}
    fit = record(Fit, {**state["fit"], **fitted, "covariance_kind": data["covariance"]["kind"]})
    theta = np.array([entry["value"] for entry in parameters["standard"]], dtype=float)
    fields = read_fields(Identification, data, FIELDS)
    fields |= read_fields(Sections, fields, (name for name in Sections.__annotations__ if fields[name]))  # some may be empty
    ident = Identification(
        model,
        fit,
        theta,
        record(Prior, state["prior"]),
        np.array(state["factor"], dtype=float),
        np.array(state["baseline"], dtype=float),
        project=parse_project(data["config"], "config"),
        traces=Traces() if series is None else read_series(series, theta),
        **fields,
    )
    terms = [{term["parameter"]: term["coefficient"] for term in entry["terms"]} for entry in parameters["base"]]
    check_values(ident, terms, consistent=data["consistency"].get("consistent") is not False)
    # as stored, because computing them takes seconds
    vars(ident)["verdicts"] = tuple(map(Identifiability.from_dict, parameters["standard"]))
    return ident
