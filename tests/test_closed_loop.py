"""IV and DIDIM end to end: reference in the log, controller in the project file, noise on the encoders."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import assert_refused, run
from conftest import arm_urdf
from estimation_samples import theta_with

from urdf_ident import Identification, Limits, Robot, identify, random_fourier, read_recording, simulate, write_log
from urdf_ident.errors import EstimationError, ModelError, ProjectError
from urdf_ident.linalg import Array
from urdf_ident.project import Project, parse_project
from urdf_ident.simulation.controllers import Feedback, Reference
from urdf_ident.simulation.settings import ControllerSection

pytestmark = pytest.mark.usefixtures("unexamined")

TRUTH = """joints: [j1, j2, j3]
rotor_inertia: [0.5, 0.25, 0.16]
friction: {viscous: [4, 2, 1.3], coulomb: [3, 1.5, 1], offset: [-0.2, 0.1, -0.07]}
"""
KNOWN = {"Ia": (0.5, 0.25, 0.16), "Fv": (4, 2, 1.3), "Fc": (3, 1.5, 1), "offset": (-0.2, 0.1, -0.07)}


def project(method: str, noise: float = 2e-4, controller: dict[str, Any] | None = None) -> Project:
    sensors = {"position_noise": {"sigma": noise}, "torque_noise": {"sigma": [0.3, 0.3, 0.1]}}
    loop = {"type": "pd_gravity", "bandwidth": 8.0} if controller is None else controller
    simulation = {"rate": 200, "step": 2.5e-3, "log_target": True, "sensors": sensors, **({"controller": loop} if loop else {})}
    return parse_project(
        {
            "model": {"friction": ["viscous", "coulomb", "offset"]},
            "signals": {"cutoff": 25.0},
            "estimation": {"method": method},
            "simulation": simulation,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with 0.2 mrad of encoder noise, the URDF and the truth."""
    return with_logs(tmp_path_factory.mktemp("loop"), arm_urdf("zyx"))


def with_logs(where: Path, urdf: str) -> Path:
    (where / "arm.urdf").write_text(urdf)
    (where / "truth.yaml").write_text(TRUTH)
    robot = Robot.from_urdf(where / "arm.urdf")
    motion = random_fourier(Limits.from_robot(robot), 8.0, 4, 0, fill=0.8)
    for name, noise in (("noisy", 2e-4), ("clean", 1e-6)):
        log = simulate(robot, motion, project=project("wls", noise), truth=where / "truth.yaml", name=name)
        write_log(log, where / f"{name}.csv")
    return where


def identified(folder: Path, wanted: Project, log: str = "noisy") -> Identification:
    robot = wanted.build_robot(folder / "arm.urdf")
    return identify(wanted.build_model(robot), [read_recording(folder / f"{log}.csv", robot)], project=wanted)


def errors(ident: Identification) -> Array:
    return ident.fit.params - ident.fit.base.of(theta_with(ident.model, **KNOWN))


@pytest.fixture(scope="module")
def by_wls(folder: Path) -> Identification:
    return identified(folder, project("wls"))


@pytest.mark.parametrize(("wanted", "method"), [("auto", "iv"), ("didim", "didim")])
def test_noise_on_the_encoders_does_not_bias_it(folder: Path, by_wls: Identification, wanted: str, method: str) -> None:
    """And auto takes instruments, because the test says that least squares is biased."""
    found = identified(folder, project(wanted))
    assert found.fit.method == method
    assert method != "iv" or found.estimation["hausman"]["rejected"]
    assert method != "iv" or "biased by noise on the motion" in found.estimation["why"]
    z, biased = (errors(ident) / found.fit.bse for ident in (found, by_wls))
    assert np.sqrt(np.mean(z**2)) < 1.6
    assert method != "iv" or "as those of least squares are" in found.fit.covariance_kind
    assert np.sqrt(np.mean(biased**2)) > 1.7 * np.sqrt(np.mean(z**2))
    # what follows rests on the same estimate: rotors that least squares shrinks to nothing are there again
    np.testing.assert_allclose([found.term_values("Ia")[f"j{k}"] for k in (1, 2, 3)], KNOWN["Ia"], rtol=0.3)
    assert min(by_wls.term_values("Ia").values()) < 0.05
    assert "measured motion" in found.summary(verbose=True)


