"""What is said of faults: cause, size, evidence, and the entry for the project file that corrects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..judgements.catalogue import Id, Severity
from ..judgements.judgement import Judgement, Remedy
from ..linalg import Array, positive
from ..model.robot import Robot
from ..samples import SHORT
from ..units import percent
from .candidates import COMMON_GAINS, GAINS, POSITION_UNITS, STRETCHES, Hypothesis
from .delay import relative_delay
from .evidence import CLEAR, SEVERE
from .families import CHANGES, ZERO_OF_EACH_LOG
from .hypotheses import Step
from .score_test import Fault

#: Factor between the part of gravity that is missing or added and all of it up to which it may be all.
_WHOLE = 1.25
#: Largest number of causes and of tests between them that a doubt lists.
_CAUSES, _TESTS = 6, 3
#: Causes that resemble a missing or additional part of gravity, and what the remedy says of them.
_LIKE_LESS_GRAVITY = (Id.TIME_SCALE, Id.GRAVITY_DIRECTION)
_OR_ALIKE = "; a clock, or lengths of the URDF, wrong by a factor, or another direction of gravity, would look the same"
_MORE_GRAVITY = "the efforts contain {size}the gravity torque of the URDF in addition"
_SUBTRACT = "log the measured joint torque, or subtract the gravity torque that the controller added"


def remedy_of(id: Id, names: Sequence[str], size: float = 0.0) -> Remedy:
    """The catalogue's remedy with the settings that correct a fault, if there are any.

    Args:
        names: Joints.
        size: As stated in the finding.
    """
    words, settings = f"{id.entry.remedy}: {{settings}}", dict[str, Any]()
    match id:
        case Id.EFFORT_SIGN:
            settings["drive.gain"] = {"multiply": dict.fromkeys(names, -1.0)}
        case Id.EFFORT_SCALE:
            settings["drive.gain"] = {"multiply": dict.fromkeys(names, 1 / size)}
        case Id.POSITION_ZERO:
            settings["drive.joint_offset"] = {"add": dict.fromkeys(names, size)}
        case Id.TIME_SCALE:
            settings["log.rate"] = {"multiply": 1 / size}
        case Id.EFFORT_DELAY:
            words, settings["signals.delay"] = f"{{settings}} takes it out; {id.entry.remedy}", "auto"
        case Id.EFFORT_WITHOUT_GRAVITY:
            words, settings["robot.gravity"] = f"{id.entry.remedy}; if there is none, {{settings}}", [0.0, 0.0, 0.0]
        case _:
            words = id.entry.remedy
    return Remedy(words, settings)


def mounted(gravity: Array) -> Remedy:
    """The remedy that states another direction of gravity.

    Args:
        gravity: In the base frame, shape (3,) [m/s²].
    """
    setting = {"robot.gravity": [float(value) for value in gravity + 0.0]}
    return Remedy("if the robot is mounted that way, set it in the project file: {settings}", setting)


def cause(robot: Robot, found: Hypothesis) -> str:
    """Describes a hypothesis in a few words, such as "the zero of elbow (+90°)"."""
    words, factor = found.id.entry.cause.format(whose=_joints(robot, found.joints)), float(np.exp(-found.size))
    match found.id:
        case Id.POSITION_ZERO:
            return f"{words} ({np.degrees(found.size):+.3g}°)"
        case Id.POSITION_SCALE | Id.POSITION_UNIT | Id.EFFORT_SCALE:
            return f"{words} (× {factor:.3g})"
        case Id.TIME_SCALE:
            return f"{words} (1 s of the log is {found.size:.3g} s)"
        case Id.EFFORT_DELAY:
            return f"{words} ({1e3 * found.size:.3g} ms)"
    return words


def named(robot: Robot, step: Step, sound: bool = True) -> Judgement:
    """Builds the finding of an interpretation whose cause the evidence determines.

    Args:
        sound: Whether the log is explained well after all corrections; otherwise it is not refused.
    """
    found = step.found
    message, remedy, size = told(robot, step)
    return Judgement(
        found.id,
        f"{message}; {_evidence(robot, step)}",
        remedy,
        joint=robot.joints[found.joints[0]] if len(found.joints) == 1 else None,
        size=size,
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
    shown = "; ".join(cause(robot, item) for item in causes[:_CAUSES])
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
    robot: Robot, found: Hypothesis, rivals: tuple[Hypothesis, ...], before: float, after: float, gain: float
) -> Judgement:
    """Builds the finding of an interpretation that the URDF's inertias support and free inertias neither need nor exclude.

    Args:
        rivals: Others that the URDF explains about as well.
        before, after: Relative residual of the URDF with the efforts as logged and with the interpretation, fractions.
        gain: Gain in the sum of the logarithms.
    """
    causes = [found, *rivals]
    ids = tuple(dict.fromkeys(item.id for item in causes))
    shown = " or ".join(cause(robot, item) for item in causes[:_CAUSES])
    words = (
        f"{shown} may be wrong: corrected, the URDF's inertias leave {100 * after:.3g} % of the efforts unexplained, as logged "
        f"{100 * before:.3g} %; other centres of mass and inertias would explain it too"
    )
    clock = f"; {_like_a_clock(found.size)}" if found.id == Id.TIME_SCALE else ""
    return Judgement(
        found.id if len(ids) == 1 else Id.PHYSICS_UNDECIDED,
        words,
        Remedy(f"to find out: {' or '.join(_tests(causes))}{clock}"),
        joint=robot.joints[found.joints[0]] if len(found.joints) == 1 and not rivals else None,
        size=found.size if len(ids) == 1 else gain,
        certainty=0.5,
        candidates=ids,
        joints=_names(robot, *causes),
        severity="warning",
    )


def open_scale(robot: Robot, factors: Mapping[tuple[int, ...], tuple[float, float]]) -> Judgement:
    """Builds the finding, as information, that the log does not determine the scale of some joints' efforts.

    Args:
        factors: Joints → smallest and largest factor with which the log is explained equally well.
    """
    shown = ", ".join(
        f"{' + '.join(robot.joints[j] for j in some)} ({_between(ends, GAINS if len(some) == 1 else COMMON_GAINS)})"
        for some, ends in factors.items()
    )
    joints = sorted({j for some in factors for j in some})
    return Judgement(
        Id.EFFORT_SCALE_OPEN,
        f"the log does not determine the scale of these efforts (possible factors): {shown}; it depends on `drive.gain` and "
        "the unit of the log",
        joint=robot.joints[joints[0]] if len(joints) == 1 else None,
        candidates=(Id.EFFORT_SCALE,),
        joints=tuple(robot.joints[j] for j in joints),
    )


def open_time(ends: tuple[float, float]) -> Judgement:
    """Builds the finding, as information, that the log does not determine its clock.

    Args:
        ends: Least and most real seconds per second of the log with which it is explained equally well.
    """
    return Judgement(
        Id.TIME_SCALE_OPEN,
        f"the log does not determine the scale of its time (possible factors: {_between(ends, STRETCHES)}): other masses "
        "and friction would explain it as well",
        candidates=(Id.TIME_SCALE,),
    )


def fault_finding(robot: Robot, fault: Fault) -> Judgement:
    """Builds the finding of a fault or change.

    Returns:
        A warning, or a refusal if all gravity is missing or added; others that explain as much are candidates.
    """
    family, when, size = fault.family, fault.when, fault.size
    id, names = family.id, [robot.joints[j] for j in family.joints]
    if family.change:
        return _changes(robot, fault)
    where = "" if when.log is None else "in this log, unlike the others, "
    if id == Id.EFFORT_DELAY:
        delay = relative_delay(size, names[0])
        return replace(delay, message=where + delay.message)
    message, remedy, stated = id.entry.message, Remedy(id.entry.remedy), size if id.entry.size else None
    if id in (Id.EFFORT_SCALE, Id.TIME_SCALE):
        stated = 1 + size  # a factor
    if when.log is None and (id == Id.POSITION_ZERO or (id == Id.EFFORT_SCALE and size > -1)):
        remedy = remedy_of(id, names, size if stated is None else stated)
    others = [item for item in fault.rivals if not item.family.change and not item.family.elsewhere]
    rivals = dict.fromkeys(item.family.id for item in others if item.family.id != id)
    whole = False
    if family.each:
        message, remedy = ZERO_OF_EACH_LOG
    elif id == Id.EFFORT_WITHOUT_GRAVITY:
        whole = 1 / _WHOLE < abs(size) < _WHOLE
        message, remedy = (message, remedy) if size > 0 else (_MORE_GRAVITY, Remedy(_SUBTRACT))
        if not whole:
            rivals |= dict.fromkeys(_LIKE_LESS_GRAVITY)
            remedy = Remedy(remedy.action + _OR_ALIKE)
    alike = [robot.joints[j] for item in others if item.family.id == id for j in item.family.joints[:1]]
    same = [name for name in dict.fromkeys(alike) if name not in names[:1]]
    before, after = 100 * fault.left[:, fault.joint_explained]
    shown = "" if whole else _shown(fault, "m" if names and robot.prismatic[family.joints[0]] else "rad")
    words = message.format(whose=names[0] if names else "all joints", other=names[-1] if names else "", size=shown)
    evidence = f"with this corrected, a model leaves {after:.3g} % of a joint's effort unexplained instead of {before:.3g} %"
    return Judgement(
        id,
        f"{where}{words}; {evidence}" + (f"; the same fault on {', '.join(same)} would explain about as much" if same else ""),
        remedy,
        joint=names[0] if names else None,
        size=None if whole or (id == Id.JOINT_AXIS and fault.far) else stated,
        certainty=1 / (1 + len(rivals)),
        candidates=(id, *rivals) if rivals else (),
        severity="refused" if whole else "warning",
    )


def part_of_gravity(size: float, error: float) -> Judgement:
    """Builds the finding of a missing part of the URDF's gravity torque, negative if it is in addition.

    Args:
        size: Fraction of that torque.
        error: Its standard error.
    """
    entry = Id.EFFORT_WITHOUT_GRAVITY.entry
    message, remedy = (entry.message, entry.remedy) if size > 0 else (_MORE_GRAVITY, _SUBTRACT)
    words = message.format(size=f"about {percent(100 * abs(size))} ± {percent(100 * error)} % of ")
    ids = (Id.EFFORT_WITHOUT_GRAVITY, *_LIKE_LESS_GRAVITY)
    return Judgement(
        ids[0],
        f"{words}, according to their inertial torques and the URDF's bodies",
        Remedy(remedy + _OR_ALIKE),
        size=size,
        certainty=1 / len(ids),
        candidates=ids,
        severity="warning",
    )


def differs(robot: Robot, fault: Fault, alone: bool, own: Sequence[Judgement]) -> Judgement:
    """Builds the finding of a log that is inconsistent with the others.

    Args:
        fault: What differs: payload, friction, zeros or gains.
        alone: Whether it is the only inconsistent log.
        own: What is wrong with the log by itself.
    """
    what, id = CHANGES[fault.family.change][0], Id.LOG_DIFFERS if alone else Id.LOGS_DISAGREE
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


def worse_explained(robot: Robot, joint: int, times: float) -> Judgement:
    """Builds the finding of a log in which a joint's effort contains something besides the robot's torque.

    Args:
        times: Ratio of its residual to that in any other log.
    """
    words = f"of this joint's effort {times:.2g} times as much stays unexplained in this log as in any other, whatever its "
    remedy = "leave it out, or look at this joint's effort: noise, a filter or delay, held or clipped values, contact?"
    return Judgement(Id.LOG_DIFFERS, f"{words}parameters", Remedy(remedy), joint=robot.joints[joint])


def _changes(robot: Robot, fault: Fault) -> Judgement:
    """The finding of a change along a log, or from log to log."""
    id, when, (what, remedy) = fault.family.id, fault.when, CHANGES[fault.family.change]
    words = f"{'acts' if id is Id.CONTACT else 'differs'} from {100 * when.begin:.0f} to {100 * when.end:.0f} % of the motion"
    if when.drift:
        words = "drifts from the first log to the last" if when.by_log else "drifts along the log"
    return Judgement(
        id,
        f"{what} {words}, most on this joint",
        Remedy(remedy),
        joint=robot.joints[fault.joint],
        size=fault.gain,
        certainty=fault.certainty,
        candidates=tuple(dict.fromkeys((id, Id.PAYLOAD_CHANGES, Id.EFFORT_DRIFT, Id.LOG_DIFFERS, Id.CONTACT))),
        severity="warning",
    )


def _shown(fault: Fault, unit: str) -> str:
    """The size of a fault in words."""
    size = fault.size
    match fault.family.id:
        case Id.POSITION_ZERO:
            return f"{size:.2g} {unit}" if fault.family.each else f"about {size:+.2g} {unit}"
        case Id.JOINT_AXIS:
            return "a large angle" if fault.far else f"about {np.degrees(abs(size)):.2g}°"
        case Id.JOINT_ORIGIN:
            return f"about {abs(size):.2g} m"
        case Id.POSITION_SCALE | Id.EFFORT_SCALE | Id.TIME_SCALE:
            return f"about {1 + size:.4g}"
        case Id.EFFORT_WITHOUT_GRAVITY:
            return f"about {percent(100 * abs(size))} % of "
        case Id.EFFORT_PROGRESSIVE:
            return f"about {percent(100 * abs(size))} %"
        case Id.EFFORT_ASYMMETRIC:
            return f"{'+' if size > 0 else ''}{percent(200 * size)} %"
        case Id.POSITION_LATE:
            return f"{1e3 * abs(size):.2g} ms {'later' if size > 0 else 'earlier'}"
    return f"about {abs(size):.2g} {unit}"


def told(robot: Robot, step: Step) -> tuple[str, Remedy, float | None]:
    """Message, remedy and size of an interpretation that the evidence determines."""
    found, factor = step.found, float(np.exp(-step.found.size))
    whose, names = _joints(robot, found.joints), [robot.joints[j] for j in found.joints]
    words, remedy, shown, size = found.id.entry.message, Remedy(found.id.entry.remedy), "", None
    match found.id:
        case Id.EFFORT_SIGN:
            remedy = remedy_of(found.id, [robot.joints[j] for j in np.flatnonzero(np.sign(found.interpretation.gain) < 0)])
            if len(names) == robot.n and not step.before.reversed.any():
                more = "; if gravity is right as logged, the controller subtracted more friction from the efforts than there is"
                remedy = replace(remedy, action=remedy.action + more)
        case Id.EFFORT_SCALE:
            size, shown, remedy = factor, f"{factor:.3g}", remedy_of(found.id, names[:1], factor)
        case Id.POSITION_ZERO:
            size, zeros = float(found.size), [found.interpretation.zero[j] for j in found.joints]
            within = [f" ± {np.degrees(error):.1g}" for error in found.errors] or [""]
            each = [f"{zero:+.3g} rad ({np.degrees(zero):+.3g}{own}°)" for zero, own in zip(zeros, within, strict=True)]
            shown = ", ".join(dict.fromkeys(each))
            words = words if len(names) == 1 else "the zeros of {whose} are not those of the URDF: {size} must be added"
            settings = {"drive.joint_offset": {"add": dict(zip(names, zeros, strict=True))}}
            remedy = replace(remedy_of(found.id, names), settings=settings)
        case Id.POSITION_SCALE:
            size, shown = factor - 1.0, f"{factor:.3g}"
        case Id.POSITION_COUPLED:
            more, do = ("plus", "subtract") if found.size > 0 else ("minus", "add")
            words = (
                f"the position of {names[0]} is its own {more} that of {names[1]}, as of an angle to the base or a motor that "
            )
            words += "turns along"
            coupled = "if both joints' motors are coupled, and their efforts with them, give drive.reduction as a matrix "
            coupled += "and `log: {side: {position: motor, effort: motor}}`"
            remedy = Remedy(f"{do} the column of {names[1]}; {coupled}")
        case Id.POSITION_UNIT:
            unit, described = min(POSITION_UNITS, key=lambda pair: abs(np.log(POSITION_UNITS[pair]) - found.size))
            words = (
                f"the positions of {whose} are {factor:.3g} times those that match the efforts, as if they were in {unit} and "
            )
            words += f"read as {described}"
            remedy = Remedy("in the project file: {settings}", {"log.units.position": unit})
        case Id.JOINTS_EXCHANGED:
            what = ("efforts", "positions", "positions and efforts")[int(found.size) if len(names) == 2 else 2]
            words = f"{what} of {' and '.join(names)} appear to be exchanged"
            if len(names) > 2:
                columns = ", ".join(robot.joints[k] for k in np.argsort(found.interpretation.places))
                words = f"{what} appear to be in another order than described: {columns}"
            keys = " and ".join(f"log.columns.{one[:-1]}" for one in what.split(" and "))
            remedy = Remedy(f"correct the order of the columns (their names, or {keys})")
        case Id.TIME_SCALE:
            size, shown = float(found.size), f"{found.size:.3g}"
            remedy = remedy_of(found.id, names, size)
            remedy = replace(remedy, action=f"{remedy.action}; {_like_a_clock(size)}")
        case Id.EFFORT_DELAY:
            size, remedy = float(found.size), remedy_of(found.id, names)
            shown = f"{1e3 * abs(size):.3g} ms {'behind' if size > 0 else 'ahead of'}"
        case Id.GRAVITY_DIRECTION:
            new, old = np.asarray(found.interpretation.gravity), robot.gravity
            cosine = float(new @ old) / positive(float(np.linalg.norm(new) * np.linalg.norm(old)))
            size = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
            shown, remedy = f"[{', '.join(f'{value:.4g}' for value in new)}]", mounted(new)
        case Id.EFFORT_WITHOUT_GRAVITY:
            remedy = remedy_of(found.id, names)
    return words.format(whose=whose, size=shown), remedy, size


def refuses(step: Step, sound: bool) -> bool:
    """Whether the log must not be used as described: the gain is significant and large, and the log is then explained.

    Friction that would have to drive a joint, or a negative inertia, is impossible, whatever else remains unexplained.
    """
    impossible = bool(step.before.impossible.sum() > step.after.impossible.sum())
    harmless = step.found.id == Id.EFFORT_DELAY or Id.SPRING in {item.id for item in (step.found, *step.rivals)}
    clear = step.after.unexplained < CLEAR * step.before.unexplained
    return step.gain > SEVERE and not harmless and ((sound and clear) or impossible)


def _severity(step: Step, sound: bool) -> Severity:
    return "refused" if refuses(step, sound) else "warning"


def _evidence(robot: Robot, step: Step) -> str:
    before, after = (100 * item.unexplained for item in (step.before, step.after))
    if step.before.impossible.any() and not step.after.impossible.any() and after > CLEAR * before:
        facts = {"inertias would be negative": step.before.reversed, "friction would have to accelerate": step.before.driven}
        shown = (f"{words} ({_joints(robot, np.flatnonzero(rows).tolist())})" for words, rows in facts.items() if rows.any())
        return f"as logged, {' and '.join(shown)}, whatever the masses"
    return f"with this corrected, a model leaves {after:.3g} % of the efforts unexplained instead of {before:.3g} %"


def _tests(causes: Sequence[Hypothesis]) -> list[str]:
    """What distinguishes causes."""
    return list(dict.fromkeys(item.id.entry.test for item in causes[:_CAUSES]))[:_TESTS]


def _joints(robot: Robot, joints: Sequence[int]) -> str:
    names = [robot.joints[j] for j in joints]
    return "all joints" if len(names) == robot.n > 1 else ", ".join(names)


def _names(robot: Robot, *causes: Hypothesis) -> tuple[str, ...]:
    """All joints that hypotheses are about."""
    return tuple(robot.joints[j] for j in sorted({j for found in causes for j in found.joints}))


def _between(ends: tuple[float, float], tried: Sequence[float]) -> str:
    low, high = ends
    least, most = low == min(tried), high == max(tried)
    if least or most:
        return "any" if least and most else f"up to {high:.3g}" if least else f"from {low:.3g}"
    return f"{low:.3g} to {high:.3g}"


def _like_a_clock(size: float) -> str:
    """Alternatives to a wrong clock: motion determines only gravity times time squared over length (Froude number)."""
    gravity = f", or the efforts contain only {100 * size**2:.3g} % of the gravity torque" if size < 1 else ""
    return f"if the clock is right, the URDF's lengths are {size**2:.3g} times those of the robot{gravity}"
