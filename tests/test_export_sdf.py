"""SDFormat, beside its way there and back (``test_other_formats.py``), and the side-car file."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf, values_of
from motion_samples import coupled_model, truth

from urdf_ident import DynamicModel, Robot
from urdf_ident.export.sdf import sdf_text
from urdf_ident.export.sidecar import write_sidecar


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
