"""Logs in other formats than CSV: what each library of the format writes is read as the same recording."""

import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident import Recording, Robot, expand_logs, read_recording
from urdf_ident.errors import LogError, MissingExtraError, MissingFileError, ShapeError
from urdf_ident.logs.columns.layout import LogLayout
from urdf_ident.signals.quality.report import assess

ROWS = 60
Read = Callable[..., Recording]
NAMES = ("j1", "j2", "j3")


def samples(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Time (N,), positions, velocities and efforts (N, 3)."""
    generator = np.random.default_rng(seed)
    t = np.arange(ROWS) * 0.01
    return t, *(generator.standard_normal((ROWS, 3)) for _ in range(3))


def default_columns(seed: int = 0, prefixes: tuple[str, ...] = ("q", "v", "tau")) -> dict[str, np.ndarray]:
    t, *blocks = samples(seed)
    named = {
        f"{prefix}_{joint}": block[:, k]
        for prefix, block in zip(prefixes, blocks, strict=True)
        for k, joint in enumerate(NAMES)
    }
    return {"t": t, **named}


def check(log, seed: int = 0) -> None:
    t, q, v, tau = samples(seed)
    np.testing.assert_allclose(log.time - log.time[0], t, atol=1e-7)
    np.testing.assert_allclose(log.position, q)
    np.testing.assert_allclose(log.velocity, v)
    np.testing.assert_allclose(log.effort, tau)
    assert len(log.sha256) == 64


def csv_text(header: str | None = None) -> str:
    columns = default_columns()
    rows = [",".join(f"{value:.17g}" for value in row) for row in zip(*columns.values(), strict=True)]
    return "\n".join([header or ",".join(columns), *rows]) + "\n"


# ---- text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compressed_csv(tmp_path: Path, robot: Robot, suffix: str) -> None:
    path, data = tmp_path / f"run.csv{suffix}", csv_text().encode()
    if suffix == ".zst":
        pa = pytest.importorskip("pyarrow")
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(data)
    else:
        path.write_bytes({".gz": gzip.compress, ".xz": lzma.compress}[suffix](data))
    check(read_recording(path, robot))
    assert [source.name for source in expand_logs([tmp_path])] == ["run"]
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(LogError, match=r"(gzip|xz|zstd) file is broken"):
        read_recording(path, robot)


def test_archive_that_unpacks_to_far_more_is_refused(tmp_path: Path, robot: Robot, monkeypatch) -> None:
    monkeypatch.setattr("urdf_ident.files.sizes.UNPACKED_FREE", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as stream:
        stream.write(csv_text().encode())
        for _ in range(3):
            stream.write(b"0,0,0,0,0,0,0,0,0,0\n" * 52_000)
    with pytest.raises(LogError, match="unpacks to far more"):
        read_recording(path, robot)


def test_quoted_numbers_and_iso_time_stamps(read: Read) -> None:
    t, *blocks = samples()
    lines = ["time," + ",".join(f'"{p}_{j}"' for p in ("q", "v", "tau") for j in NAMES)]
    for k, second in enumerate(t):
        lines.append(
            f"2024-02-29T23:59:59.{round(second * 1e6):06d}+01:00,"
            + ",".join(f'"{x:.17g}"' for block in blocks for x in block[k])
        )
    check(read(lines))
    lines[20] = lines[20].replace('"', "'", 3)  # a row that needs the slow way
    lines[30] = "2024-13-45" + lines[30][10:]
    log = read(lines)
    assert np.isnan(log.time[29])
    np.testing.assert_allclose(np.delete(log.time, 29), np.delete(t, 29), atol=1e-6)


@pytest.mark.parametrize(
    "header",
    [
        "timestamp," + ",".join(f"{w}_{k}" for w in ("actual_q", "actual_qd", "tau_J") for k in range(3)),
        "time," + ",".join(f"{w}[{k}]" for w in ("q", "dq", "tau_J") for k in range(3)),
        "__time," + ",".join(f"/joint_states/{j}/{w}" for w in ("position", "velocity", "effort") for j in NAMES),
        "timestamp," + ",".join(f"{j}.{w}" for w in ("pos", "vel", "torque") for j in NAMES),
        "t [s]," + ",".join(f"{w}_{j} [{u}]" for w, u in (("q", "rad"), ("v", "rad/s"), ("tau", "Nm")) for j in NAMES),
        "header.stamp," + ",".join(f"field.{w}{k}" for w in ("position", "velocity", "effort") for k in range(3)),
    ],
)
def test_headers_of_other_programs(read: Read, header: str) -> None:
    check(read(csv_text(header)))


def test_ur_controller_columns_are_currents_with_their_targets(read: Read) -> None:
    words = ("target_q", "actual_q", "actual_qd", "actual_current", "target_current", "target_moment")
    header = ",".join(["timestamp", *(f"{word}_{k}" for word in words for k in range(3))])
    row = ",".join(str(value) for value in range(19))
    log = read([header, row, row])
    assert log.effort_unit == "A"
    np.testing.assert_array_equal(log.position[0], [4, 5, 6])
    np.testing.assert_array_equal(log.effort[0], [10, 11, 12])
    np.testing.assert_array_equal(log.effort_target[0], [13, 14, 15])
    np.testing.assert_array_equal(log.torque_target[0], [16, 17, 18])
    np.testing.assert_array_equal(log.position_target[0], [1, 2, 3])


# ---- joint names -------------------------------------------------------------------------------------


def renamed(names: list[str]) -> str:
    return csv_text(",".join(["t", *(f"{p}_{name}" for p in ("q", "v", "tau") for name in names)]))


def test_names_of_the_same_robot_are_matched_and_said(read: Read) -> None:
    log = read(renamed(["left_joint_03", "left_joint_01", "left_joint_02"]))
    _, q, _, _ = samples()
    np.testing.assert_allclose(log.position, q[:, [1, 2, 0]])
    assert any("left_joint_01 for j1" in note for note in log.notes)


def test_a_locked_joint_of_another_spelling_is_read_too(tmp_path: Path) -> None:
    """Its position is compared with that at which the project locks it."""
    robot = Robot.from_urdf(arm_urdf("zyx"), lock={"j2": 0.1})
    _, q, _, _ = samples()
    (tmp_path / "run.csv").write_text(renamed(["left_j1", "left_j2", "left_j3"]))
    log = read_recording(tmp_path / "run.csv", robot)
    low, high = log.locked["j2"]
    assert q[:, 1].min() <= low <= high <= q[:, 1].max()


@pytest.mark.parametrize("names", [["a1", "a2", "a4"], ["shoulder", "elbow", "wrist"]])
def test_names_of_another_robot_are_refused(read: Read, names: list[str]) -> None:
    with pytest.raises(LogError, match=r"names no joint|no column holds"):
        read(renamed(names))


def test_two_arms_in_one_log_need_a_word(read: Read) -> None:
    names = [f"{side}_j{k}" for side in ("left", "right") for k in (1, 2, 3)]
    text = ",".join(["t", *(f"q_{name}" for name in names)]) + "\n" + "0,1,2,3,4,5,6\n" * 3
    with pytest.raises(LogError, match=r"several ways.*left_j1.*right_j1.*log: \{joints"):
        read(text)
    log = read(text, LogLayout(joints={f"j{k}": f"right_j{k}" for k in (1, 2, 3)}))
    np.testing.assert_array_equal(log.position[0], [4, 5, 6])
    with pytest.raises(LogError, match="did you mean 'right_j1'"):
        read(text, LogLayout(joints={"j1": "rigt_j1"}))


# ---- arrays -----------------------------------------------------------------------------------------

SHORTENED = """
import os, sys
import numpy as np
import pyarrow as pa
from urdf_ident.logs.formats.parquet import _batches
from urdf_ident.logs.formats.variables import open_numpy

path = sys.argv[1]
values = np.random.default_rng(0).random((50_000, 4))
try:
    if path.endswith(".npy"):
        np.save(path, values)
        opened = open_numpy(path)
        os.truncate(path, 20_000)
        print(np.array_equal(opened.read(range(4)), values))
    else:
        table = pa.table({f"c{k}": values[:, k] for k in range(4)})
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=5000)
        batches = _batches(path, "arrow", ["c0"])
        next(batches)
        os.truncate(path, 20_000)
        print(sum(batch.num_rows for batch in batches))
