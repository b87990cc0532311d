"""Friction that is followed online: the filter against dense Gaussian regression, and what must not be taken for friction."""

import json

import numpy as np
import pytest
from logs import Truth, fourier, torques

from urdf_ident import (
    DynamicModel,
    Identification,
    Limits,
    Recording,
    Robot,
    compare,
    forecast,
    identify,
    load,
    random_fourier,
    validate,
)
from urdf_ident.compensation.friction_filter import ROW, FilterSettings, FrictionFilter
from urdf_ident.errors import EstimationError, ModelError
from urdf_ident.logs.read import LogLayout, read_recording

pytestmark = pytest.mark.usefixtures("unexamined")

SPREAD = np.array([[0.6, 1.5]])
N_LOGS = 5


def settings(memory: float = np.inf, slow: float = 1.0, least: float = 1e3, n: int = 1) -> FilterSettings:
    each = np.ones(n)
    return FilterSettings(
        np.repeat(SPREAD, n, axis=0),
        each,
        0.5 * each,
        slow * each,
        20.0,
        2.0 * each,
        np.full((n, 3), least),
        0.02 * each,
        memory,
    )


def run(filt: FrictionFilter, residual: np.ndarray, v: np.ndarray) -> None:
    for e, speed in zip(residual, v, strict=True):
        filt.step(np.atleast_1d(e), np.atleast_1d(speed), np.atleast_1d(speed), np.atleast_1d(speed))


@pytest.mark.parametrize(("memory", "slow"), [(np.inf, 0.5), (np.inf, 1.5), (8.0, 1.0)])
def test_the_filter_is_the_dense_gaussian_regression(memory: float, slow: float) -> None:
    rng = np.random.default_rng(0)
    chosen, count = settings(memory, slow), 120
    v = np.sign(rng.normal(size=count)) * rng.uniform(0.2, 1.8, count)
    y = 0.4 * np.sign(v) - 0.8 * v + 0.2 * rng.normal(size=count)
    filt = FrictionFilter([chosen], ROW)
    run(filt, y, v)
    apart = ROW * np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    # A process of variance 0.9 σ² and time constant T is, summed, 2·0.9 σ² T: the noise of rows with standard deviation `slow`.
    lasting = max((slow**2 - 0.1 * 0.25) / (2 * 0.9 * 0.25 * 20), 0.5 / 20)
    rest = 0.9 * 0.25 * np.exp(-apart / lasting)
    forget = np.exp(-apart / memory)
    noise = 0.1 * 0.25 * np.eye(count)  # rows of the fit are as long as those of the filter here
    dry, viscous = SPREAD[0] ** 2
    total = forget * (dry * np.outer(np.sign(v), np.sign(v)) + viscous * np.outer(v, v)) + rest + noise
    weights = np.linalg.solve(total, y)
    expected = [dry * (forget[-1] * np.sign(v)) @ weights, viscous * (forget[-1] * v) @ weights]
    np.testing.assert_allclose(filt.mean[:2, 0, 0], expected, rtol=1e-8)
    left = dry - (dry * forget[-1] * np.sign(v)) @ np.linalg.solve(total, dry * forget[-1] * np.sign(v))
    assert filt.covariance[0, 0, 0] == pytest.approx(left, rel=1e-8)


def test_contact_is_not_friction() -> None:
    rng = np.random.default_rng(1)
    v = 1.2 * np.sin(2 * np.pi * np.arange(800) * ROW / 5)
    y = 0.3 * np.sign(v) + 0.2 * rng.normal(size=800)
    touched = y.copy()
    touched[500:560] += 30.0  # three seconds of a push fifty times the spread
    free, pushed = (FrictionFilter([settings(30.0)], ROW) for _ in range(2))
    run(free, y[:560], v[:560])
    run(pushed, touched[:560], v[:560])
    assert np.abs((pushed.mean - free.mean)[0]).max() < SPREAD[0, 0]
    run(free, y[560:], v[560:])
    run(pushed, touched[560:], v[560:])
    np.testing.assert_allclose(pushed.mean[:2], free.mean[:2], atol=0.25)


def log_of(robot: Robot, name: str, seed: int, change: np.ndarray) -> Recording:
    """A log whose Coulomb friction is larger by ``change`` on the joints [N·m]."""
    t, q, v, a = fourier(robot.n, 20.0, 100.0, seed)
    tau = torques(robot, Truth.of(robot.n), q, v, a) + change * np.tanh(v / 0.02)
    rng = np.random.default_rng(1000 + seed)
    return Recording(name, robot.joints, t, q, effort=tau + 0.1 * rng.standard_normal(tau.shape), sha256=name)


@pytest.fixture(scope="module")
def ident(robot: Robot) -> Identification:
    rng = np.random.default_rng(0)
    logs = [log_of(robot, f"log{k}", k, 0.5 * rng.normal(size=3)) for k in range(N_LOGS)]
    return identify(DynamicModel(robot, friction=["viscous", "coulomb", "offset"]), logs)


@pytest.fixture(scope="module")
def changed(robot: Robot) -> Recording:
    return log_of(robot, "next", 50, np.array([0.8, -0.7, 0.9]))


def test_the_spread_is_found_and_friction_is_for_the_next_log(ident: Identification) -> None:
    changes = ident.friction_changes
    assert changes is not None
    dry = np.array([kind == "dry" for kind in changes.kinds])
    assert ((changes.spread[dry] > 0.2) & (changes.spread[dry] < 1.2)).all()
    assert (changes.spread[~dry] < 0.15).all()
    for name, error in zip(changes.parameters, changes.next_log_error, strict=True):
        assert ident.std_error[ident.model.names.index(name)] >= 0.9 * error
    assert "friction between logs" in ident.fit.summary()
    assert "spread" in ident.summary(verbose=True)
    assert ident.adaptation.used == (True,) * 3


