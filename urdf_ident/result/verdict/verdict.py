"""The verdict on a result, computed from its evidence; each reason has an id and a remedy.

A result is GOOD if it predicts another motion well and nothing else counts against it, POOR if it should not be used, and
USABLE in between. A small residual on the training data alone never makes a result GOOD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...friction import MOST_FRICTION
from ...grouping import grouped
from ...judgements.catalogue import Id, Severity
from ...judgements.judgement import Judgement, Remedy
from ...judgements.verdict import Verdict
from ...linalg import positive
from ..evidence.evidence import SPEEDS, Evidence
from ..record import Record
from ..text.lines import joint_message
from .held_out import RICHER_MOTION, held_out_reasons, joint_errors, tested, unexplained_joints
from .scale_reasons import scale_reasons

#: Relative standard error of the torque over random feasible states, mean over joints.
GOOD_UNCERTAINTY, USABLE_UNCERTAINTY = 0.15, 0.6
#: Relative torque at the velocity limits above which a model is unusable.
PEAK_LIMIT = 10.0
#: Reasons inferred from what the data left open, without any error.
_INFERRED = (Id.PARAMETERS_UNSEEN, Id.TORQUE_UNCERTAIN, Id.TORQUE_FROM_URDF, Id.SPEED_UNTESTED)


def verdict_of(ident: Record) -> Verdict:
    """Assesses a result from its evidence.

    Returns:
        The verdict; most severe reasons first, and at equal severity contradictions before what the motion did not show, and
        both before the errors that they explain. A poor result whose logs contradict the URDF begins with the contradictions,
        if all its poor reasons are consequences.
    """
    outside = list(held_out_reasons(ident))
    outside += unexplained_joints(joint_errors(ident), any(judgement.level == "poor" for judgement in outside))
    reasons = [*outside, *_physics(ident), *_findings(ident.inputs, any(judgement.level == "poor" for judgement in outside))]
    if ident.evidence is not None:
        reasons += [
            *_left_open(ident.evidence),
            *_too_slow(ident.evidence),
            *scale_reasons(ident, ident.evidence),
            *_implausible(ident.evidence),
        ]
    if tested(ident):  # what the data left open was not needed on other motions
        open_ = [judgement for judgement in reasons if judgement.id in _INFERRED and judgement.severity == "warning"]
        reasons = [replace(judgement, severity="info") if judgement in open_ else judgement for judgement in reasons]
    return Verdict.of(reasons)


def _physics(ident: Record) -> Iterator[Judgement]:
    if apart := tuple(ident.model.robot.joints[j] for j in sorted(ident.model.apart)):
        yield Judgement(
            Id.JOINT_APART,
            f"the effort of {', '.join(apart)} cannot be its torque: the bodies that all other joints show contradict it; "
            "it determined its own friction alone",
            Remedy("check what this effort measures (a counterweight, a brake, noise, another column or unit)"),
            joint=apart[0] if len(apart) == 1 else None,
            joints=apart,
        )
    if limited := [word.split(": ")[0] for word in ident.solver.get("active", ()) if ": mass at " in word]:
        yield Judgement(
            Id.MASS_AT_LIMIT,
            f"the mass of {', '.join(limited)} is at a limit of the optimisation: it is no estimate",
            Remedy("check the signs and units of the efforts and the masses in the URDF, or raise consistency.mass_factor"),
            joints=tuple(limited),
        )
    if not ident.consistency.consistent:
        offenders = ", ".join(ident.consistency.offenders)
        yield Judgement(
            Id.NOT_CONSISTENT,
            f"not physically consistent: {offenders}",
            Remedy("set {settings}", {"consistency.method": "lmi"}),
        )
    unseen = int((~ident.fit.seen).sum())
    if unseen:
        verb = "is" if unseen == 1 else "are"
        share = unseen / len(ident.fit.base)
        yield Judgement(
            Id.PARAMETERS_UNSEEN,
            f"{unseen} of {len(ident.fit.base)} base parameters {verb} not excited by the motion",
            Remedy("move every joint, or lock those that cannot move" if share < 0.5 else "record a richer motion"),
        )


def _findings(inputs: Sequence[Mapping[str, Any]], poor: bool) -> Iterator[Judgement]:
    """What was judged of the logs and counts against the result; of a poor one, what refuses a log makes it poor."""
    judged = grouped(
        (finding.id, (str(log.get("name") or log.get("log") or log.get("path")), finding))
        for log in inputs
        for finding in map(Judgement.from_dict, log.get("findings", ()))
        if finding.severity == "refused" or (finding.severity == "warning" and not finding.id.entry.tolerated)
    )
    for pairs in judged.values():
        logs, alike = zip(*pairs, strict=True)
        where = f" ({', '.join(dict.fromkeys(logs))})" if len(inputs) > 1 else ""
        joints = list(dict.fromkeys(finding.joint for finding in alike if finding.joint))
        message = f"{joint_message(alike[0].as_dict(), joints).rstrip('.')}{where}"
        severity: Severity = "refused" if poor and any(finding.severity == "refused" for finding in alike) else "warning"
        yield replace(alike[0], message=message, severity=severity)


def _left_open(evidence: Evidence) -> Iterator[Judgement]:
    """Reasons about what the data did not determine."""
    if evidence.uncertainty:
        joint = max(evidence.uncertainty, key=lambda name: evidence.uncertainty[name])
        mean = sum(evidence.uncertainty.values()) / len(evidence.uncertainty)
        if mean > GOOD_UNCERTAINTY:
            yield Judgement(
                Id.TORQUE_UNCERTAIN,
                f"standard error of the torque on other motions {100 * mean:.0f} % (mean over joints, "
                f"{joint} {100 * evidence.uncertainty[joint]:.0f} %)",
                RICHER_MOTION,
                severity="warning" if mean <= USABLE_UNCERTAINTY else "refused",
            )
    if evidence.unaided and max(evidence.unaided.values()) > GOOD_UNCERTAINTY:
        joint = max(evidence.unaided, key=lambda name: evidence.unaided[name])
        yield Judgement(
            Id.TORQUE_FROM_URDF,
            f"on other motions the data alone leave {100 * evidence.unaided[joint]:.0f} % of the torque of {joint} open, "
            "and the URDF's values fill the gap",
            RICHER_MOTION,
        )
    if evidence.one_way:
        names, lifting = ", ".join(evidence.one_way), ", ".join(evidence.lifting)
        sums = f"; of {lifting} only the sum of weight and dry friction is known" if lifting else ""
        yield Judgement(
            Id.ONE_WAY,
            f"{names} moved in one direction only: Coulomb friction and offset cannot be separated, and friction in the other "
            f"direction is unknown{sums}",
        )


def _too_slow(evidence: Evidence) -> Iterator[Judgement]:
    """Motions within the URDF's velocity limits that are too fast for a model from slow logs."""
    if not evidence.at_speeds:
        return
    errors = np.mean(list(evidence.at_speeds.values()), axis=0)
    if errors[-1] <= GOOD_UNCERTAINTY:
        return
    joint = max(evidence.at_speeds, key=lambda name: evidence.at_speeds[name][-1])
    last = int(np.flatnonzero(errors > GOOD_UNCERTAINTY)[0])  # the first speed from which on it is too large
    within = f"at most {100 * GOOD_UNCERTAINTY:.0f} % up to {100 * SPEEDS[last - 1]:.0f} % of these limits" if last else ""
    yield Judgement(
        Id.SPEED_UNTESTED,
        f"expected error of the torque at the URDF's velocity limits {100 * errors[-1]:.0f} % (mean over joints, {joint} "
        f"{100 * evidence.at_speeds[joint][-1]:.0f} %), {within or 'and hardly less at lower speeds'}: the logs do not show "
        "inertia and friction at such speeds",
    )


