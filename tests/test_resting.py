"""Joints that dry friction holds at rest: their equations count with the variance that they show."""

import numpy as np
import pytest
from estimation_samples import as_log
from motion_samples import make_segment, robot_3r, truth

from urdf_ident import DynamicModel, Recording, Segment, identify
from urdf_ident.estimation.estimators.resting import weigh_rests
from urdf_ident.project import parse_project
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

pytestmark = pytest.mark.usefixtures("unexamined")

NOISE, DRY = 0.05, 0.6  # standard deviation of the noise, largest static friction [N·m]


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return DynamicModel(robot_3r(), friction=["viscous", "coulomb", "offset"])


def jogged(model: DynamicModel, seed: int, held: tuple[int, ...], moves: int = 30, *, name: str = "log") -> Segment:
    """One joint after the other goes to another angle in 1 s and rests; joints ``held`` rest with a torque of ±DRY more."""
    rng, rate, n = np.random.default_rng(seed), 100.0, model.n
    x = np.arange(100) / 100.0
    q, v, a, stuck = (np.zeros((100 * moves, n)) for _ in range(4))
    at, still = rng.uniform(-0.5, 0.5, n), rng.uniform(-DRY, DRY, n)
    for k in range(moves):
        part, j = slice(100 * k, 100 * (k + 1)), k % n
        still[j] = rng.uniform(-DRY, DRY)  # another torque after each motion
        way = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.0)
        q[part], stuck[part] = at, still
        q[part, j] += way * (x - np.sin(2 * np.pi * x) / (2 * np.pi))
        v[part, j], a[part, j] = way * (1 - np.cos(2 * np.pi * x)), way * 2 * np.pi * np.sin(2 * np.pi * x)
        stuck[part, j] = 0.0
        at[j] += way
    tau = model.torque(truth(model), q, v, a) + NOISE * rng.normal(size=q.shape)
    return Segment(name, 0.0, rate, q, v, a, tau + np.where(np.isin(np.arange(n), held), stuck, 0.0))


def test_only_joints_that_friction_holds_count_less(model: DynamicModel) -> None:
    (log,), notes = weigh_rests(model, [as_log(jogged(model, 0, (1,)), 5)], SignalConfig())
    weights = log.segments[0].weights
    assert weights.shape == (3000, 3)
    assert (weights[:, [0, 2]] == 1.0).all()
    assert (weights[130:170, 1] == 1.0).all()  # it moves
    ratio = weights[220:280, 1]  # it rests
    window = NOISE**2 / 20 / (DRY**2 / 3)  # mean over 0.2 s of white noise, over the variance of an equal distribution
    assert (ratio == ratio[0]).all()
    assert window / 4 < ratio[0] < window * 4
    (note,) = notes
    assert "j2" in note
    assert "j1" not in note


def test_weights_make_the_estimate_better(model: DynamicModel) -> None:
    """Torque in another motion, from the estimates with and without weights, against the truth; mean over seeds."""
    other = make_segment(model, 400, seed=99)
    errors = []
    for seed in range(6):
        plain = [as_log(jogged(model, seed, (0, 1, 2)), 5)]
        logs, _ = weigh_rests(model, plain, SignalConfig())
        errors.append([_error(model, some, other) for some in (plain, logs)])
    before, after = np.sqrt(np.mean(np.square(errors), axis=0))
    assert after < 0.6 * before


def _error(model: DynamicModel, logs: list[PreparedLog], other: Segment) -> float:
    fit = fit_base(build_statistics(model, logs), model.base())
    wrong = model.torque(fit.base.embedded(fit.params), other.q, other.v, other.a) - other.tau
    return float(np.sqrt(np.mean(wrong**2)))


def test_identify_weighs_rests_and_says_so(model: DynamicModel) -> None:
    segment = jogged(model, 0, (1,))
    log = Recording("log", model.robot.joints, segment.time, segment.q, effort=segment.tau)
    for method, said in (("auto", True), ("ols", False)):
        project = parse_project({"estimation": {"covariance": "model", "method": method}})
        notes = identify(model, [log], project=project).solver["notes"]
        assert any("dry friction holds resting joints" in note and "j2" in note for note in notes) is said
