"""The robots that are bundled with the package."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from ..errors import MissingFileError, nearest

_PACKAGE = "urdf_ident_robots"


@cache
def _folder() -> Path:
    """Returns ``robots`` of a source checkout, else the installed data package."""
    checkout = Path(__file__).resolve().parents[2] / "robots"
    if (checkout / "README.md").is_file() and (checkout / "ur10e.urdf").is_file():
        return checkout
    try:
        return Path(str(resources.files(_PACKAGE)))
    except ModuleNotFoundError as error:
        raise MissingFileError(
            f"the bundled robots (package '{_PACKAGE}') are not installed", remedy="reinstall with `pip install urdf-ident`"
        ) from error


def robot_names() -> tuple[str, ...]:
    """Names of the bundled robots.

    Returns:
        Sorted names, e.g. ``("emps", "generic_6axis", …)``.

    Raises:
        MissingFileError: The robots are not installed.
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.urdf")))


def robot_path(name: str) -> Path:
    """Path of a bundled robot's URDF.

    Args:
        name: Such as ``"ur10e"`` or ``"ur10e.urdf"``.

    Raises:
        MissingFileError: There is no such robot; the message names the nearest one.
    """
    return _existing(name.removesuffix(".urdf"), ".urdf")


def truth_path(name: str) -> Path:
    """Path of a bundled robot's data beyond its URDF: rotor inertia, friction, gears, stiffness.

    Args:
        name: Such as ``"ur10e"``.

    Raises:
        MissingFileError: There is no such robot.
    """
    return _existing(name, "_truth.yaml")


def _existing(name: str, suffix: str) -> Path:
    path = _folder() / f"{name}{suffix}"
    if name not in robot_names() or not path.is_file():
        raise MissingFileError("no such bundled robot", got=repr(name), remedy=nearest(name, robot_names()))
    return path