def _implausible(evidence: Evidence) -> Iterator[Judgement]:
    """Contradictions of the URDF, of the measured torques, or between parts of the logs."""
    if evidence.masses and not evidence.placeholders:
        yield Judgement(Id.MASS_FAR, f"masses differ strongly from the URDF's: {_above(evidence.masses)}")
    if words := _above(evidence.friction, MOST_FRICTION):
        yield Judgement(Id.FRICTION_IMPLAUSIBLE, f"friction above the largest measured torque: {words}")
    if words := _above(evidence.peak, PEAK_LIMIT):
        yield Judgement(
            Id.TORQUE_IMPLAUSIBLE,
            f"torque at the URDF's velocity limits above its effort limits, and above what its own masses need there: {words}",
        )
    if (words := _above(evidence.overdriven, PEAK_LIMIT)) and not evidence.placeholders:
        yield Judgement(
            Id.LIMITS_CONTRADICTORY,
            f"at the URDF's position and velocity limits its own masses need more than its effort limits: {words}; the torque "
            "there was compared with that of the URDF's masses instead",
        )
    for deviating in evidence.departures[:3]:
        yield Judgement(
            Id.RESIDUAL_NOT_STATIONARY,
            f"the residual of {deviating.joint} in part {deviating.part} of {deviating.log} is "
            f"{deviating.rmse / positive(deviating.usual):.1f} × that of the other parts",
        )


def _above(values: Mapping[str, float], limit: float = -np.inf) -> str:
    """Names and values of what exceeds a limit, in words; empty if nothing does."""
    return ", ".join(f"{name} {value:.2g} ×" for name, value in values.items() if value > limit)
