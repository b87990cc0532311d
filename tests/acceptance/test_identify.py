"""`identify`: the files of the contract, values within their intervals, and torques like those of the true robot."""

import json
import shutil
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import yaml

import urdf_ident as ui

from .experiment import (
    BODIES,
    COULOMB,
    JOINTS,
    VISCOUS,
    Outcome,
    command,
    done,
    least_squares,
    motion,
    refused,
    regressor,
    torque,
    true_parameters,
)

#: Fields of identification.json that programs may rely on.
FIELDS = {
    **dict.fromkeys(("schema", "joints", "links", "bodies", "friction", "weights", "condition", "rank_gap"), ""),
    **dict.fromkeys(("config", "versions"), ""),
    "verdict": "level reasons",
    "robot": "name sha256 urdf",
    "parameters": "base standard",
    "drive": "reduction gain gain_origin",
    "signals": "rate cutoff why",
    "covariance": "kind matrix",
    "counts": "standard base essential samples",
    "solver": "status residuals",
    "consistency": "consistent per_body",
}
ENTRIES = {
    ("inputs",): "path sha256 rows used findings",
    ("parameters", "base"): "name terms value std_error rel_std_percent",
    ("parameters", "standard"): "name unit value prior std_error from_data",
    ("consistency", "per_body"): "body mass min_eigenvalue cholesky_tolerance margin",
    ("validation",): "log mean_rmse relative fit_mean_rmse urdf_mean_rmse urdf_friction_mean_rmse per_joint",
    ("validation", 0, "per_joint"): "joint rmse relative rms_torque moving_rmse p95",
}


def test_the_summary_gives_the_verdict_and_the_files(identified: Outcome) -> None:
    assert identified.code == 0
    first = identified.out.splitlines()[0]
    assert first.startswith("arm: GOOD")
    for name in ("arm_identified.urdf", "joints.yaml", "identification.json", "report.html"):
        assert name in identified.out
    lines = identified.out.splitlines()
    for joint in JOINTS:
        assert any(line.split()[0] == joint and "%" in line for line in lines)
    assert "not identified" in identified.out
    assert len(lines) <= 15  # fits one screen
    assert max(map(len, lines[:-1])) <= 100  # the last line holds a path
    assert "\x1b" not in identified.out  # no colours in a pipe
    assert identified.err == ""


def test_the_fit_does_not_choose_the_samples_that_are_scored(cell: Path, result: dict[str, Any]) -> None:
    """The measured torque behind a score is the same whatever the low-pass of the fit, to the last bit."""
    (cell / "slow.yaml").write_text("signals: {cutoff: 3}\n")
    slow = ("identify", "arm.urdf", "run1.csv", "run2.csv", "--validate", "run3.csv", "-c", "slow.yaml", "-o", "slow")
    assert command(*slow, cwd=cell).code == 0
    scores = json.loads((cell / "slow" / "identification.json").read_text(encoding="utf-8"))
    assert scores["signals"]["cutoff"] == 3.0 != result["signals"]["cutoff"]
    other, usual = ([joint["rms_torque"] for joint in found["validation"][0]["per_joint"]] for found in (scores, result))
    assert other == usual


def test_the_files_of_the_contract_are_whole(out: Path, result: dict[str, Any]) -> None:
    assert {"identification.json", "arm_identified.urdf", "joints.yaml", "report.html"} <= {path.name for path in out.iterdir()}
    for name, keys in FIELDS.items():
        assert name in result
        assert not keys or set(keys.split()) <= set(result[name]), name
    for place, keys in ENTRIES.items():
        entries: Any = result
        for step in place:
            entries = entries[step]
        assert entries
        for entry in entries:
            assert set(keys.split()) <= set(entry), place
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert "http://" not in page.replace("http://www.w3.org", "")  # works offline


def test_the_joints_and_inputs_are_those_given(result: dict[str, Any], cell: Path) -> None:
    assert result["joints"] == list(JOINTS)
    assert [Path(entry["path"]).name for entry in result["inputs"]] == ["run1.csv", "run2.csv"]
    assert all(entry["rows"] == 2000 and 0 < entry["used"] <= 2000 for entry in result["inputs"])
    assert [entry["log"] for entry in result["validation"]] == ["run3"]
    assert result["robot"]["urdf"] == (cell / "arm.urdf").read_text()  # `export` needs no other file
    assert result["counts"]["standard"] == len(result["parameters"]["standard"])
    assert result["counts"]["base"] == len(result["parameters"]["base"]) == len(result["covariance"]["matrix"])


