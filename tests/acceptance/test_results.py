"""`validate`, `report`, `plot`, `export`: what is done with a result, wherever it was moved."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import urdf_ident as ui

from .experiment import JOINTS, done, motion, refused, torque


@pytest.fixture
def moved(out: Path, tmp_path: Path) -> Path:
    """A copy of the result alone, far from its URDF and logs."""
    shutil.copy(out / "identification.json", tmp_path)
    return tmp_path / "identification.json"


def test_validate_scores_a_moved_result_as_identify_did(moved: Path, cell: Path, result: dict[str, Any]) -> None:
    (score,) = json.loads(done("validate", moved, cell / "run3.csv", "--json", "--no-report"))
    assert score["mean_rmse"] == pytest.approx(result["validation"][0]["mean_rmse"], rel=1e-9)
    assert score["urdf_mean_rmse"] == pytest.approx(result["validation"][0]["urdf_mean_rmse"], rel=1e-9)
    assert not (moved.parent / "validation.html").exists()


def test_a_layout_without_logs_is_refused(moved: Path, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("log: {units: {position: deg}}")
    for name in ("report", "plot"):
        refused(
            name, moved, "-c", tmp_path / "other.yaml", "-o", tmp_path / "new", matching=("-c has no effect", "name the logs")
        )
    assert not (tmp_path / "new").exists()


def test_validate_says_good_and_writes_a_page(moved: Path, cell: Path) -> None:
    assert done("validate", moved, cell / "run3.csv").startswith("GOOD")
    assert (moved.parent / "validation.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.fixture
def other_layout(cell: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The third log with motor currents and degrees in nameless columns in another order, and its project file."""
    table = np.loadtxt(cell / "run3.csv", delimiter=",", skiprows=1)
    log, project = tmp_path / "run3.csv", tmp_path / "other.yaml"
    np.savetxt(log, np.column_stack([table[:, 4:] / 2.0, np.degrees(table[:, 1:4]), table[:, 0]]), delimiter=",", fmt="%.12g")
    project.write_text(
        "log: {columns: {time: 6, position: [3, 4, 5], effort: [0, 1, 2]}, units: {position: deg, effort: A}}\n"
        "drive: {gain: 2.0}\n"
    )
    return log, project


def test_logs_in_another_layout_are_read_by_their_project_file(
    moved: Path, cell: Path, other_layout: tuple[Path, Path], tmp_path: Path
) -> None:
    log, project = other_layout
    scores = [
        json.loads(done("validate", moved, *given, "--json", "--no-report"))[0]["mean_rmse"]
        for given in ([cell / "run3.csv"], [log, "-c", project])
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)
    done("report", moved, log, "-c", project, "-o", tmp_path / "r.html")
    done("plot", moved, "torque", "--log", log, "-c", project, "-o", tmp_path)
    done("play", cell / "arm.urdf", log, "-c", project, "--errors", moved, "--html", tmp_path / "p.html")
    table = np.loadtxt(cell / "loaded.csv", delimiter=",", skiprows=1)
    np.savetxt(log, np.column_stack([table[:, 4:] / 2.0, np.degrees(table[:, 1:4]), table[:, 0]]), delimiter=",", fmt="%.12g")
    masses = [
        json.loads(done("payload", moved, *given, "--link", "tool", "--json", "-o", tmp_path / "b.json"))["mass"]["value"]
        for given in ([cell / "loaded.csv"], [log, "-c", project])
    ]
    assert masses[0] == pytest.approx(masses[1], rel=1e-4)


def test_a_layout_that_lists_joints_in_another_order_is_refused(moved: Path, cell: Path, tmp_path: Path) -> None:
    project = tmp_path / "other.yaml"
    project.write_text("robot: {joints: [j2, j1, j3]}\n")
    assert "expected j1, j2, j3" in refused("validate", moved, cell / "run3.csv", "-c", project)


