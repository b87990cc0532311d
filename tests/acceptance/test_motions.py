"""`design`, `simulate`, `play`, `export-motion`, `demo`: the experiment before there is a robot."""

import ast
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import urdf_ident as ui

from .experiment import JOINTS, done, refused


def table_of(path: Path) -> dict[str, np.ndarray]:
    """Columns of a CSV by name."""
    names = path.read_text().splitlines()[0].split(",")
    return dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))


def test_a_designed_motion_keeps_the_limits_and_is_its_own_derivative(planned: Path) -> None:
    table = table_of(planned)
    assert list(table) == ["t", *(f"{x}_{joint}" for x in "qva" for joint in JOINTS)]
    assert table["t"][-1] == pytest.approx(6.0, abs=0.02)
    for joint in JOINTS:
        q, v, a = (table[f"{x}_{joint}"] for x in "qva")
        assert np.abs(q).max() <= 2.6
        assert np.abs(v).max() <= 3.0
        assert v[0] == pytest.approx(0.0, abs=1e-6)
        assert v[-1] == pytest.approx(0.0, abs=1e-6)  # it starts and ends at rest
        assert np.gradient(q, table["t"])[2:-2] == pytest.approx(v[2:-2], abs=0.01)
        assert np.gradient(v, table["t"])[2:-2] == pytest.approx(a[2:-2], abs=0.1)


def test_a_designed_motion_beats_random_ones(planned: Path, robot: ui.Robot, result: dict) -> None:
    """By the determinant of the information on the base parameters that a plain regressor gives."""
    from .experiment import regressor

    trajectory = ui.read_trajectory(planned, robot)
    times = np.linspace(0, 6, 300)

    def information(motion) -> float:
        q, v, a = motion.evaluate(times)
        values = np.linalg.svd(regressor(q, v, a)[:, :30], compute_uv=False)
        return float(np.log(values[: np.sum(values > 1e-9 * values[0])]).sum())

    limits = ui.Limits.from_robot(robot)
    random = [information(ui.random_fourier(limits, 6.0, 3, seed)) for seed in range(10)]
    assert information(trajectory) > np.median(random)


def test_design_after_a_result_says_what_it_will_determine(out: Path, cell: Path, tmp_path: Path) -> None:
    text = done("design", "arm.urdf", "-c", "short.yaml", "--after", out, "-o", tmp_path / "next.csv", cwd=cell)
    assert "%" in text
    assert (tmp_path / "next.csv").is_file()


def test_simulate_is_seeded_and_can_be_identified(planned: Path, cell: Path, out: Path, tmp_path: Path) -> None:
    project, logs = tmp_path / "sensors.yaml", []
    project.write_text("simulation: {rate: 100, sensors: {torque_noise: {snr: 40, correlation: 0.5}}}\n")
    given = ("arm.urdf", planned, "-c", project, "--truth", out / "identification.json")
    for k, seed in enumerate((5, 5, 6)):
        done("simulate", *given, "--seed", seed, "-o", tmp_path / f"log{k}.csv", cwd=cell)
        logs.append((tmp_path / f"log{k}.csv").read_bytes())
    assert logs[0] == logs[1] != logs[2]
    (score,) = json.loads(done("validate", out, tmp_path / "log0.csv", "--json", "--no-report"))
    assert score["relative"] < 0.1


def test_play_writes_an_offline_page(planned: Path, cell: Path, out: Path, tmp_path: Path) -> None:
    page = tmp_path / "motion.html"
    done("play", "arm.urdf", planned, "--html", page, cwd=cell)
    text = page.read_text(encoding="utf-8")
    assert text.rstrip().endswith("</html>")
    assert '<script src="http' not in text
    done("play", "arm.urdf", "run3.csv", "--errors", out, "--html", page, cwd=cell)
    refused("play", "arm.urdf", "absent.csv", "--html", page, matching=("absent",), cwd=cell)


