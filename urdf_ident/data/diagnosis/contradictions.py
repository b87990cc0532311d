"""Tests logs against physics: signs, orders, zeros, clocks and gravity that another reading explains decisively better.

The URDF's inertias are not used, with two stated exceptions: the sign of gravity, and the scale of the torques if the motion
is too slow to determine it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.robot import Robot
from ...parallel import each, shared, start_each
from ...samples import FEWEST_REVERSALS, SHORT, TESTING_REVERSALS, Segment
from ..quality.findings import Finding
from ..quality.hidden_delays import DELAY
from .against_urdf import against_the_urdf
from .candidates import Reading
from .case import Case
from .changes.between_logs import BETWEEN_LOGS, EVERYTHING, between
from .changes.change import Change
from .changes.outlying_logs import LogResidual, outlying_logs
from .changes.stationarity import LogChanges, in_all, within
from .changes.wording import changes, differs, worse_explained
from .corrections import Correction, Logs, gain_of, of_delays, of_fault, outside, unchanged
from .delay.profile import find_delays
from .hypotheses import DOUBTFUL, Step, open_clock, open_scales, search
from .motion_samples import MotionSamples, sampler
from .small_faults.find import SmallFault, small_faults
from .small_faults.wording import small_fault
from .wording import SEVERE, doubt, named, open_scale, open_time, too_short_to_tell

#: Minimum number of samples per joint.
_FEWEST = 25
#: Relative residual of the moving joints up to which it is noise and unmodelled friction: on simulated arms fault-free logs
#: with noise of a fifth of the torque leave 0.2, unmeasured loads 0.6.
_SOUND = 0.35
#: A reading with a smaller gain is compared with changes along the logs.
_AS_CHANGE = 3.0
#: Relative deviation from a fixed ratio between the joints' motions below which the ratio counts as fixed.
_ALIKE = 0.02
#: Largest part of the changes that remains after the correction of a fault that explains them.
_EXPLAINED = 0.5
#: Maximum number of logs compared at a time.
_COMPARED = 8

#: A case, the reading that explains it, and the steps to that reading.
_Search = tuple[Case, Reading, list[Step]]
#: Log → kind of change, gain and joint.
_Odd = dict[int, tuple[str, float, int]]


def contradictions(
    robot: Robot,
    logs: Sequence[tuple[Sequence[Segment], float]],
    reduction: Array | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> list[tuple[Finding, ...]]:
    """Searches for readings of the logs that explain their torques decisively better, and for changes over time.

    With less than :data:`.samples.SHORT` seconds of motion in all logs together, the parameters of one robot fit almost any
    torque: causes found there are reported as undecided, and changes over time and small faults are not searched for.

    Args:
        robot: Kinematics and gravity; its inertias are not used.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.
        meanwhile: Called while workers examine each log; it may queue further work for them.

    Returns:
        Findings of each log; none if the motion is too short.
    """
    out: list[tuple[Finding, ...]] = [() for _ in logs]
    whole = _case(robot, reduction, logs) if shared() else None
    pending = start_each(partial(_alone, robot, reduction), logs)
    if meanwhile is not None:
        meanwhile()
    early = None  # while workers examine each log alone
    if whole is not None:
        early = _without_presliding(robot, reduction, logs, (whole, *search(whole)))
    alone = {k: told for k, told in enumerate(pending()) if told is not None}
    usable = list(alone)
    brief = _seconds(logs) < SHORT
    while usable:
        searched = early if early and len(usable) == len(logs) else _searched(robot, reduction, [logs[k] for k in usable])
        if searched is None:
            break
        together, reading, steps = searched
        left = {k: alone[k].left for k in usable}
        odd = _inconsistent_logs(robot, reduction, logs, left, together, steps)
        small = [] if brief else _small_faults(together, [logs[k] for k in usable], steps)
        asked = usable if not steps or steps[0].gain < _AS_CHANGE else []
        changed: dict[int, Change | None] = dict.fromkeys(usable)
        changed |= zip(asked, _changing(together, [alone[k] for k in asked], brief), strict=True)
        alike = not (odd or small or any(changed.values()))
        explained = False
        if not (brief or alike):
            steps, odd, changed, small, explained = _arbitrated(reduction, logs, searched, odd, changed, small)
        if not odd:
            others = [*(item.gain for item in changed.values() if item is not None), *(item.gain for item in small)]
            if steps and max(others, default=0.0) > steps[0].gain:
                steps = []
            reading = reading if (steps and steps[-1].decided) or not steps else Reading.as_logged(robot.n)
            loaded = any(part.external is not None for k in usable for part in logs[k][0])
            found = _downgraded(together, _findings(robot, together, reading, steps, loaded))
            told_already = {(item.id, item.joint) for item in found}
            more = [] if steps or not small else [small_fault(robot, small)]
            more = [item for item in more if (item.id, item.joint) not in told_already]
            for k in usable:
                change = None if steps else changed[k]
                varying = [] if change is None else [changes(robot, change)]
                out[k] = (*out[k], *found, *(more + varying if explained else varying + more))
            if not brief and not steps and alike:
                for at, (joint, times) in outlying_logs(list(left.values())).items():
                    out[usable[at]] = (*out[usable[at]], worse_explained(robot, joint, times))
            break
        for group in odd:
            for k, (kind, gain, joint) in group.items():
                case = _case(robot, reduction, [logs[k]])
                own = () if case is None else _downgraded(case, _steps_in_words(robot, case, *search(case)))
                out[k] = (*out[k], differs(robot, kind, gain, joint, len(group) == 1, own), *own)
        if any(len(group) > 1 for group in odd):
            break
        usable = [k for k in usable if not any(k in group for group in odd)]
    return [tuple(map(too_short_to_tell, found)) for found in out] if brief else out


def _seconds(logs: Sequence[tuple[Sequence[Segment], float]]) -> float:
    """Duration of the motion in all logs [s]."""
    return sum(part.repeats * len(part) / part.rate for parts, _ in logs for part in parts)


def _searched(robot: Robot, reduction: Array | None, logs: Sequence[tuple[Sequence[Segment], float]]) -> _Search | None:
    """Samples of some logs, with the reading that explains them and its steps; None as for :func:`_case`."""
    case = _case(robot, reduction, logs)
    return None if case is None else _without_presliding(robot, reduction, logs, (case, *search(case)))


def _without_presliding(
    robot: Robot, reduction: Array | None, logs: Sequence[tuple[Sequence[Segment], float]], searched: _Search
) -> _Search:
    """Drops a delay of all efforts, and what was found after it, that is friction which reverses over some travel.

    The search has no such friction; the estimate of the delay has.
    """
    case, _, steps = searched
    at = next((k for k, step in enumerate(steps) if step.found.id == DELAY and not step.found.joints), None)
    if at is None or (delay := find_delays(robot, logs, reduction)[0]) is None or not delay.excludes(steps[at].found.size):
        return searched
    return case, steps[at - 1].found.reading if at else Reading.as_logged(robot.n), steps[:at]


def _arbitrated(
    reduction: Array | None,
    logs: Logs,
    searched: _Search,
    odd: list[_Odd],
    changed: dict[int, Change | None],
    small: list[SmallFault],
) -> tuple[list[Step], list[_Odd], dict[int, Change | None], list[SmallFault], bool]:
    """Drops explanations that others account for.

    A lasting fault precedes what its correction removes; a small one must also be found without the changed parts of the logs.

    Args:
        logs: All logs.
        searched: The case of the compared ones, which are the keys of ``changed``.
        odd: Inconsistent logs, as from :func:`_inconsistent_logs`.
        changed: Changes along the compared logs.
        small: Small faults.

    Returns:
        Steps, inconsistent logs, changes and small faults that remain, and whether a lasting fault explains most changes.
    """
    some, before = [logs[k] for k in changed], changed
    steps, small, lasting = _lasting(reduction, some, searched, small)
    for corrected in lasting:
        odd, changed = _remaining(corrected, reduction, logs, searched[0], odd, changed)
    if small:
        small = _without_changed_parts(reduction, some, list(changed.values()), searched, small)
    return steps, odd, changed, small, changed != before


def _lasting(
    reduction: Array | None, logs: Logs, searched: _Search, small: list[SmallFault]
) -> tuple[list[Step], list[SmallFault], list[tuple[Correction, Reading]]]:
    """Faults that last throughout the logs, without those that delays and low-passes explain, and their corrections."""
    case, reading, steps = searched
    lasting: list[tuple[Correction, Reading]] = []
    logged = Reading.as_logged(case.robot.n)
    delays = of_delays(*find_delays(case.robot, logs, reduction))
    if delays is not None:
        lasting.append((delays, logged))
        late = delays(case, logs)
        gained = gain_of(case, late)
        if steps and gained > steps[0].gain and not search(late)[1]:
            steps = []
        if small and gained > gain_of(case, of_fault(small[0])(case, logs)):
            left = {(item.id, item.joints) for item in _small_faults(late, logs, steps)}
            small = [item for item in small if (item.id, item.joints) in left]
    if steps and steps[-1].decided:
        lasting.append((unchanged, reading))
    if small:
        lasting.append((of_fault(small[0]), logged))
    return steps, small, lasting


def _remaining(
    lasting: tuple[Correction, Reading],
    reduction: Array | None,
    logs: Logs,
    together: Case,
    odd: list[_Odd],
    changed: dict[int, Change | None],
) -> tuple[list[_Odd], dict[int, Change | None]]:
    """Inconsistent logs and changes along logs that remain after the correction of a lasting fault.

    A fault that explains less than half of the changes does not explain any: they are all returned.

    Args:
        lasting: The correction, and the reading of the corrected logs.
        logs: All logs.
        together: The case of the compared ones, which are the keys of ``changed``.
        odd: Inconsistent logs, as from :func:`_inconsistent_logs`.
        changed: Changes of the compared logs.

    Returns:
        Those that remain.
    """
    correct, reading = lasting
    usable = list(changed)
    some = usable if odd else [k for k in usable if changed[k] is not None][:_COMPARED]
    if len(odd) > 1 or not some:
        return odd, changed  # of many logs, compared in groups
    told = each(partial(_alone, together.robot, reduction, corrected=lasting), [logs[k] for k in some])
    alone = {k: item for k, item in zip(some, told, strict=True) if item is not None}
    whole = correct(together, [logs[k] for k in usable])
    if odd and not _differing(whole, [alone[k].left for k in usable], reading):
        odd = []
    still = dict(zip(some, _changing(whole, [alone[k] for k in some], False, reading), strict=True))
    before, after = (sum(item.gain for item in (of[k] for k in some) if item is not None) for of in (changed, still))
    if after > _EXPLAINED * before:
        return odd, changed
    return odd, {k: change if still.get(k) is not None else None for k, change in changed.items()}


def _without_changed_parts(
    reduction: Array | None, logs: Logs, changes: Sequence[Change | None], searched: _Search, small: list[SmallFault]
) -> list[SmallFault]:
    """Small faults that are also found without the changed parts of the logs; all if too little would be left."""
    robot, steps = searched[0].robot, searched[2]
    ends = [None if change is None or change.drift else (change.begin, change.end) for change in changes]
    kept = [(outside(parts, at), cutoff) for (parts, cutoff), at in zip(logs, ends, strict=True)]
    if not any(ends) or _seconds(kept) < SHORT:
        return small
    case = _case(robot, reduction, kept)
    if case is None:
        return small
    left = {(item.id, item.joints) for item in _small_faults(case, kept, steps)}
    return [item for item in small if (item.id, item.joints) in left]


def _small_faults(case: Case, logs: Sequence[tuple[Sequence[Segment], float]], steps: Sequence[Step]) -> list[SmallFault]:
    """Significant small faults, largest gain first; none if a large fault explains about as much."""
    if case.turns < TESTING_REVERSALS or (steps and steps[0].gain > _AS_CHANGE):
        return []
    found = [item for item in small_faults(case, logs) if item.decided]
    told = {item.id for step in steps[:1] for item in (step.found, *step.rivals)}
    least = steps[0].gain + DOUBTFUL if steps else 0.0
    return found if found and found[0].id not in told and found[0].gain > least else []


def _alone(
    robot: Robot,
    reduction: Array | None,
    log: tuple[Sequence[Segment], float],
    corrected: tuple[Correction, Reading] | None = None,
) -> LogChanges | None:
    """Results of one log by itself, as described or corrected; None if it has too few data."""
    case = _case(robot, reduction, [log])
    if case is None:
        return None
    correct, reading = corrected or (unchanged, Reading.as_logged(robot.n))
    told = within(correct(case, [log]).evidence(reading), reading.efforts())
    return told if case.turns >= FEWEST_REVERSALS and _seconds([log]) >= SHORT else replace(told, change=None)


def _changing(together: Case, alone: Sequence[LogChanges], brief: bool, reading: Reading | None = None) -> list[Change | None]:
    """Changes along each log; if no log shows any by itself, the common change of all, unless their motion is brief."""
    changed = [told.change for told in alone]
    if any(changed) or not alone or brief:
        return changed
    reading = reading or Reading.as_logged(together.robot.n)
    shared = in_all(together.evidence(reading), _log_of_block(together), reading.efforts(), [told.growth for told in alone])
    return [shared] * len(alone)


def _inconsistent_logs(
    robot: Robot,
    reduction: Array | None,
    logs: Sequence[tuple[Sequence[Segment], float]],
    alone: Mapping[int, LogResidual],
    together: Case,
    steps: Sequence[Step],
) -> list[_Odd]:
    """Logs that differ from the others, by group, unless another reading of all of them explains more.

    The keys of ``alone`` are the logs to compare, its values their residuals with their own parameters.

    Many logs are compared in groups: among a hundred, the samples of one would have too little weight.
    """
    usable = list(alone)
    if len(usable) < 2:
        return []
    parted = -(-len(usable) // _COMPARED)
    groups = [usable[k::parted] for k in range(parted)]
    if parted == 1:
        found = [_differing(together, list(alone.values()))]
    else:
        cases = [_case(robot, reduction, [logs[k] for k in group]) for group in groups]
        thin = [
            None if case is None else (case.sampled(0.0), case.moves, [alone[k] for k in group])
            for case, group in zip(cases, groups, strict=True)
        ]  # much less data to send than the logs
        found = each(partial(_differing_of, robot), thin)
    gain = max((change[1] for odd in found for change in odd.values()), default=0.0)
    if steps and gain <= steps[0].gain:
        return []
    return [{group[at]: change for at, change in odd.items()} for group, odd in zip(groups, found, strict=True) if odd]


def _differing_of(robot: Robot, thin: tuple[MotionSamples, NDArray[np.bool_], list[LogResidual]] | None) -> _Odd:
    """Calls :func:`_differing` with samples, the joints that move, and the residuals of each log by itself."""
    return {} if thin is None else _differing(Case(robot, {0.0: thin[0]}.__getitem__, thin[1]), thin[2])


def _differing(case: Case, alone: Sequence[LogResidual], reading: Reading | None = None) -> _Odd:
    """Index of each log that differs from the others of the case, with kind, gain and joint.

    Friction is not compared where the joints hardly reverse: each log then shows it in one direction and at few speeds, and
    laws that Coulomb, viscous and offset approximate differ from log to log.
    """
    reading = reading or Reading.as_logged(case.robot.n)
    turning = case.turns >= FEWEST_REVERSALS
    kinds = [kind for kind in BETWEEN_LOGS if turning or kind not in ("friction", EVERYTHING)]
    return between(case.evidence(reading), _log_of_block(case), reading.efforts(), alone, kinds)


def _log_of_block(case: Case) -> NDArray[np.int64]:
    samples = case.sampled(0.0)
    return samples.log[np.unique(samples.block, return_index=True)[1]]


def _case(robot: Robot, reduction: Array | None, logs: Sequence[tuple[Sequence[Segment], float]]) -> Case | None:
    """Samples of some logs; None if there are too few, no joint moves with varying torque, or all joints move alike."""
    sampled = sampler(logs, reduction=reduction)
    first = None if sampled is None else sampled(0.0)
    if sampled is None or first is None or len(first) < _FEWEST * (robot.n + 2):
        return None
    moves = (np.ptp(first.q, axis=0) > 0.02) & (np.ptp(first.tau, axis=0) > 0)  # a constant torque has no information
    return Case(robot, lru_cache(sampled), moves) if moves.any() and not _one_curve(first.v[:, moves]) else None


def _one_curve(v: Array) -> bool:
    """Whether all joints move in a fixed ratio: then all torques depend on one position, and any reading fits."""
    spread = np.linalg.svd(v / np.maximum(np.linalg.norm(v, axis=0), 1e-300), compute_uv=False)
    return v.shape[1] > 1 and bool(spread[1] < _ALIKE * spread[0])


def _findings(robot: Robot, case: Case, reading: Reading, steps: Sequence[Step], loaded: bool) -> tuple[Finding, ...]:
    weak = bool(steps) and not steps[-1].decided and steps[-1].gain < SEVERE
    if steps and not steps[-1].decided and not weak:
        return _steps_in_words(robot, case, reading, steps)
    told = against_the_urdf(robot, case, reading, loaded)
    found = (*_steps_in_words(robot, case, reading, steps[:-1] if weak and told else steps), *told)
    if steps:
        return found
    named = {item.joint for item in found if item.id == "effort-scale"}
    scales = {j: ends for j, ends in open_scales(case, reading).items() if robot.joints[j] not in named}
    clock = open_clock(case, reading)
    return (*found, *([open_scale(robot, scales)] if scales else []), *([] if clock is None else [open_time(*clock)]))


def _steps_in_words(robot: Robot, case: Case, reading: Reading, steps: Sequence[Step]) -> tuple[Finding, ...]:
    """Findings of the steps; they name causes, and refuse the log, only if it is explained well after all corrections."""
    last = reading if not steps or steps[-1].decided else steps[-1].found.reading
    sound = case.judge(last).part < _SOUND
    return tuple(
        item
        for step in steps
        for item in (
            [named(robot, own, sound) for own in _by_joint(robot, step)]
            if step.decided and sound
            else [doubt(robot, step, sound)]
        )
    )


def _downgraded(case: Case, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Downgrades findings to warnings for motions with few reversals, whose held-out parts are extrapolated."""
    if case.turns >= FEWEST_REVERSALS:
        return tuple(found)
    return tuple(replace(item, severity="warning") if item.severity == "refused" else item for item in found)


def _by_joint(robot: Robot, step: Step) -> list[Step]:
    """Splits a step with the signs of several joints into one step per joint."""
    joints = step.found.joints
    if step.found.id != "effort-sign" or len(joints) in (1, robot.n):
        return [step]
    return [replace(step, found=replace(step.found, joints=(j,))) for j in joints]
