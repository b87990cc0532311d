"""Matching of the joint names of a log to those of the robot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

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
    if robot.n == 1:
        return [{robot.joints[0]: logged[0]}] if len(logged) == 1 else []
    tokens = {name: _tokens(name) for name in logged}
    spelled: dict[tuple[str, ...], str | None] = {}
    for name, tokens_in_name in tokens.items():
        spelled[tokens_in_name] = None if tokens_in_name in spelled else name
    cores = _cores(robot.joints)
    first = cores[robot.joints[0]]
    ends = {
        (tokens_in_name[:start], tokens_in_name[start + len(first) :])
        for tokens_in_name in tokens.values()
        for start in range(len(tokens_in_name) - len(first) + 1)
        if tokens_in_name[start : start + len(first)] == first
    }
    matches = []
    for head, tail in sorted(ends):
        match = {joint: spelled.get((*head, *core, *tail)) for joint, core in cores.items()}
        if not all(match.values()) or _has_more(head, tail, cores, spelled, robot):
            continue
        matches.append({joint: str(name) for joint, name in match.items()})
    return matches


def _has_more(
    head: tuple[str, ...],
    tail: tuple[str, ...],
    cores: Mapping[str, tuple[str, ...]],
    spelled: Mapping[tuple[str, ...], str | None],
    robot: Robot,
) -> bool:
    """Whether the log numbers further joints that the robot does not have, so that it is the log of another robot."""
    if not all(len(core) == 1 and core[0].isdigit() for core in cores.values()):
        return False
    numbers = {
        name_tokens[len(head)]
        for name_tokens in spelled
        if len(name_tokens) == len(head) + 1 + len(tail)
        and name_tokens[: len(head)] == head
        and name_tokens[len(head) + 1 :] == tail
        and name_tokens[len(head)].isdigit()
    }
    locked = {token for joint in robot.locked for token in _tokens(joint)}
    return bool(numbers - {core[0] for core in cores.values()} - locked)


def _cores(joints: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The part of each name in which the joints differ."""
    names = [_tokens(joint) for joint in joints]
    least = min(map(len, names))
    head = next((k for k in range(least) if len({p[k] for p in names}) > 1), least - 1)
    tail = next((k for k in range(least - head) if len({p[-1 - k] for p in names}) > 1), max(0, least - head - 1))
    return {joint: p[head : len(p) - tail] for joint, p in zip(joints, names, strict=True)}


def _tokens(name: str) -> tuple[str, ...]:
    return tuple(token.lstrip("0") or "0" for token in re.findall(r"[a-z]+|\d+", name.lower()))
