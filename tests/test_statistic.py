"""Triangular factors against the rows that they stand for."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from motion_samples import coupled_model, make_segment, raw_rows, robot_3r

from urdf_ident.errors import EstimationError, FingerprintError
from urdf_ident.linalg import triangle
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.entries import Layout, Statistic
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import Repetitions, StatisticSet

NONE = RowFilter(1)
LOGS = ("one", "two", "three")


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return coupled_model()


@pytest.fixture(scope="module")
def rows(model: DynamicModel) -> dict[str, list[np.ndarray]]:
    return {log: raw_rows(model, make_segment(model, 500 + 37 * k, log=log, seed=k, sigma=0.3)) for k, log in enumerate(LOGS)}


@pytest.fixture(scope="module")
def whole(model: DynamicModel) -> StatisticSet:
    sets = [
        accumulate(model, log, [make_segment(model, 500 + 37 * k, log=log, seed=k, sigma=0.3)], NONE, blocks=7)
        for k, log in enumerate(LOGS)
    ]
    return sets[0].merged(sets[1]).merged(sets[2])


def gram(x: np.ndarray) -> np.ndarray:
    return x.T @ x


def assert_same_gram(factor: np.ndarray, direct: np.ndarray) -> None:
    """Entries compared after scaling with the column norms."""
    norm = np.linalg.norm(direct, axis=0) + 1e-300
    np.testing.assert_allclose(gram(factor / norm), gram(direct / norm), atol=1e-11)


def test_factors_hold_the_rows_of_every_group(model: DynamicModel, whole: StatisticSet, rows: dict) -> None:
    assert whole.logs == LOGS
    assert whole.groups == ("joint:j1", "actuator:j2", "actuator:j3")
    for i, layout in enumerate(whole.layouts):
        direct = np.vstack([rows[log][i] for log in LOGS])
        assert_same_gram(whole.factor(layout.group), direct[:, [*layout.columns, -1]])
        assert whole.rows[layout.group] == len(direct)
        left_out = np.setdiff1d(np.arange(whole.p), layout.columns)
        assert np.abs(direct[:, left_out]).max(initial=0.0) < 1e-9  # only structural zeros are not carried
        R = whole.factor(layout.group)
        assert R.shape[0] <= layout.width == R.shape[1]


def test_blocks_are_pieces_of_time(whole: StatisticSet, rows: dict) -> None:
    for i, group in enumerate(whole.groups):
        entries = [entry for entry in whole.entries if entry.log == "two" and entry.group == group]
        assert [entry.block for entry in entries] == list(range(7))
        direct = rows["two"][i][:, [*whole.layout(group).columns, -1]]
        begin = 0
        for entry in entries:
            assert abs(entry.rows - len(direct) / 7) <= 1
            assert_same_gram(entry.R, direct[begin : begin + entry.rows])
            begin += entry.rows
        assert begin == len(direct)


def test_stacked_applies_weights_to_both_sides_and_selects_columns(whole: StatisticSet, rows: dict) -> None:
    weights = dict(zip(whole.groups, (0.5, 3.0, 10.0), strict=True))
    columns = [35, 3, 31, 12, 0]
    direct = np.vstack([w * np.vstack([rows[log][i] for log in LOGS]) for i, w in enumerate(weights.values())])
    assert_same_gram(whole.stacked(weights, columns), direct[:, [*columns, -1]])
    assert_same_gram(whole.stacked(weights), direct)
    assert_same_gram(whole.stacked(), np.vstack([rows[log][i] for i in range(3) for log in LOGS]))


def test_leaving_out_and_compressing(whole: StatisticSet, rows: dict) -> None:
    for part, logs in ((whole.without(["two"]), ("one", "three")), (whole.only(["three"]), ("three",))):
        assert part.logs == logs
        for kept in (part, part.compressed()):
            assert_same_gram(kept.stacked(), np.vstack([rows[log][i] for i in range(3) for log in logs]))
            assert kept.rows == part.rows
    assert len(whole.compressed().entries) == 9
    early = whole.select(lambda entry: entry.block < 3)
    assert sum(early.rows.values()) < sum(whole.rows.values()) / 2
    assert_same_gram(whole.stacked(), np.vstack([rows[log][i] for i in range(3) for log in LOGS]))  # the whole is untouched


def test_residual_and_effort(whole: StatisticSet, rows: dict) -> None:
    theta = np.random.default_rng(0).normal(size=whole.p)
    for i, group in enumerate(whole.groups):
        direct = np.vstack([rows[log][i] for log in LOGS])
        assert whole.residual_squares(theta, group) == pytest.approx(
            np.sum((direct[:, -1] - direct[:, :-1] @ theta) ** 2), rel=1e-9
        )
        assert whole.effort_squares(group) == pytest.approx(np.sum(direct[:, -1] ** 2), rel=1e-9)


def test_unequal_sets_are_never_merged(model: DynamicModel, whole: StatisticSet) -> None:
    segment = make_segment(model, 300, log="four")
    other_filter = accumulate(model, "four", [segment], RowFilter(5))
    other_model = accumulate(DynamicModel(robot_3r(), drive=model.drive), "four", [segment], NONE)
    for other in (other_filter, other_model):
        with pytest.raises(FingerprintError, match="different models or conditionings"):
            whole.merged(other)
    with pytest.raises(FingerprintError, match="log 'one' is in both"):
        whole.merged(whole.only(["one"]))
    assert whole.merged(accumulate(model, "four", [segment], NONE)).logs == (*LOGS, "four")


def test_an_empty_set_says_so(whole: StatisticSet) -> None:
    empty = whole.without(LOGS)
    assert empty.logs == ()
    with pytest.raises(EstimationError, match="no data left"):
        empty.stacked()


def test_instruments_stand_beside_the_columns() -> None:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(60, 2 + 3 + 1))  # two instruments, three columns, the effort
    layout = Layout("joint:j", 0, np.array([0, 1, 2]), (0, 2))
    assert layout.width == 6
    entries = tuple(Statistic("log", k, "joint:j", triangle(data[20 * k : 20 * k + 20]), 20) for k in range(3))
    single = StatisticSet(("a", "b", "c"), (layout,), entries, "x")
    assert_same_gram(single.factor("joint:j"), data)
    assert_same_gram(single.stacked(), data[:, 2:6])
    theta = np.array([1.0, -2.0, 0.5])
    assert single.residual_squares(theta, "joint:j") == pytest.approx(np.sum((data[:, 5] - data[:, 2:5] @ theta) ** 2))
    assert single.effort_squares("joint:j") == pytest.approx(np.sum(data[:, 5] ** 2))


def test_factors_are_read_only_and_travel_between_processes(whole: StatisticSet) -> None:
    with pytest.raises(ValueError, match="read-only"):
        whole.entries[0].factor[0, 0] = 1.0
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.stacked(), whole.stacked())
    assert json.dumps(whole.fingerprint)


def test_dependent_columns_are_not_stored_but_computed(whole: StatisticSet) -> None:
    rng = np.random.default_rng(2)
    for entry in whole.entries:
        layout = whole.layout(entry.group)
        assert entry.factor.shape[1] == len(layout.places) + 1 < layout.width
        assert entry.R.shape[1] == layout.width
        matrix = rng.normal(size=(layout.width, 3))
        np.testing.assert_allclose(entry.factor @ entry.times(matrix), entry.R @ matrix, rtol=1e-9, atol=1e-9)
        stored, expansion = layout.reduced(entry.R)
        np.testing.assert_allclose(stored, entry.factor, rtol=1e-9, atol=1e-9)
        assert layout.reduced(stored)[0] is stored
        again = Statistic("log", 0, entry.group, entry.R, entry.rows)
        assert again.times(matrix) is matrix
        np.testing.assert_array_equal(layout.merged([again.factor]), layout.merged([entry.factor]))
        assert expansion is layout.expansion


def test_leaving_logs_out_by_merges_is_leaving_them_out() -> None:
    """Five logs: the factors of the rest, from prefixes and suffixes, hold the same second moments and the same counts."""
    rng = np.random.default_rng(4)
    layouts = (Layout("joint:a", 0, np.arange(3)), Layout("joint:b", 1, np.array([1, 2])))
    entries = tuple(
        Statistic(f"run{k}", block, layout.group, rng.normal(size=(4, layout.width)), 10 + k)
        for k in range(5)
        for block in range(2)
        for layout in layouts
    )
    every = StatisticSet(("x", "y", "z"), layouts, entries, "f")
    for log in every.logs:
        rest, plain = every.left_out(log), every.without([log])
        assert rest.logs == plain.logs
        assert rest.rows == plain.rows
        for group in every.groups:
            ours, theirs = rest.factor(group), plain.factor(group)
            np.testing.assert_allclose(ours.T @ ours, theirs.T @ theirs, rtol=1e-12, atol=1e-12)


def test_many_motions_are_held_out_in_groups_of_neighbours() -> None:
    from urdf_ident.statistics.folds import MOTION_FOLDS, fold_labels

    names = [f"run{k:02d}" for k in range(25)]
    entry = [Statistic(name, block, "joint:a", np.eye(2), 5) for name in names for block in range(3)]
    repeated = Repetitions(tuple((name,) for name in names), None)
    every = StatisticSet(("x",), (Layout("joint:a", 0, np.arange(1)),), tuple(entry), "f", repeated)
    labels = fold_labels(every)
    assert len(set(labels.values())) == MOTION_FOLDS
    assert labels["run00", 0] == labels["run01", 2] == "run00 to run01"
    assert labels["run24", 0] == "run22 to run24"
    few = fold_labels(every.only(names[:7]))
    assert set(few.values()) == set(names[:7])