def test_the_error_on_the_log_is_that_of_the_exported_model(moved: Path, cell: Path) -> None:
    """Recomputed without the package's filters: noise of 5 % of the torque is in it."""
    (score,) = json.loads(done("validate", moved, cell / "run3.csv", "--json", "--no-report"))
    _, q, v, a = motion(3)
    truth = torque(q, v, a)
    error = np.sqrt(np.mean((np.asarray(ui.load(moved).torque(q, v, a)) - truth) ** 2, axis=0))
    for joint, own, size in zip(score["per_joint"], error, np.sqrt(np.mean(truth**2, axis=0)), strict=True):
        assert own <= joint["rmse"] <= own + 0.05 * truth.std(axis=0).max()
        assert joint["rms_torque"] == pytest.approx(size, rel=0.1)


def test_a_result_worse_than_the_urdf_is_poor(moved: Path, cell: Path) -> None:
    data = json.loads(moved.read_text())
    for entry in data["parameters"]["standard"]:
        entry["value"] = 3.0 * entry["value"]
    data.pop("seal", None)  # an intended edit
    moved.write_text(json.dumps(data))
    assert done("validate", moved, cell / "run3.csv", "--no-report", code=1).startswith("POOR")


def test_a_joint_that_is_not_predicted_is_named_whatever_the_others_are(moved: Path, cell: Path, tmp_path: Path) -> None:
    header = (cell / "run3.csv").read_text().partition("\n")[0]
    table = np.loadtxt(cell / "run3.csv", delimiter=",", skiprows=1)
    table[:, 6] += 0.8 * table[:, 6].std() * np.sin(table[:, 0])  # a push of the third joint, the weakest one
    np.savetxt(tmp_path / "pushed.csv", table, delimiter=",", header=header, comments="", fmt="%.9g")
    lines = done("validate", moved, tmp_path / "pushed.csv", "--no-report").splitlines()
    assert lines[0].startswith("USABLE")
    assert "j3 (" in lines[1]
    assert "of its torque) is not predicted" in lines[1]


def test_report_and_plot_draw_the_result_and_other_logs(moved: Path, cell: Path) -> None:
    page = moved.parent / "page.html"
    done("report", moved, cell / "run3.csv", "-o", page)
    text = page.read_text(encoding="utf-8")
    assert text.rstrip().endswith("</html>")
    assert all(joint in text for joint in JOINTS)
    assert "run3" in text
    done("plot", moved, "friction", "parameters", "-o", moved.parent / "pictures", "--format", "svg")
    assert sorted(path.name for path in (moved.parent / "pictures").iterdir()) == ["friction.svg", "parameters.svg"]
    refused("plot", moved, "nonsense", "-o", moved.parent / "none", matching=("nonsense", "friction"))


