"""Distances against MuJoCo, gradients against differences, and what counts as a pair that can collide."""

from pathlib import Path

import numpy as np
import pytest
from collision_oracle import FAR, MujocoScene
from conftest import arm_urdf

from urdf_ident import Collisions, Limits, Robot, Trajectory, find_collisions, random_fourier, robot_path
from urdf_ident.errors import LimitError, ModelError
from urdf_ident.model.geometry import collision_shapes
from urdf_ident.motion.collision.clearance import MEASURED, Clearance, ClearanceReport, check_clearance
from urdf_ident.motion.collision.world import parse_world
from urdf_ident.motion.trajectory import ramped, trapezoidal

TABLE = {
    "objects": {
        "table": {"box": [1.0, 0.8, 0.04], "xyz": [0.75, 0.1, 0.02]},
        "floor": {"plane": [0, 0, 1], "offset": -0.5},
        "post": {"cylinder": [0.05, 1.2], "xyz": [-0.2, 0.9, 0.6]},
        "ball": {"sphere": 0.1, "xyz": [-0.8, 0, 0.5]},
    }
}
OBJECTS = {
    "table": ("box", [1.0, 0.8, 0.04], [0.75, 0.1, 0.02]),
    "floor": ("plane", [], [0, 0, -0.5]),
    "post": ("cylinder", [0.05, 1.2], [-0.2, 0.9, 0.6]),
    "ball": ("sphere", [0.1], [-0.8, 0, 0.5]),
}


def bundled(name: str) -> Robot:
    """A bundled robot; ``coupled``: one whose fifth joint follows the second, and whose fourth slides with the third."""
    if name != "coupled":
        return Robot.from_urdf(robot_path(name))
    text = robot_path("generic_6axis").read_text(encoding="utf-8")
    for follower, mimic in (
        ("joint_5", '<mimic joint="joint_2" multiplier="-0.5" offset="0.2"/>'),
        ("joint_4", '<mimic joint="joint_3" multiplier="0.1" offset="0.05"/>'),
    ):
        head = f'<joint name="{follower}" type="revolute">'
        assert head in text
        text = text.replace(head, (head.replace("revolute", "prismatic") if follower == "joint_4" else head) + mimic)
    return Robot.from_urdf(text, mimic="identify")


def configurations(robot: Robot, count: int, seed: int = 0) -> np.ndarray:
    lower, upper = robot.limit("lower").clip(-3, 3), robot.limit("upper").clip(-3, 3)
    return np.random.default_rng(seed).uniform(lower, upper, (count, robot.n))


