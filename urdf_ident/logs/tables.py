"""Common interface of all log files: named columns of numbers, with the row numbers of the file."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LogError, MissingExtraError, MissingFileError, UrdfIdentError, check_name
from ..files.read_write import read_stream
from ..files.sizes import most_unpacked
from ..linalg import Array

Rows = NDArray[np.int64]
#: Most columns of a matrix, or elements of a list column: more are an image or a transposed time axis.
WIDEST = 512

#: Names (letters only) of columns that identify the joint or signal of a row, and of columns with its values.
_KEYS = re.compile("(joint|motor)(name|id|index)?|axis|name|field|signal|variable|channel|metric|topic|series")
_VALUES = re.compile("value|val|data|q|pos|position|angle|v|vel|velocity|tau|effort|torque|current")


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """An opened log: its columns are known, its numbers are not read yet.

    Attributes:
        names: Column names; empty if the file has none.
        notes: Choices and omissions of the reader, as text.
        spelled: Names completed by other information in the file (joints instead of numbers, units); None if there is none.
        first: The cells of the first row as text, for text files.
        texts: Names of text columns, which are left out.
    """

    path: str
    names: tuple[str, ...]
    width: int
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()
    spelled: tuple[str, ...] | None = field(default=None, kw_only=True)
    first: tuple[str, ...] = field(default=(), kw_only=True)
    texts: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        for name in self.names:  # before any comparison of names, whose time grows with their length
            check_name("column", name, LogError, self.path, quotes=True)

    @property
    def full_header(self) -> tuple[str, ...]:
        """Column names as completed by other information in the file; empty without any."""
        return self.spelled or self.names

    @abstractmethod
    def blocks(self, columns: Sequence[int]) -> Iterator[tuple[Array, Rows]]:
        """Reads columns, some rows at a time.

        Args:
            columns: 0-based column numbers.

        Yields:
            Values, shape (rows, len(columns)), and the 1-based row in the file of each sample, shape (rows,). Cells that are
            empty or not a number are NaN, as are all cells of rows that cannot be parsed.

        Raises:
            LogError: The file is broken.
        """

    def read(self, columns: Sequence[int]) -> Array:
        """Reads columns into one array, shape (N, len(columns))."""
        return np.concatenate([values for values, _ in self.blocks(columns)])

    def sha256(self) -> str:
        """Hash of the bytes of its files, and of its name if one file contains several logs."""
        hashes = [file_hash(path) for path in self.files]
        if len(hashes) == 1 and self.path == self.files[0]:
            return hashes[0]
        return hashlib.sha256("".join([*hashes, Path(self.path).name]).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class ArrayTable(Table):
    """A table whose columns are in memory.

    Attributes:
        columns: One array per column, shape (N,).
    """

    columns: tuple[NDArray[Any], ...] = field(kw_only=True)

    def blocks(self, columns: Sequence[int]) -> Iterator[tuple[Array, Rows]]:
        values = np.empty((len(self.columns[0]) if self.columns else 0, len(columns)))
        for k, column in enumerate(columns):
            values[:, k] = self.columns[column]
        yield values, np.arange(1, len(values) + 1)

    def values_hash(self) -> str:
        """SHA-256 of the names and numbers of a table that was not read from a file."""
        digest = hashlib.sha256("\0".join(self.names).encode())
        for column in self.columns:
            digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, read in chunks, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with read_stream(path, "log") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check_unpacked(path: str | Path, size: int) -> None:
    """Refuses a packed log that unpacks to more bytes, so far, than are in proportion to its size and fit the memory."""
    most = most_unpacked(Path(path).stat().st_size)
    if size > most:
        raise LogError(
            "the log unpacks to far more than its size",
            where=str(path),
            got=f"over {most >> 20} MiB",
            expected=f"at most {most >> 20} MiB",
            remedy="unpack it, or cut it in parts",
        )


@contextmanager
def decoding(
    path: str | Path, kind: str, extra: str = "", remedy: str = "check the recording, or export it as CSV"
) -> Iterator[None]:
    """Converts any exception of a decoder on a broken file to one error that names the file.

    Args:
        kind: Expected format, for messages (``"Parquet file"``).
        extra: The extra of this package that installs the decoder.

    Raises:
        MissingExtraError: The library is not installed.
        MissingFileError: The file cannot be opened.
        LogError: The file is broken.
    """
    try:
        yield
    except UrdfIdentError:
        raise
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"a {kind} needs the package {error.name}", where=str(path), remedy=f"pip install 'urdf-ident[{extra}]'"
        ) from error
    except PermissionError as error:
        raise MissingFileError(f"log cannot be read ({error.strerror})", where=str(path)) from error
    except Exception as error:  # decoders raise all kinds of exceptions on broken bytes; the cause is kept
        cause = " ".join(str(error).split())[:160] or type(error).__name__
        raise LogError(f"the {kind} is broken", where=str(path), got=cause, remedy=remedy) from error


def refuse_long(table: Table) -> None:
    """Refuses a table with a row per joint or signal, or with lists in its cells, and says how to convert it."""
    expected = "a column for every joint and quantity (q_<joint>, tau_<joint>)"
    lists = [k for k, cell in enumerate(table.first) if re.match(r"\s*[\[(].*,", cell)]
    if lists and table.names:
        raise LogError(
            f"the cells of column '{table.names[lists[-1]]}' hold lists",
            where=table.path,
            got=f"'{table.first[lists[-1]][:40]}'",
            expected=expected,
            remedy="record a bag or Parquet, which may hold lists, or write each element in a column of its own",
        )
    plain = {name: re.sub(r"[^a-z]", "", name.rpartition(".")[2].lower()) for name in (*table.names, *table.texts)}
    keys = [name for name, letters in plain.items() if _KEYS.fullmatch(letters)]
    values = [name for name, letters in plain.items() if _VALUES.fullmatch(letters)]
    if keys and values:
        key_text, value_text = (repr(columns[0] if len(columns) == 1 else columns) for columns in (keys, values))
        raise LogError(
            "the log has a row for every joint or signal, not one for every sample",
            where=table.path,
            got=f"columns {', '.join([*keys, *values])}",
            expected=expected,
            remedy=f"write it so first: pandas' `pivot(index=<time>, columns={key_text}, values={value_text})` does that",
        )
