"""friction: auto: sub-models against whole refits, laws of simulated arms found back, and data that cannot choose."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from conftest import arm_urdf, inertials, rnea
from logs import bristles, fourier

from urdf_ident import Drive, DynamicModel, Recording, Robot, Segment, identify, load
from urdf_ident.estimation.friction_selection.candidates import WideModel, chosen_by_data, every_law, wide_model
from urdf_ident.estimation.friction_selection.reference_torque import converge
from urdf_ident.estimation.friction_selection.selection import Selected, select_friction
from urdf_ident.estimation.friction_selection.sub_models import SubModels
from urdf_ident.result.scores import predict, score
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.folds import folds_of

pytestmark = pytest.mark.usefixtures("unexamined")

SIMPLE = {"viscous", "coulomb", "offset"}


def friction(name: str, q: np.ndarray, v: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Each law by its formula, written again."""
    sign = np.tanh(v / 0.02)
    if name == "dahl":
        return bristles(q, 1e-3, sign[0])  # exact between the samples
    return {
        "viscous": v,
        "coulomb": sign,
        "offset": np.ones_like(v),
        "stribeck": sign * np.exp(-((v / 0.15) ** 2)),
        "sublinear": sign * np.sqrt(np.abs(v)),
        "cubic": v**3,
        "load_coulomb": sign * np.abs(load),
    }[name]


def make_logs(robot: Robot, truth: list[dict[str, float]], count: int, *, seconds: float = 20.0, noise: float = 0.03):
    """Logs of an arm with these laws and parameters, one dictionary a joint."""
    return with_torque(robot, [fourier(robot.n, seconds, 200.0, seed) for seed in range(count)], truth, noise)


def with_torque(robot: Robot, motions: list, truth: list[dict[str, float]], noise: float) -> list[Recording]:
    """Logs of motions t, q, v, a."""
    logs = []
    for seed, (t, q, v, a) in enumerate(motions):
        rigid = rnea(robot.model, robot.configuration(q), v, a)
        tau = rigid + 0.1 * a
        for j, laws in enumerate(truth):
            tau[:, j] += sum(value * friction(name, q[:, j], v[:, j], rigid[:, j]) for name, value in laws.items())
        rng = np.random.default_rng(100 + seed)
        tau += noise * tau.std(axis=0) * rng.standard_normal(tau.shape)
        logs.append(Recording(f"run{seed}", robot.joints, t, q, effort=tau, sha256=f"run{seed}"))
    return logs


def prepared(model: DynamicModel, logs: list[Recording]) -> list[PreparedLog]:
    return prepare_logs(logs, model.robot, model.drive, SignalConfig())


def choose(model: DynamicModel, logs: list[PreparedLog], **options) -> Selected:
    return select_friction(model, partial(build_statistics, logs=logs), [s for log in logs for s in log.segments], **options)


def every_candidate(model: DynamicModel, motion: list[Segment]) -> WideModel:
    usual = chosen_by_data(model)
    return wide_model(model, [applied for applied in model.terms if applied not in usual], every_law(model, motion))


def laws_of(model: DynamicModel, axis: int) -> set[str]:
    return {item.term.name for item in model.terms if item.axis == axis} - {"rotor_inertia"}


TRUTH = [
    {"viscous": 3.0, "coulomb": 2.0, "cubic": 0.8},
    {"viscous": 4.0, "coulomb": 2.0, "load_coulomb": 0.15, "stribeck": 2.5},
    {"coulomb": 0.6, "dahl": 0.7, "offset": 0.4},
]


@pytest.fixture(scope="module")
def runs(robot: Robot) -> list[PreparedLog]:
    return prepared(DynamicModel(robot), make_logs(robot, TRUTH, 5))


@pytest.fixture(scope="module")
def chosen(robot: Robot, runs: list[PreparedLog]) -> Selected:
    return choose(DynamicModel(robot), runs[:4])


@pytest.fixture(scope="module")
def sub_models(robot: Robot, runs: list[PreparedLog]):
    wide = every_candidate(DynamicModel(robot), [s for log in runs for s in log.segments])
    statistics = folds_of(build_statistics(wide.model.with_reference(np.zeros(30)), runs))
    weights = {group: 0.5 + k for k, group in enumerate(statistics.groups)}
    columns = [c for c in wide.columns.tolist() if not wide.model.term_of(c).loaded]
    return wide, statistics, weights, columns, SubModels(statistics, weights, wide.common, np.array(columns))


