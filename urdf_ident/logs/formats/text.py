"""Tables of numbers in text files: their columns, and all rows that can be read.

A block of clean lines is parsed in C (by pyarrow if installed, else NumPy). Only a block that fails is split into smaller
ones and finally into rows, so that a broken row costs little time and the rest of the log is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LogError, UnitError
from ...linalg import Array
from ...units import parse_unit
from ..columns.headers import JOINT_COLUMN, with_joints, without_unit
from ..tables import Cells, Table
from .lines import (
    cells_of,
    decimal_commas,
    decimal_points,
    decode,
    find_delimiter,
    is_grouped,
    is_header,
    number,
    split_line,
    stamp,
    stamp_columns,
    text_lines,
    width_of,
)
from .streams import line_blocks, read_head

_HEAD, _LONGEST_HEAD = 1 << 18, 1 << 24
_SMALL = 256
#: Memory that two threads need to start, with a margin [bytes].
_STACK = 1 << 25


@dataclass(frozen=True, eq=False)
class TextTable(Table):
    """A text file of numbers, opened.

    Attributes:
        delimiter: Character between cells; None means white space.
        decimal_comma: Whether numbers have a decimal comma.
        before: Number of lines before the first row, without comments and blank lines.
        stamps: Columns of dates or times of day; they are converted to seconds since the first one.
        points: Columns with decimal points in a file with decimal commas.
        line: Mean length of the first lines [bytes].
    """

    delimiter: str | None
    decimal_comma: bool
    before: int
    stamps: frozenset[int]
    points: frozenset[int]
    line: float

    def cells(self, groups: Sequence[Sequence[int]]) -> Cells:
        """See :meth:`Table.cells`.

        Args:
            groups: 0-based column numbers.

        Returns:
            The arrays; rows with a wrong number of cells (truncated, or two rows merged) are all NaN.

        Raises:
            LogError: The file is not text, or contains no rows.
        """
        columns = sorted({column for group in groups for column in group})
        place = {column: k for k, column in enumerate(columns)}
        expected = 16 + int(1.02 * Path(self.path).stat().st_size / self.line)
        arrays: list[Array] = [np.empty((expected, len(group))) for group in groups]
        rows: NDArray[np.int64] = np.empty(expected, np.int64)
        first, count, before = 1, 0, self.before
        for block in line_blocks(self.path):
            values, numbers, before = self._block(block, columns, before)
            end = count + len(numbers)
            if end > len(rows):
                larger = end + count // 4
                rows = np.resize(rows, larger)
                arrays = [np.resize(array, (larger, array.shape[1])) for array in arrays]
            rows[count:end] = numbers + first
            first += block.count(b"\n") or block.count(b"\r")
            for array, group in zip(arrays, groups, strict=True):
                array[count:end] = values[:, [place[column] for column in group]]
            count = end
        if not count:
            raise LogError("the log holds no rows", where=self.path, remedy="check the recording, or remove the file")
        arrays = [array[:count] for array in arrays]
        for array, group in zip(arrays, groups, strict=True):
            for column in self.stamps & set(group):
                seconds = array[:, list(group).index(column)]
                seconds -= seconds[np.isfinite(seconds)][0] if np.isfinite(seconds).any() else 0.0
        return Cells(tuple(arrays), rows[:count])

    def _block(self, block: bytes, columns: list[int], before: int) -> tuple[Array, NDArray[np.int64], int]:
        """Values of a block, 0-based line numbers in it, and the number of header lines still to skip."""
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        if not before and (parsed := self._fast(block, columns)) is not None and len(parsed) == count:
            return parsed, np.arange(count, dtype=np.int64), 0
        first, _, rest = block.partition(b"\n")
        if before == 1 and rest and first.strip() and not first.lstrip().startswith(b"#"):
            parsed = self._fast(rest, columns)
            if parsed is not None and len(parsed) == count - 1:
                return parsed, np.arange(1, count, dtype=np.int64), 0
        lines, numbers = [], []
        for k, line in enumerate(text_lines(decode(block, self.path))):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if before:
                before -= 1
                continue
            lines.append(line)
            numbers.append(k)
        return self._values(lines, columns), np.array(numbers, dtype=np.int64), before

    def _values(self, lines: list[str], columns: list[int]) -> Array:
        """Values of lines: all at once, or else in small groups, of which an irregular one is read line by line."""
        parsed = self._fast("\n".join(lines).encode(), columns) if lines else None
        if parsed is not None and len(parsed) == len(lines):
            return parsed
        if len(lines) <= _SMALL:
            return np.array([self._row(line, columns) for line in lines]).reshape(len(lines), len(columns))
        return np.concatenate([self._values(lines[k : k + _SMALL], columns) for k in range(0, len(lines), _SMALL)])

    def _fast(self, block: bytes, columns: list[int]) -> Array | None:
        """All rows at once, or None if a row or cell is irregular."""
        if b"#" in block or b"\0" in block or b"\n\n" in block or b"\n\r\n" in block:  # pyarrow reads a blank line as a row
            return None
        parsed = _arrow(block, self, columns) if self.delimiter is not None and columns else None
        if parsed is not None or self.stamps & set(columns):
            return parsed
        if self.decimal_comma or b'"' in block:
            return None
        try:
            whole = np.loadtxt(block.decode().splitlines(), delimiter=self.delimiter, comments=None, ndmin=2)
        except (ValueError, UnicodeDecodeError):
            return None
        return np.asarray(whole[:, columns]) if whole.shape[1] == self.width else None

    def _row(self, line: str, columns: list[int]) -> list[float]:
        cells = split_line(line, self.delimiter)
        if self.names and cells and not cells[0].lstrip(" \"'+-.")[:1].isdigit():
            self._refuse_second_header(line)
        if len(cells) != self.width:
            return [np.nan] * len(columns)
        return [stamp(cells[k]) if k in self.stamps else self._number(cells[k], k) for k in columns]

    def _refuse_second_header(self, line: str) -> None:
        """Refuses a line that names the columns again, in another order or in other units."""
        again, header = tuple(cells_of(line, self.delimiter)), self.header
        bare, known = ({without_unit(name)[0] for name in names} for names in (again, header))
        if again != header and len(again) == len(header) and bare == known:
            other, first = next((x, y) for x, y in zip(again, header, strict=True) if x != y)
            raise LogError(
                "the log holds two tables, the second one with another header",
                where=self.path,
                got=f"'{other}' in place of '{first}'",
                expected="one header",
                remedy="split the file at the second header",
            )

    def _number(self, cell: str, column: int) -> float:
        value = number(cell, self.decimal_comma)
        pointed = self.decimal_comma and "." in cell and column not in self.points
        if (np.isnan(value) or pointed) and is_grouped(cell, self.decimal_comma):
            raise LogError(
                f"column '{self.names[column] if self.names else column}' has numbers with thousands separators",
                where=self.path,
                got=f"'{cell.strip()}'",
                expected="numbers such as 1234.5",
                remedy="export the log without thousands separators",
            )
        return value


def open_text(path: str | Path) -> TextTable:
    """Opens a text file of numbers, delimited by comma, semicolon, tab, bar or white space; ``#`` begins a comment.

    The header is the line of words before the data; lines before it are ignored, and a line of units below it is read.
    Without such a line, the last comment before the data is the header if it has the same number of cells.

    Args:
        path: The file, which may be compressed (gzip, xz, bzip2, zstd).

    Raises:
        MissingFileError: The file does not exist or cannot be read.
        LogError: It is empty, has only a header, or is not a table.
    """
    lines, comments = _first_lines(path)
    _refuse_other_texts(lines[0], path)
    delimiter = find_delimiter(lines[len(lines) // 2 :][:100])
    decimal_comma = decimal_commas(lines[1:20] or lines, delimiter)
    width = Counter(width_of(line, delimiter) for line in lines[:1000]).most_common(1)[0][0]
    begin, end = _header(lines, delimiter, decimal_comma, width)
    names: tuple[str, ...] | None = tuple(cells_of(lines[begin], delimiter)) if end > begin else None
    units = [cells_of(line, delimiter) for line in lines[begin + 1 : end]]
    notes = (f"{begin} line{'s' if begin > 1 else ''} before the header left out",) if begin else ()
    lines = lines[end:]
    if not lines:
        raise LogError("the log has a header and no rows", where=str(path), remedy="check the recording, or remove the file")
    if names is None and comments:
        comment_cells = cells_of(comments[-1].lstrip("# \t"), delimiter)
        names = tuple(comment_cells) if len(comment_cells) == width and is_header(comment_cells, decimal_comma) else None
    if names is not None and len(names) != width:
        if len(names) == width - 1 and all(not line.rstrip().rsplit(delimiter, 1)[-1] for line in lines[:10]):
            names = (*names, "")  # rows end with a delimiter, the header does not
        else:
            split = delimiter == "," and width == 2 * len(names)  # 0,5,1,5: decimal commas and comma delimiters
            raise LogError(
                "the header does not fit the rows",
                where=str(path),
                got=f"{len(names)} names",
                expected=f"{width}, the number of columns",
                remedy="write numbers with points, or semicolons between them" if split else "correct the header line",
            )
    rows = [cells for line in lines[:50] if len(cells := cells_of(line, delimiter)) == width]
    line = 1 + sum(map(len, lines)) / len(lines)
    return TextTable(
        path=str(path),
        names=names,
        width=width,
        files=(str(path),),
        notes=notes,
        spelled=None if names is None else _spelled(names, units, rows, str(path)),
        first=tuple(rows[0]) if rows else (),
        delimiter=delimiter,
        decimal_comma=decimal_comma,
        before=end,
        stamps=stamp_columns(rows[:5]),
        points=decimal_points(rows) if decimal_comma else frozenset(),
        line=line,
    )


def _header(lines: Sequence[str], delimiter: str | None, decimal_comma: bool, width: int) -> tuple[int, int]:
    """First line of the header and first line of the data; equal if there is no header."""

    def of_words(line: str) -> bool:
        return is_header(cells_of(line, delimiter), decimal_comma)

    if len(lines) == 1:
        return 0, int(of_words(lines[0]))
    end = next((k for k, line in enumerate(lines[:1000]) if width_of(line, delimiter) == width and not of_words(line)), 0)
    begin = end
    while begin > 0 and width_of(lines[begin - 1], delimiter) == width and of_words(lines[begin - 1]):
        begin -= 1
    if begin < end:
        return begin, end
    if end > 0 and of_words(lines[end - 1]):  # with another number of cells
        return end - 1, end
    return 0, int(of_words(lines[0]))


def _spelled(
    names: tuple[str, ...], units: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], where: str
) -> tuple[str, ...] | None:
    """Names with the units from the line below them, and with joint numbers replaced by names from text columns."""
    for line in units:
        with_units = list(names)
        for k, (name, cell) in enumerate(zip(names, line, strict=True)):
            with suppress(UnitError):
                if name and (unit := cell.strip("[]() ")):
                    with_units[k] = f"{name} [{parse_unit(unit).name}]"
        names = tuple(with_units)
    lists: dict[str, list[str]] = {}
    changes: list[int] = []
    for k, name in enumerate(names):
        match = JOINT_COLUMN.fullmatch(name)
        if match and match[2] and rows and np.isnan(number(rows[0][k])):
            lists.setdefault(match[1] or "", []).append(rows[0][k])
            changes += [k] if any(row[k] != rows[0][k] for row in rows) else []
    spelled = with_joints(names, lists)
    if spelled is not None and changes:
        raise LogError(
            "the joints change their order in the log",
            where=where,
            got=f"'{names[changes[0]]}' is {' and '.join(dict.fromkeys(row[changes[0]] for row in rows))}",
            remedy="record a bag, where each message names its joints, or one column a joint",
        )
    return spelled or (names if units else None)


def _refuse_other_texts(line: str, path: str | Path) -> None:
    """Refuses text files that are not tables, naming their format."""
    kinds = (
        ("version https://git-lfs", "a pointer of Git LFS, not the log itself", "fetch it: `git lfs pull`"),
        ("<", "a web page or XML", "download the log itself, or export it as CSV"),
        ("{", "JSON", "export the log as CSV"),
        ("[{", "JSON", "export the log as CSV"),
    )
    for beginning, kind, remedy in kinds:
        if line.lstrip().startswith(beginning):
            raise LogError(
                f"this is {kind}", where=str(path), got=line.strip()[:40], expected="a table of numbers", remedy=remedy
            )


def _first_lines(path: str | Path) -> tuple[list[str], list[str]]:
    """Data lines and comments at the beginning of the file, at least two data lines if it has them."""
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
        for line in text_lines(decode(data[:end].removeprefix(b"\xef\xbb\xbf"), path)):
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


def _arrow(block: bytes, table: TextTable, columns: list[int]) -> Array | None:
    """Parses a block with pyarrow; None without pyarrow, or if a row or cell is irregular."""
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    names = [str(k) for k in range(table.width)]
    kinds = {str(k): pa.string() if k in table.stamps else pa.float64() for k in columns}
    np.empty(_STACK, np.uint8)  # raises without memory for threads of pyarrow, which would end the process
    try:
        parsed = arrow_csv.read_csv(
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
    values = np.empty((len(parsed), len(columns)))
    for k, column in enumerate(columns):
        data = parsed.column(k)
        values[:, k] = [stamp(cell or "") for cell in data.to_pylist()] if column in table.stamps else _numbers(data)
    return values


def _numbers(column: Any) -> Array:
    """A pyarrow column as an array, NaN for empty cells; ``to_numpy`` would import pandas, which takes half a second."""
    array = column.combine_chunks()
    (mask, data), window = array.buffers(), slice(array.offset, array.offset + len(array))
    values = np.frombuffer(data, dtype=float)[window]
    if not array.null_count:
        return values
    return np.where(np.unpackbits(np.frombuffer(mask, dtype=np.uint8), bitorder="little")[window], values, np.nan)
