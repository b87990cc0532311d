"""Motion files for robot controllers: slow approach, dry run at a fifth of the speed, and the recording.

Every script first moves slowly from the current to the first pose, waits, and follows the motion; each set of files includes
a checklist to read before the start. Nothing is written for a motion whose limits are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from ..errors import LimitError, ModelError, check_known
from ..files.read_write import write_text
from ..linalg import Array
from ..model.robot import Robot
from ..motion.collision.clearance import ClearanceReport, check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import Limits, check_limits
from ..motion.trajectory import Trajectory, table_header, table_text
from ..quoting import comment, cpp_string, printable, python_string, yaml_string
from ..units import joint_units

#: Fraction of the velocity limits for the approach to the first pose, and relative speed of the dry run.
APPROACH, DRY_RUN = 0.1, 0.2
#: Pause at the first pose and after the last one [s]: standstill for the estimation of torque constants.
PAUSE = 2.0
#: Largest over mean speed of a quintic from rest to rest is 15/8, that of a cubic 3/2: what an approach is slowed down by.
_PEAK = 1.9

_CHECKS = """\
Before pressing start
  1. The cell is what the motion was designed for: table, walls, tool, cables. `urdf-ident play` shows it.
  2. Nobody is inside the robot's reach. A hand is on the emergency stop.
  3. Nothing is in the gripper that the logs should not carry; the payload set in the controller is the real one.
  4. The robot is warm: friction of a cold gear is up to twice that of a warm one.
  5. Start with the dry run (a fifth of the speed). Watch the whole of it. Only then run the motion.
  6. The recording runs BEFORE the motion starts and ends after the robot stands again.
