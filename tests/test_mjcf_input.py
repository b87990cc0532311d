"""MJCF as input, judged by MuJoCo: the converted robot's torques, and the user's own file with the identified numbers."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from commands import assert_refused, done, run
from conftest import arm_urdf, rnea
from logs import fourier, write_csv
from mujoco_oracle import inverse_dynamics, states

from urdf_ident.errors import ModelError
from urdf_ident.export.mjcf_patch import patched_mjcf
from urdf_ident.model.geometry import stated_shapes
from urdf_ident.model.meshes import packages_in
from urdf_ident.model.robot import Robot

pytestmark = pytest.mark.usefixtures("unexamined")

ARM = """<mujoco model="arm">
  <!-- the arm of the cell -->
  <compiler angle="degree" eulerseq="ZYX" autolimits="true" meshdir="meshes"/>
  <default>
    <joint damping="1.5" armature="0.1"/>
    <default class="small"><joint armature="0.02" frictionloss="0.3" range="-120 120"/></default>
  </default>
  <asset><mesh name="part" file="part.obj" scale="0.1 0.1 0.1"/></asset>
  <worldbody>
    <body name="base" pos="0 0 0.3">
      <inertial pos="0 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
      <body name="upper" pos="0.1 0 0" euler="20 30 40">
        <joint name="j1" axis="0 1 0" pos="0.01 0.02 0.03" ref="10" range="-90 90"/> <!-- zero is 10 degrees off -->
        <inertial pos="0.1 0.02 0.03" mass="4.5" fullinertia="0.2 0.3 0.4 0.01 0.02 0.03"/>
        <body name="fore" pos="0.4 0 0" childclass="small">
          <joint name="j2" axis="1 2 0"/>
          <geom type="capsule" size="0.05 0.2"/>
          <body name="slider" pos="0 0.1 0.2" axisangle="1 1 0 35">
            <joint name="j3" type="slide" axis="0 0 1" range="-0.2 0.3" ref="0.05"/>
            <geom type="box" size="0.03 0.1 0.02" pos="0.1 0 0" euler="10 0 5" mass="0.7"/>
            <geom type="mesh" mesh="part" pos="0 0 0.2" mass="0.4"/>
            <body name="tool" pos="0 0 0.1" quat="1 1 0 0">
              <inertial pos="0 0 0.05" mass="0.3" diaginertia="0.003 0.002 0.0015" quat="1 0.2 0 0"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="m1" joint="j1" gear="50" forcerange="-3 3"/><position joint="j2" kp="100"/></actuator>
</mujoco>
"""
SCENE = """<mujoco model="cell">
  <include file="arm.xml"/>
  <worldbody>
    <geom type="plane" size="0 0 0.05"/>
    <body name="cube" pos="1 0 0.1"><freejoint/><geom type="box" size="0.02 0.02 0.02"/></body>
  </worldbody>
</mujoco>
"""
#: Two joints in one body, a frame, joints without limits and names.
WRIST = """<mujoco>
  <default><default class="a"><joint axis="1 0 0"/>
    <default class="b"><joint axis="0 1 1" armature="0.3"/></default></default></default>
  <worldbody><frame pos="0 0 1" euler="0.1 0.2 0.3"><body name="ball" pos="0 0.1 0" euler="90 0 20">
    <joint class="a"/><joint name="second" class="b" pos="0.1 0 0.05" ref="20"/>
    <geom type="ellipsoid" size="0.1 0.2 0.3"/>
    <body pos="0 0 0.4"><joint class="b" pos="0 0 0.1"/><geom type="cylinder" fromto="0 0 0 0.1 0.2 0.3" size="0.05"/></body>
  </body></frame></worldbody>
</mujoco>
"""
PART = "v 1 1 1\nv 2 1 1\nv 1 2 1\nv 1 1 2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    """A folder with a scene that includes the arm."""
    (tmp_path / "meshes").mkdir()
    for name, text in (("arm.xml", ARM), ("scene.xml", SCENE), ("wrist.xml", WRIST), ("meshes/part.obj", PART)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def without_rotors(path: Path) -> mujoco.MjModel:
    """The model without rotor inertia, which the URDF's bodies do not hold."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.dof_armature[:] = 0.0
    return model


