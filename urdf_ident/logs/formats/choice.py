"""Choice of the reader for a log, by its first bytes or else by its suffix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import LogError, MissingFileError
from ...files.read_write import read_stream
from ...model.robot import Robot
from ..tables import Table

#: Kind of file → its title, its suffixes, and the first bytes of its files.
_KINDS: dict[str, tuple[str, tuple[str, ...], tuple[bytes, ...]]] = {
    "parquet": ("Parquet", (".parquet", ".pq"), (b"PAR1",)),
    "arrow": ("Arrow", (".arrow", ".feather", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff")),
    "numpy": ("NumPy", (".npy", ".npz"), (b"\x93NUMPY", b"PK\x03\x04")),
    "hdf5": ("HDF5", (".h5", ".hdf5"), (b"\x89HDF\r\n\x1a\n", b"MATLAB 7.3")),
    "matlab": ("MATLAB", (".mat",), (b"MATLAB 5.0",)),
    "bag": ("ROS bag", (".db3", ".mcap", ".bag"), (b"SQLite format 3\0", b"\x89MCAP0\r\n", b"#ROSBAG V")),
}
_BINARY = tuple(suffix for _, suffixes, _ in _KINDS.values() for suffix in suffixes)
TEXT = (".csv", ".txt", ".tsv", ".dat")
PACKED = (".gz", ".xz", ".bz2", ".zst")


def is_log_name(path: str | Path) -> bool:
    """Whether a file name has the suffix of a supported format."""
    path = Path(path)
    suffix = path.suffix.lower()
    return suffix in (*TEXT, *_BINARY) or (suffix in PACKED and Path(path.stem).suffix.lower() in TEXT)


def logs_among(paths: Iterable[str]) -> list[str]:
    """The logs among the files of a folder, sorted: its CSV files if it has any, else files of all formats; no hidden ones."""
    logs = sorted(path for path in paths if is_log_name(path) and not Path(path).name.startswith("."))
    return [path for path in logs if Path(path).suffix.lower() == ".csv"] or logs


def is_bag_folder(path: str | Path) -> bool:
    """Whether a folder is a ROS 2 bag: it contains ``metadata.yaml`` and a storage file."""
    folder = Path(path)
    return (folder / "metadata.yaml").is_file() and any(any(folder.glob(f"*{end}")) for end in (".db3", ".mcap", ".zstd"))


def open_table(
    path: str | Path, robot: Robot | None = None, topic: str | None = None, joints: Mapping[str, str] | None = None
) -> Table:
    """Opens one log of any supported format.

    Args:
        path: A file, a bag folder, or an episode of a LeRobot data set (``DATASET/episode_000003``).
        robot: The robot whose joints are read; needed for bags only.
        topic: Topic of a bag, or group of an HDF5, MATLAB or NumPy file; chosen by content if None.
        joints: Robot joint → its name in the log, if they differ.

    Raises:
        MissingFileError: The log does not exist or cannot be read.
        MissingExtraError: A library is not installed.
        LogError: The log is broken, empty or of an unknown format.
    """
    from .lerobot import is_dataset, open_episode, refuse_part_of_dataset, split_episode

    if (episode := split_episode(path)) is not None:
        return open_episode(*episode)
    if Path(path).is_dir() and not is_bag_folder(path):
        hint = "name one of its episodes (DATASET/episode_000000)" if is_dataset(path) else "name the files in it"
        raise MissingFileError("log cannot be read (Is a directory)", where=str(path), remedy=hint)
    kind = "bag" if Path(path).is_dir() else _kind(path)
    if kind == "bag":
        if robot is None:
            raise LogError("a bag is read for a robot, and none is given", where=str(path))
        from .bags import open_bag

        return open_bag(path, robot, topic, dict(joints or {}))
    if kind in ("parquet", "arrow"):
        from .parquet import open_parquet

        table = open_parquet(path, kind)
        refuse_part_of_dataset({column.field for column in table.columns}, path)
        return table
    if kind in ("numpy", "matlab", "hdf5"):
        from . import variables

        return {"numpy": variables.open_numpy, "matlab": variables.open_matlab, "hdf5": variables.open_hdf5}[kind](path, topic)
    from .text import open_text

    return open_text(path)


def _kind(path: str | Path) -> str:
    """The kind of a file, "text" if its beginning and its suffix are of none in the table."""
    with read_stream(path, "log") as stream:
        head = stream.read(512)
        stream.seek(512)
        later = stream.read(8)  # HDF5 after a user block
    if later.startswith(b"\x89HDF\r\n\x1a\n"):
        return "hdf5"
    suffix = Path(path).suffix.lower()
    for kind, (_, _, starts) in _KINDS.items():
        if head.startswith(starts):
            return kind
    for kind, (title, suffixes, _) in _KINDS.items():
        old = kind == "matlab" and b"\0" in head[:4]  # version 4 begins with a type number
        if suffix in suffixes and head.strip():
            if old:
                return kind
            raise LogError(
                f"this is no {title} file, whatever its name says",
                where=str(path),
                got=f"it begins with {head[:12]!r}",
                remedy="check the recording, or give the file its right suffix",
            )
    return "text"