except (ValueError, OSError) as error:
    print(error)
"""


@pytest.mark.parametrize(("name", "said"), [("a.npy", "true"), ("a.arrow", "expected to be able to read")])
def test_a_file_shortened_while_it_is_read_does_not_end_the_process(tmp_path: Path, name: str, said: str) -> None:
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-c", SHORTENED, str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert said.lower() in done.stdout.lower()


def test_parquet_arrow_and_feather(tmp_path: Path, robot: Robot) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    table = pa.table({**default_columns(), "comment": ["text"] * ROWS})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=17)
    feather.write_feather(table, tmp_path / "b.feather")
    with pa.ipc.new_stream(str(tmp_path / "d.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=13)
    for name in ("a.parquet", "b.feather", "d.arrow"):
        log = read_recording(tmp_path / name, robot)
        check(log)
        assert any("comment" in note for note in log.notes)


def test_parquet_of_lists_and_of_time_stamps(tmp_path: Path, robot: Robot) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    t, q, v, tau = samples()
    stamps = pa.array(np.round(t * 1e9).astype("datetime64[ns]") + np.timedelta64(1_700_000_000, "s"))
    lists = {name: pa.array(list(block)) for name, block in (("position", q), ("velocity", v), ("effort", tau))}
    pq.write_table(pa.table({"timestamp": stamps, **lists}), tmp_path / "run.parquet")
    log = read_recording(tmp_path / "run.parquet", robot)
    np.testing.assert_allclose(log.time - log.time[0], t, atol=1e-6)
    np.testing.assert_array_equal(log.effort, tau)
    lists["effort"] = pa.array([row[: 2 + (k < 30)] for k, row in enumerate(tau)])  # a joint goes missing half way
    pq.write_table(pa.table({"timestamp": stamps, **lists}), tmp_path / "run.parquet")
    with pytest.raises(LogError, match="'effort' differ in length"):
        read_recording(tmp_path / "run.parquet", robot)


def test_numpy_files(tmp_path: Path, robot: Robot) -> None:
    t, q, v, tau = samples()
    np.savez_compressed(tmp_path / "a.npz", t=t, q=q.T, dq=v, tau=tau, name="no series")
    check(read_recording(tmp_path / "a.npz", robot))
    np.save(tmp_path / "b.npy", np.column_stack([t, q, v, tau]))
    layout = LogLayout(columns={"time": 0, "position": [1, 2, 3], "velocity": [4, 5, 6], "effort": [7, 8, 9]})
    check(read_recording(tmp_path / "b.npy", robot, layout))
    np.save(tmp_path / "c.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(LogError, match="Object arrays cannot be loaded"):
        read_recording(tmp_path / "c.npy", robot)


def test_matlab_and_hdf5(tmp_path: Path, robot: Robot) -> None:
    from scipy.io import savemat

    t, q, v, tau = samples()
    run = {"time": t, "q": q, "dq": v, "tau": tau, "note": "text", "gain": 3.0}
    savemat(tmp_path / "a.mat", run)
    savemat(tmp_path / "b.mat", {"run": {**run}, "other": {**run, "q": 2 * q}})
    check(read_recording(tmp_path / "a.mat", robot))
    check(read_recording(tmp_path / "b.mat", robot, LogLayout(topic="run")))
    with pytest.raises(LogError, match=r"no group 'rum'.*did you mean 'run'"):
        read_recording(tmp_path / "b.mat", robot, LogLayout(topic="rum"))
    h5py = pytest.importorskip("h5py")
    for name, block in (("c.h5", b""), ("d.mat", b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))):
        with h5py.File(tmp_path / name, "w", userblock_size=len(block)) as file:
            for key in ("time", "q", "dq", "tau"):
                file[key] = (
                    np.atleast_2d(run[key]).T if name == "c.h5" and key == "time" else np.transpose(run[key])
                )  # as MATLAB
        if block:
            with open(tmp_path / name, "r+b") as stream:
                stream.write(block)
        check(read_recording(tmp_path / name, robot))


def test_hdf5_links_to_other_files_are_not_followed(tmp_path: Path, robot: Robot) -> None:
    h5py = pytest.importorskip("h5py")
    t, q, _, tau = samples()
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["tau"] = tau
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["t"], file["q"] = t, q
        file["tau"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/tau")
        file["loop"] = file["/"]
    log = read_recording(tmp_path / "run.h5", robot)
    assert log.effort is None
    assert any("not followed: tau" in note for note in log.notes)


def test_arrays_and_frames(tmp_path: Path, robot: Robot) -> None:
    t, q, v, tau = samples()
    check(Recording.from_arrays(t, q, tau, velocity=v, joints=robot))
    backwards = Recording.from_arrays(list(t), q[:, ::-1], tau[:, ::-1], velocity=v[:, ::-1], joints=("j3", "j2", "j1"))
    check(backwards.ordered(robot))
    current = Recording.from_arrays(t, q, 1000 * tau, joints=robot, effort_unit="mA")
    assert current.effort_unit == "A"
    np.testing.assert_allclose(current.effort, tau)
    with pytest.raises(ShapeError, match=r"'effort', got \(59, 3\), expected \(60, 3\)"):
        Recording.from_arrays(t, q, tau[1:], joints=robot)
    with pytest.raises(LogError, match=r"joints are not the robot's"):
        Recording.from_arrays(t, q, joints=("a", "b", "c")).ordered(robot)
    check(Recording.from_frame(default_columns(), robot))
    pa = pytest.importorskip("pyarrow")
    check(Recording.from_frame(pa.table(default_columns()), robot))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(default_columns())
    check(Recording.from_frame(frame, robot))
    clock = pd.DataFrame({**default_columns(), "t": pd.to_datetime("2024-05-01") + pd.to_timedelta(t, unit="s"), "note": "x"})
    check(Recording.from_frame(clock, robot))
    check(Recording.from_frame(frame.drop(columns="t").set_index(pd.Index(t, name="time")), robot))


# ---- bags ---------------------------------------------------------------------------------------------


#: Topic, joint names, times, quantity → values.
Publisher = tuple[str, list[str], np.ndarray, dict[str, np.ndarray]]


def states(rows: slice = slice(None), order: Sequence[int] = (0, 1, 2)) -> Publisher:
    """The messages that :func:`samples` make."""
    t, *blocks = samples()
    values = {key: block[rows][:, order] for key, block in zip(("q", "v", "tau"), blocks, strict=True)}
    return "/joint_states", [NAMES[k] for k in order], t[rows], values


def write_bag(
    folder: Path, kind: str, publishers: list[Publisher], told: Callable[[int], int] = lambda received: received
) -> Path:
    """A bag with JointState messages, whose header stamps are a function of when they were received [ns]."""
    pytest.importorskip("rosbags")
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if kind == "ros1" else Stores.ROS2_HUMBLE)
    State, Header, Time = (
        store.types[f"{p}/msg/{n}"]
        for p, n in (("sensor_msgs", "JointState"), ("std_msgs", "Header"), ("builtin_interfaces", "Time"))
    )
    path = folder / ("run.bag" if kind == "ros1" else f"run_{kind}")
    writer = Writer1(path) if kind == "ros1" else Writer2(path, version=9, storage_plugin=StoragePlugin[kind.upper()])
    with writer:
        topics = dict.fromkeys(topic for topic, *_ in publishers)
        connections = {topic: writer.add_connection(topic, "sensor_msgs/msg/JointState", typestore=store) for topic in topics}
        queue = sorted((time, p, k) for p, (_, _, times, _) in enumerate(publishers) for k, time in enumerate(times))
        for time, p, k in queue:
            topic, names, _, values = publishers[p]
            stamp = 1_700_000_000_000_000_000 + round(time * 1e9)
            extra = {"seq": k} if kind == "ros1" else {}
            second, part = divmod(told(stamp), 10**9)
            header = Header(stamp=Time(sec=second, nanosec=part), frame_id="", **extra)
            parts = [np.array(values[key][k] if key in values else [], dtype=float) for key in ("q", "v", "tau")]
            message = State(header, names, *parts)
            raw = (
                store.serialize_ros1(message, "sensor_msgs/msg/JointState")
                if kind == "ros1"
                else store.serialize_cdr(message, "sensor_msgs/msg/JointState")
            )
            writer.write(connections[topic], stamp + 5_000_000, raw)
    return path


@pytest.mark.parametrize("kind", ["sqlite3", "mcap", "ros1"])
def test_bags_of_every_kind(tmp_path: Path, robot: Robot, kind: str) -> None:
    path = write_bag(tmp_path, kind, [states(order=[2, 0, 1])])
    check(read_recording(path, robot))
    if kind != "ros1":
        file = next(p for p in path.iterdir() if p.suffix in (".db3", ".mcap"))
        check(read_recording(file, robot))
        assert [source.path for source in expand_logs([tmp_path])] == [str(path)]


def test_topic_with_effort_is_chosen_and_can_be_overridden(tmp_path: Path, robot: Robot) -> None:
    t, q, v, tau = samples()
    commands = ("/commands", list(NAMES), np.arange(600) * 0.001, {"q": np.zeros((600, 3))})
    gripper = ("/gripper", ["finger"], t, {"q": q[:, :1], "v": v[:, :1], "tau": tau[:, :1]})
    path = write_bag(tmp_path, "mcap", [commands, states(), gripper])
    log = read_recording(path, robot)
    check(log)
    assert any("/joint_states chosen" in note and "/commands (no effort)" in note for note in log.notes)
    silent = read_recording(path, robot, LogLayout(topic="commands"))
    assert len(silent) == 600
    assert silent.effort is None
    assert any("/commands logs no effort" in note for note in silent.notes)
    with pytest.raises(LogError, match=r"no topic 'joint_state'.*did you mean '/joint_states'"):
        read_recording(path, robot, LogLayout(topic="joint_state"))
    with pytest.raises(LogError, match=r"does not hold the joints j1.*got finger"):
        read_recording(path, robot, LogLayout(topic="/gripper"))


def test_interleaved_publishers_are_joined(tmp_path: Path, robot: Robot) -> None:
    t = np.arange(200) * 0.01
    late = t[:150] * 1.2 + 0.004  # slower and out of step

    def motion(time: np.ndarray, joints: list[int]) -> dict[str, np.ndarray]:
        return {
            key: np.stack([np.sin(time + k + shift) for k in joints], axis=1) for shift, key in enumerate(("q", "v", "tau"))
        }

    path = write_bag(
        tmp_path,
        "sqlite3",
        [("/joint_states", ["j3", "j1"], t, motion(t, [2, 0])), ("/joint_states", ["j2"], late, motion(late, [1]))],
    )
    log = read_recording(path, robot)
    assert any("2 publishers, joined" in note for note in log.notes)
    true = np.stack([np.sin(log.time + k) for k in range(3)], axis=1)
    np.testing.assert_allclose(log.position, true, atol=2e-4)


@pytest.mark.parametrize("second", ["form", "zeros", "moving"])
def test_a_second_publisher_of_all_joints_is_named_and_left_out(tmp_path: Path, robot: Robot, second: str) -> None:
    t = np.arange(300) * 0.01
    q = np.sin(t[:, None] * [2.0, 3.0, 4.0] + 1.0)
    first = ("/joint_states", list(NAMES), t, {"q": q, "v": q, "tau": 1 + q})
    late = t[:-1:3] + 0.001
    same = {"q": np.zeros((len(late), 3)), "v": np.zeros((len(late), 3)), "tau": np.zeros((len(late), 3))}
    other = {
        "form": (list(NAMES), {"q": np.zeros((len(late), 3))}),
        "zeros": (list(NAMES), same),
        "moving": (list(NAMES[::-1]), {"q": 0.3 * np.cos(7 * late)[:, None] * np.ones(3)}),
    }[second]
    log = read_recording(write_bag(tmp_path, "sqlite3", [first, ("/joint_states", other[0], late, other[1])]), robot)
    np.testing.assert_array_equal(log.position, q)
    (note,) = (note for note in log.notes if "several publishers" in note)
    assert f"({len(late)} messages), is left out" in note
    assert ("stands still" in note) == (second != "moving")


def test_messages_without_names_ask_for_their_order_and_take_it(tmp_path: Path, robot: Robot) -> None:
    topic, names, t, values = states(order=[2, 0, 1])
    path = write_bag(tmp_path, "sqlite3", [(topic, [], t, values)])
    with pytest.raises(LogError, match=r"hold no joint names.*log: \{joints: \{"):
        read_recording(path, robot)
    check(read_recording(path, robot, LogLayout(joints={name: f"unnamed_{place}" for place, name in enumerate(names, 1)})))


def test_topic_that_changes_its_joints_half_way(tmp_path: Path, robot: Robot) -> None:
    t, q, _, _ = samples()
    half = ROWS // 2
    topic, names, late, values = states(slice(half, None), [1, 0, 2])
    second = (topic, [*names, "tool"], late, {key: np.column_stack([block, block[:, 1]]) for key, block in values.items()})
    publishers = [states(slice(half)), second, (topic, ["tool"], t + 0.003, {"q": q[:, :1]})]
    log = read_recording(write_bag(tmp_path, "mcap", publishers), robot)
    check(log)
    assert any("60 of 120 messages do not hold all joints" in note for note in log.notes)


def test_controller_states_and_types_that_nobody_knows(tmp_path: Path, robot: Robot) -> None:
    pytest.importorskip("rosbags")
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg("int32 x\n", "odd_msgs/msg/Odd"))
    text = "std_msgs/Header header\nstring[] joint_names\n" + "".join(
        f"trajectory_msgs/JointTrajectoryPoint {part}\n" for part in ("reference", "feedback")
    )
    kind = "control_msgs/msg/JointTrajectoryControllerState"
    store.register(get_types_from_msg(text, kind))
    types = store.types
    Time, Duration = types["builtin_interfaces/msg/Time"], types["builtin_interfaces/msg/Duration"]
    Point, State = types["trajectory_msgs/msg/JointTrajectoryPoint"], types[kind]
    t, q, v, tau = samples()
    with Writer(tmp_path / "run", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        odd = writer.add_connection("/odd", "odd_msgs/msg/Odd", typestore=store)
        writer.write(odd, 1, b"\0\1")
        connection = writer.add_connection("/controller_state", kind, typestore=store)
        for k, time in enumerate(t):
            stamp = round((1000 + time) * 1e9)
            header = types["std_msgs/msg/Header"](stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id="")
            none = np.zeros(0)
            reference = Point(q[k] + 1, none, none, none, Duration(0, 0))
            message = State(header, list(NAMES), reference, Point(q[k], v[k], none, tau[k], Duration(0, 0)))
            writer.write(connection, stamp, store.serialize_cdr(message, kind))
    log = read_recording(tmp_path / "run", robot)
    check(log)
    np.testing.assert_allclose(log.position_target, q + 1)
    assert any("/odd" in note for note in log.notes)


# ---- LeRobot --------------------------------------------------------------------------------------------


def write_lerobot(root: Path, version: int, features: dict[str, dict], episodes: list[dict[str, np.ndarray]]) -> Path:
    """A data set in the layout that LeRobot documents: v2 has a file an episode, v3 many episodes in a file."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def arrow(number: int, columns: dict[str, np.ndarray], start: int):
        n = len(next(iter(columns.values())))
        lists = {
            key: pa.array(list(value.astype(np.float32)), pa.list_(pa.float32(), value.shape[1]))
            for key, value in columns.items()
        }
        return pa.table(
            {
                **lists,
                "timestamp": pa.array(np.arange(n, dtype=np.float32) / 50),
                "frame_index": np.arange(n),
                "episode_index": np.full(n, number),
                "index": start + np.arange(n),
                "task_index": np.zeros(n, dtype=int),
            }
        )

    starts = np.concatenate([[0], np.cumsum([len(next(iter(e.values()))) for e in episodes])])
    tables = [arrow(k, columns, int(starts[k])) for k, columns in enumerate(episodes)]
    path = {
        2: "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        3: "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
    }
    info = {
        "codebase_version": {2: "v2.1", 3: "v3.0"}[version],
        "robot_type": "arm",
        "fps": 50,
        "total_episodes": len(episodes),
        "total_frames": int(starts[-1]),
        "chunks_size": 1000,
        "data_path": path[version],
        "video_path": None,
        "features": features,
    }
    (root / "meta").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    (root / "meta/info.json").write_text(json.dumps(info))
    if version == 2:
        for k, table in enumerate(tables):
            pq.write_table(table, root / f"data/chunk-000/episode_{k:06d}.parquet")
    else:
        pq.write_table(pa.concat_tables(tables), root / "data/chunk-000/file-000.parquet")
        (root / "meta/episodes/chunk-000").mkdir(parents=True)
        n = len(episodes)
        index = {
            "episode_index": np.arange(n),
            "data/chunk_index": np.zeros(n, int),
            "data/file_index": np.zeros(n, int),
            "dataset_from_index": starts[:-1],
            "dataset_to_index": starts[1:],
            "length": np.diff(starts),
        }
        pq.write_table(pa.table(index), root / "meta/episodes/chunk-000/file-000.parquet")
    return root


