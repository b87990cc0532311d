"""Intervals of measured torque against motions that took no part."""

from dataclasses import replace

import numpy as np
import pytest
from logs import fourier
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter
from test_selection import make_logs, prepared, with_torque

from urdf_ident import DynamicModel, Identification, Project, Recording, Robot, identify, load
from urdf_ident.result.evidence import SPEEDS, Range
from urdf_ident.result.intervals import errors_at_speeds
from urdf_ident.signals.filters import lowpass

pytestmark = pytest.mark.usefixtures("unexamined")

TRUTH = [{"viscous": 3.0, "coulomb": 2.0}, {"viscous": 4.0, "coulomb": 2.0}, {"viscous": 0.5, "coulomb": 0.6, "offset": 0.4}]

SIMPLE = ["viscous", "coulomb", "offset"]


@pytest.fixture(scope="module")
def logs(robot: Robot) -> list:
    return make_logs(robot, TRUTH, 4, noise=0.1)


@pytest.fixture(scope="module")
def ident(robot: Robot, logs: list) -> Identification:
    return identify(DynamicModel(robot, friction=SIMPLE), logs[:3])


def test_the_interval_holds_measured_torque_where_that_of_parameters_does_not(logs: list, ident: Identification) -> None:
    (log,) = prepared(ident.model, logs[3:])
    (part,) = log.segments
    ends = ident.torque_prediction_interval(part.q, part.v, part.a)
    measured = lowpass(part.tau, part.rate, ident.prediction_band)
    inside = (ends[..., 0] <= measured) & (measured <= ends[..., 1])
    assert (inside.mean(axis=0) > 0.9).all()
    assert (inside.mean(axis=0) < 0.995).all()
    narrow = ident.torque_interval(part.q, part.v, part.a)
    assert ((narrow[..., 0] <= measured) & (measured <= narrow[..., 1])).mean() < 0.8
    half = ident.torque_prediction_interval(part.q, part.v, part.a, alpha=0.5)
    share = ((half[..., 0] <= measured) & (measured <= half[..., 1])).mean()
    assert 0.4 < share < 0.68


def test_it_widens_beyond_the_trained_speed_and_survives_the_file(ident: Identification, tmp_path) -> None:
    q, a = np.zeros((2, 3)), np.zeros((2, 3))
    assert ident.prediction is not None
    top = ident.prediction.top
    ends = ident.torque_prediction_interval(q, np.vstack([top, 3 * top]), a)
    width = ends[:, :, 1] - ends[:, :, 0]
    assert (width[1] > 2.9 * width[0]).all()
    again = load(ident.save(tmp_path / "identification.json"))
    np.testing.assert_allclose(again.torque_prediction_interval(q, np.vstack([top, top]), a)[0], ends[0], rtol=1e-9)
    single = ident.torque_prediction_interval(q[0], top, a[0])
    np.testing.assert_allclose(single, ends[0], rtol=1e-9)


def test_logs_of_one_way_joints_hold_reversals_of_another_motion(robot: Robot) -> None:
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    motions = []
    for seed in range(2):
        t, q, v, a = fourier(3, 20.0, 200.0, seed)
        q[:, 2], v[:, 2], a[:, 2] = 0.3 * t - 3.0 + 0.05 * np.sin(2 * t), 0.3 + 0.1 * np.cos(2 * t), -0.2 * np.sin(2 * t)
        motions.append((t, q, v, a))
    ident = identify(model, with_torque(robot, motions, TRUTH, 0.05))
    t, q, v, a = fourier(3, 20.0, 200.0, 7)
    (log,) = with_torque(robot, [(t, q, v, a)], TRUTH, 0.05)
    ends = ident.torque_prediction_interval(q, v, a)[:, 2]
    measured = lowpass(np.asarray(log.effort), 200.0, ident.prediction_band)[:, 2]
    inside = (ends[:, 0] <= measured) & (measured <= ends[:, 1])
    back, near = v[:, 2] < -0.05, np.abs(v[:, 2]) < 0.05
    assert inside[back].mean() > 0.88
    assert inside[near].mean() > 0.88
    assert ident.prediction is not None
    known = replace(ident.prediction, seen=np.broadcast_to([1e-3, 9.0], (3, 2, 2)))
    blind = replace(ident, prediction=known).torque_prediction_interval(q, v, a)[:, 2]
    assert ((blind[:, 0] <= measured) & (measured <= blind[:, 1]))[near].mean() < 0.8


def with_rotors(robot: Robot, motion: tuple[np.ndarray, ...], noise: float) -> Recording:
    """A log of an arm whose reflected rotor inertia is of the size of its links'."""
    (log,) = with_torque(robot, [motion], TRUTH, noise)
    return replace(log, effort=np.asarray(log.effort) + np.array([1.5, 1.5, 0.4]) * motion[3])


def slower(motion: tuple[np.ndarray, ...], times: float, seconds: float) -> tuple[np.ndarray, ...]:
    """The motion stretched in time, at 50 Hz."""
    t, (q0, v0, a0) = np.arange(0, seconds, 0.02), motion[1:]
    return (t, *(CubicSpline(times * motion[0], x)(t) for x in (q0, v0 / times, a0 / times**2)))


