"""Residual networks against functions that are known, and the online model against the regressor."""

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident import Drive, DynamicModel, ElasticModel, Recording, Robot
from urdf_ident.compensation.online import OnlineModel
from urdf_ident.compensation.residual import KINDS, GearRipple, Residual, fit_gear_ripple, fit_residual
from urdf_ident.errors import EstimationError, MissingExtraError, ModelError
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_log

JOINTS = ("a", "b")


def surface(d, rate):
    """A smooth residual [N·m] of deformation [rad] and rate [rad/s]."""
    return 2.0 * np.tanh(rate / 4e-3) + 1.5 * np.sin(d / 6e-4)


def wandering(seed: int, rows: int = 1500) -> np.ndarray:
    """Deformations and their rates that fill an area: sums of incommensurate waves."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows) / 25.0
    w, phase = rng.uniform(0.8, 6.0, (6, 2)), rng.uniform(0, 6, (6, 2))
    angle = t[:, None, None] * w + phase
    return 5e-4 * np.stack([np.sin(angle).sum(axis=1), (w * np.cos(angle)).sum(axis=1)], axis=-1)


def networks(kind: str, noise: float = 0.1) -> Residual:
    inputs = wandering(0)
    torque = surface(inputs[..., 0], inputs[..., 1])
    return fit_residual(inputs, torque + noise * np.random.default_rng(1).standard_normal(torque.shape), JOINTS, kind=kind)


def within(residual: Residual, inputs: np.ndarray) -> np.ndarray:
    """Which samples are inside the training domain of each joint's network."""
    inside = []
    for j, network in enumerate(residual.networks):
        z = (inputs[:, j] - network.centre) / network.scale
        inside.append((z @ network.domain.normals.T + network.domain.offsets <= 0).all(axis=1))
    return np.column_stack(inside)


@pytest.fixture(scope="module", params=KINDS)
def residual(request: pytest.FixtureRequest) -> Residual:
    return networks(request.param)


def test_it_finds_a_known_function_on_data_not_seen(residual: Residual) -> None:
    inputs = wandering(7)
    truth = surface(inputs[..., 0], inputs[..., 1])
    inside = within(residual, inputs)
    assert inside.mean() > 0.8
    error = np.sqrt(np.mean((residual.torque(inputs[..., 0], inputs[..., 1]) - truth)[inside] ** 2))
    assert error < 0.25 * np.sqrt(np.mean(truth[inside] ** 2))
    assert min(residual.explained.values()) > 0.85


def test_noise_alone_is_not_learnt() -> None:
    noise = np.random.default_rng(3).standard_normal((1500, 2))
    for kind in KINDS:
        found = fit_residual(wandering(0), noise, JOINTS, kind=kind)
        assert found.networks == (None, None)
        assert not found.torque(*np.moveaxis(wandering(1), -1, 0)).any()


def test_it_is_zero_outside_the_training_hull(residual: Residual) -> None:
    for far in ([5e-2, 0.0], [0.0, 1.0], [-5e-2, -1.0]):
        torque = residual.torque(np.full(2, far[0]), np.full(2, far[1]))
        assert np.array_equal(torque, np.zeros(2))


def test_it_is_reloaded_to_the_last_bit(residual: Residual) -> None:
    ripple = GearRipple(JOINTS, np.full(2, 100.0), np.array([1.0, 2.0]), np.full((2, 2), 1e-5), np.full((2, 2), -2e-5))
    kept = replace(residual, ripple=ripple)
    again = Residual.from_dict(json.loads(json.dumps(kept.as_dict())))
    apart = np.moveaxis(wandering(4), -1, 0)
    assert np.array_equal(kept.torque(*apart), again.torque(*apart))
    motion = np.random.default_rng(0).standard_normal((2, 1500, 2))
    assert np.array_equal(kept.read(*motion, *apart), again.read(*motion, *apart))


def test_wrong_use_is_named() -> None:
    with pytest.raises(EstimationError, match="did you mean 'gmr'"):
        fit_residual(wandering(0), np.zeros((1500, 2)), JOINTS, kind="gmm")
    with pytest.raises(EstimationError, match="too few samples"):
        fit_residual(wandering(0, 50), np.zeros((50, 2)), JOINTS)