@pytest.mark.parametrize("version", [2, 3])
def test_every_episode_of_a_lerobot_data_set_is_a_log(tmp_path: Path, robot: Robot, version: int) -> None:
    names = [f"{joint}.pos" for joint in NAMES]
    features = {
        "observation.state": {"dtype": "float32", "shape": [3], "names": names if version == 3 else {"motors": names}},
        "observation.effort": {"dtype": "float32", "shape": [3], "names": list(NAMES)},
        "action": {"dtype": "float32", "shape": [3], "names": names},
    }
    runs = [samples(seed) for seed in range(3)]
    parts = [
        {"observation.state": q[: 20 + k], "observation.effort": tau[: 20 + k], "action": v[: 20 + k]}
        for k, (_, q, v, tau) in enumerate(runs)
    ]
    root = write_lerobot(tmp_path / "set", version, features, parts)
    sources = expand_logs([root])
    assert [source.name for source in sources] == ["episode_000000", "episode_000001", "episode_000002"]
    for k, source in enumerate(sources):
        log = read_recording(source, robot)
        assert len(log) == 20 + k
        np.testing.assert_allclose(log.position, runs[k][1][: 20 + k], rtol=1e-6)
        np.testing.assert_allclose(log.effort, runs[k][3][: 20 + k], rtol=1e-6)
        np.testing.assert_allclose(log.position_target, runs[k][2][: 20 + k], rtol=1e-6)
        np.testing.assert_allclose(log.time, np.arange(20 + k) / 50, atol=1e-6)
    assert len({read_recording(source, robot).sha256 for source in sources}) == 3
    assert len(read_recording(root / "episode_000001", robot)) == 21
    with pytest.raises(LogError, match="no episode 7"):
        read_recording(root / "episode_000007", robot)


