"""Torque constants from a known payload."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, done, run, write_yaml
from conftest import arm_urdf
from estimation_samples import as_log
from logs import Truth, fourier, torques, write_csv

from urdf_ident import DynamicModel, Recording, Robot, Segment, identify, read_recording
from urdf_ident.errors import EstimationError, ModelError, ProjectError, ShapeError
from urdf_ident.estimation.estimators.payload_gains import drive_gains
from urdf_ident.model.payload import Payload
from urdf_ident.project import load_project, parse_project

GAIN = np.array([11.5, 9.0, 5.0])  # N·m/A
PAYLOAD = {"link": "tool", "mass": 5.0, "com": [0.02, -0.01, 0.08], "inertia": [0.02, 0.001, 0, 0.025, 0, 0.015]}


def loaded_robot() -> Robot:
    """The arm with the payload as one more link, fixed to the tool."""
    xx, xy, xz, yy, yz, zz = PAYLOAD["inertia"]
    grip = (
        '<joint name="grip" type="fixed"><parent link="tool"/><child link="weight"/></joint><link name="weight"><inertial>'
        f'<origin xyz="{" ".join(map(str, PAYLOAD["com"]))}"/><mass value="{PAYLOAD["mass"]}"/>'
        f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/></inertial></link></robot>'
    )
    return Robot.from_urdf(arm_urdf("zyx").replace("</robot>", grip))


def currents(folder: Path, noise: float, seed: int = 0) -> None:
    """The same two motions with and without the payload, efforts in ampere."""
    rng = np.random.default_rng(seed)
    for name, robot in (("empty", Robot.from_urdf(arm_urdf("zyx"))), ("loaded", loaded_robot())):
        for k in range(2):
            t, q, v, a = fourier(3, 20.0, 100.0, k)
            current = torques(robot, Truth.of(3), q, v, a) / GAIN
            current = current + noise * current.std(axis=0) * rng.standard_normal(q.shape)
            write_csv(folder / f"{name}_{k}.csv", robot.joints, t, q, current)


def write_project(path: Path, **payload: object) -> Path:
    data = {
        "model": {"friction": ["viscous", {"term": "coulomb", "width": 0.02}, "offset"]},
        "log": {"units": {"effort": "A"}},
        "drive": {"payload": {"logs": ["loaded*"], **PAYLOAD, **payload}},
    }
    path.write_text(json.dumps(data))  # JSON is YAML
    return path


def test_torque_constants_from_a_payload_on_the_command_line(tmp_path: Path) -> None:
    currents(tmp_path, 0.1)
    (tmp_path / "arm.urdf").write_text(arm_urdf("zyx"))
    config = write_project(tmp_path / "p.yaml")
    logs = [tmp_path / f"{name}_{k}.csv" for name in ("empty", "loaded") for k in (0, 1)]
    done("identify", tmp_path / "arm.urdf", *logs[:3], "--validate", logs[3], "-c", config, "-o", tmp_path / "out")
    data = json.loads((tmp_path / "out" / "identification.json").read_text())
    np.testing.assert_allclose(data["drive"]["gain"], GAIN, rtol=0.02)
    assert "known payload" in data["drive"]["gain_origin"]
    # the payload is not the robot's: the tool weighs what it weighs, and loaded logs are predicted as well
    assert data["bodies"]["l3"]["theta"][0] == pytest.approx(3.467, rel=0.15)
    assert data["validation"][0]["relative"] < 0.15
    for layout in ((), ("-c", config)):  # the constants are those of the result
        (score,) = json.loads(done("validate", tmp_path / "out", logs[3], *layout, "--json", "--no-report"))
        assert score["mean_rmse"] == pytest.approx(data["validation"][0]["mean_rmse"], rel=1e-9)
    assert_constants_only_for_their_unit(tmp_path)
    result = run("identify", tmp_path / "arm.urdf", logs[2], "-c", config, "-o", tmp_path / "none")
    assert_refused(result, 2, "with and without the payload", "1 of 1", "drive.payload.logs", "or give drive.gain")


def assert_constants_only_for_their_unit(folder: Path) -> None:
    """Logs in mA are converted; those in N·m need no constants, which is to be said, and are not multiplied by them."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    log = read_recording(folder / "empty_1.csv", robot)  # numbers as they stand: A
    scaled = {"mA": 1e3, "N·m": GAIN, "mN·m": 1e3 * GAIN}
    for unit, factor in scaled.items():
        write_csv(folder / f"in_{unit}.csv", log.joints, log.time, log.position, log.effort * factor)

    def validated(name: str, layout: dict[str, object]) -> subprocess.CompletedProcess[str]:
        config = write_yaml(folder / "layout.yaml", layout)
        return run("validate", folder / "out", folder / f"{name}.csv", "-c", config, "--json")

    def score(name: str, layout: dict[str, object]) -> float:
        result = validated(name, layout)
        assert result.returncode == 0, result.stderr
        return float(json.loads(result.stdout)[0]["mean_rmse"])

    amperes = score("empty_1", {"log": {"units": {"effort": "A"}}})
    assert score("in_mA", {"log": {"units": {"effort": "mA"}}}) == pytest.approx(amperes, rel=1e-6)
    for name, stated in (("in_N·m", {}), ("in_mN·m", {"effort": "mN·m"})):
        got = (f"{name}.csv", "efforts in N·m, expected A", r"units: \{effort: A\}", r"gain \[N·m per N·m, 1\]")
        assert_refused(validated(name, {"log": {"units": stated}}), 2, *got)
        assert score(name, {"log": {"units": stated}, "drive": {"gain": 1.0}}) == pytest.approx(amperes, rel=0.1)


