"""Weighing an unknown body: simulated with Pinocchio's RNEA and friction written again here."""

import json
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from commands import assert_refused, done, run
from conftest import arm_urdf, rnea
from loaded_arm import COM, INERTIA, MASS, motion, moves, stuck, torque
from logs import fourier, write_csv
from scipy.stats import t as student

from urdf_ident import DynamicModel, Identification, Recording, Robot, identify, payload
from urdf_ident.errors import EstimationError, LogError, ModelError
from urdf_ident.estimation.estimators.static_poses import _noise, _weighted
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.log_effects.changes import FrictionChanges
from urdf_ident.statistics.log_effects.mixed_model import changes_between_logs

pytestmark = pytest.mark.usefixtures("unexamined")

LAWS = ["viscous", "coulomb", "offset", "load_coulomb"]


def made(robot: Robot, name: str, seed: int, body: pin.Inertia | None = None, noise: float = 0.01) -> Recording:
    t, q, v, a = motion(robot.n, seed)
    tau, rng = torque(robot, q, v, a, body), np.random.default_rng(100 + seed)
    tau = tau + noise * tau.std(axis=0) * rng.standard_normal(tau.shape)
    return Recording(name, robot.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau, sha256=name)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(arm_urdf("zyyx"))


@pytest.fixture(scope="module")
def body() -> pin.Inertia:
    return pin.Inertia(MASS, COM, INERTIA)


@pytest.fixture(scope="module")
def ident(robot: Robot) -> Identification:
    return identify(DynamicModel(robot, friction=LAWS), [made(robot, "empty", 0)])


@pytest.mark.parametrize("method", ["held", "joint"])
def test_the_body_is_found(ident: Identification, robot: Robot, body: pin.Inertia, method: str) -> None:
    found = payload(ident, [made(robot, "loaded", 1, body)], method=method)
    truth = np.concatenate([[MASS], COM, INERTIA[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]])
    assert found.link == "tool"
    assert abs(found.mass / MASS - 1) < 0.01
    assert np.abs(found.com - COM).max() < 0.005
    assert (np.abs(found.value - truth) < 4 * found.std_error).all()
    assert found.verdict.level == "good"
    assert np.linalg.eigvalsh(0.5 * np.trace(found.inertia) * np.eye(3) - found.inertia).min() > 0


def test_joints_that_dry_friction_holds_count_less(robot: Robot, body: pin.Inertia) -> None:
    """Their torque says little of the body: with full weight the mass is 2 to 7 % off and the last joint under suspicion."""

    def rested(name: str, seed: int, body: pin.Inertia | None = None) -> Recording:
        t, q, v, a = moves(robot.n, seed)
        tau, rng = torque(robot, q, v, a, body) + stuck(v, seed), np.random.default_rng(100 + seed)
        tau = tau + 0.01 * tau.std(axis=0) * rng.standard_normal(tau.shape)
        return Recording(name, robot.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau, sha256=name)

    ident = identify(DynamicModel(robot, friction=LAWS), [rested("empty", 0)])
    found = [payload(ident, [rested("loaded", seed, body)]) for seed in (3, 4)]
    errors = np.array([one.mass / MASS - 1 for one in found])
    assert np.sqrt((errors**2).mean()) < 0.02
    assert all(abs(one.mass - MASS) < 3 * one.std_error[0] for one in found)
    assert all(one.verdict.level == "good" for one in found)
    assert all("dry friction holds resting joints" in " ".join(one.notes) for one in found)


def test_a_delay_of_the_unloaded_logs_is_taken_out_of_the_loaded_ones(robot: Robot, body: pin.Inertia) -> None:
    def late(log: Recording) -> Recording:
        return replace(log, effort=np.column_stack([np.interp(log.time - 0.05, log.time, x) for x in log.effort.T]))

    ident = identify(DynamicModel(robot, friction=LAWS), [late(made(robot, "empty", 0))])
    assert ident.signals["delay"]["compensated"] == pytest.approx(0.05, abs=0.003)
    found = payload(ident, [late(made(robot, "loaded", 1, body))])
    assert abs(found.mass / MASS - 1) < 0.01
    assert found.verdict.level == "good"


def test_gain_errors_are_mass_errors(ident: Identification, robot: Robot, body: pin.Inertia) -> None:
    log = made(robot, "loaded", 1, body)
    exact, unsure = (payload(ident, [log], method="held", refit="none", gain_error=e) for e in (0.0, 0.02))
    assert exact.sources["torque constants"] == 0
    _, q, v, a = motion(robot.n, 1)
    carried = torque(robot, q, v, a, body) - torque(robot, q, v, a, None)
    moves = []
    for j in range(robot.n):  # a constant that is wrong, in both logs: what the unloaded model cannot follow is the body's
        wrong = replace(log, effort=log.effort + 0.002 * carried * (np.arange(robot.n) == j))
        moves.append(10 * (payload(ident, [wrong], method="held", refit="none").mass - exact.mass))
    assert unsure.sources["torque constants"] == pytest.approx(np.linalg.norm(moves), rel=0.05)
    assert unsure.std_error[0] > exact.std_error[0]


