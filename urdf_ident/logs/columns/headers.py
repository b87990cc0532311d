"""What the names of columns say: quantity, joint and unit.

Names in the default spelling (``q_elbow``, ``tau_elbow``) are taken as they stand. In a header without positions in that
spelling, names of other programs (ROS, LeRobot, UR RTDE, Franka, plain words) are understood: ``actual_q_0``, ``joint_1.pos``,
``/joint_states/elbow/position``, ``tau_J[3]``, ``q1 [deg]``, ``Joint 2 Position``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import LogError, UnitError, nearest
from ...model.robot import Robot
from ...units import parse_unit
from .layout import NAMES, TIME_NAMES, TIMES

_TARGETS = ("position_target", "effort_target", "torque_target")
#: Quantity and pattern of its name; targets first, because ``target_q`` ends like ``q``.
_PATTERNS = [(key, word) for key in sorted(NAMES, key=lambda key: key not in _TARGETS) for word in NAMES[key].patterns]
_TARGET_WORDS = re.compile(
    r"(?:^|[^a-z])(?:command(?:s|ed)?|cmd|targets?|desired|references?|ref|setpoints?|goals?)(?:[^a-z]|$)", re.IGNORECASE
)
UNIT = re.compile(r"\s*[\[(]\s*([^\]\[()]*[^\]\[()\d\s][^\]\[()]*)\s*[\])]\s*$")
#: A unit as the suffix of a name, ``elbow_pos_deg``; single letters are excluded because they often name joints.
_UNIT_AFTER = re.compile(r"[_ ](deg|degrees|rad|radians|mm|rad/s|deg/s|mm/s|rad_s|deg_s|mm_s|rpm|Nm|mNm|mA)$")
#: ``Joint 2 Position``, ``torque_axis3``: number and word, or word and number.
_OF_NUMBER = r"(?:joint|axis)[_ ]?"
#: Names of positions around the name of a joint: ``elbow.pos``, ``q_elbow``, ``elbow_pos``.
_POSITION = "|".join(NAMES["position"].patterns)
_AROUND_JOINTS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:^|/)([^/]+)[./](?:{_POSITION})$",
        rf"^(?:.*[/.:])?(?:{_POSITION})[_./\[]([^\[\]]+?)\]?$",
        r"(?:^|/)([^/]+)_(?:pos|position)$",
    )
]
#: The beginning of the name of a target, ``position_target_elbow``.
_TARGET = re.compile(rf"(?:.*[/.:])?(?:{'|'.join(word for key, word in _PATTERNS if key in _TARGETS)})[_./\[]", re.IGNORECASE)
#: A quantity with at most a number: ``target_q_3``, ``q_d``.
_WORD = re.compile(
    rf"(?:{'|'.join(word for _, word in _PATTERNS)})[_\[./ ]*\d*\]?|target|desired|actual|target_0", re.IGNORECASE
)
#: Name of a list of joint names, or of one of its columns: ``joint_names``, ``field.name0``.
JOINT_COLUMN = re.compile(r"(.*[/.])?(?:(?:joint_?)?names?|joints)([_\[ ]?\d+\]?)?", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)[_\[ ]?(\d+)\]?")


@dataclass(frozen=True)
class Header:
    """What the names of the columns say.

    Attributes:
        columns: (quantity, joint) → column, for joints by name or by number (as text); ``("temperature", "")`` is one of the
            whole robot.
        clock: The time column, or None.
        units: The unit that each name states; "" if there is none.
        prefixes: Quantity → prefix of its names in this header, for messages.
        others: Columns like those of positions that name no joint of the robot; empty where the log has other joint names.
        notes: Choices that the user should know of.
    """

    columns: Mapping[tuple[str, str], int] = field(default_factory=dict)
    clock: int | None = None
    units: tuple[str, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)
    others: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def read_header(names: Sequence[str], robot: Robot, joints: Mapping[str, str], where: str) -> Header:
    """Finds out what the names of columns say; joints: robot joint → its name in the log, from the project file."""
    if not names:
        return Header()
    bare, units = (list(part) for part in zip(*map(without_unit, names), strict=True))
    known = (*robot.joints, *robot.locked)
    renamed = {joint: name for joint, name in joints.items() if joint != name}
    used = {
        key: next((prefix for prefix in spelling.prefixes if any(f"{prefix}_{joint}" in bare for joint in known)), "")
        for key, spelling in NAMES.items()
    }
    of_renamed = [f"{prefix}_{name}" for prefix in NAMES["position"].prefixes for name in renamed.values()]
    by_default = bool(used["position"]) and not any(name in bare for name in of_renamed)
    spelled, notes = {joint: joint for joint in known}, tuple[str, ...]()
    if not by_default:
        _take_suffixed_units(bare, units, known)
        logged = _logged_joints(bare)
        given = {joint: name for joint, name in joints.items() if logged and (name in logged or joint not in robot.locked)}
        pairs, notes = match_joints(logged, robot, given, where)
        spelled = {name: joint for joint, name in pairs.items()}
        spelled |= {joint: joint for joint in known if joint not in spelled and joint not in renamed}
    prefixes = [prefix for spelling in NAMES.values() for prefix in spelling.prefixes]
    elsewhere = {f"{prefix}_{joint}" for prefix in prefixes for joint in renamed.keys() - spelled}
    # beside names in the default spelling, others count only for motor currents, and only where there is no effort
    parsed = [None if name in elsewhere or (by_default and used["effort"]) else _parse(name, spelled) for name in bare]
    exact: dict[str, tuple[str, str]] = {}
    if by_default:
        exact = {f"{prefix}_{joint}": (key, joint) for key, prefix in used.items() if prefix for joint in known}
        exact |= dict.fromkeys(("temp", "temperature"), ("temperature", ""))
        parsed = [
            column if column is not None and (column.is_current or name.startswith("tau_")) else None
            for name, column in zip(bare, parsed, strict=True)
        ]
    chosen = _chosen_names(parsed)
    columns = dict[tuple[str, str], int]()
    for k, (name, column) in enumerate(zip(bare, parsed, strict=True)):
        meaning = exact.get(name)
        if meaning is None and column is not None and chosen[column.quantity] == (column.word, column.path):
            joint = column.joint or (robot.joints[0] if robot.n == 1 else "")  # a bare word refers to the only joint
            if joint or column.quantity == "temperature":
                meaning = column.quantity, joint
                units[k] = units[k] or ("A" if column.is_current else "")
        if meaning is None:
            continue
        default = f"{NAMES[meaning[0]].prefix}{'' if meaning[1].isdigit() else '_'}{meaning[1]}"
        if meaning not in columns or (names[k] == default != names[columns[meaning]]):
            columns[meaning] = k
    clocks = [name.lower().rsplit("/", 1)[-1] for name in bare]
    times = [k for k, name in enumerate(names) if name.lower() in TIME_NAMES]
    times += [k for k, clock in enumerate(clocks) if clock in TIMES]
    units = [unit or TIMES.get(clock, "") for unit, clock in zip(units, clocks, strict=True)]
    prefix_of = {key: f"{used[key] or spelling.prefix}_" for key, spelling in NAMES.items()}
    begin, others = prefix_of["position"], tuple[int, ...]()
    if all(name == joint for name, joint in spelled.items()):  # else the joints of another arm
        unknown = (k for k, name in enumerate(names) if name.startswith(begin) and name[len(begin) :] not in known)
        others = tuple(k for k in unknown if k not in columns.values())
    return Header(columns, times[0] if times else None, tuple(units), prefix_of, others, notes)


def _take_suffixed_units(bare: list[str], units: list[str], joints: Sequence[str]) -> None:
    """Moves units at the ends of names, ``elbow_pos_deg``, to the units; not from a name that ends with that of a joint."""
    ends = tuple(joint.lower() for joint in joints)
    for k, name in enumerate(bare):
        if not units[k] and not name.lower().endswith(ends) and (match := _UNIT_AFTER.search(name)):
            bare[k], units[k] = name[: match.start()], parse_unit(match[1].replace("_", "/")).name


def _logged_joints(bare: Sequence[str]) -> list[str]:
    """Joint names of the log: what the first fitting pattern leaves of the names of positions."""
    measured = [name for name in bare if not (_WORD.fullmatch(name) or _TARGET.match(name))]
    for pattern in _AROUND_JOINTS:
        rests = [match[1] for name in measured if (match := pattern.search(name))]
        logged = [rest for rest in rests if re.search("[a-zA-Z]", rest) and not _WORD.fullmatch(rest)]
        if logged:
            return list(dict.fromkeys(logged))
    return []


def _chosen_names(parsed: Sequence[_ColumnName | None]) -> dict[str, tuple[str, str]]:
    """Word and path of each quantity: measurements before targets, then the first word, then the path with most columns."""
    counts = Counter((column.quantity, column.word, column.path) for column in parsed if column is not None)
    ranked = sorted(
        counts, key=lambda group: (holds_targets(group[2]), NAMES[group[0]].patterns.index(group[1]), -counts[group])
    )
    return {key: (word, path) for key, word, path in reversed(ranked)}


def without_unit(name: str) -> tuple[str, str]:
    """Splits ``q1 [deg]`` into ``q1`` and ``deg``; the whole name and "" if it states no known unit."""
    match = UNIT.search(name)
    if match:
        try:
            return name[: match.start()], parse_unit(match[1]).name
        except UnitError:
            pass
    return name.strip(), ""


def holds_targets(path: str) -> bool:
    """Whether the name of a topic or group (``/joint_commands``) indicates controller targets instead of measurements."""
    return _TARGET_WORDS.search(path) is not None


def with_joints(names: Sequence[str], lists: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """Replaces joint numbers in column names by joint names.

    Args:
        names: Column names: ``field.position0``, ``run/q_0``.
        lists: Group of the names (``"field."``, ``"run/"``, ``""``) → its joints in the order of the numbers.

    Returns:
        The names (``field.position_elbow``); series of another length are unchanged. None if no name changes.
    """
    series: dict[str, dict[int, int]] = {}
    for k, name in enumerate(names):
        if (match := _NUMBERED.fullmatch(name)) and not JOINT_COLUMN.fullmatch(name):
            series.setdefault(match[1], {})[int(match[2])] = k
    result = list(names)
    for stem, column_of in series.items():
        joints = lists.get(stem[: max(stem.rfind("/"), stem.rfind(".")) + 1], ())
        first, count = min(column_of), len(column_of)
        if len(joints) == count == len(set(joints)) and first <= 1 and sorted(column_of) == list(range(first, first + count)):
            for number, joint in enumerate(joints, first):
                result[column_of[number]] = f"{stem}_{joint}"
    return tuple(result) if result != list(names) else None


class _ColumnName(NamedTuple):
    """A name of another program: quantity, joint or number, the pattern that matched, and topic or group before it."""

    quantity: str
    joint: str
    word: str
    path: str

    @property
    def is_current(self) -> bool:
        """Whether it names a measured motor current."""
        return self.quantity == "effort" and "current" in self.word


def _parse(name: str, joints: Mapping[str, str]) -> _ColumnName | None:
    words = [(key, word) for key, word in _PATTERNS if re.search(word, name, re.IGNORECASE)]  # skips most patterns
    around = []  # each joint in the name, with what stands before and after it; long names first, from the end
    for joint in sorted((joint for joint in joints if joint in name), key=len, reverse=True):
        start = len(name)
        while joint and (start := name.rfind(joint, 0, start)) >= 0:
            around.append((joint, name[:start], name[start + len(joint) :]))
            start += len(joint) - 1
    for key, word in words:
        for joint, before, after in around:
            match = re.fullmatch(rf"(.*[/.:])?({word})[_./\[]", before, re.IGNORECASE) if after in ("", "]") else None
            if match:
                return _ColumnName(key, joints[joint], word, match[1] or "")
        for joint, before, after in around:
            if (not before or before[-1] in "/.") and re.fullmatch(rf"[_./ ]({word})", after, re.IGNORECASE):
                return _ColumnName(key, joints[joint], word, before)
    for key, word in words:
        match = re.fullmatch(rf"(.*[/.:])?({word})[_\[./ ]*(\d*)\]?", name, re.IGNORECASE)
        if match:
            return _ColumnName(key, match[3], word, match[1] or "")
        match = re.fullmatch(rf"{_OF_NUMBER}(\d+)[_ ]{word}|{word}[_ ]{_OF_NUMBER}(\d+)", name, re.IGNORECASE)
        if match:
            return _ColumnName(key, match[1] or match[2], word, "")
    return None


def match_joints(
    logged: Sequence[str], robot: Robot, given: Mapping[str, str], where: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Finds the name that a log uses for each joint.

    Equal names match. Otherwise the log's names must equal those of the robot with another common prefix and suffix
    (``fer_joint1`` … for ``panda_joint1`` …, ``left_elbow`` … for ``elbow_joint`` …), and the match must be unique.

    Args:
        given: Robot joint → its name in the log, from the project file.

    Returns:
        Robot joint → name in the log, for the joints that were found, and notes on names that differ.

    Raises:
        LogError: ``given`` contains a joint that does not exist or gives a name twice, or the match is not unique.
    """
    known = (*robot.joints, *robot.locked)
    for joint, name in given.items():
        if joint not in known:
            raise LogError(f"log.joints names no joint '{joint}' of the robot", remedy=nearest(joint, known))
        if name not in logged:
            raise LogError(f"the log has no joint '{name}'", where=f"{where} (log.joints)", remedy=nearest(name, logged))
    equal = {joint: joint for joint in known if joint in logged and joint not in given}
    logged_name = {**equal, **given}
    twice = [name for name, count in Counter(logged_name.values()).items() if count > 1]
    if twice:
        both = ", ".join(joint for joint, name in logged_name.items() if name == twice[0])
        raise LogError(
            f"'{twice[0]}' of the log is given for several joints of the robot",
            where=f"{where} (log.joints)",
            got=both,
            expected="one joint each",
            remedy="correct `log: {joints: {robot joint: name in the log}}`; joints that are not listed keep their names",
        )
    if any(joint in logged_name for joint in robot.joints) or not logged:
        return logged_name, ()
    matches = _matches(logged, robot)
    if len(matches) > 1:
        choices = " or ".join(f"{match[robot.joints[0]]}, …" for match in matches[:3])
        raise LogError(
            "the names of the joints match the robot in several ways",
            where=where,
            got=choices,
            expected=f"{robot.joints[0]}, …",
            remedy="say which: `log: {joints: {robot joint: name in the log}}`",
        )
    if not matches:
        return {}, ()
    match = matches[0]
    pairs = f"{match[robot.order[0]]} for {robot.order[0]}" + (f" … {match[robot.order[-1]]}" if robot.n > 1 else "")
    return match, (f"joint names differ from the URDF's and were matched: {pairs} (log.joints overrides)",)


