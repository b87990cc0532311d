"""Series for pictures: bounded, behind the scores' low-pass, read back to what was written."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import arm_urdf
from estimation_samples import theta_with

from urdf_ident import DynamicModel, Robot, Segment
from urdf_ident.result.scores import POINTS, LogTrace, Traces, log_trace, read_series, speed_profile, write_series

RATE = 200.0


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return DynamicModel(Robot.from_urdf(arm_urdf("zy")), friction=["viscous", "coulomb"])


def prepared(model: DynamicModel, theta: np.ndarray, seconds: float, start: float = 0.0) -> SimpleNamespace:
    t = np.arange(int(seconds * RATE)) / RATE
    w = np.array([1.3, 2.1])
    q, v, a = np.sin(np.outer(t, w)), w * np.cos(np.outer(t, w)), -(w**2) * np.sin(np.outer(t, w))
    segment = Segment("log", start, RATE, q, v, a)
    return SimpleNamespace(name="log", segments=(replace(segment, tau=model.torque_along(theta, segment)),))


@pytest.fixture(scope="module")
def theta(model: DynamicModel) -> np.ndarray:
    return theta_with(model, Ia=0.4, Fv=3.0, Fc=2.0)


def traced(log: SimpleNamespace, error: np.ndarray | float = 0.0) -> LogTrace:
    tau = np.vstack([part.tau for part in log.segments])
    return log_trace(log, {"exported": tau - error, "urdf": 0 * tau, "urdf_friction": 0.5 * tau}, 8.0)


def test_a_long_log_keeps_its_worst_stretch(model: DynamicModel, theta: np.ndarray) -> None:
    log = prepared(model, theta, 60.0)
    error = np.zeros((len(log.segments[0]), 2))
    error[9000:9500] = 1.0  # 45 s to 47.5 s
    found = traced(log, error)
    assert len(found.time) == POINTS
    assert found.time[0] < 45.0 < 47.5 < found.time[-1]
    inside = (found.time > 45.5) & (found.time < 47.0)
    assert (found.measured - found.identified)[inside] == pytest.approx(1.0, abs=0.05)
    assert found.urdf == pytest.approx(0.0)


def test_series_come_back_and_belong_to_one_result(model: DynamicModel, theta: np.ndarray, tmp_path: Path) -> None:
    log = prepared(model, theta, 5.0, start=1.6e9)
    kept = Traces((traced(log, 0.1),), speed_profile(model, theta, [log], 20.0))
    path = write_series(kept, tmp_path / "series.json", theta)
    found = read_series(path, theta)
    assert found.logs[0].time == pytest.approx(kept.logs[0].time, rel=0, abs=1e-3)
    assert found.logs[0].measured == pytest.approx(kept.logs[0].measured, rel=1e-4, abs=1e-9)
    assert found.speeds.count == pytest.approx(kept.speeds.count, rel=1e-4)
    assert np.array_equal(np.isnan(found.speeds.friction), np.isnan(kept.speeds.friction))
    assert not read_series(path, theta + 1).logs
    assert not read_series(tmp_path / "none.json", theta).logs
    path.write_text(path.read_text()[:200])
    assert not read_series(path, theta).logs
