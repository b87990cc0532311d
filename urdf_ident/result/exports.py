"""A result in the formats that other programs read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..errors import FingerprintError
from ..export import mjcf, sdf, sidecar, urdf
from ..files import read_bytes, read_text
from ..fileset import FileSet
from ..model.robot import Robot
from ..provenance import sha256
from .equivalent import armature, equivalent_friction
from .file import plain, save
from .frames import ParameterRow, parameters
from .record import Record
from .springs import springs
from .traces import FILE, write_series


def write_urdf(ident: Record, path: str | Path) -> tuple[str, ...]:
    """Writes the corrected URDF, with viscous and Coulomb friction as ``damping`` and ``friction``.

    Args:
        ident: The result.
        path: The file.

    Returns:
        Notes on what was done beside writing numbers.

    Raises:
        OutputError: The file cannot be written.
    """
    robot, inertial = ident.model.robot, ident.theta[: ident.model.n_inertial]
    found = equivalent_friction(ident)
    notes = urdf.write_urdf(path, robot, inertial, damping=found.damping, friction=found.friction, repair=True)
    return (*notes, *found.notes)


def write_mjcf(ident: Record, path: str | Path) -> tuple[str, ...]:
    """Writes a MuJoCo model with damping, frictionloss and armature.

    Args:
        ident: The result.
        path: The file.

    Returns:
        Notes on what was done beside writing numbers.

    Raises:
        OutputError: The file cannot be written.
    """
    robot, inertial = ident.model.robot, ident.theta[: ident.model.n_inertial]
    found = equivalent_friction(ident)
    terms = {"damping": found.damping, "frictionloss": found.friction, "armature": armature(ident)}
    return mjcf.write_mjcf(path, robot, inertial, **terms, repair=True)


def write_sdf(ident: Record, path: str | Path) -> tuple[str, ...]:
    """Writes the robot as SDFormat (Gazebo, Drake), with viscous and Coulomb friction.

    Returns:
        Notes on what was done beside writing numbers, and on what SDFormat lacks.

    Raises:
        OutputError: The file cannot be written.
        UrdfError: A joint type that SDFormat lacks.
    """
    with TemporaryDirectory() as folder:
        corrected = Path(folder) / "corrected.urdf"
        notes = write_urdf(ident, corrected)
        text = read_text(corrected, "URDF")
    rotor = ("rotor inertia has no place in SDFormat: see joints.yaml",) if any(armature(ident).values()) else ()
    return (*notes, *sdf.write_sdf(path, text, ident.model.robot.path), *rotor)


def write_sidecar(ident: Record, path: str | Path) -> Path:
    """Writes what a URDF cannot hold as YAML.

    Args:
        ident: The result.
        path: The file.

    Returns:
        The path written.

    Raises:
        OutputError: The file cannot be written.
    """
    known = [_known(row) for row in list(parameters(ident))[ident.model.n_inertial :]]
    return sidecar.write_sidecar(path, ident.model, ident.theta, known=known, elasticity=plain(springs(ident)))


def _known(row: ParameterRow) -> dict[str, Any]:
    """How well one parameter is known, as plain data; a standard error only where the data tell one."""
    error = {"std_error": float(row.std_error)} if np.isfinite(row.std_error) else {}
    ends = [float(row.low), float(row.high)]
    return {**error, **({"interval": ends} if np.isfinite(ends).all() else {}), "verdict": row.verdict}


def write_all(ident: Record, folder: str | Path) -> list[str]:
    """Writes the corrected URDF, joints.yaml, the series for pictures, and last identification.json.

    Args:
        folder: Output folder.

    Returns:
        Lines that say what was written and done.

    Raises:
        OutputError: A file cannot be written.
    """
    urdf_name, sidecar_name, series_name, json_name = result_names(ident.model.robot)
    with FileSet(folder, last=json_name) as files:
        notes = write_urdf(ident, files.path(urdf_name))
        written = [Path(urdf_name), write_sidecar(ident, files.path(sidecar_name))]
        if ident.traces is not None:
            written.append(write_series(ident.traces, files.path(series_name), ident.theta))
        written.append(save(ident, files.path(json_name)))
    return [*notes, *(f"wrote {Path(folder) / path.name}" for path in written)]


def result_names(robot: Robot) -> tuple[str, str, str, str]:
    """What the files of a result are called.

    Returns:
        The corrected URDF, the side-car, the series for pictures, and the JSON, which is written last.
    """
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in robot.name)[:80]
    return f"{name}_identified.urdf", "joints.yaml", FILE, "identification.json"


def check_source(ident: Record) -> None:
    """Refuses when the source URDF was edited since: the numbers would belong to another robot.

    Raises:
        FingerprintError: The file is there and differs from the embedded one.
    """
    source = Path(ident.model.robot.path)
    if source.is_file() and ident.model.robot.sha256 not in (
        sha256(read_bytes(source, "URDF")),
        sha256(read_text(source).encode()),
    ):
        raise FingerprintError(
            "the URDF has changed since the identification",
            where=str(source),
            remedy="identify again, or give --force to write the embedded, older URDF corrected",
        )
