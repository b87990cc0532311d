"""Conversion of header names of other programs (ROS, LeRobot, UR RTDE, Franka, plain words) to the default spelling.

``actual_q_0``, ``joint_1.pos``, ``/joint_states/elbow/position``, ``tau_J[3]``, ``q1 [deg]``, ``Joint 2 Position`` become
``q0``, ``q_joint_1``, ``q_elbow``, ``tau3``, ``q1``, ``q2``. Names in the default spelling are unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ...errors import UnitError
from ...model.robot import Robot
from ...units import parse_unit
from .joint_names import match_joints
from .names import NAMES, TIMES

#: Default prefix → patterns of the quantity's names in other programs.
_PATTERNS = {names.prefix: names.patterns for names in NAMES.values() if names.patterns}
_OF_POSITIONS = tuple(f"{prefix}_" for prefix in NAMES["position"].prefixes)
_TARGETS = ("position_target", "effort_target", "torque_target")
_TARGET_WORDS = re.compile(
    r"(?:^|[^a-z])(?:command(?:s|ed)?|cmd|targets?|desired|references?|ref|setpoints?|goals?)(?:[^a-z]|$)", re.IGNORECASE
)
#: A unit as the suffix of a name, ``elbow_pos_deg``; single letters are excluded because they often name joints.
_UNIT_AFTER = re.compile(r"[_ ](deg|degrees|rad|radians|mm|rad/s|deg/s|mm/s|rad_s|deg_s|mm_s|rpm|Nm|mNm|mA)$")
#: ``Joint 2 Position``, ``torque_axis3``: number and word, or word and number.
_OF_NUMBER = r"(?:joint|axis)[_ ]?"
_UNIT = re.compile(r"\s*[\[(]\s*([^\]\[()]*[^\]\[()\d\s][^\]\[()]*)\s*[\])]\s*$")


@dataclass(frozen=True)
class Header:
    """A header in the default spelling.

    Attributes:
        names: Column names; unrecognised columns keep theirs.
        units: The unit given by each name; "" if there is none.
        notes: Choices that the user should know of.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    notes: tuple[str, ...] = ()


#: Name of a list of joint names, or of one of its columns: ``joint_names``, ``field.name0``.
JOINT_COLUMN = re.compile(r"(.*[/.])?(?:(?:joint_?)?names?|joints)([_\[ ]?\d+\]?)?", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)[_\[ ]?(\d+)\]?")


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
        joints, numbers = lists.get(stem[: max(stem.rfind("/"), stem.rfind(".")) + 1], ()), sorted(column_of)
        if (
            len(joints) == len(numbers) == len(set(joints))
            and numbers[0] in (0, 1)
            and numbers[-1] - numbers[0] == len(numbers) - 1
        ):
            for joint, number in zip(joints, numbers, strict=True):
                result[column_of[number]] = f"{stem}_{joint}"
    return tuple(result) if result != list(names) else None


def holds_targets(path: str) -> bool:
    """Whether the name of a topic or group (``/joint_commands``) indicates controller targets instead of measurements."""
    return _TARGET_WORDS.search(path) is not None


