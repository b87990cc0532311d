"""Intervals of measured torque against motions that took no part."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from logs import fourier
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter
from test_selection import make_logs, prepared, with_torque

from urdf_ident.errors import ModelError
from urdf_ident.estimation.uncertainty.prediction import LEVELS, HeldOutResidual
from urdf_ident.estimation.uncertainty.uncovered_friction import covered_speeds, seen_speeds, smeared_friction, unseen_friction
from urdf_ident.logs.recording import Recording
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.posterior import Posterior
from urdf_ident.model.robot import Robot
from urdf_ident.motion.point_to_point import trapezoidal
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import Project
from urdf_ident.result.dynamics import intervals
from urdf_ident.result.dynamics.speed_range import HeldOutMotion, errors_at_speeds
from urdf_ident.result.evidence.evidence import SPEEDS, Range
from urdf_ident.result.files.load import load
from urdf_ident.result.identification import Identification
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


def test_motion_beyond_the_low_pass_is_no_error(robot: Robot) -> None:
    """Accelerations at 15 Hz, which the low-pass of both torques at 10 Hz takes away."""
    motions = []
    for seed in range(3):
        t, q, v, a = fourier(robot.n, 12.0, 200.0, seed)
        wave, w = 0.01 * np.sin(2 * np.pi * 15 * t + seed)[:, None], 2 * np.pi * 15
        motions.append((t, q + wave, v + np.gradient(wave, t, axis=0), a - w**2 * wave))
    found = identify(DynamicModel(robot, friction=SIMPLE), with_torque(robot, motions, TRUTH, 0.01))
    assert found.held_out_errors is not None
    assert found.held_out_errors.max() < 0.05


def test_it_widens_beyond_the_trained_speed_and_survives_the_file(ident: Identification, tmp_path) -> None:
    q, a = np.zeros((2, 3)), np.zeros((2, 3))
    top = np.array(ident.prediction["top"])
    ends = ident.torque_prediction_interval(q, np.vstack([top, 3 * top]), a)
    width = ends[:, :, 1] - ends[:, :, 0]
    assert (width[1] > 2.9 * width[0]).all()
    again = load(ident.save(tmp_path / "identification.json"))
    np.testing.assert_allclose(again.torque_prediction_interval(q, np.vstack([top, top]), a)[0], ends[0], rtol=1e-9)
    single = ident.torque_prediction_interval(q[0], top, a[0])
    np.testing.assert_allclose(single, ends[0], rtol=1e-9)


def test_classes_of_speed_and_levels() -> None:
    table = np.broadcast_to(np.array(LEVELS), (1, 3, len(LEVELS))) * np.array([3.0, 1.0, 2.0])[None, :, None]
    residual = HeldOutResidual(10.0, np.array([[0.1, 1.0]]), np.array([2.0]), table, np.zeros(1), 10**9)
    speeds = np.array([[0.0], [-0.5], [1.5], [4.0]])
    reach = residual.reach(speeds, np.zeros_like(speeds), 0.1)[:, 0]
    np.testing.assert_allclose(reach, [2.7, 0.9, 1.8, 3.6], rtol=1e-6)
    turning = residual.reach(speeds, np.full_like(speeds, 50.0), 0.1)[:, 0]  # 1.5 rad/s is 30 ms from a reversal at 50 rad/s²
    np.testing.assert_allclose(turning, [2.7, 2.7, 0.9, 3.6], rtol=1e-6)
    few = replace(residual, blocks=9)
    np.testing.assert_allclose(
        few.reach(np.array([[0.5]]), np.zeros((1, 1)), 0.1), 0.99, atol=1e-9
    )  # 0.9 · (1 + 1/9) = 1: the largest level
    with pytest.raises(ModelError, match="alpha is not between 0 and 1"):
        residual.reach(np.zeros((1, 1)), np.zeros((1, 1)), 1.0)


def test_nothing_held_out_is_no_interval(ident: Identification) -> None:
    blind = replace(ident, prediction={})
    assert not np.isfinite(blind.torque_prediction_interval(np.zeros(3), np.zeros(3), np.zeros(3))).any()
    assert blind.prediction_band == 0.0


def test_friction_that_no_data_show_is_unknown_by_its_own_size(ident: Identification) -> None:
    model, theta = ident.model, ident.theta
    at = {p.name: float(x) for p, x in zip(model.parameters, theta, strict=True)}
    dry, viscous = at["Fc_j1"], at["Fv_j1"]
    seen = np.tile([[0.0, 1.0], [0.0, 1.0]], (3, 1, 1))
    seen[0] = [[0.0, 0.0], [0.2, 1.0]]  # j1 moves forwards only, and never slower than 0.2 rad/s
    v = np.zeros((6, 3))
    v[:, 0] = [-0.5, 0.5, 1.5, 0.1, -1.5, 5.0]
    still = np.zeros_like(v)
    width = unseen_friction(model, theta, seen, still, v, still)
    beyond = [max(0.5 * viscous * (x - 1), 0.2 * (dry + viscous) * (x - 1) ** 2 / x) for x in (1.5, 5.0)]
    expected = [dry + 0.5 * viscous, 0.0, beyond[0], 0.5 * (dry + 0.2 * viscous), dry + 1.5 * viscous, beyond[1]]
    np.testing.assert_allclose(width[:, 0], expected, rtol=0.02, atol=1e-9)
    np.testing.assert_allclose(width[:, 1:], 0.0, atol=1e-9)
    flat = np.where([p.symbol == "Fv" for p in model.parameters], 0.0, theta)
    width = unseen_friction(model, flat, seen, still, v, still)
    np.testing.assert_allclose(width[[2, 5], 0], [0.2 * 0.25 / 1.5 * dry, 0.2 * 16 / 5 * dry], rtol=0.02)


def test_speeds_that_were_seen_by_direction() -> None:
    rng = np.random.default_rng(0)
    v = np.column_stack([rng.uniform(0.2, 1.0, 2000), rng.uniform(-1.0, 1.0, 2000), np.zeros(2000)])
    v[:2, 0] = -0.01  # a quiver is no motion backwards
    seen = seen_speeds([v[:700], v[700:]])
    np.testing.assert_allclose(seen[0], [[0.0, 0.0], [0.2, 1.0]], atol=0.01)
    np.testing.assert_allclose(seen[1], [[0.0, 1.0], [0.0, 1.0]], atol=0.01)
    np.testing.assert_array_equal(seen[2], np.zeros((2, 2)))
    back = np.array([[[0.1, 0.5], [0.0, 0.0]], [[0.3, 2.0], [0.0, 0.9]], [[0.0, 0.0], [0.0, 0.0]]])
    both = covered_speeds([np.round(seen, 1), back])
    np.testing.assert_allclose(both, [[[0.1, 0.5], [0.2, 1.0]], [[0.0, 2.0], [0.0, 1.0]], np.zeros((2, 2))])


def test_the_smeared_step_is_that_of_the_low_pass(ident: Identification) -> None:
    """A joint that turns back at a constant acceleration: filtered friction against the model's, sample by sample."""
    rate, turn = 1000.0, 20.0
    t = np.arange(-1000, 1001) / rate
    v, a = np.zeros((len(t), 3)), np.zeros((len(t), 3))
    v[:, 0], a[:, 0] = turn * t, turn
    theta = np.where([p.name == "Fc_j1" for p in ident.model.parameters], 2.0, 0.0)
    torque = ident.model.torque(theta, np.zeros_like(v), v, a)[:, 0]
    missed = np.abs(lowpass(np.sign(t) * 2.0, rate, 10.0) - torque)
    width = smeared_friction(ident.model, theta, np.zeros_like(v), v, a, 10.0)
    near = (np.abs(v[:, 0]) > 0.1) & (np.abs(t) < 0.3)  # where the model's own sign has turned round
    np.testing.assert_allclose(width[near, 0], missed[near], atol=0.06)
    assert missed[near].max() > 0.5
    assert missed[np.abs(t) > 0.03].max() > 0.2  # the overshoot
    assert not width[:, 1:].any()


