"""The project file: what a user writes arrives in the model's order, and every slip is named."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import arm_urdf

from urdf_ident.errors import MissingFileError, ModelError, ProjectError, UrdfIdentError
from urdf_ident.friction import Coulomb
from urdf_ident.project import Project, load_project, parse_project

BRANCHES = (
    '<robot name="branches"><link name="base"/>'
    + "".join(
        f'<link name="l_{name}"/><joint name="{name}" type="revolute"><parent link="base"/><child link="l_{name}"/>'
        f'<axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
        for name in ("wrist", "arm", "elbow")
    )
    + "</robot>"
)

EXAMPLE = """
robot:   {urdf: sub/arm.urdf, joints: [j3, j1, j2], lock: {j4: 0.5}, gravity: [0, 0, -9.80665]}
drive:   {reduction: [[30, 0, 0], [0, 10, 0], [0, 5, 20]], gain: [3.0, 1.0, 2.0], joint_offset: [0.3, 0.1, 0.2]}
log:
  files: {position: "*_pos.csv", effort: "*_curr.csv"}
  rate: 5000
  columns: {time: 0, position: [1, 2, 3], effort: [4, 5, 6], velocity: [a, b, c]}
  units: {position: deg, effort: A}
  side: {position: motor, effort: motor}
signals: {cutoff: 8.0, decimate: 10.0, velocity: logged}
validation: {score_cutoff: 9.4}
model:   {friction: {default: [viscous], j1: [{term: coulomb, width: 0.1}]}, rotor_inertia: false, elastic: false}
estimation: {method: ols}
consistency: {method: frozen, prior: urdf}
excitation: {}
simulation: {}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "arm.urdf").write_text(arm_urdf("zyxy"))
    (tmp_path / "project.yaml").write_text(EXAMPLE)
    return tmp_path


def test_everything_in_the_example_arrives(folder: Path) -> None:
    project, place = load_project(folder / "project.yaml")
    assert place == folder
    robot = project.build_robot(folder=place)
    assert robot.order == ("j3", "j1", "j2")
    assert robot.joints == ("j1", "j2", "j3")
    assert dict(robot.locked) == {"j4": 0.5}
    assert robot.model.gravity.linear[2] == -9.80665
    drive = project.build_drive(robot)
    assert drive.gain.tolist() == [1.0, 2.0, 3.0]
    assert drive.offset.tolist() == [0.1, 0.2, 0.3]
    # the lists speak of (j3, j1, j2): motor 2 also turns j1
    np.testing.assert_array_equal(drive.reduction, [[10, 0, 0], [5, 20, 0], [0, 0, 30]])
    assert drive.gain_origin == "project file"
    model = project.build_model(robot)
    assert [parameter.name for parameter in model.parameters[30:]] == ["Fc_j1", "Fv_j2", "Fv_j3"]
    assert model.term_of(30) == Coulomb(0.1)
    layout = project.log
    assert (layout.rate, layout.side.position, layout.side.effort) == (5000, "motor", "motor")
    assert layout.columns["position"] == [1, 2, 3]
    assert layout.columns["velocity"] == ["a", "b", "c"]
    assert layout.units == {"position": "deg", "effort": "A"}
    assert layout.files["effort"] == "*_curr.csv"
    config = project.signal_config()
    assert (config.cutoff, config.decimate, config.velocity) == (8.0, 10.0, "logged")
    assert project.validation.score_cutoff == 9.4


def test_without_joints_the_lists_follow_the_document() -> None:
    """Trap 1: Pinocchio sorts siblings by the alphabet, the user counts in the URDF."""
    project = parse_project({"drive": {"gain": [3, 1, 2], "reduction": [30, 10, 20], "joint_offset": [0.3, 0.1, 0.2]}})
    robot = project.build_robot(BRANCHES)
    assert robot.joints == ("arm", "elbow", "wrist")
    drive = project.build_drive(robot)
    by_name = dict(zip(robot.joints, drive.gain.tolist(), strict=True))
    assert by_name == {"wrist": 3, "arm": 1, "elbow": 2}
    np.testing.assert_array_equal(np.diag(drive.reduction), [10, 20, 30])
    assert drive.offset.tolist() == [0.1, 0.2, 0.3]


def test_no_file_means_all_defaults(tmp_path: Path) -> None:
    assert load_project(None) == (Project(), Path())
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert load_project(tmp_path / "empty.yaml")[0] == Project()
    robot = Project().build_robot(arm_urdf("zy"))
    drive = Project().build_drive(robot)
    assert drive.gain_origin == "effort is a torque"
    np.testing.assert_array_equal(drive.reduction, np.eye(2))
    assert len(Project().build_model(robot).terms) == 8