@pytest.mark.parametrize("name", ["arm.xml", "scene.xml", "wrist.xml"])
def test_torques_of_the_converted_robot_are_mujocos(cell: Path, name: str) -> None:
    robot, model = Robot.from_urdf(cell / name), without_rotors(cell / name)
    for j in range(model.njnt):  # MuJoCo's joints without a name are called after their body
        assert model.joint(j).name in ("", *robot.joints) or model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE
    q, v, a = states(robot, 20)
    data, tau = mujoco.MjData(model), np.empty(q.shape)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_DAMPER
    for k in range(len(q)):  # hinges and slides come first, in the order of the tree
        data.qpos[: robot.n], data.qvel[: robot.n], data.qacc[: robot.n] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, data)
        tau[k] = data.qfrc_inverse[: robot.n]
    np.testing.assert_allclose(rnea(robot.model, robot.configuration(q), v, a), tau, rtol=1e-9, atol=1e-9)


def test_limits_dynamics_and_geometry_are_the_compiled_ones(cell: Path) -> None:
    robot = Robot.from_urdf(cell / "scene.xml")
    assert robot.notes == ("bodies on free joints are left out: cube",)
    stated = robot.description.joints
    assert [stated[name].armature for name in robot.joints] == [0.1, 0.02, 0.02]
    assert [(stated[name].damping, stated[name].friction) for name in robot.joints] == [(1.5, 0.0), (1.5, 0.3), (1.5, 0.3)]
    np.testing.assert_allclose(robot.limit("lower"), [-np.pi / 2, -np.pi / 1.5, -0.2])
    np.testing.assert_allclose(robot.limit("effort"), [150.0, np.inf, np.inf])
    shapes, lost = stated_shapes(robot)
    assert not lost
    (mesh,) = [shape for shape in shapes if shape.kind == "mesh"]  # MuJoCo moves its vertices to its centre
    np.testing.assert_allclose(mesh.corners().min(axis=0), [0.1, 0.1, 0.3], atol=1e-7)
    np.testing.assert_allclose(mesh.corners().max(axis=0), [0.2, 0.2, 0.4], atol=1e-7)


@pytest.mark.parametrize("name", ["arm.xml", "scene.xml"])
def test_a_patch_changes_the_asked_numbers_alone(cell: Path, name: str) -> None:
    robot = Robot.from_urdf(cell / name)
    theta = robot.inertials * np.array([[1.2], [1.0], [1.1]])
    dynamics = {"damping": {"j1": 2.0}, "frictionloss": {"j2": -1.0}, "armature": {"j3": 0.123456789012345}}
    text, notes = patched_mjcf(cell / name, robot, theta.ravel(), dynamics, cell / "elsewhere")
    assert len(notes) == 1 + (name == "scene.xml")  # the negative frictionloss
    assert len(set(ARM.splitlines()) - set(text.splitlines())) <= 5  # two joints, an inertial, the folder of meshes, fore
    assert all(comment in text for comment in ("<!-- the arm of the cell -->", "<!-- zero is 10 degrees off -->"))
    (cell / "elsewhere").mkdir()
    new = (cell if name == "scene.xml" else cell / "elsewhere") / "arm.xml"  # an included file is replaced where it lies
    new.write_text(text, encoding="utf-8")
    model = mujoco.MjModel.from_xml_path(str(new))
    assert model.dof_damping.ravel().tolist() == [2.0, 1.5, 1.5]
    assert model.dof_frictionloss.tolist() == [0.0, 0.0, 0.3]
    assert model.dof_armature.tolist() == [0.1, 0.02, 0.123456789012345]
    q, v, a = states(robot, 10)
    with packages_in([cell]):  # the mesh stays where it was
        again = Robot.from_urdf(new)
    np.testing.assert_allclose(again.inertials, theta, rtol=1e-9, atol=1e-12)
    tau = inverse_dynamics(without_rotors(new), robot.joints, robot.gravity, q, v, a)
    np.testing.assert_allclose(tau, rnea(again.model, q, v, a), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("folders", ['meshdir="meshes"', 'assetdir="meshes"'])
def test_meshes_are_found_whose_folder_an_included_file_states(cell: Path, folders: str) -> None:
    (cell / "common.xml").write_text(f"<mujoco><compiler {folders}/></mujoco>", encoding="utf-8")
    text = ARM.replace(' meshdir="meshes"', "").replace("<default>", '<include file="common.xml"/><default>', 1)
    (cell / "arm.xml").write_text(text, encoding="utf-8")
    robot = Robot.from_urdf(cell / "arm.xml")
    theta = 1.1 * robot.inertials
    (cell / "elsewhere").mkdir()
    text, _ = patched_mjcf(cell / "arm.xml", robot, theta.ravel(), {}, cell / "elsewhere")
    (cell / "elsewhere" / "arm.xml").write_text(text, encoding="utf-8")
    assert mujoco.MjModel.from_xml_path(str(cell / "elsewhere" / "arm.xml")).nmesh == 1


@pytest.mark.parametrize(
    "names", [("./inner.xml", "arm.xml"), ("parts/inner.xml", "arm.xml"), ("parts/inner.xml", "parts/arm.xml")]
)
def test_included_files_are_named_relative_to_the_model_or_to_the_file_that_includes_them(tmp_path: Path, names) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "scene.xml").write_text(f'<mujoco><include file="{names[0]}"/></mujoco>', encoding="utf-8")
    (tmp_path / names[0]).write_text(f'<mujoco><include file="{names[1]}"/></mujoco>', encoding="utf-8")
    arm = (tmp_path / names[0]).parent / "arm.xml"
    body = '<body name="a"><joint name="j" axis="0 1 0"/><geom pos="0.1 0 0" size="0.1" mass="2"/></body>'
    arm.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>", encoding="utf-8")
    robot = Robot.from_urdf(tmp_path / "scene.xml")
    text, notes = patched_mjcf(tmp_path / "scene.xml", robot, 1.5 * robot.inertials.ravel(), {}, tmp_path)
    assert notes == ("scene.xml includes arm.xml, which holds the bodies: the file written replaces arm.xml",)
    arm.write_text(text, encoding="utf-8")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml")).body("a").mass == pytest.approx(3.0)


