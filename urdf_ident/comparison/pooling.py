"""Results of many robots of one model, pooled: each robot is compared with the prediction interval of the others.

Each quantity (friction of each joint at a low and at a high speed, its offset, inertial base parameters) has a mean and a
spread between robots (:mod:`.statistics.fleet`). All tests are corrected together (Holm 1979), with half of the false alarm
rate each for friction and inertia. An outlier is removed and the others are tested again, so that it does not mask another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, BoolArray
from ..model.robot import Robot
from ..result.comparison import Fleet, Pooled
from ..result.identification import Identification
from ..statistics.fleet import FEWEST, Deviations, deviations, random_effects
from ..statistics.least_squares import LEVEL
from .quantities import (
    Quantity,
    check_level,
    errors_of_means,
    friction_quantities,
    inertial_quantities,
    require_comparable,
)


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
    verdicts = tuple(result.verdict.level for result in idents)
    return Fleet(robot.name, tuple(results), verdicts, tuple(pooled), level, sum(tests), needed)


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