def of_links(collisions: Collisions, distance: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    """Smallest distance over the shapes of two links, by their names."""
    out: dict[tuple[str, str], np.ndarray] = {}
    for p, pair in enumerate(collisions.pairs):
        out[pair.names] = np.minimum(out.get(pair.names, np.inf), distance[:, p])
    return out


@pytest.mark.parametrize("name", ["ur10e", "generic_6axis", "tx40", "coupled"])
def test_distances_agree_with_mujoco(name: str) -> None:
    robot = bundled(name)
    collisions = find_collisions(robot, parse_world(TABLE), prune=False)
    q = configurations(robot, 40)
    ours = of_links(collisions, collisions.distances(q))
    theirs = MujocoScene(robot, OBJECTS).distances(q, list(ours))
    seen = 0
    for k, (names, mine) in enumerate(ours.items()):
        apart = (theirs[:, k] > 1e-3) & (theirs[:, k] < FAR - 1e-3)
        assert np.abs(mine - theirs[:, k])[apart].max(initial=0.0) < 2e-4, names
        assert (mine[theirs[:, k] <= 0] < 1e-4).all(), names
        seen += int(apart.sum())
    assert seen > 0.9 * q.shape[0] * len(ours)


@pytest.mark.parametrize("name", ["generic_6axis", "coupled"])
def test_single_pairs_agree_with_pinocchio_and_gradients_with_differences(name: str) -> None:
    robot = bundled(name)
    data = {
        **TABLE,
        "base": {"xyz": [0.1, 0.2, 0.3], "rpy": [0.1, 0.2, 0.7]},
        "tool": {"frame": list(robot.description.links)[-1], "box": [[-0.3, -0.3, 0.2], [0.8, 0.8, 1.1]]},
    }
    collisions = find_collisions(robot, parse_world(data), prune=False)
    q = configurations(robot, 60)
    whole = collisions.distances(q)
    rows, pairs = np.nonzero(np.abs(whole) < 0.15)
    assert len(rows) > 200
    assert (pairs == len(collisions.pairs) - 1).any()
    poses = collisions.kinematics.evaluate(q)
    distance, first, second = collisions.exact(poses, rows, pairs)
    np.testing.assert_allclose(distance, whole[rows, pairs], atol=3e-6)
    gradient = collisions.gradients(poses, rows, pairs, first, second, distance)
    rng, step, agree = np.random.default_rng(1), 1e-4, []
    for m in rng.choice(len(rows), 150, replace=False):
        if abs(distance[m]) < 5e-3:
            continue
        direction = rng.standard_normal(robot.n)
        ends = collisions.distances(q[rows[m]] + step * direction * np.array([[1.0], [-1.0]]))[:, pairs[m]]
        agree.append(abs((ends[0] - ends[1]) / (2 * step) - gradient[m] @ direction) < 0.03)
    assert np.mean(agree) > 0.95  # edges and faces take over from each other at some configurations


def test_links_that_always_overlap_are_left_out_and_said() -> None:
    near, far = (find_collisions(bundled("tx40"), clearance=clearance) for clearance in (0.005, 0.02))
    watched = [[pair.names for pair in found.pairs].count(("link_4", "link_6")) for found in (near, far)]
    assert watched[1] == watched[0] - 1  # two shapes that are 11 mm apart whatever the joints do
    assert near.notes == ()
    assert far.notes == (
        "closer than the clearance in nearly all poses, so not watched: link_4 and link_6 (some of their shapes)",
    )


def test_missing_geometry_becomes_capsules_and_is_said() -> None:
    robot = Robot.from_urdf(arm_urdf("zyyx"))
    shapes, notes = collision_shapes(robot)
    assert {shape.link for shape in shapes} == {"l1", "l2", "l3", "l4", "tool"}
    assert "capsules" in notes[0]
    assert "l3" in notes[0]
    collisions = find_collisions(robot)
    assert collisions.notes[0] == notes[0]
    assert collisions.pairs
    straight = collisions.kinematics.evaluate(np.zeros((1, 4)))
    capsule = next(solid for solid in collisions.solids if solid.name == "l1")
    tip = straight.points(1, (capsule.placement[:3, 3] + capsule.placement[:3, 2] * capsule.geometry.halfLength)[None])[0, 0]
    np.testing.assert_allclose(tip, straight.origin[0, 2], atol=1e-9)  # the capsule reaches to the next joint


def test_a_mesh_link_is_its_hull(tmp_path: Path) -> None:
    corners = [(x, y, z) for x in (0.0, 0.2) for y in (-0.1, 0.1) for z in (-0.05, 0.05)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    faces = [
        (1, 2, 4),
        (1, 4, 3),
        (5, 7, 8),
        (5, 8, 6),
        (1, 5, 6),
        (1, 6, 2),
        (3, 4, 8),
        (3, 8, 7),
        (1, 3, 7),
        (1, 7, 5),
        (2, 6, 8),
        (2, 8, 4),
    ]
    (tmp_path / "box.obj").write_text("\n".join([*lines, *("f {} {} {}".format(*face) for face in faces), ""]))
    text = bundled("szabo_3r").urdf
    box, mesh = (
        "<collision><origin xyz='{}'/><geometry>{}</geometry></collision></link>".format(*item)
        for item in (("0.1 0 0", "<box size='0.2 0.2 0.1'/>"), ("0 0 0", "<mesh filename='box.obj'/>"))
    )
    robots = []
    for k, part in enumerate((box, mesh)):
        path = tmp_path / f"{k}.urdf"
        last = text.rindex("</link>")
        path.write_text(text[:last] + part + text[last + 7 :])
        robots.append(Robot.from_urdf(path))
    q = configurations(robots[0], 50)
    first, second = (find_collisions(robot, parse_world(TABLE)).distances(q) for robot in robots)
    np.testing.assert_allclose(first.clip(0), second.clip(0), atol=5e-6)


def test_a_pose_in_collision_is_refused() -> None:
    robot = bundled("ur10e")
    collisions = find_collisions(robot, parse_world(TABLE))
    collisions.require_free(np.array([0.0, -1.5, 0.5, 0.0, 0.0, 0.0]))
    with pytest.raises(LimitError, match=r"table|floor.*start pose is in collision.*got -.*expected at least 0.01 m"):
        collisions.require_free(np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0]))


def test_bad_names_and_clearances() -> None:
    robot = bundled("ur10e")
    with pytest.raises(ModelError, match=r"no link or object is called 'tabel'.*did you mean 'table'"):
        find_collisions(robot, parse_world({**TABLE, "allow": [["base_link", "tabel"]]}))
    with pytest.raises(ModelError, match=r"no link is called 'tol0'.*did you mean 'tool0'"):
        find_collisions(robot, parse_world({"tool": {"frame": "tol0", "box": [[0, 0, 0], [1, 1, 1]]}}))
    with pytest.raises(LimitError, match="clearance must be positive"):
        find_collisions(robot, clearance=0.0)


# ---- The certificate against a far denser grid, with everything that moves: prismatic joints, ramps, motions that stop ----

WORLD = parse_world(
    {"objects": {"wall": {"plane": [-1, 0, 0], "offset": -0.9}, "block": {"box": [0.4, 0.4, 0.4], "xyz": [0.9, 0, 0.2]}}}
)


