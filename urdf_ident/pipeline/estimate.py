"""Second stage: estimates the structure (springs, friction laws, shapes), then base parameters and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..consistency.contradicting_joints import contradicting_joints, held_out_squares
from ..consistency.first_fit import completed_prior
from ..consistency.standard import consistent_parameters
from ..errors import EstimationError
from ..estimation.elastic import compliant, resolved_springs, with_row_sum
from ..estimation.estimators.estimator import Estimated, EstimatorInput
from ..estimation.estimators.method import (
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
from ..estimation.uncertainty.covariance import with_covariance
from ..estimation.uncertainty.essential import essential_parameters
from ..friction.laws import Offset
from ..friction.springs import Spring
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.prior import USUAL_WEIGHT, Prior, inertial_prior
from ..model.terms import AppliedTerm
from ..model.trained import with_limited_widths, with_trained
from ..progress import Progress
from ..project import Project
from ..samples import Segment, typical_reversals
from ..settings import EssentialSection
from ..signals.prepare import PreparedLog, unused
from ..statistics.accumulate import build_statistics
from ..statistics.fit import Fit, fit_base, prior_mean, usual_weight
from ..statistics.folds import folds_of, repetition_notes
from ..statistics.log_effects.changes import FrictionChanges, varying
from ..statistics.log_effects.mixed_model import changes_between_logs
from ..statistics.motions import motions, velocities
from ..statistics.statistic import StatisticSet
from .training_logs import TrainingLogs

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


class _Rows:
    """Builds the statistics of models on logs; the last ones are returned again where they are asked for again, as successive
    models are often the same.

    Args:
        build: :func:`build_statistics` with its options.
    """

    def __init__(self, build: Build) -> None:
        self.build, self._last = build, None  # type: Build, tuple[object, StatisticSet] | None

    def __call__(self, model: DynamicModel, *, logs: Sequence[PreparedLog], **options: Any) -> StatisticSet:
        """Returns the statistics; ``options`` as for :func:`build_statistics`."""
        asked = self._asked(model, logs, options.get("blocks"))
        if self._last is None or self._last[0] != asked:
            self._last = None  # as large as what is made next
            self._last = asked, self.build(model, logs, **options)
        return self._last[1]

    def remember(self, model: DynamicModel, logs: Sequence[PreparedLog], statistics: StatisticSet) -> None:
        """Takes statistics of a model that were built otherwise."""
        self._last = self._asked(model, logs, None), statistics

    @staticmethod
    def _asked(model: DynamicModel, logs: Sequence[PreparedLog], blocks: int | None) -> object:
        return model.fingerprint, [segment for log in logs for segment in log.segments], blocks


@dataclass(frozen=True, eq=False)
class _LawEstimate:
    """Estimate with one selection of laws.

    Attributes:
        fit: With its standard errors.
        shape_notes: On the shapes of the laws.
        rest_notes: On resting joints.
        refit: Computes the statistics of a model and estimates it again, for cross-validation.
    """

    converged: ConvergedFit
    estimated: Estimated
    fit: Fit
    logs: Sequence[PreparedLog]
    shape_notes: tuple[str, ...]
    rest_notes: tuple[str, ...]
    refit: tuple[Build, Estimate]


def estimate_from_data(prepared: TrainingLogs, project: Project, progress: Progress | None) -> DataEstimate:
    """Estimates the structure (springs, friction laws, their shapes), then base parameters and their errors.

    Args:
        progress: Called with the current step and a count.

    Raises:
        EstimationError: There are too few data.
    """
    wanted, consistency, motion = project.estimation, project.consistency, prepared.motion
    model, deflections, spring_notes = resolved_springs(prepared.model, prepared.logs)  # no effect without elastic joints
    model = with_limited_widths(model, motion)
    first = model if model.automatic else with_trained(model, motion)  # automatic laws need no trained speeds yet
    plain = build_statistics(first.unloaded(), prepared.logs, progress=progress)
    weighting = choose_weighting(first, prepared.logs, wanted.method, wanted.loss, plain)
    alike = motions(plain)
    rows = _Rows(partial(build_statistics, progress=progress, weights=weighting.weights, alike=alike))
    if weighting.weights is None:
        rows.remember(first.unloaded(), prepared.logs, replace(plain, motions=alike))
    weighed = _with_rests(first, prepared, project, weighting)
    prior = inertial_prior(model.robot, consistency.relative_std, mass_std=consistency.mass_std)
    build = partial(rows, logs=weighed[0])
    model = _with_contradicting_joints_apart(model, build, prior, wanted.method)
    selected = _selected(model, build, motion, prior, project, progress)  # no effect if the laws are given
    estimate = partial(_estimate, prepared, project, prior, weighting, rows, weighed)
    with_laws = estimate(selected)
    significant = without_chance(selected, with_laws.fit, model)
    if significant is not selected:
        selected, with_laws = significant, estimate(significant)
    converged, estimated, fit, logs = with_laws.converged, with_laws.estimated, with_laws.fit, with_laws.logs
    model, statistics = converged.model, estimated.statistics
    reversals = _reversals(converged, motion)
    completed = completed_prior(model, prior, statistics, fit, unsupported(selected, fit), reversals, supplements(selected))
    validation = _cross_validation(converged, estimated, *with_laws.refit, chosen=bool(selected.trials))
    changes = _changes(estimated, model, logs)
    fit = fit if changes is None else fit.for_next_log(changes)
    trained = prepared.trained
    notes = (
        estimated.describe(),
        *with_laws.rest_notes,
        *repetition_notes(converged.statistics),
        *spring_notes,
        *unused(project.build_payload(model.robot), logs),
        *selected.notes,
        *with_laws.shape_notes,
        *converged.notes,
        *(fit.changes.notes(trained.speed, trained.load) if fit.changes else ()),
    )
    return DataEstimate(
        model,
        logs,
        statistics,
        fit,
        completed,
        estimated,
        selected,
        with_row_sum(deflections, model, statistics, fit),
        validation,
        _essential(statistics, fit, wanted.essential),
        reversals,
        notes,
    )


def _with_contradicting_joints_apart(model: DynamicModel, build: Build, prior: Prior, method: str) -> DynamicModel:
    """The model with joints set apart whose efforts contradict the others', unless a spring, if it may be chosen, does."""
    if not model.is_rigid:
        return model
    simple = model.unloaded()
    statistics = build(simple)
    fit = fit_base(statistics, simple.base(), method=row_weighting(method))
    contradicting = contradicting_joints(simple, statistics, fit, prior)
    if not model.automatic:  # laws that are given get no spring
        return model.with_apart(contradicting)
    unexplained = []
    for joint in contradicting:
        axis = model.robot.joints.index(joint)
        # a spring replaces the offset
        others = [law for law in simple.terms if law.axis != axis or not isinstance(law.term, Offset | Spring)]
        sprung = simple.with_terms([*others, AppliedTerm(Spring(), axis)])
        rows = build(sprung)
        alike = replace(fit_base(rows, sprung.base(), method=row_weighting(method)), row_weights=fit.weights)
        complete = completed_prior(sprung, prior, rows, alike)
        errors = held_out_squares(sprung, folds_of(rows), alike, complete, usual_weight(rows, alike))
        if (errors([]) >= errors([axis])).any():  # with a spring the bodies do not help in every fold
            unexplained.append(joint)
    return model.with_apart(tuple(unexplained))


