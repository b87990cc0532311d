"""Motion files for robot controllers: slow approach, dry run at a fifth of the speed, and the recording.

Every script first moves slowly from the current to the first pose, waits, and follows the motion; each set of files includes
a checklist to read before the start. Nothing is written for a motion whose limits are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import LimitError, ModelError, check_known
from ..files.read_write import write_text
from ..linalg import Array
from ..model.robot import Robot
from ..motion.collision.clearance import ClearanceReport, require_clearance
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


#: Set-points per second; `servoj` interpolates between them at the controller's own rate.
_URSCRIPT_RATE = 125.0

_URSCRIPT_RECIPE = """\
<?xml version="1.0"?>
<!-- What to record over RTDE, e.g. with `record.py` of ur_rtde's or UR's own RTDE client, at 500 Hz (125 Hz on CB3).
     timestamp [s], actual_q [rad], actual_qd [rad/s], actual_current [A], target_current [A], target_moment [N*m]:
     target moment over target current at rest are the torque constants, which urdf-ident finds by itself. -->
<rtde_config>
  <recipe key="out">
    <field name="timestamp" type="DOUBLE"/>
    <field name="target_q" type="VECTOR6D"/>
    <field name="actual_q" type="VECTOR6D"/>
    <field name="actual_qd" type="VECTOR6D"/>
    <field name="actual_current" type="VECTOR6D"/>
    <field name="target_current" type="VECTOR6D"/>
    <field name="target_moment" type="VECTOR6D"/>
  </recipe>
</rtde_config>
"""

_URSCRIPT_PROJECT = """\
# Project file for the log that the RTDE client writes with record_configuration.xml (columns with a header).
log:
  columns:
    time: timestamp
    position_target: [target_q_0, target_q_1, target_q_2, target_q_3, target_q_4, target_q_5]
    position: [actual_q_0, actual_q_1, actual_q_2, actual_q_3, actual_q_4, actual_q_5]
    velocity: [actual_qd_0, actual_qd_1, actual_qd_2, actual_qd_3, actual_qd_4, actual_qd_5]
    effort: [actual_current_0, actual_current_1, actual_current_2, actual_current_3, actual_current_4, actual_current_5]
    effort_target: [target_current_0, target_current_1, target_current_2, target_current_3, target_current_4, target_current_5]
    torque_target: [target_moment_0, target_moment_1, target_moment_2, target_moment_3, target_moment_4, target_moment_5]
  units: {effort: A, effort_target: A}
"""


def urscript_files(plan: Plan) -> dict[str, str]:
    """Returns two programs (motion, dry run), an RTDE recipe, and the project file that reads its log."""
    plan.require_joints(6, "URScript drives six joints", "lock what is not of the arm")
    return {
        "motion.script": _urscript(plan, 1.0, "motion"),
        "dry_run.script": _urscript(plan, DRY_RUN, "dry run"),
        "record_configuration.xml": _URSCRIPT_RECIPE,
        "project.yaml": _URSCRIPT_PROJECT,
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

_ROS2_SCRIPT = '''\
#!/usr/bin/env python3
"""Sends an excitation motion of {robot} to a joint trajectory controller.

Units: rad, rad/s, rad/s^2, s (m, m/s, m/s^2 for prismatic joints).

    python3 send.py trajectory_dry_run.yaml     # first: a fifth of the speed
    python3 send.py trajectory.yaml