def motions(robot: Robot) -> list[Trajectory]:
    limits = Limits.from_robot(robot)
    quick = random_fourier(limits, 3.0, 4, seed=1, fill=0.95)
    moved = ramped(random_fourier(limits, 4.0, 3, seed=2, fill=0.6), np.full(robot.n, 0.05), 0.8)
    points = np.random.default_rng(3).uniform(-0.4, 0.4, (5, robot.n))
    stops = trapezoidal(robot.joints, points, limits.velocity, 3 * limits.velocity, 40 * limits.velocity, dwell=0.1)
    return [quick, moved, stops]


def by_pair(report: ClearanceReport, collisions: Collisions) -> dict[tuple[str, str], list[float]]:
    out: dict[tuple[str, str], list[float]] = {}
    for entry in report.pairs:
        out.setdefault((entry.first, entry.second), []).append(entry.least)
    return {names: sorted(values) for names, values in out.items()}


@pytest.mark.parametrize(
    ("case", "which"), [("ur10e", 0), ("coupled", 1), ("coupled", 2), ("prismatic", 2), ("prismatic", 0), ("mixed", 1)]
)
def test_nothing_falls_below_the_certificate(case: str, which: int) -> None:
    if case in ("ur10e", "coupled"):
        robot = bundled(case)
    else:
        text = arm_urdf("zyxzy", kind="prismatic").replace('lower="-2.6" upper="2.6"', 'lower="-0.3" upper="0.3"')
        robot = Robot.from_urdf(text if case == "prismatic" else text.replace("prismatic", "revolute", 3))
    collisions = find_collisions(robot, WORLD)
    motion = motions(robot)[which]
    report = check_clearance(motion, collisions)
    dense = collisions.distances(motion.evaluate(np.linspace(0.0, motion.duration, 3000))[0]).min(axis=0)
    seen: dict[tuple[str, str], list[float]] = {}
    for p, pair in enumerate(collisions.pairs):
        seen.setdefault(pair.names, []).append(float(dense[p]))
    gaps = []
    for names, least in by_pair(report, collisions).items():
        gap = np.array(sorted(seen[names])) - np.array(least)
        assert gap.min() > -MEASURED, names
        gaps.extend(gap)
    assert np.median(gaps) < 0.1  # and it is not just careful: a few millimetres at full speed


def test_a_fly_past_between_instants_is_found() -> None:
    """A rod's tip passes a ball at 10 m/s: far away 20 ms before and after, the chord's case."""
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    motion = random_fourier(Limits.from_robot(robot, velocity=np.full(2, 20.0), acceleration=np.full(2, 200.0)), 1.0, 3, seed=5)
    time = np.linspace(0.0, motion.duration, 2001)
    poses = find_collisions(robot).kinematics.evaluate(motion.evaluate(time)[0])
    tip = poses.points(2, np.array([[0.5, 0.0, 0.0]]))[:, 0]
    speed = np.linalg.norm(np.gradient(tip, time, axis=0), axis=1)
    fastest = int(np.argmax(speed))
    assert speed[fastest] > 5.0
    ball = {"sphere": 0.01, "xyz": (tip[fastest] + 0.08 * poses.axes[fastest, 1]).tolist()}
    world = parse_world({"objects": {"ball": ball}})

    def entries(clearance: float) -> list[Clearance]:
        return [
            x for x in check_clearance(motion, find_collisions(robot, world, clearance=clearance)).pairs if x.second == "ball"
        ]

    collisions = find_collisions(robot, world)
    watched = [p for p, pair in enumerate(collisions.pairs) if pair.names[1] == "ball"]
    deepest = float(collisions.distances(motion.evaluate(np.linspace(0.0, motion.duration, 10_001))[0])[:, watched].min())
    beside = collisions.distances(motion.evaluate(time[fastest] + np.array([-0.01, 0.01]))[0])[:, watched].min()
    assert deepest > 0.005
    assert beside > deepest + 0.01
    assert min(x.margin for x in entries(deepest - 5e-5)) >= 0
    assert min(x.margin for x in entries(deepest + 5e-5)) < 0


def test_the_report_says_what_collides() -> None:
    robot = Robot.from_urdf(robot_path("ur10e"))
    collisions = find_collisions(robot, WORLD)
    motion = random_fourier(Limits.from_robot(robot), 10.0, 4, seed=4, fill=0.9, span=3.0)
    report = check_clearance(motion, collisions)
    assert not report.feasible
    with pytest.raises(LimitError, match=r"and .* at t = .*: the motion (collides|comes too close).*expected at least 0.01 m"):
        report.require()
    with pytest.raises(LimitError, match="different joints"):
        check_clearance(random_fourier(Limits.from_robot(Robot.from_urdf(robot_path("tx40"))), 5.0), collisions)
