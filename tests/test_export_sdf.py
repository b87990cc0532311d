"""SDFormat: the same kinematics and dynamics, worked out from the file by hand."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, values_of
from motion_samples import coupled_model, truth

from urdf_ident import DynamicModel, Robot
from urdf_ident.export.sdf import sdf_text
from urdf_ident.export.sidecar import write_sidecar


def placed(element: ET.Element | None) -> pin.SE3:
    numbers = np.array([float(x) for x in element.text.split()]) if element is not None else np.zeros(6)
    return pin.SE3(pin.rpy.rpyToMatrix(*numbers[3:]), numbers[:3])


def model_of(text: str) -> pin.Model:
    """An SDFormat chain as a Pinocchio model, independent of the URDF reader."""
    sdf = ET.fromstring(text).find("model")
    links = {link.get("name"): link for link in sdf.findall("link")}
    joints = {joint.find("child").text: joint for joint in sdf.findall("joint")}
    model = pin.Model()
    ids, inner = {"world": 0}, {"world": pin.SE3.Identity()}

    def add(name: str) -> None:
        if name in ids:
            return
        joint = joints[name]
        parent = joint.find("parent").text
        add(parent)
        place = inner[parent] * placed(joint.find("pose"))
        if joint.get("type") == "fixed":
            ids[name], inner[name] = ids[parent], place
        else:
            axis = np.array([float(x) for x in joint.find("axis/xyz").text.split()])
            kind = pin.JointModelPrismaticUnaligned if joint.get("type") == "prismatic" else pin.JointModelRevoluteUnaligned
            ids[name], inner[name] = model.addJoint(ids[parent], kind(axis), place, joint.get("name")), pin.SE3.Identity()
        assert links[name].find("pose") is None or links[name].find("pose").get("relative_to") == joint.get("name")
        inertial = links[name].find("inertial")
        own = {key: float(inertial.find(f"inertia/{key}").text) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}
        matrix = np.array(
            [[own["ixx"], own["ixy"], own["ixz"]], [own["ixy"], own["iyy"], own["iyz"]], [own["ixz"], own["iyz"], own["izz"]]]
        )
        body = pin.Inertia(float(inertial.find("mass").text), np.zeros(3), matrix).se3Action(placed(inertial.find("pose")))
        model.appendBodyToJoint(ids[name], body, inner[name])

    for name in links:
        add(name)
    return model


@pytest.mark.parametrize(("axes", "kind"), [("zyx", "revolute"), ("xzy", "prismatic"), ("zyy", "continuous")])
def test_torques_are_those_of_the_urdf(axes: str, kind: str) -> None:
    urdf = arm_urdf(axes, kind=kind)
    text, notes = sdf_text(urdf)
    assert notes == ()
    model, robot = model_of(text), Robot.from_urdf(urdf)
    assert list(model.names)[1:] == list(robot.joints)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, a = rng.uniform(-1, 1, (3, robot.n))
        expected = pin.rnea(robot.model, robot.model.createData(), robot.configuration(q[None])[0], v, a)
        assert pin.rnea(model, model.createData(), q, v, a) == pytest.approx(
            expected, rel=1e-4, abs=1e-4
        )  # 1e-6 kg of the base


def test_limits_friction_and_frames() -> None:
    urdf = """<robot name="one"><link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><link name="arm"><inertial><mass value="2"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="package://a/b.stl" scale="1 1 2"/></geometry></visual></link><link name="tip"/>
    <joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" effort="5" velocity="3"/>
    <dynamics damping="0.7" friction="0.2"/></joint>
    <joint name="t" type="fixed"><parent link="arm"/><child link="tip"/><origin xyz="0 0 0.3"/></joint></robot>"""
    text, notes = sdf_text(urdf)
    model = ET.fromstring(text).find("model")
    joint = next(item for item in model.findall("joint") if item.get("name") == "j")
    assert [joint.find(f"axis/limit/{key}").text for key in ("lower", "upper", "effort", "velocity")] == ["-1", "2", "5", "3"]
    assert joint.find("axis/dynamics/damping").text == "0.7"
    assert joint.find("axis/dynamics/friction").text == "0.2"
    frame = model.find("frame")
    assert (frame.get("name"), frame.get("attached_to"), frame.find("pose").text) == ("tip", "arm", "0 0 0.3 0 0 0")
    arm = next(item for item in model.findall("link") if item.get("name") == "arm")
    assert arm.find("visual/geometry/mesh/uri").text == "model://a/b.stl"
    assert arm.find("visual/geometry/mesh/scale").text == "1 1 2"
    assert notes == ()


# ---- The side-car: every joint term with its unit and shapes, back to the last bit ----


def test_values_come_back_to_the_last_bit(tmp_path: Path) -> None:
    model = coupled_model()
    theta = truth(model) * np.pi
    theta[-1], theta[-2], theta[-3] = 1e-5, -1 / 3, 1e300
    back = values_of(write_sidecar(tmp_path / "joints.yaml", model, theta))
    assert set(back) == {"j1", "j2", "j3"}
    listed = {f"{symbol}_{joint}": value for joint, terms in back.items() for symbol, value in terms.items()}
    assert listed == dict(zip(model.names[30:], theta[30:].tolist(), strict=True))


@pytest.mark.parametrize("name", ["on", "007", "null", "a: b", "0x1F", "1e5", "gelenk_äöü"])
def test_joint_names_stay_names(tmp_path: Path, name: str) -> None:
    model = DynamicModel(Robot.from_urdf(arm_urdf("z").replace("j1", name)), friction=["viscous"])
    back = values_of(write_sidecar(tmp_path / "joints.yaml", model, np.arange(12.0)))
    assert back == {name: {"Ia": 10.0, "Fv": 11.0}}
