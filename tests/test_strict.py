"""Nothing that strict engines refuse is written: MuJoCo judges the rules, and what is written by them."""

from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.cli.application import run
from urdf_ident.consistency.repair import LEAST_INERTIA, acceptable, repaired_theta
from urdf_ident.errors import ModelError
from urdf_ident.export.mjcf import mjcf_text, mjcf_violations, readable_mesh, write_mjcf
from urdf_ident.export.urdf import fix_urdf, urdf_text, violations, without_violations
from urdf_ident.model.inertia import from_com, to_com
from urdf_ident.model.robot import Robot

mujoco = pytest.importorskip("mujoco")

ARM = arm_urdf("zy")
BOX = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'


def refused(text: str) -> bool:
    """Whether MuJoCo refuses a model or a URDF."""
    try:
        mujoco.MjModel.from_xml_string(text)
    except (ValueError, RuntimeError):
        return True
    return False


def into_link(block: str) -> str:
    return ARM.replace('<link name="l1">', f'<link name="l1">{block}', 1)


BAD = {
    "inertial": into_link('<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'),
    "inertial origin": ARM.replace("<mass", '<origin xyz="0 0 0"/><mass', 1),
    "joint origin": ARM.replace("<axis", '<origin xyz="0 0 1"/><axis', 1),
    "axis": ARM.replace("<axis", '<axis xyz="1 0 0"/><axis', 1),
    "limit": ARM.replace("<limit", '<limit lower="0" upper="1" velocity="1" effort="1"/><limit', 1),
    "two geometries": into_link(BOX.replace("<geometry>", '<geometry><sphere radius="1"/></geometry><geometry>')),
    "two shapes": into_link(BOX.replace("<box", '<box size="1 1 1"/><box')),
    "no shape": into_link("<collision><geometry/></collision>"),
    "no geometry": into_link("<collision/>"),
    "flat box": into_link(BOX.replace("0.1 0.1 0.1", "0.1 0 0.1")),
    "no ball": into_link('<collision><geometry><sphere radius="0"/></geometry></collision>'),
    "negative can": into_link('<collision><geometry><cylinder radius="0.1" length="-1"/></geometry></collision>'),
}


@pytest.mark.parametrize("case", BAD)
def test_what_mujoco_refuses_is_found_and_mended(case: str) -> None:
    assert refused(BAD[case])  # by the engine itself
    assert violations(BAD[case])
    text, notes = without_violations(BAD[case])
    assert notes
    assert violations(text) == ()
    assert not refused(text)
    assert without_violations(text) == (text, ())
    fixed, said = fix_urdf(BAD[case])
    assert not refused(fixed)
    assert set(notes) <= set(said)


@pytest.mark.parametrize("block", ['<joint name="nobody"/>', ""])
def test_orphan_transmissions_are_taken_out(block: str) -> None:
    kept = '<transmission name="k"><type>t</type><joint name="j1"/></transmission>'
    text = ARM.replace("</robot>", f'{kept}<transmission name="t">{block}<actuator name="m"/></transmission></robot>')
    assert [item.where for item in violations(text)] == ["transmission 't'"]
    assert 'name="t"' not in without_violations(text)[0]
    assert kept in without_violations(text)[0]


def test_exports_hold_nothing_that_is_refused(tmp_path: Path) -> None:
    text = BAD["joint origin"].replace("</link>", f"{BOX.replace('0.1 0.1', '0.1 0')}</link>", 1)
    text = text.replace("</robot>", '<transmission name="t"><joint name="no"/></transmission></robot>')
    robot = Robot.from_urdf(text)
    theta = robot.inertials.ravel()
    text, notes = urdf_text(robot, theta)
    assert sum("taken out" in note for note in notes) == 3
    assert violations(text) == ()
    assert not refused(text)
    write_mjcf(tmp_path / "r.xml", robot, theta)
    assert not refused((tmp_path / "r.xml").read_text())


@pytest.mark.parametrize("size", [1e-16, 5e-15, 1.5e-14])
def test_inertias_that_mujoco_takes_for_zero_are_raised(size: float) -> None:
    theta = from_com(1e-6, np.array([0.1, 0.2, 0.3]), size * np.diag([1.0, 1.2, 1.3]))
    assert not acceptable(theta)
    mass, com, inertia = to_com(repaired_theta(theta))
    assert mass == 1e-6
    np.testing.assert_allclose(com, [0.1, 0.2, 0.3], rtol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(inertia)[0], LEAST_INERTIA, rtol=1e-2)
    assert acceptable(repaired_theta(theta))
    assert not acceptable(0.1 * theta)


