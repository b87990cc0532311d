"""Motions as robots take them: read back by parsers of the formats, slow where they must be, refused without limits."""

from __future__ import annotations

import ast
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

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
    (tmp_path / "franka").mkdir()  # just enough of libfranka for the compiler to judge the syntax
    (tmp_path / "franka" / "exception.h").write_text(
        "#include <stdexcept>\nnamespace franka {\n"
        "struct Exception : std::runtime_error { using runtime_error::runtime_error; }; }\n"
    )
    (tmp_path / "franka" / "robot.h").write_text(
        "#include <array>\n#include <functional>\n#include <string>\nnamespace franka {\n"
        "using V = std::array<double, 7>; using W = std::array<double, 6>;\n"
        "struct RobotState { V q, dq, tau_J; }; struct Duration { double toSec() const; };\n"
        "struct JointPositions { explicit JointPositions(V); }; JointPositions MotionFinished(JointPositions);\n"
        "struct Robot { explicit Robot(const std::string&); RobotState readOnce(); void setCollisionBehavior(V, V, W, W);\n"
        "void control(std::function<JointPositions(const RobotState&, Duration)>); }; }\n"
    )
    (tmp_path / "follow.cpp").write_text(program)
    try:
        command = ["g++", "-std=c++17", "-fsyntax-only", "-I", str(tmp_path), str(tmp_path / "follow.cpp")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no C++ compiler is here")
    assert done.returncode == 0, done.stderr


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
