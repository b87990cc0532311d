"""Matching of the joint names of a log to those of the robot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...errors import LogError, nearest
from ...model.robot import Robot


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