def test_the_intervals_hold_the_true_base_parameters(result: dict[str, Any]) -> None:
    """Of 28 intervals of 95 %, chance leaves fewer than 22 right in one case of 5 000."""
    truth = true_parameters()
    deviations, inside = [], []
    for entry in result["parameters"]["base"]:
        true = sum(term["coefficient"] * truth.get(term["parameter"], 0.0) for term in entry["terms"])
        deviations.append((entry["value"] - true) / entry["std_error"])
        low, high = entry["interval"]
        inside.append(low <= true <= high)
    assert sum(inside) >= 22, deviations
    assert np.abs(deviations).max() < 5


def test_the_number_of_base_parameters_is_the_rank_of_an_independent_regressor(result: dict[str, Any]) -> None:
    _, q, v, a = motion(7, seconds=4.0)
    symbols = {entry["name"].split("_")[0] for entry in result["parameters"]["standard"]}
    assert symbols >= {"m", "Izz", "Ia", "Fv", "Fc", "offset"}
    friction = {entry["name"] for entry in result["parameters"]["standard"] if entry["name"].split("_")[0] not in ("Fs", "vs")}
    assert len(friction) == 42  # the true laws and no others
    assert result["counts"]["base"] == np.linalg.matrix_rank(regressor(q, v, a), rtol=1e-9)


def test_the_model_predicts_the_true_torque_as_well_as_plain_least_squares(ident: ui.Identification) -> None:
    """The oracle knows the laws of friction and the motion without noise."""
    _, q, v, a = motion(11)
    truth = torque(q, v, a)
    oracle = (regressor(q, v, a) @ least_squares((1, 2))).reshape(truth.shape)
    errors = [np.sqrt(np.mean((tau - truth) ** 2, axis=0)) for tau in (np.asarray(ident.torque(q, v, a)), oracle)]
    assert (errors[0] < 0.02 * truth.std(axis=0)).all()
    assert (errors[0] < 3 * errors[1]).all()


def test_friction_is_that_of_the_robot(result: dict[str, Any], out: Path) -> None:
    sidecar = yaml.safe_load((out / "joints.yaml").read_text(encoding="utf-8"))["joints"]
    for k, joint in enumerate(JOINTS):
        assert result["friction"][joint]["Fv"]["value"] == pytest.approx(VISCOUS[k], rel=0.03)
        assert result["friction"][joint]["Fc"]["value"] == pytest.approx(COULOMB[k], rel=0.03)
        for symbol in ("Ia", "Fv", "Fc", "offset"):
            assert sidecar[joint][symbol]["value"] == result["friction"][joint][symbol]["value"]


def test_the_exported_bodies_are_physical_and_load_in_mujoco(result: dict[str, Any], out: Path) -> None:
    assert result["consistency"]["consistent"]
    assert all(body["margin"] > 0 and body["mass"] > 0 for body in result["consistency"]["per_body"])
    model = mujoco.MjModel.from_xml_path(str(out / "arm_identified.urdf"))
    assert model.nv == 3


def test_what_no_torque_shows_stays_as_in_the_urdf_and_is_said_so(result: dict[str, Any]) -> None:
    mass = next(entry for entry in result["parameters"]["standard"] if entry["name"] == f"m_{BODIES[0]}")
    assert mass["std_error"] == "inf"
    assert mass["from_data"] == pytest.approx(0.0, abs=1e-6)
    assert mass["value"] == pytest.approx(mass["prior"], rel=0.05)


def test_the_exported_model_beats_the_urdf_on_the_held_out_log(result: dict[str, Any]) -> None:
    (score,) = result["validation"]
    assert score["mean_rmse"] < score["urdf_friction_mean_rmse"] < score["urdf_mean_rmse"]
    assert score["relative"] < 0.03
    for joint in score["per_joint"]:
        assert joint["relative"] == pytest.approx(joint["rmse"] / joint["rms_torque"], rel=0.05)


def same_result(folder: Path, out: Path) -> None:
    """Byte by byte, whoever did the work."""
    assert (folder / "identification.json").read_bytes() == (out / "identification.json").read_bytes()


