"""ROS bags, read by `rosbags` (``pip install 'urdf-ident[ros]'``): ROS 2 in SQLite or MCAP, folders or files, and ROS 1.

The topic is chosen by its content: positions of the robot's joints, and efforts if any topic has them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LogError, UrdfIdentError, nearest
from ...files.allowed import allowed
from ...grouping import grouped, runs
from ...linalg import Array, BoolArray, IntArray
from ...model.locked_joints import lock_words
from ...model.robot import Robot
from ..columns.headers import holds_targets
from ..columns.joint_names import match_joints
from ..tables import ArrayTable, decoding
from .bag_messages import Sample, sample_of

#: Messages of each topic that are read to choose the topic.
_LOOK = 200
#: Times that a position must recur between others before it is taken for that of a second publisher.
_RECURS = 5
#: A type whose definition is known: where its messages cannot be read, the bag is broken.
_JOINT_STATE = "sensor_msgs/msg/JointState"


@dataclass
class _Topic:
    """A topic with joint states, and the content of its first messages."""

    name: str
    connections: list[Any]
    count: int
    joints: set[str] = field(default_factory=set)
    effort: bool = False


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
    recover = {
        ".mcap": "mcap recover {} -o whole.mcap",
        ".bag": "rosbag reindex {}",
        ".db3": "sqlite3 {} .recover | sqlite3 whole.db3",
    }.get(Path(path).suffix.lower())
    if Path(path).is_dir():
        repair = f"`ros2 bag reindex {path}` writes its metadata anew"
    else:
        repair = "record it again" + (
            f"; of one that was cut short `{recover.format(path)}` saves what is there" if recover else ""
        )
    with decoding(path, "bag", "ros", repair), _reader(Path(path)) as reader:
        notes: list[str] = []
        chosen = _choose(_topics(reader, path, notes), robot, topic, str(path), notes)
        samples, stamps = _samples(reader, chosen.connections, notes)
    wanted, _ = match_joints(sorted({name for sample in samples for name in sample.names}), robot, joints or {}, str(path))
    if not samples[0].named and not joints:
        order = ", ".join(f"{json.dumps(joint)}: unnamed_{k + 1}" for k, joint in enumerate(robot.order))
        raise LogError(
            f"the messages of {chosen.name} hold no joint names",
            where=str(path),
            got=f"{len(samples[0].names)} positions",
            remedy=f"say which place in the messages each joint has: `log: {{joints: {{{order}}}}}`, if it is the URDF's order",
        )
    names = [wanted[joint] for joint in robot.joints if joint in wanted]
    numbered = [str(k + 1) for k in range(robot.n)]
    if not names and set(samples[0].names) >= set(numbered):
        names = numbered
    missing = [joint for joint in robot.joints if joint not in wanted] if names != numbered else []
    if missing:
        held = sorted({name for sample in samples for name in sample.names})
        locks = f" ({lock_words(missing)})" if len(missing) < robot.n else ""
        raise LogError(
            f"the topic {chosen.name} does not hold the joint{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            where=str(path),
            got=", ".join(held[:12]),
            remedy=f"lock what was not recorded{locks}, choose another log.topic, or pair the names in log.joints",
        )
    messages = _one_publisher(samples, names, chosen.name, notes)
    samples, stamps = [samples[k] for k in messages], stamps[messages]
    clock, signals = _joined(samples, stamps, names, chosen.name, notes)
    mark = "" if names == numbered else "_"
    columns = {"t": clock, **{f"{prefix}{mark}{name}": values for (prefix, name), values in signals.items()}}
    if not any(prefix == "tau" for prefix, _ in signals):
        notes.append(f"topic {chosen.name} logs no effort")
    return ArrayTable(
        str(path), tuple(columns), len(columns), _files(Path(path)), tuple(notes), columns=tuple(columns.values())
    )


def _files(path: Path) -> tuple[str, ...]:
    if path.is_file():
        return (str(path),)
    return tuple(str(p) for p in sorted(path.iterdir()) if p.is_file() and p.suffix in (".db3", ".mcap", ".yaml", ".zstd"))


class _Reader:
    """Common interface to ROS 1 and ROS 2 bags."""

    def __init__(self, storage: Any, ros1: bool) -> None:
        from rosbags.typesys import Stores, get_typestore

        self.storage, self.ros1 = storage, ros1
        self.standard = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_JAZZY)
        self.stores: dict[str, Any] = {}

    def store(self, connection: Any) -> Any:
        """The type store for a connection: the standard types, else the definitions in the bag."""
        kind = connection.msgtype
        if kind in self.standard.fielddefs:
            return self.standard
        if kind not in self.stores:
            from rosbags.interfaces import MessageDefinitionFormat
            from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

            form, text = connection.msgdef.format, connection.msgdef.data
            types: dict[Any, Any] = {}
            if form == MessageDefinitionFormat.MSG:
                types = dict(get_types_from_msg(text, kind))
            elif form == MessageDefinitionFormat.IDL:
                types = dict(get_types_from_idl(text))
            store = get_typestore(Stores.EMPTY)
            store.register({**{name: value for name, value in self.standard.fielddefs.items() if name not in types}, **types})
            self.stores[kind] = store
        return self.stores[kind]

    def sample(self, connection: Any, raw: bytes) -> Sample | None:
        """The joint states of one message; None if it contains none."""
        store = self.store(connection)
        message = (
            store.deserialize_ros1(raw, connection.msgtype) if self.ros1 else store.deserialize_cdr(raw, connection.msgtype)
        )
        return sample_of(message)


@contextmanager
def _reader(path: Path) -> Iterator[_Reader]:
    from rosbags.rosbag1 import Reader as Reader1
    from rosbags.rosbag2.reader import DirectoryReader
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

    if path.is_dir():
        if not (path / "metadata.yaml").is_file():
            raise LogError(
                "the bag's folder has no metadata.yaml", where=str(path), remedy="name its .db3 or .mcap file itself"
            )
        outside = [file for file in _files(path) if allowed(file, [path]) is None]
        if outside:
            remedy = "copy what links lead to into the bag's folder"
            raise LogError("a file of the bag leads out of its folder", where=outside[0], remedy=remedy)
        storage: Any = DirectoryReader(path)
    else:
        with open(path, "rb") as stream:
            head = stream.read(16)
        ros1 = head.startswith(b"#ROSBAG")
        storage = Reader1(path) if ros1 else McapReader(path) if head.startswith(b"\x89MCAP") else Sqlite3Reader(path)
    storage.open()
    try:
        yield _Reader(storage, isinstance(storage, Reader1))
    finally:
        storage.close()


def _topics(reader: _Reader, path: str | Path, notes: list[str]) -> list[_Topic]:
    """Topics whose messages contain joint positions."""
    topics: dict[str, _Topic] = {}
    unknown = []
    damage: Exception | None = None
    for connection in list(reader.storage.connections):
        content = _Topic(connection.topic, [connection], connection.msgcount)
        try:
            for k, (_, _, raw) in enumerate(reader.storage.messages([connection])):
                sample = reader.sample(connection, bytes(raw))
                if sample is None and k > 3 and not content.joints:
                    break
                if sample is not None:
                    content.joints |= set(sample.names)
                    content.effort |= _has_effort(sample)
                if k >= _LOOK:
                    break
        except Exception as error:  # a type without definition, or a broken message: try other topics
            if isinstance(error, UrdfIdentError | MemoryError):
                raise
            unknown.append(f"{connection.topic} ({connection.msgtype})")
            if connection.msgtype == _JOINT_STATE:
                damage = error
            if not content.joints:
                continue
        if content.joints:
            topic = topics.setdefault(content.name, _Topic(content.name, [], 0))
            topic.connections.append(connection)
            topic.count += content.count
            topic.joints |= content.joints
            topic.effort |= content.effort
    if unknown:
        notes.append(f"topics with messages that cannot be read: {', '.join(unknown[:5])}")
    if not topics and damage is not None:
        raise damage
    if not topics:
        held = ", ".join(sorted(f"{c.topic} ({c.msgtype})" for c in reader.storage.connections)[:8])
        raise LogError(
            "no topic of the bag contains joint positions",
            where=str(path),
            got=held or "no topics",
            expected="sensor_msgs/JointState",
            remedy="record /joint_states" + ("; types without definition need a bag in MCAP" if unknown else ""),
        )
    return list(topics.values())


def _has_effort(sample: Sample) -> bool:
    return bool(np.isfinite(np.asarray(sample.values.get("tau", ()), dtype=float)).any()) and bool(np.any(sample.values["tau"]))


def _choose(topics: Sequence[_Topic], robot: Robot, wanted: str | None, where: str, notes: list[str]) -> _Topic:
    if wanted is not None:
        match = [topic for topic in topics if topic.name.strip("/") == wanted.strip("/")]
        if not match:
            raise LogError(
                f"no topic '{wanted}' with joint states",
                where=f"{where} (log.topic)",
                remedy=nearest(wanted, [topic.name for topic in topics]),
            )
        return match[0]

    def preference(topic: _Topic) -> tuple[int, bool, bool, int]:  # target positions are not measurements
        fits = len(set(robot.joints) & topic.joints) or (len(topic.joints) >= robot.n) * 0.5
        return int(2 * fits), not holds_targets(topic.name), topic.effort, topic.count

    chosen = max(topics, key=preference)
    others = [f"{topic.name} ({'with' if topic.effort else 'no'} effort)" for topic in topics if topic is not chosen]
    if others:
        notes.append(
            f"topic {chosen.name} chosen ({'with' if chosen.effort else 'no'} effort); others: {', '.join(others[:5])}; "
            "log.topic overrides"
        )
    return chosen


def _samples(reader: _Reader, connections: list[Any], notes: list[str]) -> tuple[list[Sample], Array]:
    """All messages of a topic with their times [s since the first]; unreadable ones are skipped and counted."""
    samples: list[Sample] = []
    received: list[int] = []
    broken = 0
    try:
        for connection, when, raw in reader.storage.messages(connections):
            try:
                sample = reader.sample(connection, bytes(raw))
            except Exception as error:  # a single unreadable message
                if isinstance(error, MemoryError):
                    raise
                sample = None
            if sample is None:
                broken += 1
                continue
            samples.append(sample)
            received.append(when)
    except Exception as error:  # the end of an interrupted recording
        if len(samples) < 2 or isinstance(error, MemoryError):
            raise
        notes.append(f"the bag breaks off after {len(samples)} messages ({' '.join(str(error).split())[:80]})")
    else:
        declared, read = sum(connection.msgcount for connection in connections), len(samples) + broken
        if read < declared:
            notes.append(
                f"the bag declares {declared} messages, of which {read} could be read: part of it is damaged or missing"
            )
    if broken:
        notes.append(f"{broken} messages without joint positions left out")
    stamps = [sample.stamp for sample in samples]
    if not samples:
        raise LogError("the topic holds no readable message", remedy="choose another with log.topic")
    if stamps.count(0) > 1:  # a single zero may be the start of a simulated clock
        notes.append("messages without a stamp: the time of recording is used")
        stamps = received
    else:
        moves = [
            now.stamp == before.stamp
            for before, now in pairwise(samples)
            if before.names == now.names and not np.array_equal(before.values["q"], now.values["q"])
        ]
        if 2 * sum(moves) > len(moves):
            notes.append("the header stamps do not change while the joints move: the recording time is used")
            stamps = received
    return samples, np.array([(stamp - stamps[0]) / 1e9 for stamp in stamps])


def _one_publisher(samples: Sequence[Sample], names: Sequence[str], topic: str, notes: list[str]) -> IntArray:
    """Indices of the messages of one publisher, where several publish all of the joints on one topic.

    A publisher keeps the form of its messages. Of two with the same form, one that stands still (a GUI, a driver that is not
    connected) shows as one position that recurs between others, which go on as if it were not there.
    """
    complete = np.array([k for k, sample in enumerate(samples) if set(names) <= set(sample.names)], dtype=np.intp)
    every = np.arange(len(samples))
    if not len(complete):
        return every
    positions = np.array(
        [[samples[k].values["q"][samples[k].names.index(name)] for name in names] for k in complete], dtype=float
    )
    forms = [samples[k].form for k in complete]
    kinds = {form: k for k, form in enumerate(dict.fromkeys(forms))}
    source = np.array([kinds[form] for form in forms])
    if len(kinds) == 1:
        source = _standing(positions).astype(int)
    switches = int(np.count_nonzero(np.diff(source)))
    numbers, counts = np.unique(source, return_counts=True)
    if len(numbers) < 2 or switches < counts.min():  # one after the other: a publisher that was started again
        return every

    def preference(number: int) -> tuple[bool, float, int]:
        messages = complete[source == number]
        return (
            any(_has_effort(samples[k]) for k in messages),
            float(np.ptp(positions[source == number], axis=0).max()),
            len(messages),
        )

    chosen = max(numbers.tolist(), key=preference)
    for number in numbers:
        if number != chosen:
            effort, travel, count = preference(number)
            state = "that moves" if travel > 0 else "that stands still"
            notes.append(
                f"topic {topic} has several publishers of all joints; one {state}, with{'' if effort else 'out'} effort "
                f"({count} messages), is left out"
            )
    return np.setdiff1d(every, complete[source != chosen])


def _standing(positions: Array) -> BoolArray:
    """Whether each message repeats the one position that recurs between messages of a motion that goes on without it.

    Args:
        positions: Shape (N, n).

    Returns:
        Shape (N,); False everywhere if there is no such position.
    """
    values, place, counts = np.unique(positions, axis=0, return_inverse=True, return_counts=True)
    most = int(np.argmax(counts))
    same = place.ravel() == most
    stretches = [(begin, end) for begin, end in runs(same) if begin > 0 and end < len(same)]
    if len(stretches) < _RECURS:
        return np.zeros(len(same), dtype=bool)
    before, after = (positions[[pair[side] - (side == 0) for pair in stretches]] for side in (0, 1))
    across, away = np.abs(after - before).max(axis=1), np.abs(before - values[most]).max(axis=1)
    goes_on = across <= 0.5 * away
    return same if goes_on.mean() > 0.5 else np.zeros(len(same), dtype=bool)


Signals = dict[tuple[str, str], Array]


def _joined(samples: list[Sample], time: Array, names: list[str], topic: str, notes: list[str]) -> tuple[Array, Signals]:
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
    clock = clocks[base]
    clock = clock[(clock >= begin) & (clock <= end)]
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
    joined: Signals = {}
    for group in used:
        order = np.argsort(clocks[group], kind="stable")
        signals = _signals([samples[groups[group][k]] for k in order], [name for name in names if owner[name] == group])
        joined.update({key: np.interp(clock, clocks[group][order], values) for key, values in signals.items()})
    prefixes = {prefix for prefix, _ in joined if all((prefix, name) in joined for name in names)}
    return clock, {key: values for key, values in joined.items() if key[0] in prefixes}


def _signals(samples: list[Sample], names: list[str]) -> Signals:
    """Signals by quantity and joint; missing values are NaN, and quantities that most messages lack are left out."""
    signals: Signals = {}
    order_of: dict[tuple[str, ...], list[int]] = {}
    keys = Counter(key for sample in samples for key in sample.values)
    for prefix in sorted(key for key, count in keys.items() if 2 * count > len(samples)):
        values = np.full((len(samples), len(names)), np.nan)
        for row, sample in zip(values, samples, strict=True):
            if prefix in sample.values:
                order = order_of.get(sample.names)
                if order is None:
                    order = order_of[sample.names] = [sample.names.index(name) for name in names]
                row[:] = np.asarray(sample.values[prefix], dtype=float)[order]
        if prefix == "tau" and not np.any(np.nan_to_num(values)):
            continue  # filled with zeros: a driver without torque sensing
        signals.update({(prefix, name): values[:, k] for k, name in enumerate(names)})
    return signals
