"""Second stage of an identification: what follows from the data alone.

That is the structure (springs, friction laws, shapes), base parameters with their errors, and how friction changes between
logs. The prior of friction and rotors, which no URDF gives, is completed from this first fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..consistency.contradicting_joints import with_contradicting_joints_apart
from ..consistency.first_fit import completed_prior, reconciled_prior
from ..consistency.standard import consistent_parameters
from ..errors import EstimationError
from ..estimation.elastic import compliant, resolved_springs, with_row_sum
from ..estimation.estimators.estimator import Estimated, EstimatorInput, Simulator
from ..estimation.estimators.method import (
    SampleWeighting,
    choose_weighting,
    cross_validated,
    refine,
    row_weighting,
    with_errors,
)
from ..estimation.estimators.resting import weigh_rests
from ..estimation.friction_selection.reference_torque import ConvergedFit, converge
from ..estimation.friction_selection.selection import Selected, select_friction
from ..estimation.friction_selection.shapes import fit_shapes
from ..estimation.uncertainty.essential import essential_parameters
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.prior import USUAL_WEIGHT, Prior, inertial_prior
from ..model.trained import with_limited_widths, with_trained
from ..progress import Progress
from ..project import Project
from ..signals.prepare import PreparedLog, unused_payload
from ..statistics.accumulate import build_statistics, of_columns
from ..statistics.fit import Fit, fit_base, prior_mean
from ..statistics.folds import CrossValidation, repetition_notes, repetitions
from ..statistics.log_effects.mixed_model import changes_between_logs
from ..statistics.motions import mean_reversals
from ..statistics.rows import evenly_spread
from ..statistics.statistic import Repetitions, StatisticSet
from .checked_logs import TrainingLogs


@dataclass(frozen=True, eq=False)
class DataEstimate:
    """Estimates from the data alone, before physical consistency and the prior are applied.

    Attributes:
        model: The model with the friction that was found.
        logs: The logs, with the weights of resting joints.
        statistics: The factors that the fit is based on.
        fit: Base parameters with their errors.
        prior: Prior of the inertial parameters; friction and rotor inertia are from a first fit, and reconciled with the data.
        reversals: Mean number of reversals of the moving joints, repetitions of a motion counted once.
        entries: Fields of the result about these choices: ``estimation``, ``selection``, ``cross_validation`` (None if the
            logs are too short), ``essential``.
        notes: For the summary of the result.
    """

    model: DynamicModel
    logs: Sequence[PreparedLog]
    statistics: StatisticSet
    fit: Fit
    prior: Prior
    reversals: float
    entries: Mapping[str, Any] = field(default_factory=dict)
    springs: Sequence[Mapping[str, Any]] = ()
    notes: tuple[str, ...] = ()


class _TrainingData:
    """The training data and settings that the steps share.

    Args:
        model: The model before its structure is estimated.

    Attributes:
        method: How row groups are weighted, "ols" or "wls".
        weighting: The estimator, and its weights of samples.
        prior: Prior of the bodies.
    """

    def __init__(self, prepared: TrainingLogs, project: Project, model: DynamicModel, progress: Progress | None) -> None:
        self.prepared, self.project, self.model, self.progress = prepared, project, model, progress
        wanted, consistency = project.estimation, project.consistency
        self.motion, self.method = prepared.motion, row_weighting(wanted.method)
        self.prior = inertial_prior(model.robot, consistency.relative_std, mass_std=consistency.mass_std)
        self._cached: tuple[object, DynamicModel, StatisticSet] | None = None
        self._repetitions: Repetitions | None = None
        # the plain pass, without weights of samples, shows whether these are needed, and which of several logs repeat a motion
        self.weighting = SampleWeighting(wanted.method)
        some = prepared.logs if len(prepared.logs) > 1 else self.for_choices(model, prepared.logs)
        plain = self.statistics(model.unloaded(), logs=some)
        self.weighting = choose_weighting(model, prepared.logs, wanted.method, wanted.loss, plain)

    def statistics(self, model: DynamicModel, *, logs: Sequence[PreparedLog], **options: Any) -> StatisticSet:
        """Returns the statistics of a model on logs; the last ones computed are kept, as successive models share columns.

        Args:
            options: As for :func:`build_statistics`.
        """
        segments = [segment for log in logs for segment in log.segments]
        rows = segments, options.get("blocks"), options.get("rows"), self.weighting.weights is None
        if self._cached is not None and self._cached[0] == rows:
            _, known, statistics = self._cached
            if known.fingerprint == model.fingerprint:
                return statistics
            if model.is_rigid and "rows" not in options and (selected := of_columns(statistics, known, model)) is not None:
                return selected
        self._cached = None  # as large as what is made next
        options = {"alike": self._repetitions, "weights": self.weighting.weights, "progress": self.progress, **options}
        statistics = build_statistics(model, logs, **options)
        if self._repetitions is None:
            self._repetitions = repetitions(statistics)
            statistics = replace(statistics, repetitions=self._repetitions)
        self._cached = rows, model, statistics
        return statistics

    def for_choices(self, model: DynamicModel, logs: Sequence[PreparedLog]) -> Sequence[PreparedLog]:
        """The logs, or of long ones stretches, on which laws are compared, if any are; samples with weights are whole logs'."""
        unweighted = self.weighting.weights is None
        return evenly_spread(logs) if model.is_rigid and model.automatic and unweighted else logs

    def structure(self, model: DynamicModel, logs: Sequence[PreparedLog]) -> Selected:
        """The model with the friction that the project lists, or that is selected."""
        build, method, prior = partial(self.statistics, logs=self.for_choices(model, logs)), self.method, self.prior
        # Joints whose efforts contradict the bodies that all joints share are set apart.
        model = with_contradicting_joints_apart(model, build, prior, method)
        # Friction laws by held-out error, if the project leaves them to the data.
        if not model.is_rigid and self.project.model.friction == "auto":
            return Selected(model, notes=("friction: auto with elastic joints is viscous, Coulomb and offset",))
        if not model.automatic:
            return Selected(model)
        return select_friction(model, build, self.motion, method=method, progress=self.progress, prior=prior)

    def with_rests_weighed(self, model: DynamicModel) -> tuple[Sequence[PreparedLog], tuple[str, ...]]:
        """The logs with weights for resting joints, and notes; without where samples have weights, or the method knows none."""
        if self.weighting.weights is not None or self.weighting.name == "ols" or not model.is_rigid:
            return self.prepared.logs, ()
        return weigh_rests(model.unloaded(), self.prepared.logs, self.project.signal_config())


