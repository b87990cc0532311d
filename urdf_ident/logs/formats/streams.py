"""Reading of text logs, compressed or not, in blocks of whole lines and up to a size limit."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import LogError
from ...files.read_write import read_stream
from ..tables import check_unpacked, decoding

#: Block size, and the largest length of a line [bytes].
_BLOCK, _LONGEST_LINE = 1 << 20, 64 << 20


def line_blocks(path: str | Path) -> Iterator[bytes]:
    """The bytes of a text log, unpacked, in blocks of about a megabyte that end at line ends, without a byte order mark.

    Raises:
        MissingFileError, MissingExtraError: The file cannot be opened.
        LogError: It is broken, contains a line that is too long, or unpacks to more than the limit.
    """
    rest, total = b"", 0
    with read_stream(path, "log") as packed:
        head = packed.read(8)
        packed.seek(0)
        kind, unpack = next((found for magic, found in _PACKED.items() if head.startswith(magic)), ("log", None))
        with decoding(path, kind, "parquet"):
            stream = packed if unpack is None else unpack(packed)
        while True:
            with decoding(path, kind, "parquet"):
                block = stream.read(_BLOCK)
            if not block:
                break
            block = block if total else block.removeprefix(b"\xef\xbb\xbf")
            total += len(block)
            check_unpacked(path, total)
            end = block.rfind(b"\n") + 1
            if end:
                yield rest + block[:end]
            rest = block[end:] if end else rest + block
            if len(rest) > _LONGEST_LINE:
                raise LogError(
                    "a line of the log does not end",
                    where=str(path),
                    got=f"over {len(rest) >> 20} MiB",
                    remedy="check that this is a table of numbers, one sample a line",
                )
    if rest:
        yield rest


def _open_zstd(stream: BinaryIO) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")


def _as_utf8(stream: BinaryIO) -> Any:
    return codecs.EncodedFile(stream, "utf-8", "utf-16")


#: First bytes of a file → what it is, and what makes text in UTF-8 of it.
_PACKED: dict[bytes, tuple[str, Callable[[BinaryIO], Any]]] = {
    b"\x1f\x8b": ("gzip file", gzip.open),
    b"\xfd7zXZ\0": ("xz file", lzma.open),
    b"BZh": ("bzip2 file", bz2.open),
    b"\x28\xb5\x2f\xfd": ("zstd file", _open_zstd),
    codecs.BOM_UTF16_LE: ("UTF-16 text", _as_utf8),
    codecs.BOM_UTF16_BE: ("UTF-16 text", _as_utf8),
}
