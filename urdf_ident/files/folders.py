"""Output folders: created with the first file that is written to them, and checked before a long computation."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from ..errors import OutputError


def check_writable(folder: str | Path) -> Path:
    """Checks that an output folder can be created and written, before a long computation starts; leaves no folder behind."""
    remove_empty(make_writable(folder))
    return Path(folder)


def make_writable(folder: str | Path) -> list[Path]:
    """Creates an output folder and its missing parents, and checks that it is writable.

    Returns:
        The folders that were created, innermost first.

    Raises:
        OutputError: It is a file, cannot be created, or is read-only.
    """
    path = Path(folder)
    made: list[Path] = []
    if file := next((place for place in (path, *path.parents) if place.exists() and not place.is_dir()), None):
        raise OutputError(
            "output folder cannot be written (a file has this name)", where=str(file), remedy="choose another folder with -o"
        )
    try:
        made = make_folder(path)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        remove_empty(made)
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputError(
            f"output folder cannot be written ({reason})", where=repr(str(path))[1:-1], remedy="choose another folder with -o"
        ) from error
    return made


def make_folder(folder: Path) -> list[Path]:
    """Creates a folder and its missing parents, and returns those that were created, innermost first."""
    missing = list(takewhile(lambda place: not place.exists(), [folder, *folder.parents]))
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: Sequence[Path]) -> None:
    """Removes those folders, innermost first, that nothing was written to."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
