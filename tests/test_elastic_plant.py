"""The elastic plant: energy, derivatives, another integrator, and a wrist that swings faster than a log is sampled."""

import numpy as np
import pinocchio as pin
import pytest
from energies import elastic_energy
from motors import OpenLoop, motor_friction
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag, eigh
from test_elasticity import plant_of

from urdf_ident.errors import SimulationError
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.robot import Robot
from urdf_ident.simulation.elastic.plant import ElasticPlant, MotorPD
from urdf_ident.simulation.truth import read_truth


def planar_plant(**options: object) -> ElasticPlant:
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    settings = {"stiffness": [18000.0, 14000.0], "rotor_inertia": [2.0, 1.0], "ratio": 100.0, **options}
    return ElasticPlant(robot, **settings)  # type: ignore[arg-type]


def puma_plant() -> ElasticPlant:
    robot = Robot.from_urdf(robot_path("puma560"))
    truth = read_truth(truth_path("puma560"), robot)
    assert truth.stiffness is not None
    assert truth.reduction is not None
    return ElasticPlant(robot, stiffness=truth.stiffness, rotor_inertia=np.diag(truth.rotor), ratio=np.diag(truth.reduction))


@pytest.mark.parametrize(
    ("name", "seconds", "falls"), [("planar", 10.0, 50.0), ("puma", 10.0, 50.0), ("differential", 3.0, 5.0)]
)
def test_unforced_plants_keep_their_energy_and_rest_in_equilibrium(name: str, seconds: float, falls: float) -> None:
    plant = {"planar": planar_plant, "puma": puma_plant}.get(name, lambda: plant_of(name, friction=None))()
    start = np.array([0.3, 0.5, -0.2, 0.4, 0.3, 0.1])[: plant.n]
    rest, gravity = np.concatenate([start, plant.rest(start)]), plant.gravity(start[None])[0]
    np.testing.assert_allclose(plant.acceleration(rest, np.zeros(2 * plant.n), gravity), 0.0, atol=1e-8)
    assert np.abs(gravity).max() > (5.0 if name == "differential" else 10.0)
    run = plant.simulate(OpenLoop(plant.n), seconds, start=start, rate=100.0, step=5e-3 if name != "differential" else 2e-3)
    states = zip(np.hstack([run.q, run.qm]), np.hstack([run.v, run.vm]), strict=True)
    kinetic, potential = np.array([elastic_energy(plant, x, v) for x, v in states]).T
    assert kinetic.max() > falls, "it does not fall"
    assert np.abs(kinetic + potential - kinetic[0] - potential[0]).max() < 1e-6 * kinetic.max()


def test_closed_loop_agrees_with_an_explicit_integrator() -> None:
    friction = motor_friction(2, viscous=[10, 5], coulomb=[8, 4], stribeck=[2, 1], width=0.05)
    plant = planar_plant(friction=friction, damping=[5.0, 3.0])

    def reference(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = np.sin(3.0 * t)[:, None] * [0.5, -0.8]
        return s + [-np.pi / 2, 0.0], 3.0 * np.cos(3.0 * t)[:, None] * [0.5, -0.8]

    law = MotorPD(plant, reference, np.array([2000.0, 1000.0]), np.array([300.0, 100.0]))
    start = np.array([-np.pi / 2, 0.0])
    run = plant.simulate(law, 0.5, start=start, step=2e-4)

    def field(t: float, y: np.ndarray) -> np.ndarray:
        tau = law.feed(np.array([t]))[0] - law.kp * y[2:4] - law.kd * y[6:]
        return np.concatenate([y[4:], plant.acceleration(y[:4], y[4:], tau)])

    y0 = np.concatenate([start, plant.rest(start), np.zeros(4)])
    exact = solve_ivp(field, (0, 0.5), y0, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=run.time[::50]).y.T
    got = np.hstack([run.q, run.qm, run.v, run.vm])[::50]
    np.testing.assert_allclose(got, exact, atol=1e-7)


def test_a_wrist_swings_above_the_nyquist_frequency_of_its_log() -> None:
    plant = puma_plant()
    start = np.zeros(6)
    pushed = plant.rest(start) + np.array([0, 0, 0, 0, 0, 1e-6])
    run = plant.simulate(OpenLoop(6), 0.02, start=start, motor=pushed, rate=20000.0, step=1e-5)
    deflection = run.qm[:, 5] - run.q[:, 5] - (plant.rest(start) - start)[5]
    crossings = run.time[1:][np.diff(np.sign(deflection)) != 0]
    frequency = 0.5 * (len(crossings) - 1) / (crossings[-1] - crossings[0])
    robot = plant.robot
    M = pin.crba(robot.model, robot.model.createData(), np.zeros(6))
    K = np.diag(plant.stiffness)
    stiff = np.block([[K, -K], [-K, K]])
    modes = eigh(stiff, block_diag(np.triu(M) + np.triu(M, 1).T, np.diag(plant.rotor_inertia)), eigvals_only=True)
    fastest = np.sqrt(modes[-1]) / (2 * np.pi)  # [Hz]
    assert fastest > 1000.0
    assert frequency == pytest.approx(fastest, rel=0.005)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"stiffness": [18000.0, 0.0]}, "impossible stiffness"),
        ({"stiffness": -5.0}, "impossible stiffness"),
        ({"rotor_inertia": [0.0, 1.0]}, "impossible rotor inertia"),
        ({"damping": -1.0}, "impossible spring damping"),
        ({"ratio": [100.0, 0.0]}, "impossible gear ratio"),
        ({"stiffness": [1.0, 2.0, 3.0]}, "needs 2 finite numbers"),
        ({"stiffness": float("nan")}, "needs 2 finite numbers"),
    ],
)
def test_impossible_truths_are_refused(change: dict[str, object], word: str) -> None:
    with pytest.raises(SimulationError, match=word) as caught:
        planar_plant(**change)
    assert "\n" not in str(caught.value)


def test_a_truth_file_without_stiffness_is_refused_by_joint(tmp_path) -> None:
    robot = Robot.from_urdf(robot_path("puma560"))
    text = truth_path("puma560").read_text(encoding="utf-8").replace("2000.0, 2000.0]", "2000.0, -2000.0]")
    path = tmp_path / "truth.yaml"
    path.write_text(text, encoding="utf-8")
    truth = read_truth(path, robot)
    assert truth.stiffness is not None
    assert truth.reduction is not None
    with pytest.raises(SimulationError, match="joint_6"):
        ElasticPlant(robot, stiffness=truth.stiffness, rotor_inertia=np.diag(truth.rotor), ratio=np.diag(truth.reduction))


def test_a_plant_that_explodes_says_so() -> None:
    plant = planar_plant()
    law = OpenLoop(2, lambda t: np.full((len(t), 2), np.where(t > 0.01, np.nan, 0.0)[:, None]))
    with pytest.raises(SimulationError, match="cannot be integrated"):
        plant.simulate(law, 0.05, start=np.zeros(2))
