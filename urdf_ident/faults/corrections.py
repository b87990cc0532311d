"""Corrections of faults that act throughout a log, to find out which other explanations remain without them.

A wrong position, a delay or a filter raises the residual where the motion is fast or large. Compared with the rest of the log
or with other logs, this resembles a change of the robot: contact, drift, another load. The correction of the lasting fault
removes such a change; a true change remains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from ..linalg import Array
from ..samples import Segment
from .candidates import Interpretation
from .case import Case
from .delay.profile import Delay
from .load_friction import LoadedFit
from .motion_samples import MotionSamples, jerks
from .small_faults.fault import SmallFault
from .small_faults.find import effect
from .thinned_logs import Logs

#: Returns a case without the effect of a fault; its logs are those that the case was sampled from.
Correction = Callable[[Case, Logs], Case]


def unchanged(case: Case, logs: Logs) -> Case:
    """The correction that changes nothing.

    Args:
        logs: Not used.
    """
    return case


def of_fault(fault: SmallFault) -> Correction:
    """Correction of a small fault: its effect, estimated from the samples, is added to the efforts."""
    return partial(_without_fault, fault)


def without_load_friction(case: Case, logs: Logs) -> Case:
    """Correction of friction that grows with the load, as the samples show it; not a fault, but in a single log like a change.

    Args:
        case: The samples as logged.
        logs: Not used.

    Returns:
        The case without that friction.
    """
    taken = -LoadedFit.of(case).load_friction
    return _changed(case, lambda delay: _with_more(case.sampled(delay), taken))


def with_free_reversals(case: Case, logs: Logs) -> Case:
    """The same, with friction that reverses over some travel or speed free in all fits.

    Where joints reverse in some parts of a log only, it looks like contact there. Subtracted, it would take true changes along.

    Args:
        case: The samples as logged.
        logs: Not used.
    """
    return replace(without_load_friction(case, logs), reversals=True)


def of_delays(delay: Delay | None, apart: Mapping[tuple[str, int], float]) -> Correction | None:
    """Correction of delays and low-passes.

    A low-pass of the efforts is corrected as the delay that it is at low frequencies.

    Args:
        delay: Of all efforts.
        apart: Additional delays of single joints [s], as from :func:`.delay.profile.find_delays`.

    Returns:
        The correction; None if nothing was found.
    """
    joints = {j: seconds for (kind, j), seconds in apart.items() if kind == "joint"}
    if delay is None or not (joints or delay.decided or delay.smoothed):
        return None
    return partial(_without_delays, delay, joints)


def gains_of(case: Case, corrected: Case, interpretation: Interpretation | None = None) -> Array:
    """Gains of a correction in the rows' log relative residuals on held-out blocks.

    Args:
        case: The samples as logged.
        corrected: The same samples, corrected.
        interpretation: The interpretation of the corrected samples; None as logged.

    Returns:
        The gains, shape (n,); negative where the correction explains less, 0 for joints that do not move.
    """
    logged = Interpretation.as_logged(case.robot.n)
    interpretation = interpretation or logged
    before, after = case.judge(logged), corrected.judge(interpretation)
    # the residuals' own sizes: a correction changes the efforts that they are relative to
    size = corrected.evidence(interpretation).size / case.evidence(logged).size
    return np.where(case.moves, np.log(before.left / (after.left * size)), 0.0)


def outside(parts: Sequence[Segment], ends: tuple[float, float] | None) -> list[Segment]:
    """Cuts a part out of a log's motion.

    Args:
        ends: Begin and end of the part as fractions of the samples; None cuts nothing.
    """
    if ends is None:
        return list(parts)
    total, at = sum(map(len, parts)), 0
    out: list[Segment] = []
    for part in parts:
        begin, end = (min(max(round(x * total) - at, 0), len(part)) for x in ends)
        out += [part.slice(first, last) for first, last in ((0, begin), (end, len(part))) if last - first > 1]
        at += len(part)
    return out


def _without_fault(fault: SmallFault, case: Case, logs: Logs) -> Case:
    taken = effect(case, logs, fault)
    return case if taken is None else _changed(case, lambda delay: _with_more(case.sampled(delay), taken))


def _with_more(samples: MotionSamples, more: Array) -> MotionSamples:
    return replace(samples, tau=samples.tau + more)


def _without_delays(delay: Delay, joints: Mapping[int, float], case: Case, logs: Logs) -> Case:
    lag = delay.lag or 0.0
    common = max(lag, 0.0) if lag else delay.seconds if delay.decided else 0.0
    second = 0.0 if delay.smoothed is None else -1 / (2 * np.pi * delay.smoothed) ** 2
    faster = jerks(logs) if lag < 0 or second else None

    def sampled(more: float) -> MotionSamples:
        samples = case.sampled(common + more)
        tau = samples.tau.copy()
        for j, seconds in joints.items():
            tau[:, j] = case.sampled(common + seconds + more).tau[:, j]
        samples = replace(samples, tau=tau)
        return samples if faster is None else samples.before_low_pass(max(-lag, 0.0), second, faster)

    return _changed(case, sampled)


def _changed(case: Case, sampled: Callable[[float], MotionSamples]) -> Case:
    return Case(case.robot, lru_cache(sampled), case.moves)
