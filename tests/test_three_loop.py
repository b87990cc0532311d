"""The three loops on a small arm with two encoders, whose truth is made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from two_encoders import GEAR, RATE, SIGNALS, excitation, record

import urdf_ident as ui
from urdf_ident import Drive, DynamicModel, ElasticModel, Limits, Recording, Robot, bidirectional_experiment
from urdf_ident.compensation.three_loop import fit_remaining_residual, three_loop
from urdf_ident.errors import EstimationError, LogError, ModelError
from urdf_ident.pipeline.compensate import compensate
from urdf_ident.signals.prepare import prepare_log, prepare_logs

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def sweeps(robot: Robot) -> Recording:
    home = np.full(robot.n, -0.5)  # runs go up from it: through the poses of the other motions
    motion = bidirectional_experiment(Limits.from_robot(robot, acceleration=4.0), home=home, count=8, cruise=2.0).trajectory
    t = motion.times(RATE)
    return record(robot, "sweeps", t, *motion.evaluate(t), seed=50)


@pytest.fixture(scope="module")
def drive(robot: Robot) -> Drive:
    return Drive.build(robot.n, reduction=np.full(robot.n, GEAR))


@pytest.fixture(scope="module")
def model(robot: Robot, drive: Drive) -> DynamicModel:
    return DynamicModel(robot, friction=["viscous", "coulomb", "offset"], drive=drive)


@pytest.fixture(scope="module")
def prepared(robot: Robot, drive: Drive, sweeps: Recording):
    logs = prepare_logs([excitation(robot, seed) for seed in (1, 2, 3, 4, 5, 6)], robot, drive, SIGNALS)
    return logs[:4], logs[4:], prepare_log(sweeps, robot, drive, SIGNALS, force=True)


@pytest.fixture(scope="module")
def found(model: DynamicModel, prepared):
    logs, unseen, runs = prepared
    return three_loop(model, logs, [runs], kind="rbf", held_out=unseen)


def test_the_loops_settle_and_beat_wls_on_other_motions(found) -> None:
    assert found.converged
    first, last = found.gains[0], found.gains[-1]
    assert first.loop == "wls"
    assert last.loop == "residual"
    assert last.held_out.mean() < 0.7 * first.held_out.mean()
    assert (last.held_out < first.held_out).all()
    assert max(found.residual.explained.values()) > 0.5


def test_friction_of_the_model_is_that_of_the_curves(found) -> None:
    q, v, a = np.random.default_rng(0).standard_normal((3, 20, 3))
    bare = found.model.with_terms([item for item in found.model.terms if item.term.name in ("rotor_inertia", "offset")])
    place = [found.model.names.index(name) for name in bare.names]
    friction = np.column_stack([curve.torque(v[:, j]) for j, curve in enumerate(found.friction)])
    rigid = found.model.torque(found.theta, q, v, a)
    assert rigid - bare.torque(found.theta[place], q, v, a) == pytest.approx(friction, abs=1e-9)


def test_residual_without_motor_positions_is_an_error(model: DynamicModel, robot: Robot, drive: Drive) -> None:
    log = prepare_log(excitation(robot, 1, encoders=False), robot, drive, SIGNALS)
    with pytest.raises(LogError, match=r"a residual was asked for, and the log has no motor positions.*qm_j1"):
        three_loop(model, [log], [])
    with pytest.raises(LogError, match="no motor positions"):
        fit_remaining_residual(model, np.zeros(len(model.parameters)), [log])
    assert three_loop(model, [log], [], kind="none", rounds=1).residual.networks == (None,) * 3


def test_wrong_use_is_named(model: DynamicModel, robot: Robot, drive: Drive, prepared) -> None:
    with pytest.raises(ModelError, match="springs already explain the deformation"):
        three_loop(ElasticModel(robot, drive=drive), prepared[0], [])
    with pytest.raises(EstimationError, match="did you mean 'gmr'"):
        three_loop(model, prepared[0], [], kind="gmm")
    with pytest.raises(LogError, match=r"the sweeps drive no joint|no runs at constant speed"):
        three_loop(model, prepared[0], prepared[1], kind="rbf")
    with pytest.raises(EstimationError, match="at least one round"):
        three_loop(model, prepared[0], [], rounds=0)


@pytest.fixture(scope="module")
def logs(robot: Robot):
    return [excitation(robot, seed) for seed in (1, 2, 3, 4)]


@pytest.fixture(scope="module")
def ident(model: DynamicModel, logs):
    return ui.identify(model, logs)


@pytest.fixture(scope="module")
def compensated(ident, logs, sweeps: Recording):
    return compensate(ident, logs, sweeps=[sweeps], kind="rbf", rounds=4)


def test_a_compensated_result_is_one_callable_and_survives_its_file(compensated, tmp_path) -> None:
    again = ui.load(compensated.save(tmp_path / "ident.json"))
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 30, 3))
    d, r = 1e-3 * rng.standard_normal((2, 30, 3))
    many = compensated.torque(q, v, a, deformation=d, deformation_rate=r)
    assert np.array_equal(again.torque(q, v, a, deformation=d, deformation_rate=r), many)
    single = [again.torque(*row[:3], deformation=row[3], deformation_rate=row[4]) for row in zip(q, v, a, d, r, strict=True)]
    assert np.array(single) == pytest.approx(many, abs=1e-10)
    assert np.array_equal(single[0], compensated.torque(q[0], v[0], a[0], deformation=d[0], deformation_rate=r[0]))
    assert np.abs(many - compensated.torque(q, v, a)).max() > 0.1  # without a deformation there is no residual


def test_a_deformation_for_a_result_without_residual_is_an_error(ident, compensated, logs) -> None:
    zero = np.zeros(3)
    for shape in (zero, np.zeros((4, 3))):
        with pytest.raises(ModelError, match="holds no residual"):
            ident.torque(shape, shape, shape, deformation=shape, deformation_rate=shape)
        with pytest.raises(ModelError, match="needs 'deformation_rate'"):
            compensated.torque(shape, shape, shape, deformation=shape)
    blind = [replace(log, motor_position=None) for log in logs]
    with pytest.raises(LogError, match="no motor positions"):
        compensate(ident, blind)