def estimate_from_data(prepared: TrainingLogs, project: Project, progress: Progress | None) -> DataEstimate:
    """Estimates the structure (springs, friction laws, their shapes), then base parameters and their errors."""
    # 1. Springs that the encoders do not resolve are rigid joints (no effect without elastic joints).
    model, deflections, spring_notes = resolved_springs(prepared.model, prepared.logs)
    model = with_limited_widths(model, prepared.motion)
    model = model if model.automatic else with_trained(model, prepared.motion)  # automatic laws need no trained speeds yet
    # 2. Outliers, and joints that dry friction holds at rest, get smaller weights, first with the simple laws.
    data = _TrainingData(prepared, project, model, progress)
    logs, rest_notes = data.with_rests_weighed(model)
    # 3. Joints that contradict the others, and friction laws.
    selected = data.structure(model, logs)
    # 4. Shapes of the laws, and base parameters by least squares.
    shaped = fit_shapes(selected.model, partial(data.statistics, logs=logs), data.motion, method=data.method)
    if logs is not prepared.logs and shaped.model.fingerprint != data.model.fingerprint:
        logs, rest_notes = data.with_rests_weighed(shaped.model)  # resting joints have weights: again, with the selected laws
    base = shaped.model.base()
    model = with_trained(shaped.model, data.motion, chosen=prepared.model.automatic)  # for extrapolating friction
    reference = prior_mean(base, data.prior)
    build = partial(compliant, build=partial(data.statistics, logs=logs), base=base)
    fitted = partial(fit_base, base=base, method=data.method, reference=reference)
    converged = converge(model, build, fitted, prior=data.prior, draft=partial(build, blocks=1))
    # 5. By the estimator, with errors.
    model, wanted, loop = converged.model, project.estimation, partial(_closed_loop, converged, logs, data)
    least_squares = converged.statistics, converged.fit
    problem = EstimatorInput(model, logs, *least_squares, wanted.loss, data.prior, reference, loop)
    estimated = refine(data.weighting, problem, loop_known="controller" in project.simulation.model_fields_set)
    estimated = replace(estimated, fit=with_errors(estimated, problem, wanted.covariance))
    statistics, fit = estimated.statistics, estimated.fit
    # 6. The prior of friction and rotors, which no URDF gives, from this first fit.
    reversals = mean_reversals(converged.statistics, prepared.motion, model.robot.prismatic)
    prior = completed_prior(model, data.prior, statistics, fit, reversals, selected.supplements)
    # 7. Held-out errors of the same structure; none where the data are too short to hold any out.
    cross_validation: CrossValidation | None = None
    with suppress(EstimationError):
        structure = "chosen on all folds" if selected.trials else "given"
        cross_validation = replace(cross_validated(converged, estimated), structure=structure)
    # 8. How friction differs between logs, which adds to the errors for the next one; nothing where no friction can change.
    if model.is_rigid:
        with suppress(EstimationError):
            fit = fit.for_next_log(changes_between_logs(model, statistics, fit, logs))
    # 9. Which base parameters are essential, likewise by held-out errors.
    essential = None
    if wanted.essential.rule != "none":
        with suppress(EstimationError):
            essential = essential_parameters(statistics, base, fit, rule=wanted.essential.rule, limit=wanted.essential.limit)
    if model.is_rigid:
        prior = reconciled_prior(model, prior, statistics, fit)
    notes = (
        estimated.describe(),
        *rest_notes,
        *repetition_notes(converged.statistics),
        *shaped.notes,
        *converged.notes,
        *spring_notes,
        *unused_payload(logs),
        *selected.notes,
        *(fit.changes.notes(prepared.trained.speed, prepared.trained.load) if fit.changes else ()),
        *prior.notes,
    )
    entries = {
        "estimation": estimated.as_dict(),
        "selection": selected.as_dict(),
        "cross_validation": cross_validation,
        "essential": essential,
    }
    springs = with_row_sum(deflections, model, statistics, fit)
    return DataEstimate(model, logs, statistics, fit, prior, reversals, entries, springs, notes)


