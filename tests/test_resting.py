"""Joints that dry friction holds at rest: their equations count with the variance that they show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimation_samples import as_log
from motion_samples import make_segment, robot_3r, truth

from urdf_ident.estimation.estimators.resting import weigh_alike, weigh_rests
from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project
from urdf_ident.samples import Segment
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog
from urdf_ident.statistics.accumulate import accumulate, build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.motions import motions_in_common
from urdf_ident.statistics.rows import RowFilter

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


def test_drives_that_hold_without_friction_change_nothing(model: DynamicModel) -> None:
    for seed in range(12):
        logs = [as_log(jogged(model, seed, ()), 5)]
        same, notes = weigh_rests(model, logs, SignalConfig())
        assert same is logs
        assert notes == ()


def test_passing_through_zero_is_no_rest(model: DynamicModel) -> None:
    logs = [as_log(make_segment(model, 1500, sigma=0.05), 5)]
    assert weigh_rests(model, logs, SignalConfig())[0] is logs


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


def test_few_motions_are_not_outweighed_by_their_rests(model: DynamicModel) -> None:
    """With 27 rows for 20 parameters, gravity that fits the held torque is a fixed point as well; motion contradicts it."""
    other, found, errors = make_segment(model, 400, seed=99), 0, []
    for seed in range(200, 216):
        plain = [as_log(jogged(model, seed, (1,), moves=9), 5)]
        logs, notes = weigh_rests(model, plain, SignalConfig())
        found += any("j2" in note for note in notes)
        errors.append([_error(model, some, other) for some in (plain, logs)])
    before, after = np.median(errors, axis=0)
    assert found >= 12
    assert after < 0.7 * before


def test_too_few_rests_to_show_stiction_count_less(model: DynamicModel) -> None:
    """Every joint moves in one log and rests once or twice in the other; their variances cannot be estimated."""
    other, errors = make_segment(model, 400, seed=99), []
    for seed in range(300, 312):
        free = make_segment(model, 600, seed=seed, sigma=NOISE, log="free")
        plain = [as_log(segment, 5) for segment in (free, jogged(model, seed, (0, 1, 2), moves=4))]
        logs, notes = weigh_rests(model, plain, SignalConfig())
        assert notes[0].count("too few") == model.n
        assert logs[0].segments[0].weights.min() == 1.0
        errors.append([_error(model, some, other) for some in (plain, logs)])
    before, after = np.median(errors, axis=0)
    assert after < 0.7 * before


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


def test_rows_of_samples_with_weights_are_scaled_and_counted(model: DynamicModel) -> None:
    """Against weighted least squares written out: equal variance after the filter, kept or made anew."""
    rng = np.random.default_rng(4)
    plain = make_segment(model, 700, sigma=0.05)
    weights = np.where(np.arange(700)[:, None] // 140 % 2, rng.uniform(0.1, 1.0, 3), 1.0)
    segment = replace(plain, weights=weights)
    for factor in (1, 4):
        row_filter = RowFilter(factor)
        made = accumulate(model, "log", [segment], row_filter, blocks=1)
        kept = accumulate(model, "log", [segment], row_filter, blocks=1)
        for entry, other, rows, own in zip(made.entries, kept.entries, _rows(model, plain, row_filter), weights.T, strict=True):
            share = _share(own, row_filter)
            wide = rows * np.sqrt(share)[:, None]
            np.testing.assert_allclose(entry.R.T @ entry.R, wide.T @ wide, atol=1e-9 * np.abs(wide.T @ wide).max())
            np.testing.assert_allclose(other.R.T @ other.R, entry.R.T @ entry.R, atol=1e-9 * np.abs(wide.T @ wide).max())
            assert entry.rows == other.rows == round(share.sum())


def _rows(model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
    """``[W | tau]`` per row group from the regressor of every sample."""
    (_, blocks), *_ = model.row_blocks(segment, chunk=len(segment), torque=True)
    return [row_filter.apply(block) for block in blocks]


def _share(weights: Array, row_filter: RowFilter) -> Array:
    """Variance of filtered white noise of variance 1 over that of variance 1/w, by the filter's matrix."""
    matrix = row_filter.apply(np.eye(len(weights)))
    return np.asarray(np.sum(matrix**2, axis=1) / np.sum(matrix**2 / weights, axis=1))


@pytest.mark.parametrize("begin", [0, 1100])
def test_a_repetition_is_known_by_the_weights_of_the_training_logs(model: DynamicModel, begin: int) -> None:
    """Rows of rests count less, each joint's own; the part that two logs share is one of time, not of such rows."""
    trained, _ = weigh_rests(
        model, [as_log(jogged(model, 0, (0, 1)), 5), as_log(jogged(model, 1, (0, 1), name="b"), 5)], SignalConfig()
    )
    whole = trained[0].segments[0]
    again = replace(whole.slice(begin, begin + 1700), log="again", weights=None)
    noise = NOISE * np.random.default_rng(2).standard_normal(again.tau.shape)
    others = weigh_alike(model, trained, SignalConfig(), [as_log(replace(again, tau=again.tau + noise), 5)])
    assert np.array_equal(others[0].segments[0].weights[50:-50], whole.weights[begin + 50 : begin + 1650])
    assert motions_in_common(build_statistics(model, others), build_statistics(model, trained)) == {"again": "log"}
