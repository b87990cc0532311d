"""The command `fleet`: each robot of a model is identified from its own logs alone, then all results are pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from ..comparison.pooling import pool
from ..errors import EstimationError, LogError, UrdfIdentError
from ..logs.read import read_readable
from ..logs.sources import expand_logs
from ..parallel import each
from ..project import Project, load_project
from ..result.comparison import Fleet
from ..result.identification import load
from ..result.write import write_all
from ..statistics.fleet import FEWEST
from .identify import identify


def robot_folders(arguments: Sequence[str]) -> dict[str, Path]:
    """Returns the folders of a fleet's robots by name (that of the folder), in the order of the arguments.

    Raises:
        LogError: No folder matches an argument, or two folders have the same name.
    """
    folder_of: dict[str, Path] = {}
    for argument in arguments:
        paths = sorted(Path(name) for name in glob(argument)) if has_magic(argument) else [Path(argument)]
        folders = [path for path in paths if path.is_dir()]
        if not folders:
            raise LogError("no folder of a robot", where=argument, expected="a folder of logs for each robot")
        for folder in folders:
            name = folder.resolve().name
            if name in folder_of and folder_of[name].resolve() != folder.resolve():
                raise LogError("two robots have the same name", got=f"{folder_of[name]}, {folder}", remedy="rename a folder")
            folder_of[name] = folder
    return folder_of


def fleet(
    urdf: str | Path,
    robots: Mapping[str, str | Path],
    out: str | Path,
    *,
    config: str | Path | None = None,
    lock: Mapping[str, float] | None = None,
    force: bool = False,
    skip_bad_logs: bool = False,
) -> Fleet:
    """Identifies each robot from the logs in its folder, writes its result, and pools all results.

    Args:
        urdf: The URDF of all robots.
        robots: Name of each robot → folder of its logs.
        out: Folder for the results, with one subfolder per robot.
        config: The project file; all defaults if None.
        lock: Positions of joints to lock besides those of the project file [rad or m].
        force: Use logs in spite of findings that refuse them.
        skip_bad_logs: Skip logs that cannot be read or are refused, and continue with the robot's other logs.

    Returns:
        The fleet, which also names robots that could not be identified or have a log of another one.

    Raises:
        EstimationError: Fewer than two robots could be identified.
        ProjectError: The project file cannot be read.
        UrdfError: The URDF cannot be read.
    """
    urdf, out = Path(urdf), Path(out)
    project, folder = load_project(config, lock)
    project.build_model(project.build_robot(urdf, folder))  # an error common to all robots is raised once
    done = each(partial(_identified, urdf, project, folder, force, skip_bad_logs, out), list(robots.items()))
    failed = {name: why for name, why in zip(robots, done, strict=True) if why is not None}
    results = {name: load(out / name / "identification.json") for name in robots if name not in failed}
    owners: dict[str, str] = {}
    for name in list(results):  # copies of a log of another robot would make the spread of the fleet too small
        logs = {log.sha256: log.name for log in results[name].inputs if log.sha256}
        shared = next((digest for digest in logs if digest in owners), None)
        if shared is None:
            owners.update(dict.fromkeys(logs, name))
        else:
            failed[name] = f"its log {logs[shared]} is also a log of {owners[shared]}; give every robot its own logs"
            del results[name]
    if len(results) < FEWEST:
        raise EstimationError(
            "fewer than two robots could be identified",
            got=f"{len(results)} of {len(robots)}",
            remedy="; ".join(f"{name}: {why}" for name, why in failed.items()) or "give the folders of several robots",
        )
    return replace(pool(results), failed=failed)


def _identified(
    urdf: Path, project: Project, folder: Path, force: bool, skip_bad_logs: bool, out: Path, robot: tuple[str, str | Path]
) -> str | None:
    """Identifies one robot and writes its result; returns the reason if it fails."""
    name, logs = robot
    try:
        built = project.build_robot(urdf, folder)
        layout = project.log
        sources = expand_logs([str(logs)], layout)
        recordings, left_out = read_readable(sources, built, layout, skip=skip_bad_logs)
        options: dict[str, Any] = {"project": project, "force": force, "skip_bad_logs": skip_bad_logs, "left_out": left_out}
        write_all(identify(project.build_model(built), recordings, **options), out / name)
    except UrdfIdentError as error:
        return str(error)
    return None
