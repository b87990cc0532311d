"""Fixed-point iteration for terms that depend on the rigid torque (load-dependent friction).

The column ``S(v)·|τ_rigid|`` is known only for a given τ_rigid. The rigid torque of the last estimate is therefore held fixed
while everything is estimated again, until it no longer changes; friction is a small part of the torque, so that each iteration
gains one or two digits. The first iteration has no rigid torque yet, and its load-dependent columns are zero.

The *parameters* of the rigid torque are fixed and saved, not the torque: any motion then has its reference torque, and a
reloaded result reproduces it to the last bit. A held-out fold has its own fixed point from the rest of the data.

Parameters that the data hardly excite have no influence on the torque of these data, but may have a large one in another
motion: they are taken from the prior, because the load is also computed for future motions. The prior also separates rotors
from links: friction of a gear increases with the transmitted torque, which does not include that of a rotor before the gear.

For a fixed rigid torque, standard errors treat the column ``S(v)·|τ_rigid|`` as known. At the fixed point it is not: an error
of the inertial parameters changes the column, and thus the estimate. With ``D = ∂(W β)/∂β`` through the rigid torque alone,

    D = Fl · S(v) · sign(τ_rigid) · Y · M ,    M = ∂θ/∂β of the inertial parameters of the rigid torque,

a change ``δ`` of the estimate at a fixed torque becomes ``(1 + W⁺ D)⁻¹ δ`` after convergence (W⁺ the weighted least-squares
inverse; a term in the residuals, zero on average, is neglected). Multiplication by this matrix from both sides transforms the
covariance at a fixed torque into that of the fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...linalg import Array, positive, scaled_lstsq
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.prior import Prior
from ...model.row_groups import spanning
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit, fit_ridge, likely_slopes, prior_mean
from ...statistics.folds import repetitions, whole_motions
from ...statistics.statistic import StatisticSet
from ...units import percent
from ..extended_model import LoadSlopes

#: Relative change of the rigid torque at convergence (root mean square, weighted as the fit); the same for a fold and
#: between two passes of the selection, from which only held-out errors are computed.
TOLERANCE, FOLD_TOLERANCE = 1e-6, 1e-4
#: Maximum number of iterations.
ROUNDS = 25

#: Computes the statistics of a model from given data; ``blocks`` and ``alike`` as in :func:`.build_statistics`.
Build = Callable[..., StatisticSet]
#: Estimates the base parameters from statistics.
Estimate = Callable[[StatisticSet], Fit]


@dataclass(frozen=True, eq=False)
class ConvergedFit:
    """A fit whose load-dependent terms use its own rigid torque.

    Attributes:
        model: The model, with the reference torque if it has such terms.
        build, estimate: How it was made, for its folds.
        changes: Relative change of the rigid torque in each iteration; empty without load-dependent terms.
        prior: Prior used for the parameters of the reference torque.
    """

    model: DynamicModel
    statistics: StatisticSet
    fit: Fit
    build: Build
    estimate: Estimate
    changes: tuple[float, ...] = ()
    prior: Prior | None = None

    @property
    def converged(self) -> bool:
        return not self.model.loaded or (bool(self.changes) and self.changes[-1] <= TOLERANCE)

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.model.loaded:
            return ()
        text, rounds = "the rigid torque of load-dependent friction", f"in {len(self.changes)} rounds"
        if self.converged:
            return (f"{text} converged {rounds}",)
        still = f"it still changes by {percent(100 * self.changes[-1])} %"
        return (f"{text} did not converge {rounds} ({still}): leave load_coulomb out, or record motions with more load",)


def converge(
    model: DynamicModel,
    build: Build,
    estimate: Estimate,
    *,
    start: Array | None = None,
    prior: Prior | None = None,
    tolerance: float = TOLERANCE,
    draft: Build | None = None,
) -> ConvergedFit:
    """Estimates a model; with load-dependent terms, iterates until they use the rigid torque of the estimate itself.

    Args:
        start: Inertial parameters of the first rigid torque, shape (10·n,); zero if None.
        prior: Prior that regularizes the inertial parameters of the rigid torque; if None, those of the fit are used.
        tolerance: Relative change of the rigid torque at convergence.
        draft: Replaces ``build`` during the iteration, but not for the returned statistics; ``build`` if None.

    Returns:
        The fit; ``converged`` is False if it did not converge (the last iteration is returned).

    Raises:
        EstimationError: As for ``build`` and ``estimate``.
    """
    if not model.loaded:
        statistics = build(model)
        return ConvergedFit(model, statistics, estimate(statistics), build, estimate)
    theta = np.zeros(model.n_inertial) if start is None else np.asarray(start, dtype=float)[: model.n_inertial]
    changes: list[float] = []
    while True:
        current = model.with_reference(theta)
        statistics = (draft or build)(current)
        fit = estimate(statistics)
        rigid = rigid_parameters(fit if prior is None else fit_ridge(statistics, fit, prior), model.n_inertial, prior)
        factor = statistics.stacked(fit.weights, np.arange(len(rigid)))[:, :-1]  # of the inertial columns, over weighted rows
        changes.append(float(np.linalg.norm(factor @ (rigid - theta))) / positive(float(np.linalg.norm(factor @ rigid))))
        if changes[-1] <= tolerance or len(changes) >= ROUNDS:
            if draft is not None:
                statistics = build(current)
                fit = estimate(statistics)
            return ConvergedFit(current, statistics, fit, build, estimate, tuple(changes), prior)
        theta = rigid


def rigid_parameters(fit: Fit, n_inertial: int, prior: Prior | None = None) -> Array:
    """Returns the inertial parameters of the torque that the gears transmit, without the rotors before them.

    Args:
        n_inertial: Number of inertial parameters, 10·n, as in the result.
        prior: As for :func:`rigid_slopes`.
    """
    slopes = rigid_slopes(fit.base, n_inertial, prior)
    return slopes @ fit.params if prior is None else prior.theta0 + slopes @ (fit.params - prior_mean(fit.base, prior))


def rigid_slopes(base: BaseParameters, n_inertial: int, prior: Prior | None = None) -> Array:
    """Returns the derivatives of :func:`rigid_parameters` with respect to the base parameters, shape (n_inertial, b).

    Args:
        prior: Separates rotor and link if only their sum is identifiable; if None, the sum counts as the link's.
    """
    return base.embedded(np.eye(len(base)))[:n_inertial] if prior is None else likely_slopes(base, prior)


def for_folds(build: Build, statistics: StatisticSet) -> Build:
    """Returns a faster build for estimates and folds: one factor per log if whole motions are held out."""
    return partial(build, blocks=1, alike=repetitions(statistics)) if whole_motions(statistics) else build


def load_response(fit: Fit, model: DynamicModel, logs: Sequence[PreparedLog], prior: Prior | None = None) -> Array:
    """Returns the sensitivity of the converged estimate to a change of the estimate at a fixed torque.

    Args:
        fit: The converged estimate.
        prior: The prior used for the reference torque.

    Returns:
        ``(1 + W⁺ D)⁻¹``, shape (b, b); identity for base parameters that are not identifiable.
    """
    base, seen = fit.base, np.flatnonzero(fit.seen)
    kept, expansion = spanning(model.robot)
    slopes = expansion @ rigid_slopes(base, model.n_inertial, prior)
    sloped = LoadSlopes(model, base.embedded(fit.params), kept)
    statistics = build_statistics(sloped, logs, blocks=1)  # type: ignore[arg-type]
    factor = statistics.stacked(fit.row_weights, np.concatenate([base.independent[seen], sloped.added]))
    W, D = factor[:, : len(seen)], factor[:, len(seen) : -1] @ slopes[:, seen]
    response = np.eye(len(base))
    response[np.ix_(seen, seen)] = np.linalg.inv(np.eye(len(seen)) + scaled_lstsq(W, D))
    return response