def test_friction_that_reverses_over_a_displacement_is_smeared_too(robot: Robot) -> None:
    """Presliding friction has memory: along one path it does not depend on the sign of the velocity."""
    model = DynamicModel(robot, friction=["viscous", "presliding", "offset"])
    rate, turn = 1000.0, 200.0
    t = np.arange(-1000, 1001) / rate
    q, v, a = np.zeros((3, len(t), 3))
    q[:, 0], v[:, 0], a[:, 0] = 0.5 * turn * t**2, turn * t, turn
    theta = np.where([p.name == "Fp_j1" for p in model.parameters], 2.0, 0.0)
    torque = model.torque(theta, q, v, a)[:, 0]
    assert np.ptp(torque) == pytest.approx(4.0)
    missed = np.abs(lowpass(torque, rate, 10.0) - torque)
    width = smeared_friction(model, theta, q, v, a, 10.0)
    near = (np.abs(t) > 0.003) & (np.abs(t) < 0.3)  # friction reverses within 2 ms
    np.testing.assert_allclose(width[near, 0], missed[near], atol=0.12)
    assert missed[near].max() > 0.5
    seen = np.array([[[0.0, 0.0], [0.0, 9.0]], [[0.0, 1.0]] * 2, [[0.0, 1.0]] * 2])  # j1 moves forwards only
    unseen = unseen_friction(model, theta, seen, q, v, a)[:, 0]
    np.testing.assert_allclose(unseen[v[:, 0] < 0], 2.0)
    np.testing.assert_allclose(unseen[(v[:, 0] > 0) & (v[:, 0] < 9)], 0.0)