def test_validation_scores_static_and_adapted_side_by_side(ident: Identification, changed: Recording) -> None:
    report = validate(ident, [changed])
    (entry,) = report.entries
    adapted = entry["adapted"]
    assert adapted["mean_rmse"] < 0.6 * entry["mean_rmse"]
    assert [item["joint"] for item in adapted["per_joint"]] == list(ident.model.robot.joints)
    assert "adapted" in report.summary()
    assert not any("adaptation increases the error" in remark for remark in report.remarks)
    assert any("not checked: whether a log repeats" in remark for remark in report.remarks)


def test_online_is_what_validation_scores_and_goes_on_from_a_file(
    ident: Identification, changed: Recording, robot: Robot, tmp_path
) -> None:
    ident.save(tmp_path / "identification.json")
    again = load(tmp_path / "identification.json")
    np.testing.assert_array_equal(again.fit.changes.spread, ident.fit.changes.spread)
    assert again.adaptation.memory == ident.adaptation.memory
    t, q, v, a = fourier(robot.n, 20.0, 100.0, 50)
    one, other = ident.adaptive(), again.adaptive()
    half = len(t) // 2 + 3  # in the middle of a row
    for k in range(half):
        one.update(q[k], v[k], a[k], changed.effort[k])
        other.update(q[k], v[k], a[k], changed.effort[k])
    other = again.adaptive(state=json.loads(json.dumps(other.as_dict())))
    for k in range(half, len(t)):
        one.update(q[k], v[k], a[k], changed.effort[k])
        other.update(q[k], v[k], a[k], changed.effort[k])
    np.testing.assert_array_equal(one.torque(q[9], v[9], a[9]), other.torque(q[9], v[9], a[9]))
    np.testing.assert_allclose(
        one.deviation[:, 0] + ident.friction_changes.mean[[1, 3, 5]], Truth.of(3).coulomb + [0.8, -0.7, 0.9], atol=0.25
    )
    static, found = ident.torque(q, v, a), np.array([one.torque(*x) for x in zip(q, v, a, strict=True)])
    true = torques(robot, Truth.of(3), q, v, a) + np.array([0.8, -0.7, 0.9]) * np.tanh(v / 0.02)
    assert np.sqrt(np.mean((found - true) ** 2)) < 0.4 * np.sqrt(np.mean((static - true) ** 2))
    one.reset()
    np.testing.assert_allclose(one.torque(q[9], v[9], a[9]), ident.torque(q[9], v[9], a[9]), rtol=1e-12)
    with pytest.raises(ModelError, match="another rate"):
        again.adaptive(rate=50.0, state=other.as_dict())


def test_a_comparison_tells_temperature_from_wear(ident: Identification, robot: Robot) -> None:
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    for change, words, changed in ((0.5, "within the spread", False), (4.0, "beyond the spread", True)):
        other = identify(model, [log_of(robot, f"later{change}", 70, np.array([0.0, change, 0.0]))])
        tests = [item for item in compare(ident, other).tests if item.kind == "friction" and item.where == "j2"]
        assert {item.changed for item in tests} == {changed}
        assert all(words in item.note for item in tests)
    alone = compare(other, other).tests
    assert all("between logs is unknown" in item.note for item in alone if item.kind == "friction")


def test_forecasts_count_the_spread_and_propose_a_warm_up(ident: Identification, robot: Robot) -> None:
    limits = Limits.from_robot(robot)
    found = forecast(ident, random_fourier(limits, 20.0, 5, 0), limits)
    changes = ident.friction_changes
    assert changes is not None
    for name, spread in zip(changes.parameters, changes.spread, strict=True):
        assert found.after[found.labels.index(name)] >= 0.999 * spread
    assert "warm-up" in found.summary()


def test_one_log_has_no_spread_to_adapt_with(robot: Robot) -> None:
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    single = identify(model, [log_of(robot, "only", 3, np.zeros(3))])
    with pytest.raises(EstimationError, match="spread of friction"):
        single.adaptive()
    assert any("unknown from a single log" in note for note in single.solver["notes"])
    (entry,) = validate(single, [log_of(robot, "next", 4, np.zeros(3))]).entries
    assert "adapted" not in entry


@pytest.mark.parametrize(
    "names",
    [["temperature"], ["temp"], ["temperature_j1", "temperature_j2", "temperature_j3"], ["temp_j1", "temp_j2", "temp_j3"]],
)
def test_temperatures_are_read_of_joints_or_of_the_robot(names: list[str], robot: Robot, tmp_path) -> None:
    t, q, v, a = fourier(3, 2.0, 50.0, 0)
    kelvin = 20.0 + np.arange(len(names)) + t[:, None]
    table = np.column_stack([t, q, torques(robot, Truth.of(3), q, v, a), kelvin])
    header = ["t", *(f"{kind}_{joint}" for kind in ("q", "tau") for joint in robot.joints), *names]
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(header), comments="")
    log = read_recording(tmp_path / "log.csv", robot)
    np.testing.assert_allclose(log.temperature, np.broadcast_to(kelvin, (len(t), 3)))
    layout = LogLayout(
        columns={"time": 0, "position": [1, 2, 3], "effort": [4, 5, 6], "temperature": 7}, units={"temperature": "°C"}
    )
    np.testing.assert_allclose(read_recording(tmp_path / "log.csv", robot, layout).temperature[:, 2], kelvin[:, 0])
