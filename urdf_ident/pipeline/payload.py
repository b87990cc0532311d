"""Identifies a payload: mass, centre of mass and inertia with standard errors, from a result and loaded logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from ..consistency.single_body import most_likely_body
from ..data.prepare import PreparedLog, prepare_logs
from ..data.recording import Recording
from ..data.refusals import refuse_trained
from ..errors import EstimationError, LogError, ModelError, check_known
from ..estimation.estimators.payload import METHODS, REFIT, PayloadFit, PayloadProblem, estimate_payload, with_usual_gears
from ..estimation.estimators.resting import weigh_rests
from ..estimation.estimators.static_poses import estimate_static, pose_notes, resting_poses
from ..estimation.uncertainty.identifiability import IDENTIFIABLE, KNOWN, LOST, NOTHING, WEAK
from ..estimation.uncertainty.simple_motions import SECONDS, STATES, simple_motions
from ..linalg import Array, positive, triangle
from ..model.elasticity import ElasticModel
from ..model.inertia import to_com, transform_matrix
from ..model.payload import moving_link
from ..model.robot import Robot
from ..parallel import one_thread
from ..result.identification import Identification
from ..result.payload import PayloadResult
from ..statistics.distributions import chi_square_tail, normal_tail, student_quantile
from .common_terms import require_covariance

#: Significance level of the tests (friction has changed, payloads differ) and of the intervals.
_LEVEL = 0.05
#: Logs disagree on the mass below this p-value if the difference also exceeds this share of the mass.
_CHANCE, _DIFFERENT = 1e-3, 0.03
#: The joint estimate is preferred if the standard error of its mass is at most this share of the other's.
_BETTER = 0.9
#: Relative standard errors of the mass below which the verdict is good, and above which it is poor.
_GOOD, _POOR = 0.02, 0.2
#: Assumed size of a body whose centre of mass or inertia is small [m].
_SIZE = 0.05
#: Indices of the mass and the moments of inertia, which are never negative.
_BOUNDED = [0, 4, 7, 9]
#: Number of standard errors from which the centre of a negative mass is reported.
_SIGNIFICANT = 10.0
#: Ratio of the loaded logs' residual to the unloaded logs' from which it is reported.
_NOISIER = 1.5
#: The same ratio from which the verdict is not good, whatever the standard error (one torque constant 3 % off: 5 to 13).
_UNEXPLAINED = 4.0
#: Residual of a joint over that with a body on another link, from which the body is said to sit there if that is likelier.
_BETTER_LINK = 2.0
#: Message and remedy for a loaded log that the unloaded model was fitted to.
_LEARNT = ("this log is one of the training logs of the unloaded model", "name logs that carry the payload")


@one_thread()
def weigh(
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
    robot, project = ident.model.robot, ident.project
    name, names = link or default_link(robot), tuple(log.name for log in logs)
    body, place = moving_link(robot, name)
    errors = _gain_error(ident, gain_error)
    placement = transform_matrix(place.rotation, place.translation)
    problem = with_usual_gears(PayloadProblem(ident.model, ident.fit, ident.factor, body, placement, errors))
    if static:
        poses = resting_poses(logs, robot, ident.model.drive)
        fit, notes = estimate_static(problem, poses), pose_notes(problem, poses)
        elsewhere = _other_link(problem, fit, partial(estimate_static, poses=poses))
        noisier: Mapping[str, float] = {}  # not compared: static friction is indeterminate
        return _result(ident, problem, fit, name, "static", names, notes, 100.0, noisier, elsewhere)
    as_learnt = {key: ident.signals[key] for key in ("cutoff", "decimate") if key in ident.signals}
    config = replace(project.signal_config(), **as_learnt, reason="as of the unloaded logs")
    read = prepare_logs(logs, robot, ident.model.drive, config, force=force, payload=project.build_payload(robot))
    prepared, held = weigh_rests(ident.model.unloaded(), read, config)
    chosen = _refit(problem, prepared) if refit == "auto" else refit
    fit = _estimated(problem, prepared, method, chosen)
    _same_body(problem, prepared, chosen)
    noisier = _noisier(ident, fit)
    notes = (*_remarks(ident, fit, chosen, errors, gain_error, noisier), *held)
    doubtful = not noisier or max(noisier.values()) > _UNEXPLAINED
    elsewhere = _other_link(problem, fit, partial(estimate_payload, logs=prepared, refit=chosen)) if doubtful else ""
    rate = prepared[0].conditioned.decimate_rate
    return _result(ident, problem, fit, name, "motion", names, notes, rate, noisier, elsewhere)


def _estimated(problem: PayloadProblem, logs: Sequence[PreparedLog], method: str, refit: str) -> PayloadFit:
    """The estimate by one method, or the more precise one."""
    if method != "auto":
        return estimate_payload(problem, logs, method=method, refit=refit)
    held, joint = (estimate_payload(problem, logs, method=each, refit=refit) for each in ("held", "joint"))
    return joint if joint.bse[0] < _BETTER * held.bse[0] else held


def default_link(robot: Robot) -> str:
    """Link to which a payload is usually attached.

    Returns:
        ``tool0`` if it moves, otherwise the last link of the body with the most joints before it.
    """
    if "tool0" in [link.name for body in robot.bodies for link in body.links]:
        return "tool0"
    return robot.last_link


def _check(ident: Identification, logs: Sequence[Recording], method: str, refit: str) -> None:
    if isinstance(ident.model, ElasticModel):
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
    trial = estimate_payload(problem, logs, refit="friction")
    chances = [2.0 * normal_tail(abs(v) / positive(e)) for v, e in trial.changes.values()]
    return "friction" if any(p < _LEVEL / len(chances) for p in chances) else "none"


def _same_body(problem: PayloadProblem, logs: Sequence[PreparedLog], refit: str) -> None:
    """Refuses logs with different payloads."""
    if len(logs) < 2:
        return
    fits = [estimate_payload(problem, [log], refit=refit) for log in logs]
    mass = np.array([fit.params[0] for fit in fits])
    variance = np.array([fit.noise[0, 0] for fit in fits])
    mean = float(np.sum(mass / variance) / np.sum(1.0 / variance))
    chi_square = float(np.sum((mass - mean) ** 2 / variance))
    if chi_square_tail(chi_square, len(logs) - 1) < _CHANCE and np.ptp(mass) > _DIFFERENT * abs(mean):
        each = ", ".join(f"{log.name} {m:.4g} ± {np.sqrt(v):.2g} kg" for log, m, v in zip(logs, mass, variance, strict=True))
        raise EstimationError("these logs do not carry the same body", got=each, remedy="one call a payload")


def _remarks(
    ident: Identification, fit: PayloadFit, refit: str, errors: Array, given: float | None, noisier: Mapping[str, float]
) -> tuple[str, ...]:
    notes = []
    if refit == "friction":
        far = max(fit.changes.items(), key=lambda item: abs(item[1][0]) / positive(item[1][1]), default=None)
        words = "" if far is None else f", most {far[0]} by {far[1][0]:+.3g} ± {far[1][1]:.2g}"
        notes.append(f"friction of the loaded logs differs from that of the unloaded ones: estimated again{words}")
    if not errors.any() and given is None:
        notes.append("torque constants are assumed to be exact; an error of 1 % changes the mass by 1 % (--gain-error 0.01)")
    if not fit.converged:
        notes.append("load-dependent friction did not converge: it is too large to be separated from the payload")
    unseen = int((~ident.fit.seen).sum())
    if unseen and fit.method == "held":
        notes.append(
            f"{unseen} base parameters of the unloaded robot are unknown; their effect in these logs is attributed to the body"
        )
    noisy = [name.split(":", 1)[-1] for name, times in noisier.items() if times > _NOISIER]
    if noisy:
        notes.append(
            f"the residual of {', '.join(noisy)} is more than {_NOISIER:g} times the unloaded robot's: a load that is "
            "not rigid, friction or a torque constant that has changed?"
        )
    return tuple(notes)


def _noisier(ident: Identification, fit: PayloadFit) -> dict[str, float]:
    """Ratio of the loaded logs' residual to the unloaded logs' per row group; empty where outliers were down-weighted."""
    if ident.estimation.get("down_weighted"):
        return {}
    return {name: value / ident.fit.sigma[name] for name, value in fit.sigma.items() if ident.fit.sigma.get(name)}


def _other_link(problem: PayloadProblem, fit: PayloadFit, estimate: Callable[[PayloadProblem], PayloadFit]) -> str:
    """Names the link on which a body explains the residual that one on this link leaves; empty if there is none."""
    found = list[tuple[float, str, str, float]]()
    for k, body in enumerate(problem.model.robot.bodies):
        if k == problem.body:
            continue
        with suppress(EstimationError):  # it loads no joint
            other = estimate(replace(problem, body=k, placement=np.eye(10)))
            gains = {name: value / positive(other.sigma[name]) for name, value in fit.sigma.items()}
            loudest = max(gains, key=lambda name: gains[name])
            if other.params[0] > 2.0 * other.bse[0] and gains[loudest] > _BETTER_LINK:
                likelihood = float(np.log(list(gains.values())).sum())
                found.append((likelihood, body.links[0].name, loudest.split(":", 1)[-1], gains[loudest]))
    likelihood, link, joint, gain = max(found, default=(0.0, "", "", 0.0))
    if likelihood <= 0:
        return ""
    return (
        f"a body on {link}, or on a link fixed to it, explains these logs better: the residual of {joint} is {gain:.3g} times "
        "smaller; name the link that carries it (--link)"
    )


def _result(
    ident: Identification,
    problem: PayloadProblem,
    fit: PayloadFit,
    link: str,
    mode: str,
    logs: tuple[str, ...],
    notes: tuple[str, ...],
    rate: float,
    noisier: Mapping[str, float],
    elsewhere: str,
) -> PayloadResult:
    nearest = most_likely_body(fit.params, _precision(fit))
    value, raw = _quantities(nearest), _quantities(fit.params)
    slopes = _slopes(fit.params if fit.params[0] > 0 else nearest)
    error = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", slopes, fit.covariance, slopes), 0.0))
    undetermined = np.asarray((np.abs(slopes[:, ~fit.seen]) > 0).any(axis=1))
    if not fit.params[0] > 2.0 * fit.bse[0]:  # without a mass, centre of mass and inertia are undefined
        undetermined[1:] = True
    error = np.where(undetermined, np.inf, error)
    reach = np.array([student_quantile(1 - _LEVEL / 2, fit.dof(row)) for row in slopes]) * error
    reach = np.where(undetermined, np.inf, reach)
    raw = np.where(np.isfinite(raw), raw, value)
    below = np.zeros(10)
    below[_BOUNDED] = np.maximum(-(raw + reach)[_BOUNDED], 0.0)
    contrary = below > 0  # physically impossible: the data are wrong in something else by at least this much
    reach = np.where(contrary, reach - raw, reach)
    error = np.where(contrary, np.hypot(error, raw), error)
    interval = np.column_stack([raw - reach, raw + reach])
    interval[_BOUNDED] = np.column_stack([raw - reach, np.maximum(raw, 0.0) + reach])[_BOUNDED].clip(min=0.0)
    interval = np.column_stack([np.minimum(interval[:, 0], value), np.maximum(interval[:, 1], value)])
    verdicts, advice = _verdicts(problem, fit, value, error, slopes, rate, static=mode == "static")
    parts = {"noise": fit.noise, "unloaded model": fit.unloaded, "torque constants": fit.gains}
    sources = {name: float(np.sqrt(max(matrix[0, 0], 0.0))) for name, matrix in parts.items()}
    if contrary[0]:
        sources["contradiction"] = float(-raw[0])
    how = {"held": "unloaded model held", "joint": "estimated together with the unloaded logs"}[fit.method]
    return PayloadResult(
        ident.model.robot.name,
        link,
        value,
        error,
        interval,
        verdicts,
        advice,
        sources,
        f"{how}; {fit.covariance_kind}",
        mode,
        logs,
        notes,
        dict(fit.changes),
        dict(fit.sigma),
        _verdict(fit, float(value[0]), float(error[0]), interval[0], noisier, elsewhere, bool(contrary[0])),
    )


def _precision(fit: PayloadFit) -> Array:
    """A factor of the inverse covariance, zero for unobserved parameters, shape (k, 10)."""
    scale = np.where(fit.seen, np.sqrt(positive(np.diag(fit.covariance))), 1.0)
    shape = fit.covariance / np.outer(scale, scale)
    shape[~fit.seen] = shape[:, ~fit.seen] = 0.0
    values, vectors = np.linalg.eigh(shape)
    kept = values > 1e-12 * values.max(initial=0.0)
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T / scale)


def _quantities(theta: Array) -> Array:
    """Mass, centre of mass, and inertia about it in the order of a URDF, shape (10,)."""
    mass, com, inertia = to_com(theta)
    return np.concatenate([[float(mass)], com, inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]])


def _slopes(theta: Array) -> Array:
    """Derivatives of :func:`_quantities` with respect to the ten parameters, shape (10, 10)."""
    reach = max(float(np.sqrt(np.abs(theta[4:]).max() / abs(theta[0]))), 1e-2)
    steps = 1e-6 * abs(theta[0]) * np.array([1.0, *[reach] * 3, *[reach**2] * 6])
    moved = [(_quantities(theta + row) - _quantities(theta - row)) for row in np.diag(steps)]
    return np.asarray(np.array(moved).T / (2.0 * steps))


def _verdict(
    fit: PayloadFit,
    mass: float,
    error: float,
    interval: Array,
    noisier: Mapping[str, float],
    elsewhere: str,
    contrary: bool,
) -> dict[str, object]:
    if contrary:
        taken, own = -fit.params[0], fit.bse[0]
        words = f"the logs imply a mass of {-taken:.3g} ± {own:.2g} kg, which is impossible: they differ in something else"
        other_cause = ""
        if taken > _SIGNIFICANT * own:
            place = ", ".join(f"{x:.3g}" for x in -fit.params[1:4] / taken)
            other_cause = f" (a tool of {taken:.3g} kg at ({place}) m on the unloaded robot only would explain it)"
        remedy = (
            f"check whether loaded and unloaded logs were exchanged{other_cause}, whether torque constants or offsets have "
            "changed, and how the unloaded model does on another unloaded log (`validate`)"
        )
        return {"level": "poor", "reasons": [words, remedy]}
    if elsewhere:
        return {"level": "poor", "reasons": [elsewhere]}
    loudest = max(noisier, key=lambda name: noisier[name], default="")
    odd = ""
    if loudest and noisier[loudest] > _UNEXPLAINED:
        times = f"{noisier[loudest]:.2g} times the unloaded robot's"
        odd = f"the residual of {loudest.split(':', 1)[-1]} is {times} and not explained by the body"
    if interval[0] <= 0 or not np.isfinite(error):
        nothing = "the interval includes 0 kg: these logs may contain no payload"
        other = f"{odd}; check whether it sits on another link (--link), or friction or torque constants have changed"
        return {"level": "poor", "reasons": [other if odd else nothing]}
    share = error / mass
    level = "good" if share < _GOOD else "usable" if share < _POOR else "poor"
    reasons = [f"the mass is known to ± {100 * share:.3g} %"]
    if odd:
        level = "poor" if level == "poor" else "usable"
        reasons.append(f"{odd} (another torque constant, contact, a swinging load?); standard errors do not cover this")
    return {"level": level, "reasons": reasons}


def _verdicts(
    problem: PayloadProblem, fit: PayloadFit, value: Array, error: Array, slopes: Array, rate: float, *, static: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """For each quantity, how well it is known and the simplest motion that would improve it."""
    gyration = max(float(np.sqrt(max(value[[4, 7, 9]].max(), 0.0) / positive(value[0]))), _SIZE)
    far = max(float(np.abs(value[1:4]).max()), _SIZE)
    size = np.concatenate([[positive(value[0])], np.full(3, far), np.full(6, value[0] * gyration**2)])
    levels = [IDENTIFIABLE if share <= KNOWN else WEAK if share <= NOTHING else LOST for share in error / size]
    if all(level == IDENTIFIABLE for level in levels) or not fit.params[0] > 2.0 * fit.bse[0]:
        return tuple(levels), ("",) * 10
    if static:
        words = "move the loaded arm: poses at rest show no inertia"
        poses = "more poses that tilt the body about other axes"
        return tuple(levels), tuple(
            "" if known == IDENTIFIABLE else words if k > 3 else poses for k, known in enumerate(levels)
        )
    weights = {name: 1.0 / value for name, value in fit.sigma.items()}
    trials = []
    loaded, information = problem.loaded(fit.params), _precision(fit)
    for motion in simple_motions(problem.model.robot):
        factor = np.zeros((0, 10))
        for _, blocks in loaded.row_blocks(replace(motion.states, reference_torque=None), chunk=STATES):
            for group, block in zip(loaded.groups, blocks, strict=True):
                if loaded.p in group.columns:
                    begin = int(np.flatnonzero(group.columns == loaded.p)[0])
                    factor = triangle(factor, block[:, begin : begin + 10] * weights[group.name])
        informed = np.vstack([information, factor * np.sqrt(SECONDS * rate / STATES)])
        covariance = np.linalg.pinv(informed.T @ informed, hermitian=True)
        trials.append((motion.words, np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", slopes, covariance, slopes), 0.0))))
    advice = []
    for k, level in enumerate(levels):
        best = min(left[k] for _, left in trials)
        words = next(text for text, left in trials if left[k] <= max(1.15 * best, KNOWN * size[k]))
        helps = level != IDENTIFIABLE and best < 0.7 * error[k]
        advice.append(words if helps else "" if level == IDENTIFIABLE else "a heavier body, or more and faster motion")
    return tuple(levels), tuple(advice)
