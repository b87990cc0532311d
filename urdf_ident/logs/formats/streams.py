"""Reading of text logs, compressed or not, in blocks of whole lines and up to a size limit."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ...errors import LogError
from ...files.read_write import read_stream
from ..tables import MOST_BYTES, MOST_GROWTH, decoding

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
#: Block size [bytes], and the largest line length in blocks.
_BLOCK, _LONGEST = 1 << 20, 64
#: Unpacked size that is always accepted [bytes], however small the file.
_FREE = 64 << 20


def read_head(path: str | Path, count: int) -> bytes:
    """The first bytes of a text log, unpacked.

    Args:
        count: Maximum number of bytes.

    Raises:
        MissingFileError, MissingExtraError, LogError: The file cannot be opened or unpacked.
    """
    with _unpacked(path) as stream, decoding(path, "compressed log", "parquet"):
        blocks: list[bytes] = []
        while (left := count - sum(map(len, blocks))) > 0 and (block := stream.read(left)):
            blocks.append(block)
        return b"".join(blocks)


def line_blocks(path: str | Path) -> Iterator[bytes]:
    """The bytes of a text log, unpacked, in blocks that end at line ends.

    Yields:
        Blocks of about a megabyte, without a byte order mark.

    Raises:
        MissingFileError, MissingExtraError: The file cannot be opened.
        LogError: It is broken, contains a line that is too long, or unpacks to more than the limit.
    """
    most = max(_FREE, MOST_GROWTH * Path(path).stat().st_size) if Path(path).exists() else 0
    rest, total = b"", 0
    with _unpacked(path) as stream:
        while True:
            with decoding(path, "compressed log", "parquet"):
                block = stream.read(_BLOCK)
            if not total:
                block = block.removeprefix(b"\xef\xbb\xbf")
            total += len(block)
            if total > min(most, MOST_BYTES):
                raise LogError(
                    "the log unpacks to far more than its size",
                    where=str(path),
                    got=f"over {total >> 20} MiB",
                    expected=f"at most {min(most, MOST_BYTES) >> 20} MiB",
                    remedy="unpack it, or cut it in parts",
                )
            if not block:
                break
            end = block.rfind(b"\n") + 1
            if end == 0:
                rest += block
                if len(rest) > _LONGEST * _BLOCK:
                    raise LogError(
                        "a line of the log does not end",
                        where=str(path),
                        got=f"over {len(rest) >> 20} MiB",
                        remedy="check that this is a table of numbers, one sample a line",
                    )
                continue
            yield rest + block[:end]
            rest = block[end:]
    if rest:
        yield rest


@contextmanager
def _unpacked(path: str | Path) -> Iterator[BinaryIO]:
    with read_stream(path, "log") as stream:
        head = stream.read(8)
        kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")
        stream.seek(0)
        if kind == "zstd":
            with decoding(path, "zstd file", "parquet"):
                import pyarrow as pa

                unpacked = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
            yield cast(BinaryIO, unpacked)
        elif kind:
            opened = gzip.open(stream) if kind == "gzip" else lzma.open(stream) if kind == "xz" else bz2.open(stream)  # noqa: SIM115 - closed with the file
            yield cast(BinaryIO, opened)
        elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            yield cast(BinaryIO, codecs.EncodedFile(stream, "utf-8", "utf-16"))
        else:
            yield stream
