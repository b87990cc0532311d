"""LeRobot data sets (versions 2 and 3): a folder with ``meta/info.json`` and Parquet files; every episode is a log.

Features are named lists of numbers: ``observation.state`` contains positions (or what its names indicate, such as
``joint_1.pos``), ``observation.velocity`` and ``observation.effort`` the other quantities, ``action`` the targets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import LogError
from ...files.read_write import allowed, read_text
from ..tables import decoding
from .parquet import ParquetTable, open_parquet

#: A part of the name of a feature, or of an element's suffix (``joint_1.pos``) → column prefix; the first that occurs.
_QUANTITIES = {
    "vel": "v",
    "acc": "a",
    "effort": "tau",
    "torque": "tau",
    "tau": "tau",
    "current": "current",
    "load": "tau",
    "action": "position_target",
    "state": "q",
    "pos": "q",
}
_PLACE = re.compile(r"\{(\w+)(?::0?(\d+)d)?\}")
#: Most episodes, one file each, that are looked for.
_MOST_EPISODES = 1_000_000


@dataclass(frozen=True)
class Episode:
    """One episode: its number, its file, and its range of rows in the file (None: all)."""

    number: int
    file: str
    rows: tuple[int, int] | None


def is_dataset(path: str | Path) -> bool:
    """Whether a folder is a LeRobot data set: it contains ``meta/info.json``."""
    return (Path(path) / "meta" / "info.json").is_file()


def split_episode(path: str | Path) -> tuple[Path, int] | None:
    """Folder and number of ``DATASET/episode_000003``; None if this is not an episode."""
    match = re.fullmatch(r"episode_(\d{1,9})", Path(path).name)
    return (Path(path).parent, int(match[1])) if match and is_dataset(Path(path).parent) else None


def episode_path(folder: str | Path, number: int) -> str:
    """The name of an episode as a log: ``DATASET/episode_000003``."""
    return str(Path(folder) / f"episode_{number:06d}")


def episodes_in(file: str | Path) -> list[str]:
    """The episodes in one data file of a data set, by the description three folders above it; none of another file."""
    path = Path(file)
    root = next((folder for folder in path.absolute().parents[:4] if is_dataset(folder)), None)
    if root is None or path.suffix != ".parquet":
        return []
    return [episode_path(root, episode.number) for episode in episodes(root) if Path(episode.file).resolve() == path.resolve()]


def refuse_part_of_dataset(fields: Iterable[str], path: str | Path) -> None:
    """Refuses a data file with the fields of a data set but without its description, which alone names the joints."""
    names = set(fields)
    if {"episode_index", "frame_index"} <= names and any(name.startswith("observation.") for name in names):
        raise LogError(
            "this is one file of a LeRobot data set, which alone names no joints",
            where=str(path),
            got=", ".join(sorted(name for name in names if name.startswith("observation."))[:6]),
            expected="the folder with meta/info.json",
            remedy="give the folder of the data set, or DATASET/episode_000000 for one episode",
        )


def episodes(folder: str | Path) -> list[Episode]:
    """All episodes of a data set, sorted by number.

    Raises:
        LogError: The description is broken, or a file is missing or outside of the folder.
    """
    info = _info(folder)
    template = str(info.get("data_path") or "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet")
    if "file_index" in template or str(info.get("codebase_version", "")).startswith("v3"):
        return _episodes_of_index(Path(folder), template)
    return _episodes_of_files(Path(folder), template, info)


def _episodes_of_index(root: Path, template: str) -> list[Episode]:
    """Episodes of version 3, which stores many per file, with their row ranges in ``meta/episodes``."""
    index = sorted((root / "meta" / "episodes").rglob("*.parquet"))
    if not index:
        raise LogError(
            "the data set has no list of episodes",
            where=str(root),
            expected="meta/episodes/**/*.parquet",
            remedy="fetch its data files (git lfs pull)",
        )
    wanted = ("episode_index", "data/chunk_index", "data/file_index", "dataset_from_index", "dataset_to_index")
    rows: list[tuple[int, ...]] = []
    for file in index:
        with decoding(file, "list of episodes", "parquet"):
            import pyarrow.parquet as pq

            read = pq.read_table(_of_dataset(file, root), columns=list(wanted), partitioning=None)
            missing = [name for name in wanted if name not in read.column_names]
            if missing:
                raise LogError(
                    "the list of episodes lacks a column",
                    where=str(file),
                    got=", ".join(read.column_names[:8]),
                    expected=missing[0],
                )
            rows += zip(*(read.column(name).to_pylist() for name in wanted), strict=True)
    if not rows or any(not isinstance(value, int) for row in rows for value in row):
        raise LogError("the list of episodes is empty or holds gaps", where=str(root / "meta/episodes"))
    rows.sort()
    firsts: dict[tuple[int, int], int] = {}  # first row of the data set in each file
    for _, chunk, number, begin, _ in rows:
        firsts[chunk, number] = min(begin, firsts.get((chunk, number), begin))
    listed = []
    for episode, chunk, number, begin, end in rows:
        numbers = {"chunk_index": chunk, "file_index": number, "episode_index": episode, "episode_chunk": chunk}
        first = firsts[chunk, number]
        listed.append(Episode(episode, str(_inside(root, template, numbers)), (begin - first, end - first)))
    return listed


def _episodes_of_files(root: Path, template: str, info: Mapping[str, Any]) -> list[Episode]:
    """Episodes of version 2, one per file."""
    total, size = _whole(info, "total_episodes", root), _whole(info, "chunks_size", root, 1000) or 1000
    if total > _MOST_EPISODES:
        raise LogError(
            "the data set claims too many episodes",
            where=str(root / "meta/info.json"),
            got=total,
            expected=f"at most {_MOST_EPISODES}",
        )
    listed = []
    for number in range(total):
        file = _inside(root, template, {"episode_chunk": number // size, "episode_index": number})
        if file.is_file():  # deleted episodes leave a gap
            listed.append(Episode(number, str(file), None))
    if not listed:
        raise LogError(
            "no episode of the data set is there",
            where=str(root),
            got=f"none of {total}",
            expected=template,
            remedy="fetch its data files (git lfs pull)",
        )
    return listed


def open_episode(folder: str | Path, number: int) -> ParquetTable:
    """Opens one episode of a data set: a table with ``t`` and default column names for known features."""
    by_number = {episode.number: episode for episode in episodes(folder)}
    if number not in by_number:
        raise LogError(
            f"no episode {number}",
            where=str(folder),
            expected=f"one of {len(by_number)}, from {min(by_number)} to {max(by_number)}",
        )
    features = _info(folder).get("features")
    described = features.items() if isinstance(features, dict) else ()
    names_of = {name: spelled for name, about in described if (spelled := _column_names(name, about))}
    episode = by_number[number]
    table = open_parquet(_of_dataset(Path(episode.file), Path(folder)), "parquet", names=names_of)
    path = episode_path(folder, number)
    header = tuple("t" if name == "timestamp" else name for name in table.names)
    notes = list(table.notes)
    if not any(name.startswith(("tau", "current")) for name in header):
        known = ", ".join(name for name in names_of if name.startswith(("observation", "action")))
        notes.append(f"the data set logs no effort (features: {known or 'none known'})")
    return replace(table, path=path, names=header, spelled=None, rows=episode.rows, notes=tuple(notes))


def _column_names(feature: str, about: Any) -> list[str]:
    """Column names of a feature's elements in the default spelling; none unless its quantity is known."""
    prefix = _quantity(feature.rsplit(".", 1)[-1]) if feature == "action" or feature.startswith("observation") else ""
    if not isinstance(about, dict) or about.get("dtype") in ("video", "image", "string") or not prefix:
        return []
    names, shape = about.get("names"), about.get("shape")
    if isinstance(names, dict) and len(names) == 1 and isinstance(next(iter(names.values())), list):
        (names,) = names.values()  # {"motors": [...]} of version 2
    if isinstance(names, dict) and all(isinstance(place, int) for place in names.values()):
        names = sorted(names, key=names.__getitem__)  # {"joint_1.pos": 0, ...}
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        count = shape[0] if isinstance(shape, list) and len(shape) == 1 and isinstance(shape[0], int) else 0
        names = [str(k) for k in range(count)] if 1 < count <= 512 else []
    spelled = []  # ``joint_1.pos`` becomes q_joint_1 in a state, a target in an action
    for name in names:
        joint, _, suffix = name.rpartition(".")
        begin = prefix
        if joint and (stated := _quantity(suffix)):
            name = joint
            begin = stated if prefix != "position_target" else prefix if stated == "q" else f"target_{stated}"
        spelled.append(f"{begin}{name}" if name.isdigit() else f"{begin}_{name}")
    return spelled


