"""The joints that move and those that are locked, and the Pinocchio model without the locked ones."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import pinocchio as pin

from ..errors import ModelError, UrdfError, check_named
from ..files.sizes import MOST_JOINTS
from ..quoting import yaml_string
from .urdf import MOVING_TYPES, Description, Joint

#: Added to the names of links while the model is reduced.
_LINK = " (link)"


class Follower(NamedTuple):
    """The motion of a joint that mimics another: ``multiplier · q + offset`` [rad or m] of an independent joint's q."""

    joint: str
    multiplier: float
    offset: float


def choose_joints(
    description: Description, joints: Sequence[str] | None, lock: Mapping[str, float], where: str, mimic: str = "lock"
) -> tuple[dict[str, float], tuple[str, ...], dict[str, Follower], tuple[str, ...]]:
    """Returns the joints that move, and those that are locked.

    Joints that mimic another one share its coordinate. With ``mimic="identify"``, and in a hand in which nothing else moves,
    they follow it; a chain of them follows its first joint. Otherwise, unless the caller names the joints that move, both are
    locked, at the middle of their range.

    Args:
        joints: Those that move; all that are not locked if None. With a list, the others are locked at zero or the next limit.
        lock: Joint name → position [rad or m].
        where: The URDF, for messages.
        mimic: ``"lock"`` or ``"identify"``.

    Returns:
        Locked joints with their positions [rad or m], independent joints, joints that follow these, and notes on what was
        locked unasked.

    Raises:
        ModelError: A name is unknown, a joint type is unsupported, a joint mimics another one, or nothing moves.
    """
    for described in description.joints.values():
        if described.type not in (*MOVING_TYPES, "fixed"):
            lower = described.type.lower()
            meant = f"did you mean '{lower}'?" if lower in (*MOVING_TYPES, "fixed") else ""
            raise ModelError(
                f"joint '{described.name}' has an unsupported type",
                where=where,
                got=described.type,
                expected=" | ".join(MOVING_TYPES),
                remedy=meant or "make it fixed, or split it into single joints",
            )
    moving = {name: joint for name, joint in description.joints.items() if joint.type in MOVING_TYPES}
    for key, names in (("robot.joints", joints or ()), ("robot.lock", lock)):
        for name in names:
            check_named("moving joint", name, moving, ModelError, f"{where} ({key})")
    for name, value in lock.items():
        if not math.isfinite(value):
            raise ModelError(f"joint '{name}' cannot be locked there", where=where, got=value, expected="a position [rad or m]")
    locked = {name: float(value) for name, value in lock.items()}
    if joints is not None:
        counts = Counter([*joints, *lock])
        if twice := sorted(name for name, count in counts.items() if count > 1):
            raise ModelError("a joint is named twice in robot.joints and robot.lock", where=where, got=", ".join(twice))
    coupled: list[str] = []  # joints that mimic others and are not locked, and those that they mimic
    if mimic == "lock" and joints is None:
        mimics = {name: joint for name, joint in moving.items() if joint.mimic is not None and name not in locked}
        coupled = [name for name in moving if name in mimics or any(joint.mimic == name for joint in mimics.values())]
    alone = bool(coupled) and all(name in locked or name in coupled for name in moving)
    notes = ["coupled joints (mimic) are identified with the joints they mimic, as nothing else moves"] if alone else []
    if coupled and not alone:
        notes.append(_lock_coupled(moving, locked, coupled))
    followers = _followers(moving, {*locked, *(joints or ())}, where) if mimic == "identify" or alone else {}
    if joints is not None:
        for name in (name for name in moving if name not in {*locked, *joints, *followers}):
            limits = moving[name].limits
            locked[name] = min(max(0.0, limits.get("lower", 0.0)), limits.get("upper", 0.0)) if limits else 0.0
    for name, (leader, multiplier, offset) in list(followers.items()):
        if leader in locked:
            locked[name] = multiplier * locked[leader] + offset
            del followers[name]
    order = tuple(joints) if joints is not None else tuple(name for name in moving if name not in {*locked, *followers})
    if not order:
        remedy = "unlock one (robot.lock)" if locked else "make joints revolute, continuous or prismatic in the URDF"
        raise ModelError("the robot has no joint that moves", where=where, remedy=remedy)
    if len(order) > MOST_JOINTS:
        raise ModelError(
            "too many joints move", where=where, got=len(order), expected=f"at most {MOST_JOINTS}", remedy="lock the others"
        )
    _refuse_mimics(moving, order, where)
    return locked, order, followers, tuple(notes)


