"""Quantities of a log, and the layout of a log whose columns are not the default ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Column = int | str

#: Quantity whose units each further quantity has, and the quantities of the motor side.
KIND = {
    "motor_position": "position",
    "position_target": "position",
    "motor_velocity": "velocity",
    "effort_target": "effort",
    "torque_target": "effort",
}

MOTOR = ("motor_position", "motor_velocity")


@dataclass(frozen=True)
class LogLayout:
    """Layout of a log without the default columns; the ``log:`` section of a project file.

    Attributes:
        files: Quantity → file name pattern of a split log, where ``*`` stands for the LOG argument. A quantity
            without its own file is read from the file of ``position``.
        rate: Samples per second [Hz], for logs without a time column.
        columns: ``time`` or a quantity (keys of :data:`.names.NAMES`) → column names or 0-based column numbers, in
            the order of ``robot.order``.
        units: Quantity → unit of its columns, or one unit per joint in the order of ``robot.order``. A single unit
            of angle applies to revolute joints only, a unit of length to prismatic ones.
        position_side: Where positions, velocities and accelerations were measured: "joint" or "motor".
        effort_side: Where the effort acts: "joint" or "motor".
        topic: Topic of a bag, or group of an HDF5, MATLAB or NumPy file; chosen by content if None.
        joints: Robot joint → its name in the log, if the two differ.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    rate: float | None = None
    columns: Mapping[str, Column | Sequence[Column]] = field(default_factory=dict)
    units: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    position_side: str = "joint"
    effort_side: str = "joint"
    topic: str | None = None
    joints: Mapping[str, str] = field(default_factory=dict)
