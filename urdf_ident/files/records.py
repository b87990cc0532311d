"""Records as plain data for JSON, and back; columns as tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

T = TypeVar("T")


def plain(value: Any) -> Any:
    """Converts nested data for JSON: records become dicts (by their ``as_dict``), arrays lists, inf and nan strings."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        held = value.dtype.kind in "biu" or (value.dtype.kind == "f" and bool(np.isfinite(value).all()))
        return value.tolist() if held else plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if hasattr(value, "as_dict"):
        return plain(value.as_dict())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


def json_text(value: Any) -> str:
    """Returns JSON, one entry per line."""
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def record(kind: type[T], data: Mapping[str, Any], where: str = "") -> T:
    """Inverse of :func:`plain`: builds a record from its fields.

    Args:
        kind: A dataclass whose fields are arrays, tuples, numbers, text, mappings, typed dicts, or records; of these those that
            have it are read by their ``from_dict``.
        data: Its fields; those with defaults may be missing, other entries are ignored.
        where: Dotted place of the record in its file, for errors.

    Raises:
        KeyError: A field without a default is missing.
        TypeError, ValueError: A value is of another type.
    """
    every = fields(kind)  # type: ignore[arg-type]
    needed = [field.name for field in every if field.name in data or field.default is field.default_factory is MISSING]
    return kind(**read_fields(kind, data, needed, where))


def read_fields(kind: type, data: Mapping[str, Any], names: Iterable[str], where: str = "") -> dict[str, Any]:
    """Some fields of a record, read as by :func:`record`."""
    hints, values = get_type_hints(kind), dict[str, Any]()
    for name in names:
        place = f"{where}.{name}".lstrip(".")
        if name not in data:
            raise KeyError(place)
        values[name] = _value(hints[name], data[name], place)
    return values


def _value(hint: Any, value: Any, where: str) -> Any:
    """A value of an annotated type from its plain form."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None else _value(next(kind for kind in arguments if kind is not NoneType), value, where)
    if origin is np.ndarray:
        kind = np.dtype(get_args(arguments[1])[0])
        try:
            given = np.array(value, dtype=kind if kind.kind == "f" else None)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{where} holds what is no number") from error
        if given.size and kind.kind != given.dtype.kind:
            raise TypeError(f"{where} is no list of type {kind}")
        return given.astype(kind)
    mapped = is_dataclass(hint) or is_typeddict(hint) or origin is Mapping
    held = list | tuple if origin in (tuple, Sequence) else Mapping if mapped else hint
    if held in (list | tuple, Mapping, str, bool, int) and not isinstance(value, held):
        raise TypeError(f"{where} is {value!r:.40}")
    if origin in (tuple, Sequence):
        return tuple(_value(arguments[0], entry, f"{where}.{k}") for k, entry in enumerate(value))
    if origin is Mapping:
        return {key: _value(arguments[1], entry, f"{where}.{key}") for key, entry in value.items()}
    if is_typeddict(hint):  # other entries stay as they are
        names = [name for name in get_type_hints(hint) if name in hint.__required_keys__ or value.get(name) is not None]
        return {**value, **read_fields(hint, value, names, where)}
    if hasattr(hint, "from_dict"):
        try:
            return hint.from_dict(value)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error
    if is_dataclass(hint):
        return record(hint, value, where)  # type: ignore[arg-type]
    told = isinstance(value, str) and value in ("inf", "-inf", "nan")  # as :func:`plain` writes them
    if hint is float and not told and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"{where} is {value!r:.40}")
    return float(value) if hint is float else value


def frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Returns a table of columns: a pandas frame indexed by the first, or a structured array if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        arrays = {name: np.array(list(values)) for name, values in columns.items()}
        table = np.empty(len(next(iter(arrays.values()))), dtype=[(name, array.dtype) for name, array in arrays.items()])
        for name, array in arrays.items():
            table[name] = array
        return table
    return pandas.DataFrame(dict(columns)).set_index(next(iter(columns)))