def test_a_delay_of_the_currents_does_not_change_the_constants(tmp_path: Path) -> None:
    currents(tmp_path, 0.02)
    project, robot = load_project(write_project(tmp_path / "p.yaml"))[0], Robot.from_urdf(arm_urdf("zyx"))
    logs = [read_recording(tmp_path / f"{name}_{k}.csv", robot, project.log) for name in ("empty", "loaded") for k in (0, 1)]
    late = [
        replace(log, effort=np.column_stack([np.interp(log.time - 0.15, log.time, x) for x in log.effort.T])) for log in logs
    ]
    ident = identify(project.build_model(robot), late, project=project)
    assert ident.signals["delay"]["compensated"] == pytest.approx(0.15, abs=0.003)
    np.testing.assert_allclose(ident.model.drive.gain, GAIN, rtol=0.005)  # 3 % off where it is not taken out


def test_inspect_tells_what_logs_without_torque_constants_show(tmp_path: Path) -> None:
    currents(tmp_path, 0.1)
    (tmp_path / "arm.urdf").write_text(arm_urdf("zyx"))
    config = write_project(tmp_path / "p.yaml")

    def told(*names: str) -> tuple[int, dict[str, set[str]]]:
        logs = [tmp_path / f"{name}.csv" for name in names]
        result = run("inspect", *logs, "--robot", tmp_path / "arm.urdf", "-c", config, "--json")
        found = json.loads(result.stdout)
        return result.returncode, {log["log"]: {finding["id"] for finding in log["findings"]} for log in found}

    code, both = told("empty_0", "loaded_0")
    assert code == 0
    assert not any("constants-unknown" in ids for ids in both.values())
    code, alone = told("empty_0")
    assert code == 0
    assert "constants-unknown" in alone["empty_0"]
    assert "effort-beyond-limit" not in alone["empty_0"]  # ampere are not compared with limits in N·m
    rows = [line.split(",") for line in (tmp_path / "empty_1.csv").read_text().splitlines()]
    place = next(k for k, name in enumerate(rows[0]) if name.startswith("tau"))
    dead = [rows[0], *([*row[:place], "0.5", *row[place + 1 :]] for row in rows[1:])]
    (tmp_path / "dead.csv").write_text("\n".join(map(",".join, dead)))
    code, both = told("loaded_1", "dead")  # both kinds, but one of no use: its own fault is told
    assert code == 1
    assert "effort-dead" in both["dead"]
    assert "effort-dead" not in both["loaded_1"]
    assert "constants-unknown" in both["loaded_1"]


def gains_of(seed: int, noise: float, model: DynamicModel, payload: Payload, loaded: Robot) -> tuple[np.ndarray, np.ndarray]:
    logs = []
    for name, robot in (("empty", Robot.from_urdf(arm_urdf("zyx"))), ("loaded", loaded)):
        _, q, v, a = fourier(3, 20.0, 100.0, 5)
        effort = torques(robot, Truth.of(3), q, v, a) / GAIN
        rng = np.random.default_rng(10 * seed + len(name))
        logs.append(as_log(Segment(name, 0.0, 100.0, q, v, a, effort + noise * effort.std(axis=0) * rng.normal(size=q.shape))))
    found = drive_gains(model, logs, model.base(), payload)
    return found.gain, np.abs(found.gain) * found.relative_error


