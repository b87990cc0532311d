"""Delays that a log does not determine: shorter than half a sample, than the time a joint stays on one encoder count, or than
the smoothing by the low-pass of its positions.

A reversing joint seems to rest until it has left one encoder count. Friction that reverses there seems to lag the motion by
the time that the joint needs to leave the count, so that no delay of that size can be distinguished. A joint that sticks at a
reversal has the same effect, for a time that low-passed positions no longer show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array
from ...samples import Segment
from ..resolution import count_of

#: Apparent delay of joints that stick at reversals over the low-pass time constant: within it, both are alike.
_SMOOTHED = 0.4
#: Names of findings that may be hidden: of efforts; and of one joint's positions, which the samples alone hide, because the
#: efforts of other joints show them without the friction of that joint.
DELAY, LATE = Id.EFFORT_DELAY, Id.POSITION_LATE
#: Recorded positions of a log, shape (N, n) [rad or m], its conditioned motion, and the cut-off of its positions [Hz].
Seen = tuple[Array, Sequence[Segment], float]


@dataclass(frozen=True)
class HiddenDelays:
    """Delays that a log cannot determine.

    Attributes:
        counts: Joint → time to leave one encoder count after a reversal, the longest of the logs [s]; 0 if positions are not
            quantised or the joint never reverses.
        sample: Half the longest time between samples [s].
        cutoff: Lowest cut-off of the positions [Hz].
    """

    counts: Mapping[str, float]
    sample: float
    cutoff: float

    def why(self, finding: Judgement) -> str:
        """Describes what hides the delay of a finding; "" if it is not hidden."""
        if finding.id not in (DELAY, LATE) or finding.size is None:
            return ""
        if abs(finding.size) <= self.sample:
            return f"the times of the samples, which are {2e3 * self.sample:.3g} ms apart"
        if finding.id == LATE:
            return ""
        count = self.counts.get(finding.joint, 0.0) if finding.joint else min(self.counts.values(), default=0.0)
        if abs(finding.size) <= count:
            whose = "its encoder" if finding.joint else "the encoders"
            return f"the counts of {whose}: after turning back it takes {1e3 * count:.3g} ms to leave one"
        if abs(finding.size) <= _SMOOTHED / (2 * np.pi * self.cutoff):
            return f"friction that sticks at reversals, which positions low-pass filtered at {self.cutoff:.3g} Hz do not show"
        return ""


def hidden_delays(joints: Sequence[str], logs: Sequence[Seen]) -> HiddenDelays:
    """Computes the delays hidden by encoder counts, by the sampling interval and by the low-pass of positions.

    Returns:
        The delays that cannot be determined.
    """
    out = dict.fromkeys(joints, 0.0)
    for positions, segments, _ in logs:
        for j, joint in enumerate(joints):
            turning = [np.abs(segment.a[:-1, j][segment.v[:-1, j] * segment.v[1:, j] < 0]) for segment in segments]
            acceleration = np.concatenate([np.empty(0), *turning])
            if len(acceleration) and (usual := float(np.median(acceleration))) > 0:
                out[joint] = max(out[joint], float(np.sqrt(2 * count_of(positions[:, j]) / usual)))
    half_a_sample = max((0.5 / segment.rate for _, segments, _ in logs for segment in segments), default=0.0)
    return HiddenDelays(out, half_a_sample, min((cutoff for _, _, cutoff in logs), default=np.inf))


def known_delays(
    joints: Sequence[str], logs: Sequence[Seen], findings: Sequence[Sequence[Judgement]]
) -> list[tuple[Judgement, ...]]:
    """Marks hidden delays in the findings of logs; counts are searched only if there is a delay.

    Returns:
        The same number of findings in the same order.
    """
    if not any(finding.id in (DELAY, LATE) for own in findings for finding in own):
        return [tuple(own) for own in findings]
    hidden = hidden_delays(joints, logs)
    return [tuple(known_delay(finding, hidden) for finding in own) for own in findings]


def known_delay(finding: Judgement, hidden: HiddenDelays) -> Judgement:
    """Downgrades a finding of a hidden delay.

    Returns:
        The finding; a hidden delay states what hides it and is no warning.
    """
    why = hidden.why(finding)
    if not why:
        return finding
    words = f"{finding.message}; this is not distinguishable from {why}"
    remedy = Remedy("log positions with more digits, or record faster reversals")
    return replace(finding, severity="info", message=words, remedy=remedy)