def test_a_users_model_comes_back_corrected(cell: Path) -> None:
    """Identified from a scene and a log of a heavier arm, the patched file has the torques of that arm."""
    heavier = mujoco.MjModel.from_xml_path(str(cell / "arm.xml"))
    for name, factor in (("upper", 1.3), ("fore", 0.8), ("slider", 1.2)):
        heavier.body(name).mass[:] *= factor
        heavier.body(name).inertia[:] *= factor
    heavier.dof_armature[:] = [0.3, 0.2, 0.5]
    gravity, joints = np.array([0.0, 0.0, -9.81]), ("j1", "j2", "j3")
    for seed, name in ((1, "run.csv"), (2, "other.csv")):
        t, q, v, a = fourier(3, 20.0, 100.0, seed, amplitude=0.5)
        friction = np.array([2.0, 1.0, 5.0]) * v + np.array([1.0, 0.5, 2.0]) * np.tanh(v / 0.02)
        tau = inverse_dynamics(heavier, joints, gravity, q, v, a) + friction
        tau += 0.02 * np.random.default_rng(seed).standard_normal(tau.shape)
        write_csv(cell / name, joints, t, q, tau, v)
    done("identify", "scene.xml", "run.csv", "--validate", "other.csv", "-o", "out", cwd=cell)
    assert json.loads((cell / "out/identification.json").read_text())["robot"]["name"] == "cell"
    exported = done("export", "out/identification.json", "--mjcf", "new/arm.xml", cwd=cell)
    assert "the file written replaces arm.xml" in exported
    text = (cell / "new/arm.xml").read_text(encoding="utf-8")
    assert "<!-- the arm of the cell -->" in text
    assert '<motor name="m1" joint="j1" gear="50" forcerange="-3 3"/>' in text
    (cell / "arm.xml").write_text(text, encoding="utf-8")
    corrected = mujoco.MjModel.from_xml_path(str(cell / "scene.xml"))
    _, q, v, a = fourier(3, 10.0, 50.0, 3, amplitude=0.5)
    new, true = (inverse_dynamics(model, joints, gravity, q, v, a) for model in (corrected, heavier))
    assert np.linalg.norm(new - true, axis=0) / np.linalg.norm(true, axis=0) == pytest.approx(0.0, abs=0.03)
    dofs = [corrected.joint(name).dofadr[0] for name in joints]
    np.testing.assert_allclose(corrected.dof_frictionloss[dofs], [1.0, 0.5, 2.0], rtol=0.1)
    np.testing.assert_allclose(corrected.dof_armature[dofs], [0.3, 0.2, 0.5], atol=0.1)
    again = ("export", "out/identification.json", "--mjcf", "again.xml")
    assert_refused(run(*again, cwd=cell), 2, "has changed since the identification")
    (cell / "scene.xml").unlink()  # the result holds the robot, and the torques are the same
    assert "is not there: a new model of its bodies was written" in run(*again, cwd=cell).stdout
    whole = mujoco.MjModel.from_xml_path(str(cell / "again.xml"))
    np.testing.assert_allclose(inverse_dynamics(whole, joints, gravity, q, v, a), new, rtol=1e-7, atol=1e-7)


