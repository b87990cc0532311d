"""Signs of efforts are told by physics alone: inertias are positive and friction dissipates, whatever the masses."""

import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, found_in, fourier, recorded, torques

from urdf_ident import Judgement, Project, Recording, Robot

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


def log_of(truth: Truth | None = None) -> Recording:
    t, q, v, a = fourier(TRUE.n, 12.0, 100.0, 0)
    return recorded(TRUE, t, q, torques(TRUE, truth or Truth.of(TRUE.n), q, v, a), noise=0.03)


def physical(recording: Recording, robot: Robot) -> list[Judgement]:
    return [item for item in found_in(recording, robot=robot)[0] if item.severity == "refused"]


@pytest.mark.parametrize("how", ["none", "ones"])
def test_a_sound_log_is_not_refused_whatever_the_masses(how: str) -> None:
    assert physical(log_of(), described(how)) == []


@pytest.mark.parametrize(("how", "joints"), [("none", (0, 1, 2, 3, 4)), ("one", (1,)), ("ones", (3,))])
def test_reversed_efforts_are_named_with_settings_that_reverse_them(how: str, joints: tuple[int, ...]) -> None:
    robot, sign = described(how), np.ones(TRUE.n)
    sign[list(joints)] = -1.0
    wrong = replace(log_of(), effort=sign * log_of().effort)
    (found,) = physical(wrong, robot)
    assert (found.id, found.joint) == ("effort-sign", None if len(joints) > 1 else TRUE.joints[joints[0]])
    assert found.remedy is not None
    drive = Project().with_settings(found.remedy.settings, robot).build_drive(robot)
    assert drive.gain.tolist() == sign.tolist()
    assert physical(replace(wrong, effort=drive.gain * wrong.effort), robot) == []


def test_reversed_efforts_are_named_by_inertia_where_there_is_no_friction() -> None:
    recording = log_of(Truth(*np.zeros((4, TRUE.n))))
    (found,) = physical(replace(recording, effort=-recording.effort), described("none"))
    assert (found.id, found.joint) == ("effort-sign", None)
    assert "inertias would be negative" in found.message
