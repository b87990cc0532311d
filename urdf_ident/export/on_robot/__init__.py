"""Motion files for robot controllers: slow approach, dry run at a fifth of the speed, and the recording.

Every script first moves slowly from the current to the first pose, waits, and follows the motion; each set of files includes
a checklist to read before the start. Nothing is written for a motion whose limits are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ...errors import LimitError, ModelError, check_known
from ...files.read_write import write_text
from ...model.robot import Robot
from ...motion.collision.clearance import require_clearance
from ...motion.collision.collisions import Collisions
from ...motion.limits import Limits, check_limits
from ...motion.trajectory import Trajectory
from . import franka, ros2_control, urscript
from .plan import Plan

TARGETS: Mapping[str, Callable[[Plan], dict[str, str]]] = {
    "ros2_control": ros2_control.texts,
    "urscript": urscript.texts,
    "franka": franka.texts,
}
__all__ = ["TARGETS", "Plan", "export_motion", "motion_texts"]


def motion_texts(
    trajectory: Trajectory, robot: Robot, limits: Limits, target: str, collisions: Collisions | None = None
) -> dict[str, str]:
    """Returns the files that make a robot follow a motion and record it."""
    check_known("kind of robot", target, TARGETS, ModelError)
    limits.require("position", "velocity")
    check_limits(trajectory, limits).require()
    # checks that the motion begins and ends at rest, as the robot does
    _, v, _ = trajectory.evaluate(np.array([0.0, trajectory.duration]))
    share = np.abs(v) / limits.velocity
    if share.max() > 0.01:
        row, j = np.unravel_index(int(np.argmax(share)), share.shape)
        raise LimitError(
            f"the motion does not {'begin' if row == 0 else 'end'} at rest",
            where=f"joint '{trajectory.joints[j]}'",
            got=f"{v[row, j]:.4g}",
            expected=f"at most {0.01 * limits.velocity[j]:.4g}",
            remedy="design it with `urdf-ident design`, which begins and ends at rest",
        )
    if bool(limits.prismatic.any()) and target != "ros2_control":
        raise ModelError(f"{target} drives revolute joints only", got="a prismatic joint", remedy="--for ros2_control")
    plan = Plan(robot.name, trajectory, tuple(robot.order), limits, require_clearance(trajectory, collisions))
    return {**TARGETS[target](plan), "README.txt": plan.page(target)}


def export_motion(
    trajectory: Trajectory,
    robot: Robot,
    target: str,
    folder: str | Path,
    *,
    limits: Limits | None = None,
    collisions: Collisions | None = None,
) -> list[Path]:
    """Writes scripts that make a real robot follow a motion and record it, and a checklist to read before.

    Args:
        trajectory: The motion; it must begin and end at rest.
        robot: The robot.
        target: The controller: ``"ros2_control"``, ``"urscript"`` or ``"franka"``.
        folder: Folder for the files.
        limits: Limits; position and velocity limits of every joint must be known. Those of the URDF if None.
        collisions: Collision geometry; None: not checked, which the checklist states.

    Raises:
        ModelError: Unknown target, or one that does not fit the robot.
        LimitError: A limit is unknown or violated, the motion does not begin and end at rest, or a clearance is too small.
        OutputError: A file cannot be written.
    """
    texts = motion_texts(trajectory, robot, limits or Limits.from_robot(robot), target, collisions)
    return [write_text(Path(folder) / name, text) for name, text in texts.items()]
