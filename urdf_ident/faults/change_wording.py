"""Messages of changes along a log, and of logs that differ from the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..model.robot import Robot
from .evidence import SEVERE
from .score_test import Fault

#: Id, text and remedy of each kind of change.
_CHANGES = {
    "payload": (Id.PAYLOAD_CHANGES, "the load on the last link", "split the log there, or record it again with one load"),
    "friction": (Id.EFFORT_DRIFT, "friction or offset", "warm the robot up first, or record it again"),
    "gain": (Id.EFFORT_DRIFT, "the scale of the efforts", "check the sensor, or record it again"),
    "scale": (Id.EFFORT_DRIFT, "the scale of all efforts", "check the sensors or amplifiers, or record it again"),
    "everything": (
        Id.LOG_DIFFERS,
        "more than one of load, friction, zeros and scales",
        "find out what was changed before or after it",
    ),
    "zeros or inertias": (Id.LOG_DIFFERS, "a zero, the load or the robot", "find out what was changed before or after it"),
    "contact": (
        Id.CONTACT,
        "a torque that is not the robot's own",
        "cut this part out; was there contact, a dragging brake, a hand?",
    ),
}


def changes(robot: Robot, fault: Fault) -> Judgement:
    """Builds the finding of a change along a log, or from log to log."""
    (id, what, remedy), when = _CHANGES[fault.family.change], fault.when
    part = f"from {100 * when.begin:.0f} to {100 * when.end:.0f} % of the motion"
    if when.drift:
        words = "drifts from the first log to the last" if when.by_log else "drifts along the log"
    else:
        words = f"acts {part}" if id is Id.CONTACT else f"differs {part}"
    others = tuple(item[0] for kind, item in _CHANGES.items() if kind != fault.family.change)
    return Judgement(
        id,
        f"{what} {words}, most on this joint",
        Remedy(remedy),
        joint=robot.joints[fault.joint],
        size=fault.gain,
        certainty=float(1 - np.exp(-4 * fault.gain)),
        candidates=tuple(dict.fromkeys((id, *others))),
        severity="warning",
    )


def differs(robot: Robot, fault: Fault, alone: bool, own: Sequence[Judgement]) -> Judgement:
    """Builds the finding of a log that is inconsistent with the others.

    Args:
        fault: What differs: payload, friction, zeros or gains.
        alone: Whether it is the only inconsistent log.
        own: What is wrong with the log by itself.
    """
    id, what, _ = _CHANGES[fault.family.change]
    if alone:
        told = Id.LOG_DIFFERS
        words = "this log contradicts the others" + ("" if own else f": {what} differs, most on this joint")
        remedy = "leave it out, or find out what was changed before or after it"
    else:
        told, words = Id.LOGS_DISAGREE, f"the logs contradict each other: {what} differs"
        remedy = "inspect them one by one, or record another one to find out which one is wrong"
    return Judgement(
        told,
        words,
        Remedy(remedy),
        joint=robot.joints[fault.joint],
        size=fault.gain,
        certainty=float(1 - np.exp(-4 * fault.gain)),
        candidates=(id,),
        severity="refused" if fault.gain > 2 * SEVERE else "warning",
    )


def worse_explained(robot: Robot, joint: int, times: float) -> Judgement:
    """Builds the finding of a log in which a joint's effort contains something besides the robot's torque.

    Args:
        times: Ratio of its residual to that in any other log.
    """
    words = (
        f"of the effort of this joint {times:.2g} times as much stays unexplained in this log as in any other, whatever its "
    )
    remedy = "leave it out, or look at this joint's effort: noise, a filter or delay, held or clipped values, contact?"
    return Judgement(Id.LOG_DIFFERS, f"{words}parameters", Remedy(remedy), joint=robot.joints[joint])
