"""Rotor inertias whose prior the data contradict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, BoolArray, positive, standard_errors
from ..model.dynamic_model import DynamicModel
from ..model.prior import Prior
from ..statistics.fit import Fit
from ..statistics.folds import folds_of
from ..statistics.least_squares import solve
from ..statistics.motions import motions
from ..statistics.statistic import StatisticSet

#: Distance of a rotor inertia in the data from its prior, in standard errors of both, from which the data contradict it.
_CONTRADICTED = 6.0


def reconciled_prior(model: DynamicModel, prior: Prior, statistics: StatisticSet, fit: Fit) -> Prior:
    """Widens the prior of rotor inertias that the data contradict to the distance between both (empirical Bayes).

    The prior expects that a rotor takes no more torque in ordinary motion than the bodies leave unexplained. A finger or
    another slide of short stroke never moves in this way: its true rotor inertia may be a hundred times larger.

    The data must contradict the prior without any one of the motions, too (of a single motion, any part in time): friction that
    the model lacks stays the same along a log, and looks like rotor inertia where a joint moves in that log only.

    Args:
        fit: The fit; only rotor inertias that are base parameters by themselves are compared.

    Returns:
        The prior, with a note for each rotor inertia.
    """
    rotor = np.array([parameter.rotor for parameter in model.parameters], dtype=bool)[fit.base.independent]
    alone = np.flatnonzero(rotor & (np.abs(fit.base.K).max(axis=1, initial=0.0) < 1e-9))
    columns = fit.base.independent[alone]

    def contradicted(value: Array, error: Array) -> BoolArray:
        far = np.abs(value - prior.theta0[columns]) > _CONTRADICTED * np.hypot(prior.std[columns], error)
        return np.asarray((value > 0) & far)

    doubted = contradicted(fit.params[alone], fit.bse[alone])
    if not doubted.any():
        return prior
    without = [statistics.without(logs) for logs in motions(statistics)]
    if len(without) == 1:
        try:
            split = folds_of(statistics)
        except EstimationError:  # too short to be divided
            return prior
        without = [split.left_out(fold) for fold in split.logs]
    factors = [rows.stacked(fit.weights, fit.base.independent) for rows in (statistics, *without)]
    nominal, *errors = (standard_errors(factor[:, :-1]) for factor in factors)
    larger, known = np.ones(len(nominal)), fit.seen & np.isfinite(nominal)  # the fit's errors over nominal ones
    larger[known] = fit.bse[known] / positive(nominal[known])
    for factor, error in zip(factors[1:], errors, strict=True):
        doubted &= contradicted(solve(factor, fit.rows, fit.params).estimate[alone], (larger * error)[alone])
    if not doubted.any():
        return prior
    root, freed = prior.root.copy(), columns[doubted]
    root[freed, freed] = 1.0 / np.abs(fit.params[alone] - prior.theta0[columns])[doubted]
    joints = ", ".join(model.parameters[k].owner for k in freed)
    note = f"rotor inertia of {joints}: far above or below what the bodies suggest, taken from the data alone"
    return replace(prior, root=root, notes=(*prior.notes, note))
