"""Closed loops: the log satisfies the equations of motion, controllers do what they promise, bad ends are reported."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, inverse_dynamics

from urdf_ident import Limits, Robot, Trajectory, random_fourier, read_recording
from urdf_ident.errors import LogError, ModelError, SimulationError
from urdf_ident.friction import Coulomb
from urdf_ident.model.bundled import robot_names, robot_path, truth_path
from urdf_ident.pipeline.simulate import simulate as simulate_experiment
from urdf_ident.simulation.controllers import ComputedTorque, Feedback, tuned_gains
from urdf_ident.simulation.plant import RigidPlant
from urdf_ident.simulation.settings import ControllerSection, Noise, Sensors
from urdf_ident.simulation.simulate import SimulatedLog, needed_substeps, simulate, write_log
from urdf_ident.simulation.truth import FrictionTruth, read_truth, urdf_truth

UR = Robot.from_urdf(robot_path("ur10e"))
ROTOR = np.array([4.0, 4.0, 1.8, 0.4, 0.4, 0.4])


def real(name: str = "ur10e") -> tuple[Robot, RigidPlant, np.ndarray]:
    robot = Robot.from_urdf(robot_path(name))
    truth = read_truth(truth_path(name), robot)
    return robot, RigidPlant.create(robot, rotor_inertia=truth.rotor, friction=truth.friction), np.diag(truth.rotor)


def motion(robot: Robot, duration: float = 4.0, seed: int = 1, **settings) -> Trajectory:
    return random_fourier(Limits.from_robot(robot), duration, 4, seed, fill=0.7, **settings)


@pytest.fixture(scope="module")
def log() -> SimulatedLog:
    _, plant, rotor = real()
    sensors = Sensors(counts=2**17, velocity="measured", torque_noise=Noise(sigma=0.3, correlation=0.9))
    return simulate(plant, ComputedTorque(UR, 8.0, rotor=rotor), motion(UR, 3.0), sensors=sensors, seed=5)


def test_every_row_satisfies_the_equations_of_motion(log: SimulatedLog) -> None:
    _, plant, _ = real()
    truth = log.truth
    for k in range(0, len(truth), 13):
        needed = inverse_dynamics(plant, truth.q[k], truth.v[k], truth.a[k]) + log.friction[k]
        np.testing.assert_allclose(truth.tau[k], needed, atol=1e-8)


def test_the_log_is_what_a_user_would_have(log: SimulatedLog, tmp_path: Path) -> None:
    recording = log.recording
    assert recording.joints == UR.joints
    assert recording.effort_unit == "N·m"
    counts = recording.position * 2**17 / (2 * np.pi)
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-6)
    error = recording.effort - log.truth.tau
    np.testing.assert_allclose(error.std(axis=0), 0.3, rtol=0.25)
    path = write_log(log, tmp_path / "out" / "log.csv")
    header = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header == ["t", *(f"{x}_{joint}" for x in ("q", "v", "tau") for joint in UR.joints)]
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[:, 13:], recording.effort, rtol=1e-11, atol=1e-11)
    assert len(table) == 3001
    assert "rk4" in log.integrator
    assert "0.001 s" in log.integrator


@pytest.mark.parametrize("unit", ["A", "1"])
def test_a_log_of_currents_or_shares_and_targets_is_written_as_it_is(log: SimulatedLog, tmp_path: Path, unit: str) -> None:
    currents = replace(log.recording, effort_unit=unit, torque_target=log.truth.tau, temperature=log.truth.q)
    again = read_recording(write_log(currents, tmp_path / "log.csv"), UR)
    assert again.effort_unit == unit
    assert again.effort is not None
    np.testing.assert_allclose(again.effort, currents.effort, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(again.torque_target, currents.torque_target, rtol=1e-11, atol=1e-11)
    assert again.temperature is not None
    with pytest.raises(LogError, match="position is that of the motors"):
        write_log(replace(log.recording, position_side="motor"), tmp_path / "motors.csv")
    with pytest.raises(LogError, match="effort is that of the motors"):
        write_log(replace(log.recording, effort_side="motor"), tmp_path / "motors.csv")
    bare = replace(log.recording, effort=None, effort_side="motor")  # no side matters
    assert read_recording(write_log(bare, tmp_path / "bare.csv"), UR).effort is None


def test_computed_torque_with_the_right_model_follows_exactly() -> None:
    plant = RigidPlant.create(UR, rotor_inertia=ROTOR)
    trajectory = motion(UR, 2.0)
    exact = simulate(plant, ComputedTorque(UR, 5.0, rotor=ROTOR), trajectory)
    assert exact.tracking_error.max() < 1e-8
    wrong = simulate(plant, ComputedTorque(UR, 5.0, rotor=0.5 * ROTOR), trajectory)
    assert wrong.tracking_error.max() > 1e-4


@pytest.mark.parametrize("name", [name for name in robot_names() if name != "szabo_3r"])
def test_every_bundled_robot_runs_with_its_truth(name: str) -> None:
    robot, plant, rotor = real(name)
    run = simulate(plant, ControllerSection(bandwidth=15.0).build(robot, rotor), motion(robot, 1.5), rate=500.0, substeps=2)
    assert run.tracking_error.max() < 0.1
    assert np.isfinite(run.recording.effort).all()
    assert run.recording.effort_unit == ("N" if name == "emps" else "N·m")


def test_a_diverging_controller_is_reported_with_time_and_joint() -> None:
    _, plant, rotor = real()
    with pytest.raises(SimulationError, match=r"joint '\w+' at t = [\d.]+ s: the controller diverges"):
        simulate(
            plant, Feedback(*tuned_gains(UR, bandwidth=100.0, damping=0.1, rotor=rotor)), motion(UR, 60.0), control_rate=100.0
        )
    with pytest.raises(SimulationError, match="diverges"):
        simulate(plant, Feedback(np.full(6, 1e9), np.zeros(6)), motion(UR, 60.0), start=(np.full(6, 0.1), np.zeros(6)))
    with pytest.raises(SimulationError, match="diverges"):
        simulate(plant, Feedback(np.zeros(6), np.zeros(6)), motion(UR, 60.0))  # it just falls


@pytest.mark.parametrize("settings", [{"rate": 0.0}, {"substeps": 0}, {"control_rate": 300.0}, {"control_rate": 3000.0}])
def test_impossible_rates_are_refused(settings: dict) -> None:
    with pytest.raises(SimulationError):
        simulate(RigidPlant.create(UR), Feedback(*tuned_gains(UR)), motion(UR, 1.0, span=0.1), **settings)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Feedback(np.ones(6), -np.ones(6)),
        lambda: Feedback(np.ones(6), np.ones(5)),
        lambda: Feedback(np.ones(6), np.ones(6), np.full(6, np.nan)),
        lambda: tuned_gains(UR, bandwidth=0.0),
        lambda: ComputedTorque(UR, -1.0),
    ],
)
def test_impossible_gains_are_refused(build) -> None:
    with pytest.raises((ModelError, ValueError)):
        build()


def test_laws_of_the_users_own_are_simulated_as_they_are() -> None:
    """A law derived from Coulomb's need not be constant."""
    gains = np.full(UR.n, 10.0)

    class Soft(Coulomb):
        def basis(self, motion):
            return (np.tanh(motion.v / 0.3),)

    v = np.linspace(-1.0, 1.0, UR.n)
    torque = FrictionTruth(UR.n, (Soft.of(gains),)).torque(v, np.sign(v), np.zeros(UR.n))
    np.testing.assert_allclose(torque, 10.0 * np.tanh(v / 0.3))


