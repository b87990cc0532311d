"""Identifies a payload: mass, centre of mass and inertia with standard errors, from a result and loaded logs.

How far the estimate can be trusted follows from residuals against the unloaded robot's, and from bodies on other links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from ..comparison.quantities import require_covariance
from ..consistency.payload_quantities import Quantities, payload_quantities
from ..errors import EstimationError, LogError, ModelError, check_known
from ..estimation.estimators.payload import (
    METHODS,
    REFIT,
    PayloadFit,
    PayloadProblem,
    changed_friction,
    estimate_payload,
    preferred_estimate,
    refuse_different_bodies,
    with_usual_gears,
)
from ..estimation.estimators.resting import weigh_rests
from ..estimation.estimators.static_poses import estimate_static, friction_at_rest, pose_notes, resting_poses
from ..estimation.uncertainty.identifiability import IDENTIFIABLE, KNOWN, LOST, NOTHING, WEAK
from ..estimation.uncertainty.simple_motions import AS_USEFUL, SECONDS, STATES, SimpleMotion, simple_motions, simplest
from ..judgements.catalogue import Id, Severity
from ..judgements.judgement import Judgement, Remedy, Verdict
from ..linalg import Array, positive, triangle
from ..logs.recording import Recording
from ..logs.refusals import refuse_trained
from ..model.inertia import transform_matrix
from ..model.payload import default_link, moving_link
from ..model.robot import Robot
from ..model.row_groups import joint_of
from ..parallel import one_thread
from ..result.identification import Identification
from ..result.payload import PayloadResult
from ..result.record import Record
from ..signals.prepare import checked, prepare_logs

#: Message and remedy for a loaded log that the unloaded model was fitted to.
_LEARNT = ("this log is one of the training logs of the unloaded model", "name logs that carry the payload")
#: Relative standard error of the mass below which the verdict is good.
_GOOD = 0.02
#: The same from which it is poor.
_POOR = 0.2
#: Assumed size of a body whose centre of mass or inertia is small [m].
_SIZE = 0.05
#: Number of standard errors from which the centre of a negative mass is reported.
_SIGNIFICANT = 10.0
#: Ratio of the loaded logs' residual to the unloaded logs' from which it is reported.
_NOISIER = 1.5
#: The same ratio from which the verdict is not good, whatever the standard error (one torque constant 3 % off: 5 to 13).
UNEXPLAINED = 4.0
#: Residual of a joint over that with a body on another link, from which the body is said to sit there if that is likelier.
_BETTER_LINK = 2.0
#: Standard error that a motion leaves over the present one from which it is not worth recording.
_NO_HELP = 0.7


@one_thread()
def payload(
    ident: Identification,
    logs: Sequence[Recording],
    *,
    link: str | None = None,
    method: str = "auto",
    refit: str = "auto",
    static: bool = False,
    gain_error: float | None = None,
    force: bool = False,
) -> PayloadResult:
    """Estimates an unknown payload that all logs have in common.

    Joints that dry friction holds at rest count less, as in :func:`.weigh_rests`.

    Args:
        ident: The unloaded robot, identified.
        logs: Logs of the same robot with the payload.
        link: The link it is fixed to, in whose frame the result is given; ``tool0`` or the last link if None.
        method: "held": keep the unloaded model; "joint": estimate it again with the loaded logs; "auto": the more precise.
        refit: Friction that is estimated again from the loaded logs: "none", "offset", "friction" (offset, Coulomb,
            viscous), or "auto": all of it if it has changed significantly.
        static: Use static poses instead of motion: mass and centre of mass only.
        gain_error: Relative standard error of all torque constants, a fraction; taken from the result if None.
        force: Use logs in spite of findings that refuse them.

    Returns:
        The payload.

    Raises:
        ModelError: The link does not move, or the model has elastic joints.
        LogError: A log is a training log of the unloaded model.
        QualityError: A log is refused.
        EstimationError: The result has no covariance, or the payload differs between the logs.
    """
    # What cannot work is refused first.
    if not ident.model.is_rigid:
        raise ModelError("a payload needs a model with rigid joints", got="springs", remedy="identify without model.elastic")
    check_known("method", method, ("auto", *METHODS), EstimationError)
    check_known("choice of friction to refit", refit, ("auto", *REFIT), EstimationError)
    if not logs:
        raise LogError("no loaded log was given", remedy="name at least one")
    require_covariance(ident)
    refuse_trained({log.sha256: log.name for log in ident.inputs}, logs, *_LEARNT)
    robot, project, link = ident.model.robot, ident.project, link or default_link(ident.model.robot)
    other = next((log for log in logs if tuple(log.joints) != tuple(robot.joints)), None)
    if other is not None:
        got, expected = ", ".join(other.joints), ", ".join(robot.joints)
        raise LogError("the log is of another robot", where=other.name, got=got, expected=expected)
    # 1. The body is one more on the unloaded robot, whose parameters and torque constants have errors.
    body, place = moving_link(robot, link)
    errors, placement = _gain_errors(ident, gain_error), transform_matrix(place.rotation, place.translation)
    problem = with_usual_gears(PayloadProblem(ident.model, ident.fit, ident.factor, body, placement, errors))
    ratios, usual = dict[str, float](), "the unloaded robot's"
    elsewhere: Judgement | None = None
    # 2. Its ten parameters from poses or motion; whether the residual is the unloaded robot's, or a body elsewhere explains it.
    as_unloaded = project.further_config(ident.signals)
    if static:
        reports = checked(logs, robot, ident.model.drive, as_unloaded, force=force, at_rest=True)
        poses = resting_poses([report.recording for report in reports], robot)
        fit, rate = estimate_static(problem, poses), None
        elsewhere = other_link(problem, fit, partial(estimate_static, poses=poses))
        ratios, usual = residual_ratios(ident, fit, friction_at_rest(problem, poses)), f"{usual} with its dry friction"
        notes = pose_notes(problem, poses)
    else:  # conditioned as the logs of the unloaded robot were
        config = replace(as_unloaded, periodic=project.signals.periodic, reason="as of the unloaded logs")
        conditioned = prepare_logs(logs, robot, ident.model.drive, config, force=force, payload=project.build_payload(robot))
        prepared, rest_notes = weigh_rests(ident.model.unloaded(), conditioned, config)
        rate = prepared[0].conditioned.decimate_rate
        friction = changed_friction(problem, prepared) if refit == "auto" else refit
        fit = preferred_estimate(problem, prepared, method, friction)
        refuse_different_bodies(problem, prepared, friction)
        ratios = residual_ratios(ident, fit)
        exact_gains = gain_error is None and not errors.any()
        notes = (*payload_remarks(ident, fit, friction, ratios, exact_gains=exact_gains), *rest_notes)
        if not ratios or max(ratios.values()) > UNEXPLAINED:
            elsewhere = other_link(problem, fit, partial(estimate_payload, logs=prepared, refit=friction))
    # 3. Mass, centre of mass and inertia of a possible body, how well they are known, and where the mass's error comes from.
    quantities = payload_quantities(fit)
    verdicts, advice = known_quantities(problem, fit, quantities, rate)
    covariances = {"noise": fit.noise, "unloaded model": fit.unloaded, "torque constants": fit.gains}
    sources = {name: float(np.sqrt(max(matrix[0, 0], 0.0))) for name, matrix in covariances.items()}  # errors of the mass
    if quantities.impossible:
        sources["contradiction"] = float(-fit.params[0])
    how = {"held": "unloaded model held", "joint": "estimated together with the unloaded logs"}[fit.method]
    return PayloadResult(
        robot=robot.name,
        link=link,
        value=quantities.value,
        std_error=quantities.std_error,
        interval=quantities.interval,
        verdicts=verdicts,
        advice=advice,
        sources=sources,
        method=f"{how}; {fit.covariance_kind}",
        mode="static" if static else "motion",
        logs=tuple(log.name for log in logs),
        notes=notes,
        friction=dict(fit.changes),
        sigma=dict(fit.sigma),
        verdict=payload_verdict(fit, quantities, ratios, elsewhere, usual),
    )


def _gain_errors(ident: Identification, stated: float | None) -> Array:
    """Relative standard errors of the torque constants, shape (n,): as stated, or those of the result."""
    if stated is None:
        known = ident.model.drive.gain_error
        return np.zeros(ident.model.n) if known is None else np.array(known)
    if not (np.isfinite(stated) and 0 <= stated < 1):
        raise EstimationError("unusable error of the torque constants", got=stated, expected="a fraction, 0 to 1")
    return np.full(ident.model.n, float(stated))


def check_loaded(robot: Robot, training: Sequence[Recording], loaded: Sequence[Recording], link: str | None = None) -> None:
    """Refuses unusable loaded logs before the unloaded robot is identified.

    Args:
        loaded: The loaded ones.
        link: The link with the payload; :func:`default_link` if None.

    Raises:
        ModelError: The link does not move or does not exist.
        LogError: A log is given both as loaded and as unloaded.
    """
    moving_link(robot, link or default_link(robot))
    refuse_trained({log.sha256: log.name for log in training}, loaded, *_LEARNT)


def residual_ratios(ident: Record, fit: PayloadFit, at_rest: Mapping[str, float] | None = None) -> dict[str, float]:
    """Ratio of the loaded logs' residual to the unloaded logs' per row group; empty where outliers were down-weighted.

    Args:
        at_rest: What dry friction, which is indeterminate at rest, adds to the unloaded residual of each row group in poses.
    """
    if ident.estimation.get("down_weighted"):
        return {}
    usual = {name: float(np.hypot(sigma, (at_rest or {}).get(name, 0.0))) for name, sigma in ident.fit.sigma.items()}
    return {name: value / usual[name] for name, value in fit.sigma.items() if usual.get(name)}


def other_link(problem: PayloadProblem, fit: PayloadFit, estimate: Callable[[PayloadProblem], PayloadFit]) -> Judgement | None:
    """Judges whether a body on another link explains the residual that one on this link leaves; None if there is none."""
    better = list[tuple[float, str, str, float]]()
    for k, body in enumerate(problem.model.robot.bodies):
        if k == problem.body:
            continue
        with suppress(EstimationError):  # it loads no joint
            other = estimate(replace(problem, body=k, placement=np.eye(10)))
            gains = {name: value / positive(other.sigma[name]) for name, value in fit.sigma.items()}
            loudest = max(gains, key=lambda name: gains[name])
            if other.massive and gains[loudest] > _BETTER_LINK:
                likelihood = float(np.log(list(gains.values())).sum())
                better.append((likelihood, body.links[0].name, joint_of(loudest), gains[loudest]))
    likelihood, link, joint, gain = max(better, default=(0.0, "", "", 0.0))
    if likelihood <= 0:
        return None
    words = f"explains these logs better: the residual of {joint} is {gain:.3g} times smaller"
    return Judgement(Id.PAYLOAD_ELSEWHERE, f"a body on {link}, or on a link fixed to it, {words}")


def payload_remarks(
    ident: Record, fit: PayloadFit, refit: str, ratios: Mapping[str, float], *, exact_gains: bool
) -> tuple[str, ...]:
    """What the reader of an estimate should know: choices that were made, and assumptions.

    Args:
        refit: The friction that was estimated again, a key of :data:`.REFIT`.
        ratios: See :func:`residual_ratios`.
        exact_gains: Whether torque constants are taken as exact because nothing states their errors.
    """
    notes = []
    if refit == "friction":
        changed = max(fit.changes.items(), key=lambda change: abs(change[1][0]) / positive(change[1][1]), default=None)
        words = "" if changed is None else f", most {changed[0]} by {changed[1][0]:+.3g} ± {changed[1][1]:.2g}"
        notes.append(f"friction of the loaded logs differs from that of the unloaded ones: estimated again{words}")
    if exact_gains:
        notes.append("torque constants are assumed to be exact; an error of 1 % changes the mass by 1 % (--gain-error 0.01)")
    if not fit.converged:
        notes.append("load-dependent friction did not converge: it is too large to be separated from the payload")
    unseen = int((~ident.fit.seen).sum())
    if unseen and fit.method == "held":
        notes.append(
            f"{unseen} base parameters of the unloaded robot are unknown; their effect in these logs is attributed to the body"
        )
    noisy = [joint_of(name) for name, times in ratios.items() if times > _NOISIER]
    if noisy:
        notes.append(
            f"the residual of {', '.join(noisy)} is more than {_NOISIER:g} times the unloaded robot's: a load that is "
            "not rigid, friction or a torque constant that has changed?"
        )
    return tuple(notes)


def payload_verdict(
    fit: PayloadFit,
    body: Quantities,
    ratios: Mapping[str, float],
    elsewhere: Judgement | None,
    usual: str = "the unloaded robot's",
) -> Verdict:
    """Judges an estimate; ratios: see :func:`residual_ratios`; usual: what they are relative to, in words."""
    if body.impossible:
        taken, error = -fit.params[0], fit.bse[0]
        words = f"the logs imply a mass of {-taken:.3g} ± {error:.2g} kg, which is impossible: they differ in something else"
        other_cause = ""
        if taken > _SIGNIFICANT * error:
            place = ", ".join(f"{x:.3g}" for x in -fit.params[1:4] / taken)
            other_cause = f" (a tool of {taken:.3g} kg at ({place}) m on the unloaded robot only would explain it)"
        remedy = (
            f"check whether loaded and unloaded logs were exchanged{other_cause}, whether torque constants or offsets have "
            "changed, and how the unloaded model does on another unloaded log (`validate`)"
        )
        return Verdict.of([Judgement(Id.PAYLOAD_IMPOSSIBLE, words, Remedy(remedy))])
    if elsewhere is not None:
        return Verdict.of([elsewhere])
    loudest = max(ratios, key=lambda name: ratios[name], default="")
    odd = ""
    if loudest and ratios[loudest] > UNEXPLAINED:
        times = f"{ratios[loudest]:.2g} times {usual}"
        odd = f"the residual of {joint_of(loudest)} is {times} and not explained by the body"
    if body.interval[0, 0] <= 0 or not np.isfinite(body.std_error[0]):
        nothing = "the interval includes 0 kg: these logs may contain no payload"
        check = Remedy("check whether it sits on another link (--link), or friction or torque constants have changed")
        unexplained = Judgement(Id.PAYLOAD_UNEXPLAINED, odd, check, "refused")
        return Verdict.of([unexplained if odd else Judgement(Id.PAYLOAD_NOT_SHOWN, nothing)])
    share = float(body.std_error[0] / body.value[0])
    severity: Severity = "info" if share < _GOOD else "warning" if share < _POOR else "refused"
    judged = [Judgement(Id.PAYLOAD_MASS, f"the mass is known to ± {100 * share:.3g} %", severity=severity)]
    if odd:
        causes = "exchanged columns, another unit or torque constant, contact, a swinging load?"
        words = f"{odd} ({causes}); standard errors do not cover this"
        judged.append(Judgement(Id.PAYLOAD_UNEXPLAINED, words))
    return Verdict.of(judged)


def known_quantities(
    problem: PayloadProblem, fit: PayloadFit, body: Quantities, rate: float | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Judges for each quantity how well it is known.

    Args:
        rate: Rate of the samples that were fitted [Hz]; None for static poses.

    Returns:
        Ten verdicts of :mod:`.identifiability`, and for each the simplest motion that would improve it, or nothing.
    """
    value, error = body.value, body.std_error
    gyration = max(float(np.sqrt(max(value[[4, 7, 9]].max(), 0.0) / positive(value[0]))), _SIZE)
    distance = max(float(np.abs(value[1:4]).max()), _SIZE)
    size = np.concatenate([[positive(value[0])], np.full(3, distance), np.full(6, value[0] * gyration**2)])
    levels = tuple(IDENTIFIABLE if share <= KNOWN else WEAK if share <= NOTHING else LOST for share in error / size)
    if all(level == IDENTIFIABLE for level in levels) or not fit.massive:
        return levels, ("",) * 10
    if rate is None:
        more = ("more poses that tilt the body about other axes",) * 4
        moving = ("move the loaded arm: poses at rest show no inertia",) * 6
        return levels, tuple("" if level == IDENTIFIABLE else words for level, words in zip(levels, more + moving, strict=True))
    # simple motions, and the standard errors of the quantities if each were recorded as well
    weights, trials = {name: 1.0 / sigma for name, sigma in fit.sigma.items()}, list[tuple[SimpleMotion, Array]]()
    loaded = problem.loaded(fit.params)
    for motion in simple_motions(problem.model.robot):
        factor = np.zeros((0, 10))
        for _, blocks in loaded.row_blocks(replace(motion.states, reference_torque=None), chunk=STATES):
            for group, block in zip(loaded.groups, blocks, strict=True):
                if loaded.added[0] in group.columns:
                    begin = int(np.flatnonzero(group.columns == loaded.added[0])[0])
                    factor = triangle(factor, block[:, begin : begin + 10] * weights[group.name])
        informed = np.vstack([fit.precision, factor * np.sqrt(SECONDS * rate / STATES)])
        trials.append((motion, np.linalg.norm(body.slopes @ np.linalg.pinv(informed, rcond=1e-8), axis=1)))
    advice = []
    for k, level in enumerate(levels):
        best = min(left[k] for _, left in trials)
        words, _ = simplest(((motion, float(left[k])) for motion, left in trials), AS_USEFUL, KNOWN * float(size[k]))
        helps = level != IDENTIFIABLE and best < _NO_HELP * error[k]
        advice.append(words if helps else "" if level == IDENTIFIABLE else "a heavier body, or more and faster motion")
    return levels, tuple(advice)
