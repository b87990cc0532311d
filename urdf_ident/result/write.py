"""Writes a result: identification.json, with all that `export` and `validate` need, and the formats of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EstimationError, FingerprintError
from ..export import mjcf, sdf, sidecar, urdf
from ..export.mjcf_patch import patched_mjcf
from ..files.documents import plain
from ..files.fileset import FileSet
from ..files.read_write import read_bytes, read_text, sources, write_text
from ..model.description import read_description, root_tag
from ..model.inertia import transform
from ..model.payload import moving_link
from ..model.robot import Robot
from ..provenance import sha256, versions
from .checks import seal
from .dynamics import armature, equivalent_friction, springs
from .payload import PayloadResult
from .record import Record
from .scores import FILE, write_series
from .verdict import verdict_of

SCHEMA = "urdf-ident/1"
#: Sections that hold fields of :class:`.Record` under their names; some are empty.
FIELDS = (
    *("inputs", "left_out", "signals", "solver", "estimation", "selection", "essential", "evidence", "cross_validation"),
    *("prediction", "adaptation", "simpler_models", "black_box", "validation", "residual", "compensation"),
)
#: Largest relative difference between an intended inertial parameter and that of the written URDF.
_SAME = 1e-6


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
            "essential": None if ident.essential is None else len(ident.essential.names),
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
    fit, essential, intervals = ident.fit, ident.essential, ident.fit.conf_int()
    return [
        {
            "name": label,
            "terms": [{"parameter": name, "coefficient": coefficient} for name, coefficient in fit.base.terms(row)],
            "value": fit.params[row],
            "std_error": fit.bse[row],
            "rel_std_percent": fit.relative_percent[row],
            "interval": intervals[row],
            "essential": None if essential is None else label in essential.names,
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


def write_urdf(ident: Record, path: str | Path) -> tuple[str, ...]:
    """Writes the corrected URDF, with viscous and Coulomb friction as ``damping`` and ``friction``.

    Args:
        ident: The result.
        path: The file.

    Returns:
        Notes on further changes.

    Raises:
        OutputError: The file cannot be written.
    """
    text, notes = _corrected(ident, path)
    write_text(path, text)
    return notes


def _corrected(ident: Record, where: str | Path | None = None) -> tuple[str, tuple[str, ...]]:
    """The text of the corrected URDF, and notes on further changes."""
    robot, inertial = ident.model.robot, ident.theta[: ident.model.n_inertial]
    damping, friction, replaced = equivalent_friction(ident)
    text, notes = urdf.urdf_text(robot, inertial, damping=damping, friction=friction, repair=True, where=where)
    return text, (*notes, *replaced)


def write_mjcf(ident: Record, path: str | Path) -> tuple[str, ...]:
    """Writes a MuJoCo model with damping, frictionloss and armature; of a robot that was read from MJCF, that file corrected.

    Args:
        ident: The result.
        path: The file.

    Returns:
        Notes on further changes.

    Raises:
        OutputError: The file cannot be written.
    """
    robot, inertial = ident.model.robot, ident.theta[: ident.model.n_inertial]
    terms = _mjcf_terms(ident)
    source = Path(robot.path)
    there = source.is_file()
    is_mjcf = root_tag(read_text(source)) == "mujoco" if there else source.suffix.lower() in (".xml", ".mjcf")
    if is_mjcf and there and read_description(source)[0] == robot.urdf:
        text, notes = patched_mjcf(source, robot, inertial, terms, Path(path).parent)
        write_text(path, text)
        return notes
    lost = (f"{source} {'has changed' if there else 'is not there'}: a new model of its bodies was written",) if is_mjcf else ()
    return (*lost, *mjcf.write_mjcf(path, robot, inertial, **terms, repair=True))


def write_sdf(ident: Record, path: str | Path) -> tuple[str, ...]:
    """Writes the robot as SDFormat (Gazebo, Drake), with viscous and Coulomb friction.

    Args:
        ident: The result.
        path: The file.

    Returns:
        Notes on further changes, and on what SDFormat does not support.

    Raises:
        OutputError: The file cannot be written.
        UrdfError: A joint type is not supported by SDFormat.
    """
    text, notes = _corrected(ident)
    rotor = ("SDFormat cannot hold rotor inertia: see joints.yaml",) if any(armature(ident).values()) else ()
    translated, more = sdf.sdf_text(text, ident.model.robot.path)
    write_text(path, translated)
    return (*notes, *more, *rotor)


def write_sidecar(ident: Record, path: str | Path) -> Path:
    """Writes what a URDF cannot represent as YAML.

    Args:
        ident: The result.
        path: The file.

    Returns:
        The path written.

    Raises:
        OutputError: The file cannot be written.
    """
    known = []
    for row in ident.parameters[ident.model.n_inertial :]:  # with a standard error only if the data determine it
        error = {"std_error": float(row.std_error)} if np.isfinite(row.std_error) else {}
        ends = [float(row.low), float(row.high)]
        known.append({**error, **({"interval": ends} if np.isfinite(ends).all() else {}), "verdict": row.verdict})
    return sidecar.write_sidecar(path, ident.model, ident.theta, known=known, elasticity=plain(springs(ident)))


def write_all(ident: Record, folder: str | Path) -> list[str]:
    """Writes the corrected URDF, joints.yaml, the series for plots and, last, identification.json."""
    urdf_name, sidecar_name, series_name, json_name = result_names(ident.model.robot)
    with FileSet(folder, last=json_name) as files:
        notes = write_urdf(ident, files.path(urdf_name))
        written = [Path(urdf_name), write_sidecar(ident, files.path(sidecar_name))]
        if ident.traces.logs:
            written.append(write_series(ident.traces, files.path(series_name), ident.theta))
        written.append(save(ident, files.path(json_name)))
    return [*notes, *(f"wrote {Path(folder) / path.name}" for path in written)]


def result_names(robot: Robot) -> tuple[str, str, str, str]:
    """The file names of a result: corrected URDF, side-car, series for plots, and the JSON, which is written last."""
    return f"{_stem(robot)}_identified.urdf", "joints.yaml", FILE, "identification.json"


def _stem(robot: Robot) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in robot.name)[:80]


def check_source(ident: Record) -> None:
    """Raises if the source URDF has been edited since: the values would belong to another robot."""
    source = Path(ident.model.robot.path)
    if source.is_file() and ident.model.robot.sha256 not in (
        sha256(read_bytes(source, "URDF")),
        sha256(read_description(source)[0].encode()),
    ):
        raise FingerprintError(
            "the URDF has changed since the identification",
            where=str(source),
            remedy="identify again, or give --force to write the embedded, older URDF corrected",
        )


def write_payload(ident: Record, body: PayloadResult, path: str | Path) -> list[str]:
    """Writes a payload as JSON and, unless the logs show none, the robot with it beside the JSON."""
    saved = f"wrote {body.save(path)}"
    if not body.shown:
        return [saved, "no URDF, MJCF or set_payload: these logs show no body"]
    robot, out, name = ident.model.robot, Path(path).parent, _stem(ident.model.robot)
    bare, notes = _corrected(ident)
    text, link = urdf.mounted_urdf(bare, body.link, body.theta, where=robot.path)
    heavy = robot.of_urdf(text)
    theta, wanted = heavy.inertials, robot.of_urdf(bare).inertials.copy()
    carrier, frame = moving_link(robot, body.link)
    wanted[carrier] += transform(body.theta, frame.rotation, frame.translation)
    if not np.allclose(theta, wanted, rtol=_SAME, atol=_SAME * float(np.abs(wanted[carrier]).max())):
        raise EstimationError(
            "the written URDF does not hold the payload",
            where=robot.path,
            got=theta[carrier].tolist(),
            expected=wanted[carrier].tolist(),
        )
    xml, more = mjcf.mjcf_text(heavy, theta.ravel(), **_mjcf_terms(ident), repair=True)
    files = [write_text(out / f"{name}_with_payload.urdf", text), write_text(out / f"{name}_with_payload.xml", xml)]
    written = [f"wrote {file} (link '{link}' on {body.link})" for file in files]
    return [*dict.fromkeys([*notes, *more]), *written, saved]


def _mjcf_terms(ident: Record) -> dict[str, Any]:
    """Friction and rotor inertia by joint, under the names of MuJoCo."""
    damping, friction, _ = equivalent_friction(ident)
    return {"damping": damping, "frictionloss": friction, "armature": armature(ident)}
