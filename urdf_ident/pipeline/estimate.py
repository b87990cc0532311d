"""Second stage: estimates the structure (springs, friction laws, shapes), then base parameters and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..consistency.apart import contradicting_joints
from ..consistency.first_fit import completed_prior
from ..consistency.standard import consistent_parameters
from ..consistency.weighed import weighed_prior
from ..errors import EstimationError
from ..estimation.elastic import compliant, visible_springs, with_row_sum
from ..estimation.estimators.method import (
    Estimated,
    SampleWeighting,
    choose_weighting,
    held_out_errors,
    inflated_like,
    refine,
    row_weighting,
)
from ..estimation.estimators.resting import weigh_rests
from ..estimation.friction_selection.load_slopes import with_load_slopes
from ..estimation.friction_selection.reference_torque import Build, ConvergedFit, Estimate, converge, cross_validate_converged
from ..estimation.friction_selection.selection import Selected, select_friction
from ..estimation.friction_selection.shapes import fit_shapes
from ..estimation.friction_selection.significance import supplements, unsupported, without_chance
from ..estimation.uncertainty.covariance import start_covariance, with_covariance
from ..estimation.uncertainty.essential import essential_parameters
from ..estimation.uncertainty.prediction import PendingSamples, start_samples
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.prior import USUAL_WEIGHT, Prior, inertial_prior
from ..model.trained import with_limited_widths, with_trained
from ..progress import Progress
from ..project import Project
from ..samples import Segment, typical_reversals
from ..settings import EssentialSection, EstimationSection
from ..signals.prepare import PreparedLog, unused
from ..statistics.accumulate import build_statistics
from ..statistics.fit import Fit, fit_base, prior_mean
from ..statistics.folds import repeated
from ..statistics.log_effects.changes import FrictionChanges, varying
from ..statistics.log_effects.mixed_model import changes_between_logs
from ..statistics.motions import motions, velocities
from ..statistics.row_cache import RowCache
from ..statistics.statistic import StatisticSet
from .prepare import Prepared

if TYPE_CHECKING:
    from ..estimation.estimators.closed_loop import ClosedLoop


@dataclass(frozen=True, eq=False)
class DataEstimate:
    """Estimates from the data alone, before physical consistency and the prior are applied.

    Attributes:
        model: The model with the friction that was found.
        logs: The logs, with the weights of resting joints.
        statistics: The factors that the fit is based on.
        prior: Prior of the inertial parameters; friction and rotor inertia are from a first fit.
        estimated: The estimator and the reason for it.
        selected: The friction laws and the reasons for them.
        cross_validation: Held-out errors; empty if the logs are too short.
        reversals: Mean number of reversals of the moving joints, repetitions of a motion counted once.
        samples: For the prediction of held-out torques, computed in the background; None with elastic joints.
    """

    model: DynamicModel
    logs: Sequence[PreparedLog]
    statistics: StatisticSet
    fit: Fit
    prior: Prior
    estimated: Estimated
    selected: Selected
    springs: Sequence[Mapping[str, Any]]
    cross_validation: Mapping[str, Any]
    essential: Mapping[str, Any]
    reversals: float
    notes: tuple[str, ...]
    samples: PendingSamples | None


def _weighting(
    first: DynamicModel, prepared: Prepared, wanted: EstimationSection, kept: RowCache
) -> tuple[SampleWeighting, RowCache]:
    """Detects outliers, before friction is selected, with their weights, which change the kept rows."""
    weighting = choose_weighting(first, prepared.logs, wanted.method, wanted.loss, kept=kept)
    return weighting, kept if weighting.weights is None else RowCache(samples=kept.samples)


def _with_rests(
    model: DynamicModel, prepared: Prepared, project: Project, weighting: SampleWeighting, kept: RowCache
) -> tuple[Sequence[PreparedLog], tuple[str, ...]]:
    """The logs with weights for resting joints, and notes; without where samples have weights, or the method knows none."""
    if weighting.weights is not None or weighting.name == "ols" or isinstance(model, ElasticModel):
        return prepared.logs, ()
    return weigh_rests(model.unloaded(), prepared.logs, project.signal_config(), kept)


@dataclass(frozen=True, eq=False)
class _Found:
    """Estimate with one selection of laws; ``shapes``: notes on their free shapes, ``held``: on resting joints."""

    selected: Selected
    converged: ConvergedFit
    estimated: Estimated
    logs: Sequence[PreparedLog]
    validate: Callable[[], Mapping[str, Any]]
    shapes: tuple[str, ...]
    held: tuple[str, ...]

    @cached_property
    def changes(self) -> FrictionChanges | None:
        """How friction differs between the logs."""
        return _changes(self.estimated, self.converged.model, self.logs)

    @cached_property
    def cross_validation(self) -> Mapping[str, Any]:
        """Held-out errors of the parameters."""
        return self.validate()

    @cached_property
    def samples(self) -> PendingSamples | None:
        """Samples for the prediction of held-out torques, which workers compute in the background."""
        model = self.converged.model
        return None if isinstance(model, ElasticModel) else start_samples(model, self.logs)


@dataclass(frozen=True, eq=False)
class _Run:
    """Data and settings of the estimates; ``logs`` with the weights of resting joints under the simple laws."""

    prepared: Prepared
    project: Project
    prior: Prior
    weighting: SampleWeighting
    kept: RowCache
    rows: Build
    logs: Sequence[PreparedLog]
    held: tuple[str, ...]

    def estimate(self, selected: Selected) -> tuple[_Found, Fit]:
        """Estimates shapes and parameters of the selected laws; the fit has its standard errors."""
        prepared, wanted, prior, kept = self.prepared, self.project.estimation, self.prior, self.kept
        logs, held, method = self.logs, self.held, row_weighting(self.project.estimation.method)
        shaped = fit_shapes(selected.model, partial(self.rows, logs=logs), prepared.motion, method=method)
        if held:  # again, with the selected laws
            logs, held = _with_rests(shaped.model, prepared, self.project, self.weighting, kept)
        base = shaped.model.base()
        model = with_trained(shaped.model, prepared.motion, chosen=prepared.model.automatic)  # for extrapolating friction
        reference = prior_mean(base, prior)
        build = partial(compliant, build=partial(self.rows, logs=logs), base=base)
        estimate = partial(fit_base, base=base, method=method, reference=reference)
        converged = converge(model, build, estimate, prior=prior, draft=partial(build, blocks=1))
        loop = partial(_closed_loop, converged, logs, prior, self.project, prepared.motion)
        known = "controller" in self.project.simulation.model_fields_set
        estimated = refine(
            self.weighting, converged, logs, loss=wanted.loss, prior=prior, reference=reference, loop=loop, loop_known=known
        )
        errors = _errors(estimated, converged, logs, wanted.covariance, kept)  # runs in the background
        validate = partial(_cross_validation, converged, estimated, build, estimate, chosen=bool(selected.trials))
        found = _Found(selected, converged, estimated, logs, validate, shaped.notes, held)
        return found, errors()


def estimate_from_data(prepared: Prepared, project: Project, progress: Progress | None) -> DataEstimate:
    """Estimates the structure (springs, friction laws, their shapes), then base parameters and their errors.

    Args:
        progress: Called with the current step and a count.

    Raises:
        EstimationError: There are too few data.
    """
    wanted, consistency = project.estimation, project.consistency
    model, deflections, unseen = visible_springs(prepared.model, prepared.logs)  # no effect without elastic joints
    model = with_limited_widths(model, prepared.motion)
    kept = RowCache(samples=sum(map(len, prepared.motion)))
    first = model if model.automatic else with_trained(model, prepared.motion)  # automatic laws need no trained speeds yet
    weighting, kept = _weighting(first, prepared, wanted, kept)
    rows = partial(build_statistics, progress=progress, weights=weighting.weights, kept=kept)
    logs, held = _with_rests(first, prepared, project, weighting, kept)
    prior = inertial_prior(model.robot, consistency.relative_std, mass_std=consistency.mass_std)
    produce = partial(rows, logs=logs)
    model = _without_contradicting_joints(model, produce, prior, wanted.method)
    selected = _selected(model, produce, prepared.motion, prior, project, progress)  # no effect if the laws are given
    run = _Run(prepared, project, prior, weighting, kept, rows, logs, held)
    found, fit = run.estimate(selected)
    fewer, axes = without_chance(found.selected, fit, model, range(model.n))
    while fewer is not found.selected:
        found, fit = run.estimate(fewer)
        fewer, axes = without_chance(found.selected, fit, model, axes)
    selected, converged, estimated = found.selected, found.converged, found.estimated
    model, statistics = converged.model, estimated.statistics
    reversals = _reversals(converged, prepared.motion)
    prior = weighed_prior(prior, statistics, fit)
    completed = completed_prior(model, prior, statistics, fit, unsupported(selected, fit), reversals, supplements(selected))
    validation, changes = found.cross_validation, found.changes
    kept.clear()  # the rows of all logs are rarely needed again
    fit = fit if changes is None else fit.for_next_log(changes)
    trained, lost = prepared.trained, unused(project.build_payload(model.robot), logs)
    remarks = (estimated.describe(), *found.held, *repeated(converged.statistics), *unseen, *lost)
    drifts = fit.changes.notes(trained.speed, trained.load) if fit.changes else ()
    return DataEstimate(
        model,
        found.logs,
        statistics,
        fit,
        completed,
        estimated,
        selected,
        with_row_sum(deflections, model, statistics, fit),
        validation,
        _essential(statistics, fit, wanted.essential),
        reversals,
        (*remarks, *selected.notes, *found.shapes, *converged.notes, *drifts),
        found.samples,
    )


def _without_contradicting_joints(model: DynamicModel, build: Build, prior: Prior, method: str) -> DynamicModel:
    """The model with joints set apart whose efforts contradict the others'."""
    if isinstance(model, ElasticModel):
        return model
    simple = model.unloaded()
    statistics = build(simple)
    fit = fit_base(statistics, simple.base(), method=row_weighting(method))
    return model.with_apart(contradicting_joints(simple, statistics, fit, weighed_prior(prior, statistics, fit)))


