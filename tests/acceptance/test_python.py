"""The public names of Python, as a script uses them, and the command that each belongs to."""

import inspect
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import urdf_ident as ui

from .experiment import JOINTS, LOAD, done, motion, regressor, torque, true_parameters
from .test_wrong_use import COMMANDS

#: Command → the public names that do its work.
NAMES = {
    "demo": ["demo"],
    "check": ["check"],
    "inspect": ["inspect"],
    "identify": ["identify"],
    "validate": ["validate"],
    "report": ["write_report"],
    "plot": ["Identification"],  # its attribute plot
    "export": ["write_urdf", "write_mjcf", "write_sdf", "write_sidecar"],
    "design": ["design_excitation"],
    "simulate": ["simulate"],
    "play": ["play"],
    "export-motion": ["export_motion"],
    "payload": ["payload"],
    "compare": ["compare", "trend"],
    "fleet": ["fleet"],
}


@pytest.fixture(scope="module")
def logs(cell: Path, robot: ui.Robot) -> list[ui.Recording]:
    """The three logs of the true robot."""
    return [ui.read_recording(cell / f"run{k}.csv", robot) for k in (1, 2, 3)]


@pytest.fixture(scope="module")
def simple(robot: ui.Robot, logs: list[ui.Recording]) -> ui.Identification:
    """The result of the lines in design.md and README."""
    model = ui.DynamicModel(robot, friction=["viscous", "coulomb", "offset"], rotor_inertia=True)
    return ui.identify(model, logs[:2])


def test_every_command_has_its_python_name() -> None:
    assert tuple(NAMES) == COMMANDS
    for names in NAMES.values():
        assert set(names) <= set(ui.__all__)


@pytest.mark.parametrize("name", [name for name in ui.__all__ if name != "__version__"])
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(ui, name)
    assert inspect.getdoc(value)
    assert getattr(ui, name) is value
    if not inspect.ismodule(value):
        assert value.__name__ == name
    if inspect.isfunction(value):
        text = inspect.getdoc(value) or ""
        parameters = [p for p in inspect.signature(value).parameters.values() if p.kind is not p.VAR_KEYWORD]
        described = [p.name for p in parameters if f"{p.name}:" in text or f"{p.name}, " in text or f"{p.name} (" in text]
        assert described == [p.name for p in parameters], name
        assert all(p.annotation is not p.empty for p in parameters)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        ui.no_such_name


def test_all_errors_are_of_one_family_and_of_a_builtin() -> None:
    kinds = [kind for _, kind in inspect.getmembers(ui.errors, inspect.isclass) if issubclass(kind, ui.UrdfIdentError)]
    assert len(kinds) > 10
    for kind in kinds:
        if kind is not ui.UrdfIdentError:
            assert any(base.__module__ == "builtins" and base is not Exception for base in kind.__mro__[:-3])
            assert str(pickle.loads(pickle.dumps(kind("what happened")))) == "what happened"
    with pytest.raises(FileNotFoundError) as caught:
        ui.read_recording("absent.csv", ui.Robot.from_urdf(ui.robot_path("zollo_2r")))
    assert isinstance(caught.value, ui.UrdfIdentError)


def test_the_lines_of_the_readme(simple: ui.Identification, logs: list[ui.Recording], cell: Path, tmp_path: Path) -> None:
    assert "28" in simple.model.base().summary()
    assert "GOOD" in simple.summary().splitlines()[0]
    names, truth = simple.model.names, true_parameters()
    true_base = simple.fit.base.of(np.array([truth[name] for name in names]))
    interval = np.asarray(simple.fit.conf_int())
    assert simple.fit.params.shape == simple.fit.bse.shape == (28,)
    assert interval.shape == (28, 2)
    assert np.mean((interval[:, 0] <= true_base) & (true_base <= interval[:, 1])) > 0.75
    assert (np.abs(simple.fit.params - true_base) < 5 * simple.fit.bse).all()
    assert simple.theta.shape == simple.from_data.shape == (42,)
    assert simple.from_data.min() > -1e-9
    assert simple.from_data.max() < 1 + 1e-9
    report = ui.validate(simple, logs[2:])
    assert report.verdict.level == simple.verdict.level == "good"
    assert isinstance(report.verdict, ui.Verdict)
    assert all(isinstance(judgement, ui.Judgement) for judgement in simple.verdict.judgements)
    assert report.better_than_urdf
    _, q, v, a = motion(11)
    truth_torque = torque(q, v, a)
    error = np.asarray(simple.torque(q, v, a)) - truth_torque
    assert (np.sqrt(np.mean(error**2, axis=0)) < 0.02 * truth_torque.std(axis=0)).all()
    assert simple.torque(q[0], v[0], a[0]) == pytest.approx(np.asarray(simple.torque(q, v, a))[0], rel=1e-9, abs=1e-9)
    ui.write_urdf(simple, tmp_path / "arm_identified.urdf")
    simple.save(tmp_path / "ident.json")
    again = ui.load(tmp_path / "ident.json")
    assert again.theta.tolist() == simple.theta.tolist()
    assert again.summary() == simple.summary()


