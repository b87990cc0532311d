"""The world file: everything it may say, and what it says when it makes no sense."""

from pathlib import Path

import numpy as np
import pytest

from urdf_ident import Robot, find_collisions, robot_path
from urdf_ident.errors import MissingFileError, ModelError, ProjectError
from urdf_ident.motion.collision.world import parse_world, read_world

TRIANGLES = "\n".join(["v 0 -1 -1", "v 0 1 -1", "v 0 0 1", "f 1 2 3", ""])


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    import urdf_ident.motion.collision.world as module

    text = str(module.__doc__).split("```yaml")[1].split("```")[0]
    (tmp_path / "press.obj").write_text(TRIANGLES)
    path = tmp_path / "world.yaml"
    path.write_text(text.replace("press.stl", "press.obj"))
    world = read_world(path)
    assert set(world.names) == {"table", "press", "post", "floor"}
    assert world.clearance == 0.02
    assert world.root[2, 3] == 0.8
    assert world.tool is not None
    assert world.tool.frame == "tool0"
    assert world.allowed == (("base_link", "table"),)
    collisions = find_collisions(Robot.from_urdf(robot_path("ur10e")), world)
    assert collisions.pairs[-1].names == ("tool0", "the tool's box")
    assert collisions.required[-1] == 0.0
    assert (collisions.required[:-1] == 0.02).all()


def test_an_empty_file_is_an_empty_world(tmp_path: Path) -> None:
    path = tmp_path / "world.yaml"
    path.write_text("")
    world = read_world(path)
    assert world.names == ()
    assert world.clearance is None
    assert world.tool is None
    np.testing.assert_array_equal(world.root, np.eye(4))


def test_where_the_robot_stands_moves_the_world_and_not_the_robot() -> None:
    """The same scene told in two frames has the same distances."""
    robot = Robot.from_urdf(robot_path("ur10e"))
    q = np.random.default_rng(0).uniform(-2, 2, (20, 6))
    here = parse_world(
        {"objects": {"a": {"box": [0.3, 0.4, 0.5], "xyz": [0.6, 0.2, 0.5]}, "p": {"plane": [1, 0, 0], "offset": -1}}}
    )
    # Turned by 90° about z and lifted: x → y, y → −x.
    there = parse_world(
        {
            "base": {"xyz": [0, 0, 2], "rpy": [0, 0, np.pi / 2]},
            "objects": {
                "a": {"box": [0.3, 0.4, 0.5], "xyz": [-0.2, 0.6, 2.5], "rpy": [0, 0, np.pi / 2]},
                "p": {"plane": [0, 2, 0], "offset": -2},
            },
        }
    )
    one, two = (find_collisions(robot, world).distances(q) for world in (here, there))
    np.testing.assert_allclose(one, two, atol=5e-6)


def test_the_tool_stays_in_its_box() -> None:
    robot = Robot.from_urdf(robot_path("ur10e"))
    world = parse_world({"tool": {"frame": "tool0", "box": [[-0.4, -9, -9], [9, 9, 9]]}})
    collisions = find_collisions(robot, world)
    q = np.random.default_rng(0).uniform(-3, 3, (50, 6))
    body, local = collisions.tool  # type: ignore[misc]
    x = collisions.kinematics.evaluate(q).points(body, local[None])[:, 0, 0]
    np.testing.assert_allclose(collisions.distances(q)[:, -1], x + 0.4, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objects: [1, 2", r"world.yaml, line \d.*not YAML"),
        ("- a\n- b", "the world is not a mapping"),
        ("objets: {}", "unknown key 'objets'.*did you mean 'objects'"),
        ("objects: [1]", "'objects' is not a mapping"),
        ("objects: {t: {box: [1, 2]}}", r"object 't': wrong numbers.*got \[1, 2\].*3 finite numbers"),
        ("objects: {t: {box: [1, 2, -3]}}", "every size must be positive"),
        ("objects: {t: {box: [1, .nan, 3]}}", "wrong numbers"),
        ("objects: {t: {bx: [1, 2, 3]}}", "unknown key 'bx'.*did you mean 'box'"),
        ("objects: {t: {box: [1, 2, 3], sphere: 1}}", "exactly one shape"),
        ("objects: {t: {xyz: [1, 2, 3]}}", "exactly one shape"),
        ("objects: {t: {box: [1, 2, 3], offset: 1}}", "'offset' belongs to a plane"),
        ("objects: {t: {plane: [0, 0, 0]}}", "the normal is zero"),
        ("objects: {t: {plane: [0, 0, 1], xyz: [0, 0, 1]}}", "placed by its normal"),
        ("objects: {t: {mesh: nowhere.stl}}", "mesh cannot be read.*nowhere.stl"),
        ("tool: {frame: tool0}", "'tool' needs a frame and a box"),
        ("tool: {frame: tool0, box: [[0, 0, 0], [1, 0, 1]]}", "has no inside"),
        ("clearance: -0.01", "clearance must be positive"),
        ("allow: [base_link]", "not a list of pairs"),
        ("base: {xyz: up}", "base: wrong numbers"),
        ("base: {rpy: [0, 0, 90]}", "base: rpy is in rad, got .0.0, 0.0, 90.0."),
        ("clearance: true", "clearance: wrong numbers"),
        ("objects: {t: {box: ['1', '1', '1']}}", "wrong numbers"),
        ("objects: {null: {sphere: 1}}", "has no name, got None"),
        ("objects: {' ': {sphere: 1}}", "has no name"),
        ("objects: {t: {mesh: wall.obj, scale: [1, 0, 1]}}", "scale is zero"),
        ("objects: {t: {mesh: wall.obj, scale: [1, 1e11, 1]}}", "mesh is too large, got wall.obj"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "world.yaml"
    path.write_text(text)
    (tmp_path / "wall.obj").write_text(TRIANGLES.replace("v 0 0 1", "v 0 99 1"))
    with pytest.raises(ProjectError, match=message):
        read_world(path)


def test_an_object_may_not_be_called_like_a_link() -> None:
    """`allow` could mean either."""
    robot = Robot.from_urdf(robot_path("ur10e"))
    with pytest.raises(ModelError, match="object 'forearm_link' has the name of a link"):
        find_collisions(robot, parse_world({"objects": {"forearm_link": {"sphere": 0.1, "xyz": [5, 0, 0]}}}))


def test_no_file() -> None:
    with pytest.raises(MissingFileError, match="world file not found"):
        read_world("nowhere.yaml")
