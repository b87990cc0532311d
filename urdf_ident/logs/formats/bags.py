"""ROS bags, read by `rosbags` (``pip install 'urdf-ident[ros]'``): ROS 2 in SQLite or MCAP, folders or files, and ROS 1.

The topic is chosen by its content: positions of the robot's joints, and efforts if any topic has them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LogError, UrdfIdentError, nearest
from ...files.read_write import allowed
from ...grouping import grouped, runs
from ...linalg import Array, IntArray
from ...model.locked_joints import lock_words
from ...model.robot import Robot
from ..columns.headers import holds_targets, match_joints
from ..tables import ArrayTable, decoding

#: Messages of each topic that are read to choose the topic.
_LOOK = 200
#: Step back of header stamps that is a clock set back or restarted [ns]; messages on their way overtake each other by far less.
_RESTART = 1_000_000_000
#: Times that a position must recur between others before it is taken for that of a second publisher.
_RECURS = 5
#: A type whose definition is known: where its messages cannot be read, the bag is broken.
_JOINT_STATE = "sensor_msgs/msg/JointState"
#: What saves the messages of a bag that was cut short, by its suffix.
_RECOVERY = {
    ".mcap": "mcap recover {} -o whole.mcap",
    ".bag": "rosbag reindex {}",
    ".db3": "sqlite3 {} .recover | sqlite3 whole.db3",
}
#: Known interfaces of a DynamicJointState, and fields of Franka's robot state → column prefix.
_INTERFACES = {"position": "q", "velocity": "v", "acceleration": "a", "effort": "tau", "torque": "tau"}
_FRANKA = {"q": "q", "dq": "v", "tau_J": "tau", "q_d": "position_target"}


@dataclass(frozen=True)
class Sample:
    """One message.

    Attributes:
        stamp: Time of its header [ns], 0 if it has none.
        names: Joint names; numbers as text for a robot state, ``unnamed_1`` and so on where they are missing.
        values: Column prefix (``q``, ``v``, ``tau`` …) → one number per joint.
        frame: Frame of its header.
    """

    stamp: int
    names: tuple[str, ...]
    values: Mapping[str, Sequence[float]]
    frame: str = ""

    @property
    def form(self) -> tuple[object, ...]:
        """Frame, order of names and quantities, which a publisher does not change from message to message."""
        return self.frame, self.names, tuple(self.values)


#: Extracts the joint states of a message from its connection and bytes.
Parser = Callable[[Any, bytes], Sample | None]


def open_bag(path: str | Path, robot: Robot, topic: str | None = None, joints: dict[str, str] | None = None) -> ArrayTable:
    """Reads the joint states of a bag.

    Args:
        path: A bag folder, or a .db3, .mcap or .bag file.
        topic: The topic, or None to choose one.
        joints: Robot joint → its name in the bag, if they differ.

    Returns:
        Columns ``t`` [s since the first message], ``q_<joint>``, ``v_<joint>``, ``tau_<joint>``, with the bag's joint names.

    Raises:
        MissingExtraError: rosbags is not installed.
        LogError: The bag is broken, or no topic contains the robot's joints.
    """
    path, notes = Path(path), list[str]()
    repair = f"`ros2 bag reindex {path}` writes its metadata anew"
    if not path.is_dir():
        tool = _RECOVERY.get(path.suffix.lower(), "").format(path)
        repair = "record it again" + (f"; of one that was cut short `{tool}` saves what is there" if tool else "")
    with decoding(path, "bag", "ros", repair), _opened(path) as (storage, parse):
        topic, connections = _chosen(storage, parse, robot, topic, path, notes)
        samples, stamps = _samples(storage, parse, connections, notes)
    names, mark = _names_in(samples, robot, joints or {}, topic, path)
    messages = _one_publisher(samples, names, topic, notes)
    clock, signals = _joined([samples[k] for k in messages], stamps[messages], names, topic, notes)
    if "tau" not in signals:
        notes.append(f"topic {topic} logs no effort")
    columns = {"t": clock}
    for prefix, values in signals.items():
        columns |= {f"{prefix}{mark}{name}": x for name, x in zip(names, values.T, strict=True)}
    files = _files(path) if path.is_dir() else (str(path),)
    return ArrayTable(str(path), tuple(columns), len(columns), files, tuple(notes), columns=tuple(columns.values()))


def _names_in(samples: Sequence[Sample], robot: Robot, joints: dict[str, str], topic: str, path: Path) -> tuple[list[str], str]:
    """Names in the bag of the robot's joints that it holds, and what stands before them in a column: nothing before numbers."""
    held = sorted({name for sample in samples for name in sample.names})
    wanted, _ = match_joints(held, robot, joints, str(path))
    if samples[0].names[0] == "unnamed_1" and not joints:
        order = ", ".join(f"{json.dumps(joint)}: unnamed_{k + 1}" for k, joint in enumerate(robot.order))
        raise LogError(
            f"the messages of {topic} hold no joint names",
            where=str(path),
            got=f"{len(samples[0].names)} positions",
            remedy=f"say which place in the messages each joint has: `log: {{joints: {{{order}}}}}`, if it is the URDF's order",
        )
    numbers = [str(k + 1) for k in range(robot.n)]
    if not wanted.keys() & set(robot.joints) and set(numbers) <= set(samples[0].names):
        return numbers, ""
    missing = [joint for joint in robot.joints if joint not in wanted]
    if missing:
        locks = f" ({lock_words(missing)})" if len(missing) < robot.n else ""
        raise LogError(
            f"the topic {topic} does not hold the joint{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            where=str(path),
            got=", ".join(held[:12]),
            remedy=f"lock what was not recorded{locks}, choose another log.topic, or pair the names in log.joints",
        )
    return [wanted[joint] for joint in robot.joints], "_"