def test_slow_logs_leave_rotor_inertia_open_and_the_intervals_say_so(robot: Robot, tmp_path) -> None:
    """A tenth of the speed has a hundredth of the acceleration: no sample shows the rotors that faster motion turns."""
    slow = slower(fourier(3, 20.0, 200.0, 3), 10, 60.0)
    ident = identify(DynamicModel(robot, friction=SIMPLE), [with_rotors(robot, slow, 0.02)])
    rotors = [k for k, parameter in enumerate(ident.model.parameters) if parameter.rotor]
    low, high = ident.interval()[rotors].T
    truth = np.array([1.6, 1.6, 0.5])
    assert np.all((low <= truth) & (truth <= high))
    t, q, v, a = fourier(3, 20.0, 200.0, 7)
    judge = with_rotors(robot, (t, q, v, a), 0.02)
    measured = lowpass(np.asarray(judge.effort), 200.0, ident.prediction_band)
    ends = ident.torque_prediction_interval(q, v, a)
    inside = (ends[..., 0] <= measured) & (measured <= ends[..., 1])
    assert inside.mean() > 0.93
    assert np.median(ends[..., 1] - ends[..., 0]) < 12 * np.std(measured - ident.torque(q, v, a))
    assert "speed-untested" in {reason.id for reason in ident.verdict.judgements}
    known = load(ident.save(tmp_path / "identification.json")).evidence
    assert known is not None
    errors = np.array(list(known.at_speeds.values())).mean(axis=0)
    true = np.sqrt(np.mean((measured - ident.torque(q, v, a)) ** 2, axis=0) / np.mean(measured**2, axis=0)).mean()
    assert errors[0] < errors[-1]
    assert errors[-1] > max(true, 0.15)


def test_a_fast_held_out_log_that_is_predicted_well_is_a_test_at_its_speed(robot: Robot) -> None:
    """Its measured error replaces the expected one up to its speed, and its samples narrow what is expected beyond."""
    model = DynamicModel(robot, friction=SIMPLE)
    motions = slower(fourier(3, 20.0, 200.0, 3), 10, 40.0), fourier(3, 10.0, 200.0, 7)
    slow, fast = (
        replace(log, name=name, sha256=name)
        for name, motion in zip(("slow", "fast"), motions, strict=True)
        for log in with_torque(robot, [motion], TRUTH, 0.02)
    )
    ident = identify(model, [slow], held_out=[fast])
    assert "speed-untested" not in {reason.id for reason in ident.verdict.judgements}
    errors = np.array(list(ident.evidence.at_speeds.values()))
    reached = np.min(np.percentile(np.abs(motions[1][2]), 95, axis=0) / robot.limit("velocity"))
    tested = np.array(SPEEDS) <= reached
    assert 2 <= tested.sum() < len(SPEEDS)
    measured = np.array([joint["relative"] for joint in ident.validation[0]["per_joint"]])
    np.testing.assert_allclose(errors[:, tested], np.tile(measured[:, None], tested.sum()))
    trained = Range.of([part for log in prepared(model, [slow]) for part in log.segments])
    assert ident.prediction is not None
    alone = np.array(list(errors_at_speeds(ident, ident.prediction, trained).values()))
    assert alone.mean(axis=0)[-1] > 0.15
    assert np.all(errors[:, -1] < alone[:, -1])


def test_friction_that_builds_up_in_time_has_its_state_along_a_motion_and_is_unknown_of_samples(
    robot: Robot, logs: list
) -> None:
    """Drag of 3 N·m that rises within 0.5 s after each reversal of the last joint."""
    towards = [np.tanh(np.gradient(log.position[:, 2], log.time) / 0.02) for log in logs]
    share = 1 - np.exp(-np.median(np.diff(logs[0].time)) / 0.5)
    drag = [lfilter([share], [1, share - 1], sign) for sign in towards]
    efforts = [log.effort + 3.0 * np.outer(z, [0, 0, 1]) for log, z in zip(logs, drag, strict=True)]
    lagging = [replace(log, effort=effort) for log, effort in zip(logs, efforts, strict=True)]
    model = DynamicModel(robot, friction={joint: [*SIMPLE, *["relaxing"] * (joint == "j3")] for joint in robot.joints})
    found = identify(model, lagging[:3], held_out=lagging[3:])
    held = [joint["held"] for joint in found.validation[0]["per_joint"]]
    assert min(held) > 0.9
    (log,) = prepared(found.model, lagging[3:])
    (part,) = log.segments
    measured = lowpass(part.tau, part.rate, found.prediction_band)[:, 2]
    inside, width = {}, {}
    for rate in (0.0, part.rate):
        low, high = found.torque_prediction_interval(part.q, part.v, part.a, rate=rate)[:, 2].T
        inside[rate], width[rate] = np.mean((low <= measured) & (measured <= high)), np.mean(high - low)
    assert min(inside.values()) > 0.9
    assert width[part.rate] < 0.4 * width[0.0]


def test_constraints_that_contradict_the_data_are_in_the_held_out_error(robot: Robot, logs: list) -> None:
    """A total mass that is far too small: the exported model is what is judged."""
    model = DynamicModel(robot, friction=SIMPLE)
    wrong = Project.model_validate({"consistency": {"total_mass": [1.6, 1.8]}})
    found = identify(model, logs[:3], project=wrong)
    (log,) = prepared(found.model, logs[3:])
    (part,) = log.segments
    measured = lowpass(part.tau, part.rate, found.prediction_band)
    error = np.sqrt(np.mean((measured - found.torque(part.q, part.v, part.a)) ** 2, axis=0) / np.mean(measured**2, axis=0))
    assert found.held_out_errors.mean() == pytest.approx(error.mean(), rel=0.3)
    assert found.held_out_errors.mean() > 2 * found.prediction.unlimited.mean()
    assert found.verdict.level != "good"
    assert "constraints-contradicted" in {reason.id for reason in found.verdict.judgements}
    ends = found.torque_prediction_interval(part.q, part.v, part.a)
    assert ((ends[..., 0] <= measured) & (measured <= ends[..., 1])).mean() > 0.9
    free = identify(model, logs[:3])
    assert "constraints-contradicted" not in {reason.id for reason in free.verdict.judgements}
    assert free.held_out_errors.mean() < 0.6 * found.held_out_errors.mean()