def refitted(statistics, weights, common, chosen: list[int]) -> np.ndarray:
    """Held-out squared errors per fold and group by np.linalg.lstsq on whole stacked factors."""
    columns, errors = [*common, *chosen], []
    for fold in statistics.logs:
        factor = statistics.without([fold]).stacked(weights, columns)
        scale = np.linalg.norm(factor[:, :-1], axis=0)
        scale[scale == 0] = 1.0
        theta = np.zeros(statistics.p)
        theta[columns] = np.linalg.lstsq(factor[:, :-1] / scale, factor[:, -1], rcond=1e-9)[0] / scale
        held = statistics.only(fold)
        errors.append([weights[g] ** 2 * held.residual_squares(theta, g) for g in statistics.groups])
    return np.array(errors)


@pytest.mark.parametrize("more", [[], ["coulomb"], ["cubic", "coulomb"]])
def test_sub_models_equal_whole_refits(sub_models, more: list[str]) -> None:
    wide, statistics, weights, columns, sub = sub_models
    named = {
        name: [k for k, c in enumerate(columns) if wide.model.term_of(c).name == name] for name in ("viscous", "offset", *more)
    }
    others = [*named["viscous"][1:], *named["offset"]]
    picked = [named["viscous"][0], *(named[name][0] for name in more)]
    expected = refitted(statistics, weights, wide.common, [columns[k] for k in {*others, *picked}])
    np.testing.assert_allclose(sub.squares([*others, *picked]), expected, rtol=1e-6)
    own = [k for k in range(len(columns)) if k not in others]
    focus, at = sub.of_joint(others, own, [1]), tuple(own.index(k) for k in picked)
    for errors, wanted in zip(focus.error(at), (expected.sum(axis=1), expected[:, 1]), strict=True):
        np.testing.assert_allclose(errors, wanted, rtol=1e-6)
    np.testing.assert_allclose(focus.errors([at, at[:1], ()])[:, 0], expected.sum(axis=1), rtol=1e-6)


def test_laws_are_found_back(chosen: Selected) -> None:
    for axis, laws in enumerate(TRUTH):
        assert laws_of(chosen.model, axis) >= set(laws)
        assert len(laws_of(chosen.model, axis) - set(laws) - {"offset"}) <= 1
    assert not chosen.model.automatic
    assert (chosen.after < 0.7 * chosen.before).all()
    assert chosen.folds == tuple(f"all logs[{k}/5]" for k in range(1, 6))


def test_nothing_is_lost_against_the_true_structure(robot: Robot, runs: list[PreparedLog], chosen: Selected) -> None:
    """On a log that took part in nothing."""
    known = [{"term": "stribeck", "velocity": 0.15}, {"term": "dahl", "width": 1e-3}]
    spec = {
        joint: [next((law for law in known if law["term"] == name), name) for name in laws]
        for joint, laws in zip(robot.joints, TRUTH, strict=True)
    }
    errors = []
    for model in (chosen.model, DynamicModel(robot, friction=spec), DynamicModel(robot, friction=sorted(SIMPLE))):
        found = converge(model, partial(build_statistics, logs=runs[:4]), partial(fit_base, base=model.base()))
        theta = np.zeros(len(model.parameters))
        theta[found.fit.base.independent] = found.fit.params
        errors.append(score(runs[4], predict(found.model, theta, runs[4]), 6.0).mean_rmse)
    assert errors[0] <= 1.02 * errors[1]
    assert errors[0] < 0.8 * errors[2]


