"""Stiffness from encoders: least squares in which the noise on the deflection does not shrink the spring.

A link row ``L(theta) − K d = 0`` holds a small difference of two encoders, d, and target zero. Its noise is on d, so
that plain least squares shrinks K (errors in variables), and weights that are taken from its residual again and again
would shrink everything. Divided by K the row reads ``L(theta)/K − d = 0``: now the noisy quantity stands alone, as a
measurement should, and no scale of theta makes the residual vanish. The torque is measured in the sum of link and
motor rows, where the deflection drops out; both kinds of row are then independent of each other. This is the
maximum-likelihood estimate for noise on deflection and torque. The division makes it non-linear, in K alone: Gauss-Newton
on the triangular factors needs a handful of rounds and no further pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..data.conditioning.filters import lowpass
from ..data.joint_side import joint_side
from ..data.motor_side import Deflection, check_gears, check_springs, deflections
from ..data.prepare import PreparedLog
from ..data.recording import Recording
from ..data.refusals import each_usable
from ..errors import EstimationError, LogError
from ..linalg import Array, triangle
from ..model.base import BaseParameters
from ..model.drive import Drive
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..statistics.entries import Statistic
from ..statistics.fit import Fit, fit_base
from ..statistics.statistic import Layout, StatisticSet

#: Stiffness has converged when it changes by less than this fraction, or by this part of its standard error: where the
#: deflection is noisy, rounding alone moves it by more than the fraction.
TOLERANCE, TOLERANCE_IN_ERRORS = 1e-9, 1e-4
#: Rounds before the search is given up.
ROUNDS = 60
#: Round after which the weights of the row groups are kept.
FREEZE = 4


def compliance_form(statistics: StatisticSet, model: ElasticModel, base: BaseParameters) -> StatisticSet:
    """Link rows divided by their stiffness (and scaled back to torque), linear around the estimate.

    Fitting the result by :func:`.fit.fit_base` gives the estimate itself, with its covariance.

    Args:
        statistics: Of the elastic model, with link rows.

    Returns:
        Statistics with the same columns and groups.

    Raises:
        EstimationError: A stiffness comes out zero or negative, or the search does not converge.
    """
    springs = _stiffness_columns(statistics, model)
    if not springs:
        return statistics
    theta = _start(statistics, base, springs)
    weights: Mapping[str, float] | None = None
    for turn in range(ROUNDS):
        before = {k: theta[k] for k in springs.values()}
        fit = fit_base(_linear(statistics, springs, theta), base, weights=weights)
        theta = base.embedded(fit.params)
        if turn == FREEZE:  # from here on the weights are right, and must not move under the search
            weights = fit.weights
        _check_positive(springs, theta)
        error = base.embedded(np.where(fit.seen, fit.bse, 0.0))
        if all(abs(theta[k] - old) < max(TOLERANCE * old, TOLERANCE_IN_ERRORS * error[k]) for k, old in before.items()):
            return _linear(statistics, springs, theta)
    raise EstimationError(
        "the stiffness does not converge",
        got=", ".join(f"{model.names[k]} {theta[k]:.4g}" for k in springs.values()),
        remedy="the deflection drowns in noise: record more torque, or take these joints as rigid",
    )


def compliance_at(statistics: StatisticSet, model: ElasticModel, theta: Array) -> StatisticSet:
    """The compliance form around given parameters, whether they fit or not: for estimators that search themselves.

    Args:
        statistics: Of the elastic model, with link rows; with instruments or without.
        theta: Parameters, shape (p,).

    Returns:
        Statistics with the same columns and groups.

    Raises:
        EstimationError: A stiffness is zero or negative.
    """
    springs = _stiffness_columns(statistics, model)
    _check_positive(springs, theta)
    return _linear(statistics, springs, theta)


def check_motors(model: DynamicModel, recordings: Sequence[Recording]) -> None:
    """Refuses logs whose motor positions are absent or do not fit the gears, before their units are judged.

    Args:
        model: The dynamic model; one without springs needs no motor positions.
        recordings: The logs as read.

    Raises:
        LogError: No motor positions, wrong gear ratios, swapped encoders.
    """
    if isinstance(model, ElasticModel):
        each_usable(partial(_check_motor, drive=model.drive), recordings)


def _check_motor(recording: Recording, drive: Drive) -> None:
    check_gears(joint_side(recording, drive), drive)


def visible_springs(model: DynamicModel, logs: Sequence[PreparedLog]) -> tuple[DynamicModel, list[dict[str, Any]], list[str]]:
    """Checks that springs take work, and takes joints as rigid whose deflection their encoders cannot show.

    Args:
        model: The dynamic model; one without springs is returned as it is.
        logs: The prepared logs.

    Returns:
        The model to identify, plain data on each joint's deflection (of the log that shows most of it), and notes.

    Raises:
        LogError: No motor positions, or swapped encoders.
    """
    if not isinstance(model, ElasticModel):
        return model, [], []
    best: list[Deflection] = []
    for log in logs:
        recording = log.report.recording
        found = deflections(recording, log.segments, model.drive, step=model.encoder_step, least=model.least_counts)
        check_springs(recording, log.segments, found, model.drive)
        best = [max(pair, key=lambda item: item.counts) for pair in zip(best or found, found, strict=True)]
    hidden = [item for item in best if not item.seen]
    notes = [
        f"the stiffness of '{item.joint}' is not seen: its spring moves {item.counts:.2g} encoder counts "
        f"({item.rms:.2g} rad or m rms), {item.least:g} are needed; the joint is identified as rigid"
        for item in hidden
    ]
    rigid = {*model.rigid, *(item.joint for item in hidden)}
    return model.with_rigid(rigid), [item.as_dict() for item in best], notes


def spring_scores(model: ElasticModel, theta: Array, log: PreparedLog, cutoff: float) -> list[dict[str, Any]]:
    """How well motor rows with their springs predict the motor torque of a log.

    Args:
        theta: Parameters, shape (p,).
        cutoff: Zero-phase low-pass of the measured torque [Hz].

    Returns:
        One entry per elastic joint: error after the gear [N·m or N], the same over the torque, and the torque through the
        spring.

    Raises:
        LogError: The log holds no torque.
    """
    errors, torques, through = [], [], []
    to_motors = np.linalg.inv(model.drive.geared)
    for part in log.segments:
        if part.tau is None:
            raise LogError("no torque or current in the log", where=log.name, remedy="name the effort columns")
        tau = lowpass(part.tau, part.rate, cutoff)
        errors.append((tau - model.balance(theta, part)[1]) @ to_motors)
        torques.append(tau @ to_motors)
        through.append(model.spring_torque(theta, part) @ to_motors)
    error, effort, spring = (np.sqrt(np.mean(np.vstack(rows) ** 2, axis=0)) for rows in (errors, torques, through))
    return [
        {
            "joint": joint,
            "motor_rmse": float(error[j]),
            "motor_relative": float(error[j] / max(effort[j], 1e-300)),
            "spring_rms": float(spring[j]),
        }
        for j, joint in enumerate(model.robot.joints)
        if joint not in model.rigid
    ]


def compliant(model: DynamicModel, *, build: Callable[..., StatisticSet], base: BaseParameters, **options: Any) -> StatisticSet:
    """Builds the statistics of any model; those of an elastic one in compliance form.

    Args:
        build: Makes its statistics from the data.
        options: Of the build.

    Returns:
        The statistics.
    """
    statistics = build(model, **options)
    return compliance_form(statistics, model, base) if isinstance(model, ElasticModel) else statistics


@dataclass(frozen=True)
class StiffnessCheck:
    """A stiffness seen from both sides: the truth lies between the two regressions (Frisch).

    Attributes:
        joint: Name of the joint.
        direct: Spring torque on deflection, after the gear: too small by the noise of the deflection [N·m/rad or N/m].
        inverse: Deflection on spring torque: too large by the error of the torque [N·m/rad or N/m].
        deflection_rms: Of the deflection after the gear, offset removed where the model has one [rad or m].
    """

    joint: str
    direct: float
    inverse: float
    deflection_rms: float

    @property
    def reliability(self) -> float:
        """Share of the deflection's power that the spring explains, 0..1; a stiffness below one half is a guess."""
        return self.direct / self.inverse if self.inverse > 0 else 0.0


