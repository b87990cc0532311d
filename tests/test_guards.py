"""Guards whose loss no other test would notice: each is met from both sides."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident import Drive, Recording, Robot, Segment
from urdf_ident.errors import LogError
from urdf_ident.friction import SIGN_WIDTH
from urdf_ident.result.scores import score
from urdf_ident.signals.clock import _resample, even_pieces
from urdf_ident.signals.motor_side import joint_side
from urdf_ident.signals.quality.report import assess


def test_an_effort_has_a_dead_zone_where_it_is_exactly_zero_while_its_joint_moves() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.arange(0.0, 10.0, 0.005)
    q = np.column_stack([np.sin(t), np.cos(0.7 * t)])
    noise = 0.05 * np.random.default_rng(0).standard_normal((len(t), 2))
    tau = np.column_stack([5.0 * np.sin(1.3 * t), 3.0 * np.cos(t)]) + noise

    def told(effort: np.ndarray, position: np.ndarray = q) -> list[str | None]:
        report = assess(Recording("log", robot.joints, t, position, effort=effort), robot)
        return [item.joint for item in report.findings if item.id == "effort-dead-zone"]

    def dead(least: float) -> np.ndarray:
        return np.column_stack([tau[:, 0], np.sign(tau[:, 1]) * np.maximum(np.abs(tau[:, 1]) - least, 0.0)])

    assert told(tau) == told(np.round(tau, 2)) == told(np.round(tau)) == told(np.trunc(tau)) == []
    assert told(dead(0.3)) == told(np.round(dead(0.3), 3)) == [robot.joints[1]]
    rests = np.minimum(np.arange(len(t)), 1200)  # the brake holds the arm, and its motors carry nothing
    assert told(np.where(rests[:, None] < 1200, tau, 0.0), q[rests]) == []


def test_coarse_efforts_and_noisy_positions_are_not_taken_for_dead_or_frozen_channels() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.arange(0.0, 10.0, 0.002)
    noise = np.random.default_rng(0).standard_normal((len(t), 4))
    q = np.column_stack([np.sin(t), np.where(t < 4.0, 0.3 * np.cos(2.0 * t), 0.3 * np.cos(8.0))]) + 4e-4 * noise[:, :2]
    tau = np.column_stack([0.8 * np.sin(1.3 * t) + np.sign(np.cos(t)), 3.0 * np.sin(2.0 * t) * (t < 4.0)]) + 0.02 * noise[:, 2:]

    def told(effort: np.ndarray, step: float) -> set[str]:
        report = assess(Recording("log", robot.joints, t, q, effort=np.round(effort / step) * step), robot)
        return {item.id for item in report.findings} & {"effort-dead-zone", "channel-frozen", "frozen-too-long"}

    assert told(tau, 0.2) == told(tau, 0.5) == told(tau, 1e-6) == set()
    held = np.where((t > 5.0) & (t < 6.5), 0.6, tau[:, 0])  # a frozen channel jumps when it resumes
    assert told(np.column_stack([held, tau[:, 1]]), 0.05) == {"channel-frozen"}


def test_an_effort_is_clipped_where_it_stands_at_the_end_of_its_range_while_the_robot_moves() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.arange(0.0, 10.0, 0.01)
    q = np.column_stack([np.sin(t), np.cos(0.7 * t)])
    tau = np.column_stack([5.0 * np.sin(1.3 * t), 3.0 * np.cos(t)])

    def findings(effort: np.ndarray, position: np.ndarray = q) -> dict[str, str]:
        report = assess(Recording("log", robot.joints, t, position, effort=effort), robot)
        return {item.id: item.severity for item in report.findings if item.id in ("effort-clipped", "channel-frozen")}

    assert findings(tau) == {}
    assert findings(np.round(tau, 1)) == {}
    assert findings(np.clip(tau, -4.9, 4.9)) == {"effort-clipped": "warning"}
    for end in (2.0, 0.5):  # nine of ten values are clipped in the second
        assert findings(np.clip(tau, -end, end)) == {"effort-clipped": "refused"}
    for rows in (5, 25, 50):  # logged at a lower rate, an effort has its largest value many times
        assert "effort-clipped" not in findings(np.repeat(tau[::rows], rows, axis=0))
    rests = np.minimum(np.arange(1000), 600)  # stands still where the torque is largest
    assert findings((tau * [1.0, 0.2])[rests], q[rests]).get("effort-clipped") is None


def paired(gap: float) -> float:
    """Largest error of positions on the even grid, where one sample has a near copy that is 1e-3 rad off."""
    time = np.sort(np.arange(0.0, 4.0, 0.02) + 0.004 * np.random.default_rng(0).random(200))
    time = np.insert(time, 101, time[100] + gap)
    q = np.sin(time)
    q[101] += 1e-3
    effort = np.cos(time)
    recording = Recording("log", ("j",), time, q[:, None], effort=effort[:, None])
    (piece,), clock = even_pieces(recording)
    grid = piece.time[0] + np.arange(len(piece)) / clock.rate
    return float(np.abs(piece.position[:, 0] - np.sin(grid)).max())


def test_a_spline_does_not_swing_through_stamps_that_are_nearly_equal() -> None:
    for share in (0.005, 0.05, 0.18):  # of a period
        assert paired(share * 0.02) < 1e-6
    assert paired(0.3 * 0.02) > 5e-4  # a sample of its own: it counts


def test_one_stamp_far_away_is_no_memory_error() -> None:
    time = np.concatenate([np.sort(np.random.default_rng(0).random(100)), [1e10]])
    recording = Recording("log", ("j",), time, np.sin(time)[:, None], effort=np.cos(time)[:, None])
    pieces, _ = even_pieces(recording)
    assert sum(len(piece) for piece in pieces) < 1000  # the far stamp stands behind a gap
    with pytest.raises(LogError, match=r"row 100: .* s between two rows, expected about"):
        _resample(recording, 100.0)


def test_an_error_at_rest_is_no_error_in_motion() -> None:
    v = np.concatenate([np.full(300, 0.5 * SIGN_WIDTH), np.full(300, 1.5 * SIGN_WIDTH)])[:, None]
    zero = np.zeros_like(v)
    part = Segment("log", 0.0, 100.0, zero, v, zero, zero)
    log = SimpleNamespace(segments=(part,), name="log", robot=SimpleNamespace(joints=("j",), prismatic=np.array([False])))
    predicted = np.where(v < SIGN_WIDTH, 3.0, 0.0)
    (found,) = score(log, predicted, 40.0).per_joint  # type: ignore[arg-type]
    assert found["moving_rmse"] < 0.3 < 2.0 < found["rmse"]
    assert pytest.approx(0.02) == SIGN_WIDTH


@pytest.mark.parametrize(("path", "where"), [("logs/run.csv", "logs/run.csv"), ("", "run")])
def test_a_current_without_a_gain_is_refused_by_the_name_of_its_log(path: str, where: str) -> None:
    log = Recording("run", ("j",), np.arange(3.0), np.zeros((3, 1)), effort=np.ones((3, 1)), effort_unit="A", path=path)
    with pytest.raises(LogError) as refused:
        joint_side(log, Drive.build(1))
    assert refused.value.where == where
