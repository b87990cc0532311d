"""`design` beside things, as its user runs it: what is written keeps its distance, and nothing is written otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from collision_oracle import MujocoScene
from conftest import arm_urdf
from typer.testing import CliRunner, Result

from urdf_ident.cli import app
from urdf_ident.errors import LimitError, UrdfIdentError
from urdf_ident.excitation.family import Family
from urdf_ident.excitation.obstacles import PAD, Obstacles
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.robot import Robot
from urdf_ident.motion.collision.find import find_collisions
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.motion.files import read_trajectory
from urdf_ident.motion.limits import Limits

TABLE = "objects: {table: {box: [2.4, 2.4, 0.04], xyz: [0, 0, -0.05]}}\n"
PROJECT = "excitation: {world: cell.yaml, duration: 6, harmonics: 3, budget: 0.7, CHANGES}\n"


def design(folder: Path, urdf: Path, *, world: str = TABLE, changes: str = "seed: 0") -> Result:
    (folder / "cell.yaml").write_text(world)
    (folder / "project.yaml").write_text(PROJECT.replace("CHANGES", changes))
    arguments = ["design", str(urdf), "-c", str(folder / "project.yaml"), "-o", str(folder / "motion.csv")]
    return CliRunner().invoke(app, arguments)


def test_what_is_written_keeps_its_distance(tmp_path: Path) -> None:
    urdf = robot_path("szabo_3r")
    result = design(tmp_path, urdf, changes="clearance: 0.03")
    assert result.exit_code == 0, result.output
    said = re.search(r"distance +(\w+) and (\w+): ([\d.]+) mm at .* allowed 30\)", result.output)
    assert said, result.output
    robot = Robot.from_urdf(urdf)
    motion = read_trajectory(tmp_path / "motion.csv", robot)
    q = motion.evaluate(motion.times(100.0))[0]
    scene = MujocoScene(robot, {"table": ("box", [2.4, 2.4, 0.04], [0, 0, -0.05])})
    pairs = [(f"link_{k}", "table") for k in (2, 3)]  # the first stands on it
    nearest = scene.distances(q, [(said[1], said[2])]).min()
    assert scene.distances(q, pairs).min() > 0.03 - 2e-4
    assert nearest == pytest.approx(float(said[3]) / 1000, abs=1.5e-3)


def test_the_smallest_distance_and_the_tool_are_both_said(tmp_path: Path) -> None:
    result = design(tmp_path, robot_path("szabo_3r"), world=TABLE + "tool: {frame: tool, box: [[-2, -2, 0.05], [2, 2, 2]]}\n")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if line.startswith("  distance")]
    assert len(lines) == 2
    assert "tool and the tool's box" in lines[1]
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    motion = read_trajectory(tmp_path / "motion.csv", robot)
    collisions = find_collisions(robot, parse_world({"objects": {"table": {"box": [2.4, 2.4, 0.04], "xyz": [0, 0, -0.05]}}}))
    least = collisions.distances(motion.evaluate(motion.times(200.0))[0]).min(axis=0)
    assert float(lines[0].split(": ")[1].split()[0]) / 1000 == pytest.approx(least.min(), abs=1e-3)


def test_off_is_off_and_said(tmp_path: Path) -> None:
    result = design(tmp_path, robot_path("szabo_3r"), changes="collisions: false")
    assert result.exit_code == 0, result.output
    assert "not watched" in result.output


def test_capsules_are_said(tmp_path: Path) -> None:
    (tmp_path / "bare.urdf").write_text(arm_urdf("zyy"))
    result = design(tmp_path, tmp_path / "bare.urdf", world="tool: {frame: tool, box: [[-2, -2, -2], [2, 2, 2]]}")
    assert result.exit_code == 0, result.output
    assert re.search(r"links .*l2.* have no usable collision geometry: capsules of .* mm radius stand in", result.output)


@pytest.mark.parametrize(
    ("world", "changes", "message"),
    [
        (TABLE, "start: [0, 2.6, 0]", r"and table: the start pose is in collision, got -[\d.]+ m.*choose another pose"),
        ("objects: {table: [", "seed: 0", r"cell.yaml, line \d: the world file is not YAML"),
        ("objects: {table: {bax: [1, 1, 1]}}", "seed: 0", r"object 'table': unknown key 'bax'; did you mean 'box'"),
        ("objects: {table: {mesh: t.stl}}", "seed: 0", r"object 'table': the mesh cannot be read, got t.stl"),
        (TABLE, "clearance: 4", r"the clearance cannot be kept, got .* apart at best, expected at least 4 m"),
        (TABLE.replace("2.4, 2.4, 0.04", "2400, 2400, 40"), "seed: 0", r"and table: they overlap on every configuration"),
        ("tool: {frame: link_3, box: [[5, 5, 5], [6, 6, 6]]}", "seed: 0", r"the tool is outside its box on every"),
    ],
)
def test_nothing_is_written_when_it_cannot_be(tmp_path: Path, world: str, changes: str, message: str) -> None:
    result = design(tmp_path, robot_path("szabo_3r"), world=world, changes=changes)
    assert isinstance(result.exception, UrdfIdentError), result.output
    assert re.search(message, str(result.exception)), str(result.exception)
    assert not (tmp_path / "motion.csv").exists()


def test_a_wrist_at_a_constant_distance_blocks_nothing() -> None:
    """It turns 33.15 mm from the forearm whatever the joints do: allowed at 32 mm, not watched at 34 mm."""
    robot = Robot.from_urdf(robot_path("ur10e"))
    world = parse_world({"objects": {"wall": {"plane": [-1, 0, 0], "offset": -1.2}}})
    limits = Limits.from_robot(robot)
    for clearance, watched in ((0.032, True), (0.034, False)):
        collisions = find_collisions(robot, world, clearance=clearance)
        obstacles = Obstacles(collisions, Family("modified_fourier", limits.joints, 5.0, 3), limits)
        tight = [pair.names for pair, pad in zip(collisions.pairs, obstacles.pad, strict=True) if pad < PAD]
        assert (("forearm_link", "wrist_2_link") in tight) == watched
        assert obstacles.violated_pair(np.array([0.0, -1.5, 0.8, 0.0, np.pi / 2, 0.0])) == ""
    with pytest.raises(LimitError, match="clearance cannot be kept"):
        find_collisions(robot, world, clearance=0.15)