@pytest.mark.parametrize("target", ["ros2_control", "urscript", "franka"])
def test_export_motion_writes_scripts_or_says_why_not(planned: Path, cell: Path, tmp_path: Path, target: str) -> None:
    out = tmp_path / target
    arguments = ("export-motion", planned, "--robot", "arm.urdf", "--for", target, "-o", out)
    if target != "ros2_control":  # this robot has three joints
        refused(*arguments, matching=("joint|axes",), cwd=cell)
        assert not out.exists() or not list(out.iterdir())
        return
    done(*arguments, cwd=cell)
    assert "README.txt" in {path.name for path in out.iterdir()}
    points = yaml.safe_load((out / "trajectory.yaml").read_text())
    assert points["joint_names"] == list(JOINTS)
    table = table_of(planned)
    assert points["points"][-1]["positions"] == pytest.approx([table[f"q_{joint}"][-1] for joint in JOINTS], abs=1e-6)
    ast.parse((out / "send.py").read_text())


def test_a_recording_is_not_exported_to_a_robot(cell: Path, tmp_path: Path) -> None:
    arguments = ("export-motion", "run1.csv", "--robot", "arm.urdf", "--for", "ros2_control", "-o", tmp_path / "x")
    refused(*arguments, matching=("recording",), cwd=cell)


def test_a_motion_outside_the_limits_is_not_simulated(cell: Path, tmp_path: Path) -> None:
    t = np.linspace(0, 2, 201)
    table = np.column_stack([t, *[50.0 * np.sin(3 * t)] * 3])
    head = ",".join(["t", *(f"q_{joint}" for joint in JOINTS)])
    np.savetxt(tmp_path / "wild.csv", table, delimiter=",", header=head, comments="")
    arguments = ("simulate", "arm.urdf", tmp_path / "wild.csv", "-o", tmp_path / "log.csv")
    refused(*arguments, matching=("j1", "limit|velocity|position"), cwd=cell)
    assert not (tmp_path / "log.csv").exists()


def test_a_robot_without_limits_has_no_motion(cell: Path, tmp_path: Path) -> None:
    root = ET.fromstring((cell / "arm.urdf").read_text())
    for joint in root.iter("joint"):
        if (limit := joint.find("limit")) is not None:
            limit.set("velocity", "0")
    ET.ElementTree(root).write(tmp_path / "still.urdf")
    refused("design", tmp_path / "still.urdf", "-o", tmp_path / "motion.csv", matching=("velocity|limit",))
    assert not (tmp_path / "motion.csv").exists()


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """What the command wrote, and what the function returned to it."""
    folder, demo, returned = tmp_path_factory.mktemp("demo"), ui.demo, []

    def kept(*arguments: Any, **options: Any) -> Any:
        returned.append(demo(*arguments, **options))
        return returned[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urdf_ident.pipeline.demo.demo", kept)
        assert "truth" in done("demo", "-o", folder)
    return folder, returned[0]


@pytest.mark.slow
def test_the_demo_finds_a_robot_behind_a_wrong_urdf(demonstrated: tuple[Path, Any]) -> None:
    tmp_path, _ = demonstrated
    data = json.loads((tmp_path / "identification.json").read_text())
    assert data["verdict"]["level"] in ("good", "usable")
    assert data["validation"][0]["mean_rmse"] < data["validation"][0]["urdf_mean_rmse"] / 5
    assert {"report.html", "motion.html", "ur10e_identified.urdf", "joints.yaml"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_the_demo_is_near_the_truth(demonstrated: tuple[Path, Any], tmp_path: Path) -> None:
    """Torque that builds up while a joint sticks is no lead of the efforts, which would make all rotors too small."""
    folder, demo = demonstrated
    ident, fit = demo.ident, demo.ident.fit
    assert np.mean(np.abs(fit.params - fit.base.of(demo.truth)) <= 3 * fit.bse) > 0.8
    for symbol, near in (("Fv", 0.25), ("Fc", 0.25), ("Ia", 0.07)):
        for joint in ident.model.robot.joints:
            k = ident.model.names.index(f"{symbol}_{joint}")
            assert ident.theta[k] == pytest.approx(demo.truth[k], rel=near)
    motion = ui.random_fourier(ui.Limits.from_robot(ident.model.robot), 12.0, 8, 5, start=[0.0, -1.2, 1.3, -1.0, -1.2, 0.3])
    motion.write(tmp_path / "motion.csv", rate=200)
    result, log = folder / "identification.json", tmp_path / "log.csv"
    done("simulate", folder / "ur10e_identified.urdf", tmp_path / "motion.csv", "--truth", result, "-o", log)
    (score,) = json.loads(done("validate", result, log, "--json", "--no-report"))
    assert score["relative"] < 0.1
