"""Values of a URDF that are possible but hardly meant: degrees for radians, millimetres, the limit of a motor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..grouping import grouped
from ..model.inertia import to_com
from ..model.prior import inertial_prior, lumped_inertials
from ..model.rigid_bodies import rigid_torque
from ..model.robot import Robot
from ..model.urdf import LARGEST_ANGLE
from ..motion.limits import finite_ends
from ..units import joint_units

#: Between these limits [turns] the unit is probably degrees; above the second, some exporters mean "no limit".
_TURNS = (10.0, 1e4)
#: A wrong unit is a factor of ten or more; springs, counterweights and thermal limits of the motor explain less.
_BEYOND = 3.0
_POSES = 200
#: Multiple of the sum of all joint offsets beyond which a centre of mass or radius of gyration is in another unit.
_FAR = 10.0
#: Fewest joints whose offsets tell the size of a robot.
_CHAIN = 3


def implausible_values(robot: Robot) -> list[dict[str, str]]:
    """Finds limits, origins, centres of mass and inertias that are implausible: ``joint``, ``message``, ``remedy`` of each.

    Args:
        robot: The robot whose limits are compared with its inertials, and these with its size.
    """
    lower, upper, effort = (robot.limit(key) for key in ("lower", "upper", "effort"))
    doubts = []
    q = np.random.default_rng(0).uniform(*finite_ends(lower, upper), (_POSES, robot.n))
    still = np.zeros_like(q)
    weight = np.median(np.abs(rigid_torque(robot, inertial_prior(robot).theta0, q, still, still)), axis=0)
    for j, joint in enumerate(robot.joints):
        unit = joint_units(robot.prismatic[j])["torque"]
        turns = max(abs(lower[j]), abs(upper[j])) / (2 * np.pi)
        if not robot.prismatic[j] and _TURNS[0] < turns < _TURNS[1]:
            doubts.append((joint, f"may turn {turns:.0f} times each way", "write its limits in radians"))
        if weight[j] > _BEYOND * effort[j]:
            size = f"median {weight[j]:.3g} of {effort[j]:.3g} {unit}"
            message = f"in most poses its weight takes more than its effort limit ({size})"
            remedy = "check masses [kg], centres of mass [m], and the limit, which is the joint's, not the motor's"
            doubts.append((joint, message, remedy))
    # a centre of mass or radius of gyration far beyond the size of the robot: mm for m, kg·mm² for kg·m²
    strokes = np.where(robot.prismatic, upper - lower, 0.0)
    extent = float(robot.offsets.sum() + strokes.sum())
    for body, theta in zip(robot.bodies, lumped_inertials(robot), strict=True):
        if not theta[0] > 0 or not 0 < extent < np.inf or robot.n < _CHAIN:
            continue
        mass, centre, inertia = to_com(theta)
        gyration = np.sqrt(max(np.trace(inertia), 0.0) / (2 * mass))
        far = {"centre of mass": np.linalg.norm(centre), "radius of gyration": gyration}
        if beyond := [f"its {what} is {value:.3g} m" for what, value in far.items() if value > _FAR * extent]:
            message = f"of body '{body.name}' {' and '.join(beyond)}, all joint offsets and strokes together are {extent:.3g} m"
            doubts.append((body.joint, message, "write centres of mass in m and inertias in kg·m² (1 kg·mm² is 1e-6 kg·m²)"))
    for described in robot.description.joints.values():
        if max(map(abs, described.rpy)) > LARGEST_ANGLE:
            message = f"the rpy of its origin, {' '.join(f'{angle:g}' for angle in described.rpy)}, is more than a turn"
            doubts.append((described.name, message, "write it in radians"))
    return [dict(zip(("joint", "message", "remedy"), doubt, strict=True)) for doubt in doubts]


def implausible_lines(doubts: Sequence[Mapping[str, str]]) -> list[str]:
    """Formats implausible values of a URDF, joints with the same one together; doubts: from :func:`implausible_values`."""
    alike = grouped(((doubt["message"], doubt["remedy"]), doubt["joint"]) for doubt in doubts)
    return [
        f"joint{'s' if len(joints) > 1 else ''} {', '.join(map(repr, joints))}: {message}; {remedy}"
        for (message, remedy), joints in alike.items()
    ]
