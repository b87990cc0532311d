"""Logs that are odd and right: they read as the plain table does, or the message names what is wrong with them."""

import shlex
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from logs import fourier
from test_log_formats import NAMES, ROWS, Read, check, csv_text, default_columns, samples, states, write_bag

from urdf_ident import DynamicModel, Recording, Robot, identify, read_recording
from urdf_ident.errors import LogError
from urdf_ident.logs.columns.layout import LogLayout

from conftest import arm_urdf  # isort: skip

ORDER = [2, 0, 1]


def rows(separator: str = ",", decimal: str = ".", quote: str = "") -> list[str]:
    table = zip(*default_columns().values(), strict=True)
    return [separator.join(f"{quote}{value:.17g}{quote}".replace(".", decimal) for value in row) for row in table]


HEADER = ",".join(default_columns())
WITH_DEGREES = HEADER.replace("q_j1", "q_j1 [°]")


@pytest.mark.parametrize(
    "data",
    [
        csv_text().encode("utf-16"),
        (csv_text(HEADER + ",Öl").replace("\n", ",1\n").replace("Öl,1", "Öl")).encode("cp1252"),
        "\n".join(["sep=;", HEADER.replace(",", ";"), *rows(";", ",")]).encode(),
        "\n".join([HEADER, *rows(",", ",", '"')]).encode(),
        "\n".join([HEADER.replace(",", "|"), *rows("|")]).encode(),
        "\n".join(["Robot: arm 7", "Date: 2024-05-01", "Rate, 100, Hz", "", HEADER, *rows()]).encode(),
        "\n".join([HEADER, "s,rad,rad,rad,rad/s,rad/s,rad/s,Nm,Nm,Nm", *rows()]).encode(),
        "\n".join(["Log of arm 7", HEADER, "[s]," + "-," * 8 + "(Nm)", *rows()]).encode(),
        "\n\n".join([HEADER, *rows()]).encode(),
        "\r\n\r\n".join([HEADER, *rows()]).encode(),
        csv_text().replace("-", "\N{MINUS SIGN}").encode(),  # of other locales
    ],
    ids=[
        *("utf-16", "latin", "sep-line", "quoted-decimal-comma", "bars", "preamble", "units-below", "preamble-and-units"),
        *("blank-lines", "blank-lines-of-windows", "minus-sign"),
    ],
)
def test_text_of_other_programs(read: Read, data: bytes) -> None:
    check(read(data))


def test_units_below_the_header_count_and_project_files_use_the_names_as_they_stand(read: Read) -> None:
    _, q, _, tau = samples()
    lines = [HEADER, "ms,deg,deg,deg,-,-,-,Nm,Nm,Nm", *rows()]
    log = read(lines)
    np.testing.assert_allclose(log.position, np.deg2rad(q))
    np.testing.assert_allclose(log.time, np.arange(ROWS) * 1e-5)
    named = read(lines, LogLayout(columns={"effort": ["tau_j2", "tau_j1", "tau_j3"]}))
    np.testing.assert_allclose(named.effort, tau[:, [1, 0, 2]])
    assert log.rows[0] == 3


DATES = [
    "{:%d.%m.%Y %H:%M:%S.%f}",
    "{:%Y/%m/%d %H:%M:%S.%f}",
    "{:%H:%M:%S.%f}",
    "{:%H:%M:%S,%f}",
    "{:%m/%d/%Y %H:%M:%S.%f}",
    "{:%d/%m/%Y %H:%M:%S.%f}",
    "{0.month}/{0.day}/{0:%Y %I:%M:%S.%f %p}",
    "{:%d-%b-%Y %H:%M:%S.%f}",
]


