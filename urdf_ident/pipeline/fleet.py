"""Compares many robots of one model: fleet mean, spread between robots, and outliers.

Every robot is identified from its own logs alone. Each quantity (friction of each joint at a low and at a high speed, its
offset, inertial base parameters) then has a mean and a spread between robots (:mod:`..statistics.fleet`), and every robot
is compared with the prediction interval of the others. All tests are corrected together (Holm 1979), with half of the
false alarm rate each for friction and inertia. An outlier is removed and the others are tested again, so that it does not
mask another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EstimationError, LogError, UrdfIdentError
from ..linalg import Array, BoolArray
from ..logs.read import read_readable
from ..logs.sources import expand_logs
from ..model.robot import Robot
from ..parallel import each
from ..project import load_project
from ..result.files.exports import write_all
from ..result.files.load import load
from ..result.fleet import Fleet, Pooled
from ..result.identification import Identification
from ..statistics.fleet import FEWEST, Deviations, deviations, random_effects
from .common_terms import (
    LEVEL,
    errors_of_means,
    friction_quantities,
    inertial_quantities,
    require_comparable,
)
from .identify import identify


def pool(results: Mapping[str, Identification], *, level: float = LEVEL) -> Fleet:
    """Pools results of several robots of one model.

    Args:
        results: Name of each robot → its result; two or more.
        level: Family-wise false alarm rate over all robots and quantities, a fraction.

    Returns:
        Means, spreads and outliers; with fewer than three robots there are no outliers.

    Raises:
        EstimationError: There is only one robot, or a result has no covariance.
        FingerprintError: The robots have different kinematics.
    """
    items = list(results.values())
    if len(items) < FEWEST:
        raise EstimationError("a fleet needs several robots", got=len(items), expected=f"{FEWEST} or more")
    require_comparable(items[0].model.robot, items)
    wanted = [*friction_quantities(items), *inertial_quantities(items)]
    value = np.array([[row @ item.fit.params for row, item in zip(quantity.rows, items, strict=True)] for quantity in wanted]).T
    error = errors_of_means(wanted, items).T
    usable = np.asarray((error > 0).all(axis=0) & np.isfinite(error).all(axis=0))
    if not usable.any():
        raise EstimationError("the robots have nothing in common that their logs show", where=items[0].model.robot.name)
    wanted, value, error = list(compress(wanted, usable)), value[:, usable], error[:, usable]
    inertial = np.array([quantity.kind == "inertia" for quantity in wanted])
    families = [family for family in (~inertial, inertial) if family.any()]
    odd = _outliers(value, error, families, level / len(families))
    found = [deviations(value[:, own], error[:, own], ~odd[:, own]) for own in families]
    place = {
        int(k): (family, at) for family, own in zip(found, families, strict=True) for at, k in enumerate(np.flatnonzero(own))
    }
    robot, carriers = items[0].model.robot, _carriers(items[0].model.robot)
    between = [random_effects(value[~odd[:, k], k : k + 1], error[~odd[:, k], k : k + 1]) for k in range(len(wanted))]
    tests = [value.shape[0] * int(family.sum()) for family in families]
    pooled = tuple(
        Pooled(
            kind=quantity.kind,
            where=quantity.where,
            what=quantity.what,
            unit=quantity.unit,
            mean=float(own.mean[0]),
            std_error=float(own.std_error[0]),
            spread=float(own.spread[0]),
            interval=(float(own.interval()[0, 0]), float(own.interval()[0, 1])),
            value=value[:, k],
            error=error[:, k],
            difference=place[k][0].difference[:, place[k][1]],
            deviation=place[k][0].std_error[:, place[k][1]],
            chance=place[k][0].chance[:, place[k][1]],
            stands_out=odd[:, k],
            carried_by=tuple(carriers.get(quantity.where, ())) if quantity.kind == "inertia" else (),
        )
        for k, (quantity, own) in enumerate(zip(wanted, between, strict=True))
    )
    return Fleet(robot.name, tuple(results), pooled, level, sum(tests), _needed(found, max(tests), level))


def robot_folders(arguments: Sequence[str]) -> dict[str, Path]:
    """Returns the folders of a fleet's robots.

    Returns:
        Name of each robot (its folder's name) → the folder, in the order of the arguments.

    Raises:
        LogError: No folder matches an argument, or two folders have the same name.
    """
    found: dict[str, Path] = {}
    for argument in arguments:
        paths = sorted(Path(name) for name in glob(argument)) if has_magic(argument) else [Path(argument)]
        folders = [path for path in paths if path.is_dir()]
        if not folders:
            raise LogError("no folder of a robot", where=argument, expected="a folder of logs for each robot")
        for folder in folders:
            name = folder.resolve().name
            if name in found and found[name].resolve() != folder.resolve():
                raise LogError("two robots have the same name", got=f"{found[name]}, {folder}", remedy="rename a folder")
            found[name] = folder
    return found


def fleet(
    urdf: str | Path,
    robots: Mapping[str, str | Path],
    out: str | Path,
    *,
    config: str | Path | None = None,
    force: bool = False,
    skip_bad_logs: bool = False,
) -> Fleet:
    """Identifies each robot from the logs in its folder, writes its result, and pools all results.

    Args:
        urdf: The URDF of all robots.
        robots: Name of each robot → folder of its logs.
        out: Folder for the results, with one subfolder per robot.
        config: The project file; all defaults if None.
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
    project, folder = load_project(config)
    project.build_model(project.build_robot(urdf, folder))  # an error common to all robots is raised once
    done = each(partial(_identified, urdf, config, force, skip_bad_logs, out), list(robots.items()))
    failed = {name: why for name, why in zip(robots, done, strict=True) if why is not None}
    results = {name: load(out / name / "identification.json") for name in robots if name not in failed}
    for name, why in _copies(results).items():
        failed[name] = why
        del results[name]
    if len(results) < FEWEST:
        raise EstimationError(
            "fewer than two robots could be identified",
            got=f"{len(results)} of {len(robots)}",
            remedy="; ".join(f"{name}: {why}" for name, why in failed.items()) or "give the folders of several robots",
        )
    return replace(pool(results), failed=failed, verdicts=tuple(item.verdict.level for item in results.values()))


def _identified(
    urdf: Path, config: str | Path | None, force: bool, skip_bad_logs: bool, out: Path, robot: tuple[str, str | Path]
) -> str | None:
    """Identifies one robot and writes its result; returns the reason if it fails."""
    name, logs = robot
    project, folder = load_project(config)
    try:
        built = project.build_robot(urdf, folder)
        layout = project.log
        sources = expand_logs([str(logs)], layout, copies=skip_bad_logs)
        recordings, left_out = read_readable(sources, built, layout, skip=skip_bad_logs)
        options: dict[str, Any] = {"project": project, "force": force, "skip_bad_logs": skip_bad_logs, "left_out": left_out}
        write_all(identify(project.build_model(built), recordings, **options), out / name)
    except UrdfIdentError as error:
        return str(error)
    return None


def _copies(results: Mapping[str, Identification]) -> dict[str, str]:
    """Robots with a log of another robot, and which: as copies of it they would make the spread of the fleet too small."""
    owners: dict[str, str] = {}
    found: dict[str, str] = {}
    for name, item in results.items():
        logs = {str(entry["sha256"]): str(entry["name"]) for entry in item.inputs if entry.get("sha256")}
        shared = next((digest for digest in logs if digest in owners), None)
        if shared is None:
            owners.update(dict.fromkeys(logs, name))
        else:
            found[name] = f"its log {logs[shared]} is also a log of {owners[shared]}; give every robot its own logs"
    return found


def _needed(families: Sequence[Deviations], tests: int, level: float) -> float:
    """Number of standard deviations from the others at which a robot is an outlier; inf with too few robots."""
    from scipy.special import stdtrit

    dof = np.concatenate([family.dof[family.dof > 0] for family in families])
    return float(stdtrit(np.median(dof), 1.0 - level / (2.0 * len(families) * tests))) if len(dof) else float("inf")


def _carriers(robot: Robot) -> dict[str, list[str]]:
    """Body → joints and bodies that move it, whose rotor inertia or mass is part of the same base parameters."""
    found: dict[str, list[str]] = {body.name: [] for body in robot.bodies}
    for joint, carrier, moved in zip(robot.joints, robot.bodies, robot.subtrees, strict=True):
        for k in moved:
            own = robot.bodies[k].name
            found[own] += [joint, *([carrier.name] if carrier.name != own else [])]
    return found


def _outliers(value: Array, error: Array, families: Sequence[BoolArray], level: float) -> BoolArray:
    """Mask of the outliers, shape (m, K); smallest p-value first, each removed before the next test."""
    odd = np.zeros(value.shape, dtype=bool)
    for family in families:
        own, mine = np.flatnonzero(family), np.zeros((len(value), int(family.sum())), dtype=bool)
        while True:
            chance = np.where(mine, 1.0, deviations(value[:, own], error[:, own], ~mine).chance)
            at = np.unravel_index(int(np.argmin(chance)), chance.shape)
            if chance[at] >= level / (chance.size - mine.sum()):
                break
            mine[at] = True
        odd[:, own] = mine
    return odd
