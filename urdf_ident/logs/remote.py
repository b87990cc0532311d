"""Logs at addresses (``s3://bucket/run.parquet``, ``https://…``): found and temporarily copied through fsspec."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from ..errors import LogError, MissingExtraError, MissingFileError, UrdfIdentError
from .formats.choice import is_log_name, logs_among

#: Pairs (quantity, path or address).
Files = tuple[tuple[str, str], ...]
#: Waiting times before a log is copied again after a failure that may pass (connection dropped, server busy) [s].
_RETRY_AFTER = (1.0, 4.0)
#: A web server that sends nothing for this time counts as unreachable [s]. The library's own limit is five minutes for a whole
#: file, which a long log on a slow connection exceeds.
_SILENT = 60.0


def is_address(path: str | Path) -> bool:
    """Whether a log is given by an address instead of a path."""
    return "://" in str(path)


def file_name(address: str) -> str:
    """The name of the file at an address.

    Args:
        address: Address of a file; the query of a web address is ignored.
    """
    return PurePosixPath(plain(address)).name


def plain(address: str) -> str:
    """An address as it is shown.

    Returns:
        A web address without its query, its characters not encoded; any other address as it is.
    """
    return unquote(address.split("?")[0]) if _of_web(address) else address


def _of_web(address: str) -> bool:
    """Whether a question mark begins a query, as in a signed link, and is not a wildcard."""
    return address.startswith(("http://", "https://"))


def logs_at(address: str) -> list[str]:
    """The logs that an address refers to.

    Args:
        address: A file, a folder (every log in it, as for a local folder), or a glob.

    Returns:
        Their addresses, sorted.

    Raises:
        MissingExtraError: fsspec, or its driver for this kind of address, is not installed.
        MissingFileError: There is no log, or it cannot be reached.
    """
    with _reached(address) as (system, path):
        web = _of_web(address)
        if any(mark in (path.split("?")[0] if web else path) for mark in ("*[" if web else "*?[")):
            found = _files((_web_glob(system, path) if web else system.glob(path, detail=True)).values())
        elif not (web and is_log_name(plain(address))) and system.isdir(path):  # which downloads the whole file from the web
            found = logs_among(_files(system.ls(path, detail=True)))
        else:
            found = _files([system.info(path)])
        if not found:
            remedy = "check the address and the rights to read it"
            raise MissingFileError("no log is at this address", where=address, remedy=remedy)
        return sorted(str(system.unstrip_protocol(item)) for item in found)


def _web_glob(system: Any, path: str) -> dict[str, Any]:
    """The entries that match a glob, whichever characters the server encodes in its listings (``robot%3D7`` or ``robot=7``)."""
    from fsspec.utils import glob_translate

    wide = "/".join(
        part
        if part == "**"
        else re.sub(r"\*+", "*", re.sub(r"\[[^\]]*\]|[^\w.~*-]", "*", part, flags=re.ASCII))
        if marked
        else part
        for part, marked in _marked(path)
    )
    wanted = re.compile(glob_translate(unquote(path)))
    found = system.glob(wide, detail=True)
    return {name: entry for name, entry in found.items() if wanted.match(unquote(name).rstrip("/"))}


def _marked(path: str) -> Iterator[tuple[str, bool]]:
    """The parts of a path, and whether they come at or after the first one with a wildcard."""
    marked = False
    for part in path.split("/"):
        marked = marked or "*" in part or "[" in part
        yield part, marked


def _files(listed: Iterable[dict[str, Any]]) -> list[str]:
    """The files of a listing, whose entries give the type; querying each file would take one request per file."""
    return [item["name"] for item in listed if item["type"] == "file"]


@contextmanager
def local_files(files: Files) -> Iterator[Files]:
    """Makes the files of a log available on this machine while they are read.

    Yields:
        The same files, or local copies of those at addresses.

    Raises:
        MissingExtraError, MissingFileError: As for :func:`logs_at`.
        LogError: The log changed while it was copied.
    """
    if not any(is_address(path) for _, path in files):
        yield files
        return
    with tempfile.TemporaryDirectory() as folder:
        copies = {address: _copied(address, Path(folder)) for _, address in files}
        try:
            yield tuple((quantity, copies[address]) for quantity, address in files)
        except UrdfIdentError as error:  # the copy no longer exists when the user reads its name
            for address, copy in copies.items():
                error.args = tuple(str(text).replace(copy, address) for text in error.args)
                error.where = error.where and error.where.replace(copy, address)
            raise


def _copied(address: str, folder: Path) -> str:
    """Copies the file at an address to a folder, under the same name; a copy that fails is tried again a few times."""
    near = folder / file_name(address)
    for wait in (*_RETRY_AFTER, None):
        try:
            with _reached(address) as (system, path):
                _copy(system, path, near, address)
            break
        except _UnreachedError:
            if wait is None:
                raise
            time.sleep(wait)
    return str(near)


def _copy(system: Any, path: str, near: Path, address: str) -> None:
    before, size = system.checksum(path), system.info(path).get("size")
    system.get_file(path, str(near))
    system.invalidate_cache()
    if system.checksum(path) != before:
        remedy = "wait until it is written, or read a copy"
        raise LogError("the log changed while it was read", where=address, remedy=remedy)
    if size is not None and near.stat().st_size < size:  # a server that closes the connection early, without an error
        raise ConnectionError(f"{near.stat().st_size} of {size} bytes arrived")


class _UnreachedError(MissingFileError):
    """A log could not be copied for a reason that may pass."""


@contextmanager
def _reached(address: str) -> Iterator[tuple[Any, str]]:
    """The file system of an address and the path in it; failures become one-line errors."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError(
            f"a log at an address needs fsspec ({address})", remedy="pip install 'urdf-ident[remote]'"
        ) from error
    try:
        yield fsspec.core.url_to_fs(address, **_web_options(address, fsspec.config.conf))
    except UrdfIdentError:
        raise
    except ImportError as error:
        raise MissingExtraError(f"{address} cannot be read ({error})", remedy="install what the message names") from error
    except Exception as error:  # each kind of storage has its own errors
        raise _failure(address, error) from error


