"""The log of a simulated motion, with its ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.recording import Recording
from ..files.read_write import write_text
from ..linalg import Array, rms
from ..model.robot import Robot
from ..motion.trajectory import table_text
from ..samples import Segment
from ..units import joint_units
from .sensors import measure
from .settings import Sensors

#: Sensors without errors.
PERFECT = Sensors(velocity="measured")


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """A simulated log and its ground truth.

    Attributes:
        recording: The log as measured, columns in the order of the robot's joints.
        truth: Exact motion and drive torque at the nominal instants.
        friction: Friction in the torque, shape (N, n) [N·m or N].
        reference: Reference positions, shape (N, n) [rad or m].
        integrator: Name of the method and its step.
    """

    recording: Recording
    truth: Segment
    friction: Array
    reference: Array
    integrator: str

    @property
    def tracking_error(self) -> Array:
        """Root mean square of reference − position, shape (n,) [rad or m]."""
        return rms(self.reference - self.truth.q, 0)


def logged(truth: Segment, robot: Robot, sensors: Sensors, seed: int, ratio: Array | None = None) -> Recording:
    """Builds the log of a simulated motion.

    Args:
        robot: The robot that moved, for names and types of joints.
        ratio: Gear ratios of encoders on the motors, shape (n,); None: no motor encoders.
    """
    seen = measure(truth, sensors, seed, np.asarray(robot.prismatic), ratio)
    return Recording(
        truth.log,
        robot.joints,
        seen.time,
        seen.position,
        velocity=seen.velocity,
        effort=seen.torque,
        effort_unit=joint_units(bool(robot.prismatic.all()))["torque"],
        motor_position=seen.motor_position,
    )


def write_log(log: Recording | SimulatedLog, path: str | Path) -> Path:
    """Writes a log in the default CSV (docs/logs.md): ``t, q_…, v_…, tau_…, qm_…`` in SI units.

    Args:
        log: The log.
        path: The file.

    Returns:
        The path written.

    Raises:
        OutputError: The file cannot be written.
    """
    recording = log.recording if isinstance(log, SimulatedLog) else log
    signals = {
        "q": recording.position,
        "v": recording.velocity,
        "a": recording.acceleration,
        "tau": recording.effort,
        "qm": recording.motor_position,
        "position_target": recording.position_target,
    }
    present = {prefix: signal for prefix, signal in signals.items() if signal is not None}
    return write_text(path, table_text(recording.joints, recording.time, present))
