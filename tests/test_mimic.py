"""Joints that mimic others, identified as one coordinate of several bodies, against other programs' inverse dynamics."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from commands import done, run
from conftest import rnea
from mujoco_oracle import inverse_dynamics, load_urdf, states

from urdf_ident import DynamicModel, Robot, load, write_mjcf
from urdf_ident.errors import ModelError
from urdf_ident.model import rigid_bodies as engine

pytestmark = pytest.mark.usefixtures("unexamined")

AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1", "-y": "0 -1 0"}


def link(name: str, mass: float, seed: int) -> str:
    """A link with a random inertia."""
    rng = np.random.default_rng(seed)
    x, y, z = rng.uniform(-0.05, 0.05, 3)
    a, b, c = mass * rng.uniform(0.004, 0.006, 3)
    return (
        f'<link name="{name}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/>'
        f'<inertia ixx="{a}" iyy="{b}" izz="{c}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(name: str, parent: str, axis: str, kind: str = "revolute", mimic: str = "") -> str:
    """A joint that carries the link ``NAME_link``."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{name}_link"/>'
        f'<origin xyz="0.03 0.01 0.2"/><axis xyz="{AXES[axis]}"/><limit lower="-2" upper="2" velocity="3" effort="50"/>'
        f"{mimic}</joint>"
    )


def follows(leader: str, multiplier: float = 1.0, offset: float = 0.0) -> str:
    return f'<mimic joint="{leader}" multiplier="{multiplier}" offset="{offset}"/>'


def robot_text(*joints: str) -> str:
    names = [text.split('"')[1] for text in joints]
    links = "".join(link(f"{name}_link", 2.0 / (k + 1), k) for k, name in enumerate(names))
    return f'<robot name="r"><link name="base"/>{"".join(joints)}{links}</robot>'


ARM = (joint("j1", "base", "z"), joint("j2", "j1_link", "y"))
HAND = robot_text(  # as Franka's: the follower's axis is turned around
    *ARM,
    joint("finger1", "j2_link", "y", "prismatic"),
    joint("finger2", "j2_link", "-y", "prismatic", follows("finger1")),
)
GRIPPER = robot_text(  # as Robotiq's: both ways, with an offset, tips on fingers, and a leader that comes later by name
    *ARM,
    joint("z_knuckle", "j2_link", "x"),
    joint("finger_left", "z_knuckle_link", "x", mimic=follows("z_knuckle", -1.0, 0.3)),
    joint("knuckle_right", "j2_link", "x", mimic=follows("z_knuckle", -1.0)),
    joint("finger_right", "knuckle_right_link", "x", mimic=follows("z_knuckle", 1.0, -0.3)),
)
NESTED = robot_text(  # a joint on a follower, a chain of followers, an endless joint that leads
    joint("j1", "base", "z", "continuous"),
    joint("j2", "j1_link", "y", mimic=follows("j1", 0.5, 0.1)),
    joint("j3", "j2_link", "x"),
    joint("j4", "j3_link", "y", mimic=follows("j2", -2.0, 0.2)),
    joint("j5", "j3_link", "z", "prismatic", follows("j3", 0.1)),
)
COUPLED = {"hand": HAND, "gripper": GRIPPER, "nested": NESTED}


@pytest.fixture(params=COUPLED.values(), ids=COUPLED)
def robot(request: pytest.FixtureRequest) -> Robot:
    return Robot.from_urdf(request.param, mimic="identify")


