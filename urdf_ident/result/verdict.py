"""The verdict on a result, computed from its evidence; each reason has an id and a remedy.

A result is GOOD if it predicts another motion well and nothing else counts against it, POOR if it should not be used, and
USABLE in between. A small residual on the training data alone never makes a result GOOD. An error in what the data do not test
leaves no trace in the residual: it does not lower the verdict, but is stated with it (:func:`untested`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from statistics import fmean, median
from typing import Any

import numpy as np

from ..consistency.constraints import MASS_LIMIT
from ..friction import MOST_FRICTION, Law
from ..grouping import abbreviated, grouped
from ..judgements.catalogue import Id, Severity
from ..judgements.judgement import Judgement, Remedy, Verdict
from ..linalg import positive
from ..model.prior import CONTRADICTION, RELATIVE_STD, USUAL_ERROR, USUAL_WEIGHT
from ..model.row_groups import joint_of
from ..samples import HARDLY_REVERSES, SHORT
from .evidence import SPEEDS, Evidence
from .record import Record
from .scores import mean_error

#: Relative standard error of the torque over random feasible states, mean over joints.
GOOD_UNCERTAINTY, USABLE_UNCERTAINTY = 0.15, 0.6
#: Relative torque at the velocity limits above which a model is unusable.
PEAK_LIMIT = 10.0
#: Reasons inferred from what the data left open, without any error.
_INFERRED = (Id.PARAMETERS_UNSEEN, Id.TORQUE_UNCERTAIN, Id.TORQUE_FROM_URDF, Id.SPEED_UNTESTED)
#: Standard errors that make a difference of scale significant: of all masses from the URDF, of one effort from the others.
SCALE_ERRORS = 3.0
#: Relative standard error of the common scale up to which the ratio to the URDF's masses is stated.
_TELLING = 0.25
#: Number of joints up to which they are named.
_NAMED = 3
#: What an error in something that was not tested does.
CONSEQUENCE = "a wrong unit, torque constant or clock changes masses and friction, but not the torque errors"
#: Relative torque error on other motions below which a result is good.
GOOD_ERROR = 0.1
#: The same below which it is usable.
USABLE_ERROR = 0.4
#: The same of all joints that, with intervals that hold, is good whatever else remained open.
TESTED_ERROR = 0.05
#: The same of any one joint.
TESTED_JOINT_ERROR = 0.2
#: Torque of a joint, relative to the largest of those in the same unit, below which its relative error counts for little.
_SMALL = 0.05
#: Part of the torques of each joint that their 95 % intervals hold at least on other motions.
HELD = 0.85
#: Remedy where the data do not determine enough; the command line fills in its own paths.
RICHER_MOTION = Remedy("record a richer motion: `urdf-ident design ROBOT.urdf --after OUT/identification.json -o next.csv`")
#: Largest ratio of the exported model's held-out error to that of the unconstrained fit or the URDF with fitted friction.
LOSS = 1.05
#: The same ratio from which the constraints contradict the data.
_LOST = 1.5


def verdict_of(ident: Record) -> Verdict:
    """Assesses a result from its evidence.

    Returns:
        The verdict; most severe reasons first, and at equal severity contradictions before what the motion did not show, and
        both before the errors that they explain. A poor result whose logs contradict the URDF begins with the contradictions,
        if all its poor reasons are consequences.
    """
    outside = list(held_out_reasons(ident))
    poor = any(judgement.level == "poor" for judgement in outside)
    reasons = [*outside, *unexplained_joints(worst_errors_of(ident), poor), *_physics(ident), *_findings(ident, poor)]
    reasons += [*_left_open(ident.evidence), *_scale(ident), *_implausible(ident.evidence)]
    if tested(ident):  # what the data left open was not needed on other motions
        reasons = [replace(one, severity="info") if one.id in _INFERRED and one.level == "usable" else one for one in reasons]
    return Verdict.of(reasons)


def _physics(ident: Record) -> Iterator[Judgement]:
    if apart := tuple(ident.model.robot.joints[j] for j in sorted(ident.model.apart)):
        yield Judgement(
            Id.JOINT_APART,
            f"the effort of {', '.join(apart)} cannot be its torque: the bodies that all other joints show contradict it; "
            "it determined its own friction alone",
            joint=apart[0] if len(apart) == 1 else None,
            joints=apart,
        )
    if limited := [word.split(": ")[0] for word in ident.solver.get("active", ()) if f": {MASS_LIMIT}" in word]:
        yield Judgement(
            Id.MASS_AT_LIMIT,
            f"the mass of {', '.join(limited)} is at a limit of the optimisation: it is no estimate",
            joints=tuple(limited),
        )
    if not ident.consistency.consistent:
        offenders = ", ".join(ident.consistency.offenders)
        yield Judgement(
            Id.NOT_CONSISTENT,
            f"not physically consistent: {offenders}",
            Remedy("set {settings}", {"consistency.method": "lmi"}),
        )
    # the gap is twice a negative log-likelihood: 1 for one standard error
    if ident.solver.get("status") == "fallback" and (gap := float(ident.solver["residuals"]["gap"])) > 1.0:
        yield Judgement(
            Id.NOT_OPTIMAL,
            f"{ident.solver['name']} stopped before the optimum: the exported parameters are "
            + (f"up to {np.sqrt(gap):.2g} standard errors from it" if np.isfinite(gap) else "at an unknown distance from it"),
            size=float(np.sqrt(gap)) if np.isfinite(gap) else None,
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


def _findings(ident: Record, poor: bool) -> Iterator[Judgement]:
    """What was judged of the logs and counts against the result; of a poor one, what refuses a log makes it poor.

    A spring does not count where the model has one.
    """
    has_spring = {item.axis for item in ident.model.terms if isinstance(item.term, Law) and item.term.conservative}
    modelled = {(Id.SPRING, ident.model.robot.joints[axis]) for axis in has_spring}
    alike = grouped(
        (finding.id, (log.name, finding))
        for log in ident.inputs
        for finding in log.findings
        if finding.severity == "refused" or (finding.severity == "warning" and not finding.id.entry.tolerated)
        if (finding.id, finding.joint) not in modelled
    )
    for pairs in alike.values():
        logs, findings = zip(*pairs, strict=True)
        where = f" ({', '.join(dict.fromkeys(logs))})" if len(ident.inputs) > 1 else ""
        message = findings[0].about(list(dict.fromkeys(finding.joint for finding in findings))).rstrip(".") + where
        refused = poor and any(finding.severity == "refused" for finding in findings)
        yield replace(findings[0], message=message, severity="refused" if refused else "warning")


def _left_open(evidence: Evidence) -> Iterator[Judgement]:
    """Reasons about what the data did not determine."""
    by_size = itemgetter(1)
    joint, most = max(evidence.uncertainty.items(), key=by_size, default=("", 0.0))
    if most and (mean := fmean(evidence.uncertainty.values())) > GOOD_UNCERTAINTY:
        yield Judgement(
            Id.TORQUE_UNCERTAIN,
            f"standard error of the torque on other motions {100 * mean:.0f} % (mean over joints, {joint} {100 * most:.0f} %)",
            RICHER_MOTION,
            severity="warning" if mean <= USABLE_UNCERTAINTY else "refused",
        )
    joint, most = max(evidence.unaided.items(), key=by_size, default=("", 0.0))
    if most > GOOD_UNCERTAINTY:
        yield Judgement(
            Id.TORQUE_FROM_URDF,
            f"on other motions the data alone leave {100 * most:.0f} % of the torque of {joint} open, and the URDF's values "
            "fill the gap",
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
    if evidence.at_speeds:  # motions within the URDF's velocity limits may be too fast for a model from slow logs
        errors = np.mean(list(evidence.at_speeds.values()), axis=0)
        if errors[-1] > GOOD_UNCERTAINTY:
            joint = max(evidence.at_speeds, key=lambda name: evidence.at_speeds[name][-1])
            first_bad = int(np.flatnonzero(errors > GOOD_UNCERTAINTY)[0])  # the first speed from which on it is too large
            within = f"at most {100 * GOOD_UNCERTAINTY:.0f} % up to {100 * SPEEDS[first_bad - 1]:.0f} % of these limits"
            of_joint = f"{joint} {100 * evidence.at_speeds[joint][-1]:.0f} %"
            yield Judgement(
                Id.SPEED_UNTESTED,
                f"expected error of the torque at the URDF's velocity limits {100 * errors[-1]:.0f} % (mean over joints, "
                f"{of_joint}), {within if first_bad else 'and hardly less at lower speeds'}: the logs do not show inertia and "
                "friction at such speeds",
            )


def scale_confirmed(ident: Record) -> bool:
    """Whether the user, a target torque or a known payload confirms the scale of the torques."""
    return ident.project.drive.scale_known or ident.model.drive.gain_error is not None


def _scale(ident: Record) -> Iterator[Judgement]:
    """At most one doubt about the scale of the torques."""
    confirmed, joints, evidence, factors = scale_confirmed(ident), ident.model.robot.joints, ident.evidence, dict[str, float]()
    gravity = evidence.gravity
    source = "the unit of the efforts, drive.gain, drive.reduction"
    if ident.model.drive.gain_error is not None and ident.project.drive.payload is not None:
        source = "the mass and centre of mass in drive.payload, which set the scale"
    confirm = "if the scale was checked, for example with a known weight, set drive.scale_known: true"
    if evidence.placeholders:
        if not confirmed:
            yield Judgement(
                Id.SCALE_UNPROVEN,
                "the URDF's masses are missing or all equal, as placeholders are: the scale rests on the unit of the log alone",
                Remedy(f"check {source}; {confirm}"),
            )
        return
    common = None if confirmed else evidence.scale
    if common is not None and (
        common.errors <= SCALE_ERRORS or (gravity and (median(gravity.values()) - 1) * (common.factor - 1) <= 0)
    ):
        common = None  # not significant; or one factor on all efforts would have put the gravity torques on its own side
    if common is not None:
        factors = dict.fromkeys(joints, common.factor)
    elif not confirmed and len(gravity) > 1 and min(gravity.values()) > 0:
        # joints have factors of their own; a tool that the URDF lacks would raise the gravity torques of the wrist alone
        mean = float(np.exp(np.mean(np.log(list(gravity.values())))))
        factors = {joint: gravity.get(joint, mean) for joint in joints}
    if factors and (min(factors.values()) > CONTRADICTION or max(factors.values()) < 1 / CONTRADICTION):
        size, alike = median(factors.values()), len(set(factors.values())) == 1
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
    elif odd := _odd_gravity(ident):
        yield Judgement(
            Id.GRAVITY_SCALE,
            f"gravity torque differs from the URDF's: {_above(odd)}",
            Remedy(f"check {source}, and tools missing in the URDF; {confirm}"),
        )
    elif common is not None:
        yield Judgement(
            Id.MASS_SCALE,
            f"the masses and inertias together are {common} × the URDF's: the scale of the efforts, or the URDF's, is wrong",
            Remedy(f"check {source}; {confirm}"),
        )


def _odd_gravity(ident: Record) -> dict[str, float]:
    """Gravity torques that a wrong scale may explain: for most joints, or for one whose scale the data do not determine.

    Where the other joints' efforts would show a factor on a joint's efforts as large as the ratio of its gravity torques, that
    ratio differs because the URDF's masses are wrong. For most joints it does so, too, if the factor that all bodies have in
    common is plausible, as with a tool that the URDF lacks. With a known scale, only ratios of the wrong sign count.
    """
    evidence, errors, common = ident.evidence, ident.evidence.gravity_errors, ident.evidence.scale

    def usual(ratio: float, error: float) -> bool:
        """Whether usual errors of the URDF explain a ratio: of masses, a factor, or of first moments, a difference."""
        return 1 - USUAL_ERROR * error < ratio < float(np.exp(USUAL_ERROR * max(error, RELATIVE_STD)))

    odd = {
        joint: ratio
        for joint, ratio in evidence.gravity.items()
        if not usual(ratio, errors.get(joint, RELATIVE_STD)) and (ratio <= 0 or not ident.project.drive.scale_known)
    }
    plausible = common is not None and common.error < _TELLING and usual(common.factor, RELATIVE_STD)
    if 2 * len(odd) > len(evidence.gravity) and not plausible:
        return odd
    dependent = np.sqrt(max(USUAL_WEIGHT, ident.fit.variance_factor(ident.factor[:, ident.fit.base.independent])))
    # a difference of that size is significant even if chance makes it as much smaller
    least = {joint: 2 * SCALE_ERRORS * dependent * error for joint, error in evidence.scales.items()}
    return {joint: ratio for joint, ratio in odd.items() if ratio <= 0 or abs(ratio - 1.0) <= least.get(joint, np.inf)}


def untested(ident: Record) -> str:
    """What the data do not test, and what an error in it would do; empty if they test all."""
    evidence, ratios, phrases = ident.evidence, ident.evidence.gravity, []
    if not scale_confirmed(ident):
        told = evidence.scale is not None and evidence.scale.error < _TELLING
        ratio = f" (masses {evidence.scale} × the URDF's)" if told else ""
        phrases.append(f"the scale of all efforts together{ratio}")

    def in_all_logs(id: Id) -> set[str | None]:
        """The joints of which every log has this finding."""
        joints = [{name for f in log.findings if f.id == id for name in f.joints or (f.joint,)} for log in ident.inputs]
        return set.intersection(*joints) if joints else set()

    if in_all_logs(Id.TIME_SCALE_OPEN):
        phrases.append("the clock")
    if open_ := in_all_logs(Id.EFFORT_SCALE_OPEN):
        joints = [
            joint + (f" (gravity torque {ratios[joint]:.2g} × the URDF's)" if joint in ratios else "")
            for joint in ident.model.robot.joints
            if joint in open_
        ]
        others = [f"{ratio:.2g} ({joint})" for joint, ratio in ratios.items() if joint not in open_]
        beside = f"; gravity torques of others over the URDF's: {', '.join(others)}" if len(open_) > 1 and others else ""
        phrases.append(f"the effort scale of {', '.join(joints) if 0 < len(joints) <= _NAMED else 'single joints'}{beside}")
    return f"{', '.join(phrases)}; {CONSEQUENCE}" if phrases else ""


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


def held_out_reasons(ident: Record) -> Iterator[Judgement]:
    """Errors on motions that were not used in the fit, and models that predict these better; also what supports the result."""
    scores = _held_out(ident)
    other = [score for score in scores if score.get("repeats") is None]
    if other:
        yield held_out_error(max(score["relative"] for score in other), "on held-out logs")
    elif ident.cross_validation is not None and ident.cross_validated is not None:
        by_data, exported = ident.cross_validation.relative, ident.cross_validated
        doubt = _no_other_motion(ident)
        if doubt is not None:
            yield doubt
        if exported < GOOD_ERROR <= by_data:
            size = f"{100 * by_data:.0f} %" if by_data < 10 else "more than 1000 %"
            yield Judgement(
                Id.DATA_ALONE,
                f"the data alone, without the URDF as prior, predict held-out data with an error of {size}",
                RICHER_MOTION,
            )
        if doubt is None or exported > GOOD_ERROR:
            yield held_out_error(exported, "in cross-validation", Id.CROSS_VALIDATION)
    else:
        yield Judgement(Id.NOT_VALIDATED, "not validated: no held-out data")
    if scores and not other:
        names = ", ".join(score["log"] for score in scores)
        yield Judgement(Id.HELD_OUT_REPEATS, f"the held-out motion repeats a training motion ({names})")
    # logs on which the URDF, or the URDF with fitted friction, is better
    worse = [score["log"] for score in scores if mean_error(score) > mean_error(score, "urdf_")]
    yield from worse_than_urdf(worse)
    joints: dict[str, str] = {}
    for joint in (joint for score in scores for joint in score["per_joint"]):
        if joint["relative"] > GOOD_ERROR and joint["rmse"] > LOSS * joint["urdf_rmse"]:
            share = joint["relative"] * joint["urdf_rmse"] / joint["rmse"]
            words = f"{joint['joint']} ({100 * joint['relative']:.0f} % of its torque, URDF {100 * share:.0f} %)"
            joints.setdefault(joint["joint"], words)
    if joints and not worse:
        yield Judgement(Id.JOINT_WORSE_THAN_URDF, f"worse than the URDF on {', '.join(joints.values())}")
    lost = [score["log"] for score in scores if mean_error(score) > LOSS * mean_error(score, "urdf_friction_")]
    if lost and not worse:
        yield Judgement(Id.WORSE_THAN_FRICTION, f"worse than the URDF with fitted friction on {', '.join(lost)}")
    yield from _worse_by_limits(ident, scores)


def _held_out(ident: Record) -> list[Mapping[str, Any]]:
    """Scores on logs that were not used in the fit."""
    return [score for score in ident.validation if not score["trained_on"]]


def _on_folds(ident: Record) -> list[Mapping[str, Any]]:
    """Errors on all folds of the logs together, as if they were one held-out log; none if those of the export are unknown."""
    known, robot = ident.cross_validation, ident.model.robot
    if known is None or known.exported is None:
        return []
    columns = known.groups, known.exported.group_rmse.tolist(), known.group_rmse.tolist(), known.exported.group_effort.tolist()
    force = dict(zip(robot.joints, robot.prismatic, strict=True))
    joints = [
        {
            "joint": joint_of(group),
            "unit": "N" if force[joint_of(group)] else "N·m",
            "rmse": error,
            "fit_rmse": fit_error,
            "rms_torque": effort,
            "relative": error / positive(effort),
        }
        for group, error, fit_error, effort in zip(*columns, strict=True)
    ]
    return [{"per_joint": joints}]


def worst_errors_of(ident: Record) -> dict[str, float]:
    """:func:`worst_errors` on logs of another motion, or on the folds without any."""
    apart = {ident.model.robot.joints[j] for j in ident.model.apart}
    return worst_errors(_held_out(ident) or _on_folds(ident), apart)


def worst_errors(scores: Sequence[Mapping[str, Any]], apart: Collection[str] = ()) -> dict[str, float]:
    """Relative errors of joints whose torque is not small, on the worst log, largest first; apart: joints not of the model."""
    joints = [joint for score in scores for joint in score["per_joint"]]
    sizes = grouped((joint["unit"], joint["rms_torque"]) for joint in joints)
    worst: dict[str, float] = {}
    for joint in joints:
        if joint["rms_torque"] > _SMALL * max(sizes[joint["unit"]]) and joint["joint"] not in apart:
            worst[joint["joint"]] = max(worst.get(joint["joint"], 0.0), joint["relative"])
    return dict(sorted(worst.items(), key=lambda pair: -pair[1]))


def tested(ident: Record) -> bool:
    """Whether other motions show a small error of all joints and intervals that hold: nothing needs to be inferred then."""
    others = [score for score in _held_out(ident) if score.get("repeats") is None]
    held = [joint.get("held", 0.0) for score in others for joint in score["per_joint"]]
    small = all(score["relative"] <= TESTED_ERROR for score in others)
    return (
        bool(others) and small and min(held) >= HELD and max(worst_errors_of(ident).values(), default=0.0) <= TESTED_JOINT_ERROR
    )


def unexplained_joints(errors: Mapping[str, float], poor: bool) -> Iterator[Judgement]:
    """Joints whose torque is hardly predicted; errors: :func:`worst_errors`; poor: whether the result is poor without them."""
    bad = {joint: error for joint, error in errors.items() if error > USABLE_ERROR}
    if bad:
        words = ", ".join(f"{joint} ({100 * error:.0f} % of its torque)" for joint, error in bad.items())
        yield Judgement(
            Id.JOINT_ERROR,
            f"the torque of {words} is not predicted on other motions",
            Remedy("check sign, scale and columns of its effort, and what else acts on it (springs, cables, a second motor)"),
            "refused" if poor else "warning",
            joint=next(iter(bad)) if len(bad) == 1 else None,
            joints=tuple(bad),
            size=max(bad.values()),
        )


def _worse_by_limits(ident: Record, scores: Sequence[Mapping[str, Any]]) -> Iterator[Judgement]:
    """Constraints with which the exported model predicts worse than without, and joints that the prior spoils.

    Noise of the efforts is in both errors of a joint, so that one of little torque is not accused.
    """
    costs = {score["log"]: mean_error(score) / positive(mean_error(score, "fit_")) for score in scores}
    if not scores and ident.prediction is not None and ident.prediction.unlimited is not None:
        costs = {"held-out parts": float(ident.prediction.relative.mean()) / positive(float(ident.prediction.unlimited.mean()))}
    costs = {name: cost for name, cost in costs.items() if cost > LOSS}
    active = list(map(str, ident.solver.get("active", ())))
    where, worst = ", ".join(costs), max(costs.values(), default=0.0)
    if worst > _LOST and active:
        yield Judgement(
            Id.CONSTRAINTS_CONTRADICTED,
            f"constraints contradict the data: with them the error on {where} is {worst:.1f} times that without them "
            f"({abbreviated(active)})",
        )
    elif costs:
        yield Judgement(
            Id.CONSTRAINTS_COST,
            f"the exported model is more than 5 % worse than the unconstrained fit on {where} "
            f"(limited by {', '.join(active) or 'the prior'})",
        )
    joints = [joint for score in scores or _on_folds(ident) for joint in score["per_joint"]]
    errors = {  # of exported parameters and of the fit; on the worst log, which comes last and stays
        joint["joint"]: (joint["relative"], joint["relative"] * joint["fit_rmse"] / joint["rmse"])
        for joint in sorted(joints, key=lambda joint: float(joint["relative"]))
        if joint["rmse"] > 0 and joint["rms_torque"] > 0
    }
    words = [
        f"{name} ({100 * error:.0f} % of its torque, {100 * by_data:.0f} % by the data alone)"
        for name, (error, by_data) in errors.items()
        if error > max(GOOD_ERROR, _LOST * by_data)
    ]
    if words:
        yield Judgement(
            Id.PRIOR_CONTRADICTED,
            f"the URDF, or a limit of friction or rotor inertia, contradicts the data: held-out error of {', '.join(words)}",
        )


def _no_other_motion(ident: Record) -> Judgement | None:
    """The reason why the folds of the cross-validation do not contain another motion, or none long enough, if so."""
    evidence = ident.evidence
    short = [[f.size for f in log.findings if f.id == Id.SHORT and f.size] for log in ident.inputs]
    if short and all(short) and (seconds := sum(map(max, short))) < SHORT:
        return Judgement(
            Id.MOTION_SHORT,
            f"{seconds:.2g} s of motion are too short to show faults of the log or to validate the result",
            Remedy(f"record {SHORT:g} s or more, or give a log of another motion with --validate"),
        )
    if evidence.folds_repeat:
        return Judgement(
            Id.MOTION_REPEATED, "all logs hold periods of one motion, which predict each other: no other motion was tested"
        )
    if evidence.reversals <= HARDLY_REVERSES:
        return Judgement(
            Id.MOTION_HARDLY_TURNS,
            f"the joints hardly reverse ({evidence.reversals:.2g} times on average): its parts cannot validate each other",
        )
    return None


def worse_than_urdf(logs: Sequence[str]) -> list[Judgement]:
    """Judges that the URDF is better on some logs; none if there are no logs."""
    words = f"worse than the URDF on {', '.join(logs)}"
    return [Judgement(Id.WORSE_THAN_URDF, words)] if logs else []


def held_out_error(value: float, where: str, id: Id = Id.HELD_OUT_ERROR) -> Judgement:
    """Judges a relative torque error on another motion; value: the error, a fraction; where: on what, to follow the number."""
    severity: Severity = "info" if value < GOOD_ERROR else "warning" if value < USABLE_ERROR else "refused"
    size = f"{100 * value:.1f} %" if value < 10 else "more than 1000 %"
    remedy = None if severity == "info" else Remedy(id.entry.remedy)
    return Judgement(id, f"relative torque error {size} {where}", remedy, severity)
