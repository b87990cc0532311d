"""SDFormat and xacro as input: torques of the URDF that they were made from."""

import sys
from pathlib import Path
from types import SimpleNamespace
from xml.dom import minidom

import numpy as np
import pinocchio as pin
import pytest
from commands import assert_refused, done, run
from conftest import arm_urdf, rnea
from mujoco_oracle import states

from urdf_ident.export.sdf import sdf_text
from urdf_ident.model.description import root_tag
from urdf_ident.model.robot import Robot


def assert_same_torques(one: Robot, other: Robot) -> None:
    assert one.joints == other.joints
    q, v, a = states(one, 10)
    torques = [rnea(robot.model, robot.configuration(q), v, a) for robot in (one, other)]
    np.testing.assert_allclose(*torques, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("axes", "kind"), [("zyx", "revolute"), ("xzy", "prismatic"), ("zyy", "continuous")])
def test_sdf_of_a_urdf_is_that_robot(axes: str, kind: str) -> None:
    urdf = Robot.from_urdf(arm_urdf(axes, kind=kind))
    back = Robot.from_urdf(sdf_text(urdf.urdf)[0])
    assert_same_torques(urdf, back)
    for key in ("lower", "upper", "velocity", "effort"):
        np.testing.assert_allclose(back.limit(key), urdf.limit(key))


def sdf_in_the_models_frame(robot: Robot) -> str:
    """The robot with the poses of its links in the model's frame, joints apart from their links, axes in the model's frame."""
    model, data, generator = robot.model, robot.model.createData(), np.random.default_rng(3)
    pin.forwardKinematics(model, data, pin.neutral(model))
    moved = [pin.SE3(pin.exp3(generator.normal(size=3)), generator.normal(size=3)) for _ in robot.joints]
    links, joints = ['<link name="base"/>'], []
    for j, (name, body) in enumerate(zip(robot.joints, robot.bodies, strict=True), 1):
        here, inertia = data.oMi[j] * moved[j - 1], moved[j - 1].actInv(model.inertias[j])
        parent = "base" if model.parents[j] == 0 else robot.bodies[model.parents[j] - 1].name
        pose, joint, com = (
            " ".join(map(repr, [*map(float, p.translation), *map(float, pin.rpy.matrixToRpy(p.rotation))]))
            for p in (here, moved[j - 1].inverse(), pin.SE3(np.eye(3), inertia.lever))
        )
        six = zip(("ixx", "ixy", "iyy", "ixz", "iyz", "izz"), inertia.inertia[np.tril_indices(3)], strict=True)
        matrix = "".join(f"<{key}>{float(value)!r}</{key}>" for key, value in six)
        links.append(
            f'<link name="{body.name}"><pose>{pose}</pose><inertial><pose>{com}</pose>'
            f"<mass>{float(inertia.mass)!r}</mass><inertia>{matrix}</inertia></inertial></link>"
        )
        axis = " ".join(repr(float(x)) for x in data.oMi[j].rotation @ robot.axes[j - 1])
        joints.append(
            f'<joint name="{name}" type="revolute"><pose>{joint}</pose><parent>{parent}</parent>'
            f'<child>{body.name}</child><axis><xyz expressed_in="__model__">{axis}</xyz></axis></joint>'
        )
    return f'<?xml version="1.0"?><sdf version="1.7"><model name="arm">{"".join(links + joints)}</model></sdf>'


def test_sdf_with_frames_of_its_own(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zyxy", kind="revolute"))
    path = tmp_path / "arm.sdf"
    path.write_text(sdf_in_the_models_frame(robot), encoding="utf-8")
    read = Robot.from_urdf(path)
    q, v, a = states(robot, 10)
    torques = [rnea(one.model, one.configuration(q), v, a) for one in (robot, read)]
    np.testing.assert_allclose(*torques, rtol=1e-9, atol=1e-9)
    done("check", path)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("", ("not the model of one robot", "0 models")),
        ("<model name='a'/><model name='b'/>", ("not the model of one robot", "2 models")),
        ("<model><link name='a'><pose relative_to='x'/></link></model>", ("no frame is called 'x'",)),
        ("<model><link name='a'><pose>1 2</pose></link></model>", ("<pose> is not 6 numbers", "'a'")),
        (
            "<model><link name='a'/><joint name='j' type='ball'><parent>world</parent><child>a</child></joint></model>",
            ("joint 'j' has an unsupported type", "ball"),
        ),
        (
            "<model><link name='a'/><joint name='j' type='revolute'><parent>world</parent><child>a</child>"
            "<axis><limit><lower>-pi</lower></limit></axis></joint></model>",
            ("<lower> is not 1 number", "joint 'j'"),
        ),
    ],
)
def test_bad_sdf_is_one_line(tmp_path: Path, inside: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "bad.sdf"
    path.write_text(f"<sdf version='1.8'>{inside}</sdf>", encoding="utf-8")
    assert_refused(run("check", path), 2, r"bad\.sdf", *words)


def test_a_head_of_many_comments_is_read_at_once() -> None:
    comments = "<!-- a > b -->\n" * 60
    assert root_tag(f'\ufeff<?xml version="1.0"?>{comments}<mujoco/>') == "mujoco"
    assert root_tag(comments + "no element") == root_tag("<!DOCTYPE a [<!ENTITY b 'c'>]><sdf/>") == ""


def test_xacro_is_run_by_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(arm_urdf("zy").replace("</robot>", "<xacro:tip/></robot>"), encoding="utf-8")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused(run("check", path), 2, "unprocessed xacro", r"pip install 'urdf-ident\[xacro\]'")

    def expand(name: str) -> minidom.Document:
        text = Path(name).read_text(encoding="utf-8")
        if "fails" in name:
            raise NameError("undefined\nproperty")
        return minidom.parseString(text.replace("<xacro:tip/>", ""))

    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "xacro", SimpleNamespace(process_file=expand))
    assert_same_torques(Robot.from_urdf(path), Robot.from_urdf(arm_urdf("zy")))
    failing = path.rename(tmp_path / "fails.xacro")
    assert_refused(run("check", failing), 2, r"fails\.xacro", "xacro does not expand", "undefined property")
