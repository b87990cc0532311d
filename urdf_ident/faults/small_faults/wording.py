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
#: Text and remedy of small faults.
_SMALL = {
    Id.POSITION_ZERO: (
        "the zero of this joint is not that of the URDF: about {signed} must be added",
        "compare one pose with the URDF on screen (`urdf-ident play`); `drive: {joint_offset: [...]}`",
    ),
    Id.POSITION_SCALE: (
        "the positions of this joint are too {wide} by about {ratio} to match the efforts of the other joints",
        "check its gear ratio and the counts or units of its encoder; the ratio also affects efforts computed from currents",
    ),
    Id.POSITION_NONLINEAR: (
        "the positions of this joint have a periodic error of about {size} along its travel",
        "check how the encoder is mounted (eccentricity, tilt) and its calibration",
    ),
    Id.POSITION_PLAY: (
        "the positions of this joint stand still at reversals and then lag by about {size}",
        "check for backlash between joint and encoder",
    ),
    Id.POSITION_LATE: (
        "the positions of this joint are {late} than the motion that the efforts of the other joints show",
        "check filter, rate and clock of its encoder; early positions may be a target instead of a measurement",
    ),
    Id.POSITION_COMPLIANCE: (
        "the positions of this joint lead the motion that the efforts of the other joints show, by about {size} in the "
        "direction of its effort",
        "check whether its encoder is before a gear or belt that gives way, or the position a target that the controller "
        "misses; log the encoder of the joint, or both (elastic joints)",
    ),
    Id.JOINT_ORIGIN: (
        "the axis of this joint is about {size} away from where the URDF has it on its parent link",
        "check that the URDF is of this very robot, and the joint's <origin> (xyz)",
    ),
    Id.JOINT_AXIS: (
        "the axis of this joint is tilted by {lean} against the URDF's",
        "check that the URDF is of this very robot, and the joint's <origin> (rpy) and <axis>",
    ),
    Id.EFFORT_CROSSTALK: (
        "the effort logged for this joint contains a part of the effort of {other}",
        "check wiring and columns, couplings between motors (`drive.reduction`), and axes and lengths in the URDF",
    ),
    Id.EFFORT_SATURATES: (
        "the large efforts of {whose} are too small for the motion",
        "widen the range of the sensor or the logger; check the torque constants at high currents",
    ),
    Id.EFFORT_PROGRESSIVE: (
        "the large efforts of this joint are too large for the motion, by about {share} of the largest",
        "check the torque constant at high currents, and whether the effort is logged as a power or squared current",
    ),
    Id.TIME_SCALE: (
        "1 s of the clock is {times} s",
        "check the rate at which it was sampled and the unit of its time column; `log: {rate: <Hz>}` replaces the column",
    ),
    Id.CONTACT_SPRING: (
        "a force pulls the last link toward a fixed point, as a hose, a cable or a spring does",
        "record without it, or log it as a wrench; part of it would be identified as mass and friction",
    ),
    Id.EFFORT_SCALE: (
        "the effort of this joint is about {times} times what the efforts of the other joints imply",
        "check its torque constant, gear ratio and unit, and correct its drive.gain",
    ),
    Id.EFFORT_ASYMMETRIC: (
        "positive and negative efforts of this joint differ in scale by {part}",
        "check zero and gain of the current sensor in both directions, and the conversion of signs",
    ),
    Id.EFFORT_WITHOUT_GRAVITY: (
        "{missing}the gravity torque of the URDF is missing from the efforts",
        "log the whole joint torque, or add the gravity torque that the controller subtracted",
    ),
}
#: The same for gravity that the efforts contain in addition.
_MORE_GRAVITY = (
    "the efforts contain {missing}the gravity torque of the URDF in addition",
    "log the measured joint torque, or subtract the gravity torque that the controller added",
)
#: The same for a zero that is set anew in each log.
_ZERO_OF_EACH_LOG = (
    "the zero of this joint is another in each log, by up to {size}",
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
    remedy = _words(best)[1]
    if less:
        rivals |= dict.fromkeys(LIKE_LESS_GRAVITY)
        remedy += OR_ALIKE
    before, after = 100 * best.left[:, int(np.argmax(best.left[0] / best.left[1]))]
    alike = [
        robot.joints[j] for item in found[1:] if item.id == best.id and item.gain > _RIVAL * best.gain for j in item.joints[:1]
    ]
    same = [name for name in dict.fromkeys(alike) if name not in names[:1]]
    message = (
        f"{_told(robot, best)}; with this corrected, a model leaves {after:.3g} % of a joint's effort unexplained instead of "
        f"{before:.3g} %" + (f"; the same fault on {', '.join(same)} would explain about as much" if same else "")
    )
    size = best.size if less or best.id.startswith(("position", "joint", Id.EFFORT_SATURATES)) else None
    if best.id == Id.JOINT_AXIS and best.far:
        size = None
    if best.id == Id.EFFORT_SCALE:
        size = 1 + best.size  # the factor, as in all findings of this name
    severity: Severity = "refused" if best.id == Id.EFFORT_WITHOUT_GRAVITY and best.whole else "warning"
    ids = (best.id, *rivals) if rivals else ()
    return Judgement(
        best.id,
        message,
        Remedy(remedy),
        joint=names[0] if names else None,
        size=size,
        certainty=1 / (1 + len(rivals)),
        candidates=ids,
        severity=severity,
    )


def possible_faults(robot: Robot, found: Sequence[SmallFault]) -> list[Judgement]:
    """Builds the finding of small faults that the logs support too weakly to name one, and that the model depends on.

    Returns:
        One doubt about the first, with the ids of all; none if there are none.
    """
    if not found:
        return []
    best = found[0]
    joint = robot.joints[best.joints[0]] if best.joints else None
    message = (
        f"not excluded: {_told(robot, best)}; the evidence is weak (gain of {best.significance:.2g} standard errors), but with "
        f"this corrected the torques of the model differ by {best.shift:.2g} times its error"
    )
    ids = tuple(dict.fromkeys(item.id for item in found))
    return [
        Judgement(
            Id.PHYSICS_UNDECIDED,
            message,
            Remedy(_words(best)[1]),
            joint=joint,
            size=best.gain,
            candidates=ids,
            severity="warning",
        )
    ]


def _where(fault: SmallFault) -> str:
    return "in this log, unlike the others, " if len(fault.logs) == 1 else ""


def _words(fault: SmallFault) -> tuple[str, str]:
    """Text and remedy."""
    if fault.id == Id.EFFORT_WITHOUT_GRAVITY:
        return gravity_words(fault.size)
    return _ZERO_OF_EACH_LOG if len(fault.logs) > 1 else _SMALL[fault.id]


def gravity_words(missing: float) -> tuple[str, str]:
    """Text, with a place for how much it is, and remedy where gravity is missing from the efforts, or was added.

    Args:
        missing: Fraction of the URDF's gravity that is missing, negative if it was added.
    """
    return _SMALL[Id.EFFORT_WITHOUT_GRAVITY] if missing > 0 else _MORE_GRAVITY


def _told(robot: Robot, fault: SmallFault) -> str:
    """A fault and its size in words."""
    names = [robot.joints[j] for j in fault.joints]
    less = fault.id == Id.EFFORT_WITHOUT_GRAVITY and not fault.whole
    unit = "m" if fault.id == Id.JOINT_ORIGIN or (names and robot.prismatic[fault.joints[0]]) else "rad"
    return _where(fault) + _words(fault)[0].format(
        size=f"{abs(fault.size):.2g} {unit}",
        times=f"{1 + fault.size:.3g}",
        other=names[-1] if names else "",
        signed=f"{fault.size:+.2g} {unit}",
        whose="this joint" if names else "all joints",
        lean="a large angle" if fault.far else f"about {np.degrees(abs(fault.size)):.2g}°",
        ratio=f"{percent(100 * abs(fault.size))} %",
        wide="large" if fault.size > 0 else "small",
        missing=f"about {percent(100 * abs(fault.size))} % of " if less else "",
        share=f"{percent(100 * abs(fault.size))} %",
        part=f"{'+' if fault.size > 0 else ''}{percent(200 * fault.size)} %",
        late=f"{1e3 * abs(fault.size):.2g} ms {'later' if fault.size > 0 else 'earlier'}",
    )
