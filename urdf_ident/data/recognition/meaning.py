"""Interpretation of the efforts of an unknown log: roles, unit, torque constants, and the direction of gravity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ...model.robot import Robot
from .blocks import Block
from .efforts import EffortColumns


@dataclass(frozen=True)
class Said:
    """One recognised setting: its value as in the project file, and the reason with its degree of certainty."""

    value: object
    why: str


def follows(row: EffortColumns) -> str:
    """Fraction of an effort's variance explained by the URDF's torques, as text.

    Args:
        row: The effort.

    Returns:
        A phrase.
    """
    by = f", {100 * row.score:.0f} % by gravity alone" if row.score > 0.02 else ""
    return f"{100 * row.whole:.0f} % of the variance{by},"


def sure(condition: bool) -> str:
    """Degree of certainty, as a word.

    Args:
        condition: Whether two independent indications agree.

    Returns:
        "certain" or "likely".
    """
    return "certain" if condition else "likely"


def effort_columns(
    robot: Robot,
    roles: Mapping[str, EffortColumns],
    columns: dict[str, Said],
    units: dict[str, Said],
    notes: list[str],
    named: Mapping[str, Block],
    alone: bool,
) -> tuple[Said | None, Said | None]:
    """Describes the efforts, their unit and gain, and the direction of gravity that they indicate.

    Args:
        roles: The columns of the measured effort and the targets.
        columns: Quantity → columns; the efforts are added.
        units: Quantity → unit; that of the effort is added.
        notes: Further notes for the user; extended.
        named: Quantities that the header itself names.
        alone: Whether no other columns fit nearly as well.

    Returns:
        Gravity if it differs from the robot's, and the gain if the effort is not a torque or counts backwards.
    """
    row = roles.get("effort")
    if row is None:
        return None, None
    axis, slopes = row.axis, row.slopes
    own = np.array(robot.model.gravity.linear)
    own = own / max(float(np.linalg.norm(own)), 1e-12)
    along = float(axis @ own)
    if row.score > 0.1 and (row.upright < 0 and along < -0.9):
        axis, slopes, along = -axis, -slopes, -along
    for role, other in roles.items():
        block = other.block
        word = sure(alone and other.clear > 0.5)
        words = {
            "effort": "measured: it has the most noise",
            "effort_target": "the controller's target: like the effort without noise",
            "torque_target": "a torque without noise",
        }[role]
        columns[role] = Said(
            block,
            "certain: called so"
            if role in named
            else f"{word}: {follows(other)} is explained by the URDF's torques and friction; {words}",
        )
    gain = _gain(robot, roles, row, slopes, units, notes)
    gravity = None
    angle = float(np.degrees(np.arccos(np.clip(along, -1, 1))))
    if row.score > 0.1 and along < 0.9:
        near = int(np.argmax(np.abs(axis)))
        snapped = np.eye(3)[near] * np.sign(axis[near]) if abs(axis[near]) > 0.97 else axis
        why = f"{sure(alone and row.score > 0.4)}: the efforts follow gravity in this direction, {angle:.0f}° from the URDF's"
        gravity = Said([round(float(9.81 * value), 4) + 0.0 for value in snapped], why)
    elif row.score > 0.1:
        notes.append(f"gravity acts as the project says, within {angle:.0f}°")
    return gravity, gain


def _gain(
    robot: Robot,
    roles: Mapping[str, EffortColumns],
    row: EffortColumns,
    slopes: Array,
    units: dict[str, Said],
    notes: list[str],
) -> Said | None:
    """Torque per effort, including signs: ``auto`` if a target torque was logged, else from the URDF's gravity torques."""
    per = {"torque": 1.0, "current": 1.0, "thousandths": 1e3}[row.kind]
    seen = row.seen
    reversed_joints = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and seen[k]]
    doubtful = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and not seen[k]]
    if doubtful:
        notes.append(f"the effort of {', '.join(doubtful)} may count backwards; gravity shows too little of it to decide")
    if row.kind == "torque":
        if not reversed_joints:
            return None
        signs = [-1.0 if joint in reversed_joints else 1.0 for joint in robot.order]
        return Said(signs, f"likely: the effort of {', '.join(reversed_joints)} counts backwards")
    name = "A" if row.kind == "current" else "mA"
    units["effort"] = Said(
        name, f"likely: a torque of 1 N·m comes with {row.typical:.3g}, so this is no torque (a voltage would be V)"
    )
    if "torque_target" in roles:
        return Said("auto", "certain: target torque over target current at rest is the torque constant")
    typical = row.typical or 1.0
    gains = []
    for joint in robot.order:
        k = robot.joints.index(joint)
        slope = slopes[k] if seen[k] or not seen.any() else 0.0
        gains.append(float(f"{per / slope if slope != 0 else per / typical:.4g}"))
    return Said(gains, "guess: N·m per A that fit the gravity of the URDF's inertials; put the data sheet's here")
