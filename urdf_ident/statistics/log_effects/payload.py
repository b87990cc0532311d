"""Detects a payload that is present in some logs only, and separates it from changes of friction by means of gravity.

Each log has its own mass and first moments of the robot's last bodies in addition to its own friction, all as deviations in one
mixed model (:mod:`.mixed_model`). Friction changes sign with the velocity, gravity does not; so an undeclared payload appears
in the mass and not in the spread of friction.
"""

from __future__ import annotations

import numpy as np

from ...errors import EstimationError
from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ..fit import Fit
from ..statistic import StatisticSet
from .changes import FrictionChanges, Varying
from .mixed_model import friction_changes

#: The mass of a last body must differ between logs by this share of the robot's moving mass.
_WORTH = 0.005
#: A column shorter than this share of the longest is rounding error.
_SEEN = 1e-9
#: Usual distance of a payload from the last joint's frame [m].
_REACH = 0.1


def changes_between_logs(
    model: DynamicModel, statistics: StatisticSet, fit: Fit, covariates: Array | None = None, seconds: Array | None = None
) -> FrictionChanges:
    """Returns how friction differs between the logs of a fit, and the payload if only some logs carry one.

    Args:
        model: The model that the fit belongs to.
        covariates: Temperatures, shape (logs, q), as for :func:`.mixed_model.friction_changes`.
        seconds: Duration of each log's motion, shape (logs,) [s], or None.

    Returns:
        The record; its ``carried`` is set only if the masses differ significantly (restricted likelihood ratio).

    Raises:
        EstimationError: No friction parameter that may change is identifiable.
    """
    plain = friction_changes(model, statistics, fit, covariates, seconds)
    if not plain.known:
        return plain
    total = float(sum(inertia.mass for inertia in list(model.robot.model.inertias)[1:]))
    bodies = _last_bodies(model, statistics, max(_WORTH * total, 1e-6))
    if not bodies:
        return plain
    try:
        found = friction_changes(model, statistics, fit, covariates, seconds, carried=bodies)
    except (EstimationError, np.linalg.LinAlgError):  # not significant, or nearly collinear with the other columns
        return plain
    mass = [k for k, part in enumerate(bodies) if part.name.startswith("m_")]
    return found if found.carried is not None and (np.ptp(found.carried[:, mass], axis=0) > _WORTH * total).any() else plain


def _last_bodies(model: DynamicModel, statistics: StatisticSet, size: float) -> list[Varying]:
    """Mass and first moments of the bodies without children, where the data have non-zero columns for them."""
    parents = set(model.robot.parents[1:])
    length = np.linalg.norm(statistics.stacked()[:, :-1], axis=0)
    shown = set(np.flatnonzero(length > _SEEN * length.max()).tolist())
    found = []
    for body in range(model.n):
        if body in parents:
            continue
        for k in range(4):
            column = 10 * body + k
            if column in shown:
                found.append(Varying(model.names[column], body, "body", (column,), size * (1.0 if k == 0 else _REACH)))
    return found
