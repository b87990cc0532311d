"""Conversion of header names of other programs (ROS, LeRobot, UR RTDE, Franka, plain words) to the default spelling.

``actual_q_0``, ``joint_1.pos``, ``/joint_states/elbow/position``, ``tau_J[3]``, ``q1 [deg]``, ``Joint 2 Position`` become
``q0``, ``q_joint_1``, ``q_elbow``, ``tau3``, ``q1``, ``q2``. Names in the default spelling are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...errors import UnitError
from ...model.robot import Robot
from ...units import parse_unit
from .joint_names import match_joints
from .names import NAMES, TIMES

#: Default prefix → patterns of the quantity's names in other programs.
_WORDS = {own.prefix: own.patterns for own in NAMES.values() if own.patterns}
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
    for stem, at in series.items():
        joints = lists.get(stem[: max(stem.rfind("/"), stem.rfind(".")) + 1], ())
        if len(joints) == len(at) == len(set(joints)) and max(at) - min(at) == len(at) - 1 and min(at) in (0, 1):
            for joint, number in zip(joints, sorted(at), strict=True):
                result[at[number]] = f"{stem}_{joint}"
    return tuple(result) if result != list(names) else None


def holds_targets(path: str) -> bool:
    """Whether the name of a topic or group indicates controller targets instead of measurements.

    Args:
        path: Its name, such as ``/joint_commands``.

    Returns:
        True for names that contain command, target, desired, reference, set-point or goal.
    """
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
    stated, renamed = ([f"{prefix}{joint}" for prefix in _OF_POSITIONS for joint in some] for some in (pairs, away.values()))
    moved: set[str] = set()  # columns in the default spelling of a joint that has another name in this log
    if any(name in bare for name in stated) and not any(name in bare for name in renamed):  # nothing is guessed
        parsed = _parsed_by_default(bare, pairs)
    else:
        whole = tuple(joint.lower() for joint in pairs)
        ends = (_without_end(name, unit, whole) for name, unit in zip(bare, units, strict=True))
        bare, units = zip(*ends, strict=True)
        logged = _logged_joints(bare)
        given = {joint: name for joint, name in joints.items() if logged and (name in logged or joint not in robot.locked)}
        known_joints, (pairs, notes) = tuple(pairs), match_joints(logged, robot, given, where)
        spelled = {name: joint for joint, name in pairs.items()}
        spelled |= {joint: joint for joint in known_joints if joint not in (*spelled, *away)}
        left = {f"{prefix}_{joint}": joint for own in NAMES.values() for prefix in own.prefixes for joint in away}
        moved = {name for name, stem in zip(names, bare, strict=True) if stem in left}
        items = _parsed(bare, tuple(spelled.items()))
        parsed = [None if left.get(stem, stem) in away.keys() - spelled.keys() else item for stem, item in items]
    chosen = _chosen(parsed)
    unmatched = any(joint != name for joint, name in pairs.items())
    known = set(names) - moved
    result, found_units = [], list(units)
    for k, (name, item) in enumerate(zip(names, parsed, strict=True)):
        default = name
        if (clock := bare[k].lower().rsplit("/", 1)[-1]) in TIMES and "t" not in known:
            default, found_units[k] = "t", units[k] or TIMES[clock]
        elif item is not None and chosen.get(item[0]) == item[2:]:
            default = _default_name(item, name, robot)
            if default in known and default != name:
                default = name
            else:
                found_units[k] = units[k] or ("A" if _is_current(item[2]) else "")
        elif item is None and (name in moved or (unmatched and name.startswith(_OF_POSITIONS))):
            default = f"({name})"  # a joint of another arm in the same log
        known.add(default)
        result.append(default)
    return Header(tuple(result), tuple(found_units), tuple(notes))


def _parsed_by_default(names: tuple[str, ...], joints: Mapping[str, str]) -> list[Parsed | None]:
    """Columns in the default spelling alone; of efforts without it, currents if there is no torque."""
    meant = _parsed(names, tuple(joints.items()))
    currents = not any(item is not None and item[0] == "tau" and not _is_current(item[2]) for _, item in meant)
    return [
        item if item is not None and (name.startswith(f"{item[0]}_") or (currents and _is_current(item[2]))) else None
        for name, item in meant
    ]


def _default_name(item: Parsed, name: str, robot: Robot) -> str:
    """The default name of a column; a bare word refers to the only joint, if there is one."""
    prefix, joint = item[:2]
    if not joint:
        return f"{prefix}_{robot.joints[0]}" if robot.n == 1 else name
    return f"{prefix}{joint}" if joint.isdigit() else f"{prefix}_{joint}"


def _is_current(word: str) -> bool:
    """Whether a pattern names a measured motor current."""
    return word in _WORDS["tau"] and "current" in word


def without_unit(name: str) -> tuple[str, str]:
    """Splits a column name into the name without its unit and the unit.

    Args:
        name: Such as ``q1 [deg]``.

    Returns:
        Such as ``q1`` and ``deg``; the whole name and "" if it states no known unit.
    """
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


_POSITION = "|".join(_WORDS["q"])
_BEFORE = re.compile(rf"^(?:.*[/.:])?(?:{_POSITION})[_./\[]([^\[\]]+?)\]?$", re.IGNORECASE)
_AFTER = re.compile(rf"(?:^|/)([^/]+)[./](?:{_POSITION})$", re.IGNORECASE)
_AFTER_SCORE = re.compile(r"(?:^|/)([^/]+)_(?:pos|position)$", re.IGNORECASE)
_LETTER = re.compile("[a-z]", re.IGNORECASE)


def _logged_joints(names: Sequence[str]) -> list[str]:
    """Joint names in a header: the remainder of the names of position columns."""
    found: dict[str, None] = {}
    for pattern in (_AFTER, _BEFORE, _AFTER_SCORE):
        for name in names:
            match = pattern.search(name)
            if match and _LETTER.search(match[1]) and not _is_word(name) and not _is_word(match[1]):
                found.setdefault(match[1])
        if found:
            break
    return list(found)


_ALL = re.compile("|".join(f"(?:{word})" for words in _WORDS.values() for word in words), re.IGNORECASE)
_ANY_WORD = re.compile(rf"(?:{_ALL.pattern})[_\[./ ]*\d*\]?", re.IGNORECASE)


def _is_word(name: str) -> bool:
    """Whether a name is a quantity with at most a number: ``target_q_3``, ``q_d``."""
    return _ANY_WORD.fullmatch(name) is not None or name.lower() in ("target", "desired", "actual", "target_0")


#: Targets first, because ``target_q`` ends like ``q``.
_ORDER = [(key, word) for key in (*_TARGETS, *(key for key in _WORDS if key not in _TARGETS)) for word in _WORDS[key]]
Parsed = tuple[str, str, str, str]


@lru_cache(maxsize=8)  # many logs have the same header
def _parsed(names: tuple[str, ...], joints: tuple[tuple[str, str], ...]) -> tuple[tuple[str, Parsed | None], ...]:
    return tuple((name, _parse(name, dict(joints))) for name in names)


def _parse(name: str, joints: Mapping[str, str]) -> Parsed | None:
    """Prefix, joint or number, word and path of a column name; None for an unrecognised name."""
    order = [(prefix, word) for prefix, word in _ORDER if re.search(word, name, re.IGNORECASE)]  # skips most patterns
    spelled = sorted((joint for joint in joints if joint in name), key=len, reverse=True)
    around = [(joint, name[:at], name[at + len(joint) :]) for joint in spelled for at in _places(joint, name)]
    for prefix, word in order:
        for joint, before, after in around:
            match = re.fullmatch(rf"(.*[/.:])?({word})[_./\[]", before, re.IGNORECASE) if after in ("", "]") else None
            if match:
                return prefix, joints[joint], word, match[1] or ""
        for joint, before, after in around:
            if (not before or before[-1] in "/.") and re.fullmatch(rf"[_./ ]({word})", after, re.IGNORECASE):
                return prefix, joints[joint], word, before
    for prefix, word in order:
        match = re.fullmatch(rf"(.*[/.:])?({word})[_\[./ ]*(\d*)\]?", name, re.IGNORECASE)
        if match:
            return prefix, match[3], word, match[1] or ""
        match = re.fullmatch(rf"{_OF_NUMBER}(\d+)[_ ]{word}|{word}[_ ]{_OF_NUMBER}(\d+)", name, re.IGNORECASE)
        if match:
            return prefix, match[1] or match[2], word, ""
    return None


def _places(joint: str, name: str) -> Iterator[int]:
    """Where a joint's name stands in that of a column, from the end."""
    at = len(name)
    while joint and (at := name.rfind(joint, 0, at)) >= 0:
        yield at
        at += len(joint) - 1


def _chosen(parsed: Sequence[Parsed | None]) -> dict[str, tuple[str, str]]:
    """Word and path for each quantity: measurements before targets, then the first word, then the path with most columns."""
    found: dict[str, tuple[str, str]] = {}
    for prefix, words in _WORDS.items():
        groups: dict[tuple[str, str], int] = {}
        for item in parsed:
            if item is not None and item[0] == prefix:
                groups[item[2:]] = groups.get(item[2:], 0) + 1
        if groups:
            found[prefix] = max(groups, key=lambda group: (not holds_targets(group[1]), -words.index(group[0]), groups[group]))
    return found
