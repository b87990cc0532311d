"""The simulated experiment with elastic joints: through the command line to a log, and back to the stiffness."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from commands import done, run, write_yaml

from urdf_ident import Limits, Robot, random_fourier
from urdf_ident.errors import ModelError, ProjectError, SimulationError
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.motion.trajectory import PiecewisePolynomial, b_spline_at_rest
from urdf_ident.pipeline.simulate import simulate, true_plant
from urdf_ident.project import parse_project
from urdf_ident.simulation.simulate import SimulatedLog

K, IA, GEAR, COUNTS = np.array([18000.0, 14000.0]), np.array([2.0, 1.0]), np.array([100.0, -80.0]), 2.0**20
SETTINGS = {
    "drive": {"reduction": GEAR.tolist()},
    "model": {"elastic": True},
    "simulation": {
        "rate": 500,
        "step": 2e-3,
        "controller": {"bandwidth": 3.0},
        "sensors": {"counts": COUNTS, "motor_counts": 4096, "torque_noise": {"sigma": 0.3}},
    },
}
TRUTH = {
    "joints": ["joint_1", "joint_2"],
    "stiffness": K.tolist(),
    "gear": GEAR.tolist(),
    "rotor_inertia": IA.tolist(),
    "friction": {"viscous": [10.0, 5.0], "coulomb": [8.0, 4.0]},
}
ARM = Robot.from_urdf(robot_path("zollo_2r"))


def spline(seed: int, seconds: float = 6.0) -> PiecewisePolynomial:
    home = np.array([-np.pi / 2, 0.0])
    points = home + 0.25 * seconds * np.random.default_rng(seed).uniform(-1.0, 1.0, (9, 2))
    return b_spline_at_rest(ARM.joints, home, points, home, seconds)


def test_the_command_writes_both_encoders_in_their_own_counts(tmp_path: Path) -> None:
    config, truth = write_yaml(tmp_path / "arm.yaml", SETTINGS), write_yaml(tmp_path / "truth.yaml", TRUTH)
    motion, log = spline(0).write(tmp_path / "motion.csv", rate=500), tmp_path / "run.csv"
    result = done("simulate", robot_path("zollo_2r"), motion, "-c", config, "--truth", truth, "-o", log)
    assert "Gauss collocation, step 0.002 s" in result
    header = log.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header == ["t", *(f"{signal}_{joint}" for signal in ("q", "tau", "qm") for joint in ARM.joints)]
    table = np.loadtxt(log, delimiter=",", skiprows=1)
    q, qm = table[:, 1:3], table[:, 5:7]
    for values, counts in ((q, COUNTS), (qm, 4096)):
        turns = values * counts / (2 * np.pi)
        np.testing.assert_allclose(turns, np.rint(turns), atol=1e-4)
    np.testing.assert_allclose(np.ptp(qm, axis=0) / np.ptp(q, axis=0), np.abs(GEAR), rtol=0.02)
    assert (np.sign(np.sum(np.diff(qm, axis=0) * np.diff(q, axis=0), axis=0)) == np.sign(GEAR)).all()


def experiment(settings: dict, truth: dict, folder: Path, **options: object) -> SimulatedLog:
    project = parse_project(settings)
    plant, _ = true_plant(project, ARM, write_yaml(folder / "truth.yaml", truth))
    return simulate(ARM, spline(0, 1.0), project=project, truth=plant, **options)  # type: ignore[arg-type]


def test_rows_satisfy_the_sum_of_motors_and_links(tmp_path: Path) -> None:
    truth = {**TRUTH, "spring_damping": [20.0, 10.0]}
    log = experiment({**SETTINGS, "simulation": {"rate": 200}}, truth, tmp_path)
    run, deflection = log.truth, log.truth.qm - log.truth.q
    spring = K * deflection + np.array([20.0, 10.0]) * (run.vm - run.v)
    import pinocchio as pin

    data = ARM.model.createData()
    for k in range(5, len(run), 17):
        link = pin.rnea(ARM.model, data, run.q[k], run.v[k], run.a[k])  # a planar arm's rotors only turn
        coupling = np.array([IA[1] / GEAR[1] * (run.am[k, 1] + run.a[k, 0] / GEAR[1]), 0.0])  # rotor 2 rides on link 1
        np.testing.assert_allclose(spring[k], link + coupling, atol=1e-6)
    # behind each motor: its inertia (that of rotor 2 on the moving link 1 too), friction and spring
    ride = np.column_stack([np.zeros(len(run)), IA[1] / GEAR[1] * run.a[:, 0]])
    np.testing.assert_allclose(run.tau, IA * run.am + ride + log.friction + spring, atol=1e-6)


def test_the_puma_runs_on_its_truth_file() -> None:
    robot = Robot.from_urdf(robot_path("puma560"))
    truth = yaml.safe_load(truth_path("puma560").read_text(encoding="utf-8"))
    ratio = np.diag(np.array(truth["reduction"])).tolist()
    project = parse_project({"drive": {"reduction": ratio}, "model": {"elastic": True}, "simulation": {"rate": 200}})
    motion = random_fourier(Limits.from_robot(robot), 2.0, 3, 1, fill=0.4)
    log = simulate(robot, motion, project=project, truth=true_plant(project, robot, truth_path("puma560"))[0])
    assert log.tracking_error.max() < 0.1
    assert log.recording.motor_position is not None
    apart = log.recording.motor_position / ratio - log.recording.position
    assert np.abs(apart).max() > 1e-3, "springs of 2000 N·m/rad under tens of N·m"


@pytest.mark.parametrize(
    ("settings", "truth", "error", "words"),
    [
        ({}, {k: v for k, v in TRUTH.items() if k != "stiffness"}, ModelError, r"no stiffness.*add `stiffness: \[…, …\]`"),
        ({}, {**TRUTH, "gear": [100.0, 80.0]}, ModelError, r"gear ratios are not those.*100, 80.*100, -80"),
        ({}, {**TRUTH, "rotor_inertia": [2.0, 0.0]}, ModelError, r"joint_2.*need rotors.*rotor_inertia"),
        ({}, {**TRUTH, "friction": {"load_coulomb": [0.1, 0.1]}}, SimulationError, "LoadCoulomb.*as rigid"),
        ({}, {**TRUTH, "stiffness": ["soft", 1.0]}, ModelError, "'stiffness' needs one finite number per joint"),
        ({"simulation": {"controller": {"type": "computed_torque"}}}, TRUTH, ProjectError, "controller.type.*pd_gravity"),
        ({"simulation": {"controller": {"rate": 500}}}, TRUTH, ProjectError, "controller.rate.*leave it out"),
    ],
)
def test_what_cannot_be_simulated_says_what_to_do(
    settings: dict, truth: dict, error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words) as caught:
        experiment({**SETTINGS, **settings}, truth, tmp_path)
    assert "\n" not in str(caught.value)


def test_elastic_without_a_truth_or_gears_is_refused_by_the_command(tmp_path: Path) -> None:
    spline(0, 1.0).write(tmp_path / "motion.csv", rate=200)
    config, out = write_yaml(tmp_path / "p.yaml", SETTINGS), tmp_path / "log.csv"
    result = run("simulate", robot_path("zollo_2r"), tmp_path / "motion.csv", "-c", config, "-o", out)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "--truth" in result.stderr
    assert not out.exists()
    with pytest.raises(ModelError, match="gear ratios"):
        true_plant(parse_project({"model": {"elastic": True}}), ARM, truth_path("zollo_2r"))
