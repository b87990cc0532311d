"""Motions as robots take them: read back by parsers of the formats, slow where they must be, refused without limits."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import yaml
from conftest import arm_urdf

from urdf_ident import Limits, Robot, find_collisions, random_fourier
from urdf_ident.errors import LimitError, ModelError
from urdf_ident.export.on_robot import APPROACH, motion_texts
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.project import parse_project


def motion(robot: Robot):
    return random_fourier(Limits.from_robot(robot), 6.0, 4, 0, fill=0.6)


@pytest.fixture(scope="module")
def six() -> Robot:
    return Robot.from_urdf(arm_urdf("zyyxyx"))


def test_ros2_messages_hold_the_motion(six: Robot) -> None:
    trajectory = motion(six)
    texts = motion_texts(trajectory, six, Limits.from_robot(six), "ros2_control")
    for name, speed in (("trajectory.yaml", 1.0), ("trajectory_dry_run.yaml", 0.2)):
        data = yaml.safe_load(texts[name])
        assert data["joint_names"] == list(six.order)
        stamps = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in data["points"]]
        assert (np.diff(stamps) > 0).all()
        assert stamps[-1] == pytest.approx(trajectory.duration / speed)
        k = len(stamps) // 3
        q, v, a = (x[0] for x in trajectory.evaluate([stamps[k] * speed]))
        place = [trajectory.joints.index(joint) for joint in six.order]
        assert data["points"][k]["positions"] == pytest.approx(q[place], abs=1e-8)
        assert data["points"][k]["velocities"] == pytest.approx(speed * v[place], abs=1e-8)
        assert data["points"][k]["accelerations"] == pytest.approx(speed**2 * a[place], abs=1e-8)
    script = ast.parse(texts["send.py"])
    speeds = next(ast.literal_eval(n.value) for n in script.body if isinstance(n, ast.Assign) and n.targets[0].id == "APPROACH")
    assert speeds == {joint: pytest.approx(APPROACH * 3.0) for joint in six.order}


def sent_goal(script: str, file: Path, here: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """Points that the program sends to the controller of a robot that stands at some pose."""
    client, node, message = MagicMock(), MagicMock(), SimpleNamespace(name=list(here), position=list(here.values()))
    node.create_subscription.side_effect = lambda _kind, _topic, heard, _depth: heard(message)

    def point(**columns: list[float]) -> SimpleNamespace:
        return SimpleNamespace(**columns, time_from_start=SimpleNamespace())

    of_names = {
        "rclpy": MagicMock(),
        "rclpy.action": SimpleNamespace(ActionClient=lambda *_: client),
        "rclpy.node": SimpleNamespace(Node=lambda _name: node),
        "control_msgs.action": SimpleNamespace(FollowJointTrajectory=SimpleNamespace(Goal=SimpleNamespace)),
        "sensor_msgs.msg": MagicMock(),
        "trajectory_msgs.msg": SimpleNamespace(
            JointTrajectory=lambda joint_names: SimpleNamespace(joint_names=joint_names, points=[]), JointTrajectoryPoint=point
        ),
    }
    for name, module in of_names.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "argv", ["send.py", str(file)])
    monkeypatch.setattr("builtins.input", lambda _question: "yes")
    exec(compile(script, "send.py", "exec"), {"__name__": "__main__"})
    return client.send_goal_async.call_args[0][0].trajectory.points


def test_ros2_program_approaches_slowly_and_its_stamps_increase(
    six: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = motion_texts(motion(six), six, Limits.from_robot(six), "ros2_control")
    file, data = tmp_path / "trajectory.yaml", yaml.safe_load(texts["trajectory.yaml"])
    data["points"][0]["positions"] = [0.0] * 6
    file.write_text(yaml.safe_dump(data))
    limit = round(APPROACH * 3.0, 6)
    for k in (118, 143, 168):  # approaches after which a stamp of the motion is a whole second, but for rounding errors
        distance = k * 0.02 / 1.9 * limit
        points = sent_goal(texts["send.py"], file, dict.fromkeys(six.order, -distance), monkeypatch)
        stamps = [10**9 * point.time_from_start.sec + point.time_from_start.nanosec for point in points]
        assert min(np.diff(stamps)) > 0
        assert all(point.time_from_start.nanosec < 10**9 for point in points)
        assert 15 / 8 * distance / (1e-9 * stamps[0]) <= limit  # largest speed of a quintic from rest to rest


def test_urscript_follows_and_approaches_slowly(six: Robot) -> None:
    trajectory = motion(six)
    texts = motion_texts(trajectory, six, Limits.from_robot(six), "urscript")
    for name, speed in (("motion.script", 1.0), ("dry_run.script", 0.2)):
        lines = texts[name].splitlines()
        poses = [re.match(r"  servoj\(\[([^]]*)\], 0, 0, ([0-9.]+), 0.1, 300\)$", line) for line in lines]
        found = [match for match in poses if match]
        total = sum(float(match[2]) for match in found)
        assert total == pytest.approx(trajectory.duration / speed, rel=0.01)
        q = np.array([[float(x) for x in match[1].split(",")] for match in found])
        fastest = np.abs(np.diff(q, axis=0)).max() / float(found[0][2])
        assert fastest <= 3.0 * speed * 1.001
        assert re.search(r"movej\(first, a=[0-9.]+, v=0\.3000\)", texts[name])
        assert texts[name].count("def ") == texts[name].count("\nend\n") == 1
    ET.fromstring(texts["record_configuration.xml"])
    assert parse_project(yaml.safe_load(texts["project.yaml"])).log.units["effort"] == "A"


def test_franka_gets_the_motion_at_one_kilohertz(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zyzyzyz", fixed_tip=False))
    trajectory = motion(robot)
    texts = motion_texts(trajectory, robot, Limits.from_robot(robot), "franka")
    table = np.genfromtxt(texts["motion.csv"].splitlines(), delimiter=",", skip_header=1)
    assert table[1, 0] == pytest.approx(1e-3)
    assert table[2000, 1:] == pytest.approx(trajectory.evaluate([2.0])[0][0], abs=1e-9)
    program = texts["follow.cpp"]
    assert "@" not in program
    assert "t,q_j1" in program
    assert "tau_j7" in program
    (tmp_path / "franka").mkdir()  # just enough of libfranka to run: commands are printed, and followed 0.01 rad behind
    (tmp_path / "franka" / "exception.h").write_text(
        "#include <stdexcept>\nnamespace franka {\n"
        "struct Exception : std::runtime_error { using runtime_error::runtime_error; }; }\n"
    )
    (tmp_path / "franka" / "robot.h").write_text(_LIBFRANKA)
    (tmp_path / "follow.cpp").write_text(program)
    (tmp_path / "motion.csv").write_text(texts["motion.csv"])
    try:
        command = ["g++", "-std=c++17", "-I", str(tmp_path), str(tmp_path / "follow.cpp"), "-o", str(tmp_path / "follow")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no C++ compiler is here")
    assert done.returncode == 0, done.stderr
    run = ["./follow", "robot", "motion.csv", "1.0", "log.csv"]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path, input="\n")
    commands = np.array([line.split()[1:] for line in done.stdout.splitlines() if line.startswith("command")], dtype=float)
    assert commands[0] == pytest.approx(0.5)  # what was commanded last, when the program takes over
    assert commands[-1] == pytest.approx(table[-1, 1:], abs=1e-8)
    arrival = int(np.argmax(np.abs(commands - table[0, 1:]).max(axis=1) < 1e-9))
    assert np.abs(np.diff(commands[: arrival + 1], axis=0)).max() * 1000 <= APPROACH * 3.0


#: At 0.2 rad when the program asks, and moved by hand to 0.5 rad before it takes over.
_LIBFRANKA = """\
#include <array>
#include <cstdio>
#include <functional>
#include <string>
namespace franka {
using V = std::array<double, 7>;
using W = std::array<double, 6>;
struct RobotState { V q, q_d, dq, tau_J; };
struct Duration { double seconds; double toSec() const { return seconds; } };
struct JointPositions { V q; bool last = false; explicit JointPositions(V to) : q(to) {} };
inline JointPositions MotionFinished(JointPositions to) { to.last = true; return to; }
struct Robot {
  explicit Robot(const std::string&) {}
  static RobotState at(V q_d) { V q = q_d; for (double& x : q) x -= 0.01; return {q, q_d, {}, {}}; }
  RobotState readOnce() { V q; q.fill(0.2); return at(q); }
  void setCollisionBehavior(V, V, W, W) {}
  void control(std::function<JointPositions(const RobotState&, Duration)> next) {
    V q; q.fill(0.5);
    for (double period = 0.0;; period = 1e-3) {
      const JointPositions to = next(at(q), Duration{period});
      q = to.q;
      std::printf("command");
      for (double x : q) std::printf(" %.10f", x);
      std::printf("\\n");
      if (to.last) return;
    }
  }
};
}
"""


def test_what_cannot_be_driven_safely_is_refused(six: Robot) -> None:
    trajectory, limits = motion(six), Limits.from_robot(six)
    with pytest.raises(LimitError, match="velocity limit is unknown"):
        motion_texts(trajectory, six, Limits.from_robot(six, velocity=np.inf), "ros2_control")
    with pytest.raises(LimitError, match="leaves the velocity limit"):
        motion_texts(trajectory, six, Limits.from_robot(six, velocity=0.1), "ros2_control")
    with pytest.raises(ModelError, match="seven joints"):
        motion_texts(trajectory, six, limits, "franka")
    with pytest.raises(ModelError, match="unknown kind of robot"):
        motion_texts(trajectory, six, limits, "ros2control")


def test_a_motion_that_meets_the_world_is_refused_and_the_page_says_what_was_checked(six: Robot) -> None:
    trajectory, limits = motion(six), Limits.from_robot(six)
    assert "is NOT checked for collisions: no geometry" in motion_texts(trajectory, six, limits, "urscript")["README.txt"]
    for radius, words in ((0.1, None), (0.5, "the motion collides: tool and ball|tool and ball.*the motion collides")):
        around = find_collisions(six, parse_world({"objects": {"ball": {"sphere": radius, "xyz": [0, 0, 2]}}}))
        if words is None:
            page = motion_texts(trajectory, six, limits, "urscript", around)["README.txt"]
            assert "keeps its distances:\n  l3 and l5: 67.23 mm" in page
        else:
            with pytest.raises(LimitError, match=words):
                motion_texts(trajectory, six, limits, "urscript", around)