def _selected(
    model: DynamicModel,
    build: Build,
    motion: Sequence[Segment],
    prior: Prior,
    project: Project,
    progress: Progress | None,
) -> Selected:
    """Selects the friction laws from the data if the project asks for it."""
    if isinstance(model, ElasticModel) and project.model.friction == "auto":
        return Selected(model, notes=("friction: auto with elastic joints is viscous, Coulomb and offset",))
    if not model.automatic:
        return Selected(model)
    method = row_weighting(project.estimation.method)
    return select_friction(model, build, motion, method=method, progress=progress, prior=prior)


def _reversals(converged: ConvergedFit, motion: Sequence[Segment]) -> float:
    """Mean number of reversals of the moving joints, repetitions of a motion counted once."""
    return typical_reversals(velocities(motion, motions(converged.statistics)), converged.model.robot.prismatic)


def _closed_loop(
    converged: ConvergedFit, logs: Sequence[PreparedLog], prior: Prior, project: Project, motion: Sequence[Segment]
) -> ClosedLoop:
    """The simulation of the logs, with the physically consistent robot closest to an estimate."""
    from ..estimation.estimators.closed_loop import ClosedLoop

    model, fit, statistics = converged.model, converged.fit, converged.statistics
    complete = completed_prior(model, prior, statistics, fit, reversals=_reversals(converged, motion))

    def plausible(params: Array) -> Array:
        moved = statistics.shifted(fit.base.embedded(params - fit.params))
        return consistent_parameters(moved, replace(fit, params=params), complete, model.parameters, weight=USUAL_WEIGHT).theta

    return ClosedLoop(model, logs, project.simulation, plausible)


