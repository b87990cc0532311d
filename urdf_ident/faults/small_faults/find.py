"""Tests for small faults, whose effect on the torques is proportional to their size.

Each fault adds columns to the fit of one rigid robot (:mod:`.columns`). Its size is a coefficient with a jackknife
standard error over blocks of time. Friction and torque ripple with a similar effect are free in the fits with and without it.
A fault of one log is tested with the bodies of all logs: with its own, a log would explain much of its fault. It is tested both
with the friction of all logs and with its own: that of cold gears looks like another scale of an effort, or another clock.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import Array
from ..candidates import Interpretation
from ..case import Case
from ..motion_samples import COMPARED, efforts_in_time, jerks
from ..thinned_logs import Logs
from .backlash import play
from .columns import CLOCK, FaultColumns, FaultRows
from .fault import SmallFault
from .trial import ChosenColumns, FaultTrial

#: Least relative residual for which faults are searched that are not a scale: a scale may be wrong by much and leave less, as
#: gravity that was added looks like heavier bodies.
_LEFT = 0.02
#: In-sample gain from which errors are computed, and for how many faults and axis placements.
_WORTH, _CLOSE, _CLOSE_PLACES = 0.05, 4, 2
#: Least advantage over another fault of axis placements, which have two parameters; and faults with several.
_MORE_NUMBERS = 0.15
#: Number of faults of single logs whose errors are computed.
_CLOSE_IN_ONE = 3


def small_faults(case: Case, logs: Logs) -> list[SmallFault]:
    """Searches for small faults in logs as described.

    Args:
        case: The robot and the samples of these logs.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].

    Returns:
        The faults that explain most, best first; they may be insignificant. Scales only if the residual is small.
    """
    exact = case.judge(Interpretation.as_logged(case.robot.n)).left[case.moves].max() < _LEFT
    rows = FaultRows.of(case)
    promising: list[tuple[float, FaultColumns, FaultTrial]] = []
    late: dict[tuple[int, ...], dict[int, float]] = {}
    moving = np.flatnonzero(case.moves)
    loose, growth, efforts = play(logs, moving), jerks(logs)[0], efforts_in_time(logs)
    for k, j in enumerate(moving.tolist()):
        trial, faults = FaultTrial.of(rows, j, loose[:, :, k], growth, efforts[:, :, j])
        faults = [fault for fault in faults if not exact or fault.id.entry.scales]
        faults = [*faults, *chain.from_iterable(_of_logs(rows, fault) for fault in faults)]
        faults = [fault for fault in faults if fault.logs or fault.id != CLOCK]  # that of all logs is a hypothesis
        plain = {chosen: trial.seen(chosen) for chosen in map(ChosenColumns.without, faults)}
        gains = {fault: plain[ChosenColumns.without(fault)] - trial.seen(ChosenColumns.of(fault)) for fault in faults}
        common = {fault.logs: gain for fault, gain in gains.items() if fault.of_all}
        worth = {fault: gain for fault, gain in gains.items() if gain > _WORTH and _own(fault, gain, common)}
        own = {fault: gain for fault, gain in worth.items() if fault.sense * trial.sizes(fault)[0, 0] >= 0}
        promising += [(gain, fault, trial) for fault, gain in own.items()]
        for fault in faults:
            if fault.id == Id.EFFORT_DELAY:
                late.setdefault(fault.logs, {})[j] = float(trial.sizes(fault)[0, 0])
    promising.sort(key=lambda entry: -entry[0])
    single = [entry for entry in promising if entry[1].logs][:_CLOSE_IN_ONE]
    places = [entry for entry in promising if entry[1].id.entry.placement][:_CLOSE_PLACES]
    others = [entry for entry in promising if not entry[1].id.entry.placement and not entry[1].logs][:_CLOSE]
    found = [_also_apart(trial, fault) for _, fault, trial in (*others, *places, *single)]
    kept = [item for item in found if item.id != Id.EFFORT_DELAY or _alone(item, late[item.logs])]
    return sorted(kept, key=_rank)


def _also_apart(trial: FaultTrial, fault: FaultColumns) -> SmallFault:
    """A fault as measured, or as with repetitions of a motion held out together, if these support it less."""
    found = _measured(trial, fault)
    if not found.decided or trial.rows.by_motion is trial.rows:
        return found
    also = _measured(replace(trial, rows=trial.rows.by_motion), fault)
    return found if also.gains_apart else also


def _measured(trial: FaultTrial, fault: FaultColumns) -> SmallFault:
    """Size, error and gain of a fault; of one log with the friction of that log or of all, whichever fit says less."""
    found = _beside_reversals(trial, fault)
    if not (fault.cold and found.decided):
        return found
    return min(found, _beside_reversals(trial, replace(fault, cold=False)), key=lambda item: (item.decided, item.gain))


def _beside_reversals(trial: FaultTrial, fault: FaultColumns) -> SmallFault:
    """Size, error and gain of a fault; not significant if it is not with less friction at reversals free.

    That friction resembles another effort on few moves, and with it free, small effects of other causes become significant.
    """
    found = trial.measured(fault)
    if fault.narrower is None or not found.decided:
        return found
    other = trial.measured(replace(fault.narrower, logs=fault.logs, cold=fault.cold))
    return found if other.decided else other


def _rank(found: SmallFault) -> float:
    """Lower is better."""
    freer = found.numbers > 1 if found.logs else found.id.entry.placement or found.id is Id.CONTACT_SPRING
    return (_MORE_NUMBERS if freer else 0.0) - found.gain


def _of_logs(rows: FaultRows, fault: FaultColumns) -> list[FaultColumns]:
    """The same fault in single logs, and a zero that is set anew in each log; none in one log, and of many."""
    if not 1 < rows.logs <= COMPARED or fault.id.entry.placement:
        return []
    of = [*((k,) for k in range(rows.logs)), *([tuple(range(rows.logs))] if fault.id == Id.POSITION_ZERO else [])]
    return [replace(fault, logs=logs, cold=True) for logs in of]


def effect(case: Case, logs: Logs, fault: SmallFault) -> Array | None:
    """Estimates what must be added to the efforts to correct a fault.

    Args:
        case: The robot and the samples of these logs, some or all of those in which the fault was found.
        logs: As for :func:`small_faults`.
        fault: The fault; its size is estimated again.

    Returns:
        Shape (N, n) [N·m or N]; None if the joint does not move in these logs.
    """
    j = fault.joints[0] if fault.joints else int(np.flatnonzero(case.moves)[0])
    if not case.moves[j]:
        return None
    loose, efforts = play(logs, np.array([j]))[:, :, 0], efforts_in_time(logs)[:, :, j]
    trial, faults = FaultTrial.of(FaultRows.of(case), j, loose, jerks(logs)[0], efforts)
    same = [
        replace(item, logs=fault.logs)
        for item in faults
        if (item.id, item.joints) == (fault.id, fault.joints) and not item.of_all
    ]
    return trial.effect(min(same, key=lambda item: trial.seen(ChosenColumns.of(item)))) if same else None


def _own(fault: FaultColumns, gain: float, common: dict[tuple[int, ...], float]) -> bool:
    """Whether a fault belongs to one joint; a delay of its positions must explain more than one of all positions."""
    return not fault.of_all and (fault.id is not Id.POSITION_LATE or gain > common[fault.logs])


def _alone(found: SmallFault, late: dict[int, float]) -> bool:
    """Whether a joint's effort is later than those of the others; a common delay is handled elsewhere."""
    others = [seconds for j, seconds in late.items() if j not in found.joints]
    return bool(others) and float(np.median(others)) < 0.5 * found.size
