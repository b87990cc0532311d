"""Reading logs of any supported format as recordings in SI units and model order.

Nothing is checked or repaired here. A row that cannot be read is kept as NaN with its row number, so that
:mod:`quality` can report it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..errors import LogError, MissingFileError, UrdfIdentError
from ..files.read_write import stamp
from ..model.robot import Robot
from .columns.fields import recording_fields
from .columns.layout import NAMES, LogLayout
from .formats.choice import open_table
from .recording import Recording
from .refusals import LeftOut, all_usable, attempt, attempts, copies_refused
from .remote import local_files
from .sources import LogSource, expand_logs, log_source

__all__ = ["LogLayout", "LogSource", "expand_logs", "read_readable", "read_recording"]


def read_recording(source: str | Path | LogSource, robot: Robot, layout: LogLayout | None = None) -> Recording:
    """Reads one log.

    Without a layout, columns are found by the header: ``t`` [s], ``q_<joint>`` [rad or m], and optionally ``v_``, ``a_``,
    ``tau_``, ``qm_``, ``vm_`` ``<joint>`` and ``wrench_<frame>_{fx, fy, fz, mx, my, mz}`` [N, N·m], by joint *name*.

    Args:
        source: A file, the stem of a split log, or an item returned by :func:`expand_logs`.
        robot: The robot that moved; columns are returned in the order of its joints.
        layout: Columns, units and sides that differ from the default.

    Returns:
        The log in SI units, rows as logged; unreadable cells are NaN.

    Raises:
        MissingFileError: A file does not exist.
        LogError: The file is empty or not text, its columns do not fit the robot, or it changes while it is read.
        UnitError: A unit is unknown or measures something else.
    """
    layout = layout or LogLayout()
    source = log_source(source, layout)
    with local_files(source.files) as near:
        files = dict(near)
        stamps = {path: stamp(path) for path in files.values()}
        main = files.get("", files.get("position", near[0][1]))
        held: dict[str, list[str]] = {main: []}  # file → the quantities that it may contain; the file of the positions first
        for quantity in NAMES if "" in files else ("time", *NAMES):
            held.setdefault(files.get(quantity, main), []).append(quantity)
        tables = [(open_table(path, robot, layout.topic, layout.joints), quantities) for path, quantities in held.items()]
        stamps = {**{path: stamp(path) for table, _ in tables for path in table.files}, **stamps}
        with ThreadPoolExecutor(1) as beside:  # hashing a long log takes as long as reading it
            hashing = beside.submit(lambda: [table.sha256() for table, _ in tables])
            recording = Recording(**recording_fields(tables, robot, layout, source.name, source.path))
            hashes = hashing.result()
        changed = [path for path, before in stamps.items() if stamp(path) != before]
        if changed:
            raise LogError(
                "the log changed while it was read",
                where=changed[0],
                got=f"{len(recording)} rows so far",
                remedy="wait until it is written, or read a copy",
            )
        digest = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
        return replace(recording, sha256=digest)


def read_readable(
    sources: Sequence[str | Path | LogSource], robot: Robot, layout: LogLayout | None = None, *, skip: bool = True
) -> tuple[list[Recording], list[LeftOut]]:
    """Reads several logs, on workers if there are any, and leaves out those that cannot be read and copies of others.

    Args:
        sources: As for :func:`read_recording`.
        layout: Columns, units and sides that differ from the default.
        skip: Whether such logs are left out; otherwise all must be readable and different.

    Returns:
        The logs, in the same order, and those that were left out, each with the reason.

    Raises:
        LogError, MissingFileError, UnitError: See :func:`read_recording`; the first error, if no log can be read or if one
            cannot and ``skip`` is False. LogError also if one log is given twice.
    """
    logs = [log_source(source, layout or LogLayout()) for source in sources]
    read_one = partial(read_recording, robot=robot, layout=layout)
    results = attempts(read_one, logs)
    # workers of a cluster may lack files that this machine has
    results = [attempt(read_one, log) if isinstance(x, MissingFileError) else x for log, x in zip(logs, results, strict=True)]
    results = copies_refused(results)
    read = [result for result in results if not isinstance(result, UrdfIdentError)]
    if not read or not skip:
        return all_usable(logs, results), []
    pairs = zip(logs, results, strict=True)
    return read, [LeftOut.of(log, result) for log, result in pairs if isinstance(result, UrdfIdentError)]
