"""Reasons against a result that concern the scale of its torques, and what the data do not test.

An error in what is not tested leaves no trace in the residual, so that a good result may contain it. It does not lower the
verdict, but is stated with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...model.prior import CONTRADICTION, USUAL_ERROR, USUAL_WEIGHT
from ..evidence.evidence import Evidence
from ..record import Record

#: Relative standard deviation of one body: for the factor that all have in common, for gravity torques in files without
#: theirs, and the least by which one may be larger.
_OF_A_BODY = 0.3
#: Standard errors that make a difference of scale significant: of all masses from the URDF, of one effort from the others.
SCALE_ERRORS = 3.0
#: Relative standard error of the common scale up to which the ratio to the URDF's masses is stated.
_TELLING = 0.25
#: Number of joints up to which they are named.
_NAMED = 3

#: What an error in something that was not tested does.
CONSEQUENCE = "a wrong unit, torque constant or clock changes masses and friction, but not the torque errors"


def scale_reasons(ident: Record, evidence: Evidence) -> Iterator[Judgement]:
    """Doubts about the scale of the torques, unless the user has checked it.

    Yields:
        At most one reason.
    """
    known, odd = ident.project.drive.scale_known, _odd_gravity(ident, evidence)
    if known:
        odd = {joint: value for joint, value in odd.items() if value <= 0}
    confirm = "if the scale was checked, for example with a known weight, set drive.scale_known: true"
    if evidence.placeholders and not (known or gains_estimated(ident)):
        yield Judgement(
            Id.SCALE_UNPROVEN,
            "the URDF's masses are missing or all equal, as placeholders are: the scale rests on the unit of the log alone",
            Remedy(f"check {_source(ident)}; {confirm}"),
        )
    elif not (known or gains_estimated(ident) or evidence.placeholders) and (factors := _contradiction(ident, evidence)):
        size = median(factors.values())
        alike = len(set(factors.values())) == 1
        each = "" if alike else f" ({', '.join(f'{joint} {factor:.2g} ×' for joint, factor in factors.items())})"
        units = "amperes, or torques of the motors," if size < 1 else "mN·m, mA or counts"
        yield Judgement(
            Id.MASS_SCALE,
            f"the efforts of all joints are {size:.3g} × what the URDF's masses need{each}: their unit or torque constants are "
            f"wrong, as if {units} were read as N·m",
            Remedy(
                f"check log.units.effort, log.side.effort and drive.gain: if the URDF's masses are right, a factor of "
                f"{1 / size:.3g} is missing ({{settings}}); {confirm}",
                {"drive.gain": {"multiply": {joint: 1 / factor for joint, factor in factors.items()}}},
            ),
            "refused",
        )
    elif odd and not evidence.placeholders:
        words = ", ".join(f"{joint} {value:.2g} ×" for joint, value in odd.items())
        yield Judgement(
            Id.GRAVITY_SCALE,
            f"gravity torque differs from the URDF's: {words}",
            Remedy(f"check {_source(ident)}, and tools missing in the URDF; {confirm}"),
        )
    elif (
        evidence.scale is not None
        and evidence.scale.errors > SCALE_ERRORS
        and _gravity_agrees(evidence.gravity.values(), evidence.scale.factor)
        and not (known or gains_estimated(ident))
    ):
        yield Judgement(
            Id.MASS_SCALE,
            f"the masses and inertias together are {evidence.scale} × the URDF's: the scale of the efforts, or the URDF's, is "
            "wrong",
            Remedy(f"check {_source(ident)}; {confirm}"),
        )


def _contradiction(ident: Record, evidence: Evidence) -> dict[str, float]:
    """Factor of each joint's efforts, if all of them contradict the URDF's masses; empty if they do not.

    It is the common one, or where joints have factors of their own, that of each gravity torque; joints that carry no weight
    then have the mean. A tool that the URDF lacks raises the gravity torques of the wrist alone.
    """
    joints, gravity, common = ident.model.robot.joints, evidence.gravity, evidence.scale
    if common is not None and common.errors > SCALE_ERRORS and _gravity_agrees(gravity.values(), common.factor):
        factors = dict.fromkeys(joints, common.factor)
    elif len(gravity) > 1 and min(gravity.values()) > 0:
        mean = float(np.exp(np.mean(np.log(list(gravity.values())))))
        factors = {joint: gravity.get(joint, mean) for joint in joints}
    else:
        return {}
    gross = min(factors.values()) > CONTRADICTION or max(factors.values()) < 1 / CONTRADICTION
    return factors if gross else {}


def _source(ident: Record) -> str:
    """Where the scale of the efforts comes from, for remedies."""
    if gains_estimated(ident) and ident.project.drive.payload is not None:
        return "the mass and centre of mass in drive.payload, which set the scale"
    return "the unit of the efforts, drive.gain, drive.reduction"


def _gravity_agrees(ratios: Iterable[float], factor: float) -> bool:
    """Whether the gravity torques are on the same side of the URDF's as a factor, as one factor on all efforts makes them."""
    known = tuple(ratios)
    return not known or (median(known) - 1.0) * (factor - 1.0) > 0


