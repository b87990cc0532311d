"""Do the logs contradict physics: signs, orders, zeros, clocks and gravity that another reading explains decisively better.

Nothing here trusts the URDF's inertias, with two exceptions that are said: which way gravity pulls, and how large the torques
are, when the motion is too slow to tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...linalg import Array
from ...model.engine.pinocchio import regressor
from ...model.prior import lumped_inertials
from ...model.robot import Robot
from ...samples import Segment
from .candidates import Reading
from .evidence import Motion, sample
from .findings import Finding
from .hypotheses import Step, search
from .stationarity import Change, between, within
from .trial import Case
from .wording import changes, differs, doubt, named

#: Fewest samples a joint, and the rms torque over its mean below which the samples say nothing.
_FEWEST = 25
#: Correlation with the URDF's gravity torque that counts as the opposite.
_OPPOSITE = -0.8
#: Poses at which gravity torques are compared.
_POSES = 120
#: Part of the efforts of the joints that move, up to which what remains unexplained is noise and friction that no law has: on
#: simulated arms sound logs with noise of a fifth of the torque leave 0.2, loads that nobody measured 0.6.
_SETTLED = 0.35
#: A reading that gains less than this is compared with changes along the logs.
_AS_CHANGE = 3.0
#: Factor of the URDF's gravity torque beyond which the efforts are in another unit.
_SCALE = 4.0


def contradictions(robot: Robot, logs: Sequence[tuple[Sequence[Segment], float]]) -> list[tuple[Finding, ...]]:
    """Looks for another reading of the logs that explains their torques decisively better, and for what changes with time.

    Args:
        robot: Kinematics and gravity; its inertias do not matter.
        logs: Per log its conditioned motion with measured torque, and the cut-off of its positions [Hz].

    Returns:
        Findings of each log; none where the motion is too short to tell.
    """
    out: list[tuple[Finding, ...]] = [() for _ in logs]
    cases = [_case(robot, [log]) for log in logs]
    usable = [k for k, case in enumerate(cases) if case is not None]
    while usable:
        together = _case(robot, [logs[k] for k in usable])
        if together is None:
            break
        reading, steps = search(together)
        odd = _odd(together, len(usable), steps)
        if not odd:
            changed = {k: _changes_within(cases[k]) for k in usable if not steps or steps[0].gain < _AS_CHANGE}
            if steps and max((item.gain for item in changed.values() if item is not None), default=0.0) > steps[0].gain:
                steps = []
            reading = reading if (steps and steps[-1].decided) or not steps else Reading.as_logged(robot.n)
            laden = any(part.external is not None for k in usable for part in logs[k][0])
            found = _findings(robot, together, reading, steps, laden)
            for k in usable:
                change = None if steps else changed[k]
                out[k] = (*out[k], *found, *([] if change is None else [changes(robot, change)]))
            break
        for position, (kind, gain, joint) in odd.items():
            k = usable[position]
            alone = cases[k]
            own = () if alone is None else _steps_in_words(robot, alone, *search(alone))
            out[k] = (*out[k], differs(robot, kind, gain, joint, len(odd) == 1, own), *own)
        if len(odd) > 1:
            break
        usable = [k for position, k in enumerate(usable) if position not in odd]
    return out


def _changes_within(case: Case | None) -> Change | None:
    """What changes along one log, read as it is described."""
    if case is None:
        return None
    reading = Reading.as_logged(case.robot.n)
    return within(case.evidence(reading), reading.efforts())


def _odd(case: Case, logs: int, steps: Sequence[Step]) -> dict[int, tuple[str, float, int]]:
    """Logs that differ from the others, unless another reading of all of them explains more."""
    if logs < 2:
        return {}
    samples = case.sampled(0.0)
    first = np.unique(samples.block, return_index=True)[1]
    reading = Reading.as_logged(case.robot.n)
    odd = between(case.evidence(reading), samples.log[first], reading.efforts())
    gain = max((change[1] for change in odd.values()), default=0.0)
    return odd if not steps or gain > steps[0].gain else {}


def _case(robot: Robot, logs: Sequence[tuple[Sequence[Segment], float]]) -> Case | None:
    """Samples of some logs; None where there are too few, or nothing moves under a torque that changes."""
    made: dict[float, Motion] = {}

    def sampled(delay: float) -> Motion:
        if delay not in made:
            made[delay] = sample(logs, delay=delay) or made[0.0]
        return made[delay]

    first = sample(logs)
    if first is None or len(first) < _FEWEST * (robot.n + 2):
        return None
    made[0.0] = first
    moves = (np.ptp(first.q, axis=0) > 0.02) & (np.ptp(first.tau, axis=0) > 0)  # no torque tells nothing
    return Case(robot, sampled, moves) if moves.any() else None


def _findings(robot: Robot, case: Case, reading: Reading, steps: Sequence[Step], laden: bool) -> tuple[Finding, ...]:
    found = [*_steps_in_words(robot, case, reading, steps)]
    if not steps or steps[-1].decided:
        found += _against_the_urdf(robot, case, reading, laden)
    return tuple(found)


def _steps_in_words(robot: Robot, case: Case, reading: Reading, steps: Sequence[Step]) -> tuple[Finding, ...]:
    """What was found; it refuses the log only if the log is sound once all of it is put right."""
    last = reading if not steps or steps[-1].decided else steps[-1].found.reading
    settled = case.judge(last).part < _SETTLED
    return tuple(
        named(robot, step, settled) if step.decided else doubt("physics-undecided", robot, step, settled) for step in steps
    )


def _against_the_urdf(robot: Robot, case: Case, reading: Reading, laden: bool) -> list[Finding]:
    """Gravity torque of the free fit beside the URDF's: the other way round.

    Args:
        robot: The robot.
        case: Samples of the logs.
        reading: How they are read.
        laden: Whether a known payload or wrench was taken off their torques.
    """
    if robot.model.gravity.linear @ robot.model.gravity.linear == 0 or reading.gravity is not None:
        return []
    fitted, stated = _gravity_torques(robot, case, reading)
    lengths = float(np.linalg.norm(fitted)), float(np.linalg.norm(stated))
    torque = np.linalg.norm(case.sampled(0.0).tau.std(axis=0)) * np.sqrt(len(fitted))
    if lengths[1] == 0 or lengths[0] < 0.2 * torque:  # no gravity in the efforts, or none in the URDF
        return []
    alike = float(np.sum(fitted * stated)) / (lengths[0] * lengths[1])
    if alike < _OPPOSITE and _inertia_is_opposite(robot, case, reading):
        words = "the efforts of all joints have the wrong sign: gravity and inertia are the opposite of the URDF's"
        remedy = "reverse them by a negative drive.gain"
        return [Finding("effort-sign", "refused", None, None, words, remedy, None, abs(alike))]
    if alike < _OPPOSITE:
        gravity = -np.asarray(robot.model.gravity.linear) + 0.0
        vector = ", ".join(f"{value:.4g}" for value in gravity)
        words = f"gravity along [{vector}] in the base frame is what the efforts work against, if the URDF's centres of mass"
        remedy = f"if the robot is mounted so, say it in the project file: `robot: {{gravity: [{vector}]}}`"
        if laden:
            remedy = f"does the robot carry the payload (drive.payload) that was taken off the efforts? Otherwise: {remedy}"
        return [Finding("gravity-direction", "refused", None, None, f"{words} are about right", remedy, 180.0, abs(alike))]
    return []


def _inertia_is_opposite(robot: Robot, case: Case, reading: Reading) -> bool:
    samples = case.sampled(0.0)
    step = max(1, len(samples) // _POSES)
    q, a = samples.q[::step], samples.a[::step]
    zero = np.zeros_like(q)
    Y = regressor(robot, q, zero, a) - regressor(robot, q, zero, zero)
    fitted, stated = Y @ case.inertial_parameters(reading), Y @ lumped_inertials(robot).ravel()
    size = float(np.linalg.norm(fitted) * np.linalg.norm(stated))
    return size > 0 and float(np.sum(fitted * stated)) < _OPPOSITE * size


def _gravity_torques(robot: Robot, case: Case, reading: Reading) -> tuple[Array, Array]:
    """Of the free fit and of the URDF at the same poses, without their means, shape (N, n) each."""
    theta = case.inertial_parameters(reading)
    q = case.sampled(0.0).q
    q = q[:: max(1, len(q) // _POSES)]
    Y = regressor(robot, q, np.zeros_like(q), np.zeros_like(q))
    fitted, stated = Y @ theta, Y @ lumped_inertials(robot).ravel()
    moves = case.moves
    return (fitted - fitted.mean(axis=0))[:, moves], (stated - stated.mean(axis=0))[:, moves]
