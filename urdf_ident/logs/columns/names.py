"""Names of quantities and clocks in the headers of logs."""

from __future__ import annotations

from typing import NamedTuple


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