"""


@dataclass(frozen=True, eq=False)
class Plan:
    """A checked motion for a robot.

    Attributes:
        trajectory: The motion, at rest at both ends.
        order: Joint names in the order of the URDF.
        limits: The limits against which it was checked.
        clearance: Clearances of the motion; None if not checked.
    """

    robot: str
    trajectory: Trajectory
    order: tuple[str, ...]
    limits: Limits
    clearance: ClearanceReport | None = None

    @property
    def place(self) -> list[int]:
        """Index of each joint of :attr:`order` in the trajectory."""
        return [self.trajectory.joints.index(name) for name in self.order]

    def require_joints(self, count: int, what: str, remedy: str) -> None:
        """Raises an error if the robot has another number of joints than its controller; remedy: how to come to that number."""
        if len(self.order) != count:
            raise ModelError(what, got=len(self.order), remedy=f"{remedy} (robot.lock), or take --for ros2_control")

    def samples(self, rate: float, speed: float = 1.0) -> tuple[Array, Array, Array, Array]:
        """Samples the motion, at reduced speed if requested.

        Args:
            rate: Samples per second [Hz].
            speed: Fraction of the motion's own speed.

        Returns:
            Time [s], shape (N,); position, velocity, acceleration, shape (N, n), joints in :attr:`order`.
        """
        time = np.arange(int(np.ceil(self.trajectory.duration / speed * rate - 1e-9)) + 1) / rate
        time[-1] = self.trajectory.duration / speed
        q, v, a = self.trajectory.evaluate(np.minimum(time * speed, self.trajectory.duration))
        return time, q[:, self.place], speed * v[:, self.place], speed**2 * a[:, self.place]

    @property
    def approach(self) -> Array:
        """Speed of each joint during the approach, shape (n,), joints in :attr:`order` [rad/s or m/s]."""
        return np.asarray(APPROACH * self.limits.velocity[self.place])

    def page(self, target: str) -> str:
        """Checklist to read before starting the motion, with first pose, range and largest speed of every joint."""
        total, (_, q, v, _) = self.trajectory.duration, self.samples(200.0)
        distances = ["The motion itself is NOT checked for collisions: no geometry and no world file."]
        if self.clearance is not None:
            closest = [f"  {printable(str(pair))}" for pair in self.clearance.closest]
            distances = ["The motion itself keeps its distances:", *closest]
            distances = distances if closest else ["The motion itself comes close to nothing."]
        lines = [
            f"Excitation motion for {printable(self.robot)} ({target}): {total:.1f} s, dry run {total / DRY_RUN:.1f} s.",
            "Units: rad, rad/s, s (m, m/s for prismatic joints); joints in the order of the URDF.",
            f"Approach to the first pose at {100 * APPROACH:.0f} % of the velocity limits, straight in joint space: "
            "the way there is NOT checked for collisions.",
            *distances,
            "",
            f"  {'joint':24s} {'first pose':>12s} {'lowest':>10s} {'highest':>10s} {'fastest':>10s} {'limit':>10s}",
        ]
        for j, (name, k) in enumerate(zip(self.order, self.place, strict=True)):
            unit = joint_units(self.limits.prismatic[k])["position"]
            cells = (q[0, j], q[:, j].min(), q[:, j].max(), np.abs(v[:, j]).max(), self.limits.velocity[k])
            numbers = f"{cells[0]:12.4f} " + " ".join(f"{x:10.4f}" for x in cells[1:])
            lines.append(f"  {printable(name):24s} {numbers}  [{unit}, {unit}/s]")
        return "\n".join([*lines, "", _CHECKS])


def _program(name: str, **fields: str) -> str:
    """A file for the robot, from its template in the folder ``programs``: each ``@FIELD@`` replaced."""
    usual = {"PAUSE": f"{PAUSE:.1f}", "PEAK": f"{_PEAK}", "SPEED": f"{DRY_RUN:g}", "SHARE": f"{100 * DRY_RUN:.0f}"}
    known = {f"@{key}@": value for key, value in (usual | fields).items()}
    text = files(__package__).joinpath("programs", name).read_text(encoding="utf-8")
    return re.sub("|".join(known), lambda field: known[field[0]], text)  # at once: a name may look like a field


#: Set-points per second; `servoj` interpolates between them at the controller's own rate.
_URSCRIPT_RATE = 125.0


def urscript_files(plan: Plan) -> dict[str, str]:
    """Returns two programs (motion, dry run), an RTDE recipe, and the project file that reads its log."""
    plan.require_joints(6, "URScript drives six joints", "lock what is not of the arm")
    return {
        "motion.script": _urscript(plan, 1.0, "motion"),
        "dry_run.script": _urscript(plan, DRY_RUN, "dry run"),
        "record_configuration.xml": _program("record_configuration.xml"),
        "project.yaml": _program("project.yaml"),
    }


def _urscript(plan: Plan, speed: float, name: str) -> str:
    time, q, _, _ = plan.samples(_URSCRIPT_RATE if speed == 1.0 else _URSCRIPT_RATE * 0.4, speed)
    step = time[1] - time[0]
    slow = float(plan.approach.min())
    lines = [
        f"# URScript, {name} of {comment(plan.robot)}: {time[-1]:.1f} s at {100 * speed:.0f} % of its speed.",
        "# Units: rad, rad/s, rad/s^2, s.",
        "# Joints: " + ", ".join(map(comment, plan.order)) + " (base to wrist 3).",
        "# The robot approaches the first pose slowly; the way there is not checked for collisions.",
        "def urdf_ident_motion():",
        f"  first = {_row(q[0], 6)}",
        f"  movej(first, a={max(slow, 0.05):.4f}, v={slow:.4f})",
        f"  sleep({PAUSE:.1f})",
    ]
    lines += [f"  servoj({_row(row, 6)}, 0, 0, {step:.6f}, 0.1, 300)" for row in q[1:]]
    return "\n".join([*lines, "  stopj(2.0)", f"  sleep({PAUSE:.1f})", "end", "urdf_ident_motion()", ""])


def _row(values: Array, digits: int) -> str:
    return "[" + ", ".join(f"{value:.{digits}f}" for value in values) + "]"


#: Points per second; the controller interpolates between them with quintics.
_ROS2_RATE = 50.0


def ros2_files(plan: Plan) -> dict[str, str]:
    """Returns the motion as ``JointTrajectory`` in YAML, at full and at a fifth of the speed, and two scripts."""
    speeds = zip(plan.order, plan.approach, strict=True)
    approach = "{" + ", ".join(f"{python_string(name)}: {round(float(speed), 6)}" for name, speed in speeds) + "}"
    return {
        "trajectory.yaml": _message(plan, 1.0),
        "trajectory_dry_run.yaml": _message(plan, DRY_RUN),
        "send.py": _program("send.py.in", ROBOT=python_string(plan.robot)[1:-1], APPROACH=approach),
        "record.sh": _program("record.sh"),
    }


def _message(plan: Plan, speed: float) -> str:
    time, q, v, a = plan.samples(_ROS2_RATE * max(speed, 0.4), speed)
    stamps = np.rint(time * 1e9).astype(np.int64).tolist()
    lines = [
        f"# JointTrajectory of {comment(plan.robot)} at {100 * speed:.0f} % of its speed.",
        "# Units: rad, rad/s, rad/s^2, s (m, m/s, m/s^2 for prismatic joints).",
        "# It begins at rest at its first point: send it with send.py, which drives there first.",
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        "joint_names: [" + ", ".join(map(yaml_string, plan.order)) + "]",
        "points:",
    ]
    for k, stamp in enumerate(stamps):
        lines.append(f"  - positions: {_row(q[k], 9)}")
        lines.append(f"    velocities: {_row(v[k], 9)}")
        lines.append(f"    accelerations: {_row(a[k], 9)}")
        lines.append(f"    time_from_start: {{sec: {stamp // 10**9}, nanosec: {stamp % 10**9}}}")
    return "\n".join([*lines, ""])


_FRANKA_RATE = 1000.0


def franka_files(plan: Plan) -> dict[str, str]:
    """Returns the motion at 1 kHz, and a program that follows and records it at any fraction of its speed."""
    plan.require_joints(7, "a Franka arm has seven joints", "lock the fingers")
    time, q, _, _ = plan.samples(_FRANKA_RATE)
    program = _program(
        "follow.cpp",
        ROBOT=comment(plan.robot),
        HEADER=cpp_string(table_header(plan.order, ("q", "v", "tau"))),
        APPROACH=", ".join(f"{speed:.6f}" for speed in plan.approach),
    )
    return {"motion.csv": table_text(plan.order, time, {"q": q}), "follow.cpp": program, "dry_run.sh": _program("dry_run.sh")}


TARGETS: Mapping[str, Callable[[Plan], dict[str, str]]] = {
    "ros2_control": ros2_files,
    "urscript": urscript_files,
    "franka": franka_files,
}


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
    clearance = None if collisions is None else check_clearance(trajectory, collisions)
    if clearance is not None:
        clearance.require()
    plan = Plan(robot.name, trajectory, tuple(robot.order), limits, clearance)
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
