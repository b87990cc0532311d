"""Torque constants from target torque and target current: a controller written by hand, and a real UR10e."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques
from real_ur10e import CONSTANTS, columns_given, read_logs

from urdf_ident import Drive, Recording, Robot, identify, validate
from urdf_ident.errors import LogError
from urdf_ident.project import parse_project
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_log
from urdf_ident.torque_constants import resolve_gain, torque_constants

pytestmark = pytest.mark.usefixtures("unexamined")

RATE = 100.0  # [Hz]
K = np.array([12.0, 12.0, -7.5])  # [N·m/A]
DIRECT = Drive.build(3)


@pytest.fixture(scope="module")
def robot() -> Robot:
    plumb = [9.81 * np.sin(0.1) * np.sin(-0.2), 9.81 * np.sin(0.1) * np.cos(0.2), -9.81 * np.cos(0.1)]  # along joint 1
    return Robot.from_urdf(arm_urdf("zyx"), gravity=plumb)


def controller_log(robot: Robot, gain=K, *, seed: int = 0, rest: float = 2.0, digits: int = 6, lead: float = 0.0) -> Recording:
    """A controller that feeds forward the rigid torque, and its own friction model where its target moves.

    Standstill, motion, standstill; joint 1 is upright and carries nothing at rest. The targets are logged with so many
    decimals, the currents have noise, and the target velocity leads the logged one [s].
    """
    t, q, v, a = fourier(robot.n, 12.0, RATE, seed)
    fade = np.clip(np.minimum(t, t[-1] - t) / 2.0, 0, 1)
    s, ds = fade**3 * (10 - 15 * fade + 6 * fade**2), np.gradient(fade**3 * (10 - 15 * fade + 6 * fade**2), t)
    a = np.gradient(s[:, None] * v + ds[:, None] * (q - q[0]), t, axis=0)
    v = s[:, None] * v + ds[:, None] * (q - q[0])
    q = q[0] + s[:, None] * (q - q[0])
    v[[0, -1]] = a[[0, -1]] = 0.0
    still = round(rest * RATE)
    q, v, a = (np.vstack([np.repeat(x[:1], still, axis=0), x, np.repeat(x[-1:], still, axis=0)]) for x in (q, v, a))
    t = np.arange(len(q)) / RATE
    zero = np.zeros(robot.n)
    rigid = torques(robot, Truth(zero, zero, zero, zero), q, v, a)
    target_v = np.column_stack([np.interp(t + lead, t, x) for x in v.T])
    model = np.where(np.abs(target_v) > 1e-6, np.sign(target_v) * (4.0 + 8.0 * np.minimum(np.abs(target_v), 0.5)), 0.0)
    target = np.round((rigid + model) / gain, digits)
    real = rigid + 5.0 * np.tanh(v / 0.02) + 6.0 * v
    current = real / gain + 0.02 * np.random.default_rng(seed).standard_normal(v.shape)
    return Recording(
        f"run{seed}",
        robot.joints,
        t,
        q,
        velocity=v,
        effort=current,
        effort_unit="A",
        effort_target=target,
        torque_target=np.round(rigid, digits),
        sha256=f"run{seed}",
    )


def test_constants_at_rest_and_of_a_motor_twin(robot: Robot) -> None:
    found = torque_constants([controller_log(robot)], DIRECT)
    np.testing.assert_allclose(found.gain, K, rtol=5e-4)
    assert (np.abs(found.gain / K - 1) < np.maximum(4 * found.relative_error, 1e-9)).all()
    assert found.origin[1] == found.origin[2] == "at rest"
    assert found.origin[0].startswith("motor twin of j2 (at rest")
    assert found.gain[0] == found.gain[1]
    assert "at rest: j2 12" in found.of(DIRECT).gain_origin


@pytest.mark.parametrize("lead", [-0.004, 0.0, 0.003])
def test_a_joint_without_load_at_rest_or_twin_is_found_in_motion(robot: Robot, lead: float) -> None:
    gain = np.array([4.0, 12.0, 12.0])
    found = torque_constants([controller_log(robot, gain, lead=lead)], DIRECT)
    assert found.origin[0] == "by regression in motion"
    assert found.gain[0] == pytest.approx(4.0, rel=0.01)
    assert abs(found.gain[0] / 4.0 - 1) < 4 * found.relative_error[0]


def test_without_standstill_everything_is_found_in_motion(robot: Robot) -> None:
    log = controller_log(robot)
    moving = log.take(slice(230, len(log) - 230))
    found = torque_constants([moving], DIRECT)
    np.testing.assert_allclose(found.gain, K, rtol=0.02)
    assert not any(text.startswith("at rest") for text in found.origin)


def test_motor_side_constants_are_per_motor(robot: Robot) -> None:
    A = np.array([[50.0, 0, 0], [0, 40.0, 0], [0, 30.0, 30.0]])
    drive = Drive.build(3, reduction=A)
    log = controller_log(robot, np.ones(3), digits=9)
    gain = np.array([0.2, 0.3, 0.25])
    per_motor, real = (np.linalg.solve(A.T, x.T).T / gain for x in (log.torque_target, log.effort))
    friction = np.tanh(log.velocity @ A.T / 0.01) * 0.3 + 0.01 * log.velocity @ A.T  # of the motors, in A
    found = torque_constants([replace(log, effort_target=per_motor + friction, effort=real, effort_side="motor")], drive)
    np.testing.assert_allclose(found.gain, gain, rtol=0.01)
    np.testing.assert_allclose(found.gain[1:], gain[1:], rtol=1e-3)


def test_identify_finds_the_constants_and_says_so(robot: Robot) -> None:
    logs = [controller_log(robot, seed=k) for k in range(3)]
    project = parse_project({"model": {"friction": ["viscous", "coulomb", "offset"]}})
    result = identify(project.build_model(robot), logs[:2], held_out=logs[2:], project=project)
    np.testing.assert_allclose(result.model.drive.gain, K, rtol=5e-4)
    assert result.model.drive.gain_origin.startswith("auto, target torque / target current; motor twin of j2")
    np.testing.assert_allclose(list(result.term_values("Fv").values()), 6.0, rtol=0.03)
    assert validate(result, logs[2:]).entries[0]["relative"] < 0.1


def with_target(log: Recording, j: int, value: float, key: str = "effort_target") -> Recording:
    array = np.array(getattr(log, key))
    array[:, j] = value
    return replace(log, **{key: array})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda log: with_target(log, 1, 0.41), r"target current of j2 is 0.41 throughout.*give drive.gain"),
        (lambda log: with_target(log, 2, 0.0, "torque_target"), r"target torque of j3 is 0 throughout.*torque_target"),
        (lambda log: replace(log, torque_target=None), r"no target torque \(torque_target\).*name both"),
        (lambda log: replace(log, effort_target=1e3 * log.effort_target), r"in another unit.*effort_target"),
        (lambda log: replace(log, torque_target=np.where(log.time[:, None] < 8, 1.0, 1.5) * log.torque_target), r"no constant"),
        (lambda log: log.take(slice(0, 20)), r"too few usable rows"),
        (lambda log: log.take(slice(0, 150)), r"target current of j1 is .* throughout"),
    ],
)
def test_bad_targets_are_refused_with_a_remedy(robot: Robot, change, words: str) -> None:
    with pytest.raises(LogError, match=words):
        resolve_gain(replace(DIRECT, gain_origin="auto"), [change(controller_log(robot))])


def test_a_current_without_targets_asks_for_a_gain(robot: Robot) -> None:
    log = replace(controller_log(robot), effort_target=None, torque_target=None)
    drive = resolve_gain(DIRECT, [log])
    assert drive is DIRECT
    with pytest.raises(LogError, match=r"give drive.gain.*effort_target"):
        prepare_log(log, robot, drive, SignalConfig())


def test_what_is_given_stays(robot: Robot) -> None:
    given = Drive.build(3, gain=[1.0, 2.0, 3.0])
    assert resolve_gain(given, [controller_log(robot)]) is given
    torque = replace(controller_log(robot), effort_unit="N·m")
    assert resolve_gain(DIRECT, [torque]) is DIRECT


def test_real_ur10e_constants_on_every_log(data: Path) -> None:
    """To four digits; joints 1 and 6 carry nothing at rest and take their twins'. Logs of 4 decimals: 2e-4 at joints 4-6."""
    _, logs = read_logs(data, columns_given())
    for part in [[log] for log in logs] + [logs]:
        found = torque_constants(part, Drive.build(6))
        np.testing.assert_allclose(found.gain, CONSTANTS, rtol=3e-4)
        np.testing.assert_allclose(found.gain[:2], 11.976, rtol=2e-5)
        assert found.origin[1] == found.origin[2] == "at rest"
        assert "twin of shoulder_lift_joint (at rest" in found.origin[0]
        assert "twin of wrist_1_joint" in found.origin[5]
    np.testing.assert_allclose(found.gain, CONSTANTS, rtol=1e-4)
    assert found.origin[3] == found.origin[4] == "at rest"
