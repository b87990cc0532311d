"""Reading and writing text files: whole or not at all, with errors that name the remedy."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import MissingFileError, OutputError


def read_bytes(path: str | Path, what: str = "file") -> bytes:
    """Reads a file.

    Args:
        path: The file.
        what: What it is, for the message (``"URDF"``, ``"log"``).

    Returns:
        Its bytes.

    Raises:
        MissingFileError: It does not exist, is a folder, or may not be read.
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise MissingFileError(f"{what} not found", where=str(path), remedy="check the path") from error
    except OSError as error:
        raise MissingFileError(f"{what} cannot be read ({error.strerror})", where=str(path)) from error


def read_text(path: str | Path, what: str = "file") -> str:
    """Reads a UTF-8 text file with its line ends as they are.

    Args:
        path: The file.
        what: What it is, for the message.

    Returns:
        Its text.

    Raises:
        MissingFileError: It does not exist, may not be read, or is not text.
    """
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MissingFileError(f"{what} is not UTF-8 text (byte {error.start})", where=str(path)) from error


def write_text(path: str | Path, text: str) -> Path:
    """Writes a UTF-8 text file whole or not at all (a temporary file in the same folder, then a rename).

    Args:
        path: The file; missing parent folders are made.
        text: Its content, line ends kept.

    Returns:
        The path written.

    Raises:
        OutputError: The folder or the file cannot be written.
    """
    target, data = Path(path), text.encode("utf-8")
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir() or (target.exists() and not os.access(target, os.W_OK)):
            raise PermissionError(13, "is a folder" if target.is_dir() else "is read-only")
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, (target.stat().st_mode & 0o777) if target.exists() else 0o644 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise OutputError(
            f"cannot be written ({error.strerror})", where=str(path), remedy="choose another output or free this one"
        ) from error
    return target


def check_writable(folder: str | Path) -> Path:
    """Makes an output folder and proves that files can be written there, before long work starts.

    Args:
        folder: The output folder.

    Returns:
        Its path.

    Raises:
        OutputError: It is a file, cannot be made, or is read-only.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(
            f"output folder cannot be written ({error.strerror})", where=str(path), remedy="choose another folder with -o"
        ) from error
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
