"""Settings of a project that follow from the efforts of an unknown log: columns, unit, torque constants, gravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...model.robot import Robot
from ...units import Unit, parse_unit
from ..columns.headers import without_unit
from .efforts import ELSEWHERE, EffortColumns
from .recognised import Recognised, certain_if
from .series import Block

#: Share explained, where no other columns fit nearly as well, from which columns and direction of gravity are certain: more
#: than of a smooth signal by chance.
_SURE = 0.5
#: Cosine to an axis of the base from which a robot is taken to be mounted along it: friction turns the direction by degrees.
_ALONG = 0.97


def share_explained(row: EffortColumns) -> str:
    """Fraction of an effort's variance explained by the URDF's torques, as text."""
    gravity = f" ({100 * row.by_gravity:.0f} % by gravity alone)" if row.weighed else ""
    return f"{100 * row.explained:.0f} % of the variance{gravity}"


def effort_columns(roles: Mapping[str, EffortColumns], named: Mapping[str, Block], alone: bool) -> dict[str, Recognised]:
    """Describes the columns of the measured effort and of the targets, by quantity.

    Args:
        named: Quantities that the header names.
        alone: Whether no other columns fit nearly as well.
    """
    origins = {
        "effort": "taken as measured because it has the most noise",
        "effort_target": "taken as the controller's target because it follows the effort without noise",
        "torque_target": "in N·m and without noise, so a target torque",
    }
    columns = {}
    for role, row in roles.items():
        why = f"the URDF's torques and friction explain {share_explained(row)}; {origins[role]}"
        certainty = certain_if(role in named or (alone and row.evidence > _SURE))
        columns[role] = Recognised(row.block, certainty, "named so in the header" if role in named else why)
    return columns


def with_sign(row: EffortColumns, robot: Robot) -> EffortColumns:
    """Efforts that show gravity upwards and inertia backwards count backwards: the direction of gravity is the opposite one."""
    backwards = row.weighed and row.upright < 0 and row.along(robot) < -ELSEWHERE
    return replace(row, axis=-row.axis, slopes=-row.slopes) if backwards else row


def gravity_direction(row: EffortColumns, robot: Robot, alone: bool) -> tuple[Recognised | None, list[str]]:
    """Gravity that efforts show if it differs from the robot's, and a note if it agrees; neither if they do not show it."""
    if not row.weighed:
        return None, []
    along = row.along(robot)
    angle = float(np.degrees(np.arccos(np.clip(along, -1, 1))))
    if along >= ELSEWHERE:
        return None, [f"the direction of gravity agrees with the project within {angle:.0f}°"]
    near = int(np.argmax(np.abs(row.axis)))
    snapped = np.eye(3)[near] * np.sign(row.axis[near]) if abs(row.axis[near]) > _ALONG else row.axis
    vector = [round(float(9.81 * value), 4) + 0.0 for value in snapped]
    why = f"the efforts show this direction, {angle:.0f}° from the project's"
    return Recognised(vector, certain_if(alone and row.by_gravity > _SURE), why), []


def stated_unit(row: EffortColumns, names: Sequence[str]) -> Unit | None:
    """The unit that the names of all its columns state."""
    stated = {without_unit(names[column])[1] for column in row.block} if names else {""}
    return parse_unit(next(iter(stated))) if len(stated) == 1 and "" not in stated else None


def effort_unit(row: EffortColumns, unit: Unit | None) -> Recognised | None:
    """The unit of efforts that are no torques and whose names state none."""
    if unit is not None or row.kind == "torque":
        return None
    why = f"a current, about {row.typical:.3g} per N·m of the URDF's torque; if it is a voltage, write V"
    return Recognised("A" if row.kind == "current" else "mA", "likely", why)


def effort_gain(
    row: EffortColumns, robot: Robot, unit: Unit | None, *, with_target: bool
) -> tuple[Recognised | None, list[str]]:
    """Torque per effort, including signs, if efforts are no torques or count backwards; and notes on signs.

    Args:
        unit: That of :func:`stated_unit`.
        with_target: Whether a target torque was logged, which gives it; else it comes from the URDF's gravity torques.
    """
    seen, slopes = row.seen, row.slopes
    backwards = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and seen[k]]
    doubtful = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and not seen[k]]
    doubt = f"the effort of {', '.join(doubtful)} may have the opposite sign; gravity acts too little on it to decide"
    notes = [doubt] if doubtful else []
    if row.kind == "torque" if unit is None else unit.kind in ("torque", "force"):
        signs = [-1.0 if joint in backwards else 1.0 for joint in robot.order]
        why = f"the effort of {', '.join(backwards)} has the opposite sign to the URDF's gravity torque"
        return Recognised(signs, "likely", why) if backwards else None, notes
    if with_target:
        why = "the logged target torque divided by the target current at rest gives the torque constant"
        return Recognised("auto", "certain", why), notes
    per = 1.0 / unit.factor if unit is not None else {"torque": 1.0, "current": 1.0, "thousandths": 1e3}[row.kind]
    known = np.where(seen | (not seen.any()), slopes, 0.0)
    gains = per / np.where(known != 0, known, row.typical or 1.0)
    unseen = [joint for joint in robot.order if not seen[robot.joints.index(joint)]]
    median = f" ({', '.join(unseen)}: the median of the others, as gravity hardly acts on them)" * bool(unseen and seen.any())
    why = f"N·m per {unit.si if unit else 'A'} that fit the gravity torque of the URDF's masses{median}"
    listed = [float(f"{gains[robot.joints.index(joint)]:.4g}") for joint in robot.order]
    return Recognised(listed, "guess", f"{why}; replace them by those of the data sheet"), notes