def test_two_processes_give_the_same_result(cell: Path, out: Path, result: dict[str, Any], tmp_path: Path) -> None:
    logs = ("run1.csv", "run2.csv", "--validate", "run3.csv", "--no-report")
    printed = json.loads(done("identify", "arm.urdf", *logs, "--jobs", 2, "--json", "-o", tmp_path, cwd=cell))
    assert printed["verdict"] == result["verdict"]
    assert printed["validation"] == result["validation"]
    same_result(tmp_path, out)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(("solver", "tolerance"), [("CLARABEL", 1e-5), ("SCS", 1e-3)])
def test_solvers_of_the_lmi_agree(
    cell: Path, result: dict[str, Any], ident: ui.Identification, solver: str, tolerance: float, tmp_path: Path
) -> None:
    """As the same torques, relative to their size, and the same objective."""
    (tmp_path / "project.yaml").write_text(f"consistency: {{method: lmi, solver: {solver}}}")
    logs = ("run1.csv", "run2.csv", "--no-report", "-c", tmp_path / "project.yaml")
    done("identify", "arm.urdf", *logs, "-o", tmp_path, cwd=cell)
    again = json.loads((tmp_path / "identification.json").read_text())
    assert again["solver"]["name"] == solver
    objective, other = (
        x["solver"]["objective"]["data"] + x["solver"]["weight"] * x["solver"]["objective"]["prior"] for x in (result, again)
    )
    assert other == pytest.approx(objective, rel=0.1 * tolerance)
    _, q, v, a = motion(3)
    torques = ident.torque(q, v, a)
    difference = ui.load(tmp_path / "identification.json").torque(q, v, a) - torques
    assert (difference.std(axis=0) < tolerance * torques.std(axis=0)).all()


def test_a_result_is_poor_where_the_efforts_are_noise(cell: Path, tmp_path: Path) -> None:
    """Files are written, and the exit code is 1."""
    head, *rows = (cell / "run1.csv").read_text().splitlines()
    table = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    table[:, 4:] = np.random.default_rng(0).standard_normal((len(table), 3))
    np.savetxt(tmp_path / "noise.csv", table, delimiter=",", header=head, comments="", fmt="%.9g")
    done("identify", cell / "arm.urdf", tmp_path / "noise.csv", "--force", "--no-report", "-o", tmp_path / "out", code=1)
    assert json.loads((tmp_path / "out" / "identification.json").read_text())["verdict"]["level"] == "poor"


def test_a_project_file_describes_a_log_in_other_columns_and_units(cell: Path, tmp_path: Path) -> None:
    """Degrees without a header, and motor currents with their constants, are the same robot."""
    table = np.loadtxt(cell / "run1.csv", delimiter=",", skiprows=1)
    gain = np.array([10.0, 8.0, 5.0])
    bare = np.column_stack([table[:, 4:] / gain, table[:, 0], np.rad2deg(table[:, 1:4])])
    np.savetxt(tmp_path / "bare.csv", bare, delimiter=",", fmt="%.12g")
    project = {
        "drive": {"gain": gain.tolist()},
        "log": {
            "columns": {"time": 3, "position": [4, 5, 6], "effort": [0, 1, 2]},
            "units": {"position": "deg", "effort": "A"},
        },
        "model": {"friction": ["viscous", "coulomb", "offset"]},
    }
    (tmp_path / "project.yaml").write_text(yaml.safe_dump(project))
    done("identify", cell / "arm.urdf", tmp_path / "bare.csv", "-c", tmp_path / "project.yaml", "-o", tmp_path, "--no-report")
    _, q, v, a = motion(11)
    truth = torque(q, v, a)
    error = np.asarray(ui.load(tmp_path).torque(q, v, a)) - truth
    assert (np.sqrt(np.mean(error**2, axis=0)) < 0.04 * truth.std(axis=0)).all()
    assert json.loads((tmp_path / "identification.json").read_text())["drive"]["gain"] == gain.tolist()


