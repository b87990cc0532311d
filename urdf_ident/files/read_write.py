"""Reading and writing files: atomic writes that never overwrite an input, and errors that name the remedy.

Inside :func:`inputs_protected` a file that was read cannot be written, under any name (links included). Files that belong
together are written as a :class:`.fileset.FileSet`. Paths on the command line come from the user. A path inside a URDF, a
world, a mesh, a log or a data set comes from whoever wrote that file, and may lead to other files of this computer: it passes
:func:`allowed`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import BinaryIO

from ..errors import MissingFileError, OutputError, closest
from ..quoting import printable
from . import sizes

#: Called with the name of every step that changes the disk, before the step; tests interrupt the program there.
on_step: Callable[[str], None] = lambda _step: None  # noqa: E731
#: Time to wait for a pipe that no process has opened for writing yet [s].
PATIENCE = 3.0
#: Number of names in a folder that a missing one is compared with.
_NAMES_COMPARED = 1000
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
        what: Kind of file (``"URDF"``, ``"log"``).
        sha256: Hash of its bytes; None if it was not read through this module.
    """

    what: str
    path: str
    sha256: str | None = None


@dataclass
class _Inputs:
    read: dict[tuple[int, int], Source] = field(default_factory=dict)
    written: list[Path] = field(default_factory=list)


_inputs: ContextVar[_Inputs | None] = ContextVar("inputs", default=None)


@contextmanager
def inputs_protected() -> Iterator[None]:
    """Context in which a file that was read cannot be written."""
    token = _inputs.set(_Inputs())
    try:
        yield
    finally:
        _inputs.reset(token)


def note_input(path: str | Path, what: str, digest: str | None = None) -> None:
    """Registers a file as an input, for files that other libraries read.

    Args:
        path: The file; the files of a folder are inputs as well.
        what: Kind of file (``"log"``).
        digest: Its SHA-256, if known.
    """
    inputs = _inputs.get()
    if inputs is None:
        return
    with suppress(OSError, ValueError):  # a name with a null byte is a ValueError
        about = os.stat(path)
        inputs.read[about.st_dev, about.st_ino] = Source(what, printable(str(path)), digest)
        if stat.S_ISDIR(about.st_mode):
            for inner in sorted(Path(path).iterdir()):
                if not inner.is_dir():
                    note_input(inner, what)


def sources() -> tuple[Source, ...]:
    """The files read so far inside :func:`inputs_protected`; empty outside."""
    inputs = _inputs.get()
    return () if inputs is None else tuple(inputs.read.values())


def note_output(path: Path) -> None:
    """Registers a file that was written."""
    inputs = _inputs.get()
    if inputs is not None:
        inputs.written.append(path)


def outputs() -> tuple[Path, ...]:
    """The files written so far inside :func:`inputs_protected`; empty outside."""
    inputs = _inputs.get()
    return () if inputs is None else tuple(path for path in dict.fromkeys(inputs.written) if path.is_file())


def read_bytes(path: str | Path, what: str = "file") -> bytes:
    """Reads a file.

    Args:
        what: Kind of file (``"URDF"``, ``"log"``), for the message and the largest accepted size.

    Raises:
        MissingFileError: The file does not exist, is a folder or a device, is too large, or cannot be read.
    """
    most = sizes.LARGEST.get(what, sizes.LARGEST_FILE)
    with _readable(path, what), open(path, "rb", opener=_open_without_waiting) as stream:
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


def _open_without_waiting(path: str, flags: int) -> int:
    """Opens a file without waiting for the writer if it is a pipe; reading then blocks as usual."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(handle, True)
    return handle


def _read_at_most(stream: BinaryIO, most: int) -> bytes | None:
    """All bytes of a stream, or None if there are more than ``most``."""
    parts, length = [], 0
    while part := stream.read(2**24):
        parts.append(part)
        length += len(part)
        if length > most:
            return None
    return b"".join(parts)


@contextmanager
def _readable(path: str | Path, what: str) -> Iterator[None]:
    """Turns the system's errors into a one-line MissingFileError that says why a file cannot be read."""
    try:
        yield
    except MissingFileError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{what} not found", where=str(path), remedy=missing_hint(path)) from error
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingFileError(f"{what} cannot be read ({reason})", where=repr(str(path))[1:-1]) from error


