"""Reading and writing files: whole or not at all, never over what was read, with errors that name the remedy.

A command reads and writes between :func:`inputs_protected`'s two ends: what was read there may not be written there, under
whatever name (links included). Several files that belong together are written as a
:class:`.fileset.FileSet`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from . import sizes
from .errors import MissingFileError, OutputError

#: Called with the name of every step that changes the disk, before it is taken; tests stop the program there.
on_step: Callable[[str], None] = lambda _step: None  # noqa: E731
#: How long a pipe is waited for that nobody has opened for writing yet [s].
PATIENCE = 3.0
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes:
        what: What it is (``"URDF"``, ``"log"``).
        path: As it was named.
        sha256: Of its bytes; None where it was not read through this module.
    """

    what: str
    path: str
    sha256: str | None = None


@dataclass
class _Inputs:
    read: dict[tuple[int, int], Source] = field(default_factory=dict)


_inputs: ContextVar[_Inputs | None] = ContextVar("inputs", default=None)


@contextmanager
def inputs_protected() -> Iterator[None]:
    """Inside, no file that was read can be written.

    Yields:
        Nothing.
    """
    token = _inputs.set(_Inputs())
    try:
        yield
    finally:
        _inputs.reset(token)


def note_input(path: str | Path, what: str, digest: str | None = None) -> None:
    """Remembers that a file is an input, for those that are read by other libraries.

    Args:
        path: The file; a folder's files are inputs as well.
        what: What it is (``"log"``).
        digest: Its sha256, where it is known.
    """
    inputs = _inputs.get()
    if inputs is None:
        return
    with suppress(OSError, ValueError):  # a name with a null byte is a ValueError
        about = os.stat(path)
        inputs.read[about.st_dev, about.st_ino] = Source(what, str(path), digest)
        if stat.S_ISDIR(about.st_mode):
            for item in sorted(Path(path).iterdir()):
                if not item.is_dir():
                    note_input(item, what)


def sources() -> tuple[Source, ...]:
    """What was read so far inside :func:`inputs_protected`; empty outside."""
    inputs = _inputs.get()
    return () if inputs is None else tuple(inputs.read.values())


def read_bytes(path: str | Path, what: str = "file") -> bytes:
    """Reads a file.

    Args:
        what: What it is, for the message and the largest size (``"URDF"``, ``"log"``).

    Returns:
        Its bytes.

    Raises:
        MissingFileError: It does not exist, is a folder or a device, is too large, or may not be read.
    """
    most = sizes.LARGEST.get(what, sizes.LARGEST_FILE)
    with _readable(path, what), open(path, "rb", opener=_at_once) as stream:
        about = os.fstat(stream.fileno())
        kind = stat.S_IFMT(about.st_mode)
        if kind in (stat.S_IFCHR, stat.S_IFBLK):
            raise MissingFileError(f"{what} cannot be read (it is {_KINDS[kind]})", where=str(path))
        data = _read_at_most(stream, most) if about.st_size <= most else None
        end = time.monotonic() + PATIENCE
        while kind == stat.S_IFIFO and data == b"" and time.monotonic() < end:
            time.sleep(0.02)
            data = _read_at_most(stream, most)
        if kind == stat.S_IFIFO and data == b"":
            raise MissingFileError(
                f"{what} cannot be read (it is a pipe that nothing writes to)",
                where=str(path),
                remedy="save it in a file first",
            )
    if data is None:
        raise MissingFileError(f"{what} is too large", where=str(path), expected=f"at most {most / 2**20:g} MB")
    if _inputs.get() is not None:
        note_input(path, what, hashlib.sha256(data).hexdigest())
    return data


