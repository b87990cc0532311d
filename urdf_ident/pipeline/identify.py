"""The pipeline: the only place where the order of the steps is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..consistency.standard import USUAL_WEIGHT, consistent_parameters, prior_with_first_fit
from ..data.conditioning.signals import SignalConfig
from ..data.loaded import carrying, unused
from ..data.prepare import PreparedLog, prepare_log, prepare_logs
from ..data.recording import Recording
from ..errors import EstimationError, LogError
from ..estimation.cutoff import sweep_cutoff
from ..estimation.elastic import check_motors, compliant, spring_scores, visible_springs, with_row_sum
from ..estimation.estimators.closed_loop import ClosedLoop
from ..estimation.estimators.gains import resolve_drive
from ..estimation.estimators.method import Estimated, counted_alike, held_out_errors, refine, row_weighting, trust
from ..estimation.friction_selection.load_slopes import with_load_slopes
from ..estimation.friction_selection.reference_torque import Build, Estimate, Settled, cross_validate_settled, settle
from ..estimation.friction_selection.selection import Selected, select_friction
from ..estimation.friction_selection.shapes import fit_shapes
from ..estimation.uncertainty.covariance import with_covariance
from ..estimation.uncertainty.essential import essential_parameters
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.payload import Payload
from ..model.prior import Prior, inertial_prior
from ..project import Project
from ..result.identification import Identification
from ..result.scores import better_than_urdf, predict, validate_log
from ..result.summary import validation_table
from ..result.traces import LOGS, LogTrace, Traces, log_trace, speed_profile
from ..samples import Segment
from ..statistics.fit import Fit, fit_base
from ..statistics.rows import build_statistics
from ..statistics.statistic import StatisticSet
from .compensate import check_compensation, compensate, compensated_score
from .standard import standard_parameters, urdf_with_friction


def identify(
    model: DynamicModel,
    logs: Sequence[Recording],
    *,
    held_out: Sequence[Recording] = (),
    sweeps: Sequence[Recording] = (),
    prior: str = "urdf",
    project: Project | None = None,
    force: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Identification:
    """Identifies a robot from its logs.

    Args:
        model: The dynamic model.
        logs: Logs to learn from.
        held_out: Logs to score on; they take no part in the fit.
        sweeps: Runs at constant speed both ways, one joint at a time, from which friction curves are taken.
        prior: What the standard parameters stay close to: "urdf".
        project: Settings; all defaults if None.
        force: Use logs in spite of findings that refuse them.
        progress: Called with the name of the log at work and the number of rows done.

    Returns:
        The identification.

    Raises:
        QualityError: A log is refused.
        LogError: A held-out log is also one to learn from, or no log was given.
        EstimationError: The data are too few.
        SolverError: The consistency step failed.
    """
    project = project or Project()
    if prior != "urdf":
        raise EstimationError("unknown prior", got=repr(prior), expected="urdf")
    _refuse_overlap([*logs, *sweeps], held_out)
    loops = project.compensation
    if loops.residual != "none" or sweeps:
        check_compensation(model, logs, loops.residual, loops.inputs)
    check_motors(model, logs)
    model, prepared, sweep = _prepared(model, logs, project, force, progress)
    first = prepared[0].conditioned
    scoring = project.scoring_config(first.cutoff, first.decimate_rate)  # what cannot be scored is refused before the work
    judges = [prepare_log(recording, model.robot, model.drive, scoring, force=force) for recording in held_out]
    learnt = _learn(model, prepared, project, progress)
    result = _with_physics(learnt, prepared, sweep, project)
    if loops.residual != "none" or sweeps:
        options = loops.options()
        result = compensate(result, logs, sweeps=sweeps, judged=True, force=force, progress=progress, **options)
    scored = _scored(result, held_out, judges, force=force)
    return replace(result, validation=scored.entries, traces=_traces(result, scored, prepared))


@dataclass(frozen=True, eq=False)
class _Learnt:
    """What the data say, before physics and the prior have a say."""

    fit: Fit
    settled: Settled
    estimated: Estimated
    selected: Selected
    believed: Prior
    springs: Sequence[Mapping[str, Any]]
    cross_validation: Mapping[str, Any]
    notes: tuple[str, ...]


def _learn(
    model: DynamicModel, prepared: Sequence[PreparedLog], project: Project, progress: Callable[[str, int], None] | None
) -> _Learnt:
    """Structure first (springs, friction laws, their shapes), then base parameters and their errors."""
    wanted, consistency = project.estimation, project.consistency
    model, deflections, unseen = visible_springs(model, prepared)  # nothing without elastic joints
    trusted = trust(model, prepared, wanted.method, wanted.loss)  # wild samples found before anything listens to them
    produce = partial(build_statistics, logs=prepared, progress=progress, weights=trusted.weights)
    motion = [part for log in prepared for part in log.segments]
    selected = _selected(model, produce, motion, project, progress)  # nothing where the laws are listed
    shaped = fit_shapes(selected.model, produce, motion, method=row_weighting(wanted.method))  # nothing without free shapes
    model = shaped.model
    base = model.base()
    believed = inertial_prior(model.robot, consistency.relative_std, mass_std=consistency.mass_std)
    reference = base.of(np.concatenate([believed.theta0, np.zeros(len(model.parameters) - model.n_inertial)]))
    build = partial(compliant, build=produce, base=base)
    estimate = partial(fit_base, base=base, method=row_weighting(wanted.method), reference=reference)
    settled = settle(model, build, estimate, prior=believed)
    loop = partial(_closed_loop, settled, prepared, believed, project)
    known = "controller" in project.simulation.model_fields_set
    estimated = refine(
        trusted, settled, prepared, loss=wanted.loss, prior=believed, reference=reference, loop=loop, loop_known=known
    )
    fit = _with_errors(estimated, settled, prepared, wanted.covariance)
    remarks = (estimated.words, *unseen, *unused(project.build_payload(model.robot), prepared))
    return _Learnt(
        fit,
        settled,
        estimated,
        selected,
        prior_with_first_fit(believed, settled.model.parameters, estimated.statistics, fit.weights),
        with_row_sum(deflections, settled.model, estimated.statistics, fit),
        _cross_validation(settled, estimated, build, estimate, chosen=bool(selected.trials)),
        (*remarks, *selected.notes, *shaped.notes, *settled.notes),
    )


def _with_physics(
    learnt: _Learnt, prepared: Sequence[PreparedLog], sweep: Mapping[str, Any], project: Project
) -> Identification:
    """Standard parameters of bodies that can exist, beside what the data say."""
    model, statistics, fit = learnt.settled.model, learnt.estimated.statistics, learnt.fit
    standard = standard_parameters(model, statistics, fit, learnt.believed, project)
    notes = [*learnt.notes, *learnt.believed.notes, *standard.solver.get("notes", ())]
    return Identification(
        model,
        fit,
        standard.theta,
        learnt.believed,
        statistics.stacked(fit.weights),
        urdf_with_friction(model, statistics, fit, learnt.believed.theta0),
        solver={**standard.solver, "notes": notes, **({"springs": learnt.springs} if learnt.springs else {})},
        signals={**_signals(prepared), **sweep},
        inputs=tuple(log.as_dict() for log in prepared),
        cross_validation=learnt.cross_validation,
        config=project.model_dump(),
        estimation=learnt.estimated.as_dict(),
        selection=learnt.selected.as_dict(),
        essential=_essential(statistics, fit, project.estimation.essential),
    )


@dataclass(frozen=True)
class ValidationReport:
    """Scores of a result on held-out logs: ``entries`` as in identification.json, ``logs`` with series for pictures."""

    joints: tuple[str, ...]
    entries: tuple[Mapping[str, Any], ...]
    logs: tuple[LogTrace, ...] = ()

    @property
    def better_than_urdf(self) -> bool:
        """Whether the exported model beats the URDF as it came, on every log."""
        return better_than_urdf(self.entries)

    def summary(self) -> str:
        """A line a log: ours beside what the user had before."""
        return "\n".join(validation_table(self.entries, self.joints))

    __str__ = summary


def validate(ident: Identification, logs: Sequence[Recording], *, force: bool = False) -> ValidationReport:
    """Scores a result on logs that took no part in the fit, conditioned as the fit's logs were.

    Args:
        ident: The result.
        logs: The held-out logs.
        force: Score logs in spite of findings that refuse them.

    Returns:
        The scores.

    Raises:
        QualityError: A log is refused.
    """
    robot, drive = ident.model.robot, ident.model.drive
    scoring = Project.model_validate(ident.config).scoring_config(ident.signals["cutoff"], ident.signals["decimate"])
    return _scored(ident, logs, [prepare_log(recording, robot, drive, scoring, force=force) for recording in logs], force=force)


def _scored(
    ident: Identification, recordings: Sequence[Recording], logs: Sequence[PreparedLog], *, force: bool
) -> ValidationReport:
    """Scores on logs as read and as prepared."""
    model, project = ident.model, Project.model_validate(ident.config)
    payload = project.build_payload(model.robot)
    thetas = {"exported": ident.theta, "fit": ident.fit_theta, "urdf": ident.urdf_theta, "urdf_friction": ident.baseline}
    entries, traces = [], []
    for recording, prepared in zip(recordings, logs, strict=True):
        log = carrying(payload, model.robot, prepared)
        scores = validate_log(model, thetas, log, project.validation.score_cutoff)
        entry = scores.as_dict()
        traces.append(scores.trace)
        if isinstance(model, ElasticModel):
            entry["springs"] = spring_scores(model, ident.theta, log, log.conditioned.cutoff)
        if ident.residual is not None and recording.motor_position is not None:
            entry["residual"] = compensated_score(ident, recording, project.validation.score_cutoff, force=force)
        entries.append(entry)
    return ValidationReport(model.robot.joints, tuple(entries), tuple(traces[:LOGS]))


def _traces(ident: Identification, scored: ValidationReport, learnt: Sequence[PreparedLog]) -> Traces:
    """Series for pictures: of held-out logs, or failing those of logs that were learnt from; speeds of the latter."""
    model, cutoff = ident.model, float(ident.signals["cutoff"])
    thetas = np.column_stack([ident.theta, ident.urdf_theta, ident.baseline])
    logs = list(scored.logs)
    for log in learnt[:LOGS] if not logs else ():
        predicted = predict(model, thetas, log)
        series = {name: predicted[..., k] for k, name in enumerate(("exported", "urdf", "urdf_friction"))}
        logs.append(log_trace(log, series, cutoff, held_out=False))
    return Traces(tuple(logs), speed_profile(model, ident.theta, learnt, cutoff))


def _prepared(
    model: DynamicModel, logs: Sequence[Recording], project: Project, force: bool, progress: Callable[[str, int], None] | None
) -> tuple[DynamicModel, list[PreparedLog], dict[str, Any]]:
    """The model with its torque constants, the logs conditioned, and the cut-offs that were tried (only if asked to)."""
    payload = project.build_payload(model.robot)
    model = model.with_drive(resolve_drive(model, logs, payload, project.signal_config(), force=force))
    signals, sweep = _conditioning(model, logs, project, payload, force, progress)
    ready = prepare_logs(logs, model.robot, model.drive, signals, force=force)
    return model, [carrying(payload, model.robot, log) for log in ready], sweep


def _conditioning(
    model: DynamicModel,
    logs: Sequence[Recording],
    project: Project,
    payload: Payload | None,
    force: bool,
    progress: Callable[[str, int], None] | None,
) -> tuple[SignalConfig, dict[str, Any]]:
    """The conditioning asked for; where logs choose the cut-off, with what each candidate costs."""
    config = project.signal_config()
    if project.signals.cutoff != "held_out":
        return config, {}
    judged = project.validation.score_cutoff
    found = sweep_cutoff(
        model, logs, config, judged=None if judged == "auto" else float(judged), force=force, progress=progress, payload=payload
    )
    return replace(config, cutoff=found.chosen, reason=found.why), {"sweep": found.as_dict()}


def _selected(
    model: DynamicModel, build: Build, motion: Sequence[Segment], project: Project, progress: Callable[[str, int], None] | None
) -> Selected:
    """The friction that the data ask for, where it was left to them."""
    if isinstance(model, ElasticModel) and project.model.friction == "auto":
        return Selected(model, notes=("friction: auto with elastic joints is viscous, Coulomb and offset",))
    if not model.automatic:
        return Selected(model)
    return select_friction(model, build, motion, method=row_weighting(project.estimation.method), progress=progress)


def _refuse_overlap(logs: Sequence[Recording], held_out: Sequence[Recording]) -> None:
    """A log that is both learnt from and scored on would judge itself."""
    learnt = {recording.sha256: recording.name for recording in logs if recording.sha256}
    for recording in held_out:
        if recording.sha256 in learnt:
            raise LogError("this held-out log is also one of the logs to learn from", where=recording.path or recording.name,
                           remedy="leave it out of one of the two lists")  # fmt: skip


def _signals(logs: Sequence[PreparedLog]) -> dict[str, Any]:
    first = logs[0].conditioned
    return {
        "rate": first.rate,
        "cutoff": first.cutoff,
        "decimate": first.decimate_rate,
        "velocity": {log.name: log.conditioned.velocity_source for log in logs},
        "speed": np.percentile(np.abs(np.vstack([part.v for log in logs for part in log.segments])), 95, axis=0),
        "load": np.sqrt(np.mean(np.square(np.vstack([tau for log in logs for tau in _torques(log)])), axis=0)),
        "why": [f"{key}: {text}" for key, text in dict(first.why).items()]
        + [f"periodic: {log.name}: {log.conditioned.why['periodic']}" for log in logs[1:] if log.conditioned.averaged],
    }


def _torques(log: PreparedLog) -> list[Array]:
    return [part.tau for part in log.segments if part.tau is not None]


def _closed_loop(settled: Settled, logs: Sequence[PreparedLog], prior: Prior, project: Project) -> ClosedLoop:
    """The simulation of the logs; what moves in it is the robot that could exist closest to an estimate."""
    model, fit, statistics = settled.model, settled.fit, settled.statistics
    complete = prior_with_first_fit(prior, model.parameters, statistics, fit.weights)

    def plausible(params: Array) -> Array:
        change = np.zeros(statistics.p)
        change[fit.base.independent] = params - fit.params
        moved = statistics.shifted(change)
        return consistent_parameters(moved, replace(fit, params=params), complete, model.parameters, weight=USUAL_WEIGHT).theta

    return ClosedLoop(model, logs, project.simulation, plausible)


def _with_errors(estimated: Estimated, settled: Settled, logs: Sequence[PreparedLog], kind: str) -> Fit:
    model = settled.model
    if estimated.fit.method == "iv" and kind != "model":
        errors = partial(with_covariance, settled.fit, settled.statistics, model=model, logs=logs)
        try:
            return counted_alike(estimated.fit, errors(kind), errors("jackknife"))
        except EstimationError:  # too short to be cut into stretches
            if kind != "auto":  # asked for by name
                raise
            return estimated.fit
    if estimated.own_errors:
        if kind not in ("auto", "model"):
            raise EstimationError(f"method {estimated.fit.method} has errors of its own", where="estimation.covariance",
                                  got=kind, expected="auto")  # fmt: skip
        return estimated.fit
    rows = logs if estimated.logs is None else estimated.logs
    fit = with_covariance(estimated.fit, estimated.statistics, kind, model=model, logs=rows)
    return with_load_slopes(fit, model, rows)  # nothing without load-dependent friction


def _essential(statistics: StatisticSet, fit: Fit, rule: str) -> dict[str, Any]:
    """Which base parameters the data need; empty where nobody asks, or too few data to hold any out."""
    if rule == "none":
        return {}
    try:
        return essential_parameters(statistics, fit.base, fit, rule=rule).as_dict()
    except EstimationError:
        return {}


def _cross_validation(
    settled: Settled, estimated: Estimated, build: Build, estimate: Estimate, *, chosen: bool
) -> dict[str, Any]:
    """Held-out errors of the parameters; laws that the data chose were chosen on all logs, and stay."""
    try:
        if estimated.refit is None:
            found = cross_validate_settled(settled, build, estimate)
        else:
            found = held_out_errors(settled, estimated)
    except EstimationError:  # too short to hold anything out: the result says "not validated"
        return {}
    return {
        "folds": list(found.folds),
        "groups": list(found.groups),
        "group_rmse": found.group_rmse.tolist(),
        "mean_rmse": found.mean_rmse,
        "relative": found.relative,
        "structure": "chosen on all folds" if chosen else "given",
    }