def test_the_smeared_step_lies_anywhere_between_two_samples(ident: Identification) -> None:
    """At 100 Hz the filter does not see when within a period a joint turned back."""
    rate, turn = 100.0, 20.0
    theta = np.where([p.name == "Fc_j1" for p in ident.model.parameters], 2.0, 0.0)
    missing = []
    for phase in np.linspace(0.02, 0.98, 25):
        t = (np.arange(-100, 100) + phase) / rate
        v, a = np.zeros((len(t), 3)), np.zeros((len(t), 3))
        v[:, 0], a[:, 0] = turn * t, turn
        missed = np.abs(lowpass(np.sign(t) * 2.0, rate, 10.0) - np.sign(t) * 2.0)
        near = np.abs(t) < 0.03  # main lobe of the step response
        wide = partial(smeared_friction, ident.model, theta, np.zeros_like(v), v, a, 10.0)
        turned = near & (np.abs(v[:, 0]) > 0.1)  # where the model's own sign has turned round
        missing.append([(missed - wide(period)[:, 0])[turned].max() for period in (1 / rate, 0.0)])
    assert np.max(missing, axis=0)[0] < 0.06
    assert np.max(missing, axis=0)[1] > 0.3
    assert ident.prediction["period"] == pytest.approx(1 / 200)


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
    blind = replace(ident, prediction={**ident.prediction, "seen": None}).torque_prediction_interval(q, v, a)[:, 2]
    assert ((blind[:, 0] <= measured) & (measured <= blind[:, 1]))[near].mean() < 0.8


def moves_with_dwells(seed: int, rate: float = 200.0) -> tuple[np.ndarray, ...]:
    """Gentle moves from pose to pose, with rests: t (N,), q, v, a (N, 3)."""
    rng = np.random.default_rng(seed)
    path = trapezoidal(("j1", "j2", "j3"), rng.uniform(-1.2, 1.2, (10, 3)), *np.array([[0.8], [1.0], [4.0]]), dwell=0.6)
    t = np.arange(int(path.duration * rate)) / rate
    return t, *path.evaluate(t)


