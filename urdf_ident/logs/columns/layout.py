"""Quantities of a log, and the layout of a log whose columns are not the default ones."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from ...settings import Section

#: Names of time columns → the unit that the name states.
TIMES = {
    **dict.fromkeys(("t", "time", "timestamp", "stamp", "elapsed", "elapsed_time"), ""),
    **dict.fromkeys(("__time", "time_s", "t_s", "header.stamp"), "s"),
    **dict.fromkeys(("time_ms", "t_ms", "timestamp_ms"), "ms"),
    **dict.fromkeys(("time_us", "t_us", "timestamp_us"), "us"),
    **dict.fromkeys(("time_ns", "timestamp_ns", "%time", "field.header.stamp"), "ns"),
}
#: Time columns that are preferred to the others.
TIME_NAMES = ("t", "time", "timestamp")
WRENCH_AXES = ("fx", "fy", "fz", "mx", "my", "mz")
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


class Names(NamedTuple):
    """Names of the columns of one quantity.

    Attributes:
        prefixes: Of names in the default spelling, ``<prefix>_<joint>`` or ``<prefix><number>``; the first that a header uses.
        patterns: Regular expressions for its names in other programs; the first that a header uses.
    """

    prefixes: tuple[str, ...]
    patterns: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """The default prefix."""
        return self.prefixes[0]


#: Quantities of a log in the order they are read → names of their columns.
NAMES = {
    "position": Names(
        ("q", "position", "pos"), ("actual_q", "joint_pos(?:itions?)?", "qpos", "positions?", "pos", "q_actual", "q_meas", "q")
    ),
    "velocity": Names(
        ("v", "velocity", "vel", "dq", "qd"),
        ("actual_qd", "joint_vel(?:ocit(?:y|ies))?", "qvel", "velocit(?:y|ies)", "vel", "dq", "qd", "qdot", "q_dot", "v"),
    ),
    "acceleration": Names(
        ("a", "acceleration", "acc", "ddq"), ("joint_accelerations?", "accelerations?", "acc", "ddq", "qdd", "qddot", "a")
    ),
    "effort": Names(
        ("tau", "effort", "torque"),
        (
            *("tau_j", "joint_torques?", "joint_efforts?", "efforts?", "torques?", "tau_meas", "tau"),
            *("actual_current", "joint_currents?", "motor_currents?", "present_current", "currents?", "qfrc_actuator"),
        ),
    ),
    "motor_position": Names(("qm", "motor_position"), ("motor_positions?", "qm")),
    "motor_velocity": Names(("vm", "motor_velocity"), ("motor_velocit(?:y|ies)", "vm", "dqm", "qmd")),
    "effort_target": Names(("effort_target",), ("target_current", "effort_target", "current_target")),
    "torque_target": Names(("torque_target",), ("target_moment", "torque_target")),
    "position_target": Names(
        ("position_target",),
        ("target_q", "q_d", "q_des", "q_desired", "q_ref", "desired_positions?", "position_target", "q_cmd"),
    ),
    "temperature": Names(("temperature", "temp"), ("temperatures?", "temp")),
}


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
