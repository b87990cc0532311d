"""The bundled robots against the tables they are made from (written out again here), and against two engines."""

import xml.etree.ElementTree as ElementTree

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import yaml
from conftest import inertials, rnea
from mujoco_oracle import inverse_dynamics

from urdf_ident.errors import MissingFileError
from urdf_ident.model.bundled import robot_names, robot_path, truth_path
from urdf_ident.model.inertia import from_com, margins, pseudo_inertia, to_com, transform
from urdf_ident.model.robot import Robot

NAMES = ("emps", "generic_6axis", "puma560", "szabo_3r", "tx40", "ur10e", "zollo_2r")
HALF = np.pi / 2

# standard Denavit-Hartenberg: offset, d, a, alpha
DH = {
    "ur10e": (
        [0] * 6,
        [0.1807, 0, 0, 0.17415, 0.11985, 0.11655],
        [0, -0.6127, -0.57155, 0, 0, 0],
        [HALF, 0, 0, HALF, -HALF, 0],
    ),
    "puma560": ([0] * 6, [0.672, 0, 0.15005, 0.4318, 0, 0], [0, 0.4318, 0.0203, 0, 0, 0], [HALF, 0, -HALF, HALF, -HALF, 0]),
    "szabo_3r": ([0, HALF, 0], [0.3, 0, 0], [0, 0.5, 0.5], [HALF, 0, 0]),
}
PUMA_MASS = [None, 17.4, 4.8, 0.82, 0.34, 0.09]
PUMA_COM = [None, [-0.3638, 0.006, 0.2275], [-0.0203, -0.0141, 0.07], [0, 0.019, 0], [0, 0, 0], [0, 0, 0.032]]
PUMA_INERTIA = [
    [0.35, None, None],
    [0.13, 0.524, 0.539],
    None,
    [1.8e-3, 1.3e-3, 1.8e-3],
    [3e-4, 4e-4, 3e-4],
    [1.5e-4, 1.5e-4, 4e-5],
]
# Gautier and Venture, Table II, reference column: m mx my mz xx xy yy xz yz zz
TX40 = {
    4: [3.62, 1.45e-2, -7.24e-3, -0.586, 0.109, 2.9e-5, 0.108, 1.35e-3, -1.17e-3, 4.07e-3],
    5: [1.02, 0, -3.06e-3, -1.02e-3, 1.01e-3, 0, 1e-3, 0, -3.06e-6, 1.01e-3],
}
TX40_LINK2 = [0.392, -7.2e-3, 0.162, 1.63e-2, 7.85e-4, 8.81e-2, -1.57e-2, 3.24e-4, 8.28e-2]
TX40_LINK3 = [4.07, 3.26e-2, 2.44e-2, 0.265, 2.23e-2, -1.95e-4, 2.24e-2, -1.16e-2, -2.22e-3, 4.41e-3]


def load(name: str) -> Robot:
    return Robot.from_urdf(robot_path(name))


def thetas(robot: Robot) -> np.ndarray:
    return inertials(robot).reshape(-1, 10)


def dh_step(theta: float, d: float, a: float, alpha: float) -> np.ndarray:
    (c, s), (ca, sa) = (np.cos(theta), np.sin(theta)), (np.cos(alpha), np.sin(alpha))
    return np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]])


def dh_frames(name: str, q: np.ndarray) -> list[np.ndarray]:
    frames, pose = [], np.eye(4)
    for step in zip(q + np.array(DH[name][0]), *DH[name][1:], strict=True):
        pose = pose @ dh_step(*step)
        frames.append(pose)
    return frames


def in_dh_frames(robot: Robot, name: str) -> list[np.ndarray]:
    """Ten parameters of each body in its DH frame: from the world poses of both at a random configuration."""
    q = np.random.default_rng(1).uniform(-2, 2, robot.n)
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    out = []
    for theta, pose, frame in zip(thetas(robot), list(data.oMi)[1:], dh_frames(name, q), strict=True):
        relative = np.linalg.inv(frame) @ pose.homogeneous
        out.append(transform(theta, relative[:3, :3], relative[:3, 3]))
    return out


def test_all_named_robots_are_there_and_no_other() -> None:
    assert robot_names() == NAMES
    with pytest.raises(MissingFileError, match="did you mean 'ur10e'"):
        robot_path("ur10")


@pytest.mark.parametrize("name", NAMES)
def test_every_body_can_exist(name: str) -> None:
    robot = load(name)
    worst = min((margins(theta).relative, body.name) for theta, body in zip(thetas(robot), robot.bodies, strict=True))
    assert worst[0] > 1e-6, worst
    assert all(link.theta is None or margins(link.theta).relative > 1e-6 for link in robot.description.links.values())


