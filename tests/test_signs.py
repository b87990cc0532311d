"""Signs of efforts are told by physics alone: inertias are positive and friction dissipates, whatever the masses."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import Drive, Judgement, Project, Recording, Robot
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.signals.config import SignalConfig

URDF = arm_urdf("zyyxy", fixed_tip=False)
TRUE = Robot.from_urdf(URDF)
INERTIAL = r"<inertial>.*?</inertial>"


def described(how: str) -> Robot:
    """The same arm with other inertials: without any, the first alone, or a mass of 1 kg for each link."""
    first = iter((True,))
    ball = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    change = {
        "none": lambda match: "",
        "one": lambda match: match[0] if next(first, False) else "",
        "ones": lambda match: ball,
    }[how]
    return Robot.from_urdf(re.sub(INERTIAL, change, URDF))


def log_of(seed: int = 0, truth: Truth | None = None, seconds: float = 12.0) -> Recording:
    t, q, v, a = fourier(TRUE.n, seconds, 100.0, seed)
    generator = np.random.default_rng(seed)
    tau = torques(TRUE, truth or Truth.of(TRUE.n), q, v, a)
    q = q + 1e-5 * generator.standard_normal(q.shape)
    return Recording("log", TRUE.joints, t, q, effort=tau + 0.03 * tau.std(axis=0) * generator.standard_normal(tau.shape))


def physical(recording: Recording, robot: Robot, drive: Drive | None = None) -> list[Judgement]:
    report = examine_logs([recording], robot, drive or Drive.build(robot.n), SignalConfig())[0]
    return [item for item in report.findings if item.severity == "refused"]


@pytest.mark.parametrize("how", ["none", "ones"])
def test_a_sound_log_is_not_refused_whatever_the_masses(how: str) -> None:
    assert physical(log_of(), described(how)) == []


@pytest.mark.parametrize(
    ("how", "joints"),
    [("none", (0, 1, 2, 3, 4)), ("one", (1,)), ("ones", (3,))],
)
def test_reversed_efforts_are_named_with_settings_that_reverse_them(how: str, joints: tuple[int, ...]) -> None:
    robot, sign = described(how), np.ones(TRUE.n)
    sign[list(joints)] = -1.0
    recording = log_of()
    wrong = replace(recording, effort=sign * recording.effort)
    (found,) = physical(wrong, robot)
    assert found.id == "effort-sign"
    assert found.joint == (None if len(joints) > 1 else TRUE.joints[joints[0]])
    assert found.remedy is not None
    drive = Project().with_settings(found.remedy.settings, robot).build_drive(robot)
    assert drive.gain.tolist() == sign.tolist()
    put_right = replace(wrong, effort=drive.gain * wrong.effort)
    assert physical(put_right, robot) == []


def test_reversed_efforts_are_named_by_inertia_where_there_is_no_friction() -> None:
    zero = np.zeros(TRUE.n)
    recording = log_of(0, Truth(zero, zero, zero, zero))
    (found,) = physical(replace(recording, effort=-recording.effort), described("none"))
    assert (found.id, found.joint) == ("effort-sign", None)
    assert "inertias would be negative" in found.message