def estimate_again(
    model: DynamicModel, logs: Sequence[PreparedLog], statistics: StatisticSet, project: Project
) -> DataEstimate:
    """Estimates base parameters of rigid joints with errors by least squares, where structure and statistics are given."""
    wanted, consistency = project.estimation, project.consistency
    fit = fit_base(statistics, model.base(), method=row_weighting(wanted.method))
    prior = inertial_prior(model.robot, consistency.relative_std, mass_std=consistency.mass_std)
    fit = with_errors(Estimated(fit, statistics), EstimatorInput(model, logs, statistics, fit, prior=prior), wanted.covariance)
    motion = [segment for log in logs for segment in log.segments]
    reversals = mean_reversals(statistics, motion, model.robot.prismatic)
    prior = reconciled_prior(model, completed_prior(model, prior, statistics, fit, reversals), statistics, fit)
    return DataEstimate(model, logs, statistics, fit, prior, reversals)


def _closed_loop(converged: ConvergedFit, logs: Sequence[PreparedLog], data: _TrainingData) -> Simulator:
    """The simulation of the logs by the controller and a physically consistent robot."""
    from ..estimation.estimators.closed_loop import ClosedLoop

    model, statistics, fit = converged.model, converged.statistics, converged.fit
    reversals = mean_reversals(statistics, data.motion, model.robot.prismatic)
    prior = completed_prior(model, data.prior, statistics, fit, reversals=reversals)
    return ClosedLoop(model, logs, data.project.simulation, partial(_consistent_near, converged, prior))


def _consistent_near(converged: ConvergedFit, prior: Prior, params: Array) -> Array:
    """Standard parameters of the physically consistent robot near base parameters, shape (b,), other than the fit's."""
    fit, statistics = converged.fit, converged.statistics
    moved = statistics.shifted(fit.base.embedded(params - fit.params))
    return consistent_parameters(
        moved, replace(fit, params=params), prior, converged.model.parameters, weight=USUAL_WEIGHT
    ).theta
