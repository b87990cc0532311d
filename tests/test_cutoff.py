"""The cut-off by held-out error: against scores made another way, its parsimony, and through the project file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf
from logs import make_log

from urdf_ident.errors import EstimationError, LogError, ProjectError, QualityError
from urdf_ident.estimation.cutoff import PARTS, CutoffSweep, _choice, sweep_cutoff
from urdf_ident.logs.read import read_recording
from urdf_ident.logs.recording import Recording
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.elasticity import ElasticModel
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project
from urdf_ident.result.evidence.scores import predict, score
from urdf_ident.result.files.load import load
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return DynamicModel(Robot.from_urdf(arm_urdf("zy")), friction=["viscous", "coulomb", "offset"])


@pytest.fixture(scope="module")
def recordings(model: DynamicModel, tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    folder = tmp_path_factory.mktemp("cutoff")
    robot = model.robot
    return [read_recording(make_log(folder / f"log{k}.csv", robot, seed=k, seconds=12.0), robot) for k in range(3)]


@pytest.fixture(scope="module")
def sweep(model: DynamicModel, recordings: list[Recording]) -> CutoffSweep:
    return sweep_cutoff(model, recordings, SignalConfig(), judged=4.0)


def test_errors_are_those_of_validation(model: DynamicModel, recordings: list[Recording], sweep: CutoffSweep) -> None:
    for k in (0, len(sweep.cutoffs) - 1):
        logs = prepare_logs(recordings, model.robot, model.drive, SignalConfig(cutoff=float(sweep.cutoffs[k])))
        for fold, log in enumerate(logs):
            others = [other for other in logs if other is not log]
            fit = fit_base(build_statistics(model, others), model.base())
            theta = np.zeros(len(model.names))
            theta[fit.base.independent] = fit.params
            scored = score(log, predict(model, theta, log), model.robot.joints, 4.0)
            assert sweep.rmse[k, fold] == pytest.approx(scored.mean_rmse, rel=1e-6)
    np.testing.assert_allclose(sweep.mean, np.sqrt((sweep.rmse**2).mean(axis=1)))
    assert sweep.folds == tuple(log.name for log in recordings)


def test_the_spectrum_stays_unless_chance_would_hardly_prefer_another() -> None:
    cutoffs = np.array([2.0, 4.0, 8.0])
    steady = np.array([[1.2, 1.3, 1.25, 1.2], [1.0, 1.1, 1.05, 1.0], [0.9, 1.0, 0.94, 0.91]])
    assert _choice(cutoffs, steady, 4.0) == 8.0
    wild = np.array([[1.2, 1.3, 1.25, 1.2], [1.0, 1.1, 1.05, 1.0], [0.5, 1.2, 1.15, 1.1]])
    assert wild[2].mean() < wild[1].mean()
    assert _choice(cutoffs, wild, 4.0) == 4.0
    assert _choice(cutoffs, steady[::-1], 4.0) == 2.0


def test_a_wrong_start_is_corrected(model: DynamicModel, recordings: list[Recording], monkeypatch: pytest.MonkeyPatch) -> None:
    """A spectrum that misleads (a cut-off of a sixth of the right one) is overruled by the logs, and unseen logs agree."""
    from urdf_ident.signals import signals

    right = sweep_cutoff(model, recordings, SignalConfig(), judged=4.0).spectrum
    honest = signals.estimate_cutoff
    monkeypatch.setattr(
        signals, "estimate_cutoff", lambda *args, **options: replace(honest(*args, **options), cutoff=right / 6.0)
    )
    found = sweep_cutoff(model, recordings, SignalConfig(), judged=4.0)
    assert found.spectrum == pytest.approx(right / 6.0)
    assert found.mean[0] > 1.5 * found.mean.min()  # it bends the motion
    assert found.chosen > 1.5 * found.spectrum
    assert "better" in found.why


def test_through_the_project_file(model: DynamicModel, recordings: list[Recording], tmp_path: Path) -> None:
    project = parse_project({"signals": {"cutoff": "held_out"}, "model": {"friction": ["viscous", "coulomb", "offset"]}})
    ident = identify(model, recordings, project=project)
    data = json.loads(ident.save(tmp_path / "a.json").read_text())
    swept = data["signals"]["sweep"]
    assert swept["chosen"] == data["signals"]["cutoff"]
    assert "cut-off tried" in ident.summary(verbose=True)
    assert load(tmp_path / "a.json").summary(verbose=True) == ident.summary(verbose=True)
    assert "sweep" not in identify(model, recordings).signals
    with pytest.raises(ProjectError, match="cutoff"):
        parse_project({"signals": {"cutoff": "heldout"}})


def test_one_log_is_cut_into_parts(model: DynamicModel, recordings: list[Recording]) -> None:
    found = sweep_cutoff(model, recordings[:1], SignalConfig())
    assert len(found.folds) == PARTS
    assert found.judged == 10.0  # the band of scores, whatever the spectrum says


def test_friction_that_reads_a_load_is_left_out_of_the_sweep(model: DynamicModel, recordings: list[Recording]) -> None:
    """Its load is not known before the first fit."""
    config = {"signals": {"cutoff": "held_out"}, "model": {"friction": ["viscous", "coulomb", "offset", "load_coulomb"]}}
    project = parse_project(config)
    found = identify(project.build_model(model.robot), recordings, project=project)
    plain = sweep_cutoff(model, recordings, SignalConfig())
    np.testing.assert_allclose(found.signals["sweep"]["rmse"], plain.rmse)
    assert found.model.loaded


def test_what_cannot_be_done_is_refused_before_the_work(
    model: DynamicModel, recordings: list[Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No log at all, and a held-out log that is too short: not after minutes of estimation."""
    project = parse_project({"signals": {"cutoff": "held_out"}})
    with pytest.raises(LogError, match="no log was given"):
        identify(model, [], project=project)
    monkeypatch.setattr("urdf_ident.pipeline.identify.estimate_from_data", lambda *_: pytest.fail("worked in vain"))
    with pytest.raises(QualityError, match="too few usable rows: 50"):
        identify(model, recordings[:2], held_out=[recordings[2].take(slice(50))])


def test_elastic_joints_are_refused(recordings: list[Recording], model: DynamicModel) -> None:
    elastic = ElasticModel(model.robot, drive=Drive.build(2, reduction=[100.0, 100.0]))
    with pytest.raises(EstimationError, match="rigid joints only"):
        sweep_cutoff(elastic, recordings, SignalConfig())
