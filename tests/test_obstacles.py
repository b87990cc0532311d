"""Designs beside a table: kept apart from it by another judge's measure; the barrier's gradient; bad input."""

import re
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from collision_oracle import MujocoScene
from commands import assert_refused, run

from urdf_ident import (
    Collisions,
    DynamicModel,
    Robot,
    Trajectory,
    design_excitation,
    find_collisions,
    read_trajectory,
    robot_path,
)
from urdf_ident.errors import LimitError, ProjectError
from urdf_ident.excitation.settings import ExcitationSection
from urdf_ident.motion.collision.clearance import check_clearance
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.motion.limits import check_limits, prior_torque

WORLD = parse_world(
    {
        "clearance": 0.015,
        "objects": {
            "table": {"box": [1.2, 1.0, 0.04], "xyz": [0.75, 0, -0.05]},
            "floor": {"plane": [0, 0, 1], "offset": -0.6},
            "post": {"cylinder": [0.05, 1.2], "xyz": [0, 0.7, 0.6]},
        },
    }
)
OBJECTS = {
    "table": ("box", [1.2, 1.0, 0.04], [0.75, 0, -0.05]),
    "floor": ("plane", [], [0, 0, -0.6]),
    "post": ("cylinder", [0.05, 1.2], [0, 0.7, 0.6]),
}


@cache
def arm(name: str = "ur10e") -> tuple[DynamicModel, Collisions]:
    robot = Robot.from_urdf(robot_path(name))
    return DynamicModel(robot, friction=["viscous", "coulomb", "offset"]), find_collisions(robot, WORLD)


def closest(robot: Robot, collisions: Collisions, motion: Trajectory, rate: float = 100.0) -> float:
    """Smallest distance of all watched pairs by MuJoCo's kinematics and collision code [m]."""
    violated_pair = [note for note in collisions.notes if "not watched" in note]
    pairs = [
        names
        for names in {pair.names for pair in collisions.pairs if pair.second >= 0}
        if not any(" and ".join(names) in note for note in violated_pair)
    ]
    return float(MujocoScene(robot, OBJECTS).distances(motion.evaluate(motion.times(rate))[0], pairs).min())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ur10e", {}),
        ("szabo_3r", {"family": "fourier", "ramp": 1.5}),
        ("szabo_3r", {"family": "spline", "periods": 2}),
        ("tx40", {"start": [0.1, 0.2, 1.2, 0.0, 0.5, 0.0]}),
    ],
)
def test_a_design_keeps_its_distance(name: str, options: dict[str, object]) -> None:
    model, collisions = arm(name)
    settings = {"seed": 1, "harmonics": 4, "budget": 0.7, "starts": 1, **options}
    design = design_excitation(model, 8.0, collisions=collisions, **settings)  # type: ignore[arg-type]
    assert design.clearance is not None
    assert design.clearance.feasible
    assert check_clearance(design.trajectory, collisions).feasible
    assert check_limits(design.trajectory, design.limits, torque=prior_torque(model.robot)).feasible
    assert closest(model.robot, collisions, design.trajectory) > 0.015 - 2e-4
    assert "mm at" in design.summary()
    assert all(f"note: {note}" in design.summary() for note in collisions.notes)
    if name == "ur10e":
        free = design_excitation(model, 8.0, collisions=None, **settings)  # type: ignore[arg-type]
        assert free.clearance is None
        assert not check_clearance(free.trajectory, collisions).feasible  # it had to give way


def test_an_end_in_collision_is_refused() -> None:
    model, collisions = arm()
    with pytest.raises(LimitError, match="the end pose is"):
        design_excitation(
            model,
            8.0,
            family="spline",
            start=[0.0, -1.5, 0.8, 0, 0, 0],
            end=[np.pi, 0.4, 0, 0, 0, 0],
            collisions=collisions,
            budget=1.0,
        )


def test_a_world_without_room_is_said() -> None:
    model, _ = arm()
    tight = parse_world({"objects": {"all around": {"sphere": 3.0, "xyz": [0, 0, 2.9]}}})
    collisions = find_collisions(model.robot, tight, prune=False)
    with pytest.raises(LimitError, match=r"too close.*all around; .*excitation.clearance.*excitation.collisions: false"):
        design_excitation(model, 8.0, collisions=collisions, budget=2.0, starts=1)


def test_the_project_file_names_the_world(tmp_path: Path) -> None:
    robot = Robot.from_urdf(robot_path("ur10e"))
    (tmp_path / "cell.yaml").write_text("clearance: 0.03\nobjects: {table: {box: [1, 1, 0.1], xyz: [0.8, 0, -0.1]}}\n")
    section = ExcitationSection(world="cell.yaml")
    found = section.build_collisions(robot, tmp_path)
    assert found is not None
    assert found.required[0] == 0.03
    assert found.world.names == ("table",)
    closer = ExcitationSection(world="cell.yaml", clearance=0.01).build_collisions(robot, tmp_path)
    assert closer is not None
    assert closer.required[0] == 0.01
    assert ExcitationSection(collisions=False).build_collisions(robot) is None
    assert ExcitationSection().build_collisions(robot) is not None  # its URDF says what is solid
    bare = Robot.from_urdf(robot.urdf.replace("<collision>", "<ignored>").replace("</collision>", "</ignored>"))
    assert ExcitationSection().build_collisions(bare) is None
    by_capsules = ExcitationSection(collisions=True).build_collisions(bare)
    assert by_capsules is not None
    assert "capsules" in by_capsules.notes[0]
    (tmp_path / "cell.yaml").write_text("objects: {table: {bix: [1, 1, 1]}}")
    with pytest.raises(ProjectError, match="did you mean 'box'"):
        section.build_collisions(robot, tmp_path)


# ---- `design` beside things, as its user runs it: what is written keeps its distance, and nothing is written otherwise ----

TABLE = "objects: {table: {box: [2.4, 2.4, 0.04], xyz: [0, 0, -0.05]}}\n"
PROJECT = "excitation: {world: cell.yaml, duration: 6, harmonics: 3, budget: 0.3, CHANGES}\n"


def design(folder: Path, world: str, changes: str) -> CompletedProcess[str]:
    (folder / "cell.yaml").write_text(world)
    (folder / "project.yaml").write_text(PROJECT.replace("CHANGES", changes))
    return run("design", robot_path("szabo_3r"), "-c", folder / "project.yaml", "-o", folder / "motion.csv")


def test_what_is_written_keeps_its_distance(tmp_path: Path) -> None:
    result, robot = design(tmp_path, TABLE, "clearance: 0.03"), Robot.from_urdf(robot_path("szabo_3r"))
    said = re.search(r"distance +(\w+) and (\w+): ([\d.]+) mm at .* allowed 30\)", result.stdout)
    assert said, result
    motion = read_trajectory(tmp_path / "motion.csv", robot)
    q = motion.evaluate(motion.times(100.0))[0]
    scene = MujocoScene(robot, {"table": ("box", [2.4, 2.4, 0.04], [0, 0, -0.05])})
    pairs = [(f"link_{k}", "table") for k in (2, 3)]  # the first stands on it
    nearest = scene.distances(q, [(said[1], said[2])]).min()
    assert scene.distances(q, pairs).min() > 0.03 - 2e-4
    assert nearest == pytest.approx(float(said[3]) / 1000, abs=1.5e-3)


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
    assert_refused(design(tmp_path, world, changes), 2, message)
    assert not (tmp_path / "motion.csv").exists()