def test_a_log_without_a_load_is_said(ident: Identification, robot: Robot) -> None:
    found = payload(ident, [made(robot, "nothing", 3)])
    assert found.interval[0, 0] == 0
    assert found.verdict.level == "poor"
    (told,) = found.verdict.judgements
    assert told.id in ("payload-not-shown", "payload-unexplained")
    assert "0 kg" in told.message
    assert not found.assumed
    assert not any("did not converge" in note for note in found.notes)
    line = next(line for line in found.summary().splitlines() if "centre x" in line)
    assert "not known" in line  # a number with an infinite error is none
    assert "±" not in line


@pytest.mark.parametrize("link", ["l2", "l3"])
def test_the_link_that_carries_the_body_is_named(ident: Identification, robot: Robot, body: pin.Inertia, link: str) -> None:
    """On l2 no mass is found at all; on l3 one of the right size, with a small error."""
    found = payload(ident, [made(robot, "loaded", 1, body)], link=link)
    assert found.verdict.level == "poor"
    (told,) = found.verdict.judgements
    assert told.id == "payload-elsewhere"
    assert "a body on l4, or on a link fixed to it, explains these logs better" in told.message


def test_what_no_body_explains_is_not_good(ident: Identification, robot: Robot, body: pin.Inertia) -> None:
    """A torque constant that has changed between the logs: the standard error alone would call the mass well known."""
    log = made(robot, "loaded", 1, body)
    found = payload(ident, [replace(log, effort=log.effort * np.array([1.0, 1.06, 1.0, 1.0]))])
    assert found.verdict.level == "usable"
    assert found.verdict.cause is not None
    assert [item.id for item in found.verdict.judgements] == ["payload-unexplained", "payload-mass"]
    assert "the residual of j2 is" in found.verdict.cause.message
    assert "another unit or torque constant" in found.verdict.cause.message


def test_a_mass_below_zero_is_a_contradiction(ident: Identification, robot: Robot, body: pin.Inertia) -> None:
    """Loaded and unloaded logs exchanged: the interval covers what is wrong, and no robot with such a body is offered."""
    log = made(robot, "nothing", 3)
    _, q, v, a = motion(robot.n, 3)
    less = torque(robot, q, v, a, None) - torque(robot, q, v, a, body)
    found = payload(ident, [replace(log, effort=log.effort + less)])
    low, high = found.interval[0]
    assert low == 0
    assert MASS < high < 1.3 * MASS
    assert 0.95 * MASS < found.std_error[0] < high
    assert found.sources["contradiction"] == pytest.approx(MASS, rel=0.02)
    assert found.verdict.level == "poor"
    (told,) = found.verdict.judgements
    assert told.id == "payload-impossible"
    assert "which is impossible" in told.message
    assert "exchanged (a tool of 1.5 kg at (0.02" in str(told.remedy)
    assert not found.shown
    assert found.as_dict()["set_payload"] == {}


def test_bad_input(ident: Identification, robot: Robot, body: pin.Inertia) -> None:
    log = made(robot, "loaded", 1, body)
    with pytest.raises(ModelError, match="link 'base' does not move"):
        payload(ident, [log], link="base")
    with pytest.raises(ModelError, match="did you mean 'tool'"):
        payload(ident, [log], link="tol")
    with pytest.raises(EstimationError, match=r"do not carry the same body.*loaded .*other"):
        payload(ident, [log, made(robot, "other", 2, pin.Inertia(2.0, COM, INERTIA))], method="held", refit="none")
    with pytest.raises(LogError, match="one of the training logs of the unloaded model"):
        payload(replace(ident, inputs=(replace(ident.inputs[0], name="empty", sha256="loaded"),)), [log])
    with pytest.raises(LogError, match="another robot"):
        payload(ident, [replace(log, joints=("a", "b", "c", "d"))])
    blind = replace(ident, fit=replace(ident.fit, covariance=np.full_like(ident.fit.covariance, np.nan)))
    with pytest.raises(EstimationError, match="no covariance"):
        payload(blind, [log])


