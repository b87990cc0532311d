"""URDFs with links or joints that no torque can see: `check` says so, whatever else is odd about them."""

import re

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident import DynamicModel, Robot, UrdfIdentError, check
from urdf_ident.pipeline.check import implausible_values

LINK = '<link name="l{k}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>\
<inertia ixx="{i}" ixy="0" ixz="0" iyy="{i}" iyz="0" izz="{i}"/></inertial></link>'
JOINT = '<joint name="j{k}" type="{kind}"><parent link="{parent}"/><child link="l{k}"/><origin xyz="{xyz}" rpy="{rpy}"/>\
<axis xyz="{axis}"/><limit lower="{lower}" upper="{upper}" velocity="{velocity}" effort="10"/></joint>'
USUAL = {
    "kind": "revolute",
    "axis": "0 0 1",
    "xyz": "0 0 0.3",
    "rpy": "0 0 0",
    "lower": -2,
    "upper": 2,
    "velocity": 2,
    "mass": 1,
    "i": 0.01,
    "com": "0.1 0 0",
}


def tree(*joints: dict[str, object], bare: tuple[int, ...] = ()) -> str:
    """A chain; ``bare`` links have no <inertial>."""
    parts, parent = ['<robot name="odd"><link name="base"/>'], "base"
    for k, given in enumerate(joints):
        words = {**USUAL, **given, "k": k}
        parts.append(f'<link name="l{k}"/>' if k in bare else LINK.format(**words))
        parts.append(JOINT.format(**{"parent": parent, **words}))
        parent = f"l{k}"
    return "".join([*parts, "</robot>"])


UP = {"kind": "prismatic", "axis": "0 0 1"}
ODD = {
    "one vertical axis": tree({}),
    "one rail along gravity": tree(UP),
    "no mass anywhere": tree({}, {}, bare=(0, 1)),
    "a last link without inertial": tree({"axis": "0 1 0"}, {"axis": "0 1 0"}, bare=(1,)),
    "only the last link has mass": tree({}, {"axis": "0 1 0"}, {"axis": "1 0 0"}, bare=(0, 1)),
    "parallel vertical axes at one place": tree({"xyz": "0 0 0"}, {"xyz": "0 0 0"}, {"xyz": "0 0 0"}),
    "rails on rails": tree(UP, {"kind": "prismatic", "axis": "1 0 0"}, UP),
    "a joint that may not move": tree({"axis": "0 1 0"}, {"axis": "1 0 0", "lower": 0.5, "upper": 0.5}),
    "a joint of speed zero": tree({"axis": "0 1 0", "velocity": 0}, {"axis": "1 0 0"}),
    "a range of a nanoradian": tree({"axis": "0 1 0", "lower": 0, "upper": 1e-9}, {"axis": "1 0 0"}),
    "an axis nearly vertical": tree({"axis": "0.001 0 1"}, {"axis": "0 0 1", "rpy": "1e-7 0 0"}),
    "a ton beside a milligram": tree({"axis": "0 1 0", "mass": 1e3, "i": 1e3}, {"mass": 1e-6, "i": 1e-12, "com": "0 0 0"}),
}


@pytest.mark.parametrize("gravity", [[0.0, 0.0, -9.81], [0.0, 0.0, 0.0]])
@pytest.mark.parametrize("name", ODD)
def test_odd_robots_are_judged(name: str, gravity: list[float]) -> None:
    robot = Robot.from_urdf(ODD[name], gravity=np.array(gravity))
    found = check(DynamicModel(robot, friction="none", rotor_inertia=False))
    seen = found.identifiable
    assert len(seen["verdicts"]) == seen["parameters"] == 10 * robot.n
    named = {*seen["alone"], *seen["in_combination"], *seen["never"]}
    assert named == {item["name"] for item in seen["verdicts"]}
    invisible = {item["name"] for item in seen["verdicts"] if item["verdict"] == "not identifiable"}
    assert invisible == set(seen["never"])
    assert "are identifiable individually" in found.summary()


