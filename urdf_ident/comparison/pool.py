"""Robots of one model together: fleet mean, spread between robots, and outliers.

Each quantity (friction of each joint at a low and at a high speed, its offset, inertial base parameters) has a mean and a
spread between robots (:mod:`..statistics.fleet`), and every robot is compared with the prediction interval of the others.
All tests are corrected together (Holm 1979), with half of the false alarm rate each for friction and inertia. An outlier is
removed and the others are tested again, so that it does not mask another.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, BoolArray
from ..result.fleet import Fleet, Pooled
from ..result.identification import Identification
from ..statistics.fleet import FEWEST, deviations, random_effects
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
    from scipy.special import stdtrit

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
    outlying, (difference, deviation, chances) = np.zeros(value.shape, dtype=bool), np.zeros((3, *value.shape))
    freedom = np.zeros(0)
    for family in families:
        outlying[:, family] = outliers(value[:, family], error[:, family], level / len(families))
        others = deviations(value[:, family], error[:, family], ~outlying[:, family])
        difference[:, family], deviation[:, family], chances[:, family] = others.difference, others.std_error, others.chance
        freedom = np.append(freedom, others.dof[others.dof > 0])
    robot = idents[0].model.robot
    carriers: dict[str, list[str]] = {body.name: [] for body in robot.bodies}  # whose base parameters contain a body
    for joint, moved in zip(robot.joints, robot.subtrees, strict=True):
        carrier = robot.bodies[moved[0]].name
        for body in (robot.bodies[k].name for k in moved):
            carriers[body] += [joint, *([carrier] if carrier != body else [])]
    between = [random_effects(value[~odd, k], error[~odd, k]) for k, odd in enumerate(outlying.T)]
    tests = [value.shape[0] * int(family.sum()) for family in families]
    pooled = tuple(
        Pooled(
            *(quantity.kind, quantity.where, quantity.what, quantity.unit),
            *effects,
            value=value[:, k],
            error=error[:, k],
            difference=difference[:, k],
            deviation=deviation[:, k],
            chance=chances[:, k],
            stands_out=outlying[:, k],
            carried_by=tuple(carriers.get(quantity.where, ())) if quantity.kind == "inertia" else (),
        )
        for k, (quantity, effects) in enumerate(zip(wanted, between, strict=True))
    )
    chance = 1.0 - level / (2.0 * len(families) * max(tests))
    needed = float(stdtrit(np.median(freedom), chance)) if len(freedom) else float("inf")
    return Fleet(robot.name, tuple(results), pooled, level, sum(tests), needed)


def outliers(value: Array, error: Array, level: float) -> BoolArray:
    """Finds robots that differ from the others: smallest p-value first, each removed before the next test (Holm 1979).

    Args:
        value, error: Each quantity of each robot and its standard error, shape (robots, quantities).
        level: Family-wise false alarm rate.

    Returns:
        Shape (robots, quantities).
    """
    removed = np.zeros(value.shape, dtype=bool)
    while True:
        chance = np.where(removed, 1.0, deviations(value, error, ~removed).chance)
        at = np.unravel_index(int(np.argmin(chance)), chance.shape)
        if chance[at] >= level / (chance.size - removed.sum()):
            return removed
        removed[at] = True
