"""Tables of numbers in text files: what the file's columns are, and as many rows as can be read.

Clean rows go through NumPy's parser in blocks; only a block that fails is taken apart row by row, so that one
broken row costs little and the rest of the log survives it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import LogError
from ...files import read_bytes
from ...linalg import Array

_BLOCK = 1024
_DECIMAL_COMMA = re.compile(r"^\s*[-+]?\d*,\d+")


@dataclass(frozen=True, eq=False)
class Table:
    """A text file of numbers, opened: its columns are known, its cells not yet parsed.

    Attributes:
        path: The file.
        sha256: Hash of its bytes.
        names: Column names of the header, or None when the file has none.
        width: Number of columns.
        lines: The data lines.
        rows: 1-based row in the file of each data line, shape (N,).
        delimiter: Character between cells; None means white space.
        decimal_comma: True where ``0,5`` is a half.
    """

    path: str
    sha256: str
    names: tuple[str, ...] | None
    width: int
    lines: tuple[str, ...]
    rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    delimiter: str | None
    decimal_comma: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def read(self, columns: Sequence[int]) -> Array:
        """Parses some columns.

        Args:
            columns: 0-based column numbers.

        Returns:
            Shape (N, len(columns)). Cells that are empty or no number are NaN; rows with the wrong number of
            cells (cut short, or two rows run together) are NaN throughout.
        """
        if not columns:
            return np.empty((len(self), 0))
        blocks = [self.lines[i : i + _BLOCK] for i in range(0, len(self), _BLOCK)]
        return np.concatenate([self._block(block, list(columns)) for block in blocks])

    def _block(self, lines: Sequence[str], columns: list[int]) -> Array:
        if self.decimal_comma:
            lines = [line.replace(",", ".") for line in lines]
        if self._all_full(lines):
            try:
                return np.loadtxt(lines, delimiter=self.delimiter, usecols=columns, comments=None, ndmin=2)
            except ValueError:
                pass  # some cell is no number: find it below
        return np.array([self._row(line, columns) for line in lines])

    def _all_full(self, lines: Sequence[str]) -> bool:
        if self.delimiter is None:
            return all(len(line.split()) == self.width for line in lines)
        return all(line.count(self.delimiter) == self.width - 1 for line in lines)

    def _row(self, line: str, columns: list[int]) -> list[float]:
        cells = line.split(self.delimiter)
        if len(cells) != self.width:
            return [np.nan] * len(columns)
        return [_number(cells[k]) for k in columns]


def open_table(path: str | Path) -> Table:
    """Opens a text file of numbers: comma, semicolon, tab or white space between cells, ``#`` before comments.

    The header is the first line when most of its cells are not numbers, or the last comment before the data
    when it has as many cells as they have.

    Args:
        path: The file.

    Returns:
        The table.

    Raises:
        MissingFileError: It does not exist or may not be read.
        LogError: It is empty, has a header only, or is not text.
    """
    data = read_bytes(path, "log")
    lines, rows, comments = _content_lines(_decode(data, path), path)
    delimiter = _delimiter(lines[min(1, len(lines) - 1)])
    decimal_comma = delimiter == ";" and _uses_decimal_comma(lines[-1])
    head = _cells(lines[0], delimiter)
    names: tuple[str, ...] | None = None
    if _is_header(head, decimal_comma):
        names, lines, rows = tuple(head), lines[1:], rows[1:]
        if not lines:
            raise LogError(
                "the log has a header and no rows", where=str(path), remedy="check the recording, or remove the file"
            )
    width = Counter(len(line.split(delimiter)) for line in lines[:1000]).most_common(1)[0][0]
    if names is None and comments:
        words = _cells(comments[-1].lstrip("# \t"), delimiter)
        names = tuple(words) if len(words) == width and _is_header(words, decimal_comma) else None
    if names is not None and len(names) != width:
        if len(names) == width - 1 and all(not line.rstrip().rsplit(delimiter, 1)[-1] for line in lines[:10]):
            names = (*names, "")  # rows end with a delimiter, the header does not
        else:
            raise LogError("the header does not fit the rows", where=str(path), got=f"{len(names)} names",
                           expected=f"{width}, the number of columns", remedy="correct the header line")  # fmt: skip
    digest = hashlib.sha256(data).hexdigest()
    return Table(str(path), digest, names, width, tuple(lines), np.array(rows, dtype=np.int64), delimiter, decimal_comma)


def _decode(data: bytes, path: str | Path) -> str:
    if not data.strip():
        raise LogError(
            "the log is empty", where=str(path), got=f"{len(data)} bytes", remedy="check the recording, or remove it"
        )
    try:
        if b"\0" in data:
            raise UnicodeDecodeError("utf-8", data, data.index(b"\0"), data.index(b"\0") + 1, "NUL")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError(
            "the log is not a text file", where=str(path), got=f"byte {data[error.start]:#04x} at {error.start}",
            expected="a CSV file in UTF-8", remedy="export the log as CSV",
        ) from error  # fmt: skip


def _content_lines(text: str, path: str | Path) -> tuple[list[str], list[int], list[str]]:
    """Data lines with their row numbers, and the comments before the first of them."""
    lines: list[str] = []
    rows: list[int] = []
    comments: list[str] = []
    for row, line in enumerate(text.splitlines(), start=1):
        stripped = line.lstrip()
        if stripped.startswith("#"):
            if not lines:
                comments.append(stripped)
        elif stripped:
            lines.append(line)
            rows.append(row)
    if not lines:
        raise LogError("the log holds no rows", where=str(path), remedy="check the recording, or remove the file")
    return lines, rows, comments


def _delimiter(line: str) -> str | None:
    return next((mark for mark in (";", "\t", ",") if mark in line), None)


def _uses_decimal_comma(line: str) -> bool:
    return any(_DECIMAL_COMMA.match(cell) for cell in line.split(";"))


def _cells(line: str, delimiter: str | None) -> list[str]:
    return [cell.strip().strip("\"'").strip() for cell in line.split(delimiter)]


def _is_header(cells: list[str], decimal_comma: bool) -> bool:
    words = [cell for cell in cells if cell and np.isnan(_number(cell.replace(",", ".") if decimal_comma else cell))]
    words = [word for word in words if word.lower() not in ("nan", "na", "null", "none", "-", "inf")]
    return 2 * len(words) > len([cell for cell in cells if cell])


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan
