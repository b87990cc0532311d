"""Chooses between explanations of the same torques: drops those that others account for.

A lasting fault precedes what its correction removes; a small one must also be found without the changed parts of the logs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..parallel import each
from ..samples import SHORT
from ..signals.quality.hidden_delays import DELAY
from .candidates import Interpretation
from .corrections import (
    Correction,
    gains_of,
    of_delays,
    of_fault,
    outside,
    unchanged,
    with_free_reversals,
    without_load_friction,
)
from .explanations import Explanations, along, differing_in, examined_alone, significant_faults
from .hypotheses import search
from .motion_samples import COMPARED
from .small_faults.fault import SmallFault

#: Largest part of the changes that remains after the correction of a fault that explains them.
_EXPLAINED = 0.5


def arbitrated(found: Explanations) -> Explanations:
    """Drops explanations that others account for.

    Args:
        found: All explanations.
    """
    found = _besides_friction(found)
    if not found.several:
        return found
    before = found.changed
    found, lasting = _lasting(found)
    logged = Interpretation.as_logged(found.case.robot.n)
    for corrected in (*lasting, (without_load_friction, logged), (with_free_reversals, logged)):
        found = _remaining(found, *corrected)
    if found.small:
        found = replace(found, small=_without_changed_parts(found))
    found = replace(found, lasting=found.changed != before)
    surpassed = not found.differing and found.steps and found.most > found.steps[0].gain
    return replace(found, steps=[], interpretation=logged) if surpassed else found


def _besides_friction(found: Explanations) -> Explanations:
    """Drops an interpretation that varies with the pose, or a delay, if friction explains more and hardly leaves it anything.

    Friction may grow with the load, and reverse over some travel, which resembles a delay.
    """
    id = found.steps[0].found.id if found.steps else None
    if id is None or not (id.entry.with_pose or id is DELAY):
        return found
    logged, first = Interpretation.as_logged(found.case.robot.n), found.steps[0]
    for correct in (without_load_friction, with_free_reversals):
        corrected = correct(found.case, found.group.logs)
        before, after = (corrected.judge(item).score for item in (logged, first.found.interpretation))
        if before - after < _EXPLAINED * first.gain < first.gain < gains_of(found.case, corrected).sum():
            return replace(found, steps=[], interpretation=logged)
    return found


def _lasting(found: Explanations) -> tuple[Explanations, list[tuple[Correction, Interpretation]]]:
    """Drops interpretations and small faults that delays and low-passes explain.

    Returns:
        What remains, and corrections of the faults that last throughout the logs, and how the corrected logs are interpreted.
    """
    case, logs, steps, small = found.case, found.group.logs, found.steps, found.small
    lasting: list[tuple[Correction, Interpretation]] = []
    logged = Interpretation.as_logged(case.robot.n)
    delays = of_delays(*found.group.delays)
    if delays is not None:
        lasting.append((delays, logged))
        late = delays(case, logs)
        gained = float(gains_of(case, late).sum())
        if steps and gained > steps[0].gain and not search(late)[1]:
            steps = []
        if small and gained > gains_of(case, of_fault(small[0])(case, logs)).sum():
            small = _also_in(small, significant_faults(late, logs, steps))
    if steps and steps[-1].decided:
        lasting.append((unchanged, found.interpretation))
    if small and not small[0].logs:
        lasting.append((of_fault(small[0]), logged))
    return replace(found, steps=steps, small=small), lasting


def _remaining(found: Explanations, correct: Correction, interpretation: Interpretation) -> Explanations:
    """Drops differences between logs and changes along them that the correction of a lasting fault removes.

    A change is removed only if the correction also explains the joint that shows it most: where most of the effort stays
    unexplained, no change is significant any more. A fault that explains less than half of the changes does not explain any:
    they are all kept.

    Args:
        found: All explanations.
    """
    group, changed = found.group, found.changed
    some = [k for k, item in enumerate(changed) if found.differing or item is not None]
    some = some if found.differing else some[:COMPARED]
    if len(found.differing) > 1 or not some:
        return found  # of many logs, compared in groups
    examined = each(
        partial(examined_alone, group.robot, group.reduction, corrected=(correct, interpretation)), group.some(some).logs
    )
    alone = [item for item in examined if item is not None]
    corrected = correct(found.case, group.logs)
    least = _EXPLAINED / found.case.robot.n
    if found.differing and not differing_in(corrected, [own.left for own in alone], interpretation):
        gains = gains_of(found.case, corrected, interpretation)
        if all(gains[joint] >= least * gain for _, gain, joint in found.differing[0].values()):
            found = replace(found, differing=[])
    still = dict(zip(some, along(corrected, alone, interpretation=interpretation), strict=True))
    before = sum(item.gain for item in (changed[k] for k in some) if item is not None)
    if sum(item.gain for item in still.values() if item is not None) > _EXPLAINED * before:
        return found
    common = len(some) > 1 and all(changed[k] is changed[some[0]] for k in some)  # seen in all logs together only
    for k, own in zip(some, alone, strict=True):
        item = changed[k]
        gains = gains_of(found.case, corrected, interpretation) if common else own.left.gains_over(found.left[k])
        if item is not None and gains[item.joint] < least * item.gain:
            still[k] = item
    return replace(found, changed=[item if still.get(k) is not None else None for k, item in enumerate(changed)])


def _without_changed_parts(found: Explanations) -> list[SmallFault]:
    """Small faults that are also found without the changed parts of the logs; all if too little would be left."""
    ends = [None if item is None or item.drift else (item.begin, item.end) for item in found.changed]
    kept = [(outside(parts, at), cutoff) for (parts, cutoff), at in zip(found.group.logs, ends, strict=True)]
    group = replace(found.group, logs=kept)
    if not any(ends) or group.seconds < SHORT or (case := group.case()) is None:
        return found.small
    return _also_in(found.small, significant_faults(case, kept, found.steps))


def _also_in(small: list[SmallFault], others: list[SmallFault]) -> list[SmallFault]:
    left = {(item.id, item.joints, item.logs) for item in others}
    return [item for item in small if (item.id, item.joints, item.logs) in left]
