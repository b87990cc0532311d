"""From a log with two encoders a joint to stiffness: the whole way, and what goes wrong on it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml
from commands import done, run
from conftest import arm_urdf, rnea
from logs import fourier
from motors import motor_friction

from urdf_ident import Recording, Robot, Segment, check, identify, load, read_recording, robot_path
from urdf_ident.errors import LogError, ModelError
from urdf_ident.motion.trajectory import b_spline_at_rest
from urdf_ident.project import parse_project
from urdf_ident.signals.motor_side import external_torque, visible_stiffness
from urdf_ident.simulation.elastic.plant import ElasticPlant, MotorPD

RATE, SECONDS, GEAR = 500.0, 6.0, np.array([100.0, -80.0])
K, IA, FV, FC = np.array([18000.0, 14000.0]), np.array([2.0, 1.0]), np.array([10.0, 5.0]), np.array([8.0, 4.0])
COUNT = 2 * np.pi / 1_250_000
ZERO = np.array([2e-4, -1e-4])  # [rad] by which the motor encoders' zeros are off, after the gear
PROJECT = {"drive": {"reduction": GEAR.tolist()}, "model": {"elastic": True}}


def simulated(seed: int) -> dict[str, np.ndarray]:
    """A log of the planar arm, by column."""
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    friction = motor_friction(2, viscous=FV, coulomb=FC, width=0.02)
    plant = ElasticPlant(robot, stiffness=K, rotor_inertia=IA, ratio=GEAR, friction=friction)
    rng, home = np.random.default_rng(seed), np.array([-np.pi / 2, 0.0])
    spline = b_spline_at_rest(robot.joints, home, home + rng.uniform(-1.5, 1.5, (9, 2)), home, SECONDS)
    law = MotorPD(plant, lambda t: spline.evaluate(t)[:2], np.array([2000.0, 1000.0]), np.array([300.0, 100.0]))
    run = plant.simulate(law, SECONDS, start=home, rate=RATE, step=2e-3)
    tau = run.tau + rng.normal(0, 0.3, run.tau.shape)
    columns = {"t": run.time}
    for j, joint in enumerate(robot.joints):
        columns[f"q_{joint}"] = np.round(run.q[:, j] / COUNT) * COUNT
        columns[f"tau_{joint}"] = tau[:, j]
        columns[f"qm_{joint}"] = np.round((run.qm[:, j] + ZERO[j]) / COUNT) * COUNT * GEAR[j]
    return columns


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    header = ",".join(columns)
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=header, comments="", fmt="%.12g")
    return path


@pytest.fixture(scope="module")
def logs() -> list[dict[str, np.ndarray]]:
    return [simulated(seed) for seed in range(3)]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, logs: list[dict[str, np.ndarray]]) -> Path:
    folder = tmp_path_factory.mktemp("elastic")
    for k, log in enumerate(logs):
        write(folder / f"run{k}.csv", log)
    (folder / "arm.yaml").write_text(yaml.safe_dump(PROJECT))
    given = (robot_path("zollo_2r"), "run0.csv", "run1.csv", "--validate", "run2.csv", "-c", "arm.yaml")
    result = run("identify", *given, "-o", "out", "-v", cwd=folder)
    (folder / "stdout.txt").write_text(result.stdout)
    assert result.returncode == 0, result.stderr
    return folder


def test_stiffness_and_rotor_inertia_with_intervals_in_the_json(work: Path) -> None:
    data = json.loads((work / "out" / "identification.json").read_text(encoding="utf-8"))
    assert data["verdict"]["level"] == "good"
    for j, joint in enumerate(("joint_1", "joint_2")):
        found = data["elasticity"][joint]
        assert found["seen"] is True
        assert found["deflection_counts"] > 50
        low, high = found["stiffness_bounds"]
        assert 0.98 * high < low <= high, "the row sum, without the spring, agrees"
        assert 0.999 * low < found["stiffness"]["value"] < 1.001 * high
        assert found["reliability"] == pytest.approx(low / high)
        assert found["encoder_step"] == pytest.approx(COUNT, rel=0.01)
        assert found["stiffness"]["value"] == pytest.approx(K[j], rel=0.002)
        low, high = found["stiffness"]["interval"]
        assert low < found["stiffness"]["value"] < high
        assert high - low < 0.02 * K[j]
        assert found["rotor_inertia"]["value"] == pytest.approx(IA[j], rel=0.03)
        assert found["rotor_inertia_at_motor"]["value"] == pytest.approx(IA[j] / GEAR[j] ** 2, rel=0.03)
        assert found["preload"]["value"] == pytest.approx(-K[j] * ZERO[j], abs=0.1)
    standard = {entry["name"]: entry for entry in data["parameters"]["standard"]}
    assert standard["K_joint_1"]["unit"] == "N·m/rad"
    assert standard["K_joint_1"]["from_data"] > 0.99


def test_reload_gives_the_same_torque_and_validates_alike(work: Path, logs: list[dict[str, np.ndarray]]) -> None:
    path = work / "out" / "identification.json"
    ident, again = load(path), load(path)
    again.save(work / "again.json")
    again = load(work / "again.json")
    rng = np.random.default_rng(0)
    q, v, a, *motor = rng.normal(size=(6, 5, 2))
    segment = Segment("run", 0.0, 100.0, q, v, a, None, *motor)
    np.testing.assert_array_equal(
        ident.model.torque_along(ident.theta, segment), again.model.torque_along(again.theta, segment)
    )
    np.testing.assert_array_equal(ident.torque(q, v, a), again.torque(q, v, a))
    done("validate", path, work / "run2.csv")
    assert "K [N·m/rad]" in (work / "stdout.txt").read_text()


def recording_of(columns: dict[str, np.ndarray], folder: Path, project: dict) -> tuple[Recording, object, object]:
    parsed = parse_project(project)
    robot = parsed.build_robot(robot_path("zollo_2r"))
    return read_recording(write(folder / "log.csv", columns), robot, parsed.log), parsed, robot


def identified(columns: dict[str, np.ndarray], folder: Path, project: dict):
    recording, parsed, robot = recording_of(columns, folder, project)
    return identify(parsed.build_model(robot), [recording], project=parsed)


def coarse(log: dict[str, np.ndarray], joint: str, gear: float, step: float) -> dict[str, np.ndarray]:
    changed = {f"q_{joint}": np.round(log[f"q_{joint}"] / step) * step}
    changed[f"qm_{joint}"] = np.round(log[f"qm_{joint}"] / gear / step) * step * gear
    return {**log, **changed}


def test_a_stiffness_below_the_encoder_count_is_unseen_and_spoils_nothing(logs, tmp_path: Path) -> None:
    log = coarse(logs[0], "joint_2", GEAR[1], 3e-4)
    ident = identified(log, tmp_path, PROJECT)
    assert ident.model.rigid == ("joint_2",)
    index = ident.model.names.index("K_joint_2")
    assert np.isinf(ident.std_error[index])
    assert ident.from_data[index] < 1e-6
    assert any("stiffness of 'joint_2' is not seen" in note for note in ident.solver["notes"])
    assert "unseen" in ident.summary(verbose=True)
    assert ident.term_values("K")["joint_1"] == pytest.approx(K[0], rel=0.01)
    ident.save(tmp_path / "out.json")
    entry = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["elasticity"]["joint_2"]
    assert entry["seen"] is False
    assert entry["stiffness"]["std_error"] == "inf"
    assert entry["stiffness"]["interval"][1] == "inf"
    assert load(tmp_path / "out.json").model.rigid == ("joint_2",)


def test_a_log_without_motor_positions_is_refused(logs, tmp_path: Path) -> None:
    log = {name: column for name, column in logs[0].items() if not name.startswith("qm_")}
    with pytest.raises(LogError, match=r"no motor positions.*qm_joint_1.*model\.elastic: false") as caught:
        identified(log, tmp_path, PROJECT)
    assert "\n" not in str(caught.value)


def test_a_missing_gear_ratio_is_refused_before_and_after_reading(logs, tmp_path: Path) -> None:
    bare = parse_project({"model": {"elastic": True}})
    with pytest.raises(ModelError, match="gear ratios"):
        bare.build_model(bare.build_robot(robot_path("zollo_2r")))
    with pytest.raises(LogError, match=r"joint_1.*gear ratio is missing.*about 100"):
        identified(logs[0], tmp_path, {**PROJECT, "drive": {"reduction": [1, -80]}})
    with pytest.raises(LogError, match=r"joint_2.*does not fit.*-80"):
        identified(logs[0], tmp_path, {**PROJECT, "drive": {"reduction": [100, 80]}})


def test_check_says_which_stiffness_could_be_shown() -> None:
    step = 2e-5
    project = parse_project({**PROJECT, "model": {"elastic": {"encoder_step": step}}})
    model = project.build_model(project.build_robot(robot_path("zollo_2r")))
    found = check(model)
    second = found.springs[1]
    # gravity on the second link is 10 kg · 9.81 · 0.25 m · cos of a random angle
    assert second["torque"][0] == pytest.approx(24.5 / np.sqrt(2), rel=0.1)
    assert second["stiffest"][0] == pytest.approx(second["torque"][0] / (10 * step))
    assert visible_stiffness(np.array([1.0]), step)[0] == pytest.approx(5000.0)
    assert "K up to" in found.summary()
    assert check(parse_project({}).build_model(model.robot)).springs == []


def test_wrenches_become_joint_torques_by_virtual_work() -> None:
    robot = Robot.from_urdf(arm_urdf("zyx"))
    rng = np.random.default_rng(0)
    q, wrench = rng.normal(size=(4, 3)), rng.normal(size=(4, 6))
    recording = Recording("log", robot.joints, np.arange(4.0), q, effort=np.zeros((4, 3)), wrenches={"tool": wrench})
    got = external_torque(recording, robot)
    model, data = robot.model, robot.model.createData()

    def pose(x: np.ndarray) -> pin.SE3:
        pin.framesForwardKinematics(model, data, x)
        return data.oMf[model.getFrameId("tool")].copy()

    for k in range(4):
        for j in range(3):
            step = 1e-6 * np.eye(3)[j]
            twist = pin.log6(pose(q[k] - step).actInv(pose(q[k] + step))).vector / 2e-6
            assert got[k, j] == pytest.approx(twist @ wrench[k], abs=1e-6)
    with pytest.raises(LogError, match="acts on no link"):
        external_torque(replace(recording, wrenches={"tol": wrench}), robot)
    assert external_torque(replace(recording, wrenches={}), robot) is None


def test_a_wrench_at_the_tool_is_no_error_of_the_model(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zyx"))
    t, q, v, a = fourier(3, 8.0, 200.0, seed=3)
    rng = np.random.default_rng(1)
    force = np.cumsum(rng.normal(0, 1, (len(t), 6)), axis=0) * [1, 1, 1, 0.1, 0.1, 0.1]
    plain = Recording("plain", robot.joints, t, q, effort=np.zeros_like(q), wrenches={"tool": force})
    load = external_torque(plain, robot)
    tau = rnea(robot.model, q, v, a) - load
    rigid = parse_project({"model": {"friction": "none", "rotor_inertia": False}})
    errors = [
        identify(rigid.build_model(robot), [replace(plain, effort=tau, wrenches=wrenches)], project=rigid).cross_validation
        for wrenches in ({"tool": force}, {})
    ]
    assert errors[0].relative < 0.01 < 0.2 < errors[1].relative
