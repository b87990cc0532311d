"""Exceptions that say what went wrong, where, what was found, what was expected and what to do.

Every exception is both a :class:`UrdfIdentError` and the builtin that a Python user would catch. Its details are
attributes, so that a program can react without parsing the text.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from math import isfinite
from types import MappingProxyType
from typing import Any

from .quoting import LONGEST_NAME, is_harmless, is_one_line, printable, shown

#: Characters of a word and number of words among which a misspelt one is searched, and number of words that are listed.
_COMPARED, _MOST_COMPARED, _MOST_LISTED = 64, 1000, 60


class UrdfIdentError(Exception):
    """Base class of all errors of the package; the message is one line.

    Args:
        what: What went wrong.
        where: File, row, column, joint or link.
        got: The offending value.
        expected: What would have been valid.
        remedy: What the user can do about it.
    """

    #: Name of each refused log → its own error; empty if the error does not concern individual logs.
    logs: Mapping[str, UrdfIdentError] = MappingProxyType({})

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        got: object = None,
        expected: object = None,
        remedy: str | None = None,
    ) -> None:
        self.what, self.where, self.got, self.expected, self.remedy = what, where, got, expected, remedy
        text = f"{where}: {self.fact}" if where else self.fact
        super().__init__(printable(" ".join((f"{text}; {remedy}" if remedy else text).split())))

    @property
    def fact(self) -> str:
        """What went wrong, what was found and what was expected, without the place and the remedy."""
        pairs = (("got", self.got), ("expected", self.expected))
        return ", ".join([self.what, *(f"{word} {value}" for word, value in pairs if value is not None)])


class UrdfError(UrdfIdentError, ValueError):
    """The robot description cannot be parsed, is unsupported or is not physical."""


class LogError(UrdfIdentError, ValueError):
    """A log cannot be read, or its content cannot be used."""


class QualityError(LogError):
    """A log was read but failed the quality checks; ``findings`` holds all findings."""

    def __init__(self, what: str, *, findings: tuple[Any, ...] = (), **context: object) -> None:
        super().__init__(what, **context)  # type: ignore[arg-type]
        self.findings = findings

    def as_dict(self) -> dict[str, Any]:
        """What was refused, and all findings, for JSON."""
        refused = {"message": self.what, "where": self.where, "remedy": self.remedy, "logs": list(self.logs)}
        return {"refused": refused, "findings": [finding.as_dict() for finding in self.findings]}


class ProjectError(UrdfIdentError, ValueError):
    """The project file cannot be parsed or contains an unknown key or value."""


class UnitError(UrdfIdentError, ValueError):
    """An unknown unit, or a unit of the wrong dimension."""


class ModelError(UrdfIdentError, ValueError):
    """The requested dynamic model cannot be built (unknown term, wrong drive, no joints)."""


class ShapeError(UrdfIdentError, ValueError):
    """An array has the wrong shape."""


class EstimationError(UrdfIdentError, ArithmeticError):
    """The estimation problem has no usable solution."""


class SolverError(UrdfIdentError, RuntimeError):
    """A numerical solver failed; ``status`` is the status that it returned."""

    def __init__(self, what: str, *, status: str = "", **context: object) -> None:
        super().__init__(what, **context)  # type: ignore[arg-type]
        self.status = status


class SimulationError(UrdfIdentError, RuntimeError):
    """A simulation diverged or cannot start."""


class LimitError(UrdfIdentError, ValueError):
    """A motion exceeds the limits of the robot, or no motion satisfies them."""


class FingerprintError(UrdfIdentError, ValueError):
    """Data of different models, signal conditionings or units were combined."""


class SchedulerError(UrdfIdentError, ConnectionError):
    """A cluster cannot be used."""


class MissingFileError(UrdfIdentError, FileNotFoundError):
    """A given file or folder does not exist."""


class OutputError(UrdfIdentError, OSError):
    """A file or folder cannot be written."""


class MissingExtraError(UrdfIdentError, ImportError):
    """An optional dependency is not installed."""


def closest(word: str, valid: Iterable[str], alike: float = 0.6) -> str | None:
    """Finds the word that is most like a possibly misspelt one.

    Args:
        alike: Least similarity, 0 to 1.

    Returns:
        The word, or None if none is so similar.
    """
    begins = {str(item)[:_COMPARED]: str(item) for item in islice(valid, _MOST_COMPARED)}  # the time grows as a square
    close = difflib.get_close_matches(str(word)[:_COMPARED], begins, n=1, cutoff=alike)
    return begins[close[0]] if close else None


def nearest(word: str, valid: Iterable[str]) -> str:
    """Suggests the valid word closest to a misspelt one.

    Args:
        valid: The words that would have been accepted.

    Returns:
        ``"did you mean 'x'?"``, or the list of valid words if none is close.
    """
    words = [str(candidate) for candidate in valid]
    close = closest(word, words, alike=0.5)
    more = f" and {len(words) - _MOST_LISTED} more" * (len(words) > _MOST_LISTED)
    return f"did you mean '{close}'?" if close is not None else f"valid: {', '.join(words[:_MOST_LISTED])}{more}"


def check_known(what: str, word: str, valid: Collection[str], error: type[UrdfIdentError], where: str | None = None) -> None:
    """Checks that a word of a setting is a known one.

    Args:
        what: What the word names, for the message.
        where: Where it stands, for the message.

    Raises:
        UrdfIdentError: An ``error``: the word is unknown.
    """
    if word not in valid:
        raise error(f"unknown {what}", where=where, got=repr(word), remedy=nearest(word, valid))


def check_named(what: str, name: str, known: Collection[str], error: type[UrdfIdentError], where: str | None = None) -> None:
    """Checks that a thing of some name exists.

    Args:
        what: What it is, for the message: ``"joint"``.
        where: Where the name stands, for the message.

    Raises:
        UrdfIdentError: An ``error``: nothing has that name.
    """
    if name not in known:
        raise error(f"no {what} is called '{name}'", where=where, remedy=nearest(name, known))


def check_name(what: str, name: str, error: type[UrdfIdentError], where: str | None = None, *, quotes: bool = False) -> None:
    """Checks that a name of a file is short, printable, and without quotes and backslashes.

    Args:
        what: What it names, for the message: ``"joint"``.
        where: Where the name stands, for the message.
        quotes: Accept quotes and backslashes.

    Raises:
        UrdfIdentError: An ``error``: it is not; the message shows its beginning, with escapes.
    """
    if len(name) > LONGEST_NAME:
        fault, expected = "is too long", f"at most {LONGEST_NAME} characters"
    elif not (is_one_line(name) if quotes else is_harmless(name)):
        fault, expected = "is not plain text", "no control characters" + ", quotes or backslashes" * (not quotes)
    else:
        return
    raise error(f"the name of a {what} {fault}", where=where, got=shown(name), expected=expected, remedy="rename it")


def check_positive(what: str, value: float, error: type[UrdfIdentError], unit: str = "") -> None:
    """Checks that a number is finite and positive.

    Args:
        what: What it is, for the message: ``"the duration"``.
        value: The number [unit].
        unit: Its unit, for the message; empty if it has none or several.

    Raises:
        UrdfIdentError: An ``error``: it is not.
    """
    if not (isfinite(value) and value > 0):
        raise error(f"{what} must be positive", got=f"{value} {unit}".strip())


def check_shape(name: str, got: tuple[int, ...], expected: tuple[int | str, ...]) -> None:
    """Checks the shape of an array; letters in ``expected`` stand for any length.

    Args:
        name: Name of the argument, for the message.
        got: Shape of the array.
        expected: Expected shape, e.g. ``("N", 6)``.

    Raises:
        ShapeError: The number of axes or a fixed length differs.
    """
    fits = len(got) == len(expected) and all(isinstance(e, str) or g == e for g, e in zip(got, expected, strict=True))
    if not fits:
        raise ShapeError(f"wrong shape of '{name}'", got=got, expected="(" + ", ".join(map(str, expected)) + ")")
