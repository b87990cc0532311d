"""The result of an identification: :class:`.record.Record` with dynamics, intervals, tables, plots and text; and its reading.

Results are read from identification.json and checked before use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LogError, ProjectError, UrdfIdentError
from ..estimation.uncertainty.identifiability import Identifiability
from ..files.documents import parse_json, plain, read_fields, record
from ..files.fileset import finish
from ..files.read_write import read_text
from ..judgements.judgement import Verdict
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.prior import Prior
from ..project import Project, parse_project
from ..provenance import versions
from ..statistics.fit import Fit
from . import dynamics, intervals
from .checks import RESTORE, check_file, check_values
from .dynamics import adaptive_model
from .record import Record
from .scores import FILE, Traces, read_series
from .sections import Sections
from .summary import brief, details, html
from .verdict import verdict_of
from .write import FIELDS, SCHEMA
from .write import save as save_result

if TYPE_CHECKING:
    from .plots.plots import Plots


@dataclass(frozen=True, eq=False)
class Identification(Record):
    """What :func:`urdf_ident.identify` returns; :meth:`torque` is the identified inverse dynamics.

    The methods without a body here are the functions of :mod:`.dynamics`, :mod:`.intervals` and :mod:`.write`.
    """

    adaptive = adaptive_model
    torque_interval = intervals.torque_interval
    torque_prediction_interval = intervals.torque_prediction_interval
    mass_matrix_interval = intervals.mass_matrix_interval
    mass_matrix = intervals.mass_matrix
    gravity = dynamics.gravity
    coriolis = dynamics.coriolis
    friction = dynamics.friction
    forward = dynamics.forward
    to_pinocchio = dynamics.to_pinocchio
    save = save_result

    def to_frame(self) -> Any:
        """Returns the standard parameters with units, errors and intervals as a table: :meth:`.Parameters.to_frame`."""
        return self.parameters.to_frame()

    @property
    def plot(self) -> Plots:
        """Plots as matplotlib axes: ``ident.plot.torque()``, ``.friction()``, ``.parameters()`` (:mod:`.plots.plots`)."""
        from .plots.plots import Plots

        return Plots(self)

    def with_layout(self, project: Project) -> Identification:
        """Returns the result for further logs in another layout than those that it comes from.

        Args:
            project: Its sections ``log`` and ``drive`` say how these logs are read; other sections are those of the result, and
                so are torque constants that it found, for efforts in the same unit.

        Raises:
            ProjectError: It lists other joints, or the same in another order, which the lists of a layout follow.
            ModelError: Its drive does not fit the robot.
        """
        robot, joints = self.model.robot, project.robot.joints
        if joints is not None and tuple(joints) != robot.order:
            raise ProjectError(
                "robot.joints differs from that of the result",
                got=", ".join(joints),
                expected=", ".join(robot.order),
                remedy="list its joints in this order, which is that of the layout's lists",
            )
        drive, layouts = self.model.drive, (project, self.project)
        if "drive" in project.model_fields_set:
            known, drive = drive, project.build_drive(robot)
            left_open = all(one.drive.gain in (None, "auto") for one in layouts)
            if left_open and project.log.units.get("effort") == self.project.log.units.get("effort"):  # found in its own logs
                constants = ("gain", "gain_origin", "gain_error", "effort_unit")
                drive = replace(drive, **{name: getattr(known, name) for name in constants})
        sections: dict[str, Any] = {
            name: getattr(project, name) for name in ("log", "drive") if name in project.model_fields_set
        }
        return replace(self, model=self.model.with_drive(drive), project=self.project.model_copy(update=sections))

    @cached_property
    def verdict(self) -> Verdict:
        """How far the result can be trusted, and why (:mod:`.verdict`)."""
        return verdict_of(self)

    def summary(self, *, verbose: bool = False) -> str:
        """Text in at most 24 lines; verbose: everything, with choices, tables, advice (:mod:`.summary`)."""
        return details(self) if verbose else brief(self)

    def as_dict(self) -> dict[str, Any]:
        """What programs need first; everything else is in identification.json (:meth:`save`)."""
        shown = ("verdict", "inputs", "left_out", "cross_validation", "validation")
        return dict(plain({name: getattr(self, name) for name in shown}))

    def __repr__(self) -> str:
        robot, fit = self.model.robot, self.fit
        return (
            f"<Identification of {robot.name}: {self.verdict.level}; {robot.n} joints, {len(fit.base)} base parameters from "
            f"{len(self.inputs)} log(s)>\n  .summary() .verdict .to_frame() .fit .plot .torque(q, v, a) .save(path)"
        )

    def _repr_html_(self) -> str:
        return html(self)


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
    fields = read_fields(
        Identification, data, [name for name in FIELDS if data[name] != {}]
    )  # which are left at their defaults
    fields |= read_fields(Sections, fields, (name for name in Sections.__annotations__ if fields.get(name)))
    ident = Identification(
        model,
        fit,
        theta,
        record(Prior, state["prior"]),
        np.array(state["factor"], dtype=float),
        np.array(state["baseline"], dtype=float),
        project=parse_project(data["config"], "config"),
        traces=Traces() if series is None else read_series(series, theta),
        stored_verdicts=tuple(map(Identifiability.from_dict, parameters["standard"])),
        **fields,
    )
    terms = [{term["parameter"]: term["coefficient"] for term in entry["terms"]} for entry in parameters["base"]]
    check_values(ident, terms, consistent=data["consistency"].get("consistent") is not False)
    return ident
