"""Messages of faults (:mod:`.families`): cause, size, alternatives and remedy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..model.robot import Robot
from ..units import percent
from .delay import relative_delay
from .score_test import Fault

#: Fraction of the URDF's gravity if all of it was subtracted or added; others may be a clock or direction fault.
_WHOLE = (0.8, 1.25)
#: Message and remedy of gravity that the efforts contain in addition.
_MORE_GRAVITY = (
    "the efforts contain {size}the gravity torque of the URDF in addition",
    "log the measured joint torque, or subtract the gravity torque that the controller added",
)
#: The same for a zero that is set anew in each log.
_ZERO_OF_EACH_LOG = (
    "the zero of {whose} is another in each log, by up to {size}",
    "log absolute positions, not counts from the start of a log, or move the joint to its reference before each log",
)
#: Causes that resemble a missing or additional part of gravity, and what the remedy says of them.
LIKE_LESS_GRAVITY = (Id.TIME_SCALE, Id.GRAVITY_DIRECTION)
OR_ALIKE = "; a clock, or lengths of the URDF, wrong by a factor, or another direction of gravity, would look the same"


def fault_finding(robot: Robot, fault: Fault) -> Judgement:
    """Builds the finding of a fault of a signal or of the URDF's geometry.

    Returns:
        A warning, or a refusal if all gravity is missing or added; others that explain as much are candidates.
    """
    id, joints = fault.family.id, [robot.joints[j] for j in fault.family.joints]
    if id == Id.EFFORT_DELAY:
        delay = relative_delay(fault.size, joints[0])
        return replace(delay, message=_where(fault) + delay.message)
    others = [item for item in fault.rivals if not item.family.change and not item.family.elsewhere]
    rivals = dict.fromkeys(item.family.id for item in others if item.family.id != id)
    whole = id is Id.EFFORT_WITHOUT_GRAVITY and _WHOLE[0] < abs(fault.size) < _WHOLE[1]
    remedy = _remedy(robot, fault)
    if id is Id.EFFORT_WITHOUT_GRAVITY and not whole:
        rivals |= dict.fromkeys(LIKE_LESS_GRAVITY)
        remedy = Remedy(remedy.action + OR_ALIKE)
    before, after = 100 * fault.left[:, fault.joint_explained]
    alike = [robot.joints[j] for item in others if item.family.id == id for j in item.family.joints[:1]]
    same = [name for name in dict.fromkeys(alike) if name not in joints[:1]]
    message = (
        f"{_described(robot, fault, whole)}; with this corrected, a model leaves {after:.3g} % of a joint's effort unexplained "
        f"instead of {before:.3g} %" + (f"; the same fault on {', '.join(same)} would explain about as much" if same else "")
    )
    size = fault.size if id.entry.size else None
    if id in (Id.EFFORT_SCALE, Id.TIME_SCALE):
        size = 1 + fault.size  # a factor
    elif (id is Id.JOINT_AXIS and fault.far) or whole:
        size = None
    return Judgement(
        id,
        message,
        remedy,
        joint=joints[0] if joints else None,
        size=size,
        certainty=1 / (1 + len(rivals)),
        candidates=(id, *rivals) if rivals else (),
        severity="refused" if whole else "warning",
    )


def _where(fault: Fault) -> str:
    return "" if fault.when.log is None else "in this log, unlike the others, "


def _words(fault: Fault) -> tuple[str, str]:
    """Message, with places for joints and size, and remedy."""
    id = fault.family.id
    if fault.family.each:
        return _ZERO_OF_EACH_LOG
    return gravity_words(fault.size) if id == Id.EFFORT_WITHOUT_GRAVITY else (id.entry.message, id.entry.remedy)


def gravity_words(missing: float) -> tuple[str, str]:
    """Message, with a place for how much it is, and remedy where gravity is missing from the efforts, or was added.

    Args:
        missing: Fraction of the URDF's gravity that is missing, negative if it was added.
    """
    entry = Id.EFFORT_WITHOUT_GRAVITY.entry
    return (entry.message, entry.remedy) if missing > 0 else _MORE_GRAVITY


def _remedy(robot: Robot, fault: Fault) -> Remedy:
    """What to do about a fault; a zero or a scale that all logs share can be corrected by a setting."""
    words = _words(fault)[1]
    match fault.family.id if fault.when.log is None and not fault.family.each else None:
        case Id.POSITION_ZERO:
            change = {"drive.joint_offset": {"add": {robot.joints[fault.joint]: fault.size}}}
            return Remedy(f"{words}: {{settings}}", change)
        case Id.EFFORT_SCALE if fault.size > -1:
            return Remedy(
                f"{words}: {{settings}}", {"drive.gain": {"multiply": {robot.joints[fault.joint]: 1 / (1 + fault.size)}}}
            )
    return Remedy(words)


def _described(robot: Robot, fault: Fault, whole: bool) -> str:
    """A fault and its size in words."""
    id, value, joints = fault.family.id, fault.size, fault.family.joints
    names = [robot.joints[j] for j in joints]
    unit = "m" if id == Id.JOINT_ORIGIN or (names and robot.prismatic[joints[0]]) else "rad"
    share = f"{percent(100 * abs(value))} %"
    match id:
        case Id.POSITION_ZERO:
            shown = f"{value:.2g} {unit}" if fault.family.each else f"about {value:+.2g} {unit}"
        case Id.JOINT_AXIS:
            shown = "a large angle" if fault.far else f"about {np.degrees(abs(value)):.2g}°"
        case Id.POSITION_SCALE:
            shown = f"about {1 + value:.4g}"
        case Id.EFFORT_SCALE | Id.TIME_SCALE:
            shown = f"about {1 + value:.3g}"
        case Id.EFFORT_WITHOUT_GRAVITY:
            shown = "" if whole else f"about {share} of "
        case Id.EFFORT_ASYMMETRIC:
            shown = f"{'+' if value > 0 else ''}{percent(200 * value)} %"
        case Id.POSITION_LATE:
            shown = f"{1e3 * abs(value):.2g} ms {'later' if value > 0 else 'earlier'}"
        case Id.EFFORT_PROGRESSIVE:
            shown = f"about {share}"
        case _:
            shown = f"about {abs(value):.2g} {unit}"
    whose = names[0] if names else "all joints"
    return _where(fault) + _words(fault)[0].format(whose=whose, other=names[-1] if names else "", size=shown)
