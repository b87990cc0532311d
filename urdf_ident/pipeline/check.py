"""Checks a URDF: what is implausible or impossible in it, and what could be identified."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..consistency.repair import assess_bodies, assess_links
from ..estimation.uncertainty.identifiability import structural_verdicts
from ..export.strict_urdf import violations
from ..grouping import abbreviated, grouped
from ..model.base import ALONE, COMBINED, NEVER, BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.inertia import to_com
from ..model.prior import inertial_prior, lumped_inertials
from ..model.rigid_bodies import rigid_torque
from ..model.robot import Robot
from ..model.structure import geometric_rank, random_motion
from ..model.terms import RotorInertia
from ..model.urdf import LARGEST_ANGLE
from ..motion.limits import finite_ends
from ..result.text.lines import table
from ..signals.motor_side import visible_stiffness
from ..units import joint_units

#: Below this rank gap the rank is doubtful.
CLEAR = 1e3
#: Encoder step [rad or m] that is assumed where the project file gives none.
ASSUMED_STEP = 2 * np.pi / 2**20
#: Between these limits [turns] the unit is probably degrees; above the second, some exporters mean "no limit".
_TURNS = (10.0, 1e4)
#: A wrong unit is a factor of ten or more; springs, counterweights and thermal limits of the motor explain less.
_BEYOND = 3.0
_POSES = 200
#: Multiple of the sum of all joint offsets beyond which a centre of mass or radius of gyration is in another unit.
_FAR = 10.0
#: Fewest joints whose offsets tell the size of a robot.
_CHAIN = 3
#: Number of parameters that are listed for one motion.
_LISTED = 8


@dataclass(frozen=True)
class UrdfCheck:
    """What a URDF contains, and what could be identified; every field is plain data.

    Attributes:
        refused: What strict parsers refuse.
        physical: Whether all inertial parameters are possible.
        joints: Name, type and limits of each joint [rad, rad/s, N·m; prismatic: m, m/s, N], None without a limit.
        locked: Locked joints and their positions [rad or m].
        bodies: Moving bodies with the links that are fixed to them.
        findings: Links and bodies whose inertial parameters are doubtful or impossible.
        doubts: Implausible limits, origins, masses.
        identifiable: Parameters and combinations that joint torques depend on.
        springs: Of elastic joints, the stiffest spring that the encoders resolve.
    """

    robot: str
    path: str
    refused: Sequence[str]
    physical: bool
    joints: Sequence[Mapping[str, Any]]
    locked: Mapping[str, float]
    bodies: Sequence[Mapping[str, Any]]
    findings: Sequence[Mapping[str, Any]]
    doubts: Sequence[Mapping[str, str]]
    identifiable: Mapping[str, Any]
    springs: Sequence[Mapping[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """All fields, as `check --json` prints them."""
        return dict(vars(self))

    def summary(self) -> str:
        """Joints, doubts and what can be identified, on one screen."""
        rows = []
        for joint, body in zip(self.joints, self.bodies, strict=True):
            bounds = ["-" if joint[key] is None else f"{joint[key]:.4g}" for key in ("lower", "upper", "velocity", "effort")]
            rows.append([joint["name"], joint["type"], *bounds, body["name"], abbreviated(body["lumped_links"], 2) or "-"])
        lines = [f"{self.robot} ({self.path}): {len(rows)} joints", ""]
        lines += table(["joint", "type", "lower", "upper", "velocity", "effort", "body", "fixed links"], rows)
        lines.append("  limits in rad, rad/s and N·m; of prismatic joints in m, m/s and N")
        if self.locked:
            lines.append(f"  locked: {abbreviated([f'{name} at {value:g}' for name, value in self.locked.items()])}")
        lines.append("")
        path = Path(self.path)
        fix = f"urdf-ident check {shlex.quote(str(path))} --fix {shlex.quote(f'{path.stem}_fixed.urdf')}"
        if self.findings:
            lines += _inertial_lines(self.findings)
            lines.append(f"  `{fix}` writes a repaired copy")
        else:
            lines.append("  all inertial parameters are physically consistent")
        lines += [f"  DOUBT {line}" for line in implausible_lines(self.doubts)]
        if self.refused:
            lines += [f"  STRICT PARSERS REFUSE {item}" for item in self.refused]
            lines.append(f"  `{fix}` removes them; exports never contain them")
        lines += ["", *_identifiable(self.identifiable)]
        if self.springs:
            first = self.springs[0]
            origin = "assumed (20 bits a turn; give model.elastic.encoder_step)" if first["assumed"] else "given"
            lines += [
                "",
                f"  springs: an encoder step of {first['encoder_step']:.3g} rad or m, {origin}, shows a stiffness up to",
            ]
            cells = [
                [
                    item["joint"],
                    *(f"{value:.3g}" for pair in zip(item["torque"], item["stiffest"], strict=True) for value in pair),
                ]
                for item in self.springs
            ]
            titles = ["joint", "gravity, rms", "K up to", "vigorous motion, rms", "K up to"]
            lines += [*table(titles, cells), "  in N·m and N·m/rad; of prismatic joints in N and N/m"]
        return "\n".join(lines)

    __str__ = summary


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
    inertials = [("link", *found) for found in links.items()] + [("body", *found) for found in bodies.items()]
    return UrdfCheck(
        robot=robot.name,
        path=robot.path,
        refused=[str(violation) for violation in violations(robot.urdf, robot.path)],
        physical=all(found.level != "impossible" for _, _, found in inertials),
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
                "level": found.level,
                "problems": list(found.problems),
                "correction": found.correction,
                "eigenvalues": found.eigenvalues.tolist(),
            }
            for kind, name, found in inertials
            if found.level != "ok"
        ],
        doubts=implausible_values(robot),
        identifiable=_identifiability(model, base),
        springs=_springs(model) if isinstance(model, ElasticModel) else [],
    )


def _identifiability(model: DynamicModel, base: BaseParameters) -> dict[str, Any]:
    """What the structure of the robot makes identifiable, as plain data."""
    kinds = list(zip(model.names, base.kinds, strict=True))
    return {
        "parameters": len(model.names),
        "inertial": model.n_inertial,
        "base": len(base),
        "rank_gap": base.rank_gap,
        "alone": [name for name, kind in kinds if kind == ALONE],
        "in_combination": [name for name, kind in kinds if kind == COMBINED],
        "never": [name for name, kind in kinds if kind == NEVER],
        "combinations": [base.combination(row) for row in range(len(base))],
        "blurred": [model.names[k] for k in base.ill_conditioned],
        "geometric_rank": _geometric(model),
        "verdicts": [
            {"name": item.parameter, **item.as_dict(), "motion": item.motion} for item in structural_verdicts(model, base)
        ],
    }


def _geometric(model: DynamicModel) -> dict[str, int] | None:
    """Rank of inertials and rotor inertias from the geometry alone and from the regressor; None where no rule applies."""
    rotors = [item for item in model.terms if isinstance(item.term, RotorInertia)]
    if not model.is_rigid or model.drive.coupled.any() or len(rotors) not in (0, model.n):
        return None
    plain = DynamicModel(model.robot, friction="none", rotor_inertia=bool(rotors), drive=model.drive)
    return {"geometry": geometric_rank(model.robot, bool(rotors)), "regressor": len(plain.base())}


def _springs(model: ElasticModel) -> list[dict[str, Any]]:
    """Stiffest spring that the encoders could resolve: under gravity alone, and in vigorous motion."""
    robot = model.robot
    motion = random_motion(robot, 400)
    torque_of = partial(rigid_torque, robot, inertial_prior(robot).theta0)
    still = np.zeros_like(motion.q)
    to_motors = np.linalg.inv(model.drive.geared)
    torques = [torque_of(motion.q, v, a) @ to_motors for v, a in ((still, still), (motion.v, motion.a))]
    slow, fast = (np.std(torque, axis=0) for torque in torques)
    slow[slow < 1e-9 * fast.max()] = 0.0  # rounding errors
    step = ASSUMED_STEP if model.encoder_step is None else model.encoder_step
    return [
        {
            "joint": joint,
            "encoder_step": step,
            "assumed": model.encoder_step is None,
            "torque": [float(slow[j]), float(fast[j])],
            "stiffest": [float(visible_stiffness(torque, step, model.least_counts)[j]) for torque in (slow, fast)],
        }
        for j, joint in enumerate(robot.joints)
    ]


def _inertial_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Links and bodies with the same problem and correction together; a body that is nothing but its link is not repeated."""
    alike = grouped(((item["level"], tuple(item["problems"]), item["correction"]), item) for item in found)
    lines = []
    for (level, problems, correction), items in alike.items():
        links, bodies = ([item["name"] for item in items if item["kind"] == kind] for kind in ("link", "body"))
        named = (("link", "links", links), ("body", "bodies", [name for name in bodies if name not in links]))
        words = [f"{one if len(some) == 1 else several} {', '.join(map(repr, some))}" for one, several, some in named if some]
        lines += [f"  {level.upper()} {' and '.join(words)}: {'; '.join(problems)}", f"    {correction}"]
    return lines