def independent(robot: Robot) -> tuple[Robot, np.ndarray, np.ndarray]:
    """The robot without its mimic tags, and dq_tree/dq and the tree's positions at q = 0, read from the tags."""
    text, joints = robot.urdf, robot.description.joints
    while "<mimic" in text:
        begin = text.index("<mimic")
        text = text[:begin] + text[text.index("/>", begin) + 2 :]
    tree = Robot.from_urdf(text)

    def line(name: str) -> tuple[np.ndarray, float]:
        own = joints[name]
        if own.mimic is None:
            return np.eye(robot.n)[robot.joints.index(name)], 0.0
        slope, start = line(own.mimic)
        return own.mimic_multiplier * slope, own.mimic_multiplier * start + own.mimic_offset

    lines = [line(name) for name in tree.joints]
    return tree, np.array([slope for slope, _ in lines]), np.array([start for _, start in lines])


def test_torques_are_those_of_the_independent_tree_reduced(robot: Robot) -> None:
    tree, G, h = independent(robot)
    q, v, a = states(robot, 20, seed=1)
    theta = robot.inertials.ravel()
    full = (q @ G.T + h, v @ G.T, a @ G.T)
    expected = rnea(tree.model, tree.configuration(full[0]), *full[1:]) @ G
    judge = inverse_dynamics(load_urdf(tree.urdf), tree.joints, robot.gravity, *full) @ G
    scale = np.abs(expected).max()
    for torque in (engine.regressor(robot, q, v, a) @ theta, engine.rigid_torque(robot, theta, q, v, a), judge):
        np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(engine.rigid_torque(robot, theta[:, None], q, v, a)[..., 0], expected, atol=1e-9 * scale)


def test_base_parameters_determine_the_torques(robot: Robot) -> None:
    """Parameters with equal base parameters give equal torques, and a model survives its JSON form."""
    model = DynamicModel(robot)
    base = model.base()
    rng = np.random.default_rng(3)
    theta = rng.normal(size=len(model.parameters))
    q, v, a = states(robot, 20, seed=1)
    expected = model.torque(theta, q, v, a)
    same = base.embedded(base.of(theta))
    np.testing.assert_allclose(model.torque(same, q, v, a), expected, atol=1e-8 * np.abs(expected).max())
    again = DynamicModel.from_dict(model.as_dict())
    assert again.robot.coupled == robot.coupled
    np.testing.assert_array_equal(again.torque(theta, q, v, a), expected)


@pytest.mark.parametrize(
    ("joints", "said"),
    [
        ((*ARM, joint("f", "j2_link", "x", mimic=follows("nothing"))), "'f' mimics 'nothing', which does not move.*lock it"),
        ((*ARM, joint("f", "j2_link", "x", mimic=follows("f"))), "'f' mimics 'f', which mimics itself.*lock it"),
        (
            (joint("f", "base", "x", mimic=follows("g")), joint("g", "base", "x", mimic=follows("f"))),
            "'g' mimics 'f', which mimics itself.*lock it: .*f: 0.0, g: 0.0",
        ),
    ],
)
def test_joints_that_mimic_nothing_that_moves_are_one_line(joints: tuple[str, ...], said: str) -> None:
    with pytest.raises(ModelError, match=said) as error:
        Robot.from_urdf(robot_text(*joints), mimic="identify")
    assert "\n" not in str(error.value)


