"""Tables from files of named arrays: NumPy's .npy and .npz, and HDF5, including MATLAB version 7.3."""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LogError, nearest
from ...files.read_write import read_bytes
from ...files.sizes import DEEPEST, most_unpacked
from ...grouping import abbreviated
from ..columns.headers import JOINT_COLUMN, holds_targets, with_joints
from ..columns.layout import TIMES
from ..tables import WIDEST, ArrayTable, check_unpacked, decoding
from .lines import holds_numbers, numbers_of

#: Objects of an HDF5 file that are looked at.
_MOST_OBJECTS = 10_000
#: Soft links of an HDF5 file that may follow each other.
_MOST_LINKS = 16
#: Attributes of HDF5 data sets that state their unit.
_UNITS = ("unit", "units", "Unit", "Units")
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED, _CELL, _STRUCT, _TEXT, _NUMBERS = 14, 15, 1, 2, 4, range(6, 16)
#: Character types → their encoding for either byte order.
_LETTERS = {
    2: {"<": "latin-1", ">": "latin-1"},
    4: {"<": "utf-16-le", ">": "utf-16-be"},
    16: {"<": "utf-8", ">": "utf-8"},
    17: {"<": "utf-16-le", ">": "utf-16-be"},
    18: {"<": "utf-32-le", ">": "utf-32-be"},
}
#: Depth of nested structures and cells that are looked into.
_DEEPEST = 8


def table_of_variables(
    path: str | Path,
    variables: Mapping[str, Any],
    notes: tuple[str, ...] = (),
    group: str | None = None,
    units: Mapping[str, str] | None = None,
) -> ArrayTable:
    """Creates a table from the named arrays of the most common length (weighted by size).

    Args:
        variables: Name → array; samples may be along either axis. A list of strings named ``joint_names``, ``names`` or
            ``joints`` gives the joints of the matrices in its group with the same number of columns.
        notes: Notes on what was already left out.
        group: Only variables in this group (``run1`` of ``run1/q``); the group is removed from their names.
        units: Variable → its unit as stated in the file.

    Returns:
        The table; ``<name>`` for vectors, ``<name>_<k>`` for columns of matrices, no names for a single unnamed matrix.
        If there are several runs, the first is used and a note names the others.

    Raises:
        LogError: No array is long enough to be a log.
    """
    if group is None:
        variables, notes = _first_run(variables, notes)
    else:
        groups = {name.rsplit("/", 1)[0] for name in variables if "/" in name}
        variables = {name.removeprefix(group).lstrip("/."): value for name, value in variables.items() if _inside(name, group)}
        if not variables:
            raise LogError(f"no group '{group}'", where=f"{path} (log.topic)", remedy=nearest(group, groups))
    arrays = {name: value for name, raw in variables.items() if (value := _numeric(raw)) is not None}
    count = _usual_length(arrays.values())
    if count < 2:
        raise LogError(
            "no variable of the log is a series of numbers",
            where=str(path),
            got=", ".join(list(variables)[:8]) or "none",
            remedy="name the file that holds the samples",
        )
    columns: dict[str, NDArray[Any]] = {}
    stated: list[str] = []
    left_out = []
    for name, value in arrays.items():
        value = value if value.shape[0] == count else value.T
        if value.shape[0] != count or value.shape[1] > WIDEST:
            left_out.append(name)
            continue
        columns |= {name: value[:, 0]} if value.shape[1] == 1 else {f"{name}_{k}": x for k, x in enumerate(value.T)}
        unit = (units or {}).get(f"{group.strip('/.')}/{name}" if group else name)
        stated += [f" [{unit}]" if unit else ""] * value.shape[1]
    if left_out:
        notes = (*notes, f"variables of another length left out: {', '.join(left_out)}")
    names = tuple(columns) if set(arrays) != {""} else ()
    lists = _joint_lists(variables)
    joined = with_joints(names, lists)
    if lists and joined is None and len(columns) > len(arrays):
        listed = "; ".join(abbreviated(joints) for joints in lists.values())
        notes = (*notes, f"joint names that do not belong to the columns are not used: {listed}")
    spelled = tuple(map(str.__add__, joined or names, stated)) if names and (joined or any(stated)) else None
    return ArrayTable(str(path), names, len(columns), (str(path),), notes, columns=tuple(columns.values()), spelled=spelled)


def table_of_frame(frame: Any, name: str) -> ArrayTable:
    """Creates a table from a data frame.

    Args:
        frame: Anything with named columns: a pandas, polars or pyarrow table, or a mapping of names to arrays.

    Returns:
        The table (:func:`table_of_variables`); a named index of a pandas frame becomes a column, dates become seconds.
    """
    columns = getattr(frame, "column_names", getattr(frame, "columns", None))
    series = {str(key): np.asarray(frame[key]) for key in (frame if columns is None else columns)}
    index = getattr(getattr(frame, "index", None), "name", None)
    if isinstance(index, str):
        series.setdefault(index, np.asarray(frame.index))
    return table_of_variables(name, series)


