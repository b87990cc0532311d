"""Load-dependent friction: the fixed point, what is frozen and saved, and folds that find their own."""

import json
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import arm_urdf, inertials
from logs import fourier
from motion_samples import A, robot_3r

from urdf_ident import Drive, DynamicModel, Recording, Robot, Segment, identify, load
from urdf_ident.estimation.friction_selection.reference_torque import converge, load_response
from urdf_ident.model.prior import inertial_prior
from urdf_ident.model.trained import outside
from urdf_ident.result.write import write_sidecar, write_urdf
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics.accumulate import accumulate, build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import StatisticSet, merge_all

pytestmark = pytest.mark.usefixtures("unexamined")

LOADED = ["viscous", "coulomb", "offset", "load_coulomb"]
SHARE = np.array([0.05, 0.2, 0.3])  # friction per unit of load: large, so that one round is not enough


def make_model(terms: list = LOADED) -> DynamicModel:
    return DynamicModel(robot_3r(), friction=terms, rotor_inertia=False)


def truth(model: DynamicModel) -> np.ndarray:
    inertial = inertials(model.robot)
    at = {"Fv": 2.0, "Fc": 1.0, "offset": 0.1}
    rest = [at.get(p.symbol, SHARE[model.robot.index(p.owner)]) for p in model.parameters[len(inertial) :]]
    return np.concatenate([inertial, rest])


def make_segments(model: DynamicModel, count: int, sigma: float = 0.1) -> dict[str, Segment]:
    theta, found = truth(model), {}
    for seed in range(count):
        _, q, v, a = fourier(3, 12.0, 50.0, seed)
        tau = model.with_reference(theta).torque(theta, q, v, a)
        tau = tau + sigma * np.random.default_rng(seed).standard_normal(tau.shape)
        found[f"run{seed}"] = Segment(f"run{seed}", 0.0, 50.0, q, v, a, tau)
    return found


def build(model: DynamicModel, segments: dict[str, Segment], blocks: int | None = None, alike: object = None) -> StatisticSet:
    total = None
    for name, segment in segments.items():
        part = accumulate(model, name, [segment], RowFilter(1), blocks=blocks or 32)
        total = part if total is None else merge_all([total, part])
    return total


MODEL = make_model()
ESTIMATE = partial(fit_base, base=MODEL.base())


def test_fixed_point_and_truth() -> None:
    segments = make_segments(MODEL, 3)
    found = converge(MODEL, partial(build, segments=segments), ESTIMATE)
    assert found.converged
    assert 4 <= len(found.changes) <= 15
    assert all(later < 0.5 * earlier for earlier, later in zip(found.changes[:-1], found.changes[1:], strict=True))
    assert "converged in" in found.notes[0]
    at = dict(zip([MODEL.names[k] for k in found.fit.base.independent], found.fit.params, strict=True))
    np.testing.assert_allclose([at[f"Fl_j{k}"] for k in (1, 2, 3)], SHARE, rtol=0.05)
    make = partial(build, segments=segments)
    whole = converge(MODEL, make, ESTIMATE, draft=partial(make, blocks=1))  # rounds from one factor a log
    np.testing.assert_allclose(whole.fit.params, found.fit.params, rtol=1e-10)
    np.testing.assert_allclose(whole.changes, found.changes, rtol=1e-6)
    assert len(whole.statistics.entries) == len(found.statistics.entries)
    first = converge(MODEL, make, ESTIMATE, start=truth(MODEL))
    np.testing.assert_allclose(first.fit.params, found.fit.params, rtol=1e-4, atol=1e-6)  # wherever it starts


