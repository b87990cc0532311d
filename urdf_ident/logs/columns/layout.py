"""Quantities of a log, and the layout of a log whose columns are not the default ones."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...settings import Section

Column = int | str
Side = Literal["joint", "motor"]

#: Quantity whose units each further quantity has, and the quantities of the motor side.
KIND = {
    "motor_position": "position",
    "position_target": "position",
    "motor_velocity": "velocity",
    "effort_target": "effort",
    "torque_target": "effort",
}

MOTOR = ("motor_position", "motor_velocity")
#: Quantities whose unit depends on whether a joint turns or slides.
MOVING = ("position", "velocity", "acceleration")


class SideSection(Section):
    """On which side of the gears a quantity was logged."""

    position: Side = Field("joint", description="of positions, velocities and accelerations; motor: q = A⁻¹ q_motor + offset")
    effort: Side = Field("joint", description="motor: tau = Aᵀ (gain · effort)")


class LogLayout(Section):
    """Layout of a log that is not the default CSV.

    Quantities are the keys of :data:`.names.NAMES`, and ``time``; lists with one entry per joint follow ``robot.order``. A
    quantity without its own file is read from the file of ``position``. A single unit of angle applies to revolute joints
    only, a unit of length to prismatic ones.
    """

    files: dict[str, str] = Field(
        {}, description="quantity: file pattern of a log in several files; * stands for the LOG argument"
    )
    rate: float | None = Field(None, gt=0, description="sampling rate [Hz]; replaces the time column")
    columns: dict[str, Column | list[Column]] = Field({}, description="quantity: header names or 0-based indices")
    units: dict[str, str | list[str]] = Field({}, description="quantity: unit, or one unit per joint; default: SI")
    side: SideSection = SideSection()
    topic: str | None = Field(None, description="topic of a bag, or group of an HDF5, .mat or .npz file; default: by content")
    joints: dict[str, str] = Field({}, description="joint name in the URDF: name in the log, if they differ")
