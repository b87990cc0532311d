"""The row producer: streaming equals filtering whole signals, the published filter equals scipy's, memory stays flat."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from motion_samples import coupled_model, make_segment, raw_rows, truth
from scipy import signal

from urdf_ident.errors import EstimationError, FingerprintError, LogError, ModelError
from urdf_ident.logs.recording import Recording
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.samples import Segment
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics import rows as rows_module
from urdf_ident.statistics.accumulate import accumulate, build_statistics
from urdf_ident.statistics.rows import RowFilter, filtered_rows


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return coupled_model()


@pytest.mark.parametrize("factor", [2, 3, 10, 47])
def test_fir_is_symmetric_and_stops_what_would_fold_back(factor: int) -> None:
    taps = RowFilter(factor).taps()
    np.testing.assert_allclose(taps, taps[::-1], atol=1e-17)
    assert taps.sum() == pytest.approx(1.0)
    frequency, response = signal.freqz(taps, worN=4096, fs=float(factor))  # in units of the row rate
    gain = np.abs(response)
    assert np.abs(gain[frequency < 0.2] - 1).max() < 2e-3
    assert gain[np.argmin(np.abs(frequency - 0.4))] == pytest.approx(0.5, abs=0.02)
    assert gain[frequency > 0.6].max() < 2e-3  # folds back to below 0.4


@pytest.mark.parametrize("factor", [1, 4, 15])
def test_rows_are_not_delayed(factor: int) -> None:
    kept = RowFilter(factor)
    t = np.arange(1000) / 1000.0
    x = np.sin(2 * np.pi * (40.0 / factor) * t + 0.4)[:, None]
    out = kept.apply(x)
    assert len(out) == kept.output_rows(len(x))
    half = len(kept.taps()) // 2
    np.testing.assert_allclose(out, x[half : half + factor * len(out) : factor], atol=5e-3)


@pytest.mark.parametrize("factor", [1, 2, 7, 20])
@pytest.mark.parametrize("at_once", [3, 64])
@pytest.mark.parametrize("samples", [1, 150, 241, 613])
def test_streamed_rows_are_the_filtered_signal(
    model: DynamicModel, factor: int, at_once: int, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "AT_ONCE", at_once * factor)
    segment, kept = make_segment(model, samples, sigma=0.5), RowFilter(factor)
    expected = [kept.apply(x) for x in raw_rows(model, segment)]
    pieces, begin = [], 0
    for first, piece in filtered_rows(model, segment, kept):
        assert first == begin
        assert len(piece[0]) <= at_once
        begin += len(piece[0])
        pieces.append(piece)
    assert begin == kept.output_rows(samples) == len(expected[0])
    for i, group in enumerate(model.groups if pieces else ()):
        got = np.vstack([piece[i] for piece in pieces])
        wanted = expected[i][:, [*group.columns, -1]]
        np.testing.assert_allclose(got, wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("factor", [1, 6])
def test_equations_stay_exact_under_filtering(model: DynamicModel, factor: int) -> None:
    """W and tau lose the same: without noise the truth solves the filtered rows too."""
    part = accumulate(model, "log", [make_segment(model, 700)], RowFilter(factor))
    for group in part.groups:
        assert part.residual_squares(truth(model), group) < 1e-18 * part.effort_squares(group)


def test_pieces_of_a_log_add_up(model: DynamicModel) -> None:
    long, short, tiny = (make_segment(model, n, seed=n) for n in (640, 200, 5))
    kept = RowFilter(4)
    part = accumulate(model, "log", [long, tiny, short], kept, blocks=10)
    assert sum(part.rows.values()) == 3 * (kept.output_rows(640) + kept.output_rows(200))
    assert {entry.block for entry in part.entries} == set(range(10))
    for i, layout in enumerate(part.layouts):
        direct = np.vstack([kept.apply(raw_rows(model, segment)[i]) for segment in (long, short)])[:, [*layout.columns, -1]]
        norm = np.linalg.norm(direct, axis=0) + 1e-300
        R = part.factor(layout.group)
        np.testing.assert_allclose((R / norm).T @ (R / norm), (direct / norm).T @ (direct / norm), atol=1e-11)


def test_number_of_blocks_does_not_change_the_whole(model: DynamicModel) -> None:
    segment = make_segment(model, 400, sigma=0.1)
    few, many = (accumulate(model, "log", [segment], RowFilter(2), blocks=k) for k in (1, 32))
    norm = np.linalg.norm(few.stacked(), axis=0) + 1e-300
    np.testing.assert_allclose(
        (many.stacked() / norm).T @ (many.stacked() / norm), (few.stacked() / norm).T @ (few.stacked() / norm), atol=1e-11
    )


def test_logs_that_give_nothing_are_refused(model: DynamicModel) -> None:
    segment = make_segment(model, 30)
    with pytest.raises(LogError, match=r"log: no torque or current in the log; name the effort columns"):
        accumulate(model, "log", [Segment("log", 0, 100.0, segment.q, segment.v, segment.a)], RowFilter(2))
    with pytest.raises(EstimationError, match="shorter than the filter"):
        accumulate(model, "log", [segment], RowFilter(10))
    with pytest.raises(EstimationError, match="shorter than the filter"):
        accumulate(model, "log", [], RowFilter(10))


def test_wrong_filters_are_refused() -> None:
    with pytest.raises(ModelError, match="invalid row filter"):
        RowFilter(0)


def test_memory_does_not_hold_the_regressor(model: DynamicModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urdf_ident.statistics.rows.MOST", 0)  # of all segments as of long ones

    def peak(samples: int) -> int:
        segment = make_segment(model, samples)
        tracemalloc.start()
        accumulate(model, "log", [segment], RowFilter(10))
        _, high = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return high

    short, long = 10_000, 40_000
    growth = (peak(long) - peak(short)) / (long - short)
    assert growth < 8 * model.n / 4  # bytes a sample: no copy of a single signal


def recording(model: DynamicModel, name: str, rate: float, seed: int) -> Recording:
    s = make_segment(model, int(12 * rate), log=name, rate=rate, seed=seed, sigma=0.05)
    return Recording(name, model.robot.joints, s.time, np.array(s.q), effort=np.array(s.tau))


def prepared(model: DynamicModel, *recordings: Recording) -> list[PreparedLog]:
    return prepare_logs(recordings, model.robot, model.drive, SignalConfig(cutoff=10.0, decimate=25.0))


def test_logs_of_different_rates_are_one_problem(model: DynamicModel) -> None:
    logs = prepared(model, recording(model, "slow", 125.0, 1), recording(model, "fast", 500.0, 2))
    both = build_statistics(model, logs)
    assert both.logs == ("slow", "fast")
    assert {round(log.conditioned.rate) for log in logs} == {125, 500}
    base = model.base()
    theta = np.zeros(both.p)
    theta[base.independent] = base.of(truth(model))
    for group in both.groups:
        assert both.residual_squares(theta, group) < 2e-2 * both.effort_squares(group)


def test_unequal_conditioning_is_never_merged(model: DynamicModel) -> None:
    one = prepare_logs([recording(model, "one", 200.0, 1)], model.robot, model.drive, SignalConfig(cutoff=8.0, decimate=20.0))
    two = prepare_logs([recording(model, "two", 200.0, 2)], model.robot, model.drive, SignalConfig(cutoff=9.0, decimate=20.0))
    with pytest.raises(FingerprintError):
        build_statistics(model, one).merged(build_statistics(model, two))


def test_no_log_is_refused(model: DynamicModel) -> None:
    with pytest.raises(EstimationError, match="no log"):
        build_statistics(model, [])


def test_progress_counts_the_logs(model: DynamicModel) -> None:
    seen: list[tuple[str, int, int]] = []
    logs = prepare_logs([recording(model, f"run{k}", 200.0, k) for k in range(3)], model.robot, model.drive, SignalConfig())
    build_statistics(model, logs, progress=lambda *given: seen.append(given))
    assert [(done, total) for _, done, total in seen] == [(1, 3), (2, 3), (3, 3)]
