"""Identifies a payload: mass, centre of mass and inertia with standard errors, from a result and loaded logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..comparison.quantities import require_covariance
from ..consistency.payload_quantities import Quantities, payload_quantities
from ..errors import EstimationError, LogError, ModelError, check_known
from ..estimation.estimators.payload import METHODS, REFIT, PayloadFit, PayloadProblem, estimate_payload, with_usual_gears
from ..estimation.estimators.resting import weigh_rests
from ..estimation.estimators.static_poses import estimate_static, pose_notes, resting_poses
from ..judgements.judgement import Judgement
from ..linalg import Array, positive
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
from ..signals.prepare import PreparedLog, prepare_logs

#: Significance level of the test whether friction has changed.
_LEVEL = 0.05
#: Logs disagree on the mass below this p-value if the difference also exceeds this share of the mass.
_CHANCE, _DIFFERENT = 1e-3, 0.03
#: The joint estimate is preferred if the standard error of its mass is at most this share of the other's.
_BETTER = 0.9
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
    _check(ident, logs, method, refit)
    robot = ident.model.robot
    name, names = link or default_link(robot), tuple(log.name for log in logs)
    body, place = moving_link(robot, name)
    errors = _gain_error(ident, gain_error)
    placement = transform_matrix(place.rotation, place.translation)
    problem = with_usual_gears(PayloadProblem(ident.model, ident.fit, ident.factor, body, placement, errors))
    if static:
        return _result(problem, name, names, _from_poses(problem, logs))
    assumed = gain_error is None and not errors.any()
    found = _from_motion(ident, problem, logs, method, refit, force=force, exact_gains=assumed)
    return _result(problem, name, names, found)


class _Estimate(NamedTuple):
    """An estimate and what is known of it: notes, ratios of residuals, a better link, rate of samples [Hz], None for poses."""

    fit: PayloadFit
    notes: tuple[str, ...]
    ratios: dict[str, float]
    elsewhere: Judgement | None
    rate: float | None


def _from_poses(problem: PayloadProblem, logs: Sequence[Recording]) -> _Estimate:
    """The estimate from static poses; static friction is indeterminate, so that residuals are not compared."""
    poses = resting_poses(logs, problem.model.robot, problem.model.drive)
    fit = estimate_static(problem, poses)
    elsewhere = other_link(problem, fit, partial(estimate_static, poses=poses))
    return _Estimate(fit, pose_notes(problem, poses), {}, elsewhere, None)


def _from_motion(
    ident: Identification,
    problem: PayloadProblem,
    logs: Sequence[Recording],
    method: str,
    refit: str,
    *,
    force: bool,
    exact_gains: bool,
) -> _Estimate:
    """The estimate from motions, conditioned as the logs of the unloaded robot were."""
    robot, drive, project = ident.model.robot, ident.model.drive, ident.project
    as_learnt = {key: ident.signals[key] for key in ("cutoff", "decimate") if key in ident.signals}
    config = replace(project.signal_config(), **as_learnt, reason="as of the unloaded logs")
    read = prepare_logs(logs, robot, drive, config, force=force, payload=project.build_payload(robot))
    prepared, held = weigh_rests(ident.model.unloaded(), read, config)
    chosen = _refit(problem, prepared) if refit == "auto" else refit
    fit = _estimated(problem, prepared, method, chosen)
    _same_body(problem, prepared, chosen)
    ratios = residual_ratios(ident, fit)
    notes = (*payload_remarks(ident, fit, chosen, ratios, exact_gains=exact_gains), *held)
    doubtful = not ratios or max(ratios.values()) > UNEXPLAINED
    elsewhere = other_link(problem, fit, partial(estimate_payload, logs=prepared, refit=chosen)) if doubtful else None
    return _Estimate(fit, notes, ratios, elsewhere, prepared[0].conditioned.decimate_rate)


def _estimated(problem: PayloadProblem, logs: Sequence[PreparedLog], method: str, refit: str) -> PayloadFit:
    """The estimate by one method, or the more precise one."""
    if method != "auto":
        return estimate_payload(problem, logs, method=method, refit=refit)
    held, joint = (estimate_payload(problem, logs, method=each, refit=refit) for each in ("held", "joint"))
    return joint if joint.bse[0] < _BETTER * held.bse[0] else held


def _check(ident: Identification, logs: Sequence[Recording], method: str, refit: str) -> None:
    if not ident.model.is_rigid:
        raise ModelError("a payload needs a model with rigid joints", got="springs", remedy="identify without model.elastic")
    check_known("method", method, ("auto", *METHODS), EstimationError)
    check_known("choice of friction to refit", refit, ("auto", *REFIT), EstimationError)
    if not logs:
        raise LogError("no loaded log was given", remedy="name at least one")
    require_covariance(ident)
    refuse_trained({str(entry.get("sha256", "")): str(entry.get("name")) for entry in ident.inputs}, logs, *_LEARNT)
    for log in logs:
        if tuple(log.joints) != tuple(ident.model.robot.joints):
            raise LogError(
                "the log is of another robot",
                where=log.name,
                got=", ".join(log.joints),
                expected=", ".join(ident.model.robot.joints),
            )


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


def _gain_error(ident: Identification, given: float | None) -> Array:
    if given is not None:
        if not (np.isfinite(given) and 0 <= given < 1):
            raise EstimationError("unusable error of the torque constants", got=given, expected="a fraction, 0 to 1")
        return np.full(ident.model.n, float(given))
    known = ident.model.drive.gain_error
    return np.zeros(ident.model.n) if known is None else np.array(known)


def _refit(problem: PayloadProblem, logs: Sequence[PreparedLog]) -> str:
    """ "friction" if any friction parameter of the loaded logs has changed significantly (Bonferroni), else "none"."""
    from scipy.special import ndtr

    trial = estimate_payload(problem, logs, refit="friction")
    chances = [2.0 * ndtr(-abs(v) / positive(e)) for v, e in trial.changes.values()]
    return "friction" if any(p < _LEVEL / len(chances) for p in chances) else "none"


def _same_body(problem: PayloadProblem, logs: Sequence[PreparedLog], refit: str) -> None:
    """Refuses logs with different payloads."""
    from scipy.special import chdtrc

    if len(logs) < 2:
        return
    fits = [estimate_payload(problem, [log], refit=refit) for log in logs]
    mass = np.array([fit.params[0] for fit in fits])
    variance = np.array([fit.noise[0, 0] for fit in fits])
    mean = float(np.sum(mass / variance) / np.sum(1.0 / variance))
    chi_square = float(np.sum((mass - mean) ** 2 / variance))
    if chdtrc(len(logs) - 1, chi_square) < _CHANCE and np.ptp(mass) > _DIFFERENT * abs(mean):
        each = ", ".join(f"{log.name} {m:.4g} ± {np.sqrt(v):.2g} kg" for log, m, v in zip(logs, mass, variance, strict=True))
        raise EstimationError("these logs do not carry the same body", got=each, remedy="one call a payload")


def _result(problem: PayloadProblem, link: str, logs: tuple[str, ...], estimate: _Estimate) -> PayloadResult:
    fit = estimate.fit
    quantities = payload_quantities(fit)
    verdicts, advice = known_quantities(problem, fit, quantities, estimate.rate)
    how = {"held": "unloaded model held", "joint": "estimated together with the unloaded logs"}[fit.method]
    return PayloadResult(
        problem.model.robot.name,
        link,
        quantities.value,
        quantities.std_error,
        quantities.interval,
        verdicts,
        advice,
        _sources(fit, quantities),
        f"{how}; {fit.covariance_kind}",
        "static" if estimate.rate is None else "motion",
        logs,
        estimate.notes,
        dict(fit.changes),
        dict(fit.sigma),
        payload_verdict(fit, quantities, estimate.ratios, estimate.elsewhere),
    )


def _sources(fit: PayloadFit, quantities: Quantities) -> dict[str, float]:
    """Standard error of the mass by source [kg]."""
    parts = {"noise": fit.noise, "unloaded model": fit.unloaded, "torque constants": fit.gains}
    sources = {name: float(np.sqrt(max(matrix[0, 0], 0.0))) for name, matrix in parts.items()}
    return {**sources, "contradiction": float(-fit.params[0])} if quantities.impossible else sources
