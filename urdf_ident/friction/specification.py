"""Friction in project files (names, fixed shapes, joints) and in files of parameters (numbers by symbol, one or per joint)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..errors import ModelError, nearest
from .law import FRICTION, Friction, Term

#: Start of ``friction: auto``, and its result where the data cannot choose.
DEFAULT_FRICTION = ("viscous", "coulomb", "offset")
#: The same for the motor side of a motor that moves several joints, in addition to the friction of the joints.
MOTOR_FRICTION = ("viscous", "coulomb")


def friction_term(spec: str | Mapping[str, Any] | Term, ratio: float = 1.0) -> Term:
    """Builds a friction law from the user's notation.

    Args:
        spec: A name (``"coulomb"``), a mapping with its fixed shapes (``{"term": "coulomb", "width": 0.02}``; the
            value ``auto`` means that a shape is fitted, starting from its default), or a term.
        ratio: Speed of the axis per joint speed, a positive number. Defaults are for joints: on a motor, shapes that
            are not given are scaled by it.

    Raises:
        ModelError: Unknown name or shape; the nearest valid one is named.
    """
    if isinstance(spec, Term):
        return spec
    if not isinstance(spec, str | Mapping):
        raise ModelError("a friction term is neither a name nor a mapping", got=repr(spec), expected="{term: name, ...}")
    options = {"term": spec} if isinstance(spec, str) else dict(spec)
    name, free = str(options.pop("term", "")), list(options.pop("free", ()))
    trained, straight = options.pop("trained", None), options.pop("straight", np.inf)
    if name not in FRICTION:
        raise ModelError("unknown friction term", got=repr(name), remedy=nearest(name, FRICTION))
    law = FRICTION[name]
    free += [key for key, value in options.items() if value == "auto"]
    for key in (*options, *free):
        if key not in law.shapes:
            raise ModelError(
                f"friction term '{name}' has no shape '{key}'", remedy=nearest(key, list(law.shapes) or ["(none)"])
            )
    fixed: dict[str, Any] = {key: value for key, value in options.items() if value != "auto"}
    for key, value in fixed.items():
        zero, units = law.shapes[key].zero, dict.fromkeys(law.shapes[key].units)
        number = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
        if not number or value < 0 or (value == 0 and not zero):
            raise ModelError(
                f"shape '{key}' of friction term '{law.name}'",
                got=repr(value),
                expected=f"a number {'>= 0' if zero else '> 0'} [{' or '.join(units)}], or auto",
            )
    numbers: dict[str, Any] = {}
    for shape in fields(law):
        if shape.name in fixed:
            numbers[shape.name] = float(fixed[shape.name])
        elif shape.name in law.shapes and ratio != 1.0:
            numbers[shape.name] = law.shapes[shape.name].scaled(float(shape.default), ratio)  # type: ignore[arg-type]
    reach = None
    if trained is not None:
        try:
            low, high = (float(end) for end in trained)
        except (TypeError, ValueError):
            low = high = 0.0
        if not (np.isfinite([low, high]).all() and low < 0 < high):
            raise ModelError(
                f"trained speeds of friction term '{name}'", got=repr(trained), expected="[lowest < 0, highest > 0]"
            )
        reach = low, high
    if not isinstance(straight, int | float) or not straight >= 1:
        raise ModelError(f"'straight' of friction term '{name}'", got=repr(straight), expected="a number >= 1")
    return replace(law(**numbers), free=tuple(dict.fromkeys(free)), trained=reach, straight=float(straight))


def friction_by_joint(
    spec: str | Sequence[Any] | Mapping[str, Sequence[Any]], joints: Sequence[str], ratios: Mapping[str, float] | None = None
) -> dict[str, tuple[Term, ...]]:
    """Returns the friction laws of every joint, from any of the three notations of the project file.

    Args:
        spec: ``"auto"``, a list for all joints, or ``{"default": [...], "joint_3": [...]}``.
        ratios: Joint name → speed of its axis per joint speed, for the motor side; see :func:`friction_term`.

    Returns:
        Joint name → its laws.

    Raises:
        ModelError: An unknown joint or law.
    """
    if isinstance(spec, str):
        if spec not in ("auto", "none"):
            raise ModelError("unknown friction", got=repr(spec), remedy="auto, none, or a list of terms")
        spec = DEFAULT_FRICTION if spec == "auto" else ()
    table = dict(spec) if isinstance(spec, Mapping) else {"default": spec}
    for name in table:
        if name != "default" and name not in joints:
            raise ModelError(f"friction is given for '{name}', which is no joint", remedy=nearest(name, joints))
    default = table.get("default", DEFAULT_FRICTION)
    turns = ratios or {}
    return {joint: tuple(friction_term(law, turns.get(joint, 1.0)) for law in table.get(joint, default)) for joint in joints}


def friction_from_mapping(settings: Mapping[str, object], where: str = "friction") -> tuple[Friction, ...]:
    """Reads friction from a YAML or JSON mapping.

    Args:
        settings: Name of a law → numbers per joint of its only parameter, or a mapping of symbols and shapes → numbers.
            Omitted parameters of a law with several are 0, omitted shapes the law's defaults.

    Returns:
        The laws.

    Raises:
        ModelError: Unknown name or field, a missing field, or values that are not numbers.
    """
    if not isinstance(settings, Mapping):
        raise ModelError("friction is no mapping", where=where, got=repr(settings)[:60], expected="law: numbers of the joints")
    laws = []
    for name, value in settings.items():
        if name not in FRICTION:
            raise ModelError(f"unknown friction '{name}'", where=where, remedy=nearest(name, FRICTION))
        law = FRICTION[name]
        if not isinstance(value, Mapping) and len(law.symbols) > 1:
            raise ModelError(f"friction '{name}' has several parameters", where=where, expected=", ".join(law.symbols))
        given = dict(value) if isinstance(value, Mapping) else {law.symbols[0]: value}
        fields = [*law.symbols, *law.shapes]
        if unknown := sorted(set(given) - set(fields)):
            raise ModelError(f"unknown field of '{name}'", where=where, got=unknown, expected=", ".join(fields))
        if len(law.symbols) == 1 and law.symbols[0] not in given:
            raise ModelError(f"friction '{name}' lacks a field", where=where, got=sorted(given), expected=law.symbols[0])
        numbers = {}
        for key, given_numbers in given.items():
            try:
                numbers[key] = np.asarray(given_numbers, dtype=float)
            except (TypeError, ValueError) as error:
                raise ModelError(f"'{key}' of friction '{name}' holds no numbers", where=where, got=str(error)) from error
        laws.append(law.of(*[numbers.pop(symbol, 0.0) for symbol in law.symbols], **numbers))
    return tuple(laws)
