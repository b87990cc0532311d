"""MATLAB .mat files: versions 5 to 7 are parsed here, version 4 by SciPy; version 7.3 is HDF5.

SciPy's reader of version 5 trusts the sizes given in a file and can crash the process on a broken one. Only numeric arrays
and structs of them are needed, so they are parsed here with all sizes checked (MathWorks, MAT-File Format, level 5).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...files.read_write import read_bytes
from ...files.sizes import most_unpacked
from ..tables import ArrayTable, check_unpacked, decoding
from .variables import table_of_variables

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
_DEEPEST = 8


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
