"""Scores of a result on held-out logs, with the verdict on them and what a reader of their errors should know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Verdict
from ..linalg import divisors
from .scores import LogTrace, mean_error
from .summary import adaptation_remarks, validation_table
from .verdict import GOOD_ERROR, held_out_error, unexplained_joints, worse_than_urdf, worst_errors

#: Ratio to the identification's own held-out error from which an error is reported as a jump.
_JUMP = 2.0
#: Factor between a joint's effort and the model's from which it is another scale.
_OTHER_SCALE = 1.25
#: The effort is a multiple of the model's if at most this share of it remains without the factor.
_SAME_COURSE = 0.15


@dataclass(frozen=True)
class ValidationReport:
    """Scores of a result on held-out logs.

    Attributes:
        entries: As in ``validation`` of identification.json.
        expected: Relative error of the identification on its held-out data, a fraction, or None.
        compared: Whether the motions were compared with those of the training logs.
        apart: Joints that are set apart: their errors are none of the model.
    """

    joints: tuple[str, ...]
    entries: tuple[Mapping[str, Any], ...]
    logs: tuple[LogTrace, ...] = ()
    expected: float | None = None
    compared: bool = False
    apart: tuple[str, ...] = ()

    @property
    def better_than_urdf(self) -> bool:
        """Whether the exported model beats the original URDF on every log."""
        return not self._worse

    @property
    def _worse(self) -> list[str]:
        """Logs on which the original URDF is as good or better."""
        return [entry["log"] for entry in self.entries if not mean_error(entry) < mean_error(entry, "urdf_")]

    @cached_property
    def verdict(self) -> Verdict:
        """The error on every log, joints that are hardly predicted, and where the original URDF is better."""
        judged = [held_out_error(entry["relative"], f"on {entry['log']}") for entry in self.entries]
        judged += worse_than_urdf(self._worse)
        poor = any(judgement.level == "poor" for judgement in judged)
        return Verdict.of([*judged, *unexplained_joints(worst_errors(self.entries, self.apart), poor)])

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the logs that matter for reading their errors."""
        remarks, nothing, traces = list[str](), "its error says nothing about other motions", {t.log: t for t in self.logs}
        for entry in self.entries:
            log, faster = entry["log"], entry["beyond_trained"]
            if entry["trained_on"]:
                remarks.append(f"{log} is one of the training logs: {nothing}")
            if entry.get("repeats"):
                remarks.append(f"{log} repeats the motion of {entry['repeats']}: {nothing}")
            if words := _other_scale(traces[log], self.joints) if log in traces else "":
                remarks.append(f"{log}: {words}")
            elif self.expected and entry["relative"] > max(_JUMP * self.expected, GOOD_ERROR / 2):
                rise = f"from {100 * self.expected:.1f} % in the identification to {100 * entry['relative']:.1f} %"
                first = "identify from motions as fast as this one; if they exist, " if faster else ""
                remarks.append(f"{log}: the error rose {rise}; {first}check for another tool, unit, temperature or robot")
            if faster:
                shares = ", ".join(f"{joint} {100 * share:.0f} %" for joint, share in faster.items())
                remarks.append(f"{log} is faster than the training logs ({shares} of the time): friction is extrapolated there")
        if not self.compared and not all(entry["trained_on"] for entry in self.entries):
            remarks.append(
                "not checked: whether a log repeats the motion of a training log, which would make its error meaningless; "
                "`identify --validate` checks this for rigid joints"
            )
        return (*remarks, *adaptation_remarks(self.entries))

    def summary(self) -> str:
        """Verdict and relative error, remarks, and one line per log: the identified model beside the original URDF."""
        errors = ", ".join(f"{100 * entry['relative']:.1f} % on {entry['log']}" for entry in self.entries)
        where = ", on training logs alone" if all(entry["trained_on"] for entry in self.entries) else ""
        joints = [judgement.message for judgement in self.verdict.judgements if judgement.id == Id.JOINT_ERROR]
        lines = [f"{self.verdict.level.upper()}{where}: relative torque error {errors}", *joints, *self.remarks]
        return "\n".join([*lines, *validation_table(self.entries, self.joints)])

    __str__ = summary


def _other_scale(trace: LogTrace, joints: Sequence[str]) -> str:
    """Says which efforts of a log are a multiple of the model's, as another unit, gain or sign makes them; "" for none."""
    size = np.linalg.norm(trace.measured, axis=0)
    factor = np.sum(trace.measured * trace.identified, axis=0) / divisors(np.sum(trace.identified**2, axis=0))
    rest = np.linalg.norm(trace.measured - factor * trace.identified, axis=0) / divisors(size)
    other = np.flatnonzero((rest < _SAME_COURSE) & ((factor < 1 / _OTHER_SCALE) | (factor > _OTHER_SCALE)))
    if not len(other):
        return ""
    if len(other) == len(joints) and np.ptp(factor) < 0.1 * abs(float(factor.mean())):
        which = f"all joints ({np.median(factor):.4g} ×)"
    else:
        which = ", ".join(f"{joints[j]} ({factor[j]:.4g} ×)" for j in other.tolist())
    load = "" if (factor[other] < 0).any() else " or, if it is another tool or load, identify it with `payload`"
    return (
        f"its efforts are a multiple of the model's on {which}; check unit, sign and drive.gain against the training logs{load}"
    )
