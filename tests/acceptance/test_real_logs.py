"""Real logs with the least that a user must say: published values, errors that other programs have, logs left out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.io import loadmat

import urdf_ident as ui

from .experiment import done

pytestmark = pytest.mark.slow

#: The columns of the UR10e's logs, which have no header; the efforts are currents.
UR10E = {
    "log": {
        "columns": {
            "time": 0,
            "position": list(range(1, 7)),
            "velocity": list(range(7, 13)),
            "effort": list(range(13, 19)),
            "effort_target": list(range(19, 25)),
            "torque_target": list(range(25, 31)),
        },
        "units": {"effort": "A"},
    }
}
LOCKED = {"lock": {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}}


def identified(folder: Path, urdf: Path, logs: list[Path], held_out: Path, project: dict[str, Any]) -> dict[str, Any]:
    """The JSON of `identify`, validated on another log."""
    (folder / "project.yaml").write_text(yaml.safe_dump(project))
    arguments = ("identify", urdf, *logs, "--validate", held_out, "-c", folder / "project.yaml", "-o", folder / "out")
    done(*arguments, "--no-report")
    return json.loads((folder / "out" / "identification.json").read_text(encoding="utf-8"))


def test_ur10e(real_logs: Path, tmp_path: Path) -> None:
    """Torque constants are found; two logs of 20 s predict a third within twice the error of all other logs (0.82 N·m)."""
    folder = real_logs / "ur10e"
    learnt = [folder / f"ur-20_02_{name}.csv" for name in ("05-20sec_8harm", "06-20sec_10harm")]
    data = identified(tmp_path, folder / "ur10e.urdf", learnt, folder / "ur-20_02_10-30sec_12harm.csv", UR10E)
    assert data["drive"]["gain"] == pytest.approx([11.976, 11.976, 9.8386, 10.763, 10.763, 10.763], rel=0.01)
    (score,) = data["validation"]
    assert score["mean_rmse"] < 1.64
    assert score["mean_rmse"] <= 1.01 * score["fit_mean_rmse"]  # consistent bodies cost nothing
    assert score["mean_rmse"] < 0.5 * score["urdf_friction_mean_rmse"] < 0.5 * score["urdf_mean_rmse"]
    assert data["verdict"]["level"] in ("good", "usable")
    assert data["consistency"]["consistent"]
    (again,) = json.loads(done("validate", tmp_path / "out", folder / "ur-20_02_10-20sec_7harm.csv", "--json", "--no-report"))
    assert again["mean_rmse"] < 0.5 * again["urdf_friction_mean_rmse"]


def test_ur10e_in_degrees_is_refused(real_logs: Path, tmp_path: Path) -> None:
    project = {"log": {**UR10E["log"], "units": {"effort": "A", "position": "deg"}}}
    (tmp_path / "project.yaml").write_text(yaml.safe_dump(project))
    log = real_logs / "ur10e" / "ur-20_02_05-20sec_8harm.csv"
    robot, project_file = real_logs / "ur10e" / "ur10e.urdf", tmp_path / "project.yaml"
    (entry,) = json.loads(done("inspect", log, "--robot", robot, "-c", project_file, "--json", code=1))
    (refused,) = [finding for finding in entry["findings"] if finding["severity"] == "refused"]
    assert "0.01746 times the logged velocity: one of them is in another unit" in refused["message"]


def test_panda_sixty_forty(real_logs: Path, tmp_path: Path) -> None:
    """The protocol of the data: learnt from 60 % of the log, scored on the rest at 10 Hz; URDF errors as peers measured."""
    lines = (real_logs / "panda" / "panda_exciting.csv").read_text().splitlines()
    times = np.array([float(line.split(",")[0]) for line in lines[1:]])
    cut = 1 + int(np.sum(times < times[0] + 0.6 * (times[-1] - times[0])))
    (tmp_path / "first.csv").write_text("\n".join(lines[:cut]) + "\n")
    (tmp_path / "second.csv").write_text("\n".join([lines[0], *lines[cut:]]) + "\n")
    project = {"robot": LOCKED, "validation": {"score_cutoff": 10.0}, "model": {"friction": ["viscous", "coulomb", "offset"]}}
    urdf = real_logs / "panda" / "panda.urdf"
    data = identified(tmp_path, urdf, [tmp_path / "first.csv"], tmp_path / "second.csv", project)
    (score,) = data["validation"]
    assert score["fit_mean_rmse"] <= 0.125
    assert score["mean_rmse"] <= 0.133  # physically consistent bodies, and no negative rotor inertia
    assert score["urdf_friction_mean_rmse"] == pytest.approx(0.91, abs=0.1)
    assert score["urdf_mean_rmse"] == pytest.approx(1.43, abs=0.1)
    ends = {"position-jump", "effort-drift", "contact"} & {f["id"] for log in data["inputs"] for f in log["findings"]}
    assert not ends


def test_xmate_with_nothing_but_its_files(real_logs: Path, tmp_path: Path) -> None:
    folder = real_logs / "xmate"
    data = identified(tmp_path, folder / "robot.urdf", [folder / "log1.csv", folder / "log2.csv"], folder / "log3.csv", {})
    (score,) = data["validation"]
    assert score["mean_rmse"] < score["urdf_friction_mean_rmse"]
    assert score["relative"] < 0.2


def test_panda_at_30_hz_has_reversed_efforts(real_logs: Path, tmp_path: Path) -> None:
    folder = real_logs / "panda_30hz"
    arguments = ("inspect", folder / "train.csv", "--robot", folder / "robot.urdf", "-c", folder / "leo.yaml")
    (entry,) = json.loads(done(*arguments, "--json", code=1))
    assert "effort-sign" in {finding["id"] for finding in entry["findings"]}
    project = {"robot": LOCKED, "drive": {"gain": [-1.0] * 7}}
    data = identified(tmp_path, folder / "robot.urdf", [folder / "train.csv"], folder / "test.csv", project)
    (score,) = data["validation"]
    assert score["mean_rmse"] < 0.5 * score["urdf_mean_rmse"]


def test_emps_has_its_published_parameters(real_logs: Path, tmp_path: Path) -> None:
    """Janot, Gautier and Brunot: 95.11 kg, and the force of friction, (203.5 v + 20.39 sign v - 3.16) N by the inverse model.

    Viscous and dry friction alone depend on how wide dry friction is taken to be at reversals.
    """
    table = {key: np.ravel(values) for key, values in loadmat(real_logs / "emps" / "DATA_EMPS.mat").items() if key[0] != "_"}
    columns = np.column_stack([table["t"], table["qm"], table["gtau"] * table["vir"]])
    header = "t,q_carriage_joint,tau_carriage_joint"
    np.savetxt(tmp_path / "emps.csv", columns, delimiter=",", header=header, comments="", fmt="%.12g")
    (tmp_path / "project.yaml").write_text("model: {friction: [viscous, coulomb, offset], rotor_inertia: false}\n")
    arguments = ("identify", ui.robot_path("emps"), tmp_path / "emps.csv", "-c", tmp_path / "project.yaml", "--no-report")
    done(*arguments, "-o", tmp_path / "out")
    data = json.loads((tmp_path / "out" / "identification.json").read_text())
    value = {entry["name"].split("_")[0]: entry["value"] for entry in data["parameters"]["standard"]}
    assert value["m"] == pytest.approx(95.11, rel=0.02)
    assert value["offset"] == pytest.approx(-3.16, rel=0.15)
    for speed in (0.05, 0.1, 0.14):
        assert value["Fc"] + value["Fv"] * speed == pytest.approx(20.39 + 203.5 * speed, rel=0.05)


def test_a_real_bag_is_read(real_logs: Path) -> None:
    """Its joints are called fer_joint1 where the URDF says panda_joint1."""
    project = ui.Project.model_validate({"robot": LOCKED})
    robot = project.build_robot(real_logs / "panda" / "panda.urdf")
    recording = ui.read_recording(real_logs / "bags" / "franka_panda_exciting_trajectory.db3", robot)
    assert len(recording) > 700
    assert recording.time[-1] - recording.time[0] == pytest.approx(24.0, abs=1.0)
    assert (recording.position < robot.limit("upper")).all()
    assert (recording.position > robot.limit("lower")).all()
