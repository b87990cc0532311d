"""Remedies are promises: the settings of a judgement, applied to the project, make it go away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf
from logs import make_log

import urdf_ident as ui
from urdf_ident.judgements.catalogue import Id
from urdf_ident.pipeline.examine import examine_logs

ARM = ui.Robot.from_urdf(arm_urdf("zyyx"))
Change = Callable[[np.ndarray], np.ndarray]
HEADER = ["t", *(f"{name}_{joint}" for name in ("q", "tau") for joint in ARM.joints)]


def scaled(column: str, factor: float, more: float = 0.0) -> Change:
    def change(table: np.ndarray) -> np.ndarray:
        out, at = table.copy(), HEADER.index(column)
        out[:, at] = factor * out[:, at] + more
        return out

    return change


def all_positions(factor: float) -> Change:
    return lambda table: np.column_stack([table[:, :1], factor * table[:, 1 : 1 + ARM.n], table[:, 1 + ARM.n :]])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    path = make_log(tmp_path_factory.mktemp("log") / "run.csv", ARM, seed=3, seconds=20.0)
    read = ui.read_recording(path, ARM)
    assert read.effort is not None
    return np.column_stack([read.time, read.position, read.effort])


def judged(table: np.ndarray, folder: Path, project: ui.Project, robot: ui.Robot) -> list[ui.Judgement]:
    path = folder / "run.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(HEADER), comments="")
    log = ui.read_recording(path, robot, project.log)
    (report,) = examine_logs([log], robot, project.build_drive(robot), project.signal_config())
    return [item for item in report.findings if item.level != "good"]


@pytest.mark.parametrize(
    ("id", "change"),
    [
        (Id.EFFORT_SIGN, scaled("tau_j2", -1.0)),
        (Id.EFFORT_SCALE, scaled("tau_j2", 0.5)),
        (Id.POSITION_ZERO, scaled("q_j2", 1.0, -0.6)),
        (Id.POSITION_UNIT, all_positions(180 / np.pi)),
        (Id.TIME_UNIT, scaled("t", 1e3)),
    ],
)
def test_the_settings_of_a_remedy_make_the_judgement_go_away(table: np.ndarray, tmp_path: Path, id: Id, change: Change) -> None:
    assert judged(table, tmp_path, ui.Project(), ARM) == []
    (told,) = judged(change(table), tmp_path, ui.Project(), ARM)
    assert told.id is id
    assert told.remedy is not None
    assert told.remedy.settings
    right = ui.Project().with_settings(told.remedy.settings, ARM)
    assert judged(change(table), tmp_path, right, ARM) == []


def test_another_gravity_is_stated_by_the_settings(table: np.ndarray, tmp_path: Path) -> None:
    hung = ARM.with_gravity((0.0, 0.0, 9.81))
    told = next(item for item in judged(table, tmp_path, ui.Project(), hung) if item.id is Id.GRAVITY_DIRECTION)
    assert told.remedy is not None
    project = ui.Project().with_settings(told.remedy.settings, hung)
    assert project.robot.gravity == pytest.approx((0.0, 0.0, -9.81))
    assert judged(table, tmp_path, project, replace(ARM.with_gravity(project.robot.gravity))) == []


def test_settings_change_what_the_project_holds() -> None:
    project = ui.Project.model_validate({"drive": {"gain": [2.0, 1.0, 1.0, 1.0], "joint_offset": 0.1}, "log": {"rate": 100.0}})
    changed = project.with_settings(
        {
            "drive.gain": {"multiply": {ARM.joints[0]: -1.0}},
            "drive.joint_offset": {"add": {ARM.joints[1]: 0.2}},
            "log.rate": {"multiply": 2.0},
            "robot.lock.finger": 0.5,
        },
        ARM,
    )
    assert changed.drive.gain == [-2.0, 1.0, 1.0, 1.0]
    assert changed.drive.joint_offset == pytest.approx([0.1, 0.3, 0.1, 0.1])
    assert changed.log.rate == 200.0
    assert changed.robot.lock == {"finger": 0.5}
    with pytest.raises(ui.UrdfIdentError, match="cannot be changed"):
        ui.Project().with_settings({"log.rate": {"multiply": 2.0}}, ARM)
    with pytest.raises(ui.UrdfIdentError, match="unknown key"):
        ui.Project().with_settings({"log.rates": 2.0}, ARM)