def gains_estimated(ident: Record) -> bool:
    """Whether the torque constants were estimated from a target torque or a known payload, which is evidence of the scale."""
    return ident.model.drive.gain_error is not None


def _odd_gravity(ident: Record, evidence: Evidence) -> dict[str, float]:
    """Gravity torques that a wrong scale may explain: for most joints, or for one whose scale the data do not determine.

    Where the other joints' efforts would show a factor on a joint's efforts as large as the ratio of its gravity torques, that
    ratio differs because the URDF's masses are wrong. For most joints it does so, too, if the factor that all bodies have in
    common is plausible, as with a tool that the URDF lacks.
    """
    errors = evidence.gravity_errors
    odd = {joint: value for joint, value in evidence.gravity.items() if not _usual(value, errors.get(joint, _OF_A_BODY))}
    common = evidence.scale
    plausible = common is not None and common.error < _TELLING and _usual(common.factor, _OF_A_BODY)
    if 2 * len(odd) > len(evidence.gravity) and not plausible:
        return odd
    dependent = np.sqrt(max(USUAL_WEIGHT, ident.fit.variance_factor(ident.factor[:, ident.fit.base.independent])))
    # a difference of that size is significant even if chance makes it as much smaller
    least = {joint: 2 * SCALE_ERRORS * dependent * error for joint, error in evidence.scales.items()}
    return {joint: value for joint, value in odd.items() if value <= 0 or abs(value - 1.0) <= least.get(joint, np.inf)}


def _usual(ratio: float, error: float) -> bool:
    """Whether usual errors of the URDF explain a ratio: of masses, a factor either way, or of first moments, a difference.

    Errors of several bodies average out, but not a tool that the URDF lacks, which makes the ratio larger.
    """
    return 1 - USUAL_ERROR * error < ratio < float(np.exp(USUAL_ERROR * max(error, _OF_A_BODY)))


def untested(ident: Record) -> tuple[str, ...]:
    """Returns what the data do not test, in words.

    Returns:
        Phrases; none if there is nothing.
    """
    clock = ["the clock"] if _open(ident, Id.TIME_SCALE_OPEN) else []
    return (*_common_scale(ident), *clock, *(f"the effort scale of {whose}" for whose in _open(ident, Id.EFFORT_SCALE_OPEN)))


def _common_scale(ident: Record) -> list[str]:
    """The scale of all torques together, with the ratio of the masses to the URDF's."""
    if ident.project.drive.scale_known or gains_estimated(ident):
        return []
    scale = None if ident.evidence is None else ident.evidence.scale
    return [
        "the scale of all efforts together"
        + (f" (masses {scale} × the URDF's)" if scale is not None and scale.error < _TELLING else "")
    ]


def _open(ident: Record, id: str) -> list[str]:
    """Whose efforts a finding about what a log does not determine concerns; empty unless all logs have it for some joint."""
    findings = [[finding for finding in log.get("findings", ()) if finding["id"] == id] for log in ident.inputs]
    if not all(findings):
        return []
    concerned = [{joint for f in of_log for joint in f.get("joints") or [f.get("joint")]} for of_log in findings]
    open_ = set.intersection(*concerned) if concerned else set()
    ratios = {} if ident.evidence is None else ident.evidence.gravity
    joints = [
        joint + (f" (gravity torque {ratios[joint]:.2g} × the URDF's)" if joint in ratios else "")
        for joint in ident.model.robot.joints
        if joint in open_
    ]
    return [", ".join(joints) if 0 < len(joints) <= _NAMED else "single joints"] if open_ else []
