"""The pipeline: the only place where the order of the steps is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .consistency.standard import prior_with_first_fit, standard_parameters
from .data.prepare import PreparedLog, prepare_log, prepare_logs
from .data.recording import Recording
from .data.signals import SignalConfig
from .errors import EstimationError
from .estimation.cross_validation import cross_validate
from .estimation.fit import Fit, fit_base, fit_columns
from .estimation.rows import build_statistics
from .estimation.statistic import StatisticSet
from .identification import Identification
from .model.base import BaseParameters
from .model.dynamic_model import DynamicModel
from .model.inertia import Array
from .model.prior import inertial_prior
from .project import Project
from .validate import validate_log


def identify(
    model: DynamicModel,
    logs: Sequence[Recording],
    *,
    held_out: Sequence[Recording] = (),
    project: Project | None = None,
    force: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Identification:
    """Identifies a robot from its logs.

    Args:
        model: The dynamic model.
        logs: Logs to learn from.
        held_out: Logs to score on; they take no part in the fit.
        project: Settings; all defaults if None.
        force: Use logs in spite of findings that refuse them.
        progress: Called with the name of the log at work and the number of rows done.

    Returns:
        The identification.

    Raises:
        QualityError: A log is refused.
        EstimationError: The data are too few.
        SolverError: The consistency step failed.
    """
    project = project or Project()
    prepared = prepare_logs(logs, model.robot, model.drive, project.signal_config(), force=force)
    statistics = build_statistics(model, prepared, progress=progress)
    base = model.base()
    prior = inertial_prior(model.robot, project.consistency.relative_std)
    reference = base.of(np.concatenate([prior.theta0, np.zeros(len(model.parameters) - model.n_inertial)]))
    fit = fit_base(statistics, base, method=project.estimation.method, reference=reference)
    prior = prior_with_first_fit(prior, model.parameters, fit)
    standard = standard_parameters(project.consistency.method, fit, prior)
    notes = [*prior.notes, *standard.solver.get("notes", ())]
    result = Identification(
        model,
        fit,
        standard.theta,
        prior,
        statistics.stacked(fit.weights),
        _urdf_with_friction(model, statistics, fit, prior.theta0),
        solver={**standard.solver, "notes": notes},
        signals=_signals(prepared),
        inputs=tuple(log.as_dict() for log in prepared),
        cross_validation=_cross_validation(statistics, base, project.estimation.method),
        config=project.model_dump(),
    )
    return validated(result, held_out, force=force)


def validated(ident: Identification, held_out: Sequence[Recording], *, force: bool = False) -> Identification:
    """Scores a result on held-out logs, conditioned as the fit's logs were.

    Args:
        ident: The result.
        held_out: Logs that took no part in the fit.
        force: Score logs in spite of findings that refuse them.

    Returns:
        The result with its ``validation`` replaced.

    Raises:
        QualityError: A log is refused.
    """
    from dataclasses import replace

    model, project = ident.model, Project.model_validate(ident.config)
    signals = SignalConfig(
        cutoff=ident.signals["cutoff"], decimate=ident.signals["decimate"], velocity=project.signals.velocity
    )
    thetas = {"exported": ident.theta, "fit": ident.fit_theta, "urdf": ident.urdf_theta, "urdf_friction": ident.baseline}
    entries = []
    for recording in held_out:
        log = prepare_log(recording, model.robot, model.drive, signals, force=force)
        entries.append(validate_log(model, thetas, log, project.validation.score_cutoff).as_dict())
    return replace(ident, validation=tuple(entries))


def _urdf_with_friction(model: DynamicModel, statistics: StatisticSet, fit: Fit, theta0: Array) -> Array:
    fixed = theta0.copy()
    fixed[model.n_inertial :] = 0.0
    friction = [k for k in range(model.n_inertial, len(model.parameters)) if not model.parameters[k].symbol.startswith("Ia")]
    return fit_columns(statistics, friction, fixed, fit.weights)


def _signals(logs: Sequence[PreparedLog]) -> dict[str, Any]:
    first = logs[0].conditioned
    return {
        "rate": first.rate,
        "cutoff": first.cutoff,
        "decimate": first.decimate_rate,
        "velocity": {log.name: log.conditioned.velocity_source for log in logs},
        "why": list(first.why),
    }


def _cross_validation(statistics: StatisticSet, base: BaseParameters, method: str) -> dict[str, Any]:
    def estimate(part: StatisticSet) -> Array:
        theta = np.zeros(part.p)
        theta[base.independent] = fit_base(part, base, method=method).params
        return theta

    try:
        found = cross_validate(statistics, estimate)
    except EstimationError:  # too short to hold anything out: the result says "not validated"
        return {}
    return {
        "folds": list(found.folds),
        "groups": list(found.groups),
        "group_rmse": found.group_rmse.tolist(),
        "mean_rmse": found.mean_rmse,
        "relative": found.relative,
    }
