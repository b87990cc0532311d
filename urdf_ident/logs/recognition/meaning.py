"""Interpretation of the efforts of an unknown log: roles, unit, torque constants, and the direction of gravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ...model.robot import Robot
from ...units import Unit, parse_unit
from ..columns.headers import without_unit
from .blocks import Block
from .efforts import EffortColumns
from .series import Certainty


@dataclass(frozen=True)
class Recognised:
    """One recognised setting: its value as in the project file, how certain it is, and the reason."""

    value: object
    certainty: Certainty
    reason: str

    @property
    def why(self) -> str:
        """Certainty and reason in words."""
        return f"{self.certainty}: {self.reason}"


def share_explained(row: EffortColumns) -> str:
    """Fraction of an effort's variance explained by the URDF's torques, as text."""
    gravity = f" ({100 * row.score:.0f} % by gravity alone)" if row.score > 0.02 else ""
    return f"{100 * row.whole:.0f} % of the variance{gravity}"


def certain_if(condition: bool) -> Certainty:
    """Certain if two independent indications agree, else likely."""
    return "certain" if condition else "likely"


def effort_columns(
    robot: Robot,
    roles: Mapping[str, EffortColumns],
    columns: dict[str, Recognised],
    units: dict[str, Recognised],
    notes: list[str],
    named: Mapping[str, Block],
    alone: bool,
    names: Sequence[str] | None,
) -> tuple[Recognised | None, Recognised | None]:
    """Describes the efforts, their unit and gain, and the direction of gravity that they indicate.

    Args:
        roles: The columns of the measured effort and the targets.
        columns: Quantity → columns; the efforts are added.
        units: Quantity → unit; that of the effort is added.
        notes: Further notes for the user; extended.
        alone: Whether no other columns fit nearly as well.
        names: Column names, which may state the unit of the effort.

    Returns:
        Gravity if it differs from the robot's, and the gain if the effort is not a torque or counts backwards.
    """
    row = roles.get("effort")
    if row is None:
        return None, None
    axis, slopes = row.axis, row.slopes
    down = robot.gravity
    down = down / max(float(np.linalg.norm(down)), 1e-12)
    along = float(axis @ down)
    if row.score > 0.1 and (row.upright < 0 and along < -0.9):
        axis, slopes, along = -axis, -slopes, -along
    for role, other in roles.items():
        origin = {
            "effort": "taken as measured because it has the most noise",
            "effort_target": "taken as the controller's target because it follows the effort without noise",
            "torque_target": "in N·m and without noise, so a target torque",
        }[role]
        columns[role] = Recognised(
            other.block,
            certain_if(role in named or (alone and other.clear > 0.5)),
            "named so in the header"
            if role in named
            else f"the URDF's torques and friction explain {share_explained(other)}; {origin}",
        )
    stated = {without_unit(names[column])[1] for column in row.block} if names is not None else {""}
    unit = parse_unit(next(iter(stated))) if len(stated) == 1 and "" not in stated else None
    gain = _gain(robot, roles, row, slopes, units, notes, unit)
    gravity = None
    angle = float(np.degrees(np.arccos(np.clip(along, -1, 1))))
    if row.score > 0.1 and along < 0.9:
        near = int(np.argmax(np.abs(axis)))
        snapped = np.eye(3)[near] * np.sign(axis[near]) if abs(axis[near]) > 0.97 else axis
        why = f"the efforts show this direction, {angle:.0f}° from the project's"
        vector = [round(float(9.81 * value), 4) + 0.0 for value in snapped]
        gravity = Recognised(vector, certain_if(alone and row.score > 0.4), why)
    elif row.score > 0.1:
        notes.append(f"the direction of gravity agrees with the project within {angle:.0f}°")
    return gravity, gain


def _gain(
    robot: Robot,
    roles: Mapping[str, EffortColumns],
    row: EffortColumns,
    slopes: Array,
    units: dict[str, Recognised],
    notes: list[str],
    unit: Unit | None,
) -> Recognised | None:
    """Torque per effort, including signs: ``auto`` if a target torque was logged, else from the URDF's gravity torques."""
    drawn = unit is not None and unit.kind not in ("torque", "force")
    per = 1.0 / unit.factor if unit is not None else {"torque": 1.0, "current": 1.0, "thousandths": 1e3}[row.kind]
    seen = row.seen
    reversed_joints = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and seen[k]]
    doubtful = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and not seen[k]]
    if doubtful:
        notes.append(f"the effort of {', '.join(doubtful)} may have the opposite sign; gravity acts too little on it to decide")
    if not drawn and (row.kind == "torque" or unit is not None):
        if not reversed_joints:
            return None
        signs = [-1.0 if joint in reversed_joints else 1.0 for joint in robot.order]
        return Recognised(
            signs, "likely", f"the effort of {', '.join(reversed_joints)} has the opposite sign to the URDF's gravity torque"
        )
    name = "A" if row.kind == "current" else "mA"
    if unit is None:
        units["effort"] = Recognised(
            name, "likely", f"a current, about {row.typical:.3g} per N·m of the URDF's torque; if it is a voltage, write V"
        )
    if "torque_target" in roles:
        return Recognised(
            "auto", "certain", "the logged target torque divided by the target current at rest gives the torque constant"
        )
    typical = row.typical or 1.0
    gains = []
    for joint in robot.order:
        k = robot.joints.index(joint)
        slope = slopes[k] if seen[k] or not seen.any() else 0.0
        gains.append(float(f"{per / slope if slope != 0 else per / typical:.4g}"))
    unseen = [joint for joint in robot.order if not seen[robot.joints.index(joint)]]
    median = (
        f" ({', '.join(unseen)}: the median of the others, as gravity hardly acts on them)" if unseen and seen.any() else ""
    )
    fitted = f"N·m per {unit.si if unit else 'A'} that fit the gravity torque of the URDF's masses{median}"
    return Recognised(gains, "guess", f"{fitted}; replace them by those of the data sheet")
