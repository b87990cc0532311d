"""Logs at addresses (``s3://bucket/run.parquet``, ``https://…``): found, and copied while they are read, through fsspec."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from ...errors import LogError, MissingExtraError, MissingFileError, UrdfIdentError
from .formats import logs_among

#: Pairs (quantity, path or address).
Files = tuple[tuple[str, str], ...]


def is_address(path: str | Path) -> bool:
    """Whether a log is given by an address, and not by a path."""
    return "://" in str(path)


def file_name(address: str) -> str:
    """The name of the file at an address.

    Args:
        address: Of a file; what a web address holds after its path is left out.

    Returns:
        The name with its suffix.
    """
    return PurePosixPath(address.split("?")[0] if _of_web(address) else address).name


def _of_web(address: str) -> bool:
    """Whether a question mark begins a query, as in a signed link, and stands for no letter."""
    return address.startswith(("http://", "https://"))


def logs_at(address: str) -> list[str]:
    """The logs that an address stands for.

    Args:
        address: A file, a folder (every log in it, as in one on a disk), or a glob.

    Returns:
        Their addresses, sorted.

    Raises:
        MissingExtraError: fsspec, or what it needs for this kind of address, is not installed.
        MissingFileError: There is no log, or it cannot be reached.
    """
    with _reached(address) as (system, path):
        if any(mark in path for mark in ("*[" if _of_web(address) else "*?[")):
            found = _files(system.glob(path, detail=True).values())
        elif system.isdir(path):
            found = logs_among(_files(system.ls(path, detail=True)))
        else:
            found = _files([system.info(path)])
        if not found:
            remedy = "check the address and the rights to read it"
            raise MissingFileError("no log is at this address", where=address, remedy=remedy)
        return sorted(str(system.unstrip_protocol(item)) for item in found)


def _files(listed: Iterable[dict[str, Any]]) -> list[str]:
    """The files of a listing, which says of each what it is: asking for each by itself is a request each."""
    return [item["name"] for item in listed if item["type"] == "file"]


@contextmanager
def at_hand(files: Files) -> Iterator[Files]:
    """A log's files on a disk of this machine, for as long as they are read.

    Args:
        files: Where they are.

    Yields:
        The same, or copies of what is at addresses.

    Raises:
        MissingExtraError, MissingFileError: As for :func:`logs_at`.
        LogError: It changed while it was copied.
    """
    if not any(is_address(path) for _, path in files):
        yield files
        return
    with tempfile.TemporaryDirectory() as folder:
        copies = {address: _copied(address, Path(folder)) for _, address in files}
        try:
            yield tuple((quantity, copies[address]) for quantity, address in files)
        except UrdfIdentError as error:  # the copy is gone when its name is read
            for address, copy in copies.items():
                error.args = tuple(str(text).replace(copy, address) for text in error.args)
                error.where = error.where and error.where.replace(copy, address)
            raise


def _copied(address: str, folder: Path) -> str:
    """The file of a copy, with the same name."""
    with _reached(address) as (system, path):
        before = system.checksum(path)
        near = folder / file_name(address)
        system.get_file(path, str(near))
        system.invalidate_cache()
        if system.checksum(path) != before:
            remedy = "wait until it is written, or read a copy"
            raise LogError("the log changed while it was read", where=address, remedy=remedy)
        return str(near)


@contextmanager
def _reached(address: str) -> Iterator[tuple[Any, str]]:
    """The file system of an address and the path in it; says in one line why it cannot be used."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError(
            f"a log at an address needs fsspec ({address})", remedy="pip install 'urdf-ident[remote]'"
        ) from error
    try:
        yield fsspec.core.url_to_fs(address)
    except UrdfIdentError:
        raise
    except ImportError as error:
        raise MissingExtraError(f"{address} cannot be read ({error})", remedy="install what the message names") from error
    except FileNotFoundError as error:
        raise MissingFileError("log not found", where=address, remedy="check the address") from error
    except Exception as error:  # every kind of store has errors of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        remedy = "check the address and the rights to read it"
        raise MissingFileError(f"the log cannot be read ({reason})", where=address, remedy=remedy) from error
