"""Joints whose efforts contradict the bodies that all other efforts, and the prior, show."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache

import numpy as np

from ..errors import EstimationError
from ..friction import Spring
from ..friction.laws import Offset
from ..linalg import Array, solve_triangular, triangle
from ..model.dynamic_model import DynamicModel
from ..model.inertia import margins
from ..model.prior import Prior
from ..model.terms import AppliedTerm
from ..statistics.fit import Fit, fit_base, usual_weight
from ..statistics.folds import folds_of
from ..statistics.statistic import StatisticSet
from .first_fit import completed_prior, group_rows
from .lmi import LmiProblem

#: Level of significance at which any joint of a robot is set apart.
_LEVEL = 0.05
#: Least change of a joint's held-out torque over the error that remains: what is smaller does not matter.
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
    contradicting = contradicting_joints(simple, statistics, fit, prior)
    if not model.automatic:  # laws that are given get no spring
        return model.with_apart(contradicting)
    unexplained = []
    for joint in contradicting:
        axis = model.robot.joints.index(joint)
        # a spring replaces the offset
        others = [law for law in simple.terms if law.axis != axis or not isinstance(law.term, Offset | Spring)]
        sprung = simple.with_terms([*others, AppliedTerm(Spring(), axis)])
        rows = build(sprung)
        with_spring = replace(fit_base(rows, sprung.base(), method=method), row_weights=fit.weights)
        complete = completed_prior(sprung, prior, rows, with_spring)
        errors = _held_out_squares(sprung, folds_of(rows), with_spring, complete, usual_weight(rows, with_spring))
        if (errors(()).sum(axis=1) >= errors((axis,)).sum(axis=1)).any():  # with a spring the bodies do not help in every fold
            unexplained.append(joint)
    return model.with_apart(tuple(unexplained))


def contradicting_joints(model: DynamicModel, statistics: StatisticSet, fit: Fit, prior: Prior) -> tuple[str, ...]:
    """Finds joints whose efforts cannot be their torques, as of a lift whose effort does not hold its weight.

    A joint is set apart if physically consistent bodies predict all held-out efforts better with the joint's friction alone in
    its rows: the mean logarithm of the error over folds falls significantly for the number of joints (Bonferroni), and the
    torque of some joint, its own or another, changes by more than :data:`_MATTERS` of the error that remains. Joints are
    tried whose bodies cost more than they explain, and all where the bodies would be impossible without constraints.

    Returns:
        Their names; none where nothing can be held out.
    """
    from scipy.special import stdtrit

    try:
        split = folds_of(statistics)
    except EstimationError:
        return ()
    complete, weight, bodies = completed_prior(model, prior, statistics, fit), usual_weight(statistics, fit), model.n_inertial
    every = group_rows(statistics, fit)
    held = np.sqrt(weight) * np.column_stack([complete.root, complete.root @ complete.theta0])

    def unconstrained(apart: Collection[int]) -> tuple[float, bool]:
        """Least squared residual of all rows and the prior, and whether the bodies are physically consistent there."""
        factor = triangle(*_without_bodies(every, apart, bodies), held)
        theta = solve_triangular(factor[:-1, :-1], factor[:-1, -1])[:bodies]
        return float(factor[-1, -1] ** 2), all(margins(body).consistent for body in theta.reshape(-1, 10))

    single = [j for j in range(model.n) if not model.drive.coupled[j]]
    limit = stdtrit(len(split.logs) - 1, 1 - _LEVEL / model.n) / np.sqrt(len(split.logs))
    errors = cache(_held_out_squares(model, split, fit, complete, weight))
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


def _held_out_squares(
    model: DynamicModel, split: StatisticSet, fit: Fit, prior: Prior, weight: float
) -> Callable[[tuple[int, ...]], Array]:
    """Returns a function of the indices of joints set apart: squared whitened held-out errors, shape (folds, groups).

    Bodies are physically consistent.

    Args:
        split: Statistics whose "logs" are the folds.
        fit: For the weights of the rows; equal weights make models comparable.
        prior: Of all parameters (:func:`.completed_prior`).
        weight: Its weight.
    """
    problem, bodies = LmiProblem(prior, model.parameters), model.n_inertial
    folds = [(group_rows(split.left_out(fold), fit), group_rows(split.only([fold]), fit)) for fold in split.logs]

    def errors(apart: tuple[int, ...]) -> Array:
        squares = []
        for train, test in folds:
            R = triangle(*_without_bodies(train, apart, bodies))
            theta = problem.solve(R[:, :-1], R[:, -1], weight).theta
            squares.append([np.sum((S[:, :-1] @ theta - S[:, -1]) ** 2) for S in _without_bodies(test, apart, bodies)])
        return np.array(squares)

    return errors


def _without_bodies(rows: list[Array], apart: Collection[int], bodies: int) -> list[Array]:
    """The same with the inertial columns of some joints zero."""
    return [np.hstack([0.0 * R[:, :bodies], R[:, bodies:]]) if j in apart else R for j, R in enumerate(rows)]