def test_auto_stays_with_least_squares_where_it_is_not(folder: Path) -> None:
    found = identified(folder, project("auto"), "clean")
    assert found.fit.method == "wls"
    assert found.estimation["hausman"]["largest"] < 0.5


def test_auto_does_not_guess_a_controller(folder: Path) -> None:
    found = identified(folder, project("auto", controller={}))
    assert found.estimation == {"method": "wls", "why": "no relevant outliers"}


def test_what_is_missing_is_said(folder: Path, tmp_path: Path) -> None:
    robot = Robot.from_urdf(folder / "arm.urdf")
    recording = read_recording(folder / "noisy.csv", robot)
    assert recording.position_target is not None
    write_log(replace(recording, position_target=None), tmp_path / "bare.csv")
    config = tmp_path / "iv.yaml"
    config.write_text("estimation: {method: iv}\nmodel: {friction: [viscous, coulomb, offset]}\n")
    result = run("identify", folder / "arm.urdf", tmp_path / "bare.csv", "-c", config, "-o", tmp_path / "out")
    assert_refused(result, 2, "no reference to simulate", "log.columns.position_target", "simulation.controller", "bare")
    wanted = project("didim")
    with pytest.raises(EstimationError, match="no reference to simulate"):
        identify(wanted.build_model(robot), [replace(recording, position_target=None)], project=wanted)


def test_a_controller_of_another_robot_is_noticed(folder: Path) -> None:
    soft = project("iv", controller={"type": "pd", "kp": 20.0, "kd": 5.0})
    with pytest.raises(EstimationError, match=r"not that of the log.*kp and kd"):
        identified(folder, soft)
    wise = identified(folder, parse_project({**soft.model_dump(exclude_unset=True), "estimation": {"method": "auto"}}))
    assert wise.fit.method == "wls"
    assert "is not known" in wise.estimation["why"]


def test_a_controller_that_lets_go_is_named(folder: Path) -> None:
    with pytest.raises(EstimationError, match=r"noisy.*does not keep the simulated robot.*joint 'j\d' at t.*kp and kd"):
        identified(folder, project("iv", controller={"type": "pd", "kp": 0.1, "kd": 0.1}))


def test_a_guessed_controller_is_said(folder: Path) -> None:
    found = identified(folder, project("didim", controller={}))
    assert "default controller was simulated" in found.estimation["why"]


def test_gains_of_a_known_controller() -> None:
    robot = Robot.from_urdf(arm_urdf("zyx"))
    pd = ControllerSection(type="pd", kp=[1.0, 2.0, 3.0], kd=0.5).build(robot, np.zeros(3))
    assert isinstance(pd, Feedback)
    np.testing.assert_array_equal([pd.kp, pd.kd], [[1, 2, 3], [0.5, 0.5, 0.5]])
    pid = ControllerSection(type="pid", kp=4.0, kd=0.5).build(robot, np.zeros(3))
    assert isinstance(pid, Feedback)
    assert pid.ki is not None
    np.testing.assert_allclose(pid.ki, 2.0 * pid.kp)  # the reset time stays
    blind = ControllerSection(type="pd", kp=1.0, kd=0.5, velocity_reference=False).build(robot, np.zeros(3))
    at, speed = np.array([0.1, 0.0, 0.0]), np.ones(3)
    tau = blind.torque(Reference(at, 7 * speed, speed), 0 * at, speed, np.zeros(0))
    np.testing.assert_allclose(tau, at - 0.5 * speed)
    with pytest.raises(ModelError, match=r"simulation.controller.kp.*j1, j2, j3"):
        ControllerSection(kp=[1.0, 2.0], kd=1.0).build(robot, np.zeros(3))
    with pytest.raises(ProjectError, match="kp and kd"):
        parse_project({"simulation": {"controller": {"kp": 1.0}}})