The robot first drives slowly from where it stands to the first pose (speeds below), waits, and then follows the motion.
"""
import sys

import rclpy
import yaml
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

CONTROLLER = "/joint_trajectory_controller/follow_joint_trajectory"  # change to the name of your controller
APPROACH = {approach}  # speeds on the way to the first pose
PAUSE = {pause}  # s at the first pose


def stamp(point, nanoseconds):
    point.time_from_start.sec, point.time_from_start.nanosec = divmod(nanoseconds, 10**9)
    return point


def since_start(point):
    return 10**9 * point["time_from_start"]["sec"] + point["time_from_start"]["nanosec"]


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        data = yaml.safe_load(stream)
    names, points = data["joint_names"], data["points"]
    rclpy.init()
    node = Node("urdf_ident_motion")
    state = {{}}
    node.create_subscription(JointState, "/joint_states", lambda m: state.update(zip(m.name, m.position)), 10)
    while rclpy.ok() and not all(name in state for name in names):
        rclpy.spin_once(node, timeout_sec=0.5)
    here, first = [state[name] for name in names], points[0]["positions"]
    way = max(abs(b - a) / APPROACH[name] for name, a, b in zip(names, here, first))
    arrival = round(1e9 * max({peak} * way, 2.0))  # ns; the controller's quintic is {peak} times as fast as its mean
    start = arrival + round(1e9 * PAUSE)
    print("joint: now -> first pose")
    for name, a, b in zip(names, here, first):
        print("  %s: %.4f -> %.4f" % (name, a, b))
    length = PAUSE + 1e-9 * since_start(points[-1])
    if input("approach takes %.1f s, motion %.1f s; type yes to start: " % (1e-9 * start, length)) != "yes":
        return
    goal = FollowJointTrajectory.Goal()
    goal.trajectory = JointTrajectory(joint_names=names)
    still = [0.0] * len(names)
    for nanoseconds in (arrival, start - 10**6):
        point = JointTrajectoryPoint(positions=first, velocities=still, accelerations=still)
        goal.trajectory.points.append(stamp(point, nanoseconds))
    for item in points:
        point = JointTrajectoryPoint(**{{key: item[key] for key in ("positions", "velocities", "accelerations")}})
        goal.trajectory.points.append(stamp(point, start + since_start(item)))
    client = ActionClient(node, FollowJointTrajectory, CONTROLLER)
    if not client.wait_for_server(timeout_sec=5.0):
        sys.exit("no controller at " + CONTROLLER)
    sent = client.send_goal_async(goal)
    rclpy.spin_until_future_complete(node, sent)
    done = sent.result().get_result_async()
    rclpy.spin_until_future_complete(node, done)
    print("error code", done.result().result.error_code, "(0: followed to the end)")


if __name__ == "__main__":
    main()
'''

_ROS2_RECORD = """\
#!/bin/sh
# Records what urdf-ident needs: positions, velocities and efforts, at the rate of the controller manager.
# Check first:  ros2 topic hz /joint_states     (100 Hz or more; `update_rate` of the controller manager sets it)
# Effort must be the MEASURED torque [N*m] or current [A], not the command. Stop with Ctrl-C after the robot stands again.
exec ros2 bag record --storage mcap -o "${1:-excitation}" /joint_states
"""


def ros2_files(plan: Plan) -> dict[str, str]:
    """Returns the motion as ``JointTrajectory`` in YAML, at full and at a fifth of the speed, and two scripts."""
    speeds = zip(plan.order, plan.approach, strict=True)
    approach = "{" + ", ".join(f"{python_string(name)}: {round(float(speed), 6)}" for name, speed in speeds) + "}"
    return {
        "trajectory.yaml": _message(plan, 1.0),
        "trajectory_dry_run.yaml": _message(plan, DRY_RUN),
        "send.py": _ROS2_SCRIPT.format(robot=python_string(plan.robot)[1:-1], approach=approach, pause=PAUSE, peak=_PEAK),
        "record.sh": _ROS2_RECORD,
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

_FRANKA_PROGRAM = r"""// Follows an excitation motion of @ROBOT@ at 1 kHz and writes a log that urdf-ident reads.
// Units: rad, rad/s, N*m, s.
//
//   g++ -std=c++17 -O2 follow.cpp -lfranka -pthread -o follow
//   ./follow ROBOT-IP motion.csv 0.2 dry_run_log.csv     first: a fifth of the speed
//   ./follow ROBOT-IP motion.csv 1.0 log.csv
//
// The robot first drives slowly from where it stands to the first pose, waits, and follows the motion; libfranka's rate
// limiter stays on. tau is tau_J, the measured joint torque with gravity.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <franka/exception.h>
#include <franka/robot.h>

using Pose = std::array<double, 7>;