@pytest.mark.parametrize("form", DATES)
@pytest.mark.parametrize("begin", ["12:00:59.7", "23:59:59.7"], ids=["noon", "midnight"])
def test_dates_and_times_of_day(read: Read, form: str, begin: str) -> None:
    start = datetime.fromisoformat(f"2024-05-12T{begin}00000")
    text = [f'"{form.format(start + timedelta(seconds=float(t)))}"' for t in samples()[0]]
    log = read([HEADER, *(f"{stamp},{line.split(',', 1)[1]}" for stamp, line in zip(text, rows(), strict=True))])
    if begin.startswith("12") or "Y" in form:
        check(log)
    else:
        assert np.diff(log.time).min() < -86000  # without a day midnight is a step back, which is refused later


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([line.replace(".", ",") for line in rows()], r"header does not fit the rows.*points, or semicolons"),
        ([line + " Nm" for line in rows()], r"column 'tau_j3' holds no numbers, got '.* Nm'"),
        (
            ["time,name,position", *(f"{k},\"['j1', 'j2']\",\"[0.1, {k}]\"" for k in range(9))],
            r"cells of column 'position' hold lists, got '\[0.1, 0\]'.*each element in a column",
        ),
    ],
    ids=["decimal-commas-between-commas", "units-in-cells", "lists-in-cells"],
)
def test_cells_that_are_no_numbers_are_named(read: Read, lines: list[str], words: str) -> None:
    with pytest.raises(LogError, match=words):
        read(lines if lines[0].startswith("time") else [HEADER, *lines])


@pytest.mark.parametrize(
    ("mark", "decimal", "separator", "step", "form"),
    [
        (",", ".", ",", 10, '"{}.5"'),
        (",", ".", ",", 10, '"{}"'),
        (";", ",", ".", 10, '"{},5"'),
        (";", ",", " ", 10, '"{},5"'),
        (",", ".", "'", 10, '"{}.5"'),
        # whole mN·m of a German locale, 11.773, became 11.773 in place of 11773 beside columns with decimal commas
        (";", ",", ".", 10, "{}"),
        (",", ".", ".", 900_000, "{}"),
    ],
)
def test_thousands_separators_are_named(read: Read, mark: str, decimal: str, separator: str, step: int, form: str) -> None:
    lines = []
    for k, row in enumerate(zip(*default_columns().values(), strict=True)):
        plain = [f"{value:.17g}".replace(".", decimal) for value in row[:-1]]
        lines.append(mark.join([*plain, form.format(f"{900 + step * k:,d}".replace(",", separator))]))
    with pytest.raises(LogError, match=r"column 'tau_j3' has numbers with thousands separators.*without thousands separators"):
        read([HEADER.replace(",", mark), *lines])


@pytest.mark.parametrize("exchanged", [False, True])
def test_a_second_header_must_be_the_first(read: Read, exchanged: bool) -> None:
    """Two joined logs: the same header again is left out; with other units or another order the rows below are not the same."""
    names = HEADER.split(",")
    again = ",".join([names[0], names[2], names[1], *names[3:]]) if exchanged else WITH_DEGREES
    assert len(read([HEADER, *rows(), HEADER, *rows()])) == 2 * ROWS + 1
    with pytest.raises(LogError, match=r"two tables, .*got .* in place of 'q_j1'.*split the file at the second header"):
        read([HEADER, *rows(), again, *rows()])


@pytest.mark.parametrize(("name", "column", "factor"), [("q_j1 [mdeg]", 1, np.pi / 180e3), ("tau_j1 [N.mm]", 7, 1e-3)])
def test_small_units_in_the_header(read: Read, name: str, column: int, factor: float) -> None:
    names, table = HEADER.split(","), [line.split(",") for line in rows()]
    names[column] = name
    lines = [[f"{float(cell) / factor:.17g}" if k == column else cell for k, cell in enumerate(line)] for line in table]
    check(read([",".join(line) for line in (names, *lines)]))