def poses(
    robot: Robot,
    body: pin.Inertia | None,
    sides: tuple[int, ...],
    noise: float = 0.05,
    shares: tuple[tuple[float, float], ...] = ((0.7, 1.0), (0.7, 1.0)),
) -> Recording:
    """Poses at rest, reached from the given sides; friction at rest is a share of its level (ranges downwards and upwards)."""
    rng, rate = np.random.default_rng(5), 50.0
    q, sign = [], []
    for _ in range(10):
        place = rng.uniform(-1.2, 1.2, robot.n)
        for side in sides:
            q += [*np.linspace(place - 0.2 * side, place, 50), *np.tile(place, (100, 1))]
            sign += [np.full(robot.n, float(side))] * 50 + [side * rng.uniform(*shares[side > 0], robot.n)] * 100
    still = np.zeros_like(q)
    tau = torque(robot, np.array(q), still, still, body, np.array(sign))
    tau = tau + noise * rng.standard_normal(tau.shape)
    return Recording("poses", robot.joints, np.arange(len(q)) / rate, np.array(q), effort=tau)


def test_poses_at_rest(ident: Identification, robot: Robot, body: pin.Inertia) -> None:
    both = payload(ident, [poses(robot, body, (1, -1))], static=True)
    assert abs(both.mass / MASS - 1) < 0.02
    assert np.abs(both.com - COM).max() < 0.01
    assert not any("one side" in note for note in both.notes)
    assert both.verdict.level == "good"
    assert np.isinf(both.std_error[4:]).all()
    assert "poses at rest show no inertia" in both.advice[4]
    radius = (3 * both.mass / (4 * np.pi * 2000.0)) ** (1 / 3)  # nothing known of the inertia: a solid sphere is written
    np.testing.assert_allclose(both.exported_inertia, 0.4 * both.mass * radius**2 * np.eye(3), rtol=1e-9, atol=1e-15)
    assert "a solid sphere of 2000 kg/m³" in both.summary()
    one = payload(ident, [poses(robot, body, (1,))], static=True)
    assert any("one side" in note for note in one.notes)
    assert one.std_error[0] > 1.5 * both.std_error[0]
    assert one.interval[0, 0] <= MASS <= one.interval[0, 1]
    wrong = payload(ident, [poses(robot, body, (1, -1))], static=True, link="l3")
    assert wrong.verdict.level == "poor"
    assert "a body on l4, or on a link fixed to it" in wrong.verdict.judgements[0].message


def test_poses_are_checked_as_motion_is(ident: Identification, robot: Robot, body: pin.Inertia, tmp_path: Path) -> None:
    """A log with a fault gives no payload, unless it is forced; that it holds hardly any motion is no fault of poses."""
    log = poses(robot, body, (1, -1))
    held = np.arange(len(log.time)) % 150 >= 50  # the motion between the poses cut away
    once, exchanged = log.effort.copy(), log.effort[:, [0, 2, 1, 3]]
    once[:, 1] = once[:, 2]
    write_csv(tmp_path / "rests.csv", log.joints, log.time[held], log.position[held], log.effort[held])
    write_csv(tmp_path / "poses.csv", log.joints, log.time, log.position, log.effort)
    write_csv(tmp_path / "exchanged.csv", log.joints, log.time, log.position, exchanged)
    write_csv(tmp_path / "once.csv", log.joints, log.time, log.position, once)
    ident.save(tmp_path / "identification.json")
    weigh = ("payload", tmp_path / "identification.json")
    assert_refused(run(*weigh, tmp_path / "rests.csv"), 1, "rests.csv", "the robot does not move")
    for name in ("rests.csv", "poses.csv"):
        found = json.loads(done(*weigh, tmp_path / name, "--static", "--json"))
        assert found["mass"]["value"] == pytest.approx(MASS, rel=0.1)
        assert "the unloaded robot's" not in str(found["verdict"])
    told = run(*weigh, tmp_path / "exchanged.csv", "--static", "--json")
    assert "times the unloaded robot's with its dry friction" in str(json.loads(told.stdout)["verdict"])
    refused = run(*weigh, tmp_path / "once.csv", "--static", "-o", tmp_path / "refused.json")
    assert_refused(refused, 1, "once.csv", "the efforts of j2 and j3 are one signal", "log.columns.effort")
    assert not (tmp_path / "refused.json").exists()
    assert run(*weigh, tmp_path / "once.csv", "--static", "--force").stdout


