"""Whether a file may be opened that another file names.

Paths on the command line come from the user. A path inside a URDF, a world, a mesh, a log or a data set comes from
whoever wrote that file, and may lead to other files of this computer: it passes :func:`allowed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def allowed(path: str | Path, folders: Iterable[str | Path]) -> Path | None:
    """Finds a regular file that lies in one of the folders it may be read from.

    Args:
        path: The file as another file names it.
        folders: The folders; those inside them are included.

    Returns:
        The file with all links followed, which is what has to be opened; None if it lies elsewhere, is missing, or is no
        regular file.
    """
    try:
        whole = Path(path).resolve()
        inside = any(whole.is_relative_to(Path(folder).resolve()) for folder in folders)
        return whole if inside and whole.is_file() else None
    except (OSError, ValueError, RuntimeError):  # a null byte, a name that is too long, a loop of links
        return None
