"""One line of a text log: its letters, its cells, and what stands in them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from ...errors import LogError

_DECIMAL_COMMA = re.compile(r"^\s*[-+]?\d*,\d+")
_DATE = r"(?:(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)|(?P<Day>\d\d)\.(?P<Month>\d\d)\.(?P<Year>\d{4}))"
_CLOCK = r"(?P<clock>\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)"
_STAMP = re.compile(rf"(?:{_DATE}[T ])?{_CLOCK}\s*(?P<zone>Z|UTC|[-+]\d\d:?\d\d)?", re.IGNORECASE)
_NO_NUMBER = ("nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "")
#: Bytes that no text holds, and characters that may stand between cells.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f]")
_MARKS = (";", "\t", ",", "|")


def decode(data: bytes, path: str | Path) -> str:
    """Letters of bytes: UTF-8, or Windows' Western letters where it is not that.

    Args:
        data: The bytes.
        path: The log, for messages.

    Returns:
        The text.

    Raises:
        LogError: There are bytes that no text holds.
    """
    with suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode("utf-8")
    found = _CONTROL.search(data)
    if found is None:
        return data.decode("cp1252", "replace")
    raise LogError(
        "the log is not a text file",
        where=str(path),
        got=f"byte {found[0][0]:#04x} at {found.start()}",
        expected="a CSV file, or a format of docs/logs.md",
        remedy="export the log as CSV",
    )


def text_lines(text: str) -> Iterator[str]:
    """Lines of a text, whatever ends them.

    Args:
        text: The text.

    Returns:
        Its lines, without what ends them.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    return iter(lines[:-1] if lines and not lines[-1] else lines)


def find_delimiter(lines: Sequence[str]) -> str | None:
    """What stands between the cells of most lines.

    Args:
        lines: Some lines.

    Returns:
        The character; None means white space.
    """
    bare = (re.sub(r'"[^"]*"', "", line) for line in lines)
    return Counter(next((mark for mark in _MARKS if mark in line), None) for line in bare).most_common(1)[0][0]


def decimal_commas(lines: Sequence[str], delimiter: str | None) -> bool:
    """Whether ``0,5`` is a half.

    Args:
        lines: Some lines.
        delimiter: Character between cells; None means white space.

    Returns:
        True if any cell is written so.
    """
    return any(_DECIMAL_COMMA.fullmatch(cell) for line in lines for cell in cells_of(line, delimiter))


def split_line(line: str, delimiter: str | None) -> list[str]:
    """The cells of a line as they stand there, without the quotes around them.

    Args:
        line: The line.
        delimiter: Character between cells; None means white space.

    Returns:
        One text a cell.
    """
    if delimiter is None:
        return line.split()
    if '"' in line:
        try:
            return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error:
            return line.split(delimiter)
    return line.split(delimiter)


def width_of(line: str, delimiter: str | None) -> int:
    """How many cells a line has.

    Args:
        line: The line.
        delimiter: Character between cells; None means white space.

    Returns:
        The number.
    """
    return len(split_line(line, delimiter)) if delimiter is None or '"' in line else 1 + line.count(delimiter)


def cells_of(line: str, delimiter: str | None) -> list[str]:
    """The cells of a line without blanks and quotes around them.

    Args:
        line: The line.
        delimiter: Character between cells; None means white space.

    Returns:
        One text a cell.
    """
    return [cell.strip().strip("\"'").strip() for cell in split_line(line, delimiter)]


def is_header(cells: Sequence[str], decimal_comma: bool) -> bool:
    """Whether a line is a header.

    Args:
        cells: Its cells.
        decimal_comma: True where ``0,5`` is a half.

    Returns:
        True if most cells are words, or if some are and none is a number.
    """
    others = [cell for cell in cells if np.isnan(number(cell, decimal_comma)) and not _STAMP.fullmatch(cell)]
    words = [cell for cell in others if cell.lower() not in _NO_NUMBER]
    return 2 * len(words) > len([cell for cell in cells if cell]) or (len(words) > 0 and len(others) == len(cells))


def number(cell: str, decimal_comma: bool = False) -> float:
    """The number in a cell.

    Args:
        cell: The cell.
        decimal_comma: True where ``0,5`` is a half.

    Returns:
        The number; NaN for anything else.
    """
    cell = cell.strip().strip("\"'")
    try:
        return float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        return np.nan


def stamp_columns(rows: Sequence[Sequence[str]]) -> frozenset[int]:
    """Columns that hold a time of day in every one of some rows, with or without a date.

    Args:
        rows: Cells of rows, all as many.

    Returns:
        0-based column numbers.
    """
    return frozenset(k for k in range(len(rows[0])) if all(_STAMP.fullmatch(row[k]) for row in rows)) if rows else frozenset()


def stamp(cell: str) -> float:
    """Reads a date and time of day.

    Understood are ISO 8601, ``2024/05/01 12:00:00``, ``01.05.2024 12:00:00,5`` and a time of day alone. ``05/01/2024``
    may be either of two days and is not.

    Args:
        cell: The cell.

    Returns:
        Seconds since 2020, near enough to keep the digits [s]; NaN for anything else.
    """
    match = _STAMP.fullmatch(cell.strip().strip("\"'").strip())
    if not match:
        return np.nan
    day = [match[name.capitalize()] or match[name] for name in ("year", "month", "day")]
    date = "-".join(day) if all(day) else "2020-01-01"
    try:
        since = np.datetime64(f"{date}T{match['clock'].replace(',', '.')}", "ns") - np.datetime64("2020-01-01", "ns")
    except ValueError:
        return np.nan
    shift, zone = 0, match["zone"]
    if zone and zone.upper() not in ("Z", "UTC"):
        digits = zone[1:].replace(":", "")
        shift = (1 if zone[0] == "+" else -1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))
    return float(since.astype(np.int64) - shift * 10**9) / 1e9
