"""Identifies a payload: mass, centre of mass and inertia with standard errors, from a result and loaded logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..comparison.quantities import require_covariance
from ..consistency.payload_quantities import payload_quantities
from ..errors import EstimationError, LogError, ModelError, check_known
from ..estimation.estimators.payload import (
    METHODS,
    REFIT,
    PayloadProblem,
    changed_friction,
    estimate_payload,
    preferred_estimate,
    refuse_different_bodies,
    with_usual_gears,
)
from ..estimation.estimators.resting import weigh_rests
from ..estimation.estimators.static_poses import estimate_static, pose_notes, resting_poses
from ..judgements.judgement import Judgement
from ..linalg import Array
from ..logs.recording import Recording
from ..logs.refusals import refuse_trained
from ..model.inertia import transform_matrix
from ..model.payload import default_link, moving_link
from ..model.robot import Robot
from ..parallel import one_thread
from ..result.identification import Identification
from ..result.payload import PayloadResult
from ..result.verdict.payload import (
    UNEXPLAINED,
    known_quantities,
    other_link,
    payload_remarks,
    payload_verdict,
    residual_ratios,
)
from ..signals.prepare import prepare_logs

#: Message and remedy for a loaded log that the unloaded model was fitted to.
_LEARNT = ("this log is one of the training logs of the unloaded model", "name logs that carry the payload")


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
    if not ident.model.is_rigid:
        raise ModelError("a payload needs a model with rigid joints", got="springs", remedy="identify without model.elastic")
    check_known("method", method, ("auto", *METHODS), EstimationError)
    check_known("choice of friction to refit", refit, ("auto", *REFIT), EstimationError)
    if not logs:
        raise LogError("no loaded log was given", remedy="name at least one")
    require_covariance(ident)
    refuse_trained({log.sha256: log.name for log in ident.inputs}, logs, *_LEARNT)
    joints = ident.model.robot.joints
    other = next((log for log in logs if tuple(log.joints) != tuple(joints)), None)
    if other is not None:
        got, expected = ", ".join(other.joints), ", ".join(joints)
        raise LogError("the log is of another robot", where=other.name, got=got, expected=expected)
    robot, project, link = ident.model.robot, ident.project, link or default_link(ident.model.robot)
    body, place = moving_link(robot, link)
    errors = _gain_errors(ident, gain_error)
    placement = transform_matrix(place.rotation, place.translation)
    problem = with_usual_gears(PayloadProblem(ident.model, ident.fit, ident.factor, body, placement, errors))
    ratios: dict[str, float] = {}
    elsewhere: Judgement | None = None
    if static:  # static friction is indeterminate, so that residuals are not compared
        poses = resting_poses(logs, robot, ident.model.drive)
        fit, rate = estimate_static(problem, poses), None
        elsewhere = other_link(problem, fit, partial(estimate_static, poses=poses))
        notes = pose_notes(problem, poses)
    else:  # conditioned as the logs of the unloaded robot were
        known = {key: ident.signals[key] for key in ("cutoff", "decimate") if key in ident.signals}
        config = replace(project.signal_config(), **known, reason="as of the unloaded logs")
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
        verdict=payload_verdict(fit, quantities, ratios, elsewhere),
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
