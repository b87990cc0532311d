"""What is said of faults: cause, size, evidence, and the entry for the project file that corrects them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..judgements.catalogue import Id, Severity
from ..judgements.judgement import Judgement, Remedy
from ..model.robot import Robot
from ..samples import SHORT
from .evidence import CLEAR, SEVERE
from .hypotheses import Step
from .kinds.catalogue import KINDS
from .kinds.clock_and_gravity import TimeScale
from .kinds.families import Change
from .kinds.kind import Hypothesis, whose
from .score_test import Fault
from .trials import Score

#: Largest number of causes and of tests between them that a doubt lists.
_CAUSES, _TESTS = 6, 3


def named(robot: Robot, step: Step, sound: bool = True) -> Judgement:
    """Builds the finding of an interpretation whose cause the evidence determines.

    Args:
        sound: Whether the log is explained well after all corrections; otherwise it is not refused.
    """
    found, stated = step.found, KINDS[step.found.id].found(robot, step.found, step.before)
    return replace(
        stated,
        message=f"{stated.message}; {_evidence(robot, step)}",
        joint=robot.joints[found.joints[0]] if len(found.joints) == 1 else None,
        certainty=step.certainty,
        joints=_names(robot, found),
        severity=_severity(step, sound),
    )


def doubt(robot: Robot, step: Step, sound: bool = True) -> Judgement:
    """Builds the finding of an interpretation whose cause the evidence does not determine, with the ids of the causes.

    Args:
        sound: Whether the log is explained well after all corrections; otherwise it is not refused.
    """
    causes = [step.found, *step.rivals]
    shown = "; ".join(KINDS[item.id].cause(robot, item) for item in causes[:_CAUSES])
    some = "one of the following" if len(causes) > 1 else "the following"
    words = f"{some} {'is' if step.gain > SEVERE else 'may be'} wrong"
    open_ = "but the log does not show which" if len(causes) > 1 else "but it does not explain the log well"
    return Judgement(
        Id.PHYSICS_UNDECIDED,
        f"{words}, {open_}: {shown}; {_evidence(robot, step)}",
        Remedy(f"to find out: {', or '.join(_tests(causes))}"),
        size=step.gain,
        certainty=step.certainty,
        candidates=tuple(dict.fromkeys(item.id for item in causes)),
        joints=_names(robot, *causes),
        severity=_severity(step, sound),
    )


def too_short_to_tell(found: Judgement) -> Judgement:
    """Turns a cause found in a motion that is too short to determine causes into a doubt.

    Returns:
        The finding, undecided and not refusing the log, whose first remedy is a longer motion; information and computed
        efforts, which no parameters imitate, are unchanged.
    """
    if found.severity not in ("warning", "refused") or found.id == Id.EFFORT_COMMANDED:
        return found
    words = found.message if found.id == Id.PHYSICS_UNDECIDED else f"the motion is too short to be sure, but {found.message}"
    ids = found.candidates if found.id == Id.PHYSICS_UNDECIDED else tuple(dict.fromkeys((found.id, *found.candidates)))
    first = f"record {SHORT:g} s or more"
    remedy = found.remedy.after(f"{first}; if it is found there too, ") if found.remedy else Remedy(first)
    return replace(found, id=Id.PHYSICS_UNDECIDED, severity="warning", message=words, remedy=remedy, size=None, candidates=ids)


def against(
    robot: Robot, found: Hypothesis, rivals: Sequence[Hypothesis], before: Score, left: tuple[float, float]
) -> Judgement:
    """Builds the finding of an interpretation that the URDF's bodies support and free ones neither need nor exclude.

    Args:
        rivals: Others that the URDF explains about as well.
        left: Relative residual of the URDF's bodies as logged and with the interpretation, fractions.
    """
    causes, kind = [found, *rivals], KINDS[found.id]
    ids = tuple(dict.fromkeys(item.id for item in causes))
    shown = " or ".join(KINDS[item.id].cause(robot, item) for item in causes[:_CAUSES])
    words = (
        f"{shown} may be wrong: corrected, the URDF's inertias leave {share(left[1])} of the efforts unexplained, as logged "
        f"{share(left[0])}; other centres of mass and inertias would explain it too"
    )
    large = not (found.small or rivals)
    clock = f"; {TimeScale().rather(found.interpretation.stretch)}" if found.id == Id.TIME_SCALE else ""
    tests = Remedy(f"to find out: {' or '.join(_tests(causes))}{clock}")
    return Judgement(
        found.id if len(ids) == 1 else Id.PHYSICS_UNDECIDED,
        words,
        kind.found(robot, found, before).remedy if large else tests,
        joint=robot.joints[found.joints[0]] if len(found.joints) == 1 and not rivals else None,
        size=kind.size(robot, found) if len(ids) == 1 else None,
        certainty=0.5,
        candidates=() if large else ids,
        joints=_names(robot, *causes),
        severity="refused" if large else "warning",
    )


def fault_finding(robot: Robot, fault: Fault) -> Judgement:
    """Builds the finding of a fault or change; others that explain as much are candidates."""
    if fault.family.change:
        return _changes(robot, fault, fault.family.change)
    id, names = fault.family.id, [robot.joints[j] for j in fault.family.joints]
    stated = KINDS[id].tested(robot, fault.family, fault.size, fault.when.log is None)
    where = "" if fault.when.log is None else "in this log, unlike the others, "
    others = [item.family for item in fault.rivals if not item.family.change and not item.family.only_competes]
    rivals = dict.fromkeys((*(family.id for family in others if family.id != id), *stated.candidates))
    alike = dict.fromkeys(robot.joints[j] for family in others if family.id == id for j in family.joints[:1])
    same = ", ".join(name for name in alike if name not in names[:1])
    before, after = fault.left[:, fault.joint_explained]
    evidence = _corrected("a joint's effort", before, after)
    evidence += f"; the same fault on {same} would explain about as much" if same else ""
    return replace(
        stated,
        message=f"{where}{stated.message}; {evidence}",
        joint=names[0] if names else None,
        certainty=1 / (1 + len(rivals)),
        candidates=(id, *rivals) if rivals else (),
    )


def differs(robot: Robot, fault: Fault, alone: bool, own: Sequence[Judgement]) -> Judgement:
    """Builds the finding of a log that is inconsistent with the others.

    Args:
        fault: What differs: payload, friction, zeros or gains.
        alone: Whether it is the only inconsistent log.
        own: What is wrong with the log by itself.
    """
    what = fault.family.change.what if fault.family.change else "the robot"
    id = Id.LOG_DIFFERS if alone else Id.LOGS_DISAGREE
    words = f"the logs contradict each other: {what} differs"
    if alone:
        words = "this log contradicts the others" + ("" if own else f": {what} differs, most on this joint")
    return Judgement(
        id,
        words,
        Remedy(id.entry.remedy),
        joint=robot.joints[fault.joint],
        size=fault.gain,
        certainty=fault.certainty,
        candidates=(fault.family.id,),
        severity="refused" if fault.gain > 2 * SEVERE else "warning",
    )


def _changes(robot: Robot, fault: Fault, change: Change) -> Judgement:
    """The finding of a change along a log, or from log to log."""
    id, when = fault.family.id, fault.when
    words = f"{'acts' if id is Id.CONTACT else 'differs'} from {100 * when.begin:.0f} to {100 * when.end:.0f} % of the motion"
    if when.drift:
        words = "drifts from the first log to the last" if when.by_log else "drifts along the log"
    return Judgement(
        id,
        f"{change.what} {words}, most on this joint",
        Remedy(change.remedy),
        joint=robot.joints[fault.joint],
        size=fault.gain,
        certainty=fault.certainty,
        candidates=tuple(dict.fromkeys((id, Id.PAYLOAD_CHANGES, Id.EFFORT_DRIFT, Id.LOG_DIFFERS, Id.CONTACT))),
        severity="warning",
    )


def _severity(step: Step, sound: bool) -> Severity:
    """Refuses logs that must not be used as described: the gain is significant and large, and the log is then explained.

    Friction that would have to drive a joint, or a negative inertia, is impossible, whatever else remains unexplained.
    """
    impossible = bool(step.before.impossible.sum() > step.after.impossible.sum())
    harmless = step.found.id == Id.EFFORT_DELAY or Id.SPRING in {item.id for item in (step.found, *step.rivals)}
    clear = step.after.unexplained < CLEAR * step.before.unexplained
    return "refused" if step.gain > SEVERE and not harmless and ((sound and clear) or impossible) else "warning"


def _evidence(robot: Robot, step: Step) -> str:
    before, after = step.before.unexplained, step.after.unexplained
    if step.before.impossible.any() and not step.after.impossible.any() and after > CLEAR * before:
        facts = {"inertias would be negative": step.before.reversed, "friction would have to accelerate": step.before.driven}
        shown = (f"{words} ({whose(robot, np.flatnonzero(rows).tolist())})" for words, rows in facts.items() if rows.any())
        return f"as logged, {' and '.join(shown)}, whatever the masses"
    return _corrected("the efforts", before, after)


def _corrected(whose: str, before: float, after: float) -> str:
    return f"with this corrected, a model leaves {share(after)} of {whose} unexplained instead of {share(before)}"


def share(part: float) -> str:
    """A part of one in per cent."""
    return f"{100 * part:.3g} %"


def _tests(causes: Sequence[Hypothesis]) -> list[str]:
    """What distinguishes causes."""
    return list(dict.fromkeys(item.id.entry.test for item in causes[:_CAUSES]))[:_TESTS]


def _names(robot: Robot, *causes: Hypothesis) -> tuple[str, ...]:
    """All joints that hypotheses are about."""
    return tuple(robot.joints[j] for j in sorted({j for found in causes for j in found.joints}))
