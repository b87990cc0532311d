"""Do the logs contradict physics: signs, orders, zeros, clocks and gravity that another reading explains decisively better.

Nothing here trusts the URDF's inertias, with two exceptions that are said: which way gravity pulls, and how large the torques
are, when the motion is too slow to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.robot import Robot
from ...parallel import begun, each, shared
from ...samples import FEWEST_REVERSALS, TESTING_REVERSALS, Segment
from .against_urdf import against_the_urdf
from .candidates import Reading
from .findings import Finding
from .first_order import SmallFault, small_faults
from .hypotheses import DOUBTFUL, Step, open_scales, search
from .sampled import MotionSamples, sampler
from .small_wording import small_fault
from .stationarity import Alone, Change, between, in_all, within
from .trial import Case
from .unlike import unlike
from .wording import SEVERE, changes, differs, doubt, named, open_scale, worse_explained

#: Fewest samples a joint, and the rms torque over its mean below which the samples say nothing.
_FEWEST = 25
#: Part of the efforts of the joints that move, up to which what remains unexplained is noise and friction that no law has: on
#: simulated arms sound logs with noise of a fifth of the torque leave 0.2, loads that nobody measured 0.6.
_SOUND = 0.35
#: A reading that gains less than this is compared with changes along the logs.
_AS_CHANGE = 3.0
#: Part of the joints' motion beside a fixed ratio between them, below which there is none.
_ALIKE = 0.02
#: Logs that are compared with each other at a time, at most.
_COMPARED = 8


def contradictions(
    robot: Robot,
    logs: Sequence[tuple[Sequence[Segment], float]],
    reduction: Array | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> list[tuple[Finding, ...]]:
    """Looks for another reading of the logs that explains their torques decisively better, and for what changes with time.

    Args:
        robot: Kinematics and gravity; its inertias do not matter.
        logs: Per log its conditioned motion with measured torque, and the cut-off of its positions [Hz].
        reduction: Motor rates for joint rates, shape (n, n), or None where every motor turns one joint.
        meanwhile: Called once others look at each log; it may begin what they do next.

    Returns:
        Findings of each log; none where the motion is too short to tell.
    """
    out: list[tuple[Finding, ...]] = [() for _ in logs]
    whole = _case(robot, reduction, logs) if shared() else None
    pending = begun(partial(_alone, robot, reduction), logs)
    if meanwhile is not None:
        meanwhile()
    ahead = None if whole is None else (whole, *search(whole))  # while others look at each log alone
    alone = pending()
    usable = [k for k, told in enumerate(alone) if told is not None]
    while usable:
        searched = ahead if ahead and len(usable) == len(logs) else _searched(robot, reduction, [logs[k] for k in usable])
        if searched is None:
            break
        together, reading, steps = searched
        odd = _odd(robot, reduction, logs, usable, together, steps)
        if not odd:
            asked = usable if not steps or steps[0].gain < _AS_CHANGE else []
            changed = dict(zip(asked, _changing(together, [told for k in asked if (told := alone[k])]), strict=True))
            small = _small(together, [logs[k] for k in usable], steps)
            others = [*(item.gain for item in changed.values() if item is not None), *(item.gain for item in small)]
            if steps and max(others, default=0.0) > steps[0].gain:
                steps = []
            reading = reading if (steps and steps[-1].decided) or not steps else Reading.as_logged(robot.n)
            laden = any(part.external is not None for k in usable for part in logs[k][0])
            found = _weighed(together, _findings(robot, together, reading, steps, laden))
            told_already = {(item.id, item.joint) for item in found}
            more = [] if steps or not small else [small_fault(robot, small)]
            more = [item for item in more if (item.id, item.joint) not in told_already]
            for k in usable:
                change = None if steps else changed[k]
                out[k] = (*out[k], *found, *([] if change is None else [changes(robot, change)]))
                out[k] = (*out[k], *more)
            if not steps and not small and not any(changed.values()):
                for at, (joint, times) in unlike([told.left for k in usable if (told := alone[k])]).items():
                    out[usable[at]] = (*out[usable[at]], worse_explained(robot, joint, times))
            break
        for group in odd:
            for k, (kind, gain, joint) in group.items():
                case = _case(robot, reduction, [logs[k]])
                own = () if case is None else _weighed(case, _steps_in_words(robot, case, *search(case)))
                out[k] = (*out[k], differs(robot, kind, gain, joint, len(group) == 1, own), *own)
        if any(len(group) > 1 for group in odd):
            break
        usable = [k for k in usable if not any(k in group for group in odd)]
    return out


def _searched(
    robot: Robot, reduction: Array | None, logs: Sequence[tuple[Sequence[Segment], float]]
) -> tuple[Case, Reading, list[Step]] | None:
    """Samples of some logs, and what explains them; None as for :func:`_case`."""
    case = _case(robot, reduction, logs)
    return None if case is None else (case, *search(case))


def _small(case: Case, logs: Sequence[tuple[Sequence[Segment], float]], steps: Sequence[Step]) -> list[SmallFault]:
    """Small faults beyond chance, that explaining most first; none where a large one explains about as much."""
    if case.turns < TESTING_REVERSALS or (steps and steps[0].gain > _AS_CHANGE):
        return []
    found = [item for item in small_faults(case, logs) if item.decided]
    told = {item.id for step in steps[:1] for item in (step.found, *step.rivals)}
    least = steps[0].gain + DOUBTFUL if steps else 0.0
    return found if found and found[0].id not in told and found[0].gain > least else []


def _alone(robot: Robot, reduction: Array | None, log: tuple[Sequence[Segment], float]) -> Alone | None:
    """What one log, read as it is described, says by itself; None where it does not hold enough to tell anything."""
    case = _case(robot, reduction, [log])
    if case is None:
        return None
    reading = Reading.as_logged(robot.n)
    told = within(case.evidence(reading), reading.efforts())
    return told if case.turns >= FEWEST_REVERSALS else replace(told, change=None)


def _changing(together: Case, alone: Sequence[Alone]) -> list[Change | None]:
    """What changes along each log; where no log tells anything by itself, what all of them do."""
    changed = [told.change for told in alone]
    if any(changed) or not alone:
        return changed
    reading = Reading.as_logged(together.robot.n)
    shared = in_all(together.evidence(reading), _log_of_block(together), reading.efforts(), [told.growth for told in alone])
    return [shared] * len(alone)


def _odd(
    robot: Robot,
    reduction: Array | None,
    logs: Sequence[tuple[Sequence[Segment], float]],
    usable: Sequence[int],
    together: Case,
    steps: Sequence[Step],
) -> list[dict[int, tuple[str, float, int]]]:
    """Logs that differ from the others, by group, unless another reading of all of them explains more.

    Many logs are compared in groups: among a hundred the samples of one would count too little to stand out.
    """
    if len(usable) < 2:
        return []
    parted = -(-len(usable) // _COMPARED)
    groups = [usable[k::parted] for k in range(parted)]
    if parted == 1:
        found = [_differing(together)]
    else:
        cases = [_case(robot, reduction, [logs[k] for k in group]) for group in groups]
        thin = [None if case is None else (case.sampled(0.0), case.moves) for case in cases]  # far less to send than the logs
        found = each(partial(_differing_of, robot), thin)
    gain = max((change[1] for odd in found for change in odd.values()), default=0.0)
    if steps and gain <= steps[0].gain:
        return []
    return [{group[at]: change for at, change in odd.items()} for group, odd in zip(groups, found, strict=True) if odd]


def _differing_of(robot: Robot, thin: tuple[MotionSamples, NDArray[np.bool_]] | None) -> dict[int, tuple[str, float, int]]:
    """:func:`_differing` of samples and the joints that move."""
    return {} if thin is None else _differing(Case(robot, {0.0: thin[0]}.__getitem__, thin[1]))


def _differing(case: Case) -> dict[int, tuple[str, float, int]]:
    """Position of each log that differs from the others of the case, and in what."""
    reading = Reading.as_logged(case.robot.n)
    return between(case.evidence(reading), _log_of_block(case), reading.efforts())


def _log_of_block(case: Case) -> NDArray[np.int64]:
    samples = case.sampled(0.0)
    return samples.log[np.unique(samples.block, return_index=True)[1]]


def _case(robot: Robot, reduction: Array | None, logs: Sequence[tuple[Sequence[Segment], float]]) -> Case | None:
    """Samples of some logs; None where there are too few, nothing moves under a changing torque, or all joints move alike."""
    sampled = sampler(logs, reduction=reduction)
    first = None if sampled is None else sampled(0.0)
    if sampled is None or first is None or len(first) < _FEWEST * (robot.n + 2):
        return None
    moves = (np.ptp(first.q, axis=0) > 0.02) & (np.ptp(first.tau, axis=0) > 0)  # no torque tells nothing
    return Case(robot, lru_cache(sampled), moves) if moves.any() and not _one_curve(first.v[:, moves]) else None


def _one_curve(v: Array) -> bool:
    """Whether several joints move in one fixed ratio: then all torques are functions of one position, and any reading fits."""
    spread = np.linalg.svd(v / np.maximum(np.linalg.norm(v, axis=0), 1e-300), compute_uv=False)
    return v.shape[1] > 1 and bool(spread[1] < _ALIKE * spread[0])


def _findings(robot: Robot, case: Case, reading: Reading, steps: Sequence[Step], laden: bool) -> tuple[Finding, ...]:
    weak = bool(steps) and not steps[-1].decided and steps[-1].gain < SEVERE
    if steps and not steps[-1].decided and not weak:
        return _steps_in_words(robot, case, reading, steps)
    told = against_the_urdf(robot, case, reading, laden)
    found = (*_steps_in_words(robot, case, reading, steps[:-1] if weak and told else steps), *told)
    unseen = {} if steps else open_scales(case, reading)
    named = {item.joint for item in found if item.id == "effort-scale"}
    told_not = {j: ends for j, ends in unseen.items() if robot.joints[j] not in named}
    return (*found, open_scale(robot, told_not)) if told_not else found


def _steps_in_words(robot: Robot, case: Case, reading: Reading, steps: Sequence[Step]) -> tuple[Finding, ...]:
    """What was found; it refuses the log only if the log is sound once all of it is put right."""
    last = reading if not steps or steps[-1].decided else steps[-1].found.reading
    sound = case.judge(last).part < _SOUND
    return tuple(
        item
        for step in steps
        for item in (
            [named(robot, own, sound) for own in _by_joint(robot, step)]
            if step.decided
            else [doubt("physics-undecided", robot, step, sound)]
        )
    )


def _weighed(case: Case, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of a motion that hardly turns back are warnings: its held-out parts are extrapolated, however it is read."""
    if case.turns >= FEWEST_REVERSALS:
        return tuple(found)
    return tuple(replace(item, severity="warning") if item.severity == "refused" else item for item in found)


def _by_joint(robot: Robot, step: Step) -> list[Step]:
    """Signs of some joints that were found at once, one by one."""
    joints = step.found.joints
    if step.found.id != "effort-sign" or len(joints) in (1, robot.n):
        return [step]
    return [replace(step, found=replace(step.found, joints=(j,))) for j in joints]
