"""Files of named arrays become tables: NumPy's .npy and .npz, and HDF5, which MATLAB's version 7.3 is."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LogError, nearest
from .tables import MOST_BYTES, ArrayTable, decoding

#: Columns that one matrix may bring; more are a picture or a time axis that runs the other way.
_WIDEST = 512


def table_of_variables(
    path: str | Path, variables: Mapping[str, Any], notes: tuple[str, ...] = (), group: str | None = None
) -> ArrayTable:
    """A table from named arrays: those that are as long as most numbers are; each column of a matrix becomes a column.

    Args:
        path: The file, for messages.
        variables: Name → array; samples may lie along either axis.
        notes: What was left out already.
        group: Only variables whose name begins so (``run1`` of ``run1/q``), without that beginning.

    Returns:
        The table; ``<name>`` for vectors, ``<name>_<k>`` for columns of matrices, no names for one matrix without a name.

    Raises:
        LogError: No array is long enough to be a log.
    """
    if group is not None:
        inside = {name.removeprefix(group).lstrip("/."): value for name, value in variables.items() if _inside(name, group)}
        if not inside:
            groups = {name.rsplit("/", 1)[0] for name in variables if "/" in name}
            raise LogError(f"no group '{group}'", where=f"{path} (log.topic)", remedy=nearest(group, groups))
        variables = inside
    arrays = {name: value for name, raw in variables.items() if (value := _numeric(raw)) is not None}
    votes: Counter[int] = Counter()
    for value in arrays.values():
        votes[max(value.shape)] += value.size
    count = votes.most_common(1)[0][0] if votes else 0
    if count < 2:
        raise LogError(
            "no variable of the log is a series of numbers",
            where=str(path),
            got=", ".join(list(variables)[:8]) or "none",
            remedy="name the file that holds the samples",
        )
    names: list[str] = []
    columns: list[NDArray[Any]] = []
    left_out = []
    for name, value in arrays.items():
        if count not in value.shape:
            left_out.append(name)
            continue
        value = value if value.shape[0] == count else value.T
        if value.shape[1] > _WIDEST:
            left_out.append(name)
            continue
        names += [name] if value.shape[1] == 1 else [f"{name}_{k}" for k in range(value.shape[1])]
        columns += [value[:, k] for k in range(value.shape[1])]
    if left_out:
        notes = (*notes, f"variables of another length left out: {', '.join(left_out)}")
    named = tuple(names) if set(arrays) != {""} else None
    return ArrayTable(str(path), named, len(columns), (str(path),), notes, tuple(columns))


def _inside(name: str, group: str) -> bool:
    group = group.strip("/.")
    return name.strip("/") == group or name.strip("/").startswith((group + "/", group + "."))


def _numeric(value: Any) -> NDArray[Any] | None:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim == 0 or array.size < 2:
        return None
    array = array.reshape(array.shape[0], -1) if array.ndim > 2 and array.shape[0] > 1 else array
    array = np.squeeze(array) if array.ndim > 1 and 1 in array.shape else array
    if array.ndim > 2 or array.size < 2:
        return None
    return array[:, None] if array.ndim == 1 else array


def open_numpy(path: str | Path, group: str | None = None) -> ArrayTable:
    """Opens a .npy or .npz file; pickled objects are never loaded.

    Args:
        group: See :func:`table_of_variables`.

    Returns:
        The table.

    Raises:
        LogError: The file is broken, holds objects, or unpacks to more than is allowed.
    """
    with decoding(path, "NumPy file"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                size = sum(item.file_size for item in archive.infolist())
            if size > min(MOST_BYTES, max(1 << 28, 1000 * Path(path).stat().st_size)):
                raise LogError("the log unpacks to far more than its size", where=str(path), got=f"{size >> 20} MiB")
            variables: dict[str, Any] = {}
            notes = ()
            with zipfile.ZipFile(path) as archive:
                for item in archive.infolist():
                    if item.filename.endswith(".npy"):
                        variables[item.filename[:-4]] = _member(archive, item, path)
            return table_of_variables(path, variables, notes, group)
        array = np.load(path, allow_pickle=False, mmap_mode="r")
        fields = array.dtype.names
        return table_of_variables(path, {"": array} if fields is None else {name: array[name] for name in fields}, (), group)


def _member(archive: zipfile.ZipFile, item: zipfile.ZipInfo, path: str | Path) -> NDArray[Any]:
    """An array of an archive, whose header may not ask for more memory than the member has bytes."""
    with archive.open(item) as stream:
        version = np.lib.format.read_magic(stream)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(stream)
        if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > item.file_size:
            raise LogError(
                f"the array '{item.filename}' is not what its header says",
                where=str(path),
                got=f"{dtype} {shape}",
                remedy="save plain arrays of numbers",
            )
    with archive.open(item) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def open_hdf5(path: str | Path, group: str | None = None) -> ArrayTable:
    """Opens an HDF5 file (or a .mat of version 7.3); links and data that lie outside of it are not followed.

    Args:
        group: See :func:`table_of_variables`.

    Returns:
        The table.

    Raises:
        MissingExtraError: h5py is not installed.
        LogError: The file is broken, or claims more data than is allowed.
    """
    variables: dict[str, Any] = {}
    outside: list[str] = []
    with decoding(path, "HDF5 file", "hdf5"):
        import h5py

        size = Path(path).stat().st_size
        with h5py.File(path, "r", locking=False) as file:
            total = 0
            for name, item in _datasets(file, outside):
                if item.dtype.names:
                    fields = {f"{name}/{field}": field for field in item.dtype.names if item.dtype[field].kind in "fiub"}
                else:
                    fields = {name: ""} if item.dtype.kind in "fiub" else {}
                if not fields or item.size < 2 or item.ndim > 2:
                    continue
                total += item.size * item.dtype.itemsize
                if total > min(MOST_BYTES, max(1 << 28, 1000 * size)):
                    raise LogError("the log unpacks to far more than its size", where=str(path), got=f"over {total >> 20} MiB")
                values = item[()]
                variables.update({own: values[field] if field else values for own, field in fields.items()})
    notes = (f"links to other files not followed: {', '.join(outside)}",) if outside else ()
    return table_of_variables(path, variables, notes, group)


def _datasets(root: Any, outside: list[str]) -> list[tuple[str, Any]]:
    """Every data set inside the file itself, each once; what MATLAB keeps for itself is not among them."""
    import h5py

    found: list[tuple[str, Any]] = []
    stack, seen = [("", root)], 0
    visited: set[Any] = set()
    while stack and seen < 10_000:
        prefix, group = stack.pop()
        for name in group:
            seen += 1
            path = f"{prefix}/{name}" if prefix else str(name)
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                outside.append(path)
                continue
            if path.startswith("#"):
                continue
            item = group.get(name)
            if item is None or (where := h5py.h5o.get_info(item.id).addr) in visited:
                continue
            visited.add(where)
            if isinstance(item, h5py.Group):
                stack.append((path, item))
            elif isinstance(item, h5py.Dataset):
                if item.external or item.is_virtual:
                    outside.append(path)
                else:
                    found.append((path, item))
    return sorted(found)