def test_check_names_what_readers_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.urdf").write_text(BAD["flat box"])
    assert run(["check", str(tmp_path / "r.urdf")]) == 0
    assert "STRICT PARSERS REFUSE link 'l1': a <collision> whose box has no extent" in capsys.readouterr().out
    assert run(["check", str(tmp_path / "r.urdf"), "--fix", str(tmp_path / "f.urdf")]) == 0
    assert "taken out" in capsys.readouterr().out
    assert not refused((tmp_path / "f.urdf").read_text())


def stl(path: Path, flat: bool = False, volume: float = 1e-3 / 6) -> Path:
    """A tetrahedron of some volume [m³], or a triangle, as binary STL."""
    a, b, c, d = (np.vstack([np.zeros(3), np.cbrt(6 * volume) * np.eye(3)]) + 1e-5).astype("<f4")
    faces = [(a, b, c)] if flat else [(a, c, b), (a, b, d), (a, d, c), (b, c, d)]
    body = b"".join(b"\0" * 12 + np.array(face).tobytes() + b"\0\0" for face in faces)
    path.write_bytes(b"\0" * 80 + len(faces).to_bytes(4, "little") + body)
    return path


def test_meshes_are_carried_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    stl(tmp_path / "meshes" / "part.stl")
    stl(tmp_path / "meshes" / "flat.stl", flat=True)
    one = '<visual><geometry><mesh filename="{}"{}/></geometry></visual>'
    part = "meshes/part.stl"
    blocks = [
        one.format(part, ""),
        one.format(part, ' scale="2 2 2"'),
        one.format(part, ""),
        one.format("meshes/flat.stl", ""),
        one.format("package://no/where.stl", ""),
    ]
    (tmp_path / "r.urdf").write_text(into_link("".join(blocks)))
    robot = Robot.from_urdf(tmp_path / "r.urdf")
    (tmp_path / "out").mkdir()
    notes = write_mjcf(tmp_path / "out" / "r.xml", robot, robot.inertials.ravel())
    assert any("where.stl" in note and "is not there" in note for note in notes)
    assert any("flat.stl" in note and "volume" in note for note in notes)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "r.xml"))
    assert model.nmesh == 2
    assert model.ngeom == 3
    assert "../meshes/part.stl" in (tmp_path / "out" / "r.xml").read_text()
    assert not readable_mesh(tmp_path / "meshes" / "flat.stl")
    assert [readable_mesh(stl(tmp_path / "small.stl", volume=v)) for v in (0.95e-13, 1.05e-13)] == [False, True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('axis="0.0 0.0 1.0"', 'axis="0 0 0"'),
        ('name="l2"', 'name="l1"'),
        ("fullinertia=", 'fullinertia="1 1 2.1 0 0 0" x='),
        ("fullinertia=", 'fullinertia="1e-15 1e-15 1e-15 0 0 0" x='),
        ("<inertial", '<geom type="sphere" size="0"/><inertial'),
        ("<inertial", '<geom type="box" size="1 1"/><inertial'),
        ("<inertial", '<geom type="box" size="1 1 1" rgba="1 1 1"/><inertial'),
        ('pos="', 'pos="nan '),
    ],
)
def test_own_rules_and_mujoco_refuse_the_same_models(old: str, new: str) -> None:
    robot = Robot.from_urdf(ARM)
    text, _ = mjcf_text(robot, robot.inertials.ravel())
    assert mjcf_violations(text) == ()
    assert not refused(text)
    assert old in text
    bad = text.replace(old, new, 1)
    if " x=" in bad:  # the old inertia goes
        head, _, tail = bad.partition(" x=")
        bad = head + tail[tail.index('"', 1) + 1 :]
    assert refused(bad)
    assert mjcf_violations(bad)


def test_a_body_that_moves_and_weighs_nothing_is_no_export() -> None:
    robot = Robot.from_urdf(ARM)
    with pytest.raises(ModelError):
        mjcf_text(robot, np.zeros(20))
