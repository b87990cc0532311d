"""The verdict on a result, computed from its evidence; each reason has an id and a remedy.

A result is GOOD if it predicts another motion well and nothing else counts against it, POOR if it should not be used, and
USABLE in between. A small residual on the training data alone never makes a result GOOD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...friction import MOST_FRICTION
from ...grouping import grouped
from ...linalg import positive
from ..evidence.evidence import SPEEDS, Evidence
from ..record import Record
from ..text.lines import joint_message
from .held_out import ERRORS, WORSE, held_out_reasons
from .reason import RICHER_MOTION, Reason
from .scale_reasons import scale_reasons

LEVELS = ("good", "usable", "poor")
#: Relative standard error of the torque over random feasible states, mean over joints.
GOOD_UNCERTAINTY, USABLE_UNCERTAINTY = 0.15, 0.6
#: Relative torque at the velocity limits above which a model is unusable.
PEAK_LIMIT = 10.0
#: Prefixes of the ids of findings that concern sign, order, gravity, units or time.
PHYSICAL_FINDINGS = (
    "effort",
    "position-bandwidth",
    "position-compliance",
    "position-coupled",
    "position-held",
    "position-jump",
    "position-late",
    "position-scale",
    "position-nonlinear",
    "position-play",
    "position-quantised",
    "position-sign",
    "position-twice",
    "position-zero",
    "axis-sign",
    "joint-axis",
    "joint-origin",
    "joints-exchanged",
    "locked-joint",
    "gravity",
    "time",
    "velocity-sign",
    "payload",
    "contact",
    "physics-undecided",
    "log",
    "values-sentinel",
    "samples-lost",
)


#: Poor reasons that a fault of the logs (a unit, a sign, a clock) leads to.
_CONSEQUENCES = (*ERRORS, *WORSE, "friction-implausible", "torque-implausible")
#: Reasons that the motion showed too little; a contradiction, which makes a model wrong, is said before them.
_LITTLE_SHOWN = (
    "not-validated",
    "data-alone",
    "held-out-repeats",
    "motion-short",
    "motion-repeated",
    "motion-hardly-turns",
    "parameters-unseen",
    "torque-uncertain",
    "torque-from-urdf",
    "one-way",
    "speed-untested",
)


@dataclass(frozen=True)
class ResultVerdict:
    """Level and reasons, most severe first, causes before consequences.

    Attributes:
        level: "good", "usable" or "poor".
    """

    level: str
    reasons: tuple[Reason, ...]

    @property
    def cause(self) -> Reason | None:
        """The most severe reason against the result; None for a good result."""
        return next((reason for reason in self.reasons if reason.level != "good"), None)

    def as_dict(self) -> dict[str, Any]:
        """The ``verdict`` of identification.json: ``reasons`` in words, ``causes`` with id, level, text and remedy."""
        return {
            "level": self.level,
            "reasons": [str(reason) for reason in self.reasons],
            "causes": [asdict(reason) for reason in self.reasons],
        }


def verdict_of(ident: Record) -> ResultVerdict:
    """Assesses a result from its evidence.

    Returns:
        The verdict; most severe reasons first, and at equal severity contradictions before what the motion did not show, and
        both before the errors that they explain. A poor result whose logs contradict the URDF begins with the contradictions,
        if all its poor reasons are consequences.
    """
    outside = list(held_out_reasons(ident))
    error = max((LEVELS.index(reason.level) for reason in outside), default=0)
    findings = list(_findings(ident.inputs, LEVELS[max(error, 1)]))
    reasons = [*outside, *_physics(ident), *findings]
    if ident.evidence is not None:
        reasons += [
            *_left_open(ident.evidence),
            *_too_slow(ident.evidence),
            *scale_reasons(ident, ident.evidence),
            *_implausible(ident.evidence),
        ]
    level = max((LEVELS.index(reason.level) for reason in reasons), default=1)
    if not any(reason.id in ERRORS and reason.level == "good" for reason in reasons):
        level = max(level, 1)
    symptoms = all(reason.id in _CONSEQUENCES for reason in reasons if reason.level == "poor")
    first = findings if level == LEVELS.index("poor") and symptoms else []
    rest = [reason for reason in reasons if reason not in first]
    return ResultVerdict(LEVELS[level], (*sorted(first, key=_rank), *sorted(rest, key=_rank)))


def _rank(reason: Reason) -> tuple[int, bool, bool, bool]:
    return -LEVELS.index(reason.level), reason.id in ERRORS, reason.id in WORSE, reason.id in _LITTLE_SHOWN


def _physics(ident: Record) -> Iterator[Reason]:
    if not ident.consistency.consistent:
        offenders = ", ".join(ident.consistency.offenders)
        yield Reason("not-consistent", "usable", f"not physically consistent: {offenders}", "consistency: {method: lmi}")
    unseen = int((~ident.fit.seen).sum())
    if unseen:
        verb = "is" if unseen == 1 else "are"
        share = unseen / len(ident.fit.base)
        yield Reason(
            "parameters-unseen",
            "usable",
            f"{unseen} of {len(ident.fit.base)} base parameters {verb} not excited by the motion",
            "move every joint, or lock those that cannot move" if share < 0.5 else "record a richer motion",
        )


def _findings(inputs: Sequence[Mapping[str, Any]], refused: str) -> Iterator[Reason]:
    """Unresolved findings about sign, order, gravity, units or time; refusing findings get level ``refused``."""
    found = grouped(
        (finding["id"], (str(item.get("name") or item.get("log") or item.get("path")), finding))
        for item in inputs
        for finding in item.get("findings", ())
        if finding["severity"] == "refused"
        or (
            finding["severity"] == "warning"
            and finding["id"].startswith(PHYSICAL_FINDINGS)
            and finding["id"] != "effort-constant"
        )
    )
    for id, pairs in found.items():
        logs, alike = zip(*pairs, strict=True)
        where = f" ({', '.join(dict.fromkeys(logs))})" if len(inputs) > 1 else ""
        joints = list(dict.fromkeys(str(finding["joint"]) for finding in alike if finding.get("joint")))
        level = refused if any(finding["severity"] == "refused" for finding in alike) else "usable"
        yield Reason(id, level, f"{joint_message(alike[0], joints).rstrip('.')}{where}", alike[0].get("remedy"))


def _left_open(evidence: Evidence) -> Iterator[Reason]:
    """Reasons about what the data did not determine."""
    if evidence.uncertainty:
        joint = max(evidence.uncertainty, key=lambda name: evidence.uncertainty[name])
        mean = sum(evidence.uncertainty.values()) / len(evidence.uncertainty)
        if mean > GOOD_UNCERTAINTY:
            level = "usable" if mean <= USABLE_UNCERTAINTY else "poor"
            yield Reason(
                "torque-uncertain",
                level,
                f"standard error of the torque on other motions {100 * mean:.0f} % (mean over joints, "
                f"{joint} {100 * evidence.uncertainty[joint]:.0f} %)",
                RICHER_MOTION,
            )
    if evidence.unaided and max(evidence.unaided.values()) > GOOD_UNCERTAINTY:
        joint = max(evidence.unaided, key=lambda name: evidence.unaided[name])
        yield Reason(
            "torque-from-urdf",
            "usable",
            f"on other motions the data alone leave {100 * evidence.unaided[joint]:.0f} % of the torque of {joint} open, "
            "and the URDF's values fill the gap",
            RICHER_MOTION,
        )
    if evidence.one_way:
        names, lifting = ", ".join(evidence.one_way), ", ".join(evidence.lifting)
        sums = f"; of {lifting} only the sum of weight and dry friction is known" if lifting else ""
        yield Reason(
            "one-way",
            "usable",
            f"{names} moved in one direction only: Coulomb friction and offset cannot be separated, and friction in the other "
            f"direction is unknown{sums}",
            "record motions in both directions",
        )


def _too_slow(evidence: Evidence) -> Iterator[Reason]:
    """Motions within the URDF's velocity limits that are too fast for a model from slow logs."""
    if not evidence.at_speeds:
        return
    errors = np.mean(list(evidence.at_speeds.values()), axis=0)
    if errors[-1] <= GOOD_UNCERTAINTY:
        return
    joint = max(evidence.at_speeds, key=lambda name: evidence.at_speeds[name][-1])
    last = int(np.flatnonzero(errors > GOOD_UNCERTAINTY)[0])  # the first speed from which on it is too large
    within = f"at most {100 * GOOD_UNCERTAINTY:.0f} % up to {100 * SPEEDS[last - 1]:.0f} % of these limits" if last else ""
    yield Reason(
        "speed-untested",
        "usable",
        f"expected error of the torque at the URDF's velocity limits {100 * errors[-1]:.0f} % (mean over joints, {joint} "
        f"{100 * evidence.at_speeds[joint][-1]:.0f} %), {within or 'and hardly less at lower speeds'}: the logs do not show "
        "inertia and friction at such speeds",
        "record a motion as fast as the model will be used, for training or --validate, or use it at lower speeds only",
    )


