"""Delays that a log does not determine: shorter than half a sample, than the time a joint stays on one encoder count, or than
the smoothing by the low-pass of its positions.

A reversing joint seems to rest until it has left one encoder count. Friction that reverses there seems to lag the motion by
the time that the joint needs to leave the count, so that no delay of that size can be distinguished. A joint that sticks at a
reversal has the same effect, for a time that low-passed positions no longer show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from .prepare import PreparedLog
from .resolution import count_of

#: Apparent delay of joints that stick at reversals over the low-pass time constant: within it, both are alike.
_SMOOTHED = 0.4
#: Names of findings that may be hidden: of efforts; and of one joint's positions, which the samples alone hide, because the
#: efforts of other joints show them without the friction of that joint.
DELAY, LATE = Id.EFFORT_DELAY, Id.POSITION_LATE


def known_delays(logs: Sequence[PreparedLog], findings: Sequence[Sequence[Judgement]]) -> list[tuple[Judgement, ...]]:
    """Marks hidden delays in findings about logs: they state what hides them and are no warnings."""
    if not any(finding.id in (DELAY, LATE) for of_log in findings for finding in of_log):
        return [tuple(of_log) for of_log in findings]  # without a search for counts
    # time to leave one encoder count after a reversal [s]; 0 if positions are not quantised or the joint never reverses
    on_count = dict.fromkeys(logs[0].robot.joints, 0.0)
    for log in logs:
        for j, joint in enumerate(on_count):
            turning = [np.abs(part.a[:-1, j][part.v[:-1, j] * part.v[1:, j] < 0]) for part in log.examined.segments]
            acceleration = np.concatenate([np.empty(0), *turning])
            if len(acceleration) and (usual := float(np.median(acceleration))) > 0:
                count = count_of(log.report.recording.position[:, j])
                on_count[joint] = max(on_count[joint], float(np.sqrt(2 * count / usual)))
    half_a_sample = max(0.5 / log.examined.rate for log in logs)
    cutoff = min(log.examined.cutoff for log in logs)

    def marked(finding: Judgement) -> Judgement:
        if finding.id not in (DELAY, LATE) or finding.size is None:
            return finding
        delay = abs(finding.size)
        count = on_count.get(finding.joint, 0.0) if finding.joint else min(on_count.values())
        if delay <= half_a_sample:
            why = f"the times of the samples, which are {2e3 * half_a_sample:.3g} ms apart"
        elif finding.id == DELAY and delay <= count:
            whose = "its encoder" if finding.joint else "the encoders"
            why = f"the counts of {whose}: after turning back it takes {1e3 * count:.3g} ms to leave one"
        elif finding.id == DELAY and delay <= _SMOOTHED / (2 * np.pi * cutoff):
            why = f"friction that sticks at reversals, which positions low-pass filtered at {cutoff:.3g} Hz do not show"
        else:
            return finding
        remedy = Remedy("log positions with more digits, or record faster reversals")
        words = f"{finding.message}; this is not distinguishable from {why}"
        return replace(finding, severity="info", message=words, remedy=remedy)

    return [tuple(map(marked, of_log)) for of_log in findings]