def _files(folder: Path) -> tuple[str, ...]:
    return tuple(str(p) for p in sorted(folder.iterdir()) if p.is_file() and p.suffix in (".db3", ".mcap", ".yaml", ".zstd"))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Parser]]:
    """The storage of a bag, and the parser of its messages: by the standard types, else by the definitions in the bag.

    rosbags' ``AnyReader`` registers the definitions of all topics at once, so that one odd type would close the bag.
    """
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.rosbag1 import Reader as Reader1
    from rosbags.rosbag2.reader import DirectoryReader
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

    if path.is_dir():
        if not (path / "metadata.yaml").is_file():
            raise LogError(
                "the bag's folder has no metadata.yaml", where=str(path), remedy="name its .db3 or .mcap file itself"
            )
        outside = [file for file in _files(path) if allowed(file, [path]) is None]
        if outside:
            raise LogError(
                "a file of the bag leads out of its folder",
                where=outside[0],
                remedy="copy what links lead to into the bag's folder",
            )
        storage: Any = DirectoryReader(path)
    else:
        with open(path, "rb") as stream:
            head = stream.read(16)
        reader = Reader1 if head.startswith(b"#ROSBAG") else McapReader if head.startswith(b"\x89MCAP") else Sqlite3Reader
        storage = reader(path)
    ros1 = isinstance(storage, Reader1)
    standard = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_JAZZY)
    stores: dict[str, Any] = dict.fromkeys(standard.fielddefs, standard)

    def parse(connection: Any, raw: bytes) -> Sample | None:
        kind = connection.msgtype
        if kind not in stores:
            form, text = connection.msgdef.format, connection.msgdef.data
            types: dict[Any, Any] = {}
            if form == MessageDefinitionFormat.MSG:
                types = dict(get_types_from_msg(text, kind))
            elif form == MessageDefinitionFormat.IDL:
                types = dict(get_types_from_idl(text))
            store = get_typestore(Stores.EMPTY)
            store.register({**{name: value for name, value in standard.fielddefs.items() if name not in types}, **types})
            stores[kind] = store
        store = stores[kind]
        return sample_of(store.deserialize_ros1(bytes(raw), kind) if ros1 else store.deserialize_cdr(bytes(raw), kind))

    storage.open()
    try:
        yield storage, parse
    finally:
        storage.close()


