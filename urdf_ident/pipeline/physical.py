"""Third stage of an identification: standard parameters of physically consistent bodies, near the prior, that fit the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..consistency.constraints import body_constraints, friction_constraints, loads
from ..consistency.first_fit import urdf_with_friction
from ..consistency.standard import Standard, consistent_parameters, essential_to_prior, nearest_to_prior
from ..errors import EstimationError, ModelError, SolverError
from ..estimation.uncertainty.essential import essential_parameters
from ..linalg import Array
from ..project import Project
from ..result.evidence import MASS_FACTOR, Range, measure_evidence
from ..result.identification import Identification
from ..result.verdict import LOSS
from .estimate import DataEstimate


def physical_result(estimate: DataEstimate, project: Project, trained: Range, **fields: Any) -> tuple[Identification, Standard]:
    """Chooses standard parameters by the project's ``consistency`` section and collects the evidence for them.

    Args:
        fields: Further fields of the result.

    Returns:
        The result without what held-out data show, and the choice, which can be made without each fold as well.
    """
    model, statistics, fit, prior = estimate.model, estimate.statistics, estimate.fit, estimate.prior
    standard, factor = standard_parameters(estimate, project), statistics.stacked(fit.weights)
    weight = float(standard.solver.get("weight", 1.0))
    evidence = measure_evidence(model, standard.theta, prior, factor, weight, statistics, fit, trained, estimate.reversals)
    if evidence.masses and "weight" in standard.solver and _usual_masses_do(estimate, project, standard, factor):
        evidence = replace(evidence, masses={})
    solver = {**standard.solver, "notes": [*estimate.notes, *standard.solver.get("notes", ())]}
    result = Identification(
        model,
        fit,
        standard.theta,
        prior,
        factor,
        urdf_with_friction(model, statistics, fit, prior.theta0),
        solver={**solver, "springs": estimate.springs} if estimate.springs else solver,
        project=project,
        evidence=evidence,
        **{**estimate.entries, **fields},
    )
    return result, standard


def _usual_masses_do(estimate: DataEstimate, project: Project, standard: Standard, factor: Array) -> bool:
    """Whether masses nearer to the prior's explain the data as well; most masses of links are not determined by data alone.

    That is, they increase the residual of the whitened rows at most by the factor :data:`.LOSS`.
    """
    nearer = {"mass_factor": MASS_FACTOR, "weight": float(standard.solver["weight"])}
    limited = project.model_copy(update={"consistency": project.consistency.model_copy(update=nearer)})
    try:
        other = standard_parameters(estimate, limited)
    except (SolverError, ModelError):
        return False
    error, error_nearer = (np.linalg.norm(factor @ np.append(choice.theta, -1.0)) for choice in (standard, other))
    return bool(error_nearer <= LOSS * error)


def standard_parameters(estimate: DataEstimate, project: Project) -> Standard:
    """Chooses standard parameters by the project's ``consistency`` section."""
    model, statistics, fit, prior = estimate.model, estimate.statistics, estimate.fit, estimate.prior
    wanted = project.consistency
    if wanted.method == "essential":
        rule = project.estimation.essential
        try:
            chosen = essential_parameters(statistics, fit.base, fit, rule=rule.rule, limit=rule.limit)
        except EstimationError as error:
            raise EstimationError(
                f"consistency.method: essential cannot tell which parameters those are ({error})",
                remedy="record longer, or set consistency.method: lmi",
            ) from error
        return essential_to_prior(
            statistics.stacked(fit.weights, fit.base.independent), fit.base, prior.theta0, chosen.rows(fit.base)
        )
    if wanted.method not in ("auto", "lmi"):
        return nearest_to_prior(wanted.method, fit, prior, wanted.measure)
    bodies, notes = body_constraints(model.robot, prior, model.parameters, **wanted.constraints())
    return consistent_parameters(
        statistics,
        fit,
        prior,
        model.parameters,
        [*bodies, *friction_constraints(model, loads(model, statistics))],
        weight=None if wanted.weight == "auto" else float(wanted.weight),
        notes=notes,
        reversals=estimate.reversals,
        distance=wanted.measure,
        solver=wanted.solver,
    )
