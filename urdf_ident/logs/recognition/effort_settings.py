"""Settings of a project that follow from the efforts of an unknown log: columns, unit, torque constants, gravity."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...model.robot import Robot
from ...units import Unit, parse_unit
from ..columns.headers import without_unit
from .efforts import ELSEWHERE, EffortColumns
from .recognised import Recognised, certain_if

#: Share explained, where no other columns fit nearly as well, from which columns and direction of gravity are certain: more
#: than of a smooth signal by chance.
_SURE = 0.5
#: Cosine to an axis of the base from which a robot is taken to be mounted along it: friction turns the direction by degrees.
_ALONG = 0.97


def share_explained(row: EffortColumns) -> str:
    """Fraction of an effort's variance explained by the URDF's torques, as text."""
    gravity = f" ({100 * row.by_gravity:.0f} % by gravity alone)" if row.weighed else ""
    return f"{100 * row.explained:.0f} % of the variance{gravity}"


def effort_settings(
    roles: Mapping[str, EffortColumns], robot: Robot, names: Sequence[str], named: Collection[str], alone: bool
) -> tuple[dict[str, Recognised], list[str]]:
    """The settings that follow from the efforts, and notes for the user.

    Args:
        roles: The columns of the measured effort and of the targets, by quantity.
        names: Names of all columns; empty without a header.
        named: Quantities that the header names.
        alone: Whether no other columns fit nearly as well.
    """
    if not roles:
        return {}, ["no columns follow the torques that the URDF predicts: the log seems to contain no efforts"]
    found, notes = dict[str, Recognised](), list[str]()
    origins = {
        "effort": "taken as measured because it has the most noise",
        "effort_target": "taken as the controller's target because it follows the effort without noise",
        "torque_target": "in N·m and without noise, so a target torque",
    }
    for role, row in roles.items():
        why = f"the URDF's torques and friction explain {share_explained(row)}; {origins[role]}"
        certainty = certain_if(role in named or (alone and row.evidence > _SURE))
        reason = "named so in the header" if role in named else why
        found[f"log.columns.{role}"] = Recognised(row.block, certainty, reason)
    row = roles["effort"]
    if row.weighed and row.upright < 0 and row.along(robot) < -ELSEWHERE:  # they count backwards, not gravity
        row = replace(row, axis=-row.axis, slopes=-row.slopes)
    stated = {without_unit(names[column])[1] for column in row.block} if names else {""}
    unit = parse_unit(next(iter(stated))) if len(stated) == 1 and "" not in stated else None  # of all of its columns
    if unit is None and row.kind != "torque":
        why = f"a current, about {row.typical:.3g} per N·m of the URDF's torque; if it is a voltage, write V"
        found["log.units.effort"] = Recognised("A" if row.kind == "current" else "mA", "likely", why)
    backwards = [robot.joints[k] for k in range(robot.n) if row.slopes[k] < 0 and row.seen[k]]
    if doubtful := [robot.joints[k] for k in range(robot.n) if row.slopes[k] < 0 and not row.seen[k]]:
        notes.append(f"the effort of {', '.join(doubtful)} may have the opposite sign; gravity acts too little on it to decide")
    if row.kind == "torque" if unit is None else unit.kind in ("torque", "force"):
        if backwards:
            why = f"the effort of {', '.join(backwards)} has the opposite sign to the URDF's gravity torque"
            signs = [-1.0 if joint in backwards else 1.0 for joint in robot.order]
            found["drive.gain"] = Recognised(signs, "likely", why)
    elif "torque_target" in roles:
        why = "the logged target torque divided by the target current at rest gives the torque constant"
        found["drive.gain"] = Recognised("auto", "certain", why)
    else:
        found["drive.gain"] = _gain_by_gravity(row, robot, unit)
    if row.weighed:
        angle = float(np.degrees(np.arccos(np.clip(row.along(robot), -1, 1))))
        if row.along(robot) >= ELSEWHERE:
            notes.append(f"the direction of gravity agrees with the project within {angle:.0f}°")
        else:
            near = int(np.argmax(np.abs(row.axis)))
            snapped = np.eye(3)[near] * np.sign(row.axis[near]) if abs(row.axis[near]) > _ALONG else row.axis
            vector = [round(float(9.81 * value), 4) + 0.0 for value in snapped]
            why = f"the efforts show this direction, {angle:.0f}° from the project's"
            found["robot.gravity"] = Recognised(vector, certain_if(alone and row.by_gravity > _SURE), why)
    return found, notes


def _gain_by_gravity(row: EffortColumns, robot: Robot, unit: Unit | None) -> Recognised:
    """Torque per effort, including signs, from the gravity torques of the URDF; unit: that of the header."""
    per = 1.0 / unit.factor if unit is not None else {"torque": 1.0, "current": 1.0, "thousandths": 1e3}[row.kind]
    known = np.where(row.seen | (not row.seen.any()), row.slopes, 0.0)
    gains = per / np.where(known != 0, known, row.typical or 1.0)
    unseen = [joint for joint in robot.order if not row.seen[robot.joints.index(joint)]]
    median = f" ({', '.join(unseen)}: the median of the others, as gravity hardly acts on them)"
    why = f"N·m per {unit.si if unit else 'A'} that fit the gravity torque of the URDF's masses"
    why += median if unseen and row.seen.any() else ""
    listed = [float(f"{gains[robot.joints.index(joint)]:.4g}") for joint in robot.order]
    return Recognised(listed, "guess", f"{why}; replace them by those of the data sheet")
