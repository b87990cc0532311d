"""The MJCF means the same robot: MuJoCo's inverse dynamics against Pinocchio's, joint by joint name."""

from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, rnea
from mujoco_oracle import difference, inverse_dynamics, states
from urdf_samples import changed, random_urdf

from urdf_ident import Drive, DynamicModel, Robot
from urdf_ident.errors import ModelError, OutputError, ShapeError
from urdf_ident.export.mjcf import mjcf_text, write_mjcf
from urdf_ident.model.urdf import parse_urdf
from urdf_ident.result.dynamics import equivalent_friction

ONE = '<mass value="{}"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>'
ARM = f"""<robot name="arm">
  <material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="base"><inertial>{ONE.format(3)}</inertial></link>
  <link name="upper">
    <visual><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.05" length="0.4"/></geometry><material name="blue"/></visual>
    <collision><geometry><box size="0.1 0.2 0.4"/></geometry></collision>
    <visual><geometry><mesh filename="package://x/y.stl"/></geometry></visual>
    <inertial><origin xyz="0 0.01 0.2" rpy="0.1 0.2 0.3"/><mass value="2"/>
      <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.01"/></inertial>
  </link>
  <link name="flange"><visual><geometry><sphere radius="0.03"/></geometry></visual></link>
  <link name="slider"><inertial>{ONE.format(1)}</inertial></link>
  <link name="wheel"><inertial>{ONE.format(0.4)}</inertial></link>
  <link name="hook"><inertial>{ONE.format(0.2)}</inertial></link>
  <joint name="z_turn" type="revolute"><origin xyz="0 0 0.1" rpy="0 0.5 0"/><parent link="base"/><child link="upper"/>
    <axis xyz="0 2 0"/><limit lower="-1" upper="2" velocity="3" effort="40"/><dynamics damping="0.7"/></joint>
  <joint name="weld" type="fixed"><origin xyz="0 0 0.4" rpy="1 0 0"/><parent link="upper"/><child link="flange"/></joint>
  <joint name="m_slide" type="prismatic"><origin xyz="0.1 0 0" rpy="0 0 1"/><parent link="flange"/><child link="slider"/>
    <axis xyz="1 0 1"/><limit lower="0" upper="0.3" velocity="1" effort="0"/></joint>
  <joint name="a_spin" type="continuous"><origin xyz="0 0.1 0"/><parent link="flange"/><child link="wheel"/>
    <axis xyz="0 0 -1"/></joint>
  <joint name="k_lock" type="revolute"><origin xyz="0 0.1 0" rpy="0.3 0 0"/><parent link="wheel"/><child link="hook"/>
    <axis xyz="0 1 1"/><limit lower="-1" upper="2" velocity="3" effort="40"/></joint>
</robot>"""


def test_every_kind_of_joint_with_friction_and_rotor_inertia(tmp_path: Path) -> None:
    robot = Robot.from_urdf(ARM, lock={"k_lock": 0.8}, gravity=[0.5, -1.0, -9.0])
    theta = changed(np.random.default_rng(0), robot.inertials).ravel()
    armature = {"m_slide": 0.5, "a_spin": 0.02}
    notes = write_mjcf(
        tmp_path / "arm.xml",
        robot,
        theta,
        damping={"a_spin": 0.1},
        frictionloss={"z_turn": 1.5, "m_slide": -2.0},
        armature=armature,
    )
    assert any("m_slide" in note and "negative" in note for note in notes)
    assert any("is not there: left out" in note for note in notes)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    assert [model.joint(k).name for k in range(model.njnt)] == ["z_turn", "m_slide", "a_spin"]  # document order

    def dof(name: str, field: str) -> float:
        return float(getattr(model, field)[model.jnt_dofadr[model.joint(name).id]])

    assert [dof(n, "dof_damping") for n in robot.joints] == [0.7, 0.1, 0.0]
    assert [dof(n, "dof_frictionloss") for n in robot.joints] == [1.5, 0.0, 0.0]
    assert [dof(n, "dof_armature") for n in robot.joints] == [0.0, 0.02, 0.5]
    assert model.joint("z_turn").range.tolist() == [-1.0, 2.0]
    assert not model.jnt_limited[model.joint("a_spin").id]
    assert model.jnt_actfrcrange[model.joint("z_turn").id].tolist() == [-40.0, 40.0]
    assert not model.jnt_actfrclimited[model.joint("m_slide").id]  # effort 0 means "not stated"
    assert model.ngeom == 3
    assert model.geom_size[0].tolist()[:2] == [0.05, 0.2]
    assert model.geom_rgba[0].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert_same_torques(robot, theta, model, armature)


def test_damping_and_frictionloss_oppose_motion() -> None:
    """Signs: what MuJoCo subtracts is what the identified model adds."""
    robot = Robot.from_urdf(ARM, lock={"k_lock": 0.8})
    theta = robot.inertials.ravel()
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot, theta, damping=dict.fromkeys(robot.joints, 2.0))[0])
    plain = mujoco.MjModel.from_xml_string(mjcf_text(robot, theta, damping=dict.fromkeys(robot.joints, 0.0))[0])
    tau = []
    for candidate in (model, plain):
        data = mujoco.MjData(candidate)
        data.qvel[:] = [0.3, -0.2, 0.5]
        mujoco.mj_inverse(candidate, data)
        tau.append(data.qfrc_inverse.copy())
    np.testing.assert_allclose(tau[0] - tau[1], 2.0 * np.array([0.3, -0.2, 0.5]), atol=1e-12)


