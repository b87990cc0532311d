"""Friction in files: law name, parameters by symbol and shapes, each one number per joint or one for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ModelError, nearest
from .law import FRICTION, FormerName, Friction, Law


@dataclass(frozen=True, eq=False)
class FrictionRead:
    """Friction read from a file.

    Attributes:
        notes: Descriptions of the former names found.
    """

    friction: tuple[Friction, ...]
    notes: tuple[str, ...] = ()


def friction_from_mapping(settings: Mapping[str, object], where: str = "friction") -> FrictionRead:
    """Reads friction from a YAML or JSON mapping.

    Args:
        settings: Name of a law → numbers per joint of its only parameter, or a mapping of symbols and shapes → numbers.
            Omitted parameters are 0, omitted shapes the law's defaults. Former names are accepted.

    Returns:
        The laws, and a note on each former name.

    Raises:
        ModelError: Unknown name or field, a missing field, or values that are not numbers.
    """
    if not isinstance(settings, Mapping):
        raise ModelError("friction is no mapping", where=where, got=repr(settings)[:60], expected="law: numbers of the joints")
    laws, notes = [], []
    for name, value in settings.items():
        law, options, note = _resolve_law(name, value, where)
        numbers = {key: _numbers(law, key, item, where) for key, item in options.items()}
        laws.append(law.of(*[numbers.pop(symbol, 0.0) for symbol in law.symbols], **numbers))
        notes += [f"{where}: {note}"] if note else []
    return FrictionRead(tuple(laws), tuple(notes))


def _resolve_law(name: str, value: object, where: str) -> tuple[type[Law], dict[str, Any], str]:
    """Returns the law, its options by present names, and a note if former names were used."""
    given = dict(value) if isinstance(value, Mapping) else None
    law = FRICTION.get(name)
    if law is not None:
        present = {*law.symbols, *law.shapes}
        if given is None:
            if len(law.symbols) > 1:
                raise ModelError(f"friction '{name}' has several parameters", where=where, expected=", ".join(law.symbols))
            return law, {law.symbols[0]: value}, ""
        if set(given) <= present:
            _check_parameters(law, given, where)
            return law, given, ""
    matches = [(kind, old) for kind in FRICTION.values() for old in kind.former if old.name == name]
    for kind, old in matches:
        options = {next(iter(old.fields)): value} if given is None else given
        if set(options) <= set(old.fields):
            renamed = {old.fields[key]: item for key, item in options.items()}
            _check_parameters(kind, renamed, where, old)
            return kind, renamed, _note(kind, old, options)
    if law is None and not matches:
        former = [old.name for kind in FRICTION.values() for old in kind.former]
        raise ModelError(f"unknown friction '{name}'", where=where, remedy=nearest(name, [*FRICTION, *former]))
    own = law or matches[0][0]
    unknown = sorted(set(given or ()) - {*own.symbols, *own.shapes})
    raise ModelError(f"unknown field of '{name}'", where=where, got=unknown, expected=", ".join([*own.symbols, *own.shapes]))


def _check_parameters(law: type[Law], options: Mapping[str, Any], where: str, old: FormerName | None = None) -> None:
    """Checks that a law's only parameter, or all fields of a former notation, are given."""
    needed = set(old.fields.values()) & set(law.symbols) if old else set(law.symbols[:1] if len(law.symbols) == 1 else ())
    missing = sorted(needed - set(options))
    if missing:
        raise ModelError(f"friction '{law.name}' lacks a field", where=where, got=sorted(options), expected=", ".join(missing))


def _note(law: type[Law], old: FormerName, options: Mapping[str, Any]) -> str:
    renamed = [f"{key} → {old.fields[key]}" for key in options if key != old.fields[key]]
    words = f"'{old.name}' is now '{law.name}'" if old.name != law.name else f"fields of '{law.name}' have new names"
    return f"{words} ({', '.join(renamed)})" if renamed else words


def _numbers(law: type[Law], key: str, value: Any, where: str) -> Any:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"'{key}' of friction '{law.name}' holds no numbers", where=where, got=str(error)) from error