def test_logs_of_gentle_moves_with_dwells_hold_reversals_in_faster_motion(robot: Robot) -> None:
    """Starts and stops from rest are no reversals: the smeared step of friction is larger there than in any held-out sample."""
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    ident = identify(model, with_torque(robot, [moves_with_dwells(seed) for seed in range(2)], TRUTH, 0.02))
    t, q, v, a = fourier(3, 20.0, 200.0, 7, amplitude=1.5)
    (log,) = with_torque(robot, [(t, q, v, a)], TRUTH, 0.02)
    ends = ident.torque_prediction_interval(q, v, a)
    measured = lowpass(np.asarray(log.effort), 200.0, ident.prediction_band)
    inside = (ends[..., 0] <= measured) & (measured <= ends[..., 1])
    near = np.abs(v) < 0.1 * np.percentile(np.abs(v), 95, axis=0)
    assert inside[near].mean() > 0.88
    assert inside.mean() > 0.93


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


def test_a_rotor_that_slow_logs_do_not_show_is_not_negative(robot: Robot) -> None:
    """Quantiles of the torque over draws from the posterior, those with a negative rotor inertia of the joint left out."""
    slow = slower(fourier(3, 20.0, 200.0, 3), 20, 60.0)
    ident = identify(DynamicModel(robot, friction=SIMPLE), [with_rotors(robot, slow, 0.1)])
    a = np.diag([8.0, -8.0, 8.0])
    still, rotors = np.zeros_like(a), [k for k, parameter in enumerate(ident.model.parameters) if parameter.rotor]
    prior, (narrow, wide) = ident.prior.without_first_fit, intervals._variance_factors(ident)
    posterior = Posterior(ident.factor[:, :-1], prior, wide / narrow)
    covariance, mean = narrow * posterior.covariance, posterior.mean(ident.factor[:, -1])
    drawn = np.random.default_rng(0).multivariate_normal(mean, covariance, 100_000)
    rows = ident.model.torque(np.eye(len(ident.theta)), still, still, a)
    shift, below, above = intervals._parameter_reach(ident, rows, np.zeros(3), 0.05)
    ends = ident.torque_prediction_interval(still, still, a) - ident.torque(still, still, a)[..., None]
    for j in range(3):
        kept = drawn[drawn[:, rotors[j]] >= 0]
        assert 0.3 < len(kept) / len(drawn) < 0.7
        low, middle, high = np.quantile((kept - ident.theta) @ rows[j, j], [0.025, 0.5, 0.975])
        assert shift[j, j] == pytest.approx(middle, abs=0.02 * (high - low))
        assert np.sqrt(below[j, j]) == pytest.approx(middle - low, abs=0.03 * (high - low))
        assert np.sqrt(above[j, j]) == pytest.approx(high - middle, abs=0.03 * (high - low))
        less, more = np.abs(ends[j, j])[:: int(np.sign(a[j, j]))]
        assert more > 2 * less


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
    assert ident.evidence is not None
    errors = np.array(list(ident.evidence.at_speeds.values()))
    reached = np.min(np.percentile(np.abs(motions[1][2]), 95, axis=0) / robot.limit("velocity"))
    tested = np.array(SPEEDS) <= reached
    assert 2 <= tested.sum() < len(SPEEDS)
    measured = np.array([joint["relative"] for joint in ident.validation[0]["per_joint"]])
    np.testing.assert_allclose(errors[:, tested], np.tile(measured[:, None], tested.sum()))
    trained = Range.of([part for log in prepared(model, [slow]) for part in log.segments])
    alone = np.array(list(errors_at_speeds(ident, trained).values()))
    assert alone.mean(axis=0)[-1] > 0.15
    assert np.all(errors[:, -1] < alone[:, -1])