def test_a_mixture_without_scikit_learn_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.mixture", None)
    inputs = wandering(0)
    with pytest.raises(MissingExtraError, match=r"urdf-ident\[residual\]"):
        fit_residual(inputs, surface(inputs[..., 0], inputs[..., 1]), JOINTS, kind="gmr")


def geared_log(amplitude: float) -> Recording:
    rng, t = np.random.default_rng(0), np.arange(10000) / 250.0
    q = np.column_stack([1.2 * np.sin(0.5 * t), 0.8 * np.cos(0.7 * t)])
    apart = 8e-4 * np.column_stack([np.cos(0.5 * t) ** 3, np.sin(0.9 * t)])
    theta = q + apart + amplitude * np.sin(2 * 80.0 * (q + apart) + 0.6)
    noisy = q + 3e-6 * rng.standard_normal(q.shape)
    return Recording("geared", JOINTS, t, noisy, effort=np.ones_like(q), motor_position=80.0 * theta)


def two_joint_robot() -> Robot:
    return Robot.from_urdf(arm_urdf("zy").replace('"j1"', '"a"').replace('"j2"', '"b"'))


def test_kinematic_error_is_found_and_taken_off() -> None:
    robot, drive = two_joint_robot(), Drive.build(2, reduction=[80.0, 80.0])
    log = geared_log(5e-5)
    prepared = prepare_log(log, robot, drive, SignalConfig(), force=True)
    ripple = fit_gear_ripple([prepared], drive)
    assert ripple.amplitude[1] == pytest.approx(5e-5, rel=0.03)
    assert ripple.amplitude[[0, 2]].max() < 2e-6
    truth = geared_log(0.0).motor_position / 80.0
    assert np.std(ripple.cleaned(log, drive).motor_position / 80.0 - truth) < 0.1 * np.std(log.motor_position / 80.0 - truth)


EVERY_LAW = [
    *("viscous", "coulomb", "offset", "stribeck", "sublinear", "cubic", "presliding", "load_coulomb", "stribeck_arctan"),
    {"term": "asymmetric", "threshold": 0.1, "width": 0.0},
]


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
@pytest.mark.parametrize("massless", [False, True])
def test_online_torque_is_the_regressors(kind: str, massless: bool) -> None:
    robot = Robot.from_urdf(arm_urdf("zyyx", kind=kind))
    coupled = np.diag([30.0, -40.0, 50.0, 20.0])
    coupled[3, 2] = 20.0
    motor = {robot.joints[3]: ["viscous", "coulomb", "presliding", "load_coulomb"]}
    laws = {"default": EVERY_LAW, robot.joints[1]: ["viscous"], robot.joints[2]: []}
    drive = Drive.build(4, reduction=coupled, offset=[0.1, 0.2, 0.0, -0.3])
    model = DynamicModel(robot, friction=laws, drive=drive, motor_friction=motor)
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(len(model.parameters))
    theta[: model.n_inertial : 10] = 0.0 if massless else np.abs(theta[: model.n_inertial : 10]) + 0.1
    model = model.with_reference(rng.standard_normal(model.n_inertial))
    online = OnlineModel(model, theta)
    for scale in (1e-3, 0.05, 1.0):
        q, v, a = rng.standard_normal((3, 4)) * [[1.0], [scale], [2.0]]
        expected = model.torque(theta, q, v, a)
        assert online(q, v, a) == pytest.approx(expected, abs=1e-11 * np.abs(expected).max())


def test_online_refuses_what_it_cannot_do() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    elastic = ElasticModel(robot, drive=Drive.build(2, reduction=[100.0, 100.0]))
    with pytest.raises(ModelError, match="no fast path"):
        OnlineModel(elastic, np.zeros(len(elastic.parameters)))
    loaded = DynamicModel(robot, friction=["load_coulomb"])
    with pytest.raises(ModelError, match="frozen rigid torque"):
        OnlineModel(loaded, np.zeros(len(loaded.parameters)))
    rigid = DynamicModel(robot, friction="none")
    with pytest.raises(ModelError, match="holds no residual"):
        OnlineModel(rigid, np.zeros(len(rigid.parameters)))(*np.zeros((3, 2)), np.zeros(2), np.zeros(2))