def _followers(moving: Mapping[str, Joint], named: Collection[str], where: str) -> dict[str, Follower]:
    """The joints that mimic others, except named ones, each with the joint at the start of its chain.

    Raises:
        ModelError: A joint mimics one that does not move, or itself by way of others.
    """
    followers = {}
    for name in (name for name, joint in moving.items() if joint.mimic is not None and name not in named):
        chain, multiplier, offset = [name], 1.0, 0.0
        while (joint := moving[chain[-1]]).mimic is not None and (len(chain) == 1 or chain[-1] not in named):
            offset += multiplier * joint.mimic_offset
            multiplier *= joint.mimic_multiplier
            if joint.mimic not in moving or joint.mimic in chain:
                fault = "mimics itself" if joint.mimic in chain else "does not move"
                raise ModelError(
                    f"joint '{chain[-1]}' mimics '{joint.mimic}', which {fault}",
                    where=where,
                    expected="a moving joint of the URDF that mimics none of those that mimic it",
                    remedy=f"lock it: {lock_words(chain)} in the project file (YAML, given by -c)",
                )
            chain.append(joint.mimic)
        followers[name] = Follower(chain[-1], multiplier, offset)
    return followers


def _lock_coupled(moving: Mapping[str, Joint], locked: dict[str, float], coupled: Iterable[str]) -> str:
    """Adds coupled joints to ``locked``, at the middle of the range of those that others mimic; returns a note on it."""

    def place(name: str, depth: int = 0) -> float:
        if name not in locked:
            joint = moving[name]
            if joint.mimic in moving and depth < len(moving):
                locked[name] = joint.mimic_multiplier * place(str(joint.mimic), depth + 1) + joint.mimic_offset
            else:
                locked[name] = 0.5 * (joint.limits.get("lower", 0.0) + joint.limits.get("upper", 0.0))
        return locked[name]

    places = ", ".join(f"{name} at {place(name):.4g}" for name in coupled)
    other = "--lock JOINT=VALUE sets another position, `robot: {mimic: identify}` identifies them with the joints they mimic"
    return f"coupled joints (mimic) are locked: {places}; {other}"


def _refuse_mimics(moving: Mapping[str, Joint], order: Sequence[str], where: str) -> None:
    """Refuses joints that mimic others: their coordinates are not independent."""
    mimics = [name for name in order if moving[name].mimic is not None]
    if not mimics:
        return
    first, *others = mimics
    driving = dict.fromkeys(str(moving[name].mimic) for name in mimics if moving[name].mimic in {*order} - {*mimics})
    if len(mimics) + len(driving) == len(order):  # a hand: something must move
        driving = {}
    more = others[0] if len(others) == 1 else f"{len(others)} joints"  # the remedy names them all
    logged = f"; leave {', '.join(driving)} out of it if the logs contain {'it' if len(driving) == 1 else 'them'}"
    raise ModelError(
        f"joint '{first}' mimics '{moving[first].mimic}'{f' (and {more} too)' * bool(others)}",
        where=where,
        remedy=f"lock {'them' if others or driving else 'it'}: {lock_words((*driving, *mimics))} in the project file "
        f"(YAML, given by -c){logged * bool(driving)}; `robot: {{mimic: identify}}` identifies them with the joint they mimic",
    )


def lock_words(names: Iterable[str]) -> str:
    """Returns the project-file line that locks joints."""
    keys = (name if re.fullmatch(r"[A-Za-z_][\w./-]*", name) else yaml_string(name) for name in names)
    return f"`robot: {{lock: {{{', '.join(f'{key}: 0.0' for key in keys)}}}}}`"


def reduced_model(text: str, where: str, locked: Mapping[str, float]) -> pin.Model:
    """Returns the Pinocchio model of a URDF without its locked joints.

    A joint may have the name of a link, as URDF allows. Pinocchio finds frames by name alone, so that such a joint's frame is
    called ``"NAME (joint)"`` in the model.

    Args:
        where: Its origin, for messages.
        locked: Joint name → position [rad or m].

    Raises:
        UrdfError: Pinocchio does not accept the URDF.
    """
    try:
        # urdfdom reports every capsule as an error on the terminal
        model = pin.buildModelFromXML(re.sub(r"(</?)capsule\b", r"\1cylinder", text))
    except Exception as error:
        raise UrdfError("Pinocchio does not accept the URDF", where=where, got=str(error)) from error
    links = [frame for frame in model.frames if frame.type == pin.FrameType.BODY]
    names = {frame.name for frame in links}
    for frame in links:
        frame.name += _LINK
    if locked:
        reference = pin.neutral(model)
        for name, value in locked.items():
            joint = model.joints[model.getJointId(name)]
            position = (math.cos(value), math.sin(value)) if joint.nq == 2 else value
            reference[joint.idx_q : joint.idx_q + joint.nq] = position
        model = pin.buildReducedModel(model, [model.getJointId(name) for name in locked], reference)
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            frame.name = frame.name.removesuffix(_LINK)
        elif frame.name in names:
            frame.name += " (joint)"
    return model
