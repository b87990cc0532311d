"""Conversion of a log to the joint side: gears, couplings, offsets, torque constants, wrenches (docs/theory.md §1, §2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from ..errors import LogError, nearest
from ..linalg import Array
from ..logs.recording import Recording
from ..model.drive import Drive
from ..model.robot import Robot


def joint_side(recording: Recording, drive: Drive) -> Recording:
    """Converts a recording to the joint side, with efforts as joint torques [N·m, N] and the motor side after the gear.

    Raises:
        LogError: The effort is a current, voltage or fraction and no gain is known.
    """
    if not recording.effort_is_torque and drive.gain_origin in ("effort is a torque", "auto"):
        raise LogError(
            f"the effort is in {recording.effort_unit}, not a torque",
            where=recording.where,
            remedy=f"give drive.gain [N·m per {recording.effort_unit}] in the project file, or name the controller's target "
            "current and torque (log.columns.effort_target, torque_target): their ratio at rest is the gain",
        )
    on_motor = recording.position_side == "motor"

    def rate(values: object) -> object:
        return values if values is None else drive.joint_rate(values)  # type: ignore[arg-type]

    changes: dict[str, object] = {"position_side": "joint", "effort_side": "joint"}
    if on_motor:
        changes["position"] = drive.joint_position(recording.position)
        if recording.position_target is not None:
            changes["position_target"] = drive.joint_position(recording.position_target)
        changes["velocity"], changes["acceleration"] = rate(recording.velocity), rate(recording.acceleration)
    elif recording.motor_position is None and drive.offset.any():  # a zero that was found to be another
        changes["position"] = recording.position + drive.offset
        if recording.position_target is not None:
            changes["position_target"] = recording.position_target + drive.offset
    if recording.motor_position is not None:
        changes["motor_position"] = drive.joint_position(recording.motor_position)
    changes["motor_velocity"] = rate(recording.motor_velocity)
    if recording.effort is not None:
        changes["effort"] = drive.joint_torque(recording.effort, recording.effort_side)
        changes["effort_unit"] = "N·m"
    return replace(recording, **changes)  # type: ignore[arg-type]


def external_torque(recording: Recording, robot: Robot) -> Array | None:
    """Joint torques of the measured external wrenches, shape (N, n) [N·m or N], or None if the log contains no wrench.

    Args:
        recording: A log on the joint side; its wrenches act on the robot and are expressed in their own frames.

    Raises:
        LogError: The frame of a wrench is not a link or joint of the robot.
    """
    if not recording.wrenches:
        return None
    model, data = robot.model, robot.model.createData()
    torque = np.zeros(recording.position.shape)
    for frame, wrench in recording.wrenches.items():
        if not model.existFrame(frame):
            raise LogError(
                f"the wrench of '{frame}' acts on no link of the robot",
                where=recording.where,
                remedy=nearest(frame, [known.name for known in model.frames]),
            )
        index = model.getFrameId(frame)
        for k, q in enumerate(robot.configuration(recording.position)):
            jacobian = pin.computeFrameJacobian(model, data, q, index, pin.ReferenceFrame.LOCAL)
            torque[k] += robot.reduced(np.asarray(jacobian).reshape(6, -1)).T @ wrench[k]
    return torque
