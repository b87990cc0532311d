"""Learning from earlier logs: what is still unknown, what the next motion will tell of it, and results that cannot be used."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import arm_urdf
from logs import make_log
from test_cli import assert_refused, run

from urdf_ident.data.readers import read_recording
from urdf_ident.errors import LogError
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline import identify
from urdf_ident.result.file import load
from urdf_ident.result.identification import Identification


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot, a short log of it, and the result of that."""
    folder = tmp_path_factory.mktemp("sequential")
    (folder / "arm.urdf").write_text(arm_urdf("zyx"))
    robot = Robot.from_urdf(folder / "arm.urdf")
    log = make_log(folder / "log.csv", robot, seconds=8.0)
    identify(DynamicModel(robot), [read_recording(log, robot)]).save(folder / "first.json")
    return folder


@pytest.fixture(scope="module")
def first(work: Path) -> Identification:
    return load(work / "first.json")


def test_design_after_a_result_whose_friction_was_chosen_by_the_data(work: Path) -> None:
    """With friction: auto the project's model is not the result's: the result's is designed for."""
    (work / "p.yaml").write_text("model: {friction: [viscous, coulomb]}\nexcitation: {budget: 0.5, duration: 6}\n")
    done = run("design", work / "arm.urdf", "-c", work / "p.yaml", "--after", work / "first.json", "-o", work / "next.csv")
    assert done.returncode == 0, done.stderr
    assert "friction as in the earlier result" in done.stdout


def test_design_after_another_robot_is_refused(work: Path) -> None:
    (work / "other.urdf").write_text(arm_urdf("zyy"))
    done = run("design", work / "other.urdf", "--after", work / "first.json", "-o", work / "no.csv")
    assert_refused(done, 2, "another robot", "joint 'j3'", "identification.json")
    assert not (work / "no.csv").exists()


def _without_covariance(data: dict[str, Any]) -> None:
    data["covariance"]["matrix"] = data["covariance"]["matrix"][:-1]


def _with_a_word_for_a_number(data: dict[str, Any]) -> None:
    data["state"]["factor"][0][0] = "much"


def _with_a_short_factor(data: dict[str, Any]) -> None:
    data["state"]["factor"] = [row[:-1] for row in data["state"]["factor"]]


def _without_the_factor(data: dict[str, Any]) -> None:
    del data["state"]["factor"]


@pytest.mark.parametrize("damage", [_without_covariance, _with_a_word_for_a_number, _with_a_short_factor, _without_the_factor])
def test_a_damaged_result_says_so(work: Path, tmp_path: Path, damage: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads((work / "first.json").read_text())
    damage(data)
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(LogError, match=r"bad\.json: not an identification\.json, or a damaged one.*urdf-ident identify"):
        load(tmp_path / "bad.json")


@pytest.mark.parametrize("text", ["", "[]", '"text"', "{}", "{"])
def test_a_file_that_is_no_result_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(LogError, match=re.escape("not an identification.json")):
        load(tmp_path / "bad.json")
