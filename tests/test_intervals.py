"""Intervals of torque, mass matrix and masses: coverage by simulation, closed forms, infinity where nothing is known."""

from dataclasses import replace
from types import ModuleType

import numpy as np
import pinocchio as pin
import pytest
from conftest import load_script
from estimation_samples import coloured, result
from motion_samples import coupled_model, make_segment, robot_3r, truth

from urdf_ident import Drive, DynamicModel, ElasticModel
from urdf_ident.errors import ModelError, ShapeError
from urdf_ident.linalg import Array

pytestmark = pytest.mark.usefixtures("unexamined")

LAWS = ["viscous", "coulomb", "offset"]


def inside(ends: Array, value: Array) -> Array:
    return (ends[..., 0] <= value) & (value <= ends[..., 1])


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_intervals_cover(rho: float) -> None:
    """White and coloured noise; the covariance that fits the noise makes 95 % intervals hold in 95 % of runs."""
    model = DynamicModel(robot_3r(), friction=LAWS)
    runs, rng = (120, np.random.default_rng(0)) if rho == 0 else (40, np.random.default_rng(1))
    q, v, a = rng.uniform(-1, 1, (3, 6, 3))
    torque = model.torque(truth(model), q, v, a)
    torques, matrices = [], []
    clean = make_segment(model, 400)
    for run in range(runs):
        ident = result(model, coloured(clean, 0.5, rho, run), "model" if rho == 0 else "ar")
        torques.append(inside(ident.torque_interval(q, v, a), torque))
        matrices.append(inside(ident.mass_matrix_interval(q[0]), ident.mass_matrix(q[0])))
    for held in (np.array(torques), np.array(matrices)):
        assert 0.91 <= held.mean() <= 0.985
        assert held.reshape(runs, -1).mean(axis=0).min() > 0.8


def test_mass_matrix_is_crba_with_rotors() -> None:
    model = DynamicModel(robot_3r(), friction=LAWS)
    ident = result(model, make_segment(model, 300, sigma=0.1))
    q = np.array([0.3, -0.4, 0.9])
    robot, data = model.robot.model, model.robot.model.createData()
    plain = pin.crba(robot, data, q)
    plain = np.triu(plain) + np.triu(plain, 1).T
    np.testing.assert_allclose(ident.mass_matrix(q), plain + np.diag(list(ident.term_values("Ia").values())), atol=1e-12)
    ends = ident.mass_matrix_interval(q)
    np.testing.assert_allclose(ends, np.swapaxes(ends, 0, 1), atol=1e-9)
    wide = ident.mass_matrix_interval(q, alpha=0.01)
    assert (np.diff(wide) >= np.diff(ends)).all()


def test_infinite_where_the_data_say_nothing() -> None:
    model = DynamicModel(robot_3r(), friction=LAWS)
    free = make_segment(model, 600)
    q, v, a = (np.array(x) for x in (free.q, free.v, free.a))
    q[:, 2], v[:, 2], a[:, 2] = 0.4, 0.0, 0.0
    true = model.torque(truth(model), q, v, a)
    held = []
    for seed in range(20):
        tau = true + 0.1 * np.random.default_rng(seed).normal(size=q.shape)
        ident = result(model, replace(free, q=q, v=v, a=a, tau=tau))
        asleep = ident.torque_interval(q[::60], v[::60], a[::60])
        assert np.isfinite(asleep).all()  # what was done can be predicted
        held.append(inside(asleep, true[::60]))
    assert 0.9 <= np.mean(held) <= 0.99
    awake = ident.torque_interval(q[::60], v[::60], a[::60] + [0, 0, 3.0])
    assert np.isinf(awake[:, 2]).all()  # what was not, cannot
    matrix = ident.mass_matrix_interval(q[0])
    assert np.isinf(matrix[2, 2]).all()
    assert np.isfinite(matrix[0, 0]).all()


def test_coupled_drive_and_shapes() -> None:
    model = coupled_model()
    ident = result(model, make_segment(model, 600, sigma=np.array([0.2, 0.004, 0.001])))
    q = np.array([0.3, -0.4, 0.9])
    assert ident.torque_interval(q, q, q).shape == (3, 2)
    assert ident.torque_interval([q, q], [q, q], [q, q]).shape == (2, 3, 2)
    assert inside(ident.mass_matrix_interval(q, 1e-4), ident.mass_matrix(q)).all()
    with pytest.raises(ShapeError):
        ident.torque_interval(q, q[:2], q)
    with pytest.raises(ShapeError):
        ident.mass_matrix_interval([q, q])


def test_elastic_joints_are_refused() -> None:
    model = DynamicModel(robot_3r(), friction=LAWS)
    ident = result(model, make_segment(model, 300, sigma=0.1))
    springs = replace(ident, model=ElasticModel(robot_3r(), drive=Drive.build(3, reduction=[100.0] * 3)))
    for call in (lambda: springs.torque_interval(*np.zeros((3, 3))), lambda: springs.mass_matrix_interval(np.zeros(3))):
        with pytest.raises(ModelError, match="elastic"):
            call()


# ---- Intervals that hold the truth: a short version of ``scripts/benchmarks/interval_coverage.py`` ----

RUNS = 8


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return load_script("benchmarks/interval_coverage.py")


@pytest.fixture(scope="module")
def arm(benchmark: ModuleType):
    return benchmark.Arm.build()


@pytest.fixture(scope="module")
def motion(arm):
    return arm.motion(0)


@pytest.mark.parametrize(("rho", "textbook"), [(0.9, 0.34), (0.98, 0.18)])
def test_automatic_intervals_hold_the_truth_where_textbook_ones_do_not(benchmark, arm, motion, rho, textbook) -> None:
    held: dict[str, list[np.ndarray]] = {"model": [], "auto": []}
    for log in benchmark.logs_of(arm, motion, rho, RUNS, seed=50):
        for kind, fit in benchmark.fits_of(arm, log, held).items():
            low, high = fit.conf_int().T
            held[kind].append((low <= arm.truth) & (arm.truth <= high))
    assert np.mean(held["model"]) < textbook + 0.15
    assert 0.90 <= np.mean(held["auto"]) <= 0.995  # 100 runs: 95 and 97 %; parameters of one run err together
    assert np.mean(held["auto"], axis=0).min() >= 0.5
