"""What a URDF contains, what is doubtful in it, and what could be identified, as data and as text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..grouping import abbreviated, grouped, table

#: Below this rank gap the rank is doubtful.
_CLEAR = 1e3
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
        return dict(vars(self))

    def summary(self) -> str:
        """Joints, doubts and what can be identified, on one screen."""
        rows = []
        joints = {joint["name"]: joint for joint in self.joints}
        for body in self.bodies:
            joint = joints.get(body["joint"], {"type": "mimic"})
            bounds = [
                "-" if joint.get(key) is None else f"{joint[key]:.4g}" for key in ("lower", "upper", "velocity", "effort")
            ]
            rows.append([body["joint"], joint["type"], *bounds, body["name"], abbreviated(body["lumped_links"], 2) or "-"])
        lines = [f"{self.robot} ({self.path}): {len(joints)} joints", ""]
        lines += table(["joint", "type", "lower", "upper", "velocity", "effort", "body", "fixed links"], rows)
        lines.append("  limits in rad, rad/s and N·m; of prismatic joints in m, m/s and N")
        if self.locked:
            lines.append(f"  locked: {abbreviated([f'{name} at {value:g}' for name, value in self.locked.items()])}")
        lines.append("")
        path = Path(self.path)
        fix = f"urdf-ident check {shlex.quote(str(path))} --fix {shlex.quote(f'{path.stem}_fixed.urdf')}"
        if self.findings:
            # links and bodies with the same problem and correction together; a body that is nothing but its link once
            alike = grouped(((entry["level"], tuple(entry["problems"]), entry["correction"]), entry) for entry in self.findings)
            for (level, problems, correction), same in alike.items():
                links, bodies = ([entry["name"] for entry in same if entry["kind"] == kind] for kind in ("link", "body"))
                named = (("link", "links", links), ("body", "bodies", [name for name in bodies if name not in links]))
                subjects = [
                    f"{singular if len(names) == 1 else plural} {', '.join(map(repr, names))}"
                    for singular, plural, names in named
                    if names
                ]
                lines += [f"  {level.upper()} {' and '.join(subjects)}: {'; '.join(problems)}", f"    {correction}"]
            lines.append(f"  `{fix}` writes a repaired copy")
        else:
            lines.append("  all inertial parameters are physically consistent")
        lines += [f"  DOUBT {line}" for line in implausible_lines(self.doubts)]
        if self.refused:
            lines += [f"  STRICT PARSERS REFUSE {violation}" for violation in self.refused]
            lines.append(f"  `{fix}` removes them; exports never contain them")
        lines += ["", *_identifiable_lines(self.identifiable)]
        if self.springs:
            first = self.springs[0]
            origin = "assumed (20 bits a turn; give model.elastic.encoder_step)" if first["assumed"] else "given"
            lines += [
                "",
                f"  springs: an encoder step of {first['encoder_step']:.3g} rad or m, {origin}, shows a stiffness up to",
            ]
            cells = [
                [
                    spring["joint"],
                    *(f"{value:.3g}" for pair in zip(spring["torque"], spring["stiffest"], strict=True) for value in pair),
                ]
                for spring in self.springs
            ]
            titles = ["joint", "gravity, rms", "K up to", "vigorous motion, rms", "K up to"]
            lines += [*table(titles, cells), "  in N·m and N·m/rad; of prismatic joints in N and N/m"]
        return "\n".join(lines)

    __str__ = summary


def _identifiable_lines(structure: Mapping[str, Any]) -> list[str]:
    """What perfect data could identify, and the simplest motion for each part of it."""
    alone, combined, never = (len(structure[kind]) for kind in ("alone", "in_combination", "never"))
    lines = [
        f"  {structure['parameters']} standard parameters, {structure['base']} base parameters: {alone} are identifiable "
        f"individually, {combined} only in {structure['base'] - alone} combinations; {never} never affect a joint torque:",
        "    " + (abbreviated(structure["never"], 2 * _LISTED) or "-"),
    ]
    if structure["blurred"]:
        lines.append(
            f"  {len(structure['blurred'])} of these would be identifiable only because the URDF rounds angles (1.5708 for a "
            "right angle); they are treated as not identifiable"
        )
    if structure["rank_gap"] < _CLEAR:
        lines.append(
            f"  the rank is not clear (gap {structure['rank_gap']:.2g}): rounded angles (1.57 for 1.570796) add spurious "
            "parameters; write them with all digits"
        )
    inertial = structure["verdicts"][: structure["inertial"]]
    by_motion = grouped((verdict["motion"], verdict["name"]) for verdict in inertial if verdict["motion"])
    lines.append("  simplest motion for each inertial parameter (friction and rotor inertia: each joint slowly and fast):")
    for motion, names in by_motion.items():
        lines.append(f"    {motion}: {abbreviated(names, _LISTED)}")
    lines.append(
        "  m: mass; mx, my, mz: mass times centre of mass; Ixx … Izz: inertia; in the joint frame of the body that follows"
    )
    return lines


def implausible_lines(doubts: Sequence[Mapping[str, str]]) -> list[str]:
    """Formats implausible values of a URDF, joints with the same one together; doubts: from :func:`implausible_values`."""
    alike = grouped(((doubt["message"], doubt["remedy"]), doubt["joint"]) for doubt in doubts)
    return [
        f"joint{'s' if len(joints) > 1 else ''} {', '.join(map(repr, joints))}: {message}; {remedy}"
        for (message, remedy), joints in alike.items()
    ]