def _info(folder: str | Path) -> Mapping[str, Any]:
    path = Path(folder) / "meta" / "info.json"
    with decoding(path, "LeRobot description"):
        info = json.loads(read_text(_of_dataset(path, Path(folder)), "LeRobot description"))
    if not isinstance(info, dict):
        raise LogError("the LeRobot description is no mapping", where=str(path), got=type(info).__name__)
    return info


def _whole(info: Mapping[str, Any], key: str, folder: str | Path, default: int = 0) -> int:
    value = info.get(key, default)
    if not isinstance(value, int) or value < 0:
        raise LogError(f"'{key}' is no count", where=f"{folder}/meta/info.json", got=repr(value)[:40])
    return value


def _inside(root: Path, template: str, numbers: Mapping[str, int]) -> Path:
    """A file of the data set; a template that leads outside of the folder is refused."""

    def place(match: re.Match[str]) -> str:
        if match[1] not in numbers:
            raise LogError(
                "unknown place holder in data_path",
                where=str(root / "meta/info.json"),
                got=match[0],
                expected=", ".join(numbers),
            )
        return f"{numbers[match[1]]:0{min(int(match[2] or 0), 20)}d}"

    if Path(template).is_absolute() or ".." in Path(template).parts:
        raise LogError("data_path leads out of the data set", where=str(root / "meta/info.json"), got=template)
    return root / _PLACE.sub(place, template)


def _of_dataset(path: Path, root: Path) -> Path:
    """A file of the data set with its links followed; none may lead out of it (or of the cache that it is part of)."""
    cache = [root.resolve().parents[1] / "blobs"] if root.resolve().parent.name == "snapshots" else []
    file = allowed(path, [root, *cache])
    if file is None:
        raise LogError(
            "a file of the data set is missing or leads out of it",
            where=str(path),
            remedy="fetch its data files (git lfs pull), or copy what links lead to into the data set",
        )
    return file


def _quantity(word: str) -> str:
    """The column prefix of the quantity that a word names; empty for none."""
    return next((prefix for part, prefix in _QUANTITIES.items() if part in word.lower()), "")
