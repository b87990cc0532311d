"""Triangular factors against the rows that they stand for."""

import json
import pickle

import numpy as np
import pytest
from motion_samples import make_segment, raw_rows, robot_3r

from urdf_ident.errors import FingerprintError
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.statistics.accumulate import accumulate, of_columns
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import Layout, Repetitions, Statistic, StatisticSet, merge_all

NONE = RowFilter(1)
LOGS = ("one", "two", "three")


@pytest.fixture(scope="module")
def rows(model: DynamicModel) -> dict[str, list[np.ndarray]]:
    return {log: raw_rows(model, make_segment(model, 500 + 37 * k, log=log, seed=k, sigma=0.3)) for k, log in enumerate(LOGS)}


@pytest.fixture(scope="module")
def whole(model: DynamicModel) -> StatisticSet:
    sets = [
        accumulate(model, log, [make_segment(model, 500 + 37 * k, log=log, seed=k, sigma=0.3)], NONE, blocks=7)
        for k, log in enumerate(LOGS)
    ]
    return merge_all(sets)


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


def test_stacked_applies_weights_to_both_sides_and_selects_columns(whole: StatisticSet, rows: dict) -> None:
    weights = dict(zip(whole.groups, (0.5, 3.0, 10.0), strict=True))
    columns = [35, 3, 31, 12, 0]
    direct = np.vstack([w * np.vstack([rows[log][i] for log in LOGS]) for i, w in enumerate(weights.values())])
    assert_same_gram(whole.stacked(weights, columns), direct[:, [*columns, -1]])
    assert_same_gram(whole.stacked(weights), direct)
    assert_same_gram(whole.stacked(), np.vstack([rows[log][i] for i in range(3) for log in LOGS]))


def test_unequal_sets_are_never_merged(model: DynamicModel, whole: StatisticSet) -> None:
    segment = make_segment(model, 300, log="four")
    other_filter = accumulate(model, "four", [segment], RowFilter(5))
    other_model = accumulate(DynamicModel(robot_3r(), drive=model.drive), "four", [segment], NONE)
    for other in (other_filter, other_model):
        with pytest.raises(FingerprintError, match="different models or conditionings"):
            merge_all([whole, other])
    with pytest.raises(FingerprintError, match="log 'one' is in both"):
        merge_all([whole, whole.only("one")])
    assert merge_all([whole, accumulate(model, "four", [segment], NONE)]).logs == (*LOGS, "four")


def test_columns_of_a_model_are_those_of_a_wider_one() -> None:
    robot = robot_3r()
    wide, narrow = (
        DynamicModel(robot, friction=laws) for laws in (["stribeck", "viscous", "coulomb", "offset"], ["offset", "viscous"])
    )
    segment = make_segment(wide, 500, sigma=0.3)
    selected = of_columns(accumulate(wide, "one", [segment], NONE, blocks=3), wide, narrow)
    assert selected is not None
    assert (selected.names, selected.logs) == (narrow.names, ("one",))
    for layout, direct in zip(selected.layouts, raw_rows(narrow, segment), strict=True):
        assert_same_gram(selected.factor(layout.group), direct[:, [*layout.columns, -1]])
    assert of_columns(selected, narrow, wide) is None
    assert of_columns(selected, narrow, narrow.with_apart([robot.joints[0]])) is None


def test_factors_are_read_only_and_travel_between_processes(whole: StatisticSet) -> None:
    with pytest.raises(ValueError, match="read-only"):
        whole.entries[0].factor[0, 0] = 1.0
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.stacked(), whole.stacked())
    assert json.dumps(whole.fingerprint)


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
    few = fold_labels(every.without(names[7:]))
    assert set(few.values()) == set(names[:7])
