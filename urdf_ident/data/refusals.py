"""Logs that cannot be used: all of them in one error, or left out and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from ..errors import LogError, MissingFileError, UrdfIdentError
from ..parallel import each
from .quality.findings import Finding

R = TypeVar("R")

#: Names of refused logs in one message, at most.
_NAMED = 5


class Named(Protocol):
    """A log, read or not."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...


@dataclass(frozen=True)
class LeftOut:
    """A log that took no part because it cannot be read or used.

    Attributes:
        name: Short name of the log.
        path: Where it is.
        why: What is wrong with it, in words.
        sha256: Hash of the bytes read; empty where they could not be.
        findings: What was found in it.
    """

    name: str
    path: str
    why: str
    sha256: str = ""
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, log: Named, error: UrdfIdentError) -> LeftOut:
        """A log with the error that it has.

        Args:
            log: The log, or where it is.
            error: Why it is refused.

        Returns:
            The record.
        """
        why = error.what if error.remedy is None else f"{error.what}: {error.remedy}"
        return cls(log.name, log.path, why, getattr(log, "sha256", ""), getattr(error, "findings", ()))

    def as_dict(self) -> dict[str, Any]:
        """The log's entry in ``left_out`` of identification.json."""
        return {
            "name": self.name,
            "path": self.path,
            "sha256": self.sha256,
            "why": self.why,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def attempts(function: Callable[[Any], R], logs: Iterable[Any]) -> list[R | UrdfIdentError]:
    """Calls a function with every log, by the workers that there are, and goes on after a log that it refuses.

    Args:
        function: Of a module, or a partial of one.
        logs: Its arguments.

    Returns:
        What it returns, or the error of the log, in the same order.
    """
    return each(partial(_attempt, function), logs)


def all_usable(logs: Sequence[Named], results: Sequence[R | UrdfIdentError]) -> list[R]:
    """What was found for every log, where none is refused.

    Args:
        logs: The logs.
        results: What :func:`attempts` returned for them.

    Returns:
        The results.

    Raises:
        LogError, MissingFileError: That of the first refused log, which names the others; its ``logs`` holds the errors of
            all of them.
    """
    errors = {log.name: result for log, result in zip(logs, results, strict=True) if isinstance(result, UrdfIdentError)}
    if errors:
        raise _together(errors)
    return [result for result in results if not isinstance(result, UrdfIdentError)]


def each_usable(function: Callable[[Any], R], logs: Sequence[Any]) -> list[R]:
    """:func:`attempts`, then :func:`all_usable`: a call that refuses logs names all of them.

    Args:
        function: Of a module, or a partial of one.
        logs: Its arguments, with a name and a path.

    Returns:
        What it returns, in the same order.

    Raises:
        LogError, MissingFileError: See :func:`all_usable`.
    """
    return all_usable(logs, attempts(function, logs))


def _attempt(function: Callable[[Any], R], log: Any) -> R | UrdfIdentError:
    try:
        return function(log)
    except (LogError, MissingFileError) as error:
        return error


def _together(errors: dict[str, UrdfIdentError]) -> UrdfIdentError:
    first, *others = errors.values()
    if others:
        names = list(errors)[1:]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        first.args = (f"{first}; also refused: {', '.join(names[:_NAMED])}{more}",)
    first.logs = errors
    return first