@pytest.fixture(scope="module")
def exported(out: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that `export` writes."""
    folder = tmp_path_factory.mktemp("exported")
    files = ("--urdf", folder / "arm.urdf", "--mjcf", folder / "arm.xml", "--sdf", folder / "arm.sdf")
    done("export", out, *files, "--sidecar", folder / "joints.yaml")
    return folder


def test_export_writes_what_identify_wrote(exported: Path, out: Path) -> None:
    assert (exported / "arm.urdf").read_bytes() == (out / "arm_identified.urdf").read_bytes()
    assert (exported / "joints.yaml").read_bytes() == (out / "joints.yaml").read_bytes()


def test_the_exported_urdf_has_the_true_dynamics_in_pinocchio(exported: Path, result: dict[str, Any]) -> None:
    model = pin.buildModelFromXML((exported / "arm.urdf").read_text())
    data = model.createData()
    _, q, v, a = motion(12, seconds=5.0)
    bodies = np.array([pin.rnea(model, data, *sample) for sample in zip(q, v, a, strict=True)])
    value = {entry["name"]: entry["value"] for entry in result["parameters"]["standard"]}
    rotor, viscous, coulomb, offset = (
        [value[f"{symbol}_{joint}"] for joint in JOINTS] for symbol in ("Ia", "Fv", "Fc", "offset")
    )
    predicted = bodies + np.array(rotor) * a + np.array(viscous) * v + np.array(coulomb) * np.tanh(v / 0.02) + np.array(offset)
    truth = torque(q, v, a)
    assert (np.sqrt(np.mean((predicted - truth) ** 2, axis=0)) < 0.02 * truth.std(axis=0)).all()


def test_the_corrected_urdf_keeps_the_rest_of_its_text(exported: Path, cell: Path) -> None:
    before, after = (cell / "arm.urdf").read_text(), (exported / "arm.urdf").read_text()
    for name in ("origin", "axis", "limit", "parent", "child"):
        frames = [
            [(element.tag, element.attrib) for element in ET.fromstring(text).iter(name) if element.tag != "origin"]
            for text in (before, after)
        ]
        assert frames[0] == frames[1]
    kept = [
        [(joint.get("name"), joint.find("origin").attrib) for joint in ET.fromstring(text).iter("joint")]
        for text in (before, after)
    ]
    assert kept[0] == kept[1]


def test_mujoco_has_the_torques_of_the_result(exported: Path, ident: ui.Identification) -> None:
    """Inverse dynamics by MuJoCo with rotors and damping; constant friction and offset are added by hand."""
    model = mujoco.MjModel.from_xml_path(str(exported / "arm.xml"))
    data = mujoco.MjData(model)
    at = [model.joint(joint).qposadr[0] for joint in JOINTS]
    _, q, v, a = motion(12, seconds=2.0)
    fast = np.abs(v).min(axis=1) > 0.3  # far from reversals, where the laws of dry friction agree
    assert fast.sum() > 5
    predicted = np.asarray(ident.torque(q, v, a))
    for sample, speed, acceleration, expected in zip(q[fast], v[fast], a[fast], predicted[fast], strict=True):
        data.qpos[at], data.qvel[at], data.qacc[at] = sample, speed, acceleration
        mujoco.mj_inverse(model, data)
        passive = model.dof_damping[at] * speed
        friction = passive + model.dof_frictionloss[at] * np.sign(speed)
        own = data.qfrc_bias[at] + _inertia(model, data) @ acceleration + friction
        assert own == pytest.approx(expected, abs=0.02 * np.abs(predicted).max() + 0.3)


def _inertia(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    return full


def test_sdf_and_urdf_have_the_same_masses(exported: Path) -> None:
    masses = [float(mass.text or "nan") for mass in ET.parse(exported / "arm.sdf").getroot().iter("mass")]
    model = pin.buildModelFromXML((exported / "arm.urdf").read_text())
    assert sum(masses) == pytest.approx(sum(inertia.mass for inertia in list(model.inertias)[1:]), rel=1e-6)


def test_export_refuses_a_urdf_that_has_changed(out: Path, cell: Path, tmp_path: Path) -> None:
    source = cell / "arm.urdf"
    before = source.read_text()
    try:
        source.write_text(before.replace('name="arm"', 'name="other"'))
        refused("export", out, "--urdf", tmp_path / "x.urdf", matching=("changed", "--force"), cwd=cell)
        assert not (tmp_path / "x.urdf").exists()
        done("export", out, "--urdf", tmp_path / "x.urdf", "--force", cwd=cell)
    finally:
        source.write_text(before)


@pytest.mark.parametrize(
    ("arguments", "expressions"),
    [
        (("export", "out"), ("--urdf", "--mjcf")),
        (("export", "absent", "--urdf", "x.urdf"), ("absent",)),
        (("export", "arm.urdf", "--urdf", "x.urdf"), ("arm.urdf",)),
        (("export", "out", "--urdf", "same", "--mjcf", "same"), ("same",)),
        (("validate", "out", "absent.csv"), ("absent",)),
        (("validate", "out"), ("LOG",)),
        (("report", "absent"), ("absent",)),
        (("plot", "out", "--format", "gif"), ("gif", "png")),
    ],
)
def test_wrong_use_is_one_line(out: Path, cell: Path, arguments: tuple[str, ...], expressions: tuple[str, ...]) -> None:
    refused(*arguments, matching=expressions, cwd=cell)


def test_a_damaged_result_is_one_line(out: Path, tmp_path: Path) -> None:
    text = (out / "identification.json").read_text()
    for name, damaged in (
        ("cut", text[: len(text) // 2]),
        ("edited", text.replace('"value": ', '"value": 1', 1)),
        ("other", "{}"),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(damaged)
        refused("export", path, "--urdf", tmp_path / "x.urdf", matching=(name,))
    assert not (tmp_path / "x.urdf").exists()
