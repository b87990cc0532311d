"""Atomic writing of files that belong together: a reader finds all old or all new ones."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

from ..errors import OutputError
from . import read_write
from .read_write import check_output, mode_of, unwritable, writable_folder

#: Folder of a complete set until its files are moved, and name prefix of the folder of an unfinished set.
_COMPLETE, _UNFINISHED = ".urdf-ident-complete", ".urdf-ident-unfinished-"


class FileSet:
    """A set of files in one folder that are all new or all old, even if the program is killed.

    The files are written to a temporary folder inside ``folder``, marked complete by one rename, and then moved to their
    places, ``last`` at the end. If the program is killed between the rename and the last move, the next reader or writer
    completes the moves (:func:`finish`); if it is killed earlier, the next writer removes the unfinished files.

    ```python
    with FileSet(folder, last="identification.json") as files:
        write_urdf(ident, files.path("robot.urdf"))
        ident.save(files.path("identification.json"))
    ```

    Args:
        folder: Output folder; made when the set is opened, and removed again if nothing is written to it.
        last: The file whose presence marks the set as complete.

    Raises:
        OutputError: The folder cannot be written.
    """

    def __init__(self, folder: str | Path, last: str) -> None:
        self.folder, self.last = Path(folder), last
        self._stage: Path | None = None
        self._opened = ExitStack()

    def path(self, name: str) -> Path:
        """Temporary path for a file of the set.

        Args:
            name: Name in the folder; may contain subfolders.

        Raises:
            OutputError: The final path is an input of this command, or not a regular file.
        """
        check_output(self.folder / name)
        if self._stage is None:
            raise OutputError("this set of files is not open", where=str(self.folder))
        return self._stage / name

    def __enter__(self) -> FileSet:
        with ExitStack() as opened:
            opened.enter_context(writable_folder(self.folder))
            try:
                read_write.on_step("stage")
                with _locked(self.folder):
                    _finish(self.folder, self.last)
                    # removes unfinished sets whose writer has ended, so that no process holds their lock
                    for path in self.folder.glob(f"{_UNFINISHED}*"):
                        handle = _hold(path, wait=False)
                        if handle is not None:
                            shutil.rmtree(path, ignore_errors=True)
                            os.close(handle)
                    self._stage = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
                    opened.callback(shutil.rmtree, self._stage, ignore_errors=True)
                    opened.enter_context(_locked(self._stage))
            except OSError as error:
                raise unwritable(self.folder, str(error.strerror)) from error
            self._opened = opened.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stage = self._stage
        if stage is None:
            return
        try:
            if kind is None:
                self._commit(stage)
            elif isinstance(error, OutputError) and error.where is not None and error.where.startswith(str(stage)):
                place = self.folder / Path(error.where).relative_to(stage)  # the path that the user knows
                raise OutputError(error.what, where=str(place), remedy=error.remedy) from error
        except OutputError:
            raise
        except OSError as problem:
            raise unwritable(self.folder, str(problem.strerror)) from problem
        finally:
            self._stage = None
            self._opened.close()

    def _commit(self, stage: Path) -> None:
        for path in _files_below(stage):
            check_output(self.folder / path)
            os.chmod(stage / path, mode_of(self.folder / path))
        names = _files_below(stage)
        with _locked(self.folder):
            _finish(self.folder, self.last)
            _sync(stage)
            read_write.on_step("complete")
            os.rename(stage, self.folder / _COMPLETE)
            _sync(self.folder)
            _finish(self.folder, self.last)
        for name in names:
            read_write.note_output(self.folder / name)


def finish(folder: str | Path, last: str) -> None:
    """Completes the moves of a set whose writer was stopped after the set was complete, ``last`` at the end."""
    if (Path(folder) / _COMPLETE).is_dir():
        with suppress(OSError), _locked(Path(folder)):
            _finish(Path(folder), last)


def _finish(folder: Path, last: str) -> None:
    waiting = folder / _COMPLETE
    if not waiting.is_dir():
        return
    for path in sorted(_files_below(waiting), key=lambda path: (str(path) == last, str(path))):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        read_write.on_step("move")
        place = folder / path
        os.replace(waiting / path, place.resolve() if place.is_symlink() else place)
    read_write.on_step("done")
    shutil.rmtree(waiting)
    _sync(folder)


def _files_below(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Context in which no other process holds the lock of a folder."""
    handle = _hold(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _hold(folder: Path, wait: bool = True) -> int | None:
    """Locks a folder until the process ends; None if another process holds the lock or folders cannot be locked."""
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
    """Flushes a folder's directory entries to the disk (POSIX only)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        with suppress(OSError):
            os.fsync(handle)
        os.close(handle)
