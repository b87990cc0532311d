"""Safe parsing of YAML and JSON: plain data, or a one-line error that says what is wrong and where.

In both formats a small file can expand to a very large or endless object (nesting, aliases, integers of any length), and
parsers silently drop the first of two equal keys. Both cases are errors here. Nothing in a document is ever executed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable
from functools import cache
from typing import Any, NoReturn

from ..errors import UrdfIdentError
from . import sizes

#: Resolver for numbers that YAML 1.1 reads as text (``1e-2``): tag, pattern and possible first characters.
FLOAT_WITHOUT_POINT = ("tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+"), list("-+0123456789"))
#: Numbers that YAML 1.1 reads with base 8 or 60, which nobody means: ``0100`` (64), ``1:30`` (90).
_OTHER_BASE = re.compile(r"[-+]?(?:0[0-7_]*[0-7]|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")
_BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
#: What to do about errors of the YAML parser, by a part of its message.
_YAML_ADVICE = {"'\\t'": "indent with spaces instead of tabs", "<stream end>": "close every bracket and quote"}


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
