"""Messages of the findings about physics: cause, size, certainty, and the entry for the project file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..judgements.catalogue import Id, Severity
from ..judgements.judgement import Judgement, Remedy
from ..linalg import Array, positive
from ..model.robot import Robot
from ..samples import SHORT
from .candidates import GAINS, POSITION_UNITS, STRETCHES, Hypothesis
from .evidence import SEVERE
from .hypotheses import Step

#: An interpretation that leaves more than this fraction of the residual is no reason to refuse a log.
CLEAR = 0.85


def _joints(robot: Robot, joints: Sequence[int]) -> str:
    names = [robot.joints[j] for j in joints]
    return "all joints" if len(names) == robot.n > 1 else ", ".join(names)


def _names(robot: Robot, *causes: Hypothesis) -> tuple[str, ...]:
    """All joints that hypotheses are about."""
    return tuple(robot.joints[j] for j in sorted({j for found in causes for j in found.joints}))


def cause(robot: Robot, found: Hypothesis) -> str:
    """Describes a hypothesis in a few words.

    Returns:
        Text such as "the zero of elbow (+90°)".
    """
    words = found.id.entry.cause.format(whose=_joints(robot, found.joints))
    size = {
        Id.POSITION_ZERO: lambda: f" ({np.degrees(found.size):+.3g}°)",
        Id.POSITION_SCALE: lambda: f" (× {np.exp(-found.size):.3g})",
        Id.POSITION_UNIT: lambda: f" (× {np.exp(-found.size):.3g})",
        Id.EFFORT_SCALE: lambda: f" (× {np.exp(-found.size):.3g})",
        Id.TIME_SCALE: lambda: f" (1 s of the log is {found.size:.3g} s)",
        Id.EFFORT_DELAY: lambda: f" ({1e3 * found.size:.3g} ms)",
    }.get(found.id)
    return words + (size() if size else "")


def named(robot: Robot, step: Step, sound: bool = True) -> Judgement:
    """Builds the finding of a fault whose cause the evidence determines.

    Args:
        sound: Whether the log is explained well after all corrections; otherwise it is not refused.
    """
    found = step.found
    message, remedy, size = _told(robot, step)
    joint = robot.joints[found.joints[0]] if len(found.joints) == 1 else None
    severity: Severity = "refused" if _refuses(step, sound) else "warning"
    return Judgement(
        found.id,
        f"{message}; {_evidence(robot, step)}",
        remedy,
        joint=joint,
        size=size,
        certainty=step.certainty,
        joints=_names(robot, found),
        severity=severity,
    )


def doubt(robot: Robot, step: Step, sound: bool = True) -> Judgement:
    """Builds the finding of a fault whose cause the evidence does not determine.

    Args:
        sound: Whether the log is explained well after all corrections; otherwise it is not refused.

    Returns:
        The finding, with the ids of the causes.
    """
    causes = [step.found, *step.rivals]
    shown = "; ".join(cause(robot, item) for item in causes[:6])
    some = "one of the following" if len(causes) > 1 else "the following"
    words = f"{some} {'is' if step.gain > SEVERE else 'may be'} wrong"
    open_ = "but the log does not show which" if len(causes) > 1 else "but it does not explain the log well"
    tests = dict.fromkeys(item.id.entry.test for item in causes[:6])
    ids = tuple(dict.fromkeys(item.id for item in causes))
    severity: Severity = "refused" if _refuses(step, sound) else "warning"
    return Judgement(
        Id.PHYSICS_UNDECIDED,
        f"{words}, {open_}: {shown}; {_evidence(robot, step)}",
        Remedy(f"to find out: {', or '.join(list(tests)[:3])}"),
        size=step.gain,
        certainty=step.certainty,
        candidates=ids,
        joints=_names(robot, *causes),
        severity=severity,
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
    alone = {item.id for item in causes} == {found.id}
    shown = " or ".join(cause(robot, item) for item in causes[:4])
    words = (
        f"{shown} may be wrong: corrected, the URDF's inertias leave {100 * after:.3g} % of the efforts unexplained, as logged "
        f"{100 * before:.3g} %; other centres of mass and inertias would explain it too"
    )
    tests = " or ".join(list(dict.fromkeys(item.id.entry.test for item in causes))[:3])
    joint = robot.joints[found.joints[0]] if len(found.joints) == 1 and not rivals else None
    ids = tuple(dict.fromkeys(item.id for item in causes))
    id = found.id if alone else Id.PHYSICS_UNDECIDED
    remedy = f"to find out: {tests}" + (f"; {_like_a_clock(found.size)}" if found.id == Id.TIME_SCALE else "")
    return Judgement(
        id,
        words,
        Remedy(remedy),
        joint=joint,
        size=found.size if alone else gain,
        certainty=0.5,
        candidates=ids,
        joints=_names(robot, *causes),
        severity="warning",
    )


def open_scale(robot: Robot, factors: Mapping[tuple[int, ...], tuple[float, float]]) -> Judgement:
    """Builds the finding that the log does not determine the scale of some joints' efforts.

    Args:
        factors: Joints → smallest and largest factor with which the log is explained equally well.

    Returns:
        The finding, as information: nothing is wrong with the log.
    """
    shown = ", ".join(f"{' + '.join(robot.joints[j] for j in joints)} ({_between(*ends)})" for joints, ends in factors.items())
    joints = sorted({j for joints in factors for j in joints})
    return Judgement(
        Id.EFFORT_SCALE_OPEN,
        f"the log does not determine the scale of these efforts (possible factors): {shown}; it depends on `drive.gain` and "
        "the unit of the log",
        joint=robot.joints[joints[0]] if len(joints) == 1 else None,
        candidates=(Id.EFFORT_SCALE,),
        joints=tuple(robot.joints[j] for j in joints),
    )


def open_time(low: float, high: float) -> Judgement:
    """Builds the finding that the log does not determine its clock.

    Args:
        low, high: Least and most real seconds per second of the log with which it is explained equally well.

    Returns:
        The finding, as information: nothing is wrong with the log.
    """
    return Judgement(
        Id.TIME_SCALE_OPEN,
        f"the log does not determine the scale of its time (possible factors: {_between(low, high, STRETCHES)}): other masses "
        "and friction would explain it as well",
        candidates=(Id.TIME_SCALE,),
    )


def _between(low: float, high: float, tried: Sequence[float] = GAINS) -> str:
    least, most = low == min(tried), high == max(tried)
    if least or most:
        return "any" if least and most else f"up to {high:.3g}" if least else f"from {low:.3g}"
    return f"{low:.3g} to {high:.3g}"


def _refuses(step: Step, sound: bool) -> bool:
    """Whether the log must not be used as described: the gain is significant and large, and the log is then explained.

    Friction that would have to drive a joint, or a negative inertia, is impossible, whatever else remains unexplained.
    """
    impossible = bool(step.before.impossible.sum() > step.after.impossible.sum())
    harmless = step.found.id == Id.EFFORT_DELAY or Id.SPRING in {item.id for item in (step.found, *step.rivals)}
    clear = step.after.part < CLEAR * step.before.part
    return step.gain > SEVERE and not harmless and ((sound and clear) or impossible)


def _evidence(robot: Robot, step: Step) -> str:
    before, after = (100 * item.part for item in (step.before, step.after))
    if step.before.impossible.any() and not step.after.impossible.any() and after > 0.9 * before:
        facts = {"inertias would be negative": step.before.reversed, "friction would have to accelerate": step.before.driven}
        named = (f"{words} ({_joints(robot, np.flatnonzero(rows).tolist())})" for words, rows in facts.items() if rows.any())
        return f"as logged, {' and '.join(named)}, whatever the masses"
    return f"with this corrected, a model leaves {after:.3g} % of the efforts unexplained instead of {before:.3g} %"


def _told(robot: Robot, step: Step) -> tuple[str, Remedy, float | None]:
    """Message, remedy and size of a cause that the evidence determines."""
    found, factor = step.found, float(np.exp(-step.found.size))
    whose, names = _joints(robot, found.joints), [robot.joints[j] for j in found.joints]
    remedy, words = Remedy(found.id.entry.remedy), found.id.entry.message
    size: float | None = None
    shown = ""
    match found.id:
        case Id.EFFORT_SIGN:
            remedy = reversing([robot.joints[j] for j in np.flatnonzero(np.sign(found.interpretation.gain) < 0)])
            if len(names) == robot.n and not step.before.reversed.any():
                more = "; if gravity is right as logged, the controller subtracted more friction from the efforts than there is"
                remedy = replace(remedy, action=remedy.action + more)
        case Id.EFFORT_SCALE:
            size, shown = factor, f"{factor:.3g}"
            change = {"drive.gain": {"multiply": {names[0]: 1 / factor}}}
            remedy = Remedy("{settings}, or check its unit", change)
        case Id.POSITION_ZERO:
            size, zeros = float(found.size), [found.interpretation.zero[j] for j in found.joints]
            within = [f" ± {np.degrees(error):.1g}" for error in found.errors] or [""]
            each = [f"{zero:+.3g} rad ({np.degrees(zero):+.3g}{own}°)" for zero, own in zip(zeros, within, strict=True)]
            shown = ", ".join(dict.fromkeys(each))
            words = words if len(names) == 1 else "the zeros of {whose} are not those of the URDF: {size} must be added"
            remedy = Remedy(
                "in the project file, {settings}", {"drive.joint_offset": {"add": dict(zip(names, zeros, strict=True))}}
            )
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
            words, remedy = _exchanged(robot, found)
        case Id.TIME_SCALE:
            size, shown = float(found.size), f"{found.size:.3g}"
            faster = {"log.rate": {"multiply": 1 / size}}
            remedy = Remedy(f"{{settings}}, or correct the unit of its time column; {_like_a_clock(size)}", faster)
        case Id.EFFORT_DELAY:
            size = float(found.size)
            shown = f"{1e3 * abs(size):.3g} ms {'behind' if size > 0 else 'ahead of'}"
            remedy = Remedy(f"{{settings}} takes it out; {remedy.action}", {"signals.delay": "auto"})
        case Id.GRAVITY_DIRECTION:
            new, old = np.asarray(found.interpretation.gravity), robot.gravity
            cosine = float(new @ old) / positive(float(np.linalg.norm(new) * np.linalg.norm(old)))
            size = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
            shown = f"[{', '.join(f'{value:.4g}' for value in new)}]"
            remedy = mounted(new)
        case Id.EFFORT_WITHOUT_GRAVITY:
            remedy = Remedy(f"{remedy.action}; if there is none, {{settings}}", {"robot.gravity": [0.0, 0.0, 0.0]})
    return words.format(whose=whose, size=shown), remedy, size


def _exchanged(robot: Robot, found: Hypothesis) -> tuple[str, Remedy]:
    """Message and remedy of columns in another order."""
    if len(found.joints) > 2:
        columns = ", ".join(robot.joints[k] for k in np.argsort(found.interpretation.places))
        keys, words = "position and log.columns.effort", f"appear to be in another order than described: {columns}"
        words = f"positions and efforts {words}"
    else:
        i, j = (robot.joints[k] for k in found.joints)
        what = ("efforts", "positions", "positions and efforts")[int(found.size)]
        keys = ("effort", "position", "position and log.columns.effort")[int(found.size)]
        words = f"{what} of {i} and {j} appear to be exchanged"
    return words, Remedy(f"correct the order of the columns (their names, or log.columns.{keys})")


def reversing(joints: Sequence[str]) -> Remedy:
    """The remedy that reverses efforts.

    Args:
        joints: Those whose efforts are reversed.
    """
    change = {"drive.gain": {"multiply": dict.fromkeys(joints, -1.0)}}
    return Remedy("in the project file, {settings} (1 if none is given), or correct the sign in the log", change)


def mounted(gravity: Array) -> Remedy:
    """The remedy that states another direction of gravity.

    Args:
        gravity: In the base frame, shape (3,) [m/s²].
    """
    setting = {"robot.gravity": [float(value) for value in gravity + 0.0]}
    return Remedy("if the robot is mounted that way, set it in the project file: {settings}", setting)


def _like_a_clock(size: float) -> str:
    """Alternatives to a wrong clock: motion determines only gravity times time squared over length (Froude number)."""
    gravity = f", or the efforts contain only {100 * size**2:.3g} % of the gravity torque" if size < 1 else ""
    return f"if the clock is right, the URDF's lengths are {size**2:.3g} times those of the robot{gravity}"
