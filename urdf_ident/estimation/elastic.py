"""Stiffness from encoders: least squares in which the noise on the deflection does not bias the spring.

A link row ``L(theta) − K d = 0`` contains a small difference of two encoders, d, and target zero. The noise is on d, so
that plain least squares underestimates K (errors in variables), and repeated weighting by the residual would shrink all
parameters. Divided by K the row is ``L(theta)/K − d = 0``: the noisy quantity is now the measurement, and no scaling of theta
makes the residual vanish. The torque is measured in the sum of link and motor rows, in which the deflection cancels; both kinds
of row are then independent. This is the maximum-likelihood estimate for noise on deflection and torque. The division makes it
non-linear, in K alone: Gauss-Newton on the triangular factors needs a few iterations and no further pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, positive, rms, triangle
from ..logs.recording import Recording
from ..logs.refusals import each_usable
from ..model.base import BaseParameters, random_motion
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.prior import inertial_prior
from ..model.rigid_bodies import rigid_torque
from ..model.row_groups import joint_of
from ..signals.filters import lowpass
from ..signals.motor_side import (
    Deflection,
    check_gears,
    check_springs,
    deflections,
    joint_side,
    require_effect,
    visible_stiffness,
)
from ..signals.prepare import PreparedLog
from ..statistics.fit import Fit, fit_base
from ..statistics.least_squares import MOST_ROUNDS
from ..statistics.statistic import Layout, Statistic, StatisticSet, is_measured

#: Encoder step [rad or m] that is assumed where the project file gives none.
ASSUMED_STEP = 2 * np.pi / 2**20
#: The stiffness has converged if it changes by less than this fraction, or this share of its standard error: if the deflection
#: is noisy, rounding alone changes it by more than the fraction.
TOLERANCE, TOLERANCE_IN_ERRORS = 1e-9, 1e-4
#: Iteration after which the weights of the row groups are fixed.
FREEZE = 4


def compliance_form(statistics: StatisticSet, model: ElasticModel, base: BaseParameters) -> StatisticSet:
    """Divides link rows by their stiffness (and scales them back to torque), linearized around the estimate.

    Fitting the result by :func:`.fit.fit_base` gives the estimate itself, with its covariance.

    Raises:
        EstimationError: An estimated stiffness is zero or negative, or the iteration does not converge.
    """
    springs = _stiffness_columns(statistics, model)
    if not springs:
        return statistics
    # WLS with weights from OLS residuals; a stiffness that is not positive is replaced by the inverse regression's
    plain = fit_base(statistics, base, method="ols")
    theta = base.embedded(fit_base(statistics, base, weights=plain.weights).params)
    for group, k in springs.items():
        R, place = _columns(statistics.factor(group), statistics.layout(group))
        spring = -R[:, place[k]]
        torque = R[:, :-1] @ theta[statistics.layout(group).columns] - R[:, -1] + theta[k] * spring
        cross = float(torque @ spring)
        if theta[k] <= 0 and cross > 0:
            theta[k] = float(torque @ torque) / cross
        if not theta[k] > 0:
            raise EstimationError(
                "no spring is found between motor and link",
                where=joint_of(group),
                got=f"a stiffness of {theta[k]:.4g}",
                remedy="its deflection is below the noise (record larger torques or list it as rigid), or encoders are swapped",
            )
    weights: Mapping[str, float] | None = None
    for turn in range(MOST_ROUNDS):
        before = {k: theta[k] for k in springs.values()}
        fit = fit_base(_linear(statistics, springs, theta), base, weights=weights)
        theta = base.embedded(fit.params)
        if turn == FREEZE:  # the weights are accurate enough, and fixed for convergence
            weights = fit.weights
        _check_positive(springs, theta)
        error = base.embedded(np.where(fit.seen, fit.bse, 0.0))
        if all(abs(theta[k] - old) < max(TOLERANCE * old, TOLERANCE_IN_ERRORS * error[k]) for k, old in before.items()):
            return _linear(statistics, springs, theta)
    raise EstimationError(
        "the stiffness does not converge",
        got=", ".join(f"{model.names[k]} {theta[k]:.4g}" for k in springs.values()),
        remedy="the deflection is below the noise: record larger torques, or treat these joints as rigid",
    )


def compliance_at(statistics: StatisticSet, model: DynamicModel, theta: Array) -> StatisticSet:
    """Returns the compliance form around any given parameters, for estimators with their own iteration.

    Args:
        statistics: Statistics of the model, with instruments or without; those of a rigid model are returned unchanged.
        theta: Parameters, shape (p,).

    Raises:
        EstimationError: A stiffness is zero or negative.
    """
    if not isinstance(model, ElasticModel):
        return statistics
    springs = _stiffness_columns(statistics, model)
    _check_positive(springs, theta)
    return _linear(statistics, springs, theta)


def check_drive_used(model: DynamicModel, recordings: Sequence[Recording], *, deformation: bool = False) -> None:
    """Refuses gear ratios and zeros that change nothing; springs, and a residual of the deformation, always need them."""
    if not isinstance(model, ElasticModel):
        require_effect(recordings, model.drive, motors_used=deformation)


def check_motors(model: DynamicModel, recordings: Sequence[Recording]) -> None:
    """Refuses logs for springs whose motor positions are missing or do not match the gears, before their units are checked."""
    if isinstance(model, ElasticModel):
        each_usable(lambda recording: check_gears(joint_side(recording, model.drive), model.drive), recordings)


def resolved_springs(model: DynamicModel, logs: Sequence[PreparedLog]) -> tuple[DynamicModel, list[dict[str, Any]], list[str]]:
    """Checks that springs absorb work, and makes joints rigid whose deflection the encoders cannot resolve.

    Returns:
        The model to identify, data on each joint's deflection (from the log with the largest one), and notes.
    """
    if not isinstance(model, ElasticModel):
        return model, [], []
    best: list[Deflection] = []
    for log in logs:
        recording = log.report.recording
        of_log = deflections(recording, log.segments, model.drive, step=model.encoder_step, least=model.least_counts)
        check_springs(recording, log.segments, of_log, model.drive)
        best = [max(pair, key=lambda deflection: deflection.counts) for pair in zip(best or of_log, of_log, strict=True)]
    hidden = [deflection for deflection in best if not deflection.seen]
    notes = [
        f"the stiffness of '{spring.joint}' is not seen: its spring moves {spring.counts:.2g} encoder counts "
        f"({spring.rms:.2g} rad or m rms), {spring.least:g} are needed; the joint is identified as rigid"
        for spring in hidden
    ]
    rigid = {*model.rigid, *(spring.joint for spring in hidden)}
    return model.with_rigid(rigid), [deflection.as_dict() for deflection in best], notes


def stiffest_springs(model: DynamicModel) -> list[dict[str, Any]]:
    """Returns the stiffest spring that each joint's encoders could resolve, under gravity alone and in vigorous motion.

    Returns:
        One entry per joint; none of a rigid model.
    """
    if not isinstance(model, ElasticModel):
        return []
    robot = model.robot
    motion = random_motion(robot, 400)
    torque_of = partial(rigid_torque, robot, inertial_prior(robot).theta0)
    still = np.zeros_like(motion.q)
    to_motors = np.linalg.inv(model.drive.geared)
    torques = [torque_of(motion.q, v, a) @ to_motors for v, a in ((still, still), (motion.v, motion.a))]
    slow, fast = (np.std(torque, axis=0) for torque in torques)
    slow[slow < 1e-9 * fast.max()] = 0.0  # rounding errors
    step = ASSUMED_STEP if model.encoder_step is None else model.encoder_step
    return [
        {
            "joint": joint,
            "encoder_step": step,
            "assumed": model.encoder_step is None,
            "torque": [float(slow[j]), float(fast[j])],
            "stiffest": [float(visible_stiffness(torque, step, model.least_counts)[j]) for torque in (slow, fast)],
        }
        for j, joint in enumerate(robot.joints)
    ]


def spring_scores(model: DynamicModel, theta: Array, log: PreparedLog, cutoff: float) -> list[dict[str, Any]]:
    """Returns the errors of the motor torque predicted by motor rows with their springs.

    Args:
        theta: Parameters, shape (p,).
        cutoff: Zero-phase low-pass of the measured torque [Hz].

    Returns:
        One entry per elastic joint, none of a rigid model: error after the gear [N·m or N], the same relative to the torque,
        and the torque of the spring.

    Raises:
        LogError: The log has no torque.
    """
    if not isinstance(model, ElasticModel):
        return []
    errors, torques, through = [], [], []
    to_motors = np.linalg.inv(model.drive.geared)
    for part in log.segments:
        tau = lowpass(part.measured, part.rate, cutoff)
        errors.append((tau - model.balance(theta, part)[1]) @ to_motors)
        torques.append(tau @ to_motors)
        through.append(model.spring_torque(theta, part) @ to_motors)
    error, effort, spring = (rms(np.vstack(rows), 0) for rows in (errors, torques, through))
    return [
        {
            "joint": joint,
            "motor_rmse": float(error[j]),
            "motor_relative": float(error[j] / positive(effort[j])),
            "spring_rms": float(spring[j]),
        }
        for j, joint in enumerate(model.robot.joints)
        if joint not in model.rigid
    ]


def compliant(model: DynamicModel, *, build: Callable[..., StatisticSet], base: BaseParameters, **options: Any) -> StatisticSet:
    """Builds the statistics of any model, in compliance form for an elastic one.

    Args:
        options: Options of ``build``.
    """
    statistics = build(model, **options)
    return compliance_form(statistics, model, base) if isinstance(model, ElasticModel) else statistics


def stiffness_bounds(statistics: StatisticSet, model: ElasticModel, theta: Array) -> dict[str, tuple[float, float]]:
    """Bounds of each stiffness, between which the true value is (Frisch).

    The torque of the links, which the sum of the rows determines without any spring, and the deflection explain each other: a
    regression on the deflection is too small by the noise of the deflection, the inverse one too large by the error of the
    torque.

    Args:
        statistics: Statistics with link rows, as built (not in compliance form).
        theta: Parameters, shape (p,).

    Returns:
        Of each elastic joint, after the gear [N·m/rad or N/m].
    """
    bounds = {}
    for group, k in _stiffness_columns(statistics, model).items():
        layout = statistics.layout(group)
        R, place = _columns(statistics.factor(group), layout)
        others = theta[layout.columns].copy()
        others[place[k]] = 0.0
        torque = R[:, :-1] @ others - R[:, -1]  # K d = −(rest of the row), the deflection's column being −d
        spring = -R[:, place[k]]
        cross, size, geared = float(torque @ spring), float(spring @ spring), model.after_gear(k)
        direct = cross / size if size > 0 else 0.0
        inverse = float(torque @ torque) / cross if cross != 0 else np.inf
        bounds[model.robot.joints[layout.joint]] = geared * direct, geared * inverse
    return bounds


def with_row_sum(
    springs: list[dict[str, Any]], model: DynamicModel, statistics: StatisticSet, fit: Fit
) -> list[dict[str, Any]]:
    """Adds the bounds of its stiffness to each spring, and its reliability: the share of the deflection's power it explains.

    Args:
        springs: Entries from :func:`resolved_springs`.
        statistics: Statistics in compliance form.

    Returns:
        The entries, those of elastic joints with ``stiffness_bounds`` and ``reliability``; unchanged for an IV fit, because
        both regressions contain the noise on the motion that IV avoids.
    """
    if not isinstance(model, ElasticModel) or fit.method == "iv":
        return springs
    theta, columns = fit.base.embedded(fit.params), _stiffness_columns(statistics, model)
    plain = replace(statistics, entries=tuple(_moved(statistics, columns, theta, 1.0)))  # the inverse of _linear
    bounds = stiffness_bounds(plain, model, theta)
    extended = []
    for spring in springs:
        low, high = bounds.get(spring["joint"], (0.0, 0.0))
        known = {"stiffness_bounds": [low, high], "reliability": low / high if high > 0 else 0.0}
        extended.append({**spring, **(known if spring["joint"] in bounds else {})})
    return extended


def _stiffness_columns(statistics: StatisticSet, model: ElasticModel) -> dict[str, int]:
    """Link row group → index of its stiffness in theta."""
    return {layout.group: model.of_spring(layout.joint) for layout in statistics.layouts if not is_measured(layout.group)}


def _columns(R: Array, layout: Layout) -> tuple[Array, dict[int, int]]:
    """A factor without its instruments, and the position of each parameter's column."""
    return R[:, len(layout.instruments) :], {int(k): place for place, k in enumerate(layout.columns)}