def test_a_rotor_that_looks_like_a_link_is_no_load() -> None:
    """Friction of a gear is read off the torque that it passes on; the data see rotor and link in one sum there."""
    model = DynamicModel(robot_3r(), friction=LOADED)
    theta, segments = truth(model), make_segments(model, 2)
    rotors = np.array([p.symbol == "Ia" for p in model.parameters])
    theta[rotors] = 5.0
    for name, s in segments.items():
        tau = model.with_reference(theta[:30]).torque(theta, s.q, s.v, s.a)
        noise = 0.1 * np.random.default_rng(5).standard_normal(tau.shape)
        segments[name] = Segment(name, 0.0, 50.0, s.q, s.v, s.a, tau + noise)
    share = {}
    for prior in (None, inertial_prior(model.robot)):
        base = model.base()
        assert any(rotors[k] for k in base.dependent)
        found = converge(model, partial(build, segments=segments), partial(fit_base, base=base), prior=prior)
        at = dict(zip([model.names[k] for k in base.independent], found.fit.params, strict=True))
        share[prior is not None] = np.array([at[f"Fl_j{k}"] for k in (1, 2, 3)])
    np.testing.assert_allclose(share[True], SHARE, rtol=0.05)
    assert np.abs(share[False] / SHARE - 1.0).max() > 0.2


def test_load_of_a_motor_is_what_its_gear_carries() -> None:
    """Motor side: the reference goes through A⁻ᵀ, the friction back through Aᵀ."""
    law = {"term": "load_coulomb", "width": 0.0}
    drive = Drive.build(3, reduction=A)
    model = DynamicModel(robot_3r(), friction="none", rotor_inertia=False, drive=drive, motor_friction={"j3": [law]})
    q, v, a = np.random.default_rng(0).normal(size=(3, 20, 3))
    rigid = np.random.default_rng(1).normal(size=(20, 3))
    got = model.torque(np.append(np.zeros(30), 1.0), q, v, a, reference=rigid)
    carried = np.linalg.solve(A.T, rigid.T).T[:, 2]
    expected = np.sign(32 * (v[:, 1] + v[:, 2])) * np.abs(carried)
    np.testing.assert_allclose(got, np.column_stack([0 * expected, 32 * expected, 32 * expected]), rtol=1e-12)


def test_a_reloaded_result_gives_the_same_torque_to_the_last_bit(tmp_path: Path) -> None:
    model = make_model()
    logs = []
    for name, s in make_segments(model, 3, sigma=0.05).items():
        logs.append(Recording(name, model.robot.joints, s.time, s.q, effort=s.tau, sha256=name))
    result = identify(model, logs[:2], held_out=logs[2:])
    again = load(result.save(tmp_path / "identification.json"))
    _, q, v, a = fourier(3, 5.0, 50.0, 9)
    np.testing.assert_array_equal(result.torque(q, v, a), again.torque(q, v, a))
    np.testing.assert_array_equal(result.model.reference_theta, again.model.reference_theta)
    assert again.model.fingerprint == result.model.fingerprint
    assert again.torque(q[0], v[0], a[0]) == pytest.approx(again.torque(q, v, a)[0], rel=1e-12)
    copied = deepcopy(again)  # with the workspace of its fast torque
    assert copied.torque(q[1], v[1], a[1]) == pytest.approx(again.torque(q, v, a)[1], rel=1e-12)
    assert any("converged in" in note for note in result.solver["notes"])
    assert result.validation[0]["fit_mean_rmse"] < 0.2
    stored = json.loads((tmp_path / "identification.json").read_text())
    assert len(stored["model"]["reference"]) == 30
    # what a reader of the exported files computes, from the exported bodies and those of the load
    exported = yaml.safe_load(write_sidecar(result, tmp_path / "joints.yaml").read_text())
    joints = exported["joints"].values()
    write_urdf(result, tmp_path / "arm.urdf")
    written = Robot.from_urdf(tmp_path / "arm.urdf")
    bodies = DynamicModel(written, friction="none", rotor_inertia=False)
    frozen = np.concatenate([exported["load"]["bodies"][body.name] for body in written.bodies])
    rigid, carried = (bodies.torque(theta, q, v, a) for theta in (written.inertials.reshape(-1), frozen))
    Fv, Fc, offset, Fl = ([joint[symbol]["value"] for joint in joints] for symbol in ("Fv", "Fc", "offset", "Fl"))
    friction = Fv * v + (Fc + Fl * np.abs(carried)) * np.tanh(v / 0.02) + offset
    inside = np.all(~outside(result.model, v), axis=1)
    np.testing.assert_allclose(rigid[inside] + friction[inside], result.torque(q, v, a)[inside], atol=1e-4)