def test_drive_may_stand_under_log() -> None:
    assert parse_project({"log": {"rate": 10, "drive": {"gain": 2.0}}}) == parse_project(
        {"drive": {"gain": 2.0}, "log": {"rate": 10}}
    )
    with pytest.raises(ProjectError, match="both given"):
        parse_project({"drive": {"gain": 1}, "log": {"drive": {"gain": 2}}})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"robott": {}}, "unknown key 'robott'; did you mean 'robot'"),
        ({"log": {"rates": 5}}, "unknown key 'log.rates'; did you mean 'rate'"),
        ({"log": {"side": {"positon": "motor"}}}, "unknown key 'log.side.positon'; did you mean 'position'"),
        ({"log": {"drive": {"gains": 5}}}, "'drive.gains'; did you mean 'gain'"),
        ({"signals": {"cut_off": 5}}, "did you mean 'cutoff'"),
        ({"model": {"frictions": []}}, "did you mean 'friction'"),
        ({"consistency": {"priors": 1}}, "did you mean 'prior'"),
        ({"robot": {"duration": 8}}, "unknown key 'robot.duration'; write excitation.duration"),
        ({"signals": {"cutoff": float("nan")}}, "bad value of 'signals.cutoff'"),
        ({"signals": {"decimate": -1.0}}, "bad value of 'signals.decimate'"),
        ({"signals": {"delay": 1.5}}, "bad value of 'signals.delay'"),
        ({"signals": {"velocity": "loged"}}, "bad value of 'signals.velocity', got 'loged', expected .*'logged'"),
        ({"robot": {"gravity": 9.81}}, "bad value of 'robot.gravity', got 9.81, expected a list; docs/project_file.md"),
        ({"robot": {"lock": ["j1"]}}, "bad value of 'robot.lock'.*expected a mapping"),
        ({"drive": {"payload": {"mass": 1.0}}}, "'drive.payload.logs' is missing"),
        ({"log": {"rate": -5}}, "bad value of 'log.rate', got -5, expected .*greater than 0"),
        ({"log": {"side": {"effort": "gear"}}}, "'log.side.effort'.*'motor'"),
        ({"robot": {"gravity": [0, 0]}}, "'robot.gravity"),
        ({"robot": {"lock": {"j1": "open"}}}, "'robot.lock.j1'"),
        ({"drive": {"gain": [1, "x"]}}, "'drive.gain"),
        ({"estimation": {"method": "magic"}}, "'estimation.method'"),
        ({"model": {"rotor_inertia": "perhaps"}}, "'model.rotor_inertia'"),
        ({"consistency": {"relative_std": 0}}, "'consistency.relative_std'"),
        ({"robot": "arm.urdf"}, "'robot'"),
        ({3: {}}, "3"),
        (["robot"], "not a project file, got .'robot'., expected sections"),
        ([], "not a project file, got "),
        ("robot", "not a project file, got 'robot'"),
        ({"signals": {"cutoff": 2, 5: None}}, "unknown key 'signals.5'.*decimal point"),
        ({"validation": {"score_cutoff": 0}}, "'validation.score_cutoff', got 0, expected a number greater than 0"),
        ({"signals": {"cutoff": True}}, "bad value of 'signals.cutoff', got True, expected a number"),
        ({"log": {"columns": {"time": True}}}, "bad value of 'log.columns', got {'time': True}, expected a number"),
        ({"robot": {"lock": {"j1": False}}}, "bad value of 'robot.lock'.*expected a number"),
        ({"signals": {"cutoff": "8 Hz"}}, "got '8 Hz', expected a number or 'auto'; "),
        ({"log": {"side": "motor"}}, "got 'motor', expected a mapping .`key: value`.; "),
        ({"model": {"rotor_inertia": "maybe"}}, "got 'maybe', expected true or false; "),
        ({"consistency": {"total_mass": [10, 5]}}, "'consistency.total_mass', got .10, 5., expected a mass above 0"),
        ({"consistency": {"total_mass": -1.0}}, "'consistency.total_mass'"),
    ],
)
def test_slips_are_named(data: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=words) as caught:
        parse_project(data, "p.yaml")
    assert str(caught.value).startswith("p.yaml: ")
    assert "\n" not in str(caught.value)
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(ProjectError, match=words):
        load_project(path)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="project file not found"):
        load_project(tmp_path / "none.yaml")
    with pytest.raises(MissingFileError, match="is a folder"):
        load_project(tmp_path)
    with pytest.raises(ProjectError, match="no URDF is named"):
        Project().build_robot()
    with pytest.raises(MissingFileError, match=re.escape(str(tmp_path / "arm.urdf"))):
        parse_project({"robot": {"urdf": "arm.urdf"}}).build_robot(folder=tmp_path)


def test_a_named_urdf_beats_the_files_own(folder: Path) -> None:
    project, place = load_project(folder / "project.yaml")
    other = folder / "other.urdf"
    other.write_text(arm_urdf("xxxx"))
    assert project.build_robot(other, place).path == str(other)
    assert project.build_robot(folder=place).path == str(place / "sub" / "arm.urdf")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"drive": {"reduction": [[1, 0, 0], [1, 1]]}}, UrdfIdentError),
        ({"drive": {"reduction": [32, 0, 45]}}, ModelError),
        ({"model": {"friction": {"j9": ["viscous"]}}}, ModelError),
        ({"model": {"motor_friction": {"j4": ["viscous"]}}}, ModelError),
    ],
)
def test_what_does_not_fit_the_robot_is_refused(data: dict, kind: type[Exception]) -> None:
    def build() -> None:
        project = parse_project(data)
        project.build_model(project.build_robot(arm_urdf("zyx")))

    with pytest.raises(kind) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_a_project_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Project().log.rate = 5.0


def test_every_default_is_described() -> None:
    undescribed = []
    for name, section in Project.model_fields.items():
        fields = getattr(section.annotation, "model_fields", {})
        undescribed += [f"{name}.{key}" for key, item in fields.items() if not item.description and key != "side"]
    assert undescribed == []
