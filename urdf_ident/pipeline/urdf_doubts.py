"""Numbers of a URDF that are physical and can hardly be meant: masses in grams, lengths in millimetres, limits in degrees."""

from __future__ import annotations

import numpy as np

from ..model.engine.pinocchio import regressor
from ..model.prior import inertial_prior
from ..model.robot import Robot

#: Turns each way that are more likely degrees; beyond the second they stand for no limit, as some exporters write.
_TURNS = (10.0, 1e4)
#: A wrong unit is a factor of ten and more; springs, counterweights and limits of the motor's heat explain less.
_BEYOND = 3.0
_POSES = 200


def urdf_doubts(robot: Robot) -> list[dict[str, str]]:
    """What the limits of a URDF say against its other numbers.

    Args:
        robot: Whose limits are held against its inertials.

    Returns:
        ``joint``, ``message`` and ``remedy`` of each doubt.
    """
    lower, upper, effort = (robot.limit(key) for key in ("lower", "upper", "effort"))
    found = []
    low, high = (np.where(np.isfinite(limit), limit, other) for limit, other in ((lower, -np.pi), (upper, np.pi)))
    q = np.random.default_rng(0).uniform(low, high, (_POSES, robot.n))
    still = np.zeros_like(q)
    weight = np.median(np.abs(regressor(robot, q, still, still) @ inertial_prior(robot).theta0).reshape(q.shape), axis=0)
    for j, joint in enumerate(robot.joints):
        unit = "N" if robot.prismatic[j] else "N·m"
        turns = max(abs(lower[j]), abs(upper[j])) / (2 * np.pi)
        if not robot.prismatic[j] and _TURNS[0] < turns < _TURNS[1]:
            found.append((joint, f"may turn {turns:.0f} times each way", "write its limits in radians"))
        if weight[j] > _BEYOND * effort[j]:
            size = f"median {weight[j]:.3g} of {effort[j]:.3g} {unit}"
            message = f"in most poses its weight takes more than its effort limit ({size})"
            remedy = "check masses [kg], centres of mass [m], and the limit, which is the joint's, not the motor's"
            found.append((joint, message, remedy))
    return [dict(zip(("joint", "message", "remedy"), item, strict=True)) for item in found]
