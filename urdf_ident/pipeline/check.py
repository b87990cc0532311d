"""The command `check`: what is implausible or impossible in a URDF, and what could be identified.

Implausible are values that are possible but hardly meant: degrees for radians, millimetres, the limit of a motor.
"""

from __future__ import annotations

import numpy as np

from ..consistency.repair import assess_bodies, assess_links
from ..estimation.elastic import stiffest_springs
from ..estimation.uncertainty.identifiability import structural_verdicts
from ..export.urdf import violations
from ..model.base import ALONE, COMBINED, NEVER
from ..model.dynamic_model import DynamicModel
from ..model.inertia import to_com
from ..model.prior import inertial_prior
from ..model.rigid_bodies import rigid_torque
from ..model.robot import Robot
from ..model.urdf import LARGEST_ANGLE
from ..motion.limits import finite_ends
from ..result.urdf_check import UrdfCheck
from ..units import joint_units

#: Between these limits [turns] the unit is probably degrees; above the second, some exporters mean "no limit".
_TURNS = (10.0, 1e4)
#: A wrong unit is a factor of ten or more; springs, counterweights and thermal limits of the motor explain less.
_BEYOND = 3.0
#: Random poses of which the median weight is taken.
_POSES = 200
#: Multiple of the sum of all joint offsets beyond which a centre of mass or radius of gyration is in another unit.
_FAR = 10.0
#: Fewest joints whose offsets tell the size of a robot.
_CHAIN = 3


def check(model: DynamicModel) -> UrdfCheck:
    """Checks a URDF before anything is computed from it.

    Args:
        model: The dynamic model of the URDF.

    Returns:
        Joints, bodies with the links fixed to them, doubtful inertials, and what can be identified.
    """
    robot, base = model.robot, model.base()
    limits = {key: robot.limit(key) for key in ("lower", "upper", "velocity", "effort")}
    links, bodies = assess_links(robot.description), assess_bodies(robot)
    inertials = [("link", *link) for link in links.items()] + [("body", *body) for body in bodies.items()]
    kinds = list(zip(model.names, base.kinds, strict=True))
    of_kind = {wanted: [name for name, kind in kinds if kind == wanted] for wanted in (ALONE, COMBINED, NEVER)}
    return UrdfCheck(
        robot=robot.name,
        path=robot.path,
        refused=[str(violation) for violation in violations(robot.urdf, robot.path)],
        physical=all(assessment.level != "impossible" for _, _, assessment in inertials),
        joints=[
            {
                "name": name,
                "type": robot.description.joints[name].type,
                **{key: float(values[j]) if abs(values[j]) < 1e300 else None for key, values in limits.items()},
            }
            for j, name in enumerate(robot.joints)
        ],
        locked=dict(robot.locked),
        bodies=[
            {"name": body.name, "joint": body.joint, "lumped_links": [link.name for link in body.links[1:]]}
            for body in robot.bodies
        ],
        findings=[
            {
                "kind": kind,
                "name": name,
                "level": assessment.level,
                "problems": list(assessment.problems),
                "correction": assessment.correction,
                "eigenvalues": assessment.eigenvalues.tolist(),
            }
            for kind, name, assessment in inertials
            if assessment.level != "ok"
        ],
        doubts=implausible_values(robot),
        identifiable={
            "parameters": len(model.names),
            "inertial": model.n_inertial,
            "base": len(base),
            "rank_gap": base.rank_gap,
            "alone": of_kind[ALONE],
            "in_combination": of_kind[COMBINED],
            "never": of_kind[NEVER],
            "combinations": [base.combination(row) for row in range(len(base))],
            "blurred": [model.names[k] for k in base.ill_conditioned],
            "verdicts": [{"name": verdict.parameter, **verdict.as_dict()} for verdict in structural_verdicts(model, base)],
        },
        springs=stiffest_springs(model),
    )


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
    for body, theta in zip(robot.bodies, robot.inertials, strict=True):
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
