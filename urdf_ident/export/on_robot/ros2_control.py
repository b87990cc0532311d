"""ros2_control: a script that sends the motion to a joint trajectory controller, and a recording of the joint states."""

from __future__ import annotations

import numpy as np

from ...linalg import Array
from ...quoting import comment, python_string, yaml_string
from .plan import DRY_RUN, PAUSE, Plan

#: Points per second; the controller interpolates between them with quintics.
_RATE = 50.0

_SCRIPT = '''\
#!/usr/bin/env python3
"""Sends an excitation motion of {robot} to a joint trajectory controller.

Units: rad, rad/s, rad/s^2, s (m, m/s, m/s^2 for prismatic joints).

    python3 send.py trajectory_dry_run.yaml     # first: a fifth of the speed
    python3 send.py trajectory.yaml

The robot first drives slowly from where it stands to the first pose (speeds below), waits, and then follows the motion.
"""
import math
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


def stamp(point, seconds):
    point.time_from_start.sec = int(seconds)
    point.time_from_start.nanosec = int(round((seconds - int(seconds)) * 1e9)) % 1000000000
    return point


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
    start = max(1.5 * way, 2.0) + PAUSE  # a smooth start and stop needs 1.5 times the time at full speed
    print("joint: now -> first pose")
    for name, a, b in zip(names, here, first):
        print("  %s: %.4f -> %.4f" % (name, a, b))
    if input("approach takes %.1f s, motion %.1f s; type yes to start: " % (start, PAUSE + end_of(points))) != "yes":
        return
    goal = FollowJointTrajectory.Goal()
    goal.trajectory = JointTrajectory(joint_names=names)
    still = [0.0] * len(names)
    for seconds in (start - PAUSE, start - 1e-3):
        point = JointTrajectoryPoint(positions=first, velocities=still, accelerations=still)
        goal.trajectory.points.append(stamp(point, seconds))
    for item in points:
        at = item["time_from_start"]["sec"] + 1e-9 * item["time_from_start"]["nanosec"]
        point = JointTrajectoryPoint(**{{key: item[key] for key in ("positions", "velocities", "accelerations")}})
        goal.trajectory.points.append(stamp(point, start + at))
    client = ActionClient(node, FollowJointTrajectory, CONTROLLER)
    if not client.wait_for_server(timeout_sec=5.0):
        sys.exit("no controller at " + CONTROLLER)
    sent = client.send_goal_async(goal)
    rclpy.spin_until_future_complete(node, sent)
    done = sent.result().get_result_async()
    rclpy.spin_until_future_complete(node, done)
    print("error code", done.result().result.error_code, "(0: followed to the end)")


def end_of(points):
    last = points[-1]["time_from_start"]
    return last["sec"] + 1e-9 * last["nanosec"]


if __name__ == "__main__":
    main()
'''

_RECORD = """\
#!/bin/sh
# Records what urdf-ident needs: positions, velocities and efforts, at the rate of the controller manager.
# Check first:  ros2 topic hz /joint_states     (100 Hz or more; `update_rate` of the controller manager sets it)
# Effort must be the MEASURED torque [N*m] or current [A], not the command. Stop with Ctrl-C after the robot stands again.
exec ros2 bag record --storage mcap -o "${1:-excitation}" /joint_states
"""


def texts(plan: Plan) -> dict[str, str]:
    """Returns the motion as ``JointTrajectory`` in YAML, at full and at a fifth of the speed, and two scripts."""
    speeds = zip(plan.order, plan.approach, strict=True)
    approach = "{" + ", ".join(f"{python_string(name)}: {round(float(speed), 6)}" for name, speed in speeds) + "}"
    return {
        "trajectory.yaml": _message(plan, 1.0),
        "trajectory_dry_run.yaml": _message(plan, DRY_RUN),
        "send.py": _SCRIPT.format(robot=python_string(plan.robot)[1:-1], approach=approach, pause=PAUSE),
        "record.sh": _RECORD,
    }


def _message(plan: Plan, speed: float) -> str:
    time, q, v, a = plan.samples(_RATE * max(speed, 0.4), speed)
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
        lines.append(f"  - positions: {_row(q[k])}")
        lines.append(f"    velocities: {_row(v[k])}")
        lines.append(f"    accelerations: {_row(a[k])}")
        lines.append(f"    time_from_start: {{sec: {stamp // 10**9}, nanosec: {stamp % 10**9}}}")
    return "\n".join([*lines, ""])


def _row(values: Array) -> str:
    return "[" + ", ".join(f"{value:.9f}" for value in values) + "]"