def test_a_vertical_axis_shows_one_inertia_and_a_rail_one_mass() -> None:
    counts = {}
    for name in ("one vertical axis", "one rail along gravity"):
        counts[name] = check(DynamicModel(Robot.from_urdf(ODD[name]), friction="none", rotor_inertia=False)).identifiable[
            "alone"
        ]
    assert counts == {"one vertical axis": ["Izz_l0"], "one rail along gravity": ["m_l0"]}


def scaled(text: str, key: str, factor: float) -> str:
    """A URDF with every number of an attribute multiplied."""
    return re.sub(rf'{key}="([^"]+)"', lambda found: f'{key}="{factor * float(found[1]):.9g}"', text)


def test_limits_speak_against_grams_motor_torques_and_degrees() -> None:
    sound = arm_urdf("zyyx")
    model = DynamicModel(Robot.from_urdf(sound))
    assert check(model).doubts == []
    grams = check(DynamicModel(Robot.from_urdf(scaled(sound, "mass value", 1000.0))))
    assert {"j2", "j3"} <= {item["joint"] for item in grams.doubts}
    assert "DOUBT joint 'j2': in most poses its weight takes more than its effort limit" in grams.summary()
    motors = check(DynamicModel(Robot.from_urdf(scaled(sound, "effort", 0.001))))
    assert any("the joint's, not the motor's" in item["remedy"] for item in motors.doubts)
    degrees = scaled(scaled(sound, "lower", 57.29578), "upper", 57.29578)
    found = check(DynamicModel(Robot.from_urdf(degrees))).doubts
    assert len(found) == 4
    assert all("write its limits in radians" in item["remedy"] for item in found)
    assert "DOUBT joints 'j1', 'j2', 'j3', 'j4': may turn" in check(DynamicModel(Robot.from_urdf(degrees))).summary()


def test_a_body_of_many_links_fits_a_line() -> None:
    text = arm_urdf("zyyx")
    hand = "".join(
        f'<link name="finger_{k}"/><joint name="to_{k}" type="fixed"><parent link="l4"/><child link="finger_{k}"/></joint>'
        for k in range(30)
    )
    lines = check(DynamicModel(Robot.from_urdf(text.replace("</robot>", hand + "</robot>")))).summary().splitlines()
    (row,) = (line for line in lines if line.startswith("  j4 "))
    assert "and 2" in row  # 28, or with the tool 29
    assert max(map(len, lines[:9])) < 120


def test_inertias_and_centres_of_mass_in_millimetres_are_doubted() -> None:
    inertias = sound = arm_urdf("zyyx")
    for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"):
        inertias = scaled(inertias, key, 1e6)
    centres = sound.replace('<inertial><origin xyz="0.02 -0.01', '<inertial><origin xyz="20 -10')
    for text, words in ((inertias, "radius of gyration is"), (centres, "centre of mass is")):
        found = implausible_values(Robot.from_urdf(text))
        assert {"j1", "j2", "j3"} <= {item["joint"] for item in found if words in item["message"]}


def test_origins_in_degrees_are_doubted_also_those_of_fixed_joints() -> None:
    fixed = (
        '<link name="hand"/><joint name="grip" type="fixed"><parent link="l4"/><child link="hand"/>'
        '<origin xyz="0 0 0" rpy="{}"/></joint></robot>'
    )
    for rpy, told in (("0 -90 180", ["grip"]), ("0 -1.5708 3.1416", [])):
        text = arm_urdf("zyyx").replace("</robot>", fixed.format(rpy))
        found = [item for item in implausible_values(Robot.from_urdf(text)) if "rpy" in item["message"]]
        assert [item["joint"] for item in found] == told
        assert all(item["remedy"] == "write it in radians" for item in found)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('type="revolute"', 'type="Revolute"', "did you mean 'revolute'"),
        ('<child link="l3"/>', '<child link="l33"/>', "did you mean 'l3'"),
        ("</robot>", '<link name="spare"/></robot>', "join 'spare' to the others by a fixed joint, or remove it"),
    ],
)
def test_errors_of_a_urdf_name_their_remedy(old: str, new: str, words: str) -> None:
    with pytest.raises(UrdfIdentError, match=words):
        Robot.from_urdf(arm_urdf("zyyx").replace(old, new, 1))
