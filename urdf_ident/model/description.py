"""Reads a robot description of any known format as a URDF."""

from __future__ import annotations

import re
from pathlib import Path

from ..files.read_write import read_text
from .mjcf import urdf_of_mjcf
from .urdf import canonical_urdf

#: The root element of a document, behind its declaration and comments.
_ROOT = re.compile(r"(?:<\?.*?\?>|<!--.*?-->|<![^>]*>|\s|\ufeff)*<([^\s/>]+)", re.DOTALL)

#: Suffixes of MuJoCo models.
MJCF = (".xml", ".mjcf")


def read_description(source: str | Path) -> tuple[str, str, tuple[str, ...]]:
    """Reads a robot description: URDF, or MJCF, which is converted.

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
    if is_mjcf(text):
        text, notes = urdf_of_mjcf(text if is_text else path)
    text, rewritten = canonical_urdf(text, where)
    return text, where, notes + rewritten


def is_mjcf(text: str) -> bool:
    """Whether a text is a MuJoCo model."""
    root = _ROOT.match(text)
    return root is not None and root[1] == "mujoco"
