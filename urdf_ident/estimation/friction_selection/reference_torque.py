"""Terms that need the rigid torque (load-dependent friction): a fixed point of estimating and freezing.

The column ``S(v)·|τ_rigid|`` is linear in its own parameter only once τ_rigid is known. So the rigid torque is frozen
at the last estimate, everything is estimated again, until the rigid torque does not change any more; friction is a
small part of the torque, so that each round gains one or two digits. The first round has no rigid torque yet: its
load-dependent columns are zero and take no part.

What is frozen and saved are the *parameters*, not the torque: any motion then has its reference torque, and a reloaded
result computes the same one to the last bit. A held-out fold finds its own fixed point from the rest of the data.

What the data hardly see takes no part in the torque of these data, and in a large one of another motion: of that, what
is frozen is the prior, for a load is read on every motion to come. The prior also tells rotors from links: friction of a
gear grows with the torque that it passes on, which a rotor before the gear does not load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...linalg import Array
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.prior import Prior
from ...statistics.fit import Fit
from ...statistics.folds import CrossValidation, folds_of, held_out, whole_motions
from ...statistics.motions import begun_motions
from ...statistics.ridge import fit_ridge, likely_slopes, prior_mean
from ...statistics.statistic import StatisticSet

#: The rigid torque has converged when it changes by less than this fraction (root mean square, weighted as the fit); that of a
#: fold, of which only a held-out error is wanted, when it changes by less than the second.
TOLERANCE, FOLD_TOLERANCE = 1e-6, 1e-4
#: Rounds before the search is given up.
ROUNDS = 25

#: Makes the statistics of a model from data that stay the same; ``blocks`` and ``alike`` as of :func:`.build_statistics`.
Build = Callable[..., StatisticSet]
#: Estimates the base parameters from statistics.
Estimate = Callable[[StatisticSet], Fit]


@dataclass(frozen=True, eq=False)
class ConvergedFit:
    """A fit whose load-dependent terms read its own rigid torque.

    Attributes:
        model: With the frozen reference, if it has such terms.
        statistics: Of that model.
        fit: The estimate.
        changes: Relative change of the rigid torque in each round; empty without load-dependent terms.
        prior: To which the frozen parameters are pulled.
    """

    model: DynamicModel
    statistics: StatisticSet
    fit: Fit
    changes: tuple[float, ...] = ()
    prior: Prior | None = None

    @property
    def converged(self) -> bool:
        """Whether the rigid torque has stopped changing."""
        return not self.model.loaded or (bool(self.changes) and self.changes[-1] <= TOLERANCE)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know, in words."""
        if not self.model.loaded:
            return ()
        if self.converged:
            return (f"the rigid torque of load-dependent friction converged in {len(self.changes)} rounds",)
        return (
            f"the rigid torque of load-dependent friction did not converge in {len(self.changes)} rounds (it still changes by "
            f"{100 * self.changes[-1]:.2g} %): leave load_coulomb out, or record motions with more load",
        )


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
    """Estimates a model; with load-dependent terms, until they read the rigid torque of the estimate itself.

    Args:
        build: Statistics of a model on the data.
        estimate: Base parameters from statistics.
        start: Inertial parameters of a first rigid torque, shape (10·n,); none if None.
        prior: Of the inertial parameters, to which the frozen ones are pulled; if None, they are the fit's own.
        tolerance: Relative change of the rigid torque at which it has converged.
        draft: As ``build``, for rounds of which only the estimate is wanted; ``build`` if None.

    Returns:
        The fit; ``converged`` is False if it did not converge (the last round is returned).

    Raises:
        EstimationError: See the two functions.
    """
    if not model.loaded:
        statistics = build(model)
        return ConvergedFit(model, statistics, estimate(statistics))
    theta = np.zeros(model.n_inertial) if start is None else np.asarray(start, dtype=float)[: model.n_inertial]
    changes: list[float] = []
    while True:
        current = model.with_reference(theta)
        statistics = (draft or build)(current)
        fit = estimate(statistics)
        found = rigid_parameters(fit if prior is None else fit_ridge(statistics, fit, prior), model.n_inertial, prior)
        changes.append(_change(statistics, fit, found, theta))
        if changes[-1] <= tolerance or len(changes) >= ROUNDS:
            if draft is not None:
                statistics = build(current)
                fit = estimate(statistics)
            return ConvergedFit(current, statistics, fit, tuple(changes), prior)
        theta = found


def rigid_parameters(fit: Fit, n_inertial: int, prior: Prior | None = None) -> Array:
    """Inertial parameters whose torque load-dependent laws read: what the gears pass on, without the rotors before them.

    Args:
        fit: Base parameters.
        n_inertial: Number of inertial parameters, 10·n.
        prior: As for :func:`rigid_slopes`.

    Returns:
        Shape (n_inertial,).
    """
    slopes = rigid_slopes(fit.base, n_inertial, prior)
    return slopes @ fit.params if prior is None else prior.theta0 + slopes @ (fit.params - prior_mean(fit.base, prior))


def rigid_slopes(base: BaseParameters, n_inertial: int, prior: Prior | None = None) -> Array:
    """How :func:`rigid_parameters` follow the base parameters.

    Args:
        base: The reduction.
        n_inertial: Number of inertial parameters, 10·n.
        prior: Tells a rotor from a link where the data see their sum; if None, the sum counts as the link's.

    Returns:
        Shape (n_inertial, b).
    """
    return base.embedded(np.eye(len(base)))[:n_inertial] if prior is None else likely_slopes(base, prior)


def _change(statistics: StatisticSet, fit: Fit, new: Array, old: Array) -> float:
    """``‖W (new − old)‖ / ‖W new‖`` over the inertial columns and weighted rows, from the factors alone."""
    factor = statistics.stacked(fit.weights, np.arange(len(new)))[:, :-1]
    return float(np.linalg.norm(factor @ (new - old))) / max(float(np.linalg.norm(factor @ new)), 1e-300)


def for_folds(build: Build, statistics: StatisticSet) -> Build:
    """The same build for estimates and folds alone: one factor a log where whole motions are held out.

    Args:
        build: As for :func:`converge`.
        statistics: Of the same data.

    Returns:
        The build.
    """
    return partial(build, blocks=1, alike=begun_motions(statistics)) if whole_motions(statistics) else build


def cross_validate_converged(converged: ConvergedFit, build: Build, estimate: Estimate) -> CrossValidation:
    """Held-out error per fold where each fold has its own frozen rigid torque, from the other folds alone.

    The search starts from the rigid torque of all data, which only saves rounds: it ends at the fold's own fixed point.

    Args:
        converged: The fit to all data.
        build: As for :func:`converge`.
        estimate: As for :func:`converge`.

    Returns:
        The held-out errors.

    Raises:
        EstimationError: One log that is too short to be cut into folds.
    """
    model, build = converged.model, for_folds(build, converged.statistics)
    split = folds_of(converged.statistics)

    def trained(fold: str) -> tuple[StatisticSet, Array]:
        def train(part: StatisticSet) -> Fit:
            return estimate(folds_of(part).without([fold]))

        if model.loaded:
            start, prior = model.reference_theta, converged.prior
            own = converge(model, build, train, start=start, prior=prior, tolerance=FOLD_TOLERANCE)
            judged, fit = folds_of(own.statistics), own.fit
        else:
            judged, fit = split, train(converged.statistics)
        return judged.only([fold]), fit.base.embedded(fit.params)

    return held_out(split.logs, split.groups, trained)
