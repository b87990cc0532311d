"""Data frames (pandas, polars, pyarrow) and dictionaries of columns as tables, with the same header names as files."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LogError
from .tables import ArrayTable


def table_of_frame(frame: Any, name: str) -> ArrayTable:
    """Creates a table from a data frame.

    Args:
        frame: Anything with named columns: a pandas, polars or pyarrow table, or a mapping of names to arrays.
        name: Name for messages.

    Returns:
        The table; a named index of a pandas frame becomes a column, dates become seconds, text columns are left out.

    Raises:
        LogError: The frame has no numeric columns, or they differ in length.
    """
    columns = getattr(frame, "column_names", getattr(frame, "columns", None))
    names = list(frame if columns is None else columns)
    found: dict[str, NDArray[Any]] = {}
    skipped = []
    index = getattr(getattr(frame, "index", None), "name", None)
    for key in [*names, *([index] if isinstance(index, str) and index not in names else [])]:
        values = np.asarray(frame.index if key == index and key not in names else frame[key])
        if values.dtype.kind == "M":
            found[str(key)] = (values - values[:1]) / np.timedelta64(1, "s")
        elif values.dtype.kind == "m":
            found[str(key)] = values / np.timedelta64(1, "s")
        elif values.dtype.kind in "fiub" and values.ndim == 1:
            found[str(key)] = values
        else:
            skipped.append(str(key))
    if not found or len({len(values) for values in found.values()}) != 1 or not len(next(iter(found.values()))):
        raise LogError("the frame holds no columns of numbers of one length", where=name, got=", ".join(map(str, names[:8])))
    notes = (f"columns without numbers left out: {', '.join(skipped)}",) if skipped else ()
    return ArrayTable(name, tuple(found), len(found), (), notes, tuple(found.values()))


def array_hash(table: ArrayTable) -> str:
    """SHA-256 of the numbers of a table that was not read from a file.

    Args:
        table: The table, columns of shape (N,).

    Returns:
        64 hexadecimal digits.
    """
    digest = hashlib.sha256("\0".join(table.names or ()).encode())
    for column in table.columns:
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()
