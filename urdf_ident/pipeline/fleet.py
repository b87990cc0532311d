"""Compares many robots of one model: each is identified from its own logs alone, then all results are pooled.

Each quantity (friction of each joint at a low and at a high speed, its offset, inertial base parameters) has a mean and a
spread between robots (:mod:`.statistics.fleet`), and every robot is compared with the prediction interval of the others.
All tests are corrected together (Holm 1979), with half of the false alarm rate each for friction and inertia. An outlier is
removed and the others are tested again, so that it does not mask another.
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

from ..comparison.quantities import (
    LEVEL,
    Quantity,
    check_level,
    errors_of_means,
    friction_quantities,
    inertial_quantities,
    require_comparable,
)
from ..errors import EstimationError, LogError, UrdfIdentError
from ..linalg import Array, BoolArray
from ..logs.read import read_readable
from ..logs.sources import expand_logs
from ..model.robot import Robot
from ..parallel import each
from ..project import Project, load_project
from ..result.comparison import Fleet, Pooled
from ..result.identification import Identification, load
from ..result.write import write_all
from ..statistics.fleet import FEWEST, Deviations, deviations, random_effects
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
    return replace(pool(results), failed=failed, verdicts=tuple(result.verdict.level for result in results.values()))


def _identified(
    urdf: Path, project: Project, folder: Path, force: bool, skip_bad_logs: bool, out: Path, robot: tuple[str, str | Path]
) -> str | None:
    """Identifies one robot and writes its result; returns the reason if it fails."""
    name, logs = robot
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


def pool(results: Mapping[str, Identification], *, level: float = LEVEL) -> Fleet:
    """Pools results of several robots of one model.

    Args:
        results: Name of each robot → its result; two or more.
        level: Family-wise false alarm rate over all robots and quantities, a fraction.

    Returns:
        Means, spreads and outliers; with fewer than three robots there are no outliers.

    Raises:
        EstimationError: There is only one robot, a result has no covariance, or the level is no fraction.
        FingerprintError: The robots have different kinematics.
    """
    from scipy.special import stdtrit

    check_level(level)
    idents = list(results.values())
    if len(idents) < FEWEST:
        raise EstimationError("a fleet needs several robots", got=len(idents), expected=f"{FEWEST} or more")
    robot = idents[0].model.robot
    require_comparable(robot, idents)
    wanted, value, error = _estimates(idents)
    inertial = np.array([quantity.kind == "inertia" for quantity in wanted])
    families = [family for family in (~inertial, inertial) if family.any()]
    outlying = np.zeros(value.shape, dtype=bool)
    compared = Deviations(*(np.zeros(value.shape) for _ in Deviations._fields))
    for family in families:
        outlying[:, family] = outliers(value[:, family], error[:, family], level / len(families))
        of_family = deviations(value[:, family], error[:, family], ~outlying[:, family])
        for of_all, values in zip(compared, of_family, strict=True):
            of_all[:, family] = values
    carriers, pooled = _carriers(robot), []
    for k, quantity in enumerate(wanted):
        usual = ~outlying[:, k]
        effects = random_effects(value[usual, k], error[usual, k])
        pooled.append(
            Pooled(
                kind=quantity.kind,
                where=quantity.where,
                what=quantity.what,
                unit=quantity.unit,
                mean=effects.mean,
                std_error=effects.std_error,
                spread=effects.spread,
                interval=effects.interval,
                value=value[:, k],
                error=error[:, k],
                difference=compared.difference[:, k],
                deviation=compared.std_error[:, k],
                chance=compared.p_value[:, k],
                stands_out=outlying[:, k],
                carried_by=tuple(carriers.get(quantity.where, ())) if quantity.kind == "inertia" else (),
            )
        )
    tests = [len(idents) * int(family.sum()) for family in families]
    known = compared.dof[compared.dof > 0]  # 0 with too few other robots
    quantile = 1.0 - level / len(families) / max(tests) / 2.0
    needed = float(stdtrit(np.median(known), quantile)) if len(known) else float("inf")
    return Fleet(robot.name, tuple(results), tuple(pooled), level, sum(tests), needed)


def _estimates(idents: Sequence[Identification]) -> tuple[list[Quantity], Array, Array]:
    """Quantities that all robots determine, with value and standard error in each, shape (robots, quantities)."""
    wanted = [*friction_quantities(idents), *inertial_quantities(idents)]
    pairs = [zip(quantity.rows, idents, strict=True) for quantity in wanted]
    value = np.array([[row @ result.fit.params for row, result in of_quantity] for of_quantity in pairs]).T
    error = errors_of_means(wanted, idents).T
    usable = np.asarray((error > 0).all(axis=0) & np.isfinite(error).all(axis=0))
    if not usable.any():
        raise EstimationError("the robots have nothing in common that their logs show", where=idents[0].model.robot.name)
    return list(compress(wanted, usable)), value[:, usable], error[:, usable]


def _carriers(robot: Robot) -> dict[str, list[str]]:
    """Joints and bodies whose base parameters contain those of a body, by its name."""
    carriers: dict[str, list[str]] = {body.name: [] for body in robot.bodies}
    for joint, moved in zip(robot.joints, robot.subtrees, strict=True):
        carrier = robot.bodies[moved[0]].name
        for body in (robot.bodies[k].name for k in moved):
            carriers[body] += [joint, *([carrier] if carrier != body else [])]
    return carriers


def outliers(value: Array, error: Array, level: float) -> BoolArray:
    """Finds robots that differ, shape (robots, quantities): smallest p-value first, each removed before the next (Holm 1979).

    Args:
        value, error: Each quantity of each robot and its standard error, shape (robots, quantities).
        level: Family-wise false alarm rate.
    """
    removed = np.zeros(value.shape, dtype=bool)
    while True:
        p_value = np.where(removed, 1.0, deviations(value, error, ~removed).p_value)
        at = np.unravel_index(int(np.argmin(p_value)), p_value.shape)
        if p_value[at] >= level / (p_value.size - removed.sum()):
            return removed
        removed[at] = True