def test_a_held_out_log_that_is_predicted_badly_counts_up_to_its_speed(ident: Identification, robot: Robot, logs: list) -> None:
    trained = Range.of([part for log in prepared(ident.model, logs[:3]) for part in log.segments])
    alone = np.array(list(errors_at_speeds(ident, trained).values()))
    speed, seen = 0.35 * robot.limit("velocity"), np.array(ident.prediction["seen"])
    missed = np.array([0.3, 0.2, 0.1])
    bad = HeldOutMotion(np.zeros((1, len(ident.theta) + 1)), speed, seen, missed)
    good = replace(bad, relative=np.full(3, 0.01), speed=np.append(speed[:2], 0.15 * robot.limit("velocity")[2]))
    found = np.array(list(errors_at_speeds(ident, trained, [good, bad]).values()))
    tested = np.array(SPEEDS) <= 0.35
    np.testing.assert_allclose(found[:, tested], np.tile(missed[:, None], tested.sum()))
    np.testing.assert_allclose(found[:, ~tested], alone[:, ~tested])
    found = np.array(list(errors_at_speeds(ident, trained, [good]).values()))
    np.testing.assert_allclose(found[:, np.array(SPEEDS) <= 0.15], 0.01)  # the slowest joint counts
    np.testing.assert_allclose(found[:, np.array(SPEEDS) > 0.15], alone[:, np.array(SPEEDS) > 0.15])


def test_short_logs_have_imprecise_data_only_as_far_as_their_parameters_do_not_explain_the_held_out_error(
    ident: Identification,
) -> None:
    """Whitened squared errors of 5 in 5 folds: 4 more than noise, of which the parameters alone make 2, 4, 0.1 or 100."""
    tried = [{"weight": ident.prior_weight, "held_out": np.sqrt(5.0)}]

    def precision(**folds: float) -> float:
        known = {**ident.solver, "weights_tried": tried, "folds": folds}
        return intervals._variance_factors(replace(ident, solver=known))[1] / 10.0

    wider = (2.5706 / 1.96) ** 2  # Student's t, five degrees of freedom
    assert precision(count=5, variance=2.0) == pytest.approx(2.0 * wider, rel=1e-3)
    assert precision(count=5, variance=4.0) == pytest.approx(wider, rel=1e-3)
    assert precision(count=5, variance=0.1) == pytest.approx(5.0)  # no more than if all were noise
    assert precision(count=5, variance=100.0) == 1.0
    assert precision() == pytest.approx(5.0)  # not recorded


def test_what_holds_the_parameters_back_from_the_data_is_in_the_intervals(logs: list, ident: Identification) -> None:
    """A rotor inertia that is exported ten times too large, as a tight prior or a constraint might make it."""
    k = next(k for k, parameter in enumerate(ident.model.parameters) if parameter.rotor and parameter.owner == "j2")
    theta = ident.theta.copy()
    theta[k] *= 10.0
    moved = replace(ident, theta=theta)
    (log,) = prepared(ident.model, logs[3:])
    (part,) = log.segments
    measured = lowpass(part.tau, part.rate, ident.prediction_band)
    ends = moved.torque_prediction_interval(part.q, part.v, part.a)
    assert ((ends[..., 0] <= measured) & (measured <= ends[..., 1])).mean() > 0.95
    added = moved.torque(part.q, part.v, part.a) - ident.torque(part.q, part.v, part.a)
    before = np.ptp(ident.torque_prediction_interval(part.q, part.v, part.a), axis=-1) / 2
    assert np.all(np.ptp(ends, axis=-1) / 2 < before + np.abs(added) + 0.2)


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
    assert found.held_out_errors.mean() > 2 * found.prediction["unlimited"].mean()
    assert found.verdict.level != "good"
    assert "constraints-contradicted" in {reason.id for reason in found.verdict.judgements}
    ends = found.torque_prediction_interval(part.q, part.v, part.a)
    assert ((ends[..., 0] <= measured) & (measured <= ends[..., 1])).mean() > 0.9
    free = identify(model, logs[:3])
    assert "constraints-contradicted" not in {reason.id for reason in free.verdict.judgements}
    assert free.held_out_errors.mean() < 0.6 * found.held_out_errors.mean()
