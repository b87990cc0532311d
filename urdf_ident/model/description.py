"""Reads a robot description of any known format as a URDF."""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path
from xml.parsers import expat

from ..errors import UrdfError
from ..files.read_write import read_text
from .mjcf import urdf_of_mjcf
from .sdf import urdf_of_sdf
from .urdf import canonical_urdf

#: Beginning of a file in which its root element is looked for [characters].
_HEAD = 1 << 16


def read_description(source: str | Path) -> tuple[str, str, tuple[str, ...]]:
    """Reads a robot description: URDF; MJCF, SDFormat and xacro (where its package is installed) are converted.

    Args:
        source: Path of the file, or its XML text.

    Returns:
        The URDF, its origin for messages, and notes on what was read otherwise than written.

    Raises:
        MissingExtraError: The package that reads the format is not installed.
        UrdfError: The file cannot be read.
    """
    is_text = isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<")
    path = Path() if is_text else Path(source).expanduser()
    text = str(source) if is_text else read_text(path, "URDF")
    where = "URDF" if is_text else str(path)
    notes: tuple[str, ...] = ()
    kind = root_tag(text)
    if kind == "mujoco":
        text, notes = urdf_of_mjcf(text if is_text else path)
    elif kind == "sdf":
        text = urdf_of_sdf(text, where)
    elif "<xacro:" in text and not is_text and importlib.util.find_spec("xacro") is not None:
        text = _expanded(path)
    text, rewritten = canonical_urdf(text, where)
    return text, where, notes + rewritten


def root_tag(text: str) -> str:
    """Name of the root element of an XML text; empty if it does not begin with one, or with a DOCTYPE."""
    parser, tags = expat.ParserCreate("utf-8"), list[str]()

    def refuse(*_: object) -> None:
        raise UrdfError("a DOCTYPE is refused")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, _: tags.append(tag)
    with suppress(expat.ExpatError, UrdfError):
        parser.Parse(text[:_HEAD].lstrip("\ufeff \t\r\n").encode("utf-8", "replace"), False)
    return tags[0] if tags else ""


def _expanded(path: Path) -> str:
    """The URDF that a xacro file stands for."""
    import xacro

    try:
        return str(xacro.process_file(str(path)).toxml())
    except Exception as error:  # xacro evaluates Python expressions, which raise anything
        got = " ".join(str(error).split())[:200]
        remedy = "run `xacro FILE NAME:=VALUE > robot.urdf` if it needs arguments or a ROS package"
        raise UrdfError("xacro does not expand the file", where=str(path), got=got, remedy=remedy) from error