def _errors(
    estimated: Estimated, converged: ConvergedFit, logs: Sequence[PreparedLog], kind: str, kept: RowCache
) -> Callable[[], Fit]:
    """Returns a function that waits for the estimate with its standard errors."""
    model = converged.model
    if estimated.fit.method == "iv" and kind != "model":
        return partial(_instrumental_errors, estimated, converged, logs, kind)
    if estimated.own_errors:
        if kind not in ("auto", "model"):
            raise EstimationError(
                f"method {estimated.fit.method} has errors of its own", where="estimation.covariance", got=kind, expected="auto"
            )
        return lambda: estimated.fit
    rows = logs if estimated.logs is None else estimated.logs
    begun = start_covariance(estimated.fit, estimated.statistics, kind, model=model, logs=rows, kept=kept)

    def finished() -> Fit:
        fit = begun()
        if estimated.transform is not None:
            fit = replace(fit, covariance=estimated.transform @ fit.covariance @ estimated.transform.T)
        return with_load_slopes(fit, model, rows, converged.prior)  # no effect without load-dependent friction

    return finished


def _instrumental_errors(estimated: Estimated, converged: ConvergedFit, logs: Sequence[PreparedLog], kind: str) -> Fit:
    errors = partial(with_covariance, converged.fit, converged.statistics, model=converged.model, logs=logs)
    try:
        return inflated_like(estimated.fit, errors(kind), errors("jackknife"))
    except EstimationError:  # the logs are too short to be cut into blocks
        if kind != "auto":  # explicitly requested
            raise
        return estimated.fit


def _changes(estimated: Estimated, model: DynamicModel, logs: Sequence[PreparedLog]) -> FrictionChanges | None:
    """Returns how friction differs between the logs."""
    if isinstance(model, ElasticModel):
        return None
    seconds = np.array([sum(len(part) / part.rate for part in log.segments) for log in logs])
    kelvin = [np.nanmean(x, axis=0) for log in logs if (x := log.report.recording.temperature) is not None]
    covariates = np.array(kelvin)[:, [part.axis for part in varying(model)]] if len(kelvin) == len(logs) else None
    try:
        return changes_between_logs(model, estimated.statistics, estimated.fit, covariates, seconds)
    except EstimationError:  # no friction can change, or the data show none
        return None


def _essential(statistics: StatisticSet, fit: Fit, wanted: EssentialSection) -> dict[str, Any]:
    """The essential base parameters; empty if not requested, or if there are too few data to hold any out."""
    if wanted.rule == "none":
        return {}
    try:
        return essential_parameters(statistics, fit.base, fit, rule=wanted.rule, limit=wanted.limit).as_dict()
    except EstimationError:
        return {}


def _cross_validation(
    converged: ConvergedFit, estimated: Estimated, build: Build, estimate: Estimate, *, chosen: bool
) -> dict[str, Any]:
    """Held-out errors of the parameters; friction laws selected on all logs are not selected again per fold."""
    try:
        if estimated.refit is None:
            found = cross_validate_converged(converged, build, estimate)
        else:
            found = held_out_errors(converged, estimated)
    except EstimationError:  # too short to hold anything out: the result is "not validated"
        return {}
    return {
        "folds": list(found.folds),
        "groups": list(found.groups),
        "group_rmse": found.group_rmse.tolist(),
        "mean_rmse": found.mean_rmse,
        "relative": found.relative,
        "structure": "chosen on all folds" if chosen else "given",
    }