def _matches(logged: Sequence[str], robot: Robot) -> list[dict[str, str]]:
    """All ways to name the joints with one prefix and one suffix around what tells them apart, locked joints included.

    ``panda_joint1`` … ``panda_joint7`` differ in their number, the core, after ``panda``, ``joint``. A log with ``fer_joint1``
    … has the prefix ``fer``, ``joint`` and an empty suffix before and after the same cores.
    """
    if robot.n == 1:
        return [{robot.joints[0]: logged[0]}] if len(logged) == 1 else []
    affixes = _common_affixes([_tokens(joint) for joint in robot.joints])
    cores = {joint: _core(_tokens(joint), *affixes) for joint in (*robot.joints, *robot.locked)}
    moving = [cores[joint] for joint in robot.joints]
    numbered = all(len(core) == 1 and core[0].isdigit() for core in moving)
    numbers = {core[0] for core in moving} | {token for joint in robot.locked for token in _tokens(joint)}

    spelled: dict[tuple[str, ...], str | None] = {}  # None: of several names
    for name in logged:
        spelled[_tokens(name)] = None if _tokens(name) in spelled else name
    matches = []
    for prefix, suffix in _affixes(spelled, moving[0]):
        match = {joint: spelled.get((*prefix, *core, *suffix)) for joint, core in cores.items() if core}
        if not all(match.get(joint) for joint in robot.joints):
            continue
        at = len(prefix)
        cores_logged = {name[at] for name in spelled if len(name) > at and name == (*prefix, name[at], *suffix)}
        if numbered and any(core.isdigit() and core not in numbers for core in cores_logged):
            continue  # the log numbers further joints: it is that of another robot
        matches.append({joint: name for joint, name in match.items() if name is not None})
    return matches


def _common_affixes(names: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tokens that all names have in common at the beginning and at the end; each name keeps one at least."""
    least = min(map(len, names))
    begin = next((k for k in range(least) if len({name[k] for name in names}) > 1), least - 1)
    end = next((k for k in range(least - begin) if len({name[-1 - k] for name in names}) > 1), max(0, least - begin - 1))
    return names[0][:begin], names[0][len(names[0]) - end :]


def _core(name: tuple[str, ...], prefix: tuple[str, ...], suffix: tuple[str, ...]) -> tuple[str, ...]:
    """What stands between a prefix and a suffix; empty if the name has not both."""
    core = name[len(prefix) : len(name) - len(suffix)]
    return core if name == (*prefix, *core, *suffix) else ()


def _affixes(names: Iterable[tuple[str, ...]], core: tuple[str, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """What stands before and after a core in any of the names."""
    size = len(core)
    return sorted(
        {(name[:k], name[k + size :]) for name in names for k in range(len(name) - size + 1) if name[k : k + size] == core}
    )


def _tokens(name: str) -> tuple[str, ...]:
    return tuple(token.lstrip("0") or "0" for token in re.findall(r"[a-z]+|\d+", name.lower()))