def _implausible(evidence: Evidence) -> Iterator[Reason]:
    """Contradictions of the URDF, of the measured torques, or between parts of the logs."""
    if evidence.masses and not evidence.placeholders:
        words = _above(evidence.masses)
        yield Reason(
            "mass-far", "usable", f"masses differ strongly from the URDF's: {words}", "check units, gains and missing tools"
        )
    if words := _above(evidence.friction, MOST_FRICTION):
        yield Reason(
            "friction-implausible",
            "poor",
            f"friction above the largest measured torque: {words}",
            "record longer, with reversals of these joints, or list fewer laws in model.friction",
        )
    if words := _above(evidence.peak, PEAK_LIMIT):
        yield Reason(
            "torque-implausible",
            "poor",
            f"torque at the URDF's velocity limits above its effort limits, and above what its own masses need there: {words}",
            "record a faster motion, or list fewer laws in model.friction",
        )
    if (words := _above(evidence.overdriven, PEAK_LIMIT)) and not evidence.placeholders:
        yield Reason(
            "limits-contradictory",
            "good",
            f"at the URDF's position and velocity limits its own masses need more than its effort limits: {words}; the torque "
            "there was compared with that of the URDF's masses instead",
            "correct the <limit> of these joints in the URDF",
        )
    for item in evidence.departures[:3]:
        yield Reason(
            "residual-not-stationary",
            "usable",
            f"the residual of {item.joint} in part {item.part} of {item.log} is "
            f"{item.rmse / positive(item.usual):.1f} × that of the other parts",
            "check for a payload, contact, a dragging brake, another temperature or gain; leave out this log or part",
        )


def _above(values: Mapping[str, float], limit: float = -np.inf) -> str:
    """Names and values of what exceeds a limit, in words; empty if nothing does."""
    return ", ".join(f"{name} {value:.2g} ×" for name, value in values.items() if value > limit)
