"""Handling of unusable logs: all in one error, or left out and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import LogError, MissingFileError, UrdfIdentError
from ..grouping import abbreviated
from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..parallel import each

if TYPE_CHECKING:
    from .recording import Recording
    from .sources import LogSource

R = TypeVar("R")


@dataclass(frozen=True)
class LeftOut:
    """A log that was left out because it cannot be read or used; its entry in ``left_out`` of identification.json.

    Attributes:
        sha256: Hash of the bytes read; empty if the log could not be read.
    """

    name: str
    path: str
    why: str
    sha256: str = ""
    findings: tuple[Judgement, ...] = ()

    @classmethod
    def of(cls, log: Recording | LogSource, error: UrdfIdentError) -> LeftOut:
        why = error.fact if error.remedy is None else f"{error.fact}: {error.remedy}"
        return cls(log.name, log.path, why, getattr(log, "sha256", ""), getattr(error, "findings", ()))

    def as_finding(self) -> Judgement:
        """The reason as a finding about a log that cannot be read."""
        return Judgement(Id.LOG_UNREADABLE, self.why)


def attempts(function: Callable[[Any], R], logs: Iterable[Any]) -> list[R | UrdfIdentError]:
    """Calls a module-level function, or a partial of one, with every log, on the workers; a refused log gives its error."""
    return each(partial(attempt, function), logs)


def attempt(function: Callable[[Any], R], log: Any) -> R | UrdfIdentError:
    """Calls a function with one log; returns the error that refuses the log, if one does."""
    try:
        return function(log)
    except (LogError, MissingFileError) as error:
        return error


def all_usable(logs: Sequence[Recording | LogSource], results: Sequence[R | UrdfIdentError]) -> list[R]:
    """Returns the results of :func:`attempts` if no log is refused.

    Raises:
        LogError, MissingFileError: The error of the first refused log; it names the others, and its ``logs`` holds all errors.
    """
    errors = {log.name: result for log, result in zip(logs, results, strict=True) if isinstance(result, UrdfIdentError)}
    if errors:
        first, *others = errors.values()
        if others:
            first.args = (f"{first}; also refused: {abbreviated(list(errors)[1:])}",)
        first.logs = errors
        raise first
    return [result for result in results if not isinstance(result, UrdfIdentError)]


def each_usable(function: Callable[[Any], R], logs: Sequence[Any]) -> list[R]:
    """:func:`attempts` followed by :func:`all_usable`, so that an error names all refused logs."""
    return all_usable(logs, attempts(function, logs))


def copies_refused(results: Sequence[Recording | UrdfIdentError]) -> list[Recording | UrdfIdentError]:
    """Results of :func:`attempts`, with an error for each log with the motion and efforts of an earlier one.

    That is one log twice, be it in another file format.
    """
    checked: list[Recording | UrdfIdentError] = []
    earlier: dict[tuple[int, float], list[Recording]] = {}  # by length and sum of a few positions
    for log in results:
        if isinstance(log, UrdfIdentError):
            checked.append(log)
            continue
        few = log.position[::100]
        alike = earlier.setdefault((len(log), float(np.sum(few, where=~np.isnan(few)))), [])
        original = next((other for other in alike if _same_signals(other, log)), None)
        if original is None:
            alike.append(log)
            checked.append(log)
        else:
            words = "remove one: a log counted twice makes its errors look too small"
            got = f"the content of {original.name}"
            checked.append(LogError("the same log is given twice", where=log.where, got=got, remedy=words))
    return checked


def _same_signals(first: Recording, second: Recording) -> bool:
    """Whether positions, and efforts if both have them, are equal."""
    pairs = [(first.position, second.position)]
    if first.effort is not None and second.effort is not None:
        pairs.append((first.effort, second.effort))
    return all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)


def refuse_trained(training: Mapping[str, str], logs: Sequence[Recording], what: str, remedy: str) -> None:
    """Refuses logs that a model has been fitted to, by the hashes (→ names) of these: LogError with message and remedy."""
    for log in logs:
        if log.sha256 and log.sha256 in training:
            raise LogError(what, where=log.where, got=training[log.sha256], remedy=remedy)
