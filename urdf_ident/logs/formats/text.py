"""Tables of numbers in text files: their columns, and all rows that can be read.

A block of clean lines is parsed in C by NumPy. Only a block that fails is split into smaller
ones and finally into rows, so that a broken row costs little time and the rest of the log is kept.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...errors import LogError, UnitError
from ...files.read_write import read_stream
from ...linalg import Array
from ...units import parse_unit
from ..columns.headers import JOINT_COLUMN, with_joints, without_unit
from ..tables import Rows, Table, check_unpacked, decoding
from .lines import (
    are_stamps,
    bare_cells,
    decimal_commas,
    decode,
    find_delimiter,
    is_grouped,
    is_header,
    number,
    split_line,
    stamp,
    text_lines,
)

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


#: Bytes in which the second row is searched.
_LONGEST_HEAD = 1 << 24
#: Lines of a block with an irregular row that are parsed together.
_GROUP = 256


@dataclass(frozen=True, eq=False)
class TextTable(Table):
    """A text file of numbers, opened.

    Attributes:
        delimiter: Character between cells; None means white space.
        decimal_comma: Whether numbers have a decimal comma.
        before: Number of lines before the first row, without comments and blank lines.
        stamps: Columns of dates or times of day; they are converted to seconds since the first one.
        points: Columns with decimal points in a file with decimal commas.
    """

    delimiter: str | None = field(kw_only=True)
    decimal_comma: bool = field(kw_only=True)
    before: int = field(kw_only=True)
    stamps: frozenset[int] = field(kw_only=True)
    points: frozenset[int] = field(kw_only=True)

    def blocks(self, columns: Sequence[int]) -> Iterator[tuple[Array, Rows]]:
        """See :meth:`Table.blocks`; rows with a wrong number of cells (truncated, or two rows merged) are all NaN."""
        first, before = 1, self.before
        starts: dict[int, float] = {}  # of columns of dates
        for block in line_blocks(self.path):
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            values = self._parsed(block, count, columns) if before == 0 else None
            rows = np.arange(first, first + count)
            if values is None:
                lines = [
                    (k, line)
                    for k, line in enumerate(text_lines(decode(block, self.path)), first)
                    if line.strip() and not line.lstrip().startswith("#")
                ]
                skipped = min(before, len(lines))
                before -= skipped
                values = self._values([line for _, line in lines[skipped:]], columns)
                rows = np.array([k for k, _ in lines[skipped:]], dtype=np.int64)
            for k, column in enumerate(columns):
                if column in self.stamps and (known := values[np.isfinite(values[:, k]), k]).size:
                    values[:, k] -= starts.setdefault(column, float(known[0]))
            yield values, rows
            first += block.count(b"\n") or block.count(b"\r")

    def _values(self, lines: list[str], columns: Sequence[int]) -> Array:
        """Values of lines: all at once, or else in small groups, of which an irregular one is read line by line."""
        if lines and (values := self._parsed("\n".join(lines).encode(), len(lines), columns)) is not None:
            return values
        if len(lines) <= _GROUP:
            return np.array([self._row(line, columns) for line in lines]).reshape(len(lines), len(columns))
        return np.concatenate([self._values(lines[k : k + _GROUP], columns) for k in range(0, len(lines), _GROUP)])

    def _parsed(self, block: bytes, count: int, columns: Sequence[int]) -> Array | None:
        """All rows at once, or None if one of them or a cell is irregular."""
        mark = self.delimiter
        commas = self.decimal_comma and (mark == "," or b"." in block)
        if commas or any(odd in block for odd in (b"#", b"\0", *([b'"'] if mark is None else []))):
            return None
        text = block.decode("latin-1").replace("\r\n", "\n")  # what is no ASCII is no number either
        text = text.replace(",", ".") if self.decimal_comma else text
        if mark is not None:
            for empty in (2 * mark, 2 * mark, f"{mark}\n"):
                text = text.replace(empty, f"{mark}nan{empty[1]}")
        kinds = np.dtype([(str(k), float if k in columns else "S1") for k in range(self.width)])
        options: dict[str, Any] = {
            "converters": dict.fromkeys(self.stamps.intersection(columns), stamp),
            "quotechar": '"' if '"' in text else None,
        }
        try:
            lines = text.removesuffix("\n").split("\n")
            table = np.loadtxt(lines, kinds, None, delimiter=mark, encoding=None, ndmin=1, **options)
        except ValueError:
            return None
        values = np.empty((len(table), len(columns)))
        for k, column in enumerate(columns):
            values[:, k] = table[str(column)]
        return values if len(values) == count else None

    def _row(self, line: str, columns: Sequence[int]) -> list[float]:
        cells = split_line(line, self.delimiter)
        if self.names and cells and not cells[0].lstrip(" \"'+-.")[:1].isdigit():
            self._refuse_second_header(line)
        if len(cells) != self.width:
            return [np.nan] * len(columns)
        return [stamp(cells[k]) if k in self.stamps else self._number(cells[k], k) for k in columns]

    def _refuse_second_header(self, line: str) -> None:
        """Refuses a line that names the columns again, in another order or in other units."""
        again, header = tuple(bare_cells(line, self.delimiter)), self.names
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
    lines, comments = _beginning(path)
    delimiter = find_delimiter(lines[len(lines) // 2 :][:100])
    decimal_comma = decimal_commas([cell for line in lines[1:20] or lines for cell in bare_cells(line, delimiter)])
    width = Counter(len(split_line(line, delimiter)) for line in lines[:1000]).most_common(1)[0][0]
    begin, end = _header(lines, delimiter, decimal_comma, width)
    names = tuple(bare_cells(lines[begin], delimiter)) if end > begin else ()
    units = [bare_cells(line, delimiter) for line in lines[begin + 1 : end]]
    notes = (f"{begin} line{'s' if begin > 1 else ''} before the header left out",) if begin else ()
    lines = lines[end:]
    if not lines:
        raise LogError("the log has a header and no rows", where=str(path), remedy="check the recording, or remove the file")
    if not names and comments:
        words = bare_cells(comments[-1].lstrip("# \t"), delimiter)
        names = tuple(words) if len(words) == width and is_header(words, decimal_comma) else ()
    if len(names) == width - 1 and all(not line.rstrip().rsplit(delimiter, 1)[-1] for line in lines[:10]):
        names = (*names, "") if names else ()  # rows end with a delimiter, the header does not
    if names and len(names) != width:
        split = delimiter == "," and width == 2 * len(names)  # 0,5,1,5: decimal commas and comma delimiters
        raise LogError(
            "the header does not fit the rows",
            where=str(path),
            got=f"{len(names)} names",
            expected=f"{width}, the number of columns",
            remedy="write numbers with points, or semicolons between them" if split else "correct the header line",
        )
    rows = [cells for line in lines[:50] if len(cells := bare_cells(line, delimiter)) == width]
    columns = list(zip(*rows, strict=True))
    return TextTable(
        str(path),
        names,
        width,
        (str(path),),
        notes,
        spelled=_spelled(names, units, rows, str(path)) if names else None,
        first=tuple(rows[0]) if rows else (),
        delimiter=delimiter,
        decimal_comma=decimal_comma,
        before=end,
        stamps=frozenset(k for k, cells in enumerate(columns) if are_stamps(cells[:5])),
        points=frozenset(
            k
            for k, cells in enumerate(columns)
            if decimal_comma
            and any("." in cell and np.isfinite(number(cell)) and not is_grouped(cell, decimal_comma=True) for cell in cells)
        ),
    )


def _beginning(path: str | Path) -> tuple[list[str], list[str]]:
    """Data lines at the beginning of a file, at least two if it has them, and comments before; refuses what is no table."""
    lines: list[str] = []
    comments: list[str] = []
    size, blank = 0, True
    for block in line_blocks(path):
        size, blank = size + len(block), blank and not block.strip()
        for line in text_lines(decode(block, path)):
            if line.lstrip().startswith("#"):
                comments += [] if lines else [line.lstrip()]
            elif line.strip():
                lines.append(line)
        if len(lines) > 1 or size > _LONGEST_HEAD:
            break
    if blank:
        raise LogError("the log is empty", where=str(path), got=f"{size} bytes", remedy="check the recording, or remove it")
    if not lines:
        raise LogError("the log holds no rows", where=str(path), remedy="check the recording, or remove the file")
    for beginning, kind, remedy in (
        ("version https://git-lfs", "a pointer of Git LFS, not the log itself", "fetch it: `git lfs pull`"),
        ("<", "a web page or XML", "download the log itself, or export it as CSV"),
        ("{", "JSON", "export the log as CSV"),
        ("[{", "JSON", "export the log as CSV"),
    ):
        if lines[0].lstrip().startswith(beginning):
            start = lines[0].strip()[:40]
            raise LogError(f"this is {kind}", where=str(path), got=start, expected="a table of numbers", remedy=remedy)
    return lines, comments


def _header(lines: Sequence[str], delimiter: str | None, decimal_comma: bool, width: int) -> tuple[int, int]:
    """First line of the header and first line of the data; equal if there is no header."""
    wide = [len(split_line(line, delimiter)) == width for line in lines[:1000]]

    def of_words(k: int) -> bool:
        return is_header(bare_cells(lines[k], delimiter), decimal_comma)

    if len(lines) == 1:
        return 0, int(of_words(0))
    begin = end = next((k for k in range(len(wide)) if wide[k] and not of_words(k)), 0)
    while begin > 0 and wide[begin - 1] and of_words(begin - 1):
        begin -= 1
    if begin < end:
        return begin, end
    if end > 0 and of_words(end - 1):  # with another number of cells
        return end - 1, end
    return 0, int(of_words(0))


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
