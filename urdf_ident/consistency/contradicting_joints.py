"""Joints whose efforts contradict the bodies that all other efforts, and the prior, show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

from ..errors import EstimationError
from ..friction import Spring
from ..friction.laws import Offset
from ..linalg import Array, solve_triangular
from ..model.dynamic_model import DynamicModel
from ..model.inertia import margins
from ..model.prior import Prior
from ..model.terms import AppliedTerm
from ..statistics.fit import Fit, fit_base, usual_weight
from ..statistics.folds import folds_of
from ..statistics.least_squares import LEVEL
from ..statistics.statistic import Layout, StatisticSet
from .first_fit import completed_prior
from .lmi import LmiProblem
from .standard import HeldOut

#: Least change of a joint's held-out torque over the error that remains: what is smaller does not matter, as of other faults.
_MATTERS = 0.5


def with_contradicting_joints_apart(
    model: DynamicModel, build: Callable[[DynamicModel], StatisticSet], prior: Prior, method: str
) -> DynamicModel:
    """Returns the model with those joints set apart whose efforts contradict the others', unless a spring, if it may be chosen,
    explains them.

    Args:
        build: Returns the statistics of a model.
        prior: Prior of the bodies.
        method: How row groups are weighted, "ols" or "wls".
    """
    if not model.is_rigid:
        return model
    simple = model.unloaded()
    statistics = build(simple)
    fit = fit_base(statistics, simple.base(), method=method)
    apart = contradicting_joints(simple, statistics, fit, prior)
    if model.automatic:  # laws that are given get no spring
        apart = tuple(joint for joint in apart if not _spring_explains(joint, simple, build, prior, method, fit.weights))
    return model.with_apart(apart)


def contradicting_joints(model: DynamicModel, statistics: StatisticSet, fit: Fit, prior: Prior) -> tuple[str, ...]:
    """Finds joints whose efforts cannot be their torques, as of a lift whose effort does not hold its weight.

    A joint is set apart if physically consistent bodies predict all held-out efforts better with the joint's friction alone in
    its rows: the logarithm of the squared error falls significantly over the F folds for the number n of joints, and the torque
    of some joint, its own or another, changes by more than :data:`_MATTERS` of the error that remains. Significant is, by the
    one-sided t-test with Bonferroni's correction, ``mean / (std / √F) > t(F − 1; 1 − level / n)``. Joints are tried whose
    bodies cost more than they explain, and all where the bodies would be impossible without constraints.

    Returns:
        Their names; none where nothing can be held out.
    """
    from scipy.special import stdtrit

    try:
        split = folds_of(statistics)
    except EstimationError:
        return ()
    complete, weight, bodies = completed_prior(model, prior, statistics, fit), usual_weight(statistics, fit), model.n_inertial
    problem = LmiProblem(complete, model.parameters)
    known = np.sqrt(weight) * np.column_stack([complete.root, complete.root @ complete.theta0])

    def unconstrained(apart: Collection[int]) -> tuple[float, bool]:
        """Least squared residual of all rows and the prior, and whether the bodies are physically consistent there."""
        factor = _without_bodies(split, apart, bodies).stacked(fit.weights, more=known)
        theta = solve_triangular(factor[:-1, :-1], factor[:-1, -1])[:bodies]
        return float(factor[-1, -1] ** 2), all(margins(body).consistent for body in theta.reshape(-1, 10))

    single = [j for j in range(model.n) if not model.drive.coupled[j]]
    limit = stdtrit(len(split.logs) - 1, 1 - LEVEL / model.n) / np.sqrt(len(split.logs))  # of mean over std
    errors = cache(partial(_held_out_squares, problem, split, fit, weight))  # with some joints apart
    apart: tuple[int, ...] = ()
    while len(apart) < len(single) - 1:
        misfit, consistent = unconstrained(apart)
        doubted = [j for j in single if j not in apart and (not consistent or unconstrained([*apart, j])[0] < misfit)]
        gains = {j: np.log(errors(apart).sum(axis=1) / errors((*apart, j)).sum(axis=1)) for j in doubted}
        best = max(gains, key=lambda j: float(gains[j].mean()), default=-1)
        if best < 0 or gains[best].mean() <= limit * gains[best].std(ddof=1):
            break
        before, after = (errors(some).sum(axis=0) for some in (apart, (*apart, best)))
        if (before - after <= _MATTERS**2 * after).all():
            break
        apart = (*apart, best)
    return tuple(model.robot.joints[j] for j in sorted(apart))


def _spring_explains(
    joint: str,
    simple: DynamicModel,
    build: Callable[[DynamicModel], StatisticSet],
    prior: Prior,
    method: str,
    weights: Mapping[str, float],
) -> bool:
    """Whether a spring explains the efforts of a contradicting joint: beside it, the bodies lower their error in every fold.

    Args:
        simple: The model with friction that does not depend on the load; the spring replaces the joint's offset.
        build, prior, method: As for :func:`with_contradicting_joints_apart`.
        weights: Row group → weight by the residuals without the spring [1/unit of torque].
    """
    axis = simple.robot.joints.index(joint)
    others = [law for law in simple.terms if law.axis != axis or not isinstance(law.term, Offset | Spring)]
    sprung = simple.with_terms([*others, AppliedTerm(Spring(), axis)])
    statistics = build(sprung)
    fit = replace(fit_base(statistics, sprung.base(), method=method), row_weights=weights)
    problem = LmiProblem(completed_prior(sprung, prior, statistics, fit), sprung.parameters)
    errors = partial(_held_out_squares, problem, folds_of(statistics), fit, usual_weight(statistics, fit))
    together, alone = errors(apart=()).sum(axis=1), errors(apart=(axis,)).sum(axis=1)
    return not (together >= alone).any()


def _held_out_squares(problem: LmiProblem, split: StatisticSet, fit: Fit, weight: float, apart: tuple[int, ...]) -> Array:
    """Squared whitened held-out errors of physically consistent bodies with some joints apart, shape (folds, groups)."""
    held = HeldOut(problem, _without_bodies(split, apart, 10 * problem.n), fit)
    return held.squares(held.estimates(weight))


def _without_bodies(statistics: StatisticSet, apart: Collection[int], bodies: int) -> StatisticSet:
    """The same with no inertial columns in the rows of some joints."""
    kept = {layout.group: layout.columns >= bodies for layout in statistics.layouts if layout.joint in apart}
    layouts = [
        Layout(layout.group, layout.joint, layout.columns[kept[layout.group]]) if layout.group in kept else layout
        for layout in statistics.layouts
    ]
    entries = [
        replace(entry, factor=entry.R[:, np.append(kept[entry.group], True)], expansion=None) if entry.group in kept else entry
        for entry in statistics.entries
    ]
    return replace(statistics, layouts=tuple(layouts), entries=tuple(entries))