@pytest.mark.parametrize("name", ["base", "flange"])
def test_a_link_called_world(name: str) -> None:
    """The name is taken in MuJoCo."""
    robot = Robot.from_urdf(ARM.replace(f'"{name}"', '"world"'), lock={"k_lock": 0.8})
    theta = robot.inertials.ravel()
    assert_same_torques(robot, theta, mujoco.MjModel.from_xml_string(mjcf_text(robot, theta)[0]), {}, samples=20)


@pytest.mark.parametrize("seed", range(18))
def test_random_robots(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    text = random_urdf(rng, links=int(rng.integers(3, 12)), thin=[0.0, 1e-3, 3e-6][seed % 3]).lstrip("\ufeff")
    moving = [name for name, joint in parse_urdf(text).joints.items() if joint.type != "fixed"]
    robot = Robot.from_urdf(text, lock={name: 0.4 for name in moving[1:] if rng.random() < 0.2})
    theta = robot.inertials.ravel()
    armature = {name: rng.uniform(0, 1) for name in robot.joints}
    mjcf, _ = mjcf_text(robot, theta, armature=armature)
    assert_same_torques(robot, theta, mujoco.MjModel.from_xml_string(mjcf), armature, samples=20)


@pytest.mark.parametrize(
    ("file", "lock"),
    [("ur10e/ur10e.urdf", {}), ("panda/panda.urdf", {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.01})],
)
def test_real_robots_1000_states(data: Path, file: str, lock: dict[str, float]) -> None:
    robot = Robot.from_urdf(data / file, lock=lock)
    theta = changed(np.random.default_rng(4), robot.inertials, 0.1).ravel()
    mjcf, _ = mjcf_text(robot, theta, armature=dict.fromkeys(robot.joints, 0.3))
    assert_same_torques(robot, theta, mujoco.MjModel.from_xml_string(mjcf), dict.fromkeys(robot.joints, 0.3), samples=1000)


def test_bad_input_writes_nothing(tmp_path: Path) -> None:
    robot = Robot.from_urdf(ARM, lock={"k_lock": 0.8})
    theta = robot.inertials.ravel()
    with pytest.raises(ShapeError):
        write_mjcf(tmp_path / "x.xml", robot, theta[:-1])
    with pytest.raises(ModelError, match="'k_lock' is locked"):
        write_mjcf(tmp_path / "x.xml", robot, theta, armature={"k_lock": 1.0})
    with pytest.raises(ModelError, match="not finite"):
        write_mjcf(tmp_path / "x.xml", robot, theta, armature={"z_turn": np.nan})
    with pytest.raises(ModelError, match="is not physically consistent"):
        write_mjcf(tmp_path / "x.xml", robot, -theta)
    with pytest.raises(OutputError):
        write_mjcf(tmp_path, robot, theta)
    assert list(tmp_path.iterdir()) == []
    write_mjcf(tmp_path / "x.xml", robot, -theta, repair=True)
    mujoco.MjModel.from_xml_path(str(tmp_path / "x.xml"))


def assert_same_torques(
    robot: Robot, theta: np.ndarray, model: object, armature: dict[str, float], samples: int = 1000
) -> None:
    q, v, a = states(robot, samples)
    reference = robot.model.copy()
    for k in range(robot.n):
        reference.inertias[k + 1] = pin.Inertia.FromDynamicParameters(theta[10 * k : 10 * k + 10])
    reference.armature = np.array([armature.get(name, 0.0) for name in robot.joints])
    expected = rnea(reference, robot.configuration(q), v, a)
    tau = inverse_dynamics(model, robot.joints, robot.model.gravity.linear, q, v, a)
    assert difference(tau, expected) < 1e-6


# ---- What a URDF gets of friction that it cannot hold ----


def result(friction, values, *, speed=1.0, load=20.0, drive=None, motor=None):
    """A result with these terms on a one-joint (or two-joint) arm."""
    robot = Robot.from_urdf(arm_urdf("z" if drive is None else "zy"))
    model = DynamicModel(robot, friction=friction, rotor_inertia=False, drive=drive, motor_friction=motor)
    theta = np.concatenate([np.zeros(model.n_inertial), values])
    return SimpleNamespace(model=model, theta=theta, speed=np.full(model.n, speed), load=np.full(model.n, load))


@pytest.mark.parametrize(
    ("laws", "values", "curve"),
    [
        (["sublinear"], [4.0], lambda v: 4.0 * np.sqrt(v)),
        (["viscous", "coulomb", "cubic"], [3.0, 2.0, -0.5], lambda v: 2.0 + 3.0 * v - 0.5 * v**3),
        (["coulomb", "presliding"], [1.0, 2.5], lambda v: 3.5 + 0 * v),
        (["coulomb", "load_coulomb"], [1.0, 0.1], lambda v: 3.0 + 0 * v),
    ],
)
def test_richer_laws_become_the_closest_line(laws, values, curve) -> None:
    speed = 1.2
    damping, friction, notes = equivalent_friction(result(laws, values, speed=speed))
    v = np.linspace(0.2, speed, 50)
    line = friction["j1"] + damping["j1"] * v
    assert np.abs(line - curve(v)).max() < 0.12 * curve(v).max()
    assert "j1" in notes[0]


def test_motor_side_friction_of_a_coupled_axis_reaches_both_joints() -> None:
    A = np.array([[45.0, 0.0], [32.0, 32.0]])
    drive = Drive.build(2, reduction=A)
    damping, friction, _notes = equivalent_friction(
        result("none", [1e-3, 0.01], drive=drive, motor={"j2": ["viscous", "coulomb"]})
    )
    assert damping == {"j1": pytest.approx(32.0**2 * 1e-3), "j2": pytest.approx(32.0**2 * 1e-3)}
    assert friction == {"j1": pytest.approx(0.32), "j2": pytest.approx(0.32)}
