"""Names of quantities in the headers of logs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """Names of the columns of one quantity.

    Attributes:
        prefix: Of the default names: ``<prefix>_<joint>`` or ``<prefix><number>``.
        others: Prefixes that are used if the default one does not occur, the first that does.
        patterns: Regular expressions for its names in other programs; the first that occurs in a header is used.
    """

    prefix: str
    others: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The default prefix and the others."""
        return (self.prefix, *self.others)


#: Quantities of a log in the order they are read → names of their columns.
NAMES = {
    "position": Names(
        "q",
        ("position", "pos"),
        ("actual_q", "joint_pos(?:itions?)?", "qpos", "positions?", "pos", "q_actual", "q_meas", "q"),
    ),
    "velocity": Names(
        "v",
        ("velocity", "vel", "dq", "qd"),
        ("actual_qd", "joint_vel(?:ocit(?:y|ies))?", "qvel", "velocit(?:y|ies)", "vel", "dq", "qd", "qdot", "q_dot", "v"),
    ),
    "acceleration": Names(
        "a",
        ("acceleration", "acc", "ddq"),
        ("joint_accelerations?", "accelerations?", "acc", "ddq", "qdd", "qddot", "a"),
    ),
    "effort": Names(
        "tau",
        ("effort", "torque"),
        (
            "tau_j",
            "joint_torques?",
            "joint_efforts?",
            "efforts?",
            "torques?",
            "tau_meas",
            "tau",
            "actual_current",
            "joint_currents?",
            "motor_currents?",
            "present_current",
            "currents?",
            "qfrc_actuator",
        ),
    ),
    "motor_position": Names("qm", ("motor_position",), ("motor_positions?", "qm")),
    "motor_velocity": Names("vm", ("motor_velocity",), ("motor_velocit(?:y|ies)", "vm", "dqm", "qmd")),
    "effort_target": Names("effort_target", (), ("target_current", "effort_target", "current_target")),
    "torque_target": Names("torque_target", (), ("target_moment", "torque_target")),
    "position_target": Names(
        "position_target",
        (),
        ("target_q", "q_d", "q_des", "q_desired", "q_ref", "desired_positions?", "position_target", "q_cmd"),
    ),
    "temperature": Names("temperature", ("temp",)),
}
#: Names of time columns → the unit indicated by the name.
TIMES = {
    "t": "",
    "time": "",
    "timestamp": "",
    "stamp": "",
    "__time": "s",
    "time_s": "s",
    "t_s": "s",
    "elapsed": "",
    "elapsed_time": "",
    "header.stamp": "s",
    "time_ms": "ms",
    "t_ms": "ms",
    "timestamp_ms": "ms",
    "time_us": "us",
    "t_us": "us",
    "timestamp_us": "us",
    "time_ns": "ns",
    "timestamp_ns": "ns",
    "%time": "ns",
    "field.header.stamp": "ns",
}
#: Time columns in a unit that is set by the project file; they are preferred to the others.
TIME_NAMES = ("t", "time", "timestamp")
WRENCH_AXES = ("fx", "fy", "fz", "mx", "my", "mz")
