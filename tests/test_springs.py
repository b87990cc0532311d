"""Springs: conservative laws in plant, model, files and search; told from gravity, or said that they cannot be."""

import numpy as np
import pytest
from conftest import inverse_dynamics, values_of
from logs import fourier
from scipy.signal import lfilter

from urdf_ident import DynamicModel, Identification, Recording, Robot, identify
from urdf_ident.compensation.online import OnlineModel
from urdf_ident.errors import ModelError
from urdf_ident.export.sidecar import write_sidecar
from urdf_ident.friction import Balancer, Coulomb, Offset, Spring, Viscous, friction_from_mapping
from urdf_ident.simulation.plant import RigidPlant
from urdf_ident.simulation.truth import FrictionTruth

LINK = (
    '<link name="{name}"><inertial><origin xyz="0.2 0.02 0"/><mass value="{mass}"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.09" iyz="0" izz="0.08"/></inertial></link>'
)
#: A turntable that gravity does not load, and an arm on it whose joint lies on the turntable's axis.
TURNTABLE = (
    '<robot name="two"><link name="base"/>'
    '<joint name="turn" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>'
    '<limit lower="-3" upper="3" velocity="5" effort="500"/></joint>'
    + LINK.format(name="a", mass=4)
    + '<joint name="lift" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>'
    '<limit lower="-3" upper="3" velocity="5" effort="500"/></joint>' + LINK.format(name="b", mass=3) + "</robot>"
)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(TURNTABLE)


@pytest.fixture(scope="module")
def plant(robot: Robot) -> RigidPlant:
    """A spring on the turntable, nothing of the kind on the arm."""
    laws = (Coulomb.of(1.0), Viscous.of(1.5), Offset.of([0.0, 0.2]), Spring.of([6.0, 0.0], [2.0, 0.0]))
    return RigidPlant.create(robot, friction=FrictionTruth(2, laws), rotor_inertia=[0.1, 0.1])