def test_noise_on_the_current_shrinks_no_constant_and_errors_are_honest() -> None:
    """With 30 % of white noise on the current the mean over seeds is right within its error, and the errors are the scatter."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    model = DynamicModel(robot, friction=["viscous", {"term": "coulomb", "width": 0.02}, "offset"])
    payload = Payload.create(robot, logs=["loaded"], **PAYLOAD)
    exact, _ = gains_of(0, 0.0, model, payload, loaded_robot())
    np.testing.assert_allclose(exact, GAIN, rtol=1e-6)
    found = [gains_of(seed, 0.3, model, payload, loaded_robot()) for seed in range(8)]
    z = np.array([(gain - GAIN) / error for gain, error in found])
    assert np.abs(z.mean(axis=0)).max() < 1.2  # three standard errors of a mean of eight
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.6
    mean = np.mean([gain for gain, _ in found], axis=0)
    np.testing.assert_allclose(mean, GAIN, rtol=0.04)


def test_a_payload_that_the_logs_contradict_gives_no_constants() -> None:
    """A wrong centre of mass made constants wrong by several of their errors; the mass cannot be tested."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    model = DynamicModel(robot, friction=["viscous", {"term": "coulomb", "width": 0.02}, "offset"])
    heavy = Payload.create(robot, logs=["loaded"], **{**PAYLOAD, "mass": 10.0, "inertia": 2.0 * np.array(PAYLOAD["inertia"])})
    np.testing.assert_allclose(gains_of(0, 0.005, model, heavy, loaded_robot())[0], 2.0 * GAIN, rtol=0.02)
    for com in ([0.02, -0.01, 0.13], [0.02, -0.01, -0.08]):
        beside = Payload.create(robot, logs=["loaded"], **{**PAYLOAD, "com": com})
        with pytest.raises(EstimationError, match=r"contradict the payload.*residual of j\d .* times that with another body"):
            gains_of(0, 0.005, model, beside, loaded_robot())


def test_what_is_wrong_with_a_payload_is_said(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zyx"))
    with pytest.raises(ModelError, match=r"no link is called 'tol'.*did you mean 'tool'"):
        Payload.create(robot, logs=[], **{**PAYLOAD, "link": "tol"})
    with pytest.raises(ModelError, match="no body has this inertia"):
        Payload.create(robot, logs=[], **{**PAYLOAD, "inertia": [1, 0, 0, 0.1, 0, 0.1]})
    for number in (np.nan, np.inf):
        with pytest.raises(ModelError, match=f"no body has this mass, got {number}"):
            Payload.create(robot, logs=[], **{**PAYLOAD, "mass": number})
        with pytest.raises(ModelError, match="no body has this inertia"):
            Payload.create(robot, logs=[], **{**PAYLOAD, "inertia": [number, 0, 0, 1, 0, 1]})
    for key, value in (("mass", "3"), ("com", [0, 0]), ("com", "front"), ("inertia", [1, 1, 1]), ("inertia", None)):
        with pytest.raises(ShapeError, match=f"'{key}'"):
            Payload.create(robot, logs=[], **{**PAYLOAD, key: value})
    with pytest.raises(ModelError, match=r"far outside the robot, got 80 m from 'tool', expected metres"):
        Payload.create(robot, logs=[], **{**PAYLOAD, "com": [0, 0, 80]})
    with pytest.raises(ModelError, match=r"far outside the robot, got nan m from 'tool'"):
        Payload.create(robot, logs=[], **{**PAYLOAD, "com": [0, 0, np.nan]})
    for k in range(100):  # point masses, whose inertia about the joint is rounded
        mass, *com = np.random.default_rng(k).uniform(0.1, 0.5, 4)
        Payload.create(robot, logs=[], link="tool", mass=10 * mass, com=com, inertia=[0] * 6)
    with pytest.raises(ProjectError, match=r"drive\.payload"):
        parse_project({"drive": {"payload": {"mass": 3.0}}})


def test_a_payload_that_no_log_carries_is_said() -> None:
    robot = Robot.from_urdf(arm_urdf("zyx"))
    t, q, v, a = fourier(3, 10.0, 100.0, 0)
    log = Recording("laden_a", robot.joints, t, q, effort=torques(loaded_robot(), Truth.of(3), q, v, a))
    for pattern, said in (("loaded*", True), ("laden*", False)):
        payload = {"logs": [pattern], **PAYLOAD}
        project = parse_project({"model": {"friction": ["viscous", "coulomb", "offset"]}, "drive": {"payload": payload}})
        summary = identify(project.build_model(robot), [log], project=project).summary(verbose=True)
        assert ("drive.payload.logs is loaded*, the logs are laden_a" in summary) == said
