"""Cells of text: decoding, division of lines into cells, numbers and dates."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path

import numpy as np

from ...errors import LogError
from ...linalg import Array

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+")
#: Digits in groups of three: with a decimal point (of groups divided by points, there are at least three), and with a decimal
#: comma.
_GROUPED = re.compile(r"[-+]?(?:\d{1,3}(?:[,'’\s]\d{3})+(?:\.\d*)?|\d{1,3}(?:\.\d{3}){2,}(?:,\d*)?)")
_GROUPED_COMMA = re.compile(r"[-+]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d{1,3}(?:['’\s]\d{3})+)(?:,\d*)?")
_DATE = (
    r"(?:(?P<year>\d{4})[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)|(?P<Day>\d\d?)[.-](?P<Month>\d\d?|[A-Z]{3})[.-](?P<Year>\d{4})"
    r"|(?P<one>\d\d?)/(?P<other>\d\d?)/(?:\d{4}|\d\d))"
)
_CLOCK = r"(?P<hours>\d\d?):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:[.,]\d+)?))?"
_STAMP = re.compile(rf"(?:{_DATE}[T ]\s*)?{_CLOCK}\s*(?P<half>[AP]M)?\s*(?P<zone>Z|UTC|[-+]\d\d:?\d\d)?", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
#: Cells without a number, in lower case.
NO_NUMBER = ("nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "")
#: Bytes that do not occur in text.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f]")
#: First bytes of files that are often taken for a log: what they are, and what to do.
_BINARY = (
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "save the sheet as CSV"),
    (b"\x80", "a Python pickle, which is never loaded", "write the data as CSV, .npz or Parquet"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it first"),
    (b"Rar!", "a RAR archive", "unpack it first"),
)
_DELIMITERS = (";", "\t", ",", "|")


def decode(data: bytes, path: str | Path) -> str:
    """Decodes bytes as UTF-8, or else as Windows-1252; LogError if they are not text."""
    with suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode("utf-8")
    control = _CONTROL.search(data)
    if control is None:
        return data.decode("cp1252", "replace")
    for start, kind, remedy in _BINARY:
        if data.startswith(start):
            raise LogError(f"this is {kind}", where=str(path), expected="a table of numbers", remedy=remedy)
    raise LogError(
        "the log is not a text file",
        where=str(path),
        got=f"byte {control[0][0]:#04x} at {control.start()}",
        expected="a CSV file, or a format of docs/logs.md",
        remedy="export the log as CSV",
    )


def text_lines(text: str) -> list[str]:
    """Lines of a text with any kind of line ends, without them."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def find_delimiter(lines: Sequence[str]) -> str | None:
    """The delimiter of most lines; None means white space, here and below."""
    bare = (re.sub(r'"[^"]*"', "", line) for line in lines)
    return Counter(next((mark for mark in _DELIMITERS if mark in line), None) for line in bare).most_common(1)[0][0]


def split_line(line: str, delimiter: str | None) -> list[str]:
    """The cells of a line, without enclosing quotes."""
    if delimiter is not None and '"' in line:
        with suppress(csv.Error):
            return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    return line.split(delimiter)


def bare_cells(line: str, delimiter: str | None) -> list[str]:
    """The cells of a line, without enclosing blanks and quotes."""
    return [cell.strip().strip("\"'").strip() for cell in split_line(line, delimiter)]


def number(cell: str, decimal_comma: bool = False) -> float:
    """The number in a cell; NaN for anything else."""
    cell = cell.strip().strip("\"'").replace("\N{MINUS SIGN}", "-")  # which some locales write
    try:
        return float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        return np.nan


def decimal_commas(cells: Sequence[str]) -> bool:
    """Whether any cell has a decimal comma (``0,5``); beside a decimal point, the comma of ``1,234`` separates thousands."""
    commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    points = any("." in cell and np.isfinite(number(cell)) for cell in cells)
    return any(not (points and _GROUPED.fullmatch(cell)) for cell in commas)


def is_grouped(cell: str, decimal_comma: bool) -> bool:
    """Whether a number is written with thousands separators (``1,234.5``, ``1.234,5``, ``1 234``)."""
    return (_GROUPED_COMMA if decimal_comma else _GROUPED).fullmatch(cell.strip().strip("\"'")) is not None


def is_header(cells: Sequence[str], decimal_comma: bool) -> bool:
    """Whether a line is a header: most cells are words, or some are and none is a number."""
    others = [cell for cell in cells if np.isnan(number(cell, decimal_comma)) and not _STAMP.fullmatch(cell)]
    words = sum(cell.lower() not in NO_NUMBER for cell in others)
    return 2 * words > sum(cell != "" for cell in cells) or (words > 0 and len(others) == len(cells))


def are_stamps(cells: Sequence[str]) -> bool:
    """Whether all cells contain a time of day, with or without a date."""
    return bool(cells) and all(_STAMP.fullmatch(cell) for cell in cells)


def stamp(cell: str) -> float:
    """Parses a date and time of day.

    Supported are ISO 8601, ``2024/05/01 12:00:00``, ``01.05.2024 12:00:00,5``, ``01-May-2024 12:00:00``, ``5/1/2024 12:00:00
    PM`` and a time of day alone. It does not matter which number of ``5/1/2024`` is the day: one of them increases at
    midnight, and at the end of a month time runs backwards, which is refused elsewhere.

    Returns:
        Seconds since a midnight that is the same for all cells of one notation [s]; NaN for anything else.
    """
    match = _STAMP.fullmatch(cell.strip().strip("\"'").strip())
    if not match:
        return np.nan
    hours, minutes = int(match["hours"]), int(match["minutes"])
    seconds = float((match["seconds"] or "0").replace(",", "."))
    if match["half"] and 1 <= hours <= 12:
        hours = hours % 12 + 12 * (match["half"].lower() == "pm")
    if hours > 23 or minutes > 59 or seconds >= 61:
        return np.nan
    days = 0
    if match["one"]:
        days = int(match["one"]) + int(match["other"])
    elif day := match["day"] or match["Day"]:
        month, year = match["month"] or match["Month"], match["year"] or match["Year"]
        try:
            number_of_month = int(month) if month.isdigit() else 1 + _MONTHS.index(month.lower())
            days = date(int(year), number_of_month, int(day)).toordinal() - date(2020, 1, 1).toordinal()
        except ValueError:
            return np.nan
    shift = 0
    if (zone := match["zone"]) and zone.upper() not in ("Z", "UTC"):
        shift = int(f"{zone[0]}1") * (3600 * int(zone[1:3]) + 60 * int(zone[-2:]))
    return 86400 * days + 3600 * hours + 60 * minutes - shift + seconds


def numbers_of(cells: Sequence[object]) -> Array:
    """Numbers of a text column, shape (N,): numbers, or seconds for dates (see :func:`stamp`); NaN for anything else."""
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    if are_stamps([text.strip() for text in texts if text.strip()][:5]):
        return np.array([stamp(text) for text in texts])
    comma = decimal_commas([text.strip().strip("\"'").strip() for text in texts])
    return np.array([number(text, comma) for text in texts])


def holds_numbers(cells: Sequence[object]) -> bool:
    """Whether a text column contains numbers or dates and nothing else, empty cells aside."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip().lower() not in NO_NUMBER]
    return bool(texts) and bool(np.isfinite(numbers_of(texts)).all())