def test_the_results_are_those_of_the_command_line(cell: Path, logs: list[ui.Recording], simple: ui.Identification) -> None:
    (cell / "simple.yaml").write_text("model: {friction: [viscous, coulomb, offset]}\n")
    done("identify", "arm.urdf", "run1.csv", "run2.csv", "-c", "simple.yaml", "--no-report", "-o", "by_command", cwd=cell)
    loaded = ui.load(cell / "by_command")
    assert loaded.theta == pytest.approx(simple.theta, rel=1e-12, abs=1e-12)
    (score,) = json.loads(done("validate", cell / "by_command", cell / "run3.csv", "--json", "--no-report"))
    assert ui.validate(simple, logs[2:]).entries[0]["mean_rmse"] == pytest.approx(score["mean_rmse"], rel=1e-9)


def test_check_and_inspect_return_records(robot: ui.Robot, logs: list[ui.Recording], cell: Path) -> None:
    checked = ui.check(ui.DynamicModel(robot))
    assert checked.physical
    assert "28" in checked.summary()
    assert str(checked) == checked.summary()
    assert json.loads(done("check", "arm.urdf", "--json", cwd=cell))["joints"] == checked.as_dict()["joints"]
    inspection = ui.inspect(robot, logs[:1])
    assert inspection.verdict.level != "poor"
    assert inspection.summary().startswith("run1: good")
    assert list(inspection.logs) == json.loads(done("inspect", "run1.csv", "--robot", "arm.urdf", "--json", cwd=cell))


def test_payload_and_compare(simple: ui.Identification, robot: ui.Robot, cell: Path, tmp_path: Path) -> None:
    loaded = ui.read_recording(cell / "loaded.csv", robot)
    body = ui.payload(simple, [loaded], link="tool")
    assert body.mass == pytest.approx(LOAD.mass, rel=0.1)
    assert ui.compare(ui.Robot.from_urdf(cell / "arm.urdf"), simple).as_dict()["changed"]
    assert not ui.compare(simple, simple).as_dict()["changed"]
    assert all(joint in ui.trend([simple] * 3, ["a", "b", "c"]).summary() for joint in JOINTS)


def test_design_forecast_and_simulate(simple: ui.Identification, robot: ui.Robot, tmp_path: Path) -> None:
    design = ui.design_excitation(simple.model, duration=6.0, harmonics=3, budget=0.5, after=simple, seed=1)
    assert isinstance(design.trajectory, ui.Trajectory)
    assert design.trajectory.joints == robot.joints
    assert "%" in ui.forecast(simple, design.trajectory).summary()
    design.trajectory.write(tmp_path / "motion.csv")
    read = ui.read_trajectory(tmp_path / "motion.csv", robot)
    t = np.linspace(0.0, 6.0, 50)
    for before, after in zip(design.trajectory.evaluate(t), read.evaluate(t), strict=True):
        assert after == pytest.approx(before, abs=0.02)
    log = ui.simulate(robot, design.trajectory, seed=0)
    assert log.recording.position.shape[1] == 3
    ui.write_log(log, tmp_path / "log.csv")
    assert len(ui.read_recording(tmp_path / "log.csv", robot)) == len(log.recording)
    files = ui.export_motion(design.trajectory, robot, "ros2_control", tmp_path / "on_robot")
    assert all(path.is_file() for path in files)


