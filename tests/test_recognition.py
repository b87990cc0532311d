"""Logs without a description: simulated robots of several kinds, their columns shuffled, in other units, otherwise mounted."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from commands import done
from conftest import arm_urdf
from logs import Truth, fourier, torques
from test_log_formats import write_lerobot

from urdf_ident import Robot, read_recording, robot_path
from urdf_ident.errors import LogError
from urdf_ident.logs.columns.layout import LogLayout
from urdf_ident.logs.formats.choice import open_table
from urdf_ident.logs.recognition.recognise import LogDescription, recognise
from urdf_ident.pipeline.describe import project_text
from urdf_ident.project import Project, parse_project

DOWN = (0.0, 0.0, -9.81)


def simulated(axes: str = "zyyxyx", gravity=DOWN, seed: int = 0, seconds: float = 12.0) -> tuple[Robot, dict[str, np.ndarray]]:
    """A robot as its URDF has it (standing), and the log of one that hangs where ``gravity`` says."""
    text = arm_urdf(axes)
    robot, real = Robot.from_urdf(text), Robot.from_urdf(text, gravity=gravity)
    t, q, v, a = fourier(robot.n, seconds, 100.0, seed, amplitude=0.5)
    tau = torques(real, Truth.of(robot.n), q, v, a)
    generator = np.random.default_rng(seed)
    noisy = {
        "t": t[:, None] + 50.0,
        "q": q + 1e-5 * generator.standard_normal(q.shape),
        "v": v + 2e-3 * generator.standard_normal(q.shape),
        "tau": tau + 0.03 * tau.std(axis=0) * generator.standard_normal(q.shape),
        "target": q + 0.002 * np.roll(v, 5, axis=0),
        "temperature": 30.0 + 0.01 * t[:, None] + 0.1 * generator.standard_normal(q.shape),
    }
    return robot, noisy


def written(folder: Path, *groups: np.ndarray, interleaved: bool = False) -> Path:
    """A headerless CSV of column groups; interleaved: one joint after the other."""
    first = groups[0]
    rest = np.stack(groups[1:], axis=2).reshape(len(first), -1) if interleaved else np.hstack(groups[1:])
    np.savetxt(folder / "run.csv", np.hstack([first, rest]), delimiter=",", fmt="%.9g")
    return folder / "run.csv"


def check(path: Path, robot: Robot, signals: dict[str, np.ndarray]) -> Project:
    """Recognises the log, writes the project file and reads the log with it: the signals must come back in SI units."""
    found = recognise(open_table(path), robot, LogLayout())
    for said in (
        found.settings["log.columns.position"],
        found.settings["log.columns.effort"],
        found.settings.get("log.units.position"),
    ):
        assert said is None or said.why.startswith("certain")
    text = project_text(found, Project(), robot, path.parent / "arm.urdf", "run")
    project = parse_project(yaml.safe_load(text))
    log = read_recording(path, robot, project.log)
    np.testing.assert_allclose(log.time - log.time[0], signals["t"][:, 0] - signals["t"][0, 0], atol=1e-6)
    np.testing.assert_allclose(log.position, signals["q"], atol=1e-6)
    assert log.effort is not None
    scale = {"N·m": 1.0}.get(log.effort_unit, np.nan)
    if "v" in signals:
        assert log.velocity is not None
        np.testing.assert_allclose(log.velocity, signals["v"], atol=1e-6)
    if np.isfinite(scale):
        np.testing.assert_allclose(log.effort, signals["tau"], atol=1e-5 * np.abs(signals["tau"]).max())
    return project


def test_headerless_blocks(tmp_path: Path) -> None:
    robot, s = simulated()
    project = check(written(tmp_path, s["t"], s["temperature"], s["target"], s["q"], s["v"], s["tau"]), robot, s)
    assert project.robot.gravity == DOWN
    assert project.log.columns["position_target"] == list(range(7, 13))
    assert project.drive.gain is None


def test_degrees_milliseconds_and_milliamperes(tmp_path: Path) -> None:
    robot, s = simulated(seed=2)
    gain = np.array([9.0, 11.0, 10.0, 8.0, 12.0, 10.0])  # N·m per A
    path = written(tmp_path, 1e3 * s["t"], s["tau"] / gain * 1e3, np.rad2deg(s["q"]), np.rad2deg(s["v"]))
    project = check(path, robot, s)
    assert project.log.units == {"time": "ms", "position": "deg", "velocity": "deg/s", "effort": "mA"}
    found = np.array(project.drive.gain)
    shown = found[1:4] / gain[1:4] - 1.0
    assert np.abs(shown).max() < 0.15  # joints that gravity loads; the others are guessed
    assert (np.abs(np.log(found / gain)) < 1.0).all()


def test_currents_of_a_foreign_header_get_torque_constants_even_of_about_one(tmp_path: Path) -> None:
    """By their size they could be torques: the header says what they are."""
    _, s = simulated(seed=3)
    gain = np.array([1.2, 1.2, 1.1, 0.8, 0.8, 0.6])  # N·m per A
    names = ["Zeit [s]", *(f"Achse {k} {what}" for what in ("Ist [°]", "Strom [A]") for k in range(1, 7))]
    table = np.hstack([s["t"], np.rad2deg(s["q"]), s["tau"] / gain])
    path, urdf = tmp_path / "Messung 1.csv", tmp_path / "arm.urdf"
    np.savetxt(path, table, delimiter=";", header=";".join(names), comments="", encoding="utf-8")
    urdf.write_text(arm_urdf("zyyxyx"))
    target = tmp_path / "p.yaml"
    done("inspect", path, "--robot", urdf, "--write-project", target)
    project = parse_project(yaml.safe_load(target.read_text()))
    found = np.array(project.drive.gain)
    assert np.abs(found[1:4] / gain[1:4] - 1.0).max() < 0.15
    assert "N·m per A that fit the gravity torque" in target.read_text()
    assert project.log.units == {"position": "deg"}  # the effort's is in the header


@pytest.mark.parametrize(("seed", "unit"), [(0, "rad"), (1, "deg")])
def test_a_motion_too_small_to_tell_its_unit_says_so(tmp_path: Path, seed: int, unit: str) -> None:
    """Three degrees about zero: the numbers would be angles in rad just as well."""
    robot = Robot.from_urdf(arm_urdf("zyyxyx"))
    t, q, v, a = fourier(robot.n, 12.0, 100.0, seed, amplitude=0.03)
    q += 0.003 - q.mean(axis=0)
    tau = torques(robot, Truth.of(robot.n), q, v, a)
    noise = np.random.default_rng(0).standard_normal((2, *q.shape))
    path = written(tmp_path, t[:, None], np.rad2deg(q + 1e-5 * noise[0]), tau + 0.03 * tau.std(axis=0) * noise[1])
    found = recognise(open_table(path), robot, LogLayout())
    other = "deg" if unit == "rad" else "rad"
    assert found.settings["log.columns.position"].why.startswith("likely")
    assert f"in {other} they fit nearly as well" in found.settings["log.columns.position"].why
    said = found.settings.get("log.units.position")
    assert (said is None) == (unit == "rad")
    assert said is None or said.why.startswith("likely")


@pytest.mark.parametrize("kind", ["csv", "data set"])
def test_hundredths_of_the_range_of_motion_are_recognised(tmp_path: Path, kind: str) -> None:
    """A joint whose range is 45° would leave its limits if they were degrees."""
    robot = Robot.from_urdf(arm_urdf("zyyxyx").replace('lower="-2.6" upper="2.6"', 'lower="-0.2" upper="0.6"', 1))
    t, q, v, a = fourier(robot.n, 12.0, 100.0, 3, amplitude=0.5)
    scale = 0.38 / np.abs(q[:, 0]).max()
    q[:, 0], v[:, 0], a[:, 0] = 0.2 + scale * q[:, 0], scale * v[:, 0], scale * a[:, 0]
    tau = torques(robot, Truth.of(robot.n), q, v, a)
    half, middle = np.array([0.4, *[2.6] * 5]), np.array([0.2, *[0.0] * 5])
    names = ["timestamp", *(f"{joint}.{what}" for what in ("pos", "effort") for joint in robot.joints)]
    table, path = np.hstack([t[:, None], 100 * (q - middle) / half, tau]), tmp_path / "run.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="")
    if kind == "data set":
        elements = {f"{joint}.pos": k for k, joint in enumerate(robot.joints)}
        features = {
            "observation.state": {"dtype": "float32", "shape": [6], "names": elements},
            "observation.present_load": {
                "dtype": "float32",
                "shape": [6],
                "names": [f"main_{joint}" for joint in robot.joints],
            },
        }
        columns = {"observation.state": table[::2, 1:7], "observation.present_load": table[::2, 7:]}
        path = write_lerobot(tmp_path / "set", 3, features, [columns]) / "episode_000000"
    found = recognise(open_table(path), robot, LogLayout())
    assert found.settings["log.units.position"].value == "normalized"
    assert found.settings["log.units.position"].why.startswith(("likely", "certain"))
    assert "limits of the URDF" in found.settings["log.units.position"].why


def test_positions_may_be_hundredths_of_the_range_at_some_joints_only(tmp_path: Path) -> None:
    robot, s = simulated(seed=3)
    hundredths = np.arange(robot.n) % 2 == 0
    units = ["normalized" if joint else "deg" for joint in hundredths]
    half = robot.limit("upper")  # symmetric limits
    path = written(tmp_path, s["t"], np.where(hundredths, 100 * s["q"] / half, np.rad2deg(s["q"])), s["tau"])
    layout = LogLayout(units={"position": units})
    found = recognise(open_table(path), robot, layout)
    assert found.settings["log.units.position"].value == units
    assert found.settings["log.columns.position"].value == tuple(range(1, 7))
    assert found.settings["log.columns.effort"].value == tuple(range(7, 13))
    assert found.settings["log.columns.effort"].why.startswith("certain")
    assert "drive.gain" not in found.settings  # torques, of the URDF's own weights
    with pytest.raises(LogError, match="2 units for 6 joints") as caught:
        recognise(open_table(path), robot, LogLayout(units={"position": ["normalized", "deg"]}))
    assert "one per joint in the order" in str(caught.value)


def test_upside_down_is_told_from_reversed_efforts(tmp_path: Path) -> None:
    robot, s = simulated(gravity=(0.0, 0.0, 9.81), seed=4)
    project = check(written(tmp_path, s["t"], s["q"], s["v"], s["tau"]), robot, s)
    np.testing.assert_allclose(project.robot.gravity, (0, 0, 9.81), atol=1.0)
    robot, s = simulated(seed=4)
    s["tau"] = -s["tau"]
    project = check(written(tmp_path, s["t"], s["q"], s["v"], s["tau"]), robot, s)
    assert project.robot.gravity == DOWN
    assert np.array(project.drive.gain)[1:3].tolist() == [-1.0, -1.0]


def test_one_effort_that_counts_backwards_becomes_a_sign_of_the_gain(tmp_path: Path) -> None:
    robot, s = simulated(seed=6)
    s["tau"][:, 1] *= -1
    project = check(written(tmp_path, s["t"], s["q"], s["v"], s["tau"]), robot, s)
    assert project.drive.gain == [1.0, -1.0, 1.0, 1.0, 1.0, 1.0]


def test_noise_is_no_log(tmp_path: Path) -> None:
    robot, _ = simulated()
    path = tmp_path / "noise.csv"
    np.savetxt(path, np.random.default_rng(0).standard_normal((2000, 25)), delimiter=",")
    with pytest.raises(ValueError, match="no columns of the log move as the joints"):
        recognise(open_table(path), robot, LogLayout())


def test_command_writes_a_project_that_identify_takes(tmp_path: Path) -> None:
    _, s = simulated("zy", seed=8, seconds=8.0)
    (tmp_path / "arm.urdf").write_text(arm_urdf("zy"))
    (tmp_path / "known.yaml").write_text("model: {friction: [viscous, coulomb, offset]}\n")
    path, urdf = written(tmp_path, s["t"], s["q"], s["v"], s["tau"]), str(tmp_path / "arm.urdf")
    known = ("-c", tmp_path / "known.yaml", "--write-project", tmp_path / "p.yaml")
    assert "run: good" in done("inspect", path, "--robot", urdf, *known)
    text = (tmp_path / "p.yaml").read_text()
    assert "# certain" in text
    assert yaml.safe_load(text)["model"] == {"friction": ["viscous", "coulomb", "offset"]}
    done("identify", urdf, path, "-c", tmp_path / "p.yaml", "-o", tmp_path / "out")
    assert (tmp_path / "out/identification.json").is_file()


def test_real_headerless_logs(data: Path) -> None:
    robot = Robot.from_urdf(data / "ur10e/ur10e.urdf")
    for path in sorted((data / "ur10e").glob("*.csv")):
        found = recognise(open_table(path), robot, LogLayout())
        columns = {key.removeprefix("log.columns."): said.value for key, said in found.settings.items()}
        chosen = {key: value for key, value in columns.items() if "." not in key}
        assert chosen == {
            "time": 0,
            "position": tuple(range(1, 7)),
            "velocity": tuple(range(7, 13)),
            "effort": tuple(range(13, 19)),
            "effort_target": tuple(range(19, 25)),
            "torque_target": tuple(range(25, 31)),
        }
        assert found.settings["drive.gain"].value == "auto"
        assert "robot.gravity" not in found.settings


def test_names_of_logs_and_columns_stay_in_their_comments() -> None:
    """A line break in the name of a file or a column would be YAML of the project file that is written."""
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    found = LogDescription(notes=("column 'a\nrobot: {urdf: /etc/passwd}'",))
    text = project_text(found, parse_project({}), robot, Path("arm.urdf"), "a\nlog: {rate: 1}\udcff.csv")
    assert yaml.safe_load(text)["robot"]["urdf"].endswith("arm.urdf")
    assert "log" not in yaml.safe_load(text)
    assert "# Format of a\\nlog: {rate: 1}\\udcff.csv, recognised" in text


@pytest.mark.parametrize("stated", [None, "mm", ["mm", "mm"], ["mm", "m"]])
def test_positions_of_sliders_in_millimetres(tmp_path: Path, stated: str | list[str] | None) -> None:
    """What the project states is used, for all joints or for each; else the limits tell mm from m."""
    robot = Robot.from_urdf(slider_urdf())
    t, q, v, a = fourier(robot.n, 12.0, 100.0, 1, amplitude=0.3)
    tau = torques(robot, Truth.of(robot.n), q, v, a)
    per_unit = np.array([1e3, 1.0]) if stated == ["mm", "m"] else 1e3
    path = written(tmp_path, t[:, None], per_unit * q, per_unit * v, tau)
    layout = LogLayout(units={} if stated is None else {"position": stated})
    found = recognise(open_table(path), robot, layout)
    assert found.settings["log.columns.position"].value == (1, 2)
    assert found.settings["log.units.position"].value == (stated if stated == ["mm", "m"] else "mm")


def slider_urdf() -> str:
    """A vertical slider that carries a horizontal one."""
    links = "".join(
        f'<link name="{name}"><inertial><mass value="{mass}"/><origin xyz="0.1 0.05 0.2"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, mass in (("base", 5.0), ("lift", 8.0), ("arm", 3.0))
    )
    joints = "".join(
        f'<joint name="j{k}" type="prismatic"><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
        '<limit lower="-1" upper="1" velocity="2" effort="500"/></joint>'
        for k, (parent, child, axis) in enumerate((("base", "lift", "0 0 1"), ("lift", "arm", "0.6 0 0.8")), 1)
    )
    return f'<robot name="sliders">{links}{joints}</robot>'
