"""From base to standard parameters: which of all parameter vectors that fit the data is the robot's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import EstimationError, nearest
from ..estimation.cross_validation import folds_of
from ..estimation.fit import Fit, fit_columns
from ..estimation.statistic import StatisticSet
from ..model.inertia import Array
from ..model.parameters import Parameter
from ..model.prior import Prior, with_joint_terms
from .cones import LmiOptions
from .lmi import LmiProblem
from .nearest import frozen, minimum_norm

METHODS = ("lmi", "minimum_norm", "frozen")
#: Weights of the prior that are tried. 1 would be Bayes' answer if the residuals were independent noise; between real
#: logs the nominal standard errors are about four times too small (theory §7), so the data count a tenth or less.
WEIGHTS = (10.0, 30.0, 100.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Standard:
    """Chosen standard parameters, shape (p,), and how they were chosen."""

    theta: Array
    solver: dict[str, Any] = field(default_factory=dict)


def prior_with_first_fit(
    prior: Prior, parameters: tuple[Parameter, ...], statistics: StatisticSet, weights: Mapping[str, float]
) -> Prior:
    """Completes the inertial prior with friction and rotor inertia, which a URDF lacks, from a first fit (D §V.B).

    The inertials are held at the prior meanwhile: a rotor inertia adds to a link's, and only so it is seen.

    Args:
        prior: Of the inertial parameters.
        parameters: All of theta's entries.
        statistics: The data's factors.
        weights: Row group → weight on its rows [1/unit of torque].

    Returns:
        The prior of all parameters.
    """
    n, p = len(prior.theta0), len(parameters)
    fixed = np.concatenate([prior.theta0, np.full(p - n, np.nan)])
    return with_joint_terms(prior, parameters, fit_columns(statistics, range(n, p), fixed, weights)[n:])


def nearest_to_prior(method: str, fit: Fit, prior: Prior) -> Standard:
    """Standard parameters with exactly the fit's base parameters (D, 27-33); bodies may come out impossible.

    Args:
        method: "minimum_norm": the least change of the prior in its own metric; "frozen": the dependent
            parameters stay at the prior (theory §6).
        fit: The base parameters.
        prior: The prior of all parameters.

    Returns:
        The choice.

    Raises:
        EstimationError: Unknown method.
    """
    base = fit.base
    arguments = (prior.theta0, base.independent, base.dependent, base.K, fit.params)
    if method == "minimum_norm":
        return Standard(minimum_norm(*arguments, metric_root=prior.root), {"method": method, "status": "exact"})
    if method == "frozen":
        return Standard(frozen(*arguments), {"method": method, "status": "exact"})
    raise EstimationError("unknown consistency.method", got=repr(method), remedy=nearest(method, METHODS))


def consistent_parameters(
    statistics: StatisticSet,
    fit: Fit,
    prior: Prior,
    parameters: tuple[Parameter, ...],
    options: LmiOptions | None = None,
    weight: float | None = None,
) -> Standard:
    """The most plausible robot that could exist: LMI with the prior's weight chosen by held-out error.

    Logs are left out one by one, or parts in time when there is one log.

    Args:
        statistics: The data's factors.
        fit: The fit, for the weights of the row groups.
        prior: The prior of all parameters.
        parameters: All of theta's entries.
        options: What is demanded of the bodies.
        weight: Of the prior; chosen from :data:`WEIGHTS` if None.

    Returns:
        The choice.

    Raises:
        SolverError: No robot satisfies the constraints, or no solver finds it.
    """
    problem = LmiProblem(prior, parameters, options)
    record: dict[str, Any] = {}
    if weight is None:
        weight, record = _held_out_weight(problem, statistics, fit)
    solution = problem.solve(*_data(statistics, fit), weight)
    return Standard(solution.theta, {"method": "lmi", **solution.as_dict(), **record})


def _data(statistics: StatisticSet, fit: Fit) -> tuple[Array, Array]:
    factor = statistics.stacked(fit.weights)
    return factor[:, :-1], factor[:, -1]


def _held_out_weight(problem: LmiProblem, statistics: StatisticSet, fit: Fit) -> tuple[float, dict[str, Any]]:
    """Cross-validation over logs (or parts in time); errors are whitened, so that all joints count alike."""
    try:
        split = folds_of(statistics)
    except EstimationError:
        return 1.0, {"weight_choice": "too short to hold anything out"}
    errors = np.empty((len(split.logs), len(WEIGHTS)))
    for i, fold in enumerate(split.logs):
        R, rho = _data(split.without([fold]), fit)
        test = split.only([fold])
        S, sigma = _data(test, fit)
        for k, weight in enumerate(WEIGHTS):
            theta = problem.solve(R, rho, weight).theta
            errors[i, k] = np.sum((S @ theta - sigma) ** 2) / sum(test.rows.values())
    mean = errors.mean(axis=0)
    chosen = int(mean.argmin())
    table = [{"weight": w, "held_out": float(np.sqrt(e))} for w, e in zip(WEIGHTS, mean, strict=True)]
    return WEIGHTS[chosen], {"weight_choice": f"held-out error over {len(errors)} folds", "weights_tried": table}
