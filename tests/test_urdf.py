"""Reading a URDF: numbers against Pinocchio, and every way a file can be wrong gives one line that finds it."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf

from urdf_ident.errors import UrdfError
from urdf_ident.model.robot import Robot
from urdf_ident.model.urdf import parse_urdf

LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="30"/>'
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def urdf(
    link: str = INERTIAL, joint: str = LIMIT, *, kind: str = 'type="revolute"', ends: str | None = None, extra: str = ""
) -> str:
    ends = '<parent link="base"/><child link="tip"/>' if ends is None else ends
    return (
        f'<robot name="r">\n<link name="base"/>\n<link name="tip">{link}</link>\n'
        f'<joint name="hinge" {kind}>{ends}<axis xyz="0 0 1"/>{joint}</joint>\n{extra}</robot>'
    )


def test_links_are_read_as_pinocchio_reads_them() -> None:
    text = arm_urdf()
    description = parse_urdf(text)
    model = pin.buildModelFromXML(text)
    assert description.name == "arm"
    assert list(description.joints) == [f"j{k}" for k in range(1, 7)] + ["flange"]
    assert description.links["base"].theta is None
    for k in range(1, 6):  # the sixth body also holds the tool
        expected = model.inertias[model.getJointId(f"j{k}")].toDynamicParameters()
        np.testing.assert_allclose(description.links[f"l{k}"].theta, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("stated", "limits"), [('lower="-2"', (-2.0, 0.0)), ('upper="2"', (0.0, 2.0)), ("", (-np.inf, np.inf))]
)
def test_one_position_limit_without_the_other(stated: str, limits: tuple[float, float], tmp_path: Path) -> None:
    path = tmp_path / "one.urdf"
    path.write_text(urdf(joint=f'<limit {stated} effort="1" velocity="1"/>'))
    robot = Robot.from_urdf(path)
    assert (robot.limit("lower")[0], robot.limit("upper")[0]) == limits
    if stated:  # as Pinocchio's reader, which knows the specification's 0, has it
        assert (robot.model.lowerPositionLimit[0], robot.model.upperPositionLimit[0]) == limits


SPELLINGS = ("8.393\n", "\n8.393", "8.393\t", " 8.393 ", "8.393\r\n", "+8.393", "8393e-3", "8.393E0", "08.393", "8.393e+00 ")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_pinocchio_reads_the_number_that_is_read_here(spelling: str) -> None:
    text = urdf(INERTIAL.replace('<mass value="1"/>', f'<mass value="{spelling}"/>'), joint=LIMIT)
    robot = Robot.from_urdf(text)
    assert robot.description.links["tip"].theta is not None
    assert robot.description.links["tip"].theta[0] == 8.393
    assert robot.model.inertias[1].mass == pytest.approx(8.393)
    assert (len(robot.notes) > 0) == (spelling != spelling.rstrip() or spelling[0] == "\n")


@pytest.mark.parametrize("before", ["\n", "  \r\n", "\ufeff\n"])
def test_blanks_before_the_declaration_are_left_out(before: str) -> None:
    text = '<?xml version="1.0"?>\n' + urdf(INERTIAL, joint=LIMIT)
    robot = Robot.from_urdf(before + text)
    assert robot.urdf == text
    assert robot.notes


def test_limits_that_cannot_be_are_not_stated() -> None:
    def limits(stated: str) -> tuple[float, ...]:
        robot = Robot.from_urdf(urdf(INERTIAL, joint=f"<limit {stated}/>"))
        assert len(robot.notes) == 1
        pin.buildModelFromXML(robot.urdf)
        return tuple(float(robot.limit(key)[0]) for key in ("lower", "upper", "velocity", "effort"))

    assert limits('lower="1" upper="-1" velocity="2" effort="3"') == (-np.inf, np.inf, 2, 3)
    assert limits('lower="-1" upper="1" velocity="-2" effort="-1e3"') == (-1, 1, np.inf, np.inf)
    assert limits('lower="-Inf" upper="inf" velocity="2" effort="Infinity"') == (-np.inf, np.inf, 2, np.inf)


MASS, TENSOR = '<mass value="1"/>', '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
JOINT = '<joint name="hinge" type="fixed"><parent link="base"/><child link="tip"/></joint>'
LOOP = (
    '<link name="a"/><link name="b"/><joint name="p" type="fixed"><parent link="a"/><child link="b"/></joint>'
    '<joint name="q" type="fixed"><parent link="b"/><child link="a"/></joint>'
)
BAD = {
    "a number of Python alone": (urdf(INERTIAL.replace(MASS, '<mass value="1_0"/>')), "link 'tip': <mass value> is not.*'1_0'"),
    "digits of another script": (urdf(INERTIAL.replace(MASS, '<mass value="\u0661"/>')), "<mass value> is not a finite number"),
    "NaN inertia": (urdf(INERTIAL.replace('ixx="1"', 'ixx="nan"')), "link 'tip': <inertia ixx> is not a finite.*got 'nan'"),
    "infinite inertia": (urdf(INERTIAL.replace('izz="1"', 'izz="inf"')), "link 'tip': <inertia izz>"),
    "NaN mass": (urdf(INERTIAL.replace('value="1"', 'value="NaN"')), "link 'tip': <mass value>"),
    "infinite mass": (urdf(INERTIAL.replace('value="1"', 'value="1e999"')), "link 'tip': <mass value>"),
    "words": (urdf(INERTIAL.replace('value="1"', 'value="heavy"')), "got 'heavy'"),
    "decimal comma": (urdf(INERTIAL.replace('value="1"', 'value="1,5"')), "got '1,5'"),
    "negative mass": (urdf(INERTIAL.replace('value="1"', 'value="-1"')), "link 'tip': negative mass, got -1 kg.*check --fix"),
    "no ixy": (urdf(INERTIAL.replace(' ixy="0"', "")), "link 'tip': <inertia> lacks 'ixy'"),
    "no mass value": (urdf(INERTIAL.replace(' value="1"', "")), "link 'tip': <mass> lacks 'value'"),
    "no mass": (urdf(f"<inertial>{TENSOR}</inertial>"), "link 'tip': <inertial> without <mass>"),
    "no inertia": (urdf(f"<inertial>{MASS}</inertial>"), "link 'tip': <inertial> without <mass> or <inertia>"),
    "origin NaN": (urdf(INERTIAL.replace(MASS, '<origin xyz="0 nan 0"/>' + MASS)), "link 'tip': <origin xyz>"),
    "origin of two": (urdf(INERTIAL.replace(MASS, '<origin xyz="0 0"/>' + MASS)), "link 'tip': <origin xyz> is not three"),
    "rpy words": (urdf(INERTIAL.replace(MASS, '<origin rpy="0 pi 0"/>' + MASS)), "link 'tip': <origin rpy>"),
    "no limit": (urdf(joint=""), "joint 'hinge': revolute joint without <limit>.*add <limit"),
    "NaN limit": (urdf(joint='<limit lower="nan" upper="1"/>'), "joint 'hinge': <limit lower>"),
    "NaN damping": (urdf(joint=LIMIT + '<dynamics damping="nan"/>'), "joint 'hinge': <dynamics damping>"),
    "upper 0": (urdf(joint=LIMIT.replace('lower="-1" upper="1"', 'lower="1"')), "got 1 > 0; write 'upper', which is 0 if"),
    "commas": (urdf(INERTIAL.replace(MASS, '<origin xyz="0, 0, 1"/>' + MASS)), "link 'tip': <origin xyz>.*by spaces only"),
    "substitution": (urdf(INERTIAL.replace(MASS, '<origin xyz="$(arg x) 0 0"/>' + MASS)), "link 'tip': <origin xyz>.*`xacro"),
    "property": (urdf(INERTIAL.replace('value="1"', 'value="${m}"')), "link 'tip': <mass value>.*run `xacro"),
    "no parent": (urdf(ends='<child link="tip"/>'), "joint 'hinge': <parent link"),
    "no child link": (urdf(ends='<parent link="base"/><child/>'), "joint 'hinge': <child link"),
    "unknown link": (urdf(ends='<parent link="bass"/><child link="tip"/>'), "joint 'hinge' names a link.*got 'bass'"),
    "two links": (urdf(extra='<link name="tip"/>'), "two elements are called 'tip'"),
    "two joints": (urdf(extra=JOINT), "two elements.*'hinge'"),
    "no type": (urdf(kind=""), "joint 'hinge': <joint> lacks 'type', expected revolute"),
    "two parents": (urdf(extra=JOINT.replace("hinge", "h2")), "'tip' is the child of two joints.*kinematic tree.*joint 'h2'"),
    "two roots": (urdf(extra='<link name="stray"/>'), "2 links without a parent .base, stray., expected exactly one root"),
    "no robot name": (urdf().replace('robot name="', 'robot label="'), "the robot has no name; write one"),
    "no joint name": (urdf().replace('"hinge"', '" "'), "joint 1 has no name; write one: <joint name"),
    "no link at all": ('<robot name="r"/>', "the URDF has no <link>; run `xacro"),
    "loop": (urdf(extra=LOOP), "link '[ab]' hangs in a loop of joints"),
    "loop of one": (
        urdf(extra='<link name="a"/>' + JOINT.replace("hinge", "o").replace("base", "a").replace("tip", "a")),
        "link 'a' hangs in a loop",
    ),
    "xacro": (urdf(extra='<xacro:include filename="a"/>'), "unprocessed xacro.*run `xacro"),
    "doctype": ("<!DOCTYPE robot []>" + urdf(), "DOCTYPE"),
    "entity": ('<!DOCTYPE robot [<!ENTITY a "b">]>' + urdf(), "DOCTYPE or entity is refused"),
    "launch file": ("<launch><node/></launch>", "not a URDF, got <launch>, expected <robot>"),
    "material twice": (urdf(extra='<material name="red"/>' * 2), "material 'red' is defined 2 times"),
    "not XML": ("t,q_1,q_2\n0,1,2\n", "not a URDF, got "),
    "cut short": (urdf()[:-20], r"line 4.*URDF does not parse"),
    "empty": ("", "not a URDF, got an empty file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_give_one_line_that_finds_the_place(case: str, tmp_path: Path) -> None:
    text, words = BAD[case]
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    with pytest.raises(UrdfError, match=words) as caught:
        Robot.from_urdf(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_an_entity_bomb_is_refused_at_once() -> None:
    levels = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 12))
    with pytest.raises(UrdfError, match="DOCTYPE"):
        parse_urdf(f'<!DOCTYPE r [<!ENTITY a0 "x">{levels}]><robot name="&a11;"/>')


def test_negative_mass_can_be_read_for_repair() -> None:
    theta = parse_urdf(BAD["negative mass"][0], allow_negative_mass=True).links["tip"].theta
    assert theta is not None
    assert theta[0] == -1.0
