"""Measured external wrenches as torques of the joints: ``J(q)ᵀ f`` (docs/theory.md §1)."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ..errors import LogError, nearest
from ..linalg import Array
from ..model.robot import Robot
from .recording import Recording


def external_torque(recording: Recording, robot: Robot) -> Array | None:
    """Joint torques of the wrenches that the environment is known to apply.

    Args:
        recording: A log on the joint side; its wrenches act on the robot and are expressed in their own frames.

    Returns:
        Shape (N, n) [N·m or N], or None where the log holds no wrench.

    Raises:
        LogError: A wrench's frame is no link or joint of the robot.
    """
    if not recording.wrenches:
        return None
    model, data = robot.model, robot.model.createData()
    torque = np.zeros(recording.position.shape)
    for frame, wrench in recording.wrenches.items():
        if not model.existFrame(frame):
            raise LogError(
                f"the wrench of '{frame}' acts on no link of the robot",
                where=recording.path or recording.name,
                remedy=nearest(frame, [item.name for item in model.frames]),
            )
        index = model.getFrameId(frame)
        for k, q in enumerate(robot.configuration(recording.position)):
            jacobian = pin.computeFrameJacobian(model, data, q, index, pin.ReferenceFrame.LOCAL)
            torque[k] += np.asarray(jacobian).reshape(6, -1).T @ wrench[k]
    return torque
