"""Messages of the findings about physics: cause, size, certainty, and the entry for the project file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..judgements.catalogue import Id, Severity
from ..judgements.judgement import Judgement, Remedy
from ..linalg import positive
from ..model.robot import Robot
from ..samples import SHORT
from .candidates import GAINS, POSITION_UNITS, STRETCHES, Hypothesis
from .hypotheses import Step

#: Gain of an interpretation above which the log is refused as it is described.
SEVERE = 1.0
#: An interpretation that leaves more than this fraction of the residual is no reason to refuse a log.
CLEAR = 0.85
#: The name of a cause, and a test that distinguishes it from others.
_NOUNS = {
    Id.EFFORT_SIGN: (
        "the sign of the effort of {joints}",
        "move that joint alone: against gravity or friction, effort and speed have the same sign",
    ),
    Id.POSITION_SIGN: ("the sign of the position of {joints}", "compare one pose with the URDF on screen (`urdf-ident play`)"),
    Id.AXIS_SIGN: (
        "the direction of {joints} (position and effort)",
        "compare one pose with the URDF on screen (`urdf-ident play`)",
    ),
    Id.EFFORT_SCALE: ("the scale of the effort of {joints}", "give drive.gain, or log a known payload"),
    Id.POSITION_ZERO: ("the zero of {joints}", "compare one pose with the URDF on screen (`urdf-ident play`)"),
    Id.POSITION_SCALE: ("the scale of the position of {joints}", "move it by a known angle or distance"),
    Id.POSITION_COUPLED: (
        "the position of the first of {joints}, which counts that of the second in",
        "move the second alone: the position of the first must not change",
    ),
    Id.POSITION_UNIT: ("the unit of the positions of {joints}", "move one joint by a known angle or distance"),
    Id.JOINTS_EXCHANGED: ("the order of {joints}", "move one of them alone"),
    Id.TIME_SCALE: ("the clock or the URDF's lengths", "compare the duration of the log with a watch"),
    Id.EFFORT_DELAY: ("a delay of the efforts", "record faster reversals"),
    Id.GRAVITY_DIRECTION: ("the direction of gravity", "check how the base is mounted"),
    Id.SPRING: ("no fault, but a spring or balancer on {joints}", "hold that joint still at several poses"),
    Id.EFFORT_WITHOUT_GRAVITY: ("efforts without gravity", "hold the robot still: the efforts must carry it"),
}


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
    words = _NOUNS[found.id][0].format(joints=_joints(robot, found.joints))
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
    message, remedy, size = _WORDS[found.id](robot, step)
    joint = robot.joints[found.joints[0]] if len(found.joints) == 1 else None
    severity: Severity = "refused" if _refuses(step, sound) else "warning"
    return Judgement(
        found.id,
        f"{message}; {_evidence(robot, step)}",
        Remedy(remedy),
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
    tests = dict.fromkeys(_NOUNS[item.id][1] for item in causes[:6])
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
    tests = " or ".join(list(dict.fromkeys(_NOUNS[item.id][1] for item in causes))[:3])
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


def open_scale(robot: Robot, factors: Mapping[int, tuple[float, float]]) -> Judgement:
    """Builds the finding that the log does not determine the scale of some joints' efforts.

    Args:
        factors: Joint → smallest and largest factor with which the log is explained equally well.

    Returns:
        The finding, as information: nothing is wrong with the log.
    """
    shown = ", ".join(f"{robot.joints[j]} ({_between(*ends)})" for j, ends in factors.items())
    return Judgement(
        Id.EFFORT_SCALE_OPEN,
        f"the log does not determine the scale of these efforts (possible factors): {shown}; it depends on `drive.gain` and "
        "the unit of the log",
        Remedy(
            "if in doubt, compare `drive.gain` and the gear ratio with the data sheet, or record a motion with a known load "
            "(`drive.payload`)"
        ),
        joint=robot.joints[next(iter(factors))] if len(factors) == 1 else None,
        candidates=(Id.EFFORT_SCALE,),
        joints=tuple(robot.joints[j] for j in factors),
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
        Remedy("if in doubt, compare the duration of the log with a watch"),
        candidates=(Id.TIME_SCALE,),
    )


def _between(low: float, high: float, tried: Sequence[float] = GAINS) -> str:
    least, most = low == min(tried), high == max(tried)
    if least or most:
        return "any" if least and most else f"up to {high:g}" if least else f"from {low:g}"
    return f"{low:g} to {high:g}"


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


_Worded = tuple[str, str, float | None]


def _effort_sign(robot: Robot, step: Step) -> _Worded:
    whose = _joints(robot, step.found.joints)
    remedy = reversing(np.sign(step.found.interpretation.gain).astype(int).tolist())
    if len(step.found.joints) == robot.n and not step.before.reversed.any():
        remedy += "; if gravity is right as logged, the controller subtracted more friction from the efforts than there is"
    return (f"the effort of {whose} has the wrong sign", remedy, None)


def reversing(signs: Sequence[int]) -> str:
    """Words for the setting that reverses efforts.

    Args:
        signs: +1 or -1 for each joint.
    """
    gain = signs[0] if len(set(signs)) == 1 else signs
    return f"in the project file: `drive: {{gain: {gain}}}` (a gain that is given: times that), or correct the sign in the log"


def _position_sign(robot: Robot, step: Step) -> _Worded:
    whose = _joints(robot, step.found.joints)
    return (f"the position of {whose} has the wrong sign", "reverse its column, or the axis of the joint in the URDF", None)


def _axis_sign(robot: Robot, step: Step) -> _Worded:
    whose = _joints(robot, step.found.joints)
    return (
        f"{whose} turns the other way: position and effort both have the wrong sign",
        "reverse the axis of the joint in the URDF, or both columns",
        None,
    )


def _effort_scale(robot: Robot, step: Step) -> _Worded:
    whose, factor = _joints(robot, step.found.joints), float(np.exp(-step.found.size))
    return (
        f"the effort of {whose} is {factor:.3g} times what the efforts of the other joints imply",
        f"multiply its drive.gain by {1 / factor:.3g}, or check its unit",
        factor,
    )


def _position_zero(robot: Robot, step: Step) -> _Worded:
    whose, zero = _joints(robot, step.found.joints), float(step.found.size)
    return (
        f"the zero of {whose} is not that of the URDF: {zero:+.3g} rad ({np.degrees(zero):+.3g}°) must be added",
        f"in the project file: `drive: {{joint_offset: [...]}}` with {zero:.4g} for it",
        zero,
    )


def _position_scale(robot: Robot, step: Step) -> _Worded:
    whose, factor = _joints(robot, step.found.joints), float(np.exp(-step.found.size))
    return (
        f"the positions of {whose} are {factor:.3g} times those that match the efforts",
        f"check its gear ratio and the counts or units of its encoder (multiply its column by {1 / factor:.3g}); the "
        "ratio also affects efforts computed from currents",
        factor - 1.0,
    )


def _position_coupled(robot: Robot, step: Step) -> _Worded:
    (j, i), more = (robot.joints[k] for k in step.found.joints), "plus" if step.found.size > 0 else "minus"
    return (
        f"the position of {j} is its own {more} that of {i}, as of an angle to the base or a motor that turns along",
        f"{'subtract' if step.found.size > 0 else 'add'} the column of {i}; if both joints' motors are coupled, and their "
        "efforts with them, give drive.reduction as a matrix",
        None,
    )


def _position_unit(robot: Robot, step: Step) -> _Worded:
    whose, size = _joints(robot, step.found.joints), step.found.size
    unit, described = min(POSITION_UNITS, key=lambda pair: abs(np.log(POSITION_UNITS[pair]) - size))
    return (
        f"the positions of {whose} are {np.exp(-size):.3g} times those that match the efforts, as if they were in {unit} and "
        f"read as {described}",
        f"in the project file: `log: {{units: {{position: {unit}}}}}`",
        None,
    )


def _exchanged(robot: Robot, step: Step) -> _Worded:
    if len(step.found.joints) > 2:
        columns = ", ".join(robot.joints[k] for k in np.argsort(step.found.interpretation.places))
        return (
            f"positions and efforts appear to be in another order than described: {columns}",
            "correct the order of the columns (their names, or log.columns.position and log.columns.effort)",
            None,
        )
    i, j = (robot.joints[k] for k in step.found.joints)
    what = ("efforts", "positions", "positions and efforts")[int(step.found.size)]
    key = ("effort", "position", "position and log.columns.effort")[int(step.found.size)]
    return (
        f"{what} of {i} and {j} appear to be exchanged",
        f"correct the order of the columns (their names, or log.columns.{key})",
        None,
    )


def _time_scale(robot: Robot, step: Step) -> _Worded:
    size = step.found.size
    remedy = f"correct the time column's unit or `log: {{rate: ...}}` (it is {1 / size:.4g} times what is used now)"
    words = f"the clock is wrong (1 s of the log is {size:.3g} s), or all lengths in the URDF are"
    return words, f"{remedy}; {_like_a_clock(size)}", size


def _like_a_clock(size: float) -> str:
    """Alternatives to a wrong clock: motion determines only gravity times time squared over length (Froude number)."""
    gravity = f", or the efforts contain only {100 * size**2:.3g} % of the gravity torque" if size < 1 else ""
    return f"if the clock is right, the URDF's lengths are {size**2:.3g} times those of the robot{gravity}"


def _delay(robot: Robot, step: Step) -> _Worded:
    size = step.found.size
    late = "behind" if size > 0 else "ahead of"
    return (f"the efforts are {1e3 * abs(size):.3g} ms {late} the positions", "check the filters and clocks of the log", size)


def _gravity(robot: Robot, step: Step) -> _Worded:
    new = np.asarray(step.found.interpretation.gravity)
    old = robot.gravity
    cosine = float(new @ old) / positive(float(np.linalg.norm(new) * np.linalg.norm(old)))
    vector = ", ".join(f"{value:.4g}" for value in new)
    return (
        f"the efforts fit a gravity vector of [{vector}] in the base frame",
        f"if the robot is mounted that way, set it in the project file: `robot: {{gravity: [{vector}]}}`",
        float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))),
    )


def _spring(robot: Robot, step: Step) -> _Worded:
    whose = _joints(robot, step.found.joints)
    remedy = "none needed with `model: {friction: auto}`; if laws are listed, add spring or balancer for it"
    return (f"{whose} carries a torque that depends on its position but is not gravity: a spring or balancer", remedy, None)


def _weightless(robot: Robot, step: Step) -> _Worded:
    remedy = "log the whole joint torque, or add the gravity torque that the controller subtracted"
    return ("the efforts do not hold the robot against gravity", f"{remedy}, or `robot: {{gravity: [0, 0, 0]}}`", None)


_WORDS: dict[str, Callable[[Robot, Step], _Worded]] = {
    Id.EFFORT_SIGN: _effort_sign,
    Id.POSITION_SIGN: _position_sign,
    Id.AXIS_SIGN: _axis_sign,
    Id.EFFORT_SCALE: _effort_scale,
    Id.POSITION_ZERO: _position_zero,
    Id.POSITION_SCALE: _position_scale,
    Id.POSITION_COUPLED: _position_coupled,
    Id.POSITION_UNIT: _position_unit,
    Id.JOINTS_EXCHANGED: _exchanged,
    Id.TIME_SCALE: _time_scale,
    Id.EFFORT_DELAY: _delay,
    Id.GRAVITY_DIRECTION: _gravity,
    Id.SPRING: _spring,
    Id.EFFORT_WITHOUT_GRAVITY: _weightless,
}
