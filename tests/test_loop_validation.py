"""Whether a residual is worth it: judged on motions that took no part, in the library and on the command line."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from commands import assert_refused, done, run
from conftest import arm_urdf
from two_encoders import GEAR, RATE, SIGNALS, excitation, record

import urdf_ident as ui
from urdf_ident import Drive, DynamicModel, Limits, Recording, Robot, bidirectional_experiment, read_recording
from urdf_ident.compensation.loop_validation import compare_loops
from urdf_ident.compensation.three_loop import three_loop
from urdf_ident.errors import LogError, ProjectError
from urdf_ident.project import parse_project
from urdf_ident.signals.prepare import PreparedLog, prepare_logs

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def model(robot: Robot) -> DynamicModel:
    return DynamicModel(robot, friction=["viscous", "coulomb", "offset"], drive=Drive.build(3, reduction=[GEAR] * 3))


def prepared(model: DynamicModel, recordings: list[Recording]) -> list[PreparedLog]:
    return prepare_logs(recordings, model.robot, model.drive, SIGNALS)


@pytest.fixture(scope="module")
def logs(model: DynamicModel) -> list[PreparedLog]:
    return prepared(model, [excitation(model.robot, seed) for seed in (1, 2, 3)])


def test_errors_are_those_of_logs_that_took_no_part(model: DynamicModel, logs: list[PreparedLog]) -> None:
    steps: list[tuple[int, int]] = []
    found = compare_loops(model, logs, [], kinds=["rbf"], rounds=3, progress=lambda _, done, total: steps.append((done, total)))
    assert found.folds == ("log1", "log2", "log3")
    assert steps == [(k, 6) for k in range(1, 7)]
    for k, unseen in enumerate(logs):
        by_hand = three_loop(model, [log for log in logs if log is not unseen], [], kind="rbf", held_out=[unseen], rounds=3)
        np.testing.assert_array_equal(found.errors["rbf"][k], by_hand.gains[-1].held_out)
        np.testing.assert_array_equal(found.plain[k], by_hand.gains[0].held_out)
        assert by_hand.friction == ()
        assert by_hand.model.names == model.names
    assert found.rmse("rbf") == pytest.approx(np.sqrt(np.mean(found.errors["rbf"] ** 2, axis=0)))
    assert (found.rmse("rbf") < 0.85 * found.rmse()).all()
    assert json.loads(json.dumps(found.as_dict()))["chosen"] == "rbf"


def write(path: Path, log: Recording, encoders: bool = True) -> None:
    blocks = {"q": log.position, "tau": log.effort, **({"qm": log.motor_position} if encoders else {})}
    names = ["t", *(f"{prefix}_{joint}" for prefix in blocks for joint in log.joints)]
    table = np.column_stack([log.time, *blocks.values()])
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="", fmt="%.10g")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, robot: Robot) -> Path:
    folder = tmp_path_factory.mktemp("compensation")
    (folder / "arm.urdf").write_text(arm_urdf("zyx"))
    for seed in (1, 2, 4):
        write(folder / f"log{seed}.csv", excitation(robot, seed))
    write(folder / "blind.csv", excitation(robot, 1), encoders=False)
    write(folder / "dry.csv", excitation(robot, 1, loss=False), encoders=False)
    limits = Limits.from_robot(robot, acceleration=4.0)
    for name, loss, cruise in (("sweeps", True, 1.0), ("lossless", False, 0.5)):
        motion = bidirectional_experiment(limits, count=5, cruise=cruise).trajectory
        t = motion.times(RATE)
        write(folder / f"{name}.csv", record(robot, name, t, *motion.evaluate(t), seed=50, loss=loss))
    common = f"drive: {{reduction: [{GEAR}, {GEAR}, {GEAR}]}}\nmodel: {{friction: [viscous, coulomb, offset]}}\n"
    projects = {"loops": "residual: rbf, rounds: 2", "none": "residual: none", "rbf": "residual: rbf"}
    for name, line in projects.items():
        (folder / f"{name}.yaml").write_text(f"{common}compensation: {{{line}}}\n")
    return folder


@pytest.fixture(scope="module")
def identified(work: Path) -> tuple[Path, str]:
    line = "identify -v arm.urdf log1.csv log2.csv --validate log4.csv --sweeps sweeps.csv -c loops.yaml -o out"
    return work / "out" / "identification.json", done(*line.split(), cwd=work)


def test_identify_learns_judges_and_saves(identified: tuple[Path, str]) -> None:
    path, text = identified
    data = json.loads(path.read_text())
    judged = data["compensation"]
    assert judged["chosen"] == "rbf"
    assert {"none", "rbf", "sweeps", "sweeps + rbf"} < set(judged)  # every pair of friction laws and residual
    assert judged["laws"] in ("logs", "sweeps")
    assert judged["folds"] == ["log1", "log2"]
    used = "rbf" if judged["laws"] == "logs" else "sweeps + rbf"
    assert np.mean(judged[used]) < 0.95 * np.mean(judged["wls"])
    assert np.mean(judged["sweeps + rbf"]) < 0.85 * np.mean(judged["wls"])
    driven = {"j1", "j2", "j3"} if judged["laws"] == "sweeps" else set()
    assert {curve["joint"] for curve in judged["friction_curves"]} == driven
    assert data["residual"]["kind"] == judged["chosen"]
    entry = data["validation"][0]
    assert entry["residual"]["mean_rmse"] < 0.8 * entry["mean_rmse"]
    assert entry["residual"]["rigid_mean_rmse"] == pytest.approx(entry["mean_rmse"], rel=1e-9)
    assert "friction and links from the logs" in text
    assert "friction from the sweeps" in text
    assert text.count("residual (used)") == 1
    assert "with residual" in text
    assert ("friction curves through the sweeps" in text) == (judged["laws"] == "sweeps")
    assert data["verdict"]["level"] in ("good", "usable")


def test_validate_scores_with_the_residual_beside_without(identified: tuple[Path, str], work: Path) -> None:
    path, _ = identified
    scores = json.loads(done("validate", path, work / "log4.csv", work / "blind.csv", "--json"))
    both = {entry["log"]: entry for entry in scores}
    assert both["log4"] == json.loads(path.read_text())["validation"][0]
    assert "residual" not in both["blind"]  # no encoders: scored without


def test_a_residual_of_one_log_is_learned_from_parts_in_time(model: DynamicModel) -> None:
    project = parse_project({"compensation": {"residual": "auto", "rounds": 1}})
    log = excitation(model.robot, 1).take(slice(0, 1200))
    ident = ui.identify(model, [log], project=project)
    assert {"wls", "none", "rbf", "gmr"} <= set(ident.compensation)
    assert "3 parts in time of one log" in ident.compensation["why"]
    asked = parse_project(
        {
            "compensation": {"residual": "rbf", "rounds": 1},
            "estimation": {"method": "irls"},
        }
    )
    ident = ui.identify(model, [log], project=asked)
    assert "the loops estimate by WLS; IRLS (TUKEY) is not used in them" in ident.summary(verbose=True)
    zero = np.zeros(3)
    assert ident.torque(zero, zero, zero, deformation=zero + 1e-4, deformation_rate=zero).shape == (3,)


def with_sweeps(work: Path, log: str, out: Path) -> subprocess.CompletedProcess[str]:
    """A log and the runs of gears without losses, on the command line."""
    inputs = (work / "arm.urdf", work / f"{log}.csv", "--sweeps", work / "lossless.csv", "-c", work / "none.yaml")
    result = run("identify", "-v", *inputs, "-o", out)
    assert result.returncode == 0, result.stderr
    return result


def test_sweeps_alone_give_friction_curves(work: Path, tmp_path: Path) -> None:
    """No residual, no second encoder in the log: the friction of the arm, by formulas of its own."""
    result = with_sweeps(work, "dry", tmp_path)
    assert "from the sweeps, in the place of the laws found in the logs" in result.stdout
    data = json.loads((tmp_path / "identification.json").read_text())
    assert data["residual"] is None
    assert "independent residuals" not in data["covariance"]["kind"]
    for curve in data["compensation"]["friction_curves"]:
        v, torque = np.array(curve["velocity"]), np.array(curve["torque"])
        assert len(v) == 10  # short runs between standstills are not lost
        truth = 2.0 * v + (2.5 + 0.5 * np.exp(-np.abs(v) / 0.1)) * np.tanh(v / 5e-3)
        assert (torque - torque[::-1]) / 2 == pytest.approx(truth + 0.1 * np.sign(v), abs=0.15)


def test_wrong_use_is_named(model: DynamicModel, work: Path, tmp_path: Path) -> None:
    for line, words in (
        ("residual: gmm", r"compensation\.residual.*gmm.*gmr"),
        ("residuals: rbf", "did you mean 'residual'"),
        ("rounds: 0", r"compensation\.rounds"),
    ):
        with pytest.raises(ProjectError, match=words):
            parse_project(yaml.safe_load(f"compensation: {{{line}}}"))
    line = "identify -v arm.urdf log1.csv --sweeps log2.csv -c none.yaml -o"
    result = run(*line.split(), tmp_path / "out", cwd=work)
    assert_refused(result, 2, "the sweeps drive no joint|no runs at constant speed", "bidirectional")
    log, sweeps = (read_recording(work / name, model.robot) for name in ("log1.csv", "sweeps.csv"))
    with pytest.raises(LogError, match=r"sweeps\.csv: this held-out log is also one of the training logs"):
        ui.identify(model, [log], sweeps=[sweeps], held_out=[sweeps])