def default_header(names: Sequence[str], robot: Robot, joints: Mapping[str, str], where: str) -> Header:
    """Converts a header to the default spelling.

    Args:
        joints: Robot joint → its name in the log, from the project file.

    Raises:
        LogError: The joint names match the robot in several ways.
    """
    if not names:
        return Header((), ())
    bare, units = zip(*(without_unit(name) for name in names), strict=True)
    pairs: Mapping[str, str] = {joint: joint for joint in (*robot.joints, *robot.locked)}
    notes: tuple[str, ...] = ()
    away = {joint: name for joint, name in joints.items() if joint != name}
    stated = [f"{prefix}{joint}" for prefix in _OF_POSITIONS for joint in pairs]
    renamed = [f"{prefix}{joint}" for prefix in _OF_POSITIONS for joint in away.values()]
    moved: set[str] = set()  # columns in the default spelling of a joint that has another name in this log
    if any(name in bare for name in stated) and not any(name in bare for name in renamed):  # nothing is guessed
        parsed = [column for _, column in _parsed(bare, tuple(pairs.items()))]
        currents = not any(column and column.prefix == "tau" and not column.is_current for column in parsed)
        for k, column in enumerate(parsed):  # other spellings are left, but for currents if there is no torque
            if column and not bare[k].startswith(f"{column.prefix}_") and not (currents and column.is_current):
                parsed[k] = None
    else:
        joint_ends = tuple(joint.lower() for joint in pairs)
        split_names = (_without_end(name, unit, joint_ends) for name, unit in zip(bare, units, strict=True))
        bare, units = zip(*split_names, strict=True)
        logged = _logged_joints(bare)
        given = {joint: name for joint, name in joints.items() if logged and (name in logged or joint not in robot.locked)}
        known_joints, (pairs, notes) = tuple(pairs), match_joints(logged, robot, given, where)
        spelled = {name: joint for joint, name in pairs.items()}
        spelled |= {joint: joint for joint in known_joints if joint not in (*spelled, *away)}
        left = {f"{prefix}_{joint}": joint for spelling in NAMES.values() for prefix in spelling.prefixes for joint in away}
        moved = {name for name, stem in zip(names, bare, strict=True) if stem in left}
        by_name = _parsed(bare, tuple(spelled.items()))
        parsed = [None if left.get(stem, stem) in away.keys() - spelled.keys() else column for stem, column in by_name]
    chosen = _chosen(parsed)
    unmatched = any(joint != name for joint, name in pairs.items())
    known = set(names) - moved
    result, header_unit = [], list(units)
    for k, (name, column) in enumerate(zip(names, parsed, strict=True)):
        default = name
        if (clock := bare[k].lower().rsplit("/", 1)[-1]) in TIMES and "t" not in known:
            default, header_unit[k] = "t", units[k] or TIMES[clock]
        elif column is not None and chosen.get(column.prefix) == (column.word, column.path):
            joint = column.joint or (robot.joints[0] if robot.n == 1 else "")  # a bare word refers to the only joint
            default = (f"{column.prefix}{joint}" if joint.isdigit() else f"{column.prefix}_{joint}") if joint else name
            if default in known and default != name:
                default = name
            else:
                header_unit[k] = units[k] or ("A" if column.is_current else "")
        elif column is None and (name in moved or (unmatched and name.startswith(_OF_POSITIONS))):
            default = f"({name})"  # a joint of another arm in the same log
        known.add(default)
        result.append(default)
    return Header(tuple(result), tuple(header_unit), tuple(notes))


def without_unit(name: str) -> tuple[str, str]:
    """Splits ``q1 [deg]`` into ``q1`` and ``deg``; the whole name and "" if it states no known unit."""
    match = _UNIT.search(name)
    if match:
        try:
            return name[: match.start()], parse_unit(match[1]).name
        except UnitError:
            pass
    return name.strip(), ""


def unknown_unit(name: str) -> tuple[str, str | None]:
    """Splits a column name that ends with brackets around no known unit, such as ``q1 [furlong]``.

    Returns:
        The name without the brackets and what is in them; the whole name and None for all others.
    """
    match = _UNIT.search(name)
    return (name, None) if match is None or without_unit(name)[1] else (name[: match.start()], match[1])


def _without_end(name: str, unit: str, joints: tuple[str, ...]) -> tuple[str, str]:
    """``elbow_pos_deg`` without its unit, and the unit; names that end with a joint name (lower case) are kept."""
    match = None if unit or name.lower().endswith(joints) else _UNIT_AFTER.search(name)
    return (name, unit) if match is None else (name[: match.start()], parse_unit(match[1].replace("_", "/")).name)


_POSITION = "|".join(_PATTERNS["q"])
_BEFORE = re.compile(rf"^(?:.*[/.:])?(?:{_POSITION})[_./\[]([^\[\]]+?)\]?$", re.IGNORECASE)
_AFTER = re.compile(rf"(?:^|/)([^/]+)[./](?:{_POSITION})$", re.IGNORECASE)
_AFTER_SCORE = re.compile(r"(?:^|/)([^/]+)_(?:pos|position)$", re.IGNORECASE)
_LETTER = re.compile("[a-z]", re.IGNORECASE)


