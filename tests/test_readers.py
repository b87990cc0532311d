"""Reading logs: columns by name, by number, by layout; split logs; and every way a file can be bad."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from urdf_ident import Recording, Robot, robot_path
from urdf_ident.errors import LogError, MissingFileError, UnitError, UrdfIdentError
from urdf_ident.logs import read
from urdf_ident.logs.columns.layout import SideSection
from urdf_ident.logs.read import LogLayout, expand_logs, read_readable, read_recording

# Document order (zeta, alpha, slide) differs from Pinocchio's alphabetical order of siblings (alpha, zeta).
Read = Callable[..., Recording]
URDF = """<robot name="three">
  <link name="base"/><link name="l1"/><link name="l2"/><link name="l3"/><link name="l4"/>
  <joint name="zeta" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="5" effort="50"/></joint>
  <joint name="alpha" type="revolute"><parent link="base"/><child link="l2"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="5" effort="50"/></joint>
  <joint name="slide" type="prismatic"><parent link="l2"/><child link="l3"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="50"/></joint>
  <joint name="finger" type="prismatic"><parent link="l3"/><child link="l4"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" velocity="1" effort="50"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(URDF, lock={"finger": 0.0})


def write(folder: Path, text: str, name: str = "run.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(n: int = 4, header: str = "t,q_zeta,q_alpha,q_slide", sep: str = ",") -> str:
    rows = [sep.join(f"{value:g}" for value in (0.01 * k, 1 + k, 10 + k, 100 + k)) for k in range(n)]
    return "\n".join(([header] if header else []) + rows) + "\n"


def test_columns_are_matched_by_joint_name_in_model_order(read: Read, robot: Robot) -> None:
    assert robot.joints == ("alpha", "slide", "zeta")
    assert robot.order == ("zeta", "alpha", "slide")
    log = read(table())
    assert log.joints == robot.joints
    np.testing.assert_array_equal(log.position[1], [11.0, 101.0, 2.0])
    np.testing.assert_allclose(log.time, [0, 0.01, 0.02, 0.03])
    np.testing.assert_array_equal(log.rows, [2, 3, 4, 5])
    assert log.velocity is None
    assert log.effort is None
    assert log.name == "run"
    assert len(log.sha256) == 64


def test_all_default_quantities_and_wrench(read: Read) -> None:
    names = [f"{p}_{j}" for p in ("q", "v", "a", "tau", "qm", "vm") for j in ("zeta", "alpha", "slide")]
    wrench = [f"wrench_tool_{axis}" for axis in ("fx", "fy", "fz", "mx", "my", "mz")]
    header = ",".join(["t", *names, *wrench, "q_finger", "humidity"])
    values = np.arange(len(header.split(",")), dtype=float)
    log = read([header, *(",".join(map(str, values + k)) for k in range(3))])
    np.testing.assert_array_equal(log.effort[0], [11, 12, 10])
    np.testing.assert_array_equal(log.motor_velocity[0], [17, 18, 16])
    np.testing.assert_array_equal(log.wrenches["tool"][0], [19, 20, 21, 22, 23, 24])
    assert any("humidity" in note for note in log.notes)
    assert not any("q_finger" in note for note in log.notes)  # a locked joint's column is no surprise


@pytest.mark.parametrize("sep", [",", ";", "\t", " "])
def test_delimiters_comments_and_blank_lines(read: Read, sep: str) -> None:
    text = "# made by hand\n\n" + table(sep=sep, header=sep.join(["t", "q_zeta", "q_alpha", "q_slide"]))
    log = read(text.replace("0.02", "# pause\n0.02", 1))
    np.testing.assert_array_equal(log.position[:, 2], [1, 2, 3, 4])
    np.testing.assert_array_equal(log.rows, [4, 5, 7, 8])


def names(*prefixes: str, form: str = "{}_{}") -> str:
    """A header of these quantities of the joints zeta, alpha and slide."""
    return ",".join(["t", *(form.format(prefix, joint) for prefix in prefixes for joint in ("zeta", "alpha", "slide"))])


def whole(text: str | bytes) -> bytes:
    """A text in one line is a header: two rows follow in which each column holds its number, 0, 1, …"""
    if isinstance(text, bytes):
        return text
    row = ",".join(map(str, range(text.count(",") + 1)))
    return "\n".join([text, row, row, ""] if "\n" not in text else [text]).encode()


HEADER, EFFORTS = names("q"), names("q", "tau")
DOS = (HEADER + "\n0,1,2,3\n0,1,2,3\n").replace("\n", "\r\n").encode()
DEGREES, NUMBERS = np.deg2rad([1.0, 2.0]), "t,q_1,q_2,q_3,q_d_1,q_d_2,q_d_3"
BY_NUMBER = {
    "columns": {"time": 0, "position": [1, 2, 3], "effort": [4, 5, 6]},
    "units": {"time": "ms", "position": "deg", "effort": "mA"},  # deg is no unit of a prismatic joint
    "side": SideSection(effort="motor"),
}
STATED = {"columns": {"time": "t_ms", "position": ["a [deg]", "b [deg]", "c [mm]"]}, "units": {"time": "ms"}}
CURRENTS, ALL_DEGREES = names("pos", "current"), names("q", form="{}_{} [deg]")

#: Text, layout, and what the first row is read as, in the order of `robot.joints`: alpha, slide, zeta.
READ: list[tuple[str | bytes, dict, dict]] = [
    (f"# {HEADER}\n0,1,2,3\n", {}, {"position": [2, 3, 1]}),  # as of `numpy.savetxt`
    ("t;q_zeta;q_alpha;q_slide\n0,00;1,5;2,5;3,5\n0,01;1,6;2,6;3,6\n", {}, {"position": [2.5, 3.5, 1.5]}),
    (b"\xef\xbb\xbf" + DOS, {}, {"position": [2, 3, 1]}),
    ("t,q1,q2,q3,dq1,dq2,dq3", {}, {"position": [2, 3, 1], "velocity": [5, 6, 4]}),
    ("t,qpos1,qpos2,qpos3,pos1,pos2", {}, {"position": [2, 3, 1]}),  # two series
    (NUMBERS, {}, {"position": [2, 3, 1], "position_target": [5, 6, 4]}),
    (
        "5,1,2,3,4,5,6\n" * 2,
        BY_NUMBER,
        {"position": [DEGREES[1], 3, DEGREES[0]], "effort": [0.005, 0.006, 0.004], "time": 0.005},
    ),
    ("5,1,2,3,4,5,6\n" * 2, BY_NUMBER, {"effort_unit": "A", "effort_side": "motor"}),
    (HEADER, {"units": {"position": ["deg", "rad", "mm"]}}, {"position": [2, 0.003, DEGREES[0]]}),
    (EFFORTS, {"units": {"effort": ["mN·m", "kN·m", "mN"]}}, {"effort": [5000, 0.006, 0.004]}),
    (
        names("q", form="{}_{} [deg]"),
        {"units": {"position": ["deg", "deg", "mm"]}},
        {"position": [DEGREES[1], 0.003, DEGREES[0]]},
    ),
    ("t_ms,a [deg],b [deg],c [mm]\n5,1,2,3\n", STATED, {"position": [DEGREES[1], 0.003, DEGREES[0]], "time": 0.005}),
    ("t,position_zeta [deg],position_alpha,position_slide [mm]", {}, {"position": [2, 0.003, DEGREES[0]]}),
    (CURRENTS, {}, {"effort": [5, 6, 4], "effort_unit": "A"}),
    (CURRENTS.replace("current_zeta", "current_zeta [mA]"), {}, {"effort": [5, 6, 0.004], "effort_unit": "A"}),
    (f"{CURRENTS},tau_zeta,tau_alpha,tau_slide", {}, {"effort": [8, 9, 7], "effort_unit": "N·m"}),
    (
        names("position", "velocity", "effort") + ",position_finger",
        {},
        {"velocity": [5, 6, 4], "effort": [8, 9, 7], "notes": ()},
    ),
    (names("position", "position_target"), {}, {"position": [2, 3, 1], "position_target": [5, 6, 4]}),
    (f"{HEADER},position_zeta", {}, {"position": [2, 3, 1], "notes": ("columns ignored: position_zeta",)}),
    ("stamp,A,B,C", {"columns": {"time": "stamp", "position": ["C", "B", "A"]}}, {"position": [2, 1, 3]}),
    (f"{HEADER},q_gripper", {}, {"position": [2, 3, 1], "notes": ("columns ignored: q_gripper",)}),
]


@pytest.mark.parametrize(("text", "layout", "expected"), READ)
def test_tables_read_as_they_are_meant(read: Read, text: str | bytes, layout: dict, expected: dict) -> None:
    log = read(whole(text), LogLayout(**layout))
    for name, value in expected.items():
        values = getattr(log, name)
        if isinstance(values, np.ndarray):
            np.testing.assert_allclose(values[0], value)
        else:
            assert values == value


FOUR, SIX = Robot.from_urdf(URDF), Robot.from_urdf(robot_path("generic_6axis"))
TURNING = Robot.from_urdf(URDF, lock={"finger": 0.0, "slide": 0.0})
BARE, TWICE = "0,1,2,3\n0.01,1,2,3\n", "is there 2 times"
PLACES = {"time": 0, "position": [1, 2, 3]}
WORDS = {"time": "Zeit", "position": ["Achse 1", "Achse 2", "Achse 3"]}

#: What cannot be read: text, layout, the line that says so, and the robot if it is another.
REFUSED: list[tuple] = [
    (b"", {}, "empty"),
    (b"  \n\n", {}, "empty"),
    (b"# nothing\n", {}, "holds no rows"),
    (f"{HEADER}\n", {}, "header and no rows"),
    (b"\x89PNG\x00\x01\x02", {}, "not a text file"),
    (b"t,q_zeta\x01\xff\n0,1\n", {}, "not a text file"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", {}, "pointer of Git LFS.*git lfs pull"),
    (b"<!DOCTYPE html>\n<html></html>\n", {}, "web page"),
    (b'{"t": 0, "q_zeta": 1}\n{"t": 1, "q_zeta": 1}\n', {}, "this is JSON"),
    (b'[{"t": 0, "q_zeta": 1},{"t": 1, "q_zeta": 1}]', {}, "this is JSON"),
    (f"{HEADER}\n20240501T1200,1,2,3\n20240501T1201,1,2,3\n", {}, "'t' holds no numbers.*20240501T1200"),
    (f"{HEADER}\n0,1,north,3\n1,1,south,3\n", {}, "'q_alpha' holds no numbers, got 'north'"),
    (f"{HEADER}\n0,1,2\n0,1,2\n", {}, "header does not fit"),
    (BARE, {}, "no header"),
    ("t,x,y", {}, "no column holds a joint position"),
    # columns that are there twice
    (f"{HEADER},t", {}, f"column 't' {TWICE}, got 0, 4; remove or rename the wrong"),
    (f"{HEADER},q_alpha", {}, f"column 'q_alpha' {TWICE}, got 2, 4"),
    (f"{HEADER},t", {"columns": {"time": "t", "position": HEADER.split(",")[1:]}}, TWICE),
    (HEADER.replace("alpha", "zeta"), {}, TWICE),
    (EFFORTS.replace("tau_alpha", "tau_zeta"), {}, TWICE),
    # joints
    (HEADER.replace(",q_slide", ""), {}, r"joint 'slide' is missing.*lock: \{slide: 0\.0\}"),
    (f"{HEADER},q_zeto", {}, r"'q_zeto' names no joint.*did you mean 'zeta'"),
    (names("position", "velocity").replace("position_zeta", "position_zet"), {}, "'position_zet' names no joint"),
    (EFFORTS.replace("tau_slide", "tau_slyde"), {}, r"no column 'tau_slide'.*tau_slyde"),
    (
        HEADER.replace(",q_alpha", ""),
        {},
        r"joints alpha, finger are missing.*lock.*(alpha|finger): 0\.0, (alpha|finger): 0\.0",
        FOUR,
    ),
    ("t,q1,q2", {}, r"numbers 2 joints.*\{slide: 0\.0, finger: 0\.0\}", FOUR),
    ("t,q1,q2,q3", {}, r"numbers 3 joints.*robot has 4.*lock", FOUR),
    (BARE, {"columns": PLACES}, r"3 columns of position for 4 joints.*\{finger: 0\.0\}", FOUR),
    ("t,q_joint_1,q_joint_2,q_joint_33,q_joint_4,q_joint_5,q_joint_6", {}, "'q_joint_33' names no joint.*'joint_3'", SIX),
    # layouts
    (BARE, {"columns": {"time": 0, "position": [1, 2, 4]}}, r"no such column.*got 4.*expected 0 to 3"),
    (BARE, {"columns": {"time": 0, "position": [1, 2, -1]}}, r"got -1"),
    (BARE, {"columns": {"time": 0, "position": [1, 2]}}, r"2 columns of position for 3 joints.*zeta, alpha, slide"),
    (BARE, {"columns": {"time": 0, "position": [1, 2, 2]}}, r"listed twice"),
    (BARE, {"columns": {"time": 0, "position": ["a", "b", "c"]}}, r"has no header"),
    (BARE, {"columns": {"time": 0, "positions": [1, 2, 3]}}, r"did you mean 'position'"),
    (BARE, {"columns": {"position": [1, 2, 3]}}, r"no time column.*rate"),
    (BARE, {"columns": {**PLACES, "time": 1}}, "given for position and for time.*counted from 0"),
    ("0,1,2,3,4,5\n", {"columns": {**PLACES, "effort": [3, 4, 5]}}, "given for position and for effort.*counted from 0"),
    ("stamp,A,B,C", {"columns": {"time": "stmp", "position": ["C", "B", "A"]}}, "did you mean 'stamp'"),
    ("Zeit,/a/pos,/b/pos,/c/pos", {"columns": WORDS}, r"no column 'Achse 1'; valid: .*holds for all logs of a command"),
    # units
    (BARE, {"columns": PLACES, "units": {"position": "N"}}, r"not of position"),
    (BARE, {"columns": PLACES, "units": {"position": "degs"}}, r"did you mean"),
    (HEADER, {"units": {"position": ["deg", "rad", "deg"]}}, "prismatic"),
    (HEADER, {"units": {"position": ["deg", "rad"]}}, r"2 units for 3 joints.*zeta, alpha, slide"),
    (EFFORTS, {"units": {"effort": ["N·m", "A", "N"]}}, r"several kinds.*got N·m, A, N,"),
    (HEADER.replace(",q_slide", ""), {"units": {"position": "mm"}}, r"'mm' does not fit a revolute joint", TURNING),
    (ALL_DEGREES, {}, r"column 'q_slide \[deg\]'.*prismatic joint 'slide', got deg, expected m;.*units: "),
]


@pytest.mark.parametrize(("text", "layout", "words", "other"), [(*case, None)[:4] for case in REFUSED])
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, robot: Robot, text, layout: dict, words: str, other) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(whole(text))
    with pytest.raises(UrdfIdentError, match=words) as caught:
        read_recording(path, other or robot, LogLayout(**layout))
    assert "\n" not in str(caught.value)
    assert "bad.csv" in str(caught.value) or "log." in str(caught.value)
    assert caught.value.remedy or isinstance(caught.value, UnitError) or "expected" in str(caught.value)


def test_a_column_that_is_there_twice_is_read_by_its_number_or_if_it_is_not_used(read: Read, robot: Robot) -> None:
    layout = LogLayout(columns={"time": 0, "position": [1, 4, 3]})
    log = read(f"{HEADER},q_alpha\n0,1,2,3,4\n1,1,2,3,4\n", layout)
    assert log.position[0, robot.joints.index("alpha")] == 4.0
    assert read(f"{HEADER},x,x\n0,1,2,3,4,0\n1,1,2,3,4,0\n").time[1] == 1.0


@pytest.mark.parametrize(
    "header",
    [
        "t,q_zeta [deg],q_alpha [rad],q_slide [mm],tau_zeta [Nm],tau_alpha [mNm],tau_slide [kN]",
        "time [s],zeta_pos_deg,alpha_pos_rad,slide_pos_mm,zeta_torque_Nm,alpha_torque_mNm,slide_torque [kN]",
        "t,Joint 1 pos [deg],Joint 2 Pos,Joint 3 Pos [mm],Joint 1 Torque,Joint 2 Torque [mNm],Joint 3 Torque [kN]",
        "t,q_axis1_deg,q_axis2_rad,q_axis3_mm,torque_axis1,torque_axis2_mNm,torque_axis3 [kN]",
    ],
)
def test_every_column_may_tell_its_own_unit(read: Read, robot: Robot, header: str) -> None:
    """The first unit of a quantity was taken for all of its columns."""
    log = read(header + "\n0,90,1,250,5,7000,0.02\n0.01,180,2,500,6,8000,0.03\n")
    places = [robot.joints.index(joint) for joint in ("zeta", "alpha", "slide")]
    np.testing.assert_allclose(log.position[:, places], [[np.pi / 2, 1.0, 0.25], [np.pi, 2.0, 0.5]])
    np.testing.assert_allclose(log.effort[:, places], [[5.0, 7.0, 20.0], [6.0, 8.0, 30.0]])
    assert log.effort_unit == "N·m"


def test_a_rate_counts_instead_of_the_headers_clock_and_both_are_said(read: Read) -> None:
    plain, rated = (read(table(), LogLayout(rate=rate)) for rate in (None, 50.0))
    np.testing.assert_allclose(rated.time, 0.02 * np.arange(len(plain)))
    np.testing.assert_array_equal(rated.position, plain.position)
    assert any("log.rate (50 Hz) is used instead of the clock in 't'" in note for note in rated.notes)
    named = read(table(), LogLayout(rate=50.0, columns={"time": "t"}))
    np.testing.assert_array_equal(named.time, plain.time)
    assert any("log.rate (50 Hz) is not used" in note for note in named.notes)


# ---- split logs and arguments -----------------------------------------------------------------


def split_layout() -> LogLayout:
    return LogLayout(files={"position": "*_pos.csv", "effort": "*_curr.csv"}, rate=100.0, units={"effort": "A"})


def make_split(folder: Path, stem: str, n: int = 5, shift: float = 0.0) -> None:
    np.savetxt(folder / f"{stem}_pos.csv", shift + np.arange(3.0 * n).reshape(n, 3), delimiter=",")
    np.savetxt(folder / f"{stem}_curr.csv", shift + 100 + np.arange(3.0 * n).reshape(n, 3), delimiter=",")


def test_split_log_by_stem(tmp_path: Path, robot: Robot) -> None:
    make_split(tmp_path, "run1")
    log = read_recording(tmp_path / "run1", robot, split_layout())
    np.testing.assert_array_equal(log.position[0], [1, 2, 0])
    np.testing.assert_array_equal(log.effort[0], [101, 102, 100])
    assert log.effort_unit == "A"
    assert log.name == "run1"


@pytest.mark.parametrize("how", ["stem", "folder", "glob of stems", "glob of files", "part"])
def test_split_logs_from_any_argument(tmp_path: Path, how: str) -> None:
    make_split(tmp_path, "run1")
    make_split(tmp_path, "run2", shift=7.0)
    arguments = {
        "stem": [tmp_path / "run1", tmp_path / "run2"],
        "folder": [tmp_path],
        "glob of stems": [tmp_path / "run*"],
        "glob of files": [tmp_path / "*_pos.csv"],
        "part": [tmp_path / "run2_curr.csv", tmp_path / "run1_pos.csv"],
    }[how]
    found = expand_logs(arguments, split_layout())
    assert [source.name for source in found] == ["run1", "run2"]
    assert dict(found[0].files)["effort"].endswith("run1_curr.csv")


def test_split_log_with_a_missing_part(tmp_path: Path) -> None:
    make_split(tmp_path, "run1")
    (tmp_path / "run1_curr.csv").unlink()
    with pytest.raises(MissingFileError, match="effort file of a split log is missing"):
        expand_logs([tmp_path / "run1"], split_layout())
    with pytest.raises(MissingFileError, match="no split log"):
        expand_logs([tmp_path / "other"], split_layout())


def test_arguments_are_sorted_and_taken_once(tmp_path: Path) -> None:
    for k, name in enumerate(("b.csv", "a.csv", "c.csv")):
        write(tmp_path, f"t\n{k}\n", name)
    found = expand_logs([tmp_path / "c.csv", tmp_path, str(tmp_path / "[ab].csv")])
    assert [source.name for source in found] == ["a", "b", "c"]


def test_same_content_twice_names_both(tmp_path: Path, robot: Robot) -> None:
    write(tmp_path, table(), "first.csv")
    write(tmp_path, table(), "second.csv")
    logs = expand_logs([tmp_path])
    with pytest.raises(LogError, match=r"second\.csv.*given twice, got the content of first; remove one"):
        read_readable(logs, robot, skip=False)
    read, left_out = read_readable(logs, robot)
    assert [log.name for log in read] == ["first"]
    assert [log.name for log in left_out] == ["second"]


def test_missing_arguments_say_what_is_there(tmp_path: Path) -> None:
    write(tmp_path, table(), "run_01.csv")
    with pytest.raises(MissingFileError, match=r"did you mean 'run_01\.csv'"):
        expand_logs([tmp_path / "run_1.csv"])
    with pytest.raises(MissingFileError, match="no log matches"):
        expand_logs([str(tmp_path / "*.tsv")])
    with pytest.raises(MissingFileError, match="does not exist"):
        expand_logs([tmp_path / "nowhere" / "run.csv"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no log"):
        expand_logs([tmp_path / "empty"])


# ---- bad files ---------------------------------------------------------------------------------


def test_links_to_missing_files_are_reported_and_folders_below_are_searched(tmp_path: Path, robot: Robot) -> None:
    write(tmp_path, table(), "a.csv")
    (tmp_path / "b.csv").symlink_to("nowhere.csv")
    for argument in (tmp_path, tmp_path / "*.csv"):
        with pytest.raises(MissingFileError, match=r"b\.csv: log not found"):
            read_readable(expand_logs([argument]), robot, skip=False)[0]
    (tmp_path / "day=1" / "part=2").mkdir(parents=True)
    write(tmp_path / "day=1" / "part=2", table(), "c.csv")
    assert [log.name for log in expand_logs([tmp_path / "day=*" / "**" / "*.csv"])] == ["c"]


def test_all_logs_that_cannot_be_read_are_named_and_may_be_left_out(tmp_path: Path, robot: Robot) -> None:
    texts = {"good": table(), "torn": "", "other": table(5), "words": "no,log\n1,2\n"}
    paths = [write(tmp_path, text, f"{name}.csv") for name, text in texts.items()]
    with pytest.raises(LogError, match=r"torn\.csv.*empty.*also refused: words$") as caught:
        read_readable(paths, robot, skip=False)[0]
    assert list(caught.value.logs) == ["torn", "words"]
    logs, left_out = read_readable(paths, robot)
    assert [log.name for log in logs] == ["good", "other"]
    assert [(log.name, log.path) for log in left_out] == [("torn", str(paths[1])), ("words", str(paths[3]))]
    with pytest.raises(LogError, match="empty"):
        read_readable(paths[1:2], robot)


def test_a_log_that_grows_while_it_is_read(tmp_path: Path, robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    path, take = write(tmp_path, table()), read.recording_fields

    def growing(*given):
        found = take(*given)
        with path.open("a") as stream:
            stream.write("0.04,5,14,104\n")
        return found

    assert len(read_recording(path, robot)) == 4
    monkeypatch.setattr(read, "recording_fields", growing)
    with pytest.raises(LogError, match=r"run\.csv: the log changed while it was read, got 4 rows so far"):
        read_recording(path, robot)


def test_bad_rows_survive_as_nan_with_their_row_number(read: Read) -> None:
    lines = table(3000).splitlines()
    lines[10] = "0.1,1,broken,3"
    lines[20] = "0.2,1"  # cut short
    lines[30] = "0.3,1,2,3,0.31,1,2,3"  # two rows run together
    lines[40] = "0.4,,2,3"
    lines[50] = "0.5,1e300,2,3"
    log = read(lines)
    assert len(log) == 3000
    assert log.rows[9] == 11
    np.testing.assert_array_equal(np.isnan(log.position[9]), [True, False, False])
    assert np.isnan(log.position[19]).all()
    assert np.isnan(log.time[19])
    assert np.isnan(log.position[29]).all()
    np.testing.assert_array_equal(np.isnan(log.position[39]), [False, False, True])
    assert log.position[49, 2] == 1e300
    assert np.isfinite(np.delete(log.position, [9, 19, 29, 39], axis=0)).all()