def test_a_urdf_with_the_suffix_of_mjcf_is_a_urdf(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(arm_urdf("zy"), encoding="utf-8")
    robot = Robot.from_urdf(tmp_path / "arm.xml")
    t, q, v, a = fourier(2, 20.0, 100.0, 1)
    write_csv(tmp_path / "run.csv", robot.joints, t, q, rnea(robot.model, q, v, a) + 2.0 * v, v)
    assert run("identify", "arm.xml", "run.csv", "-o", "out", cwd=tmp_path).returncode in (0, 1)
    done("export", "out/identification.json", "--mjcf", "out/new.xml", cwd=tmp_path)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "out/new.xml")).nv == 2


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ('<body><joint type="ball"/><geom size="0.1"/></body>', ("ball joint", "hinge")),
        ('<body><freejoint/><geom size="0.1"/></body>', ("no joint moves on a fixed base", "fix the robot's base")),
        ('<body><joint axis="0 0 0"/><geom size="0.1"/></body>', ("MuJoCo does not accept the model", "axis too small")),
        ('<body><joint/><geom type="mesh" mesh="x"/></body>', ("MuJoCo does not accept the model", "x")),
        ("<bodi/>", ("MuJoCo does not accept the model", "bodi")),
    ],
)
def test_bad_models_are_one_line(tmp_path: Path, inside: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(f"<!-- a model -->\n<mujoco><worldbody>{inside}</worldbody></mujoco>", encoding="utf-8")
    assert_refused(run("check", path), 2, "bad.xml", *words)


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        ('meshdir="meshes"', 'meshdir="{elsewhere}"'),
        ('file="part.obj"', 'file="../../{elsewhere.name}/part.obj"'),
        ('file="part.obj"', 'file="{elsewhere}/part.obj"'),
        ('file="part.obj"', 'file="link.obj"'),
        ("<asset>", '<include file="{elsewhere}/more.xml"/><asset>'),
        ("<asset>", '<asset><texture name="t" type="2d" file="{elsewhere}/picture.png"/>'),
    ],
)
def test_a_model_opens_no_file_elsewhere(
    cell: Path, tmp_path_factory: pytest.TempPathFactory, pattern: str, instead: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "more.xml").write_text("<mujoco/>")
    (elsewhere / "picture.png").write_bytes(b"secret")
    (elsewhere / "part.obj").write_bytes((cell / "meshes" / "part.obj").read_bytes())
    (cell / "meshes" / "link.obj").symlink_to(elsewhere / "part.obj")
    text = (cell / "arm.xml").read_text()
    assert pattern in text
    (cell / "arm.xml").write_text(text.replace(pattern, instead.format(elsewhere=elsewhere)))
    for name in ("arm.xml", "scene.xml"):
        assert_refused(run("check", cell / name), 2, "outside its folder and packages")
    allowed = run("check", cell / "arm.xml", "--package", elsewhere)
    assert "outside its folder" not in allowed.stderr


def test_what_a_patch_cannot_do_is_said(cell: Path) -> None:
    wrist = Robot.from_urdf(cell / "wrist.xml")
    with pytest.raises(ModelError, match="each joint a <body> of its own"):
        patched_mjcf(cell / "wrist.xml", wrist, wrist.inertials.ravel(), {}, cell)
    (cell / "arm.xml").write_text(ARM.replace(' name="fore"', ""), encoding="utf-8")
    robot = Robot.from_urdf(cell / "arm.xml")
    with pytest.raises(ModelError, match="not written once under this name"):
        patched_mjcf(cell / "arm.xml", robot, 1.1 * robot.inertials.ravel(), {}, cell)


def test_without_mujoco_the_extra_is_named(cell: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused(run("check", cell / "arm.xml"), 2, r"arm\.xml", r"pip install 'urdf-ident\[mujoco\]'")