@pytest.mark.parametrize("version", [2, 3])
def test_a_data_file_is_read_by_the_description_of_its_set_and_refused_without(
    tmp_path: Path, robot: Robot, version: int
) -> None:
    features = {"observation.state": {"dtype": "float32", "shape": [3], "names": list(NAMES)}}
    root = write_lerobot(tmp_path / "set", version, features, [{"observation.state": samples(k)[1]} for k in range(2)])
    file = next((root / "data" / "chunk-000").iterdir())
    sources = expand_logs([file])
    assert len(sources) == {2: 1, 3: 2}[version]
    assert read_recording(sources[0], robot).position.shape == (ROWS, 3)
    alone = tmp_path / "alone.parquet"
    alone.write_bytes(file.read_bytes())
    with pytest.raises(LogError, match=r"one file of a LeRobot data set.*give the folder"):
        read_recording(alone, robot)


def test_episodes_that_are_held_out_are_left_out_of_their_data_set(tmp_path: Path) -> None:
    features = {"observation.state": {"dtype": "float32", "shape": [3], "names": list(NAMES)}}
    root = write_lerobot(tmp_path / "set", 3, features, [{"observation.state": samples(k)[1]} for k in range(4)])
    training = expand_logs([root], without=[root / "episode_3", root / "episode_000001"])
    assert [source.name for source in training] == ["episode_000000", "episode_000002"]
    named = expand_logs([root / "episode_000001"], without=[root / "episode_000001"])
    assert len(named) == 1  # both lists name it: the caller refuses that
    with pytest.raises(LogError, match="all of its logs are held out"):
        expand_logs([root], without=[root])