def _check_positive(springs: Mapping[str, int], theta: Array) -> None:
    for group, k in springs.items():
        if not (np.isfinite(theta[k]) and theta[k] > 0):
            raise EstimationError(
                "no positive stiffness fits the log",
                where=joint_of(group),
                got=f"{theta[k]:.4g}",
                remedy="are motor and link encoders swapped, or is the joint too stiff for them (elastic: {rigid: [...]})?",
            )


def _linear(statistics: StatisticSet, springs: dict[str, int], theta: Array) -> StatisticSet:
    """Gauss-Newton form of ``K0 (R theta − t)/K`` at theta: the K column is reduced by r/K0, the target is t − r."""
    moved = _moved(statistics, springs, theta, -1.0)
    entries = [replace(entry, factor=triangle(entry.R), expansion=None) if entry.group in springs else entry for entry in moved]
    return replace(statistics, entries=tuple(entries), fingerprint=f"{statistics.fingerprint} compliance")


def _moved(statistics: StatisticSet, springs: dict[str, int], theta: Array, sign: float) -> Iterator[Statistic]:
    """Yields the entries; for those with a spring ``sign · r/K0`` is added to the K column and ``sign · r`` to the target."""
    for entry in statistics.entries:
        if entry.group in springs:
            layout = statistics.layout(entry.group)
            whole = entry.R
            R, place = _columns(np.array(whole), layout)
            k = springs[entry.group]
            residual = R[:, :-1] @ theta[layout.columns] - R[:, -1]
            R[:, place[k]] += sign * residual / theta[k]
            R[:, -1] += sign * residual
            entry = replace(entry, factor=np.column_stack([whole[:, : len(layout.instruments)], R]), expansion=None)
        yield entry