def _chosen(
    storage: Any, parse: Parser, robot: Robot, wanted: str | None, path: Path, notes: list[str]
) -> tuple[str, list[Any]]:
    """Name and connections of the wanted topic, or of the best of those whose messages contain joint positions."""
    topics = _topics(storage, parse, path, notes)
    if wanted is not None:
        named = [name for name in topics if name.strip("/") == wanted.strip("/")]
        if named:
            return named[-1], topics[named[-1]][0]
        raise LogError(
            f"no topic '{wanted}' with joint states", where=f"{path} (log.topic)", remedy=nearest(wanted, list(topics))
        )
    efforts = {name: any(map(_has_effort, samples)) for name, (_, samples) in topics.items()}

    def preference(name: str) -> tuple[int, bool, bool, int]:  # target positions are not measurements
        connections, samples = topics[name]
        joints = {joint for sample in samples for joint in sample.names}
        fits = 2 * len(joints.intersection(robot.joints)) or int(len(joints) >= robot.n)
        return fits, not holds_targets(name), efforts[name], sum(connection.msgcount for connection in connections)

    chosen = max(topics, key=preference)
    said = {name: f"({'with' if efforts[name] else 'no'} effort)" for name in topics}
    if others := [f"{name} {said[name]}" for name in topics if name != chosen]:
        notes.append(f"topic {chosen} chosen {said[chosen]}; others: {', '.join(others[:5])}; log.topic overrides")
    return chosen, topics[chosen][0]


def _topics(storage: Any, parse: Parser, path: Path, notes: list[str]) -> dict[str, tuple[list[Any], list[Sample]]]:
    """Connections and first messages of the topics that contain joint positions, at least one."""
    topics: dict[str, tuple[list[Any], list[Sample]]] = {}
    unknown = []
    damage: Exception | None = None
    for connection in list(storage.connections):
        samples: list[Sample] = []
        try:
            for k, (_, _, raw) in enumerate(storage.messages([connection])):
                if (sample := parse(connection, raw)) is not None:
                    samples.append(sample)
                if k >= _LOOK or (k > 3 and not samples):
                    break
        except Exception as error:  # a type without definition, or a broken message: try other topics
            if isinstance(error, UrdfIdentError | MemoryError):
                raise
            unknown.append(f"{connection.topic} ({connection.msgtype})")
            damage = error if connection.msgtype == _JOINT_STATE else damage
        if samples:
            connections, first = topics.setdefault(connection.topic, ([], []))
            connections.append(connection)
            first += samples
    if unknown:
        notes.append(f"topics with messages that cannot be read: {', '.join(unknown[:5])}")
    if not topics and damage is not None:
        raise damage
    if not topics:
        listed = ", ".join(sorted(f"{connection.topic} ({connection.msgtype})" for connection in storage.connections)[:8])
        raise LogError(
            "no topic of the bag contains joint positions",
            where=str(path),
            got=listed or "no topics",
            expected="sensor_msgs/JointState",
            remedy="record /joint_states" + ("; types without definition need a bag in MCAP" if unknown else ""),
        )
    return topics


def _has_effort(sample: Sample) -> bool:
    effort = np.asarray(sample.values.get("tau", ()), dtype=float)
    return bool(np.isfinite(effort).any() and effort.any())


def _samples(storage: Any, parse: Parser, connections: list[Any], notes: list[str]) -> tuple[list[Sample], Array]:
    """All messages of a topic with their times [s since the first]; unreadable ones are skipped and counted."""
    samples: list[Sample] = []
    received: list[int] = []
    read = 0
    try:
        for connection, when, raw in storage.messages(connections):
            read += 1
            try:
                sample = parse(connection, raw)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - a single unreadable message, which is counted
                continue
            if sample is not None:
                samples.append(sample)
                received.append(when)
    except Exception as error:  # the end of an interrupted recording
        if len(samples) < 2 or isinstance(error, MemoryError):
            raise
        notes.append(f"the bag breaks off after {len(samples)} messages ({' '.join(str(error).split())[:80]})")
    else:
        declared = sum(connection.msgcount for connection in connections)
        if read < declared:
            notes.append(
                f"the bag declares {declared} messages, of which {read} could be read: part of it is damaged or missing"
            )
    if read > len(samples):
        notes.append(f"{read - len(samples)} messages without joint positions left out")
    if not samples:
        raise LogError("the topic holds no readable message", remedy="choose another with log.topic")
    stamps = _stamps(samples, received, notes)
    return samples, np.array([(stamp - stamps[0]) / 1e9 for stamp in stamps])


def _stamps(samples: Sequence[Sample], received: list[int], notes: list[str]) -> list[int]:
    """Times of messages [ns]: those in their headers, or of recording where these are no clock."""
    stamps = [sample.stamp for sample in samples]
    moves = [
        now.stamp == before.stamp
        for before, now in pairwise(samples)
        if before.names == now.names and not np.array_equal(before.values["q"], now.values["q"])
    ]
    if stamps.count(0) > 1:  # a single zero may be the start of a simulated clock
        notes.append("messages without a stamp: the time of recording is used")
    elif 2 * sum(moves) > len(moves):
        notes.append("the header stamps do not change while the joints move: the recording time is used")
    elif np.max(np.maximum.accumulate(stamps) - stamps) > _RESTART and not np.any(np.diff(received) < 0):
        notes.append("the header stamps run backwards, as of a clock that restarts: the recording time is used")
    else:
        return stamps
    return received


