"""From base to standard parameters: which of all parameter vectors that fit the data is the robot's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import EstimationError, nearest
from ..estimation.fit import Fit
from ..model.inertia import Array
from ..model.parameters import Parameter
from ..model.prior import Prior, with_joint_terms
from .nearest import frozen, minimum_norm

METHODS = ("minimum_norm", "frozen")


@dataclass(frozen=True, eq=False)
class Standard:
    """Chosen standard parameters, shape (p,), and how they were chosen."""

    theta: Array
    solver: dict[str, Any] = field(default_factory=dict)


def prior_with_first_fit(prior: Prior, parameters: tuple[Parameter, ...], fit: Fit) -> Prior:
    """Completes the inertial prior with friction and rotor inertia, which a URDF lacks, from the first fit (D §V.B).

    A term that the fit sees only in combination (a rotor inertia that adds to a link's) counts as not seen.

    Args:
        prior: Of the inertial parameters.
        parameters: All of theta's entries.
        fit: The first fit.

    Returns:
        The prior of all parameters.
    """
    value, error = np.full(len(parameters), np.nan), np.full(len(parameters), np.inf)
    alone = np.abs(fit.base.K).max(axis=1, initial=0.0) < 1e-9
    chosen = fit.base.independent[alone]
    value[chosen], error[chosen] = fit.params[alone], fit.bse[alone]
    n = len(prior.theta0)
    return with_joint_terms(prior, parameters, value[n:], std_error=error[n:])


def standard_parameters(method: str, fit: Fit, prior: Prior) -> Standard:
    """Standard parameters with exactly the fit's base parameters.

    Args:
        method: "minimum_norm" ("auto"): the least change of the prior in its own metric; "frozen": the dependent
            parameters stay at the prior (theory §6).
        fit: The base parameters.
        prior: The prior of all parameters.

    Returns:
        The choice; its bodies may be impossible, which :mod:`.cholesky` tells.

    Raises:
        EstimationError: Unknown method.
    """
    base = fit.base
    arguments = (prior.theta0, base.independent, base.dependent, base.K, fit.params)
    if method in ("auto", "minimum_norm"):
        return Standard(minimum_norm(*arguments, metric_root=prior.root), {"method": "minimum_norm", "status": "exact"})
    if method == "frozen":
        return Standard(frozen(*arguments), {"method": "frozen", "status": "exact"})
    raise EstimationError("unknown consistency.method", got=repr(method), remedy=nearest(method, METHODS))
