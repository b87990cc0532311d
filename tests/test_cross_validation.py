"""Held-out errors from factors against refits on the raw rows."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import fourier
from motion_samples import coupled_model, make_segment, raw_rows

from urdf_ident import BaseParameters, DynamicModel, Robot, Segment
from urdf_ident.errors import EstimationError
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.folds import TIME_FOLDS, cross_validate, fold_labels, folds_of, repetition_notes
from urdf_ident.statistics.motions import motions
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import Layout, Statistic, StatisticSet, merge_all

MODEL = coupled_model()
BASE = MODEL.base()
WEIGHTS = (1.0, 40.0, 40.0)


def segments(count: int) -> dict[str, Segment]:
    return {f"run{k}": make_segment(MODEL, 300 + 50 * k, log=f"run{k}", seed=k, sigma=0.2) for k in range(count)}


def estimate(part: StatisticSet) -> np.ndarray:
    theta = np.zeros(part.p)
    theta[BASE.independent] = fit_base(part, BASE, weights=dict(zip(part.groups, WEIGHTS, strict=True))).params
    return theta


def by_hand(train: list[list[np.ndarray]], test: list[np.ndarray], base: BaseParameters = BASE) -> np.ndarray:
    """Weighted least squares on raw rows; RMSE per row group on rows that were left out."""
    stack = np.vstack([w * rows[i] for rows in train for i, w in enumerate(WEIGHTS)])
    beta = np.linalg.lstsq(stack[:, base.independent], stack[:, -1], rcond=None)[0]
    return np.array([np.sqrt(np.mean((x[:, -1] - x[:, base.independent] @ beta) ** 2)) for x in test])


def as_set(model: DynamicModel, logs: dict[str, Segment], row_filter: RowFilter | None = None) -> StatisticSet:
    total = None
    for name, segment in logs.items():
        part = accumulate(model, name, [segment], row_filter or RowFilter(1))
        total = part if total is None else merge_all([total, part])
    return total


def test_leaving_logs_out_is_refitting_without_them() -> None:
    logs = segments(TIME_FOLDS + 1)
    rows = {name: raw_rows(MODEL, segment) for name, segment in logs.items()}
    result = cross_validate(as_set(MODEL, logs), estimate)
    assert result.folds == tuple(logs)
    assert result.groups == ("joint:j1", "actuator:j2", "actuator:j3")
    for k, left in enumerate(logs):
        expected = by_hand([rows[name] for name in logs if name != left], rows[left])
        np.testing.assert_allclose(result.rmse[k], expected, rtol=1e-7)
        np.testing.assert_allclose(result.effort_rms[k], [np.sqrt(np.mean(x[:, -1] ** 2)) for x in rows[left]], rtol=1e-9)
    np.testing.assert_allclose(result.group_rmse, np.sqrt(np.mean(result.rmse**2, axis=0)))
    assert result.mean_rmse == pytest.approx(np.mean(result.group_rmse))
    relative = result.group_rmse / np.sqrt(np.mean(result.effort_rms**2, axis=0))
    assert result.relative == pytest.approx(relative.mean())


def test_one_log_is_cut_in_time() -> None:
    logs = {"run": make_segment(MODEL, 1600, log="run", sigma=0.2)}
    (rows,) = [raw_rows(MODEL, segment) for segment in logs.values()]
    statistics = as_set(MODEL, logs)
    result = cross_validate(statistics, estimate)
    assert result.folds == tuple(f"run[{k}/{TIME_FOLDS}]" for k in range(1, TIME_FOLDS + 1))
    # 1600 rows in 32 blocks of 50, whole blocks to five folds in order of time
    fold_of_row = (np.arange(1600) // 50) * TIME_FOLDS // 32
    for k in range(TIME_FOLDS):
        train = [[x[fold_of_row != k] for x in rows]]
        np.testing.assert_allclose(result.rmse[k], by_hand(train, [x[fold_of_row == k] for x in rows]), rtol=1e-7)


def test_motions_that_repeat_themselves_are_held_out_whole() -> None:
    """Parts in time of a log of many periods know of each other, and would be no test."""

    def periods(name: str, turns: tuple[float, float, float]) -> Segment:
        t = np.arange(2000) / 100.0
        w = np.pi * np.array(turns)  # periods of 2 s, ten of them
        q = np.sin(np.outer(t, w))
        v, a = w * np.cos(np.outer(t, w)), -(w**2) * q
        return Segment(name, 0.0, 100.0, q, v, a, MODEL.torque(np.ones(len(MODEL.parameters)), q, v, a))

    two = as_set(MODEL, {"a": periods("a", (1, 2, 3)), "b": periods("b", (3, 1, 1))})
    assert set(fold_labels(two).values()) == {"a", "b"}


def test_one_block_cannot_be_cut() -> None:
    single = accumulate(MODEL, "run", [make_segment(MODEL, 300)], RowFilter(1), blocks=1)
    with pytest.raises(EstimationError, match="too short to be cut into folds; record longer"):
        cross_validate(single, estimate)


def repeats(kinds: dict[str, tuple[int, bool]], noise: float = 0.1) -> StatisticSet:
    """Logs of motions drawn by their seeds, some run backwards; the noise differs from log to log."""
    logs = {}
    for k, (name, (seed, backwards)) in enumerate(kinds.items()):
        part = make_segment(MODEL, 1600, log=name, seed=seed, sigma=0.0)
        if backwards:
            part = replace(part, q=part.q[::-1], v=-part.v[::-1], a=part.a[::-1])
        rng = np.random.default_rng(100 + k)
        logs[name] = replace(part, tau=part.tau + noise * rng.standard_normal(part.tau.shape))
    return as_set(MODEL, logs)


def test_repetitions_share_a_fold_and_a_path_run_backwards_does_not() -> None:
    others = {f"b{seed}": (seed, False) for seed in range(2, TIME_FOLDS + 1)}
    statistics = repeats({"a": (1, False), **others, "again": (1, False), "back": (1, True)})
    assert motions(statistics) == (("a", "again"), *((name,) for name in others), ("back",))
    split = folds_of(statistics)
    assert split.logs == ("a (+1)", *others, "back")
    assert split.rows == statistics.rows
    assert repetition_notes(statistics) == (
        "a, again are one motion: they are held out together and count as one where errors are judged",
    )


def test_a_log_cut_out_of_another_is_the_same_motion() -> None:
    whole = make_segment(MODEL, 3200, log="whole", sigma=0.0)
    q, v, a, tau = (x[1130:2900] for x in (whole.q, whole.v, whole.a, whole.tau))
    part = replace(whole, log="part", q=q, v=v, a=a, tau=tau)
    statistics = as_set(MODEL, {"whole": whole, "part": part, "other": make_segment(MODEL, 1600, log="other", seed=9)})
    assert motions(statistics) == (("whole", "part"), ("other",))


def test_different_motions_of_sliders_are_no_repetitions() -> None:
    """Acceleration, a constant and friction are all that a slider shows, and their second moments are alike in all motions."""
    model, logs = DynamicModel(Robot.from_urdf(arm_urdf("xy", kind="prismatic"))), {}
    for name, seed, begin in (("a", 1, 0), ("cut", 1, 981), ("b", 2, 0), ("c", 3, 0), ("d", 4, 0)):
        motion = (x[begin:] for x in fourier(2, 20.0, 100.0, seed)[1:])
        logs[name] = Segment(name, 0.0, 100.0, *motion, np.zeros((2000 - begin, 2)))
    assert motions(as_set(model, logs)) == (("a", "cut"), ("b",), ("c",), ("d",))


def test_joints_that_move_one_after_the_other_are_in_every_fold() -> None:
    """A part in time would hold all that a joint's friction shows, and the rest would know nothing of it."""
    layout = Layout("joint:j", 0, np.array([0, 1]))
    for moves, found in ((slice(4, 6), True), (slice(0, 10), False)):
        size = np.zeros(10)
        size[moves] = 1.0
        R = [np.array([[1.0, 0.0, 0.5], [0.0, x, 0.1], [0.0, 0.0, 0.1]]) for x in size]
        entries = tuple(Statistic("run", k, layout.group, R[k], 20) for k in range(10))
        split = folds_of(StatisticSet(("offset", "Fc"), (layout,), entries, "x"))
        moving = [entry.log for entry in split.entries if np.abs(entry.R[:, 1]).max() > 0.5]
        assert len(moving) == (2 if found else TIME_FOLDS)


def test_the_same_part_of_a_motion_is_held_out_of_a_repetition_that_begins_later() -> None:
    """A log that begins after a fifth of the motion is cut at the same places, to a block."""
    whole = make_segment(MODEL, 3000)
    late = replace(whole, log="late", **{name: getattr(whole, name)[600:] for name in ("q", "v", "a", "tau")})
    labels = fold_labels(as_set(MODEL, {"run": whole, "late": late}))
    blocks = sorted(block for log, block in labels if log == "late")
    begins = 0.2 + 0.8 * np.arange(len(blocks)) / len(blocks)
    clear = np.abs(TIME_FOLDS * begins - np.round(TIME_FOLDS * begins)) > TIME_FOLDS / len(blocks)
    assert clear.sum() > len(blocks) / 2
    assert [labels["late", block] for block in np.array(blocks)[clear]] == [
        f"run (+1)[{int(TIME_FOLDS * begin) + 1}/{TIME_FOLDS}]" for begin in begins[clear]
    ]
