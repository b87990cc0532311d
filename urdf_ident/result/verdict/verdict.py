"""The verdict on a result, computed from its evidence; each reason has an id and a remedy.

A result is GOOD if it predicts another motion well and nothing else counts against it, POOR if it should not be used, and
USABLE in between. A small residual on the training data alone never makes a result GOOD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...samples import HARDLY_TURNS, SHORT
from ..evidence.evidence import Evidence
from ..record import Record
from ..text.lines import joint_message
from .reason import Reason
from .scale_reasons import scale_reasons

LEVELS = ("good", "usable", "poor")
#: Relative torque error on other motions below which a result is good, and below which it is usable.
GOOD_ERROR, USABLE_ERROR = 0.1, 0.4
#: The same for the relative standard error of the torque over random feasible states, mean over joints.
GOOD_UNCERTAINTY, USABLE_UNCERTAINTY = 0.15, 0.6
#: Relative friction at the trained speed, and relative torque at the velocity limits, above which a model is unusable.
FRICTION_LIMIT, PEAK_LIMIT = 1.5, 10.0
#: Largest ratio of the exported model's held-out error to that of the unconstrained fit or the URDF with fitted friction.
LOSS = 1.05
#: The same ratio from which the constraints contradict the data.
CONTRADICTION = 1.5
#: Prefixes of the ids of findings that concern sign, order, gravity, units or time.
OUTSTANDING = (
    "effort",
    "position-bandwidth",
    "position-held",
    "position-late",
    "position-scale",
    "position-nonlinear",
    "position-play",
    "position-sign",
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


#: Reasons that state the size of an error without naming its cause.
_ERRORS = ("held-out-error", "cross-validation")
_WORSE = ("worse-than-urdf", "joint-worse-than-urdf", "worse-than-friction")
#: Poor reasons that a fault of the logs (a unit, a sign, a clock) leads to.
_SYMPTOMS = (*_ERRORS, *_WORSE, "friction-implausible", "torque-implausible")


@dataclass(frozen=True)
class ResultVerdict:
    """Level and reasons, most severe first, causes before consequences.

    Attributes:
        level: "good", "usable" or "poor".
        reasons: The reasons for it.
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


def judge(ident: Record) -> ResultVerdict:
    """Assesses a result from its evidence.

    Returns:
        The verdict; most severe reasons first, and at equal severity causes before the errors that they explain. A poor
        result whose logs contradict the URDF begins with the contradictions, if all its poor reasons are consequences.
    """
    outside = list(_outside(ident))
    error = max((LEVELS.index(reason.level) for reason in outside), default=0)
    findings = list(_findings(ident.inputs, LEVELS[max(error, 1)]))
    reasons = [*outside, *_physics(ident), *findings]
    if ident.evidence is not None:
        reasons += [*_left_open(ident.evidence), *scale_reasons(ident, ident.evidence), *_implausible(ident.evidence)]
    level = max((LEVELS.index(reason.level) for reason in reasons), default=1)
    if not any(reason.id in _ERRORS and reason.level == "good" for reason in reasons):
        level = max(level, 1)
    symptoms = all(reason.id in _SYMPTOMS for reason in reasons if reason.level == "poor")
    first = findings if level == LEVELS.index("poor") and symptoms else []
    rest = [reason for reason in reasons if reason not in first]
    return ResultVerdict(LEVELS[level], (*sorted(first, key=_rank), *sorted(rest, key=_rank)))


def _rank(reason: Reason) -> tuple[int, bool, bool]:
    return -LEVELS.index(reason.level), reason.id in _ERRORS, reason.id in _WORSE


def _outside(ident: Record) -> Iterator[Reason]:
    """Errors on motions that were not used in the fit."""
    scores = [item for item in ident.validation if not item.get("trained_on")]
    other = [item for item in scores if item.get("repeats") is None]
    evidence = ident.evidence
    if other and all(item["relative"] is not None for item in other):
        worst = max(item["relative"] for item in other)
        yield _error("held-out-error", worst, "on held-out logs")
    elif other:  # forces and torques are mixed: assess each joint
        worst = max(joint["relative"] for item in other for joint in item["per_joint"])
        yield _error("held-out-error", worst, "of the worst joint on held-out logs")
    elif ident.cross_validation:
        alone = float(ident.cross_validation["relative"])
        error = alone if ident.cross_validated is None else ident.cross_validated
        doubt = _too_short(ident.inputs) or (_no_other_motion(evidence) if evidence is not None else None)
        if doubt is not None:
            yield doubt
        if error_level(error) == "good" != error_level(alone):
            size = f"{100 * alone:.0f} %" if alone < 10 else "more than 1000 %"
            yield Reason(
                "data-alone",
                "usable",
                f"the data alone, without the URDF as prior, predict held-out data with an error of {size}",
                "record a richer motion: urdf-ident design --after",
            )
        if doubt is None or error > GOOD_ERROR:
            yield _error("cross-validation", error, "in cross-validation")
    else:
        yield Reason(
            "not-validated", "usable", "not validated: no held-out data", "give a log of another motion with --validate"
        )
    if scores and not other:
        names = ", ".join(item["log"] for item in scores)
        yield Reason(
            "held-out-repeats",
            "usable",
            f"the held-out motion repeats a training motion ({names})",
            "validate with another motion",
        )
    yield from _worse_than_others(ident, scores)