def check_stiffness(statistics: StatisticSet, model: ElasticModel, theta: Array) -> tuple[StiffnessCheck, ...]:
    """Compares springs with the torque that the links need, which the sum of the rows determines without any spring.

    Args:
        statistics: With link rows, as built (not in compliance form).
        theta: Parameters, shape (p,).

    Returns:
        One check per elastic joint.
    """
    checks = []
    for group, k in _stiffness_columns(statistics, model).items():
        layout = statistics.layout(group)
        R, place = _columns(statistics.factor(group), layout)
        others = theta[layout.columns].copy()
        others[place[k]] = 0.0
        torque = R[:, :-1] @ others - R[:, -1]  # K d = −(rest of the row), the deflection's column being −d
        spring = -R[:, place[k]]
        cross, rows = float(torque @ spring), statistics.rows[group]
        size = float(spring @ spring)
        direct = cross / size if size > 0 else 0.0
        inverse = float(torque @ torque) / cross if cross != 0 else np.inf
        joint, geared = model.robot.joints[layout.joint], model.after_gear(k)
        ratio = np.sqrt(geared)  # the spring's column is the deflection at the motor where that moves several joints
        checks.append(StiffnessCheck(joint, geared * direct, geared * inverse, float(np.sqrt(size / max(rows, 1)) / ratio)))
    return tuple(checks)


