"""Storage of samples in memory-mapped files of a scratch folder, so that logs may be larger than the memory.

The operating system keeps the pages in use in memory and evicts them when memory is short. A stored array is sent to
another process as its location in the file, not as numbers.
"""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError
from .messages import SentOnce

#: Size of a file shared by several arrays, and of the smallest array that is stored [bytes].
_FILE, _WORTH = 1 << 26, 1 << 12
#: Alignment of arrays in a file [bytes].
_ALIGNED = 64


class _Store:
    """Files of one process in the scratch folder; a file is deleted when no array uses it any more.

    Args:
        folder: The scratch folder.
        foreign: Whether another process uses the files, which are then kept until the folder is deleted.
    """

    def __init__(self, folder: str, foreign: bool = False) -> None:
        self.folder, self.foreign = folder, foreign
        self.whole: np.memmap[Any, Any] | None = None
        self.path, self.used = "", 0

    def empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array in a file whose blocks are allocated now, so that a full disk is an error here and not a crash later."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        try:
            if self.whole is None or self.used + size > self.whole.size:
                self._begin_file(max(size, _FILE))
            begin, self.used = self.used, self.used + -(-size // _ALIGNED) * _ALIGNED
            if hasattr(os, "posix_fallocate"):
                with open(self.path, "r+b") as file:
                    os.posix_fallocate(file.fileno(), begin, size)
        except OSError as error:
            raise OutputError(
                f"the scratch folder cannot be used ({error.strerror})",
                where=self.folder,
                got=f"{size / 1e6:.3g} MB more",
                remedy="name a folder on a disk with more room",
            ) from error
        return np.ndarray(shape, dtype, self.whole, begin)

    def _begin_file(self, size: int) -> None:
        handle, path = tempfile.mkstemp(".samples", dir=self.folder)
        os.close(handle)
        self.whole, self.path, self.used = np.memmap(path, np.uint8, "w+", shape=(size,)), path, 0
        _OPEN[path] = self.whole
        if not self.foreign:
            weakref.finalize(self.whole, _remove, self.path)


_STORE: ContextVar[_Store | None] = ContextVar("store", default=None)
#: Path → the mapped file, while an array uses it.
_OPEN: weakref.WeakValueDictionary[str, np.memmap[Any, Any]] = weakref.WeakValueDictionary()


def _remove(path: str) -> None:
    with suppress(OSError):
        os.remove(path)


@contextmanager
def samples_in(folder: str | Path) -> Iterator[None]:
    """Context in which samples of logs are kept in files, which are deleted at the end.

    Args:
        folder: An existing folder on a disk with room for about ten times the logs as text.

    Raises:
        OutputError: The folder cannot be written to.
    """
    try:
        own = tempfile.TemporaryDirectory(prefix="urdf-ident-", dir=folder, ignore_cleanup_errors=True)
    except OSError as error:
        raise OutputError(
            f"the scratch folder cannot be used ({error.strerror})",
            where=str(folder),
            remedy="name a folder that can be written",
        ) from error
    with own as name:
        token = _STORE.set(_Store(name))
        try:
            yield
        finally:
            _STORE.reset(token)


def scratch_folder() -> str | None:
    """The folder in which samples are kept; None: in memory."""
    store = _STORE.get()
    return None if store is None else store.folder


def use_scratch_folder(folder: str | None) -> None:
    """Makes a worker process use the scratch folder of the process that it works for.

    Args:
        folder: The :func:`scratch_folder` of that process.
    """
    _STORE.set(None if folder is None else _Store(folder, foreign=True))


def empty_array(shape: tuple[int, ...], dtype: Any = float) -> NDArray[Any]:
    """An uninitialised array for samples, in the scratch folder if there is one.

    Args:
        shape: Its shape.

    Raises:
        OutputError: The disk is full.
    """
    store = _STORE.get()
    if store is None or math.prod(shape) * np.dtype(dtype).itemsize < _WORTH:
        return np.empty(shape, dtype)
    return store.empty(shape, dtype)


def stored(array: NDArray[Any]) -> NDArray[Any]:
    """Moves a large array to the scratch folder, if there is one.

    Args:
        array: Samples of any shape; not copied if they are already stored there.

    Returns:
        The same numbers in the same shape.
    """
    if _STORE.get() is None or array.nbytes < _WORTH or _file_of(array) is not None:
        return array
    kept = empty_array(array.shape, array.dtype)
    kept[...] = array
    return kept


def _file_of(array: NDArray[Any]) -> np.memmap[Any, Any] | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return base
        base = base.base
    return None


class Stored(SentOnce):
    """Base class of records whose arrays may be stored; stored arrays are sent to other processes as locations in files."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: _Place.of(value) if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            vars(self)[name] = value.open() if isinstance(value, _Place) else value
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


class _Place:
    """Location of a stored array."""

    def __init__(self, path: str, begin: int, array: NDArray[Any]) -> None:
        self.path, self.begin = path, begin
        self.shape, self.dtype, self.strides = array.shape, array.dtype.str, array.strides

    @classmethod
    def of(cls, array: NDArray[Any]) -> Any:
        """The location of an array, or the array itself if it is in memory."""
        whole = _file_of(array)
        if whole is None or whole.filename is None:
            return array
        begin = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        return cls(str(whole.filename), begin, array)

    def open(self) -> NDArray[Any]:
        """The array, read-only."""
        whole = _OPEN.get(self.path)
        if whole is None:
            whole = _OPEN[self.path] = np.memmap(self.path, np.uint8, "r")
        array = np.ndarray(self.shape, self.dtype, whole, self.begin, self.strides)
        array.setflags(write=False)
        return array
