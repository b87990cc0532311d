"""Logs at addresses (``s3://bucket/run.parquet``, ``https://…``), found and temporarily copied through fsspec."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from ..errors import LogError, MissingExtraError, MissingFileError, UrdfIdentError
from ..files.sizes import LARGEST
from .formats.choice import is_log_name, logs_among

#: Pairs (quantity, path or address).
Files = tuple[tuple[str, str], ...]
#: A web server that sends nothing for this time counts as unreachable [s].
_SILENT = 60.0
_USER = re.compile(r"://(?:[^/?#]*@|[^/?#@]*:(?!\d*(?:[/?#]|$))[^?#]*@)")


def is_address(path: str | Path) -> bool:
    """Whether a log is given by an address instead of a path."""
    return "://" in str(path)


def file_name(address: str) -> str:
    """The name of the file at an address."""
    return PurePosixPath(plain(address)).name


def plain(address: str) -> str:
    """An address as it is kept and shown: without user, password, query and fragment, the characters of the web decoded."""
    urls = [_USER.sub("://", url) for url in address.split("::")]
    query = re.compile(r"[?#][^/]*=.*", re.S)
    return "::".join(unquote(re.split("[?#]", url)[0]) if url.startswith("http") else query.sub("", url) for url in urls)


def logs_at(address: str) -> list[str]:
    """The logs that an address refers to: a file, a folder (every log in it, as for a local folder), or a glob.

    Raises:
        MissingExtraError: fsspec, or its driver for this kind of address, is not installed.
        MissingFileError: There is no log, or it cannot be reached.
    """
    with _reached(address) as (system, path, web):
        if any(mark in (path.split("?")[0] if web else path) for mark in ("*[" if web else "*?[")):
            entries = system.glob(path, detail=True) or (system.glob(quote(path, "/:*[]!-"), detail=True) if web else {})
            names = [entry["name"] for entry in entries.values() if entry["type"] == "file"]
        elif not (web and is_log_name(plain(address))) and system.isdir(path):  # which downloads the whole file from the web
            names = logs_among([entry["name"] for entry in system.ls(path, detail=True) if entry["type"] == "file"])
        else:
            names = [system.info(path)["name"]]
        if not names:
            raise MissingFileError(
                "no log is at this address", where=plain(address), remedy="check the address and the rights to read it"
            )
        return sorted(str(system.unstrip_protocol(name)) for name in names)


@contextmanager
def local_files(files: Files) -> Iterator[Files]:
    """The files of a log; while they are read, local copies of those at addresses.

    Raises:
        MissingExtraError, MissingFileError: As for :func:`logs_at`.
        LogError: The log changed while it was copied, or is larger than the limit.
    """
    with tempfile.TemporaryDirectory() as folder:
        copies: dict[str, str] = {}
        for address in (path for _, path in files if is_address(path)):
            near, most, length = Path(folder) / (file_name(address) or "log"), LARGEST["log"], 0
            with _reached(address) as (system, path, web), near.open("wb") as copy:
                before, size = system.checksum(path), system.info(path).get("size") or 0
                with system.open(path, "rb", **({"block_size": 0} if web else {})) as stream:
                    while block := stream.read(2**20):
                        length += copy.write(block)
                        if length > most:  # while it still arrives
                            raise LogError(
                                "the log is too large", where=plain(address), expected=f"at most {most / 2**20:g} MB"
                            )
                system.invalidate_cache()
                if length < size:  # a server that closes the connection early, without an error
                    raise ConnectionError(f"{length} of {size} bytes arrived")
                if system.checksum(path) != before:
                    raise LogError(
                        "the log changed while it was read",
                        where=plain(address),
                        remedy="wait until it is written, or read a copy",
                    )
            copies[address] = str(near)
        try:
            yield tuple((quantity, copies.get(path, path)) for quantity, path in files)
        except UrdfIdentError as error:  # the copy no longer exists when the user reads its name
            for address, file in copies.items():
                error.args = tuple(str(text).replace(file, plain(address)) for text in error.args)
                error.where = error.where and error.where.replace(file, plain(address))
            raise


@contextmanager
def _reached(address: str) -> Iterator[tuple[Any, str, bool]]:
    """The file system of an address, the path in it, whether it is the web's; failures become one-line errors."""
    web = address.startswith(("http://", "https://"))
    try:
        import fsspec

        options: dict[str, Any] = {}
        if web:
            from aiohttp import ClientTimeout

            limit = ClientTimeout(total=None, sock_connect=_SILENT, sock_read=_SILENT)
            configured = {**fsspec.config.conf.get("http", {}), **fsspec.config.conf.get("https", {})}
            options = {"client_kwargs": {"timeout": limit, **configured.get("client_kwargs", {})}}
        yield (*fsspec.core.url_to_fs(address, **options), web)
    except UrdfIdentError:
        raise
    except Exception as error:  # each kind of storage has its own errors; what they say may name the secrets of an address
        if address != plain(address):
            raise _failure(address, error) from None
        raise _failure(address, error) from error


def _failure(address: str, error: Exception) -> UrdfIdentError:
    """One line about what a storage raised."""
    where, remedy = plain(address), "check the address, the rights to read it and the connection, or try later"
    cause = (error.__cause__ or error) if isinstance(error, FileNotFoundError) else error  # fsspec hides the web's refusals
    status = getattr(cause, "status", None)
    reason = " ".join(re.sub(r"[a-zA-Z][\w+.-]*://\S+", lambda url: plain(url[0]), str(cause)).split()) or type(cause).__name__
    hidden = " ".join([*_USER.findall(address), *re.findall(r"[?#].*", address, re.S)])
    for secret in re.findall(r"[^/?#&=@:]{4,}", hidden):
        reason = reason.replace(secret, "…").replace(unquote(secret), "…")
    if isinstance(error, ImportError):
        return MissingExtraError(f"{where} cannot be read ({reason})", remedy="pip install 'urdf-ident[remote]'")
    if isinstance(cause, FileNotFoundError) or status in (404, 410):
        return MissingFileError("log not found", where=where, remedy="check the address")
    if isinstance(status, int):
        reason = f"the server answers {status} {getattr(cause, 'message', '')}".rstrip()
    elif isinstance(cause, TimeoutError) and address.startswith("http"):
        reason = f"nothing arrived for {_SILENT:.0f} s"
    return MissingFileError(f"the log cannot be read ({reason})", where=where, remedy=remedy)
