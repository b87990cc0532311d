"""Robots of one model together: fleet mean, spread between robots, and outliers.

Each quantity (friction of each joint at a low and at a high speed, its offset, inertial base parameters) has a mean and a
spread between robots (:mod:`..statistics.fleet`), and every robot is compared with the prediction interval of the others.
All tests are corrected together (Holm 1979), with half of the false alarm rate each for friction and inertia. An outlier is
removed and the others are tested again, so that it does not mask another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, BoolArray
from ..model.robot import Robot
from ..result.fleet import Fleet, Pooled
from ..result.identification import Identification
from ..statistics.fleet import FEWEST, Deviations, deviations, random_effects
from .quantities import LEVEL, errors_of_means, friction_quantities, inertial_quantities, require_comparable


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
    idents = list(results.values())
    if len(idents) < FEWEST:
        raise EstimationError("a fleet needs several robots", got=len(idents), expected=f"{FEWEST} or more")
    require_comparable(idents[0].model.robot, idents)
    wanted = [*friction_quantities(idents), *inertial_quantities(idents)]
    value = np.array(
        [[row @ result.fit.params for row, result in zip(quantity.rows, idents, strict=True)] for quantity in wanted]
    ).T
    error = errors_of_means(wanted, idents).T
    usable = np.asarray((error > 0).all(axis=0) & np.isfinite(error).all(axis=0))
    if not usable.any():
        raise EstimationError("the robots have nothing in common that their logs show", where=idents[0].model.robot.name)
    wanted, value, error = list(compress(wanted, usable)), value[:, usable], error[:, usable]
    inertial = np.array([quantity.kind == "inertia" for quantity in wanted])
    families = [family for family in (~inertial, inertial) if family.any()]
    outlying = _outliers(value, error, families, level / len(families))
    from_others = [deviations(value[:, family], error[:, family], ~outlying[:, family]) for family in families]
    place = {
        int(k): (deviation, at)
        for deviation, family in zip(from_others, families, strict=True)
        for at, k in enumerate(np.flatnonzero(family))
    }
    robot, carriers = idents[0].model.robot, _carriers(idents[0].model.robot)
    between = [random_effects(value[~outlying[:, k], k : k + 1], error[~outlying[:, k], k : k + 1]) for k in range(len(wanted))]
    tests = [value.shape[0] * int(family.sum()) for family in families]
    pooled = tuple(
        Pooled(
            kind=quantity.kind,
            where=quantity.where,
            what=quantity.what,
            unit=quantity.unit,
            mean=float(effects.mean[0]),
            std_error=float(effects.std_error[0]),
            spread=float(effects.spread[0]),
            interval=(float(effects.interval()[0, 0]), float(effects.interval()[0, 1])),
            value=value[:, k],
            error=error[:, k],
            difference=place[k][0].difference[:, place[k][1]],
            deviation=place[k][0].std_error[:, place[k][1]],
            chance=place[k][0].chance[:, place[k][1]],
            stands_out=outlying[:, k],
            carried_by=tuple(carriers.get(quantity.where, ())) if quantity.kind == "inertia" else (),
        )
        for k, (quantity, effects) in enumerate(zip(wanted, between, strict=True))
    )
    return Fleet(robot.name, tuple(results), pooled, level, sum(tests), _needed(from_others, max(tests), level))


def _outliers(value: Array, error: Array, families: Sequence[BoolArray], level: float) -> BoolArray:
    """Mask of the outliers, shape (m, K); smallest p-value first, each removed before the next test."""
    outlying = np.zeros(value.shape, dtype=bool)
    for family in families:
        columns, removed = np.flatnonzero(family), np.zeros((len(value), int(family.sum())), dtype=bool)
        while True:
            chance = np.where(removed, 1.0, deviations(value[:, columns], error[:, columns], ~removed).chance)
            at = np.unravel_index(int(np.argmin(chance)), chance.shape)
            if chance[at] >= level / (chance.size - removed.sum()):
                break
            removed[at] = True
        outlying[:, columns] = removed
    return outlying


def _needed(families: Sequence[Deviations], tests: int, level: float) -> float:
    """Number of standard deviations from the others at which a robot is an outlier; inf with too few robots."""
    from scipy.special import stdtrit

    dof = np.concatenate([family.dof[family.dof > 0] for family in families])
    return float(stdtrit(np.median(dof), 1.0 - level / (2.0 * len(families) * tests))) if len(dof) else float("inf")


def _carriers(robot: Robot) -> dict[str, list[str]]:
    """Body → joints and bodies that move it, whose rotor inertia or mass is part of the same base parameters."""
    carriers: dict[str, list[str]] = {body.name: [] for body in robot.bodies}
    for joint, moved in zip(robot.joints, robot.subtrees, strict=True):
        carrier = robot.bodies[moved[0]].name
        for k in moved:
            body = robot.bodies[k].name
            carriers[body] += [joint, *([carrier] if carrier != body else [])]
    return carriers
