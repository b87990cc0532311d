"""The command `check`: what is implausible or impossible in a URDF, and what could be identified."""

from __future__ import annotations

from ..consistency.repair import assess_bodies, assess_links, implausible_values
from ..estimation.elastic import stiffest_springs
from ..estimation.uncertainty.identifiability import structural_verdicts
from ..export.urdf import violations
from ..model.base import ALONE, COMBINED, NEVER
from ..model.dynamic_model import DynamicModel
from ..result.urdf_check import UrdfCheck


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
