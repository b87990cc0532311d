"""Output folders: made with the first file that is written to them, and checked before a long computation."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from ..errors import OutputError


def check_writable(folder: str | Path) -> Path:
    """Checks that an output folder can be made and written, before a long computation starts; leaves no folder behind."""
    with writable_folder(folder):
        return Path(folder)


@contextmanager
def writable_folder(folder: str | Path) -> Iterator[None]:
    """:func:`made_folder`, checked to be writable.

    Raises:
        OutputError: It is a file, cannot be made, or is read-only.
    """
    path = Path(folder)
    with ExitStack() as opened:
        try:
            if file := next((place for place in (path, *path.parents) if place.exists() and not place.is_dir()), None):
                raise FileExistsError(errno.EEXIST, "a file has this name", str(file))
            opened.enter_context(made_folder(path))
            with tempfile.NamedTemporaryFile(dir=path):
                pass
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            where = repr(str(error.filename if isinstance(error, FileExistsError) else path))[1:-1]
            remedy = "choose another folder with -o"
            raise OutputError(f"output folder cannot be written ({reason})", where=where, remedy=remedy) from error
        yield


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Context with a folder, made with its missing parents; of those, the ones still empty at its end are removed."""
    missing = list(takewhile(lambda place: not place.exists(), [folder, *folder.parents]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for place in missing:
            with suppress(OSError):
                place.rmdir()