def _identifiable(seen: Mapping[str, Any]) -> list[str]:
    """What perfect data could identify, and the simplest motion for each part of it."""
    lines = [
        f"  {seen['parameters']} standard parameters, {seen['base']} base parameters: {len(seen['alone'])} are identifiable "
        f"individually, {len(seen['in_combination'])} only in {seen['base'] - len(seen['alone'])} combinations; "
        f"{len(seen['never'])} never affect a joint torque:",
        "    " + (abbreviated(seen["never"], 2 * _LISTED) or "-"),
    ]
    if seen["blurred"]:
        lines.append(
            f"  {len(seen['blurred'])} of these would be identifiable only because the URDF rounds angles (1.5708 for a right "
            "angle); they are treated as not identifiable"
        )
    if seen["rank_gap"] < CLEAR:
        lines.append(
            f"  the rank is not clear (gap {seen['rank_gap']:.2g}): rounded angles (1.57 for 1.570796) add spurious "
            "parameters; write them with all digits"
        )
    ranks = seen["geometric_rank"]
    if ranks is not None and ranks["geometry"] == ranks["regressor"]:
        lines.append(
            f"  the kinematics give the same {ranks['geometry']} inertial base parameters; rank gap {seen['rank_gap']:.0e}"
        )
    elif ranks is not None:
        lines.append(
            f"  the kinematics give {ranks['geometry']} inertial base parameters, motion within the joint limits shows "
            f"{ranks['regressor']}: a joint has hardly any range, or angles are rounded"
        )
    inertial = seen["verdicts"][: seen["inertial"]]
    by_motion = grouped((item["motion"], item["name"]) for item in inertial if item["motion"])
    lines.append("  simplest motion for each inertial parameter (friction and rotor inertia: each joint slowly and fast):")
    for motion, names in by_motion.items():
        lines.append(f"    {motion}: {abbreviated(names, _LISTED)}")
    lines.append(
        "  m: mass; mx, my, mz: mass times centre of mass; Ixx … Izz: inertia; in the joint frame of the body that follows"
    )
    return lines