def arm_with_tip(damping: float, offset: float, inertia: float) -> Robot:
    """A four-axis arm whose last link has its mass at a small distance from the joint's axis [m]."""
    head = arm_urdf("zyyx", fixed_tip=False).rpartition('<link name="l4">')[0]
    before, end, after = head.rpartition("</joint>")
    tip = (
        f'<link name="l4"><inertial><origin xyz="0.05 {offset} 0"/><mass value="1"/><inertia ixx="{inertia}" ixy="0" ixz="0" '
        f'iyy="{inertia}" iyz="0" izz="{inertia}"/></inertial></link></robot>'
    )
    return Robot.from_urdf(f'{before}<dynamics damping="{damping}" friction="0"/>{end}{after}{tip}')


@pytest.mark.parametrize(("damping", "offset", "inertia"), [(0.0, 1e-4, 1e-9), (50.0, 0.05, 1e-3)])
def test_a_link_too_light_for_its_joint_has_an_assumed_rotor(damping: float, offset: float, inertia: float) -> None:
    robot = arm_with_tip(damping, offset, inertia)
    truth, course = urdf_truth(robot), random_fourier(Limits.from_robot(robot), 2.0, 3, seed=1, fill=0.5)
    assert list(np.diag(truth.rotor) > 0) == [False, False, False, True]
    assert "j4" in truth.notes[0]
    assert simulate_experiment(robot, course).tracking_error.max() < 0.01
    bare, controller = RigidPlant.create(robot, friction=truth.friction), ControllerSection().build(robot, np.zeros(robot.n))
    with pytest.raises(SimulationError, match="joint 'j4'"):
        simulate(bare, controller, course, rate=500.0, substeps=needed_substeps(bare, controller, course, 500.0, 2))


def test_a_loop_beyond_any_step_names_the_key() -> None:
    robot = Robot.from_urdf(arm_urdf("z", fixed_tip=False))
    plant = RigidPlant.create(robot, friction=FrictionTruth(robot.n, ()))
    inertia = pin.crba(robot.model, robot.model.createData(), np.zeros(1))[0]
    with pytest.raises(SimulationError, match=r"simulation\.controller\.bandwidth"):
        needed_substeps(plant, Feedback(100.0 * inertia, 1e6 * inertia), motion(robot, 2.0), 500.0, 1)