def torque(plant: RigidPlant, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    slip = np.tanh(v / 0.01)
    friction = plant.friction.torque(v, slip, np.zeros_like(v))
    return friction + np.array([inverse_dynamics(plant, *row) for row in zip(q, v, a, strict=True)])


def recorded(robot: Robot, plant: RigidPlant, t, q, v, a, seed: int) -> Recording:
    """A log with noise that remembers."""
    tau = torque(plant, q, v, a)
    noise = lfilter([0.6], [1.0, -0.8], np.random.default_rng(seed).standard_normal(tau.shape), axis=0)
    return Recording(f"{seed}", robot.joints, t, q, effort=tau + 0.02 * tau.std(axis=0) * noise, sha256=f"{seed}")


@pytest.fixture(scope="module")
def logs(robot: Robot, plant: RigidPlant) -> list[Recording]:
    return [recorded(robot, plant, *fourier(2, 8.0, 100.0, seed, harmonics=4), seed) for seed in range(3)]


@pytest.fixture(scope="module")
def ident(robot: Robot, logs: list[Recording]) -> Identification:
    return identify(DynamicModel(robot), logs)  # a strong spring is no other gravity: nothing is refused


def test_a_plant_feels_its_springs(robot: Robot) -> None:
    friction = FrictionTruth(2, (Spring.of([2.0, -1.0], [0.5, 0.0]), Balancer.of([0.0, 3.0], [0.0, 4.0])))
    plant, bare = RigidPlant.create(robot, friction=friction), RigidPlant.create(robot)
    rng = np.random.default_rng(1)
    q, v, a = rng.standard_normal((3, 2))
    expected = np.array([2.0 * q[0] + 0.5, -q[1] + 3.0 * np.sin(q[1]) + 4.0 * np.cos(q[1])])
    np.testing.assert_allclose(plant.bias(q, v) - bare.bias(q, v), expected, atol=1e-12)
    np.testing.assert_allclose(plant.accelerate(q, v, inverse_dynamics(plant, q, v, a)), a, rtol=1e-9)
    assert not plant.friction.hard.any(), "a spring does not stick"


def test_springs_on_motors_are_refused() -> None:
    with pytest.raises(ModelError, match="joint side"):
        FrictionTruth(2, motor=(Spring.of(1.0, 0.0),), reduction=np.eye(2))


def test_model_file_and_control_loop_agree_on_springs(robot: Robot, tmp_path) -> None:
    model = DynamicModel(robot, friction={"default": ["viscous"], "lift": ["viscous", "spring", "balancer"]})
    theta = np.random.default_rng(2).uniform(0.5, 1.0, len(model.parameters))
    q, v, a = np.random.default_rng(3).standard_normal((3, 2))
    value = dict(zip(model.names, theta, strict=True))
    expected = value["ks_lift"] * q[1] + value["ts_lift"] + value["Gs_lift"] * np.sin(q[1]) + value["Gc_lift"] * np.cos(q[1])
    without = np.where([name.split("_")[0] in ("ks", "ts", "Gs", "Gc") for name in model.names], 0.0, theta)
    spring = model.torque(theta, q[None], v[None], a[None]) - model.torque(without, q[None], v[None], a[None])
    np.testing.assert_allclose(spring[0], [0.0, expected], atol=1e-12)
    np.testing.assert_allclose(OnlineModel(model, theta)(q, v, a), model.torque(theta, q[None], v[None], a[None])[0], rtol=1e-9)
    path = write_sidecar(tmp_path / "joints.yaml", model, theta)
    assert values_of(path)["lift"]["ks"] == pytest.approx(value["ks_lift"], rel=1e-12)
    assert "formula: ks*q + ts" in path.read_text()
    read = friction_from_mapping({"spring": {"ks": [0.0, 2.0], "ts": [0.0, 1.0]}})
    np.testing.assert_allclose(FrictionTruth(2, read).springs(np.array([1.0, 3.0])), [0.0, 7.0])


def test_a_spring_that_the_model_lacks_counts_against_it(robot: Robot, logs: list[Recording], ident: Identification) -> None:
    listed = ["viscous", "coulomb", "offset"]
    lacks = identify(DynamicModel(robot, friction=listed), logs)
    has = identify(DynamicModel(robot, friction={"default": listed, "turn": [*listed[:2], "spring"]}), logs)
    reasons = [
        [(item.joint, item.level) for item in one.verdict.judgements if item.id == "spring"] for one in (lacks, has, ident)
    ]
    assert reasons == [[("turn", "usable")], [], []]


def test_the_search_finds_the_spring_and_invents_none(ident: Identification, plant: RigidPlant) -> None:
    chosen = {(item.axis, item.term.name) for item in ident.model.terms}
    assert (0, "spring") in chosen
    assert not chosen & {(1, "spring"), (1, "balancer"), (0, "balancer"), (0, "offset")}
    value = dict(zip(ident.model.names, ident.theta, strict=True))
    assert value["ks_turn"] == pytest.approx(6.0, rel=0.01)
    _, q, v, a = fourier(2, 8.0, 100.0, 9, harmonics=4)
    truth = torque(plant, q, v, a)
    error = ident.torque(q, v, a) - truth
    assert (np.sqrt(np.mean(error**2, axis=0)) < 0.02 * np.sqrt(np.mean(truth**2, axis=0))).all()


def test_the_spring_that_balances_a_vertical_slide_is_found() -> None:
    """Its constant torque is that of the weight, its stiffness is nothing else; three logs of a small motion."""
    slide = Robot.from_urdf(
        '<robot name="lift"><link name="base"/><joint name="z" type="prismatic"><parent link="base"/><child link="a"/>'
        '<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="5" effort="500"/></joint>'
        + LINK.format(name="a", mass=4)
        + "</robot>"
    )
    laws = (Coulomb.of(1.0), Viscous.of(1.5), Offset.of(0.2), Spring.of(30.0, -25.0))
    plant = RigidPlant.create(slide, friction=FrictionTruth(1, laws), rotor_inertia=[0.1])
    logs = [recorded(slide, plant, *fourier(1, 8.0, 100.0, seed, harmonics=4, amplitude=0.1), seed) for seed in range(3)]
    ident = identify(DynamicModel(slide), logs, force=True)
    springs = {name: x for name, x in zip(ident.model.names, ident.theta, strict=True) if name[:2] in ("ks", "Gs", "Gc")}
    assert springs == {"ks_z": pytest.approx(30.0, rel=0.01)}
    assert ident.cross_validation.relative < 0.01