def test_folders_and_globs_are_logs(cell: Path, out: Path, tmp_path: Path) -> None:
    """The same files under the same names give the same parameters as the logs that are named one by one."""
    for name in ("run1", "run2"):
        (tmp_path / name).mkdir()
        shutil.copy(cell / f"{name}.csv", tmp_path / name)
    logs = (tmp_path / "run1", f"{tmp_path}/run2/run*.csv", "--validate", cell / "run3.csv")
    done("identify", cell / "arm.urdf", *logs, "--no-report", "-o", tmp_path / "same")
    first, second = (json.loads((folder / "identification.json").read_text()) for folder in (tmp_path / "same", out))
    assert [entry["name"] for entry in first["inputs"]] == ["run1", "run2"]
    assert first["parameters"] == second["parameters"]


def test_a_bad_log_is_named_before_anything_is_written(cell: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    logs = (cell / "arm.urdf", cell / "run1.csv", tmp_path / "empty.csv")
    refused("identify", *logs, "-o", tmp_path / "out", matching=("empty",))
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.slow
def test_a_cluster_gives_the_same_result(cell: Path, out: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    logs = ("run1.csv", "run2.csv", "--validate", "run3.csv", "--no-report")
    with distributed.LocalCluster(**options) as cluster:
        done("identify", "arm.urdf", *logs, "--scheduler", cluster.scheduler_address, "-o", tmp_path, cwd=cell)
    same_result(tmp_path, out)


@pytest.mark.parametrize(("symbol", "shape", "truth"), [("Ft", "time", 0.4), ("Fd", "width", 0.3)])
def test_drag_that_rises_after_each_reversal_is_identified(
    cell: Path, tmp_path: Path, symbol: str, shape: str, truth: float
) -> None:
    """Half the effect of Coulomb friction, over 0.4 s or over 0.3 rad, integrated here from the differential equation."""
    for seed in (1, 2, 3):
        header = (cell / f"run{seed}.csv").read_text().partition("\n")[0]
        table = np.loadtxt(cell / f"run{seed}.csv", delimiter=",", skiprows=1)
        _, q, v, _ = motion(seed)
        z = np.zeros(len(v))
        for k in range(1, len(v)):
            share = 0.01 / truth if shape == "time" else abs(q[k, 1] - q[k - 1, 1]) / truth
            z[k] = z[k - 1] + (np.sign(v[k, 1]) - z[k - 1]) * (1 - np.exp(-share))
        table[:, 5] += z
        np.savetxt(tmp_path / f"drag{seed}.csv", table, delimiter=",", header=header, comments="", fmt="%.9g")
    logs = ("drag1.csv", "drag2.csv", "--validate", "drag3.csv")
    done("identify", cell / "arm.urdf", *logs, "-o", "out", "--no-report", cwd=tmp_path)
    result = json.loads((tmp_path / "out" / "identification.json").read_text())
    laws = yaml.safe_load((tmp_path / "out" / "joints.yaml").read_text())["joints"]["j2"]
    assert result["verdict"]["level"] == "good"
    assert laws[symbol]["value"] == pytest.approx(1.0, rel=0.2)
    assert laws[symbol][shape] == pytest.approx(truth, rel=0.2)
    assert result["validation"][0]["relative"] < 0.025  # noise alone leaves 0.02


def test_a_black_box_names_the_variable_that_the_model_lacks(cell: Path, tmp_path: Path) -> None:
    names = []
    for seed in (1, 2, 3):
        header = (cell / f"run{seed}.csv").read_text().partition("\n")[0]
        table = np.loadtxt(cell / f"run{seed}.csv", delimiter=",", skiprows=1)
        table[:, 5] += 0.6 * np.sin(9 * table[:, 2])  # a ripple of the second joint, which no friction law describes
        names.append(f"ripple{seed}.csv")
        np.savetxt(tmp_path / names[-1], table, delimiter=",", header=header, comments="", fmt="%.9g")
    text = done("identify", cell / "arm.urdf", *names, "-o", "out", "--no-report", "--compare", cwd=tmp_path)
    entry = json.loads((tmp_path / "out" / "identification.json").read_text())["black_box"]
    assert entry["variable"] == [None, "position", None]
    # the ripple has 0.42 N·m RMS, the noise 0.05 of the torque's deviation; the low-pass removes most of the noise
    assert 0.3 < entry["explained"][1] < 0.9
    assert entry["with_black_box"][1] < 0.7 * entry["rmse"][1] < 0.5
    assert "j2: the model lacks something that depends on position" in text