def _one_publisher(samples: Sequence[Sample], names: Sequence[str], topic: str, notes: list[str]) -> IntArray:
    """Indices of the messages of one publisher, where several publish all of the joints on one topic.

    A publisher keeps the form of its messages. Of two with the same form, one that stands still (a GUI, a driver that is not
    connected) shows as one position that recurs between others, which go on as if it were not there.
    """
    complete = np.array([k for k, sample in enumerate(samples) if set(names) <= set(sample.names)], dtype=np.intp)
    every = np.arange(len(samples))
    if not len(complete):
        return every
    positions = np.array([[samples[k].values["q"][samples[k].names.index(name)] for name in names] for k in complete], float)
    forms = [samples[k].form for k in complete]
    kinds = {form: k for k, form in enumerate(dict.fromkeys(forms))}
    source = np.array([kinds[form] for form in forms])
    if len(kinds) == 1:  # which messages repeat the one position that recurs between messages of a motion that goes on
        values, place, counts = np.unique(positions, axis=0, return_inverse=True, return_counts=True)
        source = (place.ravel() == np.argmax(counts)).astype(int)
        stretches = [(begin, end) for begin, end in runs(source == 1) if begin > 0 and end < len(source)]
        if len(stretches) < _RECURS:
            return every
        before, after = (positions[[pair[side] - (side == 0) for pair in stretches]] for side in (0, 1))
        across, away = np.abs(after - before).max(axis=1), np.abs(before - values[np.argmax(counts)]).max(axis=1)
        if np.mean(across <= 0.5 * away) <= 0.5:
            return every
    numbers, counts = np.unique(source, return_counts=True)
    if len(numbers) < 2 or np.count_nonzero(np.diff(source)) < counts.min():  # one after the other: it was started again
        return every
    about = {
        number: (
            any(_has_effort(samples[k]) for k in complete[source == number]),
            float(np.ptp(positions[source == number], axis=0).max()),
            int(np.count_nonzero(source == number)),
        )
        for number in numbers.tolist()
    }
    chosen = max(about, key=lambda number: about[number])
    for effort, travel, count in (about[number] for number in about if number != chosen):
        notes.append(
            f"topic {topic} has several publishers of all joints; one that {'moves' if travel > 0 else 'stands still'}, "
            f"with{'' if effort else 'out'} effort ({count} messages), is left out"
        )
    return np.setdiff1d(every, complete[source != chosen])


def _joined(
    samples: list[Sample], time: Array, names: list[str], topic: str, notes: list[str]
) -> tuple[Array, dict[str, Array]]:
    """Clock and signals: from the messages with all joints, else merged from several publishers on one clock."""
    complete = [k for k, sample in enumerate(samples) if set(names) <= set(sample.names)]
    counts = Counter(name for sample in samples for name in set(sample.names))
    if 2 * len(complete) >= min(counts[name] for name in names):  # else complete messages are exceptions
        if left := len(samples) - len(complete):
            among = complete[-1] - complete[0] >= len(complete)
            place = "among" if among else "before" if complete[0] > 0 and complete[-1] == len(samples) - 1 else "after"
            notes.append(
                f"topic {topic}: {left} of {len(samples)} messages do not hold all joints ({place} those that do) "
                "and are left out"
            )
        return time[complete], _signals([samples[k] for k in complete], names)
    groups = grouped((frozenset(sample.names), k) for k, sample in enumerate(samples))
    owner = {name: max((group for group in groups if name in group), key=lambda group: len(groups[group])) for name in names}
    used = Counter(owner.values())
    base = max(used, key=lambda group: (used[group], len(groups[group])))
    clocks = {group: time[groups[group]] for group in used}
    begin, end = max(clock.min() for clock in clocks.values()), min(clock.max() for clock in clocks.values())
    clock = clocks[base][(clocks[base] >= begin) & (clocks[base] <= end)]
    if len(clock) < 2:
        raise LogError(
            "the publishers of the topic do not overlap in time",
            where=topic,
            got=" | ".join(", ".join(sorted(group)[:3]) for group in used),
            remedy="lock the joints of the one that is not wanted",
        )
    notes.append(
        f"topic {topic} has {len(used)} publishers, joined on the stamps of {', '.join(sorted(base)[:3])}; "
        "the others are interpolated"
    )
    joined: dict[str, dict[str, Array]] = {}
    for group in used:
        order, held = np.argsort(clocks[group], kind="stable"), [name for name in names if owner[name] == group]
        for prefix, values in _signals([samples[groups[group][k]] for k in order], held).items():
            at_clock = {name: np.interp(clock, clocks[group][order], x) for name, x in zip(held, values.T, strict=True)}
            joined[prefix] = joined.get(prefix, {}) | at_clock
    whole = {prefix: of_joints for prefix, of_joints in joined.items() if len(of_joints) == len(names)}
    return clock, {prefix: np.column_stack([of_joints[name] for name in names]) for prefix, of_joints in whole.items()}


