"""Do the logs contradict physics: signs, orders, zeros, clocks and gravity that another reading explains decisively better.

Nothing here trusts the URDF's inertias, with two exceptions that are said: which way gravity pulls, and how large the torques
are, when the motion is too slow to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...model.robot import Robot
from ...parallel import each, shared
from ...samples import Segment
from .against_urdf import against_the_urdf
from .candidates import Reading
from .evidence import MotionSamples, sample
from .findings import Finding
from .hypotheses import Step, search
from .stationarity import Change, between, within
from .trial import Case
from .wording import SEVERE, changes, differs, doubt, named

#: Fewest samples a joint, and the rms torque over its mean below which the samples say nothing.
_FEWEST = 25
#: Part of the efforts of the joints that move, up to which what remains unexplained is noise and friction that no law has: on
#: simulated arms sound logs with noise of a fifth of the torque leave 0.2, loads that nobody measured 0.6.
_SOUND = 0.35
#: A reading that gains less than this is compared with changes along the logs.
_AS_CHANGE = 3.0


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
            asked = [k for k in usable if not steps or steps[0].gain < _AS_CHANGE]
            changed = dict(zip(asked, _all_changes(robot, [logs[k] for k in asked], [cases[k] for k in asked]), strict=True))
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


def _all_changes(
    robot: Robot, logs: Sequence[tuple[Sequence[Segment], float]], cases: Sequence[Case | None]
) -> list[Change | None]:
    """:func:`_changes_within` of several logs; other processes make the samples again."""
    return each(partial(_changes_of, robot), logs) if shared() else [_changes_within(case) for case in cases]


def _changes_of(robot: Robot, log: tuple[Sequence[Segment], float]) -> Change | None:
    return _changes_within(_case(robot, [log]))


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
    made: dict[float, MotionSamples] = {}

    def sampled(delay: float) -> MotionSamples:
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
    weak = bool(steps) and not steps[-1].decided and steps[-1].gain < SEVERE
    if steps and not steps[-1].decided and not weak:
        return _steps_in_words(robot, case, reading, steps)
    told = against_the_urdf(robot, case, reading, laden)
    return (*_steps_in_words(robot, case, reading, steps[:-1] if weak and told else steps), *told)


def _steps_in_words(robot: Robot, case: Case, reading: Reading, steps: Sequence[Step]) -> tuple[Finding, ...]:
    """What was found; it refuses the log only if the log is sound once all of it is put right."""
    last = reading if not steps or steps[-1].decided else steps[-1].found.reading
    sound = case.judge(last).part < _SOUND
    return tuple(
        named(robot, step, sound) if step.decided else doubt("physics-undecided", robot, step, sound) for step in steps
    )
