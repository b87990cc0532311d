"""The world in the picture, and the line between the nearest things: where they are, and as long as another judge says."""

import base64
import re
from pathlib import Path

import numpy as np
import pytest
from collision_oracle import MujocoScene
from commands import run
from conftest import page_data

from urdf_ident import Limits, Robot, find_collisions, random_fourier, robot_path
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.viz import as_motion, player_page
from urdf_ident.viz.motion import frame_times, positions_at
from urdf_ident.viz.page import world_commands

OBJECTS = {"post": ("cylinder", [0.06, 1.4], [0.5, 0.5, 0.7]), "ball": ("sphere", [0.12], [-0.6, 0.3, 0.6])}
WORLD = {
    "objects": {
        **{name: {kind: size if len(size) > 1 else size[0], "xyz": xyz} for name, (kind, size, xyz) in OBJECTS.items()},
        "wall": {"plane": [-1, 0, 0], "offset": -1.5},
    },
    "tool": {"frame": "tool", "box": [[-2, -2, -2], [2, 2, 2]]},
}


def test_the_line_is_where_and_as_long_as_it_should_be() -> None:
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    collisions = find_collisions(robot, parse_world(WORLD))
    motion = as_motion(random_fourier(Limits.from_robot(robot), 6.0, 3, seed=2, fill=0.6, span=4.0), robot)
    page, notes = player_page(robot, motion, collisions=collisions)
    data = page_data(page)
    near = data["nearest"]
    table = np.frombuffer(base64.b64decode(near["table"]), dtype="<f4").reshape(-1, 8).astype(float)
    assert len(table) == data["frames"]
    ends, distance, which = table[:, :6].reshape(-1, 2, 3), table[:, 6], table[:, 7].astype(int)
    np.testing.assert_allclose(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1), np.abs(distance), atol=2e-5)
    q = positions_at(motion, robot, frame_times(motion)[1])
    scene = MujocoScene(robot, OBJECTS)
    for name in ("post", "ball"):  # never farther than what MuJoCo finds between any link and the object
        pairs = [(pair.names[0], name) for pair in collisions.pairs if pair.names[1] == name]
        assert (distance <= scene.distances(q, pairs).min(axis=1) + 3e-4).all()
    shown = [k for k in range(len(q)) if near["names"][which[k]].split(" – ")[1] in OBJECTS]
    assert len(shown) > 10
    for k in shown[::2]:
        first, second = near["names"][which[k]].split(" – ")
        assert distance[k] == pytest.approx(float(scene.distances(q[k : k + 1], [(first, second)])[0, 0]), abs=3e-4)
        kind, size, middle = OBJECTS[second]  # and it ends on the object
        if kind == "sphere" and distance[k] > 0:
            assert np.linalg.norm(ends[k, 1] - middle) == pytest.approx(size[0], abs=1e-3)
    said = re.search(r"(closest|too close|collision): .* and .*, (-?[\d.]+) mm at", notes[-1])
    assert said
    assert float(said[2]) / 1000 == pytest.approx(distance.min(), abs=2e-3)
    assert [layer["label"] for layer in data["layers"]][:2] == ["world", "distance"]


def test_the_world_is_drawn_where_the_robot_meets_it() -> None:
    """A robot on a turned base that hangs from the ceiling: both are turned the same way."""
    robot = Robot.from_urdf(robot_path("szabo_3r"), gravity=(0.0, 0.0, 9.81))
    world = parse_world({**WORLD, "base": {"xyz": [0.1, -0.2, 2.0], "rpy": [np.pi, 0.0, 0.4]}})
    collisions = find_collisions(robot, world)
    base = np.diag([1.0, -1.0, -1.0, 1.0])
    base[:3, 3] = [0.3, 0.1, 1.9]
    commands = {command["path"]: command for command in world_commands(collisions, base, np.eye(3))[0]}
    assert set(commands) == {"/world/post", "/world/ball", "/world/wall", "/world/box of the tool"}
    place = np.array(commands["/world/ball"]["object"]["object"]["children"][0]["matrix"]).reshape(4, 4).T
    ball = next(solid for solid in collisions.solids if solid.name == "ball")  # in the root's frame, as distances see it
    np.testing.assert_allclose(place[:3, 3], (base @ ball.placement)[:3, 3], atol=1e-12)


def test_the_command_shows_the_world_of_the_project(tmp_path: Path) -> None:
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    (tmp_path / "cell.yaml").write_text("objects: {crate: {box: [0.2, 0.2, 0.2], xyz: [0.4, 0.4, 0.4]}}")
    (tmp_path / "project.yaml").write_text("excitation: {world: cell.yaml}")
    motion = random_fourier(Limits.from_robot(robot), 4.0).write(tmp_path / "motion.csv", 100.0)
    page = tmp_path / "page.html"
    result = run("play", robot.path, motion, "-c", tmp_path / "project.yaml", "--html", page)
    assert result.returncode == 0
    assert re.search(r"note: (closest|too close|collision): ", result.stdout + result.stderr)
    data = page_data(page.read_text())
    assert any(b"/world/crate" in base64.b64decode(command) for command in data["commands"])