def _worse_than_others(ident: Record, scores: Sequence[Mapping[str, Any]]) -> Iterator[Reason]:
    """Held-out logs on which the URDF, the URDF with fitted friction, or the unconstrained fit is better."""
    worse = [item["log"] for item in scores if item["mean_rmse"] > item["urdf_mean_rmse"]]
    if worse:
        yield Reason(
            "worse-than-urdf", "poor", "worse than the URDF on " + ", ".join(worse), "do not use it; record richer motion"
        )
    joints = _worse_joints(scores)
    if joints and not worse:
        yield Reason(
            "joint-worse-than-urdf",
            "usable",
            f"worse than the URDF on {', '.join(joints)}",
            "check sign, scale and column order of these joints in the logs, then record a richer motion",
        )
    lost = [item["log"] for item in scores if item["mean_rmse"] > LOSS * item["urdf_friction_mean_rmse"]]
    if lost and not worse:
        yield Reason(
            "worse-than-friction",
            "usable",
            "worse than the URDF with fitted friction on " + ", ".join(lost),
            "record a motion with more acceleration and a wider range",
        )
    yield from _constraints_cost(ident, scores)


def _constraints_cost(ident: Record, scores: Sequence[Mapping[str, Any]]) -> Iterator[Reason]:
    """Constraints with which the exported model predicts worse than without them."""
    costs = {item["log"]: item["mean_rmse"] / max(item["fit_mean_rmse"], 1e-300) for item in scores}
    if not scores and ident.prediction.get("unlimited") is not None and ident.cross_validated is not None:
        costs = {"held-out parts": ident.cross_validated / max(sum(ident.prediction["unlimited"]) / ident.model.n, 1e-300)}
    apart = {name: cost for name, cost in costs.items() if cost > LOSS}
    if not apart:
        return
    active = [str(item) for item in ident.solver.get("active", ())]
    where, worst = ", ".join(apart), max(apart.values())
    if worst <= CONTRADICTION or not active:
        yield Reason(
            "constraints-cost",
            "good",
            f"the exported model is more than 5 % worse than the unconstrained fit on {where} "
            f"(limited by {', '.join(active) or 'the prior'})",
            "check the active constraints: consistency.mass_factor, consistency.com_in_box",
        )
        return
    shown = ", ".join(active[:3]) + (f" and {len(active) - 3} more" if len(active) > 3 else "")
    yield Reason(
        "constraints-contradicted",
        "usable",
        f"constraints contradict the data: with them the error on {where} is {worst:.1f} times that without them ({shown})",
        "check the zero positions, the scale of the efforts, and the URDF's geometry, tools and masses; where the geometry "
        "does not enclose a link's mass, set consistency.com_in_box: false",
    )