# ---- Covariance where friction reads the rigid torque that is itself estimated: against what the converged estimate does ----

LAWS = ["viscous", "coulomb", "load_coulomb"]
SIGNALS = SignalConfig(cutoff=5.0, decimate=25.0)


def theta_of(model: DynamicModel) -> np.ndarray:
    inertial = inertials(model.robot)
    at = {"Fv": 2.0, "Fc": 1.0, "Fl": 0.25, "Flm": 0.1, "Ia": 3.0}
    return np.concatenate([inertial, [at[p.symbol] for p in model.parameters[len(inertial) :]]])


def record(model: DynamicModel, seed: int, seconds: float = 12.0) -> Recording:
    theta = theta_of(model)
    t, q, v, a = fourier(model.n, seconds, 100.0, seed)
    tau = model.with_reference(theta[: model.n_inertial]).torque(theta, q, v, a)
    tau = tau + 0.3 * np.random.default_rng(seed).standard_normal(tau.shape)
    return Recording(f"run{seed}", model.robot.joints, t, q, effort=tau, sha256=f"run{seed}")


def prepared(model: DynamicModel, recordings: list[Recording]) -> list[PreparedLog]:
    return prepare_logs(recordings, model.robot, Drive.build(model.n), SIGNALS)


def models() -> dict[str, DynamicModel]:
    motor = {"j3": ["load_coulomb"]}
    coupled = {"drive": Drive.build(3, reduction=A), "motor_friction": motor}
    return {
        "own axes": DynamicModel(Robot.from_urdf(arm_urdf("zyx")), friction=LAWS, rotor_inertia=False),
        "coupled": DynamicModel(robot_3r(), friction=LAWS, rotor_inertia=False, **coupled),
        "rotors": DynamicModel(robot_3r(), friction=LAWS),
    }


def exact(model: DynamicModel, log: PreparedLog, shift: np.ndarray) -> PreparedLog:
    """The log with the model's own torque along its segments, and a little more [N·m]."""
    theta = theta_of(model)
    truth = model.with_reference(theta[: model.n_inertial])
    parts = tuple(replace(s, tau=truth.torque_along(theta, s) + shift[: len(s)]) for s in log.segments)
    return replace(log, conditioned=replace(log.conditioned, segments=parts))


@pytest.mark.parametrize("name", ["coupled", "rotors"])
def test_the_settled_estimate_follows_the_data_as_the_response_says(name: str) -> None:
    """Torques are changed a little: what a frozen estimate makes of it, times the response, is what the converged one does."""
    model = models()[name]
    prior = inertial_prior(model.robot) if name == "rotors" else None
    to_the_end = partial(converge, tolerance=1e-11, prior=prior)
    raw = prepared(model, [record(model, seed) for seed in (0, 1)])
    rng = np.random.default_rng(7)
    noise = 1e-4 * rng.standard_normal((1200, model.n))
    logs = [exact(model, log, noise) for log in raw]
    estimate = partial(fit_base, base=model.base(), weights=dict.fromkeys((g.name for g in model.groups), 1e4))
    before = to_the_end(model, partial(build_statistics, logs=logs), estimate)
    response = load_response(before.fit, before.model, logs, prior)
    for _ in range(2):
        shift = noise + 1e-6 * (rng.standard_normal((1, model.n)) + rng.standard_normal((1200, model.n)))
        moved = [exact(model, log, shift) for log in raw]
        frozen = estimate(build_statistics(before.model, moved)).params - before.fit.params
        converged = to_the_end(
            model, partial(build_statistics, logs=moved), estimate, start=before.model.reference_theta
        ).fit.params
        scale = np.sqrt(np.diag(before.fit.covariance))
        follows = converged - before.fit.params
        error = np.abs((follows - response @ frozen) / scale).max()
        little = 1e-3 if prior is None else 5e-3  # second order; the prior weighs each joint by its own noise
        assert error < little * np.abs(frozen / scale).max()
        assert np.abs((follows - frozen) / scale).max() > 100 * error