int main(int argc, char** argv) {
  if (argc != 5) { std::cerr << "usage: follow ROBOT-IP motion.csv SPEED log.csv\n"; return 2; }
  const double speed = std::stod(argv[3]);
  if (!(speed > 0.0 && speed <= 1.0)) { std::cerr << "SPEED is above 0 and at most 1\n"; return 2; }
  std::vector<Pose> motion;  // one row every millisecond
  std::ifstream file(argv[2]);
  std::string line;
  std::getline(file, line);  // header
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    std::string cell;
    Pose q{};
    std::getline(cells, cell, ',');  // time
    for (double& value : q) { std::getline(cells, cell, ','); value = std::stod(cell); }
    motion.push_back(q);
  }
  if (motion.size() < 2) { std::cerr << "no motion in " << argv[2] << "\n"; return 2; }
  const Pose limit = {@APPROACH@};  // rad/s on the way to the first pose
  const double pause = @PAUSE@, length = (motion.size() - 1) * 1e-3 / speed;
  std::vector<std::array<double, 22>> log;
  log.reserve(static_cast<size_t>((length + 120.0) * 1000.0));
  try {
    franka::Robot robot(argv[1]);
    robot.setCollisionBehavior({{40, 40, 40, 40, 30, 30, 30}}, {{60, 60, 60, 60, 50, 40, 40}},
                               {{40, 40, 40, 40, 40, 40}}, {{60, 60, 60, 60, 60, 60}});
    const auto approach_from = [&](const Pose& start) {
      double seconds = 2.0;
      for (size_t j = 0; j < 7; ++j) seconds = std::max(seconds, @PEAK@ * std::abs(motion[0][j] - start[j]) / limit[j]);
      return seconds;
    };
    std::cout << "approach " << approach_from(robot.readOnce().q_d) << " s, motion " << length
              << " s; press Enter to start" << std::endl;
    std::cin.ignore();
    Pose here{};
    double time = 0.0, approach = 0.0;
    robot.control([&](const franka::RobotState& state, franka::Duration period) -> franka::JointPositions {
      if (approach == 0.0) {  // first call: the motion goes on from the pose last commanded, wherever the robot is by now
        here = state.q_d;
        approach = approach_from(here);
      }
      time += period.toSec();
      std::array<double, 22> row{};
      row[0] = time;
      for (size_t j = 0; j < 7; ++j) { row[1 + j] = state.q[j]; row[8 + j] = state.dq[j]; row[15 + j] = state.tau_J[j]; }
      if (log.size() < log.capacity()) log.push_back(row);
      Pose goal{};
      if (time < approach) {
        const double s = time / approach, part = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s);
        for (size_t j = 0; j < 7; ++j) goal[j] = here[j] + part * (motion[0][j] - here[j]);
      } else {
        const double at = std::clamp((time - approach - pause) * speed * 1000.0, 0.0, motion.size() - 1.0);
        const size_t k = std::min(static_cast<size_t>(at), motion.size() - 2);
        for (size_t j = 0; j < 7; ++j) goal[j] = motion[k][j] + (at - k) * (motion[k + 1][j] - motion[k][j]);
      }
      franka::JointPositions out(goal);
      return time > approach + 2.0 * pause + length ? franka::MotionFinished(out) : out;
    });
  } catch (const franka::Exception& error) {
    std::cerr << error.what() << std::endl;
  }
  std::ofstream out(argv[4]);
  out << @HEADER@ << "\n" << std::setprecision(10);
  for (const auto& row : log) { for (size_t k = 0; k < row.size(); ++k) out << (k ? "," : "") << row[k]; out << "\n"; }
  return 0;
}
"""


_FRANKA_DRY_RUN = f"""\
#!/bin/sh
# ./dry_run.sh ROBOT-IP: the motion at {100 * DRY_RUN:.0f} % of its speed
exec ./follow "$1" motion.csv {DRY_RUN:g} dry_run_log.csv
"""


def franka_files(plan: Plan) -> dict[str, str]:
    """Returns the motion at 1 kHz, and a program that follows and records it at any fraction of its speed."""
    plan.require_joints(7, "a Franka arm has seven joints", "lock the fingers")
    time, q, _, _ = plan.samples(_FRANKA_RATE)
    fields = {
        "@ROBOT@": comment(plan.robot),
        "@HEADER@": cpp_string(table_header(plan.order, ("q", "v", "tau"))),
        "@APPROACH@": ", ".join(f"{speed:.6f}" for speed in plan.approach),
        "@PAUSE@": f"{PAUSE:.1f}",
        "@PEAK@": f"{_PEAK}",
    }
    program = re.sub("|".join(fields), lambda field: fields[field[0]], _FRANKA_PROGRAM)  # at once: a name may look like a field
    return {"motion.csv": table_text(plan.order, time, {"q": q}), "follow.cpp": program, "dry_run.sh": _FRANKA_DRY_RUN}


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
