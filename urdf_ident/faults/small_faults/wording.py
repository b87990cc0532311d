"""Messages of small faults (:mod:`.find`): cause, size, alternatives and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id, Severity
from ...judgements.judgement import Judgement, Remedy
from ...model.robot import Robot
from ...units import percent
from ..delay.profile import relative_delay
from .fault import SmallFault

#: Fraction of the best fault's gain from which another one is a rival.
_RIVAL = 0.7
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


def small_fault(robot: Robot, found: Sequence[SmallFault]) -> Judgement:
    """Builds the finding of a small fault.

    Returns:
        The finding of the first: a warning, or a refusal if all gravity is missing or added; others with a similar gain are
        candidates.
    """
    best = found[0]
    if best.id == Id.EFFORT_DELAY:
        delay = relative_delay(best.size, robot.joints[best.joints[0]])
        return replace(delay, message=_where(best) + delay.message)
    rivals = dict.fromkeys(item.id for item in found[1:] if item.gain > _RIVAL * best.gain and item.id != best.id)
    less = best.id == Id.EFFORT_WITHOUT_GRAVITY and not best.whole
    names = [robot.joints[j] for j in best.joints]
    remedy = _remedy(robot, best)
    if less:
        rivals |= dict.fromkeys(LIKE_LESS_GRAVITY)
        remedy = Remedy(remedy.action + OR_ALIKE)
    before, after = 100 * best.left[:, int(np.argmax(best.left[0] / best.left[1]))]
    alike = [
        robot.joints[j] for item in found[1:] if item.id == best.id and item.gain > _RIVAL * best.gain for j in item.joints[:1]
    ]
    same = [name for name in dict.fromkeys(alike) if name not in names[:1]]
    message = (
        f"{_told(robot, best)}; with this corrected, a model leaves {after:.3g} % of a joint's effort unexplained instead of "
        f"{before:.3g} %" + (f"; the same fault on {', '.join(same)} would explain about as much" if same else "")
    )
    size = best.size if best.id.entry.size else None
    if best.id in (Id.EFFORT_SCALE, Id.TIME_SCALE):
        size = 1 + best.size  # a factor
    elif (best.id is Id.JOINT_AXIS and best.far) or (best.id is Id.EFFORT_WITHOUT_GRAVITY and best.whole):
        size = None
    severity: Severity = "refused" if best.id == Id.EFFORT_WITHOUT_GRAVITY and best.whole else "warning"
    ids = (best.id, *rivals) if rivals else ()
    return Judgement(
        best.id,
        message,
        remedy,
        joint=names[0] if names else None,
        size=size,
        certainty=1 / (1 + len(rivals)),
        candidates=ids,
        severity=severity,
    )


def _where(fault: SmallFault) -> str:
    return "in this log, unlike the others, " if len(fault.logs) == 1 else ""


def _words(fault: SmallFault) -> tuple[str, str]:
    """Message, with places for joints and size, and remedy."""
    if fault.id == Id.EFFORT_WITHOUT_GRAVITY:
        return gravity_words(fault.size)
    return _ZERO_OF_EACH_LOG if len(fault.logs) > 1 else (fault.id.entry.message, fault.id.entry.remedy)


def gravity_words(missing: float) -> tuple[str, str]:
    """Message, with a place for how much it is, and remedy where gravity is missing from the efforts, or was added.

    Args:
        missing: Fraction of the URDF's gravity that is missing, negative if it was added.
    """
    entry = Id.EFFORT_WITHOUT_GRAVITY.entry
    return (entry.message, entry.remedy) if missing > 0 else _MORE_GRAVITY


def _remedy(robot: Robot, fault: SmallFault) -> Remedy:
    """What to do about a fault; a zero or a scale that all logs share can be corrected by a setting."""
    words = _words(fault)[1]
    match fault.id if not fault.logs else None:
        case Id.POSITION_ZERO:
            change = {"drive.joint_offset": {"add": {robot.joints[fault.joints[0]]: fault.size}}}
            return Remedy(f"{words}: {{settings}}", change)
        case Id.EFFORT_SCALE:
            return Remedy(
                f"{words}: {{settings}}", {"drive.gain": {"multiply": {robot.joints[fault.joints[0]]: 1 / (1 + fault.size)}}}
            )
    return Remedy(words)


def _told(robot: Robot, fault: SmallFault) -> str:
    """A fault and its size in words."""
    names = [robot.joints[j] for j in fault.joints]
    unit = "m" if fault.id == Id.JOINT_ORIGIN or (names and robot.prismatic[fault.joints[0]]) else "rad"
    size, share = f"{abs(fault.size):.2g} {unit}", f"{percent(100 * abs(fault.size))} %"
    match fault.id:
        case Id.POSITION_ZERO:
            shown = size if len(fault.logs) > 1 else f"about {fault.size:+.2g} {unit}"
        case Id.JOINT_AXIS:
            shown = "a large angle" if fault.far else f"about {np.degrees(abs(fault.size)):.2g}°"
        case Id.POSITION_SCALE:
            shown = f"about {1 + fault.size:.4g}"
        case Id.EFFORT_SCALE | Id.TIME_SCALE:
            shown = f"about {1 + fault.size:.3g}"
        case Id.EFFORT_WITHOUT_GRAVITY:
            shown = "" if fault.whole else f"about {share} of "
        case Id.EFFORT_ASYMMETRIC:
            shown = f"{'+' if fault.size > 0 else ''}{percent(200 * fault.size)} %"
        case Id.POSITION_LATE:
            shown = f"{1e3 * abs(fault.size):.2g} ms {'later' if fault.size > 0 else 'earlier'}"
        case Id.EFFORT_PROGRESSIVE:
            shown = f"about {share}"
        case _:
            shown = f"about {size}"
    whose = names[0] if names else "all joints"
    return _where(fault) + _words(fault)[0].format(whose=whose, other=names[-1] if names else "", size=shown)