def _with_rests(
    model: DynamicModel, prepared: TrainingLogs, project: Project, weighting: SampleWeighting
) -> tuple[Sequence[PreparedLog], tuple[str, ...]]:
    """The logs with weights for resting joints, and notes; without where samples have weights, or the method knows none."""
    if weighting.weights is not None or weighting.name == "ols" or not model.is_rigid:
        return prepared.logs, ()
    return weigh_rests(model.unloaded(), prepared.logs, project.signal_config())


def _estimate(
    prepared: TrainingLogs,
    project: Project,
    prior: Prior,
    weighting: SampleWeighting,
    rows: Build,
    weighed: tuple[Sequence[PreparedLog], tuple[str, ...]],
    selected: Selected,
) -> _LawEstimate:
    """Estimates shapes and parameters of the selected laws, with standard errors.

    Args:
        weighed: The logs with the weights of resting joints under the simple laws, and notes on them.
    """
    wanted, method, motion = project.estimation, row_weighting(project.estimation.method), prepared.motion
    logs, rest_notes = weighed
    shaped = fit_shapes(selected.model, partial(rows, logs=logs), motion, method=method)
    if rest_notes:  # again, with the selected laws
        logs, rest_notes = _with_rests(shaped.model, prepared, project, weighting)
    base = shaped.model.base()
    model = with_trained(shaped.model, motion, chosen=prepared.model.automatic)  # for extrapolating friction
    reference = prior_mean(base, prior)
    build = partial(compliant, build=partial(rows, logs=logs), base=base)
    estimate = partial(fit_base, base=base, method=method, reference=reference)
    converged = converge(model, build, estimate, prior=prior, draft=partial(build, blocks=1))
    loop = partial(_closed_loop, converged, logs, prior, project, motion)
    known = "controller" in project.simulation.model_fields_set
    problem = EstimatorInput(converged.model, logs, converged.statistics, converged.fit, wanted.loss, prior, reference, loop)
    estimated = refine(weighting, problem, loop_known=known)
    fit = _with_errors(estimated, converged, logs, wanted.covariance)
    return _LawEstimate(converged, estimated, fit, logs, shaped.notes, rest_notes, (build, estimate))


def _selected(
    model: DynamicModel,
    build: Build,
    motion: Sequence[Segment],
    prior: Prior,
    project: Project,
    progress: Progress | None,
) -> Selected:
    """Selects the friction laws from the data if the project asks for it."""
    if not model.is_rigid and project.model.friction == "auto":
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


def _with_errors(estimated: Estimated, converged: ConvergedFit, logs: Sequence[PreparedLog], kind: str) -> Fit:
    """The estimate with its standard errors."""
    model = converged.model
    if estimated.fit.method == "iv" and kind != "model":
        return _instrumental_errors(estimated, converged, logs, kind)
    if estimated.own_errors:
        if kind not in ("auto", "model"):
            raise EstimationError(
                f"method {estimated.fit.method} has errors of its own", where="estimation.covariance", got=kind, expected="auto"
            )
        return estimated.fit
    rows = logs if estimated.logs is None else estimated.logs
    fit = with_covariance(estimated.fit, estimated.statistics, kind, model=model, logs=rows)
    if estimated.transform is not None:
        fit = replace(fit, covariance=estimated.transform @ fit.covariance @ estimated.transform.T)
    return with_load_slopes(fit, model, rows, converged.prior)  # no effect without load-dependent friction


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
    if not model.is_rigid:
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
            validation = cross_validate_converged(converged, build, estimate)
        else:
            validation = held_out_errors(converged.statistics, estimated)
    except EstimationError:  # too short to hold anything out: the result is "not validated"
        return {}
    return {
        "folds": list(validation.folds),
        "groups": list(validation.groups),
        "group_rmse": validation.group_rmse.tolist(),
        "mean_rmse": validation.mean_rmse,
        "relative": validation.relative,
        "structure": "chosen on all folds" if chosen else "given",
    }