@pytest.mark.parametrize(("count", "level", "least"), [(4, 0.0, 0.83), (6, 0.0, 0.87), (6, 1.0, 0.88)])
def test_intervals_of_few_poses_hold_the_mass(count: int, level: float, least: float) -> None:
    """The noise of each joint is known from its own few poses: as if its weight were known, 75 to 83 % held it."""
    n, mass, hits = 3, 2.0, []
    for seed in range(200):
        rng, lean = np.random.default_rng(seed), []
        for g, constant in enumerate(0.02 * rng.standard_normal(n)):
            body = np.pad(rng.standard_normal((count, 4)) * [5.0, 9.8, 9.8, 9.8], ((0, 0), (0, 6)))
            friction = np.outer(level * rng.choice([-1.0, 1.0], count), np.arange(n) == g)
            torque = body[:, :4] @ [mass, 0.1, 0.05, 0.2] + friction.sum(axis=1) * rng.uniform(-0.5, 0.5)
            torque += constant + 0.1 * rng.standard_normal(count)
            lean.append(np.column_stack([body, friction, np.tile(np.arange(n) == g, (count, 1)), torque]))
        found, _, hats = _weighted(lean, np.ones(n))
        noise, dof = _noise(found.root[:10], hats)
        hits.append(abs(found.estimate[0] - mass) < student.ppf(0.975, dof[0]) * np.sqrt(noise[0, 0]))
    assert np.mean(hits) > least


def test_command_writes_files_that_engines_load(ident: Identification, robot: Robot, body: pin.Inertia, tmp_path: Path) -> None:
    log = made(robot, "loaded", 1, body)
    write_csv(tmp_path / "loaded.csv", log.joints, log.time, log.position, log.effort)
    ident.save(tmp_path / "identification.json")
    done("payload", tmp_path / "identification.json", tmp_path / "loaded.csv")
    stored = json.loads((tmp_path / "payload.json").read_text())
    for key in ("mass", "com", "inertia"):
        assert {"value", "std_error", "low", "high", "verdict"} <= set(stored[key])
    assert stored["set_payload"]["universal_robots"].startswith(f"set_target_payload({stored['mass']['value']:.6g}, [")
    heavy = pin.buildModelFromUrdf(str(tmp_path / "arm_with_payload.urdf"))
    theta = ident.theta[: ident.model.n_inertial].copy().reshape(-1, 10)
    added = heavy.inertias[robot.n].mass - theta[-1, 0]
    assert added == pytest.approx(stored["mass"]["value"], rel=1e-6)
    known = [verdict != "not identifiable" for verdict in stored["inertia"]["verdict"]]
    weights = np.array(stored["inertia"]["std_error"]) < 0.01 * np.max(np.abs(stored["inertia"]["value"]))
    exported, estimate = np.array(stored["inertia"]["exported"]), np.array(stored["inertia"]["value"])
    np.testing.assert_allclose(exported[weights], estimate[weights], rtol=0.05, atol=1e-4)
    assert all(known) == (not stored["inertia"]["assumed"])
    scene = mujoco.MjModel.from_xml_path(str(tmp_path / "arm_with_payload.xml"))
    assert scene.body_mass.sum() == pytest.approx(theta[:, 0].sum() + stored["mass"]["value"], rel=1e-6)


# ---- A payload that comes and goes between logs is found as a mass, not swallowed as friction ----

FRICTION = np.array([[3.0, 2.0], [4.0, 2.0], [0.5, 0.6]])  # viscous, Coulomb


def between(masses: list[float], warming: float) -> FrictionChanges:
    """Logs of an arm that carries these masses, friction less from log to log."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    logs = []
    for k, mass in enumerate(masses):
        loaded = robot.model.copy()
        body = pin.Inertia.FromSphere(max(mass, 1e-9), 0.05).se3Action(pin.SE3(np.eye(3), np.array([0.05, 0.0, 0.1])))
        loaded.inertias[3] = loaded.inertias[3] + body
        t, q, v, a = fourier(3, 15.0, 100.0, k)
        tau = rnea(loaded, q, v, a)
        share = 1.0 - warming * k / len(masses)
        tau += share * (FRICTION[:, 0] * v + FRICTION[:, 1] * np.tanh(v / 0.02))
        tau += 0.02 * tau.std(axis=0) * np.random.default_rng(k).standard_normal(tau.shape)
        logs.append(Recording(f"run{k}", robot.joints, t, q, effort=tau, sha256=f"run{k}"))
    model = DynamicModel(robot, friction=["viscous", "coulomb"])
    statistics = build_statistics(model, prepare_logs(logs, robot, model.drive, SignalConfig()))
    return changes_between_logs(model, statistics, fit_base(statistics, model.base()))


def test_the_body_is_found_with_its_mass_and_its_logs() -> None:
    found = between([0.0, 2.0, 0.0, 2.0], 0.2)
    assert found.carried is not None
    mass = found.carried[:, found.carriers.index("m_l3")]
    assert mass[[1, 3]].mean() - mass[[0, 2]].mean() == pytest.approx(2.0, rel=0.1)
    (note,) = [note for note in found.notes(np.ones(3), np.zeros(3)) if "comes and goes" in note]
    assert note.startswith("run1, run3: about 2 kg more on 'l3' than in run0, run2")