def test_a_hand_is_identified_from_simulated_logs_and_exported(tmp_path: Path) -> None:
    (tmp_path / "hand.urdf").write_text(GRIPPER)
    (tmp_path / "project.yaml").write_text("robot: {mimic: identify}\n")
    wrong = GRIPPER
    for k, factor in ((3, 1.3), (4, 0.8)):
        wrong = wrong.replace(f'<mass value="{2.0 / (k + 1)}"/>', f'<mass value="{factor * 2.0 / (k + 1)}"/>')
    (tmp_path / "wrong.urdf").write_text(wrong)
    true, robot = (Robot.from_urdf(text, mimic="identify") for text in (GRIPPER, wrong))
    model, rng = DynamicModel(true, friction=["viscous", "coulomb"]), np.random.default_rng(0)
    friction = [value for _ in range(true.n) for value in (0.02, 0.5, 0.3)]
    theta = np.concatenate([true.inertials.ravel(), friction])
    t = np.arange(0, 20, 0.01)
    for k in range(3):
        phase, w = rng.uniform(0, 6, (2, 1, true.n)), rng.uniform(1.0, 4.0, (2, 1, true.n))
        q, v, a = np.zeros((3, len(t), true.n))
        for f, p in zip(w, phase, strict=True):
            q, v, a = (
                q + 0.5 * np.sin(f * t[:, None] + p),
                v + 0.5 * f * np.cos(f * t[:, None] + p),
                a - 0.5 * f**2 * np.sin(f * t[:, None] + p),
            )
        tau = model.torque(theta, q, v, a) + 0.02 * rng.normal(size=q.shape)
        header = ",".join(["t", *(f"{what}_{name}" for what in ("q", "tau") for name in true.joints)])
        np.savetxt(tmp_path / f"run{k}.csv", np.column_stack([t, q, tau]), delimiter=",", header=header, comments="")
    out = run("identify", "wrong.urdf", *(f"run{k}.csv" for k in range(3)), "-c", "project.yaml", "-o", "out", cwd=tmp_path)
    assert out.returncode == 0, out.stdout + out.stderr
    ident = load(tmp_path / "out" / "identification.json")
    base = ident.fit.base
    known = dict(zip(model.names, theta, strict=True))
    assert set(known) <= set(ident.model.names)
    error = (ident.fit.params - base.of(np.array([known.get(name, 0.0) for name in ident.model.names]))) / ident.fit.bse
    assert np.sqrt(np.mean(error**2)) < 2.0
    assert np.abs(error).max() < 6.0
    q, v, a = states(true, 20, seed=1)
    expected = engine.rigid_torque(true, theta[: true.n_inertial], q, v, a)
    text = next((tmp_path / "out").glob("*.urdf")).read_text()
    assert text.count("<mimic") == GRIPPER.count("<mimic")
    exported = Robot.from_urdf(text, mimic="identify")
    read = engine.rigid_torque(exported, exported.inertials.ravel(), q, v, a)
    before = engine.rigid_torque(robot, robot.inertials.ravel(), q, v, a)
    assert np.abs(read - expected).max() < 0.1 * np.abs(before - expected).max()
    write_mjcf(ident, tmp_path / "hand.xml")
    judge = mujoco.MjModel.from_xml_path(str(tmp_path / "hand.xml"))
    assert judge.neq == 3
    tree, G, h = independent(exported)
    moved = inverse_dynamics(judge, tree.joints, exported.gravity, q @ G.T + h, v @ G.T, a @ G.T) @ G
    rotors = ident.to_pinocchio().armature[[list(tree.joints).index(name) for name in true.joints]]
    np.testing.assert_allclose(moved - rotors * a, read, atol=1e-9 * np.abs(read).max())
    log = np.column_stack([t, q_log := 0.5 * np.sin(np.outer(t, [1.0, 1.5, 2.0])), np.gradient(q_log, t, axis=0)])
    header = ",".join(["t", *(f"{what}_{name}" for what in ("q", "v") for name in true.joints)])
    np.savetxt(tmp_path / "motion.csv", log[:300], delimiter=",", header=header, comments="")
    words = ("-c", "project.yaml")
    made = run(
        "simulate", "hand.urdf", "motion.csv", *words, "--truth", "out/identification.json", "-o", "sim.csv", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "sim.csv").read_text().splitlines()[0] == "t,q_j1,q_j2,q_z_knuckle,tau_j1,tau_j2,tau_z_knuckle"
    (tmp_path / "short.yaml").write_text("robot: {mimic: identify}\nexcitation: {budget: 0.5, duration: 5}\n")
    done("design", "hand.urdf", "-c", "short.yaml", "-o", "design.csv", cwd=tmp_path)
    assert "q_z_knuckle,v_j1" in (tmp_path / "design.csv").read_text().splitlines()[0]