def _logged_joints(names: Sequence[str]) -> list[str]:
    """Joint names in a header: the remainder of the names of position columns."""
    joints: dict[str, None] = {}
    for pattern in (_AFTER, _BEFORE, _AFTER_SCORE):
        for name in names:
            match = pattern.search(name)
            if match and _LETTER.search(match[1]) and not _is_word(name) and not _is_word(match[1]):
                joints.setdefault(match[1])
        if joints:
            break
    return list(joints)


_ALL = re.compile("|".join(f"(?:{word})" for patterns in _PATTERNS.values() for word in patterns), re.IGNORECASE)
_ANY_WORD = re.compile(rf"(?:{_ALL.pattern})[_\[./ ]*\d*\]?", re.IGNORECASE)


def _is_word(name: str) -> bool:
    """Whether a name is a quantity with at most a number: ``target_q_3``, ``q_d``."""
    return _ANY_WORD.fullmatch(name) is not None or name.lower() in ("target", "desired", "actual", "target_0")


#: Targets first, because ``target_q`` ends like ``q``.
_ORDER = [(key, word) for key in (*_TARGETS, *(key for key in _PATTERNS if key not in _TARGETS)) for word in _PATTERNS[key]]


class _ColumnName(NamedTuple):
    """A column name: default prefix of its quantity, joint or number, pattern that matched, and topic or group before it."""

    prefix: str
    joint: str
    word: str
    path: str

    @property
    def is_current(self) -> bool:
        """Whether it names a measured motor current."""
        return self.word in _PATTERNS["tau"] and "current" in self.word


@lru_cache(maxsize=8)  # many logs have the same header
def _parsed(names: tuple[str, ...], joints: tuple[tuple[str, str], ...]) -> tuple[tuple[str, _ColumnName | None], ...]:
    return tuple((name, _parse(name, dict(joints))) for name in names)


def _parse(name: str, joints: Mapping[str, str]) -> _ColumnName | None:
    order = [(prefix, word) for prefix, word in _ORDER if re.search(word, name, re.IGNORECASE)]  # skips most patterns
    spelled = sorted((joint for joint in joints if joint in name), key=len, reverse=True)
    around = []  # each joint in the name, with what stands before and after it; from the end
    for joint in spelled:
        start = len(name)
        while joint and (start := name.rfind(joint, 0, start)) >= 0:
            around.append((joint, name[:start], name[start + len(joint) :]))
            start += len(joint) - 1
    for prefix, word in order:
        for joint, before, after in around:
            match = re.fullmatch(rf"(.*[/.:])?({word})[_./\[]", before, re.IGNORECASE) if after in ("", "]") else None
            if match:
                return _ColumnName(prefix, joints[joint], word, match[1] or "")
        for joint, before, after in around:
            if (not before or before[-1] in "/.") and re.fullmatch(rf"[_./ ]({word})", after, re.IGNORECASE):
                return _ColumnName(prefix, joints[joint], word, before)
    for prefix, word in order:
        match = re.fullmatch(rf"(.*[/.:])?({word})[_\[./ ]*(\d*)\]?", name, re.IGNORECASE)
        if match:
            return _ColumnName(prefix, match[3], word, match[1] or "")
        match = re.fullmatch(rf"{_OF_NUMBER}(\d+)[_ ]{word}|{word}[_ ]{_OF_NUMBER}(\d+)", name, re.IGNORECASE)
        if match:
            return _ColumnName(prefix, match[1] or match[2], word, "")
    return None


def _chosen(parsed: Sequence[_ColumnName | None]) -> dict[str, tuple[str, str]]:
    """Word and path for each quantity: measurements before targets, then the first word, then the path with most columns."""
    chosen: dict[str, tuple[str, str]] = {}
    for prefix, patterns in _PATTERNS.items():
        groups = Counter((column.word, column.path) for column in parsed if column is not None and column.prefix == prefix)
        if groups:
            chosen[prefix] = max(
                groups, key=lambda group: (not holds_targets(group[1]), -patterns.index(group[0]), groups[group])
            )
    return chosen