def _failure(address: str, error: Exception) -> MissingFileError:
    """One line about what a storage raised; :class:`_UnreachedError` if it may pass."""
    # fsspec reports any refusal of a web server as a missing file; its cause has the status
    cause = (error.__cause__ or error) if isinstance(error, FileNotFoundError) else error
    status = getattr(cause, "status", None)
    where = plain(address)
    if isinstance(cause, FileNotFoundError) or status in (404, 410):
        return MissingFileError("log not found", where=where, remedy="check the address")
    reason = " ".join(str(cause).split()) or type(cause).__name__
    if isinstance(status, int):
        reason = f"the server answers {status} {getattr(cause, 'message', '')}".rstrip()
    if isinstance(cause, TimeoutError) and _of_web(address):
        remedy = "check the connection, or copy the log first"
        return MissingFileError(f"the log cannot be read (nothing arrived for {_SILENT:.0f} s)", where=where, remedy=remedy)
    lasting = isinstance(cause, PermissionError) or (isinstance(status, int) and status < 500 and status not in (408, 429))
    remedy = "check the address and the rights to read it" if lasting else "check the address and the connection, or try later"
    kind = MissingFileError if lasting else _UnreachedError
    return kind(f"the log cannot be read ({reason})", where=where, remedy=remedy)


def _web_options(address: str, configured: dict[str, Any]) -> dict[str, Any]:
    """Options for a web server, with a limit for silence; those of the user's fsspec configuration are kept."""
    if not _of_web(address):
        return {}
    from aiohttp import ClientTimeout

    limit = ClientTimeout(total=None, sock_connect=_SILENT, sock_read=_SILENT)
    own = (configured.get("http") or {}) | (configured.get("https") or {})
    return {"client_kwargs": {"timeout": limit, **own.get("client_kwargs", {})}}
