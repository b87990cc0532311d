"""Safe parsing of YAML and JSON; records as plain data, and back; columns as tables.

In both formats a small file can expand to a very large or endless object (nesting, aliases, integers of any length), and
parsers silently drop the first of two equal keys. Both cases are one-line errors here that say what is wrong and where. Nothing
in a document is ever executed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from ..errors import UrdfIdentError
from . import sizes

#: Resolver for numbers that YAML 1.1 reads as text (``1e-2``): tag, pattern and possible first characters.
FLOAT_WITHOUT_POINT = ("tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+"), list("-+0123456789"))
#: Numbers that YAML 1.1 reads with base 8 or 60, which nobody means: ``0100`` (64), ``1:30`` (90).
_OTHER_BASE = re.compile(r"[-+]?(?:0[0-7_]*[0-7]|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")
_BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
#: What to do about errors of the YAML parser, by a part of its message.
_YAML_ADVICE = {"'\\t'": "indent with spaces instead of tabs", "<stream end>": "close every bracket and quote"}
T = TypeVar("T")


def parse_yaml(text: str, where: str, error: type[UrdfIdentError], what: str = "file") -> Any:
    """Reads one YAML document.

    ``1e-2`` is read as a number (YAML 1.1 requires a decimal point), a date as text; ``0100`` and ``1:30``, of base 8 and 60,
    are refused.

    Args:
        what: What the document is, for messages (``"project file"``).

    Raises:
        UrdfIdentError: An ``error``: the text is not YAML, contains a key twice (both lines are named), or exceeds the limits
            on nesting and aliases in :mod:`.sizes`.
    """
    import yaml

    try:
        data = yaml.load(text, Loader=_yaml_loader())
        # refuses a document whose aliases expand to too many values or refer to themselves
        known: dict[int, float] = {}

        def weigh(entry: Any) -> float:
            if not isinstance(entry, (dict, list, tuple, set)):
                return 1.0
            if id(entry) not in known:
                known[id(entry)] = math.inf  # stays infinite if the entry contains itself
                inside = [*entry.keys(), *entry.values()] if isinstance(entry, dict) else list(entry)
                known[id(entry)] = 1.0 + sum(map(weigh, inside))
            return known[id(entry)]

        if weigh(data) > sizes.MOST_VALUES:
            raise _Refused(f"more than {sizes.MOST_VALUES} values when its aliases are written out")
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = f"{where}, line {mark.line + 1}" if mark else where
        words = ", ".join(part for part in (problem.context, problem.problem) if part)
        remedy = next((advice for sign, advice in _YAML_ADVICE.items() if sign in words), None)
        raise error(f"the {what} is not YAML", where=line, got=words, remedy=remedy) from problem
    except yaml.YAMLError as problem:
        raise error(f"the {what} is not YAML", where=where, got=str(problem).splitlines()[0]) from problem
    except _Refused as problem:
        raise error(problem.args[0], where=f"{where}{problem.place}", remedy=problem.remedy) from problem
    except _BROKEN as problem:
        got = f"{type(problem).__name__}: {problem}"[:120]
        raise error(f"the {what} holds a value that cannot be read", where=where, got=got) from problem
    return data


def parse_json(text: str, where: str, error: type[UrdfIdentError], what: str = "file") -> Any:
    """Reads one JSON document.

    Args:
        what: What the document is, for messages (``"result"``).

    Raises:
        UrdfIdentError: An ``error``: the text is not JSON, contains a key twice or a non-finite number, or is nested too deep.
    """
    try:
        return json.loads(
            text, parse_constant=_no_number, parse_int=_integer, parse_float=_number, object_pairs_hook=_unique_keys
        )
    except json.JSONDecodeError as problem:
        remedy = f"check that this is the {what}, whole and unedited"
        start = text.lstrip()[:30]
        if not start.startswith(("{", "[")):
            fault = f"this is no {what}, which is JSON" if start else f"the {what} is not JSON"
            raise error(fault, where=where, got=repr(start) if start else "an empty file", remedy=remedy) from problem
        raise error(
            f"the {what} is not JSON", where=f"{where}, line {problem.lineno}", got=problem.msg, remedy=remedy
        ) from problem
    except RecursionError as problem:
        raise error(
            f"the {what} is nested too deep", where=where, remedy="no such file is written by this program"
        ) from problem
    except _Refused as problem:
        raise error(problem.args[0], where=where, remedy=problem.remedy) from problem


class _Refused(Exception):
    """Content that is valid in the format but not accepted here."""

    def __init__(self, what: str, place: str = "", remedy: str | None = None) -> None:
        super().__init__(what)
        self.place, self.remedy = place, remedy


@cache
def _yaml_loader() -> type[Any]:
    """The YAML loader class; created on first use, so that ``--help`` does not import PyYAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.depth > sizes.DEEPEST:
                line = self.line + 1  # the reader's line, slightly ahead of the node
                raise _Refused(f"nested more than {sizes.DEEPEST} levels deep", f", line {line}")
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            lines: dict[tuple[str, str], int] = {}
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    name, line = (key.tag, key.value), key.start_mark.line + 1
                    if name in lines:
                        raise _Refused(
                            f"key '{key.value}' is given twice", f", lines {lines[name]} and {line}", "remove one of them"
                        )
                    lines[name] = line
            return super().construct_mapping(node, deep)

    kept = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.yaml_implicit_resolvers = kept
    Loader.add_implicit_resolver(*FLOAT_WITHOUT_POINT)

    def plain(node: Any) -> None:
        if _OTHER_BASE.fullmatch(node.value):
            raise _Refused(
                f"'{node.value}' is a number of base {60 if ':' in node.value else 8} in YAML",
                f", line {node.start_mark.line + 1}",
                "write it without zeros in front and without colons, or in quotes if it is a name",
            )

    def real(loader: Any, node: Any) -> float:
        plain(node)
        return float(yaml.SafeLoader.construct_yaml_float(loader, node))

    def integer(loader: Any, node: Any) -> int:
        plain(node)
        if len(node.value) > sizes.MOST_DIGITS:
            raise _Refused(f"an integer of {len(node.value)} digits", f", line {node.start_mark.line + 1}", "write it as 1e…")
        return int(yaml.SafeLoader.construct_yaml_int(loader, node))

    Loader.add_constructor("tag:yaml.org,2002:int", integer)
    Loader.add_constructor("tag:yaml.org,2002:float", real)
    return Loader


def _no_number(name: str) -> NoReturn:
    raise _Refused(f"{name} is no number of JSON", remedy="write null for what is not known, or restore the file")


def _integer(digits: str) -> int:
    if len(digits) > sizes.MOST_DIGITS:
        raise _Refused(f"an integer of {len(digits)} digits")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"the number {text[:40]} is too large")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Refused(f"key '{next(name for name in names if names.count(name) > 1)}' is given twice", remedy="remove one")
    return table


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