def missing_hint(path: str | Path, names: Iterable[str] | None = None) -> str:
    """What to do about a missing file: the most similar of its folder's ``names`` (all if None), or which folder is missing."""
    folder = Path(path).parent
    if str(path) == "-":
        return "standard input is not read: save it in a file and name that file"
    if not folder.is_dir():
        return f"the folder {folder} does not exist"
    if names is None:
        names = [entry.name for entry in islice(os.scandir(folder), _NAMES_COMPARED) if entry.is_file()]
    known = list(names)
    stem = closest(Path(path).stem, {Path(name).stem for name in known})
    alike = [name for name in known if Path(name).stem == stem]
    return f"did you mean '{closest(Path(path).name, alike, alike=0.0)}'?" if alike else "check the path"


@contextmanager
def read_stream(path: str | Path, what: str) -> Iterator[BinaryIO]:
    """Opens a file for reading."""
    with _readable(path, what):
        kind = stat.S_IFMT(os.stat(path).st_mode)
        if kind in _KINDS and kind != stat.S_IFDIR:  # the file is read more than once, which a pipe does not allow
            raise MissingFileError(
                f"{what} cannot be read (it is {_KINDS[kind]})", where=str(path), remedy="save it in a file first"
            )
        stream = open(path, "rb")  # noqa: SIM115 - closed below; only errors of opening are converted
    note_input(path, what)
    with stream:
        yield stream


def read_text(path: str | Path, what: str = "file") -> str:
    """Reads a UTF-8 text file; line ends are kept."""
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{what} is not UTF-8 text (byte {error.start})"
        raise MissingFileError(problem, where=str(path), remedy="save it in that encoding") from error


def stamp(path: str | Path) -> tuple[int, ...]:
    """Device, inode, size and time of a file, or of the files in a folder, which change when it is written; empty if none."""
    identity: list[int] = []
    with suppress(OSError, ValueError):
        about = os.stat(path)
        for inner in sorted(Path(path).iterdir()) if stat.S_ISDIR(about.st_mode) else ():
            identity += () if inner.is_dir() else stamp(inner)
        if not identity:
            identity = [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns]
    return tuple(identity)


def check_output(path: str | Path) -> Path:
    """Refuses an output that would overwrite an input of this run, or is no regular file; resolves a final link, which is kept.

    Raises:
        OutputError: It is an input (under any name), a folder, a device, a pipe, or read-only.
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
    """Writes a UTF-8 text file atomically; line ends are kept, half a character (of a file name) becomes its escape."""
    return write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Writes a file atomically (a temporary file in the same folder, then a rename).

    Args:
        path: The file; missing parent folders are created.

    Raises:
        OutputError: The folder or the file cannot be written, or the file is an input of this command.
    """
    target = check_output(path)
    try:
        with made_folder(target.parent):
            on_step("open")
            handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
            try:
                with os.fdopen(handle, "wb") as stream:
                    for start in range(0, max(len(data), 1), 2**16):
                        on_step("write")
                        stream.write(data[start : start + 2**16])
                    stream.flush()
                    os.fsync(stream.fileno())
                os.chmod(temporary, mode_of(target))
                on_step("rename")
                os.replace(temporary, target)
            finally:
                with suppress(OSError):  # it has been moved
                    os.unlink(temporary)
    except (OSError, ValueError) as error:
        raise unwritable(path, getattr(error, "strerror", None) or str(error)) from error
    note_output(Path(path))
    return Path(path)


def unwritable(path: str | Path, reason: str) -> OutputError:
    """Error for an output that cannot be written."""
    return OutputError(
        f"cannot be written ({reason})", where=repr(str(path))[1:-1], remedy="choose another output or free this one"
    )


def mode_of(target: Path) -> int:
    """Permissions of an existing file, or the default ones of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


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
            raise OutputError(
                f"output folder cannot be written ({reason})", where=where, remedy="choose another folder with -o"
            ) from error
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