@pytest.mark.parametrize("which", ["q_j1", "q_j", "tau_j"])
@pytest.mark.parametrize("plain", [False, True], ids=["named", "numbered"])
def test_a_unit_that_nobody_knows_is_named(read: Read, which: str, plain: bool) -> None:
    names = [f"{name} (furlong)" if name.startswith(which) else name for name in HEADER.split(",")]
    first = next(name for name in names if "furlong" in name)
    with pytest.raises(LogError) as error:
        read([",".join(names).replace("_j", "" if plain else "_j"), *rows()])
    assert f"column '{first.replace('_j', '' if plain else '_j')}': unknown unit, got 'furlong', expected" in str(error.value)


def test_names_of_joints_in_the_project_file_win_over_equal_names_in_the_log(read: Read) -> None:
    _, q, v, tau = samples()
    log = read([HEADER, *rows()], LogLayout(joints={"j1": "j2", "j2": "j1"}))
    for values, known in ((log.position, q), (log.velocity, v), (log.effort, tau)):
        np.testing.assert_allclose(values, known[:, [1, 0, 2]])
    elsewhere = HEADER.replace("_j3", "_elbow") + ",q_j3,v_j3,tau_j3"
    check(read([elsewhere, *(line + ",7,8,9" for line in rows())], LogLayout(joints={"j3": "elbow"})))
    check(read([HEADER, *rows()], LogLayout(joints={"j3": "elbow"})))  # another log has this name


def test_the_command_that_infers_columns_names_the_files_for_a_shell(tmp_path: Path) -> None:
    (tmp_path / "my run.csv").write_text("Zeit,Achse 1,Achse 2,Achse 3\n0,1,2,3\n1,1,2,3\n")
    (tmp_path / "arm.urdf").write_text(arm_urdf("zyx"))
    with pytest.raises(LogError) as error:
        read_recording(tmp_path / "my run.csv", Robot.from_urdf(tmp_path / "arm.urdf"))
    command = shlex.split(str(error.value).split("`")[-2])
    assert command[:5] == ["urdf-ident", "inspect", str(tmp_path / "my run.csv"), "--robot", str(tmp_path / "arm.urdf")]


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_numbers_and_dates_that_are_stored_as_text(tmp_path: Path, robot: Robot, kind: str) -> None:
    start = np.datetime64("2024-05-01T12:00:00", "ns")
    columns: dict[str, list[str]] = {}
    for k, (name, values) in enumerate(default_columns().items()):
        columns[name] = [f"{value:.17g}".replace(".", "," if k % 3 == 1 else ".") for value in values]
    columns["t"] = [str(start + np.timedelta64(round(1e9 * t), "ns")) for t in samples()[0]]
    columns["remark"] = ["none"] * ROWS
    path = tmp_path / f"run.{kind}"
    if kind == "npz":
        np.savez(path, **{name: np.array(cells) for name, cells in columns.items()})
    else:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        table = {name: pa.array([*cells[:-1], None]) for name, cells in columns.items()}  # the last row is missing
        table["q_j2"] = table["q_j2"].dictionary_encode()
        pq.write_table(pa.table(table), path)
    log = read_recording(path, robot)
    if kind == "parquet":
        assert np.isnan(log.position[-1]).all()
        assert any("remark" in note for note in log.notes)
    t, q, _, tau = samples()
    np.testing.assert_allclose((log.time - log.time[0])[: ROWS - 1], t[: ROWS - 1], atol=1e-6)
    np.testing.assert_array_equal(log.position[: ROWS - 1], q[: ROWS - 1])
    np.testing.assert_array_equal(log.effort[: ROWS - 1], tau[: ROWS - 1])


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        ("time,joint,position,effort", "{t},{joint},0.5,1.5", r"columns='joint', values=\['position', 'effort'\]"),
        ("time,joint,position,effort", "{t},{number},0.5,1.5", "columns joint, position, effort"),
        ("_time,_field,_value", "{t},q_{joint},0.5", "columns='_field', values='_value'"),
        ("time;joint_name;signal;value", "{t};{joint};effort;1.5", r"columns=\['joint_name', 'signal'\], values='value'"),
    ],
)
def test_a_row_for_every_joint_is_named_with_what_turns_it_round(read: Read, header: str, row: str, words: str) -> None:
    lines = [row.format(t=0.01 * k, joint=joint, number=j) for k in range(30) for j, joint in enumerate(NAMES)]
    with pytest.raises(LogError, match=f"a row for every joint or signal.*{words}"):
        read([header, *lines])


