"""Circles: the frame is really on the path, q, v and a belong together, the unreachable is refused."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from urdf_ident.errors import LimitError
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.robot import Robot
from urdf_ident.motion.cartesian import CartesianTrajectory, circle

UR = Robot.from_urdf(robot_path("ur10e"))
START = np.array([0.2, -1.2, 1.6, -1.9, -1.5, 0.3])


def poses(robot: Robot, frame: str, q: np.ndarray) -> list[pin.SE3]:
    data, out = robot.model.createData(), []
    for row in q:
        pin.framesForwardKinematics(robot.model, data, row)
        out.append(data.oMf[robot.model.getFrameId(frame)].copy())
    return out


@pytest.fixture(scope="module")
def round_trip() -> CartesianTrajectory:
    return circle(UR, "tool0", START, radius=0.1, speed=0.5, normal=(0.2, 1.0, 0.4), ramp=0.4)


def test_circle_is_round_at_the_asked_speed(round_trip: CartesianTrajectory) -> None:
    time = np.linspace(0, round_trip.duration, 1501)
    q, v, _ = round_trip.evaluate(time)
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
    assert round_trip.path_error < 1e-6


def test_velocity_is_the_one_the_jacobian_asks_for(round_trip: CartesianTrajectory) -> None:
    time = np.linspace(0.1, round_trip.duration - 0.1, 7)
    q, v, a = round_trip.evaluate(time)
    data, h = UR.model.createData(), 1e-5
    for k, t in enumerate(time):
        jacobian = pin.computeFrameJacobian(
            UR.model, data, q[k], UR.model.getFrameId("tool0"), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        wanted = (round_trip.path(t + h) - round_trip.path(t - h)) / (2 * h)
        np.testing.assert_allclose(jacobian @ v[k], [*wanted, 0, 0, 0], atol=2e-5)
    slope = (round_trip.evaluate(time + h)[1] - round_trip.evaluate(time - h)[1]) / (2 * h)
    np.testing.assert_allclose(a, slope, atol=1e-6)


def test_three_joints_follow_a_position() -> None:
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    trajectory = circle(robot, "tool", [0.3, -0.6, 1.2], radius=0.05, speed=0.2, orientation="free", turns=2)
    place = [pose.translation for pose in poses(robot, "tool", trajectory.evaluate([0.7, 1.9])[0])]
    np.testing.assert_allclose(place, [trajectory.path(0.7), trajectory.path(1.9)], atol=1e-6)


def test_a_short_path_is_all_ramp() -> None:
    trajectory = circle(UR, "tool0", START, radius=0.1, speed=0.5, turns=0.1, ramp=0.5)  # 63 mm, an eighth of a second
    place = np.array([p.translation for p in poses(UR, "tool0", trajectory.evaluate([0.0, trajectory.duration])[0])])
    assert np.linalg.norm(place[1] - place[0]) == pytest.approx(2 * 0.1 * np.sin(0.1 * np.pi), abs=1e-8)


def test_the_unreachable_is_refused_with_time_and_place() -> None:
    with pytest.raises(LimitError, match=r"position \(.*\) m: frame 'tool0' cannot follow the path at t = .* s.*off"):
        circle(UR, "tool0", START, radius=3.0, speed=1.0)
    with pytest.raises(LimitError, match="cannot follow"):  # three joints cannot hold an orientation
        circle(Robot.from_urdf(robot_path("szabo_3r")), "tool", [0.3, -0.6, 1.2], radius=0.05, speed=0.2)


@pytest.mark.parametrize(
    "arguments", [{"frame": "tool"}, {"radius": 0.0}, {"speed": -1.0}, {"normal": (0, 0, 0)}, {"orientation": "sideways"}]
)
def test_nonsense_is_refused(arguments: dict) -> None:
    with pytest.raises(LimitError):
        circle(UR, start=START, **{"frame": "tool0", "radius": 0.1, "speed": 0.5, **arguments})