def test_files_are_written_from_python(
    simple: ui.Identification, robot: ui.Robot, logs: list[ui.Recording], tmp_path: Path
) -> None:
    ui.write_mjcf(simple, tmp_path / "arm.xml")
    ui.write_sdf(simple, tmp_path / "arm.sdf")
    ui.write_sidecar(simple, tmp_path / "joints.yaml")
    ui.write_report(simple, tmp_path / "report.html")
    ui.play(robot, logs[0], errors=simple, html=tmp_path / "motion.html")
    simple.plot.save("friction", tmp_path / "friction.svg")
    assert all(path.stat().st_size > 500 for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 6
    for wrong in ({"errors": simple, "html": tmp_path / "x.html"},):
        with pytest.raises(ui.errors.LogError, match="efforts"):
            ui.play(robot, (np.arange(3.0), np.zeros((3, 3))), **wrong)


def test_a_refused_log_carries_its_findings(simple: ui.Identification, logs: list[ui.Recording]) -> None:
    from dataclasses import replace

    still = replace(logs[0], position=np.tile(logs[0].position[:1], (len(logs[0]), 1)), sha256="still")
    with pytest.raises(ui.QualityError) as caught:
        ui.identify(simple.model, [still])
    assert caught.value.findings
    assert isinstance(caught.value, ValueError)


def test_records_cannot_be_changed(simple: ui.Identification, logs: list[ui.Recording]) -> None:
    for record, name in ((simple, "theta"), (simple.fit, "params"), (logs[0], "position")):
        with pytest.raises((AttributeError, TypeError)):
            setattr(record, name, None)
        array: Any = getattr(record, name)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_a_fleet_from_python(cell: Path, tmp_path: Path) -> None:
    for k in (1, 2, 3):
        (tmp_path / f"r{k}").mkdir()
        (tmp_path / f"r{k}" / "log.csv").write_bytes((cell / f"run{k}.csv").read_bytes())
    (tmp_path / "simple.yaml").write_text("model: {friction: [viscous, coulomb, offset]}\n")
    folders = {f"r{k}": tmp_path / f"r{k}" for k in (1, 2, 3)}
    found = ui.fleet(cell / "arm.urdf", folders, tmp_path / "out", config=tmp_path / "simple.yaml")
    assert not found.failed
    assert not any(robot["stands_out"] for robot in found.as_dict()["robots"])


def test_every_public_name_is_used_here() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in ui.__all__ if name != "__version__" and not re.search(rf"\bui\.{name}\b", texts)] == []


def test_base_parameters_and_segments_give_the_torque_of_the_true_robot(simple: ui.Identification, cell: Path) -> None:
    """Pinocchio's columns times the true parameters: the base columns alone give the same."""
    base, model = simple.model.base(), simple.model
    assert isinstance(base, ui.BaseParameters)
    truth = np.array([true_parameters()[name] for name in model.names])
    laws = [ui.friction.Viscous(), ui.friction.Coulomb(), ui.friction.Offset()]
    t, q, v, a = motion(12, seconds=2.0)
    robot = ui.DynamicModel(ui.Robot.from_urdf(cell / "true.urdf"), friction=laws, rotor_inertia=True)
    names = {name: k for k, name in enumerate(true_parameters())}
    columns = regressor(q, v, a)[:, [names[name] for name in robot.names]]
    torques = (columns[:, base.independent] @ base.of(truth)).reshape(-1, 3)
    assert torques == pytest.approx(torque(q, v, a), abs=1e-9)
    along = robot.torque_along(truth, ui.Segment("motion", t[0], 100.0, q, v, a))
    assert along == pytest.approx(torques, abs=0.05 * float(np.abs(torques).max()))  # another width of the sign


def test_a_drive_turns_currents_into_torques(robot: ui.Robot, logs: list[ui.Recording], simple: ui.Identification) -> None:
    constants = np.array([11.0, 7.0, 5.0])
    drive = ui.Drive.build(3, gain=constants)
    model = ui.DynamicModel(robot, drive=drive, friction=["viscous", "coulomb", "offset"], rotor_inertia=True)
    currents = [
        ui.Recording.from_arrays(log.time, log.position, log.effort / constants, joints=robot, effort_unit="A", name=log.name)
        for log in logs[:2]
    ]
    assert ui.identify(model, currents).theta == pytest.approx(simple.theta, rel=1e-4, abs=1e-4)


