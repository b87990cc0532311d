"""Expansion of the LOG arguments of a command: files, folders, globs, addresses, stems of split logs."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import LogError, MissingFileError
from ..files.read_write import allowed, missing_hint
from ..quoting import printable
from .columns.layout import LogLayout
from .formats.choice import PACKED, is_bag_folder, is_log_name, logs_among
from .formats.lerobot import episode_path, episodes, episodes_in, is_dataset, split_episode
from .remote import Files, file_name, is_address, logs_at, plain


@dataclass(frozen=True)
class LogSource:
    """Location of one log: its name and its file for each quantity (the key ``""`` stands for all others).

    Attributes:
        name: Short name, unique among the logs of the same call.
        path: The file, or the stem of a split log, for messages; of an address without user, password and query.
        files: Pairs (quantity, path); a log in one file has the single pair ``("", path)``.
    """

    name: str
    path: str
    files: Files


def expand_logs(
    arguments: Sequence[str | Path],
    layout: LogLayout | None = None,
    *,
    without: Sequence[str | Path] = (),
) -> list[LogSource]:
    """Finds the logs that the arguments refer to.

    Args:
        arguments: Files, folders (every log in them), bag folders, LeRobot data sets (every episode in them) or single
            episodes (``DATASET/episode_000003``), globs, or stems of split logs; files, folders and globs may also be
            addresses (``s3://bucket/run.parquet``).
        layout: Its ``files`` give the file names of a split log.
        without: Logs to leave out of the folders, data sets and globs of ``arguments``, such as those held out for
            validation; a log that is an argument itself stays.

    Returns:
        The logs, sorted by path, without duplicates.

    Raises:
        MissingFileError: An argument matches no log, or a part of a split log is missing.
        LogError: All logs of an argument are held out, or the files of a split log lie elsewhere.
    """
    layout = layout or LogLayout()
    excluded: set[str] = set().union(*(_logs_of(argument, layout) for argument in without)) if without else set()
    files_of: dict[str, Files] = {}
    for argument in arguments:
        logs = _logs_of(argument, layout)
        chosen = {path: files for path, files in logs.items() if len(logs) == 1 or path not in excluded}
        if not chosen and logs:
            raise LogError("all of its logs are held out", where=str(argument), remedy="hold out fewer, or give other logs")
        files_of.update(chosen)
    unique: dict[tuple[str, ...], str] = {}
    for path in sorted(files_of):
        unique.setdefault(tuple(str(Path(file).resolve()) for _, file in files_of[path]), path)
    paths = list(unique.values())
    return [
        LogSource(printable(name), printable(shown(path)), files_of[path])
        for name, path in zip(_unique_names(paths), paths, strict=True)
    ]


def _unique_names(paths: Sequence[str]) -> list[str]:
    """Short names of logs; equal ones get the folder before them, else the whole path, else a number (of addresses)."""
    names = [_short(path) for path in paths]
    numbers = {path: f"{shown(path)} ({k + 1})" for k, path in enumerate(paths)}  # addresses that differ in their query
    for longer in (lambda path: f"{Path(shown(path)).parent.name}/{_short(path)}", shown, lambda path: numbers[path]):
        twice = Counter(names)
        names = [longer(path) if twice[name] > 1 else name for name, path in zip(names, paths, strict=True)]
    return names


def _logs_of(argument: str | Path, layout: LogLayout) -> dict[str, Files]:
    """The logs of one argument, and the files of each."""
    expanded = os.path.expanduser(argument)
    return _split_logs(expanded, layout) if layout.files else _plain_logs(expanded)


def log_source(source: str | Path | LogSource, layout: LogLayout) -> LogSource:
    """The log at one path: a file, the stem of a split log (by ``layout.files``), or a source already found."""
    if isinstance(source, LogSource):
        return source
    path = os.path.expanduser(source)
    return LogSource(
        printable(_short(path)), printable(shown(path)), _files_of_stem(path, layout, path) if layout.files else (("", path),)
    )


def _plain_logs(argument: str) -> dict[str, Files]:
    path = Path(argument)
    if is_address(argument):
        paths = logs_at(argument)
    elif path.is_dir():
        paths = _logs_of_folder(path)
        if not paths:  # neither a bag nor a data set itself
            members = sorted(p for p in path.iterdir() if not p.name.startswith("."))
            paths = logs_among(str(p) for p in members if _file_or_link(p))
            paths += [log for p in members if p.is_dir() for log in _logs_of_folder(p)]
        if not paths:
            raise MissingFileError(
                "the folder holds no log",
                where=argument,
                expected="*.csv, a bag or a LeRobot data set",
                remedy="name the files themselves",
            )
    elif (episode := split_episode(path)) is not None:
        paths = [episode_path(*episode)]
    elif path.exists():
        paths = episodes_in(path) or [argument]
    else:
        matches = sorted(glob.glob(argument, recursive=True)) if _is_glob(argument) else []
        paths = [log for match in matches for log in ([match] if _file_or_link(Path(match)) else _logs_of_folder(Path(match)))]
        if not paths:
            if _is_glob(argument):
                raise MissingFileError("no log matches", where=argument, remedy="check the path and the pattern")
            beside = [p.name for p in sorted(path.parent.iterdir()) if is_log_name(p)] if path.parent.is_dir() else []
            raise MissingFileError("log not found", where=argument, remedy=missing_hint(argument, beside))
    return {log: (("", log),) for log in paths}


def _file_or_link(path: Path) -> bool:
    """Whether a path is a file, or a link to a missing one, which is reported when it is read instead of being passed over."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _logs_of_folder(path: Path) -> list[str]:
    if is_dataset(path):
        return [episode_path(path, episode.number) for episode in episodes(path)]
    return [str(path)] if is_bag_folder(path) else []


def _split_logs(argument: str, layout: LogLayout) -> dict[str, Files]:
    if is_address(argument):
        raise LogError(
            "a log in several files is not read from an address", where=plain(argument), remedy="copy it to a folder"
        )
    pattern = layout.files.get("position") or next(iter(layout.files.values()))
    if "*" not in pattern:
        raise LogError("a file pattern has no *", where="log.files", got=pattern, expected="* where the LOG argument goes")
    if _is_glob(argument):
        members = sorted(glob.glob(argument)) + sorted(glob.glob(pattern.replace("*", argument, 1)))
        stems = [stem for member in members if (stem := _stem(member, layout)) is not None]
    elif Path(pattern.replace("*", argument)).is_file():
        stems = [argument]
    elif Path(argument).is_dir():
        stems = [stem for member in sorted(Path(argument).iterdir()) if (stem := _stem(str(member), layout)) is not None]
    else:
        stem = _stem(argument, layout)
        stems = [stem] if stem is not None and Path(argument).is_file() else []
    if not stems:
        expected = ", ".join(p.replace("*", argument) for p in layout.files.values())
        raise MissingFileError(
            "no split log is called so", where=argument, expected=expected, remedy="check log.files and the path"
        )
    return {stem: _files_of_stem(stem, layout, argument) for stem in stems}


def _stem(path: str, layout: LogLayout) -> str | None:
    """The text matched by ``*`` in the name of a part, or None if the file is not part of a split log."""
    for pattern in layout.files.values():
        match = re.fullmatch(re.escape(pattern).replace(r"\*", "(.+)", 1), path)
        if match:
            return match[1]
    return None


def _files_of_stem(stem: str, layout: LogLayout, argument: str) -> Files:
    files = tuple((quantity, pattern.replace("*", stem)) for quantity, pattern in layout.files.items())
    folders = [Path.cwd(), Path(stem).parent, Path(argument), Path(argument).parent]
    for quantity, file in files:
        name = layout.files[quantity]
        if Path(file).is_file() and len(Path(name).parts) > 1 and allowed(file, folders) is None:
            raise LogError(
                f"the {quantity} file of a split log lies elsewhere",
                where=file,
                got=f"log.files.{quantity}: {name}",
                expected="a file below the folder of the LOG argument or the current folder",
                remedy=f"write `{Path(name).name}`, and name the folder in the LOG argument",
            )
        if not Path(file).is_file():
            raise MissingFileError(
                f"the {quantity} file of a split log is missing",
                where=file,
                remedy=f"check log.files.{quantity} and the LOG argument",
            )
    return files


def _is_glob(argument: str) -> bool:
    return any(mark in argument for mark in "*?[")


def shown(path: str) -> str:
    """Returns a path as it is, and an address without user, password, query and fragment."""
    return plain(path) if is_address(path) else path


def _short(path: str) -> str:
    """Name of a log without suffixes."""
    name = Path(file_name(path) if is_address(path) else path)
    return Path(name.stem).stem if name.suffix.lower() in PACKED else name.stem
