"""Trajectories: derivatives against finite differences, ties and ends exactly, bounds that really bound."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf
from hypothesis import given, settings
from hypothesis import strategies as st

from urdf_ident import Robot, read_recording, robot_path
from urdf_ident.errors import LimitError, LogError, ShapeError
from urdf_ident.excitation.paths import circle
from urdf_ident.linalg import Array
from urdf_ident.logs.motions import read_trajectory, why_recorded
from urdf_ident.motion.fourier import FourierTrajectory, modified_fourier, random_fourier
from urdf_ident.motion.limits import Limits, check_limits
from urdf_ident.motion.trajectory import PiecewisePolynomial, b_spline_at_rest, ramped, repeated, sampled, trapezoidal

JOINTS = ("a", "b")
UR = Robot.from_urdf(robot_path("ur10e"))


def fourier(seed: int = 0, harmonics: int = 4, duration: float = 0.0) -> FourierTrajectory:
    rng = np.random.default_rng(seed)
    return FourierTrajectory(JOINTS, 5.0, rng.normal(size=2), *rng.normal(size=(2, 2, harmonics)), duration)


def moves(seed: int = 0, dwell: float = 0.1) -> PiecewisePolynomial:
    points = np.random.default_rng(seed).uniform(-2, 2, (4, 2))
    return trapezoidal(JOINTS, points, np.array([1.0, 1.5]), np.array([3.0, 2.0]), np.array([20.0, 30.0]), dwell)


def spline(seed: int = 0) -> PiecewisePolynomial:
    rng = np.random.default_rng(seed)
    return b_spline_at_rest(JOINTS, [0.1, -0.2], rng.normal(size=(6, 2)), [0.4, 0.3], 4.0)


def modified(seed: int = 0, periods: int = 1) -> FourierTrajectory:
    rng = np.random.default_rng(seed)
    return modified_fourier(JOINTS, 5.0, rng.normal(size=2), *rng.normal(size=(2, 2, 4)), periods=periods)


KINDS = {
    "fourier": fourier(),
    "modified": modified(),
    "spline": spline(),
    "trapezoidal": moves(),
    "ramped": ramped(fourier(), [0.0, 0.5], 1.5),
    "repeated": repeated(modified(), 3),
    "sampled": sampled(JOINTS, np.linspace(0, 5, 40), *fourier().evaluate(np.linspace(0, 5, 40))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_velocity_and_acceleration_are_the_derivatives(kind: str) -> None:
    trajectory, h = KINDS[kind], 1e-5
    time = np.random.default_rng(1).uniform(2 * h, trajectory.duration - 2 * h, 200)
    (q0, v0, _), (q1, v1, _) = trajectory.evaluate(time - h), trajectory.evaluate(time + h)
    _, v, a = trajectory.evaluate(time)
    # the remainder of the central difference, up to a jump of the next derivative at a break
    np.testing.assert_allclose((q1 - q0) / (2 * h), v, atol=1e-7)
    np.testing.assert_allclose((v1 - v0) / (2 * h), a, atol=2 * h * trajectory.bounds(3).max() + 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_enclose_the_first_three_derivatives_and_are_not_silly(kind: str) -> None:
    trajectory, h = KINDS[kind], 1e-4
    _, v, a = (np.abs(x) for x in trajectory.evaluate(np.arange(h, trajectory.duration, h)))
    for order, peak in ((1, v.max(axis=0)), (2, a.max(axis=0))):
        assert (trajectory.bounds(order) >= peak * (1 - 1e-12)).all()
        assert (trajectory.bounds(order) <= 6 * peak).all()
    slope = np.abs(np.diff(trajectory.evaluate(np.arange(h, trajectory.duration, h))[2], axis=0)) / h
    assert (slope.max(axis=0) <= trajectory.bounds(3) * (1 + 1e-6)).all()


def test_fourier_follows_the_printed_formula() -> None:
    trajectory, t = fourier(), 1.234
    omega = 2 * np.pi / 5.0
    expected = trajectory.offset.copy()
    for l in range(1, 5):  # noqa: E741 the paper's letter
        expected += trajectory.a[:, l - 1] / (omega * l) * np.sin(omega * l * t)
        expected -= trajectory.b[:, l - 1] / (omega * l) * np.cos(omega * l * t)
    np.testing.assert_allclose(trajectory.evaluate([t])[0][0], expected, rtol=1e-13)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), harmonics=st.integers(2, 7))
def test_modified_series_meets_its_ends_exactly(seed: int, harmonics: int) -> None:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=2)
    trajectory = modified_fourier(JOINTS, 7.0, q, *rng.normal(size=(2, 2, harmonics - 1)), periods=2)
    for time in (0.0, 7.0, 14.0):
        for got, wanted in zip(trajectory.evaluate([time]), (q, np.zeros(2), np.zeros(2)), strict=True):
            np.testing.assert_allclose(got[0], wanted, atol=1e-12 * harmonics**2)
    free = 2 * (harmonics - 1)
    assert trajectory.a.size + trajectory.b.size - 2 * 2 == 2 * free  # 2M − 2 free numbers a joint


def test_spline_starts_and_ends_at_rest_inside_its_polygon() -> None:
    trajectory = spline(3)
    for time, place in ((0.0, [0.1, -0.2]), (4.0, [0.4, 0.3])):
        q, v, a = trajectory.evaluate([time])
        np.testing.assert_allclose(q[0], place, atol=1e-12)
        np.testing.assert_allclose([v[0], a[0]], 0, atol=1e-10)
    q = trajectory.evaluate(np.linspace(0, 4, 501))[0]
    control = np.vstack([[0.1, -0.2], [0.4, 0.3], np.random.default_rng(3).normal(size=(6, 2))])
    assert (q.max(axis=0) <= control.max(axis=0) + 1e-12).all()
    third = np.diff(trajectory.evaluate(np.linspace(0, 4, 4001))[2], axis=0) * 1000
    assert np.abs(np.diff(third, axis=0)).max() < 0.05 * np.abs(third).max()  # jerk has no jump


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), velocity=st.floats(0.05, 20.0), acceleration=st.floats(0.05, 50.0), jerk=st.floats(0.5, 2000.0)
)
def test_trapezoidal_reaches_its_points_within_its_limits(seed: int, velocity: float, acceleration: float, jerk: float) -> None:
    points = np.random.default_rng(seed).uniform(-2, 2, (3, 2))
    trajectory = trapezoidal(JOINTS, points, *(np.full(2, x) for x in (velocity, acceleration, jerk)))
    q, v, a = trajectory.evaluate(np.linspace(0, trajectory.duration, 3001))
    assert np.abs(v).max() <= velocity * (1 + 1e-9)
    assert np.abs(a).max() <= acceleration * (1 + 1e-9)
    assert trajectory.bounds(3).max() <= jerk * (1 + 1e-9)
    # as fast as possible: some joint is at a limit in each move
    assert max(np.abs(v).max() / velocity, np.abs(a).max() / acceleration, trajectory.bounds(3).max() / jerk) > 1 - 1e-6
    np.testing.assert_allclose(q[[0, -1]], points[[0, -1]], atol=1e-9)
    np.testing.assert_allclose(v[[0, -1]], 0, atol=1e-9)
    via = trajectory.evaluate(trajectory.breaks)[0]
    assert np.abs(via - points[1]).max(axis=1).min() < 1e-9


def test_ramp_starts_and_ends_at_rest_at_home() -> None:
    trajectory = ramped(fourier(5), [0.2, -0.4], 2.0)
    assert trajectory.duration == pytest.approx(9.0)
    for time in (0.0, 9.0):
        q, v, a = trajectory.evaluate([time])
        np.testing.assert_allclose(q[0], [0.2, -0.4], atol=1e-12)
        np.testing.assert_allclose([v[0], a[0]], 0, atol=1e-12)
    for joint_time in (2.0, 7.0):
        before, after = (trajectory.evaluate([joint_time + d]) for d in (-1e-9, 1e-9))
        for x, y in zip(before, after, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-6)
    np.testing.assert_array_equal(trajectory.evaluate([4.0])[0], fourier(5).evaluate([2.0])[0])


def test_random_fourier_stays_inside_the_limits_for_every_seed() -> None:
    limits = Limits.from_robot(UR, acceleration=4.0)
    time = np.linspace(0, 10, 5001)
    for seed in range(10):
        trajectory = random_fourier(limits, 10.0, 5, seed)
        check_limits(trajectory, limits).require()
        q, v, a = (np.abs(x).max(axis=0) for x in trajectory.evaluate(time))
        np.testing.assert_allclose(np.max([q / 2.0, v / limits.velocity, a / 4.0], axis=0), 0.9, rtol=1e-3)  # used up
        np.testing.assert_allclose(trajectory.evaluate([0.0])[1], 0, atol=1e-12)
    same = random_fourier(limits, 10.0, 5, 3).evaluate([1.0])[0]
    np.testing.assert_array_equal(same, random_fourier(limits, 10.0, 5, 3).evaluate([1.0])[0])


def test_csv_survives_the_round_trip(tmp_path: Path) -> None:
    trajectory = random_fourier(Limits.from_robot(UR), 4.0, 3, 1)
    path = trajectory.write(tmp_path / "sub" / "excite.csv", rate=200.0)
    header = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header[:2] == ["t", "q_shoulder_pan_joint"]
    assert "a_wrist_3_joint" in header
    back = read_trajectory(path, UR)
    assert back.duration == pytest.approx(4.0)
    time = np.linspace(0, 4, 977)
    for got, wanted, tolerance in zip(back.evaluate(time), trajectory.evaluate(time), (1e-9, 1e-7, 1e-4), strict=True):
        np.testing.assert_allclose(got, wanted, atol=tolerance)


def test_joint_names_with_commas_survive_the_round_trip(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zy").replace('"j1"', '"a,b"'))
    assert sorted(robot.joints) == ["a,b", "j2"]
    motion = random_fourier(Limits.from_robot(robot), 4.0, 3, 0, fill=0.5)
    path = motion.write(tmp_path / "motion.csv")
    t = np.linspace(0, motion.duration, 50)
    np.testing.assert_allclose(read_trajectory(path, robot).evaluate(t)[0], motion.evaluate(t)[0], atol=1e-6)
    np.testing.assert_allclose(read_recording(path, robot).position[0], motion.evaluate([0.0])[0][0], atol=1e-9)
    assert why_recorded(path, read_trajectory(path, robot)) == ""


def _times(text: str, column: int, factor: float) -> str:
    """A table with one column, counted from 1, times a number."""
    header, *rows = text.strip().split("\n")
    cells = [row.split(",") for row in rows]
    for row in cells:
        row[column - 1] = repr(factor * float(row[column - 1]))
    return "\n".join([header, *(",".join(row) for row in cells)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("q_elbow_joint", "q_elbow"), "did you mean 'elbow_joint'"),
        (
            lambda text: text.replace("q_elbow_joint", "x"),
            "joint 'elbow_joint' is missing .* expected a column 'q_elbow_joint'",
        ),
        (lambda text: text.replace("\n0.01,", "\n0.01,nan"), "row 3: broken row"),
        (lambda text: text.replace("\n0.01,", "\n0.05,"), "row 4: time does not increase, got 0.02 s"),
        (lambda text: text.replace("\n0.01,", "\n\n0.05,"), "row 5: time does not increase, got 0.02 s"),
        (lambda text: "\n".join(text.split("\n")[:6]), "got 5 rows, expected at least 6"),
        (lambda text: text.replace("q_wrist_2_joint", "q_elbow_joint"), "column 'q_elbow_joint' is there 2 times"),
        (
            lambda text: text.replace("v_elbow_joint", "x").replace("q_elbow", "v_elbow").replace("x", "q_elbow_joint"),
            "'v_elbow",
        ),
        (lambda text: text.replace("a_elbow_joint", "x"), "no column 'a_elbow_joint'.*; add it or remove all a_\\* columns"),
        (lambda text: _times(text, 1, 1e6), "the motion lasts too long, got 1e\\+06 s"),
        (lambda text: _times(text, 1, 1e300), "the motion lasts too long"),
        (lambda text: _times(text, 1, 1e-300), "check the units of t"),
        (lambda text: _times(text, 9, 180 / np.pi), "'v_shoulder_lift_joint' is not the derivative of 'q_shoulder_lift_joint'"),
        (lambda text: _times(text, 14, -1.0), "'a_shoulder_pan_joint' is not the derivative of 'v_shoulder_pan_joint'"),
        (lambda text: "1,2,3\n4,5,6\n", "the log has no header, expected a first line t,q_<joint>"),
        (lambda text: "", "the log is empty"),
    ],
)
def test_bad_trajectory_files_are_refused(tmp_path: Path, change, message: str) -> None:
    path = random_fourier(Limits.from_robot(UR), 1.0, 3, 1).write(tmp_path / "t.csv", rate=100)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(LogError, match=message):
        read_trajectory(path, UR)


def test_a_recording_is_told_from_a_planned_motion(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    path, t = tmp_path / "motion.csv", np.arange(0.0, 4.0, 0.002)
    q = np.column_stack([0.8 * np.sin(2 * t) ** 3, 0.5 * np.cos(3 * t)])
    noise = 1e-5 * np.random.default_rng(0).standard_normal(q.shape)

    def told(positions: Array, more: tuple[str, ...] = (), every: int = 1) -> str:
        table = np.column_stack([t, positions, *(positions[:, :1] for _ in more)])[::every]
        np.savetxt(path, table, delimiter=",", header=",".join(["t", "q_j1", "q_j2", *more]), comments="")
        return why_recorded(path, read_trajectory(path, robot))

    assert told(q) == told(q, every=100) == ""
    assert told(q * [1, 0] + 1e-16 * noise) == ""  # a joint that stands
    assert "noisy or rounded positions" in told(q + noise)
    assert "noisy or rounded positions" in told(q.round(4))
    assert "'tau_j2'" in told(q, ("tau_j2",))
    assert told(q, ("effort_limit",)) == ""
    planned = random_fourier(Limits.from_robot(robot), 6.0, 4, 0, fill=0.6)
    path.unlink()
    assert why_recorded(path, read_trajectory(planned.write(path), robot)) == ""


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: FourierTrajectory(JOINTS, 0.0, np.zeros(2), np.ones((2, 1)), np.ones((2, 1))), LimitError),
        (lambda: FourierTrajectory(JOINTS, 1.0, np.zeros(2), np.ones((2, 0)), np.ones((2, 0))), LimitError),
        (lambda: FourierTrajectory(JOINTS, 1.0, np.zeros(3), np.ones((2, 1)), np.ones((2, 1))), LimitError),
        (lambda: FourierTrajectory(JOINTS, 1.0, np.zeros(2), np.ones((2, 1)), np.ones((2, 2))), ShapeError),
        (lambda: modified(periods=0), LimitError),
        (lambda: trapezoidal(JOINTS, np.zeros((2, 2)), *np.ones((3, 2))), LimitError),
        (lambda: trapezoidal(JOINTS, np.eye(2), *np.zeros((3, 2))), LimitError),
        (lambda: PiecewisePolynomial(JOINTS, np.array([0.0, 2.0, 1.0]), np.zeros((2, 2, 3))), LimitError),
        (lambda: ramped(modified(), [0, 0], 0.0), LimitError),
        (lambda: random_fourier(Limits.from_robot(UR), 5.0, 1), LimitError),
        (lambda: random_fourier(Limits.from_robot(UR), 5.0, 5, start=np.full(6, 7.0)), LimitError),
        (lambda: modified().times(0.0), LimitError),
    ],
)
def test_nonsense_is_refused(build, error: type[Exception]) -> None:
    with pytest.raises(error):
        build()


# ---- Circles: the frame is really on the path, q, v and a belong together, the unreachable is refused ----

START = np.array([0.2, -1.2, 1.6, -1.9, -1.5, 0.3])


def poses(robot: Robot, frame: str, q: np.ndarray) -> list[pin.SE3]:
    data, out = robot.model.createData(), []
    for row in q:
        pin.framesForwardKinematics(robot.model, data, row)
        out.append(data.oMf[robot.model.getFrameId(frame)].copy())
    return out


@pytest.fixture(scope="module")
def round_trip() -> tuple[PiecewisePolynomial, float]:
    return circle(UR, "tool0", START, radius=0.1, speed=0.5, normal=(0.2, 1.0, 0.4), ramp=0.4)


def test_circle_is_round_at_the_asked_speed(round_trip: tuple[PiecewisePolynomial, float]) -> None:
    motion, off = round_trip
    time = np.linspace(0, motion.duration, 1501)
    q, v, _ = motion.evaluate(time)
    found = poses(UR, "tool0", q)
    place = np.array([pose.translation for pose in found])
    normal = np.array([0.2, 1.0, 0.4]) / np.linalg.norm([0.2, 1.0, 0.4])
    centre = (place.max(axis=0) + place.min(axis=0)) / 2
    np.testing.assert_allclose(np.linalg.norm(place - centre, axis=1), 0.1, atol=1e-5)
    np.testing.assert_allclose((place - place[0]) @ normal, 0, atol=1e-6)
    speed = np.linalg.norm(np.gradient(place, time, axis=0), axis=1)
    assert speed.max() == pytest.approx(0.5, rel=1e-3)
    np.testing.assert_allclose(q[[0, -1]], START[None].repeat(2, 0), atol=1e-9)  # a whole turn comes back
    np.testing.assert_allclose(v[[0, -1]], 0, atol=1e-9)
    np.testing.assert_allclose([pose.rotation for pose in found], found[0].rotation[None].repeat(1501, 0), atol=1e-6)
    assert off < 1e-6


def test_the_unreachable_is_refused_with_time_and_place() -> None:
    with pytest.raises(LimitError, match=r"position \(.*\) m: frame 'tool0' cannot follow the path at t = .* s.*off"):
        circle(UR, "tool0", START, radius=3.0, speed=1.0)
    with pytest.raises(LimitError, match="cannot follow"):  # three joints cannot hold an orientation
        circle(Robot.from_urdf(robot_path("szabo_3r")), "tool", [0.3, -0.6, 1.2], radius=0.05, speed=0.2)


@pytest.mark.parametrize(
    "arguments", [{"frame": "tool"}, {"radius": 0.0}, {"speed": -1.0}, {"normal": (0, 0, 0)}, {"orientation": "sideways"}]
)
def test_impossible_paths_are_refused(arguments: dict) -> None:
    with pytest.raises(LimitError):
        circle(UR, start=START, **{"frame": "tool0", "radius": 0.1, "speed": 0.5, **arguments})


def test_repeating_repeats_and_refuses_what_does_not_close() -> None:
    trajectory = repeated(modified(), 3)
    np.testing.assert_allclose(trajectory.evaluate([1.0])[0], trajectory.evaluate([11.0])[0], atol=1e-12)
    open_ended = fourier(duration=3.0)
    with pytest.raises(LimitError, match="does not end where it starts: the position jumps"):
        repeated(open_ended, 2)
