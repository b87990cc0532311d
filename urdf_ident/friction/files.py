"""Friction in files: a law's name, its parameters by symbol and its shapes, a number per joint or one for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ModelError, nearest
from .law import FRICTION, FormerName, Friction, Law


@dataclass(frozen=True, eq=False)
class FrictionRead:
    """What a file says of friction.

    Attributes:
        friction: The laws with their parameters.
        notes: Former names that were found, in words.
    """

    friction: tuple[Friction, ...]
    notes: tuple[str, ...] = ()


def friction_from_mapping(settings: Mapping[str, object], where: str = "friction") -> FrictionRead:
    """Friction from a YAML or JSON mapping.

    Args:
        settings: Name of a law → its only parameter's numbers per joint, or a mapping of symbols and shapes → numbers.
            Parameters left out are 0, shapes are the law's defaults. Former names are read too.
        where: File and key, for messages.

    Returns:
        The laws, and a note on each former name.

    Raises:
        ModelError: Unknown name or field, a field that is missing, or no numbers.
    """
    if not isinstance(settings, Mapping):
        raise ModelError("friction is no mapping", where=where, got=repr(settings)[:60], expected="law: numbers of the joints")
    laws, notes = [], []
    for name, value in settings.items():
        law, options, note = _understood(name, value, where)
        numbers = {key: _numbers(law, key, item, where) for key, item in options.items()}
        values = [numbers.pop(symbol, 0.0) for symbol in law.symbols]
        laws.append(law.of(*values, **numbers))
        notes += [f"{where}: {note}"] if note else []
    return FrictionRead(tuple(laws), tuple(notes))


def _understood(name: str, value: object, where: str) -> tuple[type[Law], dict[str, Any], str]:
    """The law, its options by present names, and a note if the names were former ones."""
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
    """A law with one parameter needs it, and a former form all that it had; what has several may leave some out."""
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
