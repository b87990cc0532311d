"""A result with what no rigid model explains: friction from runs both ways, and a residual on the deformation (E)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..compensation.friction_curve import friction_columns
from ..compensation.gear_ripple import GearRipple, fit_gear_ripple
from ..compensation.loop_rows import residual_inputs, with_external
from ..compensation.residual import DEFAULT_INPUTS, Residual
from ..compensation.three_loop import ThreeLoop, learn_residual, three_loop
from ..consistency.demands import demands
from ..consistency.standard import Standard, consistent_parameters, nearest_to_prior, prior_with_first_fit
from ..data.filters import lowpass
from ..data.prepare import PreparedLog, prepare_log
from ..data.recording import Recording
from ..data.signals import SignalConfig
from ..errors import LogError
from ..estimation.fit import Fit, fit_base, fit_columns
from ..estimation.method import row_weighting
from ..estimation.rows import build_statistics
from ..estimation.statistic import Statistic, StatisticSet
from ..linalg import triangle
from ..model.dynamic_model import DynamicModel
from ..model.prior import Prior, inertial_prior
from ..project import Project
from .identification import Identification


def compensate(
    ident: Identification,
    logs: Sequence[Recording],
    *,
    sweeps: Sequence[Recording] = (),
    kind: str = "gmr",
    use: Sequence[str] = DEFAULT_INPUTS,
    rounds: int = 20,
    seed: int = 0,
    force: bool = False,
) -> Identification:
    """Runs the three loops from a result, and gives it their friction, links and residual.

    Standard parameters are chosen anew, as bodies that can exist, from the torque that friction and residual leave.

    Args:
        ident: A result with rigid joints.
        logs: Logs to learn from, with both encoders.
        sweeps: Logs of the bidirectional experiment; without them the result keeps its own friction laws.
        kind: Of the residual: "rbf" or "gmr".
        use: What the residual reads; others than the deformation invite over-fitting.
        rounds: At most.
        seed: Of the residual's random numbers.
        force: Use logs in spite of findings that refuse them.

    Returns:
        A new result; its scores on held-out logs are to be made anew (:func:`urdf_ident.validate`).

    Raises:
        LogError: A log has no motor positions, or a joint's sweeps go one way only.
        ModelError: A result with elastic joints.
        QualityError: A log is refused.
        EstimationError: Too little data, or an unknown kind or input.
    """
    model, project = ident.model, Project.model_validate(ident.config)
    if not logs:
        raise LogError("no log was given to learn a residual from", remedy="name at least one, with both encoders")
    ripple = _ripple(ident, [*logs, *sweeps], force)
    clean = [log if ripple is None else ripple.cleaned(log, model.drive) for log in logs]
    prepared = [prepared_log(ident, log, force) for log in clean]
    both = [log if ripple is None else ripple.cleaned(log, model.drive) for log in sweeps]
    runs = [prepared_log(ident, log, True) for log in both]  # one joint at a time is what a quality check refuses
    found = three_loop(model, prepared, runs, kind=kind, use=use, rounds=rounds, seed=seed)
    known = [with_external(log, [-x for x in residual_torque(found.residual, log)]) for log in prepared]
    statistics = _anchored(build_statistics(found.model, known), found, prepared[0].conditioned.decimate_rate)
    fit = fit_base(statistics, found.model.base(), method=row_weighting(project.estimation.method))
    believed = inertial_prior(model.robot, project.consistency.relative_std, mass_std=project.consistency.mass_std)
    believed = prior_with_first_fit(believed, found.model.parameters, statistics, fit.weights)
    standard = _standard(found.model, statistics, fit, believed, project)
    left = learn_residual(found.model, standard.theta, prepared, kind=kind, use=use, seed=seed, like=found.residual)
    return replace(
        ident,
        model=found.model,
        fit=fit,
        theta=standard.theta,
        prior=believed,
        factor=statistics.stacked(fit.weights),
        baseline=_urdf_with_friction(found.model, statistics, fit, believed),
        solver={**standard.solver, "loops": [gain.as_dict() for gain in found.gains], "friction_curves": _curves(found)},
        inputs=tuple(log.as_dict() for log in (*prepared, *runs)),
        cross_validation={},
        validation=(),
        selection={},
        residual=replace(left, ripple=ripple),
    )


def prepared_log(ident: Identification, recording: Recording, force: bool = False) -> PreparedLog:
    """A log conditioned as the fit's logs were.

    Args:
        ident: The result.
        recording: As read.
        force: Use it in spite of findings that refuse it.

    Returns:
        The prepared log.

    Raises:
        QualityError: The log is refused.
    """
    velocity = Project.model_validate(ident.config).signals.velocity
    signals = SignalConfig(cutoff=ident.signals["cutoff"], decimate=ident.signals["decimate"], velocity=velocity)
    return prepare_log(recording, ident.model.robot, ident.model.drive, signals, force=force)


def residual_torque(residual: Residual, log: PreparedLog) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """The residual along a log whose motor positions are free of the gears' kinematic error.

    Args:
        residual: The residual.
        log: The prepared log.

    Returns:
        One array a segment, shape (N, n) [N·m or N].
    """
    return [residual.torque(**residual_inputs(part)) for part in log.segments]


def compensated_score(ident: Identification, recording: Recording, cutoff: float, *, force: bool = False) -> dict[str, Any]:
    """Errors on a log with and without the residual.

    Args:
        ident: A result with a residual.
        recording: The log, with both encoders.
        cutoff: Zero-phase low-pass of the measured torque [Hz].
        force: Score it in spite of findings that refuse it.

    Returns:
        ``{"mean_rmse", "rigid_mean_rmse", "per_joint": [{"joint", "rmse", "rigid_rmse"}]}`` [N·m or N].

    Raises:
        LogError: The result has no residual, or the log no motor positions or torque.
        QualityError: The log is refused.
    """
    residual, model = ident.residual, ident.model
    if residual is None:
        raise LogError("a residual was asked for, and the result has none", remedy="compensate() learns one")
    if recording.motor_position is None:
        raise LogError("a residual was asked for, and the log has no motor positions", where=recording.path or recording.name,
                       expected=f"qm_{recording.joints[0]}, … before the gear", remedy="log both encoders")  # fmt: skip
    clean = recording if residual.ripple is None else residual.ripple.cleaned(recording, model.drive)
    log = prepared_log(ident, clean, force)
    rigid, full = [], []
    for part, extra in zip(log.segments, residual_torque(residual, log), strict=True):
        if part.tau is None:
            raise LogError("no torque or current in the log", where=log.name, remedy="name the effort columns")
        total = part.tau if part.external is None else part.tau + part.external
        rigid.append(lowpass(total, part.rate, cutoff) - model.torque_along(ident.theta, part))
        full.append(rigid[-1] - extra)
    without, with_ = (np.sqrt(np.mean(np.vstack(errors) ** 2, axis=0)) for errors in (rigid, full))
    joints = [
        {"joint": joint, "rmse": float(a), "rigid_rmse": float(b)}
        for joint, a, b in zip(model.robot.joints, with_, without, strict=True)
    ]
    return {"mean_rmse": float(with_.mean()), "rigid_mean_rmse": float(without.mean()), "per_joint": joints}


def _ripple(ident: Identification, recordings: Sequence[Recording], force: bool) -> GearRipple | None:
    both = [log for log in recordings if log.motor_position is not None]
    return fit_gear_ripple([prepared_log(ident, log, True) for log in both], ident.model.drive) if both else None


def _anchored(statistics: StatisticSet, found: ThreeLoop, rate: float) -> StatisticSet:
    """The points of the sweeps as equations for friction, each as much as a second of a log, dealt out to all logs."""
    place = {name: k for k, name in enumerate(statistics.names)}
    entries = list(statistics.entries)
    for curve in found.friction:
        group = f"joint:{curve.joint}"
        if group not in statistics.groups:
            continue  # a coupled drive: its rows are those of actuators
        layout = statistics.layout(group)
        at = {int(k): i for i, k in enumerate(layout.columns)}
        velocity, weight = curve.points.velocity, np.sqrt(rate / len(statistics.logs))
        rows = np.zeros((len(velocity), len(layout.columns) + 1))
        rows[:, [at[place[f"{symbol}_{curve.joint}"]] for symbol in curve.law.symbols]] = friction_columns(curve.law, velocity)
        rows[:, -1] = curve.points.torque
        count = max(1, round(len(velocity) * weight**2))
        entries += [Statistic(log, 0, group, triangle(weight * rows), count) for log in statistics.logs]
    return replace(statistics, entries=tuple(entries))


def _standard(model: DynamicModel, statistics: StatisticSet, fit: Fit, prior: Prior, project: Project) -> Standard:
    wanted = project.consistency
    if wanted.method not in ("auto", "lmi"):
        return nearest_to_prior(wanted.method, fit, prior)
    options, notes = demands(model.robot, prior, **wanted.demands())
    weight = None if wanted.weight == "auto" else float(wanted.weight)
    return consistent_parameters(statistics, fit, prior, model.parameters, options, weight, wanted.point_to_set, notes)


def _urdf_with_friction(model: DynamicModel, statistics: StatisticSet, fit: Fit, prior: Prior) -> Any:
    fixed = prior.theta0.copy()
    fixed[model.n_inertial :] = 0.0
    friction = [k for k in range(model.n_inertial, len(model.parameters)) if not model.parameters[k].symbol.startswith("Ia")]
    return fit_columns(statistics, friction, fixed, fit.weights)


def _curves(found: ThreeLoop) -> list[dict[str, Any]]:
    return [curve.as_dict() for curve in found.friction]