def test_an_elastic_model_has_springs_and_needs_gear_ratios(robot: ui.Robot) -> None:
    model = ui.ElasticModel(robot, drive=ui.Drive.build(3, reduction=[50.0, 80.0, 100.0]), friction=["viscous", "coulomb"])
    assert {f"K_{joint}" for joint in JOINTS} <= set(model.names)
    with pytest.raises(ui.errors.ModelError, match="gear"):
        ui.ElasticModel(robot, drive=None)


def test_a_remedy_is_settings_that_mend_the_log(robot: ui.Robot, cell: Path, simple: ui.Identification) -> None:
    """Positions in degrees: the settings of the remedy, applied, give the result of the log in radians."""
    log = ui.read_recording(cell / "run1.csv", robot)
    table = np.column_stack([log.time, np.degrees(log.position), log.effort])
    header = ",".join(["t", *(f"q_{joint}" for joint in JOINTS), *(f"tau_{joint}" for joint in JOINTS)])
    np.savetxt(cell / "degrees.csv", table, delimiter=",", header=header, comments="")
    remedies = [
        judgement.remedy for judgement in ui.inspect(robot, [ui.read_recording(cell / "degrees.csv", robot)]).verdict.judgements
    ]
    assert all(isinstance(remedy, ui.Remedy) for remedy in remedies if remedy is not None)
    assert any(remedy.settings.get("log.units.position") == "deg" for remedy in remedies if remedy is not None)


def test_logs_and_settings_are_found_as_the_command_line_finds_them(cell: Path, tmp_path: Path, robot: ui.Robot) -> None:
    for k in (1, 2):
        (tmp_path / f"run{k}.csv").write_bytes((cell / f"run{k}.csv").read_bytes())
    (tmp_path / "project.yaml").write_text("model: {friction: [viscous]}\nsignals: {cutoff: 5}\n")
    sources = ui.expand_logs([tmp_path / "run*.csv"])
    assert [source.name for source in sources] == ["run1", "run2"]
    assert all(ui.read_recording(source, robot).joints == JOINTS for source in sources)
    project, folder = ui.load_project(tmp_path / "project.yaml", lock={"j3": 0.5})
    assert project.model.friction == ["viscous"]
    assert project.robot.lock == {"j3": 0.5}
    assert folder == tmp_path
    assert ui.load_project(None)[0] == ui.Project()


def test_a_table_is_kept_clear_of(tmp_path: Path) -> None:
    """A design beside a table; MuJoCo is not asked here (test_obstacles.py): heights by Pinocchio's kinematics are."""
    (tmp_path / "world.yaml").write_text("clearance: 0.02\nobjects: {table: {plane: [0, 0, 1], offset: -0.3}}\n")
    robot = ui.Robot.from_urdf(ui.robot_path("generic_6axis"))
    collisions = ui.find_collisions(robot, ui.read_world(tmp_path / "world.yaml"))
    assert isinstance(collisions, ui.Collisions)
    model = ui.DynamicModel(robot, friction=["viscous", "coulomb"])
    design = ui.design_excitation(model, duration=6.0, harmonics=3, budget=0.5, seed=0, collisions=collisions)
    assert isinstance(design, ui.Design)
    q, _, _ = design.trajectory.evaluate(np.linspace(0.0, design.trajectory.duration, 200))
    data = robot.model.createData()
    heights = []
    for pose in q:
        pin.forwardKinematics(robot.model, data, pose)
        heights.append(data.oMi[robot.model.njoints - 1].translation[2])
    assert min(heights) > -0.3 + 0.02
    assert (collisions.distances(q[:5]) >= 0.02).all()


def test_runs_at_constant_speed_go_both_ways(robot: ui.Robot) -> None:
    experiment = ui.bidirectional_experiment(ui.Limits.from_robot(robot), count=4, cruise=0.4)
    t = np.arange(0.0, experiment.trajectory.duration, 0.005)
    _, v, a = experiment.trajectory.evaluate(t)
    for j, joint in enumerate(JOINTS):
        steady = v[(np.abs(a[:, j]) < 1e-9) & (np.abs(v[:, j]) > 1e-6), j]
        for speed in experiment.speeds[joint]:
            for sign in (1.0, -1.0):
                assert (np.abs(steady - sign * speed) < 1e-6).sum() * 0.005 > 0.3, (joint, sign * speed)
