"""Reading and writing files: whole or not at all, never over what was read, with errors that name the remedy.

A command reads and writes between :func:`inputs_protected`'s two ends: what was read there may not be written there, under
whatever name (links included). Several files that belong together are written as a :class:`FileSet`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from . import sizes
from .errors import MissingFileError, OutputError

#: Called with the name of every step that changes the disk, before it is taken; tests stop the program there.
on_step: Callable[[str], None] = lambda _step: None  # noqa: E731
#: Complete sets wait under this name for their last renames, unfinished ones under names that begin with the other.
_COMPLETE, _UNFINISHED = ".urdf-ident-complete", ".urdf-ident-unfinished-"
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
    with suppress(OSError):
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
        path: The file.
        what: What it is, for the message and the largest size (``"URDF"``, ``"log"``).

    Returns:
        Its bytes.

    Raises:
        MissingFileError: It does not exist, is a folder or a device, is too large, or may not be read.
    """
    most = sizes.LARGEST.get(what, sizes.LARGEST_FILE)
    try:
        with open(path, "rb") as stream:
            about = os.fstat(stream.fileno())
            kind = stat.S_IFMT(about.st_mode)
            if kind in (stat.S_IFCHR, stat.S_IFBLK):
                raise MissingFileError(f"{what} cannot be read (it is {_KINDS[kind]})", where=str(path))
            data = _read_at_most(stream, most) if about.st_size <= most else None
    except MissingFileError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{what} not found", where=str(path), remedy="check the path") from error
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingFileError(f"{what} cannot be read ({reason})", where=repr(str(path))[1:-1]) from error
    if data is None:
        raise MissingFileError(f"{what} is too large", where=str(path), expected=f"at most {most / 2**20:g} MB")
    if _inputs.get() is not None:
        note_input(path, what, hashlib.sha256(data).hexdigest())
    return data


def _read_at_most(stream: BinaryIO, most: int) -> bytes | None:
    """All bytes of a stream that may have no end; None if there are more."""
    parts, length = [], 0
    while part := stream.read(2**24):
        parts.append(part)
        length += len(part)
        if length > most:
            return None
    return b"".join(parts)


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
        raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from error
    kind = stat.S_IFMT(about.st_mode)
    if kind != stat.S_IFREG:
        raise _unwritable(path, f"is {_KINDS.get(kind, 'not a regular file')}")
    inputs = _inputs.get()
    source = None if inputs is None else inputs.read.get((about.st_dev, about.st_ino))
    if source is not None:
        raise OutputError(
            f"is an input of this command (the {source.what} {source.path}) and would be overwritten",
            where=str(path), remedy="name another output",
        )  # fmt: skip
    if not os.access(target, os.W_OK):
        raise _unwritable(path, "is read-only")
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
        raise _unwritable(path, "its text holds half a character") from error


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
        os.chmod(temporary, (target.stat().st_mode & 0o777) if target.exists() else 0o666 & ~_umask())
        on_step("rename")
        os.replace(temporary, target)
        temporary = None
    except OutputError:
        raise
    except (OSError, ValueError) as error:
        raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
    return Path(path)


class FileSet:
    """Files of one folder that belong together: all new or all old, whatever stops the program.

    They are written to a folder beside their places, made complete by one rename, and then moved to their places, ``last``
    after all others. What a kill leaves between that rename and the last move is finished by whoever opens the folder next
    (:func:`finish`); what it leaves before is removed by the next writer.

    ```python
    with FileSet(folder, last="identification.json") as files:
        write_urdf(ident, files.path("robot.urdf"))
        ident.save(files.path("identification.json"))
    ```

    Args:
        folder: Where the files go; made if missing.
        last: The file that says the set is there.

    Raises:
        OutputError: The folder cannot be written.
    """

    def __init__(self, folder: str | Path, last: str) -> None:
        self.folder, self.last = check_writable(folder), last
        self._stage: Path | None = None
        self._lock: int | None = None

    def path(self, name: str) -> Path:
        """Where to write a file of the set now.

        Args:
            name: Its name in the folder; may hold subfolders.

        Returns:
            A path in the folder of unfinished files.

        Raises:
            OutputError: Its place holds an input of this command, or no regular file.
        """
        check_output(self.folder / name)
        if self._stage is None:
            raise OutputError("this set of files is not open", where=str(self.folder))
        return self._stage / name

    def __enter__(self) -> FileSet:
        try:
            on_step("stage")
            with _locked(self.folder):
                _finish(self.folder, self.last)
                _remove_abandoned(self.folder)
                self._stage = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
                self._lock = _hold(self._stage)
        except OSError as error:
            raise _unwritable(self.folder, str(error.strerror)) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stage = self._stage
        if stage is None:
            return
        try:
            if kind is None:
                self._commit(stage)
            elif isinstance(error, OutputError) and error.where is not None and error.where.startswith(str(stage)):
                place = self.folder / Path(error.where).relative_to(stage)  # the place that the user knows
                raise OutputError(error.what, where=str(place), remedy=error.remedy) from error
        except OutputError:
            raise
        except OSError as problem:
            raise _unwritable(self.folder, str(problem.strerror)) from problem
        finally:
            if self._lock is not None:
                os.close(self._lock)
            shutil.rmtree(stage, ignore_errors=True)
            self._stage = self._lock = None

    def _commit(self, stage: Path) -> None:
        for path in _files_below(stage):
            check_output(self.folder / path)
            old = self.folder / path
            os.chmod(stage / path, (old.stat().st_mode & 0o777) if old.exists() else 0o666 & ~_umask())
        with _locked(self.folder):
            _finish(self.folder, self.last)
            _sync(stage)
            on_step("complete")
            os.rename(stage, self.folder / _COMPLETE)
            _sync(self.folder)
            _finish(self.folder, self.last)


def finish(folder: str | Path, last: str) -> None:
    """Moves the files of a set that was complete when its writer was stopped to their places.

    Args:
        folder: The folder of the set; nothing is done where no set waits, or it is not ours to write.
        last: The file that is moved after all others.
    """
    if (Path(folder) / _COMPLETE).is_dir():
        with suppress(OSError), _locked(Path(folder)):
            _finish(Path(folder), last)


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


def _finish(folder: Path, last: str) -> None:
    waiting = folder / _COMPLETE
    if not waiting.is_dir():
        return
    for path in sorted(_files_below(waiting), key=lambda item: (str(item) == last, str(item))):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        on_step("move")
        place = folder / path
        os.replace(waiting / path, place.resolve() if place.is_symlink() else place)
    on_step("done")
    shutil.rmtree(waiting)
    _sync(folder)


def _files_below(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())


def _remove_abandoned(folder: Path) -> None:
    """Unfinished sets whose writer is gone: nobody holds their lock."""
    for path in folder.glob(f"{_UNFINISHED}*"):
        handle = _hold(path, wait=False)
        if handle is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time moves files in a folder."""
    handle = _hold(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _hold(folder: Path, wait: bool = True) -> int | None:
    """A lock on a folder that ends with the process; None where another holds it, or where folders cannot be locked."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle


def _sync(folder: Path) -> None:
    """Puts names on the disk, where the system can do that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        with suppress(OSError):
            os.fsync(handle)
        os.close(handle)


def _unwritable(path: str | Path, reason: str) -> OutputError:
    return OutputError(
        f"cannot be written ({reason})", where=repr(str(path))[1:-1], remedy="choose another output or free this one"
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
