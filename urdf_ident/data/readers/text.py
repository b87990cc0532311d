"""Tables of numbers in text files: what the file's columns are, and as many rows as can be read.

A block of clean lines goes through a parser in C (pyarrow's where it is installed, else NumPy's); only a block that
fails is taken apart, smaller and smaller and at last row by row, so that one broken row costs little and the rest of
the log survives it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LogError
from ...linalg import Array
from ...scratch import room
from .streams import line_blocks, read_head
from .tables import Cells, Table

_HEAD, _LONGEST_HEAD = 1 << 18, 1 << 24
_SMALL = 256
_DECIMAL_COMMA = re.compile(r"^\s*[\"']?[-+]?\d*,\d+")
_STAMP = re.compile(r"\s*(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(Z|UTC|[-+]\d\d:?\d\d)?\s*", re.IGNORECASE)
_NO_NUMBER = ("nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "")


@dataclass(frozen=True, eq=False)
class TextTable(Table):
    """A text file of numbers, opened.

    Attributes:
        delimiter: Character between cells; None means white space.
        decimal_comma: True where ``0,5`` is a half.
        header: The header line as it stands in the file, or "".
        stamps: Columns that hold ISO 8601 time stamps; they become seconds since the first one.
        line: Mean length of its first lines [bytes].
    """

    delimiter: str | None
    decimal_comma: bool
    header: str
    stamps: frozenset[int]
    line: float

    def cells(self, groups: Sequence[Sequence[int]]) -> Cells:
        """See :meth:`Table.cells`.

        Args:
            groups: 0-based column numbers.

        Returns:
            The arrays; rows with the wrong number of cells (cut short, or two rows run together) are NaN throughout.

        Raises:
            LogError: The file is no text, or holds no rows.
        """
        columns = sorted({column for group in groups for column in group})
        place = {column: k for k, column in enumerate(columns)}
        arrays = [room((self._guess(), len(group))) for group in groups]
        rows = room((self._guess(),), np.int64)
        first, count, header = 1, 0, self.header
        for block in line_blocks(self.path):
            values, own, header = self._block(block, columns, header)
            if count + len(own) > len(rows):
                rows, *arrays = (_grown(array, count, count + len(own) + count // 4) for array in (rows, *arrays))
            rows[count : count + len(own)] = own + first
            first += block.count(b"\n") or block.count(b"\r")
            for array, group in zip(arrays, groups, strict=True):
                array[count : count + len(own)] = values[:, [place[column] for column in group]]
            count += len(own)
        if not count:
            raise LogError("the log holds no rows", where=self.path, remedy="check the recording, or remove the file")
        arrays = [array[:count] for array in arrays]
        for array, group in zip(arrays, groups, strict=True):
            for column in self.stamps & set(group):
                known = array[:, list(group).index(column)]
                known -= known[np.isfinite(known)][0] if np.isfinite(known).any() else 0.0
        return Cells(tuple(arrays), rows[:count])

    def _guess(self) -> int:
        """About how many rows the file has, from the length of the first ones."""
        size = Path(self.path).stat().st_size
        return 16 + int(1.02 * size / self.line)

    def _block(self, block: bytes, columns: list[int], header: str) -> tuple[Array, NDArray[np.int64], str]:
        """Values of a block, 0-based line numbers in it, and the header if it has not come yet."""
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        if not header and (fast := self._fast(block, columns)) is not None and len(fast) == count:
            return fast, np.arange(count, dtype=np.int64), ""
        first, _, rest = block.partition(b"\n")
        if header and rest and first.rstrip(b"\r") == header.encode():
            fast = self._fast(rest, columns)
            if fast is not None and len(fast) == count - 1:
                return fast, np.arange(1, count, dtype=np.int64), ""
        lines, kept = [], []
        for k, line in enumerate(_lines(_decode(block, self.path))):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if header and line == header:
                header = ""
                continue
            header = ""  # the header is the first line that is no comment, or a comment itself
            lines.append(line)
            kept.append(k)
        whole = self._fast("\n".join(lines).encode(), columns) if lines else None
        if whole is not None and len(whole) == len(lines):
            values = [whole]
        else:
            values = [self._small(lines[i : i + _SMALL], columns) for i in range(0, len(lines), _SMALL)]
        return np.concatenate([np.empty((0, len(columns))), *values]), np.array(kept, dtype=np.int64), header

    def _small(self, lines: list[str], columns: list[int]) -> Array:
        fast = self._fast("\n".join(lines).encode(), columns)
        if fast is not None and len(fast) == len(lines):
            return fast
        return np.array([self._row(line, columns) for line in lines]).reshape(len(lines), len(columns))

    def _fast(self, block: bytes, columns: list[int]) -> Array | None:
        """All rows at once, or None where some row or cell is not as the others."""
        if b"#" in block or b"\0" in block:
            return None
        found = _arrow(block, self, columns) if self.delimiter is not None and columns else None
        if found is not None or self.stamps & set(columns):
            return found
        if self.decimal_comma or b'"' in block:
            return None
        try:
            whole = np.loadtxt(block.decode().splitlines(), delimiter=self.delimiter, comments=None, ndmin=2)
        except (ValueError, UnicodeDecodeError):
            return None
        return np.asarray(whole[:, columns]) if whole.shape[1] == self.width else None

    def _row(self, line: str, columns: list[int]) -> list[float]:
        cells = _split(line, self.delimiter)
        if len(cells) != self.width:
            return [np.nan] * len(columns)
        return [_stamp(cells[k]) if k in self.stamps else _number(cells[k], self.decimal_comma) for k in columns]


def _grown(array: NDArray[Any], count: int, rows: int) -> NDArray[Any]:
    """The first rows of an array in a larger one."""
    larger = room((rows, *array.shape[1:]), array.dtype)
    larger[:count] = array[:count]
    return larger


def open_text(path: str | Path) -> TextTable:
    """Opens a text file of numbers: comma, semicolon, tab or white space between cells, ``#`` before comments.

    The header is the first line when most of its cells are not numbers, or the last comment before the data
    when it has as many cells as they have.

    Args:
        path: The file, which may be compressed (gzip, xz, bzip2, zstd).

    Returns:
        The table.

    Raises:
        MissingFileError: It does not exist or may not be read.
        LogError: It is empty, has a header only, or is not text.
    """
    lines, comments = _first_lines(path)
    delimiter = _delimiter(lines[min(1, len(lines) - 1)])
    decimal_comma = delimiter in (";", "\t", None) and any(_uses_decimal_comma(line, delimiter) for line in lines[1:3] or lines)
    head = _cells(lines[0], delimiter)
    names: tuple[str, ...] | None = None
    header = ""
    if _is_header(head, decimal_comma):
        names, header, lines = tuple(head), lines[0], lines[1:]
        if not lines:
            raise LogError(
                "the log has a header and no rows", where=str(path), remedy="check the recording, or remove the file"
            )
    width = Counter(_width(line, delimiter) for line in lines[:1000]).most_common(1)[0][0]
    if names is None and comments:
        words = _cells(comments[-1].lstrip("# \t"), delimiter)
        names = tuple(words) if len(words) == width and _is_header(words, decimal_comma) else None
    if names is not None and len(names) != width:
        if len(names) == width - 1 and all(not line.rstrip().rsplit(delimiter, 1)[-1] for line in lines[:10]):
            names = (*names, "")  # rows end with a delimiter, the header does not
        else:
            raise LogError(
                "the header does not fit the rows",
                where=str(path),
                got=f"{len(names)} names",
                expected=f"{width}, the number of columns",
                remedy="correct the header line",
            )
    stamps = _stamp_columns(lines, delimiter, width)
    line = 1 + sum(map(len, lines)) / len(lines)
    return TextTable(str(path), names, width, (str(path),), (), delimiter, decimal_comma, header, stamps, line)


def _first_lines(path: str | Path) -> tuple[list[str], list[str]]:
    """Data lines and comments of the beginning of the file; as much of it as it takes to meet two data lines."""
    size = _HEAD
    while True:
        data = read_head(path, size)
        if not data.strip():
            raise LogError(
                "the log is empty", where=str(path), got=f"{len(data)} bytes", remedy="check the recording, or remove it"
            )
        whole = len(data) < size
        end = len(data) if whole else data.rfind(b"\n") + 1
        lines: list[str] = []
        comments: list[str] = []
        for line in _lines(_decode(data[:end].removeprefix(b"\xef\xbb\xbf"), path)):
            stripped = line.lstrip()
            if stripped.startswith("#"):
                if not lines:
                    comments.append(stripped)
            elif stripped:
                lines.append(line)
        if len(lines) > 1 or whole or size >= _LONGEST_HEAD:
            break
        size *= 8
    if not lines:
        raise LogError("the log holds no rows", where=str(path), remedy="check the recording, or remove the file")
    return lines, comments


def _decode(data: bytes, path: str | Path) -> str:
    try:
        if b"\0" in data:
            raise UnicodeDecodeError("utf-8", data, data.index(b"\0"), data.index(b"\0") + 1, "NUL")
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LogError(
            "the log is not a text file",
            where=str(path),
            got=f"byte {data[error.start]:#04x} at {error.start}",
            expected="a CSV file in UTF-8, or a format of docs/logs.md",
            remedy="export the log as CSV",
        ) from error


def _lines(text: str) -> Iterator[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    return iter(lines[:-1] if lines and not lines[-1] else lines)


def _delimiter(line: str) -> str | None:
    bare = re.sub(r'"[^"]*"', "", line)
    return next((mark for mark in (";", "\t", ",") if mark in bare), None)


def _uses_decimal_comma(line: str, delimiter: str | None) -> bool:
    return any(_DECIMAL_COMMA.fullmatch(cell.rstrip(" \"'")) for cell in line.split(delimiter))


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    if '"' in line:
        try:
            return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error:
            return line.split(delimiter)
    return line.split(delimiter)


def _width(line: str, delimiter: str | None) -> int:
    return len(_split(line, delimiter)) if delimiter is None or '"' in line else 1 + line.count(delimiter)


def _cells(line: str, delimiter: str | None) -> list[str]:
    return [cell.strip().strip("\"'").strip() for cell in _split(line, delimiter)]


def _is_header(cells: list[str], decimal_comma: bool) -> bool:
    words = [cell for cell in cells if np.isnan(_number(cell, decimal_comma)) and not _STAMP.fullmatch(cell)]
    words = [word for word in words if word.lower() not in _NO_NUMBER]
    return 2 * len(words) > len([cell for cell in cells if cell])


def _number(cell: str, decimal_comma: bool = False) -> float:
    cell = cell.strip().strip("\"'")
    try:
        return float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        return np.nan


def _stamp_columns(lines: Sequence[str], delimiter: str | None, width: int) -> frozenset[int]:
    rows = [cells for line in lines[:5] if len(cells := _cells(line, delimiter)) == width]
    return frozenset(k for k in range(width) if rows and all(_STAMP.fullmatch(cells[k]) for cells in rows))


def _stamp(cell: str) -> float:
    """Seconds since 2020 (near enough to keep the digits) of an ISO 8601 time stamp; NaN for anything else."""
    match = _STAMP.fullmatch(cell.strip().strip("\"'"))
    if not match:
        return np.nan
    date, clock, zone = match.groups()
    try:
        since = np.datetime64(f"{date}T{clock.replace(',', '.')}", "ns") - np.datetime64("2020-01-01", "ns")
    except ValueError:
        return np.nan
    shift = 0
    if zone and zone.upper() not in ("Z", "UTC"):
        digits = zone[1:].replace(":", "")
        shift = (1 if zone[0] == "+" else -1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))
    return float(since.astype(np.int64) - shift * 10**9) / 1e9


def _arrow(block: bytes, table: TextTable, columns: list[int]) -> Array | None:
    """A block by pyarrow's parser; None without pyarrow, or where a row or cell is not as the others."""
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    names = [str(k) for k in range(table.width)]
    kinds = {str(k): pa.string() if k in table.stamps else pa.float64() for k in columns}
    try:
        found = arrow_csv.read_csv(
            pa.BufferReader(block),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
            memory_pool=pa.system_memory_pool(),
            parse_options=arrow_csv.ParseOptions(delimiter=table.delimiter, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(kinds), column_types=kinds, decimal_point="," if table.decimal_comma else "."
            ),
        )
    except pa.ArrowException:
        return None
    values = np.empty((len(found), len(columns)))
    for k, column in enumerate(columns):
        data = found.column(k)
        values[:, k] = [_stamp(cell or "") for cell in data.to_pylist()] if column in table.stamps else _numbers(data)
    return values


def _numbers(column: Any) -> Array:
    """A column of pyarrow's as an array, NaN where a cell is empty; ``to_numpy`` would import pandas, for half a second."""
    whole = column.combine_chunks()
    (mask, data), part = whole.buffers(), slice(whole.offset, whole.offset + len(whole))
    found = np.frombuffer(data, dtype=float)[part]
    if not whole.null_count:
        return found
    return np.where(np.unpackbits(np.frombuffer(mask, dtype=np.uint8), bitorder="little")[part], found, np.nan)