def _usual_length(arrays: Iterable[NDArray[Any]]) -> int:
    """The most common length of arrays, by the number of their values; 0 without any that may be a log."""
    votes: Counter[int] = Counter()
    for value in arrays:
        if min(value.shape) <= WIDEST:
            votes[max(value.shape)] += value.size
    return votes.most_common(1)[0][0] if votes else 0


def _joint_lists(variables: Mapping[str, Any]) -> dict[str, list[str]]:
    """Group → joint names from a list of strings in it, or from one string with separators."""
    lists: dict[str, list[str]] = {}
    for name, raw in variables.items():
        match, texts = JOINT_COLUMN.fullmatch(name), np.asarray(raw).ravel()
        if match and texts.dtype.kind in "SU":
            joints = list(map(_text, texts.tolist()))
            joints = re.split("[,;]", joints[0].strip("[]() ")) if len(joints) == 1 else joints
            lists.setdefault(match[1] or "", [text.strip(" '\"") for text in joints])
    return lists


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _first_run(variables: Mapping[str, Any], notes: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The variables without those of further runs: groups with their own clock and no quantity that the first lacks."""
    groups: dict[str, set[str]] = {}
    for name in variables:
        group, _, variable = name.rpartition("/")
        groups.setdefault(group, set()).add(variable.lower())
    runs = sorted((group for group, variable in groups.items() if group and variable & set(TIMES)), key=holds_targets)
    others = [run for run in runs[1:] if groups[run] <= groups[runs[0]]]
    if not others:
        return variables, notes
    first = {name: value for name, value in variables.items() if not any(_inside(name, run) for run in others)}
    more = ", …" if len(others) > 5 else ""
    return first, (
        *notes,
        f"the file holds {1 + len(others)} runs: {runs[0]} is read, {', '.join(others[:5])}{more} not; "
        f"`log: {{topic: {others[0]}}}` reads another",
    )


def _inside(name: str, group: str) -> bool:
    group = group.strip("/.")
    return name.strip("/") == group or name.strip("/").startswith((group + "/", group + "."))


def _numeric(value: Any) -> NDArray[Any] | None:
    array = np.asarray(value)
    if array.dtype.kind in "mM" and array.size > 1:
        array = (array - array.ravel()[0] if array.dtype.kind == "M" else array) / np.timedelta64(1, "s")
    if array.dtype.kind == "U" and array.ndim == 1 and holds_numbers(array[:20].tolist()):
        array = numbers_of(array.tolist())
    if array.dtype.kind not in "fiub" or array.ndim == 0 or array.size < 2:
        return None
    array = array.reshape(array.shape[0], -1) if array.ndim > 2 and array.shape[0] > 1 else array
    array = np.squeeze(array) if array.ndim > 1 and 1 in array.shape else array
    if array.ndim > 2 or array.size < 2:
        return None
    return array[:, None] if array.ndim == 1 else array


def open_numpy(path: str | Path, group: str | None = None) -> ArrayTable:
    """Opens a .npy or .npz file (``group`` as in :func:`table_of_variables`); pickled objects are never loaded."""
    with decoding(path, "NumPy file"):
        if not zipfile.is_zipfile(path):
            array = np.load(path, allow_pickle=False)
            fields = array.dtype.names or ()
            return table_of_variables(path, {name: array[name] for name in fields} or {"": array}, (), group)
        with zipfile.ZipFile(path) as archive:
            check_unpacked(path, sum(member.file_size for member in archive.infolist()))
            names = archive.namelist()
            variables = {name[:-4]: _member(archive, name, path) for name in names if name.endswith(".npy")}
        if not variables:
            book = any(name.startswith("xl/") for name in names)
            raise LogError(
                "this is an Excel workbook" if book else "this is a ZIP archive, not a log",
                where=str(path),
                got=", ".join(names[:5]),
                remedy="save the sheet as CSV" if book else "unpack it first; a packed log may be .gz, .xz, .bz2 or .zst",
            )
        objects = [name for name, value in variables.items() if value is None]
        notes = (f"arrays of Python objects are never loaded: {', '.join(objects)}",) if objects else ()
        return table_of_variables(path, {name: value for name, value in variables.items() if value is not None}, notes, group)


def _member(archive: zipfile.ZipFile, name: str, path: str | Path) -> NDArray[Any] | None:
    """An array of an archive, whose header may not claim more bytes than the member has; None for objects."""
    with archive.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(stream)
    if dtype.hasobject:
        return None
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > archive.getinfo(name).file_size:
        raise LogError(
            f"the array '{name}' is not what its header says",
            where=str(path),
            got=f"{dtype} {shape}",
            remedy="save plain arrays of numbers",
        )
    with archive.open(name) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def open_hdf5(path: str | Path, group: str | None = None) -> ArrayTable:
    """Opens an HDF5 file or .mat of version 7.3 (``group`` as in :func:`table_of_variables`); no external data or links."""
    variables: dict[str, Any] = {}
    units: dict[str, str] = {}
    with decoding(path, "HDF5 file", "hdf5"):
        import h5py

        with h5py.File(path, "r", locking=False) as file:
            datasets, outside = _datasets(file)
            total = 0
            for name, dataset in sorted(datasets.items()):
                kind, fields = dataset.dtype, dataset.dtype.names
                is_text = kind.kind == "S" or h5py.check_string_dtype(kind) is not None
                if is_text and 0 < dataset.size <= WIDEST:
                    variables[name] = np.asarray(dataset.asstr()[()], dtype=str)
                variables = _joints_in_attributes(name, dataset) | variables
                numeric = [field for field in fields or () if kind[field].base.kind in "fiub"]
                if not (numeric or kind.kind in "fiub") or dataset.size < 2 or dataset.ndim > 2:
                    continue
                total += dataset.size * kind.itemsize
                check_unpacked(path, total)
                values = dataset[()]
                variables |= {f"{name}/{field}": values[field] for field in numeric} if fields else {name: values}
                unit = next((dataset.attrs[key] for key in _UNITS if key in dataset.attrs), "")
                if isinstance(unit, bytes | str):
                    units[name] = _text(unit)
    notes = (f"links to other files not followed: {', '.join(outside)}",) if outside else ()
    return table_of_variables(path, variables, notes, group, units)


def _datasets(file: Any) -> tuple[dict[str, Any], list[str]]:
    """Path → data set of all in a file, each once, without MATLAB's internal ones; paths of what lies in other files."""
    import h5py

    datasets, outside = dict[str, Any](), list[str]()
    stack, seen = [("", file)], 0
    visited = {h5py.h5o.get_info(file.id).addr}
    while stack and seen < _MOST_OBJECTS:
        prefix, folder = stack.pop()
        for key in folder:
            seen += 1
            path = f"{prefix}/{key}" if prefix else str(key)
            if path.startswith("#"):
                continue
            place = _linked_place(file, f"{folder.name}/{key}")
            if place is None:
                outside.append(path)
                continue
            node = file.get(place) if place else None
            if node is None or (address := h5py.h5o.get_info(node.id).addr) in visited:
                continue
            visited.add(address)
            if isinstance(node, h5py.Group) and path.count("/") < DEEPEST:
                stack.append((path, node))
            elif isinstance(node, h5py.Dataset) and node.shape is not None:
                if node.external or node.is_virtual:
                    outside.append(path)
                else:
                    datasets[path] = node
    return datasets, outside


def _joints_in_attributes(name: str, dataset: Any) -> dict[str, Any]:
    """Lists of joint names in attributes of a data set, or else of its group, as if they were variables beside it."""
    lists: dict[str, Any] = {}
    for owner in (dataset, dataset.parent):
        for key in filter(JOINT_COLUMN.fullmatch, owner.attrs):
            value = np.atleast_1d(np.asarray(owner.attrs[key]))
            if value.ndim == 1 and 0 < value.size <= WIDEST and value.dtype.kind in "OSU":
                path = f"{name.rpartition('/')[0]}/{key}".lstrip("/")
                lists.setdefault(path, np.asarray(list(map(_text, value.tolist()))))
    return lists


def _linked_place(root: Any, path: str) -> str | None:
    """Where an object really lies: its path with all soft links followed, without any other file being opened.

    Returns:
        The path; empty if nothing is there or the links form a circle; None if a link leads to another file.
    """
    import h5py

    place, steps, links = "/", [step for step in path.split("/") if step], 0
    while steps:
        step = steps.pop(0)
        link = root.get(place).get(step, getlink=True, default=None) if step != "." else h5py.HardLink()
        if isinstance(link, h5py.ExternalLink):
            return None
        if isinstance(link, h5py.SoftLink):
            links += 1
            steps = [step for step in link.path.split("/") if step] + steps
            place = "/" if link.path.startswith("/") else place
            if links > _MOST_LINKS or len(steps) > DEEPEST:
                return ""
        elif link is None or (steps and not isinstance(root.get(f"{place}/{step}"), h5py.Group)):
            return ""
        elif step != ".":
            place = f"{place.rstrip('/')}/{step}"
    return place


def open_matlab(path: str | Path, group: str | None = None) -> ArrayTable:
    """Opens a .mat file of version 4 to 7 (``group`` as in :func:`.table_of_variables`); structs become ``struct/field``."""
    data = read_bytes(path, "log")
    variables: dict[str, Any] = {}
    with decoding(path, "MATLAB file"):
        if data[126:128] in (b"IM", b"MI"):
            order, total = "<" if data[126:128] == b"IM" else ">", 0
            for kind, payload in _elements(memoryview(data)[128:], order):
                elements: Iterable[tuple[int, memoryview]] = [(kind, payload)]
                if kind == _COMPRESSED:
                    unpacked = zlib.decompressobj().decompress(payload, most_unpacked(len(data)) - total + 1)
                    total += len(unpacked)
                    check_unpacked(path, total)
                    elements = _elements(memoryview(unpacked), order)
                for content in (content for inner, content in elements if inner == _MATRIX):
                    _flatten(*_matrix(content, order, 0), variables)
        else:
            from scipy.io import loadmat, matlab

            if matlab.matfile_version(str(path))[0] != 0:
                raise ValueError("neither version 4 nor 5")
            variables = {name: value for name, value in loadmat(str(path)).items() if isinstance(value, np.ndarray)}
    return table_of_variables(path, variables, (), group)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    offset = 0
    while offset + 8 <= len(data):
        (word, size) = struct.unpack_from(f"{order}II", data, offset)
        if word >> 16:  # a small element: size and type in one word, followed by the content
            kind, size, begin, offset = word & 0xFFFF, word >> 16, offset + 4, offset + 8
            if size > 4:
                raise ValueError(f"a small element of {size} bytes")
        else:
            kind, begin = word, offset + 8
            offset = begin + size + (-size % 8 if kind != _COMPRESSED else 0)
        if begin + size > len(data):
            raise ValueError(f"an element of {size} bytes where {len(data) - begin} are left")
        yield kind, data[begin : begin + size]


def _numbers(element: tuple[int, memoryview], order: str) -> NDArray[Any]:
    kind, payload = element
    if kind not in _TYPES:
        raise ValueError(f"numbers of unknown type {kind}")
    return np.frombuffer(payload, dtype=f"{order}{_TYPES[kind]}")


def _matrix(data: memoryview, order: str, depth: int) -> tuple[str, Any]:
    """Name and value of a matrix: an array of numbers or strings, a mapping for a struct, None for anything else."""
    elements = list(_elements(data, order))
    if len(elements) < 3:
        return "", None  # an empty field
    flags, shape = _numbers(elements[0], order), [int(size) for size in _numbers(elements[1], order)]
    name = bytes(elements[2][1]).decode("latin-1")
    if len(flags) == 0 or min(shape, default=-1) < 0:
        raise ValueError(f"a matrix of shape {shape}")
    kind, count = int(flags[0]) & 0xFF, math.prod(shape)
    if kind in _NUMBERS and len(elements) > 3:
        values = _numbers(elements[3], order)
        if len(values) != count:
            raise ValueError(f"{len(values)} numbers for a matrix of shape {shape}")
        return name, values.reshape(shape, order="F")
    if kind == _TEXT and len(elements) > 3 and len(shape) == 2:
        form, payload = elements[3]
        letters = bytes(payload).decode(_LETTERS[form][order], "replace") if form in _LETTERS else ""
        if len(letters) != count:  # a character takes more than one code unit
            return name, None
        return name, np.array([letters[row :: shape[0]].rstrip() for row in range(shape[0])], dtype=str)  # stored by columns
    if kind == _CELL and depth < _DEEPEST and len(elements) - 3 == count > 0:
        contents = [_matrix(payload, order, depth + 1)[1] if inner == _MATRIX else None for inner, payload in elements[3:]]
        texts = [
            str(value[0]) for value in contents if isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.size == 1
        ]
        return name, np.array(texts) if len(texts) == count else None
    if kind == _STRUCT and count == 1 and depth < _DEEPEST and len(elements) > 4:
        lengths = _numbers(elements[3], order)
        length, names = int(lengths[0]) if len(lengths) else 0, bytes(elements[4][1])
        if not 0 < length <= 64:
            raise ValueError(f"field names of {length} bytes")
        fields = [names[k : k + length].split(b"\0")[0].decode("latin-1") for k in range(0, len(names), length)]
        contents = [_matrix(payload, order, depth + 1)[1] if inner == _MATRIX else None for inner, payload in elements[5:]]
        return name, dict(zip(fields, contents, strict=False))
    return name, None


def _flatten(prefix: str, value: Any, into: dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _flatten(f"{prefix}/{name}", inner, into)
    elif isinstance(value, np.ndarray):
        into[prefix] = value
