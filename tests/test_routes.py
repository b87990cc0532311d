"""The first hour of three people: the commands of the how-to, played on files as these people have them, lead to a result."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import arm_urdf
from logs import Truth, fourier, torques, write_csv
from test_docs import ROOT, commands

import urdf_ident as ui
from urdf_ident import Robot, robot_path
from urdf_ident.cli.application import run

#: Seconds of one log.
SECONDS = 12.0


def motion(robot: Robot, seed: int, rate: float, noise: float = 0.03) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions and torques of a random motion with noise."""
    t, q, v, a = fourier(robot.n, SECONDS, rate, seed)
    tau = torques(robot, Truth.of(robot.n), q, v, a)
    generator = np.random.default_rng(seed)
    q = q + 1e-5 * generator.standard_normal(q.shape)
    return t, q, tau + noise * tau.std(axis=0) * generator.standard_normal(tau.shape)


def steps(title: str) -> list[list[str]]:
    """The commands of a section of the how-to, at most three."""
    text = (ROOT / "docs" / "howto.md").read_text(encoding="utf-8").split(f"### {title}\n")[1].split("\n#")[0]
    assert "```yaml" not in text
    (block,) = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    listed = commands(block)
    assert len(listed) <= 3
    return listed


def play(listed: list[list[str]], result: str) -> dict[str, object]:
    """Runs commands; returns the result."""
    for words in listed:
        assert run([*words, "--no-report"] if words[0] == "identify" else words) == 0, words
    return json.loads((Path(result) / "identification.json").read_text(encoding="utf-8"))


def held_out_error(result: dict[str, object]) -> float:
    (entry,) = result["validation"]  # type: ignore[misc]
    return float(entry["mean_relative"] if "mean_relative" in entry else entry["relative"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    return tmp_path


def test_a_lerobot_arm(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two versions of a data set, written by LeRobot's own library (scripts/checks/lerobot_data_set.py), hold the same logs."""
    pytest.importorskip("pyarrow")
    inspect, identify = steps("A LeRobot arm")
    read = []
    for version, unit, inspected in (("v2.1", "deg", "dataset/episode_000001"), ("v3.0", "normalized", "dataset")):
        shutil.copytree(Path(__file__).parent / "lerobot" / version, here / version / "dataset")
        shutil.copy(robot_path("generic_6axis"), here / version / "arm.urdf")
        monkeypatch.chdir(here / version)
        assert run([inspected if word == "dataset" else word for word in inspect]) == 0
        assert yaml.safe_load(Path("lerobot.yaml").read_text())["log"]["units"] == {"position": unit, "effort": "mA"}
        project, robot = ui.load_project("lerobot.yaml")[0], ui.Robot.from_urdf("arm.urdf")
        read.append([ui.read_recording(f"dataset/episode_{k:06d}", robot, project.log) for k in range(4)])
    for old, new in zip(*read, strict=True):
        np.testing.assert_array_equal(old.effort, new.effort)
        np.testing.assert_allclose(old.position, new.position, atol=1e-6)
    result = play([identify], "out_lerobot")
    assert result["verdict"]["level"] == "good"  # type: ignore[index]
    assert len(result["inputs"]) == 3  # type: ignore[arg-type]
    assert held_out_error(result) < 0.03  # noise of the torques


def test_a_ur_arm_with_a_csv_without_header(here: Path) -> None:
    (here / "ur10e.urdf").write_text(robot_path("ur10e").read_text())
    robot = Robot.from_urdf(here / "ur10e.urdf")
    gain = np.array([13.0, 13.0, 11.0, 9.0, 9.0, 9.0])  # N·m per A
    for k in (1, 2, 3):
        t, q, tau = motion(robot, k, 125.0)
        np.savetxt(here / f"runs/run{k}.csv", np.column_stack([t, np.degrees(q), tau / gain]), delimiter=",", fmt="%.8g")
    assert held_out_error(play(steps("A UR arm with a CSV without header"), "out_ur10e")) < 0.15


def test_a_franka_arm_with_its_hand(here: Path) -> None:
    arm = arm_urdf("zyyx")
    hand = "".join(
        f'<joint name="finger{k}" type="prismatic"><parent link="tool"/><child link="finger{k}_link"/>'
        f'<origin xyz="0 0 0.06"/><axis xyz="0 {sign} 0"/><limit lower="0" upper="0.04" velocity="0.2" effort="20"/>{mimic}'
        f'</joint><link name="finger{k}_link"><inertial><mass value="0.015"/>'
        '<inertia ixx="2e-6" ixy="0" ixz="0" iyy="2e-6" iyz="0" izz="1e-6"/></inertial></link>'
        for k, sign, mimic in ((1, 1, ""), (2, -1, '<mimic joint="finger1"/>'))
    )
    (here / "fr3.urdf").write_text(arm.replace("</robot>", hand + "</robot>"))
    robot = Robot.from_urdf(here / "fr3.urdf")
    assert robot.joints == ("j1", "j2", "j3", "j4")
    for k in (1, 2, 3):
        t, q, tau = motion(robot, k, 100.0)
        write_csv(here / f"runs/run{k}.csv", robot.joints, t, q, tau)
    assert held_out_error(play(steps("A Franka arm with its hand"), "out_fr3")) < 0.1