def _at_once(path: str, flags: int) -> int:
    """Opens a file, should it be a pipe, without waiting until somebody opens its other end; reading from it waits as usual."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(handle, True)
    return handle


def _read_at_most(stream: BinaryIO, most: int) -> bytes | None:
    """All bytes of a stream that may have no end; None if there are more."""
    parts, length = [], 0
    while part := stream.read(2**24):
        parts.append(part)
        length += len(part)
        if length > most:
            return None
    return b"".join(parts)


@contextmanager
def _readable(path: str | Path, what: str) -> Iterator[None]:
    """Says in one line why a file cannot be read.

    Raises:
        MissingFileError: It does not exist, or may not be read.
    """
    try:
        yield
    except MissingFileError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{what} not found", where=str(path), remedy="check the path") from error
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingFileError(f"{what} cannot be read ({reason})", where=repr(str(path))[1:-1]) from error


@contextmanager
def read_stream(path: str | Path, what: str = "file") -> Iterator[BinaryIO]:
    """Opens a file for reading.

    Args:
        what: What it is, for the message.

    Yields:
        The open file.

    Raises:
        MissingFileError: It does not exist, is a folder, or may not be read.
    """
    with _readable(path, what):
        kind = stat.S_IFMT(os.stat(path).st_mode)
        if kind in _KINDS and kind != stat.S_IFDIR:  # read more than once, so a pipe will not do
            raise MissingFileError(
                f"{what} cannot be read (it is {_KINDS[kind]})", where=str(path), remedy="save it in a file first"
            )
        stream = open(path, "rb")  # noqa: SIM115 - closed below; only opening it may fail in these words
    note_input(path, what)
    with stream:
        yield stream


def read_text(path: str | Path, what: str = "file") -> str:
    """Reads a UTF-8 text file with its line ends as they are.

    Args:
        what: What it is, for the message.

    Returns:
        Its text.

    Raises:
        MissingFileError: It does not exist, may not be read, or is not text.
    """
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{what} is not UTF-8 text (byte {error.start})"
        raise MissingFileError(problem, where=str(path), remedy="save it in that encoding") from error


def stamp(path: str | Path) -> tuple[int, ...]:
    """What changes when a file is written or replaced: device, inode, size and time of the last change.

    Args:
        path: A file, or a folder with files; its folders are not looked into.

    Returns:
        Four numbers a file; none where it does not exist.
    """
    found: list[int] = []
    with suppress(OSError, ValueError):
        about = os.stat(path)
        for item in sorted(Path(path).iterdir()) if stat.S_ISDIR(about.st_mode) else ():
            found += () if item.is_dir() else stamp(item)
        if not found:
            found = [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns]
    return tuple(found)


def check_output(path: str | Path) -> Path:
    """Refuses an output that would destroy something: an input of this run, or what is not a regular file.

    Args:
        path: The file that will be written.

    Returns:
        The same, with a link at its end followed, so that the link stays one.

    Raises:
        OutputError: It is an input by whatever name, a folder, a device, a pipe, or read-only.
    """
    target = Path(path)
    try:
        if target.is_symlink():
            target = target.resolve()
        about = target.stat()
    except FileNotFoundError:
        return target
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise unwritable(path, getattr(error, "strerror", None) or str(error)) from error
    kind = stat.S_IFMT(about.st_mode)
    if kind != stat.S_IFREG:
        raise unwritable(path, f"is {_KINDS.get(kind, 'not a regular file')}")
    inputs = _inputs.get()
    source = None if inputs is None else inputs.read.get((about.st_dev, about.st_ino))
    if source is not None:
        raise OutputError(
            f"is an input of this command (the {source.what} {source.path}) and would be overwritten",
            where=str(path),
            remedy="name another output",
        )
    if not os.access(target, os.W_OK):
        raise unwritable(path, "is read-only")
    return target


def write_text(path: str | Path, text: str) -> Path:
    """Writes a UTF-8 text file whole or not at all.

    Args:
        path: The file; missing parent folders are made.
        text: Its content, line ends kept.

    Returns:
        The path written.

    Raises:
        OutputError: The folder or the file cannot be written, or holds an input of this command.
    """
    try:
        return write_bytes(path, text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise unwritable(path, "its text holds half a character") from error


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Writes a file whole or not at all (a temporary file in the same folder, then a rename).

    Args:
        path: The file; missing parent folders are made.
        data: Its content.

    Returns:
        The path written.

    Raises:
        OutputError: The folder or the file cannot be written, or holds an input of this command.
    """
    temporary: str | None = None
    try:
        target = check_output(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        on_step("open")
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        with os.fdopen(handle, "wb") as stream:
            for start in range(0, max(len(data), 1), 2**16):
                on_step("write")
                stream.write(data[start : start + 2**16])
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode_of(target))
        on_step("rename")
        os.replace(temporary, target)
        temporary = None
    except OutputError:
        raise
    except (OSError, ValueError) as error:
        raise unwritable(path, getattr(error, "strerror", None) or str(error)) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
    return Path(path)


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
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputError(
            f"output folder cannot be written ({reason})", where=repr(str(path))[1:-1], remedy="choose another folder with -o"
        ) from error
    return path


def unwritable(path: str | Path, reason: str) -> OutputError:
    """The error of an output that cannot be written.

    Args:
        path: The file or folder.
        reason: Why, in the system's words.

    Returns:
        The error, to be raised.
    """
    return OutputError(
        f"cannot be written ({reason})", where=repr(str(path))[1:-1], remedy="choose another output or free this one"
    )


def mode_of(target: Path) -> int:
    """Permissions that a file keeps when it is replaced, or gets when it is new.

    Returns:
        The bits.
    """
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
