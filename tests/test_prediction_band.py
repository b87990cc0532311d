"""The low-pass of the positions for predictions: its errors made another way, what it gains on unseen logs, its settings."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import DynamicModel, Recording, Robot, identify, load, validate
from urdf_ident.errors import LogError, QualityError
from urdf_ident.estimation.uncertainty.prediction import FoldTimes, HeldOutParameters, choose_prediction_band
from urdf_ident.project import Project, parse_project
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.filters import differentiate, lowpass
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

pytestmark = pytest.mark.usefixtures("unexamined")

SIMPLE = {"model": {"friction": ["viscous", "coulomb", "offset"]}}
RATE = 100.0


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(arm_urdf("zy"))


def recorded(robot: Robot, seed: int, noise: float = 0.0) -> Recording:
    """A log with white noise of the positions [rad]."""
    rng = np.random.default_rng(seed)
    t, q, v, a = fourier(2, 12.0, RATE, seed)
    tau = torques(robot, Truth.of(2), q, v, a) + 0.05 * rng.standard_normal(q.shape)
    return Recording(f"log{seed}", robot.joints, t, q + noise * rng.standard_normal(q.shape), effort=tau)


def test_errors_are_those_of_parameters_without_the_fold(robot: Robot) -> None:
    model = parse_project(SIMPLE).build_model(robot)
    logs = prepare_logs([recorded(robot, k, noise=1e-5) for k in range(2)], robot, model.drive, SignalConfig())
    theta = [model.base().embedded(fit_base(build_statistics(model, [log]), model.base()).params) for log in logs[::-1]]
    times = {log.name: FoldTimes(np.zeros(1), np.array([k], dtype=np.int32)) for k, log in enumerate(logs)}
    held = HeldOutParameters(np.column_stack(theta), ("a", "b"), times, 2)
    config = SignalConfig(decimate=logs[0].conditioned.decimate_rate, periodic="off")
    found = choose_prediction_band(model, logs, held, config, compared=4.0)
    assert len(found["scales"]) >= 3
    squares = np.zeros((len(found["scales"]), model.n))
    for log, parameters in zip(logs, theta, strict=True):
        (part,) = log.segments
        spectrum = prepare_logs([log.recording], robot, model.drive, SignalConfig())[0].conditioned.cutoff
        begin = round((part.start - log.recording.time[0]) * RATE)
        for k, scale in enumerate(found["scales"]):
            path = [lowpass(log.recording.position, RATE, min(max(scale * spectrum, 1.0), 20.0))]
            path += [differentiate(path[0], RATE)]
            path += [differentiate(path[1], RATE)]
            q, v, a = (x[begin : begin + len(part)] for x in path)
            error = lowpass(part.total - model.torque_along(parameters, replace(part, q=q, v=v, a=a)), RATE, 4.0)
            squares[k] += np.mean(error**2, axis=0) / len(logs)
    np.testing.assert_allclose(found["mean_rmse"], np.sqrt(squares).mean(axis=1), rtol=1e-6)
    assert found["compared"] == 4.0


def test_noisy_positions_are_smoothed_for_predictions_and_unseen_logs_agree(robot: Robot) -> None:
    project = parse_project(SIMPLE)
    model = project.build_model(robot)
    logs = [recorded(robot, k, noise=1e-3) for k in range(4)]
    found = identify(model, logs[:3], held_out=logs[3:], project=project)
    assert found.signals["prediction"]["scale"] < 1
    fixed = parse_project({**SIMPLE, "signals": {"prediction": found.signals["cutoff"]}})
    before = identify(model, logs[:3], held_out=logs[3:], project=fixed)
    assert found.validation[0]["mean_rmse"] < 0.9 * before.validation[0]["mean_rmse"]
    np.testing.assert_array_equal(found.theta, before.theta)  # only the prediction changes


def test_settings_and_files(robot: Robot, tmp_path: Path) -> None:
    logs = [recorded(robot, k, noise=1e-3) for k in range(3)]

    def result(**signals: object):
        project = parse_project({**SIMPLE, "signals": signals})
        return identify(project.build_model(robot), logs[:2], held_out=logs[2:], project=project)

    free, given, cutoff = result(), result(prediction=5.0), result(cutoff=4.0)
    assert "prediction" not in given.signals
    assert "prediction" not in cutoff.signals
    assert given.project.scoring_config(given.signals).cutoff == 5.0
    assert cutoff.project.scoring_config(cutoff.signals).cutoff == 4.0
    again = load(free.save(tmp_path / "a.json"))
    assert (
        json.loads((tmp_path / "a.json").read_text())["signals"]["prediction"]["scale"] == free.signals["prediction"]["scale"]
    )
    assert "low-pass tried" in free.summary(verbose=True)
    assert again.summary(verbose=True) == free.summary(verbose=True)
    scored = validate(again, [replace(logs[2], name="same motion", sha256="")]).entries[0]
    assert scored["mean_rmse"] == pytest.approx(free.validation[0]["mean_rmse"], rel=1e-9)


def test_what_cannot_be_done_is_refused_before_the_work(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """No log at all, and a held-out log that is too short: not after minutes of estimation."""
    model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    with pytest.raises(LogError, match="no log was given"):
        identify(model, [], project=Project())
    monkeypatch.setattr("urdf_ident.pipeline.identify.estimate_from_data", lambda *_: pytest.fail("worked in vain"))
    logs = [recorded(robot, k) for k in range(3)]
    with pytest.raises(QualityError, match="too few usable rows: 50"):
        identify(model, logs[:2], held_out=[logs[2].take(slice(50))])