def _signals(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, Array]:
    """Quantity → its values, shape (N, joints); missing ones are NaN, and quantities that most messages lack are left out."""
    signals: dict[str, Array] = {}
    orders = {form: [form.index(name) for name in names] for form in {sample.names for sample in samples}}
    counts = Counter(key for sample in samples for key in sample.values)
    nothing = np.full(len(names), np.nan)
    for prefix in sorted(key for key, count in counts.items() if 2 * count > len(samples)):
        rows = [
            np.asarray(sample.values[prefix], dtype=float)[orders[sample.names]] if prefix in sample.values else nothing
            for sample in samples
        ]
        signals[prefix] = np.array(rows)
    if not np.nan_to_num(signals.get("tau", nothing)).any():  # filled with zeros: a driver without torque sensing
        signals.pop("tau", None)
    return signals


def sample_of(message: Any) -> Sample | None:
    """Extracts the joint states of a message; None if it contains no joint positions.

    Supported are ``sensor_msgs/JointState``, controller states (``joint_names`` with ``actual`` or ``feedback``),
    ``control_msgs/DynamicJointState`` and Franka's robot state (``q``, ``dq``, ``tau_J``).
    """
    header = getattr(message, "header", None)
    time = getattr(header, "stamp", None)
    stamp = 0 if time is None else int(time.sec) * 1_000_000_000 + int(time.nanosec)
    # names and values of each kind of message whose fields this one has
    candidates: list[tuple[tuple[str, ...], dict[str, Sequence[float]]]] = []

    def has(*fields: str) -> bool:
        return all(hasattr(message, field) for field in fields)

    if has("name", "position", "velocity", "effort"):
        names = tuple(message.name) or tuple(f"unnamed_{k + 1}" for k in range(len(message.position)))
        candidates.append((names, {"q": message.position, "v": message.velocity, "tau": message.effort}))
    point: Any = getattr(message, "feedback", None) or getattr(message, "actual", None)
    if has("joint_names") and hasattr(point, "positions"):
        values = {"q": point.positions, "v": point.velocities, "a": point.accelerations, "tau": point.effort}
        target: Any = getattr(message, "reference", None) or getattr(message, "desired", None)
        if hasattr(target, "positions"):
            values["position_target"] = target.positions
        candidates.append((tuple(message.joint_names), values))
    if has("joint_names", "interface_values") and len(message.interface_values) == len(message.joint_names):
        signals = {
            name: {
                _INTERFACES[key]: float(value)
                for key, value in zip(interface.interface_names, interface.values, strict=False)
                if key in _INTERFACES
            }
            for name, interface in zip(message.joint_names, message.interface_values, strict=True)
        }
        signals = {name: values for name, values in signals.items() if "q" in values}
        common = set.intersection(*map(set, signals.values())) if signals else set()
        candidates.append((tuple(signals), {key: [values[key] for values in signals.values()] for key in common}))
    if has("q", "dq", "tau_J"):
        values = {prefix: getattr(message, field) for field, prefix in _FRANKA.items() if hasattr(message, field)}
        candidates.append((tuple(str(k + 1) for k in range(len(message.q))), values))
    for names, values in candidates:
        if len(values.get("q", ())) == len(names) > 0:
            whole = {key: value for key, value in values.items() if len(value) == len(names)}
            return Sample(stamp, names, whole, str(getattr(header, "frame_id", "")))
    return None