def test_positions_in_hundredths_of_the_range_are_scaled_by_limits_or_calibration(tmp_path: Path) -> None:
    """LeRobot's default, with the joints' names of its older data sets; the limits of the arm are ± 2.6 rad."""
    robot, features = Robot.from_urdf(arm_urdf("zyx")), {}
    for feature in ("observation.state", "action"):
        features[feature] = {"dtype": "float32", "shape": [3], "names": {"motors": [f"main_{joint}" for joint in NAMES]}}
    hundredths = np.float32(50.0 * np.tanh(samples()[1]))
    root = write_lerobot(tmp_path / "set", 2, features, [{"observation.state": hundredths, "action": hundredths}])
    layout = LogLayout(units={"position": "normalized"})
    log = read_recording(root / "episode_000000", robot, layout)
    np.testing.assert_allclose(log.position, 2.6 * hundredths / 100, rtol=1e-6)
    np.testing.assert_array_equal(log.position_target, log.position)
    assert any("scaled by the limits of the URDF" in note for note in log.notes)
    ranges = {"j1": (1024, 3072), "j2": (0, 4095)}
    about = {"id": 1, "drive_mode": 0, "homing_offset": 9}
    calibration = {joint: {**about, "range_min": low, "range_max": high} for joint, (low, high) in ranges.items()}
    (root / "calibration.json").write_text(json.dumps(calibration))
    log = read_recording(root / "episode_000000", robot, layout)
    np.testing.assert_allclose(log.position, hundredths / 100 * [np.pi / 2, 4095 / 4096 * np.pi, 2.6], rtol=1e-6)
    assert any("calibration.json" in note for note in log.notes)
    (root / "calibration.json").write_text('{"j1": {"range_min": "left"}}')
    with pytest.raises(LogError, match=r"calibration.json: not a calibration of LeRobot"):
        read_recording(root / "episode_000000", robot, layout)
    (root / "calibration.json").unlink()
    with pytest.raises(LogError, match=r"range of j1, j2, j3 is not known.*calibration.json beside the log"):
        read_recording(root / "episode_000000", Robot.from_urdf(arm_urdf("zyx", kind="continuous")), layout)


