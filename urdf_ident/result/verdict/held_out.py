"""Reasons from errors on motions that were not used in the fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...grouping import abbreviated, grouped
from ...judgements.catalogue import Id, Severity
from ...judgements.judgement import Judgement, Remedy
from ...linalg import positive
from ...model.row_groups import joint_of
from ...samples import HARDLY_REVERSES, SHORT
from ..evidence.scores import mean_error
from ..record import Record

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
            f"({abbreviated(active, 3)})",
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