def with_row_sum(
    springs: list[dict[str, Any]], model: DynamicModel, statistics: StatisticSet, fit: Fit
) -> list[dict[str, Any]]:
    """Adds to each spring how far its stiffness can be trusted: the two regressions on the torque of the row sum.

    Args:
        springs: From :func:`visible_springs`.
        model: The model that was identified.
        statistics: In compliance form.
        fit: The fit to them.

    Returns:
        The entries, those of elastic joints with ``stiffness_bounds`` and ``reliability``; without them where instruments
        estimate, for noise on the motion, which those keep out, is in both regressions.
    """
    if not isinstance(model, ElasticModel) or fit.method == "iv":
        return springs
    theta = fit.base.embedded(fit.params)
    plain = _restored(statistics, _stiffness_columns(statistics, model), theta)
    checks = {check.joint: check for check in check_stiffness(plain, model, theta)}
    extended = []
    for item in springs:
        check = checks.get(item["joint"])
        bounds = {} if check is None else {"stiffness_bounds": [check.direct, check.inverse], "reliability": check.reliability}
        extended.append({**item, **bounds})
    return extended


def _stiffness_columns(statistics: StatisticSet, model: ElasticModel) -> dict[str, int]:
    """Link row group → index of its stiffness in theta."""
    return {item.group: model.of_spring(item.joint) for item in statistics.layouts if item.group.startswith("link:")}


def _columns(R: Array, layout: Layout) -> tuple[Array, dict[int, int]]:
    """A factor without its instruments, and where each parameter's column is in it."""
    return R[:, len(layout.instruments) :], {int(k): place for place, k in enumerate(layout.columns)}


def _check_positive(springs: Mapping[str, int], theta: Array) -> None:
    for group, k in springs.items():
        if not (np.isfinite(theta[k]) and theta[k] > 0):
            raise EstimationError(
                "no positive stiffness fits the log",
                where=group.removeprefix("link:"),
                got=f"{theta[k]:.4g}",
                remedy="are motor and link encoders swapped, or is the joint too stiff for them (elastic: {rigid: [...]})?",
            )


def _start(statistics: StatisticSet, base: BaseParameters, springs: dict[str, int]) -> Array:
    """Weights once, from plain residuals; then the stiffness from the inverse regression, which noise does not shrink."""
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
                where=group.removeprefix("link:"),
                got=f"a stiffness of {theta[k]:.4g}",
                remedy="its deflection drowns in noise (record more torque, or list it as rigid), or encoders are swapped",
            )
    return theta


def _linear(statistics: StatisticSet, springs: dict[str, int], theta: Array) -> StatisticSet:
    """Gauss-Newton form of ``K0 (R theta − t)/K`` at theta: the K column loses r/K0, the target is t − r."""
    moved = _moved(statistics, springs, theta, -1.0)
    entries = [replace(entry, R=triangle(entry.R)) if entry.group in springs else entry for entry in moved]
    return replace(statistics, entries=tuple(entries), fingerprint=f"{statistics.fingerprint} compliance")


def _restored(statistics: StatisticSet, springs: dict[str, int], theta: Array) -> StatisticSet:
    """Undoes :func:`_linear` at the same theta, where ``J theta = t`` and the target is ``t − r``."""
    return replace(statistics, entries=tuple(_moved(statistics, springs, theta, 1.0)))


def _moved(statistics: StatisticSet, springs: dict[str, int], theta: Array, sign: float) -> Iterator[Statistic]:
    """Entries whose K column has ``sign · r/K0`` more and whose target has ``sign · r`` more, where there is a spring."""
    for entry in statistics.entries:
        if entry.group in springs:
            layout = statistics.layout(entry.group)
            R, place = _columns(np.array(entry.R), layout)
            k = springs[entry.group]
            residual = R[:, :-1] @ theta[layout.columns] - R[:, -1]
            R[:, place[k]] += sign * residual / theta[k]
            R[:, -1] += sign * residual
            entry = replace(entry, R=np.column_stack([entry.R[:, : len(layout.instruments)], R]))
        yield entry