def implausible_values(robot: Robot) -> list[dict[str, str]]:
    """Finds limits, origins, centres of mass and inertias of a URDF that are implausible.

    Args:
        robot: The robot whose limits are compared with its inertials, and these with its size.

    Returns:
        ``joint``, ``message`` and ``remedy`` of each.
    """
    lower, upper, effort = (robot.limit(key) for key in ("lower", "upper", "effort"))
    found = []
    q = np.random.default_rng(0).uniform(*finite_ends(lower, upper), (_POSES, robot.n))
    still = np.zeros_like(q)
    weight = np.median(np.abs(rigid_torque(robot, inertial_prior(robot).theta0, q, still, still)), axis=0)
    for j, joint in enumerate(robot.joints):
        unit = joint_units(robot.prismatic[j])["torque"]
        turns = max(abs(lower[j]), abs(upper[j])) / (2 * np.pi)
        if not robot.prismatic[j] and _TURNS[0] < turns < _TURNS[1]:
            found.append((joint, f"may turn {turns:.0f} times each way", "write its limits in radians"))
        if weight[j] > _BEYOND * effort[j]:
            size = f"median {weight[j]:.3g} of {effort[j]:.3g} {unit}"
            message = f"in most poses its weight takes more than its effort limit ({size})"
            remedy = "check masses [kg], centres of mass [m], and the limit, which is the joint's, not the motor's"
            found.append((joint, message, remedy))
    found += _far_masses(robot)
    for placed in robot.description.joints.values():
        if max(map(abs, placed.rpy)) > LARGEST_ANGLE:
            message = f"the rpy of its origin, {' '.join(f'{angle:g}' for angle in placed.rpy)}, is more than a turn"
            found.append((placed.name, message, "write it in radians"))
    return [dict(zip(("joint", "message", "remedy"), item, strict=True)) for item in found]


def implausible_lines(found: Sequence[Mapping[str, str]]) -> list[str]:
    """Formats implausible values of a URDF, joints with the same one together.

    Args:
        found: From :func:`implausible_values`.
    """
    alike = grouped(((item["message"], item["remedy"]), item["joint"]) for item in found)
    return [
        f"joint{'s' if len(joints) > 1 else ''} {', '.join(map(repr, joints))}: {message}; {remedy}"
        for (message, remedy), joints in alike.items()
    ]


def _far_masses(robot: Robot) -> list[tuple[str, str, str]]:
    """Bodies whose centre of mass or radius of gyration is far beyond the size of the robot (mm for m, kg·mm² for kg·m²)."""
    strokes = np.where(robot.prismatic, robot.limit("upper") - robot.limit("lower"), 0.0)
    size = float(robot.offsets.sum() + strokes.sum())
    found = []
    for joint, body, theta in zip(robot.joints, robot.bodies, lumped_inertials(robot), strict=True):
        if not theta[0] > 0 or not 0 < size < np.inf or robot.n < _CHAIN:
            continue
        mass, centre, inertia = to_com(theta)
        gyration = np.sqrt(max(np.trace(inertia), 0.0) / (2 * mass))
        far = {"centre of mass": np.linalg.norm(centre), "radius of gyration": gyration}
        parts = [f"its {what} is {value:.3g} m" for what, value in far.items() if value > _FAR * size]
        if parts:
            message = f"of body '{body.name}' {' and '.join(parts)}, all joint offsets and strokes together are {size:.3g} m"
            found.append((joint, message, "write centres of mass in m and inertias in kg·m² (1 kg·mm² is 1e-6 kg·m²)"))
    return found