@pytest.mark.parametrize(("reach", "said"), [(50.0, "positions look like deg"), (99.0, "look like hundredths")])
def test_positions_that_may_be_hundredths_are_refused_with_both_units(reach: float, said: str) -> None:
    robot = Robot.from_urdf(arm_urdf("zyx").replace('lower="-2.6" upper="2.6"', 'lower="-1.2" upper="1.2"'))
    t = np.arange(1000) / 50
    q = reach * np.sin(t[:, None] * [1.0, 1.3, 0.7])
    (finding,) = (f for f in assess(Recording.from_arrays(t, q, q, joints=robot), robot).findings if f.id == "position-unit")
    assert said in finding.message
    assert "normalized" in str(finding.remedy)
    assert "deg" in str(finding.remedy)


def test_lerobot_without_effort_says_so_and_stays_in_its_folder(tmp_path: Path, robot: Robot) -> None:
    features = {
        "observation.state": {"dtype": "float32", "shape": [3], "names": list(NAMES)},
        "action": {"dtype": "float32", "shape": [3], "names": None},
    }
    _, q, v, _ = samples()
    root = write_lerobot(tmp_path / "set", 2, features, [{"observation.state": q, "action": v}])
    log = read_recording(root / "episode_000000", robot)
    assert log.effort is None
    assert any("logs no effort (features: observation.state, action)" in note for note in log.notes)
    info = json.loads((root / "meta/info.json").read_text())
    for path, words in (
        ("../secret/{episode_index}.parquet", "leads out"),
        ("data/{x.__class__}.parquet", "no episode"),
        ("{other}.parquet", "place holder"),
    ):
        (root / "meta/info.json").write_text(json.dumps({**info, "data_path": path}))
        with pytest.raises(LogError, match=words):
            expand_logs([root])


# ---- wrong kinds and missing libraries ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "a.h5", "a.db3", "a.mcap", "a.bag"])
def test_name_and_content_that_differ(read: Read, name: str) -> None:
    with pytest.raises(LogError, match="whatever its name says"):
        read(csv_text(), name=name)


@pytest.mark.parametrize(
    ("module", "extra", "head"),
    [("pyarrow", "parquet", b"PAR1"), ("h5py", "hdf5", b"\x89HDF\r\n\x1a\n"), ("rosbags", "ros", b"#ROSBAG V2.0\n")],
)
def test_missing_library_is_named_with_its_pip_line(read: Read, monkeypatch, module: str, extra: str, head: bytes) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs the package {module}.*pip install 'urdf-ident\[{extra}\]'"):
        read(head + bytes(100), name="run")


def test_folders_that_are_no_logs(tmp_path: Path, robot: Robot) -> None:
    with pytest.raises(MissingFileError, match="Is a directory"):
        read_recording(tmp_path, robot)
    (tmp_path / "metadata.yaml").write_text("rosbag2_bagfile_information: [1]")
    (tmp_path / "x.db3").write_bytes(b"")
    with pytest.raises(LogError, match="bag is broken"):
        read_recording(tmp_path, robot)