def _worse_joints(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Joints whose error on a held-out log is not good, and larger than that of the original URDF."""
    found: dict[str, str] = {}
    for item in scores:
        for joint in item["per_joint"]:
            before = joint.get("urdf_rmse")
            if before is not None and joint["relative"] > GOOD_ERROR and joint["rmse"] > LOSS * before:
                share = joint["relative"] * before / joint["rmse"]
                words = f"{joint['joint']} ({100 * joint['relative']:.0f} % of its torque, URDF {100 * share:.0f} %)"
                found.setdefault(joint["joint"], words)
    return list(found.values())


def _too_short(inputs: Sequence[Mapping[str, Any]]) -> Reason | None:
    """The reason that all training logs together are too short to show a fault of theirs, if so."""
    found = [[item["size"] for item in log.get("findings", ()) if item["id"] == "short" and item.get("size")] for log in inputs]
    if not found or not all(found) or (seconds := sum(max(sizes) for sizes in found)) >= SHORT:
        return None
    return Reason(
        "motion-short",
        "usable",
        f"{seconds:.2g} s of motion are too short to show faults of the log or to validate the result",
        f"record {SHORT:g} s or more, or give a log of another motion with --validate",
    )


def _no_other_motion(evidence: Evidence) -> Reason | None:
    """The reason why the folds of the cross-validation do not contain other motions, if so."""
    if evidence.folds_repeat:
        return Reason(
            "motion-repeated",
            "usable",
            "all logs contain the same repeated motion, so that no other motion was tested",
            "record another motion and give it with --validate",
        )
    if evidence.reversals is not None and evidence.reversals <= HARDLY_TURNS:
        return Reason(
            "motion-hardly-turns",
            "usable",
            f"the joints hardly reverse ({evidence.reversals:.2g} times on average): its parts cannot validate each other",
            "record a longer or faster motion, or give another one with --validate",
        )
    return None


def error_level(value: float) -> str:
    """Level that a relative torque error on another motion allows.

    Args:
        value: The error, a fraction.

    Returns:
        "good", "usable" or "poor".
    """
    return "good" if value < GOOD_ERROR else "usable" if value < USABLE_ERROR else "poor"


def _error(id: str, value: float, where: str) -> Reason:
    level = error_level(value)
    remedy = None if level == "good" else "check the joints with the largest errors and the findings about the logs"
    size = f"{100 * value:.1f} %" if value < 10 else "more than 1000 %"
    return Reason(id, level, f"relative torque error {size} {where}", remedy)


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
    found: dict[str, tuple[list[str], list[Mapping[str, Any]]]] = {}
    for item in inputs:
        for finding in item.get("findings", ()):
            grave = finding["severity"] == "refused" or (
                finding["severity"] == "warning" and finding["id"].startswith(OUTSTANDING) and not _explained(finding)
            )
            if grave:
                logs, alike = found.setdefault(finding["id"], ([], []))
                logs.append(str(item.get("name") or item.get("log") or item.get("path")))
                alike.append(finding)
    for id, (logs, alike) in found.items():
        where = f" ({', '.join(dict.fromkeys(logs))})" if len(inputs) > 1 else ""
        joints = list(dict.fromkeys(str(finding["joint"]) for finding in alike if finding.get("joint")))
        level = refused if any(finding["severity"] == "refused" for finding in alike) else "usable"
        yield Reason(id, level, f"{joint_message(alike[0], joints).rstrip('.')}{where}", alike[0].get("remedy"))


def _explained(finding: Mapping[str, Any]) -> bool:
    """Whether a warning concerns a single channel and not the physics."""
    return finding["id"] in ("effort-constant",)


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
                "record a richer motion: urdf-ident design --after",
            )
    if evidence.unaided and max(evidence.unaided.values()) > GOOD_UNCERTAINTY:
        joint = max(evidence.unaided, key=lambda name: evidence.unaided[name])
        yield Reason(
            "torque-from-urdf",
            "usable",
            f"on other motions the data alone leave {100 * evidence.unaided[joint]:.0f} % of the torque of {joint} open, "
            "and the URDF's values fill the gap",
            "record a richer motion: urdf-ident design --after",
        )
    if evidence.one_way:
        names = ", ".join(evidence.one_way)
        yield Reason(
            "one-way",
            "usable",
            f"{names} moved in one direction only: Coulomb friction and offset cannot be separated, and friction in the other "
            f"direction is unknown{_weight_and_friction(evidence.lifting)}",
            "record motions in both directions",
        )


def _weight_and_friction(lifting: Sequence[str]) -> str:
    """What is said of slides with a constant weight that moved in one direction only."""
    return f"; of {', '.join(lifting)} only the sum of weight and dry friction is known" if lifting else ""


def _implausible(evidence: Evidence) -> Iterator[Reason]:
    """Contradictions of the URDF, of the measured torques, or between parts of the logs."""
    if evidence.masses and not evidence.placeholders:
        words = ", ".join(f"{body} {value:.2g} ×" for body, value in evidence.masses.items())
        yield Reason(
            "mass-far", "usable", f"masses differ strongly from the URDF's: {words}", "check units, gains and missing tools"
        )
    strong = {joint: value for joint, value in evidence.friction.items() if value > FRICTION_LIMIT}
    if strong:
        words = ", ".join(f"{joint} {value:.2g} ×" for joint, value in strong.items())
        yield Reason(
            "friction-implausible",
            "poor",
            f"friction above the largest measured torque: {words}",
            "record longer, with reversals of these joints, or list fewer laws in model.friction",
        )
    beyond = {joint: value for joint, value in evidence.peak.items() if value > PEAK_LIMIT}
    if beyond:
        words = ", ".join(f"{joint} {value:.2g} ×" for joint, value in beyond.items())
        yield Reason(
            "torque-implausible",
            "poor",
            f"torque at the URDF's velocity limits above its effort limits, and above what its own masses need there: {words}",
            "record a faster motion, or list fewer laws in model.friction",
        )
    contradicted = {joint: value for joint, value in evidence.overdriven.items() if value > PEAK_LIMIT}
    if contradicted and not evidence.placeholders:
        words = ", ".join(f"{joint} {value:.2g} ×" for joint, value in contradicted.items())
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
            f"{item.rmse / max(item.usual, 1e-300):.1f} × that of the other parts",
            "check for a payload, contact, a dragging brake, another temperature or gain; leave out this log or part",
        )