@pytest.mark.parametrize("spelling", ["field.{}{}", "{}[{}]", "/joint_states/{}[{}]", "{}_{}"])
def test_columns_that_name_the_joints_of_numbered_ones(read: Read, spelling: str) -> None:
    """``rostopic echo -p`` and the like: the order of a JointState is its own, and stands in columns of text."""
    t, q, v, tau = samples()
    names = ["%time" if "field" in spelling else "t"]
    for word in ("name", "position", "velocity", "effort"):
        names += [spelling.format(word, k) for k in range(3)]
    clock = [f"{round(1e9 * time)}" if "field" in spelling else f"{time:.9g}" for time in t]
    texts = ",".join(NAMES[k] for k in ORDER)
    numbers = [",".join(f"{value:.17g}" for value in row[ORDER]) for block in (q, v, tau) for row in block]
    lines = [f"{clock[k]},{texts},{numbers[k]},{numbers[ROWS + k]},{numbers[2 * ROWS + k]}" for k in range(ROWS)]
    text = "\n".join([",".join(names), *lines])
    check(read(text))
    with pytest.raises(LogError, match=r"joints change their order.*j1 and j3.*record a bag"):
        read(text.replace(texts, ",".join(NAMES), 1))


def test_lists_of_joints_beside_arrays(tmp_path: Path, robot: Robot) -> None:
    from scipy.io import savemat

    t, q, v, tau = samples()
    own = [NAMES[k] for k in ORDER]
    run = {"t": t, "q": q[:, ORDER], "dq": v[:, ORDER], "tau": tau[:, ORDER]}
    for texts in (np.array(own), np.array(own, dtype="S"), np.array(", ".join(own)), np.array(str(own).encode())):
        np.savez(tmp_path / "a.npz", **run, joint_names=texts)
        check(read_recording(tmp_path / "a.npz", robot))
    np.savez(tmp_path / "b.npz", **run, joint_names=np.array(own[:-1]))
    notes = read_recording(tmp_path / "b.npz", robot).notes
    assert f"joint names that do not belong to the columns are not used: {', '.join(own[:-1])}" in notes
    # project files name the columns as they stand in the file
    layout = LogLayout(columns={"effort": ["tau_0", "tau_1", "tau_2"]})
    np.testing.assert_allclose(read_recording(tmp_path / "a.npz", robot, layout).effort, tau[:, ORDER])
    for name, texts in (("cells", np.array(own, dtype=object)), ("letters", np.array(own))):
        savemat(tmp_path / f"{name}.mat", {"run": {**run, "joints": texts}})
        check(read_recording(tmp_path / f"{name}.mat", robot))
    h5py = pytest.importorskip("h5py")
    for name in ("data", "attribute", "group", "text"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            group = file.create_group("run")
            for key, value in run.items():
                group[key] = value
            if name == "data":
                group["names"] = own
            else:
                (group["q"] if name == "attribute" else group).attrs["joint_names"] = ";".join(own) if name == "text" else own
        check(read_recording(tmp_path / f"{name}.h5", robot))


def test_fields_of_structs_and_rows_that_list_their_joints(tmp_path: Path, robot: Robot) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    t, q, v, tau = samples()
    blocks = {"position": q, "velocity": v, "effort": tau}
    by_joint = {
        joint: pa.StructArray.from_arrays([pa.array(block[:, k]) for block in blocks.values()], names=list(blocks))
        for k, joint in enumerate(NAMES)
    }
    by_quantity = {
        word: pa.StructArray.from_arrays([pa.array(block[:, k]) for k in range(3)], names=list(NAMES))
        for word, block in blocks.items()
    }
    lists = {word: pa.array(list(block[:, ORDER])) for word, block in blocks.items()}
    named = {"name": pa.array([[NAMES[k] for k in ORDER]] * ROWS), **lists}
    state = pa.StructArray.from_arrays(list(named.values()), names=list(named))
    for number, columns in enumerate((by_joint, by_quantity, named, {"state": state})):
        found = pa.table({"t": t, **columns})
        parquet.write_table(found, tmp_path / f"{number}.parquet", row_group_size=25)
        check(read_recording(tmp_path / f"{number}.parquet", robot))
        feather.write_feather(found, str(tmp_path / f"{number}.feather"))
        check(read_recording(tmp_path / f"{number}.feather", robot))
    names = [[NAMES[k] for k in (ORDER if row < ROWS - 1 else (0, 1, 2))] for row in range(ROWS)]
    parquet.write_table(pa.table({"t": t, **lists, "name": names}), tmp_path / "changes.parquet")
    with pytest.raises(LogError, match=r"joints change their order.*j3, j1, j2 in every row"):
        read_recording(tmp_path / "changes.parquet", robot)


def test_files_of_several_runs_say_which_is_read(tmp_path: Path, robot: Robot) -> None:
    t, q, v, tau = samples()
    run = {"t": t, "q": q, "v": v, "tau": tau}
    second = {"t": t, "q": 2 * q, "tau": tau}
    parts = {f"{group}/{key}": value for group, own in (("a", run), ("b", second)) for key, value in own.items()}
    np.savez(tmp_path / "runs.npz", **parts)
    log = read_recording(tmp_path / "runs.npz", robot)
    check(log)
    assert any("holds 2 runs: a is read, b not" in note and "topic: b" in note for note in log.notes)
    np.testing.assert_allclose(read_recording(tmp_path / "runs.npz", robot, LogLayout(topic="b")).position, 2 * q)
    # the first run lacks efforts: those of another run are none of its own
    np.savez(tmp_path / "mixed.npz", **{key: value for key, value in parts.items() if key not in ("b/q", "b/t")})
    check(read_recording(tmp_path / "mixed.npz", robot))
    # one run in two groups with a clock each
    both = {"state/t": t, "state/q": q, "state/v": v, "sensor/t": t, "sensor/tau": tau}
    np.savez(tmp_path / "groups.npz", **both)
    check(read_recording(tmp_path / "groups.npz", robot))
    asked = {"command/t": t, "command/q": q + 1, "measured/t": t, "measured/q": q, "measured/v": v, "measured/tau": tau}
    np.savez(tmp_path / "asked.npz", **asked)
    check(read_recording(tmp_path / "asked.npz", robot))


def test_what_was_asked_for_is_not_taken_for_a_measurement(tmp_path: Path, robot: Robot) -> None:
    t, q, v, tau = samples()
    columns: dict[str, np.ndarray] = {"t": t}
    for group, shift in (("command", 1.0), ("state", 0.0)):
        for word, block in (("position", q + shift), ("velocity", v + shift), ("effort", tau + shift)):
            columns.update({f"{group}/{joint}/{word}": block[:, k] for k, joint in enumerate(NAMES)})
    path = tmp_path / "run.csv"
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    check(read_recording(path, robot))
    often = np.arange(2 * ROWS) * 0.005
    twice = {key: np.repeat(block, 2, axis=0) for key, block in (("q", q + 1), ("v", v), ("tau", tau * 1.3))}
    check(read_recording(write_bag(tmp_path, "mcap", [("/joint_commands", list(NAMES), often, twice), states()]), robot))


@pytest.mark.parametrize("kind", ["stands", "whole seconds", "repeated"])
def test_stamps_that_stand_while_the_joints_move(tmp_path: Path, robot: Robot, kind: str) -> None:
    told = {"stands": lambda _: 10**18, "whole seconds": lambda ns: ns // 10**9 * 10**9, "repeated": lambda ns: ns}[kind]
    log = read_recording(write_bag(tmp_path, "mcap", [states()] * (2 if kind == "repeated" else 1), told), robot)
    said = any("header stamps do not change" in note for note in log.notes)
    assert said == (kind != "repeated")
    if kind == "repeated":
        assert (np.diff(log.time)[::2] == 0).all()
    else:
        check(log)


def test_bags_that_were_cut_short_name_what_saves_them(tmp_path: Path, robot: Robot) -> None:
    for kind, tool in (("mcap", "mcap recover"), ("sqlite3", r"sqlite3 .* \.recover"), ("ros1", "rosbag reindex")):
        path = write_bag(tmp_path, kind, [states()])
        file = path if kind == "ros1" else next(p for p in path.iterdir() if p.suffix in (".db3", ".mcap"))
        cut = tmp_path / f"cut{file.suffix}"
        cut.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
        with pytest.raises(LogError, match=f"broken.*{tool}"):
            read_recording(cut, robot)


def test_a_bag_with_damaged_bytes_says_how_much_of_it_was_read(tmp_path: Path, robot: Robot) -> None:
    """The reader stops at the bytes without an error: half of the log was missing, and nothing said so."""
    path = write_bag(tmp_path, "mcap", [states()])
    whole = read_recording(path, robot)
    file = next(path.glob("*.mcap"))
    data = file.read_bytes()
    middle = len(data) // 2
    file.write_bytes(data[:middle] + bytes(100) + data[middle + 100 :])
    half = read_recording(path, robot)
    assert len(half) < 0.8 * len(whole)
    assert [note for note in half.notes if f"declares {ROWS} messages" in note]
    assert not [note for note in whole.notes if "declares" in note]
    file.write_bytes(data[:middle] + np.random.default_rng(0).bytes(400) + data[middle + 400 :])
    with pytest.raises(LogError, match="the bag is broken"):  # no topic had joint positions, although it was named
        read_recording(path, robot)


def test_archives_and_names_that_are_something_else(tmp_path: Path, robot: Robot) -> None:
    import zipfile

    for name, member, words in (("a.zip", "run.csv", "unpack it"), ("a.xlsx", "xl/workbook.xml", "save the sheet as CSV")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(member, "t,q")
        with pytest.raises(LogError, match=words):
            read_recording(tmp_path / name, robot)
    (tmp_path / "run.mat").write_text(csv_text())
    with pytest.raises(LogError, match="no MATLAB file, whatever its name says"):
        read_recording(tmp_path / "run.mat", robot)


def test_arrays_of_dates_and_of_objects(tmp_path: Path, robot: Robot) -> None:
    t, q, v, tau = samples()
    clock = np.datetime64("2024-05-01") + np.round(t * 1e9).astype("timedelta64[ns]")
    np.savez(tmp_path / "a.npz", t=clock, qpos=q, qvel=v, tau=tau, words=np.array(["a", None], dtype=object))
    log = read_recording(tmp_path / "a.npz", robot)
    check(log)
    assert any("Python objects are never loaded: words" in note for note in log.notes)


@pytest.mark.parametrize("before", [0, 1])
def test_a_log_without_efforts_is_refused_in_one_line_even_by_force(robot: Robot, before: int) -> None:
    """Alone, or after a log with efforts; it was an internal error where no log had any."""
    t, q, v, _ = fourier(3, 6.0, 100.0, 0)
    logs = [Recording.from_arrays(t, q, 0.1 * v, joints=robot, name="full")] * before
    logs.append(Recording.from_arrays(t, -q, joints=robot, name="bare"))
    with pytest.raises(LogError, match="bare: no torque or current in the log; name the effort columns"):
        identify(DynamicModel(robot, friction="none"), logs, force=True)