def test_a_coupled_motor_gets_its_own_friction() -> None:
    """The motor of joint 3 moves joint 2 too: friction in proportion to its speed is no joint's friction."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    A = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 1.0]])
    logs = []
    for log in make_logs(robot, [{"viscous": 2.0, "coulomb": 1.0}] * 3, 4, noise=0.01):
        speed = np.gradient(log.position, log.time, axis=0) @ A[2]
        tau = np.array(log.effort) + (3.0 * np.tanh(speed / 0.02))[:, None] * A[2]
        logs.append(Recording(log.name, log.joints, log.time, log.position, effort=tau, sha256=log.sha256))
    model = DynamicModel(robot, drive=Drive.build(3, reduction=A))
    found = choose(model, prepared(model, logs))
    assert ("coulomb", 2, "motor") in {(item.term.name, item.axis, item.side) for item in found.model.terms}


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_gravity_does_not_stand_in_for_a_bias(kind: str) -> None:
    """Small offsets that held-out parts of the same motion do not miss: without them first moments are 100 errors off.

    The offset of an upright slider is the weight that it carries, and the data never ask for it.
    """
    robot = Robot.from_urdf(arm_urdf("zyx", kind=kind))
    t, q, v, a = fourier(robot.n, 12.0, 200.0, 2)
    truth = [{"viscous": 3.0, "coulomb": 2.0}, {"viscous": 4.0, "coulomb": 2.0, "offset": 0.4}, {"viscous": 1.0, "offset": 0.2}]
    logs = prepared(DynamicModel(robot), with_torque(robot, [(t, 0.35 * q, 0.35 * v, 0.35 * a)], truth, 0.03))
    found = choose(DynamicModel(robot), logs)
    model = found.model
    assert all("offset" in laws_of(model, axis) for axis in range(robot.n))
    fit = converge(model, partial(build_statistics, logs=logs), partial(fit_base, base=model.base())).fit
    true = np.zeros(len(model.parameters))
    true[: model.n_inertial] = inertials(robot)
    offsets = {joint: laws.get("offset", 0.0) for joint, laws in zip(robot.joints, truth, strict=True)}
    for k, parameter in enumerate(model.parameters):
        true[k] += {"Ia": 0.1, "offset": offsets.get(parameter.owner, 0.0)}.get(parameter.symbol, 0.0)
    bodies = fit.base.independent < model.n_inertial
    assert (np.abs(fit.params - fit.base.of(true))[bodies] < 5 * fit.bse[bodies]).all()


@pytest.mark.parametrize("levels_off", [False, True])
def test_the_cubic_law_is_friction_that_grows_and_not_friction_that_levels_off(levels_off: bool) -> None:
    """A negative cubic term would gain, but its slope falls fastest where it is extrapolated: other laws are chosen instead."""
    robot, logs = Robot.from_urdf(arm_urdf("z")), []
    for seed in range(2):
        t, q, v, a = fourier(1, 10.0, 200.0, seed)
        tau = rnea(robot.model, robot.configuration(q), v, a) + 0.1 * a + 2.0 * np.tanh(v / 0.02)
        tau += 0.5 * v + 5.0 * np.tanh(v) if levels_off else 4.0 * v + 0.6 * v**3
        tau += 0.03 * tau.std(axis=0) * np.random.default_rng(seed).standard_normal(tau.shape)
        logs.append(Recording(f"run{seed}", robot.joints, t, q, effort=tau, sha256=f"run{seed}"))
    found = choose(DynamicModel(robot), prepared(DynamicModel(robot), logs))
    assert ("cubic" in laws_of(found.model, 0)) is not levels_off
    assert (found.after < found.before).all()


def test_a_joint_that_turns_back_often_gets_its_laws_where_the_others_go_one_way(robot: Robot) -> None:
    t, q, v, a = fourier(robot.n, 20.0, 200.0, 0)
    one_way = np.array([False, True, True])
    ways = [np.where(one_way, 0.1 * x + more, x) for x, more in ((q, 0.1 * t[:, None] - 1.0), (v, 0.1), (a, 0.0))]
    pace = np.abs(v[:, one_way]).max() * 0.1
    ways[0][:, one_way] += pace * t[:, None]
    ways[1][:, one_way] += pace
    found = choose(DynamicModel(robot), prepared(DynamicModel(robot), with_torque(robot, [(t, *ways)], TRUTH, 0.03)))
    assert "cubic" in laws_of(found.model, 0)
    assert laws_of(found.model, 1) == laws_of(found.model, 2) == SIMPLE
    assert any("j2, j3 never reverse" in note for note in found.notes)


def test_automatic_friction_goes_through_identify_and_the_file(robot: Robot, tmp_path) -> None:
    logs, visits = make_logs(robot, TRUTH, 3), []
    model = DynamicModel(robot)
    assert model.automatic
    result = identify(model, logs, progress=lambda name, done, total: visits.append((name, done, total)))
    assert laws_of(result.model, 2) >= {"coulomb", "dahl"}
    assert any(note.startswith("friction: auto: laws selected") for note in result.solver["notes"])
    counts = [(done, total) for name, done, total in visits if "friction laws" in name]
    assert len(counts) >= 3
    assert all(first[0] < second[0] for first, second in pairwise(counts))
    assert all(done <= total for done, total in counts)
    assert len({total for _, total in counts}) == 1
    again = load(result.save(tmp_path / "identification.json"))
    assert len(again.selection["trials"]) == len(result.selection["trials"]) == 36
    _, q, v, a = fourier(3, 3.0, 50.0, 9)
    np.testing.assert_array_equal(result.torque(q, v, a), again.torque(q, v, a))


def test_a_short_log_does_not_take_out_the_friction_of_every_drive() -> None:
    """It hardly misses viscous or Coulomb friction, or takes another law for it, which is wrong at twice the speed."""
    robot = Robot.from_urdf(arm_urdf("zy"))
    truth = [{"viscous": 0.1, "coulomb": 1.0}, {"viscous": 3.0, "coulomb": 0.1}]
    found = choose(DynamicModel(robot), prepared(DynamicModel(robot), make_logs(robot, truth, 1, seconds=4.0, noise=0.05)))
    assert all({"viscous", "coulomb"} <= laws_of(found.model, axis) for axis in (0, 1))


def test_dry_friction_that_builds_up_as_a_joint_creeps_is_not_viscous() -> None:
    """A move of 35 mrad at up to 20 mrad/s, with friction that is dry from 16 mrad/s on: four times as much at 0.5 rad/s."""
    robot, rng = Robot.from_urdf(arm_urdf("zyx", fixed_tip=False)), np.random.default_rng(0)
    t = np.arange(800) / 200
    s = np.clip((t - 0.3) / 3.4, 0.0, 1.0)
    path = 10 * s**3 - 15 * s**4 + 6 * s**5
    rate = np.gradient(path, t)
    q, v, a = (np.outer(x, [0.035, 0.6, -0.5]) for x in (path, rate, np.gradient(rate, t)))
    tau = rnea(robot.model, q, v, a) + 1.5 * np.tanh(v / 0.008) + 0.3 * v + 0.02 * rng.standard_normal(q.shape)
    log = Recording("move", robot.joints, t, q + 1e-6 * rng.standard_normal(q.shape), effort=tau)
    found = identify(DynamicModel(robot), [log], force=True)
    rest, fast = np.zeros(3), np.array([0.5, 0.0, 0.0])
    assert found.torque(rest, fast, rest)[0] - found.torque(rest, rest, rest)[0] == pytest.approx(1.5 + 0.15, rel=0.3)


def test_a_stage_of_millimetres_with_a_fast_wrist_shows_the_friction_of_its_slides() -> None:
    """A slide that is slow in m/s was taken for one that stands still, and its dry friction for viscous: errors of 30 %."""
    text = arm_urdf("xz", fixed_tip=False).replace('type="revolute"', 'type="prismatic"', 1)
    robot = Robot.from_urdf(text)
    size, dry = np.array([0.004, 1.0]), np.array([6.0, 0.3])
    motions = [(t, size * q, size * v, size * a) for t, q, v, a in (fourier(2, 20.0, 200.0, seed) for seed in range(3))]

    def torque(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        rigid = rnea(robot.model, robot.configuration(q), v, a)
        return np.array(rigid) + dry * np.tanh(v / (5e-3 * size)) + np.array([900.0, 0.2]) * v

    logs = []
    for k, (t, q, v, a) in enumerate(motions[:2]):
        tau = torque(q, v, a)
        tau += 0.02 * tau.std(axis=0) * np.random.default_rng(k).standard_normal(tau.shape)
        logs.append(Recording(f"run{k}", robot.joints, t, q, effort=tau, sha256=f"run{k}"))
    found = identify(DynamicModel(robot), logs)
    _, q, v, a = motions[2]
    tau = torque(q, v, a)
    error = np.sqrt(np.mean((found.torque(q, v, a) - tau) ** 2, axis=0) / np.mean(tau**2, axis=0))
    assert (error < 0.03).all(), error
