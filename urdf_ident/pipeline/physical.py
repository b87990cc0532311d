"""Third stage of an identification: standard parameters of physically consistent bodies, near the prior, that fit the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..consistency.constraints import friction_constraints, lmi_options, loads
from ..consistency.first_fit import reconciled_prior, urdf_with_friction
from ..consistency.standard import Standard, consistent_parameters, essential_to_prior, nearest_to_prior
from ..errors import EstimationError, ModelError, SolverError
from ..estimation.uncertainty.essential import essential_parameters
from ..linalg import Array
from ..project import Project
from ..result.evidence import MASS_FACTOR, Evidence, Range, measure_evidence
from ..result.identification import Identification
from ..result.verdict import LOSS
from .estimate import DataEstimate


@dataclass(frozen=True, eq=False)
class Physical:
    """Standard parameters with the data and the prior that they come from.

    Attributes:
        estimate: What they are based on, its prior reconciled with the data.
        factor: Whitened data factor ``[R | rho]``, shape (k, p + 1).
        baseline: The URDF with fitted friction, shape (p,).
    """

    estimate: DataEstimate
    standard: Standard
    factor: Array
    baseline: Array
    evidence: Evidence

    def result(self, project: Project, notes: Sequence[str], **entries: Any) -> Identification:
        """Returns the result without what held-out data show; notes: notes of the stages before; entries: further fields."""
        solver = self.standard.solver
        springs = {"springs": self.estimate.springs} if self.estimate.springs else {}
        return Identification(
            self.estimate.model,
            self.estimate.fit,
            self.standard.theta,
            self.estimate.prior,
            self.factor,
            self.baseline,
            solver={**solver, "notes": [*notes, *solver.get("notes", ())], **springs},
            project=project,
            evidence=self.evidence,
            **{**self.estimate.entries, **entries},
        )


def physical_parameters(estimate: DataEstimate, project: Project, trained: Range) -> Physical:
    """Chooses standard parameters by the project's ``consistency`` section and collects the evidence for them."""
    model, statistics, fit, prior = estimate.model, estimate.statistics, estimate.fit, estimate.prior
    if model.is_rigid:
        prior = reconciled_prior(model, prior, statistics, fit)
    estimate = replace(estimate, prior=prior)
    standard = standard_parameters(estimate, project)
    factor = statistics.stacked(fit.weights)
    weight = float(standard.solver.get("weight", 1.0))
    evidence = measure_evidence(model, standard.theta, prior, factor, weight, statistics, fit, trained, estimate.reversals)
    if evidence.masses and "weight" in standard.solver and _usual_masses_do(estimate, project, standard, factor):
        evidence = replace(evidence, masses={})
    baseline = urdf_with_friction(model, statistics, fit, prior.theta0)
    return Physical(estimate, standard, factor, baseline, evidence)


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
            kept = essential_parameters(statistics, fit.base, fit, rule=rule.rule, limit=rule.limit).kept
        except EstimationError as error:
            raise EstimationError(
                f"consistency.method: essential cannot tell which parameters those are ({error})",
                remedy="record longer, or set consistency.method: lmi",
            ) from error
        return essential_to_prior(statistics.stacked(fit.weights, fit.base.independent), fit.base, prior.theta0, kept)
    if wanted.method not in ("auto", "lmi"):
        return nearest_to_prior(wanted.method, fit, prior, wanted.measure)
    options, notes = lmi_options(model.robot, prior, **wanted.constraints())
    return consistent_parameters(
        statistics,
        fit,
        prior,
        model.parameters,
        replace(options, half_spaces=friction_constraints(model, loads(model, statistics))),
        weight=None if wanted.weight == "auto" else float(wanted.weight),
        notes=notes,
        reversals=estimate.reversals,
        solver=wanted.solver,
    )