@pytest.mark.parametrize("name", NAMES)
def test_mujoco_and_pinocchio_agree(name: str) -> None:
    robot, model = load(name), mujoco.MjModel.from_xml_path(str(robot_path(name)))
    q, v, a = np.random.default_rng(2).uniform(-1, 1, (3, 3, robot.n))
    expected = rnea(robot.model, robot.configuration(q), v, a)
    found = inverse_dynamics(model, robot.joints, robot.model.gravity.linear, q, v, a)
    np.testing.assert_allclose(found, expected, atol=1e-9 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_stated_and_geometry_is_worth_looking_at(name: str) -> None:
    robot = load(name)
    for key in ("lower", "upper", "velocity", "effort"):
        assert np.isfinite(robot.limit(key)).all(), key
    root = ElementTree.parse(robot_path(name)).getroot()
    assert not list(root.iter("mesh"))
    moving = {joint.child for joint in robot.description.joints.values() if joint.type != "fixed"}
    for link in root.iter("link"):
        if link.get("name") in moving:
            assert len(link.findall("visual")) == len(link.findall("collision")) >= 1
            assert all(visual.find("material") is not None for visual in link.findall("visual"))


@pytest.mark.parametrize("name", sorted(DH))
def test_tool_is_where_the_published_dh_table_puts_it(name: str) -> None:
    robot = load(name)
    data, q = robot.model.createData(), np.random.default_rng(4).uniform(-2, 2, robot.n)
    pin.framesForwardKinematics(robot.model, data, q)
    frame = robot.model.getFrameId("tool0" if name == "ur10e" else "tool")
    pose = dh_frames(name, q)[-1]
    if name == "puma560":
        pose = pose @ dh_step(0, 0.05625, 0, 0)
    np.testing.assert_allclose(data.oMf[frame].homogeneous, pose, atol=1e-9)


def test_puma_has_the_published_inertia_where_it_could_be_kept() -> None:
    for i, theta in enumerate(in_dh_frames(load("puma560"), "puma560")):
        m, c, inertia = to_com(theta)
        if PUMA_MASS[i] is not None:
            np.testing.assert_allclose(m, PUMA_MASS[i])
            np.testing.assert_allclose(c, PUMA_COM[i], atol=1e-12)
        if i == 0:
            np.testing.assert_allclose(inertia[1, 1], 0.35)  # the only number of link 1 that moves anything
        elif i == 2:
            np.testing.assert_allclose(inertia, np.diag([0.066, 0.086, 0.0125]), atol=0.0046)  # repaired
            assert not np.allclose(inertia, np.diag([0.066, 0.086, 0.0125]), atol=0.003)
        else:
            np.testing.assert_allclose(inertia, np.diag(PUMA_INERTIA[i]), atol=1e-12)


def test_tx40_has_table_two_where_it_could_be_kept() -> None:
    theta = thetas(load("tx40"))
    np.testing.assert_allclose(theta[0][9], 3.92e-2)  # ZZ1
    np.testing.assert_allclose(theta[1][1:], TX40_LINK2, atol=1e-12)
    for link, row in TX40.items():
        np.testing.assert_allclose(theta[link - 1], row, atol=1e-12)
    np.testing.assert_allclose(theta[2][:4], TX40_LINK3[:4], atol=1e-12)
    broken = margins(TX40_LINK3)
    assert broken.cholesky_tolerance == pytest.approx(0.00506, abs=1e-5)
    # the repair is the nearest one: the change is what the negative moments needed, plus the floor
    moments = np.linalg.eigvalsh(central_moments(TX40_LINK3))
    change = np.linalg.norm(central_moments(theta[2]) - central_moments(TX40_LINK3))
    assert change == pytest.approx(np.linalg.norm(np.maximum(moments, 0.01 * moments.max()) - moments), rel=1e-6)
    np.testing.assert_allclose(theta[5][:4], [0.2, 0, 0, 8.4e-3], atol=1e-12)
    np.testing.assert_allclose(theta[5][[4, 6, 9]], [3.53e-4, 3.53e-4, 0], atol=5e-5)


def central_moments(theta: np.ndarray) -> np.ndarray:
    m, _, inertia = to_com(theta)
    return pseudo_inertia(from_com(m, np.zeros(3), inertia))[:3, :3]


@pytest.mark.parametrize("name", NAMES)
def test_truth_file_names_the_joints_of_its_robot(name: str) -> None:
    truth = yaml.safe_load(truth_path(name).read_text(encoding="utf-8"))
    robot = load(name)
    assert truth["robot"] == f"{name}.urdf"
    assert tuple(truth["joints"]) == robot.joints
