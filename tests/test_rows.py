"""The row producer: streaming equals filtering whole signals, the published filter equals scipy's, memory stays flat."""

import tracemalloc

import numpy as np
import pytest
from motion_samples import make_segment, raw_rows, truth
from scipy import signal

from urdf_ident import Drive, DynamicModel, Recording, Robot, Segment, robot_path
from urdf_ident.errors import EstimationError
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics import rows
from urdf_ident.statistics import rows as rows_module
from urdf_ident.statistics.accumulate import accumulate, build_statistics
from urdf_ident.statistics.rows import RowFilter, evenly_spread, filtered_rows


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


@pytest.mark.parametrize("factor", [1, 7])
@pytest.mark.parametrize("at_once", [3, 64])
@pytest.mark.parametrize("samples", [1, 613])
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


def test_logs_that_give_nothing_are_refused(model: DynamicModel) -> None:
    segment = make_segment(model, 30)
    with pytest.raises(EstimationError, match="shorter than the filter"):
        accumulate(model, "log", [segment], RowFilter(10))
    with pytest.raises(EstimationError, match="shorter than the filter"):
        accumulate(model, "log", [], RowFilter(10))


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
    peak(short)  # what is made at the first time only
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


# ---- Rows that are kept from one model to the next are those that are made anew ----

SIMPLE, MANY = ["viscous", "coulomb"], ["viscous", "stribeck", "load_coulomb", "presliding"]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(robot_path("szabo_3r"))


def piece(robot: Robot, samples: int, seed: int, **more: object) -> Segment:
    rng = np.random.default_rng(seed)
    t = np.arange(samples)[:, None] / 100.0
    q = np.sin(t * rng.uniform(0.5, 2.0, robot.n) + rng.uniform(0, 6, robot.n))
    v, a = np.gradient(q, 0.01, axis=0), np.gradient(np.gradient(q, 0.01, axis=0), 0.01, axis=0)
    return Segment("run", 0.0, 100.0, q, v, a, rng.normal(size=q.shape), external=0.1 * rng.normal(size=q.shape), **more)  # type: ignore[arg-type]


def assert_same_factors(
    model: DynamicModel, segments: list[Segment], row_filter: RowFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With kept columns as from the streamed rows."""
    one = accumulate(model, "run", segments, row_filter)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "_kept", lambda *_: None)
        other = accumulate(model, "run", segments, row_filter)
    assert one.fingerprint == other.fingerprint
    assert [(e.log, e.block, e.group, e.rows) for e in one.entries] == [
        (e.log, e.block, e.group, e.rows) for e in other.entries
    ]
    for a, b in zip(one.entries, other.entries, strict=True):
        np.testing.assert_allclose(a.R.T @ a.R, b.R.T @ b.R, atol=1e-9 * max(1.0, np.abs(b.R).max() ** 2))


def test_stretches_of_long_logs_are_spread_over_them(model: DynamicModel, monkeypatch: pytest.MonkeyPatch) -> None:
    s = make_segment(model, 40_000, log="long", seed=1, sigma=0.05)
    (log,) = prepared(model, Recording("long", model.robot.joints, s.time, np.array(s.q), effort=np.array(s.tau)))
    assert evenly_spread([log]) == [log]
    rows = len(log.segments[0]) // log.conditioned.factor
    monkeypatch.setattr(rows_module, "ENOUGH", rows / 4.5)
    (some,) = evenly_spread([log])
    assert 0.5 * rows_module.ENOUGH < sum(map(len, some.segments)) / log.conditioned.factor < 1.1 * rows_module.ENOUGH
    starts = np.array([part.start for part in some.segments])
    seconds = max(len(part) for part in some.segments) / log.conditioned.rate
    assert (np.diff(starts) > 0).all()
    assert np.diff(starts).max() < 2 * 5 * seconds
    for part in some.segments:
        whole = next(one for one in log.segments if one.start <= part.start < one.start + len(one) / one.rate)
        begin = round((part.start - whole.start) * whole.rate)
        np.testing.assert_array_equal(part.measured, whole.measured[begin : begin + len(part)])


@pytest.mark.parametrize("most", [12_000_000, 20_000])  # the latter is room for the columns of one model, not for all terms
def test_kept_columns_make_the_same_factors(robot: Robot, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST", rows._Kept.held + most)
    segments = [piece(robot, 700, 0), piece(robot, 30, 1), piece(robot, 400, 2, repeats=3)]
    drive = Drive.build(3, reduction=[[10, 0, 0], [0, 20, 0], [0, 5, 30]])
    rng = np.random.default_rng(3)
    for friction in (SIMPLE, MANY, MANY, SIMPLE):  # another reference each time
        model = DynamicModel(robot, friction=friction, drive=drive).with_reference(rng.normal(size=30))
        assert_same_factors(model, segments, RowFilter(4), monkeypatch)
    assert rows._Kept.held <= rows.MOST


@pytest.mark.parametrize("room", [False, True])
def test_columns_are_kept_of_all_logs_or_of_none(model: DynamicModel, room: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a long log holds until its end would be missing to all that comes after."""
    logs, held = prepared(model, recording(model, "a", 125.0, 1), recording(model, "b", 125.0, 2)), rows._Kept.held
    monkeypatch.setattr("urdf_ident.statistics.accumulate.have_room", lambda *_: room)
    build_statistics(model, logs)
    assert (rows._Kept.held > held) == room
